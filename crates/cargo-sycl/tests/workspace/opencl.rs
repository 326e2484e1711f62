//! A whole program on an OpenCL device: results, output, a panic with its place, and a kernel that only other targets run. Needs a driver
//! that takes SPIR-V: the tests are ignored, and run by `cargo xtask` where one is (`cargo test -- --include-ignored`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use crate::project::{Project, succeed};
use crate::{constants, open_and_close};

const PROGRAM: &str = r#"
use oxisycl::BackendKind;
use oxisycl::prelude::*;

// With more variables than such devices have room for.
fn calling_itself(n: u64) -> u64 {
    let mut memory = [n; 160];
    memory[n as usize % 160] += 1;
    if n == 0 {
        return 1;
    }
    let rest = calling_itself(n - 1);
    rest.wrapping_mul(3).wrapping_add(memory[rest as usize % 160])
}

fn main() {
    let queue = Queue::default().unwrap();
    println!("{}, only processors: {}", queue.device().backend(), Device::all().unwrap().iter().all(Device::is_cpu));
    let calls = Buffer::from_vec(vec![0u64; 4]).unwrap();
    let event = queue.submit(|cg| {
        let calls = cg.access(&calls, Write.no_init());
        cg.parallel_for(4, move |item| calls.set(item, calling_itself(item.index() as u64)))
    });
    match event {
        Ok(_) => println!("{:?}", calls.into_vec().unwrap()),
        Err(error) => println!("{:?}: {error}", error.code()),
    }
    if queue.device().backend() == BackendKind::Host {
        return;
    }
    let n = 1000;
    let sums = kernels::mapped((0..n).map(|x| x as f32).collect(), |x| x.sqrt().mul_add(x, 0.5) / 3.0);
    let right = |(i, &sum): (usize, &f32)| sum == (i as f32).sqrt().mul_add(i as f32, 0.5) / 3.0;
    println!("{} of {n} right", sums.iter().enumerate().filter(|sum| right(*sum)).count());
    let numbers = Buffer::from_vec(vec![1u32; n]).unwrap();
    let event = queue.submit(|cg| {
        let numbers = cg.access(&numbers, Read);
        cg.parallel_for(n, move |item: Item<1>| {
            let view = numbers.view(item);
            let i = item.id()[0];
            if i == 7 {
                oxisycl::println!("item {i} reads {}", view[i]);
            }
            assert!(view[i + usize::from(i == 900) * 200] == 1);
        })
    });
    let told = event.and_then(|event| event.wait()).unwrap_err().to_string();
    println!("{}", told.contains("work-item [900]") && told.contains("index [1100] is outside the accessor's range [1000]"));
}
"#;

/// Safe code that once broke the promise. The compiler's special treatment of library functions must not reach a user's functions of the
/// same names. Fast arithmetic must not make values undefined. Also the panics of older editions.
const HOSTILE: &str = r#"
#![forbid(unsafe_code)]
use oxisycl::{float, prelude::*};

#[derive(Clone, Copy)]
struct Found<'k> { values: &'k [u32], first: usize, last: usize }

#[inline(never)]
fn precondition_check<'k>(values: &'k [u32], index: usize) -> Found<'k> {
    Found { values, first: index % values.len(), last: values.len() - 1 }
}

mod core {
    #[inline(never)]
    pub fn precondition_check(values: &mut [u32; 4], index: usize) {
        values[index % 4] = 3;
    }
}

mod math {
    pub mod frexp {
        #[inline(never)]
        pub fn frexp(x: f32) -> (f32, i32) { (x * 2.0, 42) }
    }
    pub mod arch { pub mod x86 {
        #[inline(never)]
        pub fn sqrtf(x: f32) -> f32 { x + 1.0 }
        pub mod fma {
            #[inline(never)]
            pub fn fmaf(index: usize, n: usize) -> usize { index % n }
        }
    } }
}

mod oxisycl_device { pub mod builtin {
    #[inline(never)]
    pub fn second_position_x() -> u64 { 5 }
} }

