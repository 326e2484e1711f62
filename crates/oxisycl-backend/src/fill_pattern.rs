//! The bytes of one element that a fill repeats.
//!
//! An element may have padding, whose bytes have no value: reading them, even to compare them, is undefined behaviour. So bytes are
//! handed out by address, to be copied; as plain bytes only if the pattern was made from such.

use std::fmt;
use std::mem::MaybeUninit;

use smallvec::SmallVec;

/// The bytes of one element that a fill repeats, some of which may have no value.
#[derive(Clone)]
pub struct FillPattern {
    bytes: SmallVec<[MaybeUninit<u8>; 16]>,
    is_initialized: bool,
}

impl FillPattern {
    /// A pattern of plain bytes.
    pub fn from_slice(bytes: &[u8]) -> Self {
        Self { bytes: bytes.iter().map(|&byte| MaybeUninit::new(byte)).collect(), is_initialized: true }
    }

    /// The bytes of a value that may have padding.
    pub fn of<T: Copy>(value: &T) -> Self {
        let mut bytes = SmallVec::from_elem(MaybeUninit::uninit(), size_of::<T>());
        let source = std::ptr::from_ref(value).cast::<MaybeUninit<u8>>();
        // SAFETY: both are valid for the size of `T` and distinct, and `MaybeUninit` bytes may be padding.
        unsafe { source.copy_to_nonoverlapping(bytes.as_mut_ptr(), size_of::<T>()) };
        Self { bytes, is_initialized: false }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The address of the first byte. The bytes may be copied, but not read: see the module documentation.
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr().cast()
    }

    /// The bytes, if all of them are known to be initialised.
    pub fn initialized(&self) -> Option<&[u8]> {
        // SAFETY: `from_slice` wrote every byte.
        self.is_initialized.then(|| unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.bytes.len()) })
    }
}

impl fmt::Debug for FillPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.initialized() {
            Some(bytes) => fmt::Debug::fmt(bytes, f),
            None => write!(f, "{} bytes", self.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_bytes_are_handed_out_as_they_are() {
        let pattern = FillPattern::from_slice(&[1, 2, 3]);
        assert_eq!(pattern.initialized(), Some(&[1, 2, 3][..]));
        assert_eq!((pattern.len(), pattern.is_empty()), (3, false));
        assert_eq!(format!("{pattern:?}"), "[1, 2, 3]");
        assert!(FillPattern::from_slice(&[]).is_empty());
    }

    #[test]
    fn a_value_with_padding_is_copied_and_never_read() {
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[repr(C)]
        struct Padded(u8, u32, Option<u64>);
        for value in [Padded(1, 2, None), Padded(3, 4, Some(5))] {
            let pattern = FillPattern::of(&value).clone();
            assert_eq!((pattern.len(), pattern.initialized()), (size_of::<Padded>(), None));
            assert!(format!("{pattern:?}").ends_with("bytes"));
            let mut copy = MaybeUninit::<Padded>::uninit();
            // SAFETY: the pattern has the size of the value and the bytes of one.
            let copy = unsafe {
                pattern.as_ptr().copy_to_nonoverlapping(copy.as_mut_ptr().cast(), pattern.len());
                copy.assume_init()
            };
            assert_eq!(copy, value);
        }
    }
}
