//! Single items that the compiler knows, by their names and the crates that must define them.
//!
//! Most symbols are of other items: a part of their names tells them apart, without demangling.

use super::{Origin, of, of_path, path_in, path_unless_borrowed};
use crate::symbols::{path, plain_path};

/// The name of a function of `oxisycl_device::builtin`.
pub(crate) fn builtin(symbol: &str) -> Option<String> {
    path_in(symbol, &[Origin::Device])?.strip_prefix("oxisycl_device::builtin::").map(str::to_owned)
}

/// Whether a closure of an item loop is that of work-items which give to reductions.
pub(crate) fn is_of_reductions(symbol: &str) -> bool {
    path_in(symbol, &[Origin::Device]).is_some_and(|path| path.starts_with("oxisycl_device::group::reduction::"))
}

/// The trait whose implementations describe kernels.
pub(crate) const DESCRIPTION: &str = "DescribeKernel";

/// Whether a function describes a kernel. Implementations in user code do not count: the trait is unsafe to implement, and only the device
/// library's implementations keep its promise.
pub(crate) fn describes_kernel(symbol: &str) -> bool {
    symbol.contains(DESCRIPTION)
        && of(symbol) == Origin::Device
        && path(symbol).contains(" as oxisycl_device::kernel::DescribeKernel>::")
}

/// The module of values that kernels may be compiled with.
const SPECIALIZED: &[&str] = &["oxisycl_device", "argument", "specialized"];

/// Modules whose types may hold raw pointers. A user's module with the same path gains nothing. Rust's compiler keeps raw pointers of safe
/// code from kernels, and references are refused there as anywhere.
pub(crate) fn may_hold_addresses(namespaces: &[impl AsRef<str>]) -> bool {
    let trusted: [&[&str]; 9] = [
        &["oxisycl_device", "accessor"],
        &["oxisycl_device", "argument", "bits"],
        &["oxisycl_device", "argument", "memory"],
        SPECIALIZED,
        &["oxisycl_device", "chunks"],
        &["oxisycl_device", "group", "reduction", "target"],
        &["oxisycl_device", "images", "pixels"],
        &["oxisycl_device", "multi_ptr"],
        &["oxisycl", "usm"],
    ];
    let begins = |trusted: &[&str]| {
        trusted.len() <= namespaces.len()
            && trusted.iter().zip(namespaces).all(|(trusted, namespace)| *trusted == namespace.as_ref())
    };
    trusted.iter().any(|trusted| begins(trusted))
}

/// Whether a type is of the module of values that kernels may be compiled with.
pub(crate) fn is_specialized(namespaces: &[impl AsRef<str>]) -> bool {
    namespaces.iter().map(AsRef::as_ref).eq(SPECIALIZED.iter().copied())
}

/// The name of a function of `oxisycl-builtins` for numbers of single precision.
pub(crate) fn single_precision(symbol: &str) -> Option<String> {
    let path = symbol.contains("oxisycl_builtins").then(|| path_in(symbol, &[Origin::Builtins]))??;
    let (_, name) = path.strip_prefix("oxisycl_builtins::single::")?.split_once("::")?;
    Some(name.to_owned())
}

/// Whether a function belongs to Rust's compiler runtime library. The rest of the standard library is no part of that.
pub(crate) fn is_of_runtime_library(symbol: &str) -> bool {
    of(symbol) == Origin::Standard && path(symbol).starts_with("compiler_builtins::")
}

/// A function of Rust's allocator interface. These are made when a program is linked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Allocation {
    Allocate,
    AllocateZeroed,
    Grow,
    Free,
    /// A symbol that shows that an allocator was linked.
    Mark,
    /// Functions that are called when memory is exhausted, and others that programs may get in future.
    Other,
}

