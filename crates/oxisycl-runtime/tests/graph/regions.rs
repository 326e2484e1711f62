//! Sub-buffers, other element types and shapes, and boxes of three dimensions.

use oxisycl_backend::MemoryId;
use oxisycl_backend_testing::recording::Recorded;
use oxisycl_runtime::state::Region;
use oxisycl_types::AccessMode::{Read, Write};

use crate::support::{Buffer, Change, World};

/// First byte and number of bytes of all copies, sorted.
fn runs(world: &World) -> Vec<(usize, usize)> {
    let of = |(_, copy): (usize, Recorded)| (copy.source.unwrap().offset.unwrap_or(usize::MAX), copy.bytes());
    let mut runs: Vec<_> = world.copies().into_iter().map(of).collect();
    runs.sort_unstable();
    runs
}

#[test]
fn disjoint_sub_buffers_have_no_dependency() {
    let (world, buffer) = (World::new(1), Buffer::new(32));
    let queue = world.queue(0);
    queue.update("first", &buffer.sub_buffer(0, 16));
    queue.update("second", &buffer.sub_buffer(16, 32));
    queue.update("overlap", &buffer.sub_buffer(8, 12));
    queue.update("buffer", &buffer);
    assert_eq!(world.waits("second"), [""; 0]);
    assert_eq!(world.waits("overlap"), ["first"]);
    assert_eq!(world.waits("buffer"), ["first", "overlap", "second"]);
}

#[test]
fn an_accessor_of_a_sub_buffer_requires_all_of_it() {
    let (world, buffer) = (World::new(1), Buffer::new(32));
    let queue = world.queue(0);
    let sub = buffer.sub_buffer(0, 16);
    queue.update("begin", sub.part(0, 4));
    queue.update("end", sub.part(12, 16));
    assert_eq!(world.waits("end"), ["begin"]);
}

#[test]
fn an_accessor_of_a_sub_buffer_of_pages_requires_pages() {
    let (world, buffer) = (World::new(1), Buffer::paged(32, 4));
    let queue = world.queue(0);
    let sub = buffer.sub_buffer(2, 18);
    queue.update("begin", sub.part(0, 2));
    queue.update("next page", sub.part(2, 4));
    queue.update("same page", &buffer.sub_buffer(0, 2));
    assert_eq!(world.waits("next page"), [""; 0]);
    assert_eq!(world.waits("same page"), ["begin"]);
}

#[test]
fn a_sub_buffer_moves_alone() {
    let (world, buffer) = (World::new(2), Buffer::new(32).initialized());
    world.queue(0).group().access(&buffer, Write, true, Change::Set(1)).kernel("all");
    let sub = buffer.sub_buffer(16, 24);
    let sub_of_sub = sub.sub_buffer(4, 8);
    world
        .queue(1)
        .group()
        .access(&sub_of_sub, oxisycl_types::AccessMode::ReadWrite, false, Change::Add(1))
        .kernel("part");
    assert_eq!(runs(&world), [(80, 16)]);
    let mut expected = vec![1; 32];
    expected[20..24].fill(2);
    assert_eq!(buffer.read(&world), expected);
}

#[test]
fn conflicts_of_reinterpretations_are_compared_in_bytes() {
    let (world, buffer) = (World::new(1), Buffer::paged(16, 1));
    let queue = world.queue(0);
    let bytes = buffer.reinterpret(0, [1, 1, 64], 1);
    let pairs = buffer.reinterpret(0, [1, 1, 8], 8);
    queue.update("bytes 7 and 8", bytes.part(7, 9));
    queue.update("element 0", buffer.part(0, 1));
    queue.update("element 1", buffer.part(1, 2));
    queue.update("pair 1", pairs.part(1, 2));
    assert_eq!(world.waits("element 0"), [""; 0]);
    assert_eq!(world.waits("element 1"), ["bytes 7 and 8"]);
    assert_eq!(world.waits("pair 1"), ["bytes 7 and 8"]);
}

#[test]
fn a_range_of_another_shape_names_the_same_bytes() {
    let world = World::new(2);
    let table = Buffer::with([1, 8, 8], Some([1, 1, 1]));
    let line = table.reinterpret(0, [1, 1, 64], 4);
    world.queue(0).update("all", &table);
    world.recorder.complete_all();
    // The end of row 1, rows 2 and 3, and the begin of row 4.
    world.queue(1).read("range", line.part(13, 35));
    let mut bytes: Vec<usize> = world.copies().iter().map(|(_, copy)| copy.bytes()).collect();
    bytes.sort_unstable();
    assert_eq!(bytes, [12, 12, 64]);
    world.queue(0).update("inside", table.region(Region::new([0, 4, 2], [1, 5, 3])));
    world.queue(0).update("outside", table.region(Region::new([0, 4, 3], [1, 5, 4])));
    assert_eq!(world.waits("inside"), ["copy", "range"]);
    assert_eq!(world.waits("outside"), [""; 0]);
}

#[test]
fn a_range_of_another_shape_requires_each_page_once() {
    let world = World::new(2);
    let table = Buffer::with([1, 12, 8], Some([1, 4, 8]));
    let line = table.reinterpret(0, [1, 1, 96], 4);
    world.queue(0).update("all", &table);
    world.recorder.complete_all();
    // Part of row 0, rows 1 and 2, and part of row 3: one page.
    world.queue(1).read("within a page", line.part(3, 29));
    assert_eq!(runs(&world), [(0, 128)]);
    // From row 5 to row 9: the two other pages.
    world.recorder.complete_all();
    world.queue(1).read("two pages", line.part(43, 77));
    assert_eq!(runs(&world), [(0, 128), (128, 256)]);
}

