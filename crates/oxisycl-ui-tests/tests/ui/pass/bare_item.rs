//! The type of the item is inferred, in one, two and three dimensions.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let line = Buffer::from_vec(vec![0u32; 8])?;
    let plane = Buffer::from_vec_nd(vec![0u32; 8], [2, 4])?;
    let space = Buffer::from_vec_nd(vec![0u32; 8], [2, 2, 2])?;
    queue.submit(|cg| {
        let data = cg.access(&line, ReadWrite);
        cg.parallel_for(8, move |item| data.set(item, item.index() as u32))
    })?;
    queue.submit(|cg| {
        let data = cg.access(&plane, ReadWrite);
        cg.parallel_for([2, 4], move |item| data.update(item, |x| x + item.linear_id() as u32))
    })?;
    queue.submit(|cg| {
        let data = cg.access(&space, ReadWrite);
        cg.parallel_for((2, 2, 2), move |item| data.set(item, item.linear_id() as u32))
    })?;
    let expected: Vec<u32> = (0..8).collect();
    assert_eq!(line.into_vec()?, expected);
    assert_eq!(plane.into_vec()?, expected);
    assert_eq!(space.into_vec()?, expected);
    Ok(())
}
