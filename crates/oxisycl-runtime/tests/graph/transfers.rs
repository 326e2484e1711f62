//! Which bytes move, when, and from where.

use oxisycl_backend::DependencyKind::Data;
use oxisycl_backend::MemoryId;
use oxisycl_backend_testing::recording::RecordingConfig;
use oxisycl_types::AccessMode::{Read, ReadWrite, Write};

use crate::support::{Buffer, Change, World, host};

/// Bytes and routes of all copies.
fn moved(world: &World) -> Vec<(usize, MemoryId, MemoryId)> {
    let of = |(_, copy): (usize, oxisycl_backend_testing::recording::Recorded)| {
        let (source, target) = copy.route().expect("a copy has a route");
        (copy.bytes(), source, target)
    };
    world.copies().into_iter().map(of).collect()
}

#[test]
fn a_buffer_is_copied_to_where_it_is_used() {
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    world.queue(0).read("reader", &buffer);
    assert_eq!(moved(&world), [(32, MemoryId::HOST, world.memory(0))]);
    assert_eq!(world.edge("copy", "reader"), Some(Data));
}

#[test]
fn second_reader_on_same_device_copies_nothing() {
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    let queue = world.queue(0);
    queue.read("first", &buffer);
    queue.read("second", &buffer);
    assert_eq!(world.copies().len(), 1);
    assert_eq!(world.waits("second"), ["copy"], "the data is still on its way");
    world.recorder.complete_all();
    queue.read("third", &buffer);
    assert_eq!((world.copies().len(), world.waits("third").len()), (1, 0));
}

#[test]
fn a_buffer_that_nobody_wrote_is_never_copied() {
    let (world, buffer) = (World::new(2), Buffer::new(8));
    world.queue(0).read("first", &buffer);
    world.queue(1).read("second", &buffer);
    world.queue(1).group().access(&buffer, ReadWrite, false, Change::Nothing).kernel("third");
    world.queue(0).read("fourth", &buffer);
    assert_eq!(world.copies().len(), 1, "what the third command may have written");
    assert_eq!(moved(&world)[0].1, world.memory(1));
}

#[test]
fn the_copy_waits_for_the_writer_and_the_kernel_for_the_copy() {
    let (world, buffer) = (World::new(2), Buffer::new(8));
    world.queue(0).update("writer", &buffer);
    world.queue(1).read("reader", &buffer);
    assert_eq!(world.edge("writer", "copy"), Some(Data));
    assert_eq!(world.edge("copy", "reader"), Some(Data));
}

#[test]
fn a_write_waits_for_a_copy_that_reads_its_target() {
    let (world, buffer) = (World::new(2), Buffer::new(8));
    world.queue(0).update("writer", &buffer);
    world.complete("writer");
    world.queue(1).read("reader", &buffer);
    world.queue(0).discard("overwrite", &buffer);
    assert_eq!(world.waits("overwrite"), ["copy", "reader"]);
}

#[test]
fn a_copy_does_not_delay_readers_at_its_source() {
    let (world, buffer) = (World::new(2), Buffer::new(8));
    world.queue(0).update("writer", &buffer);
    world.complete("writer");
    world.queue(1).read("there", &buffer);
    world.queue(0).read("here", &buffer);
    assert_eq!(world.waits("here"), [""; 0]);
}

#[test]
fn a_copy_back_waits_for_readers_of_the_old_bytes() {
    let (world, buffer) = (World::new(2), Buffer::new(8));
    world.queue(0).update("first", &buffer);
    world.complete("first");
    world.queue(0).read("old", &buffer);
    world.queue(1).update("second", &buffer);
    world.queue(0).read("new", &buffer);
    let copies = world.copies();
    assert_eq!(copies.len(), 2);
    // The second writer waits for the reader of the old bytes, and the copy back waits for the writer.
    assert_eq!(world.waits("second"), ["copy", "old"]);
    assert_eq!(copies[1].1.waits_for(), [world.find("second")]);
}

#[test]
fn every_writer_makes_other_memories_outdated() {
    let (world, buffer) = (World::new(2), Buffer::new(8).initialized());
    for device in [0, 1] {
        world.queue(device).read("reader", &buffer);
    }
    world.recorder.complete_all();
    world.queue(0).group().write(&buffer).kernel("writer");
    world.recorder.complete_all();
    let before = world.copies().len();
    world.queue(1).read("last", &buffer);
    assert_eq!(moved(&world)[before..], [(32, world.memory(0), world.memory(1))]);
}

#[test]
fn a_writer_that_keeps_elements_gets_them_first() {
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    world.queue(0).group().write(&buffer).kernel("writer");
    assert_eq!(world.waits("writer"), ["copy"]);
}

