//! Checks whether a kernel over groups allocates at group scope.
//!
//! A device's work-items have a heap each. What one allocates in a phase decides where its next allocation lies, so that the distance of two
//! allocations at group scope could differ. And a reference to memory of group scope that is leaked reaches phases, which write what group scope
//! then reads. Memory that a phase allocates reaches no other code: nothing outlives a phase but numbers.
//!
//! The library marks where group scope and phases begin. Of a place that both lead to, group scope is assumed.

use rustc_hash::FxHashMap;

use crate::analyses::uniformity::{Flow, at};
use crate::llvm::{Module, Opcode, Value};

/// The name of the variable that is a work-item's heap.
pub(crate) const ARENA: &str = "oxisycl.arena";
/// The builtins that mark where code of each kind begins.
const GROUP_SCOPE: &str = "oxisycl.begin_group_scope";
const PHASE: &str = "oxisycl.begin_phase";

/// The reason why devices cannot run a kernel over groups, if one of `requests` is at group scope: calls of the kernel that allocate.
pub(crate) fn refusal(kernel: Value<'_>, requests: &[Value<'_>]) -> Option<String> {
    let flow = Flow::of(kernel);
    // Whether a block may begin at group scope.
    let mut begins = vec![false; flow.blocks.len()];
    let after = |block: usize, begins: bool| {
        let marks = flow.blocks[block].instructions().into_iter().filter_map(mark);
        marks.last().unwrap_or(begins)
    };
    let mut queue: Vec<usize> = (0..flow.blocks.len()).filter(|block| after(*block, false)).collect();
    while let Some(block) = queue.pop() {
        for &next in flow.successors(block) {
            if !std::mem::replace(&mut begins[next], true) && after(next, true) {
                queue.push(next);
            }
        }
    }
    let by_block: FxHashMap<_, _> = flow.blocks.iter().copied().zip(begins).collect();
    let is_at_group_scope = |request: &&Value<'_>| {
        let before = request.block().instructions().into_iter().take_while(|instruction| instruction != *request);
        before.filter_map(mark).last().unwrap_or(by_block[&request.block()])
    };
    let request = requests.iter().find(is_at_group_scope)?;
    Some(format!(
        "it allocates memory at group scope{}, where each work-item of a device would have memory of its own; allocate in a phase, or use an array",
        at(*request)
    ))
}

/// Whether group scope begins at an instruction. `None` if it is no mark.
fn mark(instruction: Value<'_>) -> Option<bool> {
    match instruction.callee().filter(|_| instruction.is(Opcode::CALL))?.name() {
        GROUP_SCOPE => Some(true),
        PHASE => Some(false),
        _ => None,
    }
}

/// Removes the marks.
pub(crate) fn drop_marks(module: &Module<'_>) {
    for mark in [GROUP_SCOPE, PHASE].into_iter().filter_map(|name| module.function(name)) {
        mark.calls().into_iter().for_each(Value::erase);
        // One whose address is taken stays, and is refused as a function that no device has.
        if !mark.is_used() {
            mark.delete_function();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    const ENTER: &str = "call void @oxisycl.begin_group_scope()";
    const PHASE: &str = "call void @oxisycl.begin_phase()";
    const ALLOCATE: &str = "%p = call ptr @allocate()";

    fn is_refused(body: &str) -> bool {
        let context = context();
        let text = format!(
            "declare void @oxisycl.begin_group_scope() memory(inaccessiblemem: readwrite)
            declare void @oxisycl.begin_phase() memory(inaccessiblemem: readwrite)
            declare ptr @allocate()
            define void @k(i1 %c) {{ {body} }}"
        );
        let module = module(&context, &text);
        let requests = module.function("allocate").expect("the allocator").calls();
        let is_refused = refusal(module.function("k").expect("the kernel"), &requests).is_some();
        drop_marks(&module);
        module.verify("marks").expect("a valid module");
        assert!(!module.to_string().contains("oxisycl.begin"));
        is_refused
    }

    #[test]
    fn what_allocates_at_group_scope_is_refused() {
        for body in [
            format!("{ENTER} {ALLOCATE} ret void"),
            format!("{ENTER} {PHASE} {ENTER} {ALLOCATE} ret void"),
            format!("{ENTER} {ALLOCATE} {PHASE} {ENTER} ret void"),
            format!("{ENTER} br label %b b: {PHASE} br label %d d: {ENTER} br label %e e: {ALLOCATE} ret void"),
            // Behind a phase that only some ways have.
            format!("{ENTER} br i1 %c, label %b, label %d b: {PHASE} br label %d d: {ALLOCATE} ret void"),
            // In the second round of a loop.
            format!("{PHASE} br label %b b: {ALLOCATE} {ENTER} br i1 %c, label %b, label %d d: ret void"),
        ] {
            assert!(is_refused(&body), "{body}");
        }
    }

    #[test]
    fn what_allocates_in_phases_is_not() {
        for body in [
            format!("{ALLOCATE} ret void"),
            format!("{ENTER} {PHASE} {ALLOCATE} {ENTER} ret void"),
            format!("{ENTER} {PHASE} br i1 %c, label %b, label %d b: {ALLOCATE} br label %d d: {ENTER} ret void"),
            format!("{ENTER} br label %b b: {PHASE} {ALLOCATE} {ENTER} br i1 %c, label %b, label %d d: ret void"),
        ] {
            assert!(!is_refused(&body), "{body}");
        }
    }
}
