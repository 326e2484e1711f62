//! Memory: copies, fills, local variables, constants, and the group's local memory.

use super::golden::text;
use super::support::{BEGIN, UNTOUCHED, context, device, run, translated, validated};

/// Runs `k` once on 64 numbered bytes.
fn once(code: &str, output: usize) -> Vec<u8> {
    let context = context();
    let bytes = validated(&translated(&context, code).module);
    let input: Vec<u8> = (0..64).collect();
    run(&bytes, &[("k", &input, output)], 1).remove(0)
}

const DECLARATIONS: &str = "
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n";

#[test]
#[ignore = "needs an OpenCL driver"]
fn copies_of_any_size_copy_that_many_bytes() {
    let code = format!(
        "define void @k{BEGIN}
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr align 4 %in, i64 13, i1 false)
  %o1 = getelementptr i8, ptr %out, i64 16
  %n = load i8, ptr %in
  %m = zext i8 %n to i64
  %k = add i64 %m, 9
  call void @llvm.memcpy.p0.p0.i64(ptr %o1, ptr %in, i64 %k, i1 false)
  %big = alloca [256 x i8], align 8
  call void @llvm.memset.p0.i64(ptr align 8 %big, i8 90, i64 251, i1 false)
  %b1 = getelementptr i8, ptr %big, i64 251
  call void @llvm.memset.p0.i64(ptr %b1, i8 91, i64 5, i1 false)
  %o2 = getelementptr i8, ptr %out, i64 32
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %o2, ptr align 8 %big, i64 256, i1 false)
  %o3 = getelementptr i8, ptr %out, i64 300
  call void @llvm.memset.p0.i64(ptr %o3, i8 17, i64 %k, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %o3, ptr %in, i64 0, i1 false)
  ret void\n}}{DECLARATIONS}"
    );
    let found = once(&code, 320);
    let mut expected = vec![UNTOUCHED; 320];
    expected[..13].copy_from_slice(&(0..13).collect::<Vec<u8>>());
    expected[16..25].copy_from_slice(&(0..9).collect::<Vec<u8>>());
    expected[32..283].fill(90);
    expected[283..288].fill(91);
    expected[300..309].fill(17);
    assert_eq!(found, expected);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn moves_may_overlap_in_both_directions() {
    let code = format!(
        "define void @k{BEGIN}
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %in, i64 64, i1 false)
  %n = load i8, ptr %in
  %m = zext i8 %n to i64
  %k = add i64 %m, 20
  %a = getelementptr i8, ptr %out, i64 3
  call void @llvm.memmove.p0.p0.i64(ptr %a, ptr %out, i64 %k, i1 false)
  %b = getelementptr i8, ptr %out, i64 40
  %c = getelementptr i8, ptr %out, i64 36
  call void @llvm.memmove.p0.p0.i64(ptr %c, ptr %b, i64 %k, i1 false)
  %d = getelementptr i8, ptr %out, i64 60
  %e = getelementptr i8, ptr %out, i64 61
  call void @llvm.memmove.p0.p0.i64(ptr %e, ptr %d, i64 3, i1 false)
  ret void\n}}{DECLARATIONS}"
    );
    let found = once(&code, 64);
    let mut expected: Vec<u8> = (0..64).collect();
    expected.copy_within(0..20, 3);
    expected.copy_within(40..60, 36);
    expected.copy_within(60..63, 61);
    assert_eq!(found, expected);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn constants_are_found_in_every_shape() {
    let code = format!(
        "@numbers = private constant [3 x i32] [i32 10, i32 -20, i32 30]
@record = private constant {{ i8, i64, [2 x i16], double }} {{ i8 1, i64 -2, [2 x i16] [i16 3, i16 4], double 1.5 }}
@text = private constant [4 x i8] c\"abcd\"
@other = private constant [2 x i8] c\"xy\"
@table = private constant [2 x {{ ptr, i64 }}] [{{ ptr, i64 }} {{ ptr @text, i64 4 }}, {{ ptr, i64 }} {{ ptr getelementptr (i8, ptr @other, i64 1), i64 1 }}]
define void @k{BEGIN}
  %n = load i8, ptr %in
  %m = zext i8 %n to i64
  %one = add i64 %m, 1
  %p = getelementptr i32, ptr @numbers, i64 %one
  %v = load i32, ptr %p
  store i32 %v, ptr %out
  %q = getelementptr {{ i8, i64, [2 x i16], double }}, ptr @record, i64 %m, i32 2, i64 %one
  %w = load i16, ptr %q
  %o1 = getelementptr i8, ptr %out, i64 4
  store i16 %w, ptr %o1
  %s = getelementptr {{ ptr, i64 }}, ptr @table, i64 %one
  %a = load ptr, ptr %s
  %x = load i8, ptr %a
  %o2 = getelementptr i8, ptr %out, i64 6
  store i8 %x, ptr %o2
  %s0 = getelementptr {{ ptr, i64 }}, ptr @table, i64 %m
  %a0 = load ptr, ptr %s0
  %a2 = getelementptr i8, ptr %a0, i64 2
  %y = load i8, ptr %a2
  %o3 = getelementptr i8, ptr %out, i64 7
  store i8 %y, ptr %o3
  ret void\n}}\n"
    );
    let found = once(&code, 8);
    let expected = [&(-20i32).to_le_bytes()[..], &4u16.to_le_bytes(), b"yc"].concat();
    assert_eq!(found, expected);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn structs_are_loaded_and_stored_member_by_member() {
    let code = format!(
        "define void @k{BEGIN}
  %v = load {{ i8, i32, [2 x i16], i1 }}, ptr %in
  %b = extractvalue {{ i8, i32, [2 x i16], i1 }} %v, 2, 1
  %w = insertvalue {{ i8, i32, [2 x i16], i1 }} %v, i16 -1, 2, 0
  %x = insertvalue {{ i8, i32, [2 x i16], i1 }} %w, i1 true, 3
  store {{ i8, i32, [2 x i16], i1 }} %x, ptr %out
  %o = getelementptr i8, ptr %out, i64 16
  store i16 %b, ptr %o
  ret void\n}}\n"
    );
    let found = once(&code, 18);
    let mut expected = vec![UNTOUCHED; 18];
    expected[0] = 0;
    expected[4..8].copy_from_slice(&[4, 5, 6, 7]);
    expected[8..12].copy_from_slice(&[255, 255, 10, 11]);
    expected[12] = 1;
    expected[16..].copy_from_slice(&[10, 11]);
    assert_eq!(found, expected);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_group_exchanges_values_through_local_memory() {
    let code = format!(
        "@fixed = internal addrspace(3) global [8 x i32] poison, align 4
@oxisycl_local_memory = external addrspace(3) global [0 x i8], align 16
declare i64 @oxisycl.spirv.local_id(i32)
declare void @oxisycl.spirv.barrier() convergent
define void @k{BEGIN}
  %l = call i64 @oxisycl.spirv.local_id(i32 0)
  %n = trunc i64 %i to i32
  %p = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @fixed to ptr), i64 %l
  store i32 %n, ptr %p
  %q = getelementptr i32, ptr addrspace(3) @oxisycl_local_memory, i64 %l
  %d = mul i32 %n, 3
  store i32 %d, ptr addrspace(3) %q
  call void @oxisycl.spirv.barrier()
  %r = sub i64 7, %l
  %p2 = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @fixed to ptr), i64 %r
  %a = load i32, ptr %p2
  %q2 = getelementptr i32, ptr addrspace(3) @oxisycl_local_memory, i64 %r
  %b = load i32, ptr addrspace(3) %q2
  %s = add i32 %a, %b
  %po = getelementptr i32, ptr %out, i64 %i
  store i32 %s, ptr %po
  ret void\n}}\n"
    );
    let context = context();
    let bytes = validated(&translated(&context, &code).module);
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(&bytes) }.unwrap_or_else(|error| panic!("{error}"));
    let mut memory = device.allocate(32 * 4).expect("memory");
    let arguments = [memory.address(), memory.address()].map(u64::to_le_bytes).concat();
    // SAFETY: 32 work-items, each with its number.
    unsafe { program.run("k", &[&arguments], 8 * 4, ([32, 1, 1], [8, 1, 1])) }.expect("the kernel runs");
    let found: Vec<u32> =
        memory.bytes().chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes"))).collect();
    assert_eq!(found, (0..32).map(|i| 4 * (i / 8 * 8 + 7 - i % 8)).collect::<Vec<u32>>());
}

