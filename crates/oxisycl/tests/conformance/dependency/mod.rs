//! Dependencies: order by data, by events and by queues (C3, C4, D6, E3, S-R34, S-R35, S-F9, S-F13, S-F19 to S-F23).

pub(crate) mod events;
pub(crate) mod in_flight;
pub(crate) mod order;
pub(crate) mod programs;
