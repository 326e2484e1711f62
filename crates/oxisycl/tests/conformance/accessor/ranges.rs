//! Ranged accessors: relative indices, checked bounds, the whole buffer behind them (I3, I5, I7, S-R18).

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{code, counted, iota, update_range, write_positions};

tests![
    indices_are_relative_to_the_offset_in_one_dimension,
    indices_are_relative_to_the_offset_in_two_dimensions,
    indices_are_relative_to_the_offset_in_three_dimensions,
    a_ranged_accessor_says_what_it_covers,
    a_range_outside_the_buffer_is_refused,
    a_range_whose_end_overflows_is_refused,
    nothing_is_enqueued_after_a_refused_accessor,
    the_first_failure_is_told,
    an_empty_range_is_allowed_up_to_the_end,
    an_empty_range_waits_for_nothing,
    a_launch_smaller_than_the_range_is_allowed,
    a_launch_beyond_the_range_is_an_error,
    a_launch_beyond_the_range_in_any_dimension_is_an_error,
    an_index_outside_the_range_is_an_error_although_the_buffer_has_it,
    the_pointer_of_a_ranged_accessor_is_the_start_of_the_buffer,
    reading_outside_the_range_through_the_pointer_does_not_fault,
    writes_stay_inside_the_range,
    a_single_task_reaches_every_element,
    a_single_task_reaches_every_element_of_a_range,
    scattered_stores_reach_any_element,
    gathered_loads_reach_any_element,
    a_scattered_store_outside_the_range_is_an_error,
    a_use_outside_the_range_tells_its_line_and_the_buffer,
    a_failure_by_a_dependency_names_the_buffer_too,
];

fn indices_are_relative_to_the_offset_in_one_dimension(env: &Env) {
    let buffer = Buffer::from_vec(iota(10)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&buffer, ReadWrite, 5, 4);
        cg.parallel_for(4, move |item| data.update(item, |x| x * 10 + item.index() as i32))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 2, 3, 4, 50, 61, 72, 83, 9]);
}

fn indices_are_relative_to_the_offset_in_two_dimensions(env: &Env) {
    let buffer = Buffer::from_vec_nd(vec![0; 20], [4, 5]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&buffer, Write, (1, 2), (2, 3));
        cg.parallel_for((2, 3), move |item| {
            let [y, x] = item.id().0;
            data.set(item, (10 * y + x + 1) as i32);
        })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 11, 12, 13, 0, 0, 0, 0, 0]);
}

fn indices_are_relative_to_the_offset_in_three_dimensions(env: &Env) {
    let buffer = Buffer::from_vec_nd(vec![0; 60], [3, 4, 5]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&buffer, Write, [1, 2, 1], [2, 2, 3]);
        cg.parallel_for([2, 2, 3], move |item| data.set(item, 1 + item.linear_id() as i32))
    });
    kernel.unwrap();
    let mut expected = vec![0; 60];
    for (i, (z, y, x)) in
        [1, 2].iter().flat_map(|z| [2, 3].map(|y| (z, y))).flat_map(|(z, y)| [1, 2, 3].map(|x| (z, y, x))).enumerate()
    {
        expected[z * 20 + y * 5 + x] = 1 + i as i32;
    }
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn a_ranged_accessor_says_what_it_covers(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(60), [3, 4, 5]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&buffer, Read, [1, 2, 0], [2, 1, 3]);
        assert_eq!(data.range(), [2, 1, 3]);
        assert_eq!(data.offset(), [1, 2, 0]);
        assert_eq!(data.buffer_range(), [3, 4, 5]);
        assert_eq!((data.size(), data.is_empty()), (6, false));
        let whole = cg.access(&buffer, Read);
        assert_eq!((whole.range(), whole.offset()), (buffer.range(), Id([0; 3])));
        cg.single_task(|_| {})
    });
    kernel.unwrap();
}

/// The code of the error that an accessor with that range and offset gives.
fn refusal<const D: usize>(env: &Env, buffer: &Buffer<i32, D>, range: [usize; D], offset: [usize; D]) -> ErrorCode {
    let result = env.queue().submit(|cg| {
        cg.access_range(buffer, Read, offset, range);
        cg.single_task(|_| {})
    });
    code(result)
}

