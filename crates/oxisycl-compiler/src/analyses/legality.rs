//! The requirements of a kernel on devices, and whether the target can run it at all.
//!
//! Looks at optimised code, where only what really runs is left. The calls of the code before optimisation give the way from the kernel to
//! a construct ([`Calls`]), in which no function was inlined.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oxisycl_image::SourceLocation;
use oxisycl_types::Aspect;

use crate::analyses::references::globals_in;
use crate::analyses::stack;
use crate::builtin_table::{LOCAL_MEMORY, PREFIX, WIDE_LOAD, WIDE_STORE};
use crate::codegen::intrinsics::BARRIERS;
use crate::llvm::{Module, Opcode, Place, TypeKind, Value, ValueKind};
use crate::origin::{self, HostFunction};
use crate::passes::panic_names;
use crate::refused::Refused;
use crate::symbols::plain_path;

/// The call graph, with the places of calls that are in files which the user may have written.
#[derive(Default)]
pub(crate) struct Calls {
    callees: BTreeMap<String, Vec<(String, Option<String>)>>,
}

impl Calls {
    /// Adds the calls of the module.
    pub(crate) fn add(&mut self, module: &Module<'_>) {
        for function in module.functions() {
            if function.is_declaration() || self.callees.contains_key(function.name()) {
                continue;
            }
            let mut callees = Vec::new();
            for instruction in function.instructions() {
                let place = || {
                    let place = instruction.place()?;
                    origin::is_users_file(&place.file, &place.folder).then(|| place.location().to_string())
                };
                let mut named = BTreeSet::new();
                for operand in instruction.operands() {
                    if operand.kind() == ValueKind::InlineAsm {
                        named.insert(ASSEMBLY.to_owned());
                    }
                    globals_in(operand, &mut |global| {
                        named.insert(global.name().to_owned());
                    });
                }
                callees.extend(named.into_iter().filter(|name| !name.starts_with("llvm.")).map(|name| (name, place())));
            }
            self.callees.insert(function.name().to_owned(), callees);
        }
        // Tables of functions, and other constants with addresses.
        for global in module.globals() {
            let Some(initializer) = global.initializer() else { continue };
            let mut named = BTreeSet::new();
            globals_in(initializer, &mut |other| {
                named.insert(other.name().to_owned());
            });
            if !named.is_empty() {
                let named = named.into_iter().map(|name| (name, None)).collect();
                self.callees.entry(global.name().to_owned()).or_insert(named);
            }
        }
    }

    /// A reason, with the call chain from the kernel's entry to the function that holds the construct.
    pub(crate) fn explain(&self, entry: &str, refused: Refused) -> String {
        match refused.function {
            Some(function) => refused.reason + &self.way(entry, &function),
            None => refused.reason,
        }
    }

    /// The reason why a device cannot run a kernel that refers to `value`, with the call chain to it. If a host function is the cause, it
    /// is named, and the chain ends there.
    fn refuse(&self, entry: &str, value: Value<'_>, reason: String) -> String {
        let name = value.name();
        let steps = self.steps(entry, name);
        let symbols: Vec<&str> = steps.iter().map(|step| step.symbol).collect();
        // The standard library allocates and has instructions of the processor in functions that devices run otherwise.
        let needs_advice = origin::is_allocation(name) || name.starts_with("llvm.");
        match origin::host_function(&symbols) {
            Some(HostFunction { position, name, advice: Some(advice) }) => {
                format!("it calls `{name}`: {advice}{}", shown(&steps[..=position]))
            }
            Some(HostFunction { position, name, advice: None }) if !needs_advice => {
                format!("it calls `{name}`, which exists on the host only{}", shown(&steps[..=position]))
            }
            _ if value.kind() == ValueKind::Function && origin::is_foreign(&symbols) => {
                let advice = "it is no Rust code; call it on the host, and pass the result in a buffer";
                format!("it calls the foreign function `{name}`: {advice}{}", shown(&steps))
            }
            // What an allocation ends in tells nothing.
            _ if origin::is_allocation(name) && origin::library_position(&symbols) < steps.len() => {
                reason + &shown(&steps[..=origin::library_position(&symbols)])
            }
            _ => reason + &shown(&steps),
        }
    }

