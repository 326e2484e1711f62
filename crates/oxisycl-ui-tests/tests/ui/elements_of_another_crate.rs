//! A type of another crate is no element until that crate's feature says so.
#![forbid(unsafe_code)]

use std::time::Duration;

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let _times = Buffer::from_vec(vec![Duration::ZERO; 8])?;
    Ok(())
}
