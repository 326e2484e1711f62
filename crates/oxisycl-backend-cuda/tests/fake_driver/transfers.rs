//! Transfers: memory that the driver does not know, between devices, and hints.

use std::alloc::Layout;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use oxisycl_backend::{
    Advice, Command, CopyCommand, EventStatus, FillCommand, FillPattern, MemoryId, Rectangle, UsmKind,
};

use crate::fake::Fake;
use crate::support::{enqueue, in_order, kernel, launch, line, queue};

fn row(memory: MemoryId, pointer: *mut u8) -> Rectangle {
    Rectangle { memory, pointer, row_pitch: 0, slice_pitch: 0 }
}

fn copy(source: Rectangle, target: Rectangle, size: usize) -> Command {
    Command::Copy(CopyCommand { source, target, extent: [1, 1, size] })
}

/// A copy of half of the bytes to the other half, which the host executes.
pub(crate) fn host_copy(bytes: &mut [u8]) -> Command {
    let (source, target) = bytes.split_at_mut(bytes.len() / 2);
    copy(row(MemoryId::HOST, source.as_mut_ptr()), row(MemoryId::HOST, target.as_mut_ptr()), source.len())
}

#[test]
fn a_copy_of_unknown_memory_does_not_wait_in_enqueue_and_keeps_its_place() {
    let fake = Fake::new();
    let device = fake.device();
    let (memory, id) = (device.memory(), device.memory().id());
    let layout = Layout::from_size_align(64, 64).expect("a layout");
    let buffer = memory.allocate(UsmKind::Device, layout, true).expect("there is memory");
    let gate = memory.allocate(UsmKind::Host, layout, true).expect("there is memory");
    for queue in [in_order(&device), queue(&device)] {
        // SAFETY: allocated above; no kernel looks at it yet.
        unsafe { gate.write(0) };
        let blocker =
            enqueue(&queue, launch(&kernel(&device, "gate"), "gate", &(gate.as_ptr() as usize), line(1)), &[]);
        let (mut up, mut down) = (vec![7u8; 64], vec![0u8; 64]);
        let upload = copy(row(MemoryId::HOST, up.as_mut_ptr()), row(id, buffer.as_ptr()), 64);
        let upload = enqueue(&queue, upload, &[blocker.data()]);
        let target = row(id, buffer.as_ptr());
        let fill = FillCommand { target, pattern: FillPattern::from_slice(&[9]), extent: [1, 1, 32] };
        let fill = enqueue(&queue, Command::Fill(fill), &[upload.data()]);
        let download = copy(row(id, buffer.as_ptr()), row(MemoryId::HOST, down.as_mut_ptr()), 64);
        let download = enqueue(&queue, download, &[fill.data()]);
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!([&upload, &fill, &download].iter().all(|command| !command.probe.is_complete()));
        assert_eq!(download.event.status(), EventStatus::Submitted);
        // SAFETY: the byte is alive, and the kernel reads it as an atomic.
        unsafe { (*gate.as_ptr().cast::<AtomicBool>()).store(true, Ordering::Release) };
        download.probe.succeed();
        assert!([&blocker, &upload, &fill].iter().all(|command| command.probe.is_complete()));
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
    let (memory, id) = (device.memory(), device.memory().id());
    let layout = Layout::from_size_align(4096, 64).expect("a layout");
    let buffer = memory.allocate(UsmKind::Device, layout, true).expect("there is memory");
    let queue = in_order(&device);
    for round in 0..20u8 {
        let (mut up, mut down) = (vec![round; 4096], vec![0u8; 4096]);
        let host = |bytes: &mut Vec<u8>| row(MemoryId::HOST, bytes.as_mut_ptr());
        let on_device = row(id, buffer.as_ptr());
        let pattern = FillPattern::from_slice(&[round + 1]);
        let fill = FillCommand { target: on_device, pattern, extent: [1, 1, 1024] };
        enqueue(&queue, copy(host(&mut up), on_device, 4096), &[]);
        enqueue(&queue, Command::Fill(fill), &[]);
        enqueue(&queue, copy(on_device, host(&mut down), 4096), &[]);
        enqueue(&queue, Command::Marker, &[]).probe.succeed();
        assert_eq!((down[0], down[1023], down[1024], down[4095]), (round + 1, round + 1, round, round));
    }
    // SAFETY: allocated above; the commands have ended.
    unsafe { memory.free(buffer, UsmKind::Device, layout) };
}

/// A command that another thread enqueued at the same time took the place of one that was held back: later ones did not wait for it.
#[test]
fn host_transfers_of_two_threads_on_one_in_order_queue_are_ordered() {
    const ROUNDS: usize = 100;
    /// Most transfers of the other thread in a round, and how many of them come first.
    const OTHERS: usize = 1000;
    const BEFORE: usize = 8;
    let fake = Fake::new();
    let device = fake.device();
    let memory = device.memory();
    let layout = Layout::from_size_align(64, 64).expect("a layout");
    let gate = memory.allocate(UsmKind::Host, layout, true).expect("there is memory");
    let (queue, elsewhere, apart) = (in_order(&device), in_order(&device), in_order(&device));
    let kernel = kernel(&device, "gate");
    let mut out_of_order = Vec::new();
    let mut others = vec![[0u8; 2]; OTHERS];
    // How many rounds have begun, have their two commands, and those of the other thread, and have ended; and the number of the latter.
    let [begun, complete, over, ended, n_others] = [const { AtomicUsize::new(0) }; 5];
    // Spins for a while: a thread that was asleep would come too late to enqueue at the same time.
    let until = |number: &AtomicUsize, least: usize| {
        let mut n_looks = 0;
        while number.load(Ordering::Acquire) < least {
            n_looks += 1;
            if n_looks % 20_000 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                until(&begun, round);
                let mut enqueued = Vec::new();
                for bytes in &mut others {
                    enqueued.push(enqueue(&queue, host_copy(bytes), &[]));
                    n_others.fetch_add(1, Ordering::Release);
                    if complete.load(Ordering::Acquire) == round {
                        break;
                    }
                }
                over.store(round, Ordering::Release);
                enqueued.iter().for_each(|other| other.probe.succeed());
                ended.store(round, Ordering::Release);
            }
        });
        for round in 1..=ROUNDS {
            // SAFETY: allocated above; no kernel looks at it yet.
            unsafe { gate.write(0) };
            let blocker = enqueue(&elsewhere, launch(&kernel, "gate", &(gate.as_ptr() as usize), line(1)), &[]);
            let mut bytes = [round as u8, 0, 0];
            let [source, middle, target] = bytes.each_mut().map(|byte| row(MemoryId::HOST, byte));
            let n_earlier = n_others.load(Ordering::Acquire);
            begun.store(round, Ordering::Release);
            until(&n_others, n_earlier + BEFORE);
            let first = enqueue(&queue, copy(source, middle, 1), &[blocker.data()]);
            let second = enqueue(&queue, copy(middle, target, 1), &[]);
            complete.store(round, Ordering::Release);
            until(&over, round);
            // Transfers that wait for nothing run one after the other, so that the second one would have run by now.
            enqueue(&apart, host_copy(&mut [0u8; 2]), &[]).probe.succeed();
            let is_early = second.probe.is_complete();
            // SAFETY: the byte is alive, and the kernel reads it as an atomic.
            unsafe { (*gate.as_ptr().cast::<AtomicBool>()).store(true, Ordering::Release) };
            first.probe.succeed();
            second.probe.succeed();
            until(&ended, round);
            if is_early || bytes != [round as u8; 3] {
                out_of_order.push(round);
            }
        }
    });
    // Not before: the other thread would wait for the next round.
    assert_eq!(out_of_order, Vec::<usize>::new(), "rounds of {ROUNDS}");
    // SAFETY: allocated above; the commands have ended.
    unsafe { memory.free(gate, UsmKind::Host, layout) };
}

