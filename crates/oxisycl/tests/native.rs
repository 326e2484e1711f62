//! Native code of the device compiler on the host: that it runs, that the setting turns it off, and what is refused.
//!
//! The functions are the test's own. They are registered as a link unit registers those of the compiler, and call the kernel's plain code as these do.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_vendor = "unknown"))]

#[path = "support/child.rs"]
mod child_process;
#[path = "support/own_images.rs"]
mod own_images;
mod support;

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use oxisycl::group::Fixed1;
use oxisycl::group::nd::NdItem;
use oxisycl::kernel_bundle::{Executable, KernelBundle};
use oxisycl::observe;
use oxisycl::prelude::*;
use oxisycl::{HostLevel, ImageTarget};
use oxisycl_device::group::GroupForm;
use oxisycl_device::group::nd::ByItem;
use oxisycl_device::{DescribeKernel, RangeForm};
use oxisycl_image::{Argument, DeviceImage, Form, KernelEntry, ParameterLayout, encode_bundle};
use oxisycl_runtime::program::{__oxisycl_register_native, __oxisycl_unregister_images, KernelKey};
use oxisycl_types::{HostChunk, LaunchRange, NativeEntry};

use child_process::{role, run};
use own_images::{image_of, kernel};
use support::{alone, refused};

/// How often native code has run a chunk.
static CHUNKS: AtomicUsize = AtomicUsize::new(0);

/// A bundle without images, which registers itself before `main` as a link unit does.
static EMPTY: [u8; 24] = {
    let mut bundle = *b"OXISYCLB\0\0\0\0\0\0\0\0\x18\0\0\0\0\0\0\0";
    bundle[8] = oxisycl_image::VERSION as u8;
    bundle
};

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn register() {
        static TABLE: [Option<NativeEntry>; 1] = [None];
        // SAFETY: constants are valid for ever, and no image names a function.
        unsafe { __oxisycl_register_native(EMPTY.as_ptr(), EMPTY.len(), TABLE.as_ptr(), TABLE.len()) };
    }
    register
};

/// What the compiler makes of a kernel: a function of C's calling convention around its plain code.
unsafe extern "C-unwind" fn native<K>(arguments: *const u8, launch: &LaunchRange, chunk: &HostChunk)
where
    K: for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync,
{
    CHUNKS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller keeps the contract of the plain entry.
    unsafe { RangeForm::<K, 1>(PhantomData).entry()(arguments, launch, chunk) }
}

fn entry_of<K>(_: &K) -> NativeEntry
where
    K: for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync,
{
    native::<K>
}

/// A bundle in memory of the program, with its table of native entries. Taken back when this is dropped.
struct Native {
    bytes: (*const u8, usize),
    _table: Vec<Option<NativeEntry>>,
}

impl Native {
    fn new(images: &[DeviceImage], table: Vec<Option<NativeEntry>>) -> Self {
        static MEMORY: [AtomicU8; 1 << 16] = [const { AtomicU8::new(0) }; 1 << 16];
        static USED: AtomicUsize = AtomicUsize::new(0);
        let bundle = encode_bundle(images).unwrap();
        let begin = USED.fetch_add(bundle.len(), Ordering::Relaxed);
        let memory = &MEMORY[begin..begin + bundle.len()];
        memory.iter().zip(&bundle).for_each(|(byte, value)| byte.store(*value, Ordering::Relaxed));
        let bytes = (memory.as_ptr().cast::<u8>(), bundle.len());
        // SAFETY: the bytes are not changed any more. The table lives until both are taken back, and each function is that of the kernel whose
        // image names it.
        unsafe { __oxisycl_register_native(bytes.0, bytes.1, table.as_ptr(), table.len()) };
        Self { bytes, _table: table }
    }

    /// The native code of one kernel.
    fn of<K>(kernel: &K) -> Self
    where
        K: for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static,
    {
        Self::new(&[image(kernel, 0)], vec![Some(entry_of(kernel))])
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: registered by `new`.
        unsafe { __oxisycl_unregister_images(self.bytes.0, self.bytes.1) };
    }
}

/// The image of a kernel for every processor, which names a function of the table.
fn image<K: 'static>(kernel: &K, place: u32) -> DeviceImage {
    let target = Device::default().unwrap().native_levels().last().unwrap().clone();
    DeviceImage { target, code: DeviceImage::native_code(place), ..image_of(kernel) }
}

/// Launches the kernel on the host. Returns how many launches and chunks ran native code.
fn launches(kernel: impl for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static) -> (u64, bool) {
    let (before, chunks) = (observe::counters(), CHUNKS.load(Ordering::Relaxed));
    let queue = Queue::new(&Device::default().unwrap()).unwrap();
    queue.parallel_for(100, kernel).unwrap().wait().unwrap();
    let done = observe::counters() - before;
    assert_eq!(done.kernels, 1);
    (done.native_kernels, CHUNKS.load(Ordering::Relaxed) > chunks)
}