fn main() {
    let queue = Queue::default().unwrap();
    println!("{}", queue.device().backend());
    let small = Buffer::from_vec(vec![7u32; 4]).unwrap();
    let checked = Buffer::from_vec(vec![[1u32; 4]; 16]).unwrap();
    queue.submit(|cg| {
        let (small, checked) = (cg.access(&small, Read), cg.access(&checked, Write));
        cg.parallel_for(16, move |item: Item<1>| {
            let mut array = [0; 4];
            core::precondition_check(&mut array, item.index());
            let found = precondition_check(small.view(item).as_slice(), item.index());
            let [first, last] = [found.first, found.last].map(|index| index as u32);
            checked.set(item, [array[item.index() % 4], first, last, found.values[found.first]]);
        })
    }).unwrap().wait().unwrap();
    println!("{:?}", &checked.to_vec().unwrap()[5..7]);

    let named = Buffer::from_vec(vec![[0f32; 4]; 16]).unwrap();
    queue.submit(|cg| {
        let (small, named) = (cg.access(&small, Read), cg.access(&named, Write));
        cg.parallel_for(16, move |item: Item<1>| {
            let (doubled, n) = math::frexp::frexp(item.index() as f32);
            let value = small.view(item)[math::arch::x86::fma::fmaf(item.index(), 4)];
            let more = math::arch::x86::sqrtf(value as f32);
            named.set(item, [doubled, n as f32, more, oxisycl_device::builtin::second_position_x() as f32]);
        })
    }).unwrap().wait().unwrap();
    println!("{:?}", &named.to_vec().unwrap()[4..6]);

    let ones = Buffer::from_vec(vec![1.0f32; 64]).unwrap();
    let out = Buffer::from_vec(vec![1u32; 64]).unwrap();
    queue.submit(|cg| {
        let (small, ones, out) = (cg.access(&small, Read), cg.access(&ones, Read), cg.access(&out, Write));
        cg.parallel_for(64, float::fast(move |item: Item<1>| {
            let (small, index, one) = (small.view(item), item.index(), ones.get(item));
            if index >= small.range()[0] {
                // Infinity is less than zero when negative, so that this never panics, and nothing outside of `small` is read.
                assert!(one * f32::NEG_INFINITY < 0.0);
                out.set(item, 7)
            } else {
                out.set(item, *small.at(index))
            }
        }))
    }).unwrap().wait().unwrap();
    println!("{}", out.to_vec().unwrap() == [7; 64]);

    for limit in [7, 70] {
        let event = queue.submit(|cg| {
            let small = cg.access(&small, Read);
            cg.parallel_for(64, move |item: Item<1>| old::check(item.index(), limit, small.at(item, 0)))
        });
        let told = event.and_then(|event| event.wait()).map_err(|error| error.to_string());
        println!("{:?}", told.map_err(|error| (error.contains("work-item [7]"), error.contains("seven is too many"))));
    }
    let event = queue.submit(|cg| {
        let small = cg.access(&small, Read);
        cg.parallel_for(64, move |item: Item<1>| old::assert(item.index(), small.at(item, 0)))
    });
    println!("{}", event.and_then(|event| event.wait()).unwrap_err().to_string().contains("nine is too many"));
}
"#;

/// A crate with the standard library, of an edition in which a literal is no format string.
const OLD: [(&str, &str); 2] = [
    ("old/Cargo.toml", "[package]\nname = \"old\"\nversion = \"0.1.0\"\nedition = \"2018\"\n"),
    (
        "old/src/lib.rs",
        r#"
#[inline(never)]
pub fn check(n: usize, limit: usize, x: &u32) {
    if n == limit && *x == 7 {
        panic!("seven is too many {}");
    }
}
#[inline(never)]
pub fn assert(n: usize, x: &u32) {
    assert!(n != 9 || *x != 7, "nine is too many {}");
}
"#,
    ),
];

/// A file of the cache.
pub(crate) struct Entry {
    /// The file's number, which another file of the same name has not.
    pub(crate) file: u64,
    /// As long as it is open, no other file gets the number.
    _open: File,
    used: SystemTime,
    pub(crate) bytes: Vec<u8>,
}

