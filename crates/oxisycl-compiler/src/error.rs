use std::fmt;
use std::path::PathBuf;

use crate::kernel::{HostCapture, path_text};

/// The reason why no device code could be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum CompileError {
    /// The Rust toolchain cannot serve as a device compiler. The text says what to do.
    Toolchain(String),
    /// LLVM refused its input, or cannot be used.
    Llvm(String),
    /// A file cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The target has no code generator.
    Target(String),
    /// The kernels' compilations cannot be run.
    Isolation(String),
    /// The program's description of a kernel does not fit this compiler.
    Kernel(String),
    /// Kernels capture addresses of the host.
    HostCaptures(Vec<HostCapture>),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Toolchain(text) => write!(f, "toolchain: {text}"),
            Self::Llvm(text) => write!(f, "LLVM: {text}"),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Target(text) => write!(f, "target: {text}"),
            Self::Isolation(text) => write!(f, "processes: {text}"),
            Self::Kernel(text) => write!(f, "kernel: {text}"),
            Self::HostCaptures(captures) => {
                let texts = captures.iter().map(|HostCapture { kernel, path, what, type_name, .. }| {
                    format!("kernel {kernel} captures `{}`, {what}, `{type_name}`", path_text(path))
                });
                f.write_str(&texts.collect::<Vec<_>>().join("; "))
            }
        }
    }
}

impl std::error::Error for CompileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } => Some(error),
            _ => None,
        }
    }
}
