//! Pixels that belong to one work-item: its own in all forms of launches, and those of its block.

use oxisycl::group::{Fixed2, Local};
use oxisycl::images::{ImageFormat, R8Uint, Rgba32Float};
use oxisycl::prelude::*;
use oxisycl::vector::{Float4, Uint4};

use crate::harness::{Env, tests};
use crate::support::{code, counted};

tests![
    work_items_of_groups_write_their_own_pixels,
    work_items_of_an_nd_range_write_their_own_pixels,
    blocks_divide_images_of_one_to_three_dimensions,
    blocks_are_passed_beside_the_kernel,
    blocks_of_groups_belong_to_their_work_items,
    a_block_beyond_the_image_is_empty,
    a_position_outside_of_a_block_reads_the_border_and_writes_nothing,
    blocks_can_be_written_without_old_pixels,
    blocks_that_cannot_be_are_refused,
];

/// An image whose pixels tell their positions.
fn numbered(rows: usize, columns: usize) -> UnsampledImage<2, R8Uint> {
    UnsampledImage::from_vec(R8Uint, (0..rows * columns).map(|i| i as u8).collect(), [rows, columns]).unwrap()
}

fn level(x: usize) -> Uint4 {
    Uint4::splat(x as u32)
}

fn work_items_of_groups_write_their_own_pixels(env: &Env) {
    let image = numbered(4, 6);
    let submitted = env.queue().submit(|cg| {
        let pixels = cg.access_image::<Uint4, _, _, _>(&image, ReadWrite);
        let (shape, tile) = (Fixed2::<2, 3>, Local::<u32, 6>::new());
        // Turns each group's pixels round.
        cg.parallel_for_work_group([2, 2], shape, tile, move |mut group, mut tile| {
            group.for_each(&mut tile, move |item, slot| *slot = pixels.get(item.global())[0]);
            group.for_each(&tile, move |item, tile| {
                pixels.set(item.global(), Uint4::splat(tile[5 - item.local_linear_id()]));
            });
        })
    });
    submitted.unwrap();
    let expected = (0..24).map(|i| {
        let (y, x) = (i / 6, i % 6);
        ((y / 2 * 2 + 1 - y % 2) * 6 + x / 3 * 3 + 2 - x % 3) as u8
    });
    assert_eq!(image.to_vec::<u8>().unwrap(), expected.collect::<Vec<_>>());
}

fn work_items_of_an_nd_range_write_their_own_pixels(env: &Env) {
    let image = numbered(4, 6);
    let range = NdRange::new(Range([4, 6]), Range([2, 3]));
    let submitted = env.queue().submit(|cg| {
        let pixels = cg.access_image::<Uint4, _, _, _>(&image, ReadWrite);
        cg.parallel_for_nd_range(range, (), move |mut item, ()| {
            // The first pixel of the group, to all of it.
            let own: Uint4 = pixels.get(item.global());
            let first = item.group().broadcast(own[0], 0);
            pixels.set(item.global(), Uint4::splat(first * 10 + item.local_linear_id() as u32));
        })
    });
    submitted.unwrap();
    let expected = (0..24).map(|i| {
        let (y, x) = (i / 6, i % 6);
        ((y / 2 * 12 + x / 3 * 3) * 10 + y % 2 * 3 + x % 3) as u8
    });
    assert_eq!(image.to_vec::<u8>().unwrap(), expected.collect::<Vec<_>>());
}

/// Each work-item adds its number to the pixels of its block.
fn check_blocks<const D: usize>(queue: &Queue, range: [usize; D], block: [usize; D]) {
    let n: usize = range.iter().product();
    let image = UnsampledImage::from_vec(ImageFormat::R8G8B8A8_UINT, vec![[1u8, 2, 3, 4]; n], range).unwrap();
    let submitted = queue.submit(|cg| {
        let pixels = cg.access_image_chunks::<Uint4, _, _, _>(&image, ReadWrite, block);
        assert_eq!((pixels.range(), pixels.block_range()), (Range(range), Range(block)));
        assert_eq!(pixels.n_blocks(), Range(std::array::from_fn(|d| range[d].div_ceil(block[d]))));
        cg.parallel_for(pixels.n_blocks(), move |item: Item<D>| {
            let own = pixels.block(item);
            let number = item.linear_id() as u32;
            let first: Uint4 = own.get(Id([0; D]));
            own.fill_with(|_| first + Uint4::new(number, 0, 0, 0));
        })
    });
    submitted.unwrap();
    let n_blocks: [usize; D] = std::array::from_fn(|d| range[d].div_ceil(block[d]));
    for (i, pixel) in image.to_vec::<[u8; 4]>().unwrap().into_iter().enumerate() {
        let (mut rest, mut position) = (i, [0; D]);
        for d in (0..D).rev() {
            (position[d], rest) = (rest % range[d], rest / range[d]);
        }
        let number = (0..D).fold(0, |number, d| number * n_blocks[d] + position[d] / block[d]);
        assert_eq!(pixel, [1 + number as u8, 2, 3, 4], "{range:?} in {block:?} at {position:?}");
    }
}

