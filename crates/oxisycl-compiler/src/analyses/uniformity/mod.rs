//! Uniformity analysis: the values that are the same in all work-items of a group, and the places that all of them reach.
//!
//! A value *diverges* if work-items of a group may have different ones. Sources are positions in the group, memory that changes, and addresses of variables,
//! since each work-item has variables of its own. Divergence passes from operands to results. A branch whose condition diverges makes work-items diverge; they
//! meet again at its nearest common block. What a phi chooses on the way and there diverges, and so does a variable that is stored to on the way.
//!
//! A place is *proved* if it lies on no such way. Then all work-items come to it equally often, or they end without a return: in a panic, or in a
//! loop without end.
//!
//! Local memory, and that of algorithms in native code, has the same value for all work-items that read one element. The library's accesses ensure that: no other work-item writes
//! an element that is read, up to the next barrier.
//!
//! The library marks what needs proof by two builtins, `prove_convergence` and `prove_uniform`. Without them nothing is examined.

mod computing;
mod flow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::builtin_table::{ITEM_ARRAY, LAUNCH, LOCAL_MEMORY};
use crate::codegen::intrinsics::SAME_FOR_A_GROUP;
use crate::llvm::{Attribute, Module, Opcode, Place, Value, ValueKind};
use crate::origin;
use crate::passes::thread_coarsening;
pub(crate) use computing::COMPUTE;
use computing::{called_function, computes};
pub(crate) use flow::Flow;

/// The builtin that marks a place.
const CONVERGENCE: &str = "oxisycl.prove_convergence";
/// The builtin that marks a value.
const UNIFORM: &str = "oxisycl.prove_uniform";

/// Makes functions that contain marks inlined, so that a kernel is analysed as a whole.
pub(crate) fn inline_marked(module: &Module<'_>) {
    let context = module.context();
    let mut queue: Vec<Value<'_>> =
        [CONVERGENCE, UNIFORM].into_iter().filter_map(|name| module.function(name)).collect();
    let mut seen = FxHashSet::default();
    while let Some(function) = queue.pop() {
        for caller in function.calls().into_iter().map(Value::function) {
            if seen.insert(caller) {
                caller.remove_attribute(Attribute::FUNCTION, "noinline");
                caller.remove_attribute(Attribute::FUNCTION, "optnone");
                caller.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
                queue.push(caller);
            }
        }
    }
}

/// The reason why a kernel is refused, if a mark of the library is not proved. Removes the marks.
pub(crate) fn check(module: &Module<'_>, kernel: Option<Value<'_>>) -> Option<String> {
    let marks: Vec<Value<'_>> = [CONVERGENCE, UNIFORM].into_iter().filter_map(|name| module.function(name)).collect();
    if marks.is_empty() {
        return None;
    }
    let refusal =
        kernel.filter(|_| marks.iter().any(|mark| mark.is_used())).and_then(|kernel| unproved(&marks, kernel));
    for mark in marks {
        for call in mark.calls() {
            if let Some(&value) = call.arguments().first() {
                call.replace_all_uses_with(value);
            }
            call.erase();
        }
        // One whose address is taken stays, and is refused as a function that no device has.
        if !mark.is_used() {
            mark.delete_function();
        }
    }
    refusal
}

/// Whether some work-items of a group may end at one of `ends` while others go on to one of `meetings`. If all reach an end together, none
/// is left to reach a meeting.
pub(crate) fn may_diverge<'c>(kernel: Value<'c>, ends: &[Value<'c>], meetings: &[Value<'c>]) -> bool {
    if ends.iter().chain(meetings).any(|call| call.function() != kernel) {
        return true;
    }
    let analysis = Analysis::of(kernel);
    let flow = &analysis.flow;
    let meet: FxHashSet<usize> = meetings.iter().map(|call| flow.number(call.block())).collect();
    let end: FxHashSet<usize> = ends.iter().map(|call| flow.number(call.block())).collect();
    (0..flow.blocks.len()).filter(|block| analysis.diverges(*block)).any(|block| {
        flow.between(block).iter().any(|block| end.contains(block))
            && flow.behind(block).iter().any(|block| meet.contains(block))
    })
}

