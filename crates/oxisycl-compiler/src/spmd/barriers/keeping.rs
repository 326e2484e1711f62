//! How values get over barriers.

use rustc_hash::{FxHashMap, FxHashSet};

use super::code::{Code, is_instruction};
use crate::analyses::uniformity::{COMPUTE, OfItems, escapes};
use crate::builtin_table::ITEM_ARRAY;
use crate::llvm::{Layout, Module, Opcode, Type, TypeKind, Value};
use crate::spmd::examine::Refused;

/// The most work-items of a group whose shape is computed, which is the host's limit.
const MAX_ITEMS: u64 = 1024;
/// What arrays of algorithms are aligned to, in bytes.
pub(super) const ALIGNMENT: u32 = 64;
/// The most instructions that are repeated for one value.
const MAX_REPEATED: usize = 24;

/// The way of one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// One value for all work-items. The number is that of its two places.
    Same(usize),
    /// Computed again from the position and from values that are the same.
    Again,
    /// One value for each work-item, in the array of that number.
    Each(usize),
    /// A variable of each work-item, in the array of that number.
    Variable(usize),
    /// The array of that number itself, which the library asks for.
    Array(usize),
}

/// An array with an element for each work-item.
#[derive(Clone, Copy)]
pub(super) struct Array {
    /// The distance of two elements in bytes.
    pub(super) stride: u64,
    pub(super) alignment: u32,
}

/// What the values of a body do at barriers.
pub(super) struct Keeping<'c> {
    ways: FxHashMap<Value<'c>, Way>,
    /// Of each piece, what is alive at its begin.
    alive: Vec<FxHashSet<Value<'c>>>,
    pub(super) arrays: Vec<Array>,
    /// The types of the values that are the same for all work-items, by their numbers, as they are in memory.
    pub(super) same: Vec<Type<'c>>,
}

