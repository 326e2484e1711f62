//! Random programs of everything together, from two threads, with failures, against a sequential model.
//!
//! Two threads submit kernels with several accessors, copies, fills, host tasks, host accessors and `update_host` to simulated devices and
//! the host. The buffers have three dimensions, sub-buffers and reinterpretations, page sizes of their own and ranged `no_init`. Some
//! kernels and tasks panic. In half of the programs, simulated devices fail launches, copies, fills, allocations and other commands. A lock
//! held during each submission makes their order known. Afterwards `model` replays the program in that order with the outcome that each
//! command had. The test fails on an outcome that the rules of `book/src/semantics.md` (5.4, 5.5, 9.8, 9.9) exclude. It also fails if the
//! host saw a value that the model does not have.
//!
//! `OXISYCL_TEST_CASES` sets the number of programs, `OXISYCL_TEST_SEED` the first seed.

mod model;
#[path = "../support/mod.rs"]
mod support;
mod view;
mod world;

use std::fmt::Write as _;
use std::sync::Barrier;

use oxisycl::prelude::*;
use oxisycl::simulated::{Operation, SimulatedControl};

use model::{fault, replay};
use support::{Random, alone, setting, watchdog_of};
use view::Access;
use world::{Effect, Fault, Outcome, Step, World};

const N_DEVICES: usize = 3;
const N_BUFFERS: usize = 3;
const N_STEPS: usize = 30;

/// One program of two threads. The error is what is wrong, with all steps.
fn program(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let world = World::new(&mut random);
    let seeds = [random.next(), random.next()];
    let together = Barrier::new(seeds.len());
    std::thread::scope(|scope| {
        for (thread, seed) in seeds.into_iter().enumerate() {
            let (world, together) = (&world, &together);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                together.wait();
                for _ in 0..N_STEPS / 2 {
                    world.step(thread, &mut random);
                }
            });
        }
    });
    // At the end the host looks at everything.
    for buffer in 0..N_BUFFERS {
        let view = &world.views[buffer * 4];
        let uses = vec![world.use_of(view, view.whole(), Access::Read)];
        let (effect, outcome) = match view.handle.to_vec() {
            Ok(data) => (Effect::See(data), Outcome::Done),
            Err(error) => (Effect::Nothing, Outcome::Refused(error)),
        };
        let text = format!("at the end, buffer {buffer}");
        let step =
            Step { text, uses, effect, device: None, operation: None, after: vec![], is_refused: false, outcome };
        world.shared.lock().unwrap().steps.push(step);
    }
    let steps = world.shared.into_inner().unwrap().steps;
    let result = replay(&steps, world.extents.map(|extent| extent.iter().product()));
    // Nothing of this program goes on while the next one runs.
    for queue in &world.queues {
        while queue.wait().is_err() {}
    }
    let result = result.and_then(|()| surfaced(&steps, &world.faults, &world.control));
    result.map_err(|wrong| {
        let mut report = format!("seed {seed}, faults {:?}, {wrong}\n", world.faults);
        for (number, step) in steps.iter().enumerate() {
            let outcome = match (&step.outcome, error_of(step)) {
                (Outcome::Refused(_), Some(error)) => format!("refused: {error:?}"),
                (_, Some(error)) => format!("{error:?}"),
                (Outcome::Done, None) => "done".to_owned(),
                (_, None) => "ended".to_owned(),
            };
            let _ = writeln!(report, "  {number}: {}: {outcome}", step.text);
        }
        report
    })
}

fn error_of(step: &Step) -> Option<Error> {
    match &step.outcome {
        Outcome::Refused(error) => Some(error.clone()),
        Outcome::Done => None,
        Outcome::Submitted(event) => event.wait().err(),
    }
}

/// Whether each fault that came to pass is told by a step. A failed copy is not reported if the step that it was made for fails for another
/// reason, or is refused (9.1). If several accessors get no memory, the first one is reported.
fn surfaced(steps: &[Step], faults: &[Fault], control: &SimulatedControl) -> Result<(), String> {
    for &(device, operation, nth) in faults {
        if control.attempts(device, operation) < nth {
            continue;
        }
        let expected = format!("{} {nth}", fault(device, operation));
        let is_it = |step: &Step| error_of(step).is_some_and(|error| format!("{error:?}").ends_with(&expected));
        let has_error = |is_it: &dyn Fn(&Error) -> bool| steps.iter().filter_map(error_of).any(|error| is_it(&error));
        let is_excused = match operation {
            Operation::Copy => has_error(&|_| true),
            Operation::Allocate => has_error(&|error| error.code() == ErrorCode::MemoryAllocation),
            _ => false,
        };
        if !steps.iter().any(is_it) && !is_excused {
            return Err(format!("no step tells of the fault in {operation} number {nth} of device {device}"));
        }
    }
    Ok(())
}

#[test]
fn random_programs_of_two_threads_with_failures_keep_the_rules() {
    let _alone = alone();
    let (first, cases) = (setting("OXISYCL_TEST_SEED", 1), setting("OXISYCL_TEST_CASES", 400));
    let _watchdog = watchdog_of(60 + cases / 20);
    let wrong: Vec<String> = (first..first + cases).filter_map(|seed| program(seed).err()).collect();
    let lines: Vec<&str> = wrong.iter().filter_map(|report| report.lines().next()).collect();
    let shown = wrong.first().map(String::as_str).unwrap_or_default();
    let n = wrong.len();
    assert!(wrong.is_empty(), "{n} of {cases} programs from seed {first} on:\n{}\nfirst:\n{shown}", lines.join("\n"));
    println!("{cases} programs from seed {first} on: no rule was broken");
}
