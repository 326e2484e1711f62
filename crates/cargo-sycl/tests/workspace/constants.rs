//! Specialization constants on an OpenCL device. Values are put into the code of kernels, and a second process finds that code in the disk cache.

use std::fs;
use std::process::Command;

use crate::opencl::entries;
use crate::project::{Project, succeed};

const PROGRAM: &str = r#"
use oxisycl::kernel_bundle::{Executable, Input, KernelBundle};
use oxisycl::observe::counters;
use oxisycl::prelude::*;
use oxisycl::specialization::SpecId;

/// Numbers of each size, some side by side.
#[derive(Clone, Copy, DeviceCopyable)]
struct Shape {
    large: u64,
    scale: f64,
    radius: u32,
    weights: [f32; 3],
    below: i32,
    short: i16,
    is_open: bool,
    sign: i8,
}

static SHAPE: SpecId<Shape> = SpecId::new(Shape {
    large: u64::MAX - 5,
    scale: 0.5,
    radius: 3,
    weights: [1.0, -2.0, 4.0],
    below: -7,
    short: -300,
    is_open: false,
    sign: -1,
});

fn value(shape: Shape, i: usize) -> [i64; 3] {
    let Shape { large, scale, radius, weights: [a, b, c], below, short, is_open, sign } = shape;
    let sum = (0..radius).fold(i as f64, |sum, k| sum * scale + f64::from(k));
    let base = if is_open { a + b } else { c * f32::from(short) };
    let small = i64::from(below) + i64::from(short) + i64::from(sign);
    [(sum * 256.0) as i64 + i64::from(base as i32), small, (large.rotate_left(i as u32) ^ i as u64) as i64]
}

fn launch(queue: &Queue, shape: Option<Shape>, bundle: Option<&KernelBundle<Executable>>) -> Vec<[i64; 3]> {
    let out = Buffer::<[i64; 3], 1>::uninit(40).unwrap();
    queue.submit(|cg| {
        if let Some(bundle) = bundle {
            cg.use_bundle(bundle)?;
        } else if let Some(shape) = shape {
            cg.set_constant(&SHAPE, shape)?;
        }
        let (shape, out) = (cg.constant(&SHAPE), cg.access(&out, Write.no_init()));
        cg.parallel_for(40, move |item| out.set(item, value(shape.get(), item.index())))
    }).unwrap();
    out.into_vec().unwrap()
}

fn main() {
    let queue = Queue::default().unwrap();
    println!("{}", queue.device().backend());
    let default = SHAPE.default_value();
    let other = Shape { large: 1 << 63, scale: 2.0, radius: 5, below: i32::MIN, short: i16::MAX, is_open: true, sign: 127, ..default };
    let is_right = |found: Vec<[i64; 3]>, shape| found.iter().enumerate().all(|(i, found)| *found == value(shape, i));
    for _ in 0..2 {
        assert!(is_right(launch(&queue, None, None), default));
        assert!(is_right(launch(&queue, Some(other), None), other));
    }
    // The values of a bundle, of which those of groups know nothing.
    let bundle = KernelBundle::<Input>::new(queue.context());
    if let Ok(bundle) = bundle {
        let third = Shape { radius: 0, weights: [0.0; 3], ..other };
        bundle.set_constant(&SHAPE, third);
        assert!(is_right(launch(&queue, None, Some(&bundle.build().unwrap())), third));
    }
    println!("{} built, {} without", counters().specialized_kernels, counters().unspecialized_launches);
}
"#;

/// Builds a program with constants for OpenCL, and runs it twice.
pub(crate) fn values_are_put_into_the_code(project: &Project) {
    project.write("app/src/bin/constants.rs", PROGRAM);
    let (_, messages) = succeed(&mut project.sycl_as_is(&["build", "--package", "app", "--bin", "constants"]));
    assert!(!messages.contains("cannot run on") && !messages.contains("no image"), "{messages}");
    fs::remove_dir_all(project.root.join("binaries")).expect("other programs have filled it");
    let run = |device: &str, specialize: &str| {
        let mut command = Command::new(project.root.join("target/sycl/debug/constants"));
        command.env("OXISYCL_CACHE_DIR", project.root.join("binaries")).env_remove("OXISYCL_CACHE_SIZE");
        command.env("OXISYCL_DEVICE_SELECTOR", device).env("OXISYCL_SPECIALIZE", specialize);
        succeed(&mut command).0
    };
    assert_eq!(run("host:0", "1"), "host\n0 built, 0 without\n");
    assert_eq!(run("opencl:0", "0"), "opencl\n0 built, 0 without\n");
    // The code for all values, of all kernels: the bundle has them.
    let general = entries(project).len();
    assert_eq!(run("opencl:0", "1"), "opencl\n3 built, 0 without\n");
    let made = entries(project);
    assert_eq!(made.len(), general + 3, "{:?}", made.keys());
    // Another process builds none of them.
    assert_eq!(run("opencl:0", "1"), "opencl\n3 built, 0 without\n");
    let used = entries(project);
    assert_eq!(used.len(), made.len());
    for (path, entry) in &used {
        let first = &made[path];
        assert!((entry.file, &entry.bytes) == (first.file, &first.bytes), "{} was made anew", path.display());
    }
}
