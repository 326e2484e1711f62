//! References, function pointers and pointers mean nothing on a device.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let _names = Buffer::from_vec(vec!["a", "b"])?;
    let _functions = Buffer::from_vec(vec![f32::sin as fn(f32) -> f32; 2])?;
    let _pointers = Buffer::from_vec(vec![std::ptr::null::<u8>(); 2])?;
    Ok(())
}
