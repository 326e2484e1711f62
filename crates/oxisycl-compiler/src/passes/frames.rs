//! Recursion on devices without a call stack: functions that call each other in a cycle become one function with frames of its own.
//!
//! The blocks of all functions of a cycle go into one function. A call among them stores its arguments, goes on to the next frame and to the first
//! block of what it calls. A return goes back by a frame, and to the block behind the call, whose number is in the frame it leaves. Frames are a
//! variable, and hold what is alive across such calls, and the variables of the functions. The code is there once, however deep calls
//! go; from the [`DEPTH`]th call on, a work-item panics and says so.
//!
//! Runs after optimisation, so that what LLVM has made loops or inlined is no recursion any more. Invariant: a cycle of calls is taken as a
//! whole or left as it is. A cycle through addresses of functions, or with frames larger than [`LARGEST`], is left, and refused by the
//! target. What formats has a limit of its own, and is left, too.

use crate::error::CompileError;
mod frame;

use crate::llvm::{
    Attribute, Block, Builder, Context, Layout, Linkage, Module, Opcode, PassTuning, Type, TypeKind, Value, ValueKind,
};
use crate::passes::{calls, panic_names, panics, recursion};
use crate::refused::note_limit;
use frame::{ALIGNMENT, Frame, Places};
use rustc_hash::{FxHashMap, FxHashSet};

/// The most calls that can be open at a time.
const DEPTH: u64 = 64;
/// The most bytes of all frames of a cycle.
const LARGEST: u64 = 64 << 10;
/// The most places from which a cycle may be called: it is inlined into each. With more, a driver may crash (the quirk `many-entries`).
const MOST_ENTRIES: usize = 4;
/// The function that is called if calls are too deep, after the prefix of panics.
pub(crate) const PATH: &str = "oxisycl.frames";
const NAME: &str = "oxisycl.recursion.";
/// Passes that inline the function, and move values outside of frames to registers.
const CLEAN_UP: &str = "always-inline,globaldce,function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg<no-sink-common-insts;no-hoist-common-insts>)";
/// Attributes of parameters that are wrong for addresses that go through memory.
const OF_PARAMETERS: [&str; 8] =
    ["noalias", "captures", "readonly", "writeonly", "readnone", "returned", "initializes", "dead_on_return"];
/// Metadata about addresses in one call, which is wrong for an iteration of a loop.
const OF_ACCESSES: [&str; 2] = ["alias.scope", "noalias"];

/// The panic message of a work-item whose calls are too deep.
pub(crate) fn message() -> String {
    format!("recursion is deeper than the {DEPTH} calls that devices of this kind have room for")
}

/// Turns all possible cycles of calls into loops. Returns whether there was one.
pub(crate) fn flatten(module: &Module<'_>) -> Result<bool, CompileError> {
    let mut has_changed = false;
    for (number, members) in call_cycles(module).into_iter().enumerate() {
        if let Some(cycle) = CallCycle::of(module, members) {
            cycle.flatten(number)?;
            has_changed = true;
        }
    }
    if has_changed {
        recursion::forget_attributes(module);
        module.verify("frames")?;
        module.run(CLEAN_UP, None, &PassTuning::DEVICE)?;
    }
    Ok(has_changed)
}

/// The functions that call each other directly, cycle by cycle, in the order of the module.
fn call_cycles<'c>(module: &Module<'c>) -> Vec<Vec<Value<'c>>> {
    let functions: Vec<_> = module.functions().into_iter().filter(|function| is_plain(*function)).collect();
    let callees = |function: Value<'c>| {
        let calls = function.instructions().into_iter().filter(|call| !panics::fails_again(*call));
        let callees = calls.filter_map(Value::callee);
        callees.filter(|callee| callee.kind() == ValueKind::Function && is_plain(*callee)).collect::<Vec<_>>()
    };
    let calls: FxHashMap<_, _> = functions.iter().map(|&function| (function, callees(function))).collect();
    let reached = |from: Value<'c>| {
        let mut seen = FxHashSet::default();
        let mut next = calls[&from].clone();
        while let Some(callee) = next.pop() {
            if seen.insert(callee) {
                next.extend(&calls[&callee]);
            }
        }
        seen
    };
    let behind: FxHashMap<_, _> = functions.iter().map(|&function| (function, reached(function))).collect();
    let mut taken = FxHashSet::default();
    let mut cycles = Vec::new();
    for &function in functions.iter().filter(|function| behind[function].contains(function)) {
        if taken.contains(&function) {
            continue;
        }
        let is_member = |other: &&Value<'c>| behind[&function].contains(other) && behind[other].contains(&function);
        let members: Vec<_> = functions.iter().filter(is_member).copied().collect();
        taken.extend(members.iter().copied());
        cycles.push(members);
    }
    cycles
}

