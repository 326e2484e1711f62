//! A forked child, for which the driver does not work.

use std::alloc::Layout;
use std::sync::atomic::Ordering;

use oxisycl_backend::{BackendError, Command, UsmKind};
use oxisycl_backend_cuda::{native_context, native_streams};
use oxisycl_backend_testing::harness::help_once;

use crate::fake::Fake;
use crate::held::{folded, three_held};
use crate::support::{image, in_order, issue, kernel, launch, line, refused};
use crate::words::Words;

/// A child that takes so many seconds hangs.
const MOST_SECONDS: u32 = 20;

/// Runs `child` in a forked child, and says whether it returned true. A child that hangs or calls the driver is ended by a signal.
fn in_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child only does what `child` does, and leaves without running anything else.
    unsafe {
        match libc::fork() {
            0 => {
                libc::alarm(MOST_SECONDS);
                libc::_exit(i32::from(!child()))
            }
            process => {
                let mut status = 0;
                assert_eq!(libc::waitpid(process, &raw mut status, 0), process);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
            }
        }
    }
}

#[test]
fn a_forked_child_is_refused_and_does_not_hang() {
    let fake = Fake::new();
    let device = fake.device();
    let queue = in_order(&device);
    let layout = Layout::new::<u64>();
    let memory = device.memory().allocate(UsmKind::Device, layout, true).expect("there is memory");
    let code = kernel(&device, "empty");
    issue(&queue, launch(&code, "empty", &(), line(1)), &[]).probe.succeed();
    let (child_device, child_queue) = (device.clone(), queue.clone());
    // SAFETY: the fake driver's own kernels.
    let module = unsafe { device.load(&image(), None) }.expect("the image is taken");
    assert!(in_child(move || {
        let error = refused(&child_queue, Command::Marker);
        let forked = |error: &BackendError| error.to_string().contains("the process was forked");
        let allocated = child_device.memory().allocate(UsmKind::Device, layout, false);
        // SAFETY: allocated above, and not used.
        unsafe { child_device.memory().free(memory, UsmKind::Device, layout) };
        // The parent's thread may hold the lock of a stream.
        native_streams(&*child_queue).expect("the handles are numbers");
        native_context(&*child_device).expect("the handle is a number");
        drop(module);
        let is_refused = forked(&error) && allocated.is_err_and(|error| forked(&error)) && !help_once(&*child_queue);
        drop((child_queue, child_device));
        is_refused
    }));
    issue(&queue, launch(&code, "empty", &(), line(1)), &[]).probe.succeed();
    // SAFETY: allocated above, and not used.
    unsafe { device.memory().free(memory, UsmKind::Device, layout) };
}

#[test]
fn a_forked_child_does_not_launch_what_its_parent_holds() {
    let fake = Fake::new();
    let device = fake.device();
    let (words, affine) = (Words::new(&device), kernel(&device, "affine"));
    let (queue, commands) = three_held(&fake, &device, &words, &affine);
    let (child_device, child_queue) = (device.clone(), queue.clone());
    let command = words.affine(&affine, 3, 3);
    assert!(in_child(move || {
        let is_refused = refused(&child_queue, command).to_string().contains("the process was forked");
        let does_nothing = child_queue.flush().is_err() && !help_once(&*child_queue);
        // Both launch what is held, in the parent.
        native_streams(&*child_queue).expect("the handles are numbers");
        native_context(&*child_device).expect("the handle is a number");
        drop((child_queue, child_device));
        is_refused && does_nothing
    }));
    words.open();
    commands.iter().for_each(|command| command.probe.succeed());
    assert_eq!(words.at(0).load(Ordering::Acquire), folded(3), "each of them runs once");
    issue(&queue, words.affine(&affine, 3, 3), &[]).probe.succeed();
    assert_eq!(words.at(0).load(Ordering::Acquire), folded(4));
}
