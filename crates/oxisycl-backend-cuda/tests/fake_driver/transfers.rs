//! Transfers: memory that the driver does not know, between devices, and hints.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_backend::{
    Advice, Command, CopyCommand, EventStatus, FillCommand, FillPattern, MemoryId, PitchedBox, UsmKind,
};

use crate::fake::Fake;
use crate::support::{in_order, issue, kernel, launch, line, queue};

fn row(memory: MemoryId, pointer: *mut u8) -> PitchedBox {
    PitchedBox { memory, pointer, row_pitch: 0, slice_pitch: 0 }
}

fn copy(source: PitchedBox, target: PitchedBox, size: usize) -> Command {
    Command::from(CopyCommand { source, target, extent: [1, 1, size] })
}

/// A copy of half of the bytes to the other half, which the host executes.
pub(crate) fn host_copy(bytes: &mut [u8]) -> Command {
    let (source, target) = bytes.split_at_mut(bytes.len() / 2);
    copy(row(MemoryId::HOST, source.as_mut_ptr()), row(MemoryId::HOST, target.as_mut_ptr()), source.len())
}

/// Opens the gate of a kernel.
fn open(gate: NonNull<u8>) {
    // SAFETY: the tests free the byte after the kernels that read it as an atomic.
    unsafe { (*gate.as_ptr().cast::<AtomicBool>()).store(true, Ordering::Release) };
}

#[test]
fn a_copy_of_unknown_memory_is_for_the_host_and_waits_for_no_other_command() {
    let fake = Fake::new();
    let device = fake.device();
    let (memory, id) = (device.memory(), device.info().memory.id);
    let layout = Layout::from_size_align(64, 64).expect("a layout");
    let buffer = memory.allocate(UsmKind::Device, layout, true).expect("there is memory");
    let gate = memory.allocate(UsmKind::Host, layout, true).expect("there is memory");
    for queue in [in_order(&device), queue(&device)] {
        // SAFETY: allocated above; no kernel looks at it yet.
        unsafe { gate.write(0) };
        let blocker = issue(&queue, launch(&kernel(&device, "gate"), "gate", &(gate.as_ptr() as usize), line(1)), &[]);
        let (mut up, mut down) = (vec![7u8; 64], vec![0u8; 64]);
        let upload = copy(row(MemoryId::HOST, up.as_mut_ptr()), row(id, buffer.as_ptr()), 64);
        let target = row(id, buffer.as_ptr());
        let fill = FillCommand { target, pattern: FillPattern::from_slice(&[9]), extent: [1, 1, 32] };
        let fill = Command::from(fill);
        let download = copy(row(id, buffer.as_ptr()), row(MemoryId::HOST, down.as_mut_ptr()), 64);
        assert_eq!([&upload, &fill, &download].map(|command| queue.is_executed(command)), [true, false, true].map(Ok));
        // SAFETY: the bytes are alive, and no other command uses them: the kernel reads the gate alone.
        let outcome = unsafe { queue.execute(&upload) };
        assert!(outcome.has_run && outcome.result.is_ok(), "{outcome:?}");
        assert!(!blocker.probe.is_complete(), "the transfer has waited for the kernel");
        let fill = issue(&queue, fill, &[blocker.data()]);
        assert!(!fill.probe.is_complete());
        assert_eq!(fill.event.status(), EventStatus::Submitted);
        open(gate);
        issue(&queue, download, &[fill.data()]).probe.succeed();
        blocker.probe.succeed();
        fill.probe.succeed();
        assert_eq!((&down[..32], &down[32..]), (&[9u8; 32][..], &[7u8; 32][..]));
    }
    // SAFETY: allocated above; the commands have ended.
    unsafe {
        memory.free(buffer, UsmKind::Device, layout);
        memory.free(gate, UsmKind::Host, layout);
    }
}

