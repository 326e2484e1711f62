//! Making buffers: constructors, element types, sizes, page sizes and what is refused (H1, H2, H4, H8, H15).

use std::sync::Arc;

use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};

use crate::harness::{Env, tests};
use crate::support::{code, doubled, iota, plus_one, read_on, update, write_positions};

tests![
    elements_lie_in_row_major_order,
    a_buffer_from_a_slice_is_a_copy,
    a_buffer_from_shared_elements_never_changes_them,
    a_buffer_from_an_iterator_has_all_its_elements,
    an_iterator_is_read_at_construction,
    an_uninitialised_buffer_holds_what_is_written,
    an_unchecked_uninitialised_buffer_takes_types_with_invalid_values,
    sizes_are_those_of_the_range_and_never_change,
    a_buffer_without_elements_can_be_used_like_any_other,
    a_buffer_without_elements_needs_no_memory,
    any_dimension_may_be_zero,
    plain_elements_of_every_width_keep_their_value,
    structs_and_enums_keep_their_value,
    elements_keep_their_alignment_on_the_device,
    pages_do_not_change_what_a_buffer_holds,
    a_page_larger_than_the_buffer_is_the_whole_buffer,
    copies_of_the_handle_are_the_same_buffer,
    errors_name_the_buffer_and_where_it_was_made,
    every_constructor_says_where_it_was_called,
    a_buffer_is_shared_by_threads,
    ; once:
    the_number_of_elements_must_be_that_of_the_range,
    a_range_whose_product_overflows_is_refused,
    a_buffer_larger_than_memory_can_be_is_refused,
    page_size_zero_is_refused,
];

fn elements_lie_in_row_major_order(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec_nd(iota(24), [2, 3, 4]).unwrap();
    let kernel = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for([2, 3, 4], move |item| {
            let [z, y, x] = item.id().0;
            data.update(item, |old| old * 1000 + (z * 100 + y * 10 + x) as i32);
        })
    });
    kernel.unwrap();
    let mut expected = Vec::new();
    for z in 0..2 {
        for y in 0..3 {
            for x in 0..4 {
                expected.push((z * 12 + y * 4 + x) * 1000 + z * 100 + y * 10 + x);
            }
        }
    }
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn a_buffer_from_a_slice_is_a_copy(env: &Env) {
    let mut source = iota(10);
    let buffer = Buffer::from_slice_nd(&source, 10).unwrap();
    source.fill(-1);
    assert_eq!(read_on(&env.queue(), &buffer), iota(10));
    update(&env.queue(), &buffer, |x| x + 5);
    drop(buffer);
    assert_eq!(source, [-1; 10]);
}

fn a_buffer_from_shared_elements_never_changes_them(env: &Env) {
    let source: Arc<[i32]> = iota(10).into();
    let buffer = Buffer::from_shared_nd(source.clone(), 10).unwrap();
    update(&env.queue(), &buffer, doubled).wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap()[9], 18);
    drop(buffer);
    assert_eq!(source[..], iota(10));
}

fn a_buffer_from_an_iterator_has_all_its_elements(env: &Env) {
    let buffer = Buffer::from_elements((0..100).filter(|x| x % 7 == 0)).unwrap();
    assert_eq!(buffer.range(), 15);
    update(&env.queue(), &buffer, plus_one);
    assert_eq!(buffer.to_vec().unwrap()[14], 99);
    assert!(Buffer::from_elements(std::iter::empty::<i32>()).unwrap().is_empty());
}

fn an_iterator_is_read_at_construction(env: &Env) {
    let mut source = iota(4);
    let buffer = Buffer::from_elements(source.iter().copied()).unwrap();
    source[0] = 77;
    assert_eq!(read_on(&env.queue(), &buffer), iota(4));
}

fn an_uninitialised_buffer_holds_what_is_written(env: &Env) {
    let buffer = Buffer::<i32, 2>::uninit([5, 7]).unwrap();
    write_positions(&env.queue(), &buffer, 100);
    assert_eq!(buffer.to_vec().unwrap(), (100..135).collect::<Vec<_>>());
}

