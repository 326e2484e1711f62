//! A cast that asks nothing is a promise.
#![forbid(unsafe_code)]

use oxisycl::multi_ptr::{MultiPtr, space};

fn main() {
    let generic = MultiPtr::<u32, space::Generic>::null();
    let _: MultiPtr<u32, space::Global> = generic.static_cast();
}
