//! What is known of devices when a program is compiled (SYCL 2020 section 4.6.4.4).
//!
//! The functions answer for every device that this version of OxiSYCL can compile for, the macros for those that the build names. Either way
//! the answers are the same on the host and in kernels.

use oxisycl_types::Aspect;

/// Whether any device that a program can be compiled for may have `aspect` (`any_device_has` of SYCL). If not, no device of the program
/// has it. `true` for every aspect. The macro of the same name answers for the targets of a build.
pub const fn any_device_has(_aspect: Aspect) -> bool {
    true
}

/// Whether all devices that a program can be compiled for have `aspect` (`all_devices_have` of SYCL). Only [`Aspect::Image`] is had by all. For
/// each of the others, some device runs kernels without it. A simulated device lacks the aspects that its configuration leaves out. The macro
/// of the same name answers for the targets of a build.
pub const fn all_devices_have(aspect: Aspect) -> bool {
    matches!(aspect, Aspect::Image)
}

/// Whether a device that this build makes code for may have an [`Aspect`] (`any_device_has` of SYCL). The build makes
/// code for the host device, and for those that run images of a target of `cargo sycl build --targets`. A constant.
///
/// Only crates that ask are compiled again when the targets change. Simulated devices do not count: they are for tests.
///
/// ```
/// // A build by plain cargo has code for the host device alone.
/// const BY_GPUS: bool = oxisycl::any_device_has!(Gpu);
/// # assert!(!BY_GPUS && oxisycl::any_device_has!(Fp64));
/// ```
#[macro_export]
macro_rules! any_device_has {
    ($aspect:ident) => {
        const { $crate::__compile_time::any_target_has(::core::option_env!("OXISYCL_TARGETS"), $crate::Aspect::$aspect) }
    };
}

/// Whether all devices that this build makes code for have an [`Aspect`] (`all_devices_have` of SYCL). The build makes
/// code for the host device, and for all that run images of a target of `cargo sycl build --targets`. A constant; see
/// [`any_device_has!`](crate::any_device_has!).
///
/// ```
/// // Without `f64` on all devices, sums are kept in two numbers.
/// const WITH_DOUBLES: bool = oxisycl::all_devices_have!(Fp64);
/// # assert!(WITH_DOUBLES && !oxisycl::all_devices_have!(Gpu));
/// ```
#[macro_export]
macro_rules! all_devices_have {
    ($aspect:ident) => {
        const { $crate::__compile_time::all_targets_have(::core::option_env!("OXISYCL_TARGETS"), $crate::Aspect::$aspect) }
    };
}

/// What is known of the devices that run code for one target.
#[derive(Clone, Copy, PartialEq)]
enum Has {
    All,
    Some,
    None,
}

/// For [`any_device_has!`](crate::any_device_has!): `targets` as in `--targets`, after names were made exact; the host always counts.
pub const fn any_target_has(targets: Option<&str>, aspect: Aspect) -> bool {
    let counts = count(targets, aspect);
    counts.1 < counts.0
}

/// For [`all_devices_have!`](crate::all_devices_have!), in the same way.
pub const fn all_targets_have(targets: Option<&str>, aspect: Aspect) -> bool {
    let counts = count(targets, aspect);
    counts.0 == counts.2
}

/// How many targets there are, the host among them; of how many no device, and of how many all devices have the aspect.
const fn count(targets: Option<&str>, aspect: Aspect) -> (usize, usize, usize) {
    let mut counts = (0, 0, 0);
    add(&mut counts, host_has(aspect));
    let Some(targets) = targets else { return counts };
    let (targets, mut begin) = (targets.as_bytes(), 0);
    while begin < targets.len() {
        let mut end = begin;
        while end < targets.len() && targets[end] != b',' {
            end += 1;
        }
        let (_, rest) = targets.split_at(begin);
        let (target, _) = rest.split_at(end - begin);
        match target {
            [b's', b'm', b'_', ..] => add(&mut counts, cuda_has(aspect)),
            [b's', b'p', b'i', b'r', b'v', ..] => add(&mut counts, opencl_has(aspect)),
            // No device runs images for other targets yet.
            _ => {}
        }
        begin = end + 1;
    }
    counts
}

const fn add(counts: &mut (usize, usize, usize), has: Has) {
    counts.0 += 1;
    match has {
        Has::All => counts.2 += 1,
        Has::Some => {}
        Has::None => counts.1 += 1,
    }
}

const fn host_has(aspect: Aspect) -> Has {
    match aspect {
        Aspect::Gpu
        | Aspect::Accelerator
        | Aspect::Custom
        | Aspect::Emulated
        | Aspect::OnlineCompiler
        | Aspect::OnlineLinker
        | Aspect::ExtOxisyclFloatAtomics => Has::None,
        _ => Has::All,
    }
}

/// NVIDIA GPUs from compute capability 7.0 on, with any driver.
const fn cuda_has(aspect: Aspect) -> Has {
    match aspect {
        Aspect::Gpu
        | Aspect::Fp16
        | Aspect::Fp64
        | Aspect::Atomic64
        | Aspect::Image
        | Aspect::OnlineCompiler
        | Aspect::OnlineLinker
        | Aspect::QueueProfiling
        | Aspect::UsmDeviceAllocations
        | Aspect::UsmHostAllocations
        | Aspect::ExtOxisyclFloatAtomics => Has::All,
        Aspect::UsmAtomicHostAllocations
        | Aspect::UsmSharedAllocations
        | Aspect::UsmAtomicSharedAllocations
        | Aspect::UsmSystemAllocations
        | Aspect::ExtOxisyclAtomic128 => Has::Some,
        _ => Has::None,
    }
}

const fn opencl_has(aspect: Aspect) -> Has {
    match aspect {
        Aspect::Image | Aspect::QueueProfiling | Aspect::UsmDeviceAllocations => Has::All,
        Aspect::Emulated | Aspect::HostDebuggable | Aspect::ExtOxisyclAtomic128 => Has::None,
        _ => Has::Some,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_about_the_host_and_the_targets_of_the_build() {
        let ask = |targets, aspect| (any_target_has(targets, aspect), all_targets_have(targets, aspect));
        assert_eq!(ask(None, Aspect::Fp64), (true, true));
        assert_eq!(ask(None, Aspect::Gpu), (false, false));
        assert_eq!(ask(Some("sm_90"), Aspect::Fp64), (true, true));
        assert_eq!(ask(Some("sm_90"), Aspect::Gpu), (true, false), "the host is none");
        assert_eq!(ask(Some("sm_70,spirv1.2"), Aspect::Fp64), (true, false));
        assert_eq!(ask(Some("spirv1.2"), Aspect::Accelerator), (true, false));
        assert_eq!(ask(Some("sm_70,sm_90"), Aspect::Accelerator), (false, false));
        assert_eq!(ask(Some("gfx90a"), Aspect::QueueProfiling), (true, true));
        for targets in [None, Some(""), Some("sm_70,spirv1.2"), Some("gfx90a,,sm_80")] {
            for &aspect in Aspect::ALL {
                let (any, all) = ask(targets, aspect);
                assert!(any || !all, "{targets:?} {aspect}");
            }
            assert_eq!(ask(targets, Aspect::UsmDeviceAllocations), (true, true));
        }
    }
}
