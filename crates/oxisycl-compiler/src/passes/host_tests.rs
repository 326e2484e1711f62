//! Tests of the passes that remove code about the host's processor.

use super::tests::{context, module, ptx_for};
use crate::analyses::legality;
use crate::llvm::PassTuning;
use crate::passes::{cpu_features, int128, native, strip_host_abi, x86};

#[test]
fn intrinsics_of_the_hosts_processor_become_ordinary_operations() {
    let context = context();
    let text = "
        declare <4 x float> @llvm.x86.sse.max.ps(<4 x float>, <4 x float>)
        declare <4 x float> @llvm.x86.sse.cmp.ps(<4 x float>, <4 x float>, i8 immarg)
        declare <16 x i8> @llvm.x86.aesni.aesenc(<16 x i8>, <16 x i8>)
        define <4 x float> @f(<4 x float> %a, <4 x float> %b) {
            %m = call <4 x float> @llvm.x86.sse.max.ps(<4 x float> %a, <4 x float> %b)
            %c = call <4 x float> @llvm.x86.sse.cmp.ps(<4 x float> %m, <4 x float> %b, i8 1)
            ret <4 x float> %c
        }
        define <16 x i8> @g(<16 x i8> %a) {
            %r = call <16 x i8> @llvm.x86.aesni.aesenc(<16 x i8> %a, <16 x i8> %a)
            ret <16 x i8> %r
        }";
    let module = module(&context, text);
    x86::lower(&module).expect("the table is well-formed");
    strip_host_abi::strip(&module, &|name| ["f", "g"].contains(&name), &|_| false);
    module.run("default<O2>", None, &PassTuning::DEVICE).expect("passes");
    let code = module.function("f").expect("it is kept").print();
    assert!(code.contains("fcmp ogt <4 x float> %a, %b") && code.contains("fcmp olt <4 x float>"), "{code}");
    assert!(!code.contains("call") && !code.contains("fcmp ord"), "the other predicates are gone: {code}");
    // What is not in the table stays for the diagnostic.
    let calls = legality::Calls::default();
    let kernel = module.function("g").expect("it is kept");
    let reason = legality::examine(kernel, "g", &calls, &|_| false).unsupported.expect("a reason");
    assert_eq!(reason, "an instruction of the host's processor, `llvm.x86.aesni.aesenc`");
}

#[test]
fn a_device_has_no_features_of_the_hosts_processor() {
    let context = context();
    let text = "
        @cache = internal global i64 0
        define internal i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 %bit) {
            %cached = load atomic i64, ptr @cache monotonic, align 8
            %known = icmp ne i64 %cached, 0
            ret i1 %known
        }
        define i32 @f(i32 %x) {
            %fast = call i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 29)
            %ids = call { i32, i64, i32, i32 } asm sideeffect inteldialect \"mov $0:r, rbx\\0Acpuid\\0Axchg $0:r, rbx\", \"=&{ax},=&r,=&{cx},=&{dx}\"()
            %id = extractvalue { i32, i64, i32, i32 } %ids, 0
            %r = select i1 %fast, i32 %x, i32 %id
            ret i32 %r
        }";
    let module = module(&context, text);
    cpu_features::answer_no(&module);
    strip_host_abi::strip(&module, &|name| name == "f", &|_| false);
    module.run("default<O2>,globaldce", None, &PassTuning::DEVICE).expect("passes");
    let code = module.to_string();
    assert!(code.contains("ret i32 0") && !code.contains("@cache") && !code.contains("asm"), "{code}");
}

#[test]
fn halves_are_converted_by_instructions() {
    let context = context();
    let text = "
        define internal i16 @_ZN4half8binary164arch19f32_to_f16_fallback17hd8c11f1bc84f3591E(float %value) {
            %bits = bitcast float %value to i32
            %narrow = trunc i32 %bits to i16
            ret i16 %narrow
        }
        define internal double @_ZN4half8binary164arch19f16_to_f64_fallback17h56255a4543018099E(i16 %i) { ret double 0.0 }
        define internal i16 @_ZN4half6bfloat7convert11f32_to_bf1617hdee4e010a8e764a8E(float %value) { ret i16 0 }
        define internal float @_ZN4half6bfloat7convert11bf16_to_f3217h279df7f2583263c0E(i16 %i) { ret float 0.0 }
        define i16 @narrow(float %x) {
            %h = call i16 @_ZN4half8binary164arch19f32_to_f16_fallback17hd8c11f1bc84f3591E(float %x)
            ret i16 %h
        }
        define double @widen(i16 %x) {
            %d = call double @_ZN4half8binary164arch19f16_to_f64_fallback17h56255a4543018099E(i16 %x)
            ret double %d
        }
        define float @brain(float %x) {
            %h = call i16 @_ZN4half6bfloat7convert11f32_to_bf1617hdee4e010a8e764a8E(float %x)
            %r = call float @_ZN4half6bfloat7convert11bf16_to_f3217h279df7f2583263c0E(i16 %h)
            ret float %r
        }";
    let compile = |sm| {
        let module = module(&context, text);
        native::replace(&module, &[]).expect("the table is well-formed");
        let is_entry = |name: &str| ["narrow", "widen", "brain"].contains(&name);
        strip_host_abi::strip(&module, &is_entry, &|_| false);
        module.run("default<O2>,globaldce", None, &PassTuning::DEVICE).expect("passes");
        ptx_for(&module, sm)
    };
    let code = compile(70);
    assert!(code.contains("cvt.rn.f16.f32") && code.contains("cvt.f64.f16"), "{code}");
    assert!(!code.contains("call"), "nothing is left to a library: {code}");
    assert!(compile(90).contains("cvt.rn.bf16.f32"), "newer processors round to bf16 themselves");
}

#[test]
fn conversions_of_128_bits_become_calls_of_the_runtime_library() {
    let context = context();
    let text = "
        declare i128 @llvm.fptoui.sat.i128.f32(float)
        define double @f(i128 %a, float %b, double %c) {
            %x = uitofp i128 %a to double
            %n = call i128 @llvm.fptoui.sat.i128.f32(float %b)
            %m = fptosi double %c to i128
            %s = add i128 %n, %m
            %y = sitofp i128 %s to float
            %z = fpext float %y to double
            %small = trunc i128 %a to i64
            %w = uitofp i64 %small to double
            %r = fadd double %x, %z
            %t = fadd double %r, %w
            ret double %t
        }";
    let module = module(&context, text);
    int128::call_conversions(&module);
    module.verify("lowering").expect("a valid module");
    let code = module.to_string();
    for name in ["__floatuntidf(i128 %a)", "__fixunssfti(float %b)", "__fixdfti(double %c)", "__floattisf(i128 %s)"] {
        assert!(code.contains(&format!("@{name}")), "{name}: {code}");
    }
    assert!(!code.contains("llvm.fpto") && code.contains("uitofp i64 %small to double"), "{code}");
}
