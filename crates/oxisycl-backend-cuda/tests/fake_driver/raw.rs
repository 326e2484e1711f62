//! Kernels of a program's own PTX: arguments by index, limits, and what is refused before the driver has anything.

use std::alloc::Layout;
use std::sync::Arc;

use oxisycl_backend::{BackendError, Command, Device, RawKernel, RawLaunch, RawRefusal, RawValue, Source, UsmKind};

use crate::fake::Fake;
use crate::support::{issue, queue};

const PTX: &str = ".version 7.0\n.target sm_70\n.address_size 64\n\
                   .visible .entry raw_add(.param .u64 x, .param .u64 y, .param .u32 a)\n";

fn load(device: &Arc<dyn Device>, ptx: &str) -> Result<Option<Arc<dyn RawKernel>>, BackendError> {
    // SAFETY: the fake driver's own kernels.
    unsafe { device.load_source(&Source::Ptx(ptx)) }?.kernel("raw_add")
}

fn launch(groups: [usize; 3], local: [usize; 3], arguments: &[RawValue]) -> RawLaunch {
    RawLaunch { dimensions: 3, groups, local, arguments: arguments.to_vec() }
}

fn bytes(value: u32) -> RawValue {
    RawValue::Bytes(value.to_ne_bytes().to_vec())
}

#[test]
fn a_kernel_of_a_programs_own_ptx_runs_with_arguments_by_index() {
    const LEN: usize = 2 * 3 * 8;
    // An old driver does not tell the sizes of parameters.
    for fake in [Fake::new(), Fake::old()] {
        let device = fake.device();
        let kernel = load(&device, PTX).expect("the PTX is loaded").expect("it has the kernel");
        assert_eq!((kernel.info().registers, kernel.info().private_bytes), (Some(40), Some(700)));
        let layout = Layout::array::<u32>(LEN).expect("a layout");
        let [x, y] = [(); 2].map(|()| device.memory().allocate(UsmKind::Host, layout, true).expect("there is memory"));
        let address = |memory: std::ptr::NonNull<u8>| RawValue::Pointer(memory.as_ptr() as usize);
        let arguments = [address(x), RawValue::Local(100), address(y), bytes(3), RawValue::Local(60_000)];
        let launch = launch([1, 3, 2], [2, 1, 4], &arguments);
        kernel.check(&launch).expect("the launch is right");
        let queue = queue(&device);
        // SAFETY: zeroed memory of the host; no command uses it.
        unsafe { std::slice::from_raw_parts_mut(x.as_ptr().cast::<u32>(), LEN) }.fill(5);
        let command = Command::Native(Box::new(kernel.clone().command("add".to_owned(), launch)));
        let (modules, weak) = (fake.held()[1], Arc::downgrade(&kernel));
        drop(kernel);
        assert!(weak.upgrade().is_some(), "the command keeps the kernel");
        issue(&queue, command, &[]).probe.succeed();
        // SAFETY: zeroed memory of the host, which the kernel has written.
        let found = unsafe { std::slice::from_raw_parts(y.as_ptr().cast::<u32>(), LEN) };
        assert!((0..).zip(found).all(|(i, found)| *found == 15 + i), "{found:?}");
        drop(queue);
        let began = std::time::Instant::now();
        while weak.upgrade().is_some() || fake.held()[1] >= modules {
            assert!(began.elapsed() < std::time::Duration::from_secs(30), "the ended command keeps its kernel");
            std::thread::yield_now();
        }
        // SAFETY: allocated above; the command has ended.
        unsafe { [x, y].into_iter().for_each(|memory| device.memory().free(memory, UsmKind::Host, layout)) };
    }
}

