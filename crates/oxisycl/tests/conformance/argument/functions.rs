//! Kernel functions: what they take, which kernels they are, and their names.

use std::ops::{Add, Mul};
use std::sync::Arc;

use oxisycl::argument::{Decompose, Launch};
use oxisycl::prelude::*;
use oxisycl::{KernelId, ModeFor, Stores};

use crate::harness::{Env, tests};

tests![
    functions_take_what_gives_their_parameters,
    functions_are_generic,
    functions_may_be_single_tasks,
    functions_call_the_code_of_others,
    functions_take_derived_arguments,
    messages_have_the_name_of_the_function;
    once:
    arguments_that_give_the_same_have_one_kernel,
];

/// Number types with the operations of `axpy`.
trait Number: DeviceCopyable + Add<Output = Self> + Mul<Output = Self> {}
impl Number for f32 {}
impl Number for u64 {}

/// Adds to `y`.
#[kernel]
fn axpy<T: Number>(item: Item<1>, a: T, x: Accessor<T, 1, Read>, y: Accessor<T, 1, ReadWrite>) {
    y.update(item, |y| a * x.get(item) + y);
}

fn functions_take_what_gives_their_parameters(env: &Env) {
    let queue = env.queue();
    let (x, y) = (Buffer::from_vec(vec![1.0f32, 2.0]).unwrap(), Buffer::from_vec(vec![0.5f32; 2]).unwrap());
    queue.launch_call(2, axpy(2.0f32, x.read(), y.update())).unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.5, 4.5]);
    // Accessors and placeholders of a group.
    let placeholder = x.placeholder(Read);
    let event = queue.submit(|cg| {
        let y = cg.access(&y, ReadWrite);
        cg.launch_call([2], axpy(10.0f32, &placeholder, y))
    });
    event.unwrap();
    assert_eq!(y.to_vec().unwrap(), [12.5, 24.5]);
    let (x, y) = (Buffer::from_vec(vec![1u64, 2]).unwrap(), Buffer::from_vec(vec![3u64; 2]).unwrap());
    queue.launch_call(2, axpy(1u64 << 40, x.read(), y.update())).unwrap();
    assert_eq!(y.to_vec().unwrap(), [(1 << 40) + 3, (2 << 40) + 3]);
}

pub(crate) mod inner {
    use super::*;

    /// Has lifetimes and constants, patterns, and a mode that the caller chooses.
    #[kernel]
    pub(in crate::argument) fn generic<'k, T, M, const N: usize>(
        item: Item<'k, 2>,
        (a, _): (f32, u8),
        row: [T; N],
        mut out: Accessor<'k, f32, 2, M>,
        text: &str,
    ) where
        T: Copy + Into<f32>,
        M: ModeFor<f32> + Stores,
    {
        let out = &mut out;
        let sum = row.iter().fold(a, |sum, x| sum + (*x).into());
        out.set(item, sum + text.len() as f32);
    }
}

fn functions_are_generic(env: &Env) {
    let out = Buffer::from_vec_nd(vec![0.0f32; 4], [2, 2]).unwrap();
    // A literal is enough for a number.
    env.queue().launch_call([2, 2], inner::generic((0.5, 1), [1u8, 2, 3], out.write(), "four".to_owned())).unwrap();
    assert_eq!(out.to_vec().unwrap(), [10.5; 4]);
    env.queue().launch_call([2, 2], inner::generic((0.5, 1), [1.0f32], out.update(), String::new())).unwrap();
    assert_eq!(out.to_vec().unwrap(), [1.5; 4]);
}

fn functions_may_be_single_tasks(env: &Env) {
    #[kernel]
    fn sum(task: Single, numbers: &[i64], sum: Accessor<i64, 1, Write>) {
        sum.set_at(task, 0, numbers.iter().sum());
    }
    #[kernel]
    fn nothing(_: Single) {}
    let (queue, result) = (env.queue(), Buffer::from_vec(vec![0]).unwrap());
    queue.launch_single_call(sum(vec![1, 2, 3], result.write())).unwrap();
    assert_eq!(result.to_vec().unwrap(), [6]);
    queue.submit(|cg| cg.launch_single_call(sum(Box::<[i64]>::from([4, 5]), result.write()))).unwrap();
    assert_eq!(result.to_vec().unwrap(), [9]);
    queue.launch_single_call(nothing()).unwrap();
}

