//! References of code and constants to globals.

use crate::llvm::{Value, ValueKind};

/// Calls `visit` for each function and global in a value, also inside of constants.
pub(crate) fn globals_in<'c>(value: Value<'c>, visit: &mut dyn FnMut(Value<'c>)) {
    match value.kind() {
        ValueKind::Function | ValueKind::GlobalVariable | ValueKind::Alias => visit(value),
        ValueKind::ConstantExpression | ValueKind::Aggregate => {
            value.operands().into_iter().for_each(|operand| globals_in(operand, visit));
        }
        _ => {}
    }
}
