//! Buffers: making them, their end, their memory, and other views of them (H1 to H10, H15).

pub(crate) mod create;
pub(crate) mod end;
pub(crate) mod memory;
pub(crate) mod reinterpret;
pub(crate) mod sub_buffer;
