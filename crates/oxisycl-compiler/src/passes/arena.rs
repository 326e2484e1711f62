//! Heap memory, which devices lack: kernels that allocate get an arena for each work-item, among its own variables.
//!
//! What allocates is inlined into the kernel, which has the arena as a variable; `arena.ll` says how memory is taken from it and given back.
//! A work-item that needs more than there is panics. Runs on simplified code, in which LLVM has removed what is allocated for nothing, so that a
//! kernel without allocations has no arena. Invariant: a function that allocates keeps its calls if it was not inlined, because it calls
//! itself or is called by its address. Such a function makes the kernel unsupported (`analyses::legality`). One that only frees keeps the
//! memory.

use crate::analyses::group_scope::heap;
use crate::error::CompileError;
use crate::llvm::pass_lists::INLINE_BODIES;
use crate::llvm::{Attribute, Builder, Context, Linkage, Module, Opcode, PassTuning, Type, Value};
use crate::origin::{self, Allocation};
use rustc_hash::FxHashSet;

const TABLE: &str = include_str!("arena.ll");
/// The bytes that a work-item can allocate, as in `arena.ll`.
const SIZE: usize = 4096;
/// The arena's alignment. Also the bytes after the arena, which hold the number of bytes in use.
const ALIGNMENT: u32 = 64;
const COUNTER: usize = 64;
/// The function of `arena.ll` that gives memory back.
const FREE: &str = "oxisycl.arena.dealloc";
/// The function that is called when the arena is exhausted, after the prefix of panics.
pub(crate) const PATH: &str = "oxisycl.arena";

/// The panic message of a work-item that has allocated too much.
pub(crate) fn message() -> String {
    format!("the work-item's arena of {SIZE} bytes is exhausted")
}

/// The function of the allocator that a declaration stands for, if it has the type of that.
fn request_of(context: &Context, function: Value<'_>) -> Option<Allocation> {
    let request = function.is_declaration().then(|| origin::allocation(function.name()))??;
    // A function of another type is a user's.
    (function.held_type() == held_type(request, context)?).then_some(request)
}

/// The type of a function of the allocator.
fn held_type(request: Allocation, context: &Context) -> Option<Type<'_>> {
    let (pointer, size, nothing) = (Type::pointer(context, 0), Type::int(context, 64), Type::void(context));
    match request {
        Allocation::Allocate | Allocation::AllocateZeroed => Some(Type::function(pointer, &[size; 2])),
        Allocation::Grow => Some(Type::function(pointer, &[pointer, size, size, size])),
        Allocation::Free => Some(Type::function(nothing, &[pointer, size, size])),
        Allocation::Mark => Some(Type::function(nothing, &[])),
        Allocation::Other => None,
    }
}

/// The replacement in `arena.ll`, and its number of arguments beside the arena.
fn answer_to(request: Allocation) -> Option<(&'static str, usize)> {
    match request {
        Allocation::Allocate => Some(("oxisycl.arena.alloc", 2)),
        Allocation::AllocateZeroed => Some(("oxisycl.arena.alloc_zeroed", 2)),
        Allocation::Grow => Some(("oxisycl.arena.realloc", 4)),
        Allocation::Free => Some((FREE, 3)),
        Allocation::Mark | Allocation::Other => None,
    }
}

/// Whether a module contains calls of the allocator.
pub(crate) fn is_wanted(module: &Module<'_>) -> bool {
    requests(module).iter().any(|(request, function)| *request != Allocation::Mark && function.is_used())
}

fn requests<'c>(module: &Module<'c>) -> Vec<(Allocation, Value<'c>)> {
    let known = |function| Some((request_of(module.context(), function)?, function));
    module.functions().into_iter().filter_map(known).collect()
}