/// The function of the allocator interface that a symbol is. Its crate is rustc's own, or there is none; see [`RESERVED`](super::RESERVED).
pub(crate) fn allocation(symbol: &str) -> Option<Allocation> {
    let path = symbol.contains("__rust").then(|| plain_path(symbol))?;
    let name = path.strip_prefix("__rustc::").unwrap_or(&path);
    if name.contains("::") || !name.starts_with("__rust_") {
        return None;
    }
    Some(match name {
        "__rust_alloc" => Allocation::Allocate,
        "__rust_alloc_zeroed" => Allocation::AllocateZeroed,
        "__rust_realloc" => Allocation::Grow,
        "__rust_dealloc" => Allocation::Free,
        _ if name.starts_with("__rust_no_alloc_shim_is_unstable") => Allocation::Mark,
        _ => Allocation::Other,
    })
}

/// Whether a function allocates or frees heap memory.
pub(crate) fn is_allocation(symbol: &str) -> bool {
    allocation(symbol).is_some()
}

/// Whether a function is the method `load` of an atomic type, or one that this method calls.
pub(crate) fn loads_atomically(symbol: &str) -> bool {
    symbol.contains("atomic")
        && path_in(symbol, &[Origin::Standard]).is_some_and(|path| {
            let item = path.strip_prefix("core::sync::atomic::");
            item.is_some_and(|item| item == "atomic_load" || item.ends_with("::load"))
        })
}

/// Whether a function is behind `is_x86_feature_detected!` or a similar macro: it tells whether the CPU feature with a number is available.
pub(crate) fn asks_for_feature(symbol: &str) -> bool {
    let questions = ["std_detect::detect::cache::test", "std_detect::detect::check_for"];
    symbol.contains("std_detect")
        && path_in(symbol, &[Origin::Standard]).is_some_and(|path| questions.contains(&path.as_str()))
}

/// Whether a function queries CPU features: one behind those macros, or one of the standard library that is such an instruction.
pub(crate) fn asks_the_processor(symbol: &str) -> bool {
    let wrappers = ["::__cpuid", "::__cpuid_count", "::__get_cpuid_max", "::_xgetbv"];
    let is_candidate = ["cpuid", "xgetbv"].iter().any(|part| symbol.contains(part));
    asks_for_feature(symbol)
        || is_candidate
            && path_in(symbol, &[Origin::Standard])
                .is_some_and(|path| wrappers.iter().any(|wrapper| path.ends_with(wrapper)))
}

/// Whether the function with the path `path` is defined inside the function `outer`.
pub(crate) fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.starts_with("::"))
}

/// Whether both paths begin with the same crate. Paths of implementations begin with a type, and may be of the trait's crate.
pub(crate) fn are_of_one_crate(path: &str, other: &str) -> bool {
    let root =
        |path: &str| path.split_once("::").map(|(root, _)| root.to_owned()).filter(|root| !root.starts_with('<'));
    root(path).is_some_and(|crate_name| root(other) == Some(crate_name))
}

/// Whether a function, by its name, is a debug-only check of a precondition of unsafe code in the standard library.
pub(crate) fn checks_a_precondition(symbol: &str) -> bool {
    symbol.contains("precondition_check")
        && path_in(symbol, &[Origin::Standard]).is_some_and(|path| path.ends_with("::precondition_check"))
}

/// Whether a function is `Location::caller`.
pub(crate) fn gives_caller(symbol: &str) -> bool {
    path_in(symbol, &[Origin::Standard]).is_some_and(|path| {
        path.trim_start_matches('<').starts_with("core::panic::location::Location") && path.ends_with("::caller")
    })
}

/// Whether a function is the standard library's midpoint of two `f32`, which computes in `f64`.
pub(crate) fn is_midpoint_of_singles(symbol: &str) -> bool {
    symbol.contains("midpoint")
        && path_in(symbol, &[Origin::Standard]).is_some_and(|path| path == "core::f32::midpoint")
}

/// A function of the crate `libm`.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Libm {
    /// The function's name in C.
    pub(crate) name: String,
    /// Whether the function is an operation of the host's processor, written in assembly.
    pub(crate) is_native: bool,
}

/// The function of `libm`, or of its copy in Rust's runtime library. Internal functions of these do not count. `borrowed` has the
/// [`REPLACED`](super::REPLACED) names of other crates.
pub(crate) fn of_libm(symbol: &str, borrowed: &[String]) -> Option<Libm> {
    let origins = [Origin::Standard, Origin::Libm];
    libm(&symbol.contains("libm").then(|| path_unless_borrowed(symbol, &origins, borrowed))??)
}

