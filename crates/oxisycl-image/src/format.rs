//! The bytes of a device image, version 14, and of a bundle of images. All numbers are little-endian.
//!
//! ```text
//! header      magic "OXISYCLI"   version u32   number of sections u32   length of the image u64   checksum u64 (XXH3)
//! table       per section: kind u32   zero u32   offset u64   length u64
//! sections    in the order of `Section::ALL`, each beginning at a multiple of 8, with zeros in between
//!
//! text        length u32, UTF-8 bytes
//! target, build options   UTF-8 bytes
//! kernels                 count u32, entries:
//!                         type id [u8; 16]   form u8   dimensions u8   may panic u8   may print u8   is paired u8
//!                         size u64   alignment u64   has unbounded stack u32
//!                         local range [u32; 3]   sub-group u32   bytes of local memory u32   bytes of an element u32
//!                         uses local memory u8   has barriers u8   zero u16   line u32   column u32   file text
//!                         has launch u32   if it is 1: line u32   column u32   file text
//!                         symbol text   type name text   requirements count u32, texts
//!                         stated aspects count u32, texts   unstated count u32, texts   library count u32, texts
//!                         arguments count u32, each: offset u64   size u64   path text   type name text
//!                         specialized loads count u32, each: place u64   offset u64   size u64
//! unsupported kernels     count u32, entries:
//!                         type id [u8; 16]   form u8   dimensions u8   zero u16   type name text   reason text
//! panic sites             count u32, entries:
//!                         has location u32   if it is 1: line u32   column u32   file text
//!                         pieces count u32, each: kind u32, then for 0 a text, for 1
//!                         index u8   trait u8   flags u8   alignment u8   fill u32   width   precision
//!                         where width and precision are kind u16   value u16
//! code                    bytes
//!
//! bundle      magic "OXISYCLB"   version u32   number of images u32   length of the bundle u64
//!             per image: length u64, the image, zeros up to a multiple of 8
//! ```
//!
//! Invariant: an image has exactly one encoding. Every section is present, no bytes are free, and nothing can be spelled in
//! two ways; whatever deviates is refused. So equal images have equal bytes, and bytes that decode encode to themselves.

use xxhash_rust::xxh3::Xxh3;

pub(crate) const MAGIC: [u8; 8] = *b"OXISYCLI";
pub(crate) const BUNDLE_MAGIC: [u8; 8] = *b"OXISYCLB";
/// Of images and bundles; also counts changes of [`oxisycl_types::DeviceLaunch`] and of the records that devices write.
pub const VERSION: u32 = 14;

/// Where the checksum stands; the bytes before and after it are what it is computed of.
pub(crate) const CHECKSUM_OFFSET: usize = 24;
pub(crate) const HEADER_SIZE: usize = CHECKSUM_OFFSET + CHECKSUM_SIZE;
const CHECKSUM_SIZE: usize = 8;
pub(crate) const TABLE_ENTRY_SIZE: usize = 24;
pub(crate) const SECTION_ALIGN: usize = 8;
/// The size of a kernel entry whose texts are empty.
pub(crate) const MIN_KERNEL_SIZE: usize = 117;
/// The size of an argument whose texts are empty.
pub(crate) const MIN_ARGUMENT_SIZE: usize = 24;
pub(crate) const SPECIALIZED_LOAD_SIZE: usize = 24;
pub(crate) const MIN_UNSUPPORTED_SIZE: usize = 28;
pub(crate) const MIN_SITE_SIZE: usize = 8;
pub(crate) const MIN_PIECE_SIZE: usize = 8;
pub(crate) const MIN_TEXT_SIZE: usize = 4;
/// The size of an image's entry in a bundle, without the image.
pub(crate) const BUNDLE_ENTRY_SIZE: usize = 8;

pub(crate) const FORM_SINGLE: u8 = 0;
pub(crate) const FORM_RANGE: u8 = 1;
pub(crate) const FORM_GROUP: u8 = 2;

pub(crate) const PIECE_LITERAL: u32 = 0;
pub(crate) const PIECE_ARGUMENT: u32 = 1;

pub(crate) const FLAG_ALTERNATE: u8 = 1;
pub(crate) const FLAG_SIGN_PLUS: u8 = 2;
pub(crate) const FLAG_ZERO_PAD: u8 = 4;

pub(crate) const ALIGN_NONE: u8 = 0;
pub(crate) const ALIGN_LEFT: u8 = 1;
pub(crate) const ALIGN_RIGHT: u8 = 2;
pub(crate) const ALIGN_CENTER: u8 = 3;

pub(crate) const COUNT_NONE: u16 = 0;
pub(crate) const COUNT_IS: u16 = 1;
pub(crate) const COUNT_ARGUMENT: u16 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    Target,
    BuildOptions,
    Kernels,
    Unsupported,
    Sites,
    Code,
}

impl Section {
    pub(crate) const ALL: [Self; 6] =
        [Self::Target, Self::BuildOptions, Self::Kernels, Self::Unsupported, Self::Sites, Self::Code];

    /// The number that stands for it in the table.
    pub(crate) const fn kind(self) -> u32 {
        match self {
            Self::Target => 1,
            Self::BuildOptions => 2,
            Self::Kernels => 3,
            Self::Unsupported => 4,
            Self::Sites => 5,
            Self::Code => 6,
        }
    }

    /// The name that messages use.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::BuildOptions => "build options",
            Self::Kernels => "kernels",
            Self::Unsupported => "unsupported kernels",
            Self::Sites => "panic sites",
            Self::Code => "code",
        }
    }
}

/// The checksum of an image, whatever stands in the place of its checksum. `image` has at least a header.
///
/// XXH3 in 64 bits, with the seed 0. It finds damage; it does not protect against an author who wants another image to have the same sum.
pub(crate) fn checksum(image: &[u8]) -> u64 {
    let (before, rest) = image.split_at(CHECKSUM_OFFSET);
    let mut state = Xxh3::new();
    state.update(before);
    state.update(&rest[CHECKSUM_SIZE..]);
    state.digest()
}
