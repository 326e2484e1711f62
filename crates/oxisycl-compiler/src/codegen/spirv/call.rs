//! Calls: LLVM's intrinsics, the builtins of OxiSYCL, and functions that were not inlined.

use rspirv::spirv::{BuiltIn, Capability, Op, StorageClass, Word};

use super::bfloat16::is_brain;
use super::function::{FunctionTranslator, assemble, leaves};
use super::function_builder::Std;
use super::module_builder::Scalar;
use super::names::END_WORK_ITEM;
use super::names::{REMAINDER, ends_work_item, is_launch};
use super::value::{Shape, Translated};
use crate::llvm::{Opcode, TypeKind, Value, ValueKind};
use crate::refused::Refused;
use crate::symbols::plain_path;

/// Intrinsics that are only hints for the optimiser.
const WITHOUT_EFFECT: [&str; 12] = [
    "assume",
    "dbg.declare",
    "dbg.value",
    "debugtrap",
    "donothing",
    "experimental.noalias.scope.decl",
    "invariant.start",
    "lifetime.end",
    "lifetime.start",
    "prefetch",
    "pseudoprobe",
    "sideeffect",
];

/// An intrinsic's name without `llvm.` and without the type suffixes.
fn intrinsic(name: &str) -> &str {
    let mut name = name.strip_prefix("llvm.").unwrap_or(name);
    while let Some((rest, last)) = name.rsplit_once('.') {
        let scalar = last.trim_start_matches('v').trim_start_matches(|digit: char| digit.is_ascii_digit());
        let width = scalar.strip_prefix("bf").or_else(|| scalar.strip_prefix(['i', 'f', 'p']));
        let is_type = width.is_some_and(|width| width.parse::<u32>().is_ok());
        if !is_type {
            break;
        }
        name = rest;
    }
    name
}

impl<'c> FunctionTranslator<'_, '_, 'c> {
    pub(super) fn call(&mut self, call: Value<'c>) -> Result<Option<Translated>, Refused> {
        let callee = call.callee().expect("the instruction is a call");
        let name = callee.name();
        match callee.kind() {
            ValueKind::InlineAsm => Err(Refused::new("inline assembly")),
            ValueKind::Function if name.starts_with("llvm.") => self.intrinsic(call, intrinsic(name)),
            // Kernels are examined before they get it from their parameter.
            ValueKind::Function if is_launch(call) => self.launch().map(Some),
            ValueKind::Function if name.starts_with("oxisycl.spirv.") || name == END_WORK_ITEM => {
                self.builtin(call, name)
            }
            ValueKind::Function if callee.is_declaration() => {
                Err(Refused::new(format!("it calls `{}`, which has no code for devices", plain_path(name))))
            }
            ValueKind::Function => self.function_call(call, callee),
            _ => Err(Refused::new(
                "a call through a function pointer or of a trait object's method, which devices of this kind do not have",
            )),
        }
    }

    /// Translates a call of a function that was not inlined. Addresses keep their storage class.
    fn function_call(&mut self, call: Value<'c>, callee: Value<'c>) -> Result<Option<Translated>, Refused> {
        let arguments = call.arguments();
        let known = arguments.iter().map(|&argument| self.known(argument)).collect();
        // A record within a record, which finds the launch's taken and returns nothing.
        let Some(callee) = self.this().callee(callee) else { return Ok(None) };
        let depth = self.globals.components.depth((self.this(), self.depth), callee);
        let function = self.globals.function(self.code.writer, callee, known, depth);
        self.code.needs.calls.insert(function);
        let implicit = self.globals.components.implicit_parameters(callee);
        let mut operands = vec![function];
        operands.extend(self.implicit_arguments(implicit)?);
        for argument in arguments {
            let value = match self.value(argument)? {
                Translated::Address(id, class) => {
                    let to = self.class(argument);
                    Translated::Address(self.cast((id, class), to), to)
                }
                other => self.with_generic_addresses(other),
            };
            leaves(&value, &mut operands);
        }
        let result = call.value_type();
        let id = self.result_type(result)?;
        let id = self.code.op_of(Op::FunctionCall, id, &operands);
        if implicit.ends {
            self.leave_if_ended()?;
        }
        let shape = Shape::of(result)?;
        let scalars = shape.scalars();
        let ids: Vec<_> = match scalars[..] {
            [] | [_] => vec![id],
            _ => (0..).zip(&scalars).map(|(position, &scalar)| self.code.extract(scalar, id, position)).collect(),
        };
        Ok((shape != Shape::Nothing).then(|| assemble(&shape, &mut ids.into_iter())))
    }

