use core::fmt;

macro_rules! aspects {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A capability that a device has or lacks (SYCL 2020 section 4.6.4.3).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Aspect { $($(#[$doc])* $variant,)* }

        impl Aspect {
            /// Every aspect, in the order of the specification; extensions come last.
            pub const ALL: &'static [Aspect] = &[$(Aspect::$variant,)*];

            /// The specification's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

aspects! {
    /// The device is a CPU.
    Cpu = "cpu",
    /// The device is a GPU.
    Gpu = "gpu",
    /// The device is an accelerator.
    Accelerator = "accelerator",
    /// The device has fixed functions only.
    Custom = "custom",
    /// The device is emulated; true for simulated devices.
    Emulated = "emulated",
    /// Kernels on the device can be stepped through with a host debugger.
    HostDebuggable = "host_debuggable",
    /// 16-bit floating point.
    Fp16 = "fp16",
    /// 64-bit floating point.
    Fp64 = "fp64",
    /// 64-bit atomic operations.
    Atomic64 = "atomic64",
    /// Images.
    Image = "image",
    /// Device images can be compiled at run time.
    OnlineCompiler = "online_compiler",
    /// Device images can be linked at run time.
    OnlineLinker = "online_linker",
    /// Queues can record profiling times.
    QueueProfiling = "queue_profiling",
    /// Device allocations (`malloc_device`).
    UsmDeviceAllocations = "usm_device_allocations",
    /// Host allocations (`malloc_host`).
    UsmHostAllocations = "usm_host_allocations",
    /// Atomics on host allocations work across host and device.
    UsmAtomicHostAllocations = "usm_atomic_host_allocations",
    /// Shared allocations (`malloc_shared`).
    UsmSharedAllocations = "usm_shared_allocations",
    /// Atomics on shared allocations work across host and device.
    UsmAtomicSharedAllocations = "usm_atomic_shared_allocations",
    /// Any memory of the process can be used in kernels.
    UsmSystemAllocations = "usm_system_allocations",
    /// The device itself adds to floats in memory atomically, `f64` included if it has [`Fp64`](Self::Fp64). Kernels do it in a loop on
    /// devices that lack this. An extension.
    ExtOxisyclFloatAtomics = "ext_oxisycl_float_atomics",
    /// Atomic loads and stores of 128 bits. An extension.
    ExtOxisyclAtomic128 = "ext_oxisycl_atomic128",
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of aspects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Aspects(u64);

// One bit for each.
const _: () = assert!(Aspect::ALL.len() < u64::BITS as usize);

impl Aspects {
    /// The set without aspects.
    pub const NONE: Self = Self(0);

    /// The set of these aspects.
    pub const fn of(mut aspects: &[Aspect]) -> Self {
        let mut bits = 0;
        while let [first, rest @ ..] = aspects {
            bits |= 1 << *first as u32;
            aspects = rest;
        }
        Self(bits)
    }

    /// The set as a number, for programs of the same version.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The set that [`bits`](Self::bits) gave; `None` for a number that it never gives.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits >> Aspect::ALL.len() == 0 { Some(Self(bits)) } else { None }
    }

    /// The aspects of the set, in the order of [`Aspect::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Aspect> {
        Aspect::ALL.iter().copied().filter(move |aspect| self.0 & Self::of(&[*aspect]).0 != 0)
    }
}

impl fmt::Debug for Aspects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_numbers_and_come_back() {
        let all = Aspects::of(Aspect::ALL);
        assert!(all.iter().eq(Aspect::ALL.iter().copied()));
        assert_eq!(Aspects::from_bits(all.bits()), Some(all));
        assert_eq!(Aspects::from_bits(all.bits() + 1), None);
        let some = Aspects::of(&[Aspect::Fp64, Aspect::Cpu, Aspect::Fp64]);
        assert!(some.iter().eq([Aspect::Cpu, Aspect::Fp64]));
        assert_eq!(Aspects::from_bits(some.bits()), Some(some));
        assert_eq!((Aspects::NONE.iter().count(), Aspects::default()), (0, Aspects::NONE));
    }
}
