//! What comparisons of integers compare by: the numbers of `LLVMIntPredicate`.

pub(crate) const EQUAL: i32 = 32;
pub(crate) const UNEQUAL: i32 = 33;
pub(crate) const UNSIGNED_GREATER: i32 = 34;
pub(crate) const UNSIGNED_NOT_LESS: i32 = 35;
pub(crate) const UNSIGNED_LESS: i32 = 36;
pub(crate) const UNSIGNED_NOT_GREATER: i32 = 37;
pub(crate) const SIGNED_GREATER: i32 = 38;
pub(crate) const SIGNED_NOT_LESS: i32 = 39;
pub(crate) const SIGNED_LESS: i32 = 40;
pub(crate) const SIGNED_NOT_GREATER: i32 = 41;

/// What holds where the comparison does not.
pub(crate) fn negated(predicate: i32) -> i32 {
    match predicate {
        EQUAL => UNEQUAL,
        UNEQUAL => EQUAL,
        UNSIGNED_GREATER => UNSIGNED_NOT_GREATER,
        UNSIGNED_NOT_GREATER => UNSIGNED_GREATER,
        UNSIGNED_LESS => UNSIGNED_NOT_LESS,
        UNSIGNED_NOT_LESS => UNSIGNED_LESS,
        SIGNED_GREATER => SIGNED_NOT_GREATER,
        SIGNED_NOT_GREATER => SIGNED_GREATER,
        SIGNED_LESS => SIGNED_NOT_LESS,
        _ => SIGNED_LESS,
    }
}

/// The comparison of the second number with the first one.
pub(crate) fn swapped(predicate: i32) -> i32 {
    match predicate {
        UNSIGNED_GREATER => UNSIGNED_LESS,
        UNSIGNED_LESS => UNSIGNED_GREATER,
        UNSIGNED_NOT_LESS => UNSIGNED_NOT_GREATER,
        UNSIGNED_NOT_GREATER => UNSIGNED_NOT_LESS,
        SIGNED_GREATER => SIGNED_LESS,
        SIGNED_LESS => SIGNED_GREATER,
        SIGNED_NOT_LESS => SIGNED_NOT_GREATER,
        SIGNED_NOT_GREATER => SIGNED_NOT_LESS,
        equality => equality,
    }
}

/// Whether the first number is the smaller one, or equal.
pub(crate) fn is_less(predicate: i32) -> bool {
    matches!(predicate, UNSIGNED_LESS | UNSIGNED_NOT_GREATER | SIGNED_LESS | SIGNED_NOT_GREATER)
}

pub(crate) fn is_signed(predicate: i32) -> bool {
    matches!(predicate, SIGNED_GREATER..=SIGNED_NOT_GREATER)
}
