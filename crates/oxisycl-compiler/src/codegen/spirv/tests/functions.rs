//! Functions that were not inlined: what they have of the kernel, and calls by address.

use crate::codegen::Target;
use crate::codegen::spirv::call_graph::DEEPEST;
use crate::codegen::spirv::{SpirV, panic_outlining};
use crate::llvm::{Attribute, Module, Opcode, PassTuning};

use super::support::{BEGIN, context, device, run, translated, validated};

/// Runs `k` for eight work-items with a number each, and gives what they left.
fn numbers(code: &str) -> Vec<u64> {
    let context = context();
    let bytes = validated(&translated(&context, code).module);
    assert_eq!(bytes, validated(&translated(&context, code).module), "the same bytes again");
    let output = run(&bytes, &[("k", &[0; 8], 64)], 8).remove(0);
    output.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes"))).collect()
}

const PLACE: &str = "%place = getelementptr i64, ptr %out, i64 %i\n";

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_work_item_ends_in_a_function_and_the_others_go_on() {
    let code = format!(
        "define void @k{BEGIN}{PLACE}
  store i64 1, ptr %place
  %x = call i64 @outer(i64 %i)
  store i64 %x, ptr %place
  ret void\n}}
declare void @oxisycl.end_work_item() noreturn
define internal i64 @outer(i64 %n) noinline {{
  %a = call i64 @inner(i64 %n)
  %b = add i64 %a, 100
  ret i64 %b\n}}
define internal i64 @inner(i64 %n) noinline {{
  %odd = trunc i64 %n to i1
  br i1 %odd, label %bad, label %good
bad:
  call void @oxisycl.end_work_item()
  unreachable
good:
  ret i64 %n\n}}\n"
    );
    let found = numbers(&code);
    assert_eq!(found, [100, 1, 102, 1, 104, 1, 106, 1]);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn functions_are_called_by_their_addresses() {
    let code = format!(
        "@table = private constant [2 x ptr] [ptr @double, ptr @square]
@object = private constant {{ ptr, i64, i64, ptr }} {{ ptr null, i64 0, i64 1, ptr @double }}
define void @k{BEGIN}{PLACE}
  %low = and i64 %i, 1
  %slot = getelementptr ptr, ptr @table, i64 %low
  %f = load ptr, ptr %slot
  %a = call i64 %f(i64 %i)
  %method = getelementptr i8, ptr @object, i64 24
  %g = load volatile ptr, ptr %method
  %b = call i64 %g(i64 %a)
  %same = icmp eq ptr %f, %g
  %s = zext i1 %same to i64
  %shown = mul i64 %s, 1000
  %c = add i64 %b, %shown
  store i64 %c, ptr %place
  ret void\n}}
define internal i64 @double(i64 %n) noinline {{ %r = add i64 %n, %n ret i64 %r }}
define internal i64 @square(i64 %n) noinline {{ %r = mul i64 %n, %n ret i64 %r }}
"
    );
    let found = numbers(&code);
    let expected = (0..8).map(|i| if i % 2 == 0 { 1000 + 4 * i } else { 2 * i * i });
    assert_eq!(found, expected.collect::<Vec<u64>>());
}

/// Code of functions with the names of formatting functions: `work` writes a number of levels to `%count`, each in one below it. `%before`
/// and `%after` stand around the first call, which is within a message.
fn nested(before: &str, after: &str) -> String {
    let code = nested_outside(before, after);
    let write = "call i1 @\"core::fmt::write\"(";
    let print = "define internal i1 @__oxisycl_print_formatted(ptr %deep, ptr %count, ptr %f) noinline {
  %r = call i1 @\"core::fmt::write\"(ptr %deep, ptr %count, ptr %f)
  ret i1 %r\n}\n";
    format!("{print}{}", code.replacen(write, "call i1 @__oxisycl_print_formatted(", 1))
}

/// Nested formatting in no message.
fn nested_outside(before: &str, after: &str) -> String {
    format!(
        "declare i1 @oxisycl.spirv.was_cut_off()
define void @k{BEGIN}{PLACE}
  %count = alloca i64, align 8
  %deep = alloca i64, align 8
  store i64 0, ptr %count
  store i64 %i, ptr %deep
  {before}
  %failed = call i1 @\"core::fmt::write\"(ptr %deep, ptr %count, ptr @\"<app::Inner as core::fmt::Display>::fmt\")
  {after}
  %n = load i64, ptr %count
  %f = zext i1 %failed to i64
  %shown = mul i64 %f, 1000
  %sum = add i64 %n, %shown
  store i64 %sum, ptr %place
  ret void\n}}
