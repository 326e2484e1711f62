//! Accessors whose work-items own blocks of elements.

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{code, iota};

tests![
    blocks_divide_a_line,
    the_last_block_of_a_line_may_be_partial,
    blocks_divide_a_plane,
    partial_blocks_of_a_plane_are_cut_at_both_edges,
    blocks_divide_a_cube,
    a_block_beyond_the_range_is_empty,
    a_huge_block_owns_everything,
    huge_ids_do_not_wrap_around,
    a_block_with_a_zero_extent_is_refused,
    a_block_index_outside_the_block_is_an_error,
    blocks_are_slices_of_cells,
    rows_of_blocks_are_slices_of_cells,
    fill_with_visits_the_block_in_row_major_order,
    blocks_can_be_written_without_old_data,
    each_block_may_hold_a_partial_result,
    blocks_overlap_with_other_accessors_like_the_whole_range,
    blocks_of_a_part_begin_at_its_offset,
    blocks_of_a_part_of_a_cube_begin_at_its_offset,
    blocks_of_a_part_leave_the_rest_alone,
    blocks_of_an_empty_part_are_empty,
    blocks_of_a_part_outside_the_buffer_are_refused,
    blocks_of_a_part_overlap_only_inside_it,
];

fn blocks_divide_a_line(env: &Env) {
    let buffer = Buffer::from_vec(vec![0; 12]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, Write, 4);
        assert_eq!((data.range(), data.block_range(), data.n_blocks()), (Range([12]), Range([4]), Range([3])));
        cg.parallel_for(data.n_blocks(), move |item| {
            let block = data.block(item);
            assert_eq!((block.origin(), block.range(), block.len()), (Id([item.index() * 4]), Range([4]), 4));
            for i in 0..block.len() {
                block.set(i, (item.index() * 100 + i) as i32);
            }
        })
    });
    kernel.unwrap().wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203]);
}

fn the_last_block_of_a_line_may_be_partial(env: &Env) {
    let buffer = Buffer::from_vec(vec![0; 11]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, Write, 4);
        cg.parallel_for(data.n_blocks(), move |item| {
            let block = data.block(item);
            block.fill((item.index() * 10 + block.len()) as i32);
        })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [4, 4, 4, 4, 14, 14, 14, 14, 23, 23, 23]);
}

fn blocks_divide_a_plane(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(24), [4, 6]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, ReadWrite, [2, 3]);
        assert_eq!(data.n_blocks(), [2, 2]);
        cg.parallel_for([2, 2], move |item| {
            let block = data.block(item);
            // Transposes nothing, but reads and writes every element by its own index.
            for y in 0..2 {
                for x in 0..3 {
                    let old = block.get([y, x]);
                    block.set([y, x], old * 100 + (item.linear_id() * 10 + y * 3 + x) as i32);
                }
            }
        })
    });
    kernel.unwrap();
    let expected = (0..24).map(|i| {
        let (y, x) = (i / 6, i % 6);
        i * 100 + (y / 2 * 2 + x / 3) * 10 + y % 2 * 3 + x % 3
    });
    assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<i32>>());
}

fn partial_blocks_of_a_plane_are_cut_at_both_edges(env: &Env) {
    let buffer = Buffer::from_vec_nd(vec![0; 35], [5, 7]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, Write, [2, 3]);
        assert_eq!(data.n_blocks(), [3, 3]);
        cg.parallel_for(data.n_blocks(), move |item| {
            let block = data.block(item);
            let [y, x] = item.id().0;
            assert_eq!(block.range(), [if y == 2 { 1 } else { 2 }, if x == 2 { 1 } else { 3 }]);
            assert_eq!(block.origin(), [y * 2, x * 3]);
            block.fill(1 + item.linear_id() as i32);
        })
    });
    kernel.unwrap().wait().unwrap();
    let expected = (0..35).map(|i| 1 + i / 7 / 2 * 3 + i % 7 / 3);
    assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<i32>>());
}

