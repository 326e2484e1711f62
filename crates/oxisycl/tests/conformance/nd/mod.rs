//! Kernels over nd-ranges (F4, I14, O2, O4, O5, O6, P1 to P7).

pub(crate) mod algorithms;
pub(crate) mod barriers;
pub(crate) mod copies;
pub(crate) mod divergence;
pub(crate) mod groups;
pub(crate) mod joint;
pub(crate) mod ranges;
pub(crate) mod sub_group_joint;
pub(crate) mod sub_groups;
pub(crate) mod vectors;
