//! Item loops as rustc writes them, without optimisation.

use oxisycl_image::{Form, HostLevel, ImageTarget};

use crate::codegen;
use crate::compile::lower;
use crate::instruments::Instruments;
use crate::kernel::Kernel;
use crate::link::library::Library;
use crate::link::resolve::Scope;
use crate::llvm::Module;
use crate::options::{Lanes, Options};
use crate::passes::tests::context;
use crate::program::Program;

/// An instance of `each_item`, whose closure doubles elements, and calls `helper`.
pub(super) const LOOP: &str = "
target triple = \"x86_64-unknown-linux-gnu\"
declare void @foreign()
declare i32 @rust_eh_personality(i32, i32, i64, ptr, ptr)
define internal i1 @more(ptr %range) #0 {
  %value = load i64, ptr %range
  %end.at = getelementptr i8, ptr %range, i64 8
  %end = load i64, ptr %end.at
  %is = icmp ult i64 %value, %end
  ret i1 %is
}
define internal i64 @next(ptr %range) #0 {
  %value = load i64, ptr %range
  %after = add i64 %value, 1
  store i64 %after, ptr %range
  ret i64 %value
}
define internal float @helper(float %v) #0 {
  CODE
  %r = fadd float %v, %v
  ret float %r
}
define internal void @_RNCNvCs1234_3app6kernel0Cs1234_3app(ptr %self, i64 %x) #0 {
  %slot = alloca i64
  store i64 %x, ptr %slot
  %p = load ptr, ptr %self
  %i = load i64, ptr %slot
  %e = getelementptr float, ptr %p, i64 %i
  %v = load float, ptr %e
  %r = call float @helper(float %v)
  store float %r, ptr %e
  ret void
}
define internal void @_ZN14oxisycl_device7builtin9each_item17hd37baa6394757393E(i64 %count, ptr %0) #1 personality ptr @rust_eh_personality {
  %range = alloca [16 x i8]
  %body = alloca [8 x i8]
  store ptr %0, ptr %body
  store i64 0, ptr %range
  %end = getelementptr i8, ptr %range, i64 8
  store i64 %count, ptr %end
  br label %head
head:
  %more = call i1 @more(ptr %range)
  br i1 %more, label %inside, label %done
inside:
  %x = call i64 @next(ptr %range)
  invoke void @_RNCNvCs1234_3app6kernel0Cs1234_3app(ptr %body, i64 %x) to label %head unwind label %pad
pad:
  %landed = landingpad { ptr, i32 } cleanup
  DROP
  resume { ptr, i32 } %landed
done:
  ret void
}
define void @oxisycl_entry.k(ptr %captures, ptr %launch, ptr %chunk) #0 {
  %p = load ptr, ptr %captures
  %n.at = getelementptr i8, ptr %captures, i64 8
  %n = load i64, ptr %n.at
  call void @_ZN14oxisycl_device7builtin9each_item17hd37baa6394757393E(i64 %n, ptr %p)
  ret void
}
attributes #0 = { uwtable \"target-cpu\"=\"x86-64\" }
attributes #1 = { alwaysinline uwtable \"target-cpu\"=\"x86-64\" }
";

/// The optimised code of the kernel, and the options of its image.
fn compile(code: &str, lanes: u32, form: Form) -> (String, String) {
    compile_text(&LOOP.replace("CODE", code).replace("DROP", ""), lanes, form)
}

fn compile_text(text: &str, lanes: u32, form: Form) -> (String, String) {
    compile_in(text, Lanes::Number(lanes), form)
}

fn compile_in(text: &str, lanes: Lanes, form: Form) -> (String, String) {
    compile_with(text, &Options { lanes, ..Options::default() }, form)
}

pub(super) fn compile_with(text: &str, options: &Options, form: Form) -> (String, String) {
    let context = context();
    let triple = "x86_64-unknown-linux-gnu".to_owned();
    let image_target = ImageTarget::Host { triple, level: Some(HostLevel::V3) };
    let target = codegen::of(&image_target).expect("a target");
    let module = Module::from_text(&context, text, "loop").expect("a test is well-formed");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    let instruments = Instruments::default();
    let kernel = Kernel::of_test(form, 16);
    let mut program = Program::of_module(module, kernel, &*target, &image_target, options, &instruments);
    let mut library = Library::exporting(&["foreign"]);
    program.link(&mut library, Scope::WithoutFormatting).expect("it links");
    program.add_kernel().expect("a kernel");
    let decision = lower(&mut program, &mut library).expect("code");
    let text = program.module().to_string();
    let toolchain = crate::toolchain::Toolchain::of_the_tests();
    (text, program.image(decision, Vec::new(), &toolchain).build_options)
}