fn unproved<'c>(marks: &[Value<'c>], kernel: Value<'c>) -> Option<String> {
    const WHAT: &str = "a barrier or an algorithm";
    const MUST: &str = ", to which all work-items of a group must come,";
    let calls: Vec<Value<'c>> = marks.iter().flat_map(|mark| mark.calls()).collect();
    if let Some(call) = calls.iter().find(|call| call.function() != kernel) {
        return Some(format!("{WHAT}{}{MUST} is in a function that cannot become part of the kernel", at(*call)));
    }
    let analysis = Analysis::of(kernel);
    // In the order of the code, so that the first one is named.
    for instruction in kernel.instructions() {
        if !calls.contains(&instruction) {
            continue;
        }
        if let Some(branch) = analysis.ways[analysis.flow.number(instruction.block())] {
            return Some(format!(
                "{WHAT}{}{MUST} may be reached by some of them only: the condition{} may differ between them",
                at(instruction),
                at(analysis.flow.blocks[branch].end())
            ));
        }
        if let Some(value) = instruction.arguments().first()
            && analysis.state(*value) != State::Uniform
        {
            return Some(format!(
                "a value{} that must be the same for all work-items of a group may differ",
                at(instruction)
            ));
        }
    }
    None
}

/// What is the same for all work-items of a group, in a function that is the code of one of them.
pub(crate) struct OfItems<'c>(Analysis<'c>);

impl<'c> OfItems<'c> {
    /// Analyses a function whose first parameter points to memory that is the same for all work-items and that nothing writes. Its other
    /// parameters are the position.
    pub(crate) fn of(function: Value<'c>) -> Self {
        let positions = (1..function.parameter_count()).map(|index| (function.parameter(index), State::Divergent));
        Self(Analysis::with(function, positions.collect()))
    }

    /// Whether all work-items come to an instruction, equally often, and have the same result there.
    pub(crate) fn is_same(&self, instruction: Value<'c>) -> bool {
        self.parting(instruction).is_none() && self.0.state(instruction) == State::Uniform
    }

    /// The end of a block behind which not all work-items come to an instruction, if there is one.
    pub(crate) fn parting(&self, instruction: Value<'c>) -> Option<Value<'c>> {
        let flow = &self.0.flow;
        self.0.ways[flow.number(instruction.block())].map(|branch| flow.blocks[branch].end())
    }
}

/// The text ` at FILE:LINE:COLUMN`, for the user's code that the instruction comes from.
pub(crate) fn at(instruction: Value<'_>) -> String {
    let is_users = |place: &Place<'_>| place.line > 0 && origin::is_users_file(&place.file, &place.folder);
    let users = instruction.places().into_iter().find(is_users).map(Place::location);
    users.map(|place| format!(" at {place}")).unwrap_or_default()
}

/// How much a value may differ between work-items.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum State {
    /// One value for all work-items.
    Uniform,
    /// The address of each work-item's own variable, at the same offset in it.
    Variable,
    /// Any values.
    Divergent,
}

struct Analysis<'c> {
    flow: Flow<'c>,
    /// The states of values that are not uniform.
    states: FxHashMap<Value<'c>, State>,
    /// The states of the variables' contents. Missing variables were never stored to.
    contents: FxHashMap<Value<'c>, State>,
    /// For each block, the branch before it at which work-items diverge, if there is one.
    ways: Vec<Option<usize>>,
    /// Whether work-items that diverged reconverge at the block.
    joins: Vec<bool>,
    /// Of functions that are called, whether the result is made of the arguments alone.
    computing: FxHashMap<Value<'c>, bool>,
}

