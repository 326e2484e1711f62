//! Memory of the device for the arguments of a queue's launches, where they are passed by their address.
//!
//! Invariants: a block belongs to one launch at a time, from [`take`](BlockPool::take) until it is given back, which is when the launch has ended. No block
//! is made before a launch needs one. Blocks have a few sizes, so that launches of several kernels use each other's.

use parking_lot::Mutex;

/// Bytes of the smallest blocks. Those of each next size are twice as large.
const SMALLEST: usize = 2 << 10;
/// The sizes: a block of the largest holds the largest arguments at the largest alignment.
const N_SIZES: usize = 7;

/// A pool of blocks of the type `B`.
#[derive(Debug)]
pub struct BlockPool<B>([Mutex<Vec<B>>; N_SIZES]);

impl<B> Default for BlockPool<B> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl<B> BlockPool<B> {
    /// Takes a free block with space for `size` bytes. If there is none, calls `make` with the number of bytes that it must have.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn take<E>(&self, size: usize, make: impl FnOnce(usize) -> Result<B, E>) -> Result<B, E> {
        let class = class(size);
        let free = self.0[class.min(N_SIZES - 1)].lock().pop();
        free.map_or_else(|| make(SMALLEST << class), Ok)
    }

    /// Returns a block that was taken for so many bytes. Its launch has ended or was refused.
    pub fn give_back(&self, size: usize, block: B) {
        self.0[class(size).min(N_SIZES - 1)].lock().push(block);
    }
}

/// The number of the least size that has space for `size` bytes.
fn class(size: usize) -> usize {
    size.div_ceil(SMALLEST).next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn blocks_are_used_again_by_launches_of_about_their_size() {
        let pool = BlockPool::default();
        let take = |size: usize| {
            let mut made = 0;
            let block = pool.take(size, |bytes| {
                made = bytes;
                Ok::<_, Infallible>(bytes)
            });
            (block.unwrap(), made)
        };
        for (size, bytes) in [(0, 2048), (1, 2048), (2048, 2048), (2049, 4096), (5000, 8192), (64 << 10, 64 << 10)] {
            assert_eq!(take(size), (bytes, bytes), "{size}");
        }
        assert_eq!(take(128 << 10), (128 << 10, 128 << 10), "the largest arguments at the largest alignment");
        pool.give_back(5000, 8192);
        assert_eq!(take(4096), (4096, 4096), "one of another size is not taken");
        assert_eq!(take(8000), (8192, 0));
        assert_eq!(take(8000), (8192, 8192), "a block belongs to one launch");
    }
}
