//! Local memory has at least one element, and an element has a size.
#![forbid(unsafe_code)]

use oxisycl::group::{Local, LocalSlice};

fn main() {
    let _none = Local::<u32, 0>::new();
    let _empty = Local::<[u32; 0], 4>::new();
    let _empty = LocalSlice::<[u32; 0]>::new(4);
}
