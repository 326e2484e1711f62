//! Folders below the user's cache folder that other users cannot write to.

use std::env;
use std::path::{Path, PathBuf};

use oxisycl_cache::make_private;

use crate::failure::{Failure, Result};

/// A folder of the user's, whose content no other user has changed.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// The folder of this name for all of the user's builds, made if it is missing.
    ///
    /// # Errors
    /// If there is none, it cannot be made, or another user could have written to it.
    pub(crate) fn of_user(name: &str) -> Result<Self> {
        let root = user_cache(|name| env::var_os(name).map(PathBuf::from)).ok_or_else(|| {
            Failure::new("there is no cache folder: neither XDG_CACHE_HOME nor HOME names an absolute path")
        })?;
        Self::at(&root.join("oxisycl").join(name))
    }

    /// A folder at a path, whose parent is one as well.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let parent = path.parent().unwrap_or(path);
        for folder in [parent, path] {
            make_private(folder).map_err(|error| Failure::file(folder, error))?;
        }
        Ok(Self { path: path.to_owned() })
    }

    /// The folder's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn user_cache(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let in_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(in_home)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, DirBuilder};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};

    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn the_folder_is_the_users_own() {
        let only =
            |known: &'static str, path: &'static str| move |name: &str| (name == known).then(|| PathBuf::from(path));
        assert_eq!(user_cache(only("XDG_CACHE_HOME", "/c")), Some("/c".into()));
        assert_eq!(user_cache(only("XDG_CACHE_HOME", "c")), None);
        let home = user_cache(only("HOME", "/h")).unwrap();
        assert!(home.starts_with("/h") && home != Path::new("/h"));
    }

    #[test]
    fn a_new_folder_is_private_and_found_again() {
        let scratch = Scratch::new("private-new");
        let path = scratch.path().join("oxisycl/images");
        for _ in 0..2 {
            assert_eq!(PrivateFolder::at(&path).unwrap().path(), path);
        }
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let scratch = Scratch::new("private-open");
        let path = scratch.path().join("oxisycl/images");
        PrivateFolder::at(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let error = PrivateFolder::at(&path).unwrap_err().to_string();
        assert!(error.ends_with("expected mode 700, found 777"), "{error}");
    }

    #[test]
    fn a_link_to_a_folder_is_refused() {
        let scratch = Scratch::new("private-link");
        let parent = scratch.path().join("oxisycl");
        DirBuilder::new().mode(0o700).create(&parent).unwrap();
        symlink(scratch.path(), parent.join("images")).unwrap();
        assert!(PrivateFolder::at(&parent.join("images")).is_err());
    }
}
