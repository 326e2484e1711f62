//! Functions whose bodies the device compiler puts in: what a processor offers that Rust has no word for.
//!
//! The bodies here are those of the host device. The compiler finds a builtin by its path. Its table of builtins (`oxisycl-compiler`,
//! `builtin_table.rs`) has each of these functions with its signature, which a test compares with this file.
//!
//! Nothing in here is checked, and nothing is for users: safe interfaces are built on top. What is wrong to call from a kernel at some place
//! or on some target is `unsafe`.

use core::mem::MaybeUninit;

use oxisycl_types::DeviceLaunch;

use crate::math;

/// Whether the code was compiled for a device. False in native code, where the compiler drops what depends on it.
#[inline(always)]
pub fn is_device_code() -> bool {
    false
}

/// Says that the calling kernel's floating-point operations are rounded one by one. Does nothing in native code.
#[inline(always)]
pub fn float_strict() {}

/// Says that products and sums of the calling kernel may be contracted. Does nothing in native code.
#[inline(always)]
pub fn float_contract() {}

/// Says that the calling kernel's floating-point operations may be transformed freely. Does nothing in native code.
#[inline(always)]
pub fn float_fast() {}

/// Whether the device has a stack for calls, on which the addresses of variables show how deep calls are.
#[inline(always)]
pub fn has_call_stack() -> bool {
    true
}

/// Says that the text of a message begins. [`formatting_was_cut_off`] ends it. In between, formatting fails where the stack of calls ends; elsewhere
/// it panics there. Does nothing in native code, and on devices without a stack for calls, where the compiler knows what makes messages.
#[inline(always)]
pub fn begin_message() {}

/// Whether values within values were too deep to be formatted in the message that ends here. A device without a stack for calls has the
/// compiler's word for it.
#[inline(always)]
pub fn formatting_was_cut_off() -> bool {
    false
}

/// Calls `body` with each number below `count`, in that order. The innermost loop over work-items of a range or of a phase is such a call. A compiler may
/// run several of them at the same time.
#[inline(always)]
pub fn each_item(count: usize, body: impl Fn(usize)) {
    for item in 0..count {
        body(item);
    }
}

/// Says that the calling work-item takes its turn on the thread. It accesses memory that other work-items of the thread access too, without atomics,
/// or waits while they run. Does nothing. A compiler that runs several work-items at once looks for it.
#[inline(always)]
pub fn in_turn() {}

/// Whether barriers part the kernel into loops over the work-items of a group, so that none of them waits. False, unless a compiler does that.
#[inline(always)]
pub fn has_item_loops() -> bool {
    false
}

/// Calls `body` with each position of a group: its number in its row, its row, and its plane, the last one first. A compiler may part the loop at
/// [`end_item_loop`], whose calls all work-items come to.
#[inline(always)]
pub fn each_position(planes: usize, rows: usize, row: usize, body: impl Fn(usize, usize, usize)) {
    for z in 0..planes {
        for y in 0..rows {
            for x in 0..row {
                body(z, y, x);
            }
        }
    }
}

/// Stands for a barrier in kernels that have item loops. Does nothing.
#[inline(always)]
pub fn end_item_loop() {}

/// Memory where there are item loops: so many bytes for each work-item of the group and one more, aligned to 64 bytes. Each call has its own. Else null.
#[inline(always)]
pub fn item_array(_bytes: u64) -> *mut u8 {
    core::ptr::null_mut()
}

/// Leaves the plane, row and place of a work-item that unwinds. A compiler looks for what else that drops.
///
/// # Safety
/// The address is that of three `usize`, which no other thread accesses meanwhile.
#[inline(always)]
pub unsafe fn leave_item(place: *mut u8, z: u64, y: u64, x: u64) {
    // SAFETY: by the contract of this function.
    unsafe { place.cast::<[usize; 3]>().write([z as usize, y as usize, x as usize]) };
}

/// Says that work-items wait in a way that no item loops replace. Does nothing.
#[inline(always)]
pub fn only_on_stacks() {}

