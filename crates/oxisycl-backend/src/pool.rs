//! Memory for values that one thread makes and another one ends, used again and again.
//!
//! Each command is a few such values. The submitting thread makes them, and the thread that reports the command drops them. An allocator serves
//! that badly: both threads want the same lock, once for each value. Here each thread keeps some memory for itself, and what it has too
//! much or too little of travels in batches. Invariants: memory in a pool holds no value. No thread waits for another one. So a forked child, in
//! which a lock may be held for ever, only allocates more.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::thread::LocalKey;

use parking_lot::Mutex;

/// The memory that one thread keeps for itself. Only pools can access it: they write to memory that has no other reference.
#[derive(Debug)]
pub struct Near<M>(RefCell<Vec<M>>);

impl<M> Near<M> {
    /// No memory.
    pub const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }
}

impl<M> Default for Near<M> {
    fn default() -> Self {
        Self::new()
    }
}

/// How many pieces of memory move between a thread and the pool at once. A thread keeps at most twice as many.
const BATCH: usize = 64;
/// How many pieces of memory are kept for all threads together.
const MOST: usize = 2048;

/// Memory for values, used again and again. `M` owns memory without a value: `Arc<MaybeUninit<T>>` or `Box<MaybeUninit<T>>`.
#[derive(Debug)]
pub struct Pool<M: 'static> {
    near: &'static LocalKey<Near<M>>,
    shared: Mutex<Vec<M>>,
}

impl<M> Pool<M> {
    /// An empty pool. `near` holds the part of each thread, and no other pool uses it.
    pub const fn new(near: &'static LocalKey<Near<M>>) -> Self {
        Self { near, shared: Mutex::new(Vec::new()) }
    }

    /// Takes memory from the pool, if it has any. `fetch` prefetches the memory that will be taken next into this processor's cache, since
    /// another thread wrote it last.
    #[inline]
    fn take(&self, fetch: impl Fn(&M)) -> Option<M> {
        // An error means that the thread is ending.
        let taken = self.near.try_with(|near| {
            let mut near = near.0.borrow_mut();
            let taken = near.pop().or_else(|| self.take_batch(&mut near));
            if let Some(next) = near.last() {
                fetch(next);
            }
            taken
        });
        taken.ok().flatten()
    }

    #[cold]
    fn take_batch(&self, near: &mut Vec<M>) -> Option<M> {
        let mut shared = self.shared.try_lock()?;
        let first = shared.len().saturating_sub(BATCH);
        near.extend(shared.drain(first..));
        near.pop()
    }

    /// Returns memory to the pool, or frees it if the pool is full.
    #[inline]
    fn put(&self, memory: M) {
        // If the thread is ending, the memory is dropped with the closure.
        let _ = self.near.try_with(move |near| {
            let mut near = near.0.borrow_mut();
            near.push(memory);
            if near.len() >= 2 * BATCH {
                self.put_batch(&mut near);
            }
        });
    }

    #[cold]
    fn put_batch(&self, near: &mut Vec<M>) {
        // The oldest: the newest are in the processor's cache.
        let surplus: Vec<M> = near.drain(..BATCH).collect();
        if let Some(mut shared) = self.shared.try_lock() {
            let room = MOST.saturating_sub(shared.len());
            shared.extend(surplus.into_iter().take(room));
        }
    }
}

impl<T> Pool<Arc<MaybeUninit<T>>> {
    /// Makes a value in memory of the pool, or in new memory.
    #[inline(always)]
    pub fn make(&self, value: impl FnOnce() -> T) -> Arc<T> {
        let spare = self.take(|next| fetch_to_write(Arc::as_ptr(next))).unwrap_or_else(Arc::new_uninit);
        // SAFETY: there is no other reference to the memory: `end` has made sure of that, or it is new. It is written here, and so has a value.
        unsafe {
            Arc::as_ptr(&spare).cast_mut().cast::<T>().write(value());
            spare.assume_init()
        }
    }

    /// Drops a reference to a value. If it was the last one, the pool keeps the value's memory.
    #[inline]
    pub fn end(&self, mut value: Arc<T>) {
        if Arc::get_mut(&mut value).is_none() {
            return;
        }
        let value = Arc::into_raw(value);
        // SAFETY: there is no other reference to the value (just asked), so it may be dropped in place. Afterwards its memory is used as
        // `MaybeUninit` of the same type, which has the same layout and needs no value. If dropping it panics, the memory is lost and not used
        // again.
        let memory = unsafe {
            ptr::drop_in_place(value.cast_mut());
            Arc::from_raw(value.cast::<MaybeUninit<T>>())
        };
        self.put(memory);
    }
}

