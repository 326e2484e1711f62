//! The implicit parameters of functions that were not inlined: values of the kernel that they need.
//!
//! It is passed to them before their own parameters. SPIR-V can end only a function, not the work-item. So a function in which the
//! work-item may end gets the address of a flag, which it sets before it returns. Its callers then return, too. The text of a message that
//! goes too deep ends by another flag, which what began it looks at.

use rspirv::spirv::{Op, StorageClass, Word};

use super::function::FunctionTranslator;
use super::function_builder::Access;
use super::function_pointers::has_depth;
use super::module_builder::Scalar;
use super::names::uses_local_memory;
use super::names::{ends_work_item, is_launch};
use super::value::{Shape, Translated};
use crate::llvm::Value;
use crate::refused::Refused;

/// The byte of the flag.
const FLAG: (Scalar, Access) = (Scalar::Int(8), Access { alignment: 1, is_volatile: false });

/// A selector of one of the flags among a function's implicit parameters.
type Flag = fn(&mut ImplicitValues) -> &mut Option<Word>;
const HAS_ENDED: Flag = |values| &mut values.has_ended;
const IS_CUT_OFF: Flag = |values| &mut values.is_cut_off;

/// The function that asks whether formatting was cut off.
const WAS_CUT_OFF: &str = "oxisycl.spirv.was_cut_off";

/// The implicit parameters that a function needs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct ImplicitParameters {
    pub(super) launch: bool,
    /// The flag that the work-item has ended, since it may end in the function.
    pub(super) ends: bool,
    pub(super) local_memory: bool,
    /// The flag that formatting was cut off, since the function may set or read it.
    cuts_off: bool,
}

impl ImplicitParameters {
    /// The needs of a function's own code, without the functions that it calls.
    pub(super) fn of(function: Value<'_>) -> Self {
        let mut implicit = Self { cuts_off: has_depth(function), ..Self::default() };
        for instruction in function.instructions() {
            implicit.launch |= is_launch(instruction);
            implicit.ends |= ends_work_item(instruction);
            implicit.local_memory |= uses_local_memory(instruction);
            implicit.cuts_off |= instruction.callee().is_some_and(|callee| callee.name() == WAS_CUT_OFF);
        }
        implicit
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self {
            launch: self.launch || other.launch,
            ends: self.ends || other.ends,
            local_memory: self.local_memory || other.local_memory,
            cuts_off: self.cuts_off || other.cuts_off,
        }
    }

    /// The types of the parameters.
    pub(super) fn scalars(self) -> Vec<Scalar> {
        let parameters = [
            (self.launch, StorageClass::Function),
            (self.ends, StorageClass::Function),
            (self.local_memory, StorageClass::Workgroup),
            (self.cuts_off, StorageClass::Function),
        ];
        let needed = parameters.into_iter().filter(|(is_needed, _)| *is_needed);
        needed.map(|(_, class)| Scalar::Address(class)).collect()
    }
}

/// The implicit parameters of the function that is being translated, as addresses.
#[derive(Clone, Copy, Default)]
pub(super) struct ImplicitValues {
    pub(super) launch: Option<Word>,
    has_ended: Option<Word>,
    pub(super) local_memory: Option<Word>,
    is_cut_off: Option<Word>,
}

impl ImplicitValues {
    /// Reads the parameters that [`ImplicitParameters::scalars`] declares.
    pub(super) fn of(implicit: ImplicitParameters, ids: &mut dyn Iterator<Item = Word>) -> Self {
        let mut next = |is_needed: bool| if is_needed { ids.next() } else { None };
        Self {
            launch: next(implicit.launch),
            has_ended: next(implicit.ends),
            local_memory: next(implicit.local_memory),
            is_cut_off: next(implicit.cuts_off),
        }
    }
}

