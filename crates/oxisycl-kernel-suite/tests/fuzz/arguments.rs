//! Random nests of arguments: their values arrive unchanged, whatever they are nested in.
//!
//! Host and kernel take a digest of what they have. One digest would hide values that change places, so each value's position counts.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use oxisycl::BackendKind;
use oxisycl::argument::{Argument, Bound, Deconstruct, KernelArg, Sent, Value};
use oxisycl::prelude::*;
use oxisycl_image::{Form, decode_bundle};
use oxisycl_runtime::program::KernelKey;

use crate::harness::Env;

/// Values of each nest.
const VALUES: usize = 500;

/// A number for all the bits of a value, and their order.
#[derive(Clone, Copy)]
pub(crate) struct Digest(u64);

impl Digest {
    fn add(&mut self, bits: u64) {
        self.0 = (self.0.rotate_left(23) ^ bits).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// A value of a nest, on the host or in a kernel.
pub(crate) trait Digested {
    fn digest(&self, into: &mut Digest);
}

/// An argument of which there are random values.
pub(crate) trait Random: Digested + KernelArg + for<'cg> Deconstruct<Handler<'cg>> + Sized {
    fn random(next: &mut dyn FnMut() -> u64) -> Self;
}

macro_rules! numbers {
    ($($t:ty)*) => { $(
        impl Digested for $t {
            fn digest(&self, into: &mut Digest) {
                into.add(*self as u64);
            }
        }
        impl Random for $t {
            fn random(next: &mut dyn FnMut() -> u64) -> Self {
                next() as $t
            }
        }
    )* };
}

numbers! { u8 i8 u16 i16 u32 i32 u64 i64 usize }

macro_rules! others {
    ($($t:ty: |$value:ident| $bits:expr, |$next:ident| $random:expr;)*) => { $(
        impl Digested for $t {
            fn digest(&self, into: &mut Digest) {
                let $value = self;
                for bits in $bits {
                    into.add(bits);
                }
            }
        }
        impl Random for $t {
            fn random($next: &mut dyn FnMut() -> u64) -> Self {
                $random
            }
        }
    )* };
}

others! {
    u128: |value| [*value as u64, (*value >> 64) as u64], |next| u128::from(next()) << 64 | u128::from(next());
    f32: |value| [u64::from(value.to_bits())], |next| f32::from_bits(next() as u32 & 0x7f7f_ffff);
    f64: |value| [value.to_bits()], |next| f64::from_bits(next() & 0x7fef_ffff_ffff_ffff);
    bool: |value| [u64::from(*value)], |next| next() % 2 == 1;
    char: |value| [u64::from(u32::from(*value))], |next| char::from_u32((next() % 0xd800) as u32).unwrap_or(' ');
    Aligned1: |value| value.0.map(u64::from), |next| Self([next() as u8, next() as u8, next() as u8]);
    Aligned4: |value| [u64::from(value.0), u64::from(value.1)], |next| Self(next() as u8, next() as u16);
    Aligned16: |value| [value.0, u64::from(value.1)], |next| Self(next(), next() as u8);
    Aligned64: |value| [u64::from(value.0)], |next| Self(next() as u32);
    Choice: |value| value.bits(), |next| match next() % 3 {
        0 => Self::Nothing,
        1 => Self::One(next()),
        _ => Self::Two { a: next() as u8, b: next() as i16 },
    };
    (): |_value| [1], |_next| ();
    PhantomData<u64>: |_value| [2], |_next| PhantomData;
}

#[derive(Clone, Copy, DeviceCopyable)]
pub(crate) struct Aligned1([u8; 3]);
#[derive(Clone, Copy, DeviceCopyable)]
#[repr(align(4))]
pub(crate) struct Aligned4(u8, u16);
#[derive(Clone, Copy, DeviceCopyable)]
#[repr(align(16))]
pub(crate) struct Aligned16(u64, u8);
#[derive(Clone, Copy, DeviceCopyable)]
#[repr(align(64))]
pub(crate) struct Aligned64(u32);
#[derive(Clone, Copy, DeviceCopyable)]
pub(crate) enum Choice {
    Nothing,
    One(u64),
    Two { a: u8, b: i16 },
}
#[derive(Clone, Copy, DeviceCopyable)]
pub(crate) struct Pair<A, B> {
    a: A,
    b: B,
}

/// Two arguments, one after the other.
#[derive(KernelArg)]
pub(crate) struct Both<A, B> {
    first: A,
    second: B,
}

/// One of two arguments, or none.
#[derive(KernelArg)]
pub(crate) enum Either<A, B> {
    Neither,
    Left(A),
    Right { value: B, more: u16 },
}

impl Choice {
    fn bits(self) -> [u64; 3] {
        match self {
            Self::Nothing => [0; 3],
            Self::One(bits) => [1, bits, 0],
            Self::Two { a, b } => [2, u64::from(a), b as u64],
        }
    }
}

impl<A: Digested, B: Digested> Digested for Pair<A, B> {
    fn digest(&self, into: &mut Digest) {
        self.a.digest(into);
        self.b.digest(into);
    }
}
impl<A: Random + DeviceCopyable, B: Random + DeviceCopyable> Random for Pair<A, B> {
    fn random(next: &mut dyn FnMut() -> u64) -> Self {
        Self { a: A::random(next), b: B::random(next) }
    }
}

macro_rules! derived {
    ($($both:ty, $either:ty;)*) => { $(
        impl<A: Digested, B: Digested> Digested for $both {
            fn digest(&self, into: &mut Digest) {
                self.first.digest(into);
                self.second.digest(into);
            }
        }
        impl<A: Digested, B: Digested> Digested for $either {
            fn digest(&self, into: &mut Digest) {
                match self {
                    Self::Neither => into.add(3),
                    Self::Left(value) => {
                        into.add(5);
                        value.digest(into);
                    }
                    Self::Right { value, more } => {
                        into.add(7);
                        value.digest(into);
                        more.digest(into);
                    }
                }
            }
        }
    )* };
}

// On the host, and as kernels get them.
derived! {
    Both<A, B>, Either<A, B>;
    BothOnDevice<A, B>, EitherOnDevice<'_, A, B>;
}

impl<A: Random, B: Random> Random for Both<A, B> {
    fn random(next: &mut dyn FnMut() -> u64) -> Self {
        Self { first: A::random(next), second: B::random(next) }
    }
}
impl<A: Random, B: Random> Random for Either<A, B> {
    fn random(next: &mut dyn FnMut() -> u64) -> Self {
        match next() % 5 {
            0 => Self::Neither,
            1 | 2 => Self::Left(A::random(next)),
            _ => Self::Right { value: B::random(next), more: next() as u16 },
        }
    }
}

impl<T: Digested> Digested for [T] {
    fn digest(&self, into: &mut Digest) {
        into.add(self.len() as u64);
        for element in self {
            element.digest(into);
        }
    }
}
impl Digested for str {
    fn digest(&self, into: &mut Digest) {
        self.as_bytes().digest(into);
    }
}
impl<T: Digested + ?Sized> Digested for &T {
    fn digest(&self, into: &mut Digest) {
        (**self).digest(into);
    }
}

macro_rules! owners {
    ($($t:ty [$($parameter:ident: $bound:ident)?], |$next:ident| $random:expr;)*) => { $(
        impl<$($parameter: Digested)?> Digested for $t {
            fn digest(&self, into: &mut Digest) {
                (**self).digest(into);
            }
        }
        impl<$($parameter: Random + $bound)?> Random for $t {
            fn random($next: &mut dyn FnMut() -> u64) -> Self {
                $random
            }
        }
    )* };
}

fn elements<T: Random>(next: &mut dyn FnMut() -> u64) -> Vec<T> {
    (0..next() % 20).map(|_| T::random(next)).collect()
}

fn text(next: &mut dyn FnMut() -> u64) -> String {
    (0..next() % 20).map(|_| char::random(next)).collect()
}

owners! {
    Box<[T]> [T: DeviceCopyable], |next| elements(next).into();
    Arc<[T]> [T: DeviceCopyable], |next| elements(next).into();
    Box<T> [T: DeviceCopyable], |next| Box::new(T::random(next));
    Arc<T> [T: DeviceCopyable], |next| Arc::new(T::random(next));
    String [], |next| text(next);
    Box<str> [], |next| text(next).into();
    Arc<str> [], |next| text(next).into();
}

impl<T: Digested> Digested for Vec<T> {
    fn digest(&self, into: &mut Digest) {
        self.as_slice().digest(into);
    }
}
impl<T: Random + DeviceCopyable> Random for Vec<T> {
    fn random(next: &mut dyn FnMut() -> u64) -> Self {
        elements(next)
    }
}

impl<T: Digested, const N: usize> Digested for [T; N] {
    fn digest(&self, into: &mut Digest) {
        self.as_slice().digest(into);
    }
}
impl<T: Random, const N: usize> Random for [T; N] {
    fn random(next: &mut dyn FnMut() -> u64) -> Self {
        std::array::from_fn(|_| T::random(next))
    }
}

impl<T: Digested> Digested for Option<T> {
    fn digest(&self, into: &mut Digest) {
        into.add(u64::from(self.is_some()));
        if let Some(value) = self {
            value.digest(into);
        }
    }
}
impl<T: Random> Random for Option<T> {
    fn random(next: &mut dyn FnMut() -> u64) -> Self {
        (!next().is_multiple_of(3)).then(|| T::random(next))
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt)*))*) => { $(
        impl<$($name: Digested),*> Digested for ($($name,)*) {
            fn digest(&self, into: &mut Digest) {
                $( self.$index.digest(into); )*
            }
        }
        impl<$($name: Random),*> Random for ($($name,)*) {
            fn random(next: &mut dyn FnMut() -> u64) -> Self {
                ($($name::random(next),)*)
            }
        }
    )* };
}