/// What the programs of the test keep of drivers' binaries.
pub(crate) fn entries(project: &Project) -> BTreeMap<PathBuf, Entry> {
    let files = fs::read_dir(project.root.join("binaries")).expect("the program made the folder");
    let paths = files.map(|file| file.expect("it can be read").path());
    let entry = |path: &PathBuf| {
        let file = File::open(path).expect("a file");
        let metadata = file.metadata().unwrap();
        let (used, bytes) = (metadata.modified().unwrap(), fs::read(path).expect("a file"));
        Entry { file: metadata.ino(), _open: file, used, bytes }
    };
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "bin"))
        .map(|path| (path.clone(), entry(&path)))
        .collect()
}

#[test]
#[ignore = "needs an OpenCL device that takes SPIR-V"]
fn a_program_runs_on_a_device_of_opencl() {
    let project = Project::new("opencl");
    let (devices, _) = succeed(&mut project.sycl(&["ls"]));
    let takes_spirv = devices.contains("opencl:0 ") && devices.contains("runs images for spirv1.2");
    assert!(takes_spirv, "no OpenCL device takes SPIR-V: {devices}");
    let manifest = fs::read_to_string(project.root.join("Cargo.toml")).expect("the workspace has a manifest");
    project.write("Cargo.toml", &manifest.replace("features = [\"cuda\"]", "features = [\"opencl\"]"));
    project.write("app/src/main.rs", PROGRAM);
    // Both default targets, of which one cannot run the kernel that calls itself.
    let (_, messages) = succeed(&mut project.sycl_as_is(&["build", "--package", "app", "--bin", "app"]));
    assert!(!messages.contains("warning"), "{messages}");
    assert!(
        messages.contains("note: 1 kernel has no image for spirv1.2: app::main::{{closure}}::{{closure}};"),
        "{messages}"
    );
    let kernels = project.inspect("target/sycl/debug/app");
    assert!(kernels.contains("sm_70: 5 kernels, ") && kernels.contains("spirv1.2: 4 kernels, "), "{kernels}");
    let files = ["inspect", "target/sycl/debug/app", "--emit", "spirv", "--out", "target/modules"];
    assert_eq!(succeed(&mut project.sycl(&files)).0, "4 files in target/modules\n");
    for file in fs::read_dir(project.root.join("target/modules")).expect("the folder was made") {
        let path = file.expect("it can be read").path();
        let code = fs::read(&path).expect("a file");
        assert!(path.extension().is_some_and(|end| end == "spv") && code.starts_with(&[3, 2, 0x23, 7]), "{path:?}");
    }
    let run = |selector: Option<&str>| {
        let mut command = Command::new(project.root.join("target/sycl/debug/app"));
        command.env("OXISYCL_CACHE_DIR", project.root.join("binaries")).env_remove("OXISYCL_CACHE_SIZE");
        command.env_remove("OXISYCL_DEVICE_SELECTOR");
        command.envs(selector.map(|selector| ("OXISYCL_DEVICE_SELECTOR", selector)));
        let Output { status, stdout, stderr } = command.output().expect("the program can be started");
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{selector:?}: {status}\n{stdout}\n{stderr}");
        stdout.into_owned()
    };
    let run_and_check = || {
        let output = run(Some("opencl:0"));
        let (backend, rest) = output.split_once('\n').expect("several lines");
        let (refusal, rest) = rest.split_once('\n').expect("several lines");
        assert!(backend.starts_with("opencl,"), "{output}");
        assert!(
            refusal.starts_with("KernelNotSupported: ") && refusal.contains("spirv1.2 cannot run it: recursion"),
            "{output}"
        );
        assert_eq!(rest, "1000 of 1000 right\nitem 7 reads 1\ntrue\n");
    };
    run_and_check();
    // The driver's binaries of the two kernels that ran. Who uses one says when, and who replaces it makes another file.
    let made = entries(&project);
    assert_eq!(made.len(), 2, "{:?}", made.keys());
    let long_ago = SystemTime::now() - Duration::from_secs(86400);
    let age =
        || made.keys().for_each(|path| File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap());
    let is_recent = |entry: &Entry| entry.used.elapsed().is_ok_and(|time| time < Duration::from_secs(3600));
    age();
    run_and_check();
    let used = entries(&project);
    for (path, entry) in &used {
        assert!(is_recent(entry), "{} was not used", path.display());
        let first = made.get(path).unwrap_or_else(|| panic!("{} is new", path.display()));
        assert!((entry.file, &entry.bytes) == (first.file, &first.bytes), "{} was made anew", path.display());
    }
    assert_eq!(used.len(), made.len());

    // One whose last byte changed, and one that lost it: made anew, and right again.
    for (position, (path, entry)) in used.iter().enumerate() {
        let mut bytes = entry.bytes.clone();
        let last = bytes.pop().expect("an entry is not empty");
        bytes.extend((position == 0).then_some(!last));
        fs::write(path, bytes).unwrap();
    }
    run_and_check();
    let replaced = entries(&project);
    for (path, entry) in &replaced {
        let damaged = &used[path];
        assert!(entry.file != damaged.file && entry.bytes.len() == damaged.bytes.len(), "{}", path.display());
    }
    assert_eq!(replaced.len(), made.len());
    age();
    run_and_check();
    let used = entries(&project);
    assert!(
        used.iter().all(|(path, entry)| is_recent(entry) && entry.file == replaced[path].file),
        "they are used again"
    );
    // Of several processors the default is the host device, although the program has images for the other one.
    let output = run(None);
    if output.starts_with("host") || output.contains("only processors: true") {
        assert_eq!(output, "host, only processors: true\n[1, 5, 17, 54]\n");
    }
    what_is_the_users_stays_the_users(&project);
    libraries_run_their_kernels(&project);
    constants::values_are_put_into_the_code(&project);
}

