//! Staged kernels of modules that are unloaded.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxisycl_backend::{Device, LoadedKernel, Module};

use crate::batches::{MANY, always, busy, until};
use crate::fake::Fake;
use crate::support::{image, issue, kernel, launch, line};
use crate::words::Words;

/// An image that is loaded once more.
fn another_module(device: &Arc<dyn Device>) -> (Arc<dyn Module>, Arc<dyn LoadedKernel>) {
    // SAFETY: the fake driver's own kernels.
    let module = unsafe { device.load(&image(), None) }.expect("the image is taken");
    let code = module.kernel("empty").expect("the image has the kernel");
    (module, code)
}

#[test]
fn graphs_hold_the_modules_of_their_kernels_until_those_are_unloaded() {
    let fake = Fake::new();
    let device = fake.device();
    let queue = always(&device);
    let run = |code: &Arc<dyn LoadedKernel>| {
        let commands = [0; 4].map(|_| issue(&queue, launch(code, "empty", &(), line(1)), &[]));
        commands.iter().for_each(|command| command.probe.succeed());
    };
    let n_loaded = fake.held()[1];
    let ((first_module, first), (second_module, second)) = (another_module(&device), another_module(&device));
    // Two functions, so each run makes graphs of its own.
    run(&first);
    run(&second);
    drop((first, first_module));
    until("the module with which graphs were made is unloaded", || fake.held()[1] == n_loaded + 1);
    run(&second);
    drop((second, second_module));
    until("both modules are unloaded", || fake.held()[1] == n_loaded);
}

#[test]
fn graphs_made_after_the_handle_of_their_module_is_gone_do_not_keep_it_loaded() {
    let fake = Fake::new();
    let device = fake.device();
    let words = Words::new(&device);
    let (affine, first) = (kernel(&device, "affine"), always(&device));
    let n_loaded = fake.held()[1];
    for queue in [busy(&device, &words, || words.same(&affine)), first] {
        let (module, code) = another_module(&device);
        drop(module);
        let n_graphs = fake.count("cuGraphCreate");
        let commands: Vec<_> =
            (0..2 * MANY).map(|_| issue(&queue, launch(&code, "empty", &(), line(1)), &[])).collect();
        words.open();
        commands.iter().for_each(|command| command.probe.succeed());
        assert!(fake.count("cuGraphCreate") > n_graphs, "they went out as graphs");
        drop((code, commands));
        until("the module is unloaded", || fake.held()[1] == n_loaded);
    }
}

#[test]
fn staged_kernels_of_a_module_that_is_unloaded_run() {
    let fake = Fake::new();
    let device = fake.device();
    let words = Words::new(&device);
    let (module, code) = another_module(&device);
    let empty = || launch(&code, "empty", &(), line(1));
    let queue = busy(&device, &words, empty);
    let commands = [0; 3].map(|_| issue(&queue, empty(), &[]));
    drop((module, code));
    words.open();
    commands.iter().for_each(|command| command.probe.succeed());
}

/// A module of one kernel.
fn module_of(device: &Arc<dyn Device>, symbol: &str) -> (Arc<dyn Module>, Arc<dyn LoadedKernel>) {
    let mut image = image();
    image.kernels.retain(|kernel| kernel.symbol == symbol);
    // SAFETY: the fake driver's own kernels.
    let module = unsafe { device.load(&image, None) }.expect("the image is taken");
    let code = module.kernel(symbol).expect("the image has the kernel");
    (module, code)
}

#[test]
fn a_kernel_with_the_handle_of_an_unloaded_one_runs_its_own_code() {
    let fake = Fake::with(&[("reuses_functions", 1)]);
    let device = fake.device();
    let words = Words::new(&device);
    let (affine, first) = (kernel(&device, "affine"), always(&device));
    let (n_loaded, n_kernels) = (fake.held()[1], 2 * MANY as u32);
    for queue in [busy(&device, &words, || words.same(&affine)), first] {
        let (module, code) = module_of(&device, "empty");
        let n_graphs = fake.count("cuGraphCreate");
        let commands: Vec<_> =
            (0..n_kernels).map(|_| issue(&queue, launch(&code, "empty", &(), line(1)), &[])).collect();
        words.open();
        commands.iter().for_each(|command| command.probe.succeed());
        assert!(fake.count("cuGraphCreate") > n_graphs, "they went out as graphs");
        drop((module, code, commands));
        until("the module is unloaded", || fake.held()[1] == n_loaded);
        let (n_graphs, n_reused, before) =
            (fake.ran()[1], fake.count("reused function"), words.at(0).load(Ordering::Acquire));
        let (module, code) = module_of(&device, "affine");
        assert_eq!(fake.count("reused function") - n_reused, 1, "it has the handle of the other kernel");
        let commands: Vec<_> = (0..n_kernels).map(|_| issue(&queue, words.affine(&code, 1, 1), &[])).collect();
        commands.iter().for_each(|command| command.probe.succeed());
        assert!(fake.ran()[1] > n_graphs, "they went out as graphs");
        assert_eq!(words.at(0).load(Ordering::Acquire) - before, n_kernels, "each of them ran");
        drop((module, code, commands));
        until("the second module is unloaded", || fake.held()[1] == n_loaded);
    }
}
