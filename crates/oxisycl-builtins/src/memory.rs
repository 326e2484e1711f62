//! Functions of C that compiled Rust calls on memory. Copies and fills are not here: the code generator makes loops of them.

/// Compares `count` bytes.
///
/// # Safety
/// Both addresses lead to that many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxisycl_memcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    let mut index = 0;
    while index < count {
        // SAFETY: by contract.
        let (left, right) = unsafe { (*left.add(index), *right.add(index)) };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
        index += 1;
    }
    0
}

/// Whether `count` bytes differ.
///
/// # Safety
/// As of `__oxisycl_memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxisycl_bcmp(left: *const u8, right: *const u8, count: usize) -> i32 {
    // SAFETY: by contract.
    unsafe { __oxisycl_memcmp(left, right, count) }
}

/// The number of bytes before the first zero.
///
/// # Safety
/// The address leads to bytes one of which is zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxisycl_strlen(text: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: by contract.
    while unsafe { *text.add(length) } != 0 {
        length += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_compared_as_unsigned_bytes() {
        let compare = |left: &[u8], right: &[u8]| {
            // SAFETY: the shorter length is inside both.
            unsafe { __oxisycl_memcmp(left.as_ptr(), right.as_ptr(), left.len().min(right.len())) }
        };
        assert_eq!(compare(b"abc", b"abc"), 0);
        assert!(compare(b"ab\xFF", b"abc") > 0);
        assert!(compare(b"a", b"b") < 0);
        assert_eq!(compare(b"", b"b"), 0);
        // SAFETY: a C string.
        assert_eq!(unsafe { __oxisycl_strlen(c"four".as_ptr().cast()) }, 4);
    }
}
