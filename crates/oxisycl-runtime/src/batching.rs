//! What the environment says of handing over small kernels together.

use std::ffi::OsStr;

use oxisycl_backend::Batching;
use oxisycl_types::ErrorCode;

use crate::{Error, Result};

const SETTING: &str = "OXISYCL_BATCHING";

/// What the environment says; without the variable, [`Batching::On`].
///
/// # Errors
/// `Platform` if the environment variable has a wrong value.
pub(crate) fn batching_from_env() -> Result<Batching> {
    batching(std::env::var_os(SETTING).as_deref())
}

fn batching(value: Option<&OsStr>) -> Result<Batching> {
    let Some(value) = value else { return Ok(Batching::default()) };
    match value.as_encoded_bytes() {
        b"0" => Ok(Batching::Off),
        b"1" => Ok(Batching::On),
        b"always" => Ok(Batching::Always),
        _ => Err(Error::new(ErrorCode::Platform, format!("{SETTING}={value:?}: expected 0, 1 or always"))),
    }
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
}
