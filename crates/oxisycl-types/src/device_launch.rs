//! What a launch looks like to a kernel that was compiled for a device: the calling convention of device images.
//!
//! A kernel in an image takes up to two parameters by value: a [`DeviceLaunch`], then the bytes of the kernel's captures with
//! their size and alignment, left out if there are none. It is started once for every work-item of the launch, on a grid whose `x`
//! is the innermost dimension; a grid position beyond [`end`](DeviceLaunch::end) does nothing.
//!
//! Both sides see these types through their layout only, so a change of one is a new version of the image format.

/// The first parameter of every device kernel. Dimensions are ordered as in [`LaunchRange`](crate::LaunchRange): the innermost is
/// last, unused leading ones have extent 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct DeviceLaunch {
    /// The id of grid position zero. Not the launch's offset if a backend splits the launch into several grids.
    pub begin: [u64; 3],
    /// One past the largest id of this grid.
    pub end: [u64; 3],
    /// The launch's offset.
    pub offset: [u64; 3],
    /// The launch's number of work-items per dimension.
    pub extent: [u64; 3],
    /// Address of the launch's [`PanicRecord`], which both the device and the host can reach.
    pub record: u64,
}

/// Where the first work-item of a launch that panics leaves what the host needs to tell about it.
///
/// The host clears `state` before the launch. A work-item that panics changes it from [`FREE`](Self::FREE) to
/// [`CLAIMED`](Self::CLAIMED); who succeeds fills in the rest, sets [`COMPLETE`](Self::COMPLETE) and ends; who fails only ends.
/// Nothing in a record can be trusted: a kernel with unsafe code may have written anything.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct PanicRecord {
    /// One of the three constants.
    pub state: u32,
    /// Index into the image's table of panic sites.
    pub site: u32,
    /// How many entries of `arguments` are filled in.
    pub n_arguments: u32,
    /// How many bytes of `text` are filled in.
    pub text_length: u32,
    /// The work-item's id.
    pub item: [u64; 3],
    /// Values that the message prints.
    pub arguments: [PanicArgument; Self::MAX_ARGUMENTS],
    /// Bytes of strings among the arguments, one after the other, cut off where it is full.
    pub text: [u8; Self::MAX_TEXT],
}

impl PanicRecord {
    /// No work-item has panicked.
    pub const FREE: u32 = 0;
    /// A work-item is about to fill the record in.
    pub const CLAIMED: u32 = 1;
    /// The record is filled in.
    pub const COMPLETE: u32 = 2;
    /// Most values that a message can print.
    pub const MAX_ARGUMENTS: usize = 8;
    /// Most bytes of strings that a message can print.
    pub const MAX_TEXT: usize = 256;
    /// A record before a launch.
    pub const EMPTY: Self = Self {
        state: Self::FREE,
        site: 0,
        n_arguments: 0,
        text_length: 0,
        item: [0; 3],
        arguments: [PanicArgument { kind: 0, size: 0, bits: [0; 2] }; Self::MAX_ARGUMENTS],
        text: [0; Self::MAX_TEXT],
    };
}

/// One value of a panic message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct PanicArgument {
    /// What type it has; the numbers are the image format's.
    pub kind: u32,
    /// Size in bytes, of a string its length before it was cut off.
    pub size: u32,
    /// The value, little endian, zero-extended.
    pub bits: [u64; 2],
}
