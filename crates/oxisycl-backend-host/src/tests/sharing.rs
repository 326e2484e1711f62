//! Kernels that several threads execute together.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread::ThreadId;

use oxisycl_backend::Partition;
use oxisycl_types::{HostChunk, LaunchRange};
use parking_lot::Mutex;

use super::support::*;

/// Counts how often each item ran.
unsafe fn count_entry(arguments: *const u8, launch: &LaunchRange, chunk: &HostChunk) {
    // SAFETY: launched with such a slice.
    let counts = unsafe { *arguments.cast::<&[AtomicU8]>() };
    assert!(chunk.begin < chunk.end && chunk.end <= launch.size());
    counts[chunk.begin..chunk.end].iter().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
}

/// Small ones under Miri, where an item takes a millisecond.
const SHAPES: [[usize; 3]; 7] = if cfg!(miri) {
    [[1, 1, 2], [1, 1, 65], [1, 1, 131], [1, 10, 7], [1, 3, 40], [2, 5, 6], [40, 1, 1]]
} else {
    [[1, 1, 2], [1, 1, 4097], [1, 1, 1_000_003], [1, 1000, 7], [1, 3, 100_000], [500, 20, 30], [200, 1, 1]]
};

#[test]
fn every_item_of_every_shape_runs_exactly_once() {
    let n_threads: &[usize] = if cfg!(miri) { &[1, 3] } else { &[1, 2, 3, 8] };
    for &threads in n_threads {
        let queue = queue(threads);
        for extent in SHAPES {
            let launch = LaunchRange { dimensions: 3, extent, offset: [0; 3] };
            let counts: Vec<AtomicU8> = (0..launch.size()).map(|_| AtomicU8::new(0)).collect();
            for round in 1..4 {
                let probe = Probe::new();
                issue(&queue, kernel(&&counts[..], count_entry, launch), &[], &probe);
                if round == 2 { probe.help(&queue) } else { probe.wait() }.result.expect("success");
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round));
            }
        }
    }
}

#[test]
fn an_empty_launch_completes() {
    let queue = queue(2);
    assert!(run(&queue, for_each(0, |_| panic!("no item"))).result.is_ok());
}

#[test]
fn a_few_heavy_items_run_on_several_threads_at_once() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    let queue = queue(4);
    let probe = Probe::new();
    // No item ends before four are running.
    issue(
        &queue,
        for_each(4, |_| {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            eventually(|| INSIDE.load(Ordering::SeqCst) == 4);
        }),
        &[],
        &probe,
    );
    probe.succeed();
}

#[test]
fn a_helping_thread_takes_the_place_of_the_reserve() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    let queue = queue(2);
    let probe = Probe::new();
    issue(
        &queue,
        for_each(2, |_| {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            eventually(|| INSIDE.load(Ordering::SeqCst) == 2);
        }),
        &[],
        &probe,
    );
    probe.help(&queue).result.expect("success");
}

/// The greatest number of threads inside a kernel at a time.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
    threads: Mutex<HashSet<ThreadId>>,
}

unsafe fn crowd_entry(arguments: *const u8, _: &LaunchRange, chunk: &HostChunk) {
    // SAFETY: launched with such a reference.
    let crowd = unsafe { *arguments.cast::<&Crowd>() };
    let now = crowd.now.fetch_add(1, Ordering::SeqCst) + 1;
    crowd.most.fetch_max(now, Ordering::SeqCst);
    crowd.threads.lock().insert(std::thread::current().id());
    std::thread::sleep(std::time::Duration::from_micros(20 * (chunk.end - chunk.begin).min(20) as u64));
    crowd.now.fetch_sub(1, Ordering::SeqCst);
}

#[test]
fn a_sub_device_uses_no_more_threads_than_it_has() {
    let device = device(4);
    let parts = device.partition(&Partition::ByCounts(vec![1, 2])).expect("two sub-devices");
    for (part, most) in parts.iter().zip([1, 2]) {
        let queue = queue_of(part);
        for helping in [false, true] {
            let crowd = Crowd::default();
            let probe = Probe::new();
            issue(&queue, kernel(&&crowd, crowd_entry, range(scaled(2000))), &[], &probe);
            if helping { probe.help(&queue) } else { probe.wait() }.result.expect("success");
            assert!(crowd.most.load(Ordering::SeqCst) <= most);
        }
    }
}

#[test]
fn several_shared_kernels_are_in_flight_at_once() {
    let queue = queue(3);
    let counts: Vec<Vec<AtomicU8>> = (0..20).map(|_| (0..scaled(20_000)).map(|_| AtomicU8::new(0)).collect()).collect();
    let probes: Vec<_> = counts
        .iter()
        .map(|counts| {
            let probe = Probe::new();
            issue(&queue, kernel(&&counts[..], count_entry, range(counts.len())), &[], &probe);
            probe
        })
        .collect();
    probes.iter().rev().for_each(|probe| probe.help(&queue).result.expect("success"));
    assert!(counts.iter().flatten().all(|count| count.load(Ordering::Relaxed) == 1));
}

#[test]
fn chunks_of_launches_with_short_rows_are_whole_rows() {
    unsafe fn entry(_: *const u8, launch: &LaunchRange, chunk: &HostChunk) {
        assert_eq!(chunk.begin % launch.extent[2], 0);
        assert_eq!(chunk.end % launch.extent[2], 0);
    }
    let queue = queue(4);
    let launch = LaunchRange { dimensions: 2, extent: [1, scaled(3000), 77], offset: [0; 3] };
    for _ in 0..10 {
        run(&queue, kernel(&(), entry, launch)).result.expect("whole rows");
    }
}

#[test]
fn a_helper_that_sleeps_does_not_keep_the_reserve_out() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    let queue = queue(2);
    let both = || {
        for_each(2, |_| {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            eventually(|| INSIDE.load(Ordering::SeqCst).is_multiple_of(2));
        })
    };
    let mut n_asked = 0;
    queue.help(&mut |has_helped| {
        assert!(!has_helped);
        n_asked += 1;
        if n_asked == 2 {
            // The thread is a helper in name only now.
            for _ in 0..20 {
                run(&queue, both()).result.expect("success");
            }
        }
        n_asked < 2
    });
}