    /// The shortest call chain from a function to a symbol: ` (probe::main -> probe::helper at src/main.rs:3:5)`.
    fn way(&self, from: &str, to: &str) -> String {
        shown(&self.steps(from, to))
    }

    /// The steps of the shortest call chain from a function to a symbol, without the function itself. Empty if there is none.
    fn steps<'a>(&'a self, from: &'a str, to: &'a str) -> Vec<Step<'a>> {
        let mut came_from: BTreeMap<&str, (&str, Option<&str>)> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(function) = queue.pop_front() {
            for (callee, place) in self.callees.get(function).into_iter().flatten() {
                if callee != from && !came_from.contains_key(callee.as_str()) {
                    came_from.insert(callee, (function, place.as_deref()));
                    queue.push_back(callee);
                }
            }
        }
        // LLVM names parts of a variable that it took apart.
        let whole = to.rsplit_once('.').map_or(to, |(whole, _)| whole);
        let mut at = if came_from.contains_key(to) { to } else { whole };
        let mut steps = Vec::new();
        while let Some(&(caller, place)) = came_from.get(at) {
            steps.push(Step { symbol: at, place, is_from_ours: is_ours(&plain_path(caller)) });
            at = caller;
        }
        steps.reverse();
        steps
    }
}

/// A function or a variable in the call chain from a kernel.
#[derive(Clone, Copy)]
struct Step<'a> {
    symbol: &'a str,
    /// The place where the previous step refers to it, if this is in a file that the user may have written.
    place: Option<&'a str>,
    /// Whether the previous step is in our own crates.
    is_from_ours: bool,
}

