//! Which mode goes with which type is not for the user to say: an enum cannot be discarded.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[derive(Clone, Copy, DeviceCopyable)]
#[repr(u8)]
enum Suit {
    Hearts = 1,
    Spades = 2,
}

impl oxisycl::ModeFor<Suit> for oxisycl::NoInit<Write> {}

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![Suit::Hearts; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, Write.no_init());
        cg.parallel_for(4, move |item| data.set(item, Suit::Spades))
    })?;
    Ok(())
}
