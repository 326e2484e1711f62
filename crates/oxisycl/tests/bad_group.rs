//! Command groups that cannot be, and buffers that cannot be taken while something uses them. Nothing is enqueued, nothing is lost.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl::prelude::*;
use oxisycl::{BufferOptions, UsmKind};

use support::{Gate, in_order, refused, simulated, watchdog};

fn filled(n_elements: usize) -> Buffer<i32, 1> {
    Buffer::from_vec(vec![7; n_elements]).unwrap()
}

#[test]
fn a_second_command_in_a_group_is_refused_and_the_first_does_not_run() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let run = || {
        RAN.fetch_add(1, Ordering::SeqCst);
    };
    let _watchdog = watchdog();
    let device = Device::default().unwrap();
    for queue in [Queue::new(&device).unwrap(), in_order(&device)] {
        let (buffer, other) = (filled(4), filled(4));
        type Second = fn(&mut oxisycl::Handler<'_>, &Buffer<i32, 1>) -> oxisycl::Result;
        let seconds: [(&str, Second); 8] = [
            ("kernel", |cg, _| cg.parallel_for(1, |_| _ = RAN.fetch_add(1, Ordering::SeqCst))),
            ("kernel", |cg, _| cg.single_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst))),
            ("host task", |cg, _| cg.host_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst))),
            ("update_host", |cg, buffer| cg.update_host(buffer)),
            ("fill", |cg, buffer| {
                let target = cg.access(buffer, Write);
                cg.fill(target, 0)
            }),
            ("copy from the host", |cg, buffer| {
                let target = cg.access(buffer, Write);
                cg.copy_from_host(vec![0; 4], target).map(drop)
            }),
            ("copy to the host", |cg, buffer| {
                let source = cg.access(buffer, Read);
                cg.copy_to_host(source, vec![0; 4]).map(drop)
            }),
            // SAFETY: nothing is copied.
            ("memcpy", |cg, _| unsafe { cg.memcpy(std::ptr::null_mut(), std::ptr::null(), 0) }),
        ];
        for (what, second) in seconds {
            for is_ignored in [false, true] {
                let submitted = queue.submit(|cg| {
                    let data = cg.access(&buffer, ReadWrite);
                    cg.parallel_for(4, move |item| {
                        run();
                        data.set(item, 0);
                    })?;
                    let result = second(cg, &other);
                    if is_ignored { Ok(()) } else { result }
                });
                refused(submitted, ErrorCode::Invalid, &[what, "has a command already"]);
            }
        }
        // Also if the first one failed itself.
        let submitted = queue.submit(|cg| {
            let _ = cg.parallel_for([usize::MAX, 2], |_| {});
            cg.single_task(|_| {})
        });
        refused(submitted, ErrorCode::NdRange, &["more work-items"]);
        queue.wait().unwrap();
        assert_eq!((buffer.into_vec().unwrap(), other.into_vec().unwrap()), (vec![7; 4], vec![7; 4]));
    }
    assert_eq!(RAN.load(Ordering::SeqCst), 0);
}

#[test]
fn a_group_without_a_command_completes_after_its_dependencies() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let buffer = filled(4);
    let task = queue.submit(|cg| {
        let _data = cg.access_host(&buffer, ReadWrite);
        cg.host_task(|_| GATE.pass())
    });
    let empty = queue.submit(|cg| {
        cg.access(&buffer, Read);
        Ok(())
    });
    let empty = empty.unwrap();
    assert!(!empty.is_complete());
    GATE.open();
    empty.wait().unwrap();
    assert!(task.unwrap().is_complete());
}

/// Makes two accessors of one group, and asserts what becomes of it.
#[track_caller]
fn both<const D: usize, const E: usize>(
    is_allowed: bool,
    first: (&Buffer<u8, D>, [usize; D], [usize; D]),
    second: (&Buffer<u8, E>, [usize; E], [usize; E]),
) {
    let queue = Queue::default().unwrap();
    for turn in 0..4 {
        let submitted = queue.submit(|cg| {
            match turn {
                0 => {
                    cg.access_range(first.0, Read, first.2, first.1);
                    cg.access_range(second.0, Write, second.2, second.1);
                }
                1 => {
                    cg.access_range(second.0, ReadWrite, second.2, second.1);
                    cg.access_range(first.0, Read, first.2, first.1);
                }
                2 => {
                    cg.access_range(first.0, Write.no_init(), first.2, first.1);
                    cg.access_range(second.0, ReadWrite.no_init(), second.2, second.1);
                }
                _ => {
                    let _host = cg.access_host_range(first.0, Read, first.2, first.1);
                    let _device = cg.access_range(second.0, Write, second.2, second.1);
                }
            }
            cg.single_task(|_| {})
        });
        if is_allowed {
            submitted.unwrap().wait().unwrap();
        } else {
            let id = format!("buffer {}", first.0.id());
            refused(submitted, ErrorCode::Accessor, &[&id, "overlap", "Write"]);
        }
    }
    let submitted = queue.submit(|cg| {
        cg.access_range(first.0, Read, first.2, first.1);
        cg.access_range(second.0, Read, second.2, second.1);
        cg.single_task(|_| {})
    });
    submitted.unwrap().wait().unwrap();
}