#[test]
fn a_loop_takes_as_many_items_at_once_as_there_are_lanes() {
    let (text, options) = compile("", 8, Form::Range(1));
    assert!(text.contains("fadd <8 x float>") && text.contains("fadd float"), "vectors, and the rest: {text}");
    assert!(!text.contains("@helper") && !text.contains("each_item"), "all is inlined: {text}");
    assert_eq!(text.matches("fadd float").count(), 1, "the rest is one short loop: {text}");
    let outcome = options.split_once("float=contract; its work-items run in vectors of 8 lanes (about ");
    assert!(outcome.is_some_and(|(_, gain)| gain.ends_with(" times as fast)")), "{options}");
    let (text, _) = compile("", 4, Form::Range(1));
    assert!(text.contains("fadd <4 x float>") && !text.contains("<8 x float>"), "{text}");
}

/// The code before the loop may end in a call that may unwind, whose value the loop uses. Once the heap of this compiler was damaged by that. Without the
/// call in the landing pad, LLVM would make it a plain call.
#[test]
fn a_range_may_be_made_by_a_call_that_may_unwind() {
    let text = LOOP.replace("CODE", "").replace("DROP", "").replace(
        "store i64 %count, ptr %end
  br label %head
head:",
        "store i64 %count, ptr %end
  %make = load ptr, ptr %0
  %first = invoke i64 %make(ptr %range) to label %begun unwind label %outer
outer:
  %early = landingpad { ptr, i32 } cleanup
  call void @foreign()
  resume { ptr, i32 } %early
begun:
  store i64 %first, ptr %range
  br label %head
head:",
    );
    assert!(text.contains("invoke i64"));
    let (text, options) = compile_text(&text, 8, Form::Range(1));
    assert!(text.contains("fadd <8 x float>"), "{text}");
    assert!(options.contains("its work-items run in vectors of 8 lanes"), "{options}");
}

#[test]
fn a_loop_that_stays_scalar_has_the_code_that_it_has_without_lanes() {
    let volatile = "store volatile i32 1, ptr null";
    let call = "call void @foreign()";
    for (code, reason) in [(volatile, "it has a volatile access"), (call, "it calls `foreign`")] {
        let (plain, plain_options) = compile(code, 1, Form::Range(1));
        let (text, options) = compile(code, 8, Form::Range(1));
        assert_eq!(text, plain);
        assert_eq!(options, format!("{plain_options}; its work-items run one by one: {reason}"));
    }
}

#[test]
fn the_loops_of_phases_have_lanes_and_a_task_has_no_loop() {
    let (text, options) = compile("", 8, Form::Group(1));
    assert!(text.contains("fadd <8 x float>") && options.contains("in vectors of 8 lanes"), "{options}");
    let (text, options) = compile("", 8, Form::Single);
    assert_eq!(text, compile("", 1, Form::Single).0);
    assert!(options.ends_with("its work-items run one by one: it is a single task"), "{options}");
}

/// The mark of the device library, and a call of it for each item.
const TURNS: (&str, &str) = (
    "define internal void @_ZN14oxisycl_device7builtin7in_turn17hd37baa6394757394E() #1 {
  ret void
}
define void @oxisycl_entry.k",
    "call void @_ZN14oxisycl_device7builtin7in_turn17hd37baa6394757394E()",
);

#[test]
fn items_that_take_their_turn_on_a_thread_stay_scalar() {
    let (mark, call) = TURNS;
    let text = LOOP.replace("DROP", "").replace("define void @oxisycl_entry.k", mark);
    for lanes in [Lanes::Number(8), Lanes::Auto] {
        let (code, options) = compile_in(&text.replace("CODE", call), lanes, Form::Group(1));
        assert!(options.contains("its work-items take turns on their thread"), "{options}");
        assert_eq!(code, compile_in(&text.replace("CODE", call), Lanes::Number(1), Form::Group(1)).0);
        assert!(!code.contains("in_turn"), "{code}");
    }
    // A mark elsewhere is no concern of this loop.
    let elsewhere = text
        .replace("CODE", "")
        .replace("  %n = load i64, ptr %n.at\n", &format!("  %n = load i64, ptr %n.at\n  {call}\n"));
    let (code, options) = compile_text(&elsewhere, 8, Form::Group(1));
    assert!(code.contains("fadd <8 x float>") && !code.contains("in_turn"), "{options}: {code}");
}

