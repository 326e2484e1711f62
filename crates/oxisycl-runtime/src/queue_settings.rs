//! The environment variables that queues follow unless they were made with other values.

use std::ffi::OsStr;

use oxisycl_backend::Batching;
use oxisycl_types::{ErrorCode, PrintHeader};

use crate::program::settings::bytes;
use crate::{Error, Result};

const BATCHING: &str = "OXISYCL_BATCHING";

/// What the environment says; without the variable, [`Batching::On`].
///
/// # Errors
/// `Platform` if the environment variable has a wrong value.
pub(crate) fn batching_from_env() -> Result<Batching> {
    batching(std::env::var_os(BATCHING).as_deref())
}

fn batching(value: Option<&OsStr>) -> Result<Batching> {
    let Some(value) = value else { return Ok(Batching::default()) };
    match value.as_encoded_bytes() {
        b"0" => Ok(Batching::Off),
        b"1" => Ok(Batching::On),
        b"always" => Ok(Batching::Always),
        _ => Err(Error::new(ErrorCode::Platform, format!("{BATCHING}={value:?}: expected 0, 1 or always"))),
    }
}

/// Bytes for the output of one launch, unless its queue says otherwise.
///
/// # Errors
/// `Platform` if the environment variable has a wrong value.
pub(crate) fn print_buffer_from_env() -> Result<u32> {
    print_buffer(std::env::var_os("OXISYCL_PRINT_BUFFER").as_deref())
}

fn print_buffer(value: Option<&OsStr>) -> Result<u32> {
    let Some(value) = value else { return Ok(PrintHeader::DEFAULT_CAPACITY) };
    let size = bytes(value).and_then(|size| u32::try_from(size).ok());
    size.filter(|size| *size <= PrintHeader::MAX_CAPACITY).ok_or_else(|| {
        let message = format!(
            "OXISYCL_PRINT_BUFFER={value:?}: expected bytes up to 1G, or a number and k, M or G (powers of 1024)"
        );
        Error::new(ErrorCode::Platform, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_a_way_of_batching_and_others_are_refused() {
        let read = |value: &str| batching(Some(OsStr::new(value))).map_err(|error| error.to_string());
        assert_eq!(batching(None).unwrap(), Batching::On);
        assert_eq!(
            ["0", "1", "always"].map(read),
            [Batching::Off, Batching::On, Batching::Always].map(Ok::<_, String>)
        );
        for wrong in ["", "2", "on", "Always", " 0"] {
            assert_eq!(read(wrong), Err(format!("OXISYCL_BATCHING={wrong:?}: expected 0, 1 or always")));
        }
    }

    #[test]
    fn the_size_of_print_buffers_is_checked() {
        let size = |value: &str| print_buffer(Some(OsStr::new(value))).map_err(|error| error.to_string());
        assert_eq!(print_buffer(None).unwrap(), 1 << 20);
        assert_eq!(
            ["0", "100", "64k", "1G"].map(size),
            [0, 100, 64 << 10, 1 << 30].map(|size: u32| Ok::<_, String>(size))
        );
        for wrong in ["", "-1", "many", "2G", "1073741825", "18446744073709551615"] {
            let error = size(wrong).unwrap_err();
            let expected =
                format!("OXISYCL_PRINT_BUFFER={wrong:?}: expected bytes up to 1G, or a number and k, M or G");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
