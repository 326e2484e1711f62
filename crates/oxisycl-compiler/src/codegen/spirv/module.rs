//! A module: its kernels, the functions that they call, and its globals.

use rspirv::dr::Module as Assembled;
use rspirv::spirv::{Capability, StorageClass, Word};
use rustc_hash::FxHashMap;

use super::atomics::FLOAT_SUMS;
use super::call_graph::{Callable, Components};
use super::function::FunctionTranslator;
use super::function_builder::Code;
use super::implicit_parameters::ImplicitParameters;
use super::module_builder::{Extensions, ModuleBuilder};
use super::storage_classes::{Known, of_global};
use crate::codegen::entry::{GROUP_SIZE, SUB_GROUP_SIZE};
use crate::llvm::{Attribute, Context, Layout, Module, Opcode, Type, TypeKind, Value, ValueKind};
use crate::passes::formatting_depth::too_deep;
use crate::refused::Refused;

/// The most bytes of a constant: an instruction of SPIR-V has at most 65535 words.
const LARGEST_CONSTANT: u64 = 65_532;

/// A translated module, and its requirements on devices.
pub(super) struct Translation {
    pub(super) module: Assembled,
    /// Aspects, by their names, sorted.
    pub(super) requirements: Vec<&'static str>,
    /// Whether the module has atomic sums of floats.
    pub(super) uses_float_atomics: bool,
}

/// The group size of a kernel, if it is fixed.
fn group_size(kernel: Value<'_>) -> Option<[u32; 3]> {
    let text = kernel.text_attribute(Attribute::FUNCTION, GROUP_SIZE)?;
    let extents: Vec<u32> = text.split(',').filter_map(|extent| extent.parse().ok()).collect();
    extents.try_into().ok()
}

/// The size of a kernel's sub-groups, if it states one.
fn sub_group_size(kernel: Value<'_>) -> Option<u32> {
    kernel.text_attribute(Attribute::FUNCTION, SUB_GROUP_SIZE)?.parse().ok()
}

/// Translates kernels, and the functions that they call.
pub(super) fn translate<'c>(
    module: &Module<'c>,
    kernels: &[Value<'c>],
    extensions: Extensions,
) -> Result<Translation, Refused> {
    let mut writer = ModuleBuilder::new(extensions);
    let mut globals = Globals::default();
    let place = (module.context(), Layout::of(module));
    let mut done = 0;
    for &kernel in kernels {
        globals.components = Components::of(kernel, too_deep(module), &ImplicitParameters::of)?;
        let id = writer.id();
        let code = Code::new(&mut writer, id);
        FunctionTranslator::translate(code, &mut globals, place, kernel, None).map_err(|r| r.within(kernel))?;
        // Functions are translated when something calls them, and once for each combination of memories that their parameters are of.
        while let Some(called) = globals.called.get(done).cloned() {
            done += 1;
            let code = Code::new(&mut writer, called.id);
            FunctionTranslator::translate(code, &mut globals, place, called.of.function, Some(&called))
                .map_err(|r| r.within(called.of.function))?;
        }
        writer.add_kernel(id, kernel.name(), group_size(kernel), sub_group_size(kernel));
    }
    let aspects =
        [(Capability::Int64Atomics, "atomic64"), (Capability::Float16, "fp16"), (Capability::Float64, "fp64")];
    let requirements =
        aspects.into_iter().filter(|(capability, _)| writer.capabilities().contains(capability)).map(|(_, name)| name);
    let requirements = requirements.collect();
    let uses_float_atomics = FLOAT_SUMS.iter().any(|(_, capability)| writer.capabilities().contains(capability));
    Ok(Translation { requirements, uses_float_atomics, module: writer.finish() })
}

/// The translation of a global.
#[derive(Clone)]
pub(super) enum Data<'c> {
    Variable(Word, StorageClass),
    /// Constants with addresses in them, which a module cannot hold: each function that uses one makes a copy.
    Table {
        /// The bytes that are not addresses, if they are not all zero: a variable of global memory.
        bytes: Option<Word>,
        size: u64,
        alignment: u32,
        /// The offsets of the addresses, and the globals that they are of.
        addresses: Vec<(u64, Value<'c>)>,
    },
}

/// A function that was not inlined, with the known facts about its parameters. Each combination is translated by itself.
#[derive(Clone)]
pub(super) struct Called<'c> {
    pub(super) of: Callable<'c>,
    pub(super) parameters: Vec<Option<Known>>,
    /// The depth in a cycle of formatting functions.
    pub(super) depth: u32,
    id: Word,
}

/// The globals of a module, and the translated functions.
#[derive(Default)]
pub(super) struct Globals<'c> {
    data: FxHashMap<Value<'c>, Data<'c>>,
    called: Vec<Called<'c>>,
    /// The call graph of the kernel that is being translated.
    pub(super) components: Components<'c>,
}

