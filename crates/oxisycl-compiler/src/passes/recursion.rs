//! Calls that come back to where they began. How deep they go is known when they run, and a work-item that needs more stack than it has
//! takes its whole device down. So each function that can be called again before it has returned looks first whether there is stack
//! left for it, and panics if there is not.
//!
//! [`add_checks`] puts a question there, after functions were inlined; the panic becomes a record as others do. [`lower`] answers the
//! questions at the end, when it is known how much stack functions take. Where a kernel's stack begins is the same for all its
//! work-items, and is kept in the memory of the group; how much there is comes with the launch. Kernels without recursion have nothing
//! of this. Formatting has a limit of its own, see `recorded` in `oxisycl-device`: calls through pointers from there and to there do not count.

use std::mem::offset_of;

use rustc_hash::{FxHashMap, FxHashSet};

use oxisycl_image::{MessagePiece, SourceLocation};
use oxisycl_types::DeviceLaunch;

use crate::llvm::{Attribute, Block, Builder, Context, Layout, Linkage, Module, Node, Opcode, Type, Value, ValueKind};
use crate::origin;
use crate::passes::{builtins, panic_names, panics};

/// Whether there is stack left for the function that asks.
const IS_LEFT: &str = "oxisycl.stack_is_left";
/// How many bytes of stack calls have.
const SIZE: &str = "oxisycl.stack_size";
/// What is called where none is left, after the prefix of panics. Its argument is the size.
pub(crate) const PATH: &str = "oxisycl.stack";

/// Where a kernel leaves the lowest address that its stack may have.
const SLOT: &str = "oxisycl_stack_limit";

/// What a function is taken to need beside its variables: registers that it saves.
const SAVED: u64 = 128;
/// Comparison `unsigned <=` of LLVM.
const AT_MOST: i32 = 37;

/// Who calls whom.
struct Calls<'c> {
    callees: FxHashMap<Value<'c>, Vec<Value<'c>>>,
}

impl<'c> Calls<'c> {
    fn of(module: &Module<'c>) -> Self {
        let functions: Vec<_> = module.functions().into_iter().filter(|function| !function.is_declaration()).collect();
        let pointed_to: Vec<_> = functions.iter().copied().filter(|function| is_pointed_to(*function)).collect();
        let callees = functions.iter().map(|&function| (function, callees(function, &pointed_to))).collect();
        Self { callees }
    }

    fn of_function(&self, function: Value<'c>) -> &[Value<'c>] {
        self.callees.get(&function).map_or(&[], Vec::as_slice)
    }

    /// Whether a function can be called again before it has returned.
    fn comes_back(&self, function: Value<'c>) -> bool {
        let mut seen = FxHashSet::default();
        let mut next = self.of_function(function).to_vec();
        while let Some(callee) = next.pop() {
            if callee == function {
                return true;
            }
            if seen.insert(callee) {
                next.extend(self.of_function(callee));
            }
        }
        false
    }
}

/// The functions with a body that a function may call: through a pointer, any of that type that somebody has the address of.
fn callees<'c>(function: Value<'c>, pointed_to: &[Value<'c>]) -> Vec<Value<'c>> {
    let mut callees = Vec::new();
    let mut called_types = Vec::new();
    for call in function.instructions() {
        let Some(callee) = call.callee().filter(|_| !panics::fails_again(call)) else { continue };
        match callee.kind() {
            ValueKind::Function if callee.is_declaration() => {}
            ValueKind::Function => callees.push(callee),
            ValueKind::InlineAsm => {}
            _ => called_types.push(call.called_type()),
        }
    }
    if !formats(function) {
        callees.extend(pointed_to.iter().filter(|other| called_types.contains(&other.held_type())));
    }
    callees
}

/// Whether a function's address is used for more than to call it, by code that does not format.
fn is_pointed_to(function: Value<'_>) -> bool {
    !formats(function)
        && function
            .users()
            .into_iter()
            .any(|user| user.callee() != Some(function) || user.arguments().contains(&function))
}

/// Whether a function formats, which has a limit of its own.
pub(crate) fn formats(function: Value<'_>) -> bool {
    let name = function.name();
    origin::formats(name) || panic_names::is_record(name) || panic_names::is_print(name)
}

/// What LLVM may have found out about functions, and what is wrong if they panic.
const NO_LONGER: [&str; 5] = ["memory", "willreturn", "nosync", "nofree", "speculatable"];

/// Has every function that can be called again before it has returned ask for stack first. Those that do so are left as they are.
pub(crate) fn add_checks(module: &Module<'_>) {
    let calls = Calls::of(module);
    // In the order of the module, not of the table.
    let functions = module.functions().into_iter().filter(|function| !function.is_declaration());
    let recursive: Vec<_> = functions.filter(|function| calls.comes_back(*function) && !has_check(*function)).collect();
    if recursive.is_empty() {
        return;
    }
    for function in recursive {
        add_check(module, function);
    }
    forget_attributes(module);
}

/// Takes away what LLVM may have found out about functions that panic now.
pub(crate) fn forget_attributes(module: &Module<'_>) {
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        for attribute in NO_LONGER {
            function.remove_attribute(Attribute::FUNCTION, attribute);
        }
    }
}

