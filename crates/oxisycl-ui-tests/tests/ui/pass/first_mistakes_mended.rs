//! What the book's page on errors says to do instead of some first mistakes.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let table = Buffer::from_vec(vec![2u32, 3, 5, 7])?; // instead of a captured vector
    let factor = 5;
    let borrowed = &factor;
    let data = Buffer::from_vec(vec![0u32; 8])?;
    let sum = Buffer::from_vec(vec![0u32])?; // instead of a captured variable
    queue.submit(|cg| {
        let (table, data) = (cg.access(&table, Read), cg.access(&data, Write));
        let sum = cg.access(&sum, Atomic);
        let factor = *borrowed; // the value instead of the reference
        cg.parallel_for(8, move |item| {
            let value = factor * *table.at(item, item.index() % 4);
            data.set(item, value); // instead of an index on the left
            sum.fetch_add(item, 0, value);
        })
    })?;
    assert_eq!(sum.into_vec()?, [2 * 5 * (2 + 3 + 5 + 7)]);
    assert_eq!(data.into_vec()?[3], 35);
    Ok(())
}
