//! What the refused programs over constants, bundles and groups of no size look like when they are right.
#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Fixed2, Local, LocalSlice};
use oxisycl::kernel_bundle::{Executable, Input, KernelBundle, Object};
use oxisycl::prelude::*;
use oxisycl::specialization::SpecId;

static RADIUS: SpecId<usize> = SpecId::new(1);
static LETTER: SpecId<char> = SpecId::new('a');
static VARIABLE: SpecId<u32> = SpecId::new(1);

fn main() -> oxisycl::Result<()> {
    memory_and_shapes_of_some_size()?;
    constants_that_are_statics()?;
    // The functions below are there to be compiled: what a device can have compiled is another matter.
    let _ = (uses, sets, compiles_once, links_what_is_compiled, joins);
    Ok(())
}

/// `local_memory_of_no_bytes`, `shape_without_work_items`.
fn memory_and_shapes_of_some_size() -> oxisycl::Result<()> {
    let _one = Local::<u32, 1>::new();
    let _small = Local::<[u32; 1], 4>::new();
    // Of no elements: the launch decides.
    let _none = LocalSlice::<[u32; 1]>::new(0);
    let queue = Queue::default()?;
    queue.submit(|cg| cg.parallel_for_work_group(4, Fixed1::<1>, (), |_, ()| {}))?;
    queue.submit(|cg| cg.parallel_for_nd_range(([8, 8], Fixed2::<4, 1>), (), |_, ()| {}))?.wait()
}

/// `specialization_constants_used_wrongly`.
fn constants_that_are_statics() -> oxisycl::Result<()> {
    Queue::default()?
        .submit(|cg| {
            cg.set_constant(&RADIUS, 2)?;
            cg.set_constant(&VARIABLE, 2)?;
            let radius: usize = cg.constant(&RADIUS).get();
            assert_eq!(cg.constant(&LETTER).get(), 'a');
            let constant = cg.constant(&RADIUS);
            cg.parallel_for(1, move |_| assert_eq!((constant.get(), radius), (2, 2)))
        })?
        .wait()
}

/// `bundle_in_a_wrong_state`.
fn uses(queue: &Queue, executable: &KernelBundle<Executable>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        cg.use_bundle(executable)?;
        cg.single_task(|_| {})
    })
}

fn sets(input: &KernelBundle<Input>) {
    input.set_constant(&RADIUS, 2);
}

fn compiles_once(input: KernelBundle<Input>) -> oxisycl::Result<KernelBundle<Object>> {
    input.compile()
}

fn links_what_is_compiled(object: &KernelBundle<Object>) -> oxisycl::Result<KernelBundle<Executable>> {
    KernelBundle::link([object])
}

fn joins(one: &KernelBundle<Object>, other: &KernelBundle<Object>) -> oxisycl::Result<KernelBundle<Object>> {
    KernelBundle::<Object>::join([one, other])
}
