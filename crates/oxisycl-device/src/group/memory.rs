//! What a launch gives each of its groups: arrays in local memory, and values of each work-item that live across phases.
//!
//! On the host, each part that is small is a variable of the entry's own stack frame, one for all groups of a chunk. Compilers see then that
//! parts do not overlap. A large part lies in [`HostChunk::group_memory`]. On devices, arrays lie
//! in dynamic local memory one after the other, and a private value is a variable of its work-item.
//!
//! [`HostChunk::group_memory`]: oxisycl_types::HostChunk::group_memory

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use oxisycl_types::GroupSize;

use crate::advice::AnyBits;
use crate::item::{Brand, NotSend};
use crate::{DeviceCopyable, builtin};

/// Most bytes of a part that is a variable of the entry.
const MAX_VARIABLE: usize = 16 << 10;
/// Most work-items of a group whose private values may be a variable.
const MAX_VARIABLE_ITEMS: usize = 1024;

/// Arguments of a launch that every group gets anew: [`Local`], [`LocalSlice`], [`Private`], and tuples of up to six of them. Implemented by
/// this crate only.
///
/// # Safety
/// `bind` uses no more than the bytes that `local_bytes` and `host_bytes` announce, and hands out each byte once.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory of a work-group",
    note = "use `Local`, `LocalSlice`, `Private`, `()` or a tuple of up to six of them"
)]
pub unsafe trait GroupArguments: Copy + Send + Sync + 'static {
    /// What the kernel gets for one group.
    type Bound<'wg>;
    /// Where the parts are on the host.
    #[doc(hidden)]
    type Places: Copy;

    /// Bytes of local memory, a multiple of [`GroupSize::ALIGNMENT`]; `None` if it is more than can be counted.
    #[doc(hidden)]
    fn local_bytes(self) -> Option<usize>;

    /// Bytes of the host's group memory for a group of that many work-items, as above.
    #[doc(hidden)]
    fn host_bytes(self, items: usize) -> Option<usize>;

    /// Calls `f` with places for the parts, each initialised.
    ///
    /// # Safety
    /// `rest` are as many bytes as `host_bytes` says, aligned and initialised, which nothing else uses meanwhile.
    #[doc(hidden)]
    unsafe fn with_places(self, items: usize, rest: *mut u8, f: impl FnOnce(Self::Places));

    /// Makes the handles of one group, in native code.
    ///
    /// # Safety
    /// `places` come from `with_places` for as many items, and no other group uses them for `'wg`.
    #[doc(hidden)]
    unsafe fn bind_places<'wg>(self, places: Self::Places, items: usize) -> Self::Bound<'wg>;

    /// Makes the handles of one group for one of its `items` work-items, on a device.
    ///
    /// # Safety
    /// `at` points to as many bytes of the group's local memory as `local_bytes` says, and is aligned. Each work-item of the group makes
    /// its handles of the same bytes.
    #[doc(hidden)]
    unsafe fn bind<'wg>(self, at: *mut u8, items: usize) -> Self::Bound<'wg>;
}

/// An array of `N` elements in the local memory of each group.
///
/// Its elements have unspecified values when a group begins.
#[derive(Clone, Copy, Debug)]
pub struct Local<T, const N: usize>(PhantomData<fn() -> T>);

/// An array in the local memory of each group, whose length the launch decides.
///
/// Its elements have unspecified values when a group begins.
#[derive(Clone, Copy, Debug)]
pub struct LocalSlice<T> {
    len: usize,
    element: PhantomData<fn() -> T>,
}

/// A value of each work-item that lives as long as its group, across phases.
#[derive(Clone, Copy, Debug)]
pub struct Private<P> {
    value: P,
}

impl<T: DeviceCopyable + AnyBits, const N: usize> Local<T, N> {
    // With a name: the compiler's message has it, and no number that may change.
    const HAS_BYTES: () = assert!(
        N > 0 && size_of::<T>() > 0,
        "local memory of no bytes: `Local` needs at least one element, of a type that has a size"
    );

    /// Memory for `N` elements.
    #[inline]
    pub const fn new() -> Self {
        let () = Self::HAS_BYTES;
        Self(PhantomData)
    }
}

impl<T: DeviceCopyable + AnyBits, const N: usize> Default for Local<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: DeviceCopyable + AnyBits> LocalSlice<T> {
    const HAS_BYTES: () =
        assert!(size_of::<T>() > 0, "local memory of no bytes: `LocalSlice` needs elements of a type that has a size");