/// Stands for the end of the program in bodies that native code never reaches.
#[cold]
fn not_on_the_host() -> ! {
    panic!("a device builtin was called by native code")
}

/// Whether each position of the calling kernel's grid runs two work-items, which the compiler decides. False in native code.
///
/// # Safety
/// The caller is the entry of a kernel, which runs both of them where the answer is yes.
#[inline(always)]
pub unsafe fn is_paired() -> bool {
    false
}

/// Stands between the two work-items of a position. Does nothing.
///
/// # Safety
/// The caller is the entry of a paired kernel, and has run the first of them: loads of the second one may come before this.
#[inline(always)]
pub unsafe fn next_item() {}

/// Stands behind a work-item that is alone at its position in a paired kernel. It keeps LLVM from joining its code with
/// that of the second work-item of others. Does nothing.
///
/// # Safety
/// The caller is the entry of a kernel, at its end.
#[inline(always)]
pub unsafe fn only_item() {}

/// Says that the loop around it is worth unrolling that often: it waits for memory, and its loads do not depend on each other. The times
/// are a number, not computed. Less where its body is large. Does nothing in native code, and where drivers unroll loops themselves.
#[inline(always)]
pub fn unroll_loop(_times: u32) {}

/// Loads from memory that nothing writes while the kernel runs, so that the load may come before stores that stand before it.
///
/// # Safety
/// The pointer is valid for a load, and nothing writes what it points to while the kernel runs.
#[inline(always)]
pub unsafe fn load_constant<T: Copy>(pointer: *const T) -> T {
    // SAFETY: by the contract of this function.
    unsafe { *pointer }
}

