//! The dependency graph: nodes for commands, how they wait for each other, and how threads wait for them.
//!
//! A [`Node`] stands for one command from its submission until nothing can depend on it any more. A command whose
//! dependencies are all known to its backend is handed over at once, with a list of backend events. One that
//! depends on a host task, a host accessor, or a command of another context is delayed until those are resolved. So is one that its device cannot do
//! behind others (`way`), and one for which its backend has no room yet (`places`). A launch is delayed while its code
//! is being loaded (`load`), and so is one that comes while a driver must not be disturbed (`gate`).
//!
//! The node is the only state machine of a command. Backends report commands one by one, and `complete` decides in
//! which order nodes end and what failures mean for others.
//!
//! Invariants: a node completes exactly once; completing never recurses, however long the chain; no lock is held while user
//! code runs. Does not know buffers, pages or transfers: `schedule` decides what depends on what.

mod blocking;
mod complete;
mod deferred_drops;
mod epoch;
mod errors;
mod gate;
mod host_executor;
mod host_task;
mod load;
mod node;
mod panic_place;
mod places;
mod queue_shared;
mod start;
mod title;
mod wait;
mod way;

pub(crate) use blocking::set_in_kernel;
pub use blocking::{forbid_blocking, without_blocking};
pub use deferred_drops::DeferredDrops;
pub use epoch::{Epoch, EpochSignal};
pub use errors::{AsyncErrors, AsyncHandler, report_later, report_unseen_errors};
pub use gate::{Gate, Loading, gate_of};
pub use host_task::{HostWork, current_host_task};
pub use load::{FitToCode, Load, Unloaded};
pub use node::{Dependency, HOST_TASK_NAME, HeldBuffer, KeptAlive, Loan, Node, NodeKind};
pub use queue_shared::QueueShared;
pub use start::{Work, start, start_command, start_new_command};
pub use title::{Names, Title};
pub use wait::{forbid_endless_wait, wait_for_epoch, wait_for_grant, wait_for_node};
