//! Kernels in flight together: two that meet, and commands that the device itself keeps behind a running kernel by their event lists. Where
//! a host task is the gate, the runtime keeps them, and a backend's event lists stay unseen.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use oxisycl::prelude::*;
use oxisycl::{Aspect, BackendKind};

use crate::blocking::hold::{Hold, Way, ways};
use crate::harness::{Env, tests};
use crate::support::{assert_completes, assert_held_back, counted, iota, plus_one, update};

tests![
    two_kernels_of_one_device_meet,
    kernels_of_another_queue_wait_on_the_device_for_a_running_one,
    a_chain_across_three_queues_waits_on_the_device_behind_a_running_kernel,
    a_kernel_that_waits_for_two_commands_waits_for_the_running_one,
];

/// Kernels that wait for each other for so long never meet.
const PATIENCE: Duration = Duration::from_secs(10);

/// Submits a kernel that accesses the buffer and runs until the test lets it end. Without such a kernel the test is ignored.
fn running_kernel(env: &Env, queue: &Queue, buffer: &Buffer<i32, 1>) -> Hold {
    if !ways(env).contains(&Way::Device) {
        env.skip("no kernel of the device can be kept from ending");
    }
    // Their data are on the device, so that no transfer by way of the host stands between kernels.
    update(queue, buffer, |x| x).wait().unwrap();
    Hold::writing(env, Way::Device, queue, buffer)
}

fn two_kernels_of_one_device_meet(env: &Env) {
    let device = env.device();
    if device.backend() == BackendKind::Simulated {
        env.skip("a simulated device runs one command at a time");
    }
    if device.info().max_compute_units < 2 {
        env.skip("the device has one compute unit");
    }
    if !device.has(Aspect::UsmHostAllocations) {
        env.skip("the host cannot end kernels that do not meet");
    }
    let [first, second] = [env.queue(), env.queue()];
    // A flag of each kernel, and one of the host, which ends the wait.
    let mut flags = first.malloc_host::<u32>(3).unwrap();
    // SAFETY: no command uses the memory yet.
    unsafe { flags.as_mut_slice() }.unwrap().fill(0);
    let met = [(); 2].map(|()| Buffer::from_vec(vec![0; 1]).unwrap());
    let mut kernels = Vec::new();
    for (own, queue) in [&first, &second].into_iter().enumerate() {
        let pointer = flags.pointer();
        let kernel = queue.submit(|cg| {
            let met = cg.access(&met[own], Write);
            cg.single_task(move |task| {
                let place = |index: usize| pointer.as_ptr().wrapping_add(index);
                // SAFETY: the allocation has three aligned elements and outlives the kernels, which access them atomically.
                let flag = |index| unsafe { AtomicU32::from_ptr(place(index)) };
                flag(own).store(1, Ordering::Release);
                let mut has_met = flag(1 - own).load(Ordering::Acquire) == 1;
                // SAFETY: as above; the host writes the last element, which no kernel does.
                while !has_met && unsafe { place(2).read_volatile() } == 0 {
                    has_met = flag(1 - own).load(Ordering::Acquire) == 1;
                }
                met.set_at(task, 0, i32::from(has_met));
            })
        });
        kernels.push(kernel.unwrap());
        queue.flush().unwrap();
    }
    let began = std::time::Instant::now();
    while !kernels.iter().all(Event::is_complete) && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: the kernels only look at the element.
    unsafe { flags.as_ptr().wrapping_add(2).write_volatile(1) };
    let met = met.map(|met| met.to_vec().unwrap()[0]);
    // No OpenCL query tells whether a device runs kernels of two queues at once. `CL_DEVICE_QUEUE_ON_HOST_PROPERTIES` says only that a
    // queue may reorder, which a driver need not do. Intel's driver reorders as long as it has threads to spare. So only the run tells.
    if met != [1, 1] && device.backend() == BackendKind::OpenCl {
        env.skip("the driver runs one kernel after the other");
    }
    assert_eq!(met, [1, 1], "one kernel waited in vain for the other");
}

fn kernels_of_another_queue_wait_on_the_device_for_a_running_one(env: &Env) {
    let [first, second] = [env.queue(), env.queue()];
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let hold = running_kernel(env, &first, &buffer);
    let (since, [by_data, by_event]) = counted(|| {
        let by_data = update(&second, &buffer, plus_one);
        let by_event = second.submit(|cg| {
            cg.depends_on(hold.event());
            cg.single_task(|_| {})
        });
        [by_data, by_event.unwrap()]
    });
    assert_eq!(since.delayed_commands, 0, "the device has the commands");
    assert_held_back(&by_data);
    assert_held_back(&by_event);
    hold.open();
    assert_completes(&by_data);
    assert_completes(&by_event);
    assert_eq!(buffer.to_vec().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
}

fn a_chain_across_three_queues_waits_on_the_device_behind_a_running_kernel(env: &Env) {
    let queues = [(); 3].map(|()| env.queue());
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let hold = running_kernel(env, &queues[0], &buffer);
    let (since, chain) = counted(|| -> Vec<Event> {
        let steps = (0..30).map(|step| update(&queues[step % 3], &buffer, move |x| x.wrapping_mul(3) + step as i32));
        steps.collect()
    });
    assert_eq!(since.delayed_commands, 0, "the device has the commands");
    assert_held_back(&chain[29]);
    assert!(chain.iter().all(|event| !event.is_complete()));
    hold.open();
    assert_completes(&chain[29]);
    let expected = iota(8).into_iter().map(|x| (0..30).fold(x, |x: i32, step| x.wrapping_mul(3) + step));
    assert_eq!(buffer.to_vec().unwrap(), expected.collect::<Vec<_>>());
}

fn a_kernel_that_waits_for_two_commands_waits_for_the_running_one(env: &Env) {
    let [first, second] = [env.queue(), env.queue()];
    let [held, free] = [(); 2].map(|()| Buffer::from_vec(iota(8)).unwrap());
    update(&second, &free, plus_one).wait().unwrap();
    let hold = running_kernel(env, &first, &held);
    let ended = update(&second, &free, plus_one);
    let (since, joined) = counted(|| {
        let joined = second.submit(|cg| {
            let (held, free) = (cg.access(&held, Read), cg.access(&free, ReadWrite));
            cg.parallel_for(8, move |item| free.update(item, |x| x * 100 + held.get(item)))
        });
        joined.unwrap()
    });
    assert_eq!(since.delayed_commands, 0, "the device has the command");
    assert_held_back(&joined);
    hold.open();
    assert_completes(&joined);
    assert_completes(&ended);
    assert_eq!(free.to_vec().unwrap(), (0..8).map(|i| (i + 2) * 100 + i).collect::<Vec<_>>());
}
