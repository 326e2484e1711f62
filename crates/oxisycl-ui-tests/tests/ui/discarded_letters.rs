//! `no_init` leaves elements behind that nobody wrote.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec!['a'; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, Write.no_init());
        cg.parallel_for(8, move |item| data.set(item, 'b'))
    })?;
    Ok(())
}