impl<'c> Globals<'c> {
    /// The id of a function with a body. Translates the function if needed.
    pub(super) fn function(
        &mut self,
        writer: &mut ModuleBuilder,
        of: Callable<'c>,
        parameters: Vec<Option<Known>>,
        depth: u32,
    ) -> Word {
        let is_same = |known: &&Called<'c>| known.of == of && known.parameters == parameters && known.depth == depth;
        if let Some(known) = self.called.iter().find(is_same) {
            return known.id;
        }
        let id = writer.id();
        self.called.push(Called { of, parameters, depth, id });
        id
    }

    pub(super) fn data(
        &mut self,
        writer: &mut ModuleBuilder,
        layout: Layout<'_>,
        context: &'c Context,
        global: Value<'c>,
    ) -> Result<Data<'c>, Refused> {
        if let Some(known) = self.data.get(&global) {
            return Ok(known.clone());
        }
        let held = global.held_type();
        let size = layout.size(held);
        let alignment = match global.alignment() {
            0 => layout.alignment(held),
            alignment => alignment,
        };
        let data = match of_global(global) {
            StorageClass::Workgroup => Data::Variable(
                writer.variable(StorageClass::Workgroup, size.max(1), alignment, None),
                StorageClass::Workgroup,
            ),
            class => {
                if size > LARGEST_CONSTANT {
                    return Err(Refused::new(format!(
                        "a constant, `{}`, has {size} bytes, the limit is {LARGEST_CONSTANT}",
                        global.name()
                    )));
                }
                let initializer = global.initializer();
                let initializer = initializer
                    .ok_or_else(|| Refused::new(format!("a variable without a value, `{}`", global.name())))?;
                let mut image = Image { bytes: vec![0; size as usize], addresses: Vec::new() };
                image.fill(layout, context, initializer, 0)?;
                let constant = |writer: &mut ModuleBuilder| {
                    let bytes = if image.bytes.is_empty() { &[0][..] } else { &image.bytes };
                    writer.variable(StorageClass::CrossWorkgroup, size.max(1), alignment, Some(bytes))
                };
                if image.addresses.is_empty() {
                    Data::Variable(constant(writer), class)
                } else {
                    let has_bytes = image.bytes.iter().any(|&byte| byte != 0);
                    let bytes = has_bytes.then(|| constant(writer));
                    Data::Table { bytes, size, alignment, addresses: image.addresses }
                }
            }
        };
        self.data.insert(global, data.clone());
        Ok(data)
    }
}

/// The bytes of a constant in memory.
struct Image<'c> {
    bytes: Vec<u8>,
    addresses: Vec<(u64, Value<'c>)>,
}

impl<'c> Image<'c> {
    fn fill(&mut self, layout: Layout<'_>, context: &'c Context, value: Value<'c>, at: u64) -> Result<(), Refused> {
        let of: Type<'c> = value.value_type();
        match value.kind() {
            ValueKind::Null | ValueKind::Undefined => {}
            ValueKind::Integer | ValueKind::Float => {
                let bits = value.bits(context).ok_or_else(|| Refused::new("a constant of more than 128 bits"))?;
                let size = layout.store_size(of) as usize;
                self.bytes[at as usize..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
            }
            ValueKind::Aggregate | ValueKind::DataArray => {
                if let Some(data) = value.data().filter(|_| of.elements().0.kind() == TypeKind::Integer(8)) {
                    self.bytes[at as usize..][..data.len()].copy_from_slice(data);
                    return Ok(());
                }
                let offsets: Vec<u64> = match of.kind() {
                    TypeKind::Struct => (0..of.members().len() as u32).map(|index| layout.offset(of, index)).collect(),
                    _ => {
                        let (element, count) = of.elements();
                        (0..count).map(|index| index * layout.size(element)).collect()
                    }
                };
                for (index, offset) in offsets.into_iter().enumerate() {
                    let element = value.element(index as u32);
                    let element = element.ok_or_else(|| Refused::new("a constant that cannot be read"))?;
                    self.fill(layout, context, element, at + offset)?;
                }
            }
            _ => match number_of(value) {
                Some(number) => self.bytes[at as usize..][..8].copy_from_slice(&number.to_le_bytes()),
                None => self.addresses.push((at, value)),
            },
        }
        Ok(())
    }
}

/// Whether a constant holds addresses.
pub(super) fn holds_addresses(value: Value<'_>) -> bool {
    match value.kind() {
        ValueKind::Aggregate => value.operands().into_iter().any(holds_addresses),
        ValueKind::GlobalVariable | ValueKind::Function | ValueKind::Alias => true,
        ValueKind::ConstantExpression => number_of(value).is_none(),
        _ => false,
    }
}

/// The number that is used as an address: of a function, or made up by the program.
fn number_of(value: Value<'_>) -> Option<u64> {
    (value.expression() == Some(Opcode::INT_TO_PTR)).then(|| value.operand(0).integer())?
}
