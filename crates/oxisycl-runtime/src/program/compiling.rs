//! Has drivers compile images: within a time, and not again after one of them ended two processes.
//!
//! A driver's call cannot be cancelled. It runs on a thread of its own, which is left alone when the time is over. The
//! thread keeps device and image alive, and later launches use what the driver makes. While a driver compiles, a file
//! beside the binaries says so; a file that no living process holds means that its process ended there. People end
//! processes more often than drivers do, so the next process tries once more. Invariant: a file of a living process, or
//! of one that ended in order, is never taken for that.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use oxisycl_backend::{BackendError, Device, Module};
use parking_lot::Mutex;

use super::disk_cache::{DiskCache, EntryKey};
use super::index::Image;

/// What a driver gives for an image.
pub(super) type Result = std::result::Result<Arc<dyn Module>, BackendError>;

/// What came of loading an image.
pub(super) enum Outcome {
    /// The driver has answered.
    Ended(Result),
    /// The driver has not answered yet; its answer will be here.
    Late { error: BackendError, answer: Receiver<Result> },
}

/// Has the driver compile an image.
pub(super) struct Job {
    pub(super) device: Arc<dyn Device>,
    pub(super) image: Arc<Image>,
    /// The kernel's name.
    pub(super) name: String,
    /// Where binaries are kept, and the image's name there.
    pub(super) disk: Option<(Arc<DiskCache>, EntryKey)>,
}

impl Job {
    /// Compiles, and waits no longer than `limit`.
    pub(super) fn run(self, limit: Option<Duration>) -> Outcome {
        let Some(limit) = limit else { return Outcome::Ended(self.compile()) };
        let (sender, answer) = mpsc::channel();
        let thread = thread::Builder::new().name("oxisycl-compile".to_owned());
        let compile = move || {
            let result = self.compile();
            // The receiver of the result may have the last reference to the device.
            drop(self);
            // No thread waits if the image was forgotten meanwhile.
            let _ = sender.send(result);
        };
        if let Err(error) = thread.spawn(compile) {
            return Outcome::Ended(Err(not_compiled(format!("no thread for the driver's compiler: {error}"))));
        }
        match answer.recv_timeout(limit) {
            Ok(result) => Outcome::Ended(result),
            Err(RecvTimeoutError::Timeout) => Outcome::Late { error: too_late(limit), answer },
            Err(RecvTimeoutError::Disconnected) => Outcome::Ended(Err(panicked())),
        }
    }

    fn compile(&self) -> Result {
        let image = &self.image.image;
        let marker = match &self.disk {
            Some((disk, key)) => Marker::set(disk, key, &self.name, &self.device.info().name)?,
            None => None,
        };
        // SAFETY: images come from `Programs::register`, whose caller vouches for them.
        let module = unsafe { self.device.load(image, None) };
        drop(marker);
        let module = module?;
        if let Some((disk, key)) = &self.disk
            && let Some(binary) = module.binary()
        {
            disk.write(key, &binary);
        }
        Ok(module)
    }
}

fn not_compiled(reason: String) -> BackendError {
    BackendError::NotCompiled { reason }
}

/// The driver's compiler, or this crate, panicked.
pub(super) fn panicked() -> BackendError {
    not_compiled("the thread that had the driver compile it panicked".to_owned())
}

fn too_late(limit: Duration) -> BackendError {
    not_compiled(format!(
        "the driver has not compiled it within {} s (OXISYCL_COMPILE_LIMIT; 0 sets no limit); it goes on, and launches after its end use \
         what it makes",
        limit.as_secs()
    ))
}

/// The files that this process has set, which go with it if it ends in order.
static SET: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// To be called when the process begins to end: compilations that are left alone are no crashes.
pub(super) fn process_ends() {
    // The thread that holds the lock may be gone.
    let Some(set) = SET.try_lock_for(Duration::from_millis(100)) else { return };
    for path in &*set {
        let _ = fs::remove_file(path);
    }
}

/// The processes that may end while a driver compiles an image, before no other one has it do that.
const MOST_ENDED: usize = 2;

/// What the line of a process begins with in a marker.
const PROCESS: &str = "process ";

