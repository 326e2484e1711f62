//! Kernels with code of a package outside the workspace.

use oxisycl::prelude::*;

fn main() -> oxisycl::Result {
    let buffer = Buffer::from_vec(vec![3u32; 64])?;
    let queue = Queue::builder().build()?;
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(64, move |item| data.update(item, apart::process))
    })?;
    apart::count(&buffer)
}
