//! Conversions between types.

use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, Op, StorageClass, Word};

use super::bfloat16::is_brain;
use super::function::FunctionTranslator;
use super::module_builder::Scalar;
use super::value::{Shape, Translated, container};
use crate::llvm::{Opcode, Value};
use crate::refused::Refused;

/// The number of bits, and an integer that holds them in its container; one bit is a boolean.
type Piece = (u32, Word);

impl<'c> FunctionTranslator<'_, '_, 'c> {
    /// Translates the casts of LLVM, `trunc` to `addrspacecast`.
    pub(super) fn conversion(&mut self, instruction: Value<'c>, opcode: Opcode) -> Result<Translated, Refused> {
        let types = [instruction.operand(0).value_type(), instruction.value_type()];
        if opcode != Opcode::BITCAST && types.into_iter().any(is_brain) {
            return self.brain_conversion(instruction, opcode);
        }
        let value = self.operand(instruction, 0)?;
        let from = Shape::of(instruction.operand(0).value_type())?;
        let to = Shape::of(instruction.value_type())?;
        match opcode {
            Opcode::BITCAST => return self.bitcast(value, &from, &to),
            Opcode::ADDRESS_SPACE_CAST => {
                let class = self.class(instruction);
                return Ok(Translated::Address(self.cast(value.address(), class), class));
            }
            _ => {}
        }
        let class = self.class(instruction);
        let mut one = |value: &Translated, from: &Shape, to: &Shape| self.convert(opcode, value, (from, to), class);
        match (&from, &to) {
            (Shape::Parts(from), Shape::Parts(to)) => {
                let parts = value.parts().iter().zip(from).zip(to);
                let parts = parts.map(|((value, from), to)| one(value, from, to)).collect::<Result<_, _>>()?;
                Ok(Translated::Parts(parts))
            }
            _ => one(&value, &from, &to),
        }
    }

    /// Converts one value. If the result is an address, it is of `class`.
    pub(super) fn convert(
        &mut self,
        opcode: Opcode,
        value: &Translated,
        (from, to): (&Shape, &Shape),
        class: StorageClass,
    ) -> Result<Translated, Refused> {
        Ok(match opcode {
            Opcode::TRUNC | Opcode::ZEXT | Opcode::SEXT => self.convert_int(opcode, value, from, to),
            Opcode::FP_TRUNC | Opcode::FP_EXT => {
                let scalar = to.scalars()[0];
                Translated::Scalar(self.code.op(Op::FConvert, scalar, &[value.scalar()]))
            }
            Opcode::FP_TO_UI | Opcode::FP_TO_SI => self.float_to_int(opcode == Opcode::FP_TO_SI, value.scalar(), to)?,
            Opcode::UI_TO_FP | Opcode::SI_TO_FP => self.int_to_float(opcode == Opcode::SI_TO_FP, value, from, to)?,
            Opcode::PTR_TO_INT | Opcode::PTR_TO_ADDR => {
                let bits = Translated::Scalar(self.address_bits(value.address()));
                self.resize(&bits, &Shape::Int(64), to)
            }
            _ => {
                let bits = self.resize(value, from, &Shape::Int(64));
                let address = self.code.op(Op::ConvertUToPtr, Scalar::Address(class), &[bits.scalar()]);
                Translated::Address(address, class)
            }
        })
    }

    /// Truncates or zero-extends.
    pub(super) fn resize(&mut self, value: &Translated, from: &Shape, to: &Shape) -> Translated {
        let opcode = if bits_of(from) > bits_of(to) { Opcode::TRUNC } else { Opcode::ZEXT };
        self.convert_int(opcode, value, from, to)
    }