fn libm(path: &str) -> Option<Libm> {
    let (module, name) = path.strip_prefix("libm::math::")?.split_once("::")?;
    let is_native = module == "arch";
    let name = if is_native { name.rsplit("::").next()? } else { name };
    let is_part = matches!(module, "generic" | "support") || name.contains("::");
    (!is_part).then(|| Libm { name: name.to_owned(), is_native })
}

/// The end of a function's path, and the name of its replacement in `native.ll`. The two forms of a fused product are those of versions of
/// `libm`.
const BY_INTEGERS: [(&str, &str); 14] = [
    ("half::binary16::arch::f32_to_f16_fallback", "oxisycl.half.f32_to_f16"),
    ("half::binary16::arch::f64_to_f16_fallback", "oxisycl.half.f64_to_f16"),
    ("half::binary16::arch::f16_to_f32_fallback", "oxisycl.half.f16_to_f32"),
    ("half::binary16::arch::f16_to_f64_fallback", "oxisycl.half.f16_to_f64"),
    ("half::bfloat::convert::f32_to_bf16", "oxisycl.half.f32_to_bf16"),
    ("half::bfloat::convert::f64_to_bf16", "oxisycl.half.f64_to_bf16"),
    ("half::bfloat::convert::bf16_to_f32", "oxisycl.half.bf16_to_f32"),
    ("half::bfloat::convert::bf16_to_f64", "oxisycl.half.bf16_to_f64"),
    ("::math::arch::x86::sqrt", "oxisycl.libm.sqrt"),
    ("::math::arch::x86::sqrtf", "oxisycl.libm.sqrtf"),
    ("::math::arch::x86::fma::fma", "oxisycl.libm.fma"),
    ("::math::arch::x86::fma::fmaf", "oxisycl.libm.fmaf"),
    ("::math::frexp::frexp", "oxisycl.libm.frexp"),
    ("::math::frexpf::frexpf", "oxisycl.libm.frexpf"),
];

/// The replacement in `native.ll` for a function of `half` or `libm`. `borrowed` is as in [`of_libm`].
pub(crate) fn by_integers(symbol: &str, borrowed: &[String]) -> Option<&'static str> {
    let is_candidate = ["4half", "4arch3x86", "frexp"].iter().any(|part| symbol.contains(part));
    let origins = [Origin::Half, Origin::Libm, Origin::Standard];
    let path = is_candidate.then(|| path_unless_borrowed(symbol, &origins, borrowed))??;
    BY_INTEGERS.iter().find(|(function, _)| path.ends_with(function)).map(|(_, body)| *body)
}

