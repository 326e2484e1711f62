//! Atomic operations of all widths, with many work-items at one place.

use oxisycl_backend_opencl::bare::{Device, Program};

use super::super::module_builder::Extensions;
use super::golden::text;
use super::support::{BEGIN, context, device, run, translate_with, translated, validated};

const ITEMS: usize = 1000;

/// The operation's instruction, the memory before and after it, and the type. In the instruction, `%v` is the number of the work-item, and
/// `%w` lacks some of the bits of [`CLEARED`].
struct Case {
    name: &'static str,
    kind: &'static str,
    instruction: &'static str,
    start: u64,
    end: u64,
}

fn case(name: &'static str, kind: &'static str, instruction: &'static str, start: u64, end: u64) -> Case {
    Case { name, kind, instruction, start, end }
}

/// Bits that work-items clear, each those that its number has. All of them are in some number.
const CLEARED: u64 = 0x5A;

#[test]
#[ignore = "needs an OpenCL driver"]
fn operations_of_many_work_items_all_count() {
    let sum: u64 = (0..ITEMS as u64).sum();
    let xor = (0..ITEMS as u64).fold(0, |all, v| all ^ v);
    let cases = [
        case("k_add8", "i8", "atomicrmw add ptr %p, i8 %v monotonic, align 1", 3, (3 + sum) & 0xFF),
        case("k_add16", "i16", "atomicrmw add ptr %p, i16 %v acq_rel, align 2", 3, (3 + sum) & 0xFFFF),
        case("k_add32", "i32", "atomicrmw add ptr %p, i32 %v seq_cst", 3, 3 + sum),
        case("k_add64", "i64", "atomicrmw add ptr %p, i64 %v release", 1 << 40, (1 << 40) + sum),
        case("k_sub32", "i32", "atomicrmw sub ptr %p, i32 %v acquire", 1 << 30, (1 << 30) - sum),
        case("k_xor16", "i16", "atomicrmw xor ptr %p, i16 %v monotonic, align 2", 0, xor),
        case("k_or64", "i64", "atomicrmw or ptr %p, i64 %v monotonic", 0, 1023),
        case("k_umax8", "i8", "atomicrmw umax ptr %p, i8 %v monotonic, align 1", 9, 255),
        case("k_max32", "i32", "atomicrmw max ptr %p, i32 %v monotonic", u64::from(u32::MAX), 999),
        case("k_min32", "i32", "atomicrmw min ptr %p, i32 %v monotonic", 77, 0),
        case("k_umin64", "i64", "atomicrmw umin ptr %p, i64 %v monotonic", u64::MAX, 0),
        case("k_and8", "i8", "atomicrmw and ptr %p, i8 %w monotonic, align 1", 0xFF, 0xFF & !CLEARED),
        case("k_and32", "i32", "atomicrmw and ptr %p, i32 %w acq_rel", 0x1234_5678, 0x1234_5678 & !CLEARED),
        case("k_and64", "i64", "atomicrmw and ptr %p, i64 %w monotonic", u64::MAX, !CLEARED),
        // The number's bits change each time, an even number of times in all; the others become ones.
        case("k_nand16", "i16", "atomicrmw nand ptr %p, i16 90 monotonic, align 2", 0x0F12, 0xFFB7),
        case("k_nand32", "i32", "atomicrmw nand ptr %p, i32 90 seq_cst", 0x0F12, 0xFFFF_FFB7),
        case("k_nand64", "i64", "atomicrmw nand ptr %p, i64 90 monotonic", 0x0F12, 0xFFFF_FFFF_FFFF_FFB7),
    ];
    let cases = &cases;
    let context = context();
    let mut code = String::new();
    for case in cases {
        let number = match case.kind {
            "i64" => "%v = add i64 %i, 0".to_owned(),
            kind => format!("%v = trunc i64 %i to {kind}"),
        };
        code += &format!(
            "define void @{}{BEGIN}%start = load {kind}, ptr %in\n%p = getelementptr i8, ptr %out, i64 {offset}\n{number}\n\
             %some = and {kind} %v, {CLEARED}\n%w = xor {kind} %some, -1\n%old = {}\nret void\n}}\n",
            case.name,
            case.instruction,
            kind = case.kind,
            offset = offset(case.kind),
        );
    }
    // Floats, which have no operations of their own.
    code += &format!(
        "define void @k_float{BEGIN}%v = uitofp i64 %i to float\n%old = atomicrmw fadd ptr %out, float %v monotonic\nret void\n}}\n\
         define void @k_double{BEGIN}%v = uitofp i64 %i to double\n%old = atomicrmw fmax ptr %out, double %v monotonic\nret void\n}}\n"
    );
    let translation = translated(&context, &code);
    assert_eq!(translation.requirements, ["atomic64", "fp64"]);
    let bytes = validated(&translation.module);
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(&bytes) }.unwrap_or_else(|error| panic!("{error}"));
    for case in cases {
        assert_eq!(left_by(&device, &program, case.name, case.kind, case.start), case.end, "{}", case.name);
    }
    assert_eq!(f32::from_bits(left_by(&device, &program, "k_float", "float", 0) as u32), sum as f32);
    assert_eq!(f64::from_bits(left_by(&device, &program, "k_double", "double", 0)), 999.0);
}

