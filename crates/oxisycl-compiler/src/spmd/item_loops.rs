//! Item loops: the calls of `builtin::each_item`, whose closure is the code of one work-item.
//!
//! The closure becomes a function of its own, in which all it calls is inlined. Then the loop takes as many items at once as a vector has lanes,
//! and the rest one by one, by the same scalar code. Where no loop can be vectorised, the module stays as it is.

use oxisycl_image::{Form, HostLevel, SourceLocation};

use super::barriers::{self, Nest};
use super::examine::Refused;
use super::llvms::{Own, own_vectors};
use super::outcome::Outcome;
use super::rows::{self, ONE_COPY};
use super::widen::is_note;
use super::{Vectorised, Wanted, in_turn, vectorise};
use crate::error::CompileError;
use crate::llvm::pass_lists::DROP_UNUSED;
use crate::llvm::{
    self, Attribute, Block, Builder, Linkage, Machine, Module, Opcode, PassTuning, Place, Type, TypeKind, Value,
    Vectors,
};
use crate::options::{FloatPolicy, Lanes};
use crate::origin;
use crate::passes::{contraction, float_policy, libcalls, native_code, strip_host_abi};

/// What is done for the closures of item loops before they are vectorised: all of `-O3` but what makes vectors and copies of loops.
const SIMPLIFY: &str = "globaldce,thinlto-pre-link<O3>";
/// As [`SIMPLIFY`], for small functions that are seldom called, which are inlined by then.
const SIMPLIFY_AGAIN: &str = "always-inline,globaldce,thinlto-pre-link<O3>";
/// For closures: what they call is inlined, since a call keeps them scalar.
const TUNING: PassTuning = PassTuning { inliner_threshold: 1000, vectors: Vectors::None };

/// Says to LLVM that a loop is worth no vectors of its own.
const VECTORS: (&str, u32) = ("llvm.loop.isvectorized", 1);

/// The parts of an item loop, by their names: the closure, and the function of the loop.
pub(super) struct ItemLoop {
    pub(super) body: String,
    pub(super) steps: String,
}

impl ItemLoop {
    pub(super) fn body<'c>(&self, module: &Module<'c>) -> Result<Value<'c>, CompileError> {
        module.function(&self.body).ok_or_else(|| CompileError::Kernel(format!("{} was lost", self.body)))
    }

    pub(super) fn steps<'c>(&self, module: &Module<'c>) -> Result<Value<'c>, CompileError> {
        module.function(&self.steps).ok_or_else(|| CompileError::Kernel(format!("{} was lost", self.steps)))
    }
}

/// What became of the item loops of a module.
pub(crate) struct Vectorisation<'c> {
    /// The module to go on with, if a loop has lanes.
    pub(crate) module: Option<Module<'c>>,
    /// Of each loop.
    pub(crate) outcomes: Vec<Outcome>,
    /// Whether the loop moves more than it computes, in vectors of LLVM's.
    pub(crate) is_stream: bool,
    /// Whether the loops are those between a kernel's barriers.
    pub(crate) is_parted: bool,
    /// The reason why work-items wait for each other on stacks, if they do. Native code has none.
    pub(crate) waits: Option<String>,
}

impl Vectorisation<'_> {
    /// Without a change.
    pub(crate) fn none(outcomes: Vec<Outcome>) -> Self {
        Self { module: None, outcomes, is_stream: false, is_parted: false, waits: None }
    }
}

/// Vectorises the item loops of a module.
pub(crate) fn vectorise_all<'c>(
    module: &Module<'c>,
    machine: &Machine,
    (level, lanes): (HostLevel, Lanes),
    (form, float): (Form, FloatPolicy),
    kernel: Option<&str>,
) -> Result<Vectorisation<'c>, CompileError> {
    if matches!(form, Form::Group(_)) {
        let copy = module.clone();
        if let Some(nest) = barriers::begin(&copy)? {
            return vectorise_copy(copy, machine, (level, lanes), (form, float), kernel, Some(&nest));
        }
    }
    vectorise_copy(module.clone(), machine, (level, lanes), (form, float), kernel, None)
}