impl<'c> Analysis<'c> {
    fn of(kernel: Value<'c>) -> Self {
        Self::with(kernel, FxHashMap::default())
    }

    /// Analyses a function, of whose values some states are known.
    fn with(kernel: Value<'c>, states: FxHashMap<Value<'c>, State>) -> Self {
        let flow = Flow::of(kernel);
        let n_blocks = flow.blocks.len();
        let mut analysis = Self {
            flow,
            states,
            contents: FxHashMap::default(),
            ways: vec![None; n_blocks],
            joins: vec![false; n_blocks],
            computing: FxHashMap::default(),
        };
        let instructions = kernel.instructions();
        for callee in instructions.iter().filter_map(|instruction| called_function(*instruction)) {
            computes(callee, &mut analysis.computing);
        }
        for variable in instructions.iter().filter(|instruction| instruction.is(Opcode::ALLOCA)) {
            analysis.states.insert(*variable, State::Variable);
            if escapes(*variable) {
                analysis.contents.insert(*variable, State::Divergent);
            }
        }
        // States only grow, so this ends.
        while analysis.step(&instructions) {}
        analysis
    }

    /// The state of a value.
    fn state(&self, value: Value<'c>) -> State {
        self.states.get(&value).copied().unwrap_or(State::Uniform)
    }

    /// Analyses all instructions once. Returns whether a state changed.
    fn step(&mut self, instructions: &[Value<'c>]) -> bool {
        let mut learned = false;
        for &instruction in instructions {
            let block = self.flow.number(instruction.block());
            self.note_stores(instruction, block, &mut learned);
            let before = self.state(instruction);
            let state = self.result(instruction, block).max(before);
            if state != before {
                self.states.insert(instruction, state);
                learned = true;
            }
            if self.flow.blocks[block].end() == instruction && self.diverges(block) {
                learned |= self.diverge(block);
            }
        }
        learned
    }

    /// Whether work-items may diverge at the end of a block, as far as known.
    fn diverges(&self, block: usize) -> bool {
        let end = self.flow.blocks[block].end();
        let is_known = end.is(Opcode::BRANCH) || end.is(Opcode::SWITCH);
        self.flow.has_several_successors(block) && (!is_known || self.state(end.operand(0)) != State::Uniform)
    }

    /// Records that work-items diverge at the end of a block. Returns whether that is new.
    fn diverge(&mut self, block: usize) -> bool {
        let mut learned = false;
        for between in self.flow.between(block) {
            if self.ways[between].is_none() {
                self.ways[between] = Some(block);
                learned = true;
            }
        }
        if let Some(meeting) = self.flow.meeting(block) {
            learned |= !std::mem::replace(&mut self.joins[meeting], true);
        }
        learned
    }

    /// Updates the contents of variables for an instruction.
    fn note_stores(&mut self, instruction: Value<'c>, block: usize, learned: &mut bool) {
        let (address, value) = match instruction.opcode() {
            Some(Opcode::STORE) => (instruction.operand(1), self.state(instruction.operand(0))),
            Some(Opcode::ATOMIC_RMW | Opcode::ATOMIC_CMP_XCHG) => (instruction.operand(0), State::Divergent),
            Some(Opcode::CALL) => {
                let name = instruction.callee().map(Value::name).unwrap_or_default();
                let arguments = instruction.arguments();
                if name.starts_with("llvm.memcpy.") || name.starts_with("llvm.memmove.") {
                    let length = self.state(arguments[2]);
                    (arguments[0], self.loaded(arguments[1], block, false).max(length))
                } else if name.starts_with("llvm.memset.") {
                    (arguments[0], self.state(arguments[1]).max(self.state(arguments[2])))
                } else {
                    return;
                }
            }
            _ => return,
        };
        // An address of a variable is followed no further.
        let is_same = value == State::Uniform && self.ways[block].is_none() && self.state(address) != State::Divergent;
        let state = if is_same { State::Uniform } else { State::Divergent };
        for base in bases(address).into_iter().filter(|base| base.is(Opcode::ALLOCA)) {
            let before = self.contents.get(&base).copied().unwrap_or(State::Uniform);
            if state > before {
                self.contents.insert(base, state);
                *learned = true;
            }
        }
    }

    /// The state of a load's result.
    fn loaded(&self, address: Value<'c>, block: usize, is_constant: bool) -> State {
        if self.state(address) == State::Divergent {
            return State::Divergent;
        }
        let of_base = |base: Value<'c>| match base.kind() {
            _ if base.is(Opcode::ALLOCA) => self.contents.get(&base).copied().unwrap_or(State::Uniform),
            _ if is_constant => State::Uniform,
            // Captures and the launch.
            ValueKind::Argument => State::Uniform,
            ValueKind::GlobalVariable if base.is_constant_global() => State::Uniform,
            // Work-items that diverged may load before and behind a barrier.
            ValueKind::GlobalVariable if base.name() == LOCAL_MEMORY && self.ways[block].is_none() => State::Uniform,
            _ if self.ways[block].is_none() && called_function(base).is_some_and(|of| of.name() == ITEM_ARRAY) => {
                State::Uniform
            }
            _ if base.callee().is_some_and(|callee| callee.name() == LAUNCH) => State::Uniform,
            _ => State::Divergent,
        };
        bases(address).into_iter().map(of_base).max().unwrap_or(State::Divergent)
    }

