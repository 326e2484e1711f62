//! Named address spaces have no address in common: there is no way from one to another, and nothing to compare.
#![forbid(unsafe_code)]

use oxisycl::multi_ptr::{MultiPtr, space};

fn main() {
    let global = MultiPtr::<u32, space::Global>::null();
    let of_device = MultiPtr::<u32, space::GlobalDevice>::null();
    let local = MultiPtr::<u32, space::Local>::null();
    let private = MultiPtr::<u32, space::Private>::null();
    let _: MultiPtr<u32, space::Local> = global.into();
    let _: MultiPtr<u32, space::Global> = local.into();
    let _ = global.dynamic_cast::<space::Private>();
    let _ = local.dynamic_cast::<space::Global>();
    let _ = private.dynamic_cast::<space::Local>();
    let _ = of_device.dynamic_cast::<space::GlobalHost>();
    let _ = global == local;
}
