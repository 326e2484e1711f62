//! The table of what blocks (semantics, section 8): a test for each row, with the row's number in its name.
//!
//! Calls that never block are made while a [`Hold`](hold::Hold) keeps a command from ending until the calling thread releases it. Had such
//! a call waited, it would hang, and the harness ends a test that hangs. What blocks is called while another thread is about to let the
//! command go: had the call not waited, the command would still be pending.

pub(crate) mod buffers;
pub(crate) mod commands;
pub(crate) mod ends;
pub(crate) mod hold;
pub(crate) mod memory;
