//! The disk cache with damaged, foreign and old files, and with many writers at once.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use oxisycl_image::ImageTarget;

use super::*;
use crate::program::tests::device_info;

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("oxisycl-cache-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name).join("cache"))
    }

    fn cache(&self, limit: u64) -> DiskCache {
        DiskCache::new(&self.0, limit)
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(parent) = self.0.parent() {
            let _ = fs::remove_dir_all(parent);
        }
    }
}

fn image(code: &[u8]) -> DeviceImage {
    DeviceImage {
        target: ImageTarget::Ptx { sm: 70 },
        kernels: Vec::new(),
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: code.to_vec(),
    }
}

fn key(code: &[u8]) -> EntryKey {
    EntryKey::new(&device_info(), "arch 1".to_owned(), &image(code))
}

const BIG: u64 = 1 << 20;

#[test]
fn what_was_written_is_read_by_another_process() {
    let folder = Folder::new();
    assert_eq!(folder.cache(BIG).read(&key(b"a")), None);
    folder.cache(BIG).write(&key(b"a"), b"binary a");
    folder.cache(BIG).write(&key(b"b"), b"");
    assert_eq!(folder.cache(BIG).read(&key(b"a")).unwrap(), b"binary a");
    assert_eq!(folder.cache(BIG).read(&key(b"b")).unwrap(), b"");
    assert_eq!(folder.cache(BIG).read(&key(b"c")), None);
    folder.cache(BIG).write(&key(b"a"), b"another");
    assert_eq!(folder.cache(BIG).read(&key(b"a")).unwrap(), b"another");
    folder.cache(BIG).remove(&key(b"a"));
    assert_eq!(folder.cache(BIG).read(&key(b"a")), None);
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn folder_and_files_are_closed_to_others() {
    let folder = Folder::new();
    folder.cache(BIG).write(&key(b"a"), b"binary");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.0), 0o700);
    assert_eq!(mode(&folder.files()[0]), 0o600);
}

#[test]
fn a_folder_that_others_can_enter_is_not_used() {
    let folder = Folder::new();
    let cache = folder.cache(BIG);
    cache.write(&key(b"a"), b"binary");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(cache.read(&key(b"a")), None);
    cache.write(&key(b"b"), b"binary");
    assert_eq!(folder.files().len(), 1);
    let message = cache.prepare().unwrap_err().to_string();
    assert_eq!(message, "expected mode 700, found 755");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o700)).unwrap();
    // Nor is one that is only a link to a folder, whose owner may change it.
    let link = folder.0.with_file_name("link");
    symlink(&folder.0, &link).unwrap();
    assert_eq!(DiskCache::new(&link, BIG).read(&key(b"a")), None);
    assert_eq!(
        DiskCache::new(&link, BIG).prepare().unwrap_err().to_string(),
        "expected a folder, found another kind of file"
    );
    assert_eq!(cache.read(&key(b"a")).unwrap(), b"binary");
}

