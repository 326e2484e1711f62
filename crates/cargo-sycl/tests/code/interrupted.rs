//! Builds with an assembler of the test's own. A killed build keeps the kernels that it has compiled. Kernels that the assembler refuses
//! are in no image.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, iter, thread};

use crate::program::{Package, succeed};

/// Far more than the build takes that comes before.
const PATIENCE: Duration = Duration::from_secs(300);

/// An assembler that takes everything, and says which kernel it has seen. While there is a file `hang`, it has not done with one of them.
const ASSEMBLER: &str = r#"#!/bin/sh
for input; do :; done
name=$(grep -o 'first\|second\|endless' "$input" | head -n 1)
cd "$(dirname "$0")" || exit 1
if [ "$name" = endless ] && [ -e hang ]; then
    touch hanging
    while :; do sleep 1; done
fi
echo "$name" >> seen
"#;

/// A build with all its processes, which end with it.
struct Build(Child);

impl Build {
    fn start(mut command: Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Self(command.spawn().unwrap())
    }

    fn kill(&mut self) {
        // The group's number is another's once the build has ended and was waited for.
        if let Ok(None) = self.0.try_wait() {
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.0.id())]).status();
            let _ = self.0.wait();
        }
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The files of the results for single kernels, each by its name: the file itself, which another result would replace, and its bytes.
fn kept(folder: &Path) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
    let paths = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| Some((path.clone(), (fs::metadata(&path).ok()?.ino(), fs::read(path).ok()?)));
    // One that is just being written has an extension.
    let whole = paths.filter(|path| path.extension().is_none()).filter_map(read);
    whole.filter(|(_, (_, bytes))| bytes.starts_with(b"OXIKERN1")).collect()
}

/// An assembler that refuses one kernel.
const REFUSING: &str = r#"#!/bin/sh
for input; do :; done
grep -q second "$input" || exit 0
echo "ptxas $input, line 7; error   : State space incorrect" >&2
exit 255
"#;

/// A folder of that name, with the assembler and room for a cache.
fn folder_with_assembler(name: &str, script: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let assembler = folder.join("ptxas");
    fs::write(&assembler, script).unwrap();
    fs::set_permissions(&assembler, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Builds the program with the assembler and the cache of a folder.
fn build_in(package: &Package, folder: &Path) -> Command {
    let mut command = package.command(&["build", "--targets", "sm_70", "--bin", "interrupted", "--jobs", "2"]);
    let paths = env::var_os("PATH").unwrap();
    let path = env::join_paths(iter::once(folder.to_owned()).chain(env::split_paths(&paths))).unwrap();
    command.env("XDG_CACHE_HOME", folder.join("cache")).env("PATH", path).env("MAKEFLAGS", "");
    command
}

#[test]
fn a_kernel_that_the_assembler_refuses_is_in_no_image_and_runs_on_the_host() {
    let package = Package::enter();
    let folder = folder_with_assembler("refusing", REFUSING);
    package.touch("interrupted");
    let (_, messages) = succeed(&mut build_in(&package, &folder));
    let warnings: Vec<&str> = messages.lines().filter(|line| line.contains("cannot run on")).collect();
    let [warning] = warnings[..] else { panic!("{messages}") };
    let reason = "cannot run on sm_70: ptxas refuses its code, as NVIDIA's driver would: ptxas the PTX, line 7; error   : State space incorrect";
    assert!(warning.contains("interrupted::second") && warning.contains(reason), "{warning}");

    let program = "target/sycl/debug/interrupted";
    let (code, _) = package.sycl(&["inspect", "--emit", "ptx", program]);
    let has = ["first", "second", "endless"].map(|name| code.contains(&format!("interrupted_{name}")));
    assert_eq!(has, [true, false, true], "{code}");
    let (kernels, _) = package.sycl(&["inspect", program]);
    assert!(kernels.contains("cannot run: ptxas refuses its code"), "{kernels}");
    // The host has the code of all three.
    let mut run = Command::new(package.folder().join(program));
    succeed(run.env("OXISYCL_DEVICE_SELECTOR", "host:*"));
}

#[test]
fn a_build_that_was_killed_has_kept_the_kernels_that_were_done() {
    let package = Package::enter();
    let folder = folder_with_assembler("interrupted", ASSEMBLER);
    fs::write(folder.join("hang"), "").unwrap();
    let build = || build_in(&package, &folder);

    package.touch("interrupted");
    let mut first = Build::start(build());
    let (images, start) = (folder.join("cache/oxisycl/images"), Instant::now());
    while kept(&images).len() < 2 || !folder.join("hanging").exists() {
        assert!(start.elapsed() < PATIENCE, "{:?}", kept(&images).keys());
        thread::sleep(Duration::from_millis(50));
    }
    first.kill();
    let done = kept(&images);
    let seen = || fs::read_to_string(folder.join("seen")).unwrap();
    assert_eq!((done.len(), seen().lines().count()), (2, 2));

    fs::remove_file(folder.join("hang")).unwrap();
    succeed(&mut build());
    let all = kept(&images);
    assert!(all.len() == 3 && done.iter().all(|(name, file)| all.get(name) == Some(file)), "{:?}", all.keys());
    let seen = seen();
    let mut seen: Vec<&str> = seen.lines().collect();
    assert_eq!(seen[2..], ["endless"], "only this one was compiled again");
    seen.sort_unstable();
    assert_eq!(seen, ["endless", "first", "second"]);
    let (kernels, _) = package.sycl(&["inspect", "target/sycl/debug/interrupted"]);
    assert!(kernels.starts_with("sm_70: 3 kernels"), "{kernels}");
}
