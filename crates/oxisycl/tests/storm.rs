//! Many threads at once, and drops in every order while work is pending.

mod support;

use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use oxisycl::prelude::*;
use oxisycl::{BufferOptions, FinalData};

use support::{Gate, block_on, eventually, in_order, scaled, simulated, watchdog};

const N_THREADS: usize = if cfg!(miri) { 4 } else { 16 };

fn add(queue: &Queue, buffer: &Buffer<i64, 1>, amount: i64) -> Event {
    let submitted = queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(buffer.range(), move |item| data.update(item, |x| x + amount))
    });
    submitted.unwrap()
}

/// Calls `f` on each of so many threads, which begin at once.
fn on_threads(n_threads: usize, f: impl Fn(usize) + Sync) {
    let start = Barrier::new(n_threads);
    std::thread::scope(|scope| {
        for i in 0..n_threads {
            let (f, start) = (&f, &start);
            scope.spawn(move || {
                start.wait();
                f(i);
            });
        }
    });
}

/// Queues of both kinds on the host and on two simulated devices.
fn queues() -> Vec<Queue> {
    let (simulated, _control) = simulated(2);
    let devices = [Device::default().unwrap(), simulated[0].clone(), simulated[1].clone()];
    devices.iter().flat_map(|device| [Queue::new(device).unwrap(), in_order(device)]).collect()
}

#[test]
fn threads_that_change_one_buffer_through_all_queues_lose_no_change() {
    const ROUNDS: i64 = scaled(60) as i64;
    let _watchdog = watchdog();
    let queues = queues();
    let buffer = Buffer::from_vec(vec![0i64; 32]).unwrap();
    on_threads(N_THREADS, |thread| {
        for round in 0..ROUNDS {
            add(&queues[(thread + round as usize) % queues.len()], &buffer, 1);
        }
    });
    assert_eq!(buffer.into_vec().unwrap(), [N_THREADS as i64 * ROUNDS; 32]);
}

#[test]
fn threads_on_one_queue_with_buffers_of_their_own_do_not_disturb_each_other() {
    const ROUNDS: i64 = if cfg!(miri) { 2 } else { 300 };
    let _watchdog = watchdog();
    for queue in queues() {
        on_threads(N_THREADS, |thread| {
            let buffer = Buffer::from_vec(vec![thread as i64; 8]).unwrap();
            for _ in 0..ROUNDS {
                add(&queue, &buffer, thread as i64);
            }
            assert_eq!(buffer.into_vec().unwrap(), [thread as i64 * (ROUNDS + 1); 8]);
        });
        queue.wait().unwrap();
        assert!(queue.is_idle());
    }
}

#[test]
fn groups_that_name_buffers_in_opposite_orders_neither_hang_nor_mix_up() {
    const ROUNDS: usize = scaled(50);
    let _watchdog = watchdog();
    let queues = queues();
    let accounts: Vec<Buffer<i64, 1>> = (0..5).map(|_| Buffer::from_vec(vec![1000]).unwrap()).collect();
    on_threads(N_THREADS, |thread| {
        for round in 0..ROUNDS {
            let from = &accounts[(thread + round) % 5];
            let to = &accounts[(thread + round * 3 + 1 + (thread + round) % 2) % 5];
            if from == to {
                continue;
            }
            let amount = (thread * round % 7) as i64;
            let queue = &queues[(thread * 5 + round) % queues.len()];
            let submitted = queue.submit(|cg| {
                if round % 10 == 9 {
                    let (mut from, mut to) = (cg.access_host(from, ReadWrite), cg.access_host(to, ReadWrite));
                    return cg.host_task(move |scope| {
                        from.slice_mut(scope)[0] -= amount;
                        to.slice_mut(scope)[0] += amount;
                    });
                }
                let (from, to) = (cg.access(from, ReadWrite), cg.access(to, ReadWrite));
                cg.parallel_for(1, move |item| {
                    from.update(item, |x| x - amount);
                    to.update(item, |x| x + amount);
                })
            });
            submitted.unwrap();
        }
    });
    let sum: i64 = accounts.iter().map(|account| account.to_vec().unwrap()[0]).sum();
    assert_eq!(sum, 5000);
}

