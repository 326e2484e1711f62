//! Checks whether a kernel over groups allocates at group scope.
//!
//! A device's work-items have a heap each. What one allocates in a phase decides where its next allocation lies, so that the distance of two
//! allocations at group scope could differ. And a reference to memory of group scope that is leaked reaches phases, which write what group scope
//! then reads. Memory that a phase allocates reaches no other code: nothing outlives a phase but numbers.

use super::scopes::Scopes;
use crate::analyses::uniformity::at;
use crate::llvm::Value;

/// The name of the variable that is a work-item's heap.
pub(crate) const ARENA: &str = "oxisycl.arena";

/// The reason why devices cannot run a kernel over groups, if one of `requests` is at group scope: calls of the kernel that allocate.
pub(crate) fn refusal<'c>(kernel: Value<'c>, requests: &[Value<'c>]) -> Option<String> {
    let scopes = Scopes::of(kernel);
    let request = requests.iter().find(|request| scopes.is_group_scope(**request))?;
    Some(format!(
        "it allocates memory at group scope{}, where each work-item of a device would have memory of its own; allocate in a phase, or use an array",
        at(*request)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::group_scope::scopes::drop_marks;
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
