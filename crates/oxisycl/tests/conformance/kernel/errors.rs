//! What is refused when a command group is recorded, and what a kernel that panics reports.

use std::cell::Cell;

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{code, counted, iota, plus_one, update, write_positions};

tests![
    a_range_with_too_many_items_is_refused,
    an_offset_whose_end_overflows_is_refused,
    a_second_command_in_a_group_is_refused,
    a_second_command_is_refused_even_if_the_closure_ignores_it,
    an_error_of_the_closure_is_returned_and_nothing_runs,
    a_panic_of_the_closure_goes_through_and_nothing_runs,
    the_closure_runs_once_on_the_calling_thread,
    submit_gives_what_the_closure_returns,
    a_panic_in_a_kernel_is_an_error_with_all_its_details,
    a_panic_in_a_single_task_is_an_error,
    a_kernel_without_a_name_is_named_by_its_type,
    a_panic_of_many_items_is_one_error,
    a_panic_leaves_each_element_old_or_new,
    the_queue_goes_on_after_a_panic,
    a_panic_among_many_small_kernels_is_that_kernels_alone,
    a_wait_of_the_queue_tells_the_failure_once,
    arithmetic_errors_are_errors,
    an_unreached_panic_is_none,
];

fn a_range_with_too_many_items_is_refused(env: &Env) {
    let queue = env.queue();
    let (since, ()) = counted(|| {
        assert_eq!(code(queue.parallel_for([usize::MAX, 2], |_| {})), ErrorCode::NdRange);
        assert_eq!(code(queue.parallel_for([1 << 32, 1 << 32], |_| {})), ErrorCode::NdRange);
        assert_eq!(code(queue.parallel_for([1 << 22, 1 << 22, 1 << 22], |_| {})), ErrorCode::NdRange);
        assert_eq!(code(queue.parallel_for([usize::MAX; 3], |_| {})), ErrorCode::NdRange);
    });
    assert_eq!(since.nodes, 0);
}

fn an_offset_whose_end_overflows_is_refused(env: &Env) {
    let queue = env.queue();
    let submit =
        |range: [usize; 2], offset: [usize; 2]| queue.submit(|cg| cg.parallel_for_offset(offset, range, |_| {}));
    assert_eq!(code(submit([2, 2], [usize::MAX - 1, 0])), ErrorCode::NdRange);
    assert_eq!(code(submit([2, 2], [0, usize::MAX])), ErrorCode::NdRange);
    submit([2, 2], [usize::MAX - 2, 7]).unwrap().wait().unwrap();
}

fn a_second_command_in_a_group_is_refused(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let other = Buffer::from_vec(iota(4)).unwrap();
    type Second = for<'cg> fn(
        &mut Handler<'cg>,
        Accessor<'cg, i32, 1, ReadWrite>,
        Accessor<'cg, i32, 1, Read>,
    ) -> oxisycl::Result;
    let seconds: [Second; 6] = [
        |cg, data, _| cg.parallel_for(4, move |item| data.set(item, -1)),
        |cg, data, _| cg.single_task(move |task| data.set_at(task, 0, -1)),
        |cg, data, _| cg.fill(data, -1),
        |cg, data, from| cg.copy(from, data),
        |cg, _, _| cg.host_task(|_| {}),
        |cg, data, _| cg.copy_from_host(vec![-1; 4], data).map(|_| ()),
    ];
    for second in seconds {
        let (since, result) = counted(|| {
            queue.submit(|cg| {
                let (data, from) = (cg.access(&buffer, ReadWrite), cg.access(&other, Read));
                cg.parallel_for(4, move |item| data.set(item, -2))?;
                second(cg, data, from)
            })
        });
        assert_eq!(code(result), ErrorCode::Invalid);
        assert_eq!(since.nodes, 0);
    }
    assert_eq!(buffer.to_vec().unwrap(), iota(4));
}

fn a_second_command_is_refused_even_if_the_closure_ignores_it(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let result = env.queue().submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        let _ = cg.parallel_for(4, move |item| data.set(item, -2));
        let _ = cg.fill(data, -1);
        Ok(())
    });
    assert_eq!(code(result), ErrorCode::Invalid);
    assert_eq!(buffer.to_vec().unwrap(), iota(4));
}

