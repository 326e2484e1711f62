//! Errors and failures below the runtime.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use oxisycl_types::{BUFFER_AT, ErrorCode};

use crate::UsmKind;

/// Classes of operations, for counters and injected faults.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// A kernel launch.
    Launch,
    /// A copy.
    Copy,
    /// A fill.
    Fill,
    /// An allocation.
    Allocate,
    /// Anything else.
    Other,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Launch => "launch",
            Self::Copy => "copy",
            Self::Fill => "fill",
            Self::Allocate => "allocation",
            Self::Other => "operation",
        })
    }
}

/// An error that a call of a backend returned at once.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BackendError {
    /// No memory left.
    OutOfMemory {
        /// The device.
        device: String,
        /// Bytes asked for.
        requested: usize,
        /// Bytes that were available, where known.
        available: Option<usize>,
    },
    /// The device has no allocations of that kind.
    UnsupportedUsm {
        /// The device.
        device: String,
        /// The kind.
        kind: UsmKind,
    },
    /// The operation is not available on the device.
    Unsupported {
        /// The device.
        device: String,
        /// The operation that was requested.
        what: String,
    },
    /// A handle of the driver is not what it is given as.
    Handle {
        /// The device.
        device: String,
        /// The object that the handle should be of.
        what: &'static str,
        /// The handle, and what the driver says of it.
        found: String,
        /// The handles that can be taken.
        expected: String,
    },
    /// A setting has a value that it cannot have.
    Setting {
        /// The variable.
        variable: &'static str,
        /// The variable's value.
        value: String,
        /// The values that the variable may have.
        expected: String,
    },
    /// A fault injected into a simulated device.
    InjectedFault {
        /// The device.
        device: String,
        /// The class that failed.
        operation: Operation,
        /// The ordinal of the operation within its class, from 1.
        count: u64,
    },
    /// A driver did not compile an image in time, or a process ended during the compilation.
    NotCompiled {
        /// The cause, and the advice to the user.
        reason: String,
    },
    /// The device is gone.
    DeviceLost {
        /// The device.
        device: String,
        /// The reason of the loss.
        reason: String,
    },
    /// A driver call failed.
    Driver {
        /// The call.
        call: &'static str,
        /// The driver's code.
        code: i64,
        /// The code's name in the driver.
        name: String,
    },
}

impl BackendError {
    /// Adds a text to the name of a driver's code. Other errors stay as they are.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        if let Self::Driver { name, .. } = &mut self {
            name.push_str(note);
        }
        self
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { device, requested, available: Some(available) } => {
                write!(f, "device \"{device}\": out of memory: requested {requested} bytes, {available} available")
            }
            Self::OutOfMemory { device, requested, available: None } => {
                write!(f, "device \"{device}\": out of memory: requested {requested} bytes")
            }
            Self::UnsupportedUsm { device, kind } => write!(f, "device \"{device}\" has no usm {kind} allocations"),
            Self::Unsupported { device, what } => write!(f, "device \"{device}\" does not support {what}"),
            Self::Handle { device, what, found, expected } => {
                write!(f, "device \"{device}\" cannot take the native {what} {found}: expected {expected}")
            }
            Self::Setting { variable, value, expected } => write!(f, "{variable}=\"{value}\": expected {expected}"),
            Self::InjectedFault { device, operation, count } => {
                write!(f, "device \"{device}\": injected fault in {operation} number {count}")
            }
            Self::NotCompiled { reason } => f.write_str(reason),
            Self::DeviceLost { device, reason } => write!(f, "device \"{device}\" is lost: {reason}"),
            Self::Driver { call, code, name } => write!(f, "{call} failed with {name} ({code})"),
        }
    }
}

impl Error for BackendError {}

/// Why a command failed after it was accepted. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CommandFailure(Arc<Failure>);

#[derive(Debug)]
struct Failure {
    command: String,
    device: String,
    kind: FailureKind,
    has_run: bool,
    /// The panic's message, with the buffer's name in place of its address. Set before the commands that depend on this one are notified,
    /// and shared by all copies.
    named: OnceLock<String>,
    /// Whether the program has seen the failure. Shared by all copies.
    is_seen: AtomicBool,
}

