//! Tests of stages on small modules in LLVM's assembly.

use crate::analyses::legality;
use crate::builtin_table::{Bodies, Family};
use crate::codegen;
use crate::llvm::{self, Codegen, Context, Module, PassTuning, Value};
use crate::options::FloatPolicy;
use crate::passes::{builtins, float_policy, libcalls, panic_names, panics, strip_host_abi, x86};
use crate::toolchain::Toolchain;
use oxisycl_image::{ImageTarget, MessagePiece};

/// A context with LLVM loaded.
pub(crate) fn context() -> Context {
    let toolchain = Toolchain::of_the_tests();
    llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    Context::new()
}

pub(crate) fn module<'c>(context: &'c Context, text: &str) -> Module<'c> {
    Module::from_text(context, text, "test").expect("a test is well-formed")
}

pub(crate) fn ptx(module: &Module<'_>) -> String {
    ptx_for(module, 70)
}

pub(crate) fn ptx_for(module: &Module<'_>, sm: u32) -> String {
    let target = codegen::of(&ImageTarget::Ptx { sm }).expect("a target");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    module.verify("test").expect("a valid module");
    String::from_utf8(target.machine().emit(module, Codegen::Assembly).expect("code")).expect("text")
}

#[test]
fn barriers_in_both_arms_stay_apart_and_one_stays_one() {
    let context = context();
    // What rustc makes of a barrier in each arm, and of a flag that is set before and tested after a barrier.
    let text = "
        declare void @barrier()
        define void @wrapped() noinline { call void @barrier() ret void }
        define void @both(i1 %c, ptr %p) {
            br i1 %c, label %a, label %b
            a: call void @wrapped() store i32 1, ptr %p br label %end
            b: call void @wrapped() store i32 2, ptr %p br label %end
            end: ret void
        }
        define void @flag(i1 %c, ptr %p) {
            br i1 %c, label %a, label %b
            a: br label %join
            b: br label %join
            join:
            %set = phi i1 [ true, %a ], [ false, %b ]
            call void @wrapped()
            br i1 %set, label %then, label %end
            then: store i32 1, ptr %p br label %end
            end: ret void
        }";
    for image_target in [ImageTarget::Ptx { sm: 70 }, ImageTarget::AmdGcn { arch: "gfx90a".to_owned() }] {
        let module = module(&context, text);
        let is_entry = |name: &str| name == "both" || name == "flag";
        strip_host_abi::strip(&module, &is_entry, &|_| false);
        let target = codegen::of(&image_target).expect("a target");
        module.set_target(target.machine().triple(), &target.machine().data_layout());
        module.run("default<O3>", Some(target.machine()), &PassTuning::DEVICE).expect("passes");
        let calls = |name: &str| {
            let function = module.function(name).expect("an entry");
            function
                .instructions()
                .iter()
                .filter(|call| call.callee().is_some_and(|callee| callee.name() == "barrier"))
                .count()
        };
        assert_eq!((calls("both"), calls("flag")), (2, 1), "{image_target}: {module}");
    }
}

#[test]
fn products_and_sums_are_contracted_only_if_allowed() {
    let context = context();
    let text = "define double @f(double %a, double %b, double %c) {\n %m = fmul double %a, %b\n %s = fadd double %m, %c\n ret double %s\n}";
    let compile = |policy| {
        let module = module(&context, text);
        float_policy::apply_policies(&[module.function("f").expect("a function")], &[policy]);
        ptx(&module)
    };
    assert!(compile(FloatPolicy::Strict).contains("mul.rn.f64"));
    assert!(compile(FloatPolicy::Contract).contains("fma.rn.f64"));
}

