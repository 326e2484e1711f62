//! Bytes must not become values that do not exist, nor padding become bytes.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[derive(Clone, Copy, DeviceCopyable)]
#[repr(C)]
struct Padded(u8, u32);

fn main() -> oxisycl::Result<()> {
    let bytes = Buffer::from_vec(vec![3u8; 8])?;
    let _flags: Buffer<bool, 1> = bytes.reinterpret(8)?;
    let _letters: Buffer<char, 1> = bytes.reinterpret(2)?;
    let _padded: Buffer<Padded, 1> = bytes.reinterpret(1)?;
    let padded = Buffer::from_vec(vec![Padded(1, 2)])?;
    let _bytes: Buffer<u8, 1> = padded.reinterpret(8)?;
    Ok(())
}
