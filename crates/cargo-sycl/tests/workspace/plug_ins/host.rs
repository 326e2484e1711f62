//! Loads plug-ins, unloads them, also while their commands are pending, and loads them again.
//!
//! Arguments: the folder of the plug-ins; what to do; for `alone` the plug-in's file.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oxisycl::prelude::*;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
    fn dlerror() -> *const c_char;
}

type WriteTo = fn(&Queue, &Buffer<f32, 1>, Option<&Event>) -> Event;
type Double = fn(&Queue, &Buffer<f32, 1>) -> Event;
type SumOfSquares = fn(&Buffer<f32, 1>) -> f32;
type BeginTask = fn(&Queue, Arc<AtomicBool>, Arc<AtomicBool>) -> Event;

struct PlugIn {
    path: String,
    handle: *mut c_void,
}

impl PlugIn {
    fn open(path: &str) -> Result<Self, String> {
        const NOW: c_int = 2;
        let name = CString::new(path).unwrap();
        let handle = unsafe { dlopen(name.as_ptr(), NOW) };
        if handle.is_null() {
            return Err(unsafe { CStr::from_ptr(dlerror()) }.to_string_lossy().into_owned());
        }
        Ok(Self { path: path.to_owned(), handle })
    }

    /// A function of it.
    fn get<F: Copy>(&self, name: &CStr) -> F {
        let function = unsafe { dlsym(self.handle, name.as_ptr()) };
        assert!(!function.is_null() && size_of::<F>() == size_of_val(&function));
        unsafe { std::mem::transmute_copy(&function) }
    }

    /// Unloads it, as far as the program knows.
    fn close(self) -> Closed {
        assert_eq!(unsafe { dlclose(self.handle) }, 0);
        Closed(self.path)
    }
}

struct Closed(String);

impl Closed {
    fn is_loaded(&self) -> bool {
        std::fs::read_to_string("/proc/self/maps").unwrap().contains(&self.0)
    }