/// A file that is there while a driver compiles an image.
#[derive(Debug)]
struct Marker {
    path: PathBuf,
    /// Locked as long as this process lives and compiles.
    file: File,
}

impl Marker {
    /// Sets the marker of an image; `None` if there can be none, or another process is compiling the same.
    ///
    /// # Errors
    /// If [`MOST_ENDED`] processes ended while a driver compiled the image.
    fn set(
        disk: &DiskCache,
        key: &EntryKey,
        kernel: &str,
        device: &str,
    ) -> std::result::Result<Option<Self>, BackendError> {
        if disk.prepare().is_err() {
            return Ok(None);
        }
        Self::set_at(&disk.marker(key), kernel, device)
    }

    fn set_at(path: &Path, kernel: &str, device: &str) -> std::result::Result<Option<Self>, BackendError> {
        let Ok(mut file) = super::disk_cache::open_marker(path) else { return Ok(None) };
        // The process that holds it lives, and is compiling.
        if file.try_lock().is_err() {
            return Ok(None);
        }
        let mut text = String::new();
        if file.read_to_string(&mut text).is_err() {
            return Ok(None);
        }
        let ended: Vec<&str> = text.lines().filter(|line| line.starts_with(PROCESS)).collect();
        if ended.len() >= MOST_ENDED {
            return Err(not_compiled(format!(
                "{} ended while the driver compiled it: the driver crashed, or they were killed; to try again, remove \"{}\", else use \
                 another device",
                ended.join(" and "),
                path.display()
            )));
        }
        // Behind that of another one, if it ended.
        let text = format!("{PROCESS}{}\nkernel {kernel}\ndevice {device}\n", std::process::id());
        if file.write_all(text.as_bytes()).is_err() {
            let _ = fs::remove_file(path);
            return Ok(None);
        }
        SET.lock().push(path.to_owned());
        Ok(Some(Self { path: path.to_owned(), file }))
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        SET.lock().retain(|path| *path != self.path);
        // Emptied first: who has opened it before it is removed gets the lock afterwards, and must not find a text.
        let _ = self.file.set_len(0);
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("oxisycl-marker-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_marker_goes_when_its_compilation_ends() {
        let folder = folder("ends");
        let path = folder.join("a.compiling");
        let marker = Marker::set_at(&path, "saxpy", "cpu").unwrap().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("process {}\nkernel saxpy\ndevice cpu\n", std::process::id()));
        // Another one of the same image is that of a living process that compiles it.
        assert!(Marker::set_at(&path, "saxpy", "cpu").unwrap().is_none());
        drop(marker);
        assert!(!path.exists());
        assert!(Marker::set_at(&path, "saxpy", "cpu").unwrap().is_some());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_marker_of_two_ended_processes_is_a_crash_until_it_is_removed() {
        let folder = folder("crash");
        let path = folder.join("a.compiling");
        let of = |process: u32| format!("process {process}\nkernel saxpy\ndevice cpu\n");
        fs::write(&path, of(7)).unwrap();
        let second = Marker::set_at(&path, "saxpy", "cpu").unwrap().expect("it is tried once more");
        assert_eq!(fs::read_to_string(&path).unwrap(), of(7) + &of(std::process::id()));
        drop(second);
        assert!(!path.exists(), "nothing is left of a compilation that succeeds");
        fs::write(&path, of(7) + &of(9)).unwrap();
        for _ in 0..2 {
            let error = Marker::set_at(&path, "saxpy", "cpu").unwrap_err().to_string();
            assert!(error.starts_with("process 7 and process 9 ended while the driver compiled it"), "{error}");
            assert!(error.contains(&format!("remove \"{}\"", path.display())), "{error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(Marker::set_at(&path, "saxpy", "cpu").unwrap().is_some());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_empty_marker_is_no_crash() {
        let folder = folder("empty");
        let path = folder.join("a.compiling");
        fs::write(&path, "").unwrap();
        assert!(Marker::set_at(&path, "saxpy", "cpu").unwrap().is_some());
        fs::remove_dir_all(folder).unwrap();
    }
}
