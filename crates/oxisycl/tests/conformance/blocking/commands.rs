//! Rows 8.1 to 8.11: submitting, waiting, asking, and dropping what commands belong to.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{self, Poll, Wake, Waker};

use oxisycl::observe::counters;
use oxisycl::operator::Sum;
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::usm::UsmSlice;
use oxisycl::{Advice, EventStatus, Result};

use super::hold::{Hold, eight, ways};
use crate::harness::{Env, tests};
use crate::support::{Gate, assert_completes, iota, plus_one, touch, update};

tests![
    row_8_01_submitting_never_blocks,
    row_8_02_barrier_and_flush_never_block,
    row_8_03_making_devices_contexts_and_queues_never_blocks,
    row_8_04_a_wait_of_the_queue_blocks_until_its_commands_have_ended,
    row_8_05_asking_a_queue_never_blocks,
    row_8_06_a_wait_of_an_event_blocks_until_its_command_has_ended,
    row_8_07_wait_all_blocks_until_all_the_commands_have_ended,
    row_8_08_await_never_blocks_the_thread,
    row_8_09_asking_an_event_never_blocks,
    row_8_10_the_wait_of_a_host_copy_blocks_until_the_copy_has_ended,
    row_8_11_dropping_what_a_command_belongs_to_never_blocks,
];

/// Calls everything that submits. The first list is what waits for `buffer` or `other`, the second what an in-order queue alone
/// orders.
fn submit_everything(
    queue: &Queue,
    buffer: &Buffer<i32, 1>,
    other: &Buffer<i32, 1>,
    memory: &UsmSlice<i32>,
) -> [Vec<Event>; 2] {
    let (group, number) = queue
        .submit_with(|cg| {
            let data = cg.access(buffer, ReadWrite);
            cg.parallel_for(8, move |item| data.update(item, |x| x + 1))?;
            Ok(5)
        })
        .unwrap();
    assert_eq!(number, 5);
    let by_data = vec![
        group,
        update(queue, other, plus_one),
        queue.fill(buffer, 3).unwrap(),
        queue.copy(other, buffer).unwrap(),
        queue.update_host(buffer).unwrap(),
        queue.copy_from_host(vec![1; 8], buffer).unwrap().event().clone(),
        queue.copy_to_host(other, vec![0; 8]).unwrap().event().clone(),
    ];
    let first = memory.as_ptr();
    // SAFETY: the parts of the allocation do not overlap, and it is freed after the commands.
    let by_queue = unsafe {
        vec![
            queue.parallel_for(8, |_| {}).unwrap(),
            queue.single_task(|_| {}).unwrap(),
            queue.memcpy(first.cast(), first.add(2).cast(), 8).unwrap(),
            queue.memset(first.add(4).cast(), 1, 8).unwrap(),
            queue.fill_usm(first.add(6), 1, 2).unwrap(),
            queue.prefetch(first.cast(), 32).unwrap(),
            queue.mem_advise(first.cast(), 32, Advice::Reset).unwrap(),
        ]
    };
    [by_data, by_queue]
}

fn row_8_01_submitting_never_blocks(env: &Env) {
    for &way in ways(env) {
        for queue in [env.queue(), env.in_order_queue()] {
            let (buffer, other) = (eight(), eight());
            let memory = queue.malloc_shared::<i32>(8).unwrap();
            let hold = Hold::writing(env, way, &queue, &buffer);
            // With the first buffer's data, which nobody has yet.
            queue.copy(&buffer, &other).unwrap();
            let [by_data, by_queue] = submit_everything(&queue, &buffer, &other, &memory);
            assert!(by_data.iter().all(|event| !event.is_complete()), "{way:?}");
            assert!(!queue.is_in_order() || by_queue.iter().all(|event| !event.is_complete()), "{way:?}");
            hold.open();
            queue.wait().unwrap();
        }
    }
}

fn row_8_02_barrier_and_flush_never_block(env: &Env) {
    for &way in ways(env) {
        for queue in [env.queue(), env.in_order_queue()] {
            let hold = Hold::new(env, way, &queue);
            let barriers =
                [queue.submit_barrier([hold.event()]), queue.submit_barrier([]), env.queue().submit_barrier([])];
            queue.flush().unwrap();
            assert!(!barriers[0].as_ref().unwrap().is_complete());
            assert!(!queue.is_in_order() || !barriers[1].as_ref().unwrap().is_complete());
            hold.open();
            for barrier in barriers {
                barrier.unwrap().wait().unwrap();
            }
        }
    }
}

