//! Kernels whose work-items must not share a vector, each for a reason of its own, and kernels over blocks, whose work-items may. Prints what is
//! there after each of them. A program that aborts in a panic does so if it has an argument.

use std::cell::Cell;
use std::hint::spin_loop;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};
use std::time::Duration;
use std::{env, process, thread};

use oxisycl::atomic::{Acquire, Relaxed, Release};
use oxisycl::group::{Atomically, Fixed1, Local};
use oxisycl::observe;
use oxisycl::prelude::*;

/// Several vectors, and a rest.
const N: usize = 203;
/// For work-items that are slow.
const FEW: usize = 19;
/// The work-item that panics, in the middle of a vector.
const BAD: usize = 13;
const ITEMS: usize = 32;
const BINS: usize = 5;

/// Far more than all of it takes.
const LIMIT: Duration = Duration::from_secs(100);

fn main() -> oxisycl::Result {
    // A kernel that hangs is a failure, not a wait.
    thread::spawn(|| {
        thread::sleep(LIMIT);
        eprintln!("it did not end in {LIMIT:?}");
        process::abort();
    });
    let queue = Queue::default()?;
    println!("locked {}", locked(&queue)?);
    println!("initialised {}", initialised(&queue)?);
    println!("spun {}", spun(&queue)?);
    println!("exchanged {}", exchanged(&queue)?);
    println!("ticketed {}", ticketed(&queue)?);
    println!("binned {:?}", binned(&queue)?);
    println!("tallied {:?}", tallied(&queue)?);
    println!("chunked {:?}", chunked(&queue)?);
    println!("tiled {:?}", tiled(&queue)?);
    println!("viewed {:?}", viewed(&queue)?);
    if cfg!(panic = "unwind") {
        println!("dropped {}", dropped(&queue)?);
        println!("marked {}", marked(&queue)?);
        println!("poisoned {}", poisoned(&queue)?);
        println!("scoped {}", scoped(&queue)?);
        println!("caught {:?}", caught(&queue)?);
    }
    if cfg!(panic = "unwind") || env::args().len() > 1 {
        println!("failed {}", failing(&queue)?.wait().expect_err("it panics"));
    }
    eprintln!("native launches: {}", observe::counters().native_kernels);
    Ok(())
}

/// What a kernel captures a reference to, beside buffers.
fn shared<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Counts what was made, and what was dropped.
struct Counted(&'static [AtomicU32; 2]);

impl Counted {
    fn new(counts: &'static [AtomicU32; 2]) -> Self {
        counts[0].fetch_add(1, Ordering::Relaxed);
        Self(counts)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0[1].fetch_add(1, Ordering::Relaxed);
    }
}

/// How many were made and not dropped.
fn left(counts: &[AtomicU32; 2]) -> u32 {
    let [made, dropped] = counts.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert!(made > 0);
    made - dropped
}

/// Each work-item drops a value, also the one that panics.
fn dropped(queue: &Queue) -> oxisycl::Result<String> {
    let counts: &'static [AtomicU32; 2] = shared(Default::default());
    let numbers = Buffer::from_vec(vec![0u32; N])?;
    let launched = queue.submit(|cg| {
        let numbers = cg.access(&numbers, Write);
        cg.parallel_for(N, move |item| {
            let _own = Counted::new(counts);
            assert!(item.index() != BAD, "item {BAD} is bad");
            numbers.set(item, item.index() as u32 * 3);
        })
    })?;
    let error = launched.wait().expect_err("it panics");
    Ok(format!("{} left after {error}", left(counts)))
}

/// A place for each work-item.
struct Places([Cell<u32>; N]);

// SAFETY: each work-item accesses its own place, and the program does when they have ended.
unsafe impl Sync for Places {}

/// Marks a place until it is dropped.
struct Mark(&'static Cell<u32>);

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.set(2);
    }
}

/// As `dropped`, without atomic operations.
fn marked(queue: &Queue) -> oxisycl::Result<String> {
    let places: &'static Places = shared(Places([const { Cell::new(0) }; N]));
    let launched = queue.parallel_for(N, move |item: Item<1>| {
        let own = &places.0[item.index()];
        own.set(1);
        let _mark = Mark(own);
        assert!(item.index() != BAD, "item {BAD} is bad");
    })?;
    let error = launched.wait().expect_err("it panics");
    let left = places.0.iter().filter(|place| place.get() == 1).count();
    Ok(format!("{left} left after {error}"))
}

