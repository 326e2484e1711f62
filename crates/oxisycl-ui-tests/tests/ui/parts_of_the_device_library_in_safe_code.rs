//! What the device compiler and the runtime believe, safe code cannot tell them.
#![forbid(unsafe_code)]

use std::any::TypeId;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::Arc;

use oxisycl_backend::Command;
use oxisycl_backend::pool::Near;
use oxisycl_device::{DescribeKernel, Item, builtin, range_entry};
use oxisycl_runtime::graph::{Dependency, Node, Work, start, start_command};
use oxisycl_runtime::schedule::{CommandGroup, Queue};
use oxisycl_types::HostEntry;

/// Says that the code of one kernel is that of another one.
struct Liar<K>(K);

impl<K: for<'wi> Fn(Item<'wi, 1>) + Copy> DescribeKernel for Liar<K> {
    fn type_id(&self) -> TypeId
    where
        Self: 'static,
    {
        TypeId::of::<u32>()
    }
    fn entry(&self) -> HostEntry {
        range_entry::<K, 1>
    }
    fn layout(&self) -> (usize, usize) {
        (0, 1)
    }
    fn type_name(&self) -> &'static str {
        "another"
    }
    fn group(&self) -> u64 {
        0
    }

    fn arguments(&self) -> Option<&'static oxisycl_device::argument::ArgumentType> {
        None
    }

    fn aspects(&self) -> u64 {
        0
    }

    fn sub_group(&self) -> u32 {
        0
    }

    fn form(&self) -> u32 {
        1
    }
}

/// What only some targets have a body for.
fn a_builtin_of_another_target() -> u64 {
    builtin::second_position_x()
}

/// Memory that somebody else has, too.
fn shared_memory_for_a_pool(memory: Arc<MaybeUninit<u32>>) -> Near<Arc<MaybeUninit<u32>>> {
    Near(RefCell::new(vec![memory]))
}

/// Commands over memory that nobody keeps.
fn commands_without_their_memory(queue: &Queue, group: &mut CommandGroup, node: &Arc<Node>, after: &[Dependency]) {
    drop(queue.submit(group));
    drop(start(node, Work::Command(Command::Marker), after));
    drop(start_command(node, Command::Marker, after.into()));
}

fn main() {}
