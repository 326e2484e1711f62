//! Checks how whole crates, including their code for the host, use a static that may be a cache of CPU features.

use std::collections::BTreeSet;

use super::{answer_no, keep_choices_apart, may_be_cache, trial};
use crate::error::CompileError;
use crate::link::library::link_where_used;
use crate::llvm::pass_lists::{DROP_UNUSED, SIMPLIFY};
use crate::llvm::{Builder, Linkage, Module, PassTuning, Value, ValueKind};
use crate::origin;
use crate::passes::strip_host_abi::{self, LOWER_INVOKES};

/// Whether crates use a static as a cache. All queries are answered with "no", as [`answer_no`] does in kernels. Each function must then load
/// the static, store one constant to it, and behave the same for both values. `crates` are the crates with the static, as they were
/// compiled.
pub(crate) fn is_cache<'c>(
    crates: impl Iterator<Item = Result<Module<'c>, CompileError>>,
    name: &str,
) -> Result<bool, CompileError> {
    let mut all: Option<Module<'c>> = None;
    for module in crates {
        let module = module?;
        let Some(users) = module.global(name).map_or(Some(BTreeSet::new()), functions_with) else { return Ok(false) };
        reduce(&module, name, &users)?;
        match &all {
            // A function of one crate that is inlined into another has the static's cache in the first.
            Some(all) => all.link(module)?,
            None => all = Some(module),
        }
    }
    let Some(all) = all else { return Ok(true) };
    let names = BTreeSet::from([name.to_owned()]);
    keep_choices_apart(&all, &names);
    all.run(SIMPLIFY, None, &PassTuning::DEVICE)?;
    let Some(global) = all.global(name).filter(|global| !global.users().is_empty()) else { return Ok(true) };
    Ok(may_be_cache(global, &names) && !trial::settled(&all, &[name]).is_empty())
}

/// Removes all functions except those that refer to the static, and their callees.
fn reduce(module: &Module<'_>, name: &str, users: &BTreeSet<String>) -> Result<(), CompileError> {
    link_where_used(module);
    for value in module.functions().into_iter().chain(module.globals()) {
        let is_kept = value.name() == name || users.contains(value.name());
        if !value.is_declaration() && value.linkage() != Linkage::APPENDING {
            // The users stay, called or not, and each is looked at by itself.
            value.set_linkage(if is_kept { Linkage::WEAK_ODR } else { Linkage::INTERNAL });
        }
    }
    module.run(DROP_UNUSED, None, &PassTuning::DEVICE)?;
    answer_no(module);
    strip_host_abi::strip(module, &|name| users.contains(name), &|_| false);
    module.run(LOWER_INVOKES, None, &PassTuning::DEVICE)?;
    strip_host_abi::remove_personalities(module);
    for function in module.functions().into_iter().filter(|function| function.is_declaration()) {
        if origin::loads_atomically(function.name()) {
            function
                .users()
                .into_iter()
                .filter(|user| user.callee() == Some(function))
                .for_each(|call| load(module, call));
        }
    }
    Ok(())
}

/// Replaces a call of the standard library's atomic load, whose code is in another crate, by a load.
fn load(module: &Module<'_>, call: Value<'_>) {
    let Some(address) = call.arguments().first().copied() else { return };
    let value = Builder::before(module.context(), call).load(call.value_type(), address);
    call.replace_all_uses_with(value);
    call.erase();
}