/// Each work-item has a lock of its own, which the one that panics gives back, too.
fn poisoned(queue: &Queue) -> oxisycl::Result<String> {
    let locks: &'static [Mutex<usize>] = (0..N).map(Mutex::new).collect::<Vec<_>>().leak();
    let launched = queue.parallel_for(N, move |item: Item<1>| {
        let mut own = locks[item.index()].lock().unwrap_or_else(PoisonError::into_inner);
        assert!(item.index() != BAD, "item {BAD} is bad");
        *own += 1;
    })?;
    let error = launched.wait().expect_err("it panics");
    let held = locks.iter().filter(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock))).count();
    let poisoned = locks.iter().filter(|lock| lock.is_poisoned()).count();
    Ok(format!("{held} held and {poisoned} poisoned after {error}"))
}

/// Each work-item has threads that borrow from its stack, and which it waits for, also if it panics.
fn scoped(queue: &Queue) -> oxisycl::Result<String> {
    let counts: &'static [AtomicU32; 2] = shared(Default::default());
    let launched = queue.parallel_for(FEW, move |item: Item<1>| {
        let mut own = [0; 2];
        thread::scope(|scope| {
            for (number, slot) in own.iter_mut().enumerate() {
                scope.spawn(move || {
                    let _counted = Counted::new(counts);
                    *slot = item_sum(number);
                });
            }
            assert!(item.index() != BAD, "item {BAD} is bad");
        });
        assert_eq!(own, [item_sum(0), item_sum(1)]);
    })?;
    let error = launched.wait().expect_err("it panics");
    Ok(format!("{} left after {error}", left(counts)))
}

fn item_sum(number: usize) -> usize {
    (0..1000 * (number + 1)).fold(number, |sum, i| sum.rotate_left(3) ^ i)
}

/// One lock for all.
fn locked(queue: &Queue) -> oxisycl::Result<usize> {
    let sum: &'static Mutex<usize> = shared(Mutex::new(0));
    queue.parallel_for(N, move |item: Item<1>| {
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        *sum += item.index();
    })?;
    queue.wait()?;
    Ok(*sum.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The first work-item computes what all others wait for.
fn initialised(queue: &Queue) -> oxisycl::Result<usize> {
    let (first, numbers) = (shared(OnceLock::<usize>::new()), Buffer::from_vec(vec![0usize; N])?);
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, Write);
        cg.parallel_for(N, move |item| {
            numbers.set(item, item.index() + *first.get_or_init(|| item_sum(3)));
        })
    })?;
    Ok(numbers.into_vec()?.into_iter().fold(0, usize::wrapping_add))
}

/// A lock of the program's own, in a buffer, with a pause of the processor.
fn spun(queue: &Queue) -> oxisycl::Result<u32> {
    let words = Buffer::from_vec(vec![0u32; 2])?;
    queue.submit(|cg| {
        let words = cg.access(&words, Atomic);
        cg.parallel_for(N, move |item| {
            let (lock, sum) = (words.atomic_ref(item, 0), words.atomic_ref(item, 1));
            while lock.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
                spin_loop();
            }
            sum.store(sum.load(Relaxed) + item.index() as u32, Relaxed);
            lock.store(0, Release);
        })
    })?;
    Ok(words.into_vec()?[1])
}

/// As `spun`, by an atomic variable of the standard library. There is neither a conditional exchange nor a pause.
fn exchanged(queue: &Queue) -> oxisycl::Result<u32> {
    let (lock, sum) = (shared(AtomicBool::new(false)), shared(AtomicU32::new(0)));
    queue.parallel_for(N, move |item: Item<1>| {
        while lock.swap(true, Ordering::Acquire) {}
        sum.store(sum.load(Ordering::Relaxed) + item.index() as u32, Ordering::Relaxed);
        lock.store(false, Ordering::Release);
    })?;
    queue.wait()?;
    Ok(sum.load(Ordering::Relaxed))
}

/// Each work-item waits for the one that came before it. Nothing is acquired.
fn ticketed(queue: &Queue) -> oxisycl::Result<u32> {
    let words = Buffer::from_vec(vec![0u32; 3])?;
    queue.submit(|cg| {
        let words = cg.access(&words, Atomic);
        cg.parallel_for(N, move |item| {
            let [next, served, sum] = [0, 1, 2].map(|word| words.atomic_ref(item, word));
            let own = next.fetch_add(1, Relaxed);
            while served.load(Relaxed) != own {}
            sum.fetch_add(own * own, Relaxed);
            served.store(own + 1, Relaxed);
        })
    })?;
    Ok(words.into_vec()?[2])
}

