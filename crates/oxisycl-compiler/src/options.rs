//! What a build decides about the compilation of its kernels.

use std::fmt;
use std::path::PathBuf;

/// How strictly floating-point code is compiled, the strictest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum FloatPolicy {
    /// Every operation is rounded on its own.
    Strict,
    /// A product and a sum may become one operation that rounds once.
    #[default]
    Contract,
    /// Also what assumes that the order of operations and the sign of zeros do not matter; and the target's imprecise functions.
    /// Infinities and NaNs stay values.
    Fast,
}

impl fmt::Display for FloatPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "strict",
            Self::Contract => "contract",
            Self::Fast => "fast",
        })
    }
}

/// How a program is compiled.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Floating-point policy.
    pub float: FloatPolicy,
    /// A folder for LLVM assembly after each pass that changes something, in `TARGET/SYMBOL` for each kernel, and for how long code generation took. Each module is verified then.
    pub dump: Option<PathBuf>,
    /// Names of [`REPLACED`](crate::REPLACED) that a crate of the program has which is not the published one. What seems to be of such a
    /// crate is compiled as it is.
    pub borrowed: Vec<String>,
    /// For tests of what happens then: a kernel in whose name this is ends the process as LLVM does where it cannot go on.
    pub fault: Option<String>,
}
