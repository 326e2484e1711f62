//! Finds the kernels of a module.
//!
//! Every launch makes an object of `oxisycl_device::kernel::DescribeKernel`, so the module holds its vtable. The vtable has drop, size,
//! alignment, and the trait's methods in the order of their declaration. `entry` is read as it stands; the others are optimised, in a
//! module of their own, until they return constants.

use std::mem::ManuallyDrop;
use std::rc::Rc;

use oxisycl_image::{Form, ParameterLayout};
use oxisycl_types::{Aspects, GroupSize};

use crate::analyses::capture_check;
use crate::analyses::definitions::Definitions;
use crate::analyses::source_location;
use crate::analyses::specialized_parts;
use crate::error::CompileError;
use crate::kernel::{Captures, Described, Elsewhere, Found, Kernel};
use crate::link::library::link_where_used;
use crate::llvm::pass_lists::DROP_UNUSED_AND_TYPES;
use crate::llvm::{Attribute, Context, Linkage, Module, Opcode, PassTuning, TypeKind, Value, ValueKind};
use crate::origin;
use crate::symbols::path;

mod arguments;
mod launch;

// The methods in the order of the trait.
const TYPE_ID: usize = 0;
const ENTRY: usize = 1;
const LAYOUT: usize = 2;
const TYPE_NAME: usize = 3;
const FORM: usize = 4;
const GROUP: usize = 5;
const ARGUMENTS: usize = 6;
const ASPECTS: usize = 7;
const SUB_GROUP: usize = 8;
const METHODS: [&str; 9] =
    ["type_id", "entry", "layout", "type_name", "form", "group", "arguments", "aspects", "sub_group"];

const GROUPS: u64 = GroupSize::FORM as u64;

/// The symbols of the methods of one vtable.
type Methods = [String; METHODS.len()];

/// The vtable of a kernel's description.
struct Table<'c> {
    global: Value<'c>,
    methods: Methods,
}

/// Whether a function with this symbol describes a kernel.
pub(crate) fn is_description(symbol: &str) -> bool {
    origin::describes_kernel(symbol)
}

/// Whether bitcode may describe kernels, by its bytes: the names of symbols are not compressed. Where it may not, there is nothing to check.
pub fn may_describe_kernels(bitcode: &[u8]) -> bool {
    let name = origin::DESCRIPTION.as_bytes();
    bitcode.windows(name.len()).any(|bytes| bytes == name)
}

/// How many kernels share their bitcode. Each kernel's compilation reads all of it, while common code is written once for so many kernels.
pub(crate) const MAX_SHARING: usize = 96;

/// Finds the kernels that a module describes, sorted by symbol. `declared` is a lazily read copy of the module, of which only the
/// descriptions are read.
pub(crate) fn find(module: Module<'_>, declared: Module<'_>) -> Result<Found, CompileError> {
    find_sharing(module, declared, MAX_SHARING)
}

/// What the kernels that a crate describes capture. `modules` has all code of the crate.
pub(crate) fn list<'c>(modules: &[ManuallyDrop<Module<'c>>]) -> Result<Vec<Captures>, CompileError> {
    let definitions = Definitions::of(modules);
    let mut found = Vec::new();
    let mut seen = Vec::new();
    for module in modules {
        for Table { global, methods } in vtables(module)? {
            // What another crate has the code of, that crate describes.
            let Some(method) = definitions.named(&methods[ENTRY]) else { continue };
            let entry = definitions.definition(returned_by(method).ok_or_else(|| unreadable(&methods[ENTRY]))?);
            if entry.is_declaration() {
                continue;
            }
            // Several units of code may describe a kernel. It is launched in more than one place then.
            if seen.contains(&entry.name().to_owned()) {
                continue;
            }
            seen.push(entry.name().to_owned());
            found.push(Captures {
                kernel: capture_check::kernel_name(entry),
                launch: launch::of(global, &definitions).map(|launch| launch.location),
                place: source_location::of_kernel(entry, &definitions),
                refused: capture_check::refused(entry, &definitions),
            });
        }
    }
    Ok(found)
}

/// A kernel, its entry, and the symbols of the functions that describe it, with that of its entry.
type WithEntry<'c> = (Kernel, Value<'c>, Vec<String>);