#[test]
fn host_accessors_of_many_threads_exclude_commands_and_each_other() {
    const ROUNDS: usize = scaled(40);
    let _watchdog = watchdog();
    let queues = queues();
    let buffer = Buffer::from_vec(vec![0i64; 4]).unwrap();
    on_threads(N_THREADS, |thread| {
        for round in 0..ROUNDS {
            match (thread + round) % 3 {
                0 => {
                    let mut host = buffer.host_access(ReadWrite).unwrap();
                    let before = host[0];
                    std::thread::yield_now();
                    host.as_mut_slice().iter_mut().for_each(|x| *x = before + 1);
                }
                1 => {
                    let host = buffer.host_access(Read).unwrap();
                    assert!(host.iter().all(|x| *x == host[0]));
                }
                _ => drop(add(&queues[round % queues.len()], &buffer, 1)),
            }
        }
    });
    let expected = (0..N_THREADS * ROUNDS).filter(|i| (i / ROUNDS + i % ROUNDS) % 3 != 1).count() as i64;
    assert_eq!(buffer.into_vec().unwrap(), [expected; 4]);
}

#[test]
fn pages_of_one_buffer_are_independent_under_a_storm() {
    const ROUNDS: i64 = scaled(60) as i64;
    let _watchdog = watchdog();
    let queues = queues();
    let n_elements = 4 * N_THREADS;
    let buffer = BufferOptions::new().page_size(4).from_vec(vec![0i64; n_elements]).unwrap();
    on_threads(N_THREADS, |thread| {
        for round in 0..ROUNDS {
            let submitted = queues[(thread + round as usize) % queues.len()].submit(|cg| {
                let data = cg.access_range(&buffer, ReadWrite, 4 * thread, 4);
                cg.parallel_for(4, move |item| data.update(item, |x| x + thread as i64))
            });
            submitted.unwrap();
        }
    });
    let expected: Vec<i64> = (0..n_elements).map(|i| (i / 4) as i64 * ROUNDS).collect();
    assert_eq!(buffer.into_vec().unwrap(), expected);
}

#[test]
fn many_threads_wait_for_one_event_and_one_queue_in_every_way() {
    static GATE: Gate = Gate::new();
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let event = queue.submit(|cg| cg.host_task(|_| GATE.pass())).unwrap();
    let n_waiting = AtomicUsize::new(0);
    on_threads(N_THREADS, |thread| {
        if n_waiting.fetch_add(1, Ordering::SeqCst) == N_THREADS - 1 {
            GATE.open();
        }
        match thread % 4 {
            0 => event.wait().unwrap(),
            1 => queue.wait().unwrap(),
            2 => block_on(event.clone()).unwrap(),
            _ => eventually("the event completes", || event.is_complete()),
        }
        assert!(event.is_complete());
    });
}

/// What a permutation drops: everything that takes part in one pending kernel.
fn pending_kernel(device: &Device, ran: &'static AtomicUsize) -> Vec<Box<dyn Any>> {
    let context = Context::new(std::slice::from_ref(device)).unwrap();
    let queue = Queue::builder().device(device).context(&context).build().unwrap();
    let buffer = Buffer::from_vec(vec![1i64; 16]).unwrap();
    let mut usm = queue.malloc_device::<i64>(16).unwrap();
    usm.copy_from_slice(&queue, &[41; 16]).unwrap();
    let host = buffer.host_access(Read).unwrap();
    let pointer = usm.pointer();
    let kernel = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.single_task(move |task| {
            // SAFETY: the allocation is freed after this command, and nothing writes it.
            let sum: i64 = (0..16).map(|i| data.get_at(task, i) + unsafe { pointer.read(i) }).sum();
            ran.fetch_add(usize::from(sum == 16 * 42), Ordering::SeqCst);
        })
    });
    vec![Box::new(queue), Box::new(buffer), Box::new(kernel.unwrap()), Box::new(context), Box::new(host), Box::new(usm)]
}

/// Calls `f` with every order of `0..n`.
fn for_each_order(n: usize, f: &mut impl FnMut(&[usize])) {
    fn extend(order: &mut Vec<usize>, n: usize, f: &mut impl FnMut(&[usize])) {
        if order.len() == n {
            return f(order);
        }
        for i in 0..n {
            if !order.contains(&i) {
                order.push(i);
                extend(order, n, f);
                order.pop();
            }
        }
    }
    extend(&mut Vec::new(), n, f);
}

