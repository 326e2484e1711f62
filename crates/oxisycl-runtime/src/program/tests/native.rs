//! Native code of the device compiler: which function a launch gets, and what is refused.

use std::ffi::{CStr, CString};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};

use oxisycl_backend::NativeCode;
use oxisycl_image::HostLevel;
use oxisycl_types::NativeEntry;

use super::*;

/// Memory of the program, as the kernels' plain code is: bundles lie there as a link unit's constants do.
static MEMORY: [AtomicU8; 1 << 16] = [const { AtomicU8::new(0) }; 1 << 16];
static USED: AtomicUsize = AtomicUsize::new(0);

/// A bundle and a table that are registered until this is dropped.
struct Native<'f> {
    fixture: &'f Fixture,
    bytes: (*const u8, usize),
    _table: Vec<Option<NativeEntry>>,
}

impl<'f> Native<'f> {
    fn new(fixture: &'f Fixture, images: &[DeviceImage], table: &[Option<NativeEntry>]) -> Self {
        Self::of_bytes(fixture, &encode_bundle(images).unwrap(), table)
    }

    fn of_bytes(fixture: &'f Fixture, bundle: &[u8], table: &[Option<NativeEntry>]) -> Self {
        let begin = USED.fetch_add(bundle.len().next_multiple_of(16), Ordering::Relaxed);
        let memory = &MEMORY[begin..begin + bundle.len()];
        memory.iter().zip(bundle).for_each(|(byte, value)| byte.store(*value, Ordering::Relaxed));
        let (bytes, table) = ((memory.as_ptr().cast::<u8>(), bundle.len()), table.to_vec());
        // SAFETY: the bytes are not changed any more. The table lives until both are taken back, and the entries read nothing but a number
        // that the tests pass.
        unsafe { fixture.programs.register_native(bytes.0, bytes.1, table.as_ptr(), table.len()) };
        Self { fixture, bytes, _table: table }
    }
}

impl Drop for Native<'_> {
    fn drop(&mut self) {
        self.fixture.programs.unregister(self.bytes.0, self.bytes.1);
    }
}

/// Adds a number to the one that it gets the address of.
unsafe extern "C-unwind" fn add<const N: u32>(arguments: *const u8, _: &LaunchRange, _: &HostChunk) {
    // SAFETY: `runs` passes the address of such a number.
    unsafe { &*arguments.cast::<AtomicU32>() }.fetch_add(N, Ordering::Relaxed);
}

const TABLE: [Option<NativeEntry>; 4] = [Some(add::<1>), None, Some(add::<3>), Some(add::<4>)];

fn host(level: Option<HostLevel>) -> ImageTarget {
    ImageTarget::Host { triple: "t".to_owned(), level }
}

fn host_image(level: Option<HostLevel>, place: u32) -> DeviceImage {
    DeviceImage { code: DeviceImage::native_code(place), ..image(host(level), vec![entry_of::<First>("first")]) }
}

/// A device that takes code up to this level.
fn device_up_to(level: Option<HostLevel>) -> Fixture {
    const LEVELS: [Option<HostLevel>; 3] = [Some(HostLevel::V4), Some(HostLevel::V3), None];
    static TARGETS: LazyLock<[ImageTarget; 3]> = LazyLock::new(|| LEVELS.map(host));
    let begin = LEVELS.iter().position(|other| *other == level).unwrap();
    Fixture::new(RecordingConfig::new(1).with_native_levels(&TARGETS[begin..]))
}

/// What the native code of a kernel adds, and its name; nothing if plain code runs.
fn runs(fixture: &Fixture, descriptor: &KernelDescriptor) -> Option<(u32, &'static str)> {
    let code = fixture.programs.native(&fixture.devices[0], descriptor)?;
    let number = AtomicU32::new(0);
    let chunk = HostChunk::new(0, 1);
    // SAFETY: all functions of the tests take the address of a number.
    unsafe { (code.entry)((&raw const number).cast(), &LaunchRange::SINGLE, &chunk) };
    Some((number.load(Ordering::Relaxed), NativeCode::name(code.level)))
}

