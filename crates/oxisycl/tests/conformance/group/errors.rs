//! What is refused before a group runs, and what a group that panics reports.

use oxisycl::Result;
use oxisycl::group::{Fixed1, Fixed2, Local, LocalSlice, Private, Rows};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{counted, iota, update};

tests![
    an_extent_of_zero_is_refused,
    a_group_beyond_the_devices_limit_is_refused,
    a_fixed_shape_beyond_the_devices_limit_is_not_supported,
    more_work_items_than_can_be_counted_are_refused,
    more_local_memory_than_the_device_has_is_refused,
    local_memory_whose_bytes_overflow_is_refused,
    all_of_the_local_memory_may_be_used,
    a_tile_smaller_than_the_group_is_a_panic,
    rows_beyond_the_tile_are_a_panic,
    a_panic_in_any_phase_names_its_work_item,
    the_queue_goes_on_after_a_groups_panic,
];

/// The error of a launch that must be refused, with nothing submitted.
#[track_caller]
fn refused(submit: impl FnOnce() -> Result<Event>) -> oxisycl::Error {
    let (since, result) = counted(submit);
    assert_eq!(since.nodes, 0);
    result.expect_err("a launch was accepted")
}

fn an_extent_of_zero_is_refused(env: &Env) {
    let queue = env.queue();
    for shape in [[0, 4], [4, 0]] {
        let error = refused(|| {
            queue.submit(|cg| {
                cg.name("empty");
                cg.parallel_for_work_group([2, 2], Range::new(shape), (), |_, ()| {})
            })
        });
        assert_eq!(error.code(), ErrorCode::NdRange);
        let text = error.to_string();
        let name = env.device().name();
        assert!(
            text.ends_with(&format!(
                "kernel \"empty\" on device \"{name}\": work-groups of {shape:?} have no work-items"
            )),
            "{text}"
        );
    }
}

fn a_group_beyond_the_devices_limit_is_refused(env: &Env) {
    let queue = env.queue();
    let info = env.device().info();
    let limit = info.max_work_group_size;
    for shape in [[1, limit + 1], [limit + 1, 1], [2, limit.div_ceil(2) + 1], [usize::MAX, 2]] {
        let error =
            refused(|| queue.submit(|cg| cg.parallel_for_work_group([1, 1], Range::new(shape), (), |_, ()| {})));
        assert_eq!(error.code(), ErrorCode::NdRange, "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("work-groups of {shape:?} work-items, the limit is ")), "{text}");
    }
    for d in 0..3 {
        let most = info.max_work_item_sizes[d];
        if most < limit {
            let mut shape = [1; 3];
            shape[d] = most + 1;
            let error =
                refused(|| queue.submit(|cg| cg.parallel_for_work_group([1; 3], Range::new(shape), (), |_, ()| {})));
            assert!(error.to_string().ends_with(&format!("the limit is {most} in dimension {d}")), "{error}");
        }
    }
}

/// No launch of such a kernel can run, as with what an attribute states.
fn a_fixed_shape_beyond_the_devices_limit_is_not_supported(env: &Env) {
    let (queue, info) = (env.queue(), env.device().info());
    let refused = |shape: &str, submitted: Result<Event>| {
        let error = submitted.expect_err("a launch was accepted");
        assert_eq!(error.code(), ErrorCode::KernelNotSupported, "{error}");
        let (text, name) = (error.to_string(), env.device().name());
        let expected =
            format!("kernel \"wide\" on device \"{name}\": work-groups of {shape} work-items, the limit is ");
        assert!(text.contains(&expected), "{text}");
    };
    if info.max_work_group_size < 256 * 256 {
        let (since, ()) = counted(|| {
            let submitted = queue.submit(|cg| {
                cg.name("wide");
                cg.parallel_for_work_group([1, 1], Fixed2::<256, 256>, (), |_, ()| {})
            });
            refused("[256, 256]", submitted);
            // Over no group, too.
            let submitted = queue.submit(|cg| {
                cg.name("wide");
                cg.parallel_for_work_group(0, Fixed1::<65_536>, (), |_, ()| {})
            });
            refused("[65536]", submitted);
            let submitted = queue.submit(|cg| {
                cg.name("wide");
                cg.parallel_for_nd_range(([256, 256], Fixed2::<256, 256>), (), |_, ()| {})
            });
            refused("[256, 256]", submitted);
        });
        assert_eq!(since.nodes, 0);
    }
}

fn more_work_items_than_can_be_counted_are_refused(env: &Env) {
    let queue = env.queue();
    for groups in [[usize::MAX, 1], [1 << 62, 2], [usize::MAX / 2, usize::MAX]] {
        let error = refused(|| queue.submit(|cg| cg.parallel_for_work_group(groups, Fixed2::<2, 2>, (), |_, ()| {})));
        assert_eq!(error.code(), ErrorCode::NdRange, "{groups:?}: {error}");
    }
}

fn more_local_memory_than_the_device_has_is_refused(env: &Env) {
    let queue = env.queue();
    let limit = usize::try_from(env.device().info().local_mem_size).unwrap();
    let error = refused(|| {
        queue.submit(|cg| {
            cg.name("large");
            cg.parallel_for_work_group(1, Fixed1::<4>, LocalSlice::<u8>::new(limit + 1), |mut group, mut bytes| {
                group.for_each(&mut bytes, |_, byte| *byte = 0);
            })
        })
    });
    assert_eq!(error.code(), ErrorCode::MemoryAllocation);
    let (text, bytes) = (error.to_string(), (limit + 1).next_multiple_of(64));
    let expected = format!("local memory of {bytes} bytes for each work-group, the limit is {limit}");
    assert!(text.contains("kernel \"large\" on device") && text.contains(&expected), "{text}");
    // In two parts, each of which fits.
    let error = refused(|| {
        queue.submit(|cg| {
            let memory = (LocalSlice::<u64>::new(limit / 8), Local::<u64, 8>::new());
            cg.parallel_for_work_group(1, Fixed1::<4>, memory, |mut group, (mut a, mut b)| {
                group.for_each((&mut a, &mut b), |_, (a, b)| (*a, *b) = (1, 1));
            })
        })
    });
    assert_eq!(error.code(), ErrorCode::MemoryAllocation);
}

fn local_memory_whose_bytes_overflow_is_refused(env: &Env) {
    let queue = env.queue();
    for length in [1 << 61, usize::MAX, usize::MAX / 8, usize::MAX / 8 - 7] {
        let error = refused(|| {
            queue.submit(|cg| {
                let memory = (LocalSlice::<u64>::new(length), LocalSlice::<u64>::new(length));
                cg.parallel_for_work_group(1, Fixed1::<4>, memory, |mut group, (mut slice, _other)| {
                    group.for_each(&mut slice, |_, slot| *slot = 1);
                })
            })
        });
        assert_eq!(error.code(), ErrorCode::MemoryAllocation, "{length}: {error}");
    }
}

fn all_of_the_local_memory_may_be_used(env: &Env) {
    let limit = usize::try_from(env.device().info().local_mem_size).unwrap().min(1 << 20);
    // What the kernel's own code takes is a few bytes.
    let n = (limit - 64) / 4 / 16 * 16;
    let last = Buffer::from_vec(vec![0u32; 4]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let last = cg.access(&last, Write);
        cg.parallel_for_work_group(1, Fixed1::<4>, LocalSlice::<u32>::new(n), move |mut group, mut slice| {
            group.for_each_of(n, &mut slice, move |item, slot| *slot = item.linear_id() as u32);
            group.for_each(&slice, move |item, slice| last.set(item.global(), slice[n - 1 - item.local_linear_id()]));
        })
    });
    submitted.unwrap().wait().unwrap();
    let n = n as u32;
    assert_eq!(last.to_vec().unwrap(), [n - 1, n - 2, n - 3, n - 4]);
}

