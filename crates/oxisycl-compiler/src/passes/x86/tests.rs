//! Checks the table against the processor. It is compiled for the host as a library, and each function's results are compared with those of
//! the intrinsic, bit for bit.
#![expect(
    improper_ctypes_definitions,
    reason = "registers are passed as the platform's C compilers do, to LLVM's own code"
)]

use std::arch::x86_64::*;
use std::path::PathBuf;
use std::process::Command;

use crate::llvm::{self, Codegen, Context, Linkage, Machine, Module};
use crate::passes::tests;
use crate::toolchain::Toolchain;

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The table as native code.
fn native_table(test: &str) -> (libloading::Library, Folder) {
    let toolchain = Toolchain::of_the_tests();
    llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    let context = Context::new();
    let module = Module::from_text(&context, super::TABLE, "x86").expect("the table is well-formed");
    let machine = Machine::new(TRIPLE, "x86-64", "").expect("the host's target");
    module.set_target(TRIPLE, &machine.data_layout());
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        function.set_linkage(Linkage::EXTERNAL);
    }
    module.verify("test").expect("the table is valid");
    let folder = Folder::new(test);
    let (object, library) = (folder.0.join("table.o"), folder.0.join("libtable.so"));
    std::fs::write(&object, machine.emit(&module, Codegen::Object).expect("code")).expect("a file");
    let linked = Command::new("cc").arg("-shared").arg("-o").args([&library, &object]).arg("-lm").status();
    assert!(linked.expect("Rust's own linker driver").success());
    // SAFETY: the library has no initialisers, and its functions are called with the types that the table gives them.
    (unsafe { libloading::Library::new(&library) }.expect("it loads"), folder)
}

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("oxisycl-x86-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Values of a register: random bits, and floating-point numbers of every class, at the ends of the integers among them.
fn registers() -> Vec<[u32; 4]> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let singles = [
        0.0_f32,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        0.499_999_97,
        3.7e9,
        2_147_483_520.0,
        2_147_483_648.0,
        -2_147_483_648.0,
        1e30,
        9.3e18,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MIN_POSITIVE,
        1e-40,
        8_388_609.0,
    ];
    let doubles = [
        0.0,
        -0.0,
        1.5,
        -2.5,
        2_147_483_647.0,
        2_147_483_647.5,
        -2_147_483_648.5,
        9.3e18,
        f64::NAN,
        f64::INFINITY,
        0.1,
    ];
    let mut all = Vec::new();
    for round in 0..400 {
        all.push(match round % 4 {
            0 => std::array::from_fn(|_| next()),
            1 => std::array::from_fn(|_| singles[next() as usize % singles.len()].to_bits()),
            2 => {
                let [low, high] = std::array::from_fn(|_| f64::to_bits(doubles[next() as usize % doubles.len()]));
                [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
            }
            // Small numbers: counts of shifts, equal lanes, NaN in one of them.
            _ => std::array::from_fn(|lane| if lane == round % 7 { f32::NAN.to_bits() } else { next() % 70 }),
        });
    }
    all
}

/// The bits of a result.
trait Bits: Copy {
    fn bits(self) -> [u32; 4];
    fn of(bits: [u32; 4]) -> Self;
}

macro_rules! bits {
    ($($type:ty: $to:expr, $from:expr;)*) => { $(
        impl Bits for $type {
            fn bits(self) -> [u32; 4] {
                $to(self)
            }

            fn of(bits: [u32; 4]) -> Self {
                $from(bits)
            }
        }
    )* };
}

fn bits_of_register<T: Register>(register: T) -> [u32; 4] {
    // SAFETY: all bits of a register are its value, and the sizes are equal.
    unsafe { std::mem::transmute_copy(&register) }
}

fn register_of_bits<T: Register>(bits: [u32; 4]) -> T {
    // SAFETY: any bits are a register's, and the sizes are equal.
    unsafe { std::mem::transmute_copy(&bits) }
}

/// The types of registers of 128 bits.
trait Register {}
impl Register for __m128 {}
impl Register for __m128d {}
impl Register for __m128i {}

bits! {
    __m128: bits_of_register, register_of_bits;
    __m128d: bits_of_register, register_of_bits;
    __m128i: bits_of_register, register_of_bits;
    i32: |value: i32| [value as u32, 0, 0, 0], |bits: [u32; 4]| bits[0] as i32;
    u32: |value: u32| [value, 0, 0, 0], |bits: [u32; 4]| bits[0];
    u8: |value: u8| [u32::from(value), 0, 0, 0], |bits: [u32; 4]| bits[0] as u8;
    u16: |value: u16| [u32::from(value), 0, 0, 0], |bits: [u32; 4]| bits[0] as u16;
    i64: |value: i64| [value as u32, (value >> 32) as u32, 0, 0], |bits: [u32; 4]| i64::from(bits[0]) << 32 | i64::from(bits[1]);
    u64: |value: u64| [value as u32, (value >> 32) as u32, 0, 0], |bits: [u32; 4]| u64::from(bits[0]) << 32 | u64::from(bits[1]);
}

/// Whether results agree; of two NaNs the payload may differ.
fn agree(ours: [u32; 4], theirs: [u32; 4]) -> bool {
    let same = |a: u32, b: u32| a == b || (f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan());
    let wide =
        |bits: [u32; 4], half: usize| f64::from_bits(u64::from(bits[2 * half + 1]) << 32 | u64::from(bits[2 * half]));
    let singles = (0..4).all(|lane| same(ours[lane], theirs[lane]));
    singles
        || (0..2).all(|half| {
            let (a, b) = (wide(ours, half), wide(theirs, half));
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
        })
}

macro_rules! compare {
    ($table:expr; $($name:literal, $intrinsic:expr, ($($argument:ident: $type:ty),*) $(, $immediate:expr)? => $result:ty;)*) => { $(
        {
            let name = concat!("oxisycl.x86.", $name, "\0");
            type Ours = unsafe extern "C" fn($($type,)* $(compare!(@immediate $immediate))?) -> $result;
            // SAFETY: the table defines the function with these types.
            let ours: libloading::Symbol<'_, Ours> = unsafe { $table.get(name.as_bytes()) }.expect(name);
            let values = registers();
            for (position, first) in values.iter().enumerate() {
                let mut operands = [*first, values[(position * 7 + 3) % values.len()]].into_iter();
                $(let $argument = <$type>::of(operands.next().expect("two operands at most"));)*
                // SAFETY: the processor was asked for SSE4.2; both functions only compute.
                let (ours, theirs) = unsafe { (ours($($argument,)* $($immediate)?), $intrinsic($($argument),*)) };
                assert!(agree(ours.bits(), theirs.bits()), "{name}: {first:x?} at {position}: {:x?} is not {:x?}", ours.bits(), theirs.bits());
            }
        }
    )* };
    (@immediate $immediate:expr) => { i32 };
}

type F = __m128;
type D = __m128d;
type I = __m128i;

#[test]
fn the_table_computes_what_the_processor_does() {
    assert!(
        std::is_x86_feature_detected!("sse4.2"),
        "the processor has to have SSE4.2, which the table is compared with"
    );
    let (table, _folder) = native_table("exact");
    compare! { table;
        "sse.min.ps", _mm_min_ps, (a: F, b: F) => F;
        "sse.max.ps", _mm_max_ps, (a: F, b: F) => F;
        "sse.min.ss", _mm_min_ss, (a: F, b: F) => F;
        "sse.max.ss", _mm_max_ss, (a: F, b: F) => F;
        "sse2.min.pd", _mm_min_pd, (a: D, b: D) => D;
        "sse2.max.pd", _mm_max_pd, (a: D, b: D) => D;
        "sse2.min.sd", _mm_min_sd, (a: D, b: D) => D;
        "sse2.max.sd", _mm_max_sd, (a: D, b: D) => D;
        "sse.cmp.ps", _mm_cmpeq_ps, (a: F, b: F), 0 => F;
        "sse.cmp.ps", _mm_cmplt_ps, (a: F, b: F), 1 => F;
        "sse.cmp.ps", _mm_cmple_ps, (a: F, b: F), 2 => F;
        "sse.cmp.ps", _mm_cmpunord_ps, (a: F, b: F), 3 => F;
        "sse.cmp.ps", _mm_cmpneq_ps, (a: F, b: F), 4 => F;
        "sse.cmp.ps", _mm_cmpnlt_ps, (a: F, b: F), 5 => F;
        "sse.cmp.ps", _mm_cmpnle_ps, (a: F, b: F), 6 => F;
        "sse.cmp.ps", _mm_cmpord_ps, (a: F, b: F), 7 => F;
        "sse.cmp.ss", _mm_cmpnlt_ss, (a: F, b: F), 5 => F;
        "sse2.cmp.pd", _mm_cmple_pd, (a: D, b: D), 2 => D;
        "sse2.cmp.sd", _mm_cmpneq_sd, (a: D, b: D), 4 => D;
        "sse.comieq.ss", _mm_comieq_ss, (a: F, b: F) => i32;
        "sse.comilt.ss", _mm_comilt_ss, (a: F, b: F) => i32;
        "sse.comile.ss", _mm_comile_ss, (a: F, b: F) => i32;
        "sse.comigt.ss", _mm_comigt_ss, (a: F, b: F) => i32;
        "sse.comige.ss", _mm_comige_ss, (a: F, b: F) => i32;
        "sse.comineq.ss", _mm_comineq_ss, (a: F, b: F) => i32;
        "sse.ucomieq.ss", _mm_ucomieq_ss, (a: F, b: F) => i32;
        "sse.ucomineq.ss", _mm_ucomineq_ss, (a: F, b: F) => i32;
        "sse2.comilt.sd", _mm_comilt_sd, (a: D, b: D) => i32;
        "sse2.ucomige.sd", _mm_ucomige_sd, (a: D, b: D) => i32;
        "sse.cvtss2si", _mm_cvtss_si32, (a: F) => i32;
        "sse.cvttss2si", _mm_cvttss_si32, (a: F) => i32;
        "sse.cvtss2si64", _mm_cvtss_si64, (a: F) => i64;
        "sse.cvttss2si64", _mm_cvttss_si64, (a: F) => i64;
        "sse2.cvtsd2si", _mm_cvtsd_si32, (a: D) => i32;
        "sse2.cvttsd2si", _mm_cvttsd_si32, (a: D) => i32;
        "sse2.cvtsd2si64", _mm_cvtsd_si64, (a: D) => i64;
        "sse2.cvttsd2si64", _mm_cvttsd_si64, (a: D) => i64;
        "sse2.cvtps2dq", _mm_cvtps_epi32, (a: F) => I;
        "sse2.cvttps2dq", _mm_cvttps_epi32, (a: F) => I;
        "sse2.cvtpd2dq", _mm_cvtpd_epi32, (a: D) => I;
        "sse2.cvttpd2dq", _mm_cvttpd_epi32, (a: D) => I;
        "sse2.cvtsd2ss", _mm_cvtsd_ss, (a: F, b: D) => F;
        "sse41.round.ps", _mm_round_ps::<8>, (a: F), 8 => F;
        "sse41.round.ps", _mm_round_ps::<9>, (a: F), 9 => F;
        "sse41.round.ps", _mm_round_ps::<10>, (a: F), 10 => F;
        "sse41.round.ps", _mm_round_ps::<11>, (a: F), 11 => F;
        "sse41.round.ps", _mm_round_ps::<4>, (a: F), 4 => F;
        "sse41.round.ss", _mm_round_ss::<9>, (a: F, b: F), 9 => F;
        "sse41.round.pd", _mm_round_pd::<8>, (a: D), 8 => D;
        "sse41.round.sd", _mm_round_sd::<10>, (a: D, b: D), 10 => D;
        "sse41.dppd", _mm_dp_pd::<0x31>, (a: D, b: D), 0x31 => D;
        "sse41.insertps", _mm_insert_ps::<0x9C>, (a: F, b: F), 0x9C => F;
        "sse41.insertps", _mm_insert_ps::<0x61>, (a: F, b: F), 0x61 => F;
        "sse2.packsswb.128", _mm_packs_epi16, (a: I, b: I) => I;
        "sse2.packuswb.128", _mm_packus_epi16, (a: I, b: I) => I;
        "sse2.packssdw.128", _mm_packs_epi32, (a: I, b: I) => I;
        "sse41.packusdw", _mm_packus_epi32, (a: I, b: I) => I;
        "sse2.psll.w", _mm_sll_epi16, (a: I, b: I) => I;
        "sse2.psll.d", _mm_sll_epi32, (a: I, b: I) => I;
        "sse2.psll.q", _mm_sll_epi64, (a: I, b: I) => I;
        "sse2.psrl.w", _mm_srl_epi16, (a: I, b: I) => I;
        "sse2.psrl.d", _mm_srl_epi32, (a: I, b: I) => I;
        "sse2.psrl.q", _mm_srl_epi64, (a: I, b: I) => I;
        "sse2.psra.w", _mm_sra_epi16, (a: I, b: I) => I;
        "sse2.psra.d", _mm_sra_epi32, (a: I, b: I) => I;
        "sse2.pmadd.wd", _mm_madd_epi16, (a: I, b: I) => I;
        "sse2.psad.bw", _mm_sad_epu8, (a: I, b: I) => I;
        "ssse3.pmadd.ub.sw.128", _mm_maddubs_epi16, (a: I, b: I) => I;
        "ssse3.pmul.hr.sw.128", _mm_mulhrs_epi16, (a: I, b: I) => I;
        "ssse3.psign.b.128", _mm_sign_epi8, (a: I, b: I) => I;
        "ssse3.psign.w.128", _mm_sign_epi16, (a: I, b: I) => I;
        "ssse3.psign.d.128", _mm_sign_epi32, (a: I, b: I) => I;
        "ssse3.pshuf.b.128", _mm_shuffle_epi8, (a: I, b: I) => I;
        "sse41.mpsadbw", _mm_mpsadbw_epu8::<0>, (a: I, b: I), 0 => I;
        "sse41.mpsadbw", _mm_mpsadbw_epu8::<6>, (a: I, b: I), 6 => I;
        "sse41.phminposuw", _mm_minpos_epu16, (a: I) => I;
        "sse41.ptestz", _mm_testz_si128, (a: I, b: I) => i32;
        "sse41.ptestc", _mm_testc_si128, (a: I, b: I) => i32;
        "sse41.ptestnzc", _mm_testnzc_si128, (a: I, b: I) => i32;
        "sse42.crc32.32.8", _mm_crc32_u8, (a: u32, b: u8) => u32;
        "sse42.crc32.32.16", _mm_crc32_u16, (a: u32, b: u16) => u32;
        "sse42.crc32.32.32", _mm_crc32_u32, (a: u32, b: u32) => u32;
        "sse42.crc32.64.64", _mm_crc32_u64, (a: u64, b: u64) => u64;
    }
    // Sums of four products: the processor may add them in another order, which random bits would show.
    let small = |bits: [u32; 4]| F::of(bits.map(|bits| ((bits % 2001) as f32 - 1000.0).to_bits()));
    type Dot = unsafe extern "C" fn(F, F, i32) -> F;
    // SAFETY: the table defines the function with these types.
    let dot: libloading::Symbol<'_, Dot> = unsafe { table.get(b"oxisycl.x86.sse41.dpps\0") }.expect("dpps");
    for pair in registers().windows(2) {
        let (a, b) = (small(pair[0]), small(pair[1]));
        // SAFETY: as in the comparisons above.
        let (ours, theirs) = unsafe { (dot(a, b, 0xB5), _mm_dp_ps::<0xB5>(a, b)) };
        assert_eq!(ours.bits(), theirs.bits());
    }
}

#[test]
fn approximate_reciprocals_are_within_the_processors_error() {
    let (table, _folder) = native_table("approximate");
    type Unary = unsafe extern "C" fn(F) -> F;
    for (name, intrinsic) in [("rcp", _mm_rcp_ps as unsafe fn(F) -> F), ("rsqrt", _mm_rsqrt_ps)] {
        let name = format!("oxisycl.x86.sse.{name}.ps");
        // SAFETY: the table defines the function with this type.
        let ours: libloading::Symbol<'_, Unary> = unsafe { table.get(name.as_bytes()) }.expect("a function");
        for step in 1..1000_u32 {
            let operand = F::of([1, 7, 100, 10_000].map(|scale: u32| (step as f32 * 0.37 * scale as f32).to_bits()));
            // SAFETY: both only compute; SSE is in every x86-64 processor.
            let (ours, theirs) = unsafe { (ours(operand).bits(), intrinsic(operand).bits()) };
            for (ours, theirs) in ours.iter().zip(theirs) {
                let (ours, theirs) = (f32::from_bits(*ours), f32::from_bits(theirs));
                assert!((ours - theirs).abs() <= ours.abs() * 1.5 / 4096.0, "{name}: {ours} {theirs}");
            }
        }
    }
}

/// The instruction leaves the upper parts of a vector, which the operation does not. What is of another type than the result is none of the two.
#[test]
fn assembly_of_other_types_stays() {
    let context = tests::context();
    let text = r#"
        define <4 x float> @vector(<4 x float> %x) {
            %r = call <4 x float> asm inteldialect "sqrtss ${0:x}, ${0:x}", "=&x,0"(<4 x float> %x)
            ret <4 x float> %r
        }
        define double @wide(double %x) {
            %r = call double asm inteldialect "sqrtss ${0:x}, ${0:x}", "=&x,0"(double %x)
            ret double %r
        }
        define float @mixed(i32 %x) {
            %r = call float asm inteldialect "sqrtss ${0:x}, ${0:x}", "=&x,0"(i32 %x)
            ret float %r
        }
        define float @single(float %x) {
            %r = call float asm inteldialect "sqrtss ${0:x}, ${0:x}", "=&x,0"(float %x)
            ret float %r
        }"#;
    let module = tests::module(&context, text);
    super::lower_assembly(&module);
    module.verify("the test").expect("a valid module");
    let is_assembly = ["vector", "wide", "mixed", "single"]
        .map(|name| module.function(name).expect("a function").print().contains("sqrtss"));
    assert_eq!(is_assembly, [true, true, true, false], "{module}");
}