define internal i1 @\"core::fmt::write\"(ptr %deep, ptr %count, ptr %f) noinline {{
  %r = call i1 %f(ptr %deep, ptr %count)
  ret i1 %r\n}}
define internal i1 @\"<app::Inner as core::fmt::Display>::fmt\"(ptr %deep, ptr %count) noinline {{
  %n = load i64, ptr %count
  %more = add i64 %n, 1
  store i64 %more, ptr %count
  %d = load i64, ptr %deep
  %end = icmp eq i64 %d, 0
  br i1 %end, label %done, label %on
done:
  ret i1 false
on:
  %less = sub i64 %d, 1
  store i64 %less, ptr %deep
  %r = call i1 @\"core::fmt::write\"(ptr %deep, ptr %count, ptr @\"<app::Inner as core::fmt::Display>::fmt\")
  ret i1 %r\n}}
"
    )
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn values_within_values_are_formatted_so_deep() {
    let found = numbers(&nested("", ""));
    // As many levels as are allowed, and the next one fails.
    let deepest = u64::from(DEEPEST);
    assert_eq!(found, (0..8).map(|i| if i < deepest { i + 1 } else { 1000 + deepest }).collect::<Vec<u64>>());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn what_is_too_deep_outside_of_messages_ends_the_work_item() {
    let begin = "store i64 7, ptr %place";
    let panic = "declare void @oxisycl.end_work_item() noreturn
define void @oxisycl.formatting_too_deep() noinline {
  call void @oxisycl.end_work_item()
  unreachable\n}\n";
    let call = "call i1 @\"core::fmt::write\"(ptr %deep, ptr %count, ptr @\"<app::Inner as core::fmt::Display>::fmt\")";
    let by_address = format!("{panic}{}", nested_outside(begin, ""));
    let (first, second) = by_address.rsplit_once(call).expect("the inner call");
    let itself = format!("{first}call i1 @\"<app::Inner as core::fmt::Display>::fmt\"(ptr %deep, ptr %count){second}");
    for (code, deepest) in [(&by_address, DEEPEST), (&itself, DEEPEST + 1)] {
        let deepest = u64::from(deepest);
        assert_eq!(numbers(code), (0..8).map(|i| if i < deepest { i + 1 } else { 7 }).collect::<Vec<u64>>());
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_value_that_shows_itself_within_itself_is_cut_off_as_well() {
    let by_address = nested("", "");
    let call = "call i1 @\"core::fmt::write\"(ptr %deep, ptr %count, ptr @\"<app::Inner as core::fmt::Display>::fmt\")";
    let (first, second) = by_address.rsplit_once(call).expect("the inner call");
    let code = format!("{first}call i1 @\"<app::Inner as core::fmt::Display>::fmt\"(ptr %deep, ptr %count){second}");
    let found = numbers(&code);
    let deepest = u64::from(DEEPEST);
    assert_eq!(found, (0..8).map(|i| if i <= deepest { i + 1 } else { 1001 + deepest }).collect::<Vec<u64>>());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn what_formats_knows_whether_it_was_cut_off_until_it_has_asked() {
    let again = "%cut = call i1 @oxisycl.spirv.was_cut_off()
  %again = call i1 @oxisycl.spirv.was_cut_off()
  %c = zext i1 %cut to i64
  %a = zext i1 %again to i64
  %ten = mul i64 %a, 10
  %answers = add i64 %c, %ten
  store i64 %answers, ptr %count";
    let found = numbers(&nested("", again));
    assert_eq!(found, (0..8).map(|i| if i < u64::from(DEEPEST) { 0 } else { 1001 }).collect::<Vec<u64>>());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_panic_while_a_panic_is_recorded_records_nothing_and_ends_the_work_item() {
    let code = format!(
        "declare void @oxisycl.end_work_item() noreturn
define void @k{BEGIN}{PLACE}
  store i64 0, ptr %place
  call void @work(i64 %i, ptr %place)
  %n = load i64, ptr %place
  %m = add i64 %n, 100
  store i64 %m, ptr %place
  ret void\n}}
define internal void @work(i64 %n, ptr %place) noinline {{
  %v = load i64, ptr %place
  %more = add i64 %v, 1
  store i64 %more, ptr %place
  %bad = icmp ugt i64 %n, 3
  br i1 %bad, label %panics, label %fine
panics:
  call void @__oxisycl_record_panic_formatted(i64 %n, ptr %place)
  call void @oxisycl.end_work_item()
  unreachable
fine:
  ret void\n}}
define internal void @__oxisycl_record_panic_formatted(i64 %n, ptr %place) noinline {{
  %v = load i64, ptr %place
  %more = add i64 %v, 10
  store i64 %more, ptr %place
  call void @work(i64 %n, ptr %place)
  %w = load i64, ptr %place
  %never = add i64 %w, 5000
  store i64 %never, ptr %place
  ret void\n}}\n"
    );
    let found = numbers(&code);
    assert_eq!(found, [101, 101, 101, 101, 12, 12, 12, 12]);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn functions_use_the_launch_and_the_memory_of_the_group() {
    let code = format!(
        "@oxisycl_local_memory = external addrspace(3) global [0 x i8], align 16
declare ptr @oxisycl.launch()
declare i64 @oxisycl.spirv.local_id(i32)
declare void @oxisycl.spirv.barrier() convergent
define void @k{BEGIN}{PLACE}
  call void @write(i64 %i)
  call void @oxisycl.spirv.barrier()
  %o = call i64 @first()
  store i64 %o, ptr %place
  ret void\n}}
define internal void @write(i64 %n) noinline {{
  %l = call i64 @oxisycl.spirv.local_id(i32 0)
  %p = getelementptr i64, ptr addrspace(3) @oxisycl_local_memory, i64 %l
  %launch = call ptr @oxisycl.launch()
  %in = load ptr, ptr %launch
  %v = load i64, ptr %in
  %s = add i64 %v, %n
  store i64 %s, ptr addrspace(3) %p
  ret void\n}}
define internal i64 @first() noinline {{
  %v = load i64, ptr addrspace(3) @oxisycl_local_memory
  ret i64 %v\n}}\n"
    );
    let context = context();
    let bytes = validated(&translated(&context, &code).module);
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(&bytes) }.unwrap_or_else(|error| panic!("{error}"));
    let (mut input, mut output) = (device.allocate(8).expect("memory"), device.allocate(64).expect("memory"));
    input.bytes()[0] = 50;
    let arguments = [input.address(), output.address()].map(u64::to_le_bytes).concat();
    // SAFETY: eight work-items, each with its number, in groups of four.
    unsafe { program.run("k", &[&arguments], 4 * 8, ([8, 1, 1], [4, 1, 1])) }.expect("the kernel runs");
    let found: Vec<u8> = output.bytes().chunks(8).map(|bytes| bytes[0]).collect();
    assert_eq!(found, [50, 50, 50, 50, 54, 54, 54, 54]);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_function_returns_several_values() {
    let code = format!(
        "define void @k{BEGIN}{PLACE}
  %pair = call {{ i64, i1, ptr, [2 x i16] }} @divide(i64 %i, ptr %place)
  %q = extractvalue {{ i64, i1, ptr, [2 x i16] }} %pair, 0
  %odd = extractvalue {{ i64, i1, ptr, [2 x i16] }} %pair, 1
  %p = extractvalue {{ i64, i1, ptr, [2 x i16] }} %pair, 2
  %h = extractvalue {{ i64, i1, ptr, [2 x i16] }} %pair, 3, 1
  %o = zext i1 %odd to i64
  %hw = zext i16 %h to i64
  %a = mul i64 %o, 100
  %b = add i64 %a, %q
  %c = add i64 %b, %hw
  store i64 %c, ptr %p
  %wide = call i128 @wide(i64 %i)
  %high = lshr i128 %wide, 64
  %t = trunc i128 %high to i64
  %v = load i64, ptr %place
  %w = add i64 %v, %t
  store i64 %w, ptr %place
  ret void\n}}
define internal {{ i64, i1, ptr, [2 x i16] }} @divide(i64 %n, ptr %p) noinline {{
  %q = lshr i64 %n, 1
  %odd = trunc i64 %n to i1
  %r0 = insertvalue {{ i64, i1, ptr, [2 x i16] }} poison, i64 %q, 0
  %r1 = insertvalue {{ i64, i1, ptr, [2 x i16] }} %r0, i1 %odd, 1
  %r2 = insertvalue {{ i64, i1, ptr, [2 x i16] }} %r1, ptr %p, 2
  %r3 = insertvalue {{ i64, i1, ptr, [2 x i16] }} %r2, i16 1000, 3, 1
  ret {{ i64, i1, ptr, [2 x i16] }} %r3\n}}
define internal i128 @wide(i64 %n) noinline {{
  %w = zext i64 %n to i128
  %s = shl i128 %w, 77
  ret i128 %s\n}}\n"
    );
    let found = numbers(&code);
    assert_eq!(found, (0..8).map(|i| 1000 + i / 2 + 100 * (i % 2) + (i << 13)).collect::<Vec<u64>>());
}

