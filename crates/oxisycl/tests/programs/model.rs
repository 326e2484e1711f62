//! The sequential model of a random program: goes through its steps in the order of submission, and says which outcome cannot be.
//!
//! The model knows of each element whether it is good, lost or either of both. The rules leave open what becomes of data after several
//! commands in a row did not run. What fails first, by a panic or on request, is taken from the steps' errors. The rules decide whether it
//! could fail there, what else fails for that reason, and which data is lost or kept.

use std::collections::HashMap;
use std::error::Error as _;

use oxisycl::prelude::*;
use oxisycl::simulated::Operation;

use crate::N_BUFFERS;
use crate::view::{Access, Use};
use crate::world::{Effect, Outcome, Step, start};

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Good,
    Lost,
    /// Good or lost.
    Either,
}

/// An element of the model.
#[derive(Clone, Copy, Debug)]
struct Element {
    value: u32,
    state: State,
    /// How many commands in a row were to write it and did not run.
    n_skipped: u32,
    /// The element may be part of a transfer that failed for the sake of another element. What relies on the same transfer fails, too (5.5).
    may_be_on_its_way: bool,
}

impl Element {
    fn new(value: u32) -> Self {
        Self { value, state: State::Good, n_skipped: 0, may_be_on_its_way: false }
    }

    /// Whether a use can fail that was submitted before the failure of an earlier one was known (5.5).
    fn is_doubtful(&self) -> bool {
        self.state != State::Good || self.n_skipped > 0 || self.may_be_on_its_way
    }
}

/// Why a step failed.
struct Cause {
    /// The text of what failed first.
    root: String,
    /// Whether that is the error itself, and nothing that the step depends on.
    is_direct: bool,
}

impl Cause {
    fn of(error: &Error) -> Self {
        let mut deepest: &dyn std::error::Error = error;
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        Self { root: deepest.to_string(), is_direct: error.source().is_none() }
    }

    fn is_injected(&self) -> bool {
        self.root.contains("injected fault in ")
    }

    fn is_injected_copy(&self) -> bool {
        self.root.contains("injected fault in copy ")
    }

    /// Whether it is that operation of the device that failed on request.
    fn is_of(&self, device: Option<usize>, operation: Operation) -> bool {
        device.is_some_and(|device| self.root.contains(&fault(device, operation)))
    }
}

/// How the text of a fault begins, but for its number.
pub(crate) fn fault(device: usize, operation: Operation) -> String {
    format!("\"simulated device {device}\": injected fault in {operation} number")
}

