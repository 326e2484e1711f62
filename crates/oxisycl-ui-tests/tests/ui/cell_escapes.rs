//! A cell of an element must not outlive the call of the kernel.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use std::cell::{Cell, RefCell};

thread_local! {
    static LAST: RefCell<Option<&'static Cell<u32>>> = const { RefCell::new(None) };
}

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| LAST.with_borrow_mut(|last| *last = Some(data.cell(item))))
    })?;
    Ok(())
}