/// Runs a kernel whose work-items change one value, and gives the bits that they leave.
fn left_by(device: &Device, program: &Program<'_>, name: &str, kind: &str, start: u64) -> u64 {
    let mut memory = device.allocate(16).expect("memory");
    let at = offset(kind);
    let size = size(kind);
    memory.bytes().fill(0xEE);
    memory.bytes()[at..at + size].copy_from_slice(&start.to_le_bytes()[..size]);
    let arguments = [memory.address(), memory.address()].map(u64::to_le_bytes).concat();
    // SAFETY: the kernels stay within the 16 bytes.
    unsafe { program.run(name, &[&arguments], 0, ([ITEMS, 1, 1], [10, 1, 1])) }.expect("the kernel runs");
    let mut bits = [0; 8];
    bits[..size].copy_from_slice(&memory.bytes()[at..at + size]);
    let untouched = memory.bytes().iter().enumerate().all(|(i, byte)| (at..at + size).contains(&i) || *byte == 0xEE);
    assert!(untouched, "{name} changed its neighbours");
    u64::from_le_bytes(bits)
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn floats_of_many_work_items_become_differences_least_and_greatest_ones() {
    // Each work-item has 500 less its number: from -499 to 500.
    let nan = f64::NAN;
    let cases = [
        ("fsub", 1e6, 1e6 - 500.0),
        ("fmin", 7.0, -499.0),
        ("fmax", 7.0, 500.0),
        ("fminimum", 7.0, -499.0),
        ("fmaximum", 7.0, 500.0),
        ("fmin", -1e3, -1e3),
        ("fmaximum", 1e3, 1e3),
        // What is not a number is as good as absent for two of them, and stays for the others.
        ("fmin", nan, -499.0),
        ("fmax", nan, 500.0),
        ("fminimum", nan, nan),
        ("fmaximum", nan, nan),
    ];
    let kinds = ["float", "double"];
    let context = context();
    let operations = ["fsub", "fmin", "fmax", "fminimum", "fmaximum"];
    let kernel = |operation: &str, kind: &str| {
        format!(
            "define void @k_{operation}_{kind}{BEGIN}%number = uitofp i64 %i to {kind}\n%v = fsub {kind} 500.0, %number\n\
             %old = atomicrmw {operation} ptr %out, {kind} %v monotonic\nret void\n}}\n"
        )
    };
    let code: String = operations.iter().flat_map(|operation| kinds.map(|kind| kernel(operation, kind))).collect();
    let bytes = validated(&translated(&context, &code).module);
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(&bytes) }.unwrap_or_else(|error| panic!("{error}"));
    for (operation, start, end) in cases {
        for kind in kinds {
            let is_single = kind == "float";
            let bits = if is_single { u64::from((start as f32).to_bits()) } else { start.to_bits() };
            let found = left_by(&device, &program, &format!("k_{operation}_{kind}"), kind, bits);
            let found = if is_single { f64::from(f32::from_bits(found as u32)) } else { f64::from_bits(found) };
            assert!(found == end || found.is_nan() && end.is_nan(), "{operation} of {kind} and {start}: {found}");
        }
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn each_value_that_is_exchanged_comes_back_once() {
    // A narrow value holds the numbers of so many.
    const MANY: usize = 250;
    let context = context();
    let kinds = ["i8", "i16", "i32", "i64", "float", "ptr"];
    let kernel = |kind: &str| {
        let number = match kind {
            "i64" => "%v = add i64 %i, 0".to_owned(),
            "float" => "%n = trunc i64 %i to i32\n%v = bitcast i32 %n to float".to_owned(),
            "ptr" => "%v = inttoptr i64 %i to ptr".to_owned(),
            kind => format!("%v = trunc i64 %i to {kind}"),
        };
        format!(
            "define void @k_{kind}{BEGIN}{number}\n%old = atomicrmw xchg ptr %in, {kind} %v acq_rel, align {}\n\
             %place = getelementptr i64, ptr %out, i64 %i\nstore i64 0, ptr %place\nstore {kind} %old, ptr %place\nret void\n}}\n",
            size(kind)
        )
    };
    let code: String = kinds.map(kernel).concat();
    let bytes = validated(&translated(&context, &code).module);
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(&bytes) }.unwrap_or_else(|error| panic!("{error}"));
    for kind in kinds {
        let (mut cell, mut olds) = (device.allocate(8).expect("memory"), device.allocate(8 * MANY).expect("memory"));
        // No work-item has this number.
        cell.bytes()[0] = MANY as u8;
        let arguments = [cell.address(), olds.address()].map(u64::to_le_bytes).concat();
        // SAFETY: 250 work-items, each with 8 bytes of the output, and one value of at most 8 bytes.
        unsafe { program.run(&format!("k_{kind}"), &[&arguments], 0, ([MANY, 1, 1], [10, 1, 1])) }.expect("it runs");
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let mut seen: Vec<u64> = olds.bytes().chunks(8).map(number).collect();
        seen.push(number(cell.bytes()));
        seen.sort_unstable();
        assert_eq!(seen, (0..=MANY as u64).collect::<Vec<_>>(), "{kind}");
    }
}

fn size(kind: &str) -> usize {
    match kind {
        "i8" => 1,
        "i16" => 2,
        "i32" | "float" => 4,
        _ => 8,
    }
}

/// Narrow values lie within a word.
fn offset(kind: &str) -> usize {
    match kind {
        "i8" => 5,
        "i16" => 6,
        _ => 0,
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn exchanges_succeed_once_and_tell_the_old_value() {
    let context = context();
    let mut code = String::new();
    for kind in ["i8", "i16", "i32", "i64"] {
        code += &format!(
            "define void @k_{kind}{BEGIN}%pair = cmpxchg ptr %in, {kind} 7, {kind} 9 acq_rel monotonic
  %old = extractvalue {{ {kind}, i1 }} %pair, 0
  %won = extractvalue {{ {kind}, i1 }} %pair, 1
  %again = cmpxchg ptr %in, {kind} 7, {kind} 9 seq_cst seq_cst
  %lost = extractvalue {{ {kind}, i1 }} %again, 1
  %now = load atomic {kind}, ptr %in acquire, align {size}
  %next = getelementptr i8, ptr %in, i64 8
  store atomic {kind} 42, ptr %next release, align {size}
  store {kind} %old, ptr %out
  %o1 = getelementptr i8, ptr %out, i64 8
  store {kind} %now, ptr %o1
  %o2 = getelementptr i8, ptr %out, i64 16
  store i1 %won, ptr %o2
  %o3 = getelementptr i8, ptr %out, i64 17
  store i1 %lost, ptr %o3
  %o4 = getelementptr i8, ptr %out, i64 24
  %stored = load {kind}, ptr %next
  store {kind} %stored, ptr %o4
  ret void\n}}\n",
            size = size(kind)
        );
    }
    let bytes = validated(&translated(&context, &code).module);
    let input = [7, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    let kernels = ["k_i8", "k_i16", "k_i32", "k_i64"].map(|name| (name, &input[..], 32));
    let outputs = run(&bytes, &kernels, 1);
    for ((name, ..), output) in kernels.iter().zip(outputs) {
        assert_eq!((output[0], output[8], output[24]), (7, 9, 42), "{name}");
        assert_eq!((output[16], output[17]), (1, 0), "{name}");
    }
}

#[test]
fn orders_and_scopes_are_kept() {
    let context = context();
    let body = |instruction: &str| {
        let code = format!("define void @k{BEGIN}{instruction}\nret void\n}}\n");
        text(&translated(&context, &code).module)
    };
    // In SPIR-V an order is a constant of bits, with both kinds of memory: 0x300.
    for (order, bits) in
        [("monotonic", 0), ("acquire", 0x302), ("release", 0x304), ("acq_rel", 0x308), ("seq_cst", 0x310)]
    {
        let found = body(&format!("%x = atomicrmw add ptr %out, i32 1 {order}"));
        assert!(found.contains(&format!("OpConstant  %{}  {bits}\n", type_of_u32(&found))), "{order}: {found}");
    }
    for (scope, number) in [("", 1), ("device", 1), ("workgroup", 2), ("system", 0)] {
        let found = body(&format!("fence syncscope(\"{scope}\") seq_cst"));
        let id = constant(&found, number);
        assert!(found.contains(&format!("OpMemoryBarrier %{id} ")), "{scope}: {found}");
    }
    assert!(!body("fence syncscope(\"singlethread\") seq_cst").contains("OpMemoryBarrier"));
}

fn type_of_u32(text: &str) -> &str {
    let line = text.lines().find(|line| line.contains("OpTypeInt 32 0")).expect("a type of 32 bits");
    line.trim_start_matches('%').split(' ').next().expect("an id")
}

fn constant(text: &str, value: u32) -> &str {
    let end = format!("OpConstant  %{}  {value}", type_of_u32(text));
    let line = text.lines().find(|line| line.ends_with(&end)).unwrap_or_else(|| panic!("no constant {value}: {text}"));
    line.trim_start_matches('%').split(' ').next().expect("an id")
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn private_memory_is_accessed_plainly() {
    let context = context();
    let code = format!(
        "define void @k{BEGIN}%p = alloca i32
  store i32 5, ptr %p
  %a = atomicrmw add ptr %p, i32 6 seq_cst
  %b = cmpxchg ptr %p, i32 11, i32 20 seq_cst seq_cst
  %c = load atomic i32, ptr %p acquire, align 4
  %d = add i32 %a, %c
  store i32 %d, ptr %out
  ret void\n}}\n"
    );
    let translation = translated(&context, &code);
    assert!(!text(&translation.module).contains("OpAtomic"));
    let bytes = validated(&translation.module);
    let outputs = run(&bytes, &[("k", &[0; 8], 4)], 1);
    assert_eq!(outputs[0], 25u32.to_le_bytes());
}

/// The kernel below looks for its cell by the number of the work-item modulo 4. It looks in its own memory, in the group's, in the
/// device's, and where the input says.
#[test]
#[ignore = "needs an OpenCL driver"]
fn an_address_of_any_memory_can_be_changed_atomically() {
    let context = context();
    let code = format!(
        "@cells = internal addrspace(3) global [4 x i64] poison, align 8
declare i64 @oxisycl.spirv.local_id(i32)
define void @k{BEGIN}
  %l = call i64 @oxisycl.spirv.local_id(i32 0)
  %own = alloca i64, align 8
  %groups = getelementptr i64, ptr addrspacecast (ptr addrspace(3) @cells to ptr), i64 %l
  %r = mul i64 %i, 64
  %row = getelementptr i8, ptr %out, i64 %r
  %k = urem i64 %i, 4
  switch i64 %k, label %one [ i64 1, label %two i64 2, label %three i64 3, label %four ]
one: br label %chosen
two: br label %chosen
three: br label %chosen
four:
  %n = load ptr, ptr %in
  %given = getelementptr i8, ptr %n, i64 %r
  br label %chosen
chosen:
  %p = phi ptr [ %own, %one ], [ %groups, %two ], [ %row, %three ], [ %given, %four ]
  %q = getelementptr i8, ptr %p, i64 3
  store atomic i64 1000, ptr %p release, align 8
  %old = atomicrmw add ptr %p, i64 %i acq_rel
  %pair = cmpxchg ptr %p, i64 1003, i64 7 seq_cst monotonic
  %before = extractvalue {{ i64, i1 }} %pair, 0
  %won = extractvalue {{ i64, i1 }} %pair, 1
  %byte = atomicrmw or ptr %q, i8 17 monotonic, align 1
  %now = load atomic i64, ptr %p acquire, align 8
  %o1 = getelementptr i8, ptr %row, i64 8
  store i64 %old, ptr %o1
  %o2 = getelementptr i8, ptr %row, i64 16
  store i64 %before, ptr %o2
  %o3 = getelementptr i8, ptr %row, i64 24
  store i64 %now, ptr %o3
  %o4 = getelementptr i8, ptr %row, i64 32
  store i8 %byte, ptr %o4
  %o5 = getelementptr i8, ptr %row, i64 33
  store i1 %won, ptr %o5
  ret void\n}}\n"
    );
    let translation = translated(&context, &code);
    let bytes = validated(&translation.module);
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(&bytes) }.unwrap_or_else(|error| panic!("{error}"));
    let mut memory = device.allocate(64 * 8).expect("memory");
    let mut input = device.allocate(8).expect("memory");
    input.bytes().copy_from_slice(&memory.address().to_le_bytes());
    let arguments = [input.address(), memory.address()].map(u64::to_le_bytes).concat();
    // SAFETY: 8 work-items, each with 64 bytes of its own.
    unsafe { program.run("k", &[&arguments], 0, ([8, 1, 1], [4, 1, 1])) }.expect("the kernel runs");
    for (item, row) in memory.bytes().chunks(64).enumerate() {
        let number = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().expect("eight bytes"));
        let sum = 1000 + item as u64;
        let exchanged = if sum == 1003 { 7 } else { sum };
        let now = exchanged | 17 << 24;
        assert_eq!((number(8), number(16), number(24)), (1000, sum, now), "{item}");
        assert_eq!((row[32], row[33]), (0, u8::from(sum == 1003)), "{item}");
        assert_eq!(number(0), if item % 4 >= 2 { now } else { 0 }, "{item}: the others changed other memory");
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn work_items_meet_at_an_address_from_memory() {
    const MANY: usize = 1 << 21;
    let context = context();
    let code = format!(
        "define void @k{BEGIN}
  %p = load ptr, ptr %in
  %old = atomicrmw add ptr %p, i32 1 monotonic
  ret void\n}}\n"
    );
    let translation = translated(&context, &code);
    let bytes = validated(&translation.module);
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(&bytes) }.unwrap_or_else(|error| panic!("{error}"));
    let mut memory = device.allocate(4).expect("memory");
    let mut input = device.allocate(8).expect("memory");
    input.bytes().copy_from_slice(&memory.address().to_le_bytes());
    let arguments = [input.address(), memory.address()].map(u64::to_le_bytes).concat();
    // SAFETY: the kernel's only access is to the four bytes.
    unsafe { program.run("k", &[&arguments], 0, ([MANY, 1, 1], [64, 1, 1])) }.expect("the kernel runs");
    assert_eq!(memory.bytes(), (MANY as u32).to_le_bytes());
}