#[test]
fn a_pending_kernel_runs_whatever_the_order_in_which_all_its_objects_are_dropped() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    let _watchdog = watchdog();
    let (devices, control) = simulated(1);
    let mut n_submitted = 0;
    // Every order of six takes hours in an interpreter.
    let n_objects = if cfg!(miri) { 3 } else { 6 };
    for device in [Device::default().unwrap(), devices[0].clone()] {
        for_each_order(n_objects, &mut |order| {
            let mut objects: Vec<Option<Box<dyn Any>>> = pending_kernel(&device, &RAN).into_iter().map(Some).collect();
            n_submitted += 1;
            for &i in order {
                objects[i] = None;
            }
        });
        eventually("every kernel has run and seen its data", || RAN.load(Ordering::SeqCst) == n_submitted);
    }
    assert_eq!(n_submitted, 2 * (1..=n_objects).product::<usize>());
    eventually("everything is freed", || control.live_allocations(0) == 0);
}

#[test]
fn many_queues_come_and_go() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    const ROUNDS: usize = if cfg!(miri) { 5 } else { 500 };
    let _watchdog = watchdog();
    let (devices, _control) = simulated(1);
    let host = Device::default().unwrap();
    on_threads(4, |thread| {
        for i in 0..ROUNDS {
            let device = if i % 5 == 0 { &devices[0] } else { &host };
            let queue = if (thread + i) % 2 == 0 { Queue::new(device).unwrap() } else { in_order(device) };
            queue.single_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst)).unwrap();
            queue.submit(|cg| cg.host_task(|_| _ = RAN.fetch_add(1, Ordering::SeqCst))).unwrap();
        }
    });
    eventually("every command has run", || RAN.load(Ordering::SeqCst) == 4 * ROUNDS * 2);
}

thread_local! {
    static AT_THREAD_END: RefCell<Option<(Buffer<i64, 1>, Queue)>> = const { RefCell::new(None) };
}

#[test]
fn threads_may_end_with_work_pending_and_buffers_in_thread_locals() {
    const ROUNDS: usize = scaled(100);
    let _watchdog = watchdog();
    let queues = queues();
    let shared = Buffer::from_vec(vec![0i64; 4]).unwrap();
    let delivered = Arc::new(Mutex::new(Vec::new()));
    for round in 0..ROUNDS {
        let (queue, shared, list) = (queues[round % queues.len()].clone(), shared.clone(), delivered.clone());
        let thread = std::thread::spawn(move || {
            shared.host_access(ReadWrite).unwrap()[0] += 1;
            add(&queue, &shared, 1);
            let own = Buffer::from_vec(vec![round as i64]).unwrap();
            own.set_final_data(FinalData::call(move |data| list.lock().unwrap().push(data.unwrap()[0])));
            add(&queue, &own, 1000);
            AT_THREAD_END.set(Some((own, queue)));
        });
        thread.join().unwrap();
    }
    assert_eq!(shared.into_vec().unwrap(), [2 * ROUNDS as i64, ROUNDS as i64, ROUNDS as i64, ROUNDS as i64]);
    let delivered = delivered.lock().unwrap();
    assert_eq!(*delivered, (0..ROUNDS as i64).map(|round| round + 1000).collect::<Vec<_>>());
}

#[test]
fn buffers_dropped_by_other_threads_while_commands_use_them_stay_valid() {
    static WRONG: AtomicUsize = AtomicUsize::new(0);
    let _watchdog = watchdog();
    let queues = queues();
    on_threads(N_THREADS, |thread| {
        for round in 0..scaled(50) {
            let queue = &queues[(thread + round) % queues.len()];
            let buffer = Buffer::from_vec(vec![3i64; 256]).unwrap();
            let last = (0..3).fold(None, |_, _| Some(add(queue, &buffer, 1)));
            let submitted = queue.submit(|cg| {
                let data = cg.access(&buffer, Read);
                cg.parallel_for(256, move |item| {
                    _ = WRONG.fetch_add(usize::from(data.get(item) != 6), Ordering::SeqCst)
                })
            });
            submitted.unwrap();
            let other = std::thread::spawn(move || drop(buffer));
            if round % 10 == 0 {
                last.unwrap().wait().unwrap();
            }
            other.join().unwrap();
        }
    });
    queues.iter().for_each(|queue| queue.wait().unwrap());
    assert_eq!(WRONG.load(Ordering::SeqCst), 0);
}
