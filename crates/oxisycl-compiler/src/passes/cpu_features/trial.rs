//! Checks whether a kernel behaves the same for both possible values of a cache.
//!
//! A cache holds what it begins with, or the answer that was stored to it. A copy of the module is optimised in which each load gives one of the
//! two and nothing says which. Where nothing depends on that any more, the static really was a cache. A static of another use shows itself: a
//! work-item would have seen what it stored before.

use crate::llvm::{Attribute, Builder, Linkage, Module, Opcode, PassTuning, Type, TypeKind, Value, ValueKind};
use crate::passes::choice::{call_choice, choose};

/// The function that selects one of the two values. LLVM knows nothing of its result, except that it touches no memory of the kernel's.
const EITHER: &str = "oxisycl.either";
/// The function that calls one of two functions.
const CHOSEN: &str = "oxisycl.chosen";
/// The memory effect of reading and writing only memory that the module cannot access.
const INACCESSIBLE_MEMORY: u64 = 0b1100;
/// The constant with a static's initial value.
const BEGUN: &str = "oxisycl.begun";
/// An alignment that is enough for every number.
const ALIGNMENT: u32 = 16;
const CONVERGENT: &str = "convergent";
const OPTIMISE: &str = "default<O3>";

/// The statics among `names` whose value does not matter. All of them are only loaded and stored, with one constant.
pub(super) fn settled<'n>(module: &Module<'_>, names: &[&'n str]) -> Vec<&'n str> {
    if is_settled(module, names) {
        return names.to_vec();
    }
    names.iter().filter(|name| names.len() > 1 && is_settled(module, &[name])).copied().collect()
}

fn is_settled(module: &Module<'_>, names: &[&str]) -> bool {
    let trial = module.clone();
    let context = trial.context();
    let either = trial.declare(EITHER, Type::function(Type::int(context, 1), &[]));
    for (name, value) in [("nounwind", 0), ("willreturn", 0), ("memory", INACCESSIBLE_MEMORY)] {
        either.add_attribute(Attribute::FUNCTION, Attribute::plain(context, name, value));
    }
    if !names.iter().all(|name| trial.global(name).is_some_and(|global| give_either(&trial, global, either))) {
        return false;
    }
    let is_optimised = trial.verify("trial").is_ok() && trial.run(OPTIMISE, None, &PassTuning::DEVICE).is_ok();
    is_optimised && trial.function(EITHER).is_none_or(|either| either.users().iter().all(|call| !call.is_used()))
}

/// Replaces each load of a static by a selection between its initial value and the stored constant. Returns false if their types differ.
fn give_either<'c>(trial: &Module<'c>, global: Value<'c>, either: Value<'c>) -> bool {
    let (loads, stores): (Vec<_>, Vec<_>) = global.users().into_iter().partition(|user| user.is(Opcode::LOAD));
    let Some(stored) = stores.first().map(|store| store.operand(0)) else { return false };
    let loaded = stored.value_type();
    let Some(begun) = global.initializer() else { return false };
    if !loads.iter().all(|load| load.value_type() == loaded) {
        return false;
    }
    // Of functions it has to be known which one it is. All else may be written as bytes, and LLVM reads it.
    let begun = match (first_of_type(begun, loaded), loaded.kind()) {
        (Some(begun), _) => begun,
        (None, TypeKind::Pointer(_)) => return false,
        (None, _) => {
            let copy = trial.add_global(&format!("{BEGUN}.{}", trial.globals().len()), global.held_type(), 0);
            copy.set_initializer(begun);
            copy.set_linkage(Linkage::INTERNAL);
            copy.set_alignment(ALIGNMENT);
            copy.make_constant();
            copy
        }
    };
    let context = trial.context();
    let truth = Type::int(context, 1);
    if [begun, stored].iter().all(|value| value.kind() == ValueKind::Function) && !begun.is_declaration() {
        // It asks, and ends by calling the other one. Calls of which each is to be made by all work-items together are never united.
        for call in stored.users().into_iter().filter(|user| user.callee() == Some(stored)) {
            call.remove_site_attribute(Attribute::FUNCTION, CONVERGENT);
        }
        stored.remove_attribute(Attribute::FUNCTION, CONVERGENT);
        begun.remove_attribute(Attribute::FUNCTION, "noinline");
        begun.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
    }
    for load in loads {
        let builder = Builder::before(context, load);
        let which = builder.call(either, &[]);
        for call in load.users().into_iter().filter(|user| user.callee() == Some(load)) {
            let name = format!("{CHOSEN}.{}", trial.functions().len());
            let chosen = choose(trial, &name, call, truth, &[(truth.constant(1), begun), (truth.constant(0), stored)]);
            chosen.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
            call_choice(context, call, chosen, which);
        }
        if load.is_used() {
            let begun = if begun.value_type() == loaded { begun } else { builder.load(loaded, begun) };
            load.replace_all_uses_with(builder.select(which, begun, stored));
        }
        load.erase();
    }
    stores.into_iter().for_each(Value::erase);
    true
}

/// The first value in a constant, if it has that type.
fn first_of_type<'c>(constant: Value<'c>, wanted: Type<'c>) -> Option<Value<'c>> {
    let mut value = constant;
    while value.value_type() != wanted {
        // LLVM takes a number for a vector of itself.
        let has_parts = matches!(value.value_type().kind(), TypeKind::Array | TypeKind::Struct);
        value = if has_parts { value.element(0)? } else { return None };
    }
    Some(value)
}
