//! Prepares code that is linked into the program a second time, for a level of the host's processors.
//!
//! Functions and unnamed constants are copies, which no other code sees. Statics are not copied, since each exists once in a program: they stay
//! names, of whose content LLVM knows nothing. Else it would read what they point to, and compare their addresses with each other.
//! [`exports`](crate::analyses::exports) refuses kernels that still refer to one after optimisation.

use oxisycl_image::HostLevel;

use crate::analyses::natural_loops::Loop;
use crate::llvm::{Attribute, Context, Layout, Linkage, Module, Opcode, Type, TypeKind, Value};
use crate::origin;
use crate::spmd::widen::elementwise;

/// The processors that all levels have more features than.
const LOWER: [&str; 2] = ["x86-64", "x86-64-v2"];
/// The value of `uwtable` for tables that are right at every instruction, as rustc asks for them.
const AT_EVERY_INSTRUCTION: u64 = 2;
/// The attribute of an entry that rustc has compiled for a processor which may have features that the level lacks.
const PROCESSOR: &str = "oxisycl-processor";

/// Bytes of a vector of the oldest processors.
const OLDEST_VECTOR: u64 = 16;
/// The wide vectors that code computes at least.
const LEAST_WIDE: usize = 4;
/// A variable of fewer bytes has few elements: no more than four of the level's vectors.
const FEW_BYTES: u64 = 128;
/// Operations that the oldest processors have no instruction for, as intrinsics' names without `llvm.` and types.
const OF_LEVELS: [&str; 9] = ["fma", "fmuladd", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "ctpop"];

/// Sets the level on all functions, and makes all but the entries local. Features that rustc has set on single functions stay, in addition.
pub(crate) fn set_level(module: &Module<'_>, level: HostLevel, is_entry: &dyn Fn(&str) -> bool) {
    let context = module.context();
    let is_below = |processor: &str| {
        let mut levels = HostLevel::ALL.into_iter().take_while(|below| *below <= level).map(HostLevel::name);
        processor.is_empty() || LOWER.contains(&processor) || levels.any(|name| name == processor)
    };
    module.clear_inline_assembly();
    // Lists of what must be kept, or run at the start. The program's own object has them.
    for name in ["llvm.used", "llvm.compiler.used", "llvm.global_ctors", "llvm.global_dtors"] {
        if let Some(list) = module.global(name) {
            list.delete_global();
        }
    }
    for alias in module.aliases() {
        alias.replace_all_uses_with(alias.aliasee());
        alias.set_linkage(Linkage::INTERNAL);
    }
    for function in module.functions().into_iter().filter(|function| !function.name().starts_with("llvm.")) {
        let is_entry = is_entry(function.name());
        let processor = function.text_attribute(Attribute::FUNCTION, "target-cpu").unwrap_or_default();
        if is_entry && !is_below(&processor) {
            function.add_attribute(Attribute::FUNCTION, Attribute::text(context, PROCESSOR, &processor));
        }
        function.remove_text_attribute(Attribute::FUNCTION, "tune-cpu");
        function.add_attribute(Attribute::FUNCTION, Attribute::text(context, "target-cpu", level.name()));
        if function.is_declaration() {
            continue;
        }
        function.clear_placement();
        function.set_linkage(if is_entry { Linkage::EXTERNAL } else { Linkage::INTERNAL });
    }
    for global in module.globals() {
        if global.initializer().is_some() && !global.name().starts_with("llvm.") {
            global.clear_placement();
            if is_copied(global) {
                global.set_linkage(Linkage::INTERNAL);
            } else {
                global.make_variable();
                global.set_linkage(Linkage::EXTERNAL);
            }
        }
    }
}

/// Has a new function compiled like another one: for its processor, with its kind of frames, and with tables for unwinding.
pub(crate) fn compile_like<'c>(context: &'c Context, function: Value<'c>, model: Value<'c>) {
    function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "uwtable", AT_EVERY_INSTRUCTION));
    for name in ["target-cpu", "target-features", "probe-stack", "frame-pointer"] {
        if let Some(value) = model.text_attribute(Attribute::FUNCTION, name) {
            function.add_attribute(Attribute::FUNCTION, Attribute::text(context, name, &value));
        }
    }
}

/// Has LLVM make vectors of 128 bits, as it does for the oldest processors. What waits for memory is slower with wider ones.
pub(crate) fn prefer_narrow_vectors(module: &Module<'_>) {
    let narrow = Attribute::text(module.context(), "prefer-vector-width", "128");
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        function.add_attribute(Attribute::FUNCTION, narrow);
    }
}