static SUM: AtomicUsize = AtomicUsize::new(0);

/// What this program does when one of its tests starts it again.
#[test]
fn child() {
    let add = kernel(|item| _ = SUM.fetch_add(item.index(), Ordering::Relaxed));
    match role().as_deref() {
        None => {}
        Some("runs") => {
            let _native = Native::of(&add);
            println!("native={:?}", launches(add));
            println!("sum={}", SUM.load(Ordering::Relaxed));
        }
        Some("has_a_stale_bundle") => {
            let other = kernel(|item| _ = SUM.fetch_add(item.index(), Ordering::Relaxed));
            // The first was built for other captures, and the table lacks the function of the second.
            let mut stale = image(&add, 0);
            stale.kernels[0].parameters.size = 8;
            let _native = Native::new(&[stale, image(&other, 1)], vec![Some(entry_of(&add))]);
            println!("native={:?}", [launches(add), launches(add), launches(other)]);
            println!("sum={}", SUM.load(Ordering::Relaxed));
        }
        Some(other) => panic!("no role {other}"),
    }
}

#[test]
fn a_kernel_runs_its_native_code_as_long_as_that_is_registered() {
    let _alone = alone();
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = kernel(|_| _ = COUNT.fetch_add(1, Ordering::Relaxed));
    assert_eq!(launches(count), (0, false));
    let native = Native::of(&count);
    assert_eq!([launches(count), launches(count)], [(1, true); 2]);
    assert_eq!(launches(kernel(|_| {})), (0, false), "another kernel");
    let (simulated, _control) = support::simulated(1);
    let queue = Queue::new(&simulated[0]).unwrap();
    let chunks = CHUNKS.load(Ordering::Relaxed);
    queue.parallel_for(100, count).unwrap().wait().unwrap();
    assert_eq!(CHUNKS.load(Ordering::Relaxed), chunks, "only the host takes native code");
    drop(native);
    assert_eq!(launches(count), (0, false));
    assert_eq!(COUNT.load(Ordering::Relaxed), 5 * 100);
}

#[test]
fn a_kernel_of_a_bundle_runs_its_native_code() {
    let _alone = alone();
    let nothing = kernel(|_| {});
    let _native = Native::of(&nothing);
    let queue = Queue::new(&Device::default().unwrap()).unwrap();
    let bundle = KernelBundle::<Executable>::new(queue.context()).unwrap();
    let before = observe::counters();
    let submitted = queue.submit(|cg| {
        cg.use_bundle(&bundle)?;
        cg.parallel_for(100, nothing)
    });
    submitted.unwrap().wait().unwrap();
    let done = observe::counters() - before;
    assert_eq!((done.kernels, done.native_kernels), (1, 1));
}

/// The kernel of an nd-range over groups of four work-items.
type NdForm<K> = GroupForm<ByItem<'static, Fixed1<4>, (), K>, 1>;

unsafe extern "C-unwind" fn native_nd<K>(arguments: *const u8, launch: &LaunchRange, chunk: &HostChunk)
where
    K: for<'wi, 'cg> Fn(NdItem<'wi, 'cg, 1, Fixed1<4>>, ()) + Copy + Send + Sync + 'static,
{
    CHUNKS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller keeps the contract of the plain entry.
    unsafe { NdForm::<K>::NEW.entry()(arguments, launch, chunk) }
}

fn native_of_nd<K>(_: &K) -> Native
where
    K: for<'wi, 'cg> Fn(NdItem<'wi, 'cg, 1, Fixed1<4>>, ()) + Copy + Send + Sync + 'static,
{
    let kind = NdForm::<K>::NEW;
    let ((size, align), form) = (kind.layout(), Form::Group(1));
    let key = KernelKey::new((&kind as &dyn DescribeKernel).type_id(), form);
    let mut entry = KernelEntry::new("k", key.type_id, form, ParameterLayout { size, align }, kind.type_name());
    entry.arguments = kind.arguments().map(Argument::list).unwrap_or_default();
    let image = DeviceImage { kernels: vec![entry], ..image(&(), 0) };
    Native::new(&[image], vec![Some(native_nd::<K>)])
}

