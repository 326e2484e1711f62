//! The shared virtual memory allocations that kernels may reach.
//!
//! OpenCL needs a list for each kernel of the allocations that it reaches by addresses. It takes all of them for used while the kernel
//! runs. What a kernel reaches is not known, so the list has all there are. What a user frees meanwhile stays until no launch is left with
//! it in its list.
//!
//! Invariants:
//! - A kernel is launched with the list as it is at that moment: the lock is held from setting the list to launching.
//! - An address is given back to the driver when all launches have ended that began before its user freed it.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::context::Context;
use crate::error::Result;
use crate::sys::{Functions, Object, code};

/// The size of the anchor: any size will do.
const ANCHOR_SIZE: usize = 64;

pub(crate) struct Svm {
    pub(crate) capabilities: u64,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    addresses: BTreeSet<usize>,
    /// Counts changes of `addresses`.
    version: u64,
    /// The numbers of the launches that have not ended.
    launches: BTreeSet<u64>,
    n_launches: u64,
    /// Allocations that their users freed, with the number of the next launch at that time.
    freed: Vec<(u64, usize)>,
    /// An allocation that is never used. It keeps the list from being empty, which OpenCL does not allow.
    anchor: Option<usize>,
}

/// The version of the list that a kernel has in the driver.
#[derive(Default)]
pub(crate) struct ListVersion {
    /// `Live::version` plus one, or 0 if the kernel has no list.
    version: u64,
}

/// The locked list, while a kernel is launched with it; `None` where no list is needed.
pub(crate) struct ListGuard<'s>(Option<MutexGuard<'s, Live>>);

/// A launch with a list of allocations. Dropping it ends the launch.
pub(crate) struct Launch {
    context: Arc<Context>,
    number: u64,
}

impl Svm {
    pub(crate) fn new(capabilities: u64) -> Self {
        Self { capabilities, live: Mutex::default() }
    }

    /// Adds an allocation to the list.
    pub(crate) fn add(&self, address: usize) {
        let mut live = self.live.lock();
        live.addresses.insert(address);
        live.version += 1;
    }

    /// Removes an allocation from the list. Returns whether it can be freed now; otherwise it is freed later.
    pub(crate) fn remove(&self, address: usize) -> bool {
        self.live.lock().remove(address)
    }

    /// Sets the kernel's list by `set`, a call of `clSetKernelExecInfo`, if it does not have the current one. No other thread uses the
    /// kernel meanwhile.
    pub(crate) fn set_list(
        &self,
        functions: &Functions,
        context: Object,
        in_driver: &mut ListVersion,
        set: impl Fn(u32, &[*mut c_void]) -> Result<()>,
    ) -> Result<ListGuard<'_>> {
        let mut live = self.live.lock();
        let version = live.version + 1;
        if in_driver.version != version {
            let mut pointers: Vec<*mut c_void> =
                live.addresses.iter().map(|address| ptr::with_exposed_provenance_mut(*address)).collect();
            if pointers.is_empty() && in_driver.version > 0 {
                pointers.extend(live.anchor(functions, context).map(ptr::with_exposed_provenance_mut::<c_void>));
            }
            if !pointers.is_empty() {
                set(code::KERNEL_EXEC_INFO_SVM_PTRS, &pointers)?;
            }
            in_driver.version = version;
        }
        Ok(ListGuard(Some(live)))
    }

    /// Frees the remaining allocations. No kernel runs, and none is launched any more.
    pub(crate) fn close(&self, functions: &Functions, context: Object) {
        let mut live = self.live.lock();
        let freed = std::mem::take(&mut live.freed).into_iter().map(|(_, address)| address);
        for address in freed.chain(live.anchor.take()) {
            free(functions, context, address);
        }
    }
}

impl Live {
    fn remove(&mut self, address: usize) -> bool {
        self.addresses.remove(&address);
        self.version += 1;
        let is_free = self.launches.is_empty();
        if !is_free {
            self.freed.push((self.n_launches, address));
        }
        is_free
    }

    fn begin(&mut self) -> u64 {
        let number = self.n_launches;
        self.n_launches += 1;
        self.launches.insert(number);
        number
    }

    /// Ends a launch. Returns the allocations that can be freed now.
    fn end(&mut self, number: u64) -> Vec<usize> {
        self.launches.remove(&number);
        let oldest = self.launches.first().copied().unwrap_or(u64::MAX);
        let (free, used) = std::mem::take(&mut self.freed).into_iter().partition(|(next, _)| *next <= oldest);
        self.freed = used;
        Vec::into_iter(free).map(|(_, address)| address).collect()
    }

    fn anchor(&mut self, functions: &Functions, context: Object) -> Option<usize> {
        if self.anchor.is_none() {
            // SAFETY: a live context; without memory the list stays as it was.
            let pointer = unsafe { (functions.clSVMAlloc)(context.0, code::MEM_READ_WRITE, ANCHOR_SIZE, 0) };
            self.anchor = (!pointer.is_null()).then(|| pointer.expose_provenance());
        }
        self.anchor
    }
}

impl ListGuard<'_> {
    /// The guard where no list is needed.
    pub(crate) const NOTHING: Self = Self(None);

    /// Starts a launch that is about to be issued. The list does not change while the guard lives.
    pub(crate) fn begin(&mut self, context: &Arc<Context>) -> Option<Launch> {
        let number = self.0.as_mut()?.begin();
        Some(Launch { context: context.clone(), number })
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        let context = &*self.context;
        let Some(svm) = context.sharing.svm() else { return };
        let freed = svm.live.lock().end(self.number);
        // What a lost device may use still is not given back.
        if !context.is_lost() && !context.is_foreign() {
            freed.into_iter().for_each(|address| free(&context.functions, context.raw, address));
        }
    }
}

/// Frees memory that is in the list of no unfinished launch, and that no other code uses.
fn free(functions: &Functions, context: Object, address: usize) {
    // SAFETY: `clSVMAlloc` gave the address for that context, and `Live` gives it out once.
    unsafe { (functions.clSVMFree)(context.0, ptr::with_exposed_provenance_mut(address)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_while_kernels_run_is_given_back_when_those_that_were_told_of_it_have_ended() {
        let mut live = Live::default();
        assert!(live.remove(1), "nothing runs");
        let first = live.begin();
        assert!(!live.remove(2));
        let second = live.begin();
        assert!(!live.remove(3));
        let third = live.begin();
        assert_eq!(live.end(second), [], "the list of the first launch has both");
        assert_eq!(live.end(first), [2, 3], "the list of the third has neither");
        assert!(!live.remove(4));
        assert_eq!(live.end(third), [4]);
        assert!(live.remove(5) && live.freed.is_empty() && live.launches.is_empty());
    }
}