    /// Memory for `len` elements.
    #[inline]
    pub const fn new(len: usize) -> Self {
        let () = Self::HAS_BYTES;
        Self { len, element: PhantomData }
    }
}

impl<P: DeviceCopyable> Private<P> {
    /// The value that each work-item begins with.
    #[inline]
    pub const fn new(value: P) -> Self {
        Self { value }
    }
}

/// A group's array of `N` elements.
///
/// It is used by lending it to a phase. `&mut tile` gives each work-item the element of its own local linear id; `&tile` gives it all
/// elements to read. See [`Shares`](super::Shares), [`Rows`](super::Rows), [`Columns`](super::Columns) and
/// [`Atomically`](super::Atomically) for other ways.
pub struct Tile<'wg, T, const N: usize> {
    first: *mut T,
    owned: PhantomData<(&'wg mut T, NotSend)>,
    brand: Brand<'wg>,
}

/// A group's array whose length the launch decided. Used as a [`Tile`] is.
pub struct TileSlice<'wg, T> {
    first: *mut T,
    len: usize,
    owned: PhantomData<(&'wg mut T, NotSend)>,
    brand: Brand<'wg>,
}

/// The private values of a group's work-items. Lent to a phase as `&mut` or `&`, it gives each work-item its own value.
pub struct PrivateValues<'wg, P> {
    /// On the host: one value for each work-item.
    first: *mut P,
    /// On a device: the value of the calling work-item.
    own: MaybeUninit<P>,
    /// Work-items of the group.
    len: usize,
    owned: PhantomData<(&'wg mut P, NotSend)>,
    brand: Brand<'wg>,
}

/// The elements of a [`Tile`] or a [`TileSlice`]. Implemented by this crate only.
///
/// # Safety
/// For `'wg`, the elements are valid and this handle is the only way to them.
pub unsafe trait Elements {
    /// The type of the elements.
    type Element: DeviceCopyable;
    /// The first one.
    #[doc(hidden)]
    fn first(&self) -> *mut Self::Element;
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// SAFETY: by the contract of the functions that bind, the only ones that make tiles.
unsafe impl<T: DeviceCopyable, const N: usize> Elements for Tile<'_, T, N> {
    type Element = T;
    #[inline(always)]
    fn first(&self) -> *mut T {
        self.first
    }
    #[inline(always)]
    fn len(&self) -> usize {
        N
    }
}

// SAFETY: as above.
unsafe impl<T: DeviceCopyable> Elements for TileSlice<'_, T> {
    type Element = T;
    #[inline(always)]
    fn first(&self) -> *mut T {
        self.first
    }
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }
}

impl<P> PrivateValues<'_, P> {
    /// The value of the calling work-item, on a device.
    #[inline(always)]
    pub(super) fn own(value: P, len: usize) -> Self {
        let own = MaybeUninit::new(value);
        Self { first: core::ptr::null_mut(), own, len, owned: PhantomData, brand: PhantomData }
    }

    /// The values from `first` on, in native code.
    ///
    /// # Safety
    /// They are valid, and nothing else accesses them as long as the result exists.
    #[inline(always)]
    pub(super) unsafe fn all(first: *mut P, len: usize) -> Self {
        Self { first, own: MaybeUninit::uninit(), len, owned: PhantomData, brand: PhantomData }
    }

    /// The value of the calling work-item on a device, that of the first one in native code.
    #[inline(always)]
    pub(super) fn first_mut(&mut self) -> *mut P {
        if builtin::is_device_code() { self.own.as_mut_ptr() } else { self.first }
    }

    /// The number of work-items that have a value.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The value of the first work-item; on a device that of the calling one.
    #[inline(always)]
    pub(super) fn first(&self) -> *const P {
        if builtin::is_device_code() { self.own.as_ptr() } else { self.first }
    }

    /// The value of a work-item; on a device that of the calling one.
    ///
    /// # Safety
    /// The group has such a work-item.
    #[inline(always)]
    pub(super) unsafe fn of(&self, item: usize) -> P
    where
        P: Copy,
    {
        // SAFETY: by the contract of this function.
        unsafe { if builtin::is_device_code() { *self.first() } else { *self.first().add(item) } }
    }
}