fn blocks_divide_a_cube(env: &Env) {
    let buffer = Buffer::from_vec_nd(vec![0; 60], [3, 4, 5]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, ReadWrite, [2, 2, 2]);
        cg.parallel_for(data.n_blocks(), move |item| {
            let block = data.block(item);
            let [z, y, x] = block.origin().0;
            block.fill_with(|index| ((z + index[0]) * 20 + (y + index[1]) * 5 + x + index[2]) as i32);
            let cell = block.cell([0, 0, 0]);
            cell.set(cell.get() + 1000);
        })
    });
    kernel.unwrap();
    let expected = (0..60).map(|i| {
        let (z, y, x) = (i / 20, i / 5 % 4, i % 5);
        if z % 2 == 0 && y % 2 == 0 && x % 2 == 0 { i + 1000 } else { i }
    });
    assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<i32>>());
}

fn a_block_beyond_the_range_is_empty(env: &Env) {
    let buffer = Buffer::from_vec(vec![0; 10]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, ReadWrite, 4);
        cg.parallel_for(100, move |item| {
            let block = data.block(item);
            assert_eq!(block.is_empty(), item.index() >= 3);
            assert_eq!(block.as_cells().len(), block.len());
            block.fill(1);
        })
    });
    kernel.unwrap().wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [1; 10]);
}

fn a_huge_block_owns_everything(env: &Env) {
    let buffer = Buffer::from_vec_nd(vec![0; 12], [3, 4]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, Write, [usize::MAX, usize::MAX]);
        assert_eq!(data.n_blocks(), [1, 1]);
        cg.parallel_for([2, 2], move |item| data.block(item).fill(1 + item.linear_id() as i32))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [1; 12]);
}

fn huge_ids_do_not_wrap_around(env: &Env) {
    let buffer = Buffer::from_vec(vec![0; 8]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, Write, 1 << 62);
        // id * block is 0 modulo the word size for ids that are multiples of four.
        cg.parallel_for_offset(1, 8, move |item| data.block(item).fill(1))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0; 8]);
}

fn a_block_with_a_zero_extent_is_refused(env: &Env) {
    let buffer = Buffer::from_vec_nd(vec![0; 8], [2, 4]).unwrap();
    for block in [[0, 1], [1, 0], [0, 0]] {
        let result = env.queue().submit(|cg| {
            let data = cg.access_chunks(&buffer, Write, block);
            cg.parallel_for([1, 1], move |item| data.block(item).fill(1))
        });
        assert_eq!(code(result), ErrorCode::Invalid);
    }
}

fn a_block_index_outside_the_block_is_an_error(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(35), [5, 7]).unwrap();
    for (id, index) in [([0, 0], [2, 0]), ([0, 0], [0, 3]), ([2, 0], [1, 0]), ([0, 2], [0, 1]), ([9, 9], [0, 0])] {
        let kernel = env.queue().submit(|cg| {
            let data = cg.access_chunks(&buffer, Write, [2, 3]);
            cg.parallel_for_offset(id, [1, 1], move |item| data.block(item).set(index, -1))
        });
        assert_eq!(code(kernel.unwrap().wait()), ErrorCode::Kernel, "{id:?} {index:?}");
        crate::support::write_positions(&env.queue(), &buffer, 0);
        assert_eq!(buffer.to_vec().unwrap(), iota(35));
    }
}

fn blocks_are_slices_of_cells(env: &Env) {
    let buffer = Buffer::from_vec(iota(10)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, ReadWrite, 4);
        cg.parallel_for(data.n_blocks(), move |item| {
            // A running sum within each block.
            let cells = data.block(item).as_cells();
            for pair in cells.windows(2) {
                pair[1].set(pair[1].get() + pair[0].get());
            }
        })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 3, 6, 4, 9, 15, 22, 8, 17]);
}

fn rows_of_blocks_are_slices_of_cells(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(35), [5, 7]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, ReadWrite, [2, 3]);
        cg.parallel_for(data.n_blocks(), move |item| {
            let block = data.block(item);
            for y in 0..block.range()[0] {
                let row = block.row(y);
                let sum: i32 = row.iter().map(|cell| cell.get()).sum();
                row[0].set(sum);
            }
        })
    });
    kernel.unwrap();
    let old = |y: usize, x: usize| (y * 7 + x) as i32;
    let expected = (0..35).map(|i| {
        let (y, x) = (i / 7, i % 7);
        if x % 3 == 0 { (x..7.min(x + 3)).map(|x| old(y, x)).sum() } else { old(y, x) }
    });
    assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<i32>>());
}

