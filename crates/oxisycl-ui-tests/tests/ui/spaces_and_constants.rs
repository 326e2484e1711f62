//! An address of constant memory is of no other space, and nothing is written there.

use oxisycl::multi_ptr::{Constant, MultiPtr, space};

static TABLE: Constant<[u32; 2]> = Constant::new([1, 2]);
static TOO_LARGE: Constant<[u32; 16385]> = Constant::new([0; 16385]);

fn main() {
    let constant = TABLE.multi_ptr();
    let _: MultiPtr<[u32; 2]> = constant.into();
    let _ = constant.dynamic_cast::<space::Global>();
    let _ = MultiPtr::<[u32; 2]>::null().dynamic_cast::<space::Constant>();
    // SAFETY: there is none.
    unsafe { constant.write([3, 4]) };
}
