//! What a launch looks like to a kernel that was compiled for a device: the calling convention of device images.
//!
//! A kernel in an image takes up to two parameters by value. The first is a [`DeviceLaunch`]. The second is the kernel's captures with
//! their size and alignment, left out if there are none. It is started once for every work-item of the launch, on a grid whose `x` is the
//! innermost dimension. A grid position beyond [`count`](DeviceLaunch::count) does nothing.
//!
//! Both sides see these types through their layout only, so a change of one is a new version of the image format.

/// The first parameter of every device kernel. Dimensions are ordered as in [`LaunchRange`](crate::LaunchRange): the innermost is
/// last, unused leading ones have extent 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct DeviceLaunch {
    /// The id of grid position zero. Not the launch's offset if a backend splits the launch into several grids.
    pub begin: [u64; 3],
    /// The launch's offset. For a kernel over groups, the position of the grid's first group.
    pub offset: [u64; 3],
    /// For a kernel over groups, the number of groups of the launch. Else one past the launch's largest id, which every check of an
    /// accessor compares with. It is the sum of offset and extent, and fits into a `u64`.
    pub end: [u64; 3],
    /// Address of the launch's [`PanicRecord`], which both the device and the host can reach.
    pub record: u64,
    /// Address of the launch's print buffer, which begins with a [`PrintHeader`]; 0 for a kernel that never prints.
    pub print: u64,
    /// How many positions of this grid are work-items, per dimension; for a kernel over groups, how many groups it has. A grid has less
    /// than 2^32 positions per dimension, so that kernels compute them in 32 bits. This includes the positions at its end that are beyond
    /// the launch.
    pub count: [u32; 3],
    /// How many bytes of stack each work-item has beyond its kernel's own variables, for kernels whose calls may be deeper than their code
    /// shows. 0 where devices have no stack for calls.
    pub call_stack: u32,
}

impl DeviceLaunch {
    /// Bytes of stack that a work-item has beyond its kernel's own variables, where calls are recursive or go through pointers. Formatting
    /// is made of such calls.
    pub const CALL_STACK: usize = 8 << 10;
    /// How many bytes of stack formatting may have taken when it writes. What is deeper is left out: until it writes again it may take as
    /// much as is left of [`CALL_STACK`](Self::CALL_STACK). The digits of an `f64` take most, up to 3 KiB.
    pub const MAX_FORMATTING: usize = 4 << 10;
}

/// What comes before the address, in hexadecimal digits, at the end of the message of a work-item that used an accessor outside its range.
/// The runtime writes the buffer's name instead: an accessor has no room for one.
pub const BUFFER_AT: &str = ", in the buffer at 0x";

/// Where the first work-item of a launch that panics leaves what the host needs to tell about it.
///
/// The host clears `state` before the launch. A work-item that panics changes it from [`FREE`](Self::FREE) to
/// [`CLAIMED`](Self::CLAIMED); who succeeds fills in the rest, sets [`COMPLETE`](Self::COMPLETE) and ends; who fails only ends. Before
/// it runs code of the message's values it sets [`PLACED`](Self::PLACED), since that code may panic, too, which ends the work-item.
/// Nothing in a record can be trusted: a kernel with unsafe code may have written anything.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct PanicRecord {
    /// One of the four constants.
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
    /// The record has site and work-item, and the message is about to be formatted.
    pub const PLACED: u32 = 3;
    /// Most values that a message can print.
    pub const MAX_ARGUMENTS: usize = 8;
    /// Most bytes of strings that a message can print. With so many, a record is 512 bytes: each unfinished launch that may panic has one.
    pub const MAX_TEXT: usize = 280;
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

// Whole cache lines, and the size that the memory of an unfinished launch is counted with.
const _: () = assert!(size_of::<PanicRecord>() == 512);

/// The beginning of a launch's print buffer. Records follow, one for each call of `print!` and `println!` that found space, in the order in
/// which the calls reserved it. So those of one work-item are in its own order.
///
/// The host writes the header before the launch. A work-item reserves space by adding to `used`, never beyond `capacity`, and then fills
/// it. When the launch has ended, every record is complete, or says that it is not. Nothing in a buffer can be trusted, as nothing in a
/// [`PanicRecord`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(16))]
pub struct PrintHeader {
    /// How many of the bytes after the header are taken.
    pub used: u32,
    /// How many bytes there are after the header, at most [`MAX_CAPACITY`](Self::MAX_CAPACITY).
    pub capacity: u32,
    /// How many calls found no room. Not counted beyond [`MANY`](Self::MANY).
    pub n_lost: u32,
    /// Zero.
    pub reserved: u32,
}

impl PrintHeader {
    /// Room for the records unless a setting says otherwise, in bytes.
    pub const DEFAULT_CAPACITY: u32 = 1 << 20;
    /// Most room for records.
    pub const MAX_CAPACITY: u32 = 1 << 30;
    /// Where counting of lost calls ends.
    pub const MANY: u32 = 1 << 31;
}

/// One call of `print!` or `println!`: this, `n_arguments` times a [`PanicArgument`], and `text_length` bytes of strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct PrintRecord {
    /// All of its bytes, a multiple of 8.
    pub size: u32,
    /// Index into the image's table of messages.
    pub site: u32,
    /// How many values follow.
    pub n_arguments: u32,
    /// How many bytes of strings follow the values.
    pub text_length: u32,
}

impl PrintRecord {
    /// The site of a record as long as its values are being formatted: their code may panic, which ends the work-item. Only the size
    /// means something then.
    pub const UNFINISHED: u32 = u32::MAX;
}

/// One value of a panic message, or of a printed one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct PanicArgument {
    /// What type it has; the numbers are the image format's.
    pub kind: u32,
    /// Of a string its length in bytes before it was cut off, of a number at least its size in bytes.
    pub size: u32,
    /// The value, little endian, zero-extended.
    pub bits: [u64; 2],
}
