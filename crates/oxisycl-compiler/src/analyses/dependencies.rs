//! The library functions that a kernel was linked with, for its image.
//!
//! Libraries are the device library, whose functions stand for those that a processor has no instruction for, and the standard library.
//! Only what the program's own code refers to is noted, not what that needs in turn. The former is a property of the kernel, the latter one
//! of the library. Looks at code before it is optimised, where no function is inlined; changes nothing but the marks.

use std::collections::{BTreeMap, BTreeSet};

use crate::analyses::references::globals_in;
use crate::llvm::{Attribute, Module, Value, ValueKind};
use crate::passes::libcalls::{self, is_library};
use crate::passes::panic_names;
use crate::symbols::plain_path;

/// The attribute of functions of the standard library. It survives the stripping of host attributes.
const MARK: &str = "oxisycl.standard-library";

/// Marks the functions that a module of the standard library defines.
pub(crate) fn mark_standard_library(module: &Module<'_>) {
    let mark = Attribute::text(module.context(), MARK, "");
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        function.add_attribute(Attribute::FUNCTION, mark);
    }
}

/// The library functions that a kernel was linked with so far, by readable names such as `sinf` and `core::str::converts::from_utf8`.
#[derive(Clone, Default)]
pub(crate) struct Dependencies {
    names: BTreeSet<String>,
    /// The functions that were linked last, by symbol.
    new: BTreeMap<String, String>,
    /// The symbols of all library functions that were linked earlier. Later references to these come from library code that was inlined.
    known: BTreeSet<String>,
}

impl Dependencies {
    /// Adds the functions that were linked to the module since the last call. All of the module belongs to one kernel, and nothing new is
    /// inlined.
    pub(crate) fn add(&mut self, module: &Module<'_>) {
        let mut referred = referred(module);
        // Tables of functions belong to the library that made them, which is not known and does not matter.
        for initializer in module.globals().into_iter().filter_map(Value::initializer) {
            refer(initializer, &mut referred);
        }
        let theirs =
            module.functions().into_iter().filter(|function| !function.is_declaration() && is_theirs(*function));
        for function in theirs {
            if self.known.insert(function.name().to_owned())
                && referred.contains(function.name())
                && let Some(name) = name(function)
            {
                self.new.insert(function.name().to_owned(), name);
            }
        }
    }

    /// Removes functions of the device library that turned out not to be needed. This is known while that library is still kept apart.
    pub(crate) fn drop_unused(&mut self, module: &Module<'_>) {
        let referred = referred(module);
        let new = std::mem::take(&mut self.new).into_iter();
        self.names
            .extend(new.filter(|(symbol, _)| !is_library(symbol) || referred.contains(symbol)).map(|(_, name)| name));
    }

    /// The names, sorted.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names.into_iter().collect()
    }
}

/// The functions that the program's own code refers to.
fn referred(module: &Module<'_>) -> BTreeSet<String> {
    let mut referred = BTreeSet::new();
    let own = module.functions().into_iter().filter(|function| !function.is_declaration() && !is_theirs(*function));
    for operand in own.flat_map(Value::instructions).flat_map(Value::operands) {
        refer(operand, &mut referred);
    }
    referred
}

fn refer(value: Value<'_>, referred: &mut BTreeSet<String>) {
    globals_in(value, &mut |global| {
        if global.kind() == ValueKind::Function {
            referred.insert(global.name().to_owned());
        }
    });
}

/// Whether a function is a library's.
fn is_theirs(function: Value<'_>) -> bool {
    function.has_text_attribute(Attribute::FUNCTION, MARK) || is_library(function.name())
}

/// The readable name of a function. `None` if the image has that information elsewhere: whether a kernel may panic or print.
fn name(function: Value<'_>) -> Option<String> {
    let symbol = function.name();
    if panic_names::is_record(symbol) || panic_names::is_print(symbol) {
        return None;
    }
    match symbol.strip_prefix(libcalls::PREFIX) {
        Some(name) => Some(name.to_owned()),
        None => Some(plain_path(symbol)),
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::llvm::{self, Context};
    use crate::toolchain::Toolchain;

    #[test]
    fn what_a_kernels_own_code_refers_to_is_noted_once_and_by_its_name() {
        let toolchain = Toolchain::of_the_tests();
        llvm::load(toolchain.llvm_library()).expect("LLVM loads");
        let context = Context::new();
        let standard = "
            define void @_RNvNtCs1234_4core3str5inner() { ret void }
            define void @_RNvNtCs1234_4core3str5outer() { call void @_RNvNtCs1234_4core3str5inner() ret void }
            define void @__udivti3() { ret void }";
        let own = "
            declare void @_RNvNtCs1234_4core3str5outer()
            declare void @__udivti3()
            @table = internal constant [1 x ptr] [ptr @__udivti3]
            define float @__oxisycl_sinf(float %x) { %r = call float @_ZN16oxisycl_builtins6single3sin17h0123456789abcdefE(float %x) ret float %r }
            define float @_ZN16oxisycl_builtins6single3sin17h0123456789abcdefE(float %x) { ret float %x }
            define float @__oxisycl_expf(float %x) { ret float %x }
            define float @__oxisycl_tanf(float %x) { ret float %x }
            define void @__oxisycl_record_panic_numbers() { ret void }
            define float @k(float %x) {
                call void @_RNvNtCs1234_4core3str5outer()
                call void @__oxisycl_record_panic_numbers()
                %t = call float @__oxisycl_tanf(float %x)
                %r = call float @__oxisycl_sinf(float %t)
                ret float %r
            }";
        let module = Module::from_text(&context, own, "own").expect("a test is well-formed");
        let library = Module::from_text(&context, standard, "standard").expect("a test is well-formed");
        mark_standard_library(&library);
        module.link(library).expect("it links");
        let mut dependencies = Dependencies::default();
        dependencies.add(&module);
        // One call turns out to be needless.
        let call = module.function("__oxisycl_tanf").expect("it is there").users()[0];
        call.replace_all_uses_with(call.operand(0));
        call.erase();
        dependencies.drop_unused(&module);
        let expected = ["__udivti3", "core::str::outer", "sinf"];
        assert_eq!(dependencies.clone().into_names(), expected);

        // Later a function of the library was inlined, and another one linked.
        let later = "
            declare void @_RNvNtCs1234_4core3str5inner()
            define void @inlined() { call void @_RNvNtCs1234_4core3str5inner() call void @_RNvNtCs1234_4core3str5later() ret void }
            declare void @_RNvNtCs1234_4core3str5later()";
        module.link(Module::from_text(&context, later, "later").expect("well-formed")).expect("it links");
        let library =
            Module::from_text(&context, "define void @_RNvNtCs1234_4core3str5later() { ret void }", "standard");
        let library = library.expect("a test is well-formed");
        mark_standard_library(&library);
        module.link(library).expect("it links");
        dependencies.add(&module);
        dependencies.drop_unused(&module);
        assert_eq!(dependencies.into_names(), ["__udivti3", "core::str::later", "core::str::outer", "sinf"]);
    }
}
