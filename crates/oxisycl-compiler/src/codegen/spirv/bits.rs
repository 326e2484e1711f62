//! Integer intrinsics about single bits: counting them, and reversing their order.

use rspirv::spirv::{Op, Word};

use super::function::FunctionTranslator;
use super::function_builder::Std;
use super::module_builder::Scalar;
use super::value::{Shape, Translated, container};

impl FunctionTranslator<'_, '_, '_> {
    fn population(&mut self, value: Word, width: u32) -> Word {
        self.code.extended(Std::popcount, Scalar::Int(width), &[value])
    }

    fn leading(&mut self, value: Word, width: u32) -> Word {
        self.code.extended(Std::clz, Scalar::Int(width), &[value])
    }

    /// The number of trailing zeros, from the bits below the lowest set one. The instruction for it is missing on devices of OpenCL 1.2.
    fn trailing(&mut self, value: Word, width: u32) -> Word {
        let one = self.code.integer(width, 1);
        let less = self.code.int(Op::ISub, width, &[value, one]);
        let not = self.code.int(Op::Not, width, &[value]);
        let below = self.code.int(Op::BitwiseAnd, width, &[not, less]);
        self.population(below, width)
    }

    /// `ctpop`.
    pub(super) fn count_ones(&mut self, value: &Translated, shape: &Shape) -> Translated {
        match shape {
            Shape::Int(width) => Translated::Scalar(self.population(value.scalar(), container(*width))),
            Shape::Wide(_) => {
                let (low, high) = value.wide();
                let (low, high) = (self.population(low, 64), self.population(high, 64));
                self.wide_count(low, Some(high))
            }
            _ => value.clone(),
        }
    }

    fn wide_count(&mut self, count: Word, more: Option<Word>) -> Translated {
        let count = match more {
            Some(more) => self.code.int(Op::IAdd, 64, &[count, more]),
            None => count,
        };
        Translated::Wide(count, self.code.integer(64, 0))
    }

    /// `ctlz`; the width for zero.
    pub(super) fn leading_zeros(&mut self, value: &Translated, shape: &Shape) -> Translated {
        match shape {
            Shape::Int(width) => {
                let held = container(*width);
                let count = self.leading(value.scalar(), held);
                let above = self.code.integer(held, u64::from(held - width));
                Translated::Scalar(if held == *width { count } else { self.code.int(Op::ISub, held, &[count, above]) })
            }
            Shape::Wide(width) => {
                let (low, high) = value.wide();
                let (in_low, in_high) = (self.leading(low, 64), self.leading(high, 64));
                let (zero, word) = (self.code.integer(64, 0), self.code.integer(64, 64));
                let is_low = self.code.test(Op::IEqual, &[high, zero]);
                let in_low = self.code.int(Op::IAdd, 64, &[in_low, word]);
                let count = self.code.select(Scalar::Int(64), is_low, in_low, in_high);
                let above = self.code.integer(64, u64::from(128 - width));
                let count = self.code.int(Op::ISub, 64, &[count, above]);
                self.wide_count(count, None)
            }
            _ => Translated::Scalar(self.code.test(Op::LogicalNot, &[value.scalar()])),
        }
    }

    /// `cttz`; the width for zero.
    pub(super) fn trailing_zeros(&mut self, value: &Translated, shape: &Shape) -> Translated {
        match shape {
            Shape::Int(width) => {
                let held = container(*width);
                let mut value = value.scalar();
                if held != *width {
                    let end = self.code.integer(held, 1 << width);
                    value = self.code.int(Op::BitwiseOr, held, &[value, end]);
                }
                Translated::Scalar(self.trailing(value, held))
            }
            Shape::Wide(width) => {
                let (low, mut high) = value.wide();
                if *width != 128 {
                    let end = self.code.integer(64, 1 << (width - 64));
                    high = self.code.int(Op::BitwiseOr, 64, &[high, end]);
                }
                let (in_low, in_high) = (self.trailing(low, 64), self.trailing(high, 64));
                let (zero, word) = (self.code.integer(64, 0), self.code.integer(64, 64));
                let is_high = self.code.test(Op::IEqual, &[low, zero]);
                let in_high = self.code.int(Op::IAdd, 64, &[in_high, word]);
                let count = self.code.select(Scalar::Int(64), is_high, in_high, in_low);
                self.wide_count(count, None)
            }
            _ => Translated::Scalar(self.code.test(Op::LogicalNot, &[value.scalar()])),
        }
    }

    /// `bswap` reverses groups of 8 bits, `bitreverse` groups of one.
    pub(super) fn reverse(&mut self, value: &Translated, group: u32, shape: &Shape) -> Translated {
        match shape {
            Shape::Int(width) => {
                let held = container(*width);
                let reversed = self.reverse_word(value.scalar(), group, held);
                let below = self.code.integer(held, u64::from(held - width));
                Translated::Scalar(if held == *width {
                    reversed
                } else {
                    self.code.int(Op::ShiftRightLogical, held, &[reversed, below])
                })
            }
            Shape::Wide(width) => {
                let (low, high) = value.wide();
                let reversed = (self.reverse_word(high, group, 64), self.reverse_word(low, group, 64));
                let below = self.code.integer(64, u64::from(128 - width));
                let (low, high) = self.wide_shift_right(reversed, below, Op::ShiftRightLogical);
                Translated::Wide(low, high)
            }
            _ => value.clone(),
        }
    }

    /// Swaps neighbouring groups, then groups of twice the size, up to halves.
    fn reverse_word(&mut self, mut value: Word, group: u32, width: u32) -> Word {
        let mut size = group;
        while size < width {
            // Every other group of the size.
            let mask = (0..width).filter(|bit| (bit / size).is_multiple_of(2)).fold(0, |mask, bit| mask | 1 << bit);
            let (mask, distance) = (self.code.integer(width, mask), self.code.integer(width, u64::from(size)));
            let upper = self.code.int(Op::ShiftRightLogical, width, &[value, distance]);
            let upper = self.code.int(Op::BitwiseAnd, width, &[upper, mask]);
            let lower = self.code.int(Op::BitwiseAnd, width, &[value, mask]);
            let lower = self.code.int(Op::ShiftLeftLogical, width, &[lower, distance]);
            value = self.code.int(Op::BitwiseOr, width, &[upper, lower]);
            size *= 2;
        }
        value
    }
}
