//! Bodies that run on this machine, item by item and in lanes: the same bits, and the same item fails.

mod bodies;
mod borders;
mod checks;
mod conversions;
mod copies;
mod fields;
mod lanes;
mod loops;
mod neon;
mod packed;
mod panics;
mod policies;
#[cfg(target_os = "linux")]
mod vectors;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl_image::HostLevel;

use super::item_loops::define_steps;
use super::{Wanted, vectorise, wide_masks};
use crate::llvm::{Codegen, Context, Linkage, Machine, Module, PassTuning, Type, Value};
use crate::options::Lanes;
use crate::passes::safe_gathers;
use crate::passes::tests::context;

/// The symbol of the loop over items in a test's library, by the number of lanes. 1 is code without lanes.
fn steps(lanes: u32) -> String {
    format!("steps{lanes}")
}

/// What a body gets: two arrays of words that it reads, one that it writes, their length, and a function to fail by.
#[repr(C)]
struct Captures {
    first: *const u32,
    second: *const u32,
    out: *mut u32,
    length: u64,
    fail: extern "C-unwind" fn(u64) -> !,
}

/// So many lanes, whether they are worth it or not.
pub(super) fn of_lanes(lanes: u32) -> Wanted {
    of_level(HostLevel::V3, lanes)
}

fn of_level(level: HostLevel, lanes: u32) -> Wanted {
    Wanted { level, lanes: Lanes::Number(lanes), most_items: None, is_of_groups: false }
}

pub(super) extern "C-unwind" fn fail(item: u64) -> ! {
    std::panic::resume_unwind(Box::new(item))
}

/// The length of the arrays that bodies get.
const LENGTH: usize = 64;
/// The words that arrays have. No item writes to words that another one writes to, so that a second place of an item is 70 words behind its first.
const ROOM: usize = 272;
/// The numbers of lanes that bodies run with.
const LANES: [u32; 5] = [2, 4, 8, 16, 32];

/// The machine that bodies are for: vectors of any width are valid for any processor.
pub(super) fn machine() -> Machine {
    machine_of(if has_level(HostLevel::V3) { "x86-64-v3" } else { "x86-64" })
}

fn machine_of(processor: &str) -> Machine {
    Machine::new("x86_64-unknown-linux-gnu", processor, "").expect("a machine")
}

/// A module with the body, and the machine that it is for.
fn module<'c>(context: &'c Context, body: &str) -> (Module<'c>, Machine) {
    let machine = machine();
    (module_for(&machine, context, body), machine)
}

fn module_for<'c>(machine: &Machine, context: &'c Context, body: &str) -> Module<'c> {
    let module = Module::from_text(context, &format!("{}\n{body}", bodies::DECLARATIONS), "body");
    let module = module.expect("a test is well-formed");
    module.set_target(machine.triple(), &machine.data_layout());
    module.verify("parsing").expect("a test is valid");
    module
}

#[cfg(target_arch = "x86_64")]
fn has_level(level: HostLevel) -> bool {
    let has_v3 =
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("bmi2");
    let has_registers = || is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl");
    let has_v4 = || has_registers() && is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512cd");
    has_v3 && (level == HostLevel::V3 || has_v4())
}

#[cfg(not(target_arch = "x86_64"))]
fn has_level(_level: HostLevel) -> bool {
    false
}

/// Makes a library of this process from a module, whose masks get wide lanes.
pub(super) fn link(module: &Module<'_>, machine: &Machine, is_optimised: bool) -> libloading::Library {
    link_with(module, machine, is_optimised, without_registers_for_masks)
}

/// The last passes for processors without registers for masks.
fn without_registers_for_masks(module: &Module<'_>) {
    safe_gathers::make_safe(module);
    wide_masks::widen(module);
}

