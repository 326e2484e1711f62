//! Modes, tokens and host memory are promises, which safe code cannot make.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[derive(Clone, Copy)]
struct Mine;

impl oxisycl::Mode for Mine {
    const MODE: oxisycl::AccessMode = oxisycl::AccessMode::Read;
}

impl oxisycl::Stores for Read {}

impl<'k> oxisycl::Inside<'k> for Mine {}

impl oxisycl::HostMemory<u32> for Mine {
    fn pointer(&self) -> *const u32 {
        std::ptr::null()
    }
    fn len(&self) -> usize {
        8
    }
}

fn main() {}