#[test]
fn work_items_of_native_code_meet_at_barriers_and_panic_between_them() {
    let _alone = alone();
    static SEEN: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
    static IS_PICKY: AtomicBool = AtomicBool::new(false);
    let pass_on = nd_kernel(|mut item, ()| {
        let id = item.global_linear_id();
        SEEN[id].fetch_add(id, Ordering::Relaxed);
        item.group().barrier();
        let next = SEEN[id / 4 * 4 + (id + 1) % 4].load(Ordering::Relaxed);
        item.group().barrier();
        SEEN[id].fetch_add(10 * next, Ordering::Relaxed);
        assert!(id != 6 || !IS_PICKY.load(Ordering::Relaxed), "no {id}");
    });
    let _native = native_of_nd(&pass_on);
    let queue = Queue::new(&Device::default().unwrap()).unwrap();
    let launch = || queue.submit(|cg| cg.parallel_for_nd_range((8, Fixed1::<4>), (), pass_on)).unwrap().wait();
    let (before, chunks) = (observe::counters(), CHUNKS.load(Ordering::Relaxed));
    launch().unwrap();
    let seen = SEEN.each_ref().map(|seen| seen.load(Ordering::Relaxed));
    assert_eq!(seen, [10, 21, 32, 3, 54, 65, 76, 47]);
    IS_PICKY.store(true, Ordering::Relaxed);
    refused(launch(), oxisycl::ErrorCode::Kernel, &["work-item [6]", "no 6"]);
    assert_eq!((observe::counters() - before).native_kernels, 2);
    assert!(CHUNKS.load(Ordering::Relaxed) > chunks);
}

/// Gives a closure the signature of a kernel over an nd-range.
fn nd_kernel<K>(kernel: K) -> K
where
    K: for<'wi, 'cg> Fn(NdItem<'wi, 'cg, 1, Fixed1<4>>, ()) + Copy + Send + Sync + 'static,
{
    kernel
}

#[test]
fn a_panic_in_native_code_has_its_message_place_and_work_item() {
    let _alone = alone();
    let line = line!() + 1;
    let picky = kernel(|item| assert!(item.index() != 77, "no {}", item.index()));
    let _native = Native::of(&picky);
    let queue = Queue::new(&Device::default().unwrap()).unwrap();
    let before = observe::counters();
    let place = format!("native.rs:{line}:");
    let parts = ["work-item [77]", &place, "no 77"];
    let event = queue.parallel_for(100, picky).unwrap();
    refused(event.wait(), oxisycl::ErrorCode::Kernel, &parts);
    assert_eq!((observe::counters() - before).native_kernels, 1);
}

#[test]
fn the_host_takes_levels_from_the_highest_down_to_none() {
    let device = Device::default().unwrap();
    let levels: Vec<Option<HostLevel>> = device
        .native_levels()
        .iter()
        .map(|target| match target {
            ImageTarget::Host { triple, level } if triple.starts_with("x86_64-unknown-linux-") => *level,
            other => panic!("{other}"),
        })
        .collect();
    assert!(levels.is_sorted_by(|a, b| a > b) && levels.last() == Some(&None), "{levels:?}");
    let (simulated, _control) = support::simulated(1);
    assert!(simulated[0].native_levels().is_empty());
}

#[test]
fn the_setting_turns_native_code_off() {
    for (variables, expected) in [
        (&[][..], "(1, true)"),
        (&[("OXISYCL_HOST_CODE", "auto")], "(1, true)"),
        (&[("OXISYCL_HOST_CODE", "plain")], "(0, false)"),
    ] {
        let ended = run("runs", variables).succeeded();
        assert_eq!((ended.value("native"), ended.value("sum")), (expected, "4950"), "{ended:#?}");
        assert!(ended.reports().is_empty(), "{ended:#?}");
    }
}

#[test]
fn code_of_another_build_is_refused_with_one_report_and_plain_code_runs() {
    let ended = run("has_a_stale_bundle", &[]).succeeded();
    assert_eq!(
        (ended.value("native"), ended.value("sum")),
        ("[(0, false), (0, false), (0, false)]", "14850"),
        "{ended:#?}"
    );
    let [report] = &ended.reports()[..] else { panic!("{ended:#?}") };
    assert!(report.contains("its captures are 8 bytes with alignment 1 in the image, but 0 bytes"), "{report}");
    let quiet = run("has_a_stale_bundle", &[("OXISYCL_HOST_CODE", "plain")]).succeeded();
    assert!(quiet.reports().is_empty(), "{quiet:#?}");
}

#[test]
fn a_traced_kernel_tells_which_code_it_ran() {
    let path =
        std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("native-{}.json", std::process::id()));
    let codes = |host_code: &str| {
        let trace = path.to_str().unwrap();
        run("runs", &[("OXISYCL_TRACE", trace), ("OXISYCL_HOST_CODE", host_code)]).succeeded();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        text.matches("\"code\":\"baseline\"").count()
    };
    assert_eq!((codes("auto"), codes("plain")), (1, 0));
}
