//! Twins of the derived arguments that are refused, and other types that may be derived.
#![forbid(unsafe_code)]
#![deny(warnings)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl::BufferAccess;
use oxisycl::argument::{Bits, Decompose, Keep, Launch};
use oxisycl::prelude::*;

#[derive(KernelArg)]
struct Word {
    number: u32,
    float: f32,
}

#[derive(KernelArg)]
struct Borrowed<'a> {
    count: usize,
    names: BufferAccess<'a, u32, 1, ReadWrite>,
}

#[derive(KernelArg)]
struct Callback(f32, Keep<u8>, Box<f32>);

#[derive(KernelArg)]
enum Source {
    Nothing,
    Shared(Arc<u32>),
}

#[derive(KernelArg)]
struct Unbounded<T> {
    table: Vec<T>,
}

#[derive(KernelArg)]
struct Pair<A, B>(A, B);

/// Has a name of its own for what kernels get, and for what it takes from the crate.
mod own {
    use oxisycl as sycl;

    #[derive(sycl::argument::KernelArg)]
    #[oxisycl(crate = sycl, device = InKernels)]
    pub struct Renamed {
        /// A comment.
        pub a: u8,
        pub(crate) b: Vec<u8>,
    }
}

#[derive(KernelArg)]
#[oxisycl(device = Self)]
struct Input<'a> {
    numbers: Accessor<'a, u32, 1, Read>,
}

#[derive(KernelArg)]
#[oxisycl(device = Self)]
struct Inputs<'a, T, const D: usize> {
    numbers: Accessor<'a, T, D, Read>,
}

/// A kernel gets the type itself, since it gets the types of all fields themselves.
#[derive(KernelArg)]
#[oxisycl(device = Self)]
struct Owner {
    names: u32,
}

#[derive(KernelArg)]
#[oxisycl(by_hand)]
struct ByHand(u32);

impl Decompose for ByHand {
    type Parts = u32;
    type Device<'k> = u32;
    type Error = std::convert::Infallible;

    fn deconstruct(self) -> Result<u32, Self::Error> {
        Ok(self.0)
    }

    fn reconstruct(_: Launch<'_>, number: u32) -> u32 {
        number
    }
}

#[derive(KernelArg)]
struct Table {
    names: Vec<u32>,
}

static KEPT: AtomicU32 = AtomicU32::new(0);

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let numbers = Buffer::from_vec(vec![1u32])?;
    let borrowed = Borrowed { count: 1, names: numbers.update() };
    queue.parallel_for_with(1, (Word { number: 1, float: 2.0 }, borrowed), |item, (word, borrowed)| {
        borrowed.names.update(item, |x| x + word.number + word.float as u32 + borrowed.count as u32)
    })?;
    let arguments = (Callback(1.0, Keep(2), Box::new(3.0)), Source::Nothing, Source::Shared(Arc::new(4)));
    queue.parallel_for_with(1, arguments, |_, (callback, nothing, shared)| {
        assert!(callback.0 + callback.2 == 4.0 && matches!(nothing, SourceOnDevice::Nothing));
        assert!(matches!(shared, SourceOnDevice::Shared(4)));
    })?;
    let unbounded = Unbounded { table: vec![1u8] };
    queue.parallel_for_with(1, Pair(unbounded, Bits(2u8)), |_, pair| assert!(pair.0.table[0] < pair.1))?;
    queue.parallel_for_with(1, own::Renamed { a: 1, b: vec![1] }, |_, own::InKernels { a, b }| assert_eq!([a], b))?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, Read);
        let arguments = (Input { numbers }, Inputs { numbers });
        cg.parallel_for_with(1, arguments, |item, (one, other)| {
            assert_eq!(one.numbers.get(item), other.numbers.get(item))
        })
    })?;
    queue.parallel_for_with(1, (Owner { names: 1 }, ByHand(1)), |_, (owner, by_hand)| assert_eq!(owner.names, by_hand))?;
    // A number of what a kernel gets, beyond the call.
    queue.parallel_for_with(1, Table { names: vec![1] }, |_, table| KEPT.store(table.names[0], Ordering::Relaxed))?;
    queue.wait()
}