fn a_range_outside_the_buffer_is_refused(env: &Env) {
    let line = Buffer::from_vec(iota(10)).unwrap();
    for (range, offset) in [([11], [0]), ([1], [10]), ([5], [6]), ([0], [11])] {
        assert_eq!(refusal(env, &line, range, offset), ErrorCode::Invalid, "{range:?} {offset:?}");
    }
    let plane = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    for (range, offset) in [([5, 1], [0, 0]), ([1, 6], [0, 0]), ([2, 2], [3, 0]), ([2, 2], [0, 4])] {
        assert_eq!(refusal(env, &plane, range, offset), ErrorCode::Invalid, "{range:?} {offset:?}");
    }
    let cube = Buffer::from_vec_nd(iota(24), [2, 3, 4]).unwrap();
    for (range, offset) in [([3, 1, 1], [0; 3]), ([1, 4, 1], [0; 3]), ([1, 1, 5], [0; 3]), ([1, 1, 1], [0, 3, 0])] {
        assert_eq!(refusal(env, &cube, range, offset), ErrorCode::Invalid, "{range:?} {offset:?}");
    }
}

fn a_range_whose_end_overflows_is_refused(env: &Env) {
    let line = Buffer::from_vec(iota(10)).unwrap();
    assert_eq!(refusal(env, &line, [2], [usize::MAX]), ErrorCode::Invalid);
    assert_eq!(refusal(env, &line, [usize::MAX], [2]), ErrorCode::Invalid);
    assert_eq!(refusal(env, &line, [usize::MAX], [usize::MAX]), ErrorCode::Invalid);
    let plane = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    assert_eq!(refusal(env, &plane, [1, 5], [usize::MAX, 0]), ErrorCode::Invalid);
}

fn nothing_is_enqueued_after_a_refused_accessor(env: &Env) {
    let queue = env.queue();
    let (good, other) = (Buffer::from_vec(iota(10)).unwrap(), Buffer::from_vec(iota(10)).unwrap());
    let (since, result) = counted(|| {
        queue.submit(|cg| {
            let data = cg.access(&good, ReadWrite);
            let bad = cg.access_range(&other, Write, 0, 20);
            // The recorded failure also comes back here.
            let command = cg.parallel_for(10, move |item| {
                data.set(item, -1);
                bad.set(item, -1);
            });
            assert_eq!(code(command), ErrorCode::Invalid);
            Ok(())
        })
    });
    assert_eq!(code(result), ErrorCode::Invalid);
    assert_eq!((since.kernels, since.nodes, since.transfers()), (0, 0, 0));
    assert_eq!(good.to_vec().unwrap(), iota(10));
    assert_eq!(other.into_vec().unwrap(), iota(10));
}

fn the_first_failure_is_told(env: &Env) {
    let buffer = Buffer::from_vec(iota(10)).unwrap();
    let result = env.queue().submit(|cg| {
        cg.access(&buffer, Write);
        cg.access(&buffer, Read);
        cg.access_range(&buffer, Read, 0, 11);
        Ok(())
    });
    assert_eq!(code(result), ErrorCode::Accessor);
}

fn an_empty_range_is_allowed_up_to_the_end(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    for offset in [[0, 0], [2, 2], [4, 5], [4, 0]] {
        for range in [[0, 0], [0, 1]] {
            if offset[1] + range[1] > 5 {
                continue;
            }
            let kernel = env.queue().submit(|cg| {
                let data = cg.access_range(&buffer, ReadWrite, offset, range);
                assert!(data.is_empty());
                cg.parallel_for(range, move |item| data.set(item, -1))
            });
            kernel.unwrap().wait().unwrap();
        }
    }
    assert_eq!(buffer.to_vec().unwrap(), iota(20));
}