#[test]
fn overlapping_accessors_of_one_group_are_refused_if_one_writes() {
    let _watchdog = watchdog();
    let line = Buffer::<u8, 1>::uninit(1024).unwrap();
    let clone = line.clone();
    both(false, (&line, [1024], [0]), (&clone, [1024], [0]));
    both(false, (&line, [10], [0]), (&clone, [10], [9]));
    both(true, (&line, [10], [0]), (&clone, [10], [10]));
    both(true, (&line, [0], [5]), (&clone, [1024], [0]));
    let grid = Buffer::<u8, 2>::uninit([32, 32]).unwrap();
    both(true, (&grid, [32, 16], [0, 0]), (&grid, [32, 16], [0, 16]));
    both(false, (&grid, [32, 16], [0, 0]), (&grid, [1, 1], [31, 15]));
    both(true, (&grid, [32, 16], [0, 0]), (&grid, [1, 1], [31, 16]));
}

#[test]
fn overlaps_are_found_across_sub_buffers_and_reinterpretations() {
    let _watchdog = watchdog();
    let line = Buffer::<u8, 1>::uninit(1024).unwrap();
    let (front, back) = (line.sub_buffer(0, 128).unwrap(), line.sub_buffer(64, 128).unwrap());
    both(false, (&line, [1], [100]), (&front, [128], [0]));
    both(true, (&line, [1], [128]), (&front, [128], [0]));
    both(false, (&front, [1], [64]), (&back, [1], [0]));
    both(true, (&front, [64], [0]), (&back, [128], [0]));
    let grid = line.reinterpret::<u8, 2>([32, 32]).unwrap();
    both(false, (&line, [1], [33]), (&grid, [1, 1], [1, 1]));
    both(true, (&line, [32], [0]), (&grid, [31, 32], [1, 0]));
    let inner = grid.sub_buffer([2, 0], [4, 32]).unwrap();
    both(false, (&inner, [1, 1], [0, 0]), (&front, [1], [64]));
    both(true, (&inner, [1, 32], [2, 0]), (&front, [128], [0]));
    // Wider elements cover several bytes.
    let words = line.reinterpret::<u32, 1>(256).unwrap();
    let queue = Queue::default().unwrap();
    for (word, is_allowed) in [(1, true), (2, false), (3, true)] {
        let submitted = queue.submit(|cg| {
            cg.access_range(&words, ReadWrite, word, 1);
            cg.access_range(&line, Read, 11, 1);
            cg.single_task(|_| {})
        });
        assert_eq!(submitted.is_ok(), is_allowed, "word {word}");
    }
}

#[test]
fn columns_of_a_view_in_another_shape_are_told_apart_up_to_1024_rows() {
    let _watchdog = watchdog();
    for (rows, is_allowed) in [(1024, true), (1025, false)] {
        let line = Buffer::<u8, 1>::uninit(4 * rows).unwrap();
        let view = line.reinterpret::<u8, 2>([rows, 4]).unwrap();
        both(is_allowed, (&view, [rows, 2], [0, 0]), (&view, [rows, 2], [0, 2]));
        // Of a buffer in its own shape there may be any number.
        let grid = Buffer::<u8, 2>::uninit([rows, 4]).unwrap();
        both(true, (&grid, [rows, 2], [0, 0]), (&grid, [rows, 2], [0, 2]));
    }
}

