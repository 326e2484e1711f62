//! A named kernel goes through `launch`, a closure through `parallel_for`.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[derive(Clone, Copy)]
struct Nothing;

impl Kernel<Item<'_, 1>> for Nothing {
    fn run(&self, _: Item<'_, 1>) {}
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    queue.submit(|cg| cg.parallel_for(8, Nothing))?;
    queue.submit(|cg| cg.launch(8, |_: Item<1>| {}))?;
    Ok(())
}