fn an_empty_range_waits_for_nothing(env: &Env) {
    let queue = env.queue();
    let buffer = BufferOptions::new().page_size(2).from_vec(iota(10)).unwrap();
    let gate = crate::support::Gate::writing(&queue, &buffer);
    crate::support::assert_completes(&update_range(&queue, &buffer, 5, 0, |x| x));
    gate.open();
}

fn a_launch_smaller_than_the_range_is_allowed(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(12), [3, 4]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for([2, 3], move |item| data.set(item, -1))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [-1, -1, -1, 3, -1, -1, -1, 7, 8, 9, 10, 11]);
}

fn a_launch_beyond_the_range_is_an_error(env: &Env) {
    let buffer = Buffer::from_vec(iota(10)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&buffer, ReadWrite, 2, 4);
        cg.parallel_for(5, move |item| data.set(item, -1))
    });
    let error = kernel.unwrap().wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    assert!(error.to_string().contains("beyond the accessor's range [4]"), "{error}");
}

fn a_launch_beyond_the_range_in_any_dimension_is_an_error(env: &Env) {
    let queue = env.queue();
    for launch in [[3, 3, 3], [2, 4, 3], [2, 3, 4], [2, 1, 5]] {
        let buffer = Buffer::from_vec_nd(iota(5 * 5 * 5), [5, 5, 5]).unwrap();
        let kernel = queue.submit(|cg| {
            let data = cg.access_range(&buffer, Read, [1, 1, 1], [2, 3, 3]);
            cg.parallel_for(launch, move |item| {
                data.get(item);
            })
        });
        // No work-item reads outside, so a refusal at once would be as good.
        let result = kernel.and_then(|event| event.wait());
        let allowed = launch[0] <= 2 && launch[1] <= 3 && launch[2] <= 3;
        assert_eq!(result.is_ok(), allowed, "{launch:?}");
    }
    // The offset form counts from the offset.
    let buffer = Buffer::from_vec(iota(10)).unwrap();
    let kernel = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for_offset(6, 5, move |item| data.set(item, -1))
    });
    assert_eq!(code(kernel.unwrap().wait()), ErrorCode::Kernel);
}

fn an_index_outside_the_range_is_an_error_although_the_buffer_has_it(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    for index in [[2, 0], [0, 3], [usize::MAX, 0], [0, usize::MAX]] {
        let kernel = queue.submit(|cg| {
            let data = cg.access_range(&buffer, Read, [1, 1], [2, 3]);
            cg.single_task(move |task| {
                data.at(task, index);
            })
        });
        let error = kernel.unwrap().wait().unwrap_err();
        assert_eq!(error.code(), ErrorCode::Kernel);
        assert!(error.to_string().contains("is outside the accessor's range [2, 3]"), "{error}");
    }
    assert_eq!(buffer.to_vec().unwrap(), iota(20));
}

fn the_pointer_of_a_ranged_accessor_is_the_start_of_the_buffer(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let seen = Buffer::<u64, 1>::uninit(3).unwrap();
    let kernel = env.queue().submit(|cg| {
        let whole = cg.access(&buffer, Read);
        let part = cg.access_range(&buffer, Read, [1, 3], [2, 2]);
        let empty = cg.access_range(&buffer, Read, [4, 5], [0, 0]);
        assert!(whole.as_ptr() == part.as_ptr() && whole.as_ptr() == empty.as_ptr());
        let seen = cg.access(&seen, Write);
        cg.single_task(move |task| {
            for (i, pointer) in [whole.as_ptr(), part.as_ptr(), empty.as_ptr()].into_iter().enumerate() {
                seen.set_at(task, i, pointer as u64);
            }
        })
    });
    kernel.unwrap();
    let address = buffer.usm_pointer(env.device()).unwrap() as u64;
    assert_eq!(seen.to_vec().unwrap(), [address; 3]);
}

fn reading_outside_the_range_through_the_pointer_does_not_fault(env: &Env) {
    let buffer = BufferOptions::new().page_size(2).uninit::<i32>(100).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    let seen = Buffer::<i32, 1>::uninit(100).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (part, seen) = (cg.access_range(&buffer, Read, 50, 2), cg.access(&seen, Write));
        cg.parallel_for(100, move |item| {
            // SAFETY: the allocation has 100 elements of a type that is valid for every bit pattern, and nobody writes them.
            seen.set(item, unsafe { *part.as_ptr().add(item.index()) });
        })
    });
    kernel.unwrap().wait().unwrap();
    // The rest may be old.
    assert_eq!(seen.to_vec().unwrap()[50..52], [50, 51]);
}

