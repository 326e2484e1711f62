//! Parts of kernels are functions over views, accessors and tokens.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use oxisycl::{Inside, Loads, Stores};

fn sum_of_neighbours(view: View<'_, u32, 1>, i: usize) -> u32 {
    view.get(i.wrapping_sub(1)).copied().unwrap_or(0) + view.get(i + 1).copied().unwrap_or(0)
}

fn largest<'k>(data: Accessor<'_, u32, 1, Read>, inside: impl Inside<'k>) -> &'k u32 {
    data.view(inside).iter().max().unwrap_or(&0)
}

fn add<M: Stores + Loads, const D: usize>(data: Accessor<'_, u32, D, M>, item: Item<'_, D>, n: u32) {
    data.update(item, |x| x + n);
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let (input, output) = (Buffer::from_elements(0..8u32)?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, ReadWrite));
        cg.parallel_for(8, move |item| {
            let view = input.view(item);
            add(output, item, sum_of_neighbours(view, item.index()) + largest(input, item));
        })
    })?;
    assert_eq!(output.into_vec()?, [8, 9, 11, 13, 15, 17, 19, 13]);
    Ok(())
}