/// A work-item that waits and panics then would run the others of its vector a second time.
#[test]
fn items_that_wait_before_they_panic_stay_scalar() {
    let (mark, call) = TURNS;
    let waits =
        format!("define internal void @waits() noinline {{\n  {call}\n  call void @foreign()\n  ret void\n}}\n{mark}");
    let text = LOOP.replace("DROP", "").replace("define void @oxisycl_entry.k", &waits);
    let fails = "%is = fcmp olt float %v, 0.0
        br i1 %is, label %bad, label %good
        bad:
        call void @waits()
        unreachable
        good:";
    let (_, options) = compile_text(&text.replace("CODE", fails), 8, Form::Group(1));
    assert!(options.contains("its work-items take turns on their thread"), "{options}");
    let (_, options) = compile_text(&text.replace("CODE", &fails.replace("@waits", "@foreign")), 8, Form::Group(1));
    assert!(options.contains("in vectors of 8 lanes"), "{options}");
}

#[test]
fn rows_that_are_shorter_than_vectors_stay_scalar() {
    let text = LOOP.replace("CODE", SQUARES).replace("DROP", "").replace("fadd float %v, %v", "fadd float %u, %v");
    let text = text.replace("(i64 %n, ptr %p)", "(i64 4, ptr %p)");
    for lanes in [Lanes::Number(8), Lanes::Auto] {
        let (_, options) = compile_in(&text.replace("i64 4, ptr %p", "i64 3, ptr %p"), lanes, Form::Group(1));
        assert!(options.ends_with("its rows have 3 work-items"), "{options}");
    }
    assert!(compile_text(&text, 4, Form::Group(1)).1.contains("in vectors of 4 lanes"));
}

/// Two loops may have one body.
#[test]
fn a_body_of_two_loops_is_vectorised_once() {
    let second = "9each_item17hd37baa6394757399E";
    let text = LOOP.replace("DROP", "").replace("CODE", "");
    let first = text.find("define internal void @_ZN14oxisycl_device7builtin9each_item").unwrap();
    let instance = text[first..text.find("define void @oxisycl_entry.k").unwrap()]
        .replace("9each_item17hd37baa6394757393E", second);
    let call = "call void @_ZN14oxisycl_device7builtin9each_item17hd37baa6394757393E(i64 %n, ptr %p)";
    let both = format!("{call}\n  {}", call.replace("9each_item17hd37baa6394757393E", second));
    let (_, options) = compile_text(&(text.replace(call, &both) + &instance), 8, Form::Range(1));
    assert_eq!(options.matches("in vectors of 8 lanes").count(), 2, "{options}");
}

/// Each loop of a kernel is judged for itself.
#[test]
fn one_loop_of_a_kernel_has_lanes_and_another_one_the_vectors_of_llvm() {
    let names = [
        ("_RNCNvCs1234_3app6kernel0Cs1234_3app", "_RNCNvCs1234_3app6kernels_0Cs1234_3app"),
        ("9each_item17hd37baa6394757393E", "9each_item17hd37baa6394757399E"),
        ("@helper", "@other"),
    ];
    let text = LOOP.replace("DROP", "");
    let (first, last) =
        (text.find("define internal float @helper").unwrap(), text.find("define void @oxisycl_entry.k").unwrap());
    let second = names.iter().fold(text[first..last].to_owned(), |text, (one, other)| text.replace(one, other));
    let call = "call void @_ZN14oxisycl_device7builtin9each_item17hd37baa6394757393E(i64 %n, ptr %p)";
    let both =
        format!("{call}\n  {}", names.iter().fold(call.to_owned(), |text, (one, other)| text.replace(one, other)));
    let text = text.replace("CODE", "").replace(call, &both)
        + &second.replace("CODE", SQUARES).replace("fadd float %v, %v", "fadd float %u, %v");
    let (code, options) = compile_in(&text, Lanes::Auto, Form::Group(1));
    let outcomes: Vec<&str> = options.split("; ").skip(1).collect();
    assert!(
        outcomes.len() == 2 && outcomes[0] == "its work-items run in vectors that LLVM makes by itself",
        "{options}"
    );
    assert!(outcomes[1].starts_with("its work-items run in vectors of "), "{options}");
    assert!(code.contains("x float>"), "{code}");
}