/// Whether a function's first block asks.
fn has_check(function: Value<'_>) -> bool {
    let first = function.blocks()[0].instructions();
    first.into_iter().any(|instruction| is_call_of(instruction, IS_LEFT))
}

fn is_call_of(instruction: Value<'_>, name: &str) -> bool {
    instruction.callee().is_some_and(|callee| callee.kind() == ValueKind::Function && callee.name() == name)
}

fn add_check<'c>(module: &Module<'c>, function: Value<'c>) {
    let context = module.context();
    let declare = |name: &str, result: Type<'c>, parameters: &[Type<'c>], attributes: &[&str]| {
        let function = module.declare(name, Type::function(result, parameters));
        for attribute in attributes {
            function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
        }
        function
    };
    let word = Type::int(context, 64);
    let is_left = declare(IS_LEFT, Type::int(context, 1), &[], &["nounwind", "convergent"]);
    let size = declare(SIZE, word, &[], &["nounwind", "convergent"]);
    let panic = declare(&panic_names::hooked(PATH), Type::void(context), &[word], &panic_names::ENDING);

    let body = function.blocks()[0];
    let (first, none_left) = (Block::append(context, function), Block::append(context, function));
    first.move_before(body);
    let (asks, ends) = (Builder::at_end(context, first), Builder::at_end(context, none_left));
    for variable in body.instructions().into_iter().filter(|instruction| instruction.is(Opcode::ALLOCA)) {
        asks.take(variable);
    }
    // Calls that may be inlined have a place, as LLVM wants it of those in functions with lines.
    let with_place = function.instructions().into_iter().find(|instruction| instruction.place().is_some());
    let place = Builder::before(context, with_place.unwrap_or_else(|| body.end()));
    let call = |builder: &Builder<'c>, callee: Value<'c>, arguments: &[Value<'c>]| {
        let call = place.call(callee, arguments);
        builder.take(call);
        call
    };
    asks.branch_if(call(&asks, is_left, &[]), body, none_left);
    let size = call(&ends, size, &[]);
    call(&ends, panic, &[size]);
    ends.unreachable();
}

/// What a work-item says that has no stack left; the value in it is the size.
pub(crate) fn message(size: MessagePiece) -> Vec<MessagePiece> {
    let literal = |text: &str| MessagePiece::Literal(text.to_owned());
    let rest = " bytes that it has for them, as OXISYCL_CALL_STACK says";
    vec![literal("recursive calls need more stack than the "), size, literal(rest)]
}

/// The function whose check the call is from.
pub(crate) fn location(context: &Context, call: Value<'_>) -> Option<SourceLocation> {
    Some(Node::of_function(context, call.function())?.place()?.0)
}

