//! Turns private addresses that a loop carries over a barrier into numbers.
//!
//! Loops over private arrays, with an iterator or with two arrays that are swapped, carry an address from one turn to the next. In a kernel
//! with barriers that is two numbers here: which variable, and how many bytes into it. The address is made of them anew at the head of each
//! turn.
//!
//! That is no optimisation, but for a driver that gets such addresses wrong (the quirk `private-phis`). It gets them right where they are computed of
//! numbers.
//!
//! Invariant: no address changes. Touches phis alone, and only those whose address is within one of the function's variables, or undefined, on each way.

use crate::llvm::{Builder, Context, Layout, Module, Opcode, Type, TypeKind, Value, ValueKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// The name of the barrier before the translation.
const BARRIER: &str = "oxisycl.spirv.barrier";

/// Replaces private addresses in phis by numbers, in all functions of a module that has barriers.
pub(super) fn number(module: &Module<'_>) {
    if !module.function(BARRIER).is_some_and(Value::is_used) {
        return;
    }
    for function in module.functions() {
        let carried = Carried::of(function);
        if !carried.phis.is_empty() {
            carried.rewrite(module);
        }
    }
}

/// The private addresses of a function that phis choose.
struct Carried<'c> {
    /// In the order of the function's instructions.
    phis: Vec<Value<'c>>,
    /// The variables that the addresses may point into.
    variables: Vec<Value<'c>>,
}

impl<'c> Carried<'c> {
    fn of(function: Value<'c>) -> Self {
        let instructions = function.instructions();
        let is_address = |value: &Value<'c>| value.value_type().kind() == TypeKind::Pointer(0);
        let mut phis: Vec<_> =
            instructions.iter().copied().filter(|value| value.is(Opcode::PHI) && is_address(value)).collect();
        loop {
            let known: FxHashSet<_> = phis.iter().copied().collect();
            let before = phis.len();
            phis.retain(|phi| phi.incoming().into_iter().all(|(value, _)| is_private(value, &known)));
            if phis.len() == before {
                break;
            }
        }
        let mut variables = Vec::new();
        for (value, _) in phis.iter().flat_map(|phi| phi.incoming()) {
            add_variables(value, &mut variables);
        }
        // What nothing is known about is undefined on each way.
        if variables.is_empty() {
            phis.clear();
        }
        Self { phis, variables }
    }

    fn rewrite(&self, module: &Module<'c>) {
        let context = module.context();
        let number = Type::int(context, 64);
        let places = FxHashMap::default();
        let is_one = self.variables.len() < 2;
        let mut places = Places { context, layout: Layout::of(module), variables: &self.variables, places };
        for phi in &self.phis {
            let builder = Builder::before(context, *phi);
            let variable = if is_one { places.number(0) } else { builder.phi(number, &[]) };
            places.places.insert(*phi, Place { variable, bytes: builder.phi(number, &[]) });
        }
        for phi in &self.phis {
            let ways: Vec<_> = phi.incoming().into_iter().map(|(value, block)| (places.of(value), block)).collect();
            let Place { variable, bytes } = places.places[phi];
            if !is_one {
                variable.add_incoming(&ways.iter().map(|(place, block)| (place.variable, *block)).collect::<Vec<_>>());
            }
            bytes.add_incoming(&ways.iter().map(|(place, block)| (place.bytes, *block)).collect::<Vec<_>>());
        }
        for phi in &self.phis {
            let mut after = phi.next();
            while after.is(Opcode::PHI) {
                after = after.next();
            }
            let address = places.address(&Builder::before(context, after), places.places[phi]);
            phi.replace_all_uses_with(address);
        }
        for phi in &self.phis {
            phi.erase();
        }
    }
}

/// An address in a variable, as numbers.
#[derive(Clone, Copy)]
struct Place<'c> {
    /// The number of the variable in the list.
    variable: Value<'c>,
    bytes: Value<'c>,
}

/// The numbers of addresses.
struct Places<'a, 'c> {
    context: &'c Context,
    layout: Layout<'a>,
    variables: &'a [Value<'c>],
    places: FxHashMap<Value<'c>, Place<'c>>,
}

