//! The kernel gets the type itself only if it gets the types of all fields themselves.
#![forbid(unsafe_code)]

use std::rc::Rc;

use oxisycl::prelude::*;

#[derive(KernelArg)]
struct Pair<A, B>(A, B);

#[derive(KernelArg)]
#[oxisycl(device = Self)]
struct Owner {
    names: Vec<u32>,
}

#[derive(KernelArg)]
#[oxisycl(by_hand)]
struct ByHand(u32);

fn main() -> oxisycl::Result<()> {
    // No argument, behind a parameter.
    Queue::default()?.parallel_for_with(1, Pair(1u32, Rc::new(1)), |_, _| ())?;
    Ok(())
}