/// The names of the functions that refer to a static; `None` if another static refers to it.
fn functions_with(global: Value<'_>) -> Option<BTreeSet<String>> {
    let mut functions = BTreeSet::new();
    let mut users = global.users();
    while let Some(user) = users.pop() {
        match user.kind() {
            ValueKind::Instruction => drop(functions.insert(user.function().name().to_owned())),
            ValueKind::ConstantExpression => users.extend(user.users()),
            _ => return None,
        }
    }
    Some(functions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    const CACHE: &str = "_ZN3app5CACHE17h0123456789abcdefE";

    /// A crate that keeps the processor's answer in a number, and one more function of it.
    fn is_cache_beside(more: &str) -> bool {
        let context = context();
        let text = format!(
            "@{CACHE} = global [1 x i8] c\"\\FF\"
            declare i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32)
            define internal i8 @load(ptr %p) {{ %v = load atomic i8, ptr %p monotonic, align 1 ret i8 %v }}
            define internal void @store(ptr %p, i8 %v) {{ store atomic i8 %v, ptr %p monotonic, align 1 ret void }}
            define i1 @get() {{
                %v = call i8 @load(ptr @{CACHE})
                switch i8 %v, label %ask [ i8 0, label %no i8 1, label %yes ]
                ask:
                %c = call i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 5)
                %b = zext i1 %c to i8
                call void @store(ptr @{CACHE}, i8 %b)
                br i1 %c, label %yes, label %no
                no: ret i1 false
                yes: ret i1 true
            }}
            {more}"
        );
        is_cache([Ok(module(&context, &text))].into_iter(), CACHE).expect("passes run")
    }

    #[test]
    fn a_crate_may_call_what_keeps_the_answer() {
        for more in ["", "define i32 @user() { %c = call i1 @get() %r = select i1 %c, i32 3, i32 4 ret i32 %r }"] {
            assert!(is_cache_beside(more), "{more}");
        }
        let context = context();
        let other = module(&context, "define void @f() { ret void }");
        assert!(is_cache([Ok(other)].into_iter(), CACHE).expect("passes run"));
    }

    /// `memchr` is inlined into other crates so, which find the method of the standard library in `memchr`.
    #[test]
    fn a_crate_with_the_code_of_another_inlined_is_judged_with_it() {
        const LOAD: &str = "_ZN4core4sync6atomic8AtomicU84load17h0123456789abcdefE";
        let get = |load: &str| {
            format!(
                "define linkonce_odr i1 @get() {{
                    %v = call i8 @{load}(ptr @{CACHE}, i8 0)
                    %a = icmp eq i8 %v, -1
                    br i1 %a, label %ask, label %end
                    ask: %c = call i1 @ask() br label %end
                    end: ret i1 false
                }}"
            )
        };
        let owner = format!(
            "@{CACHE} = global [1 x i8] c\"\\FF\"
            define internal i8 @{LOAD}(ptr %p, i8 %o) {{ %v = load atomic i8, ptr %p monotonic, align 1 ret i8 %v }}
            define i1 @ask() {{ store atomic i8 0, ptr @{CACHE} monotonic, align 1 ret i1 false }}
            {}",
            get(LOAD)
        );
        let inlined = format!("@{CACHE} = external global [1 x i8] declare i1 @ask() declare i8 @{LOAD}(ptr, i8)");
        let context = context();
        let judged = |end: &str| {
            let texts = [owner.clone(), format!("{inlined} {end}")];
            is_cache(texts.iter().map(|text| Ok(module(&context, text))), CACHE).expect("passes run")
        };
        assert!(judged(&get(LOAD)));
        assert!(!judged(&format!("define i8 @shown() {{ %v = call i8 @{LOAD}(ptr @{CACHE}, i8 0) ret i8 %v }}")));
    }

    /// Each of these was once taken for a use of a cache. A kernel then saw another value than the host had stored, or the host missed a
    /// value that a kernel had stored.
    #[test]
    fn a_static_that_the_host_sets_or_reads_is_no_cache() {
        let store = format!("call void @store(ptr @{CACHE}, i8 3)");
        let ask = "%c = call i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 5)";
        for more in [
            format!("define void @set(i8 %v) {{ call void @store(ptr @{CACHE}, i8 %v) ret void }}"),
            format!("define void @main() {{ {store} ret void }}"),
            // A function that asks, too.
            format!("define i1 @main() {{ {ask} {store} ret i1 %c }}"),
            format!("define i8 @shown() {{ %v = call i8 @load(ptr @{CACHE}) ret i8 %v }}"),
            format!("define void @lent(ptr %p) {{ store ptr @{CACHE}, ptr %p ret void }}"),
            format!("@table = constant ptr @{CACHE}"),
        ] {
            assert!(!is_cache_beside(&more), "{more}");
        }
    }
}
