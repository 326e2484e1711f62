// A program whose kernels the tests look for, as the crate `oxisycl_device`: it has the items that the compiler knows by their paths.

pub mod kernel {
    use std::any::TypeId;
    use std::marker::PhantomData;

    /// Laid out as in `oxisycl-types`.
    #[repr(C)]
    pub struct ArgumentType {
        pub type_name: fn() -> &'static str,
        pub size: usize,
        pub length: usize,
        pub parts: &'static [ArgumentPart],
    }

    #[repr(C)]
    pub struct ArgumentPart {
        pub name: &'static str,
        pub offset: usize,
        pub part: &'static ArgumentType,
    }

    pub type Entry = unsafe fn(*const u8, *const u8, *const u8);

    pub trait DescribeKernel {
        fn type_id(&self) -> TypeId
        where
            Self: 'static;
        fn entry(&self) -> Entry;
        fn layout(&self) -> (usize, usize);
        fn type_name(&self) -> &'static str;
        fn form(&self) -> u32;
        fn group(&self) -> u64;
        fn arguments(&self) -> Option<&'static ArgumentType>;
        fn aspects(&self) -> u64;
        fn sub_group(&self) -> u32;
    }

    pub struct RangeForm<K, const D: usize>(pub PhantomData<K>);

    impl<K: Fn(usize) + Copy, const D: usize> DescribeKernel for RangeForm<K, D> {
        fn type_id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<K>()
        }
        fn entry(&self) -> Entry {
            range_entry::<K, D>
        }
        fn layout(&self) -> (usize, usize) {
            (size_of::<K>(), align_of::<K>())
        }
        fn type_name(&self) -> &'static str {
            std::any::type_name::<K>()
        }
        fn form(&self) -> u32 {
            D as u32
        }
        fn group(&self) -> u64 {
            0
        }
        fn arguments(&self) -> Option<&'static ArgumentType> {
            None
        }
        fn aspects(&self) -> u64 {
            0
        }
        fn sub_group(&self) -> u32 {
            0
        }
    }

    pub unsafe fn range_entry<K: Fn(usize) + Copy, const D: usize>(arguments: *const u8, _: *const u8, _: *const u8) {
        let kernel = unsafe { *arguments.cast::<K>() };
        kernel(0);
    }
}

pub mod accessor {
    #[derive(Clone, Copy)]
    pub struct Accessor<T>(pub *mut T, pub usize);
}

use std::panic::Location;

use kernel::{DescribeKernel, RangeForm};

#[inline(never)]
#[track_caller]
pub fn launch<const D: usize, K: Fn(usize) + Copy>(_kernel: K) {
    let form = RangeForm::<K, D>(std::marker::PhantomData);
    describe(&form, Location::caller());
}

#[inline(never)]
fn describe(object: &dyn DescribeKernel, place: &'static Location<'static>) {
    std::hint::black_box((object.entry(), object.layout(), object.type_name(), object.form(), object.group(), object.arguments(), place));
}

#[derive(Clone, Copy)]
pub enum Shape {
    Empty,
    Disc(f32),
    Box { width: f32, height: f32 },
}

#[derive(Clone, Copy)]
pub struct Wrapped {
    pub address: *const u32,
}

pub fn double(x: usize) -> usize {
    2 * x
}

macro_rules! kernels {
    ($($name:ident: $type:ty;)*) => { $(
        pub fn $name($name: $type) {
            launch::<1, _>(move |i| {
                std::hint::black_box(($name, i));
            });
        }
    )* };
}

kernels! {
    scalar: f64;
    pair: (u8, [i32; 3]);
    shape: Shape;
    accessor: accessor::Accessor<f32>;
    option: Option<u32>;
    text: &'static str;
    reference: &'static u32;
    maybe_reference: Option<&'static u8>;
    function: fn(usize) -> usize;
    object: &'static (dyn Fn() + Sync);
    wrapped: Wrapped;
}

pub fn item() {
    let double = double;
    launch::<2, _>(move |i| {
        std::hint::black_box(double(i));
    });
}

pub fn nothing() {
    launch::<3, _>(|_| {});
}

// The kernel captures a closure, and that an address.
pub fn nested(text: &'static str) {
    let inner = move |i: usize| text.len() + i;
    launch::<1, _>(move |i| {
        std::hint::black_box(inner(i));
    });
}

pub fn two_of_one_type(first: &'static str, second: &'static str) {
    launch::<1, _>(move |i| drop(std::hint::black_box((first, second, i))));
}

pub fn part(pair: (u32, &'static str)) {
    launch::<1, _>(move |i| drop(std::hint::black_box((pair.1, i))));
}

pub fn part_of_a_field(wrapped: (Wrapped, u32)) {
    launch::<1, _>(move |i| drop(std::hint::black_box((wrapped.0.address, i))));
}

pub fn whole(pair: (u32, &'static str)) {
    launch::<1, _>(move |i| drop(std::hint::black_box((pair, i))));
}

pub fn by_reference(numbers: &'static [u32]) {
    launch::<1, _>(|i| drop(std::hint::black_box(numbers[i])));
}

// The kernel does not call what it captures, so that the inner closure has no code.
pub fn only_held(text: &'static str) {
    let inner = move |i: usize| text.len() + i;
    launch::<1, _>(move |i| drop(std::hint::black_box((&inner, i))));
}

pub fn beyond_ascii(größe: &'static u32) {
    launch::<1, _>(move |i| drop(std::hint::black_box((größe, i))));
}

// For the tests of places; the lines are counted there from this one.
#[track_caller]
pub fn passed_on<K: Fn(usize) + Copy>(kernel: K) {
    launch::<1, _>(kernel);
}

pub fn once() {
    passed_on(|_| {});
}

pub fn in_a_loop() {
    for _ in 0..3 {
        passed_on(|_| {});
    }
}

pub fn twice() {
    let kernel = |_| {};
    passed_on(kernel);
    passed_on(kernel);
}

pub fn through_a_pointer() {
    fn pointer<K: Fn(usize) + Copy>(_: K) -> fn(K) {
        passed_on::<K>
    }
    let kernel = |_| {};
    std::hint::black_box(pointer(kernel))(kernel);
}

pub fn with_a_place_of_the_users(place: &'static Location<'static>) {
    fn given<K: Fn(usize) + Copy>(_kernel: K, place: &'static Location<'static>) {
        describe(&RangeForm::<K, 1>(std::marker::PhantomData), place);
    }
    given(|_| {}, std::hint::black_box(place));
}