#[test]
fn a_file_that_others_can_write_or_that_is_a_link_is_not_read_but_replaced() {
    let folder = Folder::new();
    let cache = folder.cache(BIG);
    cache.write(&key(b"a"), b"binary");
    let path = folder.files().remove(0);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(cache.read(&key(b"a")), None);
    cache.write(&key(b"a"), b"binary");
    assert_eq!(cache.read(&key(b"a")).unwrap(), b"binary");
    let elsewhere = folder.0.with_file_name("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(cache.read(&key(b"a")), None);
    cache.write(&key(b"a"), b"new");
    assert_eq!(cache.read(&key(b"a")).unwrap(), b"new");
    assert_ne!(fs::read(&elsewhere).unwrap(), fs::read(&path).unwrap());
}

#[test]
fn every_damage_of_an_entry_makes_it_absent() {
    let folder = Folder::new();
    let cache = folder.cache(BIG);
    cache.write(&key(b"a"), b"binary");
    let path = folder.files().remove(0);
    let original = fs::read(&path).unwrap();
    for offset in 0..original.len() {
        let mut bytes = original.clone();
        bytes[offset] ^= 0x41;
        assert_eq!(decode(&bytes, key(b"a").text()), None, "{offset}");
        assert_eq!(decode(&original[..offset], key(b"a").text()), None, "{offset}");
    }
    let mut longer = original.clone();
    longer.push(0);
    fs::write(&path, &longer).unwrap();
    assert_eq!(cache.read(&key(b"a")), None);
    // Another key with the same hash would find the file.
    fs::write(&path, &original).unwrap();
    assert_eq!(decode(&original, key(b"b").text()), None);
    assert_eq!(cache.read(&key(b"a")).unwrap(), b"binary");
}

/// Changes of many kinds, with a checksum that is right again: a process that can write to the folder could make one.
#[test]
fn foreign_entries_are_ignored_and_replaced() {
    let folder = Folder::new();
    let cache = folder.cache(BIG);
    cache.write(&key(b"a"), b"binary");
    let path = folder.files().remove(0);
    let original = fs::read(&path).unwrap();
    let mut state = 1_u64;
    let mut next = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % end.max(1) as u64) as usize
    };
    for case in 0..2_000 {
        let mut bytes = original.clone();
        let position = next(bytes.len());
        match next(5) {
            0 => bytes[position] ^= 1 << next(8),
            1 => bytes.truncate(position),
            2 => drop(bytes.splice(position..position, original[position..].iter().copied())),
            3 => bytes.insert(position, next(256) as u8),
            _ => {
                let number = [0, 1, u64::MAX, u64::MAX / 2, 1 << 40][next(5)].to_le_bytes();
                let place = position.min(bytes.len() - 8);
                bytes[place..place + 8].copy_from_slice(&number);
            }
        }
        let is_original = bytes == original;
        if !is_original && bytes.len() > HEADER_SIZE + key(b"a").text().len() {
            // The sum of what a reader would take for key and binary.
            let (key, binary) = bytes[HEADER_SIZE..].split_at(key(b"a").text().len());
            let sum = key::hash(&[key, binary]) as u64;
            bytes[32..HEADER_SIZE].copy_from_slice(&sum.to_le_bytes());
        }
        let found = decode(&bytes, key(b"a").text());
        // A process that can make a checksum may have changed the binary itself; its length stands in the header.
        assert!(found.is_none_or(|binary| binary.len() == b"binary".len()), "case {case}: {found:?}");
        if case % 100 == 0 {
            fs::write(&path, &bytes).unwrap();
            let _ = cache.read(&key(b"a"));
            cache.write(&key(b"a"), b"binary");
            assert_eq!(cache.read(&key(b"a")).unwrap(), b"binary");
        }
    }
    // As long as no disk is: nothing is read of it.
    File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(cache.read(&key(b"a")), None);
    cache.write(&key(b"a"), b"binary");
    assert_eq!(cache.read(&key(b"a")).unwrap(), b"binary");
}

#[test]
fn everything_that_a_binary_depends_on_is_in_its_key() {
    let info = device_info();
    let of = |info: &DeviceInfo, backend: &str, image: &DeviceImage| EntryKey::new(info, backend.to_owned(), image);
    let base = of(&info, "arch", &image(b"code"));
    let mut keys = vec![base.clone()];
    for change in [
        |info: &mut DeviceInfo| info.name.push('x'),
        |info: &mut DeviceInfo| info.vendor.push('x'),
        |info: &mut DeviceInfo| info.driver_version.push('x'),
        |info: &mut DeviceInfo| info.backend_version.push('x'),
    ] {
        let mut other = info.clone();
        change(&mut other);
        keys.push(of(&other, "arch", &image(b"code")));
    }
    keys.push(of(&info, "arch 2", &image(b"code")));
    keys.push(of(&info, "arch", &image(b"Code")));
    keys.push(of(&info, "arch", &DeviceImage { build_options: "-O1".to_owned(), ..image(b"code") }));
    keys.push(of(&info, "arch", &DeviceImage { target: ImageTarget::Ptx { sm: 80 }, ..image(b"code") }));
    for (position, key) in keys.iter().enumerate() {
        assert!(keys[..position].iter().all(|other| other.file_name() != key.file_name()), "{}", key.text());
    }
    assert_eq!(of(&info, "arch", &image(b"code")), base);
}

