//! The function that a driver launches, which is nearly the same for all targets.
//!
//! It has the launch and the kernel's captures in memory that came with the launch, and calls the kernel's entry with their addresses.

use crate::error::CompileError;
use crate::kernel::Kernel;
use crate::llvm::{Attribute, Block, Builder, Linkage, Module, Type, Value};

/// The size of `oxisycl_types::DeviceLaunch`.
pub(super) const LAUNCH_SIZE: usize = size_of::<oxisycl_types::DeviceLaunch>();

/// The attribute of kernels whose groups have one size: its extents along `x`, `y` and `z`. LLVM knows it for NVIDIA's processors; the translator to
/// SPIR-V reads it.
pub(in crate::codegen) const GROUP_SIZE: &str = "nvvm.reqntid";
/// The attribute for the work-items of a sub-group, if the kernel states them. LLVM ignores it.
pub(in crate::codegen) const SUB_GROUP_SIZE: &str = "oxisycl-sub-group-size";

/// How a target passes parameters.
pub(super) struct Passing {
    /// LLVM's number of the calling convention of kernels.
    pub(super) convention: u32,
    /// The address space in which parameters are.
    pub(super) address_space: u32,
    /// `byval` or `byref`.
    pub(super) attribute: &'static str,
    /// Further attributes of every parameter, with empty values.
    pub(super) marks: &'static [&'static str],
    /// Whether LLVM may assume that the memory of parameters does not change while the kernel runs. On the host the entry copies its
    /// captures, so that they are variables of its own. Where LLVM knows that the memory is constant, they are read from the parameter
    /// instead.
    pub(super) is_constant: bool,
}

/// The address space of argument blocks that are passed by address.
pub(crate) const GLOBAL: u32 = 1;

/// Adds the function for a kernel. `by_address` says whether its arguments are in global memory, and the parameter is their address.
pub(super) fn add<'c>(
    module: &Module<'c>,
    kernel: &Kernel,
    passing: &Passing,
    by_address: bool,
) -> Result<Value<'c>, CompileError> {
    let context = module.context();
    let entry = module
        .function(&kernel.entry)
        .ok_or_else(|| CompileError::Kernel(format!("{}: its entry was lost", kernel.type_name)))?;
    let (pointer, parameter) = (Type::pointer(context, 0), Type::pointer(context, passing.address_space));
    let arguments = kernel.parameters;
    let sizes = [(LAUNCH_SIZE, 8), (arguments.size, arguments.align)];
    let sizes = if arguments.size > 0 { &sizes[..] } else { &sizes[..1] };
    let block = if by_address { Type::pointer(context, GLOBAL) } else { parameter };
    let types = &[parameter, block][..sizes.len()];
    let function = module.declare(&kernel.symbol, Type::function(Type::void(context), types));
    function.set_call_convention(passing.convention);
    for (index, &(size, align)) in (1..).zip(sizes) {
        let by_address = by_address && index == 2;
        if by_address {
            function.add_attribute(index, Attribute::plain(context, "dereferenceable", size as u64));
        } else {
            function.add_attribute(index, Attribute::typed(context, passing.attribute, Type::bytes(context, size)));
            for mark in passing.marks {
                function.add_attribute(index, Attribute::text(context, mark, ""));
            }
        }
        function.add_attribute(index, Attribute::plain(context, "align", align as u64));
        if passing.is_constant || by_address {
            // Nothing writes there, so it does not matter what else has the address.
            function.add_attribute(index, Attribute::plain(context, "readonly", 0));
            function.add_attribute(index, Attribute::plain(context, "noalias", 0));
        }
        function.add_attribute(index, Attribute::plain(context, "noundef", 0));
    }
    if kernel.group != [0; 3] {
        let [z, y, x] = kernel.group;
        function.add_attribute(Attribute::FUNCTION, Attribute::text(context, GROUP_SIZE, &format!("{x},{y},{z}")));
    }
    if kernel.sub_group != 0 {
        let size = kernel.sub_group.to_string();
        function.add_attribute(Attribute::FUNCTION, Attribute::text(context, SUB_GROUP_SIZE, &size));
    }
    let builder = Builder::at_end(context, Block::append(context, function));
    let address = |index: u32| {
        let parameter = function.parameter(index);
        if parameter.value_type() == pointer { parameter } else { builder.cast_address(parameter, pointer) }
    };
    let launch = address(0);
    let arguments = if sizes.len() > 1 {
        address(1)
    } else {
        // The address of nothing: aligned, not null, never used.
        Type::int(context, 64).constant(arguments.align as u64).int_to_pointer(pointer)
    };
    // The chunk belongs to native code; a reference is never null.
    builder.call(entry, &[arguments, launch, launch]);
    builder.ret_void();
    Ok(function)
}

/// Adds the variable that holds the launch's address, in the memory of the group.
pub(super) fn add_launch_slot<'c>(module: &Module<'c>, address_space: u32) -> Value<'c> {
    let pointer = Type::pointer(module.context(), 0);
    let slot = module.add_global("oxisycl_launch_slot", pointer, address_space);
    // All work-items of a group write the same address, so that it does not matter whose store comes last.
    slot.set_initializer(pointer.poison());
    slot.set_linkage(Linkage::INTERNAL);
    slot.set_alignment(8);
    slot
}
