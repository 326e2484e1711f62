//! What comparisons of integers compare by: the numbers of `LLVMIntPredicate`.

pub(crate) const EQUAL: i32 = 32;
pub(crate) const UNEQUAL: i32 = 33;
pub(crate) const UNSIGNED_GREATER: i32 = 34;
pub(crate) const UNSIGNED_NOT_LESS: i32 = 35;
pub(crate) const UNSIGNED_LESS: i32 = 36;
pub(crate) const UNSIGNED_NOT_GREATER: i32 = 37;
pub(crate) const SIGNED_LESS: i32 = 40;
