//! A phase over a range of its own. Here it loads a tile with a border, a halo, which is larger than the group: each element becomes the mean
//! of its four neighbours.
//!
//! `cargo run --release --example 15_stencil`

#![forbid(unsafe_code)]

use oxisycl::group::{Fixed2, Local};
use oxisycl::prelude::*;

// ANCHOR: kernel
const ROWS: usize = 8;
const COLUMNS: usize = 128;
/// A tile with its border of one element.
const TILE_ROWS: usize = ROWS + 2;
const TILE_COLUMNS: usize = COLUMNS + 2;

/// `input` has a border of one element around `output`, whose sides are multiples of those of a group.
pub(crate) fn smooth(queue: &Queue, input: &Buffer<f32, 2>, output: &Buffer<f32, 2>) -> oxisycl::Result<Event> {
    let Range([rows, columns]) = output.range();
    queue.submit(|cg| {
        let (input, output) = (cg.access(input, Read), cg.access(output, Write.no_init()));
        let tile = Local::<f32, { TILE_ROWS * TILE_COLUMNS }>::new();
        let groups = [rows / ROWS, columns / COLUMNS];
        cg.parallel_for_work_group(groups, Fixed2::<ROWS, COLUMNS>, tile, move |mut group, mut tile| {
            let Id([row, column]) = group.id();
            let input = input.view(group.uniform());
            let part = input.window::<TILE_ROWS, TILE_COLUMNS>([row * ROWS, column * COLUMNS]);
            group.for_each_of([TILE_ROWS, TILE_COLUMNS], &mut tile, move |item, slot| *slot = part[item.id().0]);
            group.for_each(&tile, move |item, tile| {
                let Id([y, x]) = item.local_id();
                let centre = (y + 1) * TILE_COLUMNS + x + 1;
                let above_and_below = tile[centre - TILE_COLUMNS] + tile[centre + TILE_COLUMNS];
                output.set(item.global(), 0.25 * (tile[centre - 1] + tile[centre + 1] + above_and_below));
            });
        })
    })
}
// ANCHOR_END: kernel

fn main() -> oxisycl::Result<()> {
    const HEIGHT: usize = 64;
    const WIDTH: usize = 256;
    let at = |y: usize, x: usize| ((y * 31 + x * 17) % 64) as f32;
    let field: Vec<f32> = (0..(HEIGHT + 2) * (WIDTH + 2)).map(|i| at(i / (WIDTH + 2), i % (WIDTH + 2))).collect();
    let input = Buffer::from_vec_nd(field, [HEIGHT + 2, WIDTH + 2])?;
    let output = Buffer::<f32, 2>::uninit([HEIGHT, WIDTH])?;

    smooth(&Queue::default()?, &input, &output)?;

    let means = output.to_vec()?;
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let expected = 0.25 * (at(y + 1, x) + at(y + 1, x + 2) + at(y, x + 1) + at(y + 2, x + 1));
            assert_eq!(means[y * WIDTH + x], expected, "row {y}, column {x}");
        }
    }
    println!("the mean of the neighbours of row 0, column 0 is {}", means[0]);
    Ok(())
}
