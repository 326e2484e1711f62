//! Memory that the runtime manages: buffers with one persistent allocation per physical memory, and unified shared memory.
//!
//! Invariants: an allocation of a buffer always has the buffer's full size. It is neither moved nor freed before the
//! buffer ends, unless the user asks for that. Memory is freed after the last command that uses it.
//! Decides neither when data moves nor what depends on what: that is `schedule`.

mod buffer;
mod page_state;
mod registry;
mod usm;

pub use buffer::{Allocation, BufferCore, BufferState, Elements, OpenHold};
pub use page_state::PageState;
pub use registry::{PointerInfo, pointer_info, write_buffer_name};
pub(crate) use registry::{register, unregister};
pub use usm::UsmAllocation;
