//! Where functions are defined, in a crate whose code is in several modules of one context.
//!
//! A function has one name in all of them. Changes nothing, and links nothing: that takes longer than all that is asked here.

use std::mem::ManuallyDrop;

use rustc_hash::FxHashMap;

use crate::llvm::{Module, Value};

/// The functions of some modules, by their names.
#[derive(Default)]
pub(crate) struct Definitions<'c>(FxHashMap<String, Vec<Value<'c>>>);

impl<'c> Definitions<'c> {
    /// The functions of these modules, which live in one context.
    pub(crate) fn of(modules: &[ManuallyDrop<Module<'c>>]) -> Self {
        let mut functions: FxHashMap<String, Vec<Value<'c>>> = FxHashMap::default();
        for function in modules.iter().flat_map(|module| module.functions()) {
            functions.entry(function.name().to_owned()).or_default().push(function);
        }
        Self(functions)
    }

    /// The definition of a function that is only declared in its module; the function itself if none is known.
    pub(crate) fn definition(&self, function: Value<'c>) -> Value<'c> {
        if !function.is_declaration() {
            return function;
        }
        let named = self.0.get(function.name());
        named.and_then(|named| named.iter().find(|named| !named.is_declaration())).copied().unwrap_or(function)
    }

    /// The users of a function in all modules.
    pub(crate) fn users(&self, function: Value<'c>) -> Vec<Value<'c>> {
        match self.0.get(function.name()) {
            Some(named) => named.iter().flat_map(|named| named.users()).collect(),
            None => function.users(),
        }
    }

    /// The function of that name, where it is defined.
    pub(crate) fn named(&self, name: &str) -> Option<Value<'c>> {
        self.0.get(name)?.iter().find(|function| !function.is_declaration()).copied()
    }
}