    /// The state of an instruction's result, as far as known.
    fn result(&self, instruction: Value<'c>, block: usize) -> State {
        let operands = instruction.operands();
        let all = |values: &[Value<'c>]| values.iter().map(|value| self.state(*value)).max().unwrap_or(State::Uniform);
        // What is made of an address by anything but a place in memory.
        let number = |state: State| if state == State::Variable { State::Divergent } else { state };
        match instruction.opcode() {
            Some(Opcode::ALLOCA) => State::Variable,
            Some(Opcode::PHI) => {
                let mut values = operands.iter().filter(|value| **value != instruction);
                let first = values.next();
                let is_same = values.all(|value| Some(value) == first);
                let diverged = self.joins[block] || self.ways[block].is_some();
                if diverged && !is_same { State::Divergent } else { all(&operands) }
            }
            Some(Opcode::LOAD) if instruction.is_atomic() => State::Divergent,
            Some(Opcode::LOAD) => {
                self.loaded(operands[0], block, instruction.has_metadata(thread_coarsening::CONSTANT))
            }
            Some(Opcode::ATOMIC_RMW | Opcode::ATOMIC_CMP_XCHG) => State::Divergent,
            Some(Opcode::GET_ELEMENT_PTR | Opcode::ADDRESS_SPACE_CAST | Opcode::BITCAST | Opcode::FREEZE) => {
                all(&operands)
            }
            Some(Opcode::SELECT) if operands[1] == operands[2] => self.state(operands[1]),
            Some(Opcode::SELECT) => match self.state(operands[0]) {
                State::Uniform => all(&operands[1..]),
                _ => State::Divergent,
            },
            Some(Opcode::INTEGER_COMPARISON) if all(&operands) == State::Variable => compared(operands[0], operands[1]),
            Some(Opcode::CALL) => self.called(instruction),
            // Calls that may unwind, in native code alone.
            Some(Opcode::INVOKE | Opcode::LANDING_PAD | Opcode::CALL_BRANCH) => State::Divergent,
            Some(Opcode::STORE | Opcode::FENCE | Opcode::BRANCH | Opcode::SWITCH | Opcode::RET) => State::Uniform,
            _ => number(all(&operands)),
        }
    }

    fn called(&self, call: Value<'c>) -> State {
        let Some(callee) = called_function(call) else { return State::Divergent };
        let name = callee.name();
        if UNIFORM_BUILTINS.iter().chain(&SAME_FOR_A_GROUP).any(|prefix| name.starts_with(prefix)) {
            return State::Uniform;
        }
        if self.computing.get(&callee).copied().unwrap_or(false) {
            let arguments = call.arguments();
            let most = arguments.iter().map(|argument| self.state(*argument)).max().unwrap_or(State::Uniform);
            return if most == State::Uniform { State::Uniform } else { State::Divergent };
        }
        State::Divergent
    }
}

/// Builtins that return the same value to all work-items of a group.
const UNIFORM_BUILTINS: [&str; 3] = [LAUNCH, ITEM_ARRAY, "oxisycl.meet_group"];

/// The base objects of an address, each followed back as far as possible. An offset from null is no null pointer, but any number.
pub(crate) fn bases<'c>(address: Value<'c>) -> Vec<Value<'c>> {
    let (mut found, mut seen, mut queue) = (Vec::new(), FxHashSet::default(), vec![(address, None)]);
    while let Some((value, moved)) = queue.pop() {
        if !seen.insert((value, moved.is_some())) {
            continue;
        }
        let base = match value.opcode().or_else(|| value.expression()) {
            Some(Opcode::GET_ELEMENT_PTR) => {
                queue.push((value.operand(0), Some(value)));
                continue;
            }
            Some(Opcode::ADDRESS_SPACE_CAST | Opcode::BITCAST | Opcode::FREEZE) => {
                queue.push((value.operand(0), moved));
                continue;
            }
            Some(Opcode::PHI) => {
                queue.extend(value.operands().into_iter().map(|operand| (operand, moved)));
                continue;
            }
            Some(Opcode::SELECT) => {
                queue.extend([(value.operand(1), moved), (value.operand(2), moved)]);
                continue;
            }
            _ if value.kind() == ValueKind::Null => moved.unwrap_or(value),
            _ => value,
        };
        if !found.contains(&base) {
            found.push(base);
        }
    }
    found
}