impl<'c> Places<'_, 'c> {
    fn number(&self, number: u64) -> Value<'c> {
        Type::int(self.context, 64).constant(number)
    }

    /// The numbers of a private address.
    fn of(&mut self, value: Value<'c>) -> Place<'c> {
        if let Some(place) = self.places.get(&value) {
            return *place;
        }
        let place = match value.opcode() {
            Some(Opcode::SELECT) => {
                let (yes, no) = (self.of(value.operand(1)), self.of(value.operand(2)));
                let builder = Builder::before(self.context, value);
                let select = |yes, no| if yes == no { yes } else { builder.select(value.operand(0), yes, no) };
                Place { variable: select(yes.variable, no.variable), bytes: select(yes.bytes, no.bytes) }
            }
            Some(Opcode::GET_ELEMENT_PTR) => {
                let Place { variable, bytes } = self.of(value.operand(0));
                Place { variable, bytes: self.further(value, bytes) }
            }
            _ => {
                // What is undefined may be anywhere.
                let variable = self.variables.iter().position(|variable| *variable == value).unwrap_or(0);
                Place { variable: self.number(variable as u64), bytes: self.number(0) }
            }
        };
        self.places.insert(value, place);
        place
    }

    /// The offset of an address computation's result. `bytes` is the offset of its base.
    fn further(&self, computation: Value<'c>, mut bytes: Value<'c>) -> Value<'c> {
        let builder = Builder::before(self.context, computation);
        let mut of = computation.gep_type();
        for (position, index) in computation.operands().into_iter().skip(1).enumerate() {
            let distance = if position > 0 && of.kind() == TypeKind::Struct {
                let member = index.integer().unwrap_or_default() as u32;
                let offset = self.layout.offset(of, member);
                of = of.members()[member as usize];
                self.number(offset)
            } else {
                if position > 0 {
                    of = of.elements().0;
                }
                let size = self.layout.size(of);
                match index.integer() {
                    Some(number) => self.number(number.wrapping_mul(size)),
                    None if size == 1 => index,
                    None => builder.multiply(index, self.number(size)),
                }
            };
            bytes = builder.add(bytes, distance);
        }
        bytes
    }

    /// Computes the address for the numbers of a place.
    fn address(&self, builder: &Builder<'c>, place: Place<'c>) -> Value<'c> {
        let mut variable = self.variables[0];
        for (number, other) in self.variables.iter().enumerate().skip(1) {
            let is_other = builder.is_equal(place.variable, self.number(number as u64));
            variable = builder.select(is_other, *other, variable);
        }
        builder.offset(Type::int(self.context, 8), variable, place.bytes)
    }
}

/// Whether an address is within a variable of the function on each path, provided that the phis are.
fn is_private<'c>(value: Value<'c>, phis: &FxHashSet<Value<'c>>) -> bool {
    let of = |operand| is_private(value.operand(operand), phis);
    match value.opcode() {
        None => value.kind() == ValueKind::Undefined,
        Some(Opcode::ALLOCA) => true,
        Some(Opcode::PHI) => phis.contains(&value),
        Some(Opcode::SELECT) => value.operand(0).value_type().kind() == TypeKind::Integer(1) && of(1) && of(2),
        Some(Opcode::GET_ELEMENT_PTR) => value.operands()[1..].iter().all(is_distance) && of(0),
        Some(_) => false,
    }
}

/// Whether an index is a number with as many bits as addresses have, or the index of a struct's member.
fn is_distance(index: &Value<'_>) -> bool {
    let is_member = index.integer().is_some_and(|number| number <= i32::MAX as u64);
    is_member || index.value_type().kind() == TypeKind::Integer(64)
}

/// Adds the variables that an address may point into, without following phis.
fn add_variables<'c>(value: Value<'c>, variables: &mut Vec<Value<'c>>) {
    match value.opcode() {
        Some(Opcode::ALLOCA) if !variables.contains(&value) => variables.push(value),
        Some(Opcode::SELECT) => (1..3).for_each(|operand| add_variables(value.operand(operand), variables)),
        Some(Opcode::GET_ELEMENT_PTR) => add_variables(value.operand(0), variables),
        _ => (),
    }
}
