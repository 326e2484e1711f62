//! References that are taken in bulk.
//!
//! A command keeps its queue and its epoch alive. The thread that ends it releases them. If the submitting thread took the references one
//! by one, both threads would change one counter for each command. Each change would then wait for the other processor's cache.

use std::sync::Arc;

/// The most references that are taken at once.
const MOST: usize = 64;

/// References to one value, taken before they are needed.
pub(super) struct Stock<T> {
    spare: Vec<Arc<T>>,
    /// How many were taken at once.
    n_taken: usize,
}

impl<T> Default for Stock<T> {
    fn default() -> Self {
        Self { spare: Vec::new(), n_taken: 0 }
    }
}

impl<T> Stock<T> {
    /// A reference to `value`. All calls since the last [`clear`](Self::clear) give the same one.
    #[inline]
    pub(super) fn take(&mut self, value: &Arc<T>) -> Arc<T> {
        let reference = self.spare.pop().unwrap_or_else(|| self.refill(value));
        debug_assert!(Arc::ptr_eq(&reference, value), "a stock is cleared before its value changes");
        reference
    }

    /// More each time, since many commands follow many.
    fn refill(&mut self, value: &Arc<T>) -> Arc<T> {
        self.n_taken = (2 * self.n_taken).clamp(1, MOST);
        self.spare.extend(std::iter::repeat_n(value, self.n_taken - 1).cloned());
        value.clone()
    }

    /// Releases what was not needed.
    pub(super) fn clear(&mut self) {
        self.n_taken /= 2;
        self.spare.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_in_bulk_is_given_out_once_and_let_go_of_by_clear() {
        let (value, mut stock) = (Arc::new(()), Stock::default());
        let taken: Vec<_> = (0..200).map(|_| stock.take(&value)).collect();
        assert!(taken.iter().all(|reference| Arc::ptr_eq(reference, &value)));
        let n_spare = Arc::strong_count(&value) - 1 - taken.len();
        assert!((1..MOST).contains(&n_spare), "{n_spare} more than were asked for");
        stock.clear();
        assert_eq!(Arc::strong_count(&value), 1 + taken.len());
    }

    #[test]
    fn who_clears_after_each_one_takes_no_more_than_one() {
        let (value, mut stock) = (Arc::new(()), Stock::default());
        for _ in 0..10 {
            let _reference = stock.take(&value);
            assert_eq!(Arc::strong_count(&value), 2);
            stock.clear();
        }
    }

    #[test]
    fn after_clear_another_value_is_given_out() {
        let (first, second, mut stock) = (Arc::new(1), Arc::new(2), Stock::default());
        for _ in 0..5 {
            assert_eq!(*stock.take(&first), 1);
        }
        stock.clear();
        assert_eq!((*stock.take(&second), Arc::strong_count(&first)), (2, 1));
    }
}
