//! Which kernels the program launched in its last run, by device, so that they are loaded before anything runs.
//!
//! Only for devices whose drivers load code while no kernel runs. One file for a program and a device lies beside the binaries of drivers. It is
//! read when the first queue of the device is made, and replaced when the process ends. Nothing here fails a program: a profile that cannot be
//! read names no kernels. What it names and the program does not have is left out.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use oxisycl_backend::Device;
use oxisycl_cache::CacheFolder;
use oxisycl_image::Form;
use parking_lot::Mutex;

use super::disk_cache::{DiskCache, hash};
use super::{KernelKey, link_unit};

/// Most kernels of a profile.
const MOST_KERNELS: usize = 4096;
/// The first line, with a number that is another one for every change of the rest.
const HEADER: &str = "kernels 1";

/// Which kernels are loaded before the first launch on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoadAhead {
    /// The kernels that the last run launched.
    Profile,
    /// No kernel.
    Nothing,
    /// Every kernel that the device can run.
    All,
}

/// Identity and form of kernels, in an order.
type Kernels = BTreeSet<([u8; 16], u8, u8)>;

/// The profiles of all devices.
pub(super) struct Profiles {
    setting: OnceLock<LoadAhead>,
    devices: Mutex<Vec<OfDevice>>,
}

struct OfDevice {
    device: Weak<dyn Device>,
    /// The name of its entry.
    name: String,
    before: Kernels,
    launched: Kernels,
}

/// What is to be loaded on a device.
pub(super) enum Wanted {
    All,
    Some(Kernels),
}

impl Wanted {
    pub(super) fn has(&self, key: &KernelKey) -> bool {
        match self {
            Self::All => true,
            Self::Some(kernels) => kernels.contains(&line(key)),
        }
    }
}

fn line(key: &KernelKey) -> ([u8; 16], u8, u8) {
    let (form, dimensions) = match key.form {
        Form::Single => (0, 0),
        Form::Range(dimensions) => (1, dimensions),
        Form::Group(dimensions) => (2, dimensions),
        // All further forms of a type count as one, and are loaded together.
        _ => (u8::MAX, 0),
    };
    (key.type_id, form, dimensions)
}

impl Profiles {
    pub(super) const fn new() -> Self {
        Self { setting: OnceLock::new(), devices: Mutex::new(Vec::new()) }
    }

    /// Later calls change nothing. Without one nothing is loaded ahead.
    pub(super) fn set(&self, setting: LoadAhead) {
        let _ = self.setting.set(setting);
    }

    /// What is to be loaded, for the first queue of a device. `None` for later ones, or if there is nothing.
    pub(super) fn begin(&self, device: &Arc<dyn Device>, disk: Option<&DiskCache>) -> Option<Wanted> {
        let setting = *self.setting.get()?;
        let mut devices = self.devices.lock();
        if setting == LoadAhead::Nothing || devices.iter().any(|known| known.is_of(device)) {
            return None;
        }
        let name = name_of(device.as_ref());
        let before = match (setting, disk) {
            (LoadAhead::Profile, Some(disk)) => disk.profiles().read(&name, decode).unwrap_or_default(),
            _ => Kernels::new(),
        };
        let device = Arc::downgrade(device);
        devices.push(OfDevice { device, name, before: before.clone(), launched: Kernels::new() });
        match setting {
            LoadAhead::All => Some(Wanted::All),
            _ => (!before.is_empty()).then_some(Wanted::Some(before)),
        }
    }

    /// Notes a kernel that is launched for the first time.
    pub(super) fn note(&self, device: &Arc<dyn Device>, key: &KernelKey) {
        if self.setting.get() == Some(&LoadAhead::Profile)
            && let Some(known) = self.devices.lock().iter_mut().find(|known| known.is_of(device))
            && known.launched.len() < MOST_KERNELS
        {
            known.launched.insert(line(key));
        }
    }

    /// Writes what was launched, at the end of the process. Nothing where nothing was, or the same as before.
    pub(super) fn write(&self, disk: &DiskCache) {
        // The thread that holds the lock may be gone.
        let Some(devices) = self.devices.try_lock_for(Duration::from_millis(100)) else { return };
        let folder = disk.profiles();
        for OfDevice { name, launched, .. } in
            devices.iter().filter(|known| !known.launched.is_empty() && known.launched != known.before)
        {
            // A profile that is not written is an old one.
            if let Ok(true) = folder.write(name, &[encode(launched).as_bytes()]) {
                folder.make_room(name);
            }
        }
    }
}

impl OfDevice {
    fn is_of(&self, device: &Arc<dyn Device>) -> bool {
        std::ptr::addr_eq(self.device.as_ptr(), Arc::as_ptr(device))
    }
}

impl DiskCache {
    /// The folder of profiles, which are small.
    fn profiles(&self) -> CacheFolder {
        CacheFolder::new(&self.path().join("profile"), self.limit().min(64 << 20), "kernels")
    }
}

/// The name of the profile of this program, or of the library that has this runtime, on a device.
fn name_of(device: &dyn Device) -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let library = link_unit::find((name_of as *const ()).cast()).map_or_else(String::new, |(_, name)| name);
    let info = device.info();
    let parts =
        [program.as_os_str().as_encoded_bytes(), library.as_bytes(), info.vendor.as_bytes(), info.name.as_bytes()];
    format!("{:032x}", hash(&parts))
}

fn encode(kernels: &Kernels) -> String {
    let mut text = format!("{HEADER}\n");
    for (type_id, form, dimensions) in kernels {
        let _ = writeln!(text, "{:032x} {form} {dimensions}", u128::from_be_bytes(*type_id));
    }
    text
}

/// The kernels of a file; `None` if it is not one of these.
fn decode(bytes: &[u8]) -> Option<Kernels> {
    let mut lines = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split('\n');
    if lines.next() != Some(HEADER) {
        return None;
    }
    let kernel = |line: &str| {
        let mut words = line.split(' ');
        let type_id = words.next().filter(|word| word.len() == 32)?;
        let type_id = u128::from_str_radix(type_id, 16).ok()?.to_be_bytes();
        let kernel = (type_id, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some(kernel)
    };
    lines.take(MOST_KERNELS).map(kernel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_as_it_was_written() {
        for kernels in [vec![], vec![([0; 16], 0, 0)], vec![([1; 16], 1, 3), ([255; 16], 2, 1)]] {
            let kernels: Kernels = kernels.into_iter().collect();
            assert_eq!(decode(encode(&kernels).as_bytes()), Some(kernels));
        }
    }

    #[test]
    fn what_is_no_profile_names_no_kernels() {
        let line = "000102030405060708090a0b0c0d0e0f 1 2";
        assert_eq!(decode(format!("{HEADER}\n{line}\n").as_bytes()).map(|kernels| kernels.len()), Some(1));
        let mut wrong = vec![String::new(), "kernels 2\n".to_owned(), HEADER.to_owned(), format!("{HEADER}\n{line}")];
        for (from, to) in [("00", "0"), ("1 2", "1"), ("1 2", "1 2 3"), ("1 2", "x 2"), ("1 2", "1 256"), ("00", "zz")]
        {
            wrong.push(format!("{HEADER}\n{}\n", line.replacen(from, to, 1)));
        }
        for text in wrong {
            assert_eq!(decode(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(decode(&[0xFF; 64]), None);
    }
}