/// The state of a comparison of addresses, one of which is a variable's.
fn compared<'c>(first: Value<'c>, second: Value<'c>) -> State {
    let [first, second] = [bases(first), bases(second)];
    let is_null = |bases: &[Value<'c>]| matches!(bases, [base] if base.kind() == ValueKind::Null);
    let is_same = first.len() == 1 && first == second;
    if is_same || is_null(&first) || is_null(&second) { State::Uniform } else { State::Divergent }
}

/// Whether the address of a variable escapes, so that not all accesses are seen.
pub(crate) fn escapes(variable: Value<'_>) -> bool {
    let (mut seen, mut queue) = (FxHashSet::default(), vec![variable]);
    while let Some(address) = queue.pop() {
        for user in address.users() {
            let is_harmless = match user.opcode() {
                Some(
                    Opcode::GET_ELEMENT_PTR
                    | Opcode::ADDRESS_SPACE_CAST
                    | Opcode::BITCAST
                    | Opcode::FREEZE
                    | Opcode::PHI
                    | Opcode::SELECT,
                ) => {
                    if seen.insert(user) {
                        queue.push(user);
                    }
                    true
                }
                Some(Opcode::LOAD | Opcode::INTEGER_COMPARISON | Opcode::ATOMIC_RMW | Opcode::ATOMIC_CMP_XCHG) => {
                    user.operand(0) == address || user.is(Opcode::INTEGER_COMPARISON)
                }
                Some(Opcode::STORE) => user.operand(0) != address,
                Some(Opcode::CALL) => {
                    let name = user.callee().map(Value::name).unwrap_or_default();
                    ["llvm.memcpy.", "llvm.memmove.", "llvm.memset.", "llvm.lifetime."]
                        .iter()
                        .any(|prefix| name.starts_with(prefix))
                }
                _ => false,
            };
            if !is_harmless {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
