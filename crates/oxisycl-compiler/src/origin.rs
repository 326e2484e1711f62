//! Tells which crate an item comes from, by its symbol, and which items the compiler knows.
//!
//! Several stages replace an item of the standard library, of OxiSYCL, or of a few published crates, or believe what it says. They ask
//! this module first whose it is, and compare its path afterwards. A path alone proves nothing: a user's function may be called
//! `precondition_check`, and a user's module `math::frexp`. What counts is the crate at the root of the path. Only the text of
//! a message may depend on a path alone. Nothing outside of this module compares paths, which `cargo xtask tidy` holds.
//!
//! Invariant: an item has an [`Origin`] other than [`Origin::Other`] only if a crate of that name defines it. `cargo sycl` refuses crates
//! that bear a [`RESERVED`] name and are not what the name says, so that the name cannot be borrowed.
//! The names of [`REPLACED`] crates may be borrowed. Which of them are is said to the passes that replace functions of these crates.

mod closures;
mod files;
mod formatting;
mod host;
mod items;
mod kept;
mod panics;

pub(crate) use closures::{closure_code, is_closure_type, type_path};
pub(crate) use files::{is_library_file, is_users_file};
pub(crate) use formatting::{
    Formatted, Formatter, formats, formats_itself, formatter, is_method, library_formats, pads, writes_text,
};
pub(crate) use host::{HostFunction, host_function, is_foreign, library_position, shown_name};
pub(crate) use items::{
    Allocation, DESCRIPTION, Libm, allocation, are_of_one_crate, asks_for_feature, asks_the_processor, builtin,
    by_integers, checks_a_precondition, describes_kernel, gives_caller, is_allocation, is_glue, is_midpoint_of_singles,
    is_of_reductions, is_of_runtime_library, is_specialized, is_within, loads_atomically, may_hold_addresses, of_libm,
    single_precision,
};
pub(crate) use kept::{is_of_runtime, kept};
pub(crate) use panics::{PanicMessage, SLICE_ERROR, cuts_a_string, ending, last_name, message_of};

use crate::symbols::{closing, is_of_name, path, plain_path, without_numbers};

/// Names that no crate of a user may have in a program with kernels. They are the crates of the standard library, and rustc's namespace for
/// symbols that lead to the allocator.
pub const RESERVED: [&str; 6] = ["core", "alloc", "std", "std_detect", "compiler_builtins", "__rustc"];

/// Published crates some of whose functions the compiler replaces by the device's. Another crate with such a name keeps its functions, if
/// [`Options::borrowed`](crate::Options::borrowed) has the name.
pub const REPLACED: [&str; 2] = ["libm", "half"];

/// A crate that the compiler knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// One of [`RESERVED`].
    Standard,
    /// `oxisycl-device`.
    Device,
    /// `oxisycl-builtins`.
    Builtins,
    /// Another crate of OxiSYCL, or one with the name of one.
    Facade,
    Libm,
    Half,
    /// A user's crate, a crate that the compiler does not know, or a symbol that is not Rust's.
    Other,
}

impl Origin {
    fn of_crate(name: &str) -> Self {
        match name {
            _ if RESERVED.contains(&name) => Self::Standard,
            "oxisycl_device" => Self::Device,
            "oxisycl_builtins" => Self::Builtins,
            "libm" => Self::Libm,
            "half" => Self::Half,
            // Nothing but messages depends on these, so that a user's crate may have such a name.
            _ if name == "oxisycl" || name.starts_with("oxisycl_") => Self::Facade,
            _ => Self::Other,
        }
    }

    /// Whether the crate's name, if it is a [`REPLACED`] one, is in `borrowed`.
    fn is_borrowed(self, borrowed: &[String]) -> bool {
        let is_it = |name: &String| Self::of_crate(name) == self;
        matches!(self, Self::Libm | Self::Half) && borrowed.iter().any(is_it)
    }

