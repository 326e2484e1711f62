//! Dispatch functions: calls of one of several functions, by a key.

use crate::llvm::{Block, Builder, Context, Linkage, Module, Type, TypeKind, Value};

/// Makes the dispatch function for `call`. It calls the candidate whose key is its first argument, with the arguments of `call` behind it.
/// There is no other key.
pub(crate) fn choose<'c>(
    module: &Module<'c>,
    name: &str,
    call: Value<'c>,
    key: Type<'c>,
    candidates: &[(Value<'c>, Value<'c>)],
) -> Value<'c> {
    let context = module.context();
    let result = call.value_type();
    let parameters: Vec<_> = [key].into_iter().chain(call.arguments().into_iter().map(Value::value_type)).collect();
    let choice = module.declare(name, Type::function(result, &parameters));
    choice.set_linkage(Linkage::INTERNAL);
    let mut builder = Builder::at_end(context, Block::append(context, choice));
    let given = choice.parameters();
    for &(own, candidate) in candidates {
        let is_it = builder.is_equal(given[0], own);
        let [found, next] = std::array::from_fn(|_| Block::append(context, choice));
        builder.branch_if(is_it, found, next);
        let inside = Builder::at_end(context, found);
        let value = inside.call_as(call.called_type(), candidate, &given[1..]);
        if result.kind() == TypeKind::Void {
            inside.ret_void()
        } else {
            inside.ret(value)
        }
        builder = Builder::at_end(context, next);
    }
    builder.unreachable();
    choice
}

/// Replaces a call by one of a dispatch function from [`choose`].
pub(crate) fn call_choice<'c>(context: &'c Context, call: Value<'c>, choice: Value<'c>, key: Value<'c>) {
    let arguments: Vec<_> = [key].into_iter().chain(call.arguments()).collect();
    let direct = Builder::before(context, call).call(choice, &arguments);
    if call.is_used() {
        call.replace_all_uses_with(direct);
    }
    call.erase();
}
