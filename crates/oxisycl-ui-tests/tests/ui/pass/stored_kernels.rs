//! A kernel may be stored before it is launched: with `kernel`, or with an annotated item.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let buffer = Buffer::from_vec_nd(vec![0u32; 8], [2, 4])?;
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        let add = kernel(move |item| data.update(item, |x| x + 1));
        cg.parallel_for([2, 4], add)
    })?;
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        let add = move |item: Item<'_, 2>| data.update(item, |x| x + 1);
        cg.parallel_for([2, 4], add)
    })?;
    fn nothing(_: Item<'_, 1>) {}
    queue.parallel_for(8, nothing)?;
    assert_eq!(buffer.into_vec()?, [2; 8]);
    Ok(())
}