/// Work-items that panic go on.
fn caught(queue: &Queue) -> oxisycl::Result<Vec<usize>> {
    let numbers = Buffer::from_vec(vec![0usize; FEW])?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, Write);
        cg.parallel_for(FEW, move |item| {
            let index = item.index();
            let result = catch_unwind(move || {
                assert!(index % 5 != 3, "item {index} is caught");
                2 * index
            });
            numbers.set(item, result.unwrap_or(1000 + index));
        })
    })?;
    Ok(numbers.into_vec()?)
}

/// Atomic operations in the local memory of a group, between phases without.
fn binned(queue: &Queue) -> oxisycl::Result<Vec<u32>> {
    let numbers = Buffer::from_vec(vec![0u32; 2 * ITEMS])?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, Write);
        cg.parallel_for_work_group(2, Fixed1::<ITEMS>, Local::<u32, ITEMS>::new(), move |mut group, mut bins| {
            group.for_each(&mut bins, move |_, bin| *bin = 0);
            group.for_each(Atomically(&mut bins), move |item, bins| {
                let id = item.local_linear_id();
                bins.fetch_add(id % BINS, 1 + id as u32);
                bins.atomic_ref(BINS + id % 2).fetch_max(item.global().index() as u32, Relaxed);
            });
            group.for_each(&bins, move |item, bins| numbers.set(item.global(), bins[item.local_linear_id()]));
        })
    })?;
    Ok(numbers.into_vec()?)
}

/// A work-item of a phase panics.
fn failing(queue: &Queue) -> oxisycl::Result<Event> {
    let numbers = Buffer::from_vec(vec![0u32; 2 * ITEMS])?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, Write);
        cg.parallel_for_work_group(2, Fixed1::<ITEMS>, (), move |mut group, ()| {
            group.for_each((), move |item, ()| {
                let index = item.global().index();
                assert!(index != ITEMS + BAD, "item {index} is bad");
                numbers.set(item.global(), 7 * index as u32);
            });
        })
    })
}

/// As `binned`, between barriers.
fn tallied(queue: &Queue) -> oxisycl::Result<Vec<u32>> {
    let numbers = Buffer::from_vec(vec![0u32; 2 * ITEMS])?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, Write);
        cg.parallel_for_nd_range((2 * ITEMS, Fixed1::<ITEMS>), Local::<u32, ITEMS>::new(), move |mut item, bins| {
            let own = item.local_linear_id();
            // SAFETY: each work-item accesses its own element in front of the first barrier and behind the second one. All accesses between
            // them are atomic.
            unsafe {
                bins.set(own, 0);
                item.group().barrier();
                bins.atomically().fetch_add(own % BINS, 1 + own as u32);
                item.group().barrier();
                numbers.set(item.global(), bins.get(own));
            }
        })
    })?;
    Ok(numbers.into_vec()?)
}

/// Each work-item owns a block of elements.
fn chunked(queue: &Queue) -> oxisycl::Result<Vec<u32>> {
    let numbers = Buffer::from_elements((0..N as u32).map(|i| i * i))?;
    queue.submit(|cg| {
        let numbers = cg.access_chunks(&numbers, ReadWrite, 3);
        cg.parallel_for(numbers.n_blocks(), move |item: Item<1>| {
            let (own, mut before) = (numbers.block(item), item.index() as u32);
            for number in own.as_cells() {
                before = before.wrapping_mul(31) ^ number.get();
                number.set(before);
            }
        })
    })?;
    Ok(numbers.into_vec()?)
}

/// Blocks of two dimensions, the last of which are cut.
fn tiled(queue: &Queue) -> oxisycl::Result<Vec<u32>> {
    let table = Buffer::from_vec_nd(vec![0u32; 5 * 35], [5, 35])?;
    queue.submit(|cg| {
        let table = cg.access_chunks(&table, Write, [2, 2]);
        cg.parallel_for(table.n_blocks(), move |item: Item<2>| {
            table.block(item).fill_with(|id| (100 * item.get(0) + 10 * item.get(1) + 2 * id[0] + id[1]) as u32);
        })
    })?;
    Ok(table.into_vec()?)
}

/// Sums of slices of what all work-items read.
fn viewed(queue: &Queue) -> oxisycl::Result<Vec<u32>> {
    let numbers = Buffer::from_elements(0..N as u32)?;
    let sums = Buffer::from_vec(vec![0u32; N.div_ceil(4)])?;
    queue.submit(|cg| {
        let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Write));
        cg.parallel_for(N.div_ceil(4), move |item| sums.set(item, numbers.view(item).chunk(item, 4).iter().sum()))
    })?;
    Ok(sums.into_vec()?)
}