macro_rules! positions {
    ($($(#[$doc:meta])* $name:ident,)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// Native code may not call it.
        #[inline(never)]
        pub unsafe fn $name() -> u64 {
            not_on_the_host()
        }
    )* };
}

positions! {
    /// Position of the work-item in the grid along `x`, the innermost dimension.
    grid_position_x,
    /// Position along `x` of the second work-item that the calling thread runs. Only paired kernels have one, and there
    /// [`grid_position_x`] is that of the first.
    second_position_x,
    /// Position of the work-item in the grid along `y`.
    grid_position_y,
    /// Position of the work-item in the grid along `z`.
    grid_position_z,
    /// Position of the work-item in its group along `x`, the innermost dimension.
    local_position_x,
    /// Position of the work-item in its group along `y`.
    local_position_y,
    /// Position of the work-item in its group along `z`.
    local_position_z,
    /// Position of the group in the grid along `x`, the innermost dimension.
    group_position_x,
    /// Position of the group in the grid along `y`.
    group_position_y,
    /// Position of the group in the grid along `z`.
    group_position_z,
}

/// The launch that the calling work-item belongs to.
///
/// # Safety
/// Native code may not call it.
#[inline(never)]
pub unsafe fn launch() -> *const DeviceLaunch {
    not_on_the_host()
}

/// Waits for all work-items of the group, and makes what they wrote to local and global memory visible to each other.
///
/// # Safety
/// All work-items of the group call it, from the same place, or none does. Native code may not call it.
#[inline(never)]
pub unsafe fn group_barrier() {
    not_on_the_host()
}

/// The value that the work-item with index `lane` of the sub-group passes.
///
/// # Safety
/// All work-items of the sub-group call it, from the same place, and `lane` is one of them. Native code may not call it.
#[inline(never)]
pub unsafe fn shuffle_u32(_value: u32, _lane: u32) -> u32 {
    not_on_the_host()
}

/// Whether work-items of a device pass values to each other without memory, in sub-groups of 32 that follow the local linear ids. False in native code,
/// where the compiler drops what depends on it.
#[inline(always)]
pub fn has_shuffles() -> bool {
    false
}

/// The value that the work-item at place `lane` of the sub-group passes. `members` has a bit for each work-item that the sub-group has. Passes some
/// value for another place, and zeros for a work-item that has ended.
///
/// # Safety
/// All members call it, from the same place. The device has shuffles.
#[inline(never)]
pub unsafe fn shuffle_among_u32(_members: u32, _value: MaybeUninit<u32>, _lane: u32) -> MaybeUninit<u32> {
    not_on_the_host()
}

/// The value that the work-item `distance` places before in the sub-group passes; the own one, where the sub-group has no such place.
///
/// # Safety
/// As for [`shuffle_among_u32`].
#[inline(never)]
pub unsafe fn shuffle_up_among_u32(_members: u32, _value: MaybeUninit<u32>, _distance: u32) -> MaybeUninit<u32> {
    not_on_the_host()
}

/// A bit for each member of the sub-group that holds.
///
/// # Safety
/// As for [`shuffle_among_u32`].
#[inline(never)]
pub unsafe fn ballot_among(_members: u32, _holds: bool) -> u32 {
    not_on_the_host()
}

/// Whether sub-groups of 32 combine integers of 32 bits at once. Only devices that have shuffles do.
#[inline(always)]
pub fn has_reductions() -> bool {
    false
}

/// The values of all members together, by the operation with this number of `operator::AtOnce`. Members that have ended give none.
///
/// # Safety
/// As for [`shuffle_among_u32`]. The device has reductions, and the operation is a constant.
#[inline(never)]
pub unsafe fn reduce_among_u32(_members: u32, _value: MaybeUninit<u32>, _operation: u32) -> MaybeUninit<u32> {
    not_on_the_host()
}

/// Says that the kernel uses memory of its group beside that of its arguments: `GroupSize::scratch_bytes` of elements of so many bytes, a constant. Does
/// nothing in native code.
#[inline(always)]
pub fn group_scratch(_bytes_of_element: u32) {}

/// Says that what follows is at group scope, up to the next phase. The compiler refuses kernels that allocate there. Does nothing in native code.
#[inline(always)]
pub fn begin_group_scope() {}

/// Says that what follows is code of the work-item, up to the next [`begin_group_scope`]. Does nothing in native code.
///
/// # Safety
/// No value that this code makes reaches group scope, except by what lends memory to phases.
#[inline(always)]
pub unsafe fn begin_phase() {}

/// Waits for all work-items of the group, as [`group_barrier`] does, and says whether all came: not those that have panicked. A group has `items`
/// work-items, and this is its meeting number `number`, from 0 on.
///
/// # Safety
/// As for [`group_barrier`]. All meetings of a kernel are counted.
#[inline(never)]
pub unsafe fn meet_group(_items: u32, _number: u32) -> bool {
    not_on_the_host()
}

/// Says that all work-items of the group come to this place, the same number of times, or none does. The compiler refuses a kernel for which it cannot prove
/// that. Does nothing in native code.
#[inline(always)]
pub fn prove_convergence() {}

/// The value, which is the same for all work-items of the group. The compiler refuses a kernel for which it cannot prove that. In native code nothing is
/// proved.
#[inline(always)]
pub fn prove_uniform(value: u64) -> u64 {
    value
}

/// Ends the calling work-item without a panic. Native code never calls it.
#[inline(always)]
pub fn end_work_item() -> ! {
    not_on_the_host()
}

/// Atomic operations, which return the old value. Numbers of orders, from 0 on: relaxed, acquire, release, acquire and release, sequentially
/// consistent. Numbers of scopes: the group, the device, the system.
macro_rules! atomics {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $t:ty),*) $(-> $result:ty)?;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// The pointer is valid, aligned, and only accessed atomically meanwhile. The order is one that the operation can have. Native code may not
        /// call it.
        #[inline(never)]
        pub unsafe fn $name($($argument: $t),*) $(-> $result)? {
            not_on_the_host()
        }
    )* };
}