    /// Whether the crate is OxiSYCL's own, by its name. Used for messages only.
    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Device | Self::Builtins | Self::Facade)
    }
}

/// The crate that defines an item.
pub(crate) fn of(symbol: &str) -> Origin {
    match defining_crate(without_numbers(symbol)) {
        Some(name) => Origin::of_crate(name),
        None => of_path(&path(symbol)),
    }
}

/// The path of an item without type arguments, if one of the crates `origins` defines it.
fn path_in(symbol: &str, origins: &[Origin]) -> Option<String> {
    origins.contains(&of(symbol)).then(|| plain_path(symbol))
}

/// The path of an item without type arguments, if one of the crates `origins` defines it, and that crate is not a `borrowed` one.
fn path_unless_borrowed(symbol: &str, origins: &[Origin], borrowed: &[String]) -> Option<String> {
    let origin = of(symbol);
    (origins.contains(&origin) && !origin.is_borrowed(borrowed)).then(|| plain_path(symbol))
}

/// The crate that the path of an item begins with. In the path of an implementation, `<A as B>::f`, there are several. The implementation
/// belongs to the crate of the type or of the trait. It counts as a user's if one of them is a user's.
pub(crate) fn of_path(path: &str) -> Origin {
    if !path.starts_with('<') {
        return path.split_once("::").map_or(Origin::Other, |(root, _)| Origin::of_crate(root));
    }
    let joined = |found: Origin, next: Origin| match (found, next) {
        (Origin::Other, _) | (_, Origin::Other) => Origin::Other,
        (Origin::Standard, other) | (other, Origin::Standard) => other,
        (one, other) if one == other => one,
        // Types of ours in a trait of ours.
        _ => Origin::Facade,
    };
    // Without any crate nothing is known.
    roots(path).map(Origin::of_crate).reduce(joined).unwrap_or(Origin::Other)
}

/// The root crates of all paths in a text: `<core::ops::Range<usize> as app::Trait>::f` has `core` and `app`.
fn roots(text: &str) -> impl Iterator<Item = &str> {
    // Only what stands within the outermost brackets; the rest is a name.
    let text = &text[..closing(text).unwrap_or(text.len())];
    text.match_indices("::").filter_map(move |(at, _)| {
        let name = &text[..at];
        let start = name.rfind(|letter| !is_of_name(letter)).map_or(0, |before| before + 1);
        let is_first = !text[..start].ends_with("::");
        (is_first && start < at).then(|| &text[start..at])
    })
}

/// The crate in a symbol of Rust's v0 mangling, which has it also for implementations. `None` for other symbols, and for the few that begin
/// with a type.
fn defining_crate(symbol: &str) -> Option<&str> {
    let mut rest = symbol.strip_prefix("_R")?.trim_start_matches(|digit: char| digit.is_ascii_digit());
    loop {
        let kind = rest.chars().next()?;
        rest = &rest[kind.len_utf8()..];
        match kind {
            // A name within a path; its namespace comes first.
            'N' => rest = rest.get(1..)?,
            // A path with arguments.
            'I' => {}
            // An implementation, which begins with the path that it stands in.
            'M' | 'X' => rest = without_disambiguator(rest)?,
            'C' => return identifier(without_disambiguator(rest)?),
            _ => return None,
        }
    }
}

fn without_disambiguator(text: &str) -> Option<&str> {
    match text.strip_prefix('s') {
        Some(rest) => rest.split_once('_').map(|(_, rest)| rest),
        None => Some(text),
    }
}