fn an_error_of_the_closure_is_returned_and_nothing_runs(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let (since, result) = counted(|| {
        env.queue().submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(4, move |item| data.set(item, -1))?;
            Err::<(), _>(Error::new(ErrorCode::Platform, "my own"))
        })
    });
    let error = result.unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), (ErrorCode::Platform, "my own"));
    assert_eq!((since.nodes, since.transfers()), (0, 0));
    assert_eq!(buffer.into_vec().unwrap(), iota(4));
}

fn a_panic_of_the_closure_goes_through_and_nothing_runs(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let (since, result) = counted(|| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            queue.submit(|cg| {
                let data = cg.access(&buffer, ReadWrite);
                cg.parallel_for(4, move |item| data.set(item, -1))?;
                if data.size() == 4 {
                    panic!("on purpose");
                }
                Ok(())
            })
        }))
    });
    assert!(result.is_err());
    assert_eq!(since.nodes, 0);
    update(&queue, &buffer, plus_one);
    assert_eq!(buffer.into_vec().unwrap(), [1, 2, 3, 4]);
}

fn the_closure_runs_once_on_the_calling_thread(env: &Env) {
    let n_calls = Cell::new(0);
    let thread = std::thread::current().id();
    let submitted = env.queue().submit(|cg| {
        n_calls.set(n_calls.get() + 1);
        assert_eq!(std::thread::current().id(), thread);
        cg.single_task(|_| {})
    });
    submitted.unwrap().wait().unwrap();
    assert_eq!(n_calls.get(), 1);
}

fn submit_gives_what_the_closure_returns(env: &Env) {
    let queue = env.queue();
    let (event, text) = queue
        .submit_with(|cg| {
            assert!(*cg.queue() == queue);
            cg.single_task(|_| {})?;
            Ok("done".to_owned())
        })
        .unwrap();
    event.wait().unwrap();
    assert_eq!(text, "done");
}

fn a_panic_in_a_kernel_is_an_error_with_all_its_details(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(12), [3, 4]).unwrap();
    let kernel = env.queue().submit(|cg| {
        cg.name("explode");
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for([3, 4], move |item| {
            assert!(data.get(item) != 6, "six is {}", data.get(item));
        })
    });
    let kernel = kernel.unwrap();
    let error = kernel.wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    let text = error.to_string();
    for detail in ["kernel \"explode\"", "six is 6", "work-item [1, 2]", "errors.rs", env.device().name()] {
        assert!(text.contains(detail), "{detail} is missing in: {text}");
    }
    // Whoever waits again is told again.
    assert_eq!(code(kernel.wait()), ErrorCode::Kernel);
}

fn a_panic_in_a_single_task_is_an_error(env: &Env) {
    let error = env.queue().single_task(|_| panic!("alone")).unwrap().wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    assert!(error.to_string().contains("alone") && !error.to_string().contains("work-item"), "{error}");
}

fn a_kernel_without_a_name_is_named_by_its_type(env: &Env) {
    let error = env.queue().parallel_for(1, |_| panic!("on purpose")).unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("a_kernel_without_a_name_is_named_by_its_type"), "{error}");
}

fn a_panic_of_many_items_is_one_error(env: &Env) {
    let (since, error) = counted(|| env.queue().parallel_for(10_000, |_| panic!("all")).unwrap().wait().unwrap_err());
    assert_eq!((error.code(), since.failures), (ErrorCode::Kernel, 1));
}

fn a_panic_leaves_each_element_old_or_new(env: &Env) {
    let queue = env.queue();
    let slice = queue.malloc_host::<u32>(1000).unwrap();
    let pointer = slice.pointer();
    // SAFETY: each work-item writes its own element.
    let kernel = queue.parallel_for(1000, move |item| unsafe {
        assert!(item.index() != 500, "on purpose");
        pointer.write(item.index(), 7);
    });
    assert_eq!(code(kernel.unwrap().wait()), ErrorCode::Kernel);
    // SAFETY: the kernel has ended.
    let data = unsafe { slice.as_slice() }.unwrap();
    assert!(data.iter().enumerate().all(|(i, &x)| x == 0 || (x == 7 && i != 500)));
}