    /// Waits until nothing of it is left.
    fn goes_away(self) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.is_loaded() {
            assert!(Instant::now() < end, "{} stays loaded", self.0);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits much longer than it would take to unload it.
    fn stays(&self) {
        std::thread::sleep(Duration::from_millis(200));
        assert!(self.is_loaded(), "{} is gone", self.0);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let open = |name: &str| PlugIn::open(&format!("{}/lib{name}.so", arguments[0])).unwrap();
    match arguments[1].as_str() {
        "host" => on_host(open),
        "gpu" => on_gpu(open),
        "native" => in_native_code(open),
        "alone" => match PlugIn::open(&arguments[2]) {
            Ok(plug_in) => {
                // This program's runtime is at work before the other one.
                Queue::default().unwrap().single_task(|_| {}).unwrap().wait().unwrap();
                println!("{}", plug_in.get::<extern "C" fn() -> f32>(c"alone")());
            }
            Err(error) => println!("refused: {error}"),
        },
        other => panic!("{other}"),
    }
}

fn on_host(open: impl Fn(&str) -> PlugIn) {
    let queue = Queue::default().unwrap();
    let numbers = Buffer::from_vec(vec![0.0f32; 100]).unwrap();
    let mut events = Vec::new();
    // Loaded and unloaded twice: the second time they have the same addresses, or others.
    for _ in 0..2 {
        let [one, two, three] = ["one", "two", "three"].map(&open);
        events.push(one.get::<WriteTo>(c"write_numbers")(&queue, &numbers, None));
        events.push(two.get::<Double>(c"double")(&queue, &numbers));
        println!("{}", three.get::<SumOfSquares>(c"sum_of_squares")(&numbers));
        [one, two, three].into_iter().map(PlugIn::close).for_each(Closed::goes_away);
    }
    // What tells of a plug-in's commands and is still there is no longer the plug-in's.
    events.iter().for_each(|event| event.wait().unwrap());
    println!("{}", events.iter().map(|event| format!("{event:?}")).filter(|text| text.contains("one::write_numbers")).count());

    // A kernel that has not begun when its library is unloaded.
    let (has_begun, may_end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let waits = may_end.clone();
    let gate = queue.submit(|cg| {
        cg.host_task(move |_| {
            while !waits.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        })
    });
    let one = open("one");
    let event = one.get::<WriteTo>(c"write_numbers")(&queue, &numbers, Some(&gate.unwrap()));
    let closed = one.close();
    closed.stays();
    // `dlclose` holds no lock that a new thread needs.
    std::thread::spawn(move || may_end.store(true, Ordering::Release)).join().unwrap();
    event.wait().unwrap();
    println!("{}", numbers.host_access(Read).unwrap()[99]);
    closed.goes_away();

    // A host task that runs.
    let one = open("one");
    let may_end = Arc::new(AtomicBool::new(false));
    let event = one.get::<BeginTask>(c"begin_task")(&queue, has_begun.clone(), may_end.clone());
    while !has_begun.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    let closed = one.close();
    closed.stays();
    may_end.store(true, Ordering::Release);
    event.wait().unwrap();
    closed.goes_away();

    // Memory and code that the program still has.
    let one = open("one");
    let buffer = one.get::<fn() -> Buffer<f32, 1>>(c"make_buffer")();
    let n_errors = Arc::new(AtomicUsize::new(0));
    let handling = one.get::<fn(Arc<AtomicUsize>) -> Queue>(c"make_queue")(n_errors.clone());
    let closed = one.close();
    closed.stays();
    println!("{:?}", buffer.clone());
    let failed = queue.submit(|cg| {
        let numbers = cg.access(&buffer, ReadWrite);
        cg.parallel_for(3, move |item| numbers.update(item, |x| x + 1.0))
    });
    failed.unwrap().wait().unwrap();
    println!("{:?}", buffer.into_vec().unwrap());
    closed.stays();
    let failed = handling.single_task(|_| panic!("a mistake")).unwrap();
    assert!(handling.wait_and_throw().is_err());
    println!("{}", n_errors.load(Ordering::Relaxed));
    drop((failed, handling));
    closed.goes_away();

    let one = open("one");
    let n_elements = Arc::new(AtomicUsize::new(0));
    let counting = one.get::<fn(Arc<AtomicUsize>) -> Buffer<f32, 1>>(c"make_counting")(n_elements.clone());
    let closed = one.close();
    queue.fill(&counting, 1.0).unwrap();
    closed.stays();
    drop(counting);
    println!("{}", n_elements.load(Ordering::Relaxed));
    closed.goes_away();

    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |thread: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(thread.unwrap().path().join("comm"));
    let mut workers: Vec<String> =
        threads.map(|thread| name(thread).unwrap()).filter(|name| name.starts_with("oxisycl-host-")).collect();
    workers.sort();
    let n_workers = workers.len();
    workers.dedup();
    println!("one pool: {}", n_workers > 0 && workers.len() == n_workers);
}

/// Launches kernels of two plug-ins, of which one comes and goes. Prints how many ran native code by then.
fn in_native_code(open: impl Fn(&str) -> PlugIn) {
    let queue = Queue::default().unwrap();
    let [numbers, others] = [(); 2].map(|()| Buffer::from_vec(vec![0.0f32; 1003]).unwrap());
    let show = |numbers: &Buffer<f32, 1>| {
        let sum: f32 = numbers.host_access(Read).unwrap().iter().sum();
        println!("{sum} {}", oxisycl::observe::counters().native_kernels);
    };
    let [one, two] = ["one", "two"].map(&open);
    let double = two.get::<Double>(c"double");
    one.get::<WriteTo>(c"write_numbers")(&queue, &numbers, None).wait().unwrap();
    double(&queue, &numbers).wait().unwrap();
    show(&numbers);
    one.close().goes_away();
    double(&queue, &numbers).wait().unwrap();
    show(&numbers);

    // Native code that has not begun when its library is unloaded, while that of the other one runs.
    let may_end = Arc::new(AtomicBool::new(false));
    let waits = may_end.clone();
    let gate = queue.submit(|cg| {
        cg.host_task(move |_| {
            while !waits.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        })
    });
    let one = open("one");
    let event = one.get::<WriteTo>(c"write_numbers")(&queue, &others, Some(&gate.unwrap()));
    let closed = one.close();
    double(&queue, &numbers).wait().unwrap();
    closed.stays();
    show(&numbers);
    may_end.store(true, Ordering::Release);
    event.wait().unwrap();
    show(&others);
    closed.goes_away();

    // What tells of a panic is there without the library.
    let one = open("one");
    let failed = one.get::<Double>(c"refuse_77")(&queue, &others);
    let closed = one.close();
    let error = failed.wait().unwrap_err();
    closed.goes_away();
    println!("{error}");
    double(&queue, &numbers).wait().unwrap();
    show(&numbers);
    two.close().goes_away();
}

/// Where a driver takes the kernels of each plug-in and does nothing for them.
fn on_gpu(open: impl Fn(&str) -> PlugIn) {
    for _ in 0..2 {
        let [one, two, three] = ["one", "two", "three"].map(&open);
        let queue = Queue::default().unwrap();
        let numbers = Buffer::from_vec(vec![7.0f32; 4]).unwrap();
        one.get::<WriteTo>(c"write_numbers")(&queue, &numbers, None).wait().unwrap();
        two.get::<Double>(c"double")(&queue, &numbers).wait().unwrap();
        println!("{:?} {}", queue.device().backend(), three.get::<SumOfSquares>(c"sum_of_squares")(&numbers));
        let n_kernels = queue.device().load_kernels().unwrap();
        [one, two, three].into_iter().map(PlugIn::close).for_each(Closed::goes_away);
        println!("{}", n_kernels - queue.device().load_kernels().unwrap());
    }
}