fn an_unchecked_uninitialised_buffer_takes_types_with_invalid_values(env: &Env) {
    // SAFETY: the kernel writes every element before it is read.
    let buffer = unsafe { BufferOptions::new().uninit_unchecked::<char>(26) }.unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for(26, move |item| data.set(item, (b'a' + item.index() as u8) as char))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap().into_iter().collect::<String>(), "abcdefghijklmnopqrstuvwxyz");
}

fn the_number_of_elements_must_be_that_of_the_range() {
    assert_eq!(code(Buffer::from_vec_nd(iota(10), 11)), ErrorCode::Invalid);
    assert_eq!(code(Buffer::from_vec_nd(iota(10), 9)), ErrorCode::Invalid);
    assert_eq!(code(Buffer::from_vec_nd(iota(10), [5, 3])), ErrorCode::Invalid);
    assert_eq!(code(Buffer::from_slice_nd(&iota(10), [2, 2, 2])), ErrorCode::Invalid);
    assert_eq!(code(Buffer::from_shared_nd(Arc::from(iota(1)), 0)), ErrorCode::Invalid);
    assert_eq!(code(Buffer::from_slice_mut_nd(&mut iota(10), 1)), ErrorCode::Invalid);
}

fn a_range_whose_product_overflows_is_refused() {
    const HALF: usize = 1 << 33;
    assert_eq!(code(Buffer::<u8, 2>::uninit([HALF, HALF])), ErrorCode::Invalid);
    assert_eq!(code(Buffer::<u8, 3>::uninit([usize::MAX; 3])), ErrorCode::Invalid);
    // The product is zero modulo the word size: no buffer of no elements.
    assert_eq!(code(Buffer::<u8, 2>::from_vec_nd(Vec::new(), [1 << 32, 1 << 32])), ErrorCode::Invalid);
}

fn a_buffer_larger_than_memory_can_be_is_refused() {
    assert_eq!(code(Buffer::<u64, 1>::uninit(usize::MAX / 8 + 1)), ErrorCode::Invalid);
    assert_eq!(code(Buffer::<u64, 2>::uninit([1 << 32, 1 << 29])), ErrorCode::Invalid);
    assert_eq!(code(Buffer::<u8, 1>::uninit(usize::MAX)), ErrorCode::Invalid);
    assert_eq!(code(Buffer::<u8, 1>::uninit(isize::MAX as usize + 1)), ErrorCode::Invalid);
}

fn sizes_are_those_of_the_range_and_never_change(env: &Env) {
    let buffer = Buffer::from_vec_nd(vec![0u64; 30], [2, 3, 5]).unwrap();
    let check = || {
        assert_eq!(buffer.range(), [2, 3, 5]);
        assert_eq!((buffer.size(), buffer.byte_size(), buffer.is_empty()), (30, 240, false));
    };
    check();
    for device in env.devices() {
        let queue = crate::harness::queue_on(device);
        let kernel = queue.submit(|cg| {
            let data = cg.access_range(&buffer, ReadWrite, [1, 2, 3], [1, 1, 2]);
            cg.parallel_for([1, 1, 2], move |item| data.update(item, |x| x + 1))
        });
        kernel.unwrap().wait().unwrap();
        check();
    }
    drop(buffer.host_access(ReadWrite).unwrap());
    check();
}

fn a_buffer_without_elements_can_be_used_like_any_other(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec_nd(Vec::<i32>::new(), 0).unwrap();
    let other = Buffer::<i32, 2>::uninit([0, 8]).unwrap();
    assert_eq!((buffer.size(), buffer.byte_size(), buffer.is_empty()), (0, 0, true));
    let kernel = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        assert!(data.is_empty() && data.size() == 0);
        cg.parallel_for(0, move |item| data.update(item, |x| x + 1))
    });
    kernel.unwrap().wait().unwrap();
    queue.fill(&buffer, 7).unwrap().wait().unwrap();
    queue.copy(&buffer, &other).unwrap().wait().unwrap();
    queue.update_host(&buffer).unwrap().wait().unwrap();
    queue.copy_from_host(Vec::new(), &buffer).unwrap().wait().unwrap();
    let host = buffer.host_access(ReadWrite).unwrap();
    assert!(host.is_empty() && host.iter().next().is_none() && host.get(0).is_none());
    assert!(host.as_slice().is_empty());
    drop(host);
    assert_eq!(buffer.sub_buffer(0, 0).unwrap().size(), 0);
    assert_eq!(buffer.reinterpret::<u8, 1>(0).unwrap().size(), 0);
    assert!(buffer.to_vec().unwrap().is_empty());
    drop(other);
    assert!(buffer.into_vec().unwrap().is_empty());
}