#[test]
fn overlaps_are_found_between_operands_of_copies_and_with_atomic_and_chunked_accessors() {
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let buffer = filled(8);
    refused(queue.copy(&buffer, &buffer.clone()), ErrorCode::Accessor, &["overlap"]);
    let submitted = queue.submit(|cg| {
        let (from, to) = (cg.access_range(&buffer, Read, 0, 5), cg.access_range(&buffer, Write, 3, 5));
        cg.copy(from, to)
    });
    refused(submitted, ErrorCode::Accessor, &["overlap"]);
    let submitted = queue.submit(|cg| {
        let same = cg.access(&buffer, ReadWrite);
        cg.copy(same, same)
    });
    refused(submitted, ErrorCode::Accessor, &[]);
    let submitted = queue.submit(|cg| {
        cg.access(&buffer, Atomic);
        cg.access_range(&buffer, Read, 0, 1);
        cg.single_task(|_| {})
    });
    refused(submitted, ErrorCode::Accessor, &["overlap"]);
    let submitted = queue.submit(|cg| {
        cg.access_chunks(&buffer, ReadWrite, 2);
        cg.access_range(&buffer, Read, 7, 1);
        cg.single_task(|_| {})
    });
    refused(submitted, ErrorCode::Accessor, &["overlap"]);
    queue.wait().unwrap();
    let halves = queue.submit(|cg| {
        let (from, to) = (cg.access_range(&buffer, Read, 0, 4), cg.access_range(&buffer, Write, 4, 4));
        cg.copy(from, to)
    });
    halves.unwrap().wait().unwrap();
    assert_eq!(buffer.into_vec().unwrap(), [7; 8]);
}

#[test]
fn placeholders_of_other_modes_shapes_or_elements_are_not_the_same_accessor() {
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let buffer = Buffer::<u32, 2>::uninit([2, 8]).unwrap();
    let own = buffer.placeholder(ReadWrite);
    let atomic = buffer.placeholder(Atomic);
    let shape = buffer.reinterpret::<u32, 2>([4, 4]).unwrap().placeholder(ReadWrite);
    let element = buffer.reinterpret::<i32, 2>([2, 8]).unwrap().placeholder(ReadWrite);
    type Require<'a> = &'a dyn Fn(&mut oxisycl::Handler<'_>);
    let with = |require: Require<'_>| {
        queue.submit(|cg| {
            cg.require(&own);
            require(cg);
            cg.single_task(|_| {})
        })
    };
    let others: [Require<'_>; 3] =
        [&|cg| _ = cg.require(&atomic), &|cg| _ = cg.require(&shape), &|cg| _ = cg.require(&element)];
    for other in others {
        refused(with(other), ErrorCode::Accessor, &["overlap"]);
    }
    with(&|cg| _ = cg.require(&own)).unwrap();
    with(&|cg| _ = cg.require(&buffer.placeholder(ReadWrite))).unwrap();
    queue.wait().unwrap();
}

#[test]
fn a_page_cannot_be_written_in_two_memories_by_one_group() {
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    for (page, is_allowed) in [(8, false), (4, true)] {
        let buffer = BufferOptions::new().page_size(page).from_vec(vec![7; 8]).unwrap();
        let submitted = queue.submit(|cg| {
            let _device = cg.access_range(&buffer, ReadWrite, 0, 4);
            let mut host = cg.access_host_range(&buffer, ReadWrite, 4, 4);
            cg.host_task(move |scope| host.slice_mut(scope).iter_mut().for_each(|x| *x = 8))
        });
        if is_allowed {
            submitted.unwrap().wait().unwrap();
            assert_eq!(buffer.into_vec().unwrap(), [7, 7, 7, 7, 8, 8, 8, 8]);
        } else {
            refused(submitted, ErrorCode::Accessor, &[&format!("buffer {}", buffer.id())]);
            assert_eq!(buffer.into_vec().unwrap(), [7; 8]);
        }
    }
}

#[test]
fn a_buffer_cannot_be_taken_while_something_refers_to_it_and_comes_back() {
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let taken = |buffer: Buffer<i32, 1>| {
        let id = format!("into_vec of buffer {}", buffer.id());
        let failed = buffer.into_vec().unwrap_err();
        support::assert_error(failed.error(), ErrorCode::Invalid, &[&id]);
        assert!(failed.to_string().contains("into_vec"));
        failed.into_buffer()
    };
    let mut buffer = Some(filled(8));
    let submitted = queue.submit(|cg| {
        let data = cg.access(buffer.as_ref().unwrap(), ReadWrite);
        buffer = Some(taken(buffer.take().unwrap()));
        cg.parallel_for(8, move |item| data.update(item, |x| x + 1))
    });
    let buffer = buffer.unwrap();
    let clone = buffer.clone();
    let buffer = taken(buffer);
    drop(clone);
    let part = buffer.sub_buffer(0, 4).unwrap();
    let buffer = taken(buffer);
    drop(part);
    let view = buffer.reinterpret::<u32, 1>(8).unwrap();
    let buffer = taken(buffer);
    drop(view);
    let placeholder = buffer.placeholder(Read);
    let buffer = taken(buffer);
    drop(placeholder);
    let host = buffer.host_access(Read).unwrap();
    let buffer = taken(buffer);
    drop(host);
    assert_eq!(buffer.into_vec().unwrap(), [8; 8]);
    submitted.unwrap();
}

#[test]
fn a_buffer_made_from_usm_is_taken_back_only_when_nothing_refers_to_it() {
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    let queue = Queue::new(&devices[0]).unwrap();
    let usm = queue.malloc::<i32>(UsmKind::Device, 8).unwrap();
    let address = usm.as_ptr();
    let buffer = BufferOptions::new().from_usm_nd(usm, 8).unwrap();
    queue.fill(&buffer, 3).unwrap();
    let clone = buffer.clone();
    refused(buffer.into_usm(), ErrorCode::Invalid, &["into_usm", "clone"]);
    let usm = clone.into_usm().unwrap();
    assert_eq!((usm.as_ptr(), usm.to_vec(&queue).unwrap()), (address, vec![3; 8]));
    refused(filled(8).into_usm(), ErrorCode::Invalid, &["not made from a usm allocation"]);
}

#[test]
fn the_only_current_copy_is_not_released() {
    let _watchdog = watchdog();
    let (devices, control) = simulated(2);
    let queue = Queue::new(&devices[0]).unwrap();
    let buffer = filled(8);
    let event = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| data.update(item, |x| x + 1))
    });
    event.unwrap().wait().unwrap();
    let id = format!("release of buffer {}", buffer.id());
    refused(buffer.release(&devices[0]), ErrorCode::Invalid, &[&id, devices[0].name(), "only current copy"]);
    assert_eq!(control.live_allocations(0), 1);
    let host = buffer.host_access(Read).unwrap();
    refused(buffer.release(&devices[0]), ErrorCode::Invalid, &[&id, "host accessor"]);
    drop(host);
    let submitted = queue.submit(|cg| {
        cg.access(&buffer, Read);
        refused(buffer.release(&devices[0]), ErrorCode::Invalid, &[&id, "command group"]);
        cg.single_task(|_| {})
    });
    submitted.unwrap().wait().unwrap();
    buffer.release(&devices[0]).unwrap();
    buffer.release(&devices[1]).unwrap();
    assert_eq!((control.live_allocations(0), buffer.is_allocated_on(&devices[0])), (0, false));
    assert_eq!(buffer.to_vec().unwrap(), [8; 8]);
}

