//! A type with an address in it is no element.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[derive(Clone, Copy, DeviceCopyable)]
struct Named {
    name: &'static str,
    value: u32,
}

#[derive(Clone, Copy, DeviceCopyable)]
enum Action {
    Nothing,
    Call(fn(u32) -> u32),
}

#[derive(Clone, Copy, DeviceCopyable)]
struct Generic<T>(T);

fn main() -> oxisycl::Result<()> {
    let _buffer = Buffer::from_vec(vec![Generic("a")])?;
    Ok(())
}