fn a_buffer_without_elements_needs_no_memory(env: &Env) {
    let (since, ()) = crate::support::counted(|| {
        let buffer = Buffer::<i32, 1>::uninit(0).unwrap();
        for device in env.devices() {
            update(&crate::harness::queue_on(device), &buffer, |x| x).wait().unwrap();
        }
    });
    assert_eq!((since.buffer_allocations, since.transfers()), (0, 0));
}

fn any_dimension_may_be_zero(env: &Env) {
    let queue = env.queue();
    for range in [[0, 3, 4], [2, 0, 4], [2, 3, 0], [0, 0, 0]] {
        let buffer = Buffer::<i32, 3>::uninit(range).unwrap();
        update(&queue, &buffer, plus_one).wait().unwrap();
        assert_eq!(buffer.host_access(Read).unwrap().iter().count(), 0, "{range:?}");
        assert_eq!(buffer.range(), range);
    }
}

fn plain_elements_of_every_width_keep_their_value(env: &Env) {
    fn check<T: DeviceCopyable + PartialEq + std::fmt::Debug>(env: &Env, value: T, other: T) {
        let queue = env.queue();
        let source = Buffer::from_vec(vec![value, other, value]).unwrap();
        let target = Buffer::from_vec(vec![other; 3]).unwrap();
        let kernel = queue.submit(|cg| {
            let (from, to) = (cg.access(&source, Read), cg.access(&target, ReadWrite));
            cg.parallel_for(3, move |item| to.set(item, from.get(item)))
        });
        kernel.unwrap();
        assert_eq!(target.to_vec().unwrap(), [value, other, value]);
    }
    check(env, 0x12u8, 3);
    check(env, -7i8, 3);
    check(env, 0x1234u16, 3);
    check(env, 0x1234_5678u32, 3);
    check(env, i64::MIN, 3);
    check(env, u128::MAX / 3, 3);
    check(env, usize::MAX, 3);
    check(env, 1.5f32, -0.0);
    check(env, f64::MIN_POSITIVE, f64::INFINITY);
    check(env, true, false);
    check(env, 'ß', '\u{10FFFF}');
    check(env, [1u8, 2, 3], [4, 5, 6]);
    check(env, (1u8, 2u32), (3, 4));
    check(env, Some(5u16), None);
    check(env, std::num::Wrapping(5i32), std::num::Wrapping(-5));
    check(env, Id([1, 2]), Id([3, 4]));
    check(env, [[1.0f32; 4]; 4], [[2.0; 4]; 4]);
}

#[derive(Clone, Copy, PartialEq, Debug, DeviceCopyable)]
struct Particle {
    position: [f32; 3],
    charge: i8,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Debug, DeviceCopyable)]
enum State {
    Free { speed: f64 },
    Bound(u16),
    Gone,
}

fn structs_and_enums_keep_their_value(env: &Env) {
    let at = |x: f32, charge, state| Particle { position: [x, 0.0, -x], charge, state };
    let start = vec![at(1.0, -1, State::Free { speed: 2.0 }), at(2.0, 1, State::Bound(7)), at(3.0, 0, State::Gone)];
    let buffer = Buffer::from_vec_nd(start, 3).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(3, move |item| {
            data.update(item, |mut particle| {
                particle.position[1] = particle.position[0] * 2.0;
                particle.state = match particle.state {
                    State::Free { speed } => State::Bound(speed as u16),
                    State::Bound(n) => State::Free { speed: f64::from(n) + 0.5 },
                    State::Gone => State::Gone,
                };
                particle
            });
        })
    });
    kernel.unwrap();
    let end = buffer.to_vec().unwrap();
    assert_eq!(end.iter().map(|p| p.position[1]).collect::<Vec<_>>(), [2.0, 4.0, 6.0]);
    assert_eq!(end.iter().map(|p| p.charge).collect::<Vec<_>>(), [-1, 1, 0]);
    assert_eq!([end[0].state, end[1].state, end[2].state], [State::Bound(2), State::Free { speed: 7.5 }, State::Gone]);
}

