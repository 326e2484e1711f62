//! Derived arguments and kernel functions.
use std::sync::Arc;
use oxisycl::argument::{Bits, Keep};
use oxisycl::prelude::*;
use oxisycl::BufferAccess;
use crate::harness::{Env, tests};

tests![first, second];

#[derive(KernelArg)]
struct Params<'b, A, T: DeviceCopyable> { table: Vec<T>, out: BufferAccess<'b, T, 1, ReadWrite>, scale: Bits<T>, more: (A, [A; 2], Option<A>), n: u8, keep: Keep<Vec<u8>> }
#[derive(KernelArg)]
struct Unit;
#[derive(KernelArg)]
struct Tuple(u32, pub Unit);
#[derive(KernelArg, Clone, Copy)]
#[oxisycl(device = Self)]
struct Same<'a, A, const N: usize> { a: [A; N], b: Accessor<'a, f32, 1, Read> }
#[derive(KernelArg)]
enum Source<A> { None, Table(A), Pair { a: A, n: u32 } }

fn first(env: &Env) {
    let x = Buffer::from_vec(vec![1.0f32; 4]).unwrap();
    let y = Buffer::from_vec(vec![1.0f32; 4]).unwrap();
    let q = env.queue();
    let p = Params { table: vec![1.0; 4], out: x.update(), scale: Bits(3.0), more: (y.read(), [y.read(), y.read()], None), n: 3, keep: Keep(vec![1]) };
    q.parallel_for_with(4, (p, Tuple(1, Unit), Source::Table(vec![1u8]), Source::<u8>::None), |item, (p, t, s, r)| {
        let SourceOnDevice::Table(s) = s else { return };
        p.out.set(item, p.scale * p.table[item.index()] + p.more.0.get(item) + p.more.1[1].get(item) + t.0 as f32 + s[0] as f32)
    }).unwrap();
    assert_eq!(x.to_vec().unwrap(), [7.0; 4]);
}
use std::ops::{Add, Mul};
/// Adds.
#[kernel]
fn axpy<T>(item: Item<1>, a: T, x: &[T], mut y: Accessor<T, 1, ReadWrite>) where T: DeviceCopyable + Mul<Output = T> + Add<Output = T> {
    let z = &mut y;
    z.update(item, |y| a * x[item.index()] + y);
}
#[kernel]
fn twice<'k, const N: usize>(item: Item<'k, 1>, (a, _b): (f32, u8), p: ParamsOnDevice<'k, Accessor<'k, f32, 1, Read>, f32>, n: [u32; N]) {
    axpy::body(item, a + n[N - 1] as f32, p.table, p.out);
}
#[kernel]
fn alone(task: Single, x: Accessor<f32, 1, ReadWrite>) { x.set_at(task, 0, 1.0) }
fn second(env: &Env) {
    let x = Buffer::from_vec(vec![1.0f32; 4]).unwrap();
    let q = env.queue();
    q.launch_call(4, axpy(2.0f32, vec![1.0; 4], x.update())).unwrap();
    q.launch_call(4, axpy(2.0f32, Arc::<[f32]>::from([1.0; 4]), x.update())).unwrap();
    let y = Buffer::from_vec(vec![1.0f32; 4]).unwrap();
    let p = Params { table: vec![1.0; 4], out: x.update(), scale: Bits(3.0), more: (y.read(), [y.read(), y.read()], None), n: 3, keep: Keep(vec![1]) };
    q.launch_call(4, twice((1.0, 2), p, [1u32, 2])).unwrap();
    q.launch_single_call(alone(x.update())).unwrap();
    assert_eq!(x.to_vec().unwrap(), [1.0, 8.0, 8.0, 8.0]);
}