#[test]
fn the_entries_that_were_used_last_are_kept() {
    let folder = Folder::new();
    let entry = HEADER_SIZE + key(b"0").text().len() + 1000;
    let cache = folder.cache(3 * entry as u64 + 10);
    let hour = Duration::from_secs(3600);
    for (number, code) in [b"0", b"1", b"2"].into_iter().enumerate() {
        cache.write(&key(code), &[0; 1000]);
        let file = File::options().write(true).open(cache.0.file(key(code).file_name())).unwrap();
        file.set_modified(SystemTime::now() - hour * (10 - number as u32)).unwrap();
    }
    assert!(cache.read(&key(b"0")).is_some());
    cache.write(&key(b"3"), &[0; 1000]);
    let is_there = |code: &[u8]| cache.read(&key(code)).is_some();
    assert!(is_there(b"0") && !is_there(b"1") && is_there(b"2") && is_there(b"3"));
    // One that alone is too large is not kept, and makes no room.
    cache.write(&key(b"4"), &[0; 9000]);
    assert!(!is_there(b"4") && is_there(b"0") && is_there(b"2") && is_there(b"3"));
}

#[test]
fn a_folder_that_cannot_be_made_is_an_empty_cache() {
    for folder in ["/dev/null/cache", "/proc/cache", "/dev/null"] {
        let cache = DiskCache::new(Path::new(folder), BIG);
        cache.write(&key(b"a"), b"binary");
        assert_eq!(cache.read(&key(b"a")), None);
        assert!(cache.prepare().is_err());
    }
}

/// The folder of a child process of the next test.
const CHILD: &str = "DISK_CACHE_TEST_FOLDER";

#[test]
fn processes_that_share_a_folder_see_whole_entries() {
    let binary = vec![7; 5000];
    let limit = 2 * (HEADER_SIZE + key(b"0").text().len() + binary.len()) as u64;
    if let Some(folder) = std::env::var_os(CHILD) {
        let cache = DiskCache::new(Path::new(&folder), limit);
        for round in 0..200_u32 {
            let key = key(&[b'0' + ((round + std::process::id()) % 4) as u8]);
            cache.write(&key, &binary);
            assert!(cache.read(&key).is_none_or(|found| found == binary));
            if round % 9 == 0 {
                cache.remove(&key);
            }
        }
        return;
    }
    let folder = Folder::new();
    let name = std::thread::current().name().unwrap().to_owned();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &name]).env(CHILD, &folder.0).stdout(std::process::Stdio::null());
    let children: Vec<_> = (0..4).map(|_| command.spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let cache = folder.cache(limit);
    cache.write(&key(b"0"), &binary);
    assert_eq!(cache.read(&key(b"0")).unwrap(), binary);
    let total: u64 = folder.files().iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(total <= limit, "{total} of {limit}");
}

#[test]
fn writers_and_readers_at_the_same_time_see_whole_entries() {
    let folder = Folder::new();
    let binaries: Vec<Vec<u8>> = (0..4u8).map(|fill| vec![fill; 5000 + usize::from(fill)]).collect();
    // There is room for two of the four keys.
    let limit = 2 * (HEADER_SIZE + key(b"0").text().len() + 5003) as u64;
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (folder, binaries) = (&folder, &binaries);
            scope.spawn(move || {
                let cache = folder.cache(limit);
                for round in 0..100u8 {
                    let key = key(&[b'0' + (thread + round) % 4]);
                    cache.write(&key, &binaries[usize::from(round) % 4]);
                    if let Some(binary) = cache.read(&key) {
                        assert!(binaries.contains(&binary));
                    }
                }
            });
        }
    });
    let cache = folder.cache(limit);
    cache.write(&key(b"0"), &binaries[0]);
    let total: u64 = folder.files().iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(total <= limit, "{total} of {limit}");
    assert!(folder.files().iter().all(|path| path.extension().is_some_and(|extension| extension == "bin")));
}
