//! The handlers of two command groups must not change places.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    queue.submit(|outer| {
        queue.submit(|inner| {
            std::mem::swap(outer, inner);
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}
