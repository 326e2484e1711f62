//! Overlap of accessors is decided by bytes, across clones, sub-buffers and reinterpretations (soundness invariants).

use oxisycl::prelude::*;

use super::{Gate, add_one, devices, filled, host, refused};

/// Whether two accessors may stand in one group.
#[track_caller]
fn check<F>(is_allowed: bool, queue: &Queue, f: F)
where
    F: for<'cg> FnOnce(&mut Handler<'cg>),
{
    let submitted = queue.submit(|cg| {
        f(cg);
        cg.single_task(|_| {})
    });
    match is_allowed {
        true => submitted.unwrap().wait().unwrap(),
        false => refused(submitted, ErrorCode::Accessor, "overlap"),
    }
}

#[test]
fn a_writing_accessor_overlaps_the_same_bytes_however_they_are_named() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = filled(64);
        let (clone, placeholder) = (buffer.clone(), buffer.placeholder(Read));
        let half = buffer.sub_buffer(32, 32).unwrap();
        let bytes: Buffer<u8, 1> = buffer.reinterpret(256).unwrap();
        let plane: Buffer<u32, 2> = buffer.reinterpret([8, 8]).unwrap();
        let half_bytes: Buffer<[u8; 8], 1> = half.reinterpret(16).unwrap();
        check(false, &queue, |cg| _ = (cg.access(&buffer, Write), cg.access(&clone, Read)));
        check(false, &queue, |cg| _ = (cg.access(&buffer, Write), cg.require(&placeholder)));
        check(false, &queue, |cg| _ = (cg.access(&buffer, Read), cg.access(&half, Write)));
        check(false, &queue, |cg| _ = (cg.access(&bytes, ReadWrite), cg.access(&half, Read)));
        check(false, &queue, |cg| _ = (cg.access(&plane, Write), cg.access(&half_bytes, Read)));
        check(false, &queue, |cg| _ = (cg.access(&buffer, Atomic), cg.access(&bytes, Read)));
        check(false, &queue, |cg| _ = (cg.access(&buffer, Atomic), cg.access(&clone, Atomic)));
        check(false, &queue, |cg| _ = (cg.access_chunks(&buffer, Write, 4), cg.access(&half, Read)));
        check(false, &queue, |cg| _ = (cg.access(&buffer, Write.no_init()), cg.access(&plane, Read)));
        check(true, &queue, |cg| _ = (cg.access(&buffer, Read), cg.access(&half, Read), cg.access(&bytes, Read)));
    }
}

#[test]
fn one_byte_decides() {
    let queue = Queue::new(&host()).unwrap();
    let buffer = filled(64);
    let bytes: Buffer<u8, 1> = buffer.reinterpret(256).unwrap();
    check(true, &queue, |cg| _ = (cg.access_range(&buffer, Write, 0, 8), cg.access_range(&bytes, Read, 32, 8)));
    check(false, &queue, |cg| _ = (cg.access_range(&buffer, Write, 0, 8), cg.access_range(&bytes, Read, 31, 1)));
    check(true, &queue, |cg| _ = (cg.access_range(&buffer, Write, 9, 8), cg.access_range(&bytes, Write, 0, 36)));
    check(false, &queue, |cg| _ = (cg.access_range(&buffer, Write, 9, 8), cg.access_range(&bytes, Write, 0, 37)));
    let plane: Buffer<u32, 2> = buffer.reinterpret([8, 8]).unwrap();
    let columns = [([8, 3], [0, 0]), ([8, 5], [0, 3])];
    check(true, &queue, |cg| {
        _ = columns.map(|(range, offset)| cg.access_range(&plane, Write, offset, range));
    });
    check(false, &queue, |cg| {
        _ = columns.map(|(range, offset)| cg.access_range(&plane, Write, offset, range));
        cg.access_range(&bytes, Read, 255, 1);
    });
    check(true, &queue, |cg| {
        _ = (cg.access_range(&plane, Write, [0, 0], [8, 3]), cg.access_range(&bytes, Read, 12, 20));
    });
    check(true, &queue, |cg| _ = (cg.access_range(&buffer, Write, 5, 0), cg.access(&buffer, ReadWrite)));
}