/// Says that the code is not a device's, so that what devices run is not linked.
pub(crate) fn answer(module: &Module<'_>) {
    let no = Type::int(module.context(), 1).constant(0);
    for function in module.functions() {
        if origin::builtin(function.name()).as_deref() != Some("is_device_code") {
            continue;
        }
        for call in function.calls() {
            call.replace_all_uses_with(no);
            if call.is(Opcode::CALL) {
                call.erase();
            }
        }
    }
}

/// Makes statics local, so that LLVM deletes those that optimised code does not use. No other pass may see them so: the program changes them.
pub(crate) fn drop_statics(module: &Module<'_>) {
    let own = module.globals().into_iter().filter(|global| global.initializer().is_some() && !is_copied(*global));
    own.for_each(|global| global.set_linkage(Linkage::INTERNAL));
}

/// Deletes statics that nothing uses, and says whether there were any. What they refer to may be unused then.
pub(crate) fn drop_unused_statics(module: &Module<'_>) -> bool {
    let is_unused = |global: &Value<'_>| global.initializer().is_some() && !is_copied(*global) && !global.is_used();
    let unused: Vec<_> = module.globals().into_iter().filter(is_unused).collect();
    unused.iter().for_each(|global| global.delete_global());
    !unused.is_empty()
}

/// Whether code gains by what the level's processors have and the oldest ones lack: instructions of other kinds, or wider vectors.
///
/// The oldest processors call functions for what the former do. Vectors have to compute, not only move what is at hand. Those in loops over a few
/// elements of a work-item's own do not count.
pub(crate) fn uses_level(module: &Module<'_>) -> bool {
    let layout = Layout::of(module);
    let mut n_wide = 0;
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        let instructions = function.instructions();
        if instructions.iter().any(|instruction| is_of_levels(*instruction)) {
            return true;
        }
        let wide =
            instructions.into_iter().filter(|instruction| is_wide(layout, *instruction) && computes(*instruction));
        let mut wide = wide.peekable();
        if wide.peek().is_none() {
            continue;
        }
        let mut loops = Loop::all(&function.blocks());
        loops.sort_by_key(|of| of.blocks.len());
        let are_few: Vec<bool> = loops.iter().map(|of| has_few_elements(layout, of)).collect();
        let counts = |instruction: &Value<'_>| {
            let innermost = loops.iter().position(|of| of.blocks.contains(&instruction.block()));
            innermost.is_none_or(|number| !are_few[number])
        };
        n_wide += wide.filter(counts).count();
    }
    n_wide >= LEAST_WIDE
}

fn is_wide(layout: Layout<'_>, value: Value<'_>) -> bool {
    let of = value.value_type();
    of.kind() == TypeKind::Vector && layout.size(of) > OLDEST_VECTOR
}

/// Whether an instruction does more than move elements.
fn computes(instruction: Value<'_>) -> bool {
    !matches!(
        instruction.opcode(),
        Some(Opcode::LOAD | Opcode::PHI | Opcode::BITCAST | Opcode::FREEZE | Opcode::SHUFFLE_VECTOR)
            | Some(Opcode::INSERT_ELEMENT)
    ) && masked_address(instruction).is_none()
}

/// Whether all wide accesses of a loop, of which there is one, are to few elements.
fn has_few_elements(layout: Layout<'_>, of: &Loop<'_>) -> bool {
    let mut addresses = of.instructions().filter_map(|instruction| match instruction.opcode() {
        Some(Opcode::STORE) if is_wide(layout, instruction.operand(0)) => Some(instruction.operand(1)),
        Some(Opcode::LOAD) if is_wide(layout, instruction) => Some(instruction.operand(0)),
        _ => masked_address(instruction),
    });
    let is_few = |address: Value<'_>| has_few(layout, address);
    addresses.next().is_some_and(|first| is_few(first) && addresses.all(is_few))
}

/// Whether the oldest processors have no instruction for an operation.
fn is_of_levels(instruction: Value<'_>) -> bool {
    let is_half = |value: Value<'_>| value.value_type().kind() == TypeKind::Half;
    match instruction.opcode() {
        Some(Opcode::FP_EXT) => is_half(instruction.operand(0)),
        Some(Opcode::FP_TRUNC) => is_half(instruction),
        Some(Opcode::CALL) => elementwise(instruction).is_some_and(|name| OF_LEVELS.contains(&name)),
        _ => false,
    }
}

