//! A derived argument consists of arguments.
#![forbid(unsafe_code)]

use oxisycl::argument::Keep;
use oxisycl::prelude::*;

#[derive(KernelArg)]
union Word {
    number: u32,
    float: f32,
}

#[derive(KernelArg)]
struct Borrowed<'a> {
    count: usize,
    names: &'a [u32],
}

#[derive(KernelArg)]
struct Callback(f32, Keep<u8>, Box<dyn Fn(f32) -> f32 + Send>);

#[derive(KernelArg)]
enum Source {
    Nothing,
    Shared(std::rc::Rc<u32>),
}

#[derive(KernelArg)]
struct Unbounded<T> {
    table: Vec<T>,
}

fn main() {}
