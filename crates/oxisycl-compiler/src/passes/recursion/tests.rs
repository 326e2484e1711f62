//! Which functions ask for stack, how much they need, and what becomes of their questions.

use super::*;
use crate::llvm::PassTuning;
use crate::passes::panics::{self, Sites};
use crate::passes::tests::{context, module, ptx_for};

const FUNCTIONS: &str = "
    @table = internal constant [2 x ptr] [ptr @pointed_to, ptr @other_type]
    declare void @elsewhere()
    define void @leaf() { %v = alloca [400 x i8] call void @use(ptr %v) ret void }
    define void @use(ptr %v) { call void @elsewhere() ret void }
    define void @itself(i32 %n) memory(none) willreturn {
      %v = alloca i64
      %c = icmp eq i32 %n, 0
      br i1 %c, label %end, label %again
    again:
      call void @leaf()
      %m = sub i32 %n, 1
      call void @itself(i32 %m)
      br label %end
    end:
      ret void
    }
    define void @there() { call void @back() ret void }
    define void @back() { call void @there() ret void }
    define void @pointed_to(ptr %f) { call void %f(ptr %f) ret void }
    define void @other_type(i32 %n, ptr %f) { call void %f(i32 %n) ret void }
    define void @outside(ptr %f) { call void %f(ptr %f) ret void }
    define void @\"core::fmt::Formatter::pad\"(ptr %f, i64 %n) { call void %f(ptr %f, i64 %n) ret void }
    define void @\"core::str::slice_error_fail_rt\"() { call void @\"core::str::slice_error_fail_rt\"() unreachable }";

#[test]
fn what_a_user_writes_within_a_formatting_function_asks_for_stack() {
    let context = context();
    let [within, method] = ["$GT$3fmt4deep", "$GT$3fmt"]
        .map(|end| format!("_ZN43_$LT$app..X$u20$as$u20$core..fmt..Debug{end}17h0123456789abcdefE"));
    let text = format!(
        "@table = constant [3 x ptr] [ptr @\"{within}\", ptr @\"{method}\", ptr @\"core::fmt::Formatter::pad\"]
        define void @\"{within}\"(ptr %f, i32 %n) {{ call void %f(ptr %f, i32 %n) ret void }}
        define void @\"{method}\"(ptr %f) {{ call void %f(ptr %f) ret void }}
        define void @\"core::fmt::Formatter::pad\"(ptr %f) {{ call void %f(ptr %f) ret void }}"
    );
    let module = module(&context, &text);
    add_checks(&module);
    let asks = |name: &str| has_check(module.function(name).expect("it is there"));
    // The library's function is one that the method may come back through.
    assert!(asks(&within) && asks(&method) && asks("core::fmt::Formatter::pad"), "{module}");
}