#[test]
fn drivers_are_asked_to_keep_apart_what_llvm_did_not_inline() {
    let context = context();
    let code = |attribute: &str| {
        format!(
            "define void @k{BEGIN}{PLACE}\n%x = call i64 @f(i64 %i)\nstore i64 %x, ptr %place\nret void\n}}\n\
             define internal i64 @f(i64 %n) {attribute} {{\n%r = add i64 %n, 1\nret i64 %r\n}}\n"
        )
    };
    let is_kept_apart =
        |attribute| super::golden::text(&translated(&context, &code(attribute)).module).contains("DontInline");
    assert!(is_kept_apart("noinline") && !is_kept_apart(""));
}

#[test]
fn loops_are_unrolled_only_if_nothing_is_left_of_them() {
    let context = context();
    let n_loads = |end: u32| {
        let code = format!(
            "define void @k(ptr %p) {{\n  br label %head\nhead:\n  %n = phi i32 [ 0, %0 ], [ %next, %head ]\n  \
             %place = getelementptr i64, ptr %p, i32 %n\n  %v = load volatile i64, ptr %place\n  \
             %next = add i32 %n, 1\n  %done = icmp eq i32 %next, {end}\n  br i1 %done, label %end, label %head\n\
             end:\n  ret void\n}}\n"
        );
        let module = Module::from_text(&context, &code, "test").expect("a test is well-formed");
        let target = SpirV::new(1, 2).expect("the target");
        module.set_target(target.machine().triple(), &target.machine().data_layout());
        module.run(target.optimisation(), Some(target.machine()), &PassTuning::DEVICE).expect("passes");
        module.functions()[0].instructions().into_iter().filter(|instruction| instruction.is(Opcode::LOAD)).count()
    };
    assert_eq!((n_loads(4), n_loads(1000)), (4, 1));
}