/// The message of a kernel that panics.
#[track_caller]
fn panicked(event: Result<Event>) -> String {
    let error = event.unwrap().wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    error.to_string()
}

fn a_tile_smaller_than_the_group_is_a_panic(env: &Env) {
    let text = panicked(env.queue().submit(|cg| {
        cg.parallel_for_work_group(2, Fixed1::<8>, LocalSlice::<u32>::new(7), |mut group, mut slice| {
            group.for_each(&mut slice, |_, slot| *slot = 1);
        })
    }));
    assert!(
        text.ends_with("local memory of 7 elements is lent to 8 work-items, one element to each")
            && text.contains("group/errors.rs:"),
        "{text}"
    );
}

fn rows_beyond_the_tile_are_a_panic(env: &Env) {
    for row in [2, usize::MAX / 2] {
        let text = panicked(env.queue().submit(|cg| {
            cg.parallel_for_work_group(2, Fixed1::<8>, Local::<u32, 15>::new(), move |mut group, mut tile| {
                group.for_each(Rows(&mut tile, row), |_, row| row[0] = 1);
            })
        }));
        assert!(
            text.ends_with(&format!(
                "local memory of 15 elements is lent to 8 work-items, rows of {row} elements to each"
            )),
            "{text}"
        );
    }
}

fn a_panic_in_any_phase_names_its_work_item(env: &Env) {
    const T: usize = 16;
    for failing in 0..4usize {
        let numbers = Buffer::from_vec_nd(vec![0usize; 4 * 4 * T], [4, 4 * T]).unwrap();
        let text = panicked(env.queue().submit(|cg| {
            cg.name("failing");
            let numbers = cg.access(&numbers, ReadWrite);
            let memory = (Local::<usize, { 2 * T }>::new(), Private::new(0usize));
            cg.parallel_for_work_group([2, 4], Fixed2::<2, T>, memory, move |mut group, (mut tile, mut own)| {
                for phase in 0..4usize {
                    group.for_each((&mut tile, &mut own), move |item, (slot, own)| {
                        *own += numbers.get(item.global()) + phase;
                        *slot = *own;
                        assert!(phase != failing || item.global().id() != Id([3, 37]), "phase {phase}");
                    });
                    group.for_each((&tile, &mut own), move |item, (tile, own)| {
                        *own += tile[2 * T - 1 - item.local_linear_id()];
                    });
                }
                group.for_each(&own, move |item, own| numbers.set(item.global(), *own));
            })
        }));
        assert!(text.contains("kernel \"failing\""), "{text}");
        assert!(text.contains("panicked in work-item [3, 37] at ") && text.contains("group/errors.rs:"), "{text}");
        assert!(text.ends_with(&format!(": phase {failing}")), "{text}");
    }
}

fn the_queue_goes_on_after_a_groups_panic(env: &Env) {
    let queue = env.queue();
    panicked(queue.submit(|cg| {
        cg.parallel_for_work_group(64, Fixed1::<64>, Local::<u32, 64>::new(), |mut group, mut tile| {
            group.for_each(&mut tile, |item, slot| {
                *slot = 1;
                assert!(item.global().index() % 97 != 5, "one of many");
            });
            group.for_each(&mut tile, |_, slot| *slot += 1);
        })
    }));
    let numbers = Buffer::from_vec(iota(100)).unwrap();
    update(&queue, &numbers, |n| n + 1);
    let expected: Vec<i32> = (1..101).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}
