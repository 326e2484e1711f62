//! Turns integers that are addresses back into addresses.
//!
//! LLVM keeps an address that went through memory of another type, such as the end of a slice's iterator, as an integer. It adds to the
//! integer, chooses between two, and carries it around loops. Everything that is computed that way from one address alone is computed as an
//! address here. It becomes an integer only where something else uses it.
//!
//! That is no optimisation, but for a driver that vectorises such loops wrongly (the quirk `private-integers`). With addresses it gets them
//! right.
//!
//! Invariant: no number changes, since addresses are computed without a promise to stay within what they began in. Does not touch what is
//! computed of two addresses or of none, nor numbers that become addresses: those are of memory that is not known.

use crate::llvm::{Builder, Context, Module, Opcode, Type, TypeKind, Value, ValueKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// Computes with addresses, in all functions, wherever integers are computed from addresses.
pub(super) fn restore(module: &Module<'_>) {
    for function in module.functions() {
        let addresses = Addresses::of(function);
        if addresses.computed.iter().any(|value| !is_root(*value)) {
            addresses.rewrite(module.context());
        }
    }
}

/// The integers of a function that are addresses.
struct Addresses<'c> {
    /// In the order of the function's instructions.
    computed: Vec<Value<'c>>,
    known: FxHashSet<Value<'c>>,
}

impl<'c> Addresses<'c> {
    fn of(function: Value<'c>) -> Self {
        let instructions = function.instructions();
        // Whatever an address may have gone into.
        let mut known: FxHashSet<_> = instructions.iter().copied().filter(|value| is_root(*value)).collect();
        let mut queue: Vec<_> = instructions.iter().copied().filter(|value| is_root(*value)).collect();
        while let Some(value) = queue.pop() {
            let next = value.users().into_iter().filter(|user| is_computation(*user) && !known.contains(user));
            let next: Vec<_> = next.collect();
            known.extend(&next);
            queue.extend(next);
        }
        // Less what is not computed of one.
        let mut addresses = Self { computed: Vec::new(), known };
        loop {
            let is_wrong = |value: &&Value<'c>| addresses.known.contains(value) && !addresses.is_address(**value);
            let wrong: Vec<_> = instructions.iter().filter(is_wrong).copied().collect();
            if wrong.is_empty() {
                break;
            }
            for value in wrong {
                addresses.known.remove(&value);
            }
        }
        addresses.computed = instructions.into_iter().filter(|value| addresses.known.contains(value)).collect();
        addresses
    }

    /// Whether an integer is an address, provided that its operands are what they are assumed to be.
    fn is_address(&self, value: Value<'c>) -> bool {
        let may_be = |value: Value<'c>| self.known.contains(&value) || is_nothing(value);
        match value.opcode() {
            Some(Opcode::PTR_TO_INT) => true,
            Some(Opcode::PHI) => value.incoming().into_iter().all(|(value, _)| may_be(value)),
            Some(Opcode::SELECT) => may_be(value.operand(1)) && may_be(value.operand(2)),
            _ => self.known.contains(&value.operand(0)) != self.known.contains(&value.operand(1)),
        }
    }

    fn rewrite(&self, context: &'c Context) {
        let (pointer, number) = (Type::pointer(context, 0), Type::int(context, 64));
        let mut twins = Twins { context, known: &self.known, made: FxHashMap::default() };
        let phis: Vec<_> = self.computed.iter().copied().filter(|value| value.is(Opcode::PHI)).collect();
        for phi in &phis {
            twins.made.insert(*phi, Builder::before(context, *phi).phi(pointer, &[]));
        }
        for phi in &phis {
            let incoming: Vec<_> = phi.incoming().into_iter().map(|(value, block)| (twins.of(value), block)).collect();
            twins.made[phi].add_incoming(&incoming);
        }
        let computed = self.computed.iter().copied().filter(|value| !is_root(*value));
        for value in computed.clone() {
            let twin = twins.of(value);
            let mut after = value.next();
            while after.is(Opcode::PHI) {
                after = after.next();
            }
            let number = Builder::before(context, after).address_to_int(twin, number);
            value.replace_all_uses_with(number);
        }
        for value in computed {
            value.erase();
        }
    }
}

/// The pointers that stand for integers.
struct Twins<'a, 'c> {
    context: &'c Context,
    known: &'a FxHashSet<Value<'c>>,
    made: FxHashMap<Value<'c>, Value<'c>>,
}

impl<'c> Twins<'_, 'c> {
    /// The pointer that stands for an integer, which is an address or has no value.
    fn of(&mut self, value: Value<'c>) -> Value<'c> {
        if let Some(made) = self.made.get(&value) {
            return *made;
        }
        let pointer = Type::pointer(self.context, 0);
        let made = match value.opcode() {
            None if value.is_null() => return pointer.null(),
            None => return pointer.poison(),
            Some(Opcode::PTR_TO_INT) => return value.operand(0),
            Some(Opcode::SELECT) => {
                let (yes, no) = (self.of(value.operand(1)), self.of(value.operand(2)));
                Builder::before(self.context, value).select(value.operand(0), yes, no)
            }
            _ => {
                let is_first = self.known.contains(&value.operand(0));
                let (address, distance) = if is_first { (0, 1) } else { (1, 0) };
                let address = self.of(value.operand(address));
                let byte = Type::int(self.context, 8);
                Builder::before(self.context, value).offset(byte, address, value.operand(distance))
            }
        };
        self.made.insert(value, made);
        made
    }
}

/// Whether an instruction casts an address to an integer.
fn is_root(value: Value<'_>) -> bool {
    value.is(Opcode::PTR_TO_INT)
        && value.value_type().kind() == TypeKind::Integer(64)
        && value.operand(0).value_type().kind() == TypeKind::Pointer(0)
}

/// Whether an instruction may compute an address from another one.
fn is_computation(value: Value<'_>) -> bool {
    value.value_type().kind() == TypeKind::Integer(64)
        && (value.is(Opcode::PHI) || value.is(Opcode::SELECT) || value.is(Opcode::ADD))
}

/// Whether a value can stand in place of an address: zero, or undefined.
fn is_nothing(value: Value<'_>) -> bool {
    value.is_null() || value.kind() == ValueKind::Undefined
}