fn identifier(text: &str) -> Option<&str> {
    let digits = text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let length: usize = text[..digits].parse().ok()?;
    let name = &text[digits..];
    let name = name.strip_prefix('_').unwrap_or(name);
    name.get(..length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_belong_to_the_crate_at_the_root_of_their_path() {
        for (symbol, origin) in [
            ("_ZN4core3ptr5write18precondition_check17h0123456789abcdefE", Origin::Standard),
            ("_ZN3app4core18precondition_check17h0123456789abcdefE", Origin::Other),
            ("_ZN3app4math5frexp5frexp17h0123456789abcdefE", Origin::Other),
            ("_ZN4libm4math5frexp5frexp17h0123456789abcdefE", Origin::Libm),
            ("_ZN14oxisycl_device7builtin14is_device_code17hd37baa6394757393E", Origin::Device),
            ("_ZN3app14oxisycl_device7builtin14is_device_code17hd37baa6394757393E", Origin::Other),
            ("_RNvNtCs1234_14oxisycl_device7builtin14is_device_code", Origin::Device),
            ("_RNvNtNtCs1234_4core3ptr5write18precondition_check", Origin::Standard),
            ("_RNvNtNtCs1234_3app4core18precondition_check", Origin::Other),
            ("precondition_check", Origin::Other),
            ("oxisycl_entry.k", Origin::Other),
        ] {
            assert_eq!(of(symbol), origin, "{symbol}");
        }
    }

    #[test]
    fn an_implementation_is_a_users_if_its_type_or_its_trait_is() {
        for (path, origin) in [
            ("<core::ops::range::Range<usize> as core::slice::index::SliceIndex<[T]>>::get", Origin::Standard),
            ("<[T] as core::fmt::Debug>::fmt", Origin::Standard),
            ("<core::ops::range::Range<usize> as app::core::Trait>::precondition_check", Origin::Other),
            ("<app::Thing as core::fmt::Debug>::fmt", Origin::Other),
            ("<T as U>::precondition_check", Origin::Other),
            ("<f32 as oxisycl_builtins::operation::Operations>::fma", Origin::Builtins),
            (
                "<oxisycl_device::kernel::RangeForm<_,_> as oxisycl_device::kernel::DescribeKernel>::entry",
                Origin::Device,
            ),
            ("<app::RangeForm as oxisycl_device::kernel::DescribeKernel>::entry", Origin::Other),
            ("<fn(u32) -> app::X as core::ops::function::FnOnce<()>>::call_once", Origin::Other),
            ("<fn(core::cmp::Ordering) -> u32 as app::Tr>::precondition_check", Origin::Other),
            // A letter of two characters, the second of which is a mark.
            ("<u32 as q\u{301}a::core::Tr>::precondition_check", Origin::Other),
        ] {
            assert_eq!(of_path(path), origin, "{path}");
        }
    }

    #[test]
    fn a_symbol_with_the_type_of_a_function_in_it_is_of_the_crate_behind_the_arrow() {
        let users = "_ZN78_$LT$fn$LP$core..cmp..Ordering$RP$$u20$.$GT$$u20$u32$u20$as$u20$arrow1..Tr$GT$18precondition_check17h17403bd248699db3E";
        assert_eq!(of(users), Origin::Other);
    }

    #[test]
    fn the_newer_mangling_tells_the_crate_of_an_implementation() {
        // `<u32 as core::cmp::PartialEq>::eq`, in a module of `core`.
        assert_eq!(defining_crate("_RNvXs_NtCsabc_4core3cmpmNtB4_9PartialEq2eq"), Some("core"));
        assert_eq!(defining_crate("_RINvMs0_NtCsabc_3app5thingNtB5_5Thing3getmE"), Some("app"));
        assert_eq!(defining_crate("_RNvYmNtCsabc_3app5Trait2eq"), None, "a method that a trait provides");
        assert_eq!(defining_crate("_ZN4core3ptr"), None);
    }

    #[test]
    fn only_the_asked_crates_give_a_path() {
        let symbol = "_ZN4libm4math5frexp5frexp17h0123456789abcdefE";
        assert_eq!(path_in(symbol, &[Origin::Libm]).as_deref(), Some("libm::math::frexp::frexp"));
        assert_eq!(path_in(symbol, &[Origin::Standard]), None);
    }
}
