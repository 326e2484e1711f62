//! The isolation of the kernels' compilations from each other.
//!
//! LLVM ends the process on some code. Once the program was read and linked, everything is done for each kernel alone, so that a caller
//! with processes loses one kernel at most.

use oxisycl_image::DeviceImage;

use crate::error::CompileError;

/// Compiles one kernel, by its number; the bytes are for the caller that made the job.
pub type Job<'j> = dyn FnMut(usize) -> Result<Vec<u8>, CompileError> + 'j;

/// A cache of earlier results, by the code that they were compiled from. Jobs read it and add to it as soon as a kernel is done. So an
/// interrupted compilation loses only the unfinished kernels.
pub trait Kept {
    /// The cached result of a kernel with this code, if there is one. The implementation has to distinguish everything else that the result
    /// depends on: the compiler and its toolchain.
    fn find(&self, code: &[u8]) -> Option<Vec<u8>>;

    /// Caches a result. If `is_all` is false, the result also has parts of the program that are not in `code`.
    fn keep(&self, code: &[u8], is_all: bool, result: &[u8]);
}

/// Checks code before it becomes an image, as a driver would that loads it.
pub trait Inspect {
    /// Checks the code of an image.
    ///
    /// # Errors
    /// The reason, in the inspector's words.
    fn inspect(&self, image: &DeviceImage) -> Result<(), String>;
}

/// An inspector that accepts everything.
pub(crate) struct Uninspected;

impl Inspect for Uninspected {
    fn inspect(&self, _image: &DeviceImage) -> Result<(), String> {
        Ok(())
    }
}

/// A cache that keeps nothing.
pub(crate) struct KeptNowhere;

impl Kept for KeptNowhere {
    fn find(&self, _code: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn keep(&self, _code: &[u8], _is_all: bool, _result: &[u8]) {}
}

/// Runs jobs, each of which may end the process that it runs in.
pub trait Isolation {
    /// Whether each job runs in a copy of this process that ends with the job. Then no other job sees what it changes in memory.
    fn is_separate(&self) -> bool;

    /// Called before [`run`](Self::run) with a description of the jobs for people.
    fn announce(&mut self, _jobs: &str) {}

    /// Runs the jobs below `n_jobs`. Returns their results in the order of their numbers; the inner error says why a job has no result.
    /// Jobs are independent: they may run in copies of this process, at the same time and in any order.
    ///
    /// # Errors
    /// If no job can be run.
    fn run(&mut self, n_jobs: usize, job: &mut Job<'_>) -> Result<Vec<Result<Vec<u8>, String>>, CompileError>;
}

/// Runs one job after the other in this process, without isolation.
pub(crate) struct InThisProcess;

impl Isolation for InThisProcess {
    fn is_separate(&self) -> bool {
        false
    }

    fn run(&mut self, n_jobs: usize, job: &mut Job<'_>) -> Result<Vec<Result<Vec<u8>, String>>, CompileError> {
        Ok((0..n_jobs).map(|number| job(number).map_err(|error| error.to_string())).collect())
    }
}
