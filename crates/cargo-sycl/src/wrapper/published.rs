//! Whether a crate is the published one of its name, which a user can give to any crate.
//!
//! Where cargo has put a package tells whether it took it from a registry. It unpacks each to a folder of that registry. A folder of vendored
//! packages has the checksum of each, which cargo compares with the lock file. Members of the workspace, packages of a path and of Git are
//! not published. Does not tell one registry from another: a mirror has packages of the first one.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::sidecar::Deferred;

/// The digits of a package's checksum.
const CHECKSUM_DIGITS: usize = 64;

/// Whether a crate that was compiled like this is the library of the package that registries have under its name.
pub(crate) fn is_published(crate_name: &str, compiled: &Deferred) -> bool {
    let told = |name: &str| compiled.environment.get(name).map(String::as_str);
    let (Some(folder), Some(version)) = (told("CARGO_MANIFEST_DIR"), told("CARGO_PKG_VERSION")) else { return false };
    let folder = Path::new(folder);
    told("CARGO_PKG_NAME") == Some(crate_name)
        && is_source_in(folder, compiled)
        && (is_unpacked(folder, crate_name, version) || is_vendored(folder))
}

/// Whether the crate's source is in the folder that the environment tells of, which a build script can change.
fn is_source_in(folder: &Path, compiled: &Deferred) -> bool {
    let mut sources =
        compiled.arguments.iter().filter(|argument| !argument.starts_with('-') && argument.ends_with(".rs"));
    sources.next().is_some_and(|source| compiled.directory.join(source).starts_with(folder))
}

/// Whether it is `registry/src/INDEX/NAME-VERSION`, as cargo leaves it.
fn is_unpacked(folder: &Path, name: &str, version: &str) -> bool {
    let name_above = |n_levels| folder.ancestors().nth(n_levels).and_then(Path::file_name);
    name_above(0) == Some(OsStr::new(&format!("{name}-{version}")))
        && name_above(2) == Some(OsStr::new("src"))
        && name_above(3) == Some(OsStr::new("registry"))
        && folder.join(".cargo-ok").is_file()
}

fn is_vendored(folder: &Path) -> bool {
    let text = fs::read(folder.join(".cargo-checksum.json")).unwrap_or_default();
    let list: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let checksum = list.get("package").and_then(serde_json::Value::as_str).unwrap_or_default();
    checksum.len() == CHECKSUM_DIGITS && checksum.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    /// How cargo has a package `name` 1.0.0 in a folder compiled.
    pub(crate) fn compiled(name: &str, folder: &Path) -> Deferred {
        let environment = [
            ("CARGO_PKG_NAME", name),
            ("CARGO_PKG_VERSION", "1.0.0"),
            ("CARGO_MANIFEST_DIR", folder.to_str().unwrap()),
        ];
        Deferred {
            rustc: "/bin/rustc".into(),
            arguments: ["--edition=2021", "src/lib.rs", "--emit=link"].map(str::to_owned).into(),
            directory: folder.to_owned(),
            environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        }
    }

    #[test]
    fn what_a_registry_has_is_published() {
        let scratch = Scratch::new("published-registry");
        let folder = scratch.path().join("registry/src/index.crates.io-1949cf8c6b5b557f/libm-1.0.0");
        fs::create_dir_all(&folder).unwrap();
        assert!(!is_published("libm", &compiled("libm", &folder)), "cargo has not unpacked it");
        fs::write(folder.join(".cargo-ok"), "{\"v\":1}").unwrap();
        assert!(is_published("libm", &compiled("libm", &folder)));
        // A package of another name may call its library so.
        assert!(!is_published("libm", &compiled("other", &folder)));
        assert!(!is_published("half", &compiled("half", &folder)));
        let mut newer = compiled("libm", &folder);
        newer.environment.insert("CARGO_PKG_VERSION".to_owned(), "1.0.1".to_owned());
        assert!(!is_published("libm", &newer));
        let elsewhere = Deferred { directory: scratch.path().to_owned(), ..compiled("libm", &folder) };
        assert!(!is_published("libm", &elsewhere));
        assert!(!is_published("libm", &Deferred { environment: [].into(), ..compiled("libm", &folder) }));
    }

    #[test]
    fn what_was_vendored_with_its_checksum_is_published() {
        let scratch = Scratch::new("published-vendored");
        let folder = scratch.path().join("vendor/half");
        fs::create_dir_all(&folder).unwrap();
        let is_published = |checksums: &str| {
            fs::write(folder.join(".cargo-checksum.json"), checksums).unwrap();
            is_published("half", &compiled("half", &folder))
        };
        assert!(is_published(&format!("{{\"files\":{{}},\"package\":\"{}\"}}", "0a".repeat(32))));
        // Packages of Git have none.
        for other in ["{\"files\":{},\"package\":null}", "{\"files\":{}}", "{\"package\":\"0a\"}", "", "[1]"] {
            assert!(!is_published(other), "{other}");
        }
    }

    #[test]
    fn packages_of_a_path_or_of_git_are_not_published() {
        let scratch = Scratch::new("published-git");
        let folder = scratch.path().join("git/checkouts/libm-1.0.0/0123abc");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(".cargo-ok"), "").unwrap();
        assert!(!is_published("libm", &compiled("libm", &folder)));
    }
}