#[test]
fn wrong_arguments_and_ranges_are_refused_before_anything_is_launched() {
    let fake = Fake::new();
    let device = fake.device();
    let kernel = load(&device, PTX).expect("the PTX is loaded").expect("it has the kernel");
    let refused = |groups, arguments: &[RawValue]| match kernel.check(&launch(groups, [1, 1, 8], arguments)) {
        Err(RawRefusal::Arguments(what) | RawRefusal::Range(what)) => what,
        other => panic!("{other:?}"),
    };
    let pointer = RawValue::Pointer(64);
    let one = [1; 3];
    let few = refused(one, &[pointer.clone(), pointer.clone()]);
    assert_eq!(few, "2 arguments, and its code has 3 parameters");
    let many = refused(one, &[pointer.clone(), pointer.clone(), bytes(1), bytes(1)]);
    assert_eq!(many, "4 arguments, and its code has 3 parameters");
    let small = refused(one, &[pointer.clone(), RawValue::Local(8), bytes(7), bytes(1)]);
    assert_eq!(small, "argument 2 is 4 bytes, and its parameter is 8");
    let fitting = [pointer.clone(), pointer, bytes(1)];
    assert_eq!(refused([1, 70_000, 1], &fitting), "70000 work-groups in one dimension, the limit is 65535");
    let endless = [&fitting[..], &[RawValue::Local(usize::MAX), RawValue::Local(9)]].concat();
    assert_eq!(refused(one, &endless), "more local memory than can be counted");
    let too_much = [&fitting[..], &[RawValue::Local(100 << 10)]].concat();
    let refusal = kernel.check(&launch(one, [1, 1, 8], &too_much));
    assert!(matches!(refusal, Err(RawRefusal::Backend(BackendError::Driver { .. }))), "{refusal:?}");
    kernel.check(&launch(one, [1, 1, 8], &fitting)).expect("the launch is right");
    assert_eq!(fake.count("cuLaunchKernel"), 0);
}

#[test]
fn a_module_of_other_code_is_used_and_stays_loaded() {
    let fake = Fake::new();
    let device = fake.device();
    // SAFETY: the fake driver's own kernels.
    let own = unsafe { device.load_source(&Source::Ptx(PTX)) }.expect("the PTX is loaded");
    let modules = fake.held()[1];
    // SAFETY: a live module, which outlives the other object.
    let borrowed = unsafe { device.load_source(&Source::Native(own.native_handle())) }.expect("it is a module");
    assert_eq!(borrowed.native_handle(), own.native_handle());
    let kernel = borrowed.kernel("raw_add").expect("the driver answers").expect("it has the kernel");
    assert!(!kernel.native_handle().is_null());
    drop((borrowed, kernel));
    assert_eq!(fake.held()[1], modules, "other code's module was unloaded");
    assert!(own.kernel("raw_add").expect("the driver answers").is_some());
    // SAFETY: a null handle.
    let refused = unsafe { device.load_source(&Source::Native(std::ptr::null_mut())) }.err();
    let text = refused.expect("null is no module").to_string();
    assert!(text.contains("cannot take the native module 0x0: expected a module of context 0x"), "{text}");
}

#[test]
fn what_the_driver_refuses_is_told_with_its_log() {
    let fake = Fake::new();
    let device = fake.device();
    let error = load(&device, &format!("{PTX}syntax error\n")).expect_err("it is no PTX");
    assert!(error.to_string().contains("Parsing error"), "{error}");
    assert!(load(&device, ".version 7.0\n.target sm_70\n").expect("it is PTX").is_none(), "it has no such kernel");
    // SAFETY: nothing is loaded.
    let refused = unsafe { device.load_source(&Source::SpirV(&[])) };
    assert!(matches!(refused.err(), Some(BackendError::Unsupported { what, .. }) if what == "kernels from SPIR-V"));
}

#[test]
fn a_launch_that_the_driver_refuses_fails_its_command() {
    let fake = Fake::new();
    let device = fake.device();
    let kernel = load(&device, PTX).expect("the PTX is loaded").expect("it has the kernel");
    let arguments = [RawValue::Pointer(64), RawValue::Pointer(64), bytes(1)];
    fake.fail("cuLaunchKernel", 0, 1);
    let command = kernel.command("add".to_owned(), launch([1; 3], [1; 3], &arguments));
    let failure = issue(&queue(&device), Command::Native(Box::new(command)), &[]).probe.fail();
    assert!(failure.to_string().contains("cuLaunchKernel") && failure.to_string().contains("raw_add"), "{failure}");
}