/// How often instructions are in a kernel that stores a byte to `%p`, or as many as `%n` says.
fn counts(body: &str, instructions: [&str; 2]) -> [usize; 2] {
    let context = context();
    let code = format!("define void @k{BEGIN}{body}\n  ret void\n}}\n");
    let module = translated(&context, &code).module;
    validated(&module);
    let text = text(&module);
    instructions.map(|instruction| text.matches(instruction).count())
}

#[test]
fn one_index_counts_scalars_and_others_count_bytes() {
    let of = |address: &str| counts(&format!("  %p = {address}\n  store i8 1, ptr %p"), ["OpIMul", "PtrAccessChain"]);
    // The chain of each kernel's own parameter is the first.
    assert_eq!(of("getelementptr float, ptr %out, i64 %i"), [0, 2]);
    assert_eq!(of("getelementptr inbounds i64, ptr %out, i64 %i"), [0, 2]);
    assert_eq!(of("getelementptr [8 x i16], ptr %out, i64 0, i64 %i"), [0, 2]);
    // A constant comes before the index.
    assert_eq!(of("getelementptr inbounds [8 x i32], ptr %out, i64 2, i64 %i"), [0, 3]);
    assert_eq!(of("getelementptr [3 x i32], ptr %out, i64 %i"), [1, 2]);
    assert_eq!(of("getelementptr [3 x i32], ptr %out, i64 %i, i64 %i"), [2, 2]);
}

#[test]
fn an_or_without_common_bits_is_a_sum() {
    let of = |or: &str| counts(&format!("  %n = {or} i64 %i, 1\n  store i64 %n, ptr %out"), ["OpIAdd", "OpBitwiseOr"]);
    assert_eq!(of("or disjoint"), [1, 0]);
    assert_eq!(of("or"), [0, 1]);
}