impl<'c> Keeping<'c> {
    /// Decides for a group of so many work-items, if that is known, and for so many bytes of all of them.
    pub(super) fn of(
        code: &Code<'c>,
        same: &OfItems<'c>,
        module: &Module<'c>,
        (items, most_bytes): (Option<u64>, u64),
    ) -> Result<Self, Refused<'c>> {
        let layout = Layout::of(module);
        let mut also: FxHashMap<usize, FxHashSet<Value<'c>>> = FxHashMap::default();
        let (alive, again) = loop {
            let alive = code.alive(&also);
            let (mut again, mut is_new) = (FxHashSet::default(), false);
            for region in 1..code.n_regions() {
                let begin = code.begin(region);
                for &value in alive[begin].iter().filter(|value| !is_shared(same, **value, layout)) {
                    if let Some(leaves) = leaves(code, (same, layout), &alive, value) {
                        again.insert(value);
                        let read = also.entry(begin).or_default();
                        leaves.into_iter().for_each(|leaf| is_new |= read.insert(leaf));
                    }
                }
            }
            if !is_new {
                break (alive, again);
            }
        };
        let mut keeping = Self { ways: FxHashMap::default(), alive, arrays: Vec::new(), same: Vec::new() };
        // In the order of the code, so that the same code gives the same bytes.
        let over: FxHashSet<Value<'c>> =
            (1..code.n_regions()).flat_map(|region| keeping.alive[code.begin(region)].iter().copied()).collect();
        let later: FxHashSet<usize> = (1..code.n_regions()).flat_map(|region| code.region(region)).collect();
        let is_kept = |value: Value<'c>| value.is(Opcode::ALLOCA) && is_used_in(code, value, &later);
        for value in code.pieces.iter().flat_map(|piece| &piece.instructions).copied() {
            if value.is(Opcode::ALLOCA) && value.operand(0).integer().is_none() {
                let reason = "it has a variable whose size is computed".to_owned();
                return Err(Refused { reason, at: Some(value) });
            }
            if let Some(array) = array_of(value) {
                keeping.arrays.push(array.ok_or_else(|| Refused {
                    reason: "memory of an algorithm over its group has no constant size".to_owned(),
                    at: Some(value),
                })?);
                keeping.ways.insert(value, Way::Array(keeping.arrays.len() - 1));
            } else if over.contains(&value) || is_kept(value) {
                let way = keeping.choose(value, same, again.contains(&value), module)?;
                keeping.ways.insert(value, way);
            }
        }
        let bytes: u64 = keeping.arrays.iter().map(|array| array.stride).sum();
        let most = most_bytes / (items.unwrap_or(MAX_ITEMS) + 1);
        if bytes > most {
            let reason = format!("{bytes} bytes of each work-item are kept over barriers, and at most {most} may be");
            return Err(Refused::new(reason));
        }
        Ok(keeping)
    }

    fn choose(
        &mut self,
        value: Value<'c>,
        same: &OfItems<'c>,
        is_again: bool,
        module: &Module<'c>,
    ) -> Result<Way, Refused<'c>> {
        let layout = Layout::of(module);
        let refused = |reason: &str| Err(Refused { reason: reason.to_owned(), at: Some(value) });
        if value.is(Opcode::ALLOCA) {
            let count = value.operand(0).integer().unwrap_or(u64::MAX);
            let size = layout.size(value.allocated_type()).saturating_mul(count);
            let alignment = value.alignment();
            let stride = size.checked_next_multiple_of(alignment.into()).unwrap_or(u64::MAX).min(u64::from(u32::MAX));
            self.arrays.push(Array { stride, alignment });
            return Ok(Way::Variable(self.arrays.len() - 1));
        }
        if value.is(Opcode::INVOKE) || value.is(Opcode::LANDING_PAD) {
            return refused("the result of a call that may panic is kept over a barrier");
        }
        if is_shared(same, value, layout) {
            self.same.push(in_memory(module, value.value_type()));
            return Ok(Way::Same(self.same.len() - 1));
        }
        if is_again {
            return Ok(Way::Again);
        }
        let of = value.value_type();
        if !is_plain(of, layout) {
            return refused("a value of several parts is kept over a barrier");
        }
        self.arrays.push(Array { stride: layout.size(of), alignment: layout.alignment(of) });
        Ok(Way::Each(self.arrays.len() - 1))
    }

    /// The way of a value, if it gets over a barrier.
    pub(super) fn way(&self, value: Value<'c>) -> Option<Way> {
        self.ways.get(&value).copied()
    }

    /// What is alive at the begin of a region, in the order of the code.
    pub(super) fn alive_at(&self, code: &Code<'c>, region: usize) -> Vec<Value<'c>> {
        let alive = &self.alive[code.begin(region)];
        let all = code.pieces.iter().flat_map(|piece| &piece.instructions).copied();
        // Nothing is alive at the begin of the body.
        all.filter(|value| region > 0 && alive.contains(value)).collect()
    }
}

/// The array that the library asks for by a call. The inner value is missing if its size is no constant.
fn array_of(value: Value<'_>) -> Option<Option<Array>> {
    let call = Some(value).filter(|value| value.is(Opcode::CALL))?;
    call.callee().filter(|callee| callee.name() == ITEM_ARRAY)?;
    let stride = call.operand(0).integer();
    Some(stride.map(|stride| Array { stride, alignment: ALIGNMENT }))
}

/// Whether one place has a value for all work-items.
fn is_shared<'c>(same: &OfItems<'c>, value: Value<'c>, layout: Layout<'_>) -> bool {
    let of = value.value_type();
    same.is_same(value) && is_plain(of, layout) && layout.store_size(of) <= 8 && array_of(value).is_none()
}

/// The type that a value has in the memory of a group. A condition takes a byte, since several of them in a vector would be bits.
pub(super) fn in_memory<'c>(module: &Module<'c>, of: Type<'c>) -> Type<'c> {
    if of.kind() == TypeKind::Integer(1) { Type::int(module.context(), 8) } else { of }
}