/// Whether a function has a body and does not format values.
fn is_plain(function: Value<'_>) -> bool {
    !function.is_declaration() && !calls::formats(function)
}

/// The number of calls of a cycle from outside.
fn n_entries(members: &[Value<'_>]) -> usize {
    let is_entry = |call: &Value<'_>| call.callee().is_some() && !members.contains(&call.function());
    members.iter().flat_map(|member| member.users()).filter(is_entry).count()
}

/// A call within a cycle.
struct Site<'c> {
    call: Value<'c>,
    /// The block that the call ends, and the next block.
    block: Block<'c>,
    rest: Block<'c>,
    callee: usize,
}

struct CallCycle<'c, 'm> {
    module: &'m Module<'c>,
    context: &'c Context,
    members: Vec<Value<'c>>,
    frame: Frame<'c, 'm>,
    byte: Type<'c>,
    number: Type<'c>,
    word: Type<'c>,
    pointer: Type<'c>,
}

impl<'c, 'm> CallCycle<'c, 'm> {
    /// The cycle, if its functions can be merged.
    fn of(module: &'m Module<'c>, members: Vec<Value<'c>>) -> Option<Self> {
        let context = module.context();
        let n_entries = n_entries(&members);
        if n_entries > MOST_ENTRIES {
            let limit = format!("it is called from {n_entries} places outside of it, expected at most {MOST_ENTRIES}");
            note_limit(context, &members, &limit);
            return None;
        }
        for member in &members {
            let is_by_value = |index| member.type_attribute(index, "byval").is_some();
            let is_invoke = |instruction: Value<'c>| instruction.is(Opcode::INVOKE);
            if (1..=member.parameter_count()).any(is_by_value) || member.instructions().into_iter().any(is_invoke) {
                return None;
            }
        }
        let frame = Frame::of(module, &members)?;
        let int = |bits| Type::int(context, bits);
        let (byte, number, word, pointer) = (int(8), int(32), int(64), Type::pointer(context, 0));
        let cycle = Self { module, context, members, frame, byte, number, word, pointer };
        let size = cycle.frame.size() * DEPTH;
        if size > LARGEST {
            let limit = format!("the variables of {DEPTH} open calls take {size} bytes, expected at most {LARGEST}");
            note_limit(context, &cycle.members, &limit);
        }
        (size <= LARGEST).then_some(cycle)
    }