atomics! {
    /// Loads.
    fn atomic_load_u32(_pointer: *mut u32, _order: u32, _scope: u32) -> u32;
    /// Stores.
    fn atomic_store_u32(_pointer: *mut u32, _value: u32, _order: u32, _scope: u32);
    /// Stores.
    fn atomic_exchange_u32(_pointer: *mut u32, _value: u32, _order: u32, _scope: u32) -> u32;
    /// Stores if the old value is the first one. The second order is that of a failure.
    fn atomic_compare_exchange_u32(_pointer: *mut u32, _current: u32, _new: u32, _success: u32, _failure: u32, _scope: u32) -> u32;
    /// Adds.
    fn atomic_add_u32(_pointer: *mut u32, _value: u32, _order: u32, _scope: u32) -> u32;
    /// Stores the smaller value.
    fn atomic_min_u32(_pointer: *mut u32, _value: u32, _order: u32, _scope: u32) -> u32;
    /// Stores the larger value.
    fn atomic_max_u32(_pointer: *mut u32, _value: u32, _order: u32, _scope: u32) -> u32;
    /// Stores the smaller value of signed ones.
    fn atomic_min_i32(_pointer: *mut u32, _value: u32, _order: u32, _scope: u32) -> u32;
    /// Stores the larger value of signed ones.
    fn atomic_max_i32(_pointer: *mut u32, _value: u32, _order: u32, _scope: u32) -> u32;
    /// Stores the bits of both.
    fn atomic_and_u32(_pointer: *mut u32, _value: u32, _order: u32, _scope: u32) -> u32;
    /// Stores the bits of either.
    fn atomic_or_u32(_pointer: *mut u32, _value: u32, _order: u32, _scope: u32) -> u32;
    /// Stores the bits of one alone.
    fn atomic_xor_u32(_pointer: *mut u32, _value: u32, _order: u32, _scope: u32) -> u32;
    /// Loads.
    fn atomic_load_u64(_pointer: *mut u64, _order: u32, _scope: u32) -> u64;
    /// Stores.
    fn atomic_store_u64(_pointer: *mut u64, _value: u64, _order: u32, _scope: u32);
    /// Stores.
    fn atomic_exchange_u64(_pointer: *mut u64, _value: u64, _order: u32, _scope: u32) -> u64;
    /// Stores if the old value is the first one. The second order is that of a failure.
    fn atomic_compare_exchange_u64(_pointer: *mut u64, _current: u64, _new: u64, _success: u32, _failure: u32, _scope: u32) -> u64;
    /// Adds.
    fn atomic_add_u64(_pointer: *mut u64, _value: u64, _order: u32, _scope: u32) -> u64;
    /// Stores the smaller value.
    fn atomic_min_u64(_pointer: *mut u64, _value: u64, _order: u32, _scope: u32) -> u64;
    /// Stores the larger value.
    fn atomic_max_u64(_pointer: *mut u64, _value: u64, _order: u32, _scope: u32) -> u64;
    /// Stores the smaller value of signed ones.
    fn atomic_min_i64(_pointer: *mut u64, _value: u64, _order: u32, _scope: u32) -> u64;
    /// Stores the larger value of signed ones.
    fn atomic_max_i64(_pointer: *mut u64, _value: u64, _order: u32, _scope: u32) -> u64;
    /// Stores the bits of both.
    fn atomic_and_u64(_pointer: *mut u64, _value: u64, _order: u32, _scope: u32) -> u64;
    /// Stores the bits of either.
    fn atomic_or_u64(_pointer: *mut u64, _value: u64, _order: u32, _scope: u32) -> u64;
    /// Stores the bits of one alone.
    fn atomic_xor_u64(_pointer: *mut u64, _value: u64, _order: u32, _scope: u32) -> u64;
    /// Adds.
    fn atomic_add_f32(_pointer: *mut f32, _value: f32, _order: u32, _scope: u32) -> f32;
    /// Adds.
    fn atomic_add_f64(_pointer: *mut f64, _value: f64, _order: u32, _scope: u32) -> f64;
    /// Loads, in no order. The scope is not that of the system.
    fn atomic_load_u128(_pointer: *mut u128, _scope: u32) -> u128;
    /// Stores, in no order. The scope is not that of the system.
    fn atomic_store_u128(_pointer: *mut u128, _value: u128, _scope: u32);
}