/// Vectorises the item loops of a module, which are those of a kernel's regions if it has a nest.
fn vectorise_copy<'c>(
    copy: Module<'c>,
    machine: &Machine,
    (level, lanes): (HostLevel, Lanes),
    (form, float): (Form, FloatPolicy),
    kernel: Option<&str>,
    nest: Option<&Nest>,
) -> Result<Vectorisation<'c>, CompileError> {
    let is_of_groups = !matches!(form, Form::Range(_));
    let n_loops_of_rows =
        if let Form::Group(dimensions) = form { usize::from(dimensions).saturating_sub(1) } else { 0 };
    if float != FloatPolicy::Strict {
        libcalls::replace_for_lanes(&copy);
        // The kernel no longer calls the body of a nest.
        let roots = [kernel, nest.map(Nest::body)].into_iter().flatten().filter_map(|name| copy.function(name));
        let roots: Vec<_> = roots.collect();
        float_policy::apply_policies(&roots, &vec![float; roots.len()]);
    }
    let (mut loops, mut outcomes) = (Vec::new(), Vec::new());
    let functions = copy.functions().into_iter();
    let instances = functions.filter(|function| {
        !function.is_declaration() && origin::builtin(function.name()).as_deref() == Some("each_item")
    });
    for instance in instances {
        match take_apart(&copy, instance, &steps_of(loops.len()), 1)? {
            Ok(parts) => loops.push(parts),
            Err(reason) => outcomes.push(Outcome::Scalar(reason.to_owned())),
        }
    }
    if loops.is_empty() && nest.is_none() {
        if outcomes.is_empty() {
            outcomes.push(Outcome::Scalar("its loop over work-items was not found".to_owned()));
        }
        return Ok(Vectorisation::none(outcomes));
    }
    in_turn::keep(&copy);
    for parts in loops.iter().filter(|_| n_loops_of_rows > 0) {
        rows::keep_together(copy.context(), parts.steps(&copy)?);
    }
    copy.run(SIMPLIFY, Some(machine), &TUNING)?;
    for parts in loops.iter().filter(|_| n_loops_of_rows > 0) {
        rows::keep_apart(parts.steps(&copy)?, n_loops_of_rows);
    }
    strip_host_abi::inline_cold(&copy);
    copy.run(SIMPLIFY_AGAIN, Some(machine), &TUNING)?;
    if let Some(nest) = nest {
        match barriers::part(&copy, machine, nest, loops.len())? {
            Ok(regions) => {
                for parts in &regions {
                    rows::keep_apart(parts.steps(&copy)?, 2);
                }
                loops.extend(regions);
            }
            Err(refused) => {
                let waits = Some(place_and_reason(refused, None));
                return Ok(Vectorisation { waits, ..Vectorisation::none(Vec::new()) });
            }
        }
    }
    contraction::fuse(&copy);
    let take_turns: Vec<bool> =
        loops.iter().map(|parts| Ok(in_turn::is_marked(parts.body(&copy)?))).collect::<Result<_, CompileError>>()?;
    in_turn::forget(&copy);
    let is_only = loops.len() == 1 && outcomes.is_empty();
    // Before the first of them has steps, which a trial of another one would have to look at, too.
    let mut owns = vec![Own::Scalar; loops.len()];
    for (number, own) in owns.iter_mut().enumerate() {
        if lanes == Lanes::Auto && !take_turns[number] {
            *own = own_vectors(&copy, machine, level, (&loops, number))?;
        }
    }
    let mut is_vector = false;
    for (number, parts) in loops.iter().enumerate() {
        let (body, steps) = (parts.body(&copy)?, parts.steps(&copy)?);
        let is_of_reductions = origin::is_of_reductions(&parts.body);
        // One loop is where its kernel is, which is code of the library around what gives to reductions.
        let place = if is_only && !is_of_reductions { None } else { first_place(body) };
        let mut vector = None;
        let outcome = if take_turns[number] {
            let reason =
                "its work-items take turns on their thread, by barriers or by atomic operations in local memory";
            Outcome::Scalar(with_place(reason.to_owned(), place))
        } else if owns[number] != Own::Scalar {
            Outcome::Llvms { place }
        } else {
            // Work-items that give to reductions are those of a range, not of the group that runs them.
            let is_of_groups = is_of_groups && !is_of_reductions;
            let wanted = Wanted { level, lanes, most_items: most_items(steps), is_of_groups };
            match vectorise(&copy, Some(machine), body, wanted)? {
                Ok(Vectorised { function, estimate }) => {
                    vector = Some((function, estimate.lanes));
                    Outcome::Vector { lanes: estimate.lanes, gain: estimate.gain(), place }
                }
                Err(refused) => Outcome::Scalar(place_and_reason(refused, place)),
            }
        };
        is_vector |= vector.is_some();
        define_steps(&copy, steps, body, vector);
        outcomes.push(outcome);
    }
    let is_stream = is_only && owns[0] == Own::Stream;
    if let Err(error) = copy.verify("vectorisation") {
        give_up(&mut outcomes, &error);
        return Ok(Vectorisation::none(outcomes));
    }
    copy.run(DROP_UNUSED, Some(machine), &TUNING)?;
    // Regions are better than stacks without lanes, too.
    let module = (is_vector || nest.is_some()).then_some(copy);
    Ok(Vectorisation { module, outcomes, is_stream, is_parted: nest.is_some(), waits: None })
}