/// Answers the questions of all functions by what the kernel leaves in the memory of the group. To be called before the launch is lowered.
pub(crate) fn lower<'c>(module: &Module<'c>, kernel: Value<'c>, group_memory: u32) {
    let context = module.context();
    let (byte, word) = (Type::int(context, 8), Type::int(context, 64));
    let size = |builder: &Builder<'c>| {
        let offset = word.constant(offset_of!(DeviceLaunch, call_stack) as u64);
        let number =
            builder.load(Type::int(context, 32), builder.offset(byte, builtins::launch(module, builder), offset));
        builder.widen(number, word)
    };
    // The address of a variable, which is lower the deeper the calls are.
    let depth = |function: Value<'c>, builder: &Builder<'c>| {
        let start = Builder::before(context, function.blocks()[0].instructions()[0]);
        builder.address_to_int(start.alloca(byte, word.constant(1)), word)
    };
    if let Some(is_left) = module.function(IS_LEFT) {
        let needs = Needs::of(module);
        let calls: Vec<_> = is_left.users().into_iter().filter(|user| user.callee() == Some(is_left)).collect();
        if !calls.is_empty() {
            let slot = module.add_global(SLOT, word, group_memory);
            slot.set_initializer(word.poison());
            slot.set_linkage(Linkage::INTERNAL);
            slot.set_alignment(8);
            for call in calls {
                let builder = Builder::before(context, call);
                let need = word.constant(needs.of_function(call.function()));
                let lowest = builder.add(builder.load(word, slot), need);
                call.replace_all_uses_with(builder.compare(AT_MOST, lowest, depth(call.function(), &builder)));
                call.erase();
            }
            let builder = Builder::before(context, kernel.blocks()[0].instructions()[0]);
            // All work-items of a group write the same number, so that it does not matter whose store comes last.
            builder.store(builder.subtract(depth(kernel, &builder), size(&builder)), slot);
        }
        is_left.delete_function();
    }
    if let Some(asked) = module.function(SIZE) {
        for call in asked.users().into_iter().filter(|user| user.callee() == Some(asked)) {
            call.replace_all_uses_with(size(&Builder::before(context, call)));
            call.erase();
        }
        asked.delete_function();
    }
}

/// How much stack functions take for themselves and for what they call, up to the next function that asks.
struct Needs<'c>(FxHashMap<Value<'c>, u64>);

impl<'c> Needs<'c> {
    fn of(module: &Module<'c>) -> Self {
        let calls = Calls::of(module);
        let mut needs = Self(FxHashMap::default());
        for function in calls.callees.keys() {
            needs.find(module, &calls, *function);
        }
        needs
    }

    fn find(&mut self, module: &Module<'c>, calls: &Calls<'c>, function: Value<'c>) -> u64 {
        if let Some(known) = self.0.get(&function) {
            return *known;
        }
        // Formatting may come back to where it is, which has a limit of its own.
        self.0.insert(function, 0);
        let callees = calls.of_function(function).iter().filter(|callee| !has_check(**callee));
        let deepest = callees.map(|callee| self.find(module, calls, *callee)).max().unwrap_or(0);
        let need = SAVED + variables(module, function) + deepest;
        self.0.insert(function, need);
        need
    }

    fn of_function(&self, function: Value<'c>) -> u64 {
        self.0.get(&function).copied().unwrap_or(0)
    }
}

