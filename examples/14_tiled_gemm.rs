//! Work-groups with local memory. Here they multiply matrices by tiles: each element of a tile is loaded once for a whole group.
//!
//! `cargo run --release --example 14_tiled_gemm`

#![forbid(unsafe_code)]

use oxisycl::group::{Fixed2, Local, Private};
use oxisycl::prelude::*;

// ANCHOR: kernel
const TILE: usize = 16;

/// `c = a * b`. The sides of all matrices are multiples of `TILE`.
pub(crate) fn multiply(
    queue: &Queue,
    a: &Buffer<f32, 2>,
    b: &Buffer<f32, 2>,
    c: &Buffer<f32, 2>,
) -> oxisycl::Result<Event> {
    let (Range([rows, depth]), Range([_, columns])) = (a.range(), b.range());
    queue.submit(|cg| {
        let (a, b, c) = (cg.access(a, Read), cg.access(b, Read), cg.access(c, Write.no_init()));
        let tile = Local::<f32, { TILE * TILE }>::new();
        let memory = (tile, tile, Private::new(0.0));
        let groups = [rows / TILE, columns / TILE];
        cg.parallel_for_work_group(
            groups,
            Fixed2::<TILE, TILE>,
            memory,
            move |mut group, (mut left, mut right, mut sum)| {
                let (a, b) = (a.view(group.uniform()), b.view(group.uniform()));
                let Id([row, column]) = group.id();
                for step in 0..depth / TILE {
                    let a = a.window::<TILE, TILE>([row * TILE, step * TILE]);
                    let b = b.window::<TILE, TILE>([step * TILE, column * TILE]);
                    group.for_each((&mut left, &mut right), move |item, (left, right)| {
                        let Id(at) = item.local_id();
                        (*left, *right) = (a[at], b[at]);
                    });
                    group.for_each((&left, &right, &mut sum), move |item, (left, right, sum)| {
                        let Id([y, x]) = item.local_id();
                        for k in 0..TILE {
                            *sum += left[y * TILE + k] * right[k * TILE + x];
                        }
                    });
                }
                group.for_each(&sum, move |item, sum| c.set(item.global(), *sum));
            },
        )
    })
}
// ANCHOR_END: kernel

fn main() -> oxisycl::Result<()> {
    const ROWS: usize = 64;
    const DEPTH: usize = 96;
    const COLUMNS: usize = 48;
    let left: Vec<f32> = (0..ROWS * DEPTH).map(|i| (i % 7) as f32).collect();
    let right: Vec<f32> = (0..DEPTH * COLUMNS).map(|i| (i % 5) as f32).collect();
    let a = Buffer::from_slice_nd(&left, [ROWS, DEPTH])?;
    let b = Buffer::from_slice_nd(&right, [DEPTH, COLUMNS])?;
    let c = Buffer::<f32, 2>::uninit([ROWS, COLUMNS])?;

    multiply(&Queue::default()?, &a, &b, &c)?;

    let product = c.to_vec()?;
    for y in 0..ROWS {
        for x in 0..COLUMNS {
            let expected: f32 = (0..DEPTH).map(|k| left[y * DEPTH + k] * right[k * COLUMNS + x]).sum();
            assert_eq!(product[y * COLUMNS + x], expected, "row {y}, column {x}");
        }
    }
    println!("{ROWS} x {DEPTH} times {DEPTH} x {COLUMNS}: the last element is {}", product[ROWS * COLUMNS - 1]);
    Ok(())
}