#[test]
fn a_kernel_chooses_its_policy_and_what_two_share_is_as_strict_as_the_stricter() {
    let context = context();
    let text = "
        declare void @_ZN14oxisycl_device7builtin12float_strict17h0123456789abcdefE()
        declare void @_ZN14oxisycl_device7builtin10float_fast17h0123456789abcdefE()
        @table = internal constant [1 x ptr] [ptr @shared]
        define internal float @alone(float %x) { %r = fmul float %x, %x ret float %r }
        define internal float @shared(float %x) { %r = fmul float %x, %x ret float %r }
        define void @wrapped() { call void @_ZN14oxisycl_device7builtin12float_strict17h0123456789abcdefE() ret void }
        define float @strict(float %x) {
            call void @wrapped()
            %f = load ptr, ptr @table
            %r = call float %f(float %x)
            ret float %r
        }
        define float @fast(float %x) {
            call void @_ZN14oxisycl_device7builtin10float_fast17h0123456789abcdefE()
            %a = call float @alone(float %x)
            %b = call float @shared(float %x)
            %r = fadd float %a, %b
            ret float %r
        }
        define float @plain(float %x) { %r = fadd float %x, 1.0 ret float %r }";
    let module = module(&context, text);
    builtins::replace(&module, Bodies { family: Family::Amdgcn, text: "", has_reductions: false })
        .expect("markers have no bodies");
    let kernels = ["strict", "fast", "plain"].map(|name| module.function(name).expect("a kernel"));
    let read = kernels.map(|kernel| float_policy::policy(&module, kernel, FloatPolicy::Contract));
    assert_eq!(read, [FloatPolicy::Strict, FloatPolicy::Fast, FloatPolicy::Contract]);
    assert_eq!(float_policy::policies(&module, &kernels, FloatPolicy::Contract), read);
    float_policy::apply_policies(&kernels, &read);
    module.verify("policies").expect("a valid module");
    let code = module.to_string();
    assert!(!code.contains("float_strict") && !code.contains("float_fast"), "markers are gone: {code}");
    let operation = |name: &str| {
        let function = module.function(name).expect("a function");
        let mut texts = function.instructions().into_iter().map(llvm::Value::print);
        let found = texts.find(|text| text.contains("fadd") || text.contains("fmul"));
        found.expect("an operation")
    };
    assert!(operation("alone").contains("fmul reassoc nsz arcp contract afn"), "{code}");
    assert!(operation("shared").contains("fmul float"), "{code}");
    assert!(operation("fast").contains("fadd reassoc nsz arcp contract afn"), "{code}");
    assert!(operation("plain").contains("fadd contract"), "{code}");
}

#[test]
fn no_policy_reaches_into_the_device_library() {
    let context = context();
    // Compensates for rounding, and is zero if operations may be reordered.
    let text = "
        define float @__oxisycl_lost(float %a, float %b) {
            %sum = fadd float %a, %b
            %part = fsub float %sum, %a
            %lost = fsub float %b, %part
            ret float %lost
        }
        define float @f(float %a, float %b) {
            %lost = call float @__oxisycl_lost(float %a, float %b)
            %r = fmul float %lost, %a
            ret float %r
        }";
    let module = module(&context, text);
    let is_entry = |name: &str| name == "f";
    strip_host_abi::strip(&module, &is_entry, &|_| false);
    float_policy::keep_library_apart(&module);
    module.run("default<O2>", None, &PassTuning::DEVICE).expect("passes");
    float_policy::apply_policies(&[module.function("f").expect("a function")], &[FloatPolicy::Fast]);
    float_policy::unite_with_library(&module);
    module.run("default<O3>,globaldce", None, &PassTuning::DEVICE).expect("passes");
    let code = module.to_string();
    assert!(module.function("__oxisycl_lost").is_none(), "it is inlined in the end: {code}");
    assert_eq!((code.matches("fadd float").count(), code.matches("fsub float").count()), (1, 2), "{code}");
    assert_eq!(code.matches("fmul reassoc nsz arcp contract afn float").count(), 1, "{code}");
}

#[test]
fn remainders_become_calls_of_a_function_that_is_exact() {
    let context = context();
    let text = "define float @f(float %a, float %b) {\n %r = frem float %a, %b\n ret float %r\n}";
    let module = module(&context, text);
    libcalls::replace_all(&module, &[]);
    assert!(module.function("__oxisycl_fmodf").is_some() && !module.to_string().contains("frem"), "{module}");
}