/// Libraries that a program opens after it has started, and closes again.
fn libraries_run_their_kernels(project: &Project) {
    let packages = ["build", "--package", "shared", "--package", "second"];
    let (_, messages) = succeed(&mut project.sycl_as_is(&packages));
    assert!(!messages.contains("cannot run on") && !messages.contains("no image"), "{messages}");
    open_and_close(project, "debug", |command| {
        command.env("OXISYCL_CACHE_DIR", project.root.join("binaries"));
        for (selector, expected) in [("host:0", "42 31 1 31 3 42 closed\n"), ("opencl:0", "42 31 2 31 3 42 closed\n")] {
            let (output, _) = succeed(command.env("OXISYCL_DEVICE_SELECTOR", selector));
            assert_eq!(output, expected, "{command:?}");
        }
    });
}

fn what_is_the_users_stays_the_users(project: &Project) {
    OLD.iter().for_each(|(path, text)| project.write(path, text));
    let change = |path: &str, from: &str, to: &str| {
        let text = fs::read_to_string(project.root.join(path)).expect("a manifest");
        assert!(text.contains(from), "{path}: {text}");
        project.write(path, &text.replacen(from, to, 1));
    };
    change("Cargo.toml", "members = [", "members = [\"old\", ");
    change("app/Cargo.toml", "[dependencies]\n", "[dependencies]\nold = { path = \"../old\" }\n");
    project.write("app/src/bin/hostile.rs", HOSTILE);
    let (_, messages) = succeed(&mut project.sycl_as_is(&["build", "--package", "app", "--bin", "hostile"]));
    assert!(!messages.contains("cannot run on") && !messages.contains("no image"), "{messages}");
    let expected = "[[3, 1, 3, 7], [3, 2, 3, 7]]\n[[8.0, 42.0, 8.0, 5.0], [10.0, 42.0, 8.0, 5.0]]\ntrue\nErr((true, true))\nOk(())\ntrue\n";
    for selector in ["host:0", "opencl:0"] {
        let mut command = Command::new(project.root.join("target/sycl/debug/hostile"));
        command.env("OXISYCL_CACHE_DIR", project.root.join("binaries")).env("OXISYCL_DEVICE_SELECTOR", selector);
        let (output, _) = succeed(&mut command);
        let (backend, output) = output.split_once('\n').expect("several lines");
        assert!(selector.starts_with(backend), "{selector}: {backend}");
        assert_eq!(output, expected, "{selector}");
    }
}