/// Calls the code of another kernel, whose type is a place for it.
#[kernel]
fn twice(item: Item<1>, x: Accessor<u64, 1, Read>, y: Accessor<u64, 1, ReadWrite>) {
    axpy::body(item, 1, x, y);
    axpy::body::<u64>(item, 10, x, y);
}

fn functions_call_the_code_of_others(env: &Env) {
    let (x, y) = (Buffer::from_vec(vec![1u64, 2]).unwrap(), Buffer::from_vec(vec![100u64; 2]).unwrap());
    env.queue().launch_call(2, twice(x.read(), y.update())).unwrap();
    assert_eq!(y.to_vec().unwrap(), [111, 122]);
    env.queue().parallel_for_with(2, (x.read(), y.update()), |item, (x, y)| axpy::body(item, 2, x, y)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [113, 126]);
}

#[derive(KernelArg)]
struct Table<T: DeviceCopyable> {
    names: Vec<T>,
    base: u64,
}

#[kernel]
fn lookup(item: Item<1>, table: TableOnDevice<u64>, y: Accessor<u64, 1, ReadWrite>) {
    y.update(item, |y| table.base + table.names[y as usize]);
}

fn functions_take_derived_arguments(env: &Env) {
    let y = Buffer::from_vec(vec![2u64, 0, 1]).unwrap();
    env.queue().launch_call(3, lookup(Table { names: vec![5, 6, 7], base: 100 }, y.update())).unwrap();
    assert_eq!(y.to_vec().unwrap(), [107, 105, 106]);
}

/// What cannot be passed.
#[derive(KernelArg)]
#[oxisycl(by_hand)]
struct Refused;

impl Decompose for Refused {
    type Parts = ();
    type Device<'k> = ();
    type Error = std::fmt::Error;

    fn deconstruct(self) -> Result<(), std::fmt::Error> {
        Err(std::fmt::Error)
    }

    fn reconstruct(_: Launch<'_>, (): ()) {}
}

#[kernel]
fn named(_: Item<1>, _: u8, (): ()) {}

fn messages_have_the_name_of_the_function(env: &Env) {
    let error = env.queue().launch_call(1, named(1, Refused)).unwrap_err();
    assert!(error.to_string().contains("argument \"1\" of kernel \"named\""), "{error}");
    let error = env.queue().submit(|cg| cg.launch_call(1, named(1, Refused))).unwrap_err();
    assert!(error.to_string().contains("argument \"1\" of kernel \"named\""), "{error}");
    // The group's own name comes first.
    let error = env.queue().submit(|cg| {
        cg.name("mine");
        cg.launch_call(1, named(1, Refused))
    });
    let error = error.unwrap_err();
    assert!(error.to_string().contains("argument \"1\" of kernel \"mine\""), "{error}");
    assert_eq!(named(1, ()).name(), "named");
}

#[kernel]
fn sums<T: Number>(item: Item<1>, x: &[T], y: Accessor<T, 1, ReadWrite>) {
    y.update(item, |y| x[item.index()] + y);
}

fn arguments_that_give_the_same_have_one_kernel() {
    let (y, z) = (Buffer::from_vec(vec![1.0f32]).unwrap(), Buffer::from_vec(vec![1u64]).unwrap());
    let vector = KernelId::of_call(&sums(vec![1.0f32], y.update()));
    let shared = KernelId::of_call(&sums(Arc::<[f32]>::from([1.0]), y.update()));
    let other = KernelId::of_call(&sums(vec![1u64], z.update()));
    assert_eq!(vector, shared);
    assert_ne!(vector, other);
    assert!(vector.name().contains("functions::sums"), "{vector:?}");
}