    fn flatten(mut self, number: usize) -> Result<(), CompileError> {
        let (context, module) = (self.context, self.module);
        let parameters = [self.number, self.pointer, self.pointer];
        let machine = module.declare(&format!("{NAME}{number}"), Type::function(Type::void(context), &parameters));
        machine.set_linkage(Linkage::INTERNAL);
        let always = Attribute::plain(context, "alwaysinline", 0);
        machine.add_attribute(Attribute::FUNCTION, always);
        let first = Block::append(context, machine);
        let entry = Builder::at_end(context, first);
        let one = self.number.constant(1);
        let variable = |held: Type<'c>| entry.alloca(held, one);
        let (frame_at, depth_at) = (variable(self.pointer), variable(self.word));

        self.members.iter().for_each(|member| prepare(*member));
        let arguments: Vec<Vec<_>> =
            self.members.iter().map(|member| frame::take_parameters(context, *member, &variable)).collect();
        let result = |member: &Value<'c>| member.held_type().result();
        let results: Vec<_> = self
            .members
            .iter()
            .map(|member| (result(member).kind() != TypeKind::Void).then(|| (result(member), variable(result(member)))))
            .collect();
        for phi in self.instructions().into_iter().filter(|instruction| instruction.is(Opcode::PHI)) {
            frame::demote_phi(context, phi, variable(phi.value_type()));
        }
        let sites = self.split();
        for site in &sites {
            if let Some((held, place)) = results[site.callee] {
                let builder = Builder::before(context, site.rest.instructions()[0]);
                site.call.replace_all_uses_with(builder.load(held, place));
            }
        }
        let resumed = sites.iter().map(|site| site.rest).collect();
        self.frame.keep_values(&self.members, &resumed, frame_at, &variable);
        if self.frame.size() * DEPTH > (LARGEST << 2) {
            let (name, size, most) = (self.members[0].name(), self.frame.size() * DEPTH, LARGEST << 2);
            let text = format!("{name}: the frames of {DEPTH} open calls take {size} bytes, expected at most {most}");
            return Err(CompileError::Kernel(text));
        }
        self.frame.place_variables(frame_at);

        // Returns and calls.
        let size = self.frame.size();
        let [dispatch, too_deep, exit] = [(); 3].map(|()| Block::append(context, machine));
        for (member, result) in self.members.iter().zip(&results) {
            for end in member.instructions().into_iter().filter(|end| end.is(Opcode::RET)) {
                let builder = Builder::before(context, end);
                if let (Some((_, place)), Some(value)) = (result, end.operands().first()) {
                    builder.store(*value, *place);
                }
                builder.branch(dispatch);
                end.erase();
            }
        }
        let starts: Vec<_> = self.members.iter().map(|member| member.blocks()[0]).collect();
        for (number, site) in (0..).zip(&sites) {
            let values = site.call.arguments();
            site.block.end().erase();
            site.call.erase();
            let builder = Builder::at_end(context, site.block);
            for (value, (_, place)) in values.into_iter().zip(&arguments[site.callee]) {
                builder.store(value, *place);
            }
            let depth = builder.load(self.word, depth_at);
            let deeper = Block::append(context, machine);
            builder.branch_if(builder.is_equal(depth, self.word.constant(DEPTH - 1)), too_deep, deeper);
            let builder = Builder::at_end(context, deeper);
            builder.store(builder.add(depth, self.word.constant(1)), depth_at);
            let next = builder.offset(self.byte, builder.load(self.pointer, frame_at), self.word.constant(size));
            builder.store(next, frame_at);
            builder.store(self.number.constant(number), next);
            builder.branch(starts[site.callee]);
        }
        let builder = Builder::at_end(context, too_deep);
        let panic = module.declare(&panic_names::hooked(PATH), Type::function(Type::void(context), &[]));
        for attribute in panic_names::ENDING {
            panic.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
        }
        builder.call(panic, &[]);
        builder.unreachable();

        // Where a return goes on.
        let builder = Builder::at_end(context, dispatch);
        let depth = builder.load(self.word, depth_at);
        let back = Block::append(context, machine);
        builder.branch_if(builder.is_equal(depth, self.word.constant(0)), exit, back);
        let builder = Builder::at_end(context, back);
        builder.store(builder.subtract(depth, self.word.constant(1)), depth_at);
        let frame = builder.load(self.pointer, frame_at);
        let origin = builder.load(self.number, frame);
        builder.store(builder.offset(self.byte, frame, self.word.constant(size.wrapping_neg())), frame_at);
        choose(context, machine, builder, self.number, origin, &sites.iter().map(|site| site.rest).collect::<Vec<_>>());

        // What the first call was of: its result goes out, and its arguments come in.
        let selector = machine.parameter(0);
        let outs = results.iter().map(|result| {
            let out = Block::append(context, machine);
            let builder = Builder::at_end(context, out);
            if let Some((held, place)) = result {
                builder.store(builder.load(*held, *place), machine.parameter(2));
            }
            builder.ret_void();
            out
        });
        choose(context, machine, Builder::at_end(context, exit), self.number, selector, &outs.collect::<Vec<_>>());
        let frames = entry.alloca(Type::bytes(context, (size * DEPTH) as usize), one);
        frames.set_alignment(ALIGNMENT as u32);
        entry.store(frames, frame_at);
        entry.store(self.word.constant(0), depth_at);
        let layouts: Vec<_> =
            arguments.iter().map(|list| Places::of(Layout::of(module), list.iter().map(|(held, _)| *held))).collect();
        let ins = arguments.iter().zip(&layouts).zip(&starts).map(|((list, (places, _)), start)| {
            let block = Block::append(context, machine);
            let builder = Builder::at_end(context, block);
            for ((held, place), offset) in list.iter().zip(places) {
                let from = builder.offset(self.byte, machine.parameter(1), self.word.constant(*offset));
                builder.store(builder.load(*held, from), *place);
            }
            builder.branch(*start);
            block
        });
        let ins: Vec<_> = ins.collect();
        choose(context, machine, entry, self.number, selector, &ins);

        for (number, member) in self.members.iter().enumerate() {
            let place = member.instructions().into_iter().find(|instruction| instruction.place().is_some());
            let mut last = exit;
            for block in member.blocks() {
                block.move_after(last);
                last = block;
            }
            self.forward(*member, number, machine, &layouts[number], results[number].map(|(held, _)| held), place);
            member.add_attribute(Attribute::FUNCTION, always);
        }
        Ok(())
    }