/// The name of the function of a loop.
pub(super) fn steps_of(number: usize) -> String {
    format!("oxisycl.steps.{number}")
}

/// The most items of a row, if all calls of its loop have constants.
fn most_items(steps: Value<'_>) -> Option<u64> {
    let counts = steps.calls().into_iter().map(|call| call.operand(1).integer());
    counts.collect::<Option<Vec<_>>>().and_then(|counts| counts.into_iter().max())
}

/// Says that no loop has vectors after all, since the copy of the module is not valid.
fn give_up(outcomes: &mut [Outcome], error: &CompileError) {
    let error = error.to_string();
    let reason = format!("its vectors are wrong code of this compiler: {}", error.lines().next().unwrap_or_default());
    let vectors = outcomes.iter_mut().filter(|outcome| matches!(outcome, Outcome::Vector { .. }));
    vectors.for_each(|outcome| *outcome = Outcome::Scalar(reason.clone()));
}

/// The reason with the place in the user's code, or else with the place of the loop.
fn place_and_reason(refused: Refused<'_>, of_loop: Option<SourceLocation>) -> String {
    let Refused { reason, at } = refused;
    let places = at.map(Value::places).unwrap_or_default();
    let own = places.into_iter().find(is_users).map(Place::location);
    with_place(reason, own.or(of_loop))
}

fn with_place(reason: String, place: Option<SourceLocation>) -> String {
    match place {
        Some(place) => format!("{reason} ({place})"),
        None => reason,
    }
}

/// The first place of a closure, in which what it calls is inlined. Closures of ours around the user's have none.
fn first_place(body: Value<'_>) -> Option<SourceLocation> {
    let outermost = |instruction: Value<'_>| instruction.places().into_iter().rfind(is_users).map(Place::location);
    body.instructions().into_iter().filter_map(outermost).min_by_key(|place| (place.line, place.column))
}

fn is_users(place: &Place<'_>) -> bool {
    place.line > 0 && origin::is_users_file(&place.file, &place.folder)
}

