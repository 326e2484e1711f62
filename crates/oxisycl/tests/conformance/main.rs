//! The conformance suite: what the public interface promises, shown on every kind of device.
//!
//! `conformance [--device host|simulated|apart|cuda|opencl|all] [--seed N] [--last-first] [FILTER] [--exact] [--list]`
//!
//! A test is a function over an [`Env`](harness::Env), listed once in its area's file, and called `device area::name`. The host device
//! runs with simulated ones as its peers; a simulated one with others of the same simulator. A test asserts what holds on any device, so
//! that a new backend only needs to be listed by the runtime to be tested. Tests without an `Env` are about no device; they run once, with
//! the host device, and are called `once area::name`. What cannot be tested on a device is ignored, with the reason.

mod harness;
mod model;
mod reduce;
mod support;

mod accessor;
mod argument;
mod atomic;
mod blocking;
mod buffer;
mod copy;
mod data_state;
mod dependency;
mod device;
mod group;
mod host_accessor;
mod image;
mod interop;
mod kernel;
mod multi_device;
mod multi_ptr;
mod nd;
mod usm;
mod vector;

use std::process::ExitCode;

use harness::Test;

const AREAS: &[(&str, &[Test])] = &[
    ("buffer", buffer::create::TESTS),
    ("buffer", buffer::end::TESTS),
    ("buffer", buffer::memory::TESTS),
    ("buffer", buffer::sub_buffer::TESTS),
    ("buffer", buffer::reinterpret::TESTS),
    ("accessor", accessor::modes::TESTS),
    ("accessor", accessor::groups::TESTS),
    ("accessor", accessor::ranges::TESTS),
    ("accessor", accessor::views::TESTS),
    ("accessor", accessor::chunks::TESTS),
    ("accessor", accessor::atomics::TESTS),
    ("atomic", atomic::references::TESTS),
    ("atomic", atomic::local::TESTS),
    ("atomic", atomic::litmus::TESTS),
    ("atomic", atomic::wide::TESTS),
    ("data_state", data_state::allocations::TESTS),
    ("data_state", data_state::pointers::TESTS),
    ("data_state", data_state::transfers::TESTS),
    ("data_state", data_state::pages::TESTS),
    ("data_state", data_state::conflicts::TESTS),
    ("dependency", dependency::order::TESTS),
    ("dependency", dependency::events::TESTS),
    ("dependency", dependency::programs::TESTS),
    ("dependency", dependency::in_flight::TESTS),
    ("device", device::TESTS),
    ("interop", interop::TESTS),
    ("kernel", kernel::ranges::TESTS),
    ("kernel", kernel::captures::TESTS),
    ("argument", argument::passing::TESTS),
    ("argument", argument::derived::TESTS),
    ("argument", argument::example::TESTS),
    ("argument", argument::attributes::TESTS),
    ("argument", argument::functions::TESTS),
    ("argument", argument::blocks::TESTS),
    ("argument", argument::constants::TESTS),
    ("kernel", kernel::bundles::TESTS),
    ("kernel", kernel::sources::TESTS),
    ("kernel", kernel::errors::TESTS),
    ("kernel", kernel::panics::TESTS),
    ("kernel", kernel::prints::TESTS),
    ("group", group::phases::TESTS),
    ("group", group::memory::TESTS),
    ("group", group::errors::TESTS),
    ("group", group::algorithms::TESTS),
    ("group", group::joint::TESTS),
    ("group", group::sub_groups::TESTS),
    ("group", group::vectors::TESTS),
    ("group", group::deaths::TESTS),
    ("group", group::panics::TESTS),
    ("nd", nd::ranges::TESTS),
    ("nd", nd::barriers::TESTS),
    ("nd", nd::algorithms::TESTS),
    ("nd", nd::groups::TESTS),
    ("nd", nd::copies::TESTS),
    ("nd", nd::divergence::TESTS),
    ("nd", nd::joint::TESTS),
    ("nd", nd::sub_group_joint::TESTS),
    ("nd", nd::sub_groups::TESTS),
    ("nd", nd::vectors::TESTS),
    ("reduce", reduce::TESTS),
    ("reduce", reduce::forms::TESTS),
    ("reduce", reduce::own::TESTS),
    ("host_accessor", host_accessor::data::TESTS),
    ("host_accessor", host_accessor::blocking::TESTS),
    ("image", image::pixels::TESTS),
    ("image", image::samples::TESTS),
    ("image", image::objects::TESTS),
    ("image", image::borrowed::TESTS),
    ("image", image::copies::TESTS),
    ("image", image::limits::TESTS),
    ("image", image::arguments::TESTS),
    ("image", image::owned::TESTS),
    ("image", image::host_tasks::TESTS),
    ("image", image::windows::TESTS),
    ("image", image::final_data::TESTS),
    ("image", image::blocking::TESTS),
    ("usm", usm::allocations::TESTS),
    ("usm", usm::commands::TESTS),
    ("usm", usm::buffers::TESTS),
    ("vector", vector::TESTS),
    ("multi_ptr", multi_ptr::pointers::TESTS),
    ("multi_ptr", multi_ptr::constants::TESTS),
    ("copy", copy::between::TESTS),
    ("copy", copy::host::TESTS),
    ("copy", copy::fill::TESTS),
    ("multi_device", multi_device::TESTS),
    ("blocking", blocking::commands::TESTS),
    ("blocking", blocking::buffers::TESTS),
    ("blocking", blocking::ends::TESTS),
    ("blocking", blocking::memory::TESTS),
];

fn main() -> ExitCode {
    harness::main(AREAS)
}