#[test]
fn devices_copy_to_each_other_if_the_driver_says_so() {
    for peers in [0, 1] {
        let fake = Fake::with(&[("devices", 2), ("peers", peers)]);
        let devices = fake.devices();
        let ids = [devices[0].memory().id(), devices[1].memory().id()];
        assert_eq!(devices[0].can_copy(ids[0], ids[1]), peers == 1);
        assert!(devices[0].can_copy(MemoryId::HOST, ids[0]) && devices[0].can_copy(ids[0], MemoryId::HOST));
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
        let fill = enqueue(&queues[0], Command::Fill(FillCommand { target, pattern, extent: [1, 1, 80] }), &[]);
        let across = copy(row(ids[0], memories[0].as_ptr()), row(ids[1], memories[1].as_ptr()), 240);
        let across = enqueue(&queues[1], across, &[fill.data()]);
        let boxes = [(ids[1], memories[1]), (ids[0], memories[0])].map(|(memory, pointer)| Rectangle {
            memory,
            pointer: pointer.as_ptr(),
            row_pitch: 9,
            slice_pitch: 45,
        });
        let back = CopyCommand { source: boxes[0], target: boxes[1], extent: [2, 3, 6] };
        let back = enqueue(&queues[0], Command::Copy(back), &[across.data()]);
        let mut bytes = vec![0u8; 240];
        let target = row(MemoryId::HOST, bytes.as_mut_ptr());
        enqueue(&queues[1], copy(row(ids[1], memories[1].as_ptr()), target, 240), &[back.order()]).probe.succeed();
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
    enqueue(&queue, Command::Prefetch { pointer, size }, &[]).probe.succeed();
    for advice in [Advice::ReadMostly, Advice::PreferHost, Advice::PreferDevice, Advice::Reset] {
        enqueue(&queue, Command::Advise { pointer, size, advice }, &[]).probe.succeed();
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
    let target = Rectangle { memory: MemoryId::HOST, pointer: memory.as_ptr(), row_pitch: 4000, slice_pitch: 0 };
    let fill = FillCommand { target, pattern: FillPattern::from_slice(&pattern), extent: [1, 3, elements] };
    enqueue(&queue, Command::Fill(fill), &[]).probe.succeed();
    // SAFETY: zeroed memory of the host, which the fill has written.
    let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr(), 3 * 4000) };
    for row in bytes.chunks_exact(4000) {
        assert!(row[..length * elements].iter().enumerate().all(|(index, byte)| *byte == pattern[index % length]));
        assert!(row[length * elements..].iter().all(|byte| *byte == 0));
    }
    // SAFETY: allocated above; the command has ended.
    unsafe { device.memory().free(memory, UsmKind::Host, layout) };
}
