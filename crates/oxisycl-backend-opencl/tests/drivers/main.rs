//! The backend on the OpenCL drivers of this machine. Needs a driver that takes SPIR-V, and `spirv-as` for the kernels; tests that lack one
//! of them are reported as ignored, with the reason.
//!
//! The kernels are written in SPIR-V by hand (`kernels.spvasm`), since the device compiler stands above this crate.

mod adopted;
mod contract;
mod devices;
mod failures;
mod launches;
mod memory;
mod modules;
mod native;
mod rounding;
mod sub_devices;
mod support;
mod unfinished;

use oxisycl_backend_testing::footprint::Counting;
use oxisycl_backend_testing::suite;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> std::process::ExitCode {
    suite::main(&[
        ("adopted", adopted::TESTS),
        ("contract", contract::TESTS),
        ("devices", devices::TESTS),
        ("failures", failures::TESTS),
        ("launches", launches::TESTS),
        ("memory", memory::TESTS),
        ("modules", modules::TESTS),
        ("native", native::TESTS),
        ("rounding", rounding::TESTS),
        ("sub_devices", sub_devices::TESTS),
        ("unfinished", unfinished::TESTS),
    ])
}
