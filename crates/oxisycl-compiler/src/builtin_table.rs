//! The builtins of `oxisycl_device::builtin`: name, signature, effects, and the lowering on every target.
//!
//! This table is the only list. [`passes::builtins`](crate::passes::builtins) works by it. Tests hold against it the stubs of
//! `oxisycl-device`, each target's `builtins.ll`, and the table in the book.

/// A type in a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scalar {
    Bool,
    U32,
    U64,
    F32,
    F64,
    U128,
    Address,
}

/// Parameters, and the result if there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signature {
    /// A function that is not generic: its parameters and its result.
    Plain(&'static [Scalar], Option<Scalar>),
    /// `unsafe fn(*const T) -> T`.
    LoadOfAny,
    /// `fn(usize, impl Fn(usize))`.
    Loop,
    /// `fn(usize, usize, usize, impl Fn(usize, usize, usize))`.
    Nest,
    /// `fn() -> !`.
    Never,
}

/// The effects of a builtin's call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effects {
    /// Nothing. The result depends on the arguments and the work-item.
    None,
    /// Accesses memory that no other code sees, so that LLVM does not move or remove the call.
    Marker,
    /// May access memory.
    Memory,
    /// Synchronises with other work-items of the group or sub-group.
    Convergent,
    /// Ends the work-item.
    Ends,
}

/// The lowering of a builtin on one target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lowering {
    /// The body in `oxisycl-device`, since it is right for devices and the target has no better one.
    OwnBody,
    /// The body in `oxisycl-device`, with its loads marked as loads of constant memory.
    ConstantLoads,
    /// A function of that name in the target's `builtins.ll`.
    Body,
    /// A function that [`atomic_builtins`](crate::passes::atomic_builtins) makes for all targets.
    Atomic,
    /// A function that returns a number.
    Number(u64),
    /// A number that replaces each call at once, so that code for other answers is never linked.
    Answer(u64),
    /// An answer that depends on the processor: 1 for those that [combine lanes at once](Bodies::has_reductions), else 0.
    HasReductions,
    /// A declaration that a later pass replaces.
    Later,
}

/// A code generator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    Nvptx,
    Amdgcn,
    SpirV,
    /// Native code, for which all builtins have the bodies in `oxisycl-device`.
    Host,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Builtin {
    /// The builtin's name in `oxisycl_device::builtin`.
    pub(crate) name: &'static str,
    pub(crate) signature: Signature,
    pub(crate) effects: Effects,
    nvptx: Lowering,
    amdgcn: Lowering,
    spirv: Lowering,
}

impl Builtin {
    /// The lowering of the builtin on a target.
    pub(crate) fn lowering(&self, family: Family) -> Lowering {
        match family {
            Family::Nvptx => self.nvptx,
            Family::Amdgcn => self.amdgcn,
            Family::SpirV => self.spirv,
            Family::Host => OwnBody,
        }
    }