/// Bytes of a function's variables.
fn variables(module: &Module<'_>, function: Value<'_>) -> u64 {
    let layout = Layout::of(module);
    let variables = function.instructions().into_iter().filter(|instruction| instruction.is(Opcode::ALLOCA));
    // A number that is not constant is not in code of Rust.
    let size =
        |variable: Value<'_>| layout.size(variable.allocated_type()) * variable.operand(0).integer().unwrap_or(1);
    variables.map(|variable| size(variable).next_multiple_of(u64::from(variable.alignment().max(1)))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::PassTuning;
    use crate::passes::panics::Sites;
    use crate::passes::tests::{context, module, ptx_for};

    const FUNCTIONS: &str = "
        @table = internal constant [2 x ptr] [ptr @pointed_to, ptr @other_type]
        declare void @elsewhere()
        define void @leaf() { %v = alloca [400 x i8] call void @use(ptr %v) ret void }
        define void @use(ptr %v) { call void @elsewhere() ret void }
        define void @itself(i32 %n) memory(none) willreturn {
          %v = alloca i64
          %c = icmp eq i32 %n, 0
          br i1 %c, label %end, label %again
        again:
          call void @leaf()
          %m = sub i32 %n, 1
          call void @itself(i32 %m)
          br label %end
        end:
          ret void
        }
        define void @there() { call void @back() ret void }
        define void @back() { call void @there() ret void }
        define void @pointed_to(ptr %f) { call void %f(ptr %f) ret void }
        define void @other_type(i32 %n, ptr %f) { call void %f(i32 %n) ret void }
        define void @outside(ptr %f) { call void %f(ptr %f) ret void }
        define void @\"core::fmt::Formatter::pad\"(ptr %f) { call void %f(ptr %f) ret void }
        define void @\"core::str::slice_error_fail_rt\"() { call void @\"core::str::slice_error_fail_rt\"() unreachable }";

    #[test]
    fn what_can_be_called_before_it_has_returned_asks_for_stack_once() {
        let context = context();
        let text = format!("{FUNCTIONS} @other = constant ptr @\"core::fmt::Formatter::pad\"");
        let module = module(&context, &text);
        for _ in 0..2 {
            add_checks(&module);
            module.verify("checks").expect("a valid module");
            let asking: Vec<_> =
                module.functions().into_iter().filter(|f| !f.is_declaration() && has_check(*f)).collect();
            let names: Vec<_> = asking.iter().map(|function| function.name()).collect();
            assert_eq!(names, ["itself", "there", "back", "pointed_to"], "{module}");
        }
        let code = module.to_string();
        assert_eq!(code.matches(&format!("call i1 @{IS_LEFT}()")).count(), 4, "{code}");
        // Its variables are where a function begins, and it may panic now.
        let itself = module.function("itself").expect("it is there");
        assert!(itself.blocks()[0].instructions()[0].is(Opcode::ALLOCA), "{}", itself.print());
        assert!(!itself.has_attribute(Attribute::FUNCTION, "memory"), "{}", itself.print());
    }

    #[test]
    fn a_function_needs_its_variables_and_those_of_what_it_calls_up_to_the_next_check() {
        let context = context();
        let module = module(&context, FUNCTIONS);
        add_checks(&module);
        let needs = Needs::of(&module);
        let need = |name: &str| needs.of_function(module.function(name).expect("a function"));
        assert_eq!([need("use"), need("leaf"), need("there")], [SAVED, 2 * SAVED + 400, SAVED]);
        assert_eq!(need("itself"), SAVED + 8 + need("leaf"));
        // What it calls asks for itself.
        assert_eq!([need("pointed_to"), need("outside")], [SAVED, SAVED]);
    }

    #[test]
    fn a_panic_says_how_much_stack_there_is_and_code_without_recursion_has_none_of_it() {
        let context = context();
        let text = "
            define internal i32 @sum(i32 %n) noinline {
              %c = icmp eq i32 %n, 0
              br i1 %c, label %end, label %again
            again:
              %m = sub i32 %n, 1
              %rest = call i32 @sum(i32 %m)
              %r = mul i32 %rest, %n
              %s = add i32 %r, %n
              br label %end
            end:
              %all = phi i32 [ 0, %0 ], [ %s, %again ]
              ret i32 %all
            }
            define ptx_kernel void @k(ptr byval([104 x i8]) align 8 %launch, ptr %out) {
              %r = call i32 @sum(i32 7)
              store i32 %r, ptr %out
              ret void
            }
            define ptx_kernel void @plain(ptr byval([104 x i8]) align 8 %launch, ptr %out) {
              store i32 7, ptr %out
              ret void
            }";
        for (name, is_recursive) in [("k", true), ("plain", false)] {
            let module = module(&context, text);
            if !is_recursive {
                module.function("k").expect("it is there").delete_function();
                module.run("globaldce", None, &PassTuning::DEVICE).expect("passes");
            }
            let kernel = module.function(name).expect("it is there");
            add_checks(&module);
            let mut sites = Sites::default();
            let end = |builder: &Builder<'_>| {
                let exit = module.declare("llvm.nvvm.exit", Type::function(Type::void(&context), &[]));
                builder.call(exit, &[]);
            };
            panics::lower(&module, &mut sites, &|builder| builtins::launch(&module, builder), &end);
            lower(&module, kernel, 3);
            builtins::lower_launch(&module, &[kernel], || module.add_global("slot", Type::pointer(&context, 0), 3));
            let ptx = ptx_for(&module, 70);
            assert_eq!(ptx.contains(SLOT), is_recursive, "{ptx}");
            assert_eq!(sites.list.len(), usize::from(is_recursive));
            if is_recursive {
                let text = format!("{:?}", sites.list[0].message);
                assert!(
                    text.contains("recursive calls need more stack") && text.contains("OXISYCL_CALL_STACK"),
                    "{text}"
                );
                assert!(ptx.contains("setp.") && ptx.contains("exit;") && ptx.contains("st.shared"), "{ptx}");
            }
        }
    }
}
