//! A work-item must not leave its item where the next one on its thread finds it.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use std::cell::Cell;

thread_local! {
    static LAST: Cell<Option<Item<'static, 1>>> = const { Cell::new(None) };
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    queue.parallel_for(8, |item| LAST.set(Some(item)))?;
    Ok(())
}