    fn instructions(&self) -> Vec<Value<'c>> {
        self.members.iter().flat_map(|member| member.instructions()).collect()
    }

    /// Splits blocks so that each call within the cycle ends its block.
    fn split(&self) -> Vec<Site<'c>> {
        let mut sites = Vec::new();
        for member in &self.members {
            for call in member.instructions() {
                let callee = call.callee().and_then(|callee| self.members.iter().position(|other| *other == callee));
                let Some(callee) = callee.filter(|_| !panics::fails_again(call)) else { continue };
                let block = call.block();
                let rest = Block::append(self.context, *member);
                let builder = Builder::at_end(self.context, rest);
                let behind: Vec<_> =
                    block.instructions().into_iter().skip_while(|instruction| *instruction != call).skip(1).collect();
                behind.into_iter().for_each(|instruction| builder.take(instruction));
                Builder::at_end(self.context, block).branch(rest);
                sites.push(Site { call, block, rest, callee });
            }
        }
        sites
    }

    /// Gives a member, whose blocks were moved away, a body that calls the merged function.
    fn forward(
        &self,
        member: Value<'c>,
        number: usize,
        machine: Value<'c>,
        (places, size): &(Vec<u64>, u64),
        result: Option<Type<'c>>,
        place: Option<Value<'c>>,
    ) {
        let context = self.context;
        let one = self.number.constant(1);
        let builder = Builder::at_end(context, Block::append(context, member));
        let ins = builder.alloca(Type::bytes(context, *size as usize), one);
        ins.set_alignment(ALIGNMENT as u32);
        let out = result.map(|held| builder.alloca(held, one));
        for (index, offset) in (0..).zip(places) {
            builder.store(member.parameter(index), builder.offset(self.byte, ins, self.word.constant(*offset)));
        }
        let arguments = [self.number.constant(number as u64), ins, out.unwrap_or(ins)];
        // What is inlined into a function with lines needs a place.
        match place {
            Some(place) => builder.take(Builder::before(context, place).call(machine, &arguments)),
            None => _ = builder.call(machine, &arguments),
        }
        match (result, out) {
            (Some(held), Some(out)) => builder.ret(builder.load(held, out)),
            _ => builder.ret_void(),
        }
    }
}

/// Removes attributes and metadata that become wrong, from a function, its calls, and calls of it.
fn prepare(member: Value<'_>) {
    let calls = member.users().into_iter().filter(|user| user.callee() == Some(member));
    let calls: Vec<_> = calls.collect();
    for index in 1..=member.parameter_count() {
        for name in OF_PARAMETERS {
            member.remove_attribute(index, name);
            calls.iter().for_each(|call| call.remove_site_attribute(index, name));
        }
    }
    for name in ["noinline", "optnone", "optsize", "minsize"] {
        member.remove_attribute(Attribute::FUNCTION, name);
    }
    for instruction in member.instructions() {
        OF_ACCESSES.iter().for_each(|kind| instruction.unmark(kind));
        let Some(callee) = instruction.callee() else { continue };
        instruction.clear_tail_call();
        if callee.name().starts_with("llvm.experimental.noalias.scope.decl") {
            instruction.erase();
        }
    }
}