#[test]
fn in_order_queues_keep_their_order_without_being_told() {
    let fake = Fake::new();
    let device = fake.device();
    let (memory, id) = (device.memory(), device.info().memory.id);
    let layout = Layout::from_size_align(4096, 64).expect("a layout");
    let buffer = memory.allocate(UsmKind::Device, layout, true).expect("there is memory");
    let queue = in_order(&device);
    for round in 0..20u8 {
        let (mut up, mut down) = (vec![round; 4096], vec![0u8; 4096]);
        let host = |bytes: &mut Vec<u8>| row(MemoryId::HOST, bytes.as_mut_ptr());
        let on_device = row(id, buffer.as_ptr());
        let pattern = FillPattern::from_slice(&[round + 1]);
        let fill = FillCommand { target: on_device, pattern, extent: [1, 1, 1024] };
        issue(&queue, copy(host(&mut up), on_device, 4096), &[]);
        issue(&queue, Command::from(fill), &[]);
        issue(&queue, copy(on_device, host(&mut down), 4096), &[]);
        issue(&queue, Command::Marker, &[]).probe.succeed();
        assert_eq!((down[0], down[1023], down[1024], down[4095]), (round + 1, round + 1, round, round));
    }
    // SAFETY: allocated above; the commands have ended.
    unsafe { memory.free(buffer, UsmKind::Device, layout) };
}

#[test]
fn host_transfers_of_two_threads_on_one_queue_do_not_mix() {
    const ROUNDS: u8 = 100;
    /// More than a transfer moves at a time.
    const SIZE: usize = 100_000;
    let fake = Fake::new();
    let device = fake.device();
    let (memory, id) = (device.memory(), device.info().memory.id);
    let layout = Layout::from_size_align(SIZE, 64).expect("a layout");
    let queue = in_order(&device);
    std::thread::scope(|scope| {
        for thread in 0..2u8 {
            let queue = &queue;
            scope.spawn(move || {
                let buffer = memory.allocate(UsmKind::Device, layout, true).expect("there is memory");
                for round in 0..ROUNDS {
                    let (mut up, mut down) = (vec![2 * round + thread; SIZE], vec![0u8; SIZE]);
                    let on_device = row(id, buffer.as_ptr());
                    let upload = copy(row(MemoryId::HOST, up.as_mut_ptr()), on_device, SIZE);
                    let download = copy(on_device, row(MemoryId::HOST, down.as_mut_ptr()), SIZE);
                    for command in [upload, download] {
                        // SAFETY: the bytes are alive, and no other thread uses them.
                        unsafe { queue.execute(&command) }.result.expect("the transfer");
                    }
                    assert!(up == down, "round {round} of thread {thread}");
                }
                // SAFETY: allocated above; the commands have ended.
                unsafe { memory.free(buffer, UsmKind::Device, layout) };
            });
        }
    });
}

#[test]
fn devices_copy_to_each_other_if_the_driver_says_so() {
    for peers in [0, 1] {
        let fake = Fake::with(&[("devices", 2), ("peers", peers)]);
        let devices = fake.devices();
        let ids = [devices[0].info().memory.id, devices[1].info().memory.id];
        assert_eq!(devices[0].info().can_copy(ids[0], ids[1]), peers == 1);
        assert!(
            devices[0].info().can_copy(MemoryId::HOST, ids[0]) && devices[0].info().can_copy(ids[0], MemoryId::HOST)
        );
        if peers == 0 {
            continue;
        }
        let layout = Layout::from_size_align(256, 64).expect("a layout");
        let memories = [0, 1].map(|index: usize| {
            devices[index].memory().allocate(UsmKind::Device, layout, true).expect("there is memory")
        });
        let queues = [in_order(&devices[0]), in_order(&devices[1])];
        let target = row(ids[0], memories[0].as_ptr());
        let pattern = FillPattern::from_slice(&[1, 2, 3]);
        let fill = issue(&queues[0], Command::from(FillCommand { target, pattern, extent: [1, 1, 80] }), &[]);
        let across = copy(row(ids[0], memories[0].as_ptr()), row(ids[1], memories[1].as_ptr()), 240);
        let across = issue(&queues[1], across, &[fill.data()]);
        let boxes = [(ids[1], memories[1]), (ids[0], memories[0])].map(|(memory, pointer)| PitchedBox {
            memory,
            pointer: pointer.as_ptr(),
            row_pitch: 9,
            slice_pitch: 45,
        });
        let back = CopyCommand { source: boxes[0], target: boxes[1], extent: [2, 3, 6] };
        let back = issue(&queues[0], Command::from(back), &[across.data()]);
        let mut bytes = vec![0u8; 240];
        let target = row(MemoryId::HOST, bytes.as_mut_ptr());
        issue(&queues[1], copy(row(ids[1], memories[1].as_ptr()), target, 240), &[back.order()]).probe.succeed();
        assert!(bytes.chunks_exact(3).all(|bytes| bytes == [1, 2, 3]));
        assert_eq!((fake.count("cuMemcpyPeerAsync"), fake.count("cuMemcpy3DPeerAsync")), (1, 1));
        assert_eq!(fake.count("cuCtxEnablePeerAccess"), 4);
        for (device, memory) in devices.iter().zip(memories) {
            // SAFETY: allocated above; the commands have ended.
            unsafe { device.memory().free(memory, UsmKind::Device, layout) };
        }
    }
}