fn with_entries<'c>(
    module: &Module<'c>,
    declared: Module<'_>,
) -> Result<(Vec<WithEntry<'c>>, Vec<Elsewhere>), CompileError> {
    let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
    for table in vtables(module)? {
        match code_of_another(module, &table)? {
            Some(symbol) => {
                elsewhere.push(Elsewhere { symbol, launch: launch::of(table.global, &Definitions::default()) })
            }
            None => here.push(table),
        }
    }
    let evaluated = evaluated(declared, &here)?;
    let mut found = Vec::new();
    for Table { global, methods } in here {
        let mut kernel = describe(&evaluated, &methods)?;
        kernel.launch = launch::of(global, &Definitions::default());
        let entry = returned(module, &methods[ENTRY])?;
        kernel.refused_captures = capture_check::refused(entry, &Definitions::default());
        kernel.specialized = specialized_parts::of(entry, kernel.parameters);
        kernel.place = source_location::of_kernel(entry, &Definitions::default());
        kernel.entry = format!("oxisycl_entry.{}", kernel.symbol);
        let symbols = methods.into_iter().chain([entry.name().to_owned()]).collect();
        found.push((kernel, entry, symbols));
    }
    found.sort_by(|(a, ..), (b, ..)| a.symbol.cmp(&b.symbol));
    let contradict = |pair: &&[WithEntry<'_>]| pair[0].0.symbol == pair[1].0.symbol && pair[0].1 != pair[1].1;
    if let Some([(kernel, first, _), (_, second, _)]) = found.windows(2).find(contradict) {
        return Err(CompileError::Kernel(format!(
            "{}: it is described twice, with the entries `{}` and `{}`",
            kernel.type_name,
            first.name(),
            second.name()
        )));
    }
    found.dedup_by(|(later, _, symbols), (first, _, known)| {
        let is_same = later.symbol == first.symbol;
        if is_same {
            known.append(symbols);
        }
        is_same
    });
    Ok((found, elsewhere))
}

/// The function by which the crate is found that has a kernel's code, if that is not this module's crate. Without
/// optimisation, an instance of a generic function is made once, by the crate that needs it first. Crates that use that one refer to it.
fn code_of_another(module: &Module<'_>, table: &Table<'_>) -> Result<Option<String>, CompileError> {
    let is_declared = |method: &&String| module.function(method).is_none_or(Value::is_declaration);
    if let Some(method) = table.methods.iter().find(is_declared) {
        return Ok(Some(method.clone()));
    }
    let entry = returned(module, &table.methods[ENTRY])?;
    if entry.kind() != ValueKind::Function {
        return Err(unreadable(&table.methods[ENTRY]));
    }
    Ok(entry.is_declaration().then(|| entry.name().to_owned()))
}

fn find_sharing(module: Module<'_>, declared: Module<'_>, max_sharing: usize) -> Result<Found, CompileError> {
    let (found, elsewhere) = with_entries(&module, declared)?;
    let entries: Vec<_> = found.iter().map(|(kernel, entry, _)| (kernel.entry.clone(), *entry)).collect();
    let mut described = Vec::new();
    let mut codes = code_of(module, &entries, max_sharing)?.into_iter().map(Rc::new);
    let mut kernels = found.into_iter().map(|(kernel, _, symbols)| (kernel, symbols)).peekable();
    while kernels.peek().is_some()
        && let Some(code) = codes.next()
    {
        described.extend(kernels.by_ref().take(max_sharing).map(|(kernel, symbols)| Described {
            kernel,
            symbols,
            is_of_final_crate: false,
            code: Rc::clone(&code),
        }));
    }
    Ok(Found { described, elsewhere })
}

/// The bitcode and the names of entries, for groups of up to `max_sharing` kernels.
fn code_of<'c>(
    module: Module<'c>,
    entries: &[(String, Value<'c>)],
    max_sharing: usize,
) -> Result<Vec<Vec<u8>>, CompileError> {
    link_where_used(&module);
    for (name, entry) in entries {
        entry.set_name(name);
        entry.clear_placement();
        entry.set_linkage(Linkage::EXTERNAL);
    }
    // Both change no code.
    module.run(DROP_UNUSED_AND_TYPES, None, &PassTuning::DEVICE)?;
    for (_, entry) in entries {
        entry.set_linkage(Linkage::LINK_ONCE_ODR);
    }
    let all = module.to_bitcode();
    if entries.len() <= max_sharing {
        return Ok(vec![all]);
    }
    let all = Rc::new(all);
    let part = |entries: &[(String, Value<'c>)]| {
        let context = Context::new();
        let module = Module::empty(&context, "kernels");
        let source = Module::lazy(&context, &all, "kernels")?;
        for (name, _) in entries {
            source.function(name).ok_or_else(|| unreadable(name))?.set_linkage(Linkage::EXTERNAL);
        }
        module.link(source)?;
        for (name, _) in entries {
            module.function(name).ok_or_else(|| unreadable(name))?.set_linkage(Linkage::LINK_ONCE_ODR);
        }
        Ok(module.to_bitcode())
    };
    entries.chunks(max_sharing).map(part).collect()
}

fn unreadable(method: &str) -> CompileError {
    CompileError::Kernel(format!(
        "{} does not return a constant: the program's oxisycl-device and this compiler do not fit together",
        path(method)
    ))
}

fn vtables<'c>(module: &Module<'c>) -> Result<Vec<Table<'c>>, CompileError> {
    let mut vtables = Vec::new();
    for global in module.globals() {
        let Some(table) = global.initializer().filter(|value| value.kind() == ValueKind::Aggregate) else { continue };
        let functions: Vec<_> =
            table.operands().into_iter().filter(|value| value.kind() == ValueKind::Function).collect();
        if !functions.iter().any(|function| is_description(function.name())) {
            continue;
        }
        let fits = functions.len() == METHODS.len()
            && functions.iter().zip(METHODS).all(|(function, method)| {
                origin::describes_kernel(function.name()) && path(function.name()).ends_with(method)
            });
        if !fits {
            let names: Vec<_> = functions.iter().map(|function| path(function.name())).collect();
            return Err(CompileError::Kernel(format!(
                "a description of a kernel has the methods {names:?}, expected {METHODS:?}: the program's oxisycl-device and this \
                 compiler do not fit together"
            )));
        }
        let methods = std::array::from_fn(|index| functions[index].name().to_owned());
        vtables.push(Table { global, methods });
    }
    Ok(vtables)
}

/// A module in which the describing functions return constants.
fn evaluated<'c>(declared: Module<'c>, vtables: &[Table<'_>]) -> Result<Module<'c>, CompileError> {
    let module = Module::empty(declared.context(), "descriptions");
    declared.strip_debug_info();
    link_where_used(&declared);
    let mut wanted = Vec::new();
    for Table { methods, .. } in vtables {
        let described = methods.iter().enumerate().filter(|(index, _)| *index != ENTRY);
        wanted.extend(described.map(|(_, method)| method.as_str()));
    }
    for method in &wanted {
        declared.function(method).ok_or_else(|| unreadable(method))?.set_linkage(Linkage::EXTERNAL);
    }
    module.link(declared)?;
    for value in module.functions().into_iter().chain(module.globals()) {
        if !value.is_declaration() {
            value.set_linkage(Linkage::INTERNAL);
        }
        if value.kind() == ValueKind::Function {
            for attribute in ["noinline", "optnone"] {
                value.remove_attribute(Attribute::FUNCTION, attribute);
            }
        }
    }
    for function in wanted.into_iter().filter_map(|method| module.function(method)) {
        function.set_linkage(Linkage::EXTERNAL);
    }
    module.run("globaldce,default<O2>", None, &PassTuning::DEVICE)?;
    Ok(module)
}

fn describe(evaluated: &Module<'_>, methods: &Methods) -> Result<Kernel, CompileError> {
    let constant = |method: usize| returned(evaluated, &methods[method]);
    let number = |value: Value<'_>, index: u32, method: usize| {
        value.element(index).and_then(Value::integer).ok_or_else(|| unreadable(&methods[method]))
    };
    let layout = constant(LAYOUT)?;
    let parameters =
        ParameterLayout { size: number(layout, 0, LAYOUT)? as usize, align: number(layout, 1, LAYOUT)? as usize };
    let name = constant(TYPE_NAME)?;
    let length = number(name, 1, TYPE_NAME)? as usize;
    let text = name.element(0).and_then(|text| text_of(text, length));
    let type_name = text.ok_or_else(|| unreadable(&methods[TYPE_NAME]))?;
    let arguments = arguments::of(evaluated, constant(ARGUMENTS)?, &methods[ARGUMENTS])?;
    let type_id = type_id(evaluated, &methods[TYPE_ID])?;
    let integer = |method: usize| constant(method)?.integer().ok_or_else(|| unreadable(&methods[method]));
    let form = integer(FORM)?;
    let form = match (form & GROUPS, form & !GROUPS) {
        (0, 0) => Form::Single,
        (0, dimensions @ 1..=3) => Form::Range(dimensions as u8),
        (GROUPS, dimensions @ 1..=3) => Form::Group(dimensions as u8),
        _ => return Err(unreadable(&methods[FORM])),
    };
    let group = GroupSize::extents(integer(GROUP)?);
    let aspects = Aspects::from_bits(integer(ASPECTS)?).ok_or_else(|| unreadable(&methods[ASPECTS]))?;
    let sub_group = integer(SUB_GROUP)? as u32;
    let symbol = symbol(type_name, &type_id, form);
    Ok(Kernel {
        symbol,
        entry: String::new(),
        type_id,
        form,
        group,
        aspects,
        sub_group,
        parameters,
        type_name: type_name.to_owned(),
        arguments,
        specialized: Vec::new(),
        launch: None,
        refused_captures: Vec::new(),
        place: None,
    })
}

/// The first `length` bytes that an address points to, as a text.
fn text_of(address: Value<'_>, length: usize) -> Option<&str> {
    std::str::from_utf8(address.initializer().and_then(Value::data)?.get(..length)?).ok()
}

/// The value that a function without branches returns.
fn returned<'c>(module: &Module<'c>, symbol: &str) -> Result<Value<'c>, CompileError> {
    module.function(symbol).and_then(returned_by).ok_or_else(|| unreadable(symbol))
}

