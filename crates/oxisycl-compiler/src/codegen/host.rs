//! Native code of a level of the host's processors: a relocatable object, which is linked into the program beside rustc's code.
//!
//! It stays host code. It unwinds, it calls what the standard library and foreign libraries export, and the final link resolves that.
//! [`native_code`](crate::passes::native_code) says what is copied, and [`exports`](crate::analyses::exports) refuses what must not be.

use oxisycl_image::{HostLevel, ImageTarget, ParameterLayout};

use crate::builtin_table::{Bodies, Family};
use crate::codegen::{Target, entry};
use crate::error::CompileError;
use crate::kernel::{Kernel, entry_was_lost};
use crate::llvm::{Attribute, Block, Builder, Codegen, Machine, Module, PassTuning, Type, Value};
use crate::passes::native_code;
use crate::toolchain::Toolchain;

/// The hosts that there are levels of.
pub(crate) const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The symbol of a kernel's function in the object of a level. Objects of all kernels and levels of a program are linked together.
pub fn symbol(kernel: &str, level: HostLevel) -> String {
    format!("__oxisycl_native_v{}_{kernel}", level.number())
}

pub(crate) struct Host {
    level: HostLevel,
    machine: Machine,
}

impl Host {
    /// The error says why there is no code for such hosts.
    pub(crate) fn new(triple: &str, level: Option<HostLevel>) -> Result<Self, CompileError> {
        let target = ImageTarget::Host { triple: triple.to_owned(), level };
        let level = level.filter(|_| triple == TRIPLE);
        let level = level.ok_or_else(|| {
            let levels = HostLevel::ALL.map(|level| format!("host:{TRIPLE}+{level}")).join(" or ");
            CompileError::Target(format!("there is no code generator for {target}, expected {levels}"))
        })?;
        let machine = Machine::new(TRIPLE, level.name(), "")?;
        Ok(Self { level, machine })
    }
}

impl Target for Host {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn builtins(&self) -> Bodies {
        Bodies { family: Family::Host, text: "", has_reductions: false }
    }

    fn native_level(&self) -> Option<HostLevel> {
        Some(self.level)
    }

    fn tuning(&self) -> PassTuning {
        PassTuning::NATIVE
    }

    /// Adds the function of type `oxisycl_types::NativeEntry`. The entry has Rust's own convention, which only rustc knows in general. For
    /// three addresses and no result it is C's.
    fn add_kernel<'c>(&self, module: &Module<'c>, kernel: &Kernel) -> Result<Value<'c>, CompileError> {
        let context = module.context();
        let entry = module.function(&kernel.entry).ok_or_else(|| entry_was_lost(kernel))?;
        let pointer = Type::pointer(context, 0);
        let expected = Type::function(Type::void(context), &[pointer; 3]);
        if entry.held_type() != expected {
            return Err(CompileError::Kernel(format!("{}: its entry has another type than ours", kernel.type_name)));
        }
        let function = module.declare(&symbol(&kernel.symbol, self.level), expected);
        function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "nonlazybind", 0));
        native_code::compile_like(context, function, entry);
        // For the linker of this unit alone.
        function.hide();
        let builder = Builder::at_end(context, Block::append(context, function));
        builder.call(entry, &[0, 1, 2].map(|index| function.parameter(index)));
        builder.ret_void();
        Ok(function)
    }

    fn launch_slot<'c>(&self, module: &Module<'c>) -> Value<'c> {
        entry::add_launch_slot(module, 0)
    }

    fn max_arguments(&self, _align: usize) -> usize {
        usize::MAX
    }

    fn is_own_global(&self, _name: &str) -> bool {
        false
    }

    fn end_work_item<'c>(&self, module: &Module<'c>, builder: &Builder<'c>) {
        // A work-item of a host ends by its return or by unwinding.
        builder.call(module.declare("llvm.trap", Type::function(Type::void(module.context()), &[])), &[]);
    }

    fn has_sub_groups_of(&self, _size: u32) -> bool {
        true
    }

    fn names_lines(&self) -> bool {
        false
    }

    fn emit(
        &self,
        module: &Module<'_>,
        _arguments: ParameterLayout,
        _toolchain: &Toolchain,
    ) -> Result<Vec<u8>, CompileError> {
        self.machine.emit(module, Codegen::Object)
    }
}

#[cfg(test)]
mod tests;