/// Adds an arena to the kernel if it allocates. Returns the reason why its heap is one that work-items of a group cannot have, if it is.
pub(crate) fn provide<'c>(module: &Module<'c>, kernel: Option<Value<'c>>) -> Result<Option<String>, CompileError> {
    let Some(kernel) = kernel else { return Ok(None) };
    let mut requests = requests(module);
    requests.retain(|(request, function)| {
        if *request == Allocation::Mark {
            function.calls().into_iter().for_each(Value::erase);
        }
        *request != Allocation::Mark && function.is_used()
    });
    if requests.is_empty() {
        return Ok(None);
    }
    if requests.iter().any(|(request, _)| *request != Allocation::Free) {
        inline(module, kernel, &requests)?;
    }
    // Functions that are gone by now are of no use to anybody.
    let requests = self::requests(module);
    let mut answered = Vec::new();
    for (request, function) in requests {
        let Some((name, n_arguments)) = answer_to(request) else { continue };
        for call in function.calls() {
            if call.function() == kernel && call.arguments().len() == n_arguments {
                answered.push((call, name));
            } else if request == Allocation::Free {
                call.erase();
            }
        }
    }
    let allocating: Vec<_> = answered.iter().filter(|(_, name)| *name != FREE).map(|(call, _)| *call).collect();
    let refusal = heap::refusal(kernel, &allocating);
    if !allocating.is_empty() || arena_of(kernel).is_some() {
        answer(module, kernel, answered)?;
    } else {
        // Nothing to free can come from here.
        answered.into_iter().for_each(|(call, _)| call.erase());
    }
    Ok(refusal)
}