#[test]
fn native_objects_that_are_not_the_groups_are_refused_in_a_host_task() {
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let (told, hear) = std::sync::mpsc::channel();
    let task = queue.submit(|cg| {
        cg.host_task(move |scope| {
            let interop = scope.interop();
            told.send((interop.backend(), interop.native_queue().map(drop))).unwrap();
        })
    });
    task.unwrap().wait().unwrap();
    let (backend, native) = hear.recv().unwrap();
    assert_eq!(backend, queue.backend());
    refused(native, ErrorCode::BackendMismatch, &["native queue"]);
}

/// Larger groups keep the uses of a buffer by region; smaller ones compare accessors in pairs.
#[test]
fn overlaps_are_found_in_groups_of_any_size() {
    let queue = Queue::default().unwrap();
    let buffer = Buffer::from_vec(vec![0u32; 4000]).unwrap();
    let sizes: &[usize] = if cfg!(miri) { &[1, 8, 9, 20] } else { &[1, 7, 8, 9, 100, 3000] };
    for &n_accessors in sizes {
        let submit = |mode_is_read: bool, extra: usize, extra_writes: bool| {
            queue.submit(|cg| {
                for element in 0..n_accessors {
                    if mode_is_read {
                        cg.access_range(&buffer, Read, [element], [1]);
                    } else {
                        cg.access_range(&buffer, ReadWrite, [element], [1]);
                    }
                }
                if extra_writes {
                    cg.access_range(&buffer, ReadWrite, [extra], [1]);
                } else {
                    cg.access_range(&buffer, Read, [extra], [1]);
                }
                cg.single_task(|_| {})
            })
        };
        for (is_read, extra, writes, is_refused) in [
            (false, n_accessors - 1, false, true),
            (false, 0, true, true),
            (true, n_accessors / 2, true, true),
            (true, n_accessors / 2, false, false),
            (false, n_accessors, true, false),
            (true, n_accessors, true, false),
        ] {
            let submitted = submit(is_read, extra, writes);
            let text = format!("{n_accessors} accessors, read {is_read}, another to {extra}, write {writes}");
            match submitted {
                Ok(event) => {
                    assert!(!is_refused, "{text}");
                    event.wait().unwrap();
                }
                Err(error) => assert!(is_refused && error.code() == ErrorCode::Accessor, "{text}: {error}"),
            }
        }
    }
}
