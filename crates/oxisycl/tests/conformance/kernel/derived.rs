//! Derived arguments and kernel functions.
use std::sync::Arc;
use oxisycl::argument::{KernelArg, Bits, Keep, Value};
use oxisycl::prelude::*;
use oxisycl::BufferAccess;
use crate::harness::{Env, tests};

tests![first];

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