/// Inlines all functions that allocate into the kernel.
fn inline<'c>(
    module: &Module<'c>,
    kernel: Value<'c>,
    requests: &[(Allocation, Value<'c>)],
) -> Result<(), CompileError> {
    let always = Attribute::plain(module.context(), "alwaysinline", 0);
    let mut reaching: Vec<_> = requests.iter().map(|(_, function)| *function).collect();
    let mut seen: FxHashSet<_> = reaching.iter().copied().collect();
    while let Some(callee) = reaching.pop() {
        for call in callee.calls() {
            call.remove_site_attribute(Attribute::FUNCTION, "noinline");
            let caller = call.function();
            if caller != kernel && seen.insert(caller) {
                ["noinline", "optsize", "minsize"]
                    .iter()
                    .for_each(|name| caller.remove_attribute(Attribute::FUNCTION, name));
                caller.add_attribute(Attribute::FUNCTION, always);
                reaching.push(caller);
            }
        }
    }
    module.run(INLINE_BODIES, None, &PassTuning::DEVICE)
}

/// The arena that the kernel already has.
fn arena_of(kernel: Value<'_>) -> Option<Value<'_>> {
    let first = kernel.blocks().first()?.instructions();
    first.into_iter().find(|instruction| instruction.is(Opcode::ALLOCA) && instruction.name() == heap::ARENA)
}

fn answer<'c>(
    module: &Module<'c>,
    kernel: Value<'c>,
    calls: Vec<(Value<'c>, &'static str)>,
) -> Result<(), CompileError> {
    let context = module.context();
    let table = Module::from_text(context, TABLE, "arena")?;
    for function in table.functions().into_iter().filter(|function| !function.is_declaration()) {
        function.set_linkage(Linkage::LINK_ONCE_ODR);
        for attribute in ["alwaysinline", "nounwind"] {
            function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
        }
    }
    let mut names: Vec<_> = calls.iter().map(|(_, name)| *name).collect();
    names.sort_unstable();
    names.dedup();
    for name in &names {
        let declared = table.function(name).expect("the table has a function for each request");
        module.declare(name, declared.held_type());
    }
    module.link(table)?;
    for name in names {
        module.function(name).expect("it was linked").set_linkage(Linkage::INTERNAL);
    }
    let pointer = Type::pointer(context, 0);
    let first = kernel.blocks()[0].instructions()[0];
    let builder = Builder::before(context, first);
    let arena = arena_of(kernel).unwrap_or_else(|| {
        let arena = builder.alloca(Type::bytes(context, SIZE + COUNTER), Type::int(context, 32).constant(1));
        arena.set_name(heap::ARENA);
        arena.set_alignment(ALIGNMENT);
        let taken = builder.offset(Type::int(context, 8), arena, Type::int(context, 64).constant(SIZE as u64));
        builder.store(Type::int(context, 64).constant(0), taken);
        arena
    });
    // Where variables are in an address space of their own.
    let after = if arena.next() == first { first } else { arena.next() };
    let arena = if arena.value_type() == pointer {
        arena
    } else {
        Builder::before(context, after).cast_address(arena, pointer)
    };
    // What was memory of the heap for them is a variable of their caller now, which tail calls cannot use.
    for call in kernel.instructions().into_iter().filter(|instruction| instruction.is(Opcode::CALL)) {
        call.clear_tail_call();
    }
    for (call, name) in calls {
        let function = module.function(name).expect("it was linked");
        let mut arguments = vec![arena];
        arguments.extend(call.arguments());
        let answer = Builder::before(context, call).call(function, &arguments);
        if call.is_used() {
            call.replace_all_uses_with(answer);
        }
        call.erase();
    }
    module.verify("arena")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    const SHIMS: &str = "
        declare ptr @__rust_alloc(i64, i64)
        declare ptr @__rust_realloc(ptr, i64, i64, i64)
        declare void @__rust_dealloc(ptr, i64, i64)
        declare void @__rust_no_alloc_shim_is_unstable_v2()
        declare void @shown(ptr)";

    fn provided(text: &str) -> String {
        let context = context();
        let module = module(&context, &(text.to_owned() + SHIMS));
        provide(&module, module.function("kernel")).expect("it is provided");
        module.run("default<O3>", None, &PassTuning::DEVICE).expect("passes");
        module.verify("arena").expect("a valid module");
        module.to_string()
    }

    #[test]
    fn what_allocates_is_inlined_and_takes_memory_of_the_kernels_arena() {
        let code = provided(
            "define internal ptr @vector(i64 %n) noinline {
                call void @__rust_no_alloc_shim_is_unstable_v2()
                %p = call ptr @__rust_alloc(i64 %n, i64 8)
                ret ptr %p
            }
            define void @kernel(i64 %n) {
                %p = call ptr @vector(i64 %n)
                call void @shown(ptr %p)
                %q = call ptr @__rust_realloc(ptr %p, i64 %n, i64 8, i64 100)
                call void @shown(ptr %q)
                call void @__rust_dealloc(ptr %q, i64 100, i64 8)
                ret void
            }",
        );
        assert!(code.contains("alloca [4160 x i8], align 64"), "{code}");
        assert!(code.contains("oxisycl.panic.oxisycl.arena") && !code.contains("call ptr @__rust"), "{code}");
        assert!(!code.contains("call void @__rust") && !code.contains("@vector"), "{code}");
    }

    #[test]
    fn calls_that_were_given_memory_of_the_heap_may_use_the_kernels_variable() {
        let code = provided(
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
            define i32 @kernel(i64 %n) {
                %p = call ptr @__rust_alloc(i64 64, i64 8)
                call void @shown(ptr %p)
                %second = getelementptr i8, ptr %p, i64 16
                %before = load i32, ptr %second
                %c = icmp eq i32 %before, 7
                br i1 %c, label %moved, label %end
                moved: tail call void @llvm.memcpy.p0.p0.i64(ptr %second, ptr %p, i64 16, i1 false) br label %end
                end: %after = load i32, ptr %second
                ret i32 %after
            }",
        );
        assert!(!code.contains("tail call"), "{code}");
        assert!(!code.contains("ret i32 %before"), "the value from before the copy: {code}");
    }

    #[test]
    fn a_kernel_that_frees_and_never_allocates_has_no_arena() {
        let code = provided("define void @kernel(ptr %p) { call void @__rust_dealloc(ptr %p, i64 8, i64 8) ret void }");
        assert!(!code.contains("alloca") && !code.contains("call void @__rust"), "{code}");
    }

    #[test]
    fn what_only_has_the_name_of_an_allocating_function_is_none() {
        let context = context();
        let text = "declare ptr @__rust_alloc(ptr)
            define void @kernel(ptr %p) { %q = call ptr @__rust_alloc(ptr %p) store i8 1, ptr %q ret void }";
        let module = module(&context, text);
        let before = module.to_string();
        assert!(!is_wanted(&module));
        provide(&module, module.function("kernel")).expect("nothing to provide");
        assert_eq!(module.to_string(), before);
    }

    #[test]
    fn what_calls_itself_keeps_its_allocations() {
        let code = provided(
            "define internal void @deep(i64 %n) noinline {
                %p = call ptr @__rust_alloc(i64 %n, i64 8)
                call void @shown(ptr %p)
                %c = icmp eq i64 %n, 0
                br i1 %c, label %end, label %again
                again: %m = sub i64 %n, 1 call void @deep(i64 %m) call void @shown(ptr %p) br label %end
                end: call void @__rust_dealloc(ptr %p, i64 %n, i64 8)
                ret void
            }
            define void @kernel(i64 %n) { call void @deep(i64 %n) ret void }",
        );
        assert!(code.contains("call ptr @__rust_alloc") && !code.contains("call void @__rust_dealloc"), "{code}");
    }

    #[test]
    fn the_message_names_the_size_of_the_table() {
        assert!(TABLE.contains(&format!("ule i64 %end, {SIZE}")) && message().contains("4096 bytes"));
    }
}