/// Why the native code of a kernel is refused.
#[track_caller]
fn why(fixture: &Fixture) -> String {
    fixture.programs.find_native(&*fixture.devices[0], &descriptor::<First>("a")).unwrap_err().why
}

#[test]
fn the_highest_level_that_the_device_takes_is_run() {
    let images = [host_image(None, 0), host_image(Some(HostLevel::V4), 3), host_image(Some(HostLevel::V3), 2)];
    for (level, expected) in
        [(None, (1, "baseline")), (Some(HostLevel::V3), (3, "x86-64-v3")), (Some(HostLevel::V4), (4, "x86-64-v4"))]
    {
        let fixture = device_up_to(level);
        let _native = Native::new(&fixture, &images, &TABLE);
        let descriptor = descriptor::<First>("a");
        assert_eq!(runs(&fixture, &descriptor), Some(expected));
        assert_eq!(runs(&fixture, &descriptor), Some(expected), "as the launch before");
        assert_eq!(runs(&fixture, &super::descriptor::<Second>("b")), None, "it has no image");
        assert!(fixture.programs.natives.refused.lock().is_empty());
    }
    // Devices of several levels beside each other, each asked again after the other.
    let (mut fixture, other) = (device_up_to(Some(HostLevel::V4)), device_up_to(Some(HostLevel::V3)));
    fixture.devices.extend(other.devices);
    let _native = Native::new(&fixture, &images, &TABLE);
    let level = |device: usize| {
        fixture.programs.native(&fixture.devices[device], &descriptor::<First>("a")).map(|code| code.level.unwrap())
    };
    assert_eq!([0, 1, 0, 1].map(level), [HostLevel::V4, HostLevel::V3, HostLevel::V4, HostLevel::V3].map(Some));
    // Without native code for it, plain code runs, and that is no fault.
    let fixture = device_up_to(Some(HostLevel::V3));
    let _native = Native::new(&fixture, &images[1..2], &TABLE);
    assert_eq!(runs(&fixture, &descriptor::<First>("a")), None);
    let gpu = Fixture::gpu();
    let _native = Native::new(&gpu, &images, &TABLE);
    assert_eq!(runs(&gpu, &descriptor::<First>("a")), None);
    assert!(fixture.programs.natives.refused.lock().is_empty() && gpu.programs.natives.refused.lock().is_empty());
}

#[test]
fn the_setting_says_which_code_runs() {
    let images = [host_image(None, 0), host_image(Some(HostLevel::V4), 3), host_image(Some(HostLevel::V3), 2)];
    for (code, expected) in [
        (HostCode::Auto, Some(4)),
        (HostCode::UpTo(HostLevel::V4), Some(4)),
        (HostCode::UpTo(HostLevel::V3), Some(3)),
        (HostCode::Plain, None),
    ] {
        let fixture = device_up_to(Some(HostLevel::V4));
        fixture.programs.set_host_code(code);
        let _native = Native::new(&fixture, &images, &TABLE);
        assert_eq!(runs(&fixture, &descriptor::<First>("a")).map(|(number, _)| number), expected, "{code:?}");
    }
}

#[test]
fn native_code_is_gone_with_its_bundle() {
    let fixture = device_up_to(Some(HostLevel::V3));
    let descriptor = descriptor::<First>("a");
    let first = Native::new(&fixture, &[host_image(Some(HostLevel::V3), 0)], &TABLE);
    assert_eq!(runs(&fixture, &descriptor).unwrap().0, 1);
    drop(first);
    assert_eq!(runs(&fixture, &descriptor), None);
    // An equal image of another bundle is of that bundle's table.
    let _second = Native::new(&fixture, &[host_image(Some(HostLevel::V3), 0)], &TABLE[2..]);
    assert_eq!(runs(&fixture, &descriptor).unwrap().0, 3);
}