tuples! { (A 0) (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) (A 0 B 1 C 2 D 3 E 4) }

/// What nests take of an argument block: few more than 900 bytes, and one of five more than 400. Said of as many as are in the file of seeds.
pub(crate) fn check_sizes(sizes: &[usize]) {
    let count = |is_counted: fn(usize) -> bool| sizes.iter().filter(|size| is_counted(**size)).count();
    let largest = sizes.iter().max();
    let (beyond, large) = (count(|size| size > 900), count(|size| size > 400));
    println!("{large} of {} nests take more than 400 bytes, {beyond} more than 900: {largest:?}", sizes.len());
    if sizes.len() >= 60 {
        assert!(20 * beyond <= sizes.len(), "{beyond} of {} nests take more than 900 bytes", sizes.len());
        assert!(5 * large >= sizes.len(), "{large} of {} nests take more than 400 bytes", sizes.len());
        assert!(largest >= Some(&700), "the largest nest takes {largest:?} bytes");
    }
}

/// The lists of arguments in this program's own images, by the kernel they are of. Empty if cargo built it alone.
fn lists_of_images() -> &'static [(KernelKey, Vec<Argument>)] {
    static LISTS: OnceLock<Vec<(KernelKey, Vec<Argument>)>> = OnceLock::new();
    LISTS.get_or_init(|| {
        let program = std::env::current_exe().and_then(std::fs::read).expect("this program's file");
        // Bundles begin at multiples of eight, and have their length in the third number of eight bytes.
        let bundles = (0..program.len()).step_by(8).filter(|&begin| program[begin..].starts_with(b"OXISYCLB"));
        let bundles = bundles.filter_map(|begin| {
            let length = program.get(begin + 16..begin + 24)?.try_into().map(u64::from_le_bytes).ok()?;
            decode_bundle(program.get(begin..begin.checked_add(length.try_into().ok()?)?)?).ok()
        });
        let kernels = bundles.flatten().flat_map(|image| image.kernels);
        kernels.map(|kernel| (KernelKey { type_id: kernel.type_id, form: kernel.form }, kernel.arguments)).collect()
    })
}