#[test]
fn intrinsics_without_an_instruction_become_calls() {
    let context = context();
    let text = "declare float @llvm.sin.f32(float)\ndeclare double @llvm.powi.f64.i32(double, i32)\ndeclare float @llvm.sqrt.f32(float)\n\
        define float @f(float %x, double %y) {\n %a = call float @llvm.sin.f32(float %x)\n %b = call double @llvm.powi.f64.i32(double %y, i32 3)\n\
        %c = fptrunc double %b to float\n %d = call float @llvm.sqrt.f32(float %c)\n %e = fadd float %a, %d\n ret float %e\n}";
    let module = module(&context, text);
    libcalls::replace_all(&module, &[]);
    assert!(module.function("__oxisycl_sinf").is_some() && module.function("__oxisycl_powi").is_some());
    assert!(module.function("llvm.sin.f32").is_none() && module.function("llvm.sqrt.f32").is_some());
    assert!(ptx(&module).contains("sqrt.rn.f32"), "the square root is correctly rounded");
}

#[test]
fn square_roots_in_assembly_of_the_host_are_operations() {
    let context = context();
    let text = r#"
        define float @single(float %x) {
            %r = call float asm inteldialect "sqrtss ${0:x}, ${0:x}", "=&x,0,~{dirflag},~{fpsr},~{flags}"(float %x)
            ret float %r
        }
        define double @double(double %x) {
            %r = call double asm inteldialect "sqrtsd ${0:x}, ${0:x}", "=&x,0,~{dirflag},~{fpsr},~{flags}"(double %x)
            ret double %r
        }"#;
    let module = module(&context, text);
    x86::lower(&module).expect("a table that is well-formed");
    let code = ptx(&module);
    assert!(code.contains("sqrt.rn.f32") && code.contains("sqrt.rn.f64"), "{code}");
}

#[test]
fn builtins_get_the_bodies_of_the_target() {
    let context = context();
    let text = "
        define i1 @_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E() { ret i1 false }
        define i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE() { unreachable }
        define i64 @f() {
            %d = call i1 @_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E()
            %x = call i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE()
            %r = select i1 %d, i64 %x, i64 0
            ret i64 %r
        }";
    let module = module(&context, text);
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    builtins::replace(&module, target.builtins()).expect("bodies");
    module.run("default<O2>", Some(target.machine()), &PassTuning::DEVICE).expect("passes");
    let code = ptx(&module);
    assert!(code.contains("%ctaid.x") && code.contains("%tid.x"), "{code}");
}

/// A function with code that runs when it unwinds calls by `invoke`, which ends a block.
#[test]
fn builtins_with_an_answer_may_be_invoked() {
    let context = context();
    let text = "
        declare i32 @rust_eh_personality(...)
        define i1 @_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E() { ret i1 false }
        define i64 @f() personality ptr @rust_eh_personality {
            %d = invoke i1 @_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E() to label %on unwind label %pad
        on:
            %r = select i1 %d, i64 7, i64 9
            ret i64 %r
        pad:
            %p = landingpad { ptr, i32 } cleanup
            resume { ptr, i32 } %p
        }";
    let module = module(&context, text);
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    builtins::replace(&module, target.builtins()).expect("bodies");
    module.verify("builtins").expect("a valid module");
    module.run("function(lower-invoke,simplifycfg),default<O2>", None, &PassTuning::DEVICE).expect("passes");
    assert!(module.to_string().contains("ret i64 7"), "{module}");
}

#[test]
fn builtins_that_are_linked_again_get_their_bodies() {
    let context = context();
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    let unit = |asks: &str| {
        let question = "_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E";
        let text = format!(
            "define linkonce_odr i1 @{question}() {{ ret i1 false }}
            define i1 @{asks}() {{ %d = call i1 @{question}() ret i1 %d }}"
        );
        let unit = module(&context, &text);
        unit.set_target(target.machine().triple(), &target.machine().data_layout());
        unit
    };
    let program = unit("first");
    builtins::replace(&program, target.builtins()).expect("bodies");
    // LLVM finds the builtin's name taken and gives it another one.
    program.link(unit("second")).expect("no conflict");
    assert_eq!(program.functions().len(), 4, "{program}");
    builtins::replace(&program, target.builtins()).expect("bodies");
    assert!(!program.to_string().contains("ret i1 false"), "{program}");
}

