//! Code that is being loaded, and the commands that wait for it.

use std::fmt;
use std::sync::Arc;
use std::thread::Thread;

use oxisycl_backend::{Command, FailureKind, KernelCommand, KernelInfo, LoadedKernel};
use oxisycl_types::ErrorCode;
use parking_lot::Mutex;

use super::gate::Waits;
use crate::{Error, Result};

/// Code that is being loaded. Ends once.
pub struct Load(Mutex<State>);

enum State {
    IsLoaded(Vec<Arc<dyn Waits>>),
    Ended(Result<Arc<dyn LoadedKernel>>),
}

impl Load {
    /// What no command waits for yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::IsLoaded(Vec::new()))))
    }

    /// Says how it ended, and lets the commands go on that wait for it. Called without locks.
    pub fn end(&self, result: Result<Arc<dyn LoadedKernel>>) {
        let before = std::mem::replace(&mut *self.0.lock(), State::Ended(result));
        if let State::IsLoaded(waiting) = before {
            waiting.into_iter().for_each(|command| command.go_on());
        }
    }

    /// Lets a command wait. Returns false, and does not, if the load has ended.
    pub(super) fn wait(&self, command: Arc<dyn Waits>) -> bool {
        match &mut *self.0.lock() {
            State::IsLoaded(waiting) => {
                waiting.push(command);
                true
            }
            State::Ended(_) => false,
        }
    }

    /// Blocks this thread until it has ended.
    ///
    /// # Errors
    /// That of the load.
    pub fn block(&self) -> Result<Arc<dyn LoadedKernel>> {
        if self.wait(Arc::new(Blocked(std::thread::current()))) {
            while matches!(*self.0.lock(), State::IsLoaded(_)) {
                std::thread::park();
            }
        }
        self.result()
    }

    fn result(&self) -> Result<Arc<dyn LoadedKernel>> {
        match &*self.0.lock() {
            State::Ended(result) => result.clone(),
            State::IsLoaded(_) => {
                Err(Error::new(ErrorCode::Runtime, "a launch was released before its code was loaded"))
            }
        }
    }
}

/// A thread that waits.
struct Blocked(Thread);

impl Waits for Blocked {
    fn go_on(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Load").finish_non_exhaustive()
    }
}

/// Holds a launch against the limits of its code, which it may adapt to them.
pub type FitToCode = Box<dyn FnOnce(&KernelInfo, &mut KernelCommand) -> Result + Send>;

/// What a launch needs whose code is being loaded.
pub struct Unloaded {
    /// The code.
    pub load: Arc<Load>,
    /// What is to be done with the launch when the code is there.
    pub fit: FitToCode,
}

impl Unloaded {
    /// The launch with its code, or why it is refused. Called once the load has ended.
    pub(super) fn with_code(self, mut command: Command) -> std::result::Result<Command, FailureKind> {
        let code = self.load.result();
        let given = match &mut command {
            Command::Kernel(kernel) => code.and_then(|code| {
                (self.fit)(code.info(), kernel)?;
                kernel.code = Some(code);
                Ok(())
            }),
            _ => Ok(()),
        };
        given.map(|()| command).map_err(|error| FailureKind::Refused { code: error.code(), message: error.to_string() })
    }
}

impl fmt::Debug for Unloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unloaded").finish_non_exhaustive()
    }
}