#[derive(Clone, Copy, DeviceCopyable)]
#[repr(align(128))]
struct Wide(u8);

fn elements_keep_their_alignment_on_the_device(env: &Env) {
    let buffer = Buffer::from_vec(vec![Wide(3); 5]).unwrap();
    let aligned = Buffer::from_vec(vec![false; 5]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (data, aligned) = (cg.access(&buffer, Read), cg.access(&aligned, Write));
        cg.parallel_for(5, move |item| {
            let element = data.at(item, item.index());
            aligned.set(item, std::ptr::from_ref(element).addr() % 128 == 0 && element.0 == 3);
        })
    });
    kernel.unwrap();
    assert_eq!(aligned.to_vec().unwrap(), [true; 5]);
}

fn page_size_zero_is_refused() {
    let make = |page: [usize; 2]| BufferOptions::new().page_size(page).from_vec_nd(iota(12), [3, 4]);
    assert_eq!(code(make([0, 2])), ErrorCode::Invalid);
    assert_eq!(code(make([2, 0])), ErrorCode::Invalid);
    assert_eq!(code(make([0, 0])), ErrorCode::Invalid);
    assert!(make([1, 1]).is_ok());
    assert_eq!(code(BufferOptions::new().page_size(0).uninit::<u8>(0)), ErrorCode::Invalid);
}

fn pages_do_not_change_what_a_buffer_holds(env: &Env) {
    for page in [[1, 1, 1], [2, 3, 4], [3, 2, 5], [5, 7, 2], [100, 100, 100]] {
        let buffer = BufferOptions::new().page_size(page).from_vec_nd(iota(4 * 5 * 6), [4, 5, 6]).unwrap();
        update(&env.queue(), &buffer, doubled);
        crate::support::update_range(&env.other_queue(), &buffer, [1, 2, 3], [2, 2, 2], |x| x + 1);
        update(&env.third_queue(), &buffer, |x| x * 10);
        let mut expected: Vec<i32> = iota(120).iter().map(|x| x * 20).collect();
        for (z, y, x) in [(1, 2, 3), (1, 2, 4), (1, 3, 3), (1, 3, 4), (2, 2, 3), (2, 2, 4), (2, 3, 3), (2, 3, 4)] {
            expected[z * 30 + y * 6 + x] += 10;
        }
        assert_eq!(buffer.to_vec().unwrap(), expected, "{page:?}");
    }
}

fn a_page_larger_than_the_buffer_is_the_whole_buffer(env: &Env) {
    let buffer = BufferOptions::new().page_size(usize::MAX).from_vec(iota(8)).unwrap();
    let gate = crate::support::Gate::new(&env.queue(), |cg| {
        cg.access_range(&buffer, ReadWrite, 0, 1);
    });
    let last = crate::support::update_range(&env.queue(), &buffer, 7, 1, |x| x + 1);
    crate::support::assert_held_back(&last);
    gate.open();
    assert_eq!(buffer.to_vec().unwrap()[7], 8);
}

fn copies_of_the_handle_are_the_same_buffer(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let copy = buffer.clone();
    let separate = Buffer::from_vec(iota(4)).unwrap();
    update(&env.queue(), &copy, |x| x + 10);
    assert_eq!(buffer.to_vec().unwrap(), [10, 11, 12, 13]);
    assert_eq!((copy == buffer, copy.id() == buffer.id()), (true, true));
    assert_eq!((separate == buffer, separate.id() == buffer.id()), (false, false));
}

/// What messages call a buffer that was made in that line of this file.
fn made_in(line: u32, buffer: &Buffer<i32, 1>) -> String {
    let name = buffer.name().map_or_else(String::new, |name| format!(" {name:?}"));
    format!("buffer {}{name} (created at {}:{line}:", buffer.id(), file!())
}

#[track_caller]
fn names<T>(result: Result<T, impl Into<Error>>, made: &str) {
    let Err(error) = result.map_err(Into::into) else { panic!("an error was expected") };
    let text = format!("{error:?}");
    assert!(text.contains(made), "{made:?} is missing in: {text}");
}

