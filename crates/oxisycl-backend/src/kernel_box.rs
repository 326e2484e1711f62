//! A launch of a kernel behind one address, so that commands are small to move.

use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use oxisycl_image::KernelDescriptor;
use oxisycl_types::{GroupSize, LaunchRange};

use crate::pool::{Near, Pool};
use crate::{ArgumentBlock, Captures, Command, KernelCommand, LoadedKernel, NativeCode};

thread_local! {
    static NEAR: Near<Box<MaybeUninit<KernelCommand>>> = const { Near::new() };
}

static POOL: Pool<Box<MaybeUninit<KernelCommand>>> = Pool::new(&NEAR);

/// Owns a [`KernelCommand`] as a box does, in memory of a [`Pool`].
pub struct KernelBox(ManuallyDrop<Box<KernelCommand>>);

impl KernelBox {
    /// Moves a launch into memory of the pool.
    #[inline]
    pub fn new(command: KernelCommand) -> Self {
        Self(ManuallyDrop::new(POOL.make(|| command)))
    }

    /// Constructs a launch in memory of the pool.
    #[inline]
    pub fn of(
        descriptor: &KernelDescriptor,
        code: Option<Arc<dyn LoadedKernel>>,
        native: Option<NativeCode>,
        captures: Captures<'_>,
        range: &LaunchRange,
        group: Option<GroupSize>,
    ) -> Self {
        let mut memory = POOL.memory();
        let command = memory.as_mut_ptr();
        // SAFETY: the memory is owned and large enough; each field of the launch is written once.
        let command = unsafe {
            (&raw mut (*command).descriptor).write(*descriptor);
            (&raw mut (*command).code).write(code);
            (&raw mut (*command).native).write(native);
            ArgumentBlock::write(&raw mut (*command).arguments, captures);
            (&raw mut (*command).range).write(*range);
            (&raw mut (*command).group).write(group);
            memory.assume_init()
        };
        Self(ManuallyDrop::new(command))
    }
}

impl Drop for KernelBox {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: taken once, here; no code uses the field after its drop.
        POOL.end(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

impl Deref for KernelBox {
    type Target = KernelCommand;

    #[inline]
    fn deref(&self) -> &KernelCommand {
        &self.0
    }
}

impl DerefMut for KernelBox {
    #[inline]
    fn deref_mut(&mut self) -> &mut KernelCommand {
        &mut self.0
    }
}

impl From<KernelCommand> for Command {
    #[inline]
    fn from(command: KernelCommand) -> Self {
        Self::Kernel(KernelBox::new(command))
    }
}

impl fmt::Debug for KernelBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