fn row_8_03_making_devices_contexts_and_queues_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.in_order_queue();
        let hold = Hold::new(env, way, &queue);
        assert!(!Platform::all().unwrap().is_empty() && !env.device().platform().devices().is_empty());
        assert_eq!(Device::all().unwrap().len(), Platform::all().unwrap().iter().flat_map(Platform::devices).count());
        let mut devices = vec![env.device().clone(), Device::default().unwrap()];
        devices.extend(env.device().partition_equally(1).unwrap_or_default());
        for device in &devices {
            let context = Context::with_handler(std::slice::from_ref(device), |_| {}).unwrap();
            Queue::builder().device(device).context(&context).in_order().build().unwrap();
            drop(Context::new(std::slice::from_ref(device)).unwrap());
            Queue::new(device).unwrap();
        }
        drop(Simulator::new(SimulatedConfig::new(2)).unwrap().devices());
        hold.open();
        queue.wait().unwrap();
    }
}

fn row_8_04_a_wait_of_the_queue_blocks_until_its_commands_have_ended(env: &Env) {
    let waits: [fn(&Queue) -> Result; 2] = [Queue::wait, Queue::wait_and_throw];
    for &way in ways(env) {
        for queue in [env.queue(), env.in_order_queue()] {
            for wait in waits {
                let buffer = eight();
                let beside = Gate::new(&env.queue(), |_| {});
                let hold = Hold::writing(env, way, &queue, &buffer);
                let first = hold.event().clone();
                let events = [first, update(&queue, &buffer, plus_one), touch(&queue, &buffer)];
                hold.open_later();
                wait(&queue).unwrap();
                assert!(events.iter().all(Event::is_complete), "{way:?}");
                assert!(!beside.event().is_complete(), "a command of another queue");
            }
        }
    }
}

fn row_8_05_asking_a_queue_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = Queue::builder().device(env.device()).in_order().handler(|_| {}).build().unwrap();
        let hold = Hold::new(env, way, &queue);
        let last = queue.single_task(|_| {}).unwrap();
        queue.throw_asynchronous();
        assert!(queue.take_errors().is_empty() && !queue.is_idle() && !last.is_complete());
        hold.open();
        queue.wait().unwrap();
    }
}

fn row_8_06_a_wait_of_an_event_blocks_until_its_command_has_ended(env: &Env) {
    let waits: [fn(&Event) -> Result; 3] = [Event::wait, Event::wait_and_throw, |event| {
        event.profile().map(|profile| assert!(profile.start <= profile.end))
    }];
    for &way in ways(env) {
        for (i, wait) in waits.into_iter().enumerate() {
            let builder = Queue::builder().device(env.device());
            let builder = match (i == 2, env.device().has(Aspect::QueueProfiling)) {
                (true, true) => builder.profiling(),
                (true, false) => continue,
                (false, _) => builder,
            };
            let queue = builder.build().unwrap();
            let buffer = eight();
            let beside = Gate::new(&queue, |_| {});
            let hold = Hold::writing(env, way, &queue, &buffer);
            let last = update(&queue, &buffer, plus_one);
            hold.open_later();
            wait(&last).unwrap();
            assert!(last.is_complete(), "{way:?}");
            assert!(!beside.event().is_complete(), "another command of the queue");
        }
    }
}

fn row_8_07_wait_all_blocks_until_all_the_commands_have_ended(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let buffer = eight();
        let beside = Gate::new(&queue, |_| {});
        let hold = Hold::writing(env, way, &queue, &buffer);
        let done = env.other_queue().single_task(|_| {}).unwrap();
        let early = Gate::new(&queue, |_| {});
        let events =
            [done, early.event().clone(), update(&queue, &buffer, plus_one), touch(&env.other_queue(), &buffer)];
        early.open();
        hold.open_later();
        Event::wait_all(&events).unwrap();
        assert!(events.iter().all(Event::is_complete), "{way:?}");
        assert!(!beside.event().is_complete(), "an event that was not named");
    }
}

/// Counts how often it wakes.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut task::Context::from_waker(waker))
}