/// Whether a value of a type is a number or an address that fills its bytes. A condition becomes a byte.
fn is_plain(of: Type<'_>, layout: Layout<'_>) -> bool {
    let bytes = layout.store_size(of);
    match of.kind() {
        TypeKind::Integer(width) => width == 1 || u64::from(width) == bytes * 8 && bytes.is_power_of_two(),
        TypeKind::Pointer(_) | TypeKind::Half | TypeKind::Float | TypeKind::Double => true,
        _ => false,
    }
}

/// What a value can be computed from again at barriers where it is alive: variables, and values that are the same for all work-items. `None` if
/// it cannot.
///
/// No such value may be computed anew while what is made of the old one is alive.
fn leaves<'c>(
    code: &Code<'c>,
    (same, layout): (&OfItems<'c>, Layout<'_>),
    alive: &[FxHashSet<Value<'c>>],
    value: Value<'c>,
) -> Option<Vec<Value<'c>>> {
    let (mut found, mut seen, mut queue) = (Vec::new(), FxHashSet::default(), vec![value]);
    // What is computed again, each after what is made of it.
    let mut repeated = Vec::new();
    while let Some(value) = queue.pop() {
        if !seen.insert(value) {
            continue;
        }
        if is_shared(same, value, layout) || value.is(Opcode::ALLOCA) || array_of(value).is_some() {
            found.push(value);
            continue;
        }
        if !is_repeatable(value) || repeated.len() == MAX_REPEATED {
            return None;
        }
        repeated.push(value);
        queue.extend(value.operands().into_iter().filter(is_instruction));
    }
    let is_kept = |leaf: &Value<'c>| {
        let is_older = |piece: usize| repeated.iter().any(|value| alive[piece].contains(value));
        leaf.is(Opcode::ALLOCA) || array_of(*leaf).is_some() || code.piece(*leaf).is_some_and(|piece| !is_older(piece))
    };
    found.iter().all(is_kept).then_some(found)
}

/// Whether the address of a variable gets to one of some pieces, or where it is not seen.
fn is_used_in(code: &Code<'_>, variable: Value<'_>, pieces: &FxHashSet<usize>) -> bool {
    if escapes(variable) {
        return true;
    }
    let (mut seen, mut queue) = (FxHashSet::default(), vec![variable]);
    while let Some(address) = queue.pop() {
        for user in address.users() {
            if code.piece(user).is_none_or(|piece| pieces.contains(&piece)) {
                return true;
            }
            if user.value_type().kind() == address.value_type().kind() && seen.insert(user) {
                queue.push(user);
            }
        }
    }
    false
}

/// Whether an instruction computes from its operands alone, and can do so where the program does not. Each time it has the same bits. Arithmetic
/// of floats has not: it may be fused in one place and not in another, and gives NaNs of any bits.
pub(super) fn is_repeatable(instruction: Value<'_>) -> bool {
    match instruction.opcode() {
        Some(
            Opcode::ADD
            | Opcode::SUB
            | Opcode::MUL
            | Opcode::SHL
            | Opcode::LSHR
            | Opcode::ASHR
            | Opcode::AND
            | Opcode::OR
            | Opcode::XOR
            | Opcode::GET_ELEMENT_PTR
            | Opcode::SELECT
            | Opcode::INTEGER_COMPARISON
            | Opcode::FCMP
            | Opcode::FNEG,
        ) => true,
        Some(Opcode::UDIV | Opcode::UREM) => instruction.operand(1).integer().is_some_and(|divisor| divisor != 0),
        Some(Opcode::CALL) => {
            let computes = |callee: Value<'_>| {
                let is_integer = matches!(instruction.value_type().kind(), TypeKind::Integer(_));
                is_integer
                    && callee.intrinsic().is_some()
                    && COMPUTE.iter().any(|prefix| callee.name().starts_with(prefix))
            };
            instruction.callee().is_some_and(computes)
        }
        Some(Opcode::FP_TRUNC | Opcode::FP_EXT) => false,
        Some(opcode) => opcode.is_cast(),
        None => false,
    }
}