/// Adds a switch to the block with a number.
fn choose<'c>(
    context: &'c Context,
    function: Value<'c>,
    mut builder: Builder<'c>,
    number: Type<'c>,
    value: Value<'c>,
    blocks: &[Block<'c>],
) {
    for (position, &block) in blocks.iter().enumerate() {
        if position + 1 == blocks.len() {
            builder.branch(block);
            return;
        }
        let other = Block::append(context, function);
        builder.branch_if(builder.is_equal(value, number.constant(position as u64)), block, other);
        builder = Builder::at_end(context, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    fn flattened(text: &str) -> (bool, String) {
        let context = context();
        let module = module(&context, text);
        let has_changed = flatten(&module).expect("it is flattened");
        module.run("default<O3>", None, &PassTuning::DEVICE).expect("passes");
        module.verify("frames").expect("a valid module");
        (has_changed, module.to_string())
    }

    const SUM: &str = "
        define internal i64 @sum(i64 %n) noinline {
            %c = icmp eq i64 %n, 0
            br i1 %c, label %end, label %again
        again:
            %m = sub i64 %n, 1
            %rest = call i64 @sum(i64 %m)
            %r = mul i64 %rest, %n
            %s = add i64 %r, %n
            br label %end
        end:
            %all = phi i64 [ 1, %0 ], [ %s, %again ]
            ret i64 %all
        }";

    #[test]
    fn a_function_that_calls_itself_has_frames_and_an_end() {
        let text = format!("{SUM} define i64 @f(i64 %n) {{ %r = call i64 @sum(i64 %n) ret i64 %r }}");
        let (has_changed, code) = flattened(&text);
        assert!(has_changed && !code.contains("@sum"), "{code}");
        // The number of where to go on, and what is alive across the call.
        assert!(code.contains(&format!("alloca [{} x i8], align 16", DEPTH * 32)), "{code}");
        assert!(code.contains("oxisycl.panic.oxisycl.frames"), "{code}");
    }

    #[test]
    fn functions_that_call_each_other_become_one() {
        let text = "
            define internal i1 @odd(i64 %n, ptr %p) noinline {
                %c = icmp eq i64 %n, 0
                br i1 %c, label %end, label %again
                again: store i64 %n, ptr %p
                %m = sub i64 %n, 1
                %r = call i1 @even(i64 %m, ptr %p)
                %x = xor i1 %r, true
                br label %end
                end: %all = phi i1 [ false, %0 ], [ %x, %again ] ret i1 %all
            }
            define internal i1 @even(i64 %n, ptr noalias %p) noinline {
                %v = alloca [3 x i64]
                call void @shown(ptr %v)
                %c = icmp eq i64 %n, 0
                br i1 %c, label %end, label %again
                again: %m = sub i64 %n, 1
                %r = call i1 @odd(i64 %m, ptr %p)
                call void @shown(ptr %v)
                ret i1 %r
                end: ret i1 true
            }
            declare void @shown(ptr)
            define i1 @f(i64 %n, ptr %p) { %a = call i1 @odd(i64 %n, ptr %p) %b = call i1 @even(i64 %n, ptr %p) %r = and i1 %a, %b ret i1 %r }";
        let (has_changed, code) = flattened(text);
        assert!(has_changed && !code.contains("@odd") && !code.contains("@even"), "{code}");
        assert!(!code.contains("noalias"), "{code}");
    }

    #[test]
    fn what_is_too_large_or_not_recursive_stays() {
        let large = SUM.replace("%c = icmp", "%v = alloca [1000 x i8] call void @shown(ptr %v) %c = icmp");
        let text = format!(
            "{large} declare void @shown(ptr) define i64 @f(i64 %n) {{ %r = call i64 @sum(i64 %n) ret i64 %r }}"
        );
        assert!(flattened(&text).0);
        let (has_changed, code) = flattened(&text.replace("1000 x", "1100 x"));
        let limit = format!("of {DEPTH} open calls take {} bytes, expected at most {LARGEST}", DEPTH * 1120);
        assert!(!has_changed && code.contains(&limit), "{code}");
        let call = |number| format!("%r{number} = call i64 @sum(i64 {number})\n");
        let calls: String = (0..=MOST_ENTRIES).map(call).collect();
        let (has_changed, code) = flattened(&format!("{SUM} define i64 @f() {{ {calls} ret i64 %r0 }}"));
        let limit = format!("called from {} places outside of it, expected at most {MOST_ENTRIES}", MOST_ENTRIES + 1);
        assert!(!has_changed && code.contains(&limit), "{code}");
        assert!(
            !flattened(
                "define i64 @f(i64 %n) noinline { ret i64 %n } define i64 @g() { %r = call i64 @f(i64 1) ret i64 %r }"
            )
            .0
        );
    }
}