/// The kind of a command's failure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FailureKind {
    /// A kernel panicked.
    Panic {
        /// The panic's message.
        message: String,
        /// File, line and column, where known.
        location: Option<String>,
        /// The id of the work-item and its number of dimensions (0 for a single task), where known.
        item: Option<(u8, [usize; 3])>,
    },
    /// A command it depends on failed; it did not run, or it ran for nothing (see [`CommandFailure::spoiled`]).
    Dependency(CommandFailure),
    /// The device failed.
    Device(BackendError),
    /// What a kernel's launch is refused for that was found out after it was submitted, when its code was loaded.
    Refused {
        /// SYCL's category of the error.
        code: ErrorCode,
        /// The error's text, which names kernel and device.
        message: String,
    },
}

impl CommandFailure {
    /// A failure of `command` on `device`.
    pub fn new(command: impl fmt::Display, device: impl Into<String>, kind: FailureKind) -> Self {
        let has_run = !matches!(kind, FailureKind::Dependency(_) | FailureKind::Refused { .. });
        Self(Arc::new(Failure {
            command: command.to_string(),
            device: device.into(),
            kind,
            has_run,
            named: OnceLock::new(),
            is_seen: AtomicBool::new(false),
        }))
    }

    /// `command` did not run because `cause` happened. Keeps only the root cause, so that long chains stay short.
    pub fn dependency(command: impl fmt::Display, device: impl Into<String>, cause: &CommandFailure) -> Self {
        Self::new(command, device, FailureKind::Dependency(cause.root().clone()))
    }

    /// The failure of `command` if the device ran it before `cause` became known. `command` ran on what the failed command had left behind,
    /// so what it wrote is lost.
    pub fn spoiled(command: impl fmt::Display, device: impl Into<String>, cause: &CommandFailure) -> Self {
        let kind = FailureKind::Dependency(cause.root().clone());
        Self(Arc::new(Failure {
            command: command.to_string(),
            device: device.into(),
            kind,
            has_run: true,
            named: OnceLock::new(),
            is_seen: AtomicBool::new(false),
        }))
    }

    /// Replaces the buffer address at the end of a panic's message by the name that `name` returns for it, if any.
    pub fn name_buffer(&self, name: impl FnOnce(usize) -> Option<String>) {
        let FailureKind::Panic { message, .. } = &self.0.kind else { return };
        let Some((before, digits)) = message.rsplit_once(BUFFER_AT) else { return };
        let Ok(address) = usize::from_str_radix(digits, 16) else { return };
        if let Some(name) = name(address) {
            _ = self.0.named.set(format!("{before}, in {name}"));
        }
    }

    /// Marks the [root](Self::root) failure as seen by the program.
    pub fn mark_seen(&self) {
        self.root().0.is_seen.store(true, Ordering::Release);
    }

    /// Whether the program has seen the [root](Self::root) failure, through any command.
    pub fn is_seen(&self) -> bool {
        self.root().0.is_seen.load(Ordering::Acquire)
    }

    /// Whether the command may have run, so that what it writes is lost. If it has not run, its targets are unchanged.
    pub fn has_run(&self) -> bool {
        self.0.has_run
    }

    /// The root failure: the first one of the chain of dependencies, or this one.
    pub fn root(&self) -> &CommandFailure {
        match &self.0.kind {
            FailureKind::Dependency(cause) => cause.root(),
            _ => self,
        }
    }

    /// The kind of the failure.
    pub fn kind(&self) -> &FailureKind {
        &self.0.kind
    }

    /// The command's label in messages.
    pub fn command(&self) -> &str {
        &self.0.command
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        &self.0.device
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let FailureKind::Refused { message, .. } = &self.0.kind {
            return f.write_str(message);
        }
        write!(f, "{} on device \"{}\"", self.0.command, self.0.device)?;
        match &self.0.kind {
            FailureKind::Panic { message, location, item } => {
                f.write_str(" panicked")?;
                if let Some((dimensions @ 1..=3, id)) = item {
                    write!(f, " in work-item {:?}", &id[3 - usize::from(*dimensions)..])?;
                }
                if let Some(location) = location {
                    write!(f, " at {location}")?;
                }
                write!(f, ": {}", self.0.named.get().unwrap_or(message))
            }
            FailureKind::Dependency(_) if self.0.has_run => {
                f.write_str(" ran for nothing because a command it depends on failed")
            }
            FailureKind::Dependency(_) => f.write_str(" did not run because a command it depends on failed"),
            FailureKind::Device(error) => write!(f, " failed: {error}"),
            FailureKind::Refused { .. } => Ok(()),
        }
    }
}

impl Error for CommandFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0.kind {
            FailureKind::Dependency(cause) => Some(cause),
            // Their text is part of this one's.
            FailureKind::Device(_) | FailureKind::Panic { .. } | FailureKind::Refused { .. } => None,
        }
    }
}
