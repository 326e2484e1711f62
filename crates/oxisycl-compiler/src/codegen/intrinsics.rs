//! What calls in lowered code do: LLVM's intrinsics of processors, and our own names where LLVM has none.
//!
//! Analyses and passes that look at code after its builtins were replaced ask here, so that none of them knows a processor.

/// End the work-item.
pub(crate) const ENDS: [&str; 2] = ["llvm.nvvm.exit", "oxisycl.end_work_item"];

/// Barriers of the group: what bodies of the builtin call.
pub(crate) const BARRIERS: [&str; 3] =
    ["llvm.nvvm.barrier.cta.sync.all", "llvm.amdgcn.s.barrier", "oxisycl.spirv.barrier"];

/// Beginnings of names. They give all work-items of a group the same.
pub(crate) const SAME_FOR_A_GROUP: [&str; 6] = [
    "oxisycl.spirv.group_id",
    "llvm.nvvm.read.ptx.sreg.ctaid.",
    "llvm.nvvm.read.ptx.sreg.nctaid.",
    "llvm.nvvm.read.ptx.sreg.ntid.",
    "llvm.amdgcn.workgroup.id.",
    "llvm.amdgcn.dispatch.ptr",
];

/// Beginnings of names. They access no memory: positions, exchanges between lanes, and hints for optimisers.
pub(crate) const PURE: [&str; 10] = [
    "llvm.nvvm.read.ptx.sreg.",
    "llvm.nvvm.shfl.sync.",
    "llvm.nvvm.redux.sync.",
    "llvm.nvvm.rsqrt.",
    "llvm.amdgcn.workitem.id.",
    "llvm.amdgcn.workgroup.id.",
    "oxisycl.spirv.local_id",
    "oxisycl.spirv.group_id",
    "llvm.lifetime.",
    "llvm.assume",
];
