//! Numbers that tell things apart. Each kind of thing has its own type, so that none is taken for another's.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Declares identities, numbered from 1 in the order in which they are asked for.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
            pub struct $name(u64);

            impl $name {
                /// One that no other thing of the process has.
                pub(crate) fn unique() -> Self {
                    static NEXT: AtomicU64 = AtomicU64::new(1);
                    Self(NEXT.fetch_add(1, Ordering::Relaxed))
                }

                /// The number, for messages and files.
                pub const fn number(self) -> u64 {
                    self.0
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.fmt(f)
                }
            }
        )*
    };
}

ids! {
    /// Identity of a queue.
    QueueId;
    /// Identity of a buffer. Buffers are locked in the order of their identities.
    BufferId;
    /// Identity of a context.
    ContextId;
    /// Identity of a set of queues whose events the backend takes from each other.
    DomainId;
}

/// Identity of a node: its position in the order of submission, over the whole process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u64);

impl NodeId {
    /// The node with that number.
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, for messages and files.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
