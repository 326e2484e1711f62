//! Kernels with arguments beside them: the block that a launch copies, and the code that runs it.

use core::any::TypeId;
use core::marker::PhantomData;
use core::mem::offset_of;

use oxisycl_types::{ArgumentPart, ArgumentType, HostChunk, HostEntry, LaunchRange};

use super::{DeviceForm, Launch, States, Unstated};
use crate::kernel::{DescribeKernel, run_range, run_single};
use crate::{Item, Single};

/// A kernel, and the arguments that each call gets. What the kernel captures comes first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bound<K, S> {
    /// The kernel.
    pub kernel: K,
    /// What crosses for its arguments.
    pub arguments: S,
}

impl<K, S: DeviceForm> Bound<K, S> {
    /// The list of what crosses.
    pub const TYPE: &'static ArgumentType = &ArgumentType {
        type_name: core::any::type_name::<K>,
        size: size_of::<Self>(),
        length: ArgumentType::NO_ARRAY,
        parts: &[
            ArgumentPart {
                name: "captures",
                offset: offset_of!(Self, kernel),
                part: &ArgumentType::leaf(core::any::type_name::<K>, size_of::<K>()),
            },
            ArgumentPart { name: "", offset: offset_of!(Self, arguments), part: S::TYPE },
        ],
    };
}

/// What a kernel gets for its arguments.
///
/// # Safety
/// Inside the launch that the arguments were taken apart for, whose call of the kernel `'k` ends with.
#[inline(always)]
pub unsafe fn values<'k, S: DeviceForm>(arguments: S) -> S::Value<'k> {
    // SAFETY: by the contract of this function.
    unsafe { arguments.reconstruct(Launch::new()) }
}

/// The form of `parallel_for_with`, for a kernel that states `R`.
#[derive(Debug)]
pub struct RangeFormWith<K, S, const D: usize, R = Unstated>(pub PhantomData<(K, S, R)>);

/// The form of `single_task_with`, for a kernel that states `R`.
#[derive(Debug)]
pub struct SingleFormWith<K, S, R = Unstated>(pub PhantomData<(K, S, R)>);

/// The methods that a form has in common with its form without arguments, for a block of both.
macro_rules! describes_block {
    () => {
        fn type_id(&self) -> TypeId
        where
            Self: 'static,
        {
            // A kernel is another one with what it states than without it.
            if R::IS_ANY { TypeId::of::<(Bound<K, S>, R)>() } else { TypeId::of::<Bound<K, S>>() }
        }

        fn layout(&self) -> (usize, usize) {
            (size_of::<Bound<K, S>>(), align_of::<Bound<K, S>>())
        }

        fn type_name(&self) -> &'static str {
            core::any::type_name::<K>()
        }

        fn group(&self) -> u64 {
            R::GROUP
        }

        fn aspects(&self) -> u64 {
            R::ASPECTS
        }

        fn sub_group(&self) -> u32 {
            R::SUB_GROUP
        }

        fn arguments(&self) -> Option<&'static ArgumentType> {
            Some(Bound::<K, S>::TYPE)
        }
    };
}

// SAFETY: all methods are about the block, but for the name, which is that of the user's type in it. The entry is that of a range of `D`
// dimensions.
unsafe impl<K, S: DeviceForm, R: States, const D: usize> DescribeKernel for RangeFormWith<K, S, D, R>
where
    K: for<'k> Fn(Item<'k, D>, S::Value<'k>) + Copy,
{
    describes_block!();

    fn entry(&self) -> HostEntry {
        const { assert!(D >= 1 && D <= 3, "a range has 1, 2 or 3 dimensions") };
        range_entry_with::<K, S, R, Bound<K, S>, D>
    }

    fn form(&self) -> u32 {
        D as u32
    }
}

// SAFETY: as above; the entry is that of a single task.
unsafe impl<K, S: DeviceForm, R: States> DescribeKernel for SingleFormWith<K, S, R>
where
    K: for<'k> Fn(Single<'k>, S::Value<'k>) + Copy,
{
    describes_block!();

    fn entry(&self) -> HostEntry {
        single_entry_with::<K, S, R, Bound<K, S>>
    }

    fn form(&self) -> u32 {
        0
    }
}

/// The host entry of a kernel with arguments over a range. The kernel is the first type parameter, where the device compiler looks for captures, and the
/// block is the last. There is one for each `R`, since kernels have entries of their own.
///
/// # Safety
/// That of [`range_entry`](crate::range_entry) for the type `Bound<K, S>`.
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "what is stated, and where the device compiler finds the block's type"
)]
unsafe fn range_entry_with<K, S: DeviceForm, R: States, B, const D: usize>(
    arguments: *const u8,
    launch: &LaunchRange,
    chunk: &HostChunk,
) where
    K: for<'k> Fn(Item<'k, D>, S::Value<'k>) + Copy,
{
    // SAFETY: `arguments` holds such a value by contract.
    let Bound { kernel, arguments } = unsafe { *arguments.cast::<Bound<K, S>>() };
    // SAFETY: this is the launch; the values are made for one call.
    let kernel = move |item: Item<'_, D>| kernel(item, unsafe { values(arguments) });
    // SAFETY: by the contract of this function.
    unsafe { run_range(kernel, launch, chunk) };
}

/// The host entry of a single task with arguments.
///
/// # Safety
/// That of [`single_entry`](crate::single_entry) for the type `Bound<K, S>`.
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "what is stated, and where the device compiler finds the block's type"
)]
unsafe fn single_entry_with<K, S: DeviceForm, R: States, B>(
    arguments: *const u8,
    _launch: &LaunchRange,
    _chunk: &HostChunk,
) where
    K: for<'k> Fn(Single<'k>, S::Value<'k>) + Copy,
{
    // SAFETY: `arguments` holds such a value by contract.
    let Bound { kernel, arguments } = unsafe { *arguments.cast::<Bound<K, S>>() };
    // SAFETY: by the contract of this function; the values are made for one call.
    unsafe { run_single(move |task: Single<'_>| kernel(task, values(arguments))) };
}
