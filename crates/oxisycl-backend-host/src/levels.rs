//! Which native code of the device compiler the processor runs.
//!
//! Asks the processor once per process. Invariant: a level is listed only if the processor, and the system for its registers, has every feature of
//! it. Takes nothing where other code than the compiler's watches the program: Miri and loom.

use std::sync::LazyLock;

use oxisycl_image::{HostLevel, ImageTarget};

/// The triple that the program was compiled for; `None` if the device compiler makes no native code for it.
const TRIPLE: Option<&str> = if cfg!(any(miri, loom)) {
    None
} else if cfg!(all(target_arch = "x86_64", target_vendor = "unknown", target_os = "linux", target_env = "gnu")) {
    Some("x86_64-unknown-linux-gnu")
} else if cfg!(all(target_arch = "x86_64", target_vendor = "unknown", target_os = "linux", target_env = "musl")) {
    Some("x86_64-unknown-linux-musl")
} else {
    None
};

/// The targets of native code that the processor runs, best first. The last is that of code without a level.
pub(crate) fn native_levels() -> &'static [ImageTarget] {
    static TARGETS: LazyLock<Vec<ImageTarget>> =
        LazyLock::new(|| TRIPLE.map_or_else(Vec::new, |triple| targets(triple, has)));
    &TARGETS
}

fn targets(triple: &str, has: impl Fn(HostLevel) -> bool) -> Vec<ImageTarget> {
    let target = |level| ImageTarget::Host { triple: triple.to_owned(), level };
    // A processor of a level has those below, also where it has all features that only the higher one has.
    let levels: Vec<HostLevel> = HostLevel::ALL.into_iter().take_while(|level| has(*level)).collect();
    levels.into_iter().rev().map(Some).chain([None]).map(target).collect()
}

/// Whether the processor has what the level adds to the one below.
#[cfg(target_arch = "x86_64")]
fn has(level: HostLevel) -> bool {
    macro_rules! all {
        ($($feature:tt)*) => { true $(&& std::arch::is_x86_feature_detected!($feature))* };
    }
    match level {
        // With those of the second level, which has no code of its own.
        HostLevel::V3 => {
            all!("cmpxchg16b" "popcnt" "sse3" "ssse3" "sse4.1" "sse4.2")
                && has_lahf()
                && all!("avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "movbe" "xsave")
        }
        HostLevel::V4 => all!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"),
        _ => false,
    }
}

/// Whether `lahf` and `sahf` work in 64-bit mode. The standard library cannot be asked for this feature.
#[cfg(target_arch = "x86_64")]
fn has_lahf() -> bool {
    use std::arch::x86_64::__cpuid;
    const EXTENDED: u32 = 0x8000_0000;
    __cpuid(EXTENDED).eax > EXTENDED && __cpuid(EXTENDED + 1).ecx & 1 == 1
}

#[cfg(not(target_arch = "x86_64"))]
fn has(_level: HostLevel) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(targets: &[ImageTarget]) -> Vec<String> {
        targets.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_highest_level_comes_first_and_none_is_skipped() {
        let of = |known: &[HostLevel]| texts(&targets("t", |level| known.contains(&level)));
        assert_eq!(of(&[]), ["host:t"]);
        assert_eq!(of(&[HostLevel::V3]), ["host:t+x86-64-v3", "host:t"]);
        assert_eq!(of(&HostLevel::ALL), ["host:t+x86-64-v4", "host:t+x86-64-v3", "host:t"]);
        assert_eq!(of(&[HostLevel::V4]), ["host:t"], "a processor without what lies below is of no level");
    }

    /// The system's own list of what the processor has must name the features of each level that was found.
    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    fn the_levels_are_those_that_the_system_tells_of() {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags: Vec<&str> =
            text.lines().find(|line| line.starts_with("flags")).unwrap().split_whitespace().collect();
        let v3 = "cx16 popcnt pni ssse3 sse4_1 sse4_2 lahf_lm avx avx2 bmi1 bmi2 f16c fma abm movbe xsave";
        let v4 = "avx512f avx512bw avx512cd avx512dq avx512vl";
        let told = |names: &str| names.split(' ').all(|name| flags.contains(&name));
        let expected = targets("t", |level| told(if level == HostLevel::V3 { v3 } else { v4 }));
        assert_eq!(texts(&targets("t", has)), texts(&expected), "{flags:?}");
        assert_eq!(native_levels().len(), if TRIPLE.is_some() { expected.len() } else { 0 });
    }
}