#[test]
fn no_init_never_copies() {
    let (world, buffer) = (World::new(2), Buffer::paged(16, 4).initialized());
    world.queue(0).discard("all", &buffer);
    world.queue(1).discard("part", buffer.part(2, 7));
    world.queue(1).group().access(buffer.part(0, 3), ReadWrite, true, Change::Nothing).kernel("read-write");
    assert_eq!(world.copies(), []);
}

#[test]
fn no_init_over_a_partly_covered_page_keeps_the_rest_current_where_it_was() {
    let (world, buffer) = (World::new(2), Buffer::paged(16, 8));
    world.queue(0).group().access(&buffer, Write, true, Change::Set(1)).kernel("all");
    world.queue(1).group().access(buffer.part(2, 5), Write, true, Change::Set(2)).kernel("middle");
    world.recorder.complete_all();
    assert_eq!(world.copies(), []);
    world.queue(0).read("here", &buffer);
    assert_eq!(moved(&world), [(12, world.memory(1), world.memory(0))]);
    world.recorder.complete_all();
    world.queue(1).read("there", &buffer);
    let sizes: Vec<usize> = moved(&world)[1..].iter().map(|copy| copy.0).collect();
    assert_eq!(sizes, [8, 44], "the elements before and behind the middle");
    assert_eq!(buffer.read(&world), [1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn only_outdated_pages_move() {
    let (world, buffer) = (World::new(2), Buffer::paged(16, 4));
    world.queue(0).update("all", &buffer);
    world.queue(1).read("reader", &buffer);
    world.queue(0).update("page 2", buffer.part(9, 10));
    world.recorder.complete_all();
    world.queue(1).read("again", &buffer);
    let copies = world.copies();
    assert_eq!(copies.len(), 2);
    assert_eq!((copies[1].1.bytes(), copies[1].1.source.unwrap().offset), (16, Some(32)));
}

#[test]
fn adjacent_outdated_pages_become_one_copy() {
    let (world, buffer) = (World::new(2), Buffer::paged(16, 4));
    let queue = world.queue(0);
    for (page, name) in ["w0", "w1", "w2", "w3"].into_iter().enumerate() {
        queue.discard(name, buffer.part(4 * page, 4 * page + 4));
    }
    world.queue(1).read("reader", &buffer);
    assert_eq!(world.waits("copy"), ["w0", "w1", "w2", "w3"]);
    assert_eq!(moved(&world), [(64, world.memory(0), world.memory(1))]);
}

#[test]
fn strided_pages_become_one_copy_per_run() {
    let (world, buffer) = (World::new(2), Buffer::paged(40, 4));
    let queue = world.queue(0);
    for page in [0, 1, 4, 5, 6, 9] {
        queue.discard("writer", buffer.part(4 * page, 4 * page + 4));
    }
    world.recorder.complete_all();
    world.queue(1).read("reader", &buffer);
    let mut runs: Vec<_> = world.copies().iter().map(|(_, copy)| (copy.source.unwrap().offset, copy.bytes())).collect();
    runs.sort_unstable();
    assert_eq!(runs, [(Some(0), 32), (Some(64), 48), (Some(144), 16)]);
}

#[test]
fn pages_from_several_memories_come_from_each() {
    let (world, buffer) = (World::new(3), Buffer::paged(12, 4).initialized());
    world.queue(0).update("page 0", buffer.part(0, 4));
    world.queue(1).update("page 1", buffer.part(4, 8));
    world.recorder.complete_all();
    let before = world.copies().len();
    world.queue(2).read("reader", &buffer);
    let mut routes = moved(&world)[before..].to_vec();
    routes.sort_unstable();
    let target = world.memory(2);
    let mut expected = [(16, MemoryId::HOST, target), (16, world.memory(0), target), (16, world.memory(1), target)];
    expected.sort_unstable();
    assert_eq!(routes, expected);
}

#[test]
fn peer_copy_is_preferred_to_host() {
    let (world, buffer) = (World::new(2), Buffer::new(8).initialized());
    world.queue(0).read("first", &buffer);
    world.queue(1).read("second", &buffer);
    assert_eq!(moved(&world)[1], (32, world.memory(0), world.memory(1)));
    assert_eq!(world.copies()[1].1.waits_for(), [0], "the first copy makes the source current");
}

#[test]
fn without_peer_copies_the_host_is_preferred() {
    let world = World::with(RecordingConfig::new(2).without_peer_copies());
    let buffer = Buffer::new(8).initialized();
    world.queue(0).read("first", &buffer);
    world.queue(1).read("second", &buffer);
    assert_eq!(moved(&world)[1], (32, MemoryId::HOST, world.memory(1)));
}

#[test]
fn without_a_direct_way_data_goes_over_the_host() {
    let world = World::with(RecordingConfig::new(2).without_peer_copies());
    let buffer = Buffer::new(8).initialized();
    world.queue(0).group().access(&buffer, ReadWrite, false, Change::Add(5)).kernel("writer");
    world.recorder.complete_all();
    let reader = world.queue(1).group().access(&buffer, ReadWrite, false, Change::Add(5)).kernel("reader");
    world.recorder.complete_all();
    let (near, far) = (world.memory(0), world.memory(1));
    let routes = moved(&world);
    assert_eq!(routes, [(32, MemoryId::HOST, near), (32, near, MemoryId::HOST), (32, MemoryId::HOST, far)]);
    assert!(reader.has_succeeded());
    assert_eq!(buffer.read(&world), [10, 11, 12, 13, 14, 15, 16, 17]);
}

#[test]
fn a_detour_leaves_the_data_on_the_host() {
    let world = World::with(RecordingConfig::new(2).without_peer_copies());
    let buffer = Buffer::new(8);
    world.queue(0).update("writer", &buffer);
    world.queue(1).read("reader", &buffer);
    world.recorder.complete_all();
    let before = world.copies().len();
    drop(host(&buffer, Read).unwrap());
    assert_eq!(world.copies().len(), before);
}

#[test]
fn a_host_accessor_brings_its_pages_to_the_host() {
    let (world, buffer) = (World::new(1), Buffer::paged(16, 4).initialized());
    world.queue(0).group().access(&buffer, ReadWrite, false, Change::Add(100)).kernel("writer");
    world.recorder.complete_all();
    let before = world.copies().len();
    world.at_once(|| drop(host(buffer.part(5, 6), Read).unwrap()));
    assert_eq!(moved(&world)[before..], [(16, world.memory(0), MemoryId::HOST)]);
    world.at_once(|| drop(host(buffer.part(4, 8), Read).unwrap()));
    assert_eq!(world.copies().len(), before + 1);
    assert_eq!(buffer.read(&world)[15], 115);
}

#[test]
fn what_the_host_writes_moves_back() {
    let (world, buffer) = (World::new(1), Buffer::paged(8, 4).initialized());
    world.queue(0).read("first", &buffer);
    world.recorder.complete_all();
    let access = host(buffer.part(4, 8), Write).unwrap();
    // SAFETY: element 6 is in the accessor's range.
    unsafe { access.pointer().cast::<u32>().add(6).write(60) };
    drop(access);
    world.queue(0).group().access(&buffer, ReadWrite, false, Change::Add(1)).kernel("second");
    assert_eq!(moved(&world)[1..], [(16, MemoryId::HOST, world.memory(0))]);
    assert_eq!(buffer.read(&world), [1, 2, 3, 4, 5, 6, 61, 8]);
}

#[test]
fn an_allocation_is_made_at_first_use_and_has_the_size_of_the_buffer() {
    let (world, buffer) = (World::new(2), Buffer::paged(1024, 4).initialized());
    let n_allocations = |device| world.recorder.n_allocations(world.memory(device));
    assert_eq!((n_allocations(0), n_allocations(1)), (0, 0));
    world.queue(0).read("one element", buffer.part(1000, 1001));
    assert_eq!((n_allocations(0), n_allocations(1)), (1, 0));
    assert_eq!(world.copies()[0].1.target.unwrap().offset, Some(4000));
    world.queue(0).read("all", &buffer);
    assert_eq!(n_allocations(0), 1);
}

#[test]
fn rows_of_a_box_are_copied_with_the_pitch_of_the_buffer() {
    let world = World::new(2);
    let buffer = Buffer::with([1, 6, 10], Some([1, 1, 1]));
    world.queue(0).update("all", &buffer);
    let part = oxisycl_runtime::state::Region::new([0, 2, 3], [1, 5, 7]);
    world.queue(1).read("box", buffer.region(part));
    let (_, copy) = &world.copies()[0];
    let place = copy.source.unwrap();
    assert_eq!((copy.extent, place.offset, place.row_pitch), ([1, 3, 16], Some(2 * 40 + 12), 40));
    assert_eq!(copy.target.unwrap().offset, place.offset);
}

#[test]
fn whole_rows_are_one_run() {
    let world = World::new(2);
    let buffer = Buffer::with([1, 6, 10], Some([1, 1, 1]));
    world.queue(0).update("all", &buffer);
    let part = oxisycl_runtime::state::Region::new([0, 2, 0], [1, 5, 10]);
    world.queue(1).read("rows", buffer.region(part));
    assert_eq!(world.copies()[0].1.extent, [1, 1, 120]);
}