/// Formatting that comes back through pointers: `%inlined` is where the pointer is called in the library's function.
fn formatting(inlined: &str, result: &str) -> String {
    format!(
        "@table = constant [2 x ptr] [ptr @\"<core::fmt::FromFn as core::fmt::Display>::fmt\", ptr @{result}]
        define i1 @\"core::fmt::write\"(ptr %n, ptr %f) !dbg !5 {{ %r = call i1 %f(ptr %n, ptr %f), !dbg !7 ret i1 %r }}
        define i1 @\"<core::fmt::FromFn as core::fmt::Display>::fmt\"(ptr %n, ptr %f) !dbg !10 {{
          %r = call i1 @\"core::fmt::write\"(ptr %n, ptr %f), !dbg !{inlined}
          ret i1 %r
        }}
        define i1 @digits(ptr %n, ptr %f) {{ ret i1 false }}
        define i1 @\"<app::X as core::fmt::Display>::fmt\"(ptr %n, ptr %f) !dbg !6 {{
          %r = call i1 @\"core::fmt::write\"(ptr %n, ptr %f), !dbg !8
          ret i1 %r
        }}
        !llvm.module.flags = !{{!0}}
        !llvm.dbg.cu = !{{!1}}
        !0 = !{{i32 2, !\"Debug Info Version\", i32 3}}
        !1 = distinct !DICompileUnit(language: DW_LANG_Rust, file: !2, emissionKind: LineTablesOnly)
        !2 = !DIFile(filename: \"/rustc/1234/library/core/src/fmt/mod.rs\", directory: \"/\")
        !3 = !DIFile(filename: \"src/main.rs\", directory: \"/home/user/app\")
        !4 = !DISubroutineType(types: !{{}})
        !5 = distinct !DISubprogram(name: \"fmt\", file: !2, line: 1, type: !4, unit: !1, spFlags: DISPFlagDefinition)
        !6 = distinct !DISubprogram(name: \"closure\", file: !3, line: 1, type: !4, unit: !1, spFlags: DISPFlagDefinition)
        !7 = !DILocation(line: 2, scope: !5)
        !8 = !DILocation(line: 2, scope: !6)
        !9 = !DILocation(line: 2, scope: !6, inlinedAt: !11)
        !10 = distinct !DISubprogram(name: \"fmt\", file: !2, line: 9, type: !4, unit: !1, spFlags: DISPFlagDefinition)
        !11 = !DILocation(line: 9, scope: !10)"
    )
}

#[test]
fn formatting_asks_for_stack_where_it_can_come_back_to_code_of_a_user() {
    let context = context();
    let [from_fn, method] = ["FromFn", "X"].map(|of| {
        let krate = if of == "X" { "app" } else { "core::fmt" };
        format!("<{krate}::{of} as core::fmt::Display>::fmt")
    });
    // The library's alone; a user's closure that was inlined; a user's method.
    for (inlined, pointed_to, expected) in [
        ("11", "digits".to_owned(), vec![]),
        ("9", "digits".to_owned(), vec![from_fn.as_str()]),
        ("11", format!("\"{method}\""), vec![method.as_str(), from_fn.as_str()]),
    ] {
        let module = module(&context, &formatting(inlined, &pointed_to));
        add_checks(&module);
        module.verify("checks").expect("a valid module");
        let asking = module.functions().into_iter().filter(|f| !f.is_declaration() && has_check(*f));
        let mut names: Vec<_> = asking.map(|function| function.name().to_owned()).collect();
        names.sort();
        assert_eq!(names, expected, "{module}");
        let ends = module.to_string().matches(&format!("call i1 @{ENDS_MESSAGE}()")).count();
        assert_eq!(ends, expected.len(), "{module}");
    }
}

#[test]
fn what_has_no_stack_left_ends_the_message_that_it_is_in_or_panics() {
    let context = context();
    let text = "
        declare void @oxisycl.begin_message()
        declare i1 @oxisycl.formatting_was_cut_off()
        define internal i1 @\"<app::X as core::fmt::Display>::fmt\"(i32 %n, ptr %out) noinline {
          store volatile i32 %n, ptr %out
          %m = sub i32 %n, 1
          %r = call i1 @\"<app::X as core::fmt::Display>::fmt\"(i32 %m, ptr %out)
          store volatile i1 %r, ptr %out
          ret i1 %r
        }
        define ptx_kernel void @k(ptr byval([104 x i8]) align 8 %launch, ptr %out) {
          call void @oxisycl.begin_message()
          CALL
          %cut = call i1 @oxisycl.formatting_was_cut_off()
          store i1 %cut, ptr %out
          ret void
        }";
    let call = "%r = call i1 @\"<app::X as core::fmt::Display>::fmt\"(i32 1000, ptr %out)";
    for (call, has_messages) in [(call, true), ("", false)] {
        let module = module(&context, &text.replace("CALL", call));
        module.run("globaldce", None, &PassTuning::DEVICE).expect("passes");
        add_checks(&module);
        let end = |builder: &Builder<'_>| {
            let exit = module.declare("llvm.nvvm.exit", Type::function(Type::void(&context), &[]));
            builder.call(exit, &[]);
        };
        panics::lower(&module, &mut Sites::default(), &|builder| builtins::launch(&module, builder), &end);
        let kernel = module.function("k").expect("it is there");
        lower(&module, kernel, 3);
        module.verify("lowering").expect("a valid module");
        let code = module.to_string();
        assert!(!code.contains("begin_message") && !code.contains("was_cut_off"), "{code}");
        assert_eq!(code.contains(MESSAGES), has_messages, "{code}");
        // An error of formatting, and the panic.
        assert_eq!(code.contains("ret i1 true"), has_messages, "{code}");
        assert_eq!(code.contains("call void @llvm.nvvm.exit"), has_messages, "{code}");
        assert_eq!(code.contains("store i1 false"), !has_messages, "{code}");
    }
}

#[test]
fn what_can_be_called_before_it_has_returned_asks_for_stack_once() {
    let context = context();
    let text = format!("{FUNCTIONS} @other = constant ptr @\"core::fmt::Formatter::pad\"");
    let module = module(&context, &text);
    for _ in 0..2 {
        add_checks(&module);
        module.verify("checks").expect("a valid module");
        let asking: Vec<_> = module.functions().into_iter().filter(|f| !f.is_declaration() && has_check(*f)).collect();
        let names: Vec<_> = asking.iter().map(|function| function.name()).collect();
        assert_eq!(names, ["itself", "there", "back", "pointed_to"], "{module}");
    }
    let code = module.to_string();
    assert_eq!(code.matches(&format!("call i1 @{IS_LEFT}()")).count(), 4, "{code}");
    // Its variables are where a function begins, and it may panic now.
    let itself = module.function("itself").expect("it is there");
    assert!(itself.blocks()[0].instructions()[0].is(Opcode::ALLOCA), "{}", itself.print());
    assert!(!itself.has_attribute(Attribute::FUNCTION, "memory"), "{}", itself.print());
}

#[test]
fn a_function_needs_its_variables_and_those_of_what_it_calls_up_to_the_next_check() {
    let context = context();
    let module = module(&context, FUNCTIONS);
    add_checks(&module);
    let needs = Needs::of(&module);
    let need = |name: &str| needs.of_function(module.function(name).expect("a function"));
    assert_eq!([need("use"), need("leaf"), need("there")], [SAVED, 2 * SAVED + 400, SAVED]);
    assert_eq!(need("itself"), SAVED + 8 + need("leaf"));
    // What it calls asks for itself.
    assert_eq!([need("pointed_to"), need("outside")], [SAVED, SAVED]);
}

#[test]
fn a_panic_says_how_much_stack_there_is_and_code_without_recursion_has_none_of_it() {
    let context = context();
    let text = "
        define internal i32 @sum(i32 %n) noinline {
          %c = icmp eq i32 %n, 0
          br i1 %c, label %end, label %again
        again:
          %m = sub i32 %n, 1
          %rest = call i32 @sum(i32 %m)
          %r = mul i32 %rest, %n
          %s = add i32 %r, %n
          br label %end
        end:
          %all = phi i32 [ 0, %0 ], [ %s, %again ]
          ret i32 %all
        }
        define ptx_kernel void @k(ptr byval([104 x i8]) align 8 %launch, ptr %out) {
          %r = call i32 @sum(i32 7)
          store i32 %r, ptr %out
          ret void
        }
        define ptx_kernel void @plain(ptr byval([104 x i8]) align 8 %launch, ptr %out) {
          store i32 7, ptr %out
          ret void
        }";
    for (name, is_recursive) in [("k", true), ("plain", false)] {
        let module = module(&context, text);
        if !is_recursive {
            module.function("k").expect("it is there").delete_function();
            module.run("globaldce", None, &PassTuning::DEVICE).expect("passes");
        }
        let kernel = module.function(name).expect("it is there");
        add_checks(&module);
        let mut sites = Sites::default();
        let end = |builder: &Builder<'_>| {
            let exit = module.declare("llvm.nvvm.exit", Type::function(Type::void(&context), &[]));
            builder.call(exit, &[]);
        };
        panics::lower(&module, &mut sites, &|builder| builtins::launch(&module, builder), &end);
        lower(&module, kernel, 3);
        builtins::lower_launch(&module, &[kernel], || module.add_global("slot", Type::pointer(&context, 0), 3));
        let ptx = ptx_for(&module, 70);
        assert_eq!(ptx.contains(SLOT), is_recursive, "{ptx}");
        assert_eq!(sites.list.len(), usize::from(is_recursive));
        if is_recursive {
            let text = format!("{:?}", sites.list[0].message);
            assert!(text.contains("recursive calls need more stack") && text.contains("OXISYCL_CALL_STACK"), "{text}");
            assert!(ptx.contains("setp.") && ptx.contains("exit;") && ptx.contains("st.shared"), "{ptx}");
        }
    }
}
