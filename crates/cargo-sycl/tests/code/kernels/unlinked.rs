//! Kernels whose native code needs what the final link does not find, and one whose needs nothing.

use oxisycl::observe;
use oxisycl::prelude::*;

mod local {
    // A symbol that only its own object knows.
    core::arch::global_asm!("local_half:", "mov eax, edi", "shr eax, 1", "ret");

    unsafe extern "C" {
        fn local_half(x: u32) -> u32;
    }

    #[inline(never)]
    pub fn half(x: u32) -> u32 {
        unsafe { local_half(x) }
    }
}

unsafe extern "C" {
    /// No library has it.
    fn nowhere(x: u32) -> u32;
}

/// Dropped by the linker, since nothing calls it.
#[unsafe(no_mangle)]
pub extern "C" fn unlinked_never(queue: &Queue) {
    never(queue).unwrap();
}

fn never(queue: &Queue) -> oxisycl::Result<Event> {
    queue.parallel_for(1, |item: Item<1>| {
        oxisycl::println!("{}", unsafe { nowhere(item.index() as u32) });
    })
}

fn halved(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for(3, move |item| numbers.update(item, local::half))
    })
}

fn doubled(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for(3, move |item| numbers.update(item, |x| 2 * x))
    })
}

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    let numbers = Buffer::from_vec(vec![0u32, 2, 4])?;
    halved(&queue, &numbers)?;
    let halves = numbers.to_vec()?;
    doubled(&queue, &numbers)?;
    println!("{halves:?} {:?}", numbers.to_vec()?);
    eprintln!("native launches: {}", observe::counters().native_kernels);
    Ok(())
}