fn the_queue_goes_on_after_a_panic(env: &Env) {
    for queue in [env.queue(), env.in_order_queue()] {
        let buffer = Buffer::from_vec(iota(100)).unwrap();
        for _ in 0..3 {
            let failed = queue.parallel_for(100, |item| assert!(item.index() != 50, "on purpose")).unwrap();
            update(&queue, &buffer, plus_one);
            assert_eq!(code(failed.wait()), ErrorCode::Kernel);
        }
        assert_eq!(buffer.to_vec().unwrap()[99], 102);
    }
}

/// While the queue is busy, so that a device may be given several kernels at once.
fn a_panic_among_many_small_kernels_is_that_kernels_alone(env: &Env) {
    const FAILING: usize = 37;
    for queue in [env.queue(), env.in_order_queue()] {
        let other_queue = env.queue();
        let busy = Buffer::from_vec(vec![0u32; 1]).unwrap();
        let working = queue.submit(|cg| {
            let data = cg.access(&busy, ReadWrite);
            cg.parallel_for(1, move |item| {
                data.update(item, |x| (0..20_000u32).fold(x, |x, step| x.wrapping_mul(31).wrapping_add(step)));
            })
        });
        let working = working.unwrap();
        let buffers: Vec<_> = (0..64).map(|_| Buffer::from_vec(iota(4)).unwrap()).collect();
        let elsewhere = Buffer::from_vec(iota(4)).unwrap();
        let mut others = Vec::new();
        let events: Vec<Event> = (0..64)
            .map(|step| {
                others.push(update(&other_queue, &elsewhere, plus_one));
                let submitted = queue.submit(|cg| {
                    cg.name(if step == FAILING { "step 37" } else { "step" });
                    let data = cg.access(&buffers[step], ReadWrite);
                    cg.parallel_for(4, move |item| {
                        assert!(step != FAILING || item.index() != 2, "on purpose");
                        data.update(item, |x| x + step as i32);
                    })
                });
                submitted.unwrap()
            })
            .collect();
        let place = format!("on device \"{}\" panicked in work-item [2] at ", env.device().name());
        for (step, event) in events.iter().enumerate() {
            let ended = event.wait();
            if step != FAILING {
                ended.unwrap_or_else(|error| panic!("step {step}: {error}"));
                assert_eq!(buffers[step].to_vec().unwrap(), [0, 1, 2, 3].map(|x| x + step as i32), "step {step}");
                continue;
            }
            let text = ended.unwrap_err().to_string();
            assert!(text.contains("kernel \"step 37\"") && text.contains(&place), "{text}");
            assert!(text.contains("errors.rs:") && text.ends_with(": on purpose"), "{text}");
        }
        working.wait().unwrap();
        others.iter().for_each(|event| event.wait().unwrap());
        assert_eq!(elsewhere.to_vec().unwrap(), [64, 65, 66, 67]);
    }
}

fn a_wait_of_the_queue_tells_the_failure_once(env: &Env) {
    let queue = env.queue();
    queue.parallel_for(1, |_| panic!("on purpose")).unwrap();
    assert_eq!(code(queue.wait()), ErrorCode::Kernel);
    queue.wait().unwrap();
    queue.wait_and_throw().unwrap();
}

fn arithmetic_errors_are_errors(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(vec![0, 1, 2, 3]).unwrap();
    let divide = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(4, move |item| data.update(item, |x| 100 / x))
    });
    assert_eq!(code(divide.unwrap().wait()), ErrorCode::Kernel);
    write_positions(&queue, &buffer, 0);
    let index = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        let table = [1, 2, 3];
        cg.parallel_for(4, move |item| data.update(item, |x| table[x as usize]))
    });
    assert_eq!(code(index.unwrap().wait()), ErrorCode::Kernel);
    write_positions(&queue, &buffer, 0);
    let unwrap = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(4, move |item| data.update(item, |x| u8::try_from(x - 1).map(i32::from).unwrap()))
    });
    assert_eq!(code(unwrap.unwrap().wait()), ErrorCode::Kernel);
}

fn an_unreached_panic_is_none(env: &Env) {
    let buffer = Buffer::from_vec(iota(100)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(100, move |item| {
            let x = data.get(item);
            data.set(item, x.checked_mul(2).expect("it fits"));
            assert!(x >= 0);
        })
    });
    kernel.unwrap().wait().unwrap();
    assert_eq!(buffer.to_vec().unwrap()[99], 198);
}