    /// `trunc`, `zext` and `sext`; also between equal types.
    pub(super) fn convert_int(&mut self, opcode: Opcode, value: &Translated, from: &Shape, to: &Shape) -> Translated {
        if from == to {
            return value.clone();
        }
        let is_signed = opcode == Opcode::SEXT;
        match (from, to) {
            (Shape::Bool, to) => {
                let ones = self.bits(to, if is_signed { u128::MAX >> (128 - bits_of(to)) } else { 1 });
                let zero = self.bits(to, 0);
                self.choose(value.scalar(), &ones, &zero, to)
            }
            (from, Shape::Bool) => {
                let (word, width) = match (value, from) {
                    (Translated::Wide(low, _), _) => (*low, 64),
                    (value, from) => (value.scalar(), container(bits_of(from))),
                };
                let (one, zero) = (self.code.integer(width, 1), self.code.integer(width, 0));
                let lowest = self.code.int(Op::BitwiseAnd, width, &[word, one]);
                Translated::Scalar(self.code.test(Op::INotEqual, &[lowest, zero]))
            }
            (Shape::Wide(from), Shape::Wide(to)) => {
                let pair = if is_signed { self.wide_sign_extended(value.wide(), *from) } else { value.wide() };
                self.cut_wide(pair, *to)
            }
            (Shape::Wide(_), to) => {
                let low = Translated::Scalar(value.wide().0);
                self.convert_int(Opcode::TRUNC, &low, &Shape::Int(64), to)
            }
            (from, Shape::Wide(to)) => {
                let low = self.convert_int(opcode, value, from, &Shape::Int(64)).scalar();
                let high = if is_signed {
                    let most = self.code.integer(64, 63);
                    self.code.int(Op::ShiftRightArithmetic, 64, &[low, most])
                } else {
                    self.code.integer(64, 0)
                };
                self.cut_wide((low, high), *to)
            }
            (from, to) => {
                let (from, to) = (bits_of(from), bits_of(to));
                let (held, target) = (container(from), container(to));
                let mut word = value.scalar();
                if is_signed {
                    word = self.sign_extended(word, from);
                }
                if held != target {
                    let op = if is_signed { Op::SConvert } else { Op::UConvert };
                    word = self.code.int(op, target, &[word]);
                }
                Translated::Scalar(if is_signed || to < from { self.cut(word, to) } else { word })
            }
        }
    }

    fn float_to_int(&mut self, is_signed: bool, value: Word, to: &Shape) -> Result<Translated, Refused> {
        let op = if is_signed { Op::ConvertFToS } else { Op::ConvertFToU };
        match to {
            Shape::Int(width) => {
                let word = self.code.int(op, container(*width), &[value]);
                Ok(Translated::Scalar(self.cut(word, *width)))
            }
            Shape::Bool => {
                let word = Translated::Scalar(self.code.int(op, 32, &[value]));
                Ok(self.convert_int(Opcode::TRUNC, &word, &Shape::Int(32), to))
            }
            other => Err(Refused::new(format!("a conversion of a float to {other:?}"))),
        }
    }

    fn int_to_float(
        &mut self,
        is_signed: bool,
        value: &Translated,
        from: &Shape,
        to: &Shape,
    ) -> Result<Translated, Refused> {
        let scalar = to.scalars()[0];
        let (word, width) = match from {
            Shape::Int(width) => (value.scalar(), *width),
            Shape::Bool => {
                let opcode = if is_signed { Opcode::SEXT } else { Opcode::ZEXT };
                (self.convert_int(opcode, value, from, &Shape::Int(32)).scalar(), 32)
            }
            other => return Err(Refused::new(format!("a conversion of {other:?} to a float"))),
        };
        let (op, word) =
            if is_signed { (Op::ConvertSToF, self.sign_extended(word, width)) } else { (Op::ConvertUToF, word) };
        Ok(Translated::Scalar(self.code.op(op, scalar, &[word])))
    }

    /// `fptoui.sat` and `fptosi.sat`, Rust's `as`: saturates at the least and greatest integer; NaN becomes zero.
    pub(super) fn saturated_float_to_int(
        &mut self,
        is_signed: bool,
        value: Word,
        to: &Shape,
    ) -> Result<Translated, Refused> {
        let Shape::Int(width) = *to else {
            return Err(Refused::new(format!("a saturating conversion of a float to {to:?}")));
        };
        let held = container(width);
        let op = if is_signed { Op::ConvertFToS } else { Op::ConvertFToU };
        let mut word = self.code.int(op, held, &[value]);
        self.code.writer.decorate(word, Decoration::SaturatedConversion, std::iter::empty::<Operand>());
        if held != width {
            let shape = Shape::Int(held);
            let ones = (1u128 << width) - 1;
            let (least, greatest) =
                if is_signed { (!(ones >> 1) & u128::from(u64::MAX), ones >> 1) } else { (0, ones) };
            let (least, greatest) = (self.bits(&shape, least), self.bits(&shape, greatest));
            let (larger, smaller) = if is_signed { ("smax", "smin") } else { ("umax", "umin") };
            let clamped = self.extremum(larger, &Translated::Scalar(word), &least, &shape)?;
            word = self.extremum(smaller, &clamped, &greatest, &shape)?.scalar();
            word = self.cut(word, width);
        }
        // Drivers should do this, and need not.
        let is_number = self.code.test(Op::Ordered, &[value, value]);
        let zero = self.code.integer(held, 0);
        Ok(Translated::Scalar(self.code.select(Scalar::Int(held), is_number, word, zero)))
    }

    /// Reinterprets the bits of a value as another type of equal size.
    pub(super) fn bitcast(&mut self, value: Translated, from: &Shape, to: &Shape) -> Result<Translated, Refused> {
        match (from, to) {
            _ if from == to => Ok(value),
            (Shape::Int(_) | Shape::Float(_), Shape::Int(_) | Shape::Float(_)) => {
                let scalar = to.scalars()[0];
                Ok(Translated::Scalar(self.code.op(Op::Bitcast, scalar, &[value.scalar()])))
            }
            _ => {
                let mut pieces = Vec::new();
                self.split(&value, from, &mut pieces)?;
                pieces.reverse();
                self.join(&mut pieces, to)
            }
        }
    }

