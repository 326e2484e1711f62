//! A named kernel is launched over as many dimensions as its items have.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[derive(Clone, Copy)]
struct Fill<'cg>(Accessor<'cg, u32, 1, Write>);

impl Kernel<Item<'_, 1>> for Fill<'_> {
    fn run(&self, item: Item<'_, 1>) {
        self.0.set(item, 1);
    }
}

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let kernel = Fill(cg.access(&buffer, Write));
        cg.launch([2, 4], kernel)
    })?;
    Ok(())
}
