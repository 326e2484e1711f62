//! Kernels that get two work-items for each position of the grid, and kernels that do not.

use oxisycl_image::{DeviceImage, Form, ImageTarget};

use super::*;
use crate::codegen;
use crate::compile::generate;
use crate::instruments::Instruments;
use crate::kernel::Kernel;
use crate::link::library::Library;
use crate::link::resolve::Scope;
use crate::llvm::{self, Context};
use crate::options::Options;
use crate::program::Program;
use crate::toolchain::Toolchain;

/// The entry of a kernel as `oxisycl_device::kernel` has it, which runs `item`. Its captures are source, target, a number that each
/// work-item holds against a second one, and that one.
const ENTRY: &str = r#"
@file = private constant [12 x i8] c"src/main.rs\00"
@place = private constant <{ ptr, [16 x i8] }> <{ ptr @file, [16 x i8] c"\0B\00\00\00\00\00\00\00\11\00\00\00\0D\00\00\00" }>
declare void @_RNvNtCs1234_4core9panicking18panic_bounds_check(i64, i64, ptr) noreturn
define i1 @_ZN14oxisycl_device7builtin9is_paired17h0123456789abcdefE() { ret i1 false }
define void @_ZN14oxisycl_device7builtin9next_item17h0123456789abcdefE() { ret void }
define void @_ZN14oxisycl_device7builtin9only_item17h0123456789abcdefE() { ret void }
define i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE() { unreachable }
define i64 @_ZN14oxisycl_device7builtin17second_position_x17h0123456789abcdefE() { unreachable }
define double @_ZN14oxisycl_device7builtin13load_constant17h0123456789abcdefE(ptr %p) {
  %v = load double, ptr %p
  ret double %v
}
define void @__oxisycl_record_panic_numbers(ptr %launch, i32 %site, i64 %kinds, i64 %first, i64 %second, i64 %third) {
  %record = getelementptr i8, ptr %launch, i64 72
  %address = load ptr, ptr %record
  %claimed = cmpxchg ptr %address, i32 0, i32 1 monotonic monotonic
  %place = getelementptr i8, ptr %address, i64 16
  %i = call i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE()
  store i64 %i, ptr %place
  ret void
}
define void @oxisycl_entry.k(ptr %captures, ptr %launch, ptr %chunk) {
  %target_place = getelementptr i8, ptr %captures, i64 8
  %n_place = getelementptr i8, ptr %captures, i64 16
  %limit_place = getelementptr i8, ptr %captures, i64 24
  %from = load ptr, ptr %captures
  %to = load ptr, ptr %target_place
  %n = load i64, ptr %n_place
  %limit = load i64, ptr %limit_place
  %count_place = getelementptr i8, ptr %launch, i64 96
  %narrow_count = load i32, ptr %count_place
  %count = zext i32 %narrow_count to i64
  %paired = call i1 @_ZN14oxisycl_device7builtin9is_paired17h0123456789abcdefE()
  br i1 %paired, label %two, label %one
two:
  %second = call i64 @_ZN14oxisycl_device7builtin17second_position_x17h0123456789abcdefE()
  %both = icmp ult i64 %second, %count
  br i1 %both, label %pair, label %one
pair:
  %first = call i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE()
  call void @item(ptr %from, ptr %to, i64 %n, i64 %limit, i64 %first)
  call void @_ZN14oxisycl_device7builtin9next_item17h0123456789abcdefE()
  call void @item(ptr %from, ptr %to, i64 %n, i64 %limit, i64 %second)
  ret void
one:
  %i = call i64 @_ZN14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE()
  %inside = icmp ult i64 %i, %count
  br i1 %inside, label %alone, label %end
alone:
  call void @item(ptr %from, ptr %to, i64 %n, i64 %limit, i64 %i)
  br i1 %paired, label %mark, label %end
mark:
  call void @_ZN14oxisycl_device7builtin9only_item17h0123456789abcdefE()
  br label %end
end:
  ret void
}
"#;

