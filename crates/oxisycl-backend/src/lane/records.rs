//! The panic records of a device's launches: memory that kernels write and the host reads.
//!
//! Invariants: a record belongs to one launch at a time; a record in the pool has the state `FREE` on the host's side. What a record holds is
//! never trusted: it is copied out as plain numbers, and its readers check them.

use parking_lot::Mutex;

/// How many records are taken from the pool at once.
const AT_ONCE: usize = 64;
/// The most records that are made at once: 2 MiB of them. For drivers that pin memory, several smaller allocations cost more.
const MOST_AT_ONCE: usize = 4096;

/// Records of the type `R` in memory that `M` frees.
#[derive(Debug)]
pub struct RecordPool<R, M>(Mutex<State<R, M>>);

#[derive(Debug)]
struct State<R, M> {
    free: Vec<R>,
    /// The memory of the records.
    chunks: Vec<M>,
    n_records: usize,
}

impl<R, M> Default for RecordPool<R, M> {
    fn default() -> Self {
        Self(Mutex::new(State { free: Vec::new(), chunks: Vec::new(), n_records: 0 }))
    }
}

impl<R: Copy, M> RecordPool<R, M> {
    /// Adds up to 64 free records to `records`. If the pool has none, `make` makes `first`, or as many as the pool has already if that is
    /// more, up to 4096.
    ///
    /// # Errors
    /// The errors of `make`, which is called without locks.
    pub fn take<E>(
        &self,
        records: &mut Vec<R>,
        first: usize,
        make: impl FnOnce(usize) -> Result<(Vec<R>, M), E>,
    ) -> Result<(), E> {
        let n_records = {
            let mut state = self.0.lock();
            if !state.free.is_empty() {
                let first = state.free.len().saturating_sub(AT_ONCE);
                records.extend(state.free.drain(first..));
                return Ok(());
            }
            state.n_records
        };
        let (mut made, memory) = make(n_records.max(first).min(MOST_AT_ONCE))?;
        let mut state = self.0.lock();
        state.n_records += made.len();
        state.chunks.push(memory);
        let first = made.len().saturating_sub(AT_ONCE);
        records.extend(made.drain(first..));
        state.free.append(&mut made);
        Ok(())
    }

    /// Returns records to the pool. Their reports were taken, or their launches were refused.
    pub fn give_back(&self, records: &[R]) {
        if !records.is_empty() {
            self.0.lock().free.extend_from_slice(records);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: usize = 4 * AT_ONCE;

    type Made = Result<(Vec<usize>, ()), &'static str>;

    /// For a pool that has free records.
    fn none(_: usize) -> Made {
        Err("there are free records")
    }

    #[test]
    fn records_are_made_when_there_are_none_and_used_again() {
        let pool: RecordPool<usize, ()> = RecordPool::default();
        let mut taken = Vec::new();
        assert_eq!(pool.take(&mut taken, FIRST, |n| -> Made { Ok(((0..n).collect(), ())) }), Ok(()));
        assert_eq!(taken.len(), AT_ONCE);
        let mut all = taken.clone();
        for _ in 1..FIRST / AT_ONCE {
            assert_eq!(pool.take(&mut all, FIRST, none), Ok(()));
        }
        all.sort_unstable();
        assert_eq!(all, (0..FIRST).collect::<Vec<_>>(), "each record is given out once");
        assert_eq!(pool.take(&mut all, FIRST, none), none(0).map(|_| ()), "all are taken");
        pool.give_back(&taken);
        let mut again = Vec::new();
        assert_eq!(pool.take(&mut again, FIRST, none), Ok(()));
        assert_eq!(again, taken);
    }

    #[test]
    fn a_pool_grows_by_as_many_records_as_it_has_and_by_a_bounded_number() {
        let pool: RecordPool<usize, ()> = RecordPool::default();
        let mut made = Vec::new();
        let mut all = Vec::new();
        while made.len() < 7 {
            let make = |n| -> Made {
                made.push(n);
                Ok(((0..n).collect(), ()))
            };
            assert_eq!(pool.take(&mut all, FIRST, make), Ok(()));
        }
        assert_eq!(made, [256, 256, 512, 1024, 2048, 4096, 4096]);
    }

    #[test]
    fn a_pool_that_cannot_grow_says_so_and_tries_again() {
        let pool: RecordPool<u8, ()> = RecordPool::default();
        let mut records = Vec::new();
        assert_eq!(pool.take(&mut records, 1, |_| Err("no memory")), Err("no memory"));
        assert_eq!(pool.take(&mut records, 1, |_| Ok::<_, &str>((vec![7], ()))), Ok(()));
        assert_eq!(records, [7]);
    }
}