impl<'c> FunctionTranslator<'_, '_, 'c> {
    /// The arguments for a function with the implicit parameters `implicit`.
    pub(super) fn implicit_arguments(&mut self, implicit: ImplicitParameters) -> Result<Vec<Word>, Refused> {
        let mut ids = Vec::new();
        if implicit.launch {
            ids.push(self.launch()?.address().0);
        }
        if implicit.ends {
            ids.push(self.flag(HAS_ENDED));
        }
        if implicit.local_memory {
            ids.push(self.implicit.local_memory.expect("who calls it needs it as well"));
        }
        if implicit.cuts_off {
            ids.push(self.flag(IS_CUT_OFF));
        }
        Ok(ids)
    }

    /// The launch, whose address is the kernel's first parameter.
    pub(super) fn launch(&mut self) -> Result<Translated, Refused> {
        match self.implicit.launch {
            Some(launch) => Ok(Translated::Address(launch, StorageClass::Function)),
            None => self.value(self.function.parameter(0)),
        }
    }

    /// The address of a flag. Kernels have it in a variable.
    fn flag(&mut self, which: Flag) -> Word {
        if let Some(flag) = which(&mut self.implicit) {
            return *flag;
        }
        let flag = self.code.variable(1, 1);
        let before = self.code.go_to_start(true);
        let no = self.code.integer(8, 0);
        self.code.store(FLAG.0, no, (flag, StorageClass::Function), FLAG.1);
        self.code.go_to_start(before);
        *which(&mut self.implicit) = Some(flag);
        flag
    }

    fn raise(&mut self, which: Flag) {
        let (flag, yes) = (self.flag(which), self.code.integer(8, 1));
        self.code.store(FLAG.0, yes, (flag, StorageClass::Function), FLAG.1);
    }

    /// Whether a flag is set.
    fn is_raised(&mut self, which: Flag) -> Word {
        let flag = self.flag(which);
        let (value, no) = (self.code.load(FLAG.0, (flag, StorageClass::Function), FLAG.1), self.code.integer(8, 0));
        self.code.test(Op::INotEqual, &[value, no])
    }

    /// Whether formatting was cut off since this was last called.
    pub(super) fn was_cut_off(&mut self) -> Translated {
        let was = self.is_raised(IS_CUT_OFF);
        let (flag, no) = (self.flag(IS_CUT_OFF), self.code.integer(8, 0));
        self.code.store(FLAG.0, no, (flag, StorageClass::Function), FLAG.1);
        Translated::Scalar(was)
    }

    /// Ends the work-item at this point.
    pub(super) fn end_work_item(&mut self) -> Result<(), Refused> {
        if !self.is_kernel {
            self.raise(HAS_ENDED);
        }
        self.leave()
    }

    /// Added after a call: returns if the work-item has ended in it.
    pub(super) fn leave_if_ended(&mut self) -> Result<(), Refused> {
        let has_ended = self.is_raised(HAS_ENDED);
        let [ended, on] = std::array::from_fn(|_| self.code.id());
        self.code.branch_if(has_ended, ended, on);
        self.code.begin(ended);
        self.leave()?;
        self.code.begin(on);
        Ok(())
    }

    /// Returns any value of the function's type, which no caller reads.
    fn leave(&mut self) -> Result<(), Refused> {
        let shape = Shape::of(self.function.held_type().result())?;
        let nothing = self.zero(&shape);
        self.return_value(nothing)
    }

    /// The body of a function that is too deep in a cycle of formatting. Within a message it raises the flag, and returns a formatting
    /// error (`true`). Elsewhere it panics.
    pub(super) fn end_formatting(&mut self) -> Result<(), Refused> {
        let label = self.code.id();
        self.code.begin(label);
        let this = self.this();
        if let Some(panic) = self.globals.components.too_deep.filter(|_| this.may_panic_too_deep()) {
            let panic = this.callee(panic).expect("it is no recorder");
            let function = self.globals.function(self.code.writer, panic, Vec::new(), 0);
            self.code.needs.calls.insert(function);
            let mut operands = vec![function];
            operands.extend(self.implicit_arguments(self.globals.components.implicit_parameters(panic))?);
            let void = self.code.writer.void();
            self.code.op_of(Op::FunctionCall, void, &operands);
            return self.leave();
        }
        self.raise(IS_CUT_OFF);
        let error = self.code.boolean(true);
        self.code.effect(Op::ReturnValue, &[error]);
        Ok(())
    }
}
