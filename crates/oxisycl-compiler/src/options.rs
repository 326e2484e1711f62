//! The options of a build for the compilation of its kernels.

use std::fmt;
use std::path::PathBuf;

/// The floating-point policy, strictest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum FloatPolicy {
    /// Every operation is rounded on its own.
    Strict,
    /// A product and a sum may become one operation that rounds once.
    #[default]
    Contract,
    /// Like `Contract`, and also assumes that the order of operations and the sign of zeros do not matter. Uses the target's imprecise
    /// functions. Infinities and NaNs stay values.
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

/// How many work-items native code of hosts runs at once, in the lanes of vectors, where the compiler can do that.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lanes {
    /// The number that is fastest by the compiler's estimate, and one where lanes would gain little.
    Auto,
    /// A power of two. Below two, work-items run one after the other.
    Number(u32),
}

impl Lanes {
    /// Whether work-items run one after the other in any case.
    pub(crate) fn is_one(self) -> bool {
        matches!(self, Self::Number(..=1))
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self::Number(1)
    }
}

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Number(lanes) => write!(f, "{lanes}"),
        }
    }
}

/// The options of a program's compilation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Floating-point policy.
    pub float: FloatPolicy,
    /// A folder for LLVM assembly after each pass that changes something, and for the times of code generation. Each kernel has a folder
    /// `TARGET/SYMBOL` there. Each module is also verified.
    pub dump: Option<PathBuf>,
    /// The [`REPLACED`](crate::REPLACED) names of crates in the program that are not the published ones. Functions of such crates are
    /// compiled as they are.
    pub borrowed: Vec<String>,
    /// Whether captured addresses of the host, in kernels that the final crate describes, are [an error](crate::CompileError::HostCaptures).
    /// Otherwise such kernels are ones that no target can run.
    pub refuses_host_captures: bool,
    /// The libraries beside the standard library whose symbols native code may refer to. They are linked to the program as they are.
    pub exporting: Vec<PathBuf>,
    /// How many work-items native code of hosts runs at once.
    pub lanes: Lanes,
    /// Whether the final link takes the names of Rust's functions away, as link-time optimisation does. Native code then has copies of all
    /// that it calls. A few functions of Rust have others with names of C's in their place, which stay.
    pub loses_names: bool,
    /// Whether native code of hosts says which source line its instructions are of, for backtraces and debuggers.
    pub has_lines: bool,
}
