//! Which errors a crate may have: what the build's options, its manifest and cargo's cap on lints say.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::invocation::Invocation;
use crate::failure::{Failure, Result};
use crate::settings::{HOST_CAPTURE, Settings, parse_allowed};
use crate::stamps;

/// What is allowed in a crate.
#[derive(PartialEq, Eq, Debug, Default)]
pub(super) struct Allowed {
    /// Kernels may capture addresses of the host. They have no device code then.
    pub(super) host_captures: bool,
    /// The files that say so. The crate is compiled again when one changes.
    pub(super) because_of: Vec<PathBuf>,
}

impl Allowed {
    /// What is allowed in the crate that is being compiled.
    ///
    /// # Errors
    /// If its manifest allows something that there is not.
    pub(super) fn here(settings: &Settings, invocation: &Invocation) -> Result<Self> {
        // A user cannot change what comes from a registry. Cargo says so, by a cap on lints.
        if invocation.caps_lints() {
            return Ok(Self { host_captures: true, because_of: Vec::new() });
        }
        if let Some(stamp) = stamps::of_allowed(settings) {
            return Ok(Self { host_captures: true, because_of: vec![stamp] });
        }
        // Older versions of cargo name the folder only.
        let folder = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let manifest = env::var_os("CARGO_MANIFEST_PATH").map(PathBuf::from);
        match manifest.or_else(|| folder.map(|folder| folder.join("Cargo.toml"))) {
            Some(manifest) => Self::by_manifest(&manifest),
            None => Ok(Self::default()),
        }
    }

    fn by_manifest(manifest: &Path) -> Result<Self> {
        // A manifest that cannot be read is one of a package without one: cargo itself has read the others.
        let Ok(text) = fs::read_to_string(manifest) else { return Ok(Self::default()) };
        let failed = |message: String| Failure::new(format!("{}: {message}", manifest.display()));
        // Cargo scripts have other content, and nothing to say here.
        let Ok(table) = text.parse::<toml::Table>() else { return Ok(Self::default()) };
        let mut found = Self::default();
        for name in allowed_names(&table).map_err(failed)? {
            parse_allowed(name).map_err(|failure| failed(format!("package.metadata.oxisycl.allow: {failure}")))?;
            found = Self { host_captures: true, because_of: vec![manifest.to_owned()] };
        }
        Ok(found)
    }
}

/// The names in `package.metadata.oxisycl.allow`.
fn allowed_names(manifest: &toml::Table) -> Result<Vec<&str>, String> {
    let metadata = manifest.get("package").and_then(|package| package.get("metadata"));
    let Some(allow) = metadata.and_then(|metadata| metadata.get("oxisycl")?.get("allow")) else {
        return Ok(Vec::new());
    };
    let expected = |found: &toml::Value| {
        let found = found.type_str();
        format!("package.metadata.oxisycl.allow: expected a list of names like {HOST_CAPTURE:?}, found {found}")
    };
    let list = allow.as_array().ok_or_else(|| expected(allow))?;
    list.iter().map(|name| name.as_str().ok_or_else(|| expected(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    fn allowed_by(name: &str, metadata: &str) -> Result<bool> {
        let scratch = Scratch::new(&format!("allowed-{name}"));
        let manifest = scratch.path().join("Cargo.toml");
        fs::write(&manifest, format!("[package]\nname = \"app\"\n{metadata}")).unwrap();
        let allowed = Allowed::by_manifest(&manifest)?;
        let because_of: Vec<_> = allowed.host_captures.then_some(manifest).into_iter().collect();
        assert_eq!(allowed.because_of, because_of);
        Ok(allowed.host_captures)
    }

    #[test]
    fn a_manifest_allows_what_its_metadata_lists() {
        for (metadata, expected) in [
            ("", false),
            ("[package.metadata.other]\nallow = 1", false),
            ("[package.metadata.oxisycl]\nallow = []", false),
            ("[package.metadata.oxisycl]\nallow = [\"host_capture\"]", true),
            ("[package.metadata]\noxisycl.allow = [\"host_capture\", \"host_capture\"]", true),
        ] {
            assert_eq!(allowed_by("lists", metadata), Ok(expected), "{metadata}");
        }
        assert_eq!(Allowed::by_manifest("/none/Cargo.toml".as_ref()), Ok(Allowed::default()));
    }

    #[test]
    fn a_manifest_that_allows_something_else_is_an_error_with_its_path() {
        for (allow, found) in [
            ("\"host_capture\"", "found string"),
            ("[1]", "found integer"),
            ("[\"host_captures\"]", "expected \"host_capture\", found \"host_captures\""),
            ("{ host_capture = true }", "found table"),
        ] {
            let error = allowed_by("else", &format!("[package.metadata.oxisycl]\nallow = {allow}")).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("/Cargo.toml: package.metadata.oxisycl.allow: "), "{error}");
            assert!(error.contains(found), "{error}");
        }
    }
}