/// The program has a list of the arguments, from the first to the last, and each image of the kernel has the same one.
fn check_lists<A: KernelArg, K: 'static>(env: &Env, nest_size: usize, _arguments: &A, _kernel: &K) {
    let program = Argument::list(Bound::<K, Sent<A>>::TYPE);
    let fields = ["0", "1", "2"].map(|field| {
        let is_of = |argument: &&Argument| argument.path.split(['.', '[']).next() == Some(field);
        program.iter().filter(is_of).map(|argument| argument.size).sum::<usize>()
    });
    assert!(fields[0] == 8 && fields[2] > 0 && fields.iter().sum::<usize>() <= size_of::<Sent<A>>(), "{program:?}");
    assert_eq!(fields[1] > 0, nest_size > 0, "{program:?}");
    assert!(program.windows(2).all(|pair| pair[0].path != pair[1].path), "{program:?}");
    let key = KernelKey::new(TypeId::of::<Bound<K, Sent<A>>>(), Form::Range(1));
    let images: Vec<_> = lists_of_images().iter().filter(|(of, _)| *of == key).collect();
    assert!(!images.is_empty() || env.queue().device().backend() == BackendKind::Host, "no image has the kernel");
    for (_, image) in images {
        let are_equal = image.len() == program.len() && image.iter().zip(&program).all(|(a, b)| a.is_at_place_of(b));
        assert!(are_equal, "{image:?} in the image, {program:?} in the program");
    }
}

/// Gives a closure the signature of a kernel with these arguments.
fn kernel_of<A: KernelArg, K>(_arguments: &A, kernel: K) -> K
where
    K: for<'k> Fn(Item<'k, 1>, Value<'k, A>) + Copy + Send + Sync + 'static,
{
    kernel
}

/// Passes random values of a nest, and compares what two work-items of each launch have got.
pub(crate) fn compare<A: Random>(env: &Env, seed: u64)
where
    for<'k> Value<'k, A>: Digested,
{
    let queue = env.queue();
    let digests = Buffer::from_vec(vec![0u64; 2 * VALUES]).expect("a buffer");
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let bits = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits ^ (bits >> 27)
    };
    let mut expected = Vec::new();
    for launch in 0..VALUES {
        let value = A::random(&mut next);
        let mut digest = Digest(seed);
        value.digest(&mut digest);
        expected.extend([digest.0; 2]);
        let arguments = (seed, value, digests.write().range(2 * launch, 2));
        let kernel = kernel_of(&arguments, |item, (seed, value, digests)| {
            let mut digest = Digest(seed);
            value.digest(&mut digest);
            digests.set(item, digest.0);
        });
        if launch == 0 {
            check_lists(env, size_of::<Sent<A>>(), &arguments, &kernel);
        }
        let submitted = queue.parallel_for_with(2, arguments, kernel);
        submitted.unwrap_or_else(|error| panic!("value {launch} of the seed {seed}: {error}"));
    }
    let found = digests.to_vec().expect("the digests");
    if let Some(wrong) = (0..2 * VALUES).find(|index| found[*index] != expected[*index]) {
        panic!("value {} of the seed {seed} has changed on its way to the kernel", wrong / 2);
    }
}
