//! The memory of tasks, used again and again.

use std::mem::MaybeUninit;
use std::sync::Arc;

use oxisycl_backend::pool::{Near, Pool};

use crate::task::CudaTask;

thread_local! {
    static NEAR: Near<Arc<MaybeUninit<CudaTask>>> = const { Near::new() };
}

/// Tasks are made by threads that submit, and end on another thread.
pub(crate) static TASKS: Pool<Arc<MaybeUninit<CudaTask>>> = Pool::new(&NEAR);