/// The bytes of `len` elements, up to the next part; `None` if they cannot be counted.
const fn bytes_of<T>(len: usize) -> Option<usize> {
    const { assert!(align_of::<T>() <= GroupSize::ALIGNMENT, "local memory is aligned to 64 bytes") };
    match size_of::<T>().checked_mul(len) {
        // A size is that of memory, so no larger than this.
        Some(bytes) if bytes <= isize::MAX as usize - GroupSize::ALIGNMENT => {
            Some(bytes.next_multiple_of(GroupSize::ALIGNMENT))
        }
        _ => None,
    }
}

/// A variable of the entry.
#[repr(align(64))]
struct Zeroed<T>(MaybeUninit<T>);

/// Calls `f` with the address of a variable of zeros. A separate function, so that unoptimised code that does not call it reserves no stack
/// for the variable. `T` may be larger than any stack there.
#[inline]
fn with_variable<T>(f: impl FnOnce(*mut T)) {
    let mut variable = Zeroed(MaybeUninit::<T>::zeroed());
    f(variable.0.as_mut_ptr());
}

// SAFETY: the one part.
unsafe impl<T: DeviceCopyable + AnyBits, const N: usize> GroupArguments for Local<T, N> {
    type Bound<'wg> = Tile<'wg, T, N>;
    type Places = *mut T;

    #[inline(always)]
    fn local_bytes(self) -> Option<usize> {
        bytes_of::<T>(N)
    }

    #[inline(always)]
    fn host_bytes(self, _items: usize) -> Option<usize> {
        if size_of::<[T; N]>() <= MAX_VARIABLE { Some(0) } else { bytes_of::<T>(N) }
    }

    #[inline(always)]
    unsafe fn with_places(self, _items: usize, rest: *mut u8, f: impl FnOnce(*mut T)) {
        if size_of::<[T; N]>() <= MAX_VARIABLE { with_variable::<[T; N]>(|all| f(all.cast())) } else { f(rest.cast()) }
    }

    #[inline(always)]
    unsafe fn bind_places<'wg>(self, first: *mut T, _items: usize) -> Tile<'wg, T, N> {
        Tile { first, owned: PhantomData, brand: PhantomData }
    }

    #[inline(always)]
    unsafe fn bind<'wg>(self, at: *mut u8, _items: usize) -> Tile<'wg, T, N> {
        Tile { first: at.cast(), owned: PhantomData, brand: PhantomData }
    }
}

// SAFETY: the one part.
unsafe impl<T: DeviceCopyable + AnyBits> GroupArguments for LocalSlice<T> {
    type Bound<'wg> = TileSlice<'wg, T>;
    type Places = *mut T;

    #[inline(always)]
    fn local_bytes(self) -> Option<usize> {
        bytes_of::<T>(self.len)
    }

    #[inline(always)]
    fn host_bytes(self, _items: usize) -> Option<usize> {
        bytes_of::<T>(self.len)
    }

    #[inline(always)]
    unsafe fn with_places(self, _items: usize, rest: *mut u8, f: impl FnOnce(*mut T)) {
        f(rest.cast())
    }

    #[inline(always)]
    unsafe fn bind_places<'wg>(self, first: *mut T, _items: usize) -> TileSlice<'wg, T> {
        TileSlice { first, len: self.len, owned: PhantomData, brand: PhantomData }
    }

    #[inline(always)]
    unsafe fn bind<'wg>(self, at: *mut u8, _items: usize) -> TileSlice<'wg, T> {
        TileSlice { first: at.cast(), len: self.len, owned: PhantomData, brand: PhantomData }
    }
}

// SAFETY: the one part on the host, and a variable on devices.
unsafe impl<P: DeviceCopyable> GroupArguments for Private<P> {
    type Bound<'wg> = PrivateValues<'wg, P>;
    type Places = *mut P;

    #[inline(always)]
    fn local_bytes(self) -> Option<usize> {
        Some(0)
    }

    #[inline(always)]
    fn host_bytes(self, items: usize) -> Option<usize> {
        if size_of::<[P; MAX_VARIABLE_ITEMS]>() <= MAX_VARIABLE && items <= MAX_VARIABLE_ITEMS {
            Some(0)
        } else {
            bytes_of::<P>(items)
        }
    }