fn fill_with_visits_the_block_in_row_major_order(env: &Env) {
    let buffer = Buffer::from_vec_nd(vec![-1; 24], [2, 3, 4]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks(&buffer, Write, [2, 2, 3]);
        cg.parallel_for(data.n_blocks(), move |item| {
            let mut n_calls = 0;
            data.block(item).fill_with(|_| {
                n_calls += 1;
                n_calls
            });
        })
    });
    kernel.unwrap();
    // Blocks of 2x2x3, 2x2x1, 2x1x3 and 2x1x1 elements.
    let expected = [[1, 2, 3, 1, 4, 5, 6, 2, 1, 2, 3, 1], [7, 8, 9, 3, 10, 11, 12, 4, 4, 5, 6, 2]];
    assert_eq!(buffer.to_vec().unwrap(), expected.concat());
}

fn blocks_can_be_written_without_old_data(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(100).unwrap();
    crate::support::write_positions(&env.other_queue(), &buffer, 0);
    let (since, ()) = crate::support::counted(|| {
        let kernel = env.queue().submit(|cg| {
            let data = cg.access_chunks(&buffer, Write.no_init(), 7);
            cg.parallel_for(data.n_blocks(), move |item| data.block(item).fill(item.index() as i32))
        });
        kernel.unwrap().wait().unwrap();
    });
    assert_eq!(since.transfers(), 0);
    assert_eq!(buffer.to_vec().unwrap(), (0..100).map(|i| i / 7).collect::<Vec<_>>());
}

fn each_block_may_hold_a_partial_result(env: &Env) {
    const N: usize = 10_000;
    const BLOCK: usize = 1024;
    let [a, b] = [3, 5].map(|m| Buffer::from_vec_nd((0..N as u64).map(|i| i % m).collect(), N).unwrap());
    let partial = Buffer::<u64, 1>::uninit(N.div_ceil(BLOCK)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (a, b, partial) = (cg.access(&a, Read), cg.access(&b, Read), cg.access(&partial, Write.no_init()));
        cg.parallel_for(N.div_ceil(BLOCK), move |item| {
            let (a, b) = (a.view(item).chunk(item, BLOCK), b.view(item).chunk(item, BLOCK));
            partial.set(item, a.iter().zip(b).map(|(a, b)| a * b).sum());
        })
    });
    kernel.unwrap();
    let expected: u64 = (0..N as u64).map(|i| (i % 3) * (i % 5)).sum();
    assert_eq!(partial.to_vec().unwrap().iter().sum::<u64>(), expected);
}

fn blocks_overlap_with_other_accessors_like_the_whole_range(env: &Env) {
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let result = env.queue().submit(|cg| {
        let from = cg.access_range(&buffer, Read, 7, 1);
        let to = cg.access_chunks(&buffer, Write, 4);
        cg.parallel_for(1, move |item| to.block(item).fill(from.get(item)))
    });
    assert_eq!(code(result), ErrorCode::Accessor);
}

fn blocks_of_a_part_begin_at_its_offset(env: &Env) {
    let buffer = Buffer::from_vec(iota(16)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks_range(&buffer, ReadWrite, 4, 3, 10);
        assert_eq!((data.range(), data.block_range(), data.n_blocks()), (Range([10]), Range([4]), Range([3])));
        // One work-item more than there are blocks.
        cg.parallel_for(4, move |item| {
            let block = data.block(item);
            assert_eq!(block.len(), [4, 4, 2, 0][item.index()]);
            assert_eq!(block.origin(), [[0, 4, 8, 10][item.index()]]);
            for i in 0..block.len() {
                block.set(i, block.get(i) + 100 * (item.index() as i32 + 1));
            }
        })
    });
    kernel.unwrap();
    let expected = [0, 1, 2, 103, 104, 105, 106, 207, 208, 209, 210, 311, 312, 13, 14, 15];
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn blocks_of_a_part_of_a_cube_begin_at_its_offset(env: &Env) {
    let (range, offset, block) = ([2, 3, 4], [1, 1, 2], [2, 2, 3]);
    let buffer = Buffer::from_vec_nd(vec![-1; 4 * 5 * 7], [4, 5, 7]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks_range(&buffer, Write, block, offset, range);
        assert_eq!(data.n_blocks(), [1, 2, 2]);
        cg.parallel_for(data.n_blocks(), move |item| {
            let block = data.block(item);
            let [z, y, x] = block.origin().0;
            block.fill_with(|index| ((z + index[0]) * 100 + (y + index[1]) * 10 + x + index[2]) as i32);
        })
    });
    kernel.unwrap();
    let expected = (0..4 * 5 * 7).map(|i| {
        let at = [i / 35, i / 7 % 5, i % 7];
        let inside = (0..3).all(|d| (offset[d]..offset[d] + range[d]).contains(&at[d]));
        let [z, y, x] = std::array::from_fn(|d| at[d].wrapping_sub(offset[d]));
        if inside { (z * 100 + y * 10 + x) as i32 } else { -1 }
    });
    assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<_>>());
}

