//! Functions that were not inlined: what they have of the kernel, and calls by address.

use super::support::{BEGIN, context, device, run, translated, validated};

/// Runs `k` for eight work-items with a number each, and gives what they left.
fn numbers(code: &str) -> Option<Vec<u64>> {
    let context = context();
    let bytes = validated(&translated(&context, code).module);
    assert_eq!(bytes, validated(&translated(&context, code).module), "the same bytes again");
    let output = run(&bytes, &[("k", &[0; 8], 64)], 8)?.remove(0);
    Some(output.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes"))).collect())
}

const PLACE: &str = "%place = getelementptr i64, ptr %out, i64 %i\n";

#[test]
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
    let Some(found) = numbers(&code) else { return };
    assert_eq!(found, [100, 1, 102, 1, 104, 1, 106, 1]);
}

#[test]
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
    let Some(found) = numbers(&code) else { return };
    let expected = (0..8).map(|i| if i % 2 == 0 { 1000 + 4 * i } else { 2 * i * i });
    assert_eq!(found, expected.collect::<Vec<u64>>());
}

/// The names are those of formatting functions: the depth of values within values is counted down, and each level adds its own.
#[test]
fn values_within_values_are_formatted_so_deep() {
    let code = format!(
        "define void @k{BEGIN}{PLACE}
  %count = alloca i64, align 8
  %deep = alloca i64, align 8
  store i64 0, ptr %count
  store i64 %i, ptr %deep
  %failed = call i1 @__oxisycl_record_panic_formatted(ptr %deep, ptr %count, ptr @\"<app::Inner as core::fmt::Display>::fmt\")
  %n = load i64, ptr %count
  %f = zext i1 %failed to i64
  %shown = mul i64 %f, 1000
  %sum = add i64 %n, %shown
  store i64 %sum, ptr %place
  ret void\n}}
define internal i1 @__oxisycl_record_panic_formatted(ptr %deep, ptr %count, ptr %f) noinline {{
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
  %r = call i1 @__oxisycl_record_panic_formatted(ptr %deep, ptr %count, ptr @\"<app::Inner as core::fmt::Display>::fmt\")
  ret i1 %r\n}}
"
    );
    let Some(found) = numbers(&code) else { return };
    // Five levels, and the sixth fails.
    assert_eq!(found, [1, 2, 3, 4, 5, 1005, 1005, 1005]);
}

#[test]
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
    let Some(device) = device() else { return };
    let program = device.build(&bytes).unwrap_or_else(|error| panic!("{error}"));
    let (mut input, mut output) = (device.allocate(8).expect("memory"), device.allocate(64).expect("memory"));
    input.bytes()[0] = 50;
    let arguments = [input.address(), output.address()].map(u64::to_le_bytes).concat();
    // SAFETY: eight work-items, each with its number, in groups of four.
    unsafe { program.run("k", &[&arguments], 4 * 8, ([8, 1, 1], [4, 1, 1])) }.expect("the kernel runs");
    let found: Vec<u8> = output.bytes().chunks(8).map(|bytes| bytes[0]).collect();
    assert_eq!(found, [50, 50, 50, 50, 54, 54, 54, 54]);
}

#[test]
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
    let Some(found) = numbers(&code) else { return };
    assert_eq!(found, (0..8).map(|i| 1000 + i / 2 + 100 * (i % 2) + (i << 13)).collect::<Vec<u64>>());
}
