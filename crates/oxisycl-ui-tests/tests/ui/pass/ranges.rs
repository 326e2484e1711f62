//! Ranges are numbers, arrays, tuples and `Range`, written out or in variables.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let (n, r, s): (usize, [usize; 3], Range<2>) = (8, [2, 2, 2], Range::new([2, 4]));
    let (line, space, plane) =
        (Buffer::<u32, 1>::uninit(n)?, Buffer::<u32, 3>::uninit(r)?, Buffer::<u32, 2>::uninit(s)?);
    queue.submit(|cg| {
        let data = cg.access(&line, Write.no_init());
        cg.parallel_for(n, move |item| data.set(item, 1))
    })?;
    queue.submit(|cg| {
        let data = cg.access(&space, Write.no_init());
        cg.parallel_for(r, move |item| data.set(item, 2))
    })?;
    queue.submit(|cg| {
        let data = cg.access(&plane, Write.no_init());
        cg.parallel_for(plane.range(), move |item| data.set(item, 3))
    })?;
    queue.parallel_for((2, 4), |_| {})?;
    assert_eq!((line.into_vec()?, space.into_vec()?, plane.into_vec()?), (vec![1; 8], vec![2; 8], vec![3; 8]));
    Ok(())
}
