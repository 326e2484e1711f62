//! What crosses for an argument is described by an unsafe implementation.
#![forbid(unsafe_code)]

use oxisycl::argument::{ArgumentType, DeviceForm, KernelArg, Launch};

#[derive(Clone, Copy)]
struct Address(usize);

unsafe impl DeviceForm for Address {
    type Value<'k> = &'k u32;
    const TYPE: &'static ArgumentType = &ArgumentType::leaf(std::any::type_name::<Self>, 8);

    unsafe fn reconstruct<'k>(self, _: Launch<'k>) -> &'k u32 {
        unsafe { &*(self.0 as *const u32) }
    }
}

impl KernelArg for Address {
    type Sent = Self;
}

fn main() {}
