//! Kernels from source and built-in kernels: PTX and OpenCL C on the devices that take them (V16, E9, M11).

use oxisycl::BackendKind;
use oxisycl::arguments;
use oxisycl::interop::{NativeKernel, NativeModule};
use oxisycl::prelude::*;
use oxisycl::source_bundle::{RawArgument, RawKernel, SourceBundle};

use crate::harness::{Env, tests};
use crate::support::{code, counted};

tests![
    kernels_from_source_run_with_arguments_by_index,
    a_module_of_spirv_runs_with_arguments_by_index,
    arguments_and_ranges_that_do_not_fit_are_refused_before_anything_is_enqueued,
    kernels_of_a_native_module_run_with_arguments_by_index,
    native_modules_that_are_not_the_device_s_are_refused,
    source_that_does_not_compile_is_a_build_error_with_the_log,
    a_kernel_from_source_is_for_its_device_and_context,
    built_in_kernels_are_listed_and_no_others_are_found,
];

/// `y[i] = a * x[i] + y[i]`, by way of local memory.
const OPENCL_C: &str = "
kernel void add(global const uint *x, global uint *y, uint a, local uint *own) {
    size_t i = get_global_id(0), l = get_local_id(0);
    own[l] = a * x[i];
    y[i] += own[l];
}";

/// The kernels in PTX.
const PTX: &str = "
.version 6.0
.target sm_70
.address_size 64
.extern .shared .align 4 .b8 own[];
.visible .entry add(.param .u64 add_x, .param .u64 add_y, .param .u32 add_a)
{
    .reg .b32 %r<12>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [add_x];
    ld.param.u64 %rd2, [add_y];
    ld.param.u32 %r1, [add_a];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    mul.wide.u32 %rd3, %r5, 4;
    cvta.to.global.u64 %rd4, %rd1;
    cvta.to.global.u64 %rd5, %rd2;
    add.u64 %rd4, %rd4, %rd3;
    add.u64 %rd5, %rd5, %rd3;
    ld.global.u32 %r6, [%rd4];
    mul.lo.u32 %r7, %r6, %r1;
    shl.b32 %r8, %r4, 2;
    mov.u32 %r9, own;
    add.u32 %r9, %r9, %r8;
    st.shared.u32 [%r9], %r7;
    ld.shared.u32 %r10, [%r9];
    ld.global.u32 %r11, [%rd5];
    add.u32 %r11, %r11, %r10;
    st.global.u32 [%rd5], %r11;
    ret;
}
";

/// The kernels in SPIR-V, without local memory: instructions, each with its operands. Types have the ids 1 to 7, and the
/// global id has 8. The kernel is 9, and its parameters `x`, `y` and `a` are 10 to 12.
const SPIRV: &[(u32, &[u32])] = &[
    (17, &[4]),                     // OpCapability Addresses
    (17, &[6]),                     // OpCapability Kernel
    (17, &[11]),                    // OpCapability Int64
    (14, &[2, 2]),                  // OpMemoryModel Physical64 OpenCL
    (15, &[6, 9, ADD, 8]),          // OpEntryPoint Kernel %9 "add" %8
    (71, &[8, 11, 28]),             // OpDecorate %8 BuiltIn GlobalInvocationId
    (71, &[8, 22]),                 // OpDecorate %8 Constant
    (19, &[1]),                     // %1 = OpTypeVoid
    (21, &[2, 32, 0]),              // %2 = OpTypeInt 32 0
    (21, &[3, 64, 0]),              // %3 = OpTypeInt 64 0
    (23, &[4, 3, 3]),               // %4 = OpTypeVector %3 3
    (32, &[5, 1, 4]),               // %5 = OpTypePointer Input %4
    (32, &[6, 5, 2]),               // %6 = OpTypePointer CrossWorkgroup %2
    (33, &[7, 1, 6, 6, 2]),         // %7 = OpTypeFunction %1 %6 %6 %2
    (59, &[5, 8, 1]),               // %8 = OpVariable Input
    (54, &[1, 9, 0, 7]),            // %9 = OpFunction
    (55, &[6, 10]),                 // %10 = OpFunctionParameter
    (55, &[6, 11]),                 // %11 = OpFunctionParameter
    (55, &[2, 12]),                 // %12 = OpFunctionParameter
    (248, &[13]),                   // OpLabel
    (61, &[4, 14, 8]),              // %14 = OpLoad %8
    (81, &[3, 15, 14, 0]),          // %15 = OpCompositeExtract %14 0
    (70, &[6, 16, 10, 15]),         // %16 = OpInBoundsPtrAccessChain %10 %15
    (61, &[2, 17, 16, ALIGNED, 4]), // %17 = OpLoad %16
    (132, &[2, 18, 17, 12]),        // %18 = OpIMul %17 %12
    (70, &[6, 19, 11, 15]),         // %19 = OpInBoundsPtrAccessChain %11 %15
    (61, &[2, 20, 19, ALIGNED, 4]), // %20 = OpLoad %19
    (128, &[2, 21, 20, 18]),        // %21 = OpIAdd %20 %18
    (62, &[19, 21, ALIGNED, 4]),    // OpStore %19 %21
    (253, &[]),                     // OpReturn
    (56, &[]),                      // OpFunctionEnd
];
/// The kernel's name, in the bytes of a word, and the operand that says how memory is aligned.
const ADD: u32 = u32::from_le_bytes(*b"add\0");
const ALIGNED: u32 = 2;