    /// A list of values with generic addresses, which addresses in lists always are.
    pub(super) fn with_generic_addresses(&mut self, value: Translated) -> Translated {
        match value {
            Translated::Address(id, class) => Translated::Address(self.generic((id, class)), StorageClass::Generic),
            Translated::Parts(parts) => {
                Translated::Parts(parts.into_iter().map(|part| self.with_generic_addresses(part)).collect())
            }
            other => other,
        }
    }

    /// Translates a call of one of the functions that `builtins.ll` uses.
    fn builtin(&mut self, call: Value<'c>, name: &str) -> Result<Option<Translated>, Refused> {
        let input = |name: &str| {
            Some(match name {
                "global_id" => BuiltIn::GlobalInvocationId,
                "local_id" => BuiltIn::LocalInvocationId,
                "group_id" => BuiltIn::WorkgroupId,
                "local_size" => BuiltIn::WorkgroupSize,
                _ => return None,
            })
        };
        if name.starts_with(REMAINDER) {
            let shape = Shape::of(call.value_type())?;
            let values = call.arguments();
            let ids = [self.value(values[0])?.scalar(), self.value(values[1])?.scalar()];
            return Ok(Some(Translated::Scalar(self.code.extended(Std::fmod, shape.scalars()[0], &ids))));
        }
        let name = name.trim_start_matches("oxisycl.spirv.");
        if let Some(input) = input(name) {
            let dimension = call.arguments()[0].integer().unwrap_or_default() as u32;
            return Ok(Some(Translated::Scalar(self.input(input, dimension))));
        }
        match name {
            "barrier" => {
                // Everyone in the group, and everything that they wrote to both kinds of memory.
                let (group, semantics) = (self.code.integer(32, 2), self.code.integer(32, 0x310));
                self.code.effect(Op::ControlBarrier, &[group, group, semantics]);
                Ok(None)
            }
            "shuffle" => {
                for capability in [Capability::GroupNonUniform, Capability::GroupNonUniformShuffle] {
                    self.code.writer.require(capability);
                }
                self.code.writer.require_1_3();
                let arguments = call.arguments();
                let (value, lane) = (self.value(arguments[0])?.scalar(), self.value(arguments[1])?.scalar());
                let sub_group = self.code.integer(32, 3);
                let result = self.code.int(Op::GroupNonUniformShuffle, 32, &[sub_group, value, lane]);
                Ok(Some(Translated::Scalar(result)))
            }
            "as_global" => {
                let address = self.value(call.arguments()[0])?.address();
                let class = StorageClass::CrossWorkgroup;
                Ok(Some(Translated::Address(self.cast(address, class), class)))
            }
            "is_global" => self.is_in(call, StorageClass::CrossWorkgroup),
            "is_local" => self.is_in(call, StorageClass::Workgroup),
            "is_private" => self.is_in(call, StorageClass::Function),
            "was_cut_off" => Ok(Some(self.was_cut_off())),
            // The block ends after it.
            END_WORK_ITEM => Ok(None),
            other => Err(Refused::new(format!("a builtin that is not translated, `{other}`"))),
        }
    }

    /// Whether an address is of a memory: known here, or asked when the kernel runs.
    fn is_in(&mut self, call: Value<'c>, class: StorageClass) -> Result<Option<Translated>, Refused> {
        let (address, known) = self.value(call.arguments()[0])?.address();
        Ok(Some(Translated::Scalar(match known {
            StorageClass::Generic => self.cast_and_test(address, class).1,
            known => self.code.boolean(known == class),
        })))
    }