fn row_8_08_await_never_blocks_the_thread(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let buffer = eight();
        let hold = Hold::writing(env, way, &queue, &buffer);
        let mut event = update(&queue, &buffer, plus_one);
        let mut copy = queue.copy_to_host(&buffer, vec![0; 8]).unwrap();
        let mut sum = queue.reduce(&buffer, Sum).unwrap();
        let counting = Arc::new(Counting::default());
        let waker = Waker::from(counting.clone());
        assert!(poll(&mut event, &waker).is_pending() && poll(&mut copy, &waker).is_pending());
        assert!(poll(&mut sum, Waker::noop()).is_pending());
        assert_eq!(counting.0.load(Ordering::SeqCst), 0);
        let last = copy.event().clone();
        hold.open();
        assert_completes(&last);
        while counting.0.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        assert!(matches!(poll(&mut event, &waker), Poll::Ready(Ok(()))));
        assert!(matches!(poll(&mut copy, &waker), Poll::Ready(Ok(data)) if data[7] == 8));
        // A command that is held back writes the result: who read it at once would wait for that.
        sum.event().wait().unwrap();
        let hold = Hold::writing(env, way, &queue, sum.buffer());
        assert!(poll(&mut sum, &waker).is_pending());
        hold.open();
        let value = loop {
            match poll(&mut sum, &waker) {
                Poll::Ready(value) => break value,
                Poll::Pending => std::thread::yield_now(),
            }
        };
        assert_eq!(value.unwrap(), 36);
        // Who asks once more gets it again.
        while poll(&mut sum, &waker).is_pending() {
            std::thread::yield_now();
        }
    }
}

fn row_8_09_asking_an_event_never_blocks(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let buffer = eight();
        let hold = Hold::writing(env, way, &queue, &buffer);
        let last = queue
            .submit(|cg| {
                cg.depends_on(hold.event());
                cg.single_task(|_| {})
            })
            .unwrap();
        for event in [hold.event(), &last] {
            assert!(event.status() != EventStatus::Complete && !event.is_complete(), "{way:?}");
        }
        assert_eq!(last.dependencies(), [hold.event().clone()]);
        hold.open();
        last.wait().unwrap();
    }
}

fn row_8_10_the_wait_of_a_host_copy_blocks_until_the_copy_has_ended(env: &Env) {
    for &way in ways(env) {
        let queue = env.queue();
        let buffer = eight();
        let beside = Gate::new(&queue, |_| {});
        let hold = Hold::writing(env, way, &queue, &buffer);
        update(&queue, &buffer, plus_one);
        let (from, to) =
            (queue.copy_to_host(&buffer, vec![0; 8]).unwrap(), queue.copy_from_host(iota(8), &buffer).unwrap());
        let events = [from.event().clone(), to.event().clone()];
        hold.open_later();
        assert_eq!(from.wait().unwrap(), (1..9).collect::<Vec<_>>());
        assert!(events[0].is_complete());
        assert_eq!(to.wait().unwrap(), iota(8));
        assert!(events[1].is_complete() && !beside.event().is_complete());
    }
}

fn row_8_11_dropping_what_a_command_belongs_to_never_blocks(env: &Env) {
    for &way in ways(env) {
        let witness = eight();
        let hold_queue = env.queue();
        let hold = Hold::writing(env, way, &hold_queue, &witness);
        let before = counters();
        let simulator = Simulator::new(SimulatedConfig::new(1)).unwrap();
        let control = simulator.control();
        control.pause(0);
        let own = eight();
        {
            // The device under test, of which others stay, and one whose last handles these are.
            let mut devices = simulator.devices();
            let platforms = [env.device().platform(), simulator.platform()];
            devices.push(env.device().clone());
            drop(simulator);
            for device in devices {
                let context = Context::new(std::slice::from_ref(&device)).unwrap();
                let queue = Queue::builder().device(&device).context(&context).build().unwrap();
                let buffer = if device == *env.device() { &witness } else { &own };
                let kernel = update(&queue, buffer, plus_one);
                let copy = queue.copy_to_host(buffer, vec![0; 8]).unwrap();
                assert!(!kernel.is_complete() && !copy.event().is_complete());
                drop(device);
                drop(queue);
                drop(context);
                drop(copy);
                drop(kernel);
            }
            drop(platforms);
        }
        assert!((counters() - before).live_nodes() >= 4, "{way:?}");
        hold.open();
        control.resume(0);
        // What was submitted runs all the same.
        assert_eq!(witness.to_vec().unwrap()[7], 8);
        assert_eq!(own.to_vec().unwrap()[7], 8);
    }
}