/// The address of a launch's record is a number among the arguments, and what leaves a panic there is not inlined.
#[test]
#[ignore = "needs an OpenCL driver"]
fn functions_know_the_memory_of_their_parameters() {
    let context = context();
    let code = format!(
        "define void @k{BEGIN}
  %own = alloca i32, align 4
  call void @count(ptr %out)
  store i32 5, ptr %own
  call void @count(ptr %own)
  call void @count(ptr %own)
  %n = load i32, ptr %own
  %o = getelementptr i8, ptr %out, i64 4
  store i32 %n, ptr %o
  call void @record(ptr %args)
  ret void\n}}
define internal void @count(ptr %p) noinline {{
  %old = atomicrmw add ptr %p, i32 1 monotonic
  ret void\n}}
define internal void @record(ptr %launch) noinline {{
  %r = load i64, ptr %launch
  %p = inttoptr i64 %r to ptr
  %pair = cmpxchg ptr %p, i32 7, i32 9 monotonic monotonic
  ret void\n}}\n"
    );
    let translation = translated(&context, &code);
    let found = text(&translation.module);
    assert!(!found.contains("Generic"), "{found}");
    // One for the memory of the work-item, which is no atomic operation, and one for global memory.
    assert_eq!(found.matches("OpFunction ").count(), 4, "{found}");
    assert_eq!(found.matches("OpAtomicIAdd").count(), 1, "{found}");
    let bytes = validated(&translation.module);
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(&bytes) }.unwrap_or_else(|error| panic!("{error}"));
    let (mut input, mut output) = (device.allocate(4).expect("memory"), device.allocate(8).expect("memory"));
    input.bytes()[0] = 7;
    let arguments = [input.address(), output.address()].map(u64::to_le_bytes).concat();
    // SAFETY: the kernel's accesses are to the first bytes of both.
    unsafe { program.run("k", &[&arguments], 0, ([1, 1, 1], [1, 1, 1])) }.expect("the kernel runs");
    assert_eq!(input.bytes(), 9u32.to_le_bytes());
    assert_eq!(output.bytes(), [1u32.to_le_bytes(), 7u32.to_le_bytes()].concat());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn sums_of_floats_are_one_instruction_where_the_module_may_use_it() {
    let code = format!(
        "define void @k_single{BEGIN}%v = uitofp i64 %i to float\n%old = atomicrmw fadd ptr %out, float %v monotonic\nret void\n}}\n\
         define void @k_double{BEGIN}%v = uitofp i64 %i to double\n%old = atomicrmw fadd ptr %out, double %v monotonic\nret void\n}}\n"
    );
    let context = context();
    assert!(!translated(&context, &code).uses_float_atomics);
    let translation = translate_with(&context, &code, Extensions { float_atomics: true }).expect("a translation");
    assert!(translation.uses_float_atomics);
    let bytes = validated(&translation.module);
    let sums = text(&translation.module);
    assert_eq!(
        (sums.matches("OpAtomicFAddEXT").count(), sums.matches("OpAtomicCompareExchange").count()),
        (2, 0),
        "{sums}"
    );
    let device = device();
    // SAFETY: validated above.
    let program = unsafe { device.build(&bytes) }.unwrap_or_else(|error| panic!("{error}"));
    let sum_of = |kernel: &str| {
        let mut memory = device.allocate(16).expect("memory");
        let arguments = [memory.address().to_le_bytes(); 2].concat();
        // SAFETY: the kernels add to the first bytes of the memory.
        unsafe { program.run(kernel, &[&arguments], 0, ([ITEMS, 1, 1], [1; 3])) }.expect("the kernel runs");
        memory.bytes()[..8].try_into().map(u64::from_le_bytes).expect("8 bytes")
    };
    let expected = ITEMS * (ITEMS - 1) / 2;
    assert_eq!(f32::from_bits(sum_of("k_single") as u32), expected as f32);
    assert_eq!(f64::from_bits(sum_of("k_double")), expected as f64);
}