/// Orders atomic operations of the work-item. Order and scope are numbers as those of atomic operations.
///
/// # Safety
/// Native code may not call it.
#[inline(never)]
pub unsafe fn atomic_fence(_order: u32, _scope: u32) {
    not_on_the_host()
}

/// The first byte of the group's dynamic local memory, aligned to 64 bytes.
///
/// # Safety
/// The launch has local memory. Native code may not call it.
#[inline(never)]
pub unsafe fn local_memory() -> *mut u8 {
    not_on_the_host()
}

/// The address, which is null or of global memory. The compiler then knows the memory of what it leads to.
#[inline(always)]
pub fn as_global(pointer: *mut u8) -> *mut u8 {
    pointer
}

/// The address, or that of a copy in constant memory if it is of a constant of the program.
#[inline(always)]
pub fn as_constant(pointer: *const u8) -> *const u8 {
    pointer
}

/// Whether an address that is not null is of global memory. In native code all memory is one.
#[inline(always)]
pub fn is_global_address(_pointer: *const u8) -> bool {
    true
}

/// Whether an address that is not null is of the group's memory. In native code all memory is one.
#[inline(always)]
pub fn is_local_address(_pointer: *const u8) -> bool {
    true
}

/// Whether an address that is not null is of a variable of the work-item. In native code all memory is one.
#[inline(always)]
pub fn is_private_address(_pointer: *const u8) -> bool {
    true
}

/// Says that the memory around an address will be loaded soon. Does nothing in native code.
///
/// # Safety
/// The device can use the address.
#[inline(always)]
pub unsafe fn prefetch(_pointer: *const u8) {}

/// Functions that processors have an imprecise instruction for. A target without one keeps the bodies that stand here.
macro_rules! native {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),+) = $body:expr;)*) => { $(
        $(#[$doc])*
        #[inline(never)]
        pub fn $name($($argument: f32),+) -> f32 {
            $body
        }
    )* };
}

native! {
    /// An imprecise cosine.
    native_cos(x) = math::cos(x);
    /// An imprecise quotient.
    native_divide(x, y) = x / y;
    /// An imprecise power of 2.
    native_exp2(x) = math::exp2(x);
    /// An imprecise logarithm to base 2.
    native_log2(x) = math::log2(x);
    /// An imprecise reciprocal square root.
    native_rsqrt(x) = math::rsqrt(x);
    /// An imprecise sine.
    native_sin(x) = math::sin(x);
    /// An imprecise square root.
    native_sqrt(x) = math::sqrt(x);
}

/// The float that the lowest 16 bits stand for. Integers and a product, since not all devices have halves.
#[inline(always)]
pub fn float_of_half(bits: u32) -> f32 {
    const UNIT: f32 = 1.0 / 16_777_216.0;
    let magnitude = bits & 0x7fff;
    let wide = if magnitude >= 0x7c00 {
        magnitude << 13 | 0x7f80_0000
    } else if magnitude >= 0x0400 {
        (magnitude << 13) + (112 << 23)
    } else {
        (magnitude as i32 as f32 * UNIT).to_bits()
    };
    f32::from_bits(wide | (bits & 0x8000) << 16)
}

/// The 16 bits of the float that is nearest to `value`, the even one of two. Zeros are above them.
#[inline(always)]
pub fn half_of_float(value: f32) -> u32 {
    let bits = value.to_bits();
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    let half = if magnitude > 0x7f80_0000 {
        0x7e00 | magnitude >> 13 & 0x03ff
    } else if magnitude >= 0x4780_0000 {
        0x7c00
    } else if magnitude >= 0x3880_0000 {
        (magnitude + 0x0fff + (magnitude >> 13 & 1) - (112 << 23)) >> 13
    } else {
        // A float from 0.5 on has units of 2^-24, as the smallest of 16 bits.
        (f32::from_bits(magnitude) + 0.5).to_bits() - 0x3f00_0000
    };
    sign | half
}