fn blocks_of_a_part_leave_the_rest_alone(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).uninit::<i32>(16).unwrap();
    crate::support::write_positions(&env.other_queue(), &buffer, 0).wait().unwrap();
    let run = |block: usize, no_init: bool| {
        let (since, ()) = crate::support::counted(|| {
            let kernel = env.queue().submit(|cg| {
                if no_init {
                    let data = cg.access_chunks_range(&buffer, Write.no_init(), block, 5, 6);
                    cg.parallel_for(data.n_blocks(), move |item| data.block(item).fill(-1 - item.index() as i32))
                } else {
                    let data = cg.access_chunks_range(&buffer, ReadWrite, block, 13, 2);
                    cg.parallel_for(data.n_blocks(), move |item| data.block(item).set(0, 50))
                }
            });
            kernel.unwrap().wait().unwrap();
        });
        (since.transfers(), since.transferred_bytes())
    };
    // Without old data nothing moves, even of pages that are covered in part; with it, the page that the part touches.
    assert_eq!(run(4, true), (0, 0));
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!(run(8, false), (hops, 16 * hops));
    let expected = [0, 1, 2, 3, 4, -1, -1, -1, -1, -2, -2, 11, 12, 50, 14, 15];
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn blocks_of_an_empty_part_are_empty(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_chunks_range(&buffer, Write, 2, 4, 0);
        assert_eq!((data.range(), data.n_blocks()), (Range([0]), Range([0])));
        cg.parallel_for(3, move |item| {
            assert!(data.block(item).is_empty());
            data.block(item).fill(-1);
        })
    });
    kernel.unwrap().wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), iota(4));
}

fn blocks_of_a_part_outside_the_buffer_are_refused(env: &Env) {
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    for (block, range, offset) in [(2, 5, 4), (2, 1, 8), (2, 9, 0), (2, 1, usize::MAX), (2, usize::MAX, 1), (0, 4, 4)] {
        let result = env.queue().submit(|cg| {
            cg.access_chunks_range(&buffer, Write, block, offset, range);
            cg.single_task(|_| {})
        });
        assert_eq!(code(result), ErrorCode::Invalid, "blocks of {block} in {range} at {offset}");
    }
    assert_eq!(buffer.to_vec().unwrap(), iota(8));
}

fn blocks_of_a_part_overlap_only_inside_it(env: &Env) {
    let buffer = Buffer::from_vec(iota(16)).unwrap();
    let submit = |first: usize| {
        env.queue().submit(|cg| {
            let from = cg.access_range(&buffer, Read, first, 1);
            let to = cg.access_chunks_range(&buffer, Write, 2, 4, 6);
            cg.parallel_for(to.n_blocks(), move |item| {
                let value = from.view(item)[0];
                to.block(item).fill(value)
            })
        })
    };
    assert_eq!(code(submit(4)), ErrorCode::Accessor);
    assert_eq!(code(submit(9)), ErrorCode::Accessor);
    submit(3).unwrap();
    assert_eq!(buffer.to_vec().unwrap()[3..11], [3, 3, 3, 3, 3, 3, 3, 10]);
    submit(10).unwrap();
    assert_eq!(buffer.to_vec().unwrap()[3..11], [3, 10, 10, 10, 10, 10, 10, 10]);
}
