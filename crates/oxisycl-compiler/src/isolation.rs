//! Where the kernels' compilations run.
//!
//! LLVM ends the process on some code. Once the program was read and linked, everything is done for each kernel alone, so that a caller
//! with processes loses one kernel at most.

use oxisycl_image::DeviceImage;

use crate::error::CompileError;

/// Compiles one kernel, by its number; the bytes are for the caller that made the job.
pub type Job<'j> = dyn FnMut(usize) -> Result<Vec<u8>, CompileError> + 'j;

/// Results of earlier compilations, by the code that they were made of. Read and added to from each job, as soon as a kernel is done: a
/// compilation that is interrupted loses the unfinished kernels alone.
pub trait Kept {
    /// The result for a kernel whose code is this, if one was kept. What else decides about it, the compiler and its toolchain, is for the
    /// implementation to tell apart.
    fn find(&self, code: &[u8]) -> Option<Vec<u8>>;

    /// Keeps a result. If `is_all` is false, the result also has parts of the program that were not in `code`.
    fn keep(&self, code: &[u8], is_all: bool, result: &[u8]);
}

/// Looks at code before it becomes an image, as a driver would that loads it.
pub trait Inspect {
    /// Why no driver takes the code of an image.
    ///
    /// # Errors
    /// The reason, in the inspector's words.
    fn inspect(&self, image: &DeviceImage) -> Result<(), String>;
}

/// Looks at nothing.
pub(crate) struct Uninspected;

impl Inspect for Uninspected {
    fn inspect(&self, _image: &DeviceImage) -> Result<(), String> {
        Ok(())
    }
}

/// Keeps nothing.
pub(crate) struct KeptNowhere;

impl Kept for KeptNowhere {
    fn find(&self, _code: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn keep(&self, _code: &[u8], _is_all: bool, _result: &[u8]) {}
}

/// Runs jobs, each of which may end the process that it runs in.
pub trait Isolation {
    /// Whether each job runs in a copy of this process, which ends with it: what a job changes in memory is seen by no other.
    fn is_separate(&self) -> bool;

    /// Told before [`run`](Self::run): what the jobs are, for people.
    fn announce(&mut self, _jobs: &str) {}

    /// Runs the jobs below `n_jobs`, and gives what they return, or why a job gave nothing, in the order of their numbers. Jobs do not
    /// depend on each other: they may run in copies of this process, at the same time and in any order.
    ///
    /// # Errors
    /// If no job can be run.
    fn run(&mut self, n_jobs: usize, job: &mut Job<'_>) -> Result<Vec<Result<Vec<u8>, String>>, CompileError>;
}

/// One job after the other, without protection.
pub(crate) struct InThisProcess;

impl Isolation for InThisProcess {
    fn is_separate(&self) -> bool {
        false
    }

    fn run(&mut self, n_jobs: usize, job: &mut Job<'_>) -> Result<Vec<Result<Vec<u8>, String>>, CompileError> {
        Ok((0..n_jobs).map(|number| job(number).map_err(|error| error.to_string())).collect())
    }
}