    /// One element of a vector that the driver provides.
    fn input(&mut self, what: BuiltIn, dimension: u32) -> Word {
        let (variable, vector) = self.code.writer.input(what);
        self.code.needs.inputs.insert(variable);
        let loaded = self.code.load_vector(vector, variable);
        self.code.extract(Scalar::Int(64), loaded, dimension)
    }

    fn intrinsic(&mut self, call: Value<'c>, name: &str) -> Result<Option<Translated>, Refused> {
        if WITHOUT_EFFECT.contains(&name) || ends_work_item(call) {
            return Ok(None);
        }
        match name {
            "memcpy" | "memcpy.inline" => return self.copy_memory(call, false).map(|()| None),
            "memmove" => return self.copy_memory(call, true).map(|()| None),
            "memset" | "memset.inline" => return self.set_memory(call).map(|()| None),
            _ => {}
        }
        let arguments = call.arguments();
        let of = arguments.first().map_or(call.value_type(), |argument| argument.value_type());
        if of.kind() == TypeKind::Other {
            return Err(unknown(call));
        }
        let shape = Shape::of(of)?;
        let result = Shape::of(call.value_type())?;
        let values: Vec<_> = arguments.iter().map(|&argument| self.value(argument)).collect::<Result<_, _>>()?;
        if let Some(value) = self.integer_intrinsic(call, name, &values, &shape, &result)? {
            return Ok(Some(value));
        }
        let float = match is_brain(of) {
            true => self.brain_intrinsic(name, &values, &shape)?,
            false => self.float_intrinsic(name, &values, &shape)?,
        };
        if let Some(value) = float {
            return Ok(Some(value));
        }
        if let Some(operation) = name.strip_prefix("vector.reduce.") {
            return self.reduction(call, operation, &values).map(Some);
        }
        let value = match name {
            "expect" | "expect.with.probability" | "launder.invariant.group" | "strip.invariant.group" | "ssa.copy" => {
                values[0].clone()
            }
            "fptoui.sat" | "fptosi.sat" => {
                let is_signed = name == "fptosi.sat";
                let value = if is_brain(of) { self.widened(&values[0], &shape)?.0 } else { values[0].clone() };
                Translated::zip(&[&value], &result, &mut |values, shape| {
                    self.saturated_float_to_int(is_signed, values[0].scalar(), shape)
                })?
            }
            "is.fpclass" => {
                let mask = arguments[1].integer().unwrap_or_default();
                Translated::zip(&[&values[0]], &shape, &mut |values, shape| {
                    Ok(Translated::Scalar(self.is_of_class(values[0].scalar(), mask, shape)?))
                })?
            }
            "is.constant" => Translated::Scalar(self.code.boolean(false)),
            _ => return Err(unknown(call)),
        };
        Ok(Some(value))
    }