#[test]
fn a_closure_with_something_to_drop_stays_scalar() {
    let text = LOOP.replace("CODE", "").replace("DROP", "call void @foreign()");
    let (_, options) = compile_text(&text, 8, Form::Range(1));
    assert!(options.ends_with("its work-items run one by one: its closure owns what has to be dropped"), "{options}");
}

/// Why the loop of a text stays scalar.
fn reason(text: &str) -> String {
    let (_, options) = compile_text(&text.replace("CODE", ""), 8, Form::Range(1));
    options.split_once("its work-items run one by one: ").map(|(_, reason)| reason.to_owned()).unwrap_or(options)
}

#[test]
fn a_landing_pad_that_is_seen_keeps_a_loop_scalar() {
    for code in ["store i64 1, ptr %0", "store i64 1, ptr inttoptr (i64 64 to ptr)", "fence seq_cst"] {
        assert_eq!(reason(&LOOP.replace("DROP", code)), "its closure owns what has to be dropped", "{code}");
    }
    assert_eq!(
        reason(&LOOP.replace("resume { ptr, i32 } %landed", "ret void").replace("DROP", "")),
        "its closure owns what has to be dropped"
    );
    let keeps = "%panic = extractvalue { ptr, i32 } %landed, 0\n store ptr %panic, ptr %end";
    let (_, options) = compile_text(&LOOP.replace("CODE", "").replace("DROP", keeps), 8, Form::Range(1));
    assert!(options.contains("in vectors of 8 lanes"), "{options}");
}

#[test]
fn a_call_that_is_not_one_of_a_loop_over_numbers_stays() {
    let text = LOOP.replace("DROP", "");
    let other = "its loop has another form than ours";
    assert_eq!(reason(&text.replace("(ptr %body, i64 %x) to", "(ptr %body, i64 7) to")), other);
    let call = "invoke void @_RNCNvCs1234_3app6kernel0Cs1234_3app(ptr %body, i64 %x) to label %head unwind label %pad";
    let first = text.replace(call, "br label %head").replacen(
        "br label %head\nhead",
        &format!("{}\nhead", call.replace("%x", "%count")),
        1,
    );
    assert_eq!(reason(&first), other);
}

#[test]
fn a_kernel_without_an_item_loop_says_so() {
    let text = LOOP.replace("DROP", "").replace("9each_item", "9some_item");
    assert_eq!(reason(&text), "its loop over work-items was not found");
}

/// A loop that items leave at different times, of which LLVM makes no vectors.
const SQUARES: &str = "br label %again
    again:
    %n = phi i32 [ 0, %0 ], [ %m, %again ]
    %w = phi float [ %v, %0 ], [ %u, %again ]
    %u = fmul float %w, %w
    %m = add i32 %n, 1
    %is_small = fcmp olt float %u, 100.0
    %is_early = icmp ult i32 %m, 50
    %goes_on = and i1 %is_small, %is_early
    br i1 %goes_on, label %again, label %after
    after:";

#[test]
fn the_number_of_lanes_is_chosen_by_the_estimate() {
    let text = LOOP.replace("CODE", "").replace("DROP", "");
    let (code, options) = compile_in(&text, Lanes::Auto, Form::Range(1));
    assert!(code.contains("x float>") && options.contains("in vectors that LLVM makes by itself"), "{options}");
    assert!(compile_text(&text, 8, Form::Range(1)).1.contains("in vectors of 8 lanes"), "a number is a command");
    let text = LOOP.replace("CODE", SQUARES).replace("DROP", "").replace("fadd float %v, %v", "fadd float %u, %v");
    let (code, options) = compile_in(&text, Lanes::Auto, Form::Range(1));
    assert!(code.contains("x float>") && options.contains("its work-items run in vectors of "), "{options}");
    // Divisions are made for one lane after the other.
    let quotient = "%bits = bitcast float %v to i32
        %divisor = or i32 %bits, 1
        %quotient = udiv i32 123456789, %divisor
        %f = bitcast i32 %quotient to float";
    let text = LOOP.replace("CODE", quotient).replace("DROP", "").replace("fadd float %v, %v", "fadd float %f, %v");
    let (code, options) = compile_in(&text, Lanes::Auto, Form::Range(1));
    assert_eq!(code, compile_text(&text, 1, Form::Range(1)).0);
    let reason = options.split_once("its work-items run one by one: in lanes they would be about ");
    assert!(reason.is_some_and(|(_, reason)| reason.contains(" of the time for divisions")), "{options}");
    assert!(compile_text(&text, 8, Form::Range(1)).1.contains("in vectors of 8 lanes"), "a number is a command");
}
