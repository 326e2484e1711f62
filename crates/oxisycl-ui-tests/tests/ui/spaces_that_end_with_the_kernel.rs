//! Addresses of local and private memory are not passed to kernels, and are not kept in buffers. Private memory has no atomic operations.

use oxisycl::multi_ptr::{MultiPtr, space};
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let local = MultiPtr::<u32, space::Local>::null();
    let private = MultiPtr::<u32, space::Private>::null();
    queue.single_task_with(local, |_, _| ())?;
    Buffer::from_vec(vec![private])?;
    // SAFETY: there is none.
    unsafe { private.prefetch(1) };
    queue.single_task(|task| {
        let private = MultiPtr::<u32, space::Private>::null();
        // SAFETY: there is none.
        unsafe { private.atomic_ref(task) };
    })?;
    Ok(())
}