/// Makes an instance of `each_item` call a function for its loop, which has no body yet. The error says why it stays as it is. An instance of
/// `each_position` has three counts, and three loops.
pub(super) fn take_apart<'c>(
    module: &Module<'c>,
    instance: Value<'c>,
    steps: &str,
    n_counts: u32,
) -> Result<Result<ItemLoop, &'static str>, CompileError> {
    let context = module.context();
    let (pointer, count) = (Type::pointer(context, 0), Type::int(context, 64));
    let mut of_captures_and_counts = vec![pointer];
    of_captures_and_counts.extend((0..n_counts).map(|_| count));
    let of_body = Type::function(Type::void(context), &of_captures_and_counts);
    let is_of_body = |call: &Value<'c>| call.callee().is_some() && call.called_type() == of_body;
    let calls: Vec<_> = instance.instructions().into_iter().filter(is_of_body).collect();
    let [call] = calls[..] else { return Ok(Err("its closure is not called in one place")) };
    let Some(body) = call.callee().filter(|body| !body.is_declaration()) else {
        return Ok(Err("its closure has no code of its own"));
    };
    if call.is(Opcode::INVOKE) && !drops_nothing(call.block().successors()[1]) {
        return Ok(Err("its closure owns what has to be dropped"));
    }
    let counts: Vec<_> =
        (0..instance.parameter_count()).map(|index| instance.parameter(index)).take(n_counts as usize).collect();
    let has_counts = counts.iter().filter(|value| value.value_type() == count).count() == n_counts as usize;
    if !has_counts || instance.held_type().result().kind() != TypeKind::Void {
        return Ok(Err("its loop has another form than ours"));
    }
    let captures = call.operand(0);
    let entry = instance.blocks()[0];
    if call.block() == entry || call.operand(1).is_constant() {
        return Ok(Err("its loop has another form than ours"));
    }
    let is_made_first = captures.kind() != llvm::ValueKind::Instruction
        || captures.block() == entry && captures.users().iter().all(|user| *user == call || user.block() == entry);
    if !is_made_first {
        return Ok(Err("its closure is not there before the loop"));
    }
    let steps = module.declare(steps, of_body);
    native_code::compile_like(context, steps, body);
    let always = Attribute::plain(context, "alwaysinline", 0);
    instance.add_attribute(Attribute::FUNCTION, always);
    let name = body.name().to_owned();
    let end = entry.end();
    let builder = Builder::before(context, end);
    let new = builder.call(steps, &[vec![captures], counts].concat());
    new.place_as(call);
    builder.ret_void();
    // That of a call that may unwind, for blocks that are not reached any more.
    if end.is_used() {
        end.replace_all_uses_with(end.value_type().poison());
    }
    end.erase();
    Module::run_on(instance, "simplifycfg", None, &TUNING)?;
    // Visible, so that LLVM changes none of its parameters.
    body.set_linkage(Linkage::EXTERNAL);
    body.remove_attribute(Attribute::FUNCTION, "alwaysinline");
    body.remove_attribute(Attribute::FUNCTION, "inlinehint");
    body.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "noinline", 0));
    Ok(Ok(ItemLoop { body: name, steps: steps.name().to_owned() }))
}

/// Whether code that a panic reaches does nothing that is seen outside of its function, and passes the panic on. Then it need not be reached.
fn drops_nothing(pad: Block<'_>) -> bool {
    all_behind(pad, is_unseen)
}

/// Whether it holds for all instructions of a block and of those that are reached from there.
pub(super) fn all_behind<'c>(pad: Block<'c>, holds: impl Fn(Value<'c>) -> bool) -> bool {
    let mut reached = vec![pad];
    let mut next = 0;
    while let Some(block) = reached.get(next).copied() {
        next += 1;
        if !block.instructions().into_iter().all(&holds) {
            return false;
        }
        for successor in block.successors() {
            if !reached.contains(&successor) {
                reached.push(successor);
            }
        }
    }
    true
}

