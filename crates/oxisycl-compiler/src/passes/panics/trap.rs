//! Traps, by which the standard library ends a program where a panic would be of no use. Its sorting functions, for example, do so after a
//! comparison has panicked.
//!
//! A trap of a GPU takes its whole context down. So each becomes a panic that knows its place by its debug information, before code is
//! moved and merged.

use oxisycl_image::SourceLocation;

use crate::llvm::{Attribute, Builder, Module, Place, Type, Value};
use crate::passes::panic_names::PREFIX;

/// The panic function that replaces a trap, after the prefix of panics.
pub(super) const PATH: &str = "llvm.trap";
/// The panic message of the work-item.
pub(super) const MESSAGE: &str = "the program aborted";

/// Replaces traps by calls of a hooked function, whose argument is the place.
pub(super) fn hook(module: &Module<'_>, attributes: &[&str]) {
    let Some(trap) = module.function("llvm.trap") else { return };
    let context = module.context();
    let pointer = Type::pointer(context, 0);
    let hooked = module.declare(&format!("{PREFIX}{PATH}"), Type::function(Type::void(context), &[pointer]));
    for attribute in attributes {
        hooked.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
    }
    for call in trap.users().into_iter().filter(|user| user.callee() == Some(trap)) {
        let place = match call.place().map(Place::location) {
            Some(SourceLocation { file, line, column }) => {
                let numbers = [line.to_le_bytes(), column.to_le_bytes()].concat();
                module.add_constant("oxisycl.place", &[&numbers, file.as_bytes()].concat())
            }
            None => pointer.null(),
        };
        Builder::before(context, call).call(hooked, &[place]);
        call.erase();
    }
    if !trap.is_used() {
        trap.delete_function();
    }
}

/// The place of a trap, from the argument of the call that replaced it.
pub(super) fn location(place: Value<'_>) -> Option<SourceLocation> {
    let (line, rest) = place.initializer()?.data()?.split_first_chunk()?;
    let (column, file) = rest.split_first_chunk()?;
    let file = std::str::from_utf8(file).ok()?.to_owned();
    Some(SourceLocation { file, line: u32::from_le_bytes(*line), column: u32::from_le_bytes(*column) })
}

#[cfg(test)]
mod tests {
    use crate::passes::panics::{self, Sites};
    use crate::passes::tests::{context, module, ptx_for};
    use crate::passes::{builtins, strip_host_abi};

    #[test]
    fn a_trap_is_a_panic_with_the_place_that_its_code_had() {
        let context = context();
        let text = "
            declare void @llvm.trap()
            define void @f(i1 %c) !dbg !3 {
                br i1 %c, label %first, label %second
                first: call void @llvm.trap(), !dbg !5 unreachable
                second: call void @llvm.trap(), !dbg !6 unreachable
            }
            define void @g() { call void @llvm.trap() unreachable }
            !llvm.dbg.cu = !{!0}
            !llvm.module.flags = !{!2}
            !0 = distinct !DICompileUnit(language: DW_LANG_Rust, file: !1, emissionKind: LineTablesOnly)
            !1 = !DIFile(filename: \"src/sort.rs\", directory: \"/app\")
            !2 = !{i32 2, !\"Debug Info Version\", i32 3}
            !3 = distinct !DISubprogram(name: \"f\", file: !1, line: 3, type: !4, unit: !0, spFlags: DISPFlagDefinition)
            !4 = !DISubroutineType(types: !{})
            !5 = !DILocation(line: 7, column: 13, scope: !3)
            !6 = !DILocation(line: 9, column: 5, scope: !3)";
        let module = module(&context, text);
        panics::hook(&module);
        assert!(module.function("llvm.trap").is_none(), "{module}");
        strip_host_abi::strip(&module, &|name| ["f", "g"].contains(&name), &|_| false);
        module.run("default<O2>,globaldce", None, &crate::llvm::PassTuning::DEVICE).expect("passes");
        let mut sites = Sites::default();
        panics::lower(&module, &mut sites, &|builder| builtins::launch(&module, builder), &|_| {});
        module.verify("lowering").expect("a valid module");
        let found: Vec<_> = sites
            .list
            .iter()
            .map(|site| (site.location.as_ref().map(ToString::to_string), format!("{:?}", site.message)))
            .collect();
        let message = "[Literal(\"the program aborted\")]".to_owned();
        let expected = [Some("src/sort.rs:7:13"), Some("src/sort.rs:9:5"), None];
        assert_eq!(found, expected.map(|place| (place.map(str::to_owned), message.clone())));
        let code = module.to_string();
        assert_eq!(code.matches("call void @__oxisycl_record_panic_numbers(").count(), 3, "{code}");
        builtins::lower_launch(&module, &[], || module.add_global("slot", crate::llvm::Type::pointer(&context, 0), 3));
        assert!(!ptx_for(&module, 70).contains("trap;"), "{module}");
    }
}