/// Goes through the steps in the order of their submission. The error says what cannot be.
pub(crate) fn replay(steps: &[Step], sizes: [usize; N_BUFFERS]) -> Result<(), String> {
    let mut model: Vec<Vec<Element>> =
        sizes.iter().enumerate().map(|(buffer, &n)| (0..n).map(|i| Element::new(start(buffer, i))).collect()).collect();
    let mut failed = vec![false; steps.len()];
    // Which step was the first to fail for a reason.
    let mut roots: HashMap<String, usize> = HashMap::new();
    for (number, step) in steps.iter().enumerate() {
        let wrong = |what: &str| Err(format!("step {number}: {what}"));
        let needed = || step.uses.iter().filter(|one| one.access != Access::Discard);
        let has_failed_event = step.after.iter().any(|&step| failed[step]);
        let is_lost = |one: &Use| one.named.iter().any(|&i| model[one.buffer][i].state == State::Lost);
        let must_fail = has_failed_event || needed().any(is_lost);
        let has_doubtful = |one: &Use| one.touched.iter().any(|&i| model[one.buffer][i].is_doubtful());
        let may_fail = must_fail || needed().any(has_doubtful);

        let error = match &step.outcome {
            Outcome::Done => None,
            Outcome::Refused(error) => Some(error.clone()),
            Outcome::Submitted(event) => event.wait().err(),
        };
        let cause = error.as_ref().map(Cause::of);
        let is_first = cause.as_ref().is_some_and(|cause| *roots.entry(cause.root.clone()).or_insert(number) == number);
        // A copy that the runtime makes for a step, and that fails on request, is the failure of the step. Its own copies fail as it does; parts of
        // one look like what the runtime copies for it.
        let is_own_copy = |cause: &Cause| cause.is_direct && step.operation == Some(Operation::Copy);
        let lacks_transfer =
            is_first && cause.as_ref().is_some_and(|cause| cause.is_injected_copy() && !is_own_copy(cause));
        if lacks_transfer && needed().next().is_none() {
            return wrong("a transfer failed for a step that needs none");
        }
        let may_be_part = lacks_transfer
            && step.operation == Some(Operation::Copy)
            && matches!(step.outcome, Outcome::Submitted(_))
            && cause.as_ref().is_some_and(|cause| cause.is_of(step.device, Operation::Copy));
        let may_fail = may_fail || lacks_transfer;
        // What is copied for it is copied together, as far as it is of one buffer.
        let moved: Vec<(usize, usize)> = needed()
            .filter(|one| lacks_transfer || needed().any(|other| other.buffer == one.buffer && has_doubtful(other)))
            .flat_map(|one| one.touched.iter().map(|&i| (one.buffer, i)))
            .collect();

        if step.is_refused && !matches!(step.outcome, Outcome::Refused(_)) {
            return wrong("overlapping accessors were accepted");
        }
        if let (Outcome::Refused(error), Some(cause)) = (&step.outcome, &cause) {
            // Nothing was enqueued.
            failed[number] = true;
            let lacks_memory = is_first && cause.is_of(step.device, Operation::Allocate);
            if lacks_memory && error.code() != ErrorCode::MemoryAllocation {
                return wrong(&format!("a lack of memory is {error:?}"));
            }
            let is_explained = may_fail || lacks_memory || (step.is_refused && error.code() == ErrorCode::Accessor);
            if !is_explained {
                return wrong(&format!("it was refused without a reason: {error:?}"));
            }
            moved.iter().for_each(|&(buffer, i)| model[buffer][i].may_be_on_its_way = true);
            continue;
        }
        let succeeded = cause.is_none();
        // A panic on purpose, and what failed on request, is the step's own failure; all others are of what it depends on. A fill can have
        // several parts, of which one fails.
        let is_own = |cause: &Cause| match cause.is_injected() {
            true => is_first && !lacks_transfer,
            false => cause.is_direct,
        };
        let ran = cause.as_ref().is_none_or(is_own);
        let is_injected = cause.as_ref().is_some_and(Cause::is_injected);
        failed[number] = !succeeded;
        let panics = matches!(step.effect, Effect::Panic);
        match &cause {
            None if must_fail => return wrong("it succeeded although what it depends on failed"),
            None if panics => return wrong("it succeeded although it panics"),
            None => {}
            Some(_) if ran && must_fail => return wrong("it ran although what it depends on failed"),
            Some(cause)
                if ran
                    && is_injected
                    && !step.operation.is_some_and(|operation| cause.is_of(step.device, operation)) =>
            {
                return wrong("it failed by a fault of another operation");
            }
            Some(_) if ran && !is_injected && !panics => return wrong("it failed by itself"),
            Some(cause) if !ran && is_injected && cause.is_direct => return wrong("one fault failed two steps"),
            Some(_) if !ran && !may_fail => {
                return wrong("it did not run although nothing that it depends on failed");
            }
            Some(_) if !ran && is_first && !lacks_transfer => {
                return wrong("it did not run for a reason that no earlier step has");
            }
            Some(_) => {}
        }
        if !ran {
            moved.iter().for_each(|&(buffer, i)| model[buffer][i].may_be_on_its_way = true);
        }
        let writes = step.uses.last().filter(|one| one.access != Access::Read);
        if succeeded {
            // What it needed was there.
            for one in step.uses.iter().filter(|one| one.access != Access::Discard) {
                one.named.iter().for_each(|&i| model[one.buffer][i].state = State::Good);
            }
            let Some(last) = step.uses.last() else { continue };
            let old = |one: &Use, i: usize| model[one.buffer][one.named[i % one.named.len()]].value;
            let new: Vec<u32> = match &step.effect {
                Effect::Nothing | Effect::Panic => continue,
                Effect::See(seen) => {
                    for (i, &seen) in seen.iter().enumerate() {
                        if old(last, i) != seen {
                            return wrong(&format!("element {i} is {seen}, not {}", old(last, i)));
                        }
                    }
                    continue;
                }
                Effect::Combine(number) => {
                    let others = &step.uses[..step.uses.len() - 1];
                    let own = |i| if last.access == Access::ReadWrite { old(last, i).wrapping_mul(3) } else { 0 };
                    let sum = |i| others.iter().fold(*number, |sum, one| sum.wrapping_add(old(one, i)));
                    (0..last.named.len()).map(|i| own(i).wrapping_add(sum(i))).collect()
                }
                Effect::Copy => (0..step.uses[0].named.len()).map(|i| old(&step.uses[0], i)).collect(),
                Effect::Fill(number) => vec![*number; last.named.len()],
                Effect::Store(values) => values.clone(),
            };
            for (&i, value) in last.named.iter().zip(new) {
                model[last.buffer][i] = Element::new(value);
            }
        } else if let Some(last) = writes {
            for &i in &last.touched {
                let is_named = last.named.contains(&i);
                let element = &mut model[last.buffer][i];
                if may_be_part {
                    element.state = merged(element.state, State::Lost);
                } else if ran {
                    element.state = if is_named { State::Lost } else { merged(element.state, State::Lost) };
                } else if element.state != State::Lost {
                    element.n_skipped += 1;
                    // Rule 9.8: as it was before, but for longer chains.
                    if element.n_skipped > 2 || element.state == State::Either || has_failed_event {
                        element.state = State::Either;
                    }
                } else if last.access == Access::Discard {
                    // Whether the old loss stays is open: the command that was to end it did not run.
                    element.state = State::Lost;
                }
            }
        }
    }
    Ok(())
}

fn merged(a: State, b: State) -> State {
    if a == b { a } else { State::Either }
}