/// A call chain as text. The most useful place is the last one in the user's own code. The function called there is shown, and what it
/// calls is not, except the end.
fn shown(steps: &[Step<'_>]) -> String {
    let users = steps.iter().rposition(|step| step.place.is_some() && !step.is_from_ours);
    let place = users.and_then(|position| steps[position].place);
    let mut shown = Vec::new();
    for (position, step) in steps.iter().enumerate() {
        let is_last = position + 1 == steps.len();
        let is_beyond = users.is_some_and(|users| position > users);
        if !is_last && is_beyond {
            if users.is_some_and(|users| position == users + 1) {
                shown.push("..".to_owned());
            }
        } else if step.symbol != ASSEMBLY && (is_last || !origin::is_glue(&plain_path(step.symbol))) {
            shown.push(origin::shown_name(step.symbol));
        }
    }
    match (shown.as_slice(), place) {
        ([] | [_], None) => String::new(),
        (steps, None) => format!(" ({})", steps.join(" -> ")),
        ([], Some(place)) => format!(" (at {place})"),
        (steps, Some(place)) => format!(" ({} at {place})", steps.join(" -> ")),
    }
}

/// The name of inline assembly in the call graph.
const ASSEMBLY: &str = "<inline assembly>";

/// Whether a function is in our own crates, whose files may have the same names as a user's.
fn is_ours(path: &str) -> bool {
    origin::of_path(path).is_ours()
}

/// The results of the examination of a kernel.
#[derive(Default, Debug)]
pub(crate) struct Findings {
    /// The reason why the target cannot run it.
    pub(crate) unsupported: Option<String>,
    /// The aspects that a device must have, sorted.
    pub(crate) requirements: BTreeSet<&'static str>,
    /// Where the user's code needs each of them, as far as that is known.
    pub(crate) places: BTreeMap<&'static str, SourceLocation>,
    pub(crate) may_panic: bool,
    pub(crate) may_print: bool,
    /// Whether the depth of its calls is unknown.
    pub(crate) has_unbounded_stack: bool,
    /// Whether the kernel uses the local memory of a launch.
    pub(crate) uses_local_memory: bool,
    pub(crate) has_barriers: bool,
}

/// Examines everything that the kernel reaches. `ours` tells which globals the compiler made.
pub(crate) fn examine(kernel: Value<'_>, entry: &str, calls: &Calls, ours: &dyn Fn(&str) -> bool) -> Findings {
    let mut findings = Findings { has_unbounded_stack: stack::is_unbounded(kernel), ..Findings::default() };
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::from([kernel]);
    while let Some(value) = queue.pop_front() {
        if !seen.insert(value.name().to_owned()) {
            continue;
        }
        findings.may_panic |= panic_names::is_record(value.name());
        findings.may_print |= panic_names::is_print(value.name());
        findings.has_barriers |= BARRIERS.contains(&value.name());
        findings.uses_local_memory |= value.name() == LOCAL_MEMORY;
        if value.name().strip_prefix(PREFIX).is_some_and(|name| [WIDE_LOAD, WIDE_STORE].contains(&name)) {
            findings.requirements.insert(Aspect::ExtOxisyclAtomic128.name());
        }
        if findings.unsupported.is_none() {
            findings.unsupported = refusal(value, ours).map(|reason| calls.refuse(entry, value, reason));
        }
        if let Some(initializer) = value.initializer() {
            globals_in(initializer, &mut |global| queue.push_back(global));
        }
        for instruction in value.kind().eq(&ValueKind::Function).then(|| value.instructions()).into_iter().flatten() {
            for aspect in requirements(instruction) {
                findings.requirements.insert(aspect);
                if !findings.places.contains_key(aspect)
                    && let Some(place) = users_place(instruction)
                {
                    findings.places.insert(aspect, place);
                }
            }
            for operand in instruction.operands() {
                if operand.kind() == ValueKind::InlineAsm && findings.unsupported.is_none() {
                    findings.unsupported = Some(format!("inline assembly{}", calls.way(entry, ASSEMBLY)));
                }
                globals_in(operand, &mut |global| queue.push_back(global));
            }
        }
    }
    findings
}

/// The reason why no device can run code that refers to `value`. `None` if there is none.
fn refusal(value: Value<'_>, ours: &dyn Fn(&str) -> bool) -> Option<String> {
    let name = value.name();
    if name.starts_with("oxisycl.") || ours(name) {
        return None;
    }
    match value.kind() {
        ValueKind::Function if name.starts_with("llvm.x86.") || name.starts_with("llvm.aarch64.") => {
            Some(format!("an instruction of the host's processor, `{name}`"))
        }
        ValueKind::Function if value.is_declaration() && !name.starts_with("llvm.") => {
            Some(if origin::is_allocation(name) {
                "it allocates memory in a function that calls itself or is called by its address; use an array, or a buffer"
                    .to_owned()
            } else {
                format!("it calls `{}`, which exists on the host only", plain_path(name))
            })
        }
        ValueKind::GlobalVariable if value.is_thread_local() => Some(format!(
            "a thread-local variable, `{}`; use a `let` in the kernel, or a buffer",
            origin::shown_name(name)
        )),
        ValueKind::GlobalVariable if value.is_declaration() => {
            Some(format!("a variable that exists on the host only, `{}`", plain_path(name)))
        }
        ValueKind::GlobalVariable if !value.is_constant_global() => Some(format!(
            "a static that is not constant, `{}`: each device would have a copy of its own; use a buffer",
            plain_path(name)
        )),
        _ => None,
    }
}

/// `LLVMAtomicOrderingNotAtomic`
const NOT_ATOMIC: i32 = 0;

/// The place of an instruction in the user's code, or of the call there that it was inlined for.
fn users_place(instruction: Value<'_>) -> Option<SourceLocation> {
    let mut places = instruction.places().into_iter();
    places.find(|place| place.line > 0 && origin::is_users_file(&place.file, &place.folder)).map(Place::location)
}

/// The aspects that an instruction needs.
fn requirements(instruction: Value<'_>) -> BTreeSet<&'static str> {
    let mut requirements = BTreeSet::new();
    let is_access = instruction.is(Opcode::LOAD) || instruction.is(Opcode::STORE);
    let is_change = instruction.is(Opcode::ATOMIC_RMW) || instruction.is(Opcode::ATOMIC_CMP_XCHG);
    let is_atomic = is_change || (is_access && instruction.ordering() != NOT_ATOMIC);
    for value in instruction.operands().into_iter().chain([instruction]) {
        match value.value_type().kind() {
            TypeKind::Double => {
                requirements.insert("fp64");
                if is_atomic {
                    requirements.insert("atomic64");
                }
            }
            TypeKind::Half => _ = requirements.insert("fp16"),
            TypeKind::Integer(64) if is_atomic => _ = requirements.insert("atomic64"),
            _ => {}
        }
    }
    requirements
}
