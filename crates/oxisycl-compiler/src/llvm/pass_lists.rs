//! Lists of LLVM's own passes that more than one part of the compiler runs, in LLVM's notation.

/// Leaves the lines of the source, and no types.
pub(crate) const DROP_TYPES: &str = "strip-nonlinetable-debuginfo";
/// Leaves the lines of the source, and no types, of what is used: for a module most of which is not.
pub(crate) const DROP_UNUSED_AND_TYPES: &str = "globaldce,strip-nonlinetable-debuginfo";
/// Removes what nothing uses.
pub(crate) const DROP_UNUSED: &str = "globaldce";
/// What LLVM does before it knows the whole program: inlining and simplification, and no transformation of loops yet.
pub(crate) const SIMPLIFY: &str = "globaldce,strip-nonlinetable-debuginfo,thinlto-pre-link<O3>";
/// Puts bodies that a pass has linked in the place of their calls, and removes them.
pub(crate) const INLINE_BODIES: &str = "always-inline,globaldce";