#[test]
fn images_of_other_link_units_do_not_count() {
    let fixture = device_up_to(Some(HostLevel::V3));
    let bundle = encode_bundle(&[host_image(Some(HostLevel::V3), 0)]).unwrap();
    // SAFETY: bytes and table live until they are taken back.
    unsafe { fixture.programs.register_native(bundle.as_ptr(), bundle.len(), TABLE.as_ptr(), TABLE.len()) };
    assert_eq!(runs(&fixture, &descriptor::<First>("a")), None, "the bundle is in no link unit");
    fixture.programs.unregister(bundle.as_ptr(), bundle.len());
}

#[test]
fn wrong_images_are_refused_with_one_report_for_each_bundle() {
    let stale = |change: &dyn Fn(&mut DeviceImage)| {
        let mut image = host_image(Some(HostLevel::V3), 0);
        change(&mut image);
        image
    };
    let two = stale(&|image| image.kernels.push(entry_of::<Second>("second")));
    let place = SourceLocation { file: "other.rs".to_owned(), line: 1, column: 1 };
    for (image, expected) in [
        (
            stale(&|image| image.kernels[0].parameters.size = 24),
            "its captures are 24 bytes with alignment 8 in the image",
        ),
        (
            stale(&|image| image.kernels[0].parameters.align = 16),
            "its captures are 16 bytes with alignment 16 in the image",
        ),
        (
            stale(&|image| image.kernels[0].type_name.push('s')),
            "it is of type \"oxisycl_runtime::program::tests::Firsts\"",
        ),
        (stale(&|image| image.kernels[0].launch = Some(place.clone())), "it is launched at other.rs:1:1 in the image"),
        (stale(&|image| image.kernels[0].requirements.push("more".to_owned())), "needs more, which the device lacks"),
        (
            stale(&|image| image.code = DeviceImage::native_code(4)),
            "names function 4 of native code, which the table of 4",
        ),
        (
            stale(&|image| image.code = DeviceImage::native_code(1)),
            "names function 1 of native code, which the table of 4",
        ),
        (stale(&|image| image.code = vec![0; 3]), "its image does not name one function"),
        (two, "its image does not name one function"),
    ] {
        let fixture = device_up_to(Some(HostLevel::V3));
        let native = Native::new(&fixture, &[image], &TABLE);
        let n_refused = || fixture.programs.natives.refused.lock().len();
        for _ in 0..2 {
            assert_eq!(runs(&fixture, &descriptor::<First>("a")), None, "{expected}");
            assert_eq!(n_refused(), 1);
            let text = why(&fixture);
            assert!(
                text.starts_with("kernel \"a\" on device \"recording device 0\": ") && text.contains(expected),
                "{text}"
            );
            // Launches that are forgotten are looked up again, without another report.
            fixture.programs.natives.clear();
        }
        drop(native);
        let _right = Native::new(&fixture, &[host_image(Some(HostLevel::V3), 0)], &TABLE);
        assert_eq!(runs(&fixture, &descriptor::<First>("a")).unwrap().0, 1);
        assert_eq!(n_refused(), 1);
    }
}

#[test]
fn a_table_that_is_missing_or_a_bundle_that_cannot_be_read_is_refused() {
    let fixture = device_up_to(Some(HostLevel::V3));
    let images = [host_image(Some(HostLevel::V3), 0)];
    let _native = Native::new(&fixture, &images, &[]);
    assert_eq!(runs(&fixture, &descriptor::<First>("a")), None);
    assert!(why(&fixture).contains("which the table of 0 functions lacks"));

    let fixture = device_up_to(Some(HostLevel::V3));
    let mut bytes = encode_bundle(&images).unwrap();
    bytes.truncate(bytes.len() - 8);
    let _native = Native::of_bytes(&fixture, &bytes, &TABLE);
    for _ in 0..2 {
        assert_eq!(runs(&fixture, &descriptor::<First>("a")), None);
        assert_eq!(runs(&fixture, &descriptor::<Second>("b")), None);
    }
    assert_eq!(fixture.programs.natives.refused.lock().len(), 1);
    assert!(why(&fixture).contains("cannot be read"), "{}", why(&fixture));
}