/// The bytes of the module.
fn spirv() -> Vec<u8> {
    let mut words = vec![0x0723_0203, 0x0001_0000, 0, 22, 0];
    for (code, operands) in SPIRV {
        words.push((operands.len() as u32 + 1) << 16 | code);
        words.extend_from_slice(operands);
    }
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// The bundle of a text in the language that the queue's device takes, if it takes one.
fn bundle(queue: &Queue, opencl_c: &str, ptx: &str) -> Option<oxisycl::Result<SourceBundle>> {
    let (context, device) = (queue.context(), queue.device());
    // SAFETY: the texts do no harm when they are compiled.
    unsafe {
        match device.backend() {
            BackendKind::Cuda => Some(SourceBundle::from_ptx(context, device, ptx)),
            BackendKind::OpenCl => Some(SourceBundle::from_opencl_c(context, device, opencl_c, "")),
            _ => {
                for refused in [
                    SourceBundle::from_ptx(context, device, ptx),
                    SourceBundle::from_opencl_c(context, device, opencl_c, ""),
                    SourceBundle::from_spirv(context, device, &[]),
                ] {
                    assert_eq!(code(refused), ErrorCode::FeatureNotSupported);
                }
                None
            }
        }
    }
}

/// The kernel `add` on the queue's device, if it takes source.
fn add_kernel(queue: &Queue) -> Option<RawKernel> {
    Some(bundle(queue, OPENCL_C, PTX)?.unwrap().kernel("add").unwrap())
}

fn range(global: usize, local: usize) -> NdRange<1> {
    NdRange::new(Range::new([global]), Range::new([local]))
}

fn kernels_from_source_run_with_arguments_by_index(env: &Env) {
    for queue in [env.queue(), env.in_order_queue()] {
        let Some(add) = add_kernel(&queue) else { return };
        assert!(add.info().max_work_group_size >= 32);
        let x = Buffer::from_vec((0..1024u32).collect()).unwrap();
        let y = Buffer::from_vec(vec![1u32; 1024]).unwrap();
        for a in 0..4u32 {
            let launched = queue.submit(|cg| {
                let (x, y) = (cg.access(&x, Read), cg.access(&y, ReadWrite));
                // SAFETY: the kernel uses 1024 elements of both, and 32 numbers of local memory.
                unsafe { cg.launch_raw(&add, range(1024, 32), arguments![x, y, a, RawArgument::local(128)]) }
            });
            launched.unwrap();
            // Between two of them comes one of the program's own.
            let own = queue.submit(|cg| {
                let y = cg.access(&y, ReadWrite);
                cg.parallel_for(1024, move |item| y.update(item, |y| 2 * y))
            });
            own.unwrap();
        }
        // A ranged accessor stands for its first element, and an empty range for nothing.
        for n in [32, 0] {
            let launched = queue.submit(|cg| {
                let (x, y) = (cg.access_range(&x, Read, 100, 32), cg.access_range(&y, ReadWrite, 64, 32));
                // SAFETY: the kernel uses 32 elements of both.
                unsafe { cg.launch_raw(&add, range(n, 32), arguments![x, y, 1u32, RawArgument::local(128)]) }
            });
            launched.unwrap();
        }
        let expected = (0..1024u32).map(|i| {
            let all = (0..4).fold(1, |y, a| 2 * (y + a * i));
            if (64..96).contains(&i) { all + i + 36 } else { all }
        });
        assert_eq!(y.to_vec().unwrap(), expected.collect::<Vec<_>>());
    }
}

fn a_module_of_spirv_runs_with_arguments_by_index(env: &Env) {
    if env.device().backend() != BackendKind::OpenCl {
        return;
    }
    for queue in [env.queue(), env.in_order_queue()] {
        // SAFETY: the module is that of above.
        let load = |module: &[u8]| unsafe { SourceBundle::from_spirv(queue.context(), queue.device(), module) };
        let add = load(&spirv()).unwrap().kernel("add").unwrap();
        let x = Buffer::from_vec((0..1024u32).collect()).unwrap();
        let y = Buffer::from_vec(vec![1u32; 1024]).unwrap();
        for a in 1..4u32 {
            let launched = queue.submit(|cg| {
                let (x, y) = (cg.access(&x, Read), cg.access(&y, ReadWrite));
                // SAFETY: the kernel uses 1024 elements of both.
                unsafe { cg.launch_raw(&add, range(1024, 32), arguments![x, y, a]) }
            });
            launched.unwrap();
        }
        assert!(y.to_vec().unwrap().into_iter().eq((0..1024).map(|i| 1 + 6 * i)));
        // Not a part of it with whole words: Intel's driver ends the process there.
        assert_eq!(code(load(&spirv()[..7])), ErrorCode::Build);
    }
}

fn kernels_of_a_native_module_run_with_arguments_by_index(env: &Env) {
    let queue = env.queue();
    let Some(original) = bundle(&queue, OPENCL_C, PTX) else { return };
    let original = original.unwrap();
    let (context, device) = (queue.context(), queue.device());
    // SAFETY: a live module of the device, which outlives the commands.
    let borrowed = unsafe { SourceBundle::from_native(context, device, original.native_module()) }.unwrap();
    assert_eq!(borrowed.native_module(), original.native_module());
    let add = borrowed.kernel("add").unwrap();
    let handle = match (add.native_kernel(), device.backend()) {
        (NativeKernel::Cuda(handle), BackendKind::Cuda) | (NativeKernel::OpenCl(handle), BackendKind::OpenCl) => handle,
        (other, backend) => panic!("{other:?} of {backend}"),
    };
    assert!(!handle.is_null());
    assert_eq!(borrowed.kernel("missing").unwrap_err().code(), ErrorCode::Invalid);
    drop(borrowed);
    let x = Buffer::from_vec((0..64u32).collect()).unwrap();
    let y = Buffer::from_vec(vec![1u32; 64]).unwrap();
    let launched = queue.submit(|cg| {
        let (x, y) = (cg.access(&x, Read), cg.access(&y, ReadWrite));
        // SAFETY: the kernel uses 64 elements of both, and 32 numbers of local memory.
        unsafe { cg.launch_raw(&add, range(64, 32), arguments![x, y, 3u32, RawArgument::local(128)]) }
    });
    launched.unwrap();
    drop(add);
    assert!(y.to_vec().unwrap().into_iter().eq((0..64).map(|i| 1 + 3 * i)));
    // The module is still there.
    assert!(original.kernel("add").is_ok());
}

fn native_modules_that_are_not_the_device_s_are_refused(env: &Env) {
    let queue = env.queue();
    let (context, device) = (queue.context(), queue.device());
    let backend = device.backend();
    for native in [NativeModule::Cuda(std::ptr::null_mut()), NativeModule::OpenCl(std::ptr::null_mut())] {
        // SAFETY: a null handle.
        let error = unsafe { SourceBundle::from_native(context, device, native) }.unwrap_err();
        let is_own = match native {
            NativeModule::Cuda(_) => backend == BackendKind::Cuda,
            _ => backend == BackendKind::OpenCl,
        };
        assert_eq!(error.code(), if is_own { ErrorCode::Invalid } else { ErrorCode::BackendMismatch }, "{error}");
        let text = error.to_string();
        assert!(text.contains(device.name()) && text.contains("native module 0x0"), "{text}");
    }
}

fn arguments_and_ranges_that_do_not_fit_are_refused_before_anything_is_enqueued(env: &Env) {
    let queue = env.queue();
    let Some(add) = add_kernel(&queue) else { return };
    let (x, y) = (Buffer::from_vec(vec![1u32; 64]).unwrap(), Buffer::from_vec(vec![1u32; 64]).unwrap());
    type Arguments =
        for<'cg> fn(Accessor<'cg, u32, 1, Read>, Accessor<'cg, u32, 1, ReadWrite>) -> Vec<RawArgument<'cg>>;
    let refused = |range: NdRange<1>, make: Arguments| {
        let (since, error) = counted(|| {
            let launched = queue.submit(|cg| {
                let (x, y) = (cg.access(&x, Read), cg.access(&y, ReadWrite));
                // SAFETY: the launch is refused.
                unsafe { cg.launch_raw(&add, range, make(x, y)) }
            });
            launched.unwrap_err()
        });
        assert_eq!(since.nodes, 0);
        let text = error.to_string();
        assert!(text.contains("kernel \"add\"") && text.contains(queue.device().name()), "{text}");
        (error.code(), text)
    };
    let few = refused(range(64, 32), |x, y| arguments![x, y].into());
    assert_eq!(few.0, ErrorCode::KernelArgument, "{}", few.1);
    let large = refused(range(64, 32), |x, y| arguments![x, y, 1u64, RawArgument::local(128)].into());
    assert_eq!(large.0, ErrorCode::KernelArgument, "{}", large.1);
    let fitting: Arguments = |x, y| arguments![x, y, 1u32, RawArgument::local(128)].into();
    let torn = refused(range(64, 48), fitting);
    assert_eq!(torn.0, ErrorCode::NdRange, "{}", torn.1);
    let none = refused(range(64, 0), fitting);
    assert_eq!(none.0, ErrorCode::NdRange, "{}", none.1);
    let wide = refused(range(1 << 20, 1 << 20), fitting);
    let limit = add.info().max_work_group_size.to_string();
    assert!(wide.0 == ErrorCode::NdRange && wide.1.contains(&limit) && wide.1.contains("1048576"), "{}", wide.1);
    let much = refused(range(64, 32), |x, y| arguments![x, y, 1u32, RawArgument::local(1 << 40)].into());
    let limit = queue.device().info().local_mem_size.to_string();
    assert!(much.0 == ErrorCode::MemoryAllocation && much.1.contains(&limit), "{}", much.1);
    let endless = refused(range(64, 32), |x, y| {
        arguments![x, y, 1u32, RawArgument::local(usize::MAX), RawArgument::local(usize::MAX)].into()
    });
    assert_eq!(endless.0, ErrorCode::MemoryAllocation, "{}", endless.1);
}

fn source_that_does_not_compile_is_a_build_error_with_the_log(env: &Env) {
    let queue = env.queue();
    let ptx = PTX.replace("mad.lo.u32", "no_such_instruction");
    let Some(refused) = bundle(&queue, "kernel void add(no_such_type x) {}", &ptx) else { return };
    let error = refused.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Build);
    assert!(error.to_string().contains("no_such_") && error.to_string().contains("log"), "{error}");
    let bundle = bundle(&queue, OPENCL_C, PTX).unwrap().unwrap();
    assert_eq!(code(bundle.kernel("subtract")), ErrorCode::Invalid);
}