fn blocks_divide_images_of_one_to_three_dimensions(env: &Env) {
    let queue = env.queue();
    check_blocks(&queue, [12], [4]);
    check_blocks(&queue, [11], [4]);
    check_blocks(&queue, [5, 7], [2, 3]);
    check_blocks(&queue, [5, 7], [1, 1]);
    check_blocks(&queue, [3, 4], [usize::MAX, usize::MAX]);
    check_blocks(&queue, [3, 4, 5], [2, 2, 2]);
}

fn blocks_are_passed_beside_the_kernel(env: &Env) {
    let (queue, image, from) = (env.queue(), numbered(4, 4), numbered(2, 2));
    // Each pixel of one image fills a block of the other.
    let arguments = (from.read::<Uint4>(), image.write().chunks([2, 2]));
    let event = queue.parallel_for_with([2, 2], arguments, |item: Item<2>, (from, image)| {
        image.block(item).fill(from.get(item));
    });
    event.unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap(), [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]);
    // An accessor of the group.
    let submitted = queue.submit(|cg| {
        let image = cg.access_image_chunks::<Uint4, _, _, _>(&image, ReadWrite, [1, 4]);
        cg.parallel_for_with(image.n_blocks(), (image, 5u32), |item: Item<2>, (image, step)| {
            let row = image.block(item);
            row.set([0, 0], row.get([0, 3]) + Uint4::splat(step));
        })
    });
    submitted.unwrap();
    assert_eq!(image.to_vec::<u8>().unwrap(), [6, 0, 1, 1, 6, 0, 1, 1, 8, 2, 3, 3, 8, 2, 3, 3]);
}

fn blocks_of_groups_belong_to_their_work_items(env: &Env) {
    let image = UnsampledImage::zeroed(R8Uint, [4, 8]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let pixels = cg.access_image_chunks(&image, Write, [2, 2]);
        cg.parallel_for_work_group([1, 2], Fixed2::<2, 2>, (), move |mut group, ()| {
            group.for_each((), move |item, ()| pixels.block(item.global()).fill(level(item.global().linear_id())));
        })
    });
    submitted.unwrap();
    let expected = (0..32).map(|i| (i / 8 / 2 * 4 + i % 8 / 2) as u8);
    assert_eq!(image.to_vec::<u8>().unwrap(), expected.collect::<Vec<_>>());
    let range = NdRange::new(Range([2, 4]), Range([2, 2]));
    let submitted = env.queue().submit(|cg| {
        let pixels = cg.access_image_chunks::<Uint4, _, _, _>(&image, ReadWrite, [2, 2]);
        cg.parallel_for_nd_range(range, (), move |item, ()| {
            let own = pixels.block(item.global());
            own.set([1, 1], own.get([0, 0]) + level(100));
        })
    });
    submitted.unwrap();
    let expected = (0..32).map(|i| {
        let number = (i / 8 / 2 * 4 + i % 8 / 2) as u8;
        if i / 8 % 2 == 1 && i % 2 == 1 { number + 100 } else { number }
    });
    assert_eq!(image.to_vec::<u8>().unwrap(), expected.collect::<Vec<_>>());
}

fn a_block_beyond_the_image_is_empty(env: &Env) {
    let sizes = Buffer::from_vec(vec![9u32; 16]).unwrap();
    let line: UnsampledImage<1, R8Uint> = UnsampledImage::from_vec(R8Uint, (0..10u8).collect(), 10).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (pixels, sizes) = (cg.access_image_chunks::<Uint4, _, _, _>(&line, ReadWrite, 4), cg.access(&sizes, Write));
        cg.parallel_for(16, move |item| {
            let own = pixels.block(item);
            own.fill(Uint4::splat(7));
            own.set(0, Uint4::splat(8));
            sizes.set(item, own.len() as u32 + 100 * u32::from(own.is_empty()));
        })
    });
    submitted.unwrap();
    assert_eq!(line.to_vec::<u8>().unwrap(), [8, 7, 7, 7, 8, 7, 7, 7, 8, 7]);
    assert_eq!(sizes.to_vec().unwrap()[..5], [4, 4, 2, 100, 100]);
    // Ids whose products with the block are zero modulo the size of a word.
    let submitted = env.queue().submit(|cg| {
        let pixels = cg.access_image_chunks(&line, Write, 1 << 62);
        cg.parallel_for_offset(1, 8, move |item| pixels.block(item).fill(Uint4::splat(1)))
    });
    submitted.unwrap();
    assert_eq!(line.to_vec::<u8>().unwrap()[..2], [8, 7]);
}