/// A library that holds a kernel's plain code, its native code, and a bundle.
struct Library {
    handle: *mut libc::c_void,
    folder: std::path::PathBuf,
}

impl Library {
    fn load(images: &[DeviceImage]) -> Self {
        let folder = std::env::temp_dir().join(format!("oxisycl-native-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let bytes: Vec<String> = encode_bundle(images).unwrap().iter().map(u8::to_string).collect();
        let source = format!(
            "typedef void entry(unsigned *, const void *, const void *);\n\
             void plain(unsigned *a, const void *l, const void *c) {{ *a += 1; }}\n\
             static void native(unsigned *a, const void *l, const void *c) {{ *a += 7; }}\n\
             entry *const table[1] = {{ native }};\n\
             const unsigned long size = {};\n\
             const unsigned char bundle[] = {{ {} }};\n",
            bytes.len(),
            bytes.join(",")
        );
        let (file, library) = (folder.join("l.c"), folder.join("l.so"));
        std::fs::write(&file, source).unwrap();
        let made = Command::new("cc").args(["-shared", "-fPIC", "-nostdlib", "-o"]).args([&library, &file]).status();
        assert!(made.unwrap().success());
        let path = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: the library has no constructors.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null());
        Self { handle, folder }
    }

    fn symbol(&self, name: &CStr) -> *const u8 {
        // SAFETY: the handle is that of a loaded library.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!address.is_null());
        address.cast_const().cast()
    }

    /// Whether the library is loaded.
    fn is_loaded(&self) -> bool {
        let path = CString::new(self.folder.join("l.so").to_str().unwrap()).unwrap();
        // SAFETY: no code is run by this.
        let again = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if !again.is_null() {
            // SAFETY: opened above.
            unsafe { libc::dlclose(again) };
        }
        !again.is_null()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_library_is_unloaded_only_after_the_launches_that_run_its_native_code() {
    let fixture = device_up_to(Some(HostLevel::V3));
    let library = Library::load(&[host_image(Some(HostLevel::V3), 0)]);
    // SAFETY: a number of the library.
    let length = unsafe { *library.symbol(c"size").cast::<usize>() };
    let (bundle, table) = (library.symbol(c"bundle"), library.symbol(c"table"));
    // SAFETY: constants of the library, which are taken back before it is closed. Its function is one of C's calling convention that adds to a number.
    unsafe { fixture.programs.register_native(bundle, length, table.cast(), 1) };
    let mut descriptor = descriptor::<First>("a");
    // SAFETY: an address of a function, which nothing calls.
    descriptor.host_entry = unsafe { std::mem::transmute::<*const u8, HostEntry>(library.symbol(c"plain")) };
    // What a launch has.
    let hold = fixture.programs.hold_library(descriptor.host_entry).expect("a library");
    assert_eq!(runs(&fixture, &descriptor), Some((7, "x86-64-v3")));
    let code = fixture.programs.native(&fixture.devices[0], &descriptor).unwrap();
    let bundle = bundle.expose_provenance();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let closes = scope.spawn(|| {
            fixture.programs.unregister(std::ptr::with_exposed_provenance(bundle), length);
            assert!(has_ended.load(Ordering::Acquire), "the launch has not ended");
        });
        while fixture.programs.native(&fixture.devices[0], &descriptor).is_some() {
            std::thread::yield_now();
        }
        let number = AtomicU32::new(0);
        // SAFETY: as in `runs`; the library is held.
        unsafe { (code.entry)((&raw const number).cast(), &LaunchRange::SINGLE, &HostChunk::new(0, 1)) };
        assert_eq!(number.load(Ordering::Relaxed), 7);
        has_ended.store(true, Ordering::Release);
        drop(hold);
        closes.join().unwrap();
    });
    // SAFETY: nothing of the library is used any more, and its bundle was taken back.
    unsafe { libc::dlclose(library.handle) };
    assert!(!library.is_loaded());
}