    /// Translates an intrinsic of integers, element by element. `None` if there is none of that name.
    fn integer_intrinsic(
        &mut self,
        call: Value<'c>,
        name: &str,
        values: &[Translated],
        shape: &Shape,
        result: &Shape,
    ) -> Result<Option<Translated>, Refused> {
        if let Some(operation) = name.strip_suffix(".with.overflow") {
            if matches!(shape, Shape::Parts(_)) {
                return Err(unknown(call));
            }
            let (value, overflow) = self.overflowing(operation, &values[0], &values[1], shape)?;
            return Ok(Some(Translated::Parts(vec![value, Translated::Scalar(overflow)])));
        }
        let count = match name {
            "ctpop" | "ctlz" | "cttz" | "bswap" | "bitreverse" | "abs" => 1,
            "umin" | "umax" | "smin" | "smax" | "ucmp" | "scmp" => 2,
            "uadd.sat" | "usub.sat" | "sadd.sat" | "ssub.sat" => 2,
            "fshl" | "fshr" => 3,
            _ => return Ok(None),
        };
        // Three-way comparisons have a result of another type.
        if let (Shape::Parts(_), "ucmp" | "scmp") = (shape, name) {
            return Err(unknown(call));
        }
        let values: Vec<_> = values[..count].iter().collect();
        let value = Translated::zip(&values, shape, &mut |v, shape| match name {
            "ctpop" => Ok(self.count_ones(v[0], shape)),
            "ctlz" => Ok(self.leading_zeros(v[0], shape)),
            "cttz" => Ok(self.trailing_zeros(v[0], shape)),
            "bswap" => Ok(self.reverse(v[0], 8, shape)),
            "bitreverse" => Ok(self.reverse(v[0], 1, shape)),
            "abs" => self.absolute(v[0], shape),
            "ucmp" | "scmp" => self.three_way(name == "scmp", (v[0], v[1]), shape, result),
            "fshl" | "fshr" => self.funnel_shift(name == "fshl", [v[0], v[1], v[2]], shape),
            _ => match name.strip_suffix(".sat") {
                Some(operation) => self.saturating(operation, v[0], v[1], shape),
                None => self.extremum(name, v[0], v[1], shape),
            },
        })?;
        Ok(Some(value))
    }

    /// Combines all elements of a vector, in their order.
    fn reduction(&mut self, call: Value<'c>, operation: &str, values: &[Translated]) -> Result<Translated, Refused> {
        let shape = Shape::of(call.value_type())?;
        let (start, vector) = match values {
            [start, vector] => (Some(start.clone()), vector),
            [vector] => (None, vector),
            _ => return Err(unknown(call)),
        };
        let mut rest = vector.parts().to_vec().into_iter();
        let mut result = match start {
            Some(start) => start,
            None => rest.next().ok_or_else(|| unknown(call))?,
        };
        for element in rest {
            let opcode = match operation {
                "add" => Some(Opcode::ADD),
                "mul" => Some(Opcode::MUL),
                "and" => Some(Opcode::AND),
                "or" => Some(Opcode::OR),
                "xor" => Some(Opcode::XOR),
                _ => None,
            };
            result = match (opcode, operation) {
                (Some(opcode), _) => self.arithmetic(opcode, &result, &element, &shape)?,
                (None, "umin" | "umax" | "smin" | "smax") => self.extremum(operation, &result, &element, &shape)?,
                (None, "fadd" | "fmul") => {
                    let op = if operation == "fadd" { Op::FAdd } else { Op::FMul };
                    Translated::Scalar(self.code.op(op, shape.scalars()[0], &[result.scalar(), element.scalar()]))
                }
                (None, "fmin" | "fmax" | "fminimum" | "fmaximum") => {
                    let name = match operation {
                        "fmin" => "minnum",
                        "fmax" => "maxnum",
                        "fminimum" => "minimum",
                        _ => "maximum",
                    };
                    let joined = self.float_intrinsic(name, &[result, element], &shape)?;
                    joined.expect("these intrinsics are known")
                }
                _ => return Err(unknown(call)),
            };
        }
        Ok(result)
    }
}

fn unknown(call: Value<'_>) -> Refused {
    let name = call.callee().map(Value::name).unwrap_or_default();
    Refused::new(format!("an intrinsic that is not translated, `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_at_the_end_of_an_intrinsics_name_are_left_out() {
        for (name, base) in [
            ("llvm.umin.i32", "umin"),
            ("llvm.fptosi.sat.i32.f64", "fptosi.sat"),
            ("llvm.uadd.with.overflow.i128", "uadd.with.overflow"),
            ("llvm.memcpy.p0.p3.i64", "memcpy"),
            ("llvm.vector.reduce.add.v4i32", "vector.reduce.add"),
            ("llvm.fabs.v2f32", "fabs"),
            ("llvm.sqrt.v2bf16", "sqrt"),
            ("llvm.assume", "assume"),
        ] {
            assert_eq!(intrinsic(name), base);
        }
    }
}