fn a_position_outside_of_a_block_reads_the_border_and_writes_nothing(env: &Env) {
    let values: Vec<[f32; 4]> = (1..=12).map(|i| [i as f32; 4]).collect();
    let image = UnsampledImage::from_vec(Rgba32Float, values.clone(), [3, 4]).unwrap();
    let seen = UnsampledImage::from_vec(Rgba32Float, vec![[9.0f32; 4]; 4], [2, 2]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let pixels = cg.access_image_chunks::<Float4, _, _, _>(&image, ReadWrite, [2, 2]);
        let seen = cg.access_image(&seen, Write);
        cg.parallel_for([2, 2], move |item: Item<2>| {
            let own = pixels.block(item);
            let mut sum = Float4::splat(0.0);
            for outside in [[-1, 0], [0, -1], [2, 0], [0, 2], [2, 2], [i32::MAX, 0], [i32::MIN, i32::MIN]] {
                own.set(outside, Float4::splat(-1.0));
                sum += own.get(outside);
            }
            own.set([usize::MAX, 0], Float4::splat(-1.0));
            own.set(Id([0, usize::MAX / 2]), Float4::splat(-1.0));
            // The image ends before the second row of the lower blocks.
            if item.get(0) == 1 {
                own.set([1, 0], Float4::splat(-1.0));
                sum += own.get([1, 1]);
            }
            seen.set(item, sum);
        })
    });
    submitted.unwrap();
    assert_eq!(image.to_vec::<[f32; 4]>().unwrap(), values);
    assert_eq!(seen.to_vec::<[f32; 4]>().unwrap(), [[0.0; 4]; 4]);
}

fn blocks_can_be_written_without_old_pixels(env: &Env) {
    let queue = env.queue_apart();
    let image = numbered(3, 4);
    let (changed, ()) = counted(|| {
        let submitted = queue.submit(|cg| {
            let pixels = cg.access_image_chunks(&image, Write.no_init(), [1, 4]);
            cg.parallel_for(pixels.n_blocks(), move |item: Item<2>| pixels.block(item).fill(level(item.get(0))))
        });
        submitted.unwrap().wait().unwrap();
    });
    assert_eq!(changed.bytes_to_device, 0);
    assert_eq!(image.to_vec::<u8>().unwrap(), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
}

fn blocks_that_cannot_be_are_refused(env: &Env) {
    let (queue, image) = (env.queue(), numbered(2, 4));
    for block in [[0, 1], [1, 0], [0, 0]] {
        let submitted = queue.submit(|cg| {
            cg.access_image_chunks::<Uint4, _, _, _>(&image, Write, block);
            cg.single_task(|_| {})
        });
        assert_eq!(code(submitted), ErrorCode::Invalid);
        let arguments = (1u8, image.write::<Uint4>().chunks(block));
        let error = queue.parallel_for_with([1, 1], arguments, |_, _| {}).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Invalid);
        assert!(error.to_string().contains("argument \"1\" of kernel"), "{error}");
    }
    // Of another kind, and beside another accessor of the image.
    let submitted = queue.submit(|cg| {
        cg.access_image_chunks::<Float4, _, _, _>(&image, Write, [1, 1]);
        cg.single_task(|_| {})
    });
    assert_eq!(code(submitted), ErrorCode::Invalid);
    let submitted = queue.submit(|cg| {
        cg.access_image_chunks::<Uint4, _, _, _>(&image, Write, [1, 1]);
        cg.access_image::<Uint4, _, _, _>(&image, Read);
        cg.single_task(|_| {})
    });
    assert_eq!(code(submitted), ErrorCode::Accessor);
    let twice = (image.write::<Uint4>().chunks([1, 1]), image.write::<Uint4>().chunks([1, 1]));
    assert_eq!(code(queue.parallel_for_with([1, 1], twice, |_, _| {})), ErrorCode::Accessor);
}
