//! The state of a kernel bundle is part of its type: each call takes those that it can use.
#![forbid(unsafe_code)]

use oxisycl::kernel_bundle::{Executable, Input, KernelBundle, Object};
use oxisycl::prelude::*;
use oxisycl::specialization::SpecId;

static RADIUS: SpecId<usize> = SpecId::new(1);

fn uses(queue: &Queue, input: &KernelBundle<Input>, object: &KernelBundle<Object>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        cg.use_bundle(input)?;
        cg.use_bundle(object)?;
        cg.single_task(|_| {})
    })
}

fn sets(executable: &KernelBundle<Executable>) {
    executable.set_constant(&RADIUS, 2);
}

fn compiles_twice(object: KernelBundle<Object>) -> oxisycl::Result<KernelBundle<Object>> {
    object.compile()
}

fn links_what_is_not_compiled(input: &KernelBundle<Input>) -> oxisycl::Result<KernelBundle<Executable>> {
    KernelBundle::link([input])
}

fn joins(input: &KernelBundle<Input>, object: &KernelBundle<Object>) -> oxisycl::Result<KernelBundle<Object>> {
    KernelBundle::<Object>::join([object, input])
}

struct OfTheUser;

fn has_another_state(_: &KernelBundle<OfTheUser>) {}

fn main() {}
