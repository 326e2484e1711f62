//! Reading settings of backends.

use std::env::VarError;
use std::ops::RangeInclusive;

use crate::BackendError;

/// Reads a number of bytes from an environment variable: a whole number, alone or with `k` or `M` (powers of 1024). Returns `default` if
/// the variable is not set.
///
/// # Errors
/// `Setting` if it is anything else, or not `allowed`. `expected` says what is.
pub fn bytes_setting(
    variable: &'static str,
    setting: Result<String, VarError>,
    default: usize,
    allowed: RangeInclusive<usize>,
    expected: &str,
) -> Result<usize, BackendError> {
    let value = match setting {
        Ok(text) => text,
        Err(VarError::NotPresent) => return Ok(default),
        Err(VarError::NotUnicode(text)) => text.to_string_lossy().into_owned(),
    };
    bytes(&value).filter(|size| allowed.contains(size)).ok_or_else(|| BackendError::Setting {
        variable,
        value,
        expected: expected.to_owned(),
    })
}

fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (number, unit) = match text.strip_suffix(['k', 'M']) {
        Some(number) if text.ends_with('k') => (number, 1 << 10),
        Some(number) => (number, 1 << 20),
        None => (text, 1),
    };
    number.trim_end().parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units_and_limits() {
        let read = |text: &str| {
            bytes_setting("OXISYCL_ITEM_STACK", Ok(text.to_owned()), 7, 1024..=4 << 20, "1k to 4M")
                .map_err(|error| error.to_string())
        };
        assert_eq!(["1024", " 3k ", "4M", "4194304"].map(read), [1 << 10, 3 << 10, 4 << 20, 4 << 20].map(Ok));
        for wrong in ["", "0", "1023", "-1", "1", "5M", "1G", "kM", "18446744073709551615k"] {
            assert_eq!(read(wrong), Err(format!("OXISYCL_ITEM_STACK=\"{wrong}\": expected 1k to 4M")));
        }
        let other = |setting| bytes_setting("OXISYCL_ITEM_STACK", setting, 7, 0..=9, "");
        assert_eq!(other(Err(VarError::NotPresent)), Ok(7));
        assert!(other(Err(VarError::NotUnicode("x".into()))).is_err());
    }
}