/// As [`link`], with other last passes.
fn link_with(
    module: &Module<'_>,
    machine: &Machine,
    is_optimised: bool,
    last: impl FnOnce(&Module<'_>),
) -> libloading::Library {
    let passes = if is_optimised { "default<O3>" } else { "always-inline" };
    module.run(passes, Some(machine), &PassTuning::NATIVE).expect("passes");
    last(module);
    module.verify("wide masks").unwrap_or_else(|error| panic!("{error}: {module}"));
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("oxisycl-lanes-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (object, library) = (folder.join("body.o"), folder.join("body.so"));
    std::fs::write(&object, machine.emit(module, Codegen::Object).expect("code")).expect("a file");
    let linked = Command::new("cc").arg("-shared").arg("-o").arg(&library).arg(&object).arg("-lm").status();
    assert!(linked.expect("a linker").success());
    // SAFETY: a library of code from a test, whose initialisers are those of every library.
    let library = unsafe { libloading::Library::new(&library) }.expect("a library");
    std::fs::remove_dir_all(folder).expect("a folder");
    library
}

/// A body and its loops, in a library of this process.
struct Linked(libloading::Library);

impl Linked {
    /// Compiles a body without lanes.
    fn plain(body: &str) -> Self {
        Self::new(body, &[1], false)
    }

    /// Compiles a body for some numbers of lanes.
    fn new(body: &str, lanes: &[u32], is_optimised: bool) -> Self {
        let context = context();
        let (module, machine) = module(&context, body);
        let body = module.function("body").expect("a body");
        let held = Type::function(Type::void(&context), &[Type::pointer(&context, 0), Type::int(&context, 64)]);
        for lanes in lanes.iter().copied() {
            let vector =
                (lanes > 1).then(|| match vectorise(&module, Some(&machine), body, of_lanes(lanes)).expect("passes") {
                    Ok(vector) => (vector.function, lanes),
                    Err(refused) => panic!("refused: {}", refused.reason),
                });
            let steps = module.declare(&steps(lanes), held);
            define_steps(&module, steps, body, vector);
            steps.set_linkage(Linkage::EXTERNAL);
        }
        module.verify("vectorisation").unwrap_or_else(|error| panic!("{error}: {module}"));
        Self(link(&module, &machine, is_optimised))
    }

    /// The array that the first `count` items leave, or what the item that failed told.
    fn run(&self, lanes: u32, count: u64) -> Result<Vec<u32>, u64> {
        let mut state = 12345_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let first: Vec<u32> = (0..ROOM).map(|_| random() % 40).collect();
        let (out, failed) = self.run_on(lanes, count, &first, || (random() as f32 / 1e6).to_bits());
        failed.map_or(Ok(out), Err)
    }

    /// The array that the first `count` items leave, and what an item told that failed.
    fn run_on(
        &self,
        lanes: u32,
        count: u64,
        first: &[u32],
        mut second: impl FnMut() -> u32,
    ) -> (Vec<u32>, Option<u64>) {
        let second: Vec<u32> = (0..ROOM).map(|_| second()).collect();
        let mut out = vec![0xdead_beef; ROOM];
        let captures = Captures {
            first: first.as_ptr(),
            second: second.as_ptr(),
            out: out.as_mut_ptr(),
            length: LENGTH as u64,
            fail,
        };
        // SAFETY: the loop has this type.
        let steps: libloading::Symbol<'_, unsafe extern "C-unwind" fn(&Captures, u64)> =
            unsafe { self.0.get(steps(lanes).as_bytes()) }.expect("a symbol");
        // SAFETY: bodies stay within the arrays, which are this thread's.
        let end = catch_unwind(AssertUnwindSafe(|| unsafe { steps(&captures, count) }));
        (out, end.err().map(|item| *item.downcast::<u64>().expect("ours")))
    }
}

/// Checks that a body does the same in lanes, for all short ranges.
fn check(body: &str) {
    let plain = Linked::plain(body);
    let most = u64::from(2 * LANES[LANES.len() - 1] + 1);
    let expected: Vec<_> = (0..=most).map(|count| plain.run(1, count)).collect();
    for is_optimised in [false, true] {
        let vectors = Linked::new(body, &LANES, is_optimised);
        for lanes in LANES {
            for (count, expected) in (0..=u64::from(2 * lanes + 1)).zip(&expected) {
                let what = format!("{count} items, {lanes} lanes, optimised: {is_optimised}");
                assert_eq!(vectors.run(lanes, count), *expected, "{what}");
            }
        }
    }
}

/// Why a body is refused.
fn refusal(body: &str) -> String {
    let context = context();
    let (module, machine) = module(&context, body);
    let body = module.function("body").expect("a body");
    match vectorise(&module, Some(&machine), body, of_lanes(4)).expect("passes") {
        Ok(_) => panic!("it is vectorised"),
        Err(refused) => refused.reason,
    }
}

/// The opcodes' names of the instructions of a body in lanes, with their types.
fn text_in_lanes(body: &str) -> String {
    let context = context();
    let (module, machine) = module(&context, body);
    let body = module.function("body").expect("a body");
    let vector: Value<'_> = match vectorise(&module, Some(&machine), body, of_lanes(4)).expect("passes") {
        Ok(vector) => vector.function,
        Err(refused) => panic!("refused: {}", refused.reason),
    };
    vector.set_linkage(Linkage::EXTERNAL);
    module
        .run("function(sroa,instcombine<no-verify-fixpoint>,simplifycfg)", Some(&machine), &PassTuning::NATIVE)
        .expect("passes");
    vector.print()
}
