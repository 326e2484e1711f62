//! Tells whose code a source file is, by its path in the debug information. Used for messages, which show places of the user's, and to
//! decide whether code counts as the user's.
//!
//! A path is a file and the folder that it is relative to. Folders of a user may have names of ours and of the standard library's. What counts
//! are the places in which rustc, rustup and cargo keep sources, and the folders of our packages with the folder around them.

/// Prefixes of files of the standard library and its dependencies, as built by the Rust project and by Debian.
const BUILT: [&str; 3] = ["/rustc/", "/rust/deps/", "/usr/src/rustc-"];
/// A part of their paths, where the component `rust-src` is installed.
const INSTALLED: &str = "/lib/rustlib/src/";
/// Where cargo keeps downloaded packages. Sources are in folders there whose names end with a hash.
const DOWNLOADED: [&str; 2] = ["/registry/src/", "/git/checkouts/"];
/// Folders with the sources of OxiSYCL's packages that kernels have code of: in its repository, and where `cargo vendor` puts packages.
const OURS: [&str; 4] =
    ["/crates/oxisycl-device/src/", "/crates/oxisycl/src/", "/vendor/oxisycl-device/src/", "/vendor/oxisycl/src/"];

/// Whether a file belongs to the standard library.
pub(crate) fn is_library_file(file: &str, folder: &str) -> bool {
    let path = joined(file, folder);
    BUILT.iter().any(|begin| path.starts_with(begin)) || path.contains(INSTALLED)
}

/// Whether the user may have written a file.
pub(crate) fn is_users_file(file: &str, folder: &str) -> bool {
    let path = joined(file, folder);
    let is_downloaded = |part: &&str| path.split_once(*part).is_some_and(|(_, rest)| begins_with_hashed_folder(rest));
    !is_library_file(file, folder)
        && !DOWNLOADED.iter().any(is_downloaded)
        && !OURS.iter().any(|part| path.contains(part))
}

/// Whether the first folder of `path` is named like those of a registry or repository in cargo, such as `index.crates.io-1949cf8c6b5b557f`.
fn begins_with_hashed_folder(path: &str) -> bool {
    let hash = path.split('/').next().and_then(|folder| folder.rsplit_once('-')).map(|(_, hash)| hash);
    hash.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn joined(file: &str, folder: &str) -> String {
    if file.starts_with('/') { file.to_owned() } else { format!("{folder}/{file}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_dependencies_and_our_packages_are_told_from_the_user() {
        let library = [
            ("library/core/src/fmt/mod.rs", "/rustc/0123abc"),
            ("/rustc/0123abc/library/core/src/fmt/mod.rs", "/home/me/app"),
            ("src/raw/mod.rs", "/rust/deps/hashbrown-0.16.1"),
            ("/usr/src/rustc-1.95.0/library/std/src/io/mod.rs", "/home/me/app"),
            ("/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/ops.rs", "/home/me/app"),
        ];
        for (file, folder) in library {
            assert!(is_library_file(file, folder) && !is_users_file(file, folder), "{folder} {file}");
        }
        for (file, folder) in [
            ("src/lib.rs", "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/hex-0.4.3"),
            ("/home/me/.cargo/git/checkouts/hex-1949cf8c6b5b557f/0123abc/src/lib.rs", "/home/me/app"),
            ("crates/oxisycl-device/src/accessor.rs", "/home/me/oxisycl"),
            ("src/queue.rs", "/home/me/app/vendor/oxisycl"),
        ] {
            assert!(!is_library_file(file, folder) && !is_users_file(file, folder), "{folder} {file}");
        }
    }

    #[test]
    fn folders_of_the_user_may_have_names_of_ours_and_of_libraries() {
        for (file, folder) in [
            ("src/main.rs", "/home/me/app"),
            ("library/src/lib.rs", "/home/me/app"),
            ("library/core/src/lib.rs", "/home/me/app"),
            ("registry/src/data-types/mod.rs", "/home/me/app"),
            ("src/main.rs", "/home/me/oxisycl"),
            ("demo/src/main.rs", "/home/me/oxisycl-device"),
            ("my-oxisycl/src/main.rs", "/home/me"),
            ("/home/me/rustc/src/main.rs", "/home/me/rustc"),
        ] {
            assert!(is_users_file(file, folder) && !is_library_file(file, folder), "{folder} {file}");
        }
    }
}