#[test]
fn a_range_over_two_planes_requires_each_page_once() {
    let world = World::new(2);
    let cube = Buffer::with([2, 12, 4], Some([2, 4, 4]));
    let line = cube.reinterpret(0, [1, 1, 96], 4);
    world.queue(0).update("all", &cube);
    world.recorder.complete_all();
    // From row 4 of the first plane to row 7 of the second. Pages reach over both planes, and the page ranges of the pieces overlap without
    // one containing the other.
    world.queue(1).read("range", line.part(16, 80));
    let total: usize = world.copies().iter().map(|(_, copy)| copy.bytes()).sum();
    assert_eq!(total, 384);
    world.queue(0).update("page", cube.region(Region::new([1, 0, 0], [2, 1, 1])));
    assert!(world.waits("page").contains(&"range".to_owned()));
}

#[test]
fn a_strided_box_of_a_reinterpretation_is_never_smaller_than_what_it_names() {
    let world = World::new(2);
    let line = Buffer::paged(64, 1);
    let table = line.reinterpret(0, [1, 8, 8], 4);
    world.queue(0).update("all", &line);
    world.recorder.complete_all();
    // Columns 2 and 3 of rows 1 and 2 are not one run of the line.
    let part = Region::new([0, 1, 2], [1, 3, 4]);
    world.queue(1).group().access(table.region(part), Write, true, Change::Set(7)).kernel("box");
    world.recorder.complete_all();
    let expected: Vec<u32> = {
        let mut all = vec![0xA5A5_A5A5; 64];
        for index in [10, 11, 18, 19] {
            all[index] = 7;
        }
        all
    };
    assert_eq!(line.read(&world), expected, "elements between the rows must not be lost");
}

#[test]
fn boxes_of_three_dimensions_conflict_where_they_overlap() {
    let world = World::new(1);
    let buffer = Buffer::with([4, 6, 8], Some([1, 1, 1]));
    let queue = world.queue(0);
    let boxed = |begin, end| buffer.region(Region::new(begin, end));
    queue.update("corner", boxed([0, 0, 0], [2, 3, 4]));
    queue.update("beside", boxed([0, 0, 4], [2, 3, 8]));
    queue.update("below", boxed([0, 3, 0], [2, 6, 4]));
    queue.update("behind", boxed([2, 0, 0], [4, 3, 4]));
    queue.update("touching the corner", boxed([2, 3, 4], [4, 6, 8]));
    queue.update("overlap", boxed([1, 2, 3], [3, 4, 5]));
    for name in ["beside", "below", "behind", "touching the corner"] {
        assert_eq!(world.waits(name), [""; 0], "{name}");
    }
    assert_eq!(world.waits("overlap"), ["behind", "below", "beside", "corner", "touching the corner"]);
}

#[test]
fn boxes_of_three_dimensions_move_with_their_pitches() {
    let world = World::new(2);
    let buffer = Buffer::with([4, 6, 8], Some([1, 1, 1])).initialized();
    let part = Region::new([1, 2, 3], [3, 5, 7]);
    world.queue(0).group().access(buffer.region(part), Write, true, Change::Set(1000)).kernel("box");
    world.recorder.complete_all();
    world.queue(1).read("reader", &buffer);
    let from_device: Vec<Recorded> = world
        .copies()
        .into_iter()
        .map(|(_, copy)| copy)
        .filter(|copy| copy.route().unwrap().0 != MemoryId::HOST)
        .collect();
    assert_eq!(from_device.len(), 1);
    let place = from_device[0].source.unwrap();
    let first = ((6 + 2) * 8 + 3) * 4;
    assert_eq!((from_device[0].extent, place.offset), ([2, 3, 16], Some(first)));
    assert_eq!((place.row_pitch, place.slice_pitch), (32, 192));
    world.recorder.complete_all();
    let numbers = buffer.read(&world);
    for (index, number) in numbers.into_iter().enumerate() {
        let (x, y, z) = (index / 48, index / 8 % 6, index % 8);
        let inside = (1..3).contains(&x) && (2..5).contains(&y) && (3..7).contains(&z);
        assert_eq!(number, if inside { 1000 } else { index as u32 });
    }
}

#[test]
fn pages_of_three_dimensions_round_boxes_out() {
    let world = World::new(1);
    let buffer = Buffer::with([4, 6, 8], Some([2, 3, 4]));
    let queue = world.queue(0);
    let point = |x, y, z| buffer.region(Region::new([x, y, z], [x + 1, y + 1, z + 1]));
    queue.update("first", point(0, 0, 0));
    queue.update("same page", point(1, 2, 3));
    queue.update("next column", point(1, 2, 4));
    queue.update("next row", point(1, 3, 3));
    queue.update("next plane", point(2, 2, 3));
    assert_eq!(world.waits("same page"), ["first"]);
    for name in ["next column", "next row", "next plane"] {
        assert_eq!(world.waits(name), [""; 0], "{name}");
    }
}

#[test]
fn a_range_outside_the_view_is_refused() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    for part in [buffer.part(7, 9), buffer.sub_buffer(0, 4).part(0, 5), buffer.part(0, usize::MAX)] {
        let error = queue.group().read(part).try_kernel("refused").unwrap_err();
        assert_eq!(error.code(), oxisycl_types::ErrorCode::Invalid);
    }
    let error = queue.group().access(&buffer, Read, true, Change::Nothing).try_kernel("refused").unwrap_err();
    assert!(error.to_string().contains("no_init"), "{error}");
    assert!(world.recorder.is_empty());
}