/// A work-item that checks something, computes `%v`, and stores it.
fn item(check: &str, body: &str) -> String {
    format!(
        "define internal void @item(ptr %from, ptr %to, i64 %n, i64 %limit, i64 %i) {{
          %p = getelementptr double, ptr %from, i64 %i
          %q = getelementptr double, ptr %to, i64 %i
          %fails = {check}
          br i1 %fails, label %bad, label %good
        good:
          {body}
          store double %v, ptr %q
          ret void
        bad:
          call void @_RNvNtCs1234_4core9panicking18panic_bounds_check(i64 %n, i64 %limit, ptr @place)
          unreachable
        }}"
    )
}

const OF_LAUNCH: &str = "icmp ugt i64 %n, %limit";
const CONSTANT_LOAD: &str = "%v = call double @_ZN14oxisycl_device7builtin13load_constant17h0123456789abcdefE(ptr %p)";

fn image(target: &str, form: Form, item: &str) -> DeviceImage {
    let toolchain = Toolchain::of_the_tests();
    llvm::load(toolchain.llvm_library()).expect("LLVM loads");
    let image_target: ImageTarget = target.parse().expect("a target");
    let target = codegen::of(&image_target).expect("a target");
    let (options, context) = (Options::default(), Context::new());
    let module = Module::from_text(&context, &format!("{ENTRY}{item}"), "test").expect("a test is well-formed");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    let kernel = Kernel::of_test(form, 32);
    let instruments = Instruments::default();
    let mut program = Program::of_module(module, kernel, &*target, &image_target, &options, &instruments);
    program.link(&mut Library::default(), Scope::WithoutFormatting).expect("it links");
    program.add_kernel().expect("a kernel");
    generate(&mut program, &mut Library::default(), &toolchain).expect("images").images.remove(0)
}

#[test]
fn a_kernel_that_moves_memory_runs_two_work_items_whose_loads_come_before_their_stores() {
    let image = image("sm_70", Form::Range(1), &item(OF_LAUNCH, CONSTANT_LOAD));
    assert!(image.kernels[0].is_paired && image.kernels[0].may_panic, "{}", String::from_utf8_lossy(&image.code));
    let code = String::from_utf8(image.code).expect("text");
    let (_, kernel) = code.split_once(".entry k(").expect("the kernel");
    let (first, rest) = kernel.split_once("st.global").expect("it stores");
    assert_eq!(first.matches("ld.global.nc.b64").count(), 2, "{kernel}");
    // Two stores of the pair, and the load and the store of a work-item at the end of the launch that is alone.
    assert_eq!((rest.matches("st.global").count(), rest.matches("ld.global.nc.b64").count()), (2, 1), "{kernel}");
    // Both forms check once, and nothing of the decision is left.
    assert_eq!(kernel.matches("call.uni").count(), 2, "{kernel}");
    assert!(!code.contains("oxisycl.") && !code.contains("_item"), "{code}");
    // A group has twice as many work-items as threads, also for the position in a panic record.
    let (record, _) = code.split_once(".entry k(").expect("the record");
    assert!(record.contains("shl.b32") && kernel.contains("shl.b32"), "{code}");
}

#[test]
fn other_kernels_run_one_work_item_at_each_position() {
    let own = "icmp uge i64 %i, %limit";
    let looping = "br label %loop
        loop:
          %v = phi double [ 0.0, %good ], [ %w, %loop ]
          %x = load volatile double, ptr %p
          %w = fadd double %v, %x
          %more = fcmp olt double %w, 1.0e9
          br i1 %more, label %loop, label %out
        out:";
    for (why, check, body) in [
        ("the second work-item could panic", own, CONSTANT_LOAD),
        ("others may write what it loads", OF_LAUNCH, "%v = load double, ptr %p"),
        ("it loads nothing", OF_LAUNCH, "%v = uitofp i64 %i to double"),
        ("an atomic operation", OF_LAUNCH, "%v = atomicrmw fadd ptr %p, double 1.0 monotonic"),
        ("a loop", OF_LAUNCH, looping),
    ] {
        assert!(!image("sm_70", Form::Range(1), &item(check, body)).kernels[0].is_paired, "{why}");
    }
    let copy = item(OF_LAUNCH, CONSTANT_LOAD);
    assert!(!image("sm_70", Form::Range(2), &copy).kernels[0].is_paired, "only one dimension");
    assert!(!image("gfx90a", Form::Range(1), &copy).kernels[0].is_paired, "only targets that have a second position");
}