/// Whether an instruction of a landing pad only computes, or goes on, or keeps the panic in a variable of its function.
pub(super) fn is_unseen(instruction: Value<'_>) -> bool {
    match instruction.opcode() {
        _ if is_note(instruction) => true,
        Some(Opcode::PHI | Opcode::GET_ELEMENT_PTR | Opcode::BRANCH | Opcode::LANDING_PAD) => true,
        Some(Opcode::EXTRACT_VALUE | Opcode::INSERT_VALUE) => true,
        Some(Opcode::LOAD | Opcode::STORE) if instruction.is_volatile() || instruction.is_atomic() => false,
        Some(Opcode::LOAD) => true,
        Some(Opcode::STORE) => {
            let mut address = instruction.operand(1);
            while address.is(Opcode::GET_ELEMENT_PTR) {
                address = address.operand(0);
            }
            address.is(Opcode::ALLOCA)
        }
        // The end that has a panic's two values is `resume`.
        Some(Opcode::RET) | None => false,
        Some(_) => {
            let is_end = instruction == instruction.block().end() && instruction.block().successors().is_empty();
            is_end && matches!(instruction.operands()[..], [panic] if panic.value_type().kind() == TypeKind::Struct)
        }
    }
}

/// Defines the function of a loop: by vectors, if there are any, and then one by one.
pub(super) fn define_steps<'c>(
    module: &Module<'c>,
    steps: Value<'c>,
    body: Value<'c>,
    vector: Option<(Value<'c>, u32)>,
) {
    let context = module.context();
    let number = Type::int(context, 64);
    let (captures, count) = (steps.parameter(0), steps.parameter(1));
    let [entry, end] = [(); 2].map(|()| Block::append(context, steps));
    let builder = Builder::at_end(context, entry);
    let mut begin = number.constant(0);
    if let Some((vector, lanes)) = vector {
        let last = number.constant(!(u64::from(lanes) - 1));
        let whole = builder.binary(Opcode::AND, count, last);
        add_loop(context, steps, &builder, (begin, whole, lanes), &[VECTORS], |item| {
            _ = builder.call(vector, &[captures, item])
        });
        begin = whole;
    }
    // What vectors leave is short.
    let hints: &[_] = if vector.is_some() { &[VECTORS, ONE_COPY] } else { &[] };
    add_loop(context, steps, &builder, (begin, count, 1), hints, |item| _ = builder.call(body, &[captures, item]));
    builder.branch(end);
    builder.move_to(end);
    builder.ret_void();
    llvm::describe(module, steps, body);
    for function in [Some(body), Some(steps), vector.map(|(vector, _)| vector)].into_iter().flatten() {
        function.set_linkage(Linkage::INTERNAL);
        function.remove_attribute(Attribute::FUNCTION, "noinline");
        function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
    }
}

/// Adds a loop over numbers, and goes on behind it.
pub(super) fn add_loop<'c>(
    context: &'c llvm::Context,
    steps: Value<'c>,
    builder: &Builder<'c>,
    (begin, end, step): (Value<'c>, Value<'c>, u32),
    hints: &[(&str, u32)],
    run: impl FnOnce(Value<'c>),
) {
    let number = begin.value_type();
    let before = builder.block();
    let [head, inside, behind] = [(); 3].map(|()| Block::append(context, steps));
    builder.branch(head);
    builder.move_to(head);
    let item = builder.phi(number, &[(begin, before)]);
    builder.branch_if(builder.is_equal(item, end), behind, inside);
    builder.move_to(inside);
    run(item);
    let (next, latch) = (builder.add(item, number.constant(step.into())), builder.block());
    item.add_incoming(&[(next, latch)]);
    builder.branch(head);
    if !hints.is_empty() {
        latch.end().set_loop_hints(hints);
    }
    builder.move_to(behind);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spmd::cost::Gain;

    #[test]
    fn loops_whose_module_is_invalid_stay_scalar() {
        let own = Outcome::Scalar("it waits".to_owned());
        let mut outcomes = [Outcome::Vector { lanes: 8, gain: Gain(200), place: None }, own.clone()];
        give_up(&mut outcomes, &CompileError::Llvm("invalid code after vectorisation: a\nb".to_owned()));
        assert!(
            matches!(&outcomes[0], Outcome::Scalar(reason) if reason.ends_with("invalid code after vectorisation: a"))
        );
        assert_eq!(outcomes[1], own);
    }
}