fn returned_by(function: Value<'_>) -> Option<Value<'_>> {
    let last = function.instructions().into_iter().rfind(|instruction| instruction.is(Opcode::RET));
    last?.operands().first().copied()
}

/// The bytes that `type_id` writes through its first parameter.
fn type_id(evaluated: &Module<'_>, symbol: &str) -> Result<[u8; 16], CompileError> {
    let function = evaluated.function(symbol).ok_or_else(|| unreadable(symbol))?;
    let mut bytes = Vec::new();
    for instruction in function.instructions() {
        let source = if instruction.is(Opcode::STORE) {
            // Two stores of eight bytes each, the first one to the parameter itself.
            if bytes.is_empty() != (instruction.operand(1) == function.parameter(0)) {
                return Err(unreadable(symbol));
            }
            Some(instruction.operand(0))
        } else if let Some(callee) = instruction.callee() {
            // One copy of a constant.
            callee.name().starts_with("llvm.memcpy").then(|| instruction.operand(1).initializer()).flatten()
        } else {
            continue;
        };
        source.and_then(|source| flatten(source, &mut bytes)).ok_or_else(|| unreadable(symbol))?;
    }
    bytes.try_into().map_err(|_| unreadable(symbol))
}

/// The bytes of a constant.
fn flatten(value: Value<'_>, bytes: &mut Vec<u8>) -> Option<()> {
    if let Some(data) = value.data() {
        bytes.extend_from_slice(data);
        return Some(());
    }
    if let Some(number) = value.integer() {
        let TypeKind::Integer(bits @ (8 | 16 | 32 | 64)) = value.value_type().kind() else { return None };
        bytes.extend_from_slice(&number.to_le_bytes()[..bits as usize / 8]);
        return Some(());
    }
    match value.kind() {
        ValueKind::Aggregate => value.operands().into_iter().try_for_each(|element| flatten(element, bytes)),
        ValueKind::ConstantExpression if value.expression() == Some(Opcode::INT_TO_PTR) => {
            flatten(value.operand(0), bytes)
        }
        ValueKind::Null if matches!(value.value_type().kind(), TypeKind::Pointer(_)) => {
            bytes.extend_from_slice(&[0; 8]);
            Some(())
        }
        _ => None,
    }
}

/// A readable symbol that no other kernel of the link unit has.
fn symbol(type_name: &str, type_id: &[u8; 16], form: Form) -> String {
    let mut readable = String::new();
    for letter in type_name.chars() {
        if letter.is_ascii_alphanumeric() {
            readable.push(letter);
        } else if !readable.ends_with('_') {
            readable.push('_');
        }
    }
    // What distinguishes the kernels of a program comes last in a path.
    let start = readable.len().saturating_sub(96);
    let (kind, dimensions) = match form {
        Form::Range(dimensions) => ('k', dimensions),
        Form::Group(dimensions) => ('g', dimensions),
        _ => ('k', 0),
    };
    let id = u128::from_be_bytes(*type_id);
    format!("{kind}{dimensions}_{}_{id:032x}", readable[start..].trim_matches('_'))
}

#[cfg(test)]
mod tests;