#[test]
fn a_recorder_without_effect_is_an_error_and_no_lost_panic() {
    let context = context();
    let recorder = |body: &str| {
        module(&context, &format!("define void @{}(ptr %launch) {{ {body} ret void }}", panic_names::RECORD))
    };
    panics::check_recorders(&recorder("%old = cmpxchg ptr %launch, i32 0, i32 1 monotonic monotonic"))
        .expect("it records");
    let error = panics::check_recorders(&recorder("")).expect_err("it records nothing");
    assert!(error.to_string().contains(panic_names::RECORD), "{error}");
}

/// As in debug builds, which check the addresses that are accessed.
#[test]
fn a_panic_while_a_panic_is_recorded_only_ends_the_work_item() {
    let context = context();
    let module = module(
        &context,
        "declare void @\"oxisycl.panic.core::panicking::panic_null_pointer_dereference\"(ptr)
        declare void @end()
        define void @__oxisycl_record_panic_numbers(ptr %launch, i32 %site, i64 %k, i64 %a, i64 %b, i64 %c) {
          call void @\"oxisycl.panic.core::panicking::panic_null_pointer_dereference\"(ptr null)
          unreachable
        }",
    );
    let mut sites = panics::Sites::default();
    let end = module.function("end").expect("it is declared");
    panics::lower(&module, &mut sites, &|builder| builtins::launch(&module, builder), &|builder| {
        builder.call(end, &[]);
    });
    let record = module.function("__oxisycl_record_panic_numbers").expect("it is there");
    let calls: Vec<_> = record.instructions().into_iter().filter_map(Value::callee).map(Value::name).collect();
    assert_eq!((calls, sites.list.len()), (vec!["end"], 0));
}

