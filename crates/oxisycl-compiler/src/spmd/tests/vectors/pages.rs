//! Arrays between pages without access. A lane that is not active and accesses what is beyond an array ends the process.

use std::ffi::c_void;
use std::slice;

/// The bytes of a page of x86-64.
pub(super) const PAGE: usize = 4096;

/// Some pages that can be accessed, in each of which arrays are. One page before each of these parts cannot be, and one behind the last one.
pub(super) struct Pages {
    begin: *mut c_void,
    /// Where each part begins, and how many bytes it has.
    parts: Vec<(usize, usize)>,
    length: usize,
}

impl Pages {
    /// Parts with room for so many bytes each, which are 0.
    pub(super) fn new(bytes: &[usize]) -> Self {
        let mut length = PAGE;
        let mut parts = Vec::new();
        for bytes in bytes {
            let bytes = bytes.next_multiple_of(PAGE);
            parts.push((length, bytes));
            length += bytes + PAGE;
        }
        // SAFETY: a mapping where the system has room for it.
        let begin = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(begin, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        for &(start, bytes) in &parts {
            // SAFETY: these are whole pages of the mapping from above.
            let result = unsafe { libc::mprotect(begin.byte_add(start), bytes, libc::PROT_READ | libc::PROT_WRITE) };
            assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        }
        Self { begin, parts, length }
    }

    /// The address of a part.
    pub(super) fn address(&self, part: usize) -> *mut u8 {
        self.begin.wrapping_byte_add(self.parts[part].0).cast()
    }

    /// The bytes of a part.
    pub(super) fn bytes(&self, part: usize) -> &[u8] {
        // SAFETY: `new` made these pages accessible, and what writes to them is done while no such slice is there.
        unsafe { slice::from_raw_parts(self.address(part), self.parts[part].1) }
    }

    /// The bytes of a part.
    pub(super) fn bytes_mut(&mut self, part: usize) -> &mut [u8] {
        // SAFETY: `new` made these pages accessible, and `self` is borrowed as the slice is.
        unsafe { slice::from_raw_parts_mut(self.address(part), self.parts[part].1) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, of which no slice is left.
        let result = unsafe { libc::munmap(self.begin, self.length) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }
}