/// The address of a load under a mask.
fn masked_address(call: Value<'_>) -> Option<Value<'_>> {
    let is_load = call.callee().is_some_and(|callee| callee.name().starts_with("llvm.masked.load."));
    is_load.then(|| call.operand(0))
}

/// Whether memory is the work-item's own and has few elements: a small variable, what a variable points to, or what was allocated.
fn has_few(layout: Layout<'_>, address: Value<'_>) -> bool {
    let base = base(address);
    match base.opcode() {
        Some(Opcode::PHI) => base.incoming().into_iter().all(|(value, _)| is_few(layout, self::base(value))),
        _ => is_few(layout, base),
    }
}

fn is_few(layout: Layout<'_>, base: Value<'_>) -> bool {
    match base.opcode() {
        Some(Opcode::ALLOCA) => layout.size(base.allocated_type()) < FEW_BYTES,
        Some(Opcode::LOAD) => self::base(base.operand(0)).is(Opcode::ALLOCA),
        Some(Opcode::CALL | Opcode::INVOKE | Opcode::EXTRACT_VALUE) => true,
        _ => false,
    }
}

/// The address that others are computed from.
fn base(mut address: Value<'_>) -> Value<'_> {
    while address.is(Opcode::GET_ELEMENT_PTR) {
        address = address.operand(0);
    }
    address
}

/// Calls functions by the names that link-time optimisation keeps, where there are such. The last change, since passes know functions by their
/// own names.
pub(crate) fn call_kept(module: &Module<'_>) {
    for function in module.functions().into_iter().filter(|function| function.is_declaration()) {
        if let Some(name) = origin::kept(function.name()) {
            function.set_name(name);
            // Each library of a process has its own.
            function.hide();
        }
    }
}

/// Whether a global is a constant without a name in the program, such as a literal.
fn is_copied(global: Value<'_>) -> bool {
    global.is_constant_global() && global.is_unnamed() && !global.is_thread_local()
}

/// The processor that the program's own code of an entry is for, if it may have features that the level lacks.
pub(crate) fn other_processor(module: &Module<'_>, entry: &str) -> Option<String> {
    module.function(entry)?.text_attribute(Attribute::FUNCTION, PROCESSOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    /// Whether the code of a loop uses a level, behind a load of `%x`.
    fn uses(code: &str) -> bool {
        let context = context();
        let text = format!(
            "declare float @llvm.floor.f32(float)
            declare float @llvm.sqrt.f32(float)
            declare ptr @allocated()
            define void @f(ptr %p, i64 %n) {{
            entry:
            %few = alloca [10 x float]
            %many = alloca [100 x float]
            %own = alloca ptr
            %new = call ptr @allocated()
            br label %round
            round:
            %k = phi i64 [ 0, %entry ], [ %nk, %round ]
            %x = load float, ptr %p
            {code}
            %nk = add i64 %k, 8
            %more = icmp ult i64 %nk, %n
            br i1 %more, label %round, label %end
            end: ret void }}"
        );
        uses_level(&module(&context, &text))
    }

    /// Sums of wide vectors, each with what an address holds.
    fn sums(n: usize, lanes: usize, address: &str) -> String {
        let begin = format!(
            "%a = getelementptr float, ptr %b, i64 %k
            %v = load <{lanes} x float>, ptr %a
            %s0 = shufflevector <{lanes} x float> %v, <{lanes} x float> poison, <{lanes} x i32> zeroinitializer"
        );
        let sums = (0..n).map(|k| format!("%s{} = fadd <{lanes} x float> %s{k}, %v", k + 1));
        [address.to_owned(), begin].into_iter().chain(sums).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn code_uses_a_level_by_instructions_that_the_oldest_processors_lack() {
        assert!(uses("%y = call float @llvm.floor.f32(float %x)"));
        assert!(!uses("%y = call float @llvm.sqrt.f32(float %x)"));
        assert!(uses("%y = fptrunc float %x to half") && !uses("%y = fpext float %x to double"));
    }

    #[test]
    fn code_uses_a_level_by_wide_vectors_that_compute() {
        let of_program = "%b = load ptr, ptr %p";
        assert!(uses(&sums(LEAST_WIDE, 8, of_program)) && !uses(&sums(LEAST_WIDE, 4, of_program)));
        // One sum fewer, beside a load and a shuffle.
        assert!(!uses(&sums(LEAST_WIDE - 1, 8, of_program)));
    }

    #[test]
    fn loops_over_few_elements_of_a_work_item_use_no_level() {
        let of = |base: &str| uses(&sums(LEAST_WIDE, 8, base));
        assert!(!of("%b = getelementptr i8, ptr %few, i64 0") && of("%b = getelementptr i8, ptr %many, i64 0"));
        assert!(!of("%b = load ptr, ptr %own") && !of("%b = getelementptr i8, ptr %new, i64 4"));
        // One that is not small is enough.
        let stored = "%b = load ptr, ptr %own\n%q = load ptr, ptr %p
            store <8 x float> zeroinitializer, ptr %q";
        assert!(of(stored));
    }
}
