//! The address spaces, and what of one is of another.

/// An address space: the memory that a [`MultiPtr`](super::MultiPtr) leads to. Implemented by this crate only.
pub trait Space: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The name, as SYCL 2020 has it.
    const NAME: &'static str;
    #[doc(hidden)]
    const MEMORY: Memory;
}

/// The memories that devices tell apart.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Any of them.
    Any,
    Global,
    Local,
    Private,
    Constant,
}

mod sealed {
    /// See [`Space`](super::Space).
    pub trait Sealed {}
}

macro_rules! spaces {
    ($($(#[$doc:meta])* $name:ident $text:literal $memory:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {}
        impl sealed::Sealed for $name {}
        impl Space for $name {
            const NAME: &'static str = $text;
            const MEMORY: Memory = Memory::$memory;
        }
    )* };
}

spaces! {
    /// Any of the other spaces but [`Constant`]: the space of Rust's references and pointers.
    Generic "generic_space" Any;
    /// Memory of the device that all its work-items reach: buffers, USM allocations, statics.
    Global "global_space" Global;
    /// Global memory that is a device allocation (`ext_intel_global_device_space`).
    GlobalDevice "global_device_space" Global;
    /// Global memory that is a host allocation (`ext_intel_global_host_space`).
    GlobalHost "global_host_space" Global;
    /// Constants that a program keeps in constant memory, by [`Constant`](super::Constant).
    Constant "constant_space" Constant;
    /// Memory of a work-group.
    Local "local_space" Local;
    /// Variables of a work-item.
    Private "private_space" Private;
}

/// Each address of `Self` is one of `Whole`. A pointer widens by itself, and narrows only when asked. Implemented by this crate only.
#[diagnostic::on_unimplemented(
    message = "addresses of `{Self}` memory are not all addresses of `{Whole}` memory",
    label = "`{Self}` is no part of `{Whole}`",
    note = "from a wider space to a narrower one: `pointer.dynamic_cast()`, or `unsafe {{ pointer.static_cast() }}`",
    note = "other spaces have no address in common"
)]
pub trait Within<Whole: Space>: Space {}

/// The two spaces may have addresses in common, which are compared. Implemented by this crate only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{Other}` have no address in common",
    label = "never equal to an address of `{Other}` memory"
)]
pub trait Overlaps<Other: Space>: Space {}

/// Memory that a kernel may write. Implemented by this crate only.
#[diagnostic::on_unimplemented(message = "`{Self}` memory is only read")]
pub trait Writable: Space {}

/// Memory that several work-items reach, for atomic operations. Implemented by this crate only.
#[diagnostic::on_unimplemented(message = "only one work-item reaches `{Self}` memory, or none writes it")]
pub trait Shared: Writable {}

/// Memory that a launch may be passed addresses of. Implemented by this crate only.
#[diagnostic::on_unimplemented(
    message = "no launch is passed an address of `{Self}` memory",
    note = "local and private memory end with the kernel, and constants have an address of their own in each"
)]
pub trait Passed: Shared {}

macro_rules! within {
    ($($part:ident < $whole:ident),* $(,)?) => { $(
        impl Within<$whole> for $part {}
        impl Overlaps<$whole> for $part {}
        impl Overlaps<$part> for $whole {}
        impl<T> From<super::MultiPtr<T, $part>> for super::MultiPtr<T, $whole> {
            #[inline(always)]
            fn from(pointer: super::MultiPtr<T, $part>) -> Self {
                pointer.widen()
            }
        }
    )* };
}

within! {
    Global < Generic,
    GlobalDevice < Generic,
    GlobalHost < Generic,
    Local < Generic,
    Private < Generic,
    GlobalDevice < Global,
    GlobalHost < Global,
}

macro_rules! each {
    ($trait:ident: $($name:ident)*) => { $( impl $trait for $name {} )* };
}

macro_rules! own {
    ($($name:ident)*) => { $( impl Overlaps<$name> for $name {} )* };
}

own! { Generic Global GlobalDevice GlobalHost Constant Local Private }
each! { Writable: Generic Global GlobalDevice GlobalHost Local Private }
each! { Shared: Generic Global GlobalDevice GlobalHost Local }
each! { Passed: Generic Global GlobalDevice GlobalHost }
