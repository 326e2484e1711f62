//! Where the kernels' compilations run.
//!
//! LLVM ends the process on some code. Once the program was read and linked, everything is done for each kernel alone, so that whoever
//! can make processes loses one kernel at most.

use crate::CompileError;

/// Compiles one kernel, by its number; the bytes are for whoever made the job.
pub type Job<'j> = dyn FnMut(usize) -> Result<Vec<u8>, CompileError> + 'j;

/// Runs jobs, each of which may end the process that it runs in.
pub trait Isolation {
    /// Whether each job runs in a copy of this process, which ends with it: what a job changes in memory is seen by no other.
    fn is_separate(&self) -> bool;

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
