//! Launches a kernel function of a library, which the library has launched for one type of numbers and one owner of the factors.

use std::sync::Arc;

use oxisycl::prelude::*;

fn main() -> oxisycl::Result {
    let queue = Queue::builder().build()?;
    let of_library = functions::of_library(&queue)?;
    let (reals, naturals) = (Buffer::from_vec(vec![1.0f32; 2])?, Buffer::from_vec(vec![3u64; 2])?);
    queue.launch_call(2, functions::scaled(vec![5.0f32, 6.0], reals.update()))?;
    queue.launch_call(2, functions::scaled(Arc::<[f32]>::from([5.0f32, 6.0]), reals.update()))?;
    queue.launch_call(2, functions::scaled(vec![7u64, 8], naturals.update()))?;
    queue.launch_call(2, functions::scaled(Arc::<[u64]>::from([7u64, 8]), naturals.update()))?;
    println!("{of_library:?} {:?} {:?}", reals.to_vec()?, naturals.to_vec()?);
    Ok(())
}