#[test]
fn a_panic_becomes_a_record_of_its_site_and_values() {
    let context = context();
    let text = "
        @file = private constant [12 x i8] c\"src/main.rs\\00\"
        @place = private constant <{ ptr, [16 x i8] }> <{ ptr @file, [16 x i8] c\"\\0B\\00\\00\\00\\00\\00\\00\\00\\11\\00\\00\\00\\0D\\00\\00\\00\" }>
        declare void @_RNvNtCs1234_4core9panicking18panic_bounds_check(i64, i64, ptr) noreturn
        define void @f(i64 %i, i64 %n) {
            %c = icmp ult i64 %i, %n
            br i1 %c, label %ok, label %bad
            ok: ret void
            bad: call void @_RNvNtCs1234_4core9panicking18panic_bounds_check(i64 %i, i64 %n, ptr @place)
            unreachable
        }";
    let module = module(&context, text);
    panics::hook(&module);
    let mut sites = panics::Sites::default();
    panics::lower(&module, &mut sites, &|builder| builtins::launch(&module, builder), &|_| {});
    module.verify("lowering").expect("a valid module");
    let [site] = &sites.list[..] else { panic!("{:?}", sites.list) };
    assert_eq!(site.location.as_ref().expect("a place").to_string(), "src/main.rs:17:13");
    assert_eq!(site.message[0], MessagePiece::Literal("index out of bounds: the len is ".to_owned()));
    // Two numbers, the length first, need no memory.
    let usize_kind = u64::from(oxisycl_image::ArgumentKind::Usize.number());
    let call = format!(
        "@__oxisycl_record_panic_numbers(ptr %1, i32 0, i64 {}, i64 %i, i64 %n, i64 0)",
        (usize_kind * 0x101) | (2 << 24)
    );
    let code = module.to_string();
    assert!(code.contains(&call) && !code.contains("alloca"), "{code}");
    assert!(module.function("_RNvNtCs1234_4core9panicking18panic_bounds_check").is_none());
}

#[test]
fn what_a_device_cannot_run_is_named_with_the_way_to_it() {
    let context = context();
    let text = "
        @counter = internal global i32 0
        @table = internal constant [2 x i32] [i32 1, i32 2]
        declare void @_ZN3std2fs4read17h0123456789abcdefE()
        define void @_ZN3app6helper17h0123456789abcdefE() { call void @_ZN3std2fs4read17h0123456789abcdefE() ret void }
        define void @reads() { call void @_ZN3app6helper17h0123456789abcdefE() ret void }
        define void @counts() { store i32 1, ptr @counter ret void }
        define double @fine(i64 %i, ptr %p) {
            %q = getelementptr i32, ptr @table, i64 %i
            %v = load i32, ptr %q
            %o = atomicrmw add ptr %p, i64 1 monotonic
            %d = uitofp i32 %v to double
            ret double %d
        }
        define void @assembles() { call void asm sideeffect \"nop\", \"\"() ret void }";
    let module = module(&context, text);
    let mut calls = legality::Calls::default();
    calls.add(&module);
    let examine = |name: &str| legality::examine(module.function(name).expect("a function"), name, &calls, &|_| false);
    assert_eq!(
        examine("reads").unsupported.expect("a reason"),
        "it calls `std::fs::read`: a kernel has no files; read and write them on the host, and pass the data in a buffer \
         (app::helper -> std::fs::read)"
    );
    assert!(examine("counts").unsupported.expect("a reason").starts_with("a static that is not constant, `counter`"));
    assert!(examine("assembles").unsupported.expect("a reason").starts_with("inline assembly"));
    let fine = examine("fine");
    assert_eq!(fine.unsupported, None);
    assert_eq!(fine.requirements.into_iter().collect::<Vec<_>>(), ["atomic64", "fp64"]);
    assert!(!fine.may_panic);
}

#[test]
fn each_kernel_needs_the_aspects_of_what_it_reaches() {
    let context = context();
    let text = "
        define void @halves(ptr %p) { %a = load half, ptr %p %b = fadd half %a, %a store half %b, ptr %p ret void }
        define void @doubles(ptr %p) { call void @in_a_helper(ptr %p) ret void }
        define internal void @in_a_helper(ptr %p) { %a = load double, ptr %p %b = fptrunc double %a to half store half %b, ptr %p ret void }
        define void @reads(ptr %p, ptr %q) { %a = load atomic i64, ptr %p acquire, align 8 store i64 %a, ptr %q ret void }
        define void @writes(ptr %p) { store atomic i64 1, ptr %p release, align 8 ret void }
        define void @exchanges(ptr %p) { %a = cmpxchg ptr %p, i64 0, i64 1 monotonic monotonic ret void }
        define void @adds(ptr %p) { %a = atomicrmw fadd ptr %p, double 1.0 monotonic ret void }
        define void @plain(ptr %p) {
            %a = atomicrmw add ptr %p, i32 1 monotonic
            %b = load i64, ptr %p
            %c = load atomic i32, ptr %p monotonic, align 4
            %d = uitofp i64 %b to float
            store float %d, ptr %p
            ret void
        }";
    let module = module(&context, text);
    let needs = |name: &str| {
        let function = module.function(name).expect("a function");
        let findings = legality::examine(function, name, &legality::Calls::default(), &|_| false);
        assert_eq!(findings.unsupported, None, "{name}");
        findings.requirements.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(needs("halves"), ["fp16"]);
    assert_eq!(needs("doubles"), ["fp16", "fp64"]);
    for name in ["reads", "writes", "exchanges"] {
        assert_eq!(needs(name), ["atomic64"], "{name}");
    }
    assert_eq!(needs("adds"), ["atomic64", "fp64"]);
    assert_eq!(needs("plain"), [""; 0]);
}

#[test]
fn values_behind_references_are_recorded_by_their_own_type() {
    let context = context();
    let text = "
        @template = private constant [10 x i8] c\"\\05item \\C0\\01!\\00\"
        declare zeroext i1 @_RNvXsi_NtNtNtCsgEmfK2I1SDS_4core3fmt3num3impjNtB9_7Display3fmt(ptr, ptr)
        declare void @_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt(ptr, ptr, ptr) noreturn
        define internal zeroext i1 @\"_ZN44_$LT$$RF$T$u20$as$u20$core..fmt..Display$GT$3fmt17h7c80914ce4238de4E\"(ptr %v, ptr %f) {
            %inner = load ptr, ptr %v
            %r = tail call zeroext i1 @_RNvXsi_NtNtNtCsgEmfK2I1SDS_4core3fmt3num3impjNtB9_7Display3fmt(ptr %inner, ptr %f)
            ret i1 %r
        }
        define void @f(ptr %value) {
            %args = alloca [16 x i8], align 8
            store ptr %value, ptr %args, align 8
            %second = getelementptr inbounds nuw i8, ptr %args, i64 8
            store ptr @\"_ZN44_$LT$$RF$T$u20$as$u20$core..fmt..Display$GT$3fmt17h7c80914ce4238de4E\", ptr %second, align 8
            call void @_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt(ptr @template, ptr %args, ptr null)
            unreachable
        }";
    let module = module(&context, text);
    panics::hook(&module);
    let mut sites = panics::Sites::default();
    panics::lower(&module, &mut sites, &|builder| builtins::launch(&module, builder), &|_| {});
    module.verify("lowering").expect("a valid module");
    let usize_kind = oxisycl_image::ArgumentKind::Usize.number();
    let code = module.to_string();
    assert!(code.contains(&format!("i32 0, i64 {}, i64 %4, i64 0, i64 0)", usize_kind | (1 << 24))), "{code}");
    assert!(code.contains("%4 = load i64, ptr %3"), "the value: {code}");
    assert_eq!(code.matches("load ptr").count(), 3, "the slot, then the reference: {code}");
}

/// A call of `println!` with one value, which the function prints.
fn printing(formatter: &str, stores: &str) -> String {
    format!(
        "@template = private constant [8 x i8] c\"\\05item \\C0\\00\"
        declare zeroext i1 @{formatter}(ptr, ptr)
        define void @_ZN14oxisycl_device5print10print_line17h0123456789abcdefE(ptr %t, ptr %a) {{ ret void }}
        define void @f(ptr %value, ptr %formatter) {{
            %args = alloca [16 x i8], align 8
            store ptr %value, ptr %args, align 8
            %second = getelementptr inbounds nuw i8, ptr %args, i64 8
            {stores}
            call void @_ZN14oxisycl_device5print10print_line17h0123456789abcdefE(ptr @template, ptr %args)
            ret void
        }}"
    )
}

#[test]
fn what_is_printed_is_a_record_and_the_work_item_goes_on() {
    let context = context();
    let usize_display = "_RNvXsi_NtNtNtCsgEmfK2I1SDS_4core3fmt3num3impjNtB9_7Display3fmt";
    let own_display = "_ZN48_$LT$app..Own$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE";
    let store = |formatter: &str| format!("store ptr @\"{formatter}\", ptr %second, align 8\n");
    let twice = store(usize_display).repeat(2);
    let unknown = "store ptr %formatter, ptr %second, align 8";
    let quoted = format!("\"{own_display}\"");
    for (name, stores, is_formatted) in [
        (usize_display, store(usize_display), false),
        (usize_display, twice, false),
        (&*quoted, store(own_display), true),
        (usize_display, unknown.to_owned(), true),
        (usize_display, store(usize_display) + unknown, true),
    ] {
        let module = module(&context, &printing(name, &stores));
        panics::hook(&module);
        let mut sites = panics::Sites::default();
        let never = |_: &llvm::Builder<'_>| panic!("printing ends no work-item");
        panics::lower(&module, &mut sites, &|builder| builtins::launch(&module, builder), &never);
        module.verify("lowering").expect("a valid module");
        let [site] = &sites.list[..] else { panic!("{:?}", sites.list) };
        assert_eq!(site.location, None);
        assert_eq!(site.message.len(), 3, "{:?}", site.message);
        assert_eq!(site.message[2], MessagePiece::Literal("\n".to_owned()));
        let calls = |name: &str| module.function(name).map_or(0, |function| function.users().len());
        assert_eq!(
            (calls("__oxisycl_print"), calls("__oxisycl_print_formatted")),
            (usize::from(!is_formatted), usize::from(is_formatted)),
            "{stores}"
        );
        let findings =
            legality::examine(module.function("f").expect("a function"), "f", &legality::Calls::default(), &|_| false);
        assert!(findings.may_print && !findings.may_panic);
    }
}