impl<T> Pool<Box<MaybeUninit<T>>> {
    /// Makes a value in memory of the pool, or in new memory.
    #[inline(always)]
    pub fn make(&self, value: impl FnOnce() -> T) -> Box<T> {
        let mut spare = self.memory();
        spare.write(value());
        // SAFETY: written just now.
        unsafe { spare.assume_init() }
    }

    /// Memory of the pool, or new memory, for a value to be made in it.
    #[inline]
    pub fn memory(&self) -> Box<MaybeUninit<T>> {
        self.take(|next| fetch_to_write(&raw const **next)).unwrap_or_else(Box::new_uninit)
    }

    /// Drops a value. The pool keeps its memory.
    #[inline]
    pub fn end(&self, value: Box<T>) {
        let value = Box::into_raw(value);
        // SAFETY: the box owned the value, which is dropped once. Afterwards the memory is used as `MaybeUninit` of the same type, which
        // has the same layout and needs no value. If dropping it panics, the memory is lost and not used again.
        let memory = unsafe {
            ptr::drop_in_place(value);
            Box::from_raw(value.cast::<MaybeUninit<T>>())
        };
        self.put(memory);
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches the memory for a write. Only a hint.
#[inline]
fn fetch_to_write<T>(memory: *const T) {
    for offset in (0..size_of::<T>()).step_by(LINE) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: the instruction reads and writes nothing that the program can see, whatever the address. Processors that do not know it take
        // it for none.
        unsafe {
            let line = memory.cast::<u8>().wrapping_add(offset);
            std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = (memory, offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool of its own for each test.
    macro_rules! pool {
        ($memory:ty) => {{
            thread_local! {
                static NEAR: Near<$memory> = const { Near::new() };
            }
            static POOL: Pool<$memory> = Pool::new(&NEAR);
            &POOL
        }};
    }

    #[test]
    fn memory_of_a_value_that_has_ended_is_used_again() {
        let pool = pool!(Arc<MaybeUninit<String>>);
        let first = pool.make(|| "first".to_owned());
        let address = Arc::as_ptr(&first);
        pool.end(first);
        let second = pool.make(|| "second".to_owned());
        assert_eq!((Arc::as_ptr(&second), second.as_str()), (address, "second"));
    }

    #[test]
    fn a_value_that_somebody_else_has_stays() {
        let pool = pool!(Arc<MaybeUninit<String>>);
        let mine = pool.make(|| "shared".to_owned());
        pool.end(mine.clone());
        let weak = Arc::downgrade(&mine);
        pool.end(mine);
        assert!(weak.upgrade().is_none(), "the last reference drops the value");
        assert!(pool.take(|_| ()).is_none(), "memory with a weak reference is not given out");
    }

    #[test]
    fn each_value_is_dropped_once() {
        let pool = pool!(Box<MaybeUninit<Arc<()>>>);
        let counted = Arc::new(());
        let values: Vec<_> = (0..10).map(|_| pool.make(|| counted.clone())).collect();
        assert_eq!(Arc::strong_count(&counted), 11);
        values.into_iter().for_each(|value| pool.end(value));
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn memory_travels_from_the_thread_that_ends_values_to_the_one_that_makes_them() {
        let pool = pool!(Box<MaybeUninit<u64>>);
        let made: Vec<_> = (0..2 * BATCH as u64).map(|n| pool.make(|| n)).collect();
        let addresses: Vec<usize> = made.iter().map(|value| (&raw const **value).addr()).collect();
        std::thread::spawn(move || made.into_iter().for_each(|value| pool.end(value))).join().unwrap();
        let again: Vec<_> = (0..BATCH as u64).map(|n| pool.make(|| n)).collect();
        assert!(again.iter().all(|value| addresses.contains(&(&raw const **value).addr())));
    }

    #[test]
    fn a_pool_keeps_no_more_than_its_limit() {
        let pool = pool!(Box<MaybeUninit<u8>>);
        let many: Vec<_> = (0..2 * MOST).map(|_| pool.make(|| 1)).collect();
        many.into_iter().for_each(|value| pool.end(value));
        assert_eq!(pool.shared.lock().len(), MOST);
    }

    #[test]
    fn nobody_waits_for_a_pool_that_is_locked() {
        let pool = pool!(Box<MaybeUninit<u32>>);
        let locked = pool.shared.lock();
        let values: Vec<_> = (0..4 * BATCH as u32).map(|n| pool.make(|| n)).collect();
        values.into_iter().for_each(|value| pool.end(value));
        drop(locked);
        assert!(pool.shared.lock().is_empty());
    }
}
