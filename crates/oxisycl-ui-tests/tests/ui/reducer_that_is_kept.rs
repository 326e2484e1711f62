//! A reducer belongs to the call of its work-item.
#![forbid(unsafe_code)]

use std::sync::Mutex;

use oxisycl::operator::Sum;
use oxisycl::prelude::*;
use oxisycl::reduction::{Reducer, WithIdentity, reduction};

static KEPT: Mutex<Option<&'static mut Reducer<u32, WithIdentity<Sum>>>> = Mutex::new(None);

fn main() -> oxisycl::Result<()> {
    let sum = Buffer::from_vec(vec![0u32])?;
    Queue::default()?.submit(|cg| {
        let into = reduction(cg.access(&sum, ReadWrite), Sum);
        cg.parallel_reduce(8, into, |_, sum| *KEPT.lock().unwrap() = Some(sum))
    })?;
    Ok(())
}