    /// Splits a value into pieces of its bits, the lowest first.
    fn split(&mut self, value: &Translated, shape: &Shape, pieces: &mut Vec<Piece>) -> Result<(), Refused> {
        match shape {
            Shape::Bool => pieces.push((1, value.scalar())),
            Shape::Int(width) => pieces.push((*width, value.scalar())),
            Shape::Float(width) => {
                let bits = self.code.int(Op::Bitcast, *width, &[value.scalar()]);
                pieces.push((*width, bits));
            }
            Shape::Wide(width) => {
                let (low, high) = value.wide();
                pieces.push((64, low));
                let rest = if *width == 65 { Shape::Bool } else { Shape::Int(width - 64) };
                let high = self.resize(&Translated::Scalar(high), &Shape::Int(64), &rest);
                pieces.push((width - 64, high.scalar()));
            }
            Shape::Parts(shapes) => {
                for (part, shape) in value.parts().iter().zip(shapes) {
                    self.split(part, shape, pieces)?;
                }
            }
            Shape::Address | Shape::Nothing => return Err(Refused::new("addresses that are cast with other values")),
        }
        Ok(())
    }

    /// Joins pieces of bits into a value. They are taken from the end of the list.
    fn join(&mut self, pieces: &mut Vec<Piece>, shape: &Shape) -> Result<Translated, Refused> {
        Ok(match shape {
            Shape::Bool => Translated::Scalar(self.take_bits(pieces, 1)),
            Shape::Int(width) => Translated::Scalar(self.take_bits(pieces, *width)),
            Shape::Float(width) => {
                let bits = self.take_bits(pieces, *width);
                Translated::Scalar(self.code.op(Op::Bitcast, Scalar::Float(*width), &[bits]))
            }
            Shape::Wide(width) => {
                let low = self.take_bits(pieces, 64);
                let high = self.take_bits(pieces, width - 64);
                let from = if *width == 65 { Shape::Bool } else { Shape::Int(width - 64) };
                let high = self.resize(&Translated::Scalar(high), &from, &Shape::Int(64));
                Translated::Wide(low, high.scalar())
            }
            Shape::Parts(shapes) => {
                Translated::Parts(shapes.iter().map(|shape| self.join(pieces, shape)).collect::<Result<_, _>>()?)
            }
            Shape::Address | Shape::Nothing => return Err(Refused::new("addresses that are cast from other values")),
        })
    }

    /// The next `width` bits, at most 64, as an integer of that width or a boolean.
    fn take_bits(&mut self, pieces: &mut Vec<Piece>, width: u32) -> Word {
        let shape_of = |width: u32| if width == 1 { Shape::Bool } else { Shape::Int(width) };
        let target = shape_of(width);
        let mut result: Option<Translated> = None;
        let mut have = 0;
        while have < width {
            let (size, piece) = pieces.pop().expect("both types have the same size");
            let from = shape_of(size);
            let piece = Translated::Scalar(piece);
            let taken = size.min(width - have);
            if taken < size {
                // What is left is for the next.
                let distance = self.bits(&from, u128::from(taken));
                let rest = self.narrow_shift_right(&piece, &distance, size);
                let rest = self.convert_int(Opcode::TRUNC, &rest, &from, &shape_of(size - taken));
                pieces.push((size - taken, rest.scalar()));
            }
            let part = self.resize(&piece, &from, &shape_of(taken));
            let part = self.resize(&part, &shape_of(taken), &target);
            result = Some(match result {
                None => part,
                Some(before) => {
                    let distance = self.bits(&target, u128::from(have));
                    let moved =
                        self.code.int(Op::ShiftLeftLogical, container(width), &[part.scalar(), distance.scalar()]);
                    Translated::Scalar(self.code.int(Op::BitwiseOr, container(width), &[before.scalar(), moved]))
                }
            });
            have += taken;
        }
        result.expect("at least one bit").scalar()
    }

    fn narrow_shift_right(&mut self, value: &Translated, distance: &Translated, width: u32) -> Translated {
        let operands = [value.scalar(), distance.scalar()];
        Translated::Scalar(self.code.int(Op::ShiftRightLogical, container(width), &operands))
    }
}

/// The width of an integer shape.
fn bits_of(shape: &Shape) -> u32 {
    match shape {
        Shape::Bool => 1,
        Shape::Int(width) | Shape::Wide(width) => *width,
        other => unreachable!("LLVM converts integers to integers, not {other:?}"),
    }
}
