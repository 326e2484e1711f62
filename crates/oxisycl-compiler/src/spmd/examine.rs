//! What the vectoriser does not handle: the first such place of a body is why it stays scalar.
//!
//! Nothing is vectorised that could behave otherwise in lanes. No static is, since a thread's own would become one for all. Nothing may be dropped
//! when an item panics, since other lanes are abandoned then. Whether an item could wait for another one of its vector is looked at in `scalar_only`.

use super::cfg::{BlockIdx, Graph, Reason, Refusal};
use super::memory::stride;
use super::packed::packed_bytes;
use super::shape::{Shape, Shapes};
use super::singly::{COPIES, is_made_singly};
use super::traps::is_of_traps;
use super::widen::{elementwise, is_binary, is_element, is_note};
use crate::llvm::{Layout, Opcode, Type, TypeKind, Value, ValueKind};
use crate::origin;

/// Why an item loop stays scalar.
pub(crate) struct Refused<'c> {
    pub(crate) reason: String,
    /// The instruction that is the reason, if it is a single one.
    pub(crate) at: Option<Value<'c>>,
}

impl Refused<'_> {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), at: None }
    }
}

impl<'c> From<Refusal<'c>> for Refused<'c> {
    fn from(refusal: Refusal<'c>) -> Self {
        Self { reason: refusal.reason.to_string(), at: refusal.at }
    }
}

/// The bytes that the variables of all lanes may have together. Each lane has its own ones, on the stack of the thread.
const MAX_PRIVATE_BYTES: u64 = 64 << 10;

/// A check of an instruction: the error is the reason against it.
type Check = Result<(), String>;

/// Checks that the vectoriser handles all of a body, in any number of lanes.
pub(super) fn examine<'c>(graph: &Graph<'c>, shapes: &Shapes<'_, 'c>, layout: Layout<'_>) -> Result<(), Refused<'c>> {
    let unwound = after_landing_pads(graph);
    for block in graph.blocks() {
        for instruction in graph.block(block).instructions() {
            let check = uses_no_static(instruction).and_then(|()| {
                if graph.returns(block) {
                    live(shapes, layout, instruction)
                } else {
                    trap(instruction, unwound.contains(&block))
                }
            });
            check.map_err(|reason| Refused { reason, at: Some(instruction) })?;
        }
    }
    Ok(())
}

/// Checks the size of all variables of which each lane gets one.
pub(super) fn variables_are_small<'c>(graph: &Graph<'c>, layout: Layout<'_>, lanes: u32) -> Result<(), Refused<'c>> {
    let returns = |block| graph.returns(graph.index(block));
    let mut bytes = 0_u64;
    for block in graph.blocks().filter(|block| graph.returns(*block)) {
        for variable in graph.block(block).instructions() {
            if !variable.is(Opcode::ALLOCA) || is_of_traps(variable, &returns) {
                continue;
            }
            bytes = bytes.saturating_add(stride(layout, variable).saturating_mul(lanes.into()));
            if bytes > MAX_PRIVATE_BYTES {
                let reason = format!("its variables have more than {MAX_PRIVATE_BYTES} bytes in {lanes} lanes");
                return Err(Refused { reason, at: Some(variable) });
            }
        }
    }
    Ok(())
}

/// The blocks that run once a panic unwinds.
fn after_landing_pads(graph: &Graph<'_>) -> Vec<BlockIdx> {
    let is_pad = |block: &BlockIdx| graph.block(*block).instructions().iter().any(|pad| pad.is(Opcode::LANDING_PAD));
    let mut reached: Vec<_> = graph.blocks().filter(is_pad).collect();
    let mut next = 0;
    while let Some(block) = reached.get(next).copied() {
        next += 1;
        for successor in graph.successors(block) {
            if !reached.contains(successor) {
                reached.push(*successor);
            }
        }
    }
    reached
}