fn a_kernel_from_source_is_for_its_device_and_context(env: &Env) {
    let queue = env.queue();
    let Some(add) = add_kernel(&queue) else { return };
    let context = Context::new(std::slice::from_ref(env.device())).unwrap();
    let other_context = Queue::builder().context(&context).device(env.device()).build().unwrap();
    for other in [other_context, env.other_queue()] {
        let launched = other.submit(|cg| {
            // SAFETY: the launch is refused.
            unsafe { cg.launch_raw(&add, range(32, 32), arguments![]) }
        });
        assert_eq!(code(launched), ErrorCode::Invalid);
    }
    // SAFETY: nothing is compiled.
    let foreign = unsafe { SourceBundle::from_opencl_c(&context, env.other_device(), OPENCL_C, "") };
    assert_eq!(code(foreign), ErrorCode::Invalid);
}

fn built_in_kernels_are_listed_and_no_others_are_found(env: &Env) {
    let (queue, device) = (env.queue(), env.device());
    let names = device.built_in_kernels();
    if device.backend() != BackendKind::OpenCl {
        assert!(names.is_empty(), "{names:?}");
    }
    let error = SourceBundle::built_in(queue.context(), device, &["no such kernel"]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    assert!(error.to_string().contains("no built-in kernel \"no such kernel\""), "{error}");
    for name in &names {
        let bundle = SourceBundle::built_in(queue.context(), device, &[name]).unwrap();
        assert!(bundle.kernel(name).unwrap().info().max_work_group_size >= 1);
    }
}