/// Whether a function only calls what the user wrote: our entries and accessors, and calls of closures. Unnamed constants count as well.
/// Used for messages.
pub(crate) fn is_glue(path: &str) -> bool {
    of_path(path) == Origin::Device
        || ["oxisycl_entry.", "core::ops::function::"].iter().any(|part| path.starts_with(part))
        || !path.contains("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_libm_are_told_by_their_paths() {
        let named = |name: &str, is_native| Some(Libm { name: name.to_owned(), is_native });
        assert_eq!(libm("libm::math::sqrt::sqrtf"), named("sqrtf", false));
        assert_eq!(libm("libm::math::arch::x86::sqrtf"), named("sqrtf", true));
        assert_eq!(libm("libm::math::arch::x86::fma::fma"), named("fma", true));
        assert_eq!(libm("libm::math::generic::sqrt::sqrt"), None);
        assert_eq!(libm("other::math::sqrt::sqrt"), None);
    }

    #[test]
    fn a_users_functions_of_the_same_names_are_none_of_them() {
        assert!(is_midpoint_of_singles("_ZN4core3f3221_$LT$impl$u20$f32$GT$8midpoint17h8e08b63f9508d121E"));
        assert!(!is_midpoint_of_singles("_ZN3app4core3f328midpoint17h8e08b63f9508d121E"));
        assert!(checks_a_precondition("_ZN4core3ptr5write18precondition_check17h0123456789abcdefE"));
        assert!(!checks_a_precondition("_ZN3app4core18precondition_check17h0123456789abcdefE"));
        assert_eq!(by_integers("_ZN4libm4math5frexp5frexp17h0123456789abcdefE", &[]), Some("oxisycl.libm.frexp"));
        assert_eq!(by_integers("_ZN3app4math5frexp5frexp17h0123456789abcdefE", &[]), None);
        let is_device_code = "_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E";
        assert_eq!(builtin(is_device_code).as_deref(), Some("is_device_code"));
        assert_eq!(builtin("_ZN3app14oxisycl_device7builtin14is_device_code17hd37baa6394757393E"), None);
        let gives =
            "14oxisycl_device5group9reduction4tree13give_of_range28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE";
        assert!(is_of_reductions(&format!("_ZN{gives}")) && !is_of_reductions(&format!("_ZN3app{gives}")));
        assert!(asks_for_feature("_ZN10std_detect6detect9check_for17h0123456789abcdefE"));
        assert!(!asks_for_feature("_ZN3app10std_detect6detect9check_for17h0123456789abcdefE"));
    }

    #[test]
    fn functions_of_the_allocator_are_of_rustcs_own_crate_or_of_none() {
        for symbol in ["__rust_alloc", "_RNvCs1234_7___rustc12___rust_alloc"] {
            assert_eq!(allocation(symbol), Some(Allocation::Allocate), "{symbol}");
        }
        assert_eq!(allocation("_RNvCs1234_7___rustc35___rust_no_alloc_shim_is_unstable_v2"), Some(Allocation::Mark));
        for symbol in [
            "_ZN8__rust_x12__rust_alloc17h0123456789abcdefE",
            "_ZN12__rust_alloc12__rust_alloc17h0123456789abcdefE",
            "_RNvNtCs1234_7___rustc1m12___rust_alloc",
            "_ZN3app12__rust_alloc17h0123456789abcdefE",
            "memcpy",
        ] {
            assert_eq!(allocation(symbol), None, "{symbol}");
        }
    }

    #[test]
    fn a_crate_that_only_bears_the_name_has_none_of_the_functions_of_a_published_one() {
        let (libm, half) = (["libm".to_owned()], ["half".to_owned()]);
        let (sine, frexp) =
            ("_ZN4libm4math3sin4sinf17h0123456789abcdefE", "_ZN4libm4math5frexp5frexp17h0123456789abcdefE");
        let narrow = "_ZN4half8binary164arch19f32_to_f16_fallback17h0123456789abcdefE";
        let known = |borrowed: &[String]| {
            let found = [by_integers(frexp, borrowed), by_integers(narrow, borrowed)];
            (of_libm(sine, borrowed).is_some(), found.map(|found| found.is_some()))
        };
        assert_eq!(known(&[]), (true, [true, true]));
        assert_eq!(known(&libm), (false, [false, true]));
        assert_eq!(known(&half), (true, [true, false]));
        // The standard library is not a user's by that.
        let own = "_ZN17compiler_builtins4math4arch3x864sqrt17h0123456789abcdefE";
        assert_eq!(by_integers(own, &libm), Some("oxisycl.libm.sqrt"));
        assert_eq!(by_integers(own, &["compiler_builtins".to_owned()]), Some("oxisycl.libm.sqrt"));
    }

    #[test]
    fn addresses_are_believed_in_modules_of_ours_and_below() {
        assert!(may_hold_addresses(&["oxisycl_device", "accessor"]));
        assert!(may_hold_addresses(&["oxisycl", "usm", "inner"]));
        assert!(may_hold_addresses(&["oxisycl_device", "images", "pixels"]));
        assert!(may_hold_addresses(&["oxisycl_device", "group", "reduction", "target"]));
        assert!(may_hold_addresses(&["oxisycl_device", "argument", "specialized"]));
        for other in [
            &["oxisycl_device"][..],
            &["app", "argument", "specialized"],
            &["oxisycl_device", "group"],
            &["app", "oxisycl", "usm"],
            &[],
        ] {
            assert!(!may_hold_addresses(other), "{other:?}");
        }
    }
}
