//! What the page size costs and what it buys (S-R36), counted instead of timed.

use oxisycl_runtime::state::Region;

use crate::support::{Buffer, World};

/// The number of parts that the programs below use.
const N_PARTS: usize = 8;

/// How many parts of the buffer the runtime tells apart, and how many of them an operation on `begin..end` looks at.
fn tracked(buffer: &Buffer, begin: usize, end: usize) -> (usize, usize) {
    let state = buffer.0.core.lock();
    let mut n_seen = 0;
    state.map.for_each(&Region::new([0, 0, 4 * begin], [1, 1, 4 * end]), |_, _| n_seen += 1);
    (state.map.n_regions(), n_seen)
}

/// Writes the first half of each eighth of `n` elements, then reads across all of them. When all that has ended, it writes everything
/// twice. Pages have `page` elements. What is tracked after each step.
fn program(n: usize, page: usize) -> Vec<(usize, usize)> {
    let (world, buffer) = (World::new(2), Buffer::paged(n, page));
    let eighth = n / N_PARTS;
    let mut steps = Vec::new();
    for part in 0..N_PARTS {
        let (begin, end) = (part * eighth, part * eighth + eighth / 2);
        world.queue(0).update("write", buffer.part(begin, end));
        steps.push(tracked(&buffer, begin, end));
    }
    world.queue(1).read("read", buffer.part(eighth / 4, n - eighth));
    steps.push(tracked(&buffer, 0, n));
    // What was before a write counts until the write has ended well.
    for _ in 0..2 {
        world.recorder.complete_all();
        world.queue(0).discard("all", &buffer);
    }
    steps.push(tracked(&buffer, 0, n));
    steps
}

#[test]
fn what_tracking_costs_follows_the_regions_in_use_and_not_the_pages() {
    // From 64 pages to four million.
    let few = program(1 << 6, 1);
    for (n, page) in [(1 << 10, 1), (1 << 16, 1), (1 << 22, 1), (1 << 22, 1 << 8), (1 << 22, 1 << 17)] {
        assert_eq!(program(n, page), few, "{n} elements in pages of {page}");
    }
    // A written part and the gap behind it for each write; only the part itself is looked at.
    for (i, step) in few[..N_PARTS].iter().enumerate() {
        assert_eq!(*step, (2 * (i + 1), 1));
    }
    assert!(few[N_PARTS].0 <= 4 * N_PARTS, "{few:?}");
    assert_eq!(few[N_PARTS + 1], (1, 1), "equal parts are joined");
}

#[test]
fn smaller_pages_give_more_concurrency_and_finer_transfers_for_more_regions() {
    // The same accesses of 64 elements. Per page size: kernels that wait for nothing, bytes that a read of one element moves, and tracked
    // regions.
    let of = |page: usize| {
        let (world, buffer) = (World::new(2), Buffer::paged(64, page));
        for part in 0..N_PARTS {
            world.queue(0).update("write", buffer.part(8 * part, 8 * part + 4));
        }
        let n_free = world.recorder.commands().iter().filter(|command| command.dependencies.is_empty()).count();
        let (n_regions, _) = tracked(&buffer, 0, 64);
        world.queue(1).read("read", buffer.part(2, 3));
        let n_bytes: usize = world.copies().iter().map(|(_, copy)| copy.bytes()).sum();
        (n_free, n_bytes, n_regions)
    };
    assert_eq!(of(1), (8, 4, 16));
    assert_eq!(of(4), (8, 16, 16));
    assert_eq!(of(8), (8, 32, 8));
    assert_eq!(of(16), (4, 64, 4));
    assert_eq!(of(32), (2, 128, 2));
    assert_eq!(of(64), (1, 256, 1));
}