fn errors_name_the_buffer_and_where_it_was_made(env: &Env) {
    let queue = env.queue();
    let buffers = [
        (Buffer::from_vec(iota(8)).unwrap(), line!()),
        (BufferOptions::new().name("weights").from_vec(iota(8)).unwrap(), line!()),
    ];
    assert_eq!(buffers.each_ref().map(|(buffer, _)| buffer.name()), [None, Some("weights")]);
    for (buffer, line) in buffers {
        let made = made_in(line, &buffer);
        // What is wrong with a call.
        names(buffer.host_access_range(Read, 0, 9), &made);
        names(buffer.sub_buffer(4, 5), &made);
        names(buffer.reinterpret::<u64, 1>(3), &made);
        let submitted = queue.submit(|cg| {
            cg.access(&buffer, Write);
            cg.access(&buffer, Read);
            cg.single_task(|_| {})
        });
        names(submitted, &made);
        // What is wrong with handles, also when they are views.
        let view = buffer.sub_buffer(0, 4).unwrap();
        names(view.sub_buffer(0, 2), &made);
        let buffer = buffer.into_vec().map_err(|error| {
            names(Err::<(), _>(error.error().clone()), &made);
            error.into_buffer()
        });
        let (buffer, _) = (buffer.unwrap_err(), drop(view));
        // A wait that could never end.
        let host = buffer.host_access(Read).unwrap();
        names(update(&queue, &buffer, plus_one).wait(), &made);
        names(buffer.release(env.device()), &made);
        drop(host);
        // Lost data, in a command and on the host.
        let failing = queue.submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(8, move |item| data.set(item, [0; 4][item.index() + 1]))
        });
        failing.unwrap().wait().unwrap_err();
        names(
            queue.submit(|cg| {
                cg.access(&buffer, Read);
                cg.single_task(|_| {})
            }),
            &made,
        );
        names(buffer.to_vec(), &made);
        names(buffer.into_usm(), &made);
    }
    // No memory on the device.
    let simulator = Simulator::new(SimulatedConfig::new(1).memory(16)).unwrap();
    let (buffer, line) = (Buffer::from_vec(iota(8)).unwrap(), line!());
    names(buffer.reserve(&simulator.devices()[0]), &made_in(line, &buffer));
}

fn every_constructor_says_where_it_was_called(env: &Env) {
    let queue = env.queue();
    #[track_caller]
    fn check(buffer: &Buffer<i32, 1>) {
        let here = std::panic::Location::caller();
        let expected = format!("created: {}:{}:", here.file(), here.line());
        assert!(format!("{buffer:?}").contains(&expected), "{buffer:?}, not {expected}");
    }
    check(&Buffer::from_vec(vec![1]).unwrap());
    check(&Buffer::from_slice(&[1]).unwrap());
    check(&Buffer::from_shared_nd(Arc::from([1]), 1).unwrap());
    check(&Buffer::uninit(1).unwrap());
    check(&Buffer::from_elements([1]).unwrap());
    check(&Buffer::from_slice_mut_nd(&mut [1], 1).unwrap());
    check(&BufferOptions::new().from_vec(vec![1]).unwrap());
    check(&BufferOptions::new().from_slice(&[1]).unwrap());
    check(&BufferOptions::new().from_shared_nd(Arc::from([1]), 1).unwrap());
    check(&BufferOptions::new().uninit(1).unwrap());
    check(&BufferOptions::new().from_slice_mut_nd(&mut [1], 1).unwrap());
    check(&BufferOptions::new().from_usm_nd(queue.malloc_device(1).unwrap(), 1).unwrap());
    // SAFETY: the element is written before it is read: it is never read.
    check(&unsafe { BufferOptions::new().uninit_unchecked(1) }.unwrap());
    let slice = queue.malloc_device::<i32>(1).unwrap();
    // SAFETY: the allocation outlives the buffer, which is not used.
    check(&unsafe { BufferOptions::new().from_usm_pointer(slice.as_ptr(), 1, env.device(), false) }.unwrap());
}

fn a_buffer_is_shared_by_threads(env: &Env) {
    let buffer = Buffer::from_vec(vec![0; 64]).unwrap();
    std::thread::scope(|scope| {
        for device in env.devices() {
            let buffer = &buffer;
            scope.spawn(move || {
                let queue = crate::harness::queue_on(device);
                for _ in 0..20 {
                    update(&queue, buffer, plus_one);
                }
            });
        }
    });
    assert_eq!(buffer.to_vec().unwrap(), [60; 64]);
}