fn writes_stay_inside_the_range(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec_nd(vec![0; 7 * 9], [7, 9]).unwrap();
    let mut expected = vec![0; 7 * 9];
    for (i, (offset, range)) in
        [([0, 0], [7, 1]), ([6, 0], [1, 9]), ([2, 3], [3, 4]), ([1, 8], [4, 1]), ([3, 3], [1, 1])]
            .into_iter()
            .enumerate()
    {
        let value = 1 << i;
        update_range(&queue, &buffer, offset, range, move |x| x | value);
        for y in offset[0]..offset[0] + range[0] {
            for x in offset[1]..offset[1] + range[1] {
                expected[y * 9 + x] |= value;
            }
        }
    }
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn a_single_task_reaches_every_element(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(12), [3, 4]).unwrap();
    let sum = Buffer::<i32, 1>::uninit(1).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (data, sum) = (cg.access(&buffer, ReadWrite), cg.access(&sum, Write));
        cg.single_task(move |task| {
            let cells = data.cells(task);
            let mut total = 0;
            for y in 0..3 {
                for x in 0..4 {
                    total += data.get_at(task, [y, x]);
                    cells[[y, x]].set(cells.at([2 - y, 3 - x]).get());
                }
            }
            data.set_at(task, [0, 0], 100);
            sum.set_at(task, 0, total);
        })
    });
    kernel.unwrap();
    let mut expected = iota(12);
    let mut total = 0;
    for i in 0..12 {
        total += expected[i];
        expected[i] = expected[11 - i];
    }
    expected[0] = 100;
    assert_eq!(buffer.to_vec().unwrap(), expected);
    assert_eq!(sum.to_vec().unwrap(), [total]);
}

fn a_single_task_reaches_every_element_of_a_range(env: &Env) {
    let buffer = Buffer::from_vec(iota(10)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&buffer, ReadWrite, 3, 5);
        cg.single_task(move |task| {
            let cells = data.cells(task).as_slice();
            for i in 0..cells.len() / 2 {
                cells[i].swap(&cells[cells.len() - 1 - i]);
            }
        })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 2, 7, 6, 5, 4, 3, 8, 9]);
}

fn scattered_stores_reach_any_element(env: &Env) {
    const N: usize = 1000;
    let buffer = Buffer::from_vec(vec![-1; N]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for(N, move |item| {
            let i = item.index();
            // SAFETY: 7 and N have no common factor, so each work-item has another index.
            unsafe { data.scatter(item, i * 7 % N, i as i32) };
        })
    });
    kernel.unwrap();
    let data = buffer.to_vec().unwrap();
    assert!((0..N).all(|i| data[i * 7 % N] == i as i32));
}

fn gathered_loads_reach_any_element(env: &Env) {
    let buffer = Buffer::from_vec(iota(100)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(50, move |item| {
            // SAFETY: elements from 50 on are written by nobody.
            let far = unsafe { data.gather(item, 99 - item.index()) };
            data.set(item, far);
        })
    });
    kernel.unwrap();
    let expected: Vec<i32> = (50..100).rev().chain(50..100).collect();
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn a_scattered_store_outside_the_range_is_an_error(env: &Env) {
    let buffer = Buffer::from_vec(iota(10)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(&buffer, Write, 0, 5);
        // SAFETY: there is one work-item.
        cg.parallel_for(1, move |item| unsafe { data.scatter(item, 5, -1) })
    });
    assert_eq!(code(kernel.unwrap().wait()), ErrorCode::Kernel);
}