#[test]
fn a_placeholder_is_one_accessor_and_its_other_views_are_others() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = filled(64);
        let (line, same) = (buffer.placeholder(ReadWrite), buffer.placeholder(ReadWrite));
        check(true, &queue, |cg| _ = (cg.require(&line), cg.require(&same), cg.require(&line)));
        // The same bytes in the same mode, but another element for each work-item.
        let plane = buffer.reinterpret::<u32, 2>([8, 8]).unwrap().placeholder(ReadWrite);
        let other_plane = buffer.reinterpret::<u32, 2>([4, 16]).unwrap().placeholder(ReadWrite);
        let pairs = buffer.reinterpret::<[u32; 2], 1>(32).unwrap().placeholder(ReadWrite);
        let write = buffer.placeholder(Write);
        check(false, &queue, |cg| _ = (cg.require(&line), cg.require(&plane)));
        check(false, &queue, |cg| _ = (cg.require(&plane), cg.require(&other_plane)));
        check(false, &queue, |cg| _ = (cg.require(&line), cg.require(&pairs)));
        check(false, &queue, |cg| _ = (cg.require(&line), cg.require(&write)));
        check(false, &queue, |cg| _ = (cg.require(&line), cg.access(&buffer, ReadWrite)));
        check(false, &queue, |cg| _ = (cg.require(&line), cg.access_chunks(&buffer, ReadWrite, 4)));
        let submitted = queue.submit(|cg| {
            let (a, b) = (cg.require(&line), cg.require(&same));
            cg.copy(a, b)
        });
        refused(submitted, ErrorCode::Accessor, "the same accessor");
    }
}

#[test]
fn host_tasks_and_device_accessors_of_one_group_do_not_overlap_either() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = filled(8);
        let submitted = queue.submit(|cg| {
            let _device = cg.access(&buffer, Read);
            let mut data = cg.access_host(&buffer, ReadWrite);
            cg.host_task(move |scope| data.slice_mut(scope)[0] = 1)
        });
        refused(submitted, ErrorCode::Accessor, "overlap");
        assert_eq!(buffer.to_vec().unwrap(), [7; 8]);
    }
}

#[test]
fn a_copy_from_an_accessor_to_itself_is_refused() {
    for device in devices() {
        let queue = Queue::new(&device).unwrap();
        let buffer = filled(64);
        let submitted = queue.submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.copy(data, data)
        });
        refused(submitted, ErrorCode::Accessor, "the same accessor");
        refused(queue.copy(&buffer, &buffer), ErrorCode::Accessor, "overlap");
        let (low, high) = (buffer.sub_buffer(0, 32).unwrap(), buffer.sub_buffer(32, 32).unwrap());
        queue.fill(&low, 1).unwrap();
        queue.copy(&low, &high).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [1; 64]);
        let submitted = queue.submit(|cg| {
            let nothing = cg.access_range(&buffer, ReadWrite, 3, 0);
            cg.copy(nothing, nothing)
        });
        submitted.unwrap().wait().unwrap();
    }
}

#[test]
fn commands_on_overlapping_bytes_run_one_after_the_other_also_across_queues() {
    static GATE: Gate = Gate::new();
    let queues: Vec<Queue> = devices().iter().map(|device| Queue::new(device).unwrap()).collect();
    let buffer = filled(64);
    let bytes: Buffer<[u8; 4], 2> = buffer.reinterpret([8, 8]).unwrap();
    let half = buffer.sub_buffer(32, 32).unwrap();
    let blocking = queues[0].submit(|cg| {
        let mut data = cg.access_host_range(&bytes, ReadWrite, [6, 0], [1, 8]);
        cg.host_task(move |scope| {
            GATE.pass();
            data.slice_mut(scope).fill(1u32.to_ne_bytes());
        })
    });
    let blocking = blocking.unwrap();
    let after = queues[1].submit(|cg| {
        let data = cg.access(&half, ReadWrite);
        cg.parallel_for(32, move |item| data.update(item, |x| x * 10))
    });
    let last = add_one(&queues[0], &buffer).unwrap();
    assert!(!blocking.is_complete() && !after.unwrap().is_complete() && !last.is_complete());
    GATE.open();
    let data = buffer.to_vec().unwrap();
    assert!(data[..32].iter().all(|&x| x == 8) && data[32..48].iter().all(|&x| x == 71));
    assert!(data[48..56].iter().all(|&x| x == 11) && data[56..].iter().all(|&x| x == 71));
}