    /// The symbol of the builtin's function in a module.
    pub(crate) fn symbol(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    const fn with_nvptx(mut self, lowering: Lowering) -> Self {
        self.nvptx = lowering;
        self
    }

    const fn with_spirv(mut self, lowering: Lowering) -> Self {
        self.spirv = lowering;
        self
    }
}

/// The prefix of builtins' symbols.
pub(crate) const PREFIX: &str = "oxisycl.";
/// The symbol of the variable for a launch's local memory.
pub(crate) const LOCAL_MEMORY: &str = "oxisycl_local_memory";
/// The function that returns the launch's address, until that is known.
pub(crate) const LAUNCH: &str = "oxisycl.launch";

/// The function that returns memory of a group in native code, whose elements work-items read only while none is written.
pub(crate) const ITEM_ARRAY: &str = "oxisycl.item_array";

/// The names of atomic operations on 128 bits, which not every target has.
pub(crate) const WIDE_LOAD: &str = "atomic_load_u128";
pub(crate) const WIDE_STORE: &str = "atomic_store_u128";

const fn all(name: &'static str, signature: Signature, effects: Effects, lowering: Lowering) -> Builtin {
    Builtin { name, signature, effects, nvptx: lowering, amdgcn: lowering, spirv: lowering }
}

/// A builtin that only NVIDIA's targets have.
const fn native(name: &'static str, parameters: &'static [Scalar]) -> Builtin {
    all(name, Signature::Plain(parameters, Some(Scalar::F32)), Effects::None, OwnBody).with_nvptx(Body)
}

use Lowering::{Answer, Atomic, Body, ConstantLoads, HasReductions, Later, Number, OwnBody};

const ACTION: Signature = Signature::Plain(&[], None);
const QUESTION: Signature = Signature::Plain(&[], Some(Scalar::Bool));
const POSITION: Signature = Signature::Plain(&[], Some(Scalar::U64));
const ADDRESS: Signature = Signature::Plain(&[], Some(Scalar::Address));
const OF_ADDRESS: Signature = Signature::Plain(&[Scalar::Address], Some(Scalar::Address));
const ASKS_ADDRESS: Signature = Signature::Plain(&[Scalar::Address], Some(Scalar::Bool));
const LEAVE: Signature = Signature::Plain(&[Scalar::Address, Scalar::U64, Scalar::U64, Scalar::U64], None);
const SHUFFLE: Signature = Signature::Plain(&[Scalar::U32, Scalar::U32], Some(Scalar::U32));
const SHUFFLE_AMONG: Signature = Signature::Plain(&[Scalar::U32, Scalar::U32, Scalar::U32], Some(Scalar::U32));
const MEETING: Signature = Signature::Plain(&[Scalar::U32, Scalar::U32], Some(Scalar::Bool));
const BALLOT: Signature = Signature::Plain(&[Scalar::U32, Scalar::Bool], Some(Scalar::U32));
const LOAD_U32: Signature = Signature::Plain(&[Scalar::Address, Scalar::U32, Scalar::U32], Some(Scalar::U32));
const LOAD_U64: Signature = Signature::Plain(&[Scalar::Address, Scalar::U32, Scalar::U32], Some(Scalar::U64));
const STORE_U32: Signature = Signature::Plain(&[Scalar::Address, Scalar::U32, Scalar::U32, Scalar::U32], None);
const STORE_U64: Signature = Signature::Plain(&[Scalar::Address, Scalar::U64, Scalar::U32, Scalar::U32], None);
const CHANGE_U32: Signature = atomic_change(&[Scalar::Address, Scalar::U32, Scalar::U32, Scalar::U32]);
const CHANGE_U64: Signature = atomic_change(&[Scalar::Address, Scalar::U64, Scalar::U32, Scalar::U32]);
const CHANGE_F32: Signature = atomic_change(&[Scalar::Address, Scalar::F32, Scalar::U32, Scalar::U32]);
const CHANGE_F64: Signature = atomic_change(&[Scalar::Address, Scalar::F64, Scalar::U32, Scalar::U32]);
const COMPARE_U32: Signature =
    atomic_change(&[Scalar::Address, Scalar::U32, Scalar::U32, Scalar::U32, Scalar::U32, Scalar::U32]);
const COMPARE_U64: Signature =
    atomic_change(&[Scalar::Address, Scalar::U64, Scalar::U64, Scalar::U32, Scalar::U32, Scalar::U32]);

/// An operation that returns the old value, of the type of the second parameter.
const fn atomic_change(parameters: &'static [Scalar]) -> Signature {
    Signature::Plain(parameters, Some(parameters[1]))
}

const fn atomic(name: &'static str, signature: Signature) -> Builtin {
    all(name, signature, Effects::Memory, Atomic)
}

/// All builtins, by the order of the stubs.
pub(crate) const BUILTINS: &[Builtin] = &[
    all("is_device_code", QUESTION, Effects::None, Answer(1)),
    all("float_strict", ACTION, Effects::Marker, Later),
    all("float_contract", ACTION, Effects::Marker, Later),
    all("float_fast", ACTION, Effects::Marker, Later),
    all("has_call_stack", QUESTION, Effects::None, OwnBody).with_spirv(Body),
    all("begin_message", ACTION, Effects::Memory, OwnBody).with_nvptx(Later),
    all("formatting_was_cut_off", QUESTION, Effects::Memory, OwnBody).with_nvptx(Later).with_spirv(Body),
    all("each_item", Signature::Loop, Effects::Memory, OwnBody),
    all("in_turn", ACTION, Effects::Marker, OwnBody),
    all("has_item_loops", QUESTION, Effects::None, OwnBody),
    all("each_position", Signature::Nest, Effects::Memory, OwnBody),
    all("end_item_loop", ACTION, Effects::Marker, OwnBody),
    all("item_array", Signature::Plain(&[Scalar::U64], Some(Scalar::Address)), Effects::Marker, OwnBody),
    all("leave_item", LEAVE, Effects::Memory, OwnBody),
    all("only_on_stacks", ACTION, Effects::Marker, OwnBody),
    all("not_on_the_host", Signature::Never, Effects::Ends, OwnBody),
    all("is_paired", QUESTION, Effects::None, OwnBody).with_nvptx(Later),
    all("next_item", ACTION, Effects::Marker, Later),
    all("only_item", ACTION, Effects::Marker, Later),
    all("unroll_loop", Signature::Plain(&[Scalar::U32], None), Effects::Marker, OwnBody).with_nvptx(Later),
    all("load_constant", Signature::LoadOfAny, Effects::Memory, ConstantLoads),
    all("grid_position_x", POSITION, Effects::None, Body),
    all("second_position_x", POSITION, Effects::None, Number(0)).with_nvptx(Body),
    all("grid_position_y", POSITION, Effects::None, Body),
    all("grid_position_z", POSITION, Effects::None, Body),
    all("local_position_x", POSITION, Effects::None, Body),
    all("local_position_y", POSITION, Effects::None, Body),
    all("local_position_z", POSITION, Effects::None, Body),
    all("group_position_x", POSITION, Effects::None, Body),
    all("group_position_y", POSITION, Effects::None, Body),
    all("group_position_z", POSITION, Effects::None, Body),
    all("launch", ADDRESS, Effects::Memory, Later),
    all("group_barrier", ACTION, Effects::Convergent, Body),
    all("shuffle_u32", SHUFFLE, Effects::Convergent, Body),
    all("has_shuffles", QUESTION, Effects::None, Answer(0)).with_nvptx(Answer(1)),
    all("shuffle_among_u32", SHUFFLE_AMONG, Effects::Convergent, OwnBody).with_nvptx(Body),
    all("shuffle_up_among_u32", SHUFFLE_AMONG, Effects::Convergent, OwnBody).with_nvptx(Body),
    all("ballot_among", BALLOT, Effects::Convergent, OwnBody).with_nvptx(Body),
    all("has_reductions", QUESTION, Effects::None, Answer(0)).with_nvptx(HasReductions),
    all("reduce_among_u32", SHUFFLE_AMONG, Effects::Convergent, OwnBody).with_nvptx(Body),
    all("group_scratch", Signature::Plain(&[Scalar::U32], None), Effects::Marker, Later),
    all("begin_group_scope", ACTION, Effects::Marker, Later),
    all("begin_phase", ACTION, Effects::Marker, Later),
    all("meet_group", MEETING, Effects::Convergent, Later),
    all("prove_convergence", ACTION, Effects::Convergent, Later),
    all("prove_uniform", Signature::Plain(&[Scalar::U64], Some(Scalar::U64)), Effects::Marker, Later),
    all("end_work_item", Signature::Never, Effects::Ends, Later).with_nvptx(Body),
    atomic("atomic_load_u32", LOAD_U32),
    atomic("atomic_store_u32", STORE_U32),
    atomic("atomic_exchange_u32", CHANGE_U32),
    atomic("atomic_compare_exchange_u32", COMPARE_U32),
    atomic("atomic_add_u32", CHANGE_U32),
    atomic("atomic_min_u32", CHANGE_U32),
    atomic("atomic_max_u32", CHANGE_U32),
    atomic("atomic_min_i32", CHANGE_U32),
    atomic("atomic_max_i32", CHANGE_U32),
    atomic("atomic_and_u32", CHANGE_U32),
    atomic("atomic_or_u32", CHANGE_U32),
    atomic("atomic_xor_u32", CHANGE_U32),
    atomic("atomic_load_u64", LOAD_U64),
    atomic("atomic_store_u64", STORE_U64),
    atomic("atomic_exchange_u64", CHANGE_U64),
    atomic("atomic_compare_exchange_u64", COMPARE_U64),
    atomic("atomic_add_u64", CHANGE_U64),
    atomic("atomic_min_u64", CHANGE_U64),
    atomic("atomic_max_u64", CHANGE_U64),
    atomic("atomic_min_i64", CHANGE_U64),
    atomic("atomic_max_i64", CHANGE_U64),
    atomic("atomic_and_u64", CHANGE_U64),
    atomic("atomic_or_u64", CHANGE_U64),
    atomic("atomic_xor_u64", CHANGE_U64),
    all("atomic_add_f32", CHANGE_F32, Effects::Memory, Later),
    all("atomic_add_f64", CHANGE_F64, Effects::Memory, Later),
    all(WIDE_LOAD, Signature::Plain(&[Scalar::Address, Scalar::U32], Some(Scalar::U128)), Effects::Memory, Later),
    all(WIDE_STORE, Signature::Plain(&[Scalar::Address, Scalar::U128, Scalar::U32], None), Effects::Memory, Later),
    atomic("atomic_fence", Signature::Plain(&[Scalar::U32, Scalar::U32], None)),
    all("local_memory", ADDRESS, Effects::None, Body),
    all("as_global", OF_ADDRESS, Effects::None, Later).with_spirv(Body),
    all("as_constant", OF_ADDRESS, Effects::None, Later).with_spirv(OwnBody),
    all("is_global_address", ASKS_ADDRESS, Effects::None, Body),
    all("is_local_address", ASKS_ADDRESS, Effects::None, Body),
    all("is_private_address", ASKS_ADDRESS, Effects::None, Body),
    all("prefetch", Signature::Plain(&[Scalar::Address], None), Effects::Marker, OwnBody).with_nvptx(Later),
    native("native_cos", &[Scalar::F32]),
    native("native_divide", &[Scalar::F32, Scalar::F32]),
    native("native_exp2", &[Scalar::F32]),
    native("native_log2", &[Scalar::F32]),
    native("native_rsqrt", &[Scalar::F32]),
    native("native_sin", &[Scalar::F32]),
    native("native_sqrt", &[Scalar::F32]),
    native("float_of_half", &[Scalar::U32]),
    all("half_of_float", Signature::Plain(&[Scalar::F32], Some(Scalar::U32)), Effects::None, OwnBody).with_nvptx(Body),
];

/// The builtin of a name.
pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}

/// A target's side of the table.
#[derive(Clone, Copy)]
pub(crate) struct Bodies {
    pub(crate) family: Family,
    /// LLVM assembly with a function for each builtin whose lowering is [`Lowering::Body`].
    pub(crate) text: &'static str,
    /// Whether processors of the target combine integers of a sub-group's lanes in one instruction.
    pub(crate) has_reductions: bool,
}

impl Bodies {
    /// Whether the target has a body of its own for a builtin.
    pub(crate) fn has(&self, name: &str) -> bool {
        find(name).is_some_and(|builtin| builtin.lowering(self.family) == Body)
    }
}

#[cfg(test)]
mod tests;