/// What the failure of a launch says whose work-items use a buffer.
macro_rules! told {
    ($env:expr, $buffer:expr, $mode:expr, $range:expr, |$data:ident, $item:ident| $use:expr) => {{
        let event = $env.queue().submit(|cg| {
            let $data = cg.access(&$buffer, $mode);
            cg.parallel_for($range, move |$item| _ = $use)
        });
        event.unwrap().wait().unwrap_err().to_string()
    }};
}

fn a_use_outside_the_range_tells_its_line_and_the_buffer(env: &Env) {
    let line = || {
        let buffer = Buffer::from_vec(iota(8)).unwrap().named("weights");
        let name = format!(", in buffer {} \"weights\" of i32 with range [8] (created at ", buffer.id());
        (buffer, name)
    };
    let plane = || {
        let buffer = Buffer::from_vec_nd(vec![1.0f32; 6], [2, 3]).unwrap();
        let name = format!(", in buffer {} of f32 with range [2, 3] (created at ", buffer.id());
        (buffer, name)
    };
    macro_rules! tell {
        ($($make:ident, $mode:expr, $range:expr, |$data:ident, $item:ident| $use:expr => $says:expr;)*) => {
            // Each case has a line of its own below that of the macro.
            let mut number = line!();
            $({
                number += 1;
                let (buffer, name) = $make();
                let told = told!(env, buffer, $mode, $range, |$data, $item| $use);
                let place = format!("ranges.rs:{number}:");
                assert!(told.contains(&place) && told.contains(concat!(": ", $says)) && told.contains(&name), "{told}");
            })*
        };
    }
    tell! {
        line, Read, 9, |data, item| data.get(item) => "the launch goes up to [9], beyond the accessor's range [8]";
        line, Write, 9, |data, item| data.set(item, 1) => "the launch goes up to [9], beyond";
        line, ReadWrite, 9, |data, item| data.update(item, |x| x + 1) => "the launch goes up to [9], beyond";
        line, ReadWrite, 9, |data, item| data.cell(item).set(1) => "the launch goes up to [9], beyond";
        line, Read, 1, |data, item| data.view(item)[item.index() + 8] => "index [8] is outside the accessor's range [8]";
        line, Read, 1, |data, item| data.at(item, item.index() + 9) => "index [9] is outside the accessor's range [8]";
        line, Atomic, 1, |data, item| data.fetch_add(item, item.index() + 10, 1) => "index [10] is outside";
        line, Atomic, 1, |data, item| data.fetch_max(item, item.index() + 11, 1) => "index [11] is outside";
        plane, Read, [2, 4], |data, item| data.get(item) => "the launch goes up to [2, 4], beyond";
        plane, Read, [1, 1], |data, item| data.view(item)[[2, item.get(0)]] => "index [2, 0] is outside";
        plane, Read, [1, 1], |data, item| data.view(item).row(item.get(0) + 2)[0] => "index [2] is outside";
    }
    let (line, weights) = line();
    let place = format!("ranges.rs:{}:", line!() + 3);
    let blocks = env.queue().submit(|cg| {
        let blocks = cg.access_chunks(&line, Write, 4);
        cg.parallel_for(2, move |item| blocks.block(item).set(item.index() + 4, 1))
    });
    let told = blocks.unwrap().wait().unwrap_err().to_string();
    assert!(told.contains(&place) && told.contains("range [4]") && told.contains(&weights), "{told}");
}

fn a_failure_by_a_dependency_names_the_buffer_too(env: &Env) {
    let buffer = Buffer::from_vec(iota(8)).unwrap().named("weights");
    let queue = env.queue();
    let outside = |cg: &mut Handler<'_>, n: usize| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(n, move |item| data.update(item, |x| x + 1))
    };
    // Both may be under way when the first one fails.
    let events = [queue.submit(|cg| outside(cg, 9)), queue.submit(|cg| outside(cg, 8))];
    for event in events.into_iter().flatten() {
        let error = event.wait().unwrap_err();
        let mut texts = vec![error.to_string()];
        let mut source = std::error::Error::source(&error);
        while let Some(next) = source {
            texts.push(next.to_string());
            source = next.source();
        }
        assert!(texts.last().is_some_and(|text| text.contains("in buffer") && text.contains("weights")), "{texts:?}");
    }
}
