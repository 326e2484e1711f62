//! The environment variables of the disk cache, of how long a driver may compile, of compiling for values, and of the host's code.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use oxisycl_image::{HostLevel, ImageTarget};
use oxisycl_types::ErrorCode;

use super::disk_cache::DiskCache;
use super::native::HostCode;
use super::profile::LoadAhead;
use crate::{Error, Result};

/// Bytes that the cache may take up unless the environment says otherwise.
const DEFAULT_SIZE: u64 = 1 << 30;

/// How long a driver may compile an image unless the environment says otherwise.
pub(super) const COMPILE_LIMIT: Duration = Duration::from_secs(120);
/// The largest limit: a year.
const MAX_COMPILE_SECONDS: u64 = 365 * 24 * 3600;

/// How long drivers may compile an image; `None` for as long as it takes.
///
/// # Errors
/// `Platform` if the variable has a wrong value.
pub(crate) fn compile_limit_from_env() -> Result<Option<Duration>> {
    compile_limit(|name| std::env::var_os(name))
}

fn compile_limit(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Duration>> {
    let Some(value) = variable("OXISYCL_COMPILE_LIMIT") else { return Ok(Some(COMPILE_LIMIT)) };
    let seconds = value.to_str().and_then(|text| text.trim().parse().ok());
    match seconds.filter(|seconds| *seconds <= MAX_COMPILE_SECONDS) {
        Some(0) => Ok(None),
        Some(seconds) => Ok(Some(Duration::from_secs(seconds))),
        None => {
            let message = format!(
                "OXISYCL_COMPILE_LIMIT={value:?}: expected seconds up to {MAX_COMPILE_SECONDS}; 0 sets no limit"
            );
            Err(Error::new(ErrorCode::Platform, message))
        }
    }
}

/// Whether kernels are compiled for values of specialization constants.
///
/// # Errors
/// `Platform` if the variable has a wrong value.
pub(crate) fn specialize_from_env() -> Result<bool> {
    specialize(std::env::var_os("OXISYCL_SPECIALIZE"))
}

fn specialize(value: Option<OsString>) -> Result<bool> {
    match value.as_ref().map(|value| value.to_str().map(str::trim)) {
        None | Some(Some("1")) => Ok(true),
        Some(Some("0")) => Ok(false),
        Some(_) => {
            let message = format!("OXISYCL_SPECIALIZE={:?}: expected 0 or 1", value.unwrap_or_default());
            Err(Error::new(ErrorCode::Platform, message))
        }
    }
}

/// Which code of kernels a device with these [native levels](oxisycl_backend::Device::native_levels) runs.
///
/// # Errors
/// `Platform` if the variable has a wrong value, or names a level that the processor lacks.
pub(crate) fn host_code_from_env(levels: &[ImageTarget]) -> Result<HostCode> {
    host_code(std::env::var_os("OXISYCL_HOST_CODE"), levels)
}

fn host_code(value: Option<OsString>, levels: &[ImageTarget]) -> Result<HostCode> {
    let level = match value.as_ref().map(|value| value.to_str().map(str::trim)) {
        None | Some(Some("auto")) => return Ok(HostCode::Auto),
        Some(Some("plain")) => return Ok(HostCode::Plain),
        Some(Some("v3")) => Some(HostLevel::V3),
        Some(Some("v4")) => Some(HostLevel::V4),
        Some(_) => None,
    };
    let has = |wanted| {
        levels.iter().any(|target| matches!(target, ImageTarget::Host { level: Some(level), .. } if *level == wanted))
    };
    let expected = match level {
        Some(level) if has(level) => return Ok(HostCode::UpTo(level)),
        Some(level) => {
            let takes: Vec<_> = ["auto", "plain"].into_iter().chain(has(HostLevel::V3).then_some("v3")).collect();
            format!(
                "expected a level that the processor has, and it has not all of {level}; {} can be named",
                takes.join(", ")
            )
        }
        None => "expected auto, plain, v3 or v4".to_owned(),
    };
    Err(Error::new(ErrorCode::Platform, format!("OXISYCL_HOST_CODE={:?}: {expected}", value.unwrap_or_default())))
}

/// Which kernels are loaded before the first launch on a device.
///
/// # Errors
/// `Platform` if the variable has a wrong value.
pub(crate) fn load_ahead_from_env() -> Result<LoadAhead> {
    load_ahead(std::env::var_os("OXISYCL_LOAD"))
}

fn load_ahead(value: Option<OsString>) -> Result<LoadAhead> {
    match value.as_ref().map(|value| value.to_str().map(str::trim)) {
        None | Some(Some("profile")) => Ok(LoadAhead::Profile),
        Some(Some("lazy")) => Ok(LoadAhead::Nothing),
        Some(Some("all")) => Ok(LoadAhead::All),
        Some(_) => {
            let message = format!("OXISYCL_LOAD={:?}: expected profile, lazy or all", value.unwrap_or_default());
            Err(Error::new(ErrorCode::Platform, message))
        }
    }
}

/// The cache that the environment asks for; `None` if it is off, or if there is no place for it that was not asked for.
///
/// # Errors
/// `Platform` if a variable has a wrong value, or names a folder that cannot be used.
pub(crate) fn disk_cache_from_env() -> Result<Option<DiskCache>> {
    from(|name| std::env::var_os(name))
}

fn from(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<DiskCache>> {
    let size = match variable("OXISYCL_CACHE_SIZE") {
        None => DEFAULT_SIZE,
        Some(value) => parse_size(&value)?,
    };
    let folder = variable("OXISYCL_CACHE_DIR").map(PathBuf::from);
    if let Some(folder) = &folder
        && !folder.is_absolute()
    {
        let message = format!("OXISYCL_CACHE_DIR={folder:?}: expected an absolute path");
        return Err(Error::new(ErrorCode::Platform, message));
    }
    if size == 0 {
        return Ok(None);
    }
    let is_asked_for = folder.is_some();
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let Some(folder) = folder.or_else(|| Some(usual()?.join("oxisycl"))) else { return Ok(None) };
    let cache = DiskCache::new(&folder, size);
    if is_asked_for {
        cache.prepare().map_err(|error| {
            let message = format!("OXISYCL_CACHE_DIR={folder:?}: cannot be used: {error}");
            Error::with_source(ErrorCode::Platform, message, error)
        })?;
    }
    Ok(Some(cache))
}

fn parse_size(value: &OsString) -> Result<u64> {
    bytes(value).ok_or_else(|| {
        let message = format!(
            "OXISYCL_CACHE_SIZE={value:?}: expected bytes, or a number and k, M or G (powers of 1024); 0 turns the cache off"
        );
        Error::new(ErrorCode::Platform, message)
    })
}

/// Bytes, or a number and `k`, `M` or `G`.
pub(crate) fn bytes(value: &OsStr) -> Option<u64> {
    let text = value.to_str()?.trim();
    let (number, unit) = match text.char_indices().last()? {
        (at, 'k') => (&text[..at], 1 << 10),
        (at, 'M') => (&text[..at], 1 << 20),
        (at, 'G') => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    number.trim().parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<Option<DiskCache>> {
        from(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value)))
    }

    fn folder(variables: &[(&str, &str)]) -> Option<String> {
        with(variables).unwrap().map(|cache| cache.path().display().to_string())
    }

    #[test]
    fn the_cache_lies_in_the_users_cache_folder() {
        let home = ("HOME", "/home/u");
        assert_eq!(folder(&[home]).unwrap(), "/home/u/.cache/oxisycl");
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "/cache")]).unwrap(), "/cache/oxisycl");
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "relative")]).unwrap(), "/home/u/.cache/oxisycl");
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn a_size_of_zero_turns_the_cache_off() {
        let home = ("HOME", "/home/u");
        for (value, size) in
            [("0", None), ("0G", None), ("4096", Some(4096)), ("3k", Some(3072)), (" 2 M ", Some(2 << 20))]
        {
            let cache = with(&[home, ("OXISYCL_CACHE_SIZE", value)]).unwrap();
            assert_eq!(cache.map(|cache| cache.limit()), size, "{value}");
        }
        assert_eq!(with(&[home]).unwrap().unwrap().limit(), 1 << 30);
    }

    #[test]
    fn compiling_is_limited_unless_the_limit_is_zero() {
        let limit = |value: Option<&str>| compile_limit(|_| value.map(OsString::from));
        assert_eq!(limit(None).unwrap(), Some(Duration::from_secs(120)));
        assert_eq!(limit(Some(" 7 ")).unwrap(), Some(Duration::from_secs(7)));
        assert_eq!(limit(Some("0")).unwrap(), None);
        for value in ["", "-1", "1.5", "soon", "18446744073709551615"] {
            let error = limit(Some(value)).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Platform);
            let expected = format!("OXISYCL_COMPILE_LIMIT={value:?}: expected seconds up to 31536000; 0 sets no limit");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn specializing_is_on_or_off() {
        let with = |value: &str| specialize(Some(OsString::from(value)));
        assert!(specialize(None).unwrap() && with("1").unwrap() && !with(" 0 ").unwrap());
        assert_eq!(with("no").unwrap_err().to_string(), "OXISYCL_SPECIALIZE=\"no\": expected 0 or 1");
    }

    #[test]
    fn the_code_of_the_host_is_the_best_the_plain_one_or_that_of_a_level() {
        let targets = |levels: &[Option<HostLevel>]| -> Vec<ImageTarget> {
            levels.iter().map(|level| ImageTarget::Host { triple: "t".to_owned(), level: *level }).collect()
        };
        let all = targets(&[Some(HostLevel::V4), Some(HostLevel::V3), None]);
        let with = |value: &str, levels: &[ImageTarget]| host_code(Some(OsString::from(value)), levels);
        assert_eq!(host_code(None, &[]).unwrap(), HostCode::Auto);
        assert_eq!(with(" auto ", &[]).unwrap(), HostCode::Auto);
        assert_eq!(with("plain", &all).unwrap(), HostCode::Plain);
        assert_eq!(with("v3", &all).unwrap(), HostCode::UpTo(HostLevel::V3));
        assert_eq!(with("v4", &all).unwrap(), HostCode::UpTo(HostLevel::V4));
        let error = |value: &str, levels: &[ImageTarget]| {
            let error = with(value, levels).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Platform);
            error.to_string()
        };
        assert_eq!(error("v2", &all), "OXISYCL_HOST_CODE=\"v2\": expected auto, plain, v3 or v4");
        assert_eq!(error("", &all), "OXISYCL_HOST_CODE=\"\": expected auto, plain, v3 or v4");
        assert_eq!(
            error("v4", &all[1..]),
            "OXISYCL_HOST_CODE=\"v4\": expected a level that the processor has, and it has not all of x86-64-v4; auto, plain, v3 can \
             be named"
        );
        assert!(error("v3", &all[2..]).ends_with("not all of x86-64-v3; auto, plain can be named"));
    }

    #[test]
    fn kernels_are_loaded_ahead_by_profile_all_or_not() {
        let with = |value: &str| load_ahead(Some(OsString::from(value)));
        assert_eq!((load_ahead(None).unwrap(), with("profile").unwrap()), (LoadAhead::Profile, LoadAhead::Profile));
        assert_eq!((with(" lazy ").unwrap(), with("all").unwrap()), (LoadAhead::Nothing, LoadAhead::All));
        assert_eq!(with("none").unwrap_err().to_string(), "OXISYCL_LOAD=\"none\": expected profile, lazy or all");
    }

    #[test]
    fn wrong_values_are_errors_with_variable_and_value() {
        for (variable, value, expected) in [
            ("OXISYCL_CACHE_SIZE", "lots", "OXISYCL_CACHE_SIZE=\"lots\": expected bytes, or a number and k, M or G"),
            ("OXISYCL_CACHE_SIZE", "", "OXISYCL_CACHE_SIZE=\"\": expected"),
            ("OXISYCL_CACHE_SIZE", "-1", "OXISYCL_CACHE_SIZE=\"-1\": expected"),
            ("OXISYCL_CACHE_SIZE", "99999999999G", "OXISYCL_CACHE_SIZE=\"99999999999G\": expected"),
            ("OXISYCL_CACHE_DIR", "here", "OXISYCL_CACHE_DIR=\"here\": expected an absolute path"),
            ("OXISYCL_CACHE_DIR", "", "OXISYCL_CACHE_DIR=\"\": expected an absolute path"),
            ("OXISYCL_CACHE_DIR", "/dev/null", "OXISYCL_CACHE_DIR=\"/dev/null\": cannot be used: "),
        ] {
            let error = with(&[("HOME", "/home/u"), (variable, value)]).map(drop).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Platform);
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}