    #[inline(always)]
    unsafe fn with_places(self, items: usize, rest: *mut u8, f: impl FnOnce(*mut P)) {
        if size_of::<[P; MAX_VARIABLE_ITEMS]>() <= MAX_VARIABLE && items <= MAX_VARIABLE_ITEMS {
            with_variable::<[P; MAX_VARIABLE_ITEMS]>(|all| f(all.cast()))
        } else {
            f(rest.cast())
        }
    }

    #[inline(always)]
    unsafe fn bind_places<'wg>(self, first: *mut P, items: usize) -> PrivateValues<'wg, P> {
        for item in 0..items {
            // SAFETY: the place has room for as many values, by contract.
            unsafe { first.add(item).write(self.value) };
        }
        // SAFETY: the places are the group's, by contract.
        unsafe { PrivateValues::all(first, items) }
    }

    #[inline(always)]
    unsafe fn bind<'wg>(self, _at: *mut u8, len: usize) -> PrivateValues<'wg, P> {
        PrivateValues::own(self.value, len)
    }
}

// SAFETY: no part.
unsafe impl GroupArguments for () {
    type Bound<'wg> = ();
    type Places = ();

    #[inline(always)]
    fn local_bytes(self) -> Option<usize> {
        Some(0)
    }

    #[inline(always)]
    fn host_bytes(self, _items: usize) -> Option<usize> {
        Some(0)
    }

    #[inline(always)]
    unsafe fn with_places(self, _items: usize, _rest: *mut u8, f: impl FnOnce(())) {
        f(())
    }

    #[inline(always)]
    unsafe fn bind_places<'wg>(self, _places: (), _items: usize) -> Self::Bound<'wg> {}

    #[inline(always)]
    unsafe fn bind<'wg>(self, _at: *mut u8, _items: usize) -> Self::Bound<'wg> {}
}

/// Calls itself for one part after the other, innermost with all places.
macro_rules! nested {
    ($self:ident $items:ident $rest:ident $f:ident [$($place:ident)*]) => {
        $f(($($place,)*))
    };
    ($self:ident $items:ident $rest:ident $f:ident [$($place:ident)*] $first:ident $index:tt $($more:tt)*) => {
        $self.$index.with_places($items, $rest, |$first| {
            // The sum was counted before the launch.
            let taken = $self.$index.host_bytes($items).unwrap_or(0);
            let $rest = $rest.wrapping_add(taken);
            let _ = $rest;
            nested!($self $items $rest $f [$($place)* $first] $($more)*)
        })
    };
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*))*) => { $(
        // SAFETY: one part after the other.
        #[allow(non_snake_case)]
        unsafe impl<$($name: GroupArguments),*> GroupArguments for ($($name,)*) {
            type Bound<'wg> = ($($name::Bound<'wg>,)*);
            type Places = ($($name::Places,)*);

            #[inline(always)]
            fn local_bytes(self) -> Option<usize> {
                let bytes = 0usize;
                $(let bytes = bytes.checked_add(self.$index.local_bytes()?)?;)*
                Some(bytes)
            }

            #[inline(always)]
            fn host_bytes(self, items: usize) -> Option<usize> {
                let bytes = 0usize;
                $(let bytes = bytes.checked_add(self.$index.host_bytes(items)?)?;)*
                Some(bytes)
            }

            #[inline(always)]
            unsafe fn with_places(self, items: usize, rest: *mut u8, f: impl FnOnce(Self::Places)) {
                // SAFETY: each part's bytes come first in what is left, by the contract of this function.
                unsafe { nested!(self items rest f [] $($name $index)*) }
            }

            #[inline(always)]
            unsafe fn bind_places<'wg>(self, places: Self::Places, items: usize) -> Self::Bound<'wg> {
                // SAFETY: the parts are disjoint, and each is as its own function asks.
                unsafe { ($(self.$index.bind_places(places.$index, items),)*) }
            }

            #[inline(always)]
            #[allow(unused_assignments)]
            unsafe fn bind<'wg>(self, at: *mut u8, items: usize) -> Self::Bound<'wg> {
                let mut at = at;
                ($({
                    // SAFETY: the parts lie one after the other.
                    let part = unsafe { self.$index.bind(at, items) };
                    at = at.wrapping_add(self.$index.local_bytes().unwrap_or(0));
                    part
                },)*)
            }
        }
    )* };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, E 3)
    (A 0, B 1, C 2, E 3, G 4)
    (A 0, B 1, C 2, E 3, G 4, H 5)
}
