//! A reference to an element of local memory ends with its phase: in the next one the element may be written plainly.
#![forbid(unsafe_code)]

use std::cell::Cell;

use oxisycl::atomic::{AtomicRef, Relaxed};
use oxisycl::group::{Atomically, Fixed1, Local};
use oxisycl::prelude::*;

thread_local! {
    static KEPT: Cell<Option<AtomicRef<'static, u32>>> = const { Cell::new(None) };
}

fn main() -> oxisycl::Result<()> {
    Queue::default()?.submit(|cg| {
        cg.parallel_for_work_group(1, Fixed1::<8>, Local::<u32, 8>::new(), |mut group, mut tile| {
            group.for_each(Atomically(&mut tile), |_, elements| {
                KEPT.with(|kept| kept.set(Some(elements.atomic_ref(0))));
            });
            group.for_each(&mut tile, |_, element| {
                *element = 1;
                KEPT.with(|kept| kept.get()).map(|kept| kept.load(Relaxed));
            });
        })
    })?;
    Ok(())
}