fn uses_no_static(instruction: Value<'_>) -> Check {
    if is_note(instruction) {
        return Ok(());
    }
    let mut operands = instruction.operands();
    while let Some(operand) = operands.pop() {
        match operand.kind() {
            ValueKind::GlobalVariable if operand.is_thread_local() || !operand.is_constant_global() => {
                return Err(format!("it uses the static `{}`", origin::shown_name(operand.name())));
            }
            ValueKind::ConstantExpression | ValueKind::Aggregate => operands.extend(operand.operands()),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a call is what `std::hint::spin_loop` becomes.
fn is_pause(call: Value<'_>) -> bool {
    call.callee().is_some_and(|callee| callee.kind() == ValueKind::Function && callee.name() == "llvm.x86.sse2.pause")
}

fn called(call: Value<'_>) -> String {
    match call.callee() {
        Some(callee) if callee.kind() == ValueKind::Function => format!("`{}`", origin::shown_name(callee.name())),
        _ => "a function that is not known".to_owned(),
    }
}

/// Checks code that a panic reaches, which becomes scalar code of one lane.
fn trap(instruction: Value<'_>, is_unwound: bool) -> Check {
    // The guard of a work-item leaves its id by them when it panics.
    let copies = |callee: Value<'_>| COPIES.iter().any(|name| callee.name().starts_with(name));
    let is_call = instruction.callee().is_some_and(|callee| !copies(callee)) && !is_note(instruction);
    if is_call && is_unwound {
        return Err(format!("it calls {} when it panics, as a destructor does", called(instruction)));
    }
    if instruction.is_atomic() && is_unwound {
        return Err("it has an atomic operation in a destructor".to_owned());
    }
    let is_odd = |operand: Value<'_>| {
        operand.kind() == ValueKind::InlineAsm
            || operand.kind() == ValueKind::Other && !operand.is_constant() && !operand.is_block()
    };
    if !is_note(instruction) && instruction.operands().into_iter().any(is_odd) {
        return Err("it has inline assembly, or what LLVM calls metadata".to_owned());
    }
    Ok(())
}

/// Checks code that all lanes may run.
fn live<'c>(shapes: &Shapes<'_, 'c>, layout: Layout<'_>, instruction: Value<'c>) -> Check {
    let Some(opcode) = instruction.opcode() else { return Ok(()) };
    let shape = shapes.shape(instruction);
    let varies = shape == Shape::Varying;
    match opcode {
        Opcode::BRANCH | Opcode::RET => Ok(()),
        _ if is_note(instruction) => Ok(()),
        Opcode::FENCE => Ok(()),
        _ if is_made_singly(instruction) && (varies || instruction.is_atomic()) => element_types(instruction),
        // A conditional exchange, without which there are few locks.
        Opcode::ATOMIC_CMP_XCHG => Err(Reason::Waits.to_string()),
        _ if instruction.is_atomic() => Err("it has an atomic operation of an unknown kind".to_owned()),
        Opcode::LOAD | Opcode::STORE => access(shapes, layout, instruction),
        Opcode::ALLOCA => {
            let is_one = instruction.operand(0).integer() == Some(1);
            if is_one { Ok(()) } else { Err("it has a variable of a number of elements".to_owned()) }
        }
        Opcode::CALL if elementwise(instruction).is_some() => {
            if varies {
                element_types(instruction)
            } else {
                Ok(())
            }
        }
        // Known to depend on its arguments alone.
        Opcode::CALL if shape == Shape::Uniform => Ok(()),
        Opcode::CALL if is_pause(instruction) => Err(Reason::Waits.to_string()),
        Opcode::CALL | Opcode::INVOKE => Err(format!("it calls {}", called(instruction))),
        Opcode::PHI | Opcode::SELECT if varies => {
            let of = instruction.value_type();
            let is_pair = opcode == Opcode::PHI && of.kind() == TypeKind::Struct;
            let are_elements = || of.members().into_iter().all(|member| is_element(member.kind()));
            if is_element(of.kind()) || is_pair && are_elements() { Ok(()) } else { Err(unknown_type(of)) }
        }
        Opcode::EXTRACT_VALUE if varies => {
            let is_one = instruction.positions().len() == 1;
            let pair = instruction.operand(0).value_type();
            let are_elements = || pair.members().into_iter().all(|member| is_element(member.kind()));
            if is_one && pair.kind() == TypeKind::Struct && are_elements() { Ok(()) } else { Err(unknown_type(pair)) }
        }
        _ if !varies => Ok(()),
        Opcode::GET_ELEMENT_PTR | Opcode::INTEGER_COMPARISON | Opcode::FCMP | Opcode::FNEG | Opcode::FREEZE => {
            element_types(instruction)
        }
        _ if opcode.is_cast() || is_binary(opcode) => element_types(instruction),
        _ => Err(format!("it has an instruction that is not known: {}", instruction.print().trim())),
    }
}

/// Checks a load or store.
fn access(shapes: &Shapes<'_, '_>, layout: Layout<'_>, access: Value<'_>) -> Check {
    if access.is_volatile() {
        return Err("it has a volatile access".to_owned());
    }
    let is_store = access.is(Opcode::STORE);
    let of = if is_store { access.operand(0).value_type() } else { access.value_type() };
    let address = access.operand(u32::from(is_store));
    if shapes.shape(address) == Shape::Uniform && (!is_store || shapes.shape(access.operand(0)) == Shape::Uniform) {
        return Ok(());
    }
    // Elements of vectors stand without gaps, and those of one bit share bytes.
    let has_no_gaps = match of.kind() {
        TypeKind::Integer(width) => matches!(width, 8 | 16 | 32 | 64),
        kind => is_element(kind),
    };
    let is_known = has_no_gaps && layout.size(of) == layout.store_size(of) || packed_bytes(of).is_some();
    if is_known { Ok(()) } else { Err(unknown_type(of)) }
}

/// Checks that an instruction computes with elements of vectors only.
fn element_types(instruction: Value<'_>) -> Check {
    let is_known = |of: Type<'_>| match of.kind() {
        TypeKind::Struct => of.members().into_iter().all(|member| is_element(member.kind())),
        kind => kind == TypeKind::Void || is_element(kind),
    };
    let operands = if instruction.is(Opcode::CALL) { instruction.arguments() } else { instruction.operands() };
    let types = operands.into_iter().map(Value::value_type).chain([instruction.value_type()]);
    types.into_iter().find(|of| !is_known(*of)).map_or(Ok(()), |of| Err(unknown_type(of)))
}

fn unknown_type(of: Type<'_>) -> String {
    let what = match of.kind() {
        TypeKind::Integer(width) => format!("integers of {width} bits"),
        TypeKind::Half | TypeKind::BFloat => "floats of 16 bits".to_owned(),
        TypeKind::WideFloat => "floats of more than 64 bits".to_owned(),
        TypeKind::Vector => "vectors of its own".to_owned(),
        TypeKind::Struct | TypeKind::Array => "structs or arrays as values".to_owned(),
        _ => "a type that is not known".to_owned(),
    };
    format!("it has {what}, which differ between work-items")
}
