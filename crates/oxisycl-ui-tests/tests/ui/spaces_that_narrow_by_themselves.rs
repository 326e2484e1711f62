//! From a wider address space to a narrower one a pointer goes only when asked.
#![forbid(unsafe_code)]

use oxisycl::multi_ptr::{MultiPtr, space};

fn main() {
    let generic = MultiPtr::<u32, space::Generic>::null();
    let global = MultiPtr::<u32, space::Global>::null();
    let _: MultiPtr<u32, space::Global> = generic.into();
    let _: MultiPtr<u32, space::Local> = generic.into();
    let _: MultiPtr<u32, space::Private> = generic.into();
    let _: MultiPtr<u32, space::GlobalDevice> = global.into();
    let _: MultiPtr<u32, space::GlobalHost> = global.widen::<space::GlobalHost>();
}