/// Prefetches memory of a kind on the second of two devices, and gives each piece of advice about it.
fn hint(fake: &Fake, kind: UsmKind) {
    fake.set("devices", 2);
    let device = fake.devices().remove(1);
    let queue = in_order(&device);
    let layout = Layout::from_size_align(4096, 64).expect("a layout");
    let memory = device.memory().allocate(kind, layout, false).expect("there is memory");
    let (pointer, size) = (memory.as_ptr(), 4096);
    issue(&queue, Command::Prefetch { pointer, size }, &[]).probe.succeed();
    for advice in [Advice::ReadMostly, Advice::PreferHost, Advice::PreferDevice, Advice::Reset] {
        issue(&queue, Command::Advise { pointer, size, advice }, &[]).probe.succeed();
    }
    // SAFETY: allocated above; the commands have ended.
    unsafe { device.memory().free(memory, kind, layout) };
}

/// What a driver takes of [`hint`] by calls of that version.
fn hints_by_calls(version: i64) -> Vec<[i64; 3]> {
    // Prefetch, read mostly, preferred location twice, and both taken back.
    [(0, 1), (1, 1), (3, -1), (3, 1), (2, 1), (4, 1)].map(|(advice, device)| [version, advice, device]).to_vec()
}

#[test]
fn hints_reach_a_new_driver_by_its_new_calls_and_an_old_one_by_its_old_ones() {
    let new = Fake::new();
    hint(&new, UsmKind::Shared);
    assert_eq!(new.hints(), hints_by_calls(2));
    assert_eq!((new.count("cuMemPrefetchAsync"), new.count("cuMemAdvise")), (0, 0));
    let old = Fake::old();
    hint(&old, UsmKind::Shared);
    assert_eq!(old.hints(), hints_by_calls(1));
}

#[test]
fn hints_are_for_managed_memory_and_never_fail() {
    for fake in [Fake::new(), Fake::old()] {
        hint(&fake, UsmKind::Device);
        assert_eq!(fake.hints(), Vec::<[i64; 3]>::new());
        for call in ["cuMemPrefetchAsync", "cuMemPrefetchAsync_v2", "cuMemAdvise", "cuMemAdvise_v2"] {
            assert_eq!(fake.count(call), 0, "{call}");
            fake.fail(call, 0, 1);
        }
        // One call of each kind is not taken, and the others are.
        hint(&fake, UsmKind::Shared);
        assert_eq!(fake.hints().len(), 4);
    }
}

#[test]
fn long_patterns_are_filled_in_columns() {
    let fake = Fake::new();
    let device = fake.device();
    let queue = in_order(&device);
    let (length, elements) = (700, 5);
    let layout = Layout::from_size_align(3 * 4000, 64).expect("a layout");
    let memory = device.memory().allocate(UsmKind::Host, layout, true).expect("there is memory");
    let pattern: Vec<u8> = (0..length).map(|index| (index % 251) as u8 + 1).collect();
    let target = PitchedBox { memory: MemoryId::HOST, pointer: memory.as_ptr(), row_pitch: 4000, slice_pitch: 0 };
    let fill = FillCommand { target, pattern: FillPattern::from_slice(&pattern), extent: [1, 3, elements] };
    issue(&queue, Command::from(fill), &[]).probe.succeed();
    // SAFETY: zeroed memory of the host, which the fill has written.
    let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr(), 3 * 4000) };
    for row in bytes.chunks_exact(4000) {
        assert!(row[..length * elements].iter().enumerate().all(|(index, byte)| *byte == pattern[index % length]));
        assert!(row[length * elements..].iter().all(|byte| *byte == 0));
    }
    // SAFETY: allocated above; the command has ended.
    unsafe { device.memory().free(memory, UsmKind::Host, layout) };
}
