//! Elements are `Copy` structs and enums with a size, without lifetimes.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[derive(Clone, Copy, DeviceCopyable)]
struct Borrowed<'a>(&'a u32);

#[derive(Clone, Copy, DeviceCopyable)]
union Bits {
    number: u32,
    float: f32,
}

#[derive(Clone, Copy, DeviceCopyable)]
struct Empty;

#[derive(Clone, Copy, DeviceCopyable)]
struct Hollow([u32; 0]);

#[derive(Clone, DeviceCopyable)]
struct NotCopy(u32);

fn main() {}