#[test]
fn a_function_that_passes_its_parameters_on_stands_before_a_recorder_and_before_nothing_else() {
    let context = context();
    let text = "define internal void @__oxisycl_record_panic_numbers(ptr %launch, i32 %site) noinline { ret void }
        define internal void @helper(ptr %launch, i32 %site) noinline { ret void }
        define void @k(ptr %launch) {
            call void @__oxisycl_record_panic_numbers(ptr %launch, i32 1)
            call void @helper(ptr %launch, i32 2)
            call void @__oxisycl_record_panic_numbers(ptr %launch, i32 3)
            ret void
        }";
    let module = Module::from_text(&context, text, "test").expect("a test is well-formed");
    panic_outlining::call_through_others(&module);
    module.verify("the test").expect("a valid module");
    let calls = |name: &str| {
        let function = module.function(name).expect("it is there");
        let calls = function.instructions().into_iter().filter_map(|instruction| instruction.callee());
        calls.map(|callee| callee.name().to_owned()).collect::<Vec<_>>()
    };
    let (recorder, other) = ("__oxisycl_record_panic_numbers", "__oxisycl_record_panic_numbers.passes_on");
    assert_eq!(calls("k"), [other, "helper", other]);
    assert_eq!(calls(other), [recorder]);
    let other = module.function(other).expect("it is there");
    assert!(other.has_attribute(Attribute::FUNCTION, "noinline"));
    let passed = other.instructions()[0].arguments();
    assert!(passed == other.parameters());
}

#[test]
fn stated_sizes_are_execution_modes() {
    let context = context();
    let modes = |attributes: &str| {
        let begin = BEGIN.replacen('{', &format!("{attributes} {{"), 1);
        let module =
            translated(&context, &format!("define void @k{begin}store i64 %i, ptr %out\nret void\n}}\n")).module;
        validated(&module);
        let capabilities = module.capabilities.iter().filter(|capability| {
            capability.operands == [rspirv::dr::Operand::Capability(rspirv::spirv::Capability::SubgroupDispatch)]
        });
        let modes = module.execution_modes.iter().map(|mode| format!("{:?}", &mode.operands[1..])).skip(1);
        (modes.collect::<Vec<_>>(), capabilities.count())
    };
    assert_eq!(modes(""), (vec![], 0));
    let (found, n_capabilities) = modes("\"nvvm.reqntid\"=\"8,4,1\" \"oxisycl-sub-group-size\"=\"16\"");
    let [group, sub_group] = &found[..] else { panic!("{found:?}") };
    assert!(
        group.contains("LocalSize") && group.ends_with("LiteralBit32(8), LiteralBit32(4), LiteralBit32(1)]"),
        "{group}"
    );
    assert!(sub_group.contains("SubgroupSize") && sub_group.ends_with("LiteralBit32(16)]"), "{sub_group}");
    assert_eq!(n_capabilities, 1);
}
