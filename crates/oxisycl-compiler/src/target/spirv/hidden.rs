//! What functions that were not inlined need of the kernel beside their parameters.
//!
//! It is passed to them before their own parameters. SPIR-V can end a function only, not the work-item: where the work-item may end in a
//! function, that is told the address of a flag, sets it and returns; and so does whoever called it.

use rspirv::spirv::{Op, StorageClass, Word};

use super::Refused;
use super::call::{ends_work_item, is_launch};
use super::code::Access;
use super::function::FunctionTranslator;
use super::module::uses_local_memory;
use super::value::{Shape, Translated};
use super::writer::Scalar;
use crate::llvm::Value;

/// The byte of the flag.
const FLAG: (Scalar, Access) = (Scalar::Int(8), Access { alignment: 1, is_volatile: false });

/// What a function needs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Hidden {
    pub(super) launch: bool,
    /// The work-item may end in it.
    pub(super) ends: bool,
    pub(super) local_memory: bool,
}

impl Hidden {
    /// What the code of a function needs, without what it calls.
    pub(super) fn of(function: Value<'_>) -> Self {
        let mut hidden = Self::default();
        for instruction in function.instructions() {
            hidden.launch |= is_launch(instruction);
            hidden.ends |= ends_work_item(instruction);
            hidden.local_memory |= uses_local_memory(instruction);
        }
        hidden
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self {
            launch: self.launch || other.launch,
            ends: self.ends || other.ends,
            local_memory: self.local_memory || other.local_memory,
        }
    }

    /// The parameters.
    pub(super) fn scalars(self) -> Vec<Scalar> {
        let parameters = [
            (self.launch, StorageClass::Function),
            (self.ends, StorageClass::Function),
            (self.local_memory, StorageClass::Workgroup),
        ];
        let needed = parameters.into_iter().filter(|(is_needed, _)| *is_needed);
        needed.map(|(_, class)| Scalar::Address(class)).collect()
    }
}

/// What a function was given, by addresses.
#[derive(Clone, Copy, Default)]
pub(super) struct Given {
    pub(super) launch: Option<Word>,
    flag: Option<Word>,
    pub(super) local_memory: Option<Word>,
}

impl Given {
    /// From the parameters that [`Hidden::scalars`] asks for.
    pub(super) fn of(hidden: Hidden, ids: &mut dyn Iterator<Item = Word>) -> Self {
        let mut next = |is_needed: bool| if is_needed { ids.next() } else { None };
        Self { launch: next(hidden.launch), flag: next(hidden.ends), local_memory: next(hidden.local_memory) }
    }
}

impl<'c> FunctionTranslator<'_, '_, 'c> {
    /// What is passed to a function that needs so much.
    pub(super) fn give(&mut self, hidden: Hidden) -> Result<Vec<Word>, Refused> {
        let mut ids = Vec::new();
        if hidden.launch {
            ids.push(self.launch()?.address().0);
        }
        if hidden.ends {
            ids.push(self.flag());
        }
        if hidden.local_memory {
            ids.push(self.given.local_memory.expect("who calls it needs it as well"));
        }
        Ok(ids)
    }

    /// The launch, whose address is the kernel's first parameter.
    pub(super) fn launch(&mut self) -> Result<Translated, Refused> {
        match self.given.launch {
            Some(launch) => Ok(Translated::Address(launch, StorageClass::Function)),
            None => self.value(self.function.parameter(0)),
        }
    }

    /// The flag, which kernels have in a variable.
    fn flag(&mut self) -> Word {
        if let Some(flag) = self.given.flag {
            return flag;
        }
        let flag = self.code.variable(1, 1);
        let before = self.code.go_to_start(true);
        let no = self.code.integer(8, 0);
        self.code.store(FLAG.0, no, (flag, StorageClass::Function), FLAG.1);
        self.code.go_to_start(before);
        self.given.flag = Some(flag);
        flag
    }

    /// Ends the work-item here.
    pub(super) fn end_work_item(&mut self) -> Result<(), Refused> {
        if !self.is_kernel {
            let (flag, yes) = (self.flag(), self.code.integer(8, 1));
            self.code.store(FLAG.0, yes, (flag, StorageClass::Function), FLAG.1);
        }
        self.leave()
    }

    /// After a call: goes on only if the work-item has not ended there.
    pub(super) fn leave_if_ended(&mut self) -> Result<(), Refused> {
        let flag = self.flag();
        let (value, no) = (self.code.load(FLAG.0, (flag, StorageClass::Function), FLAG.1), self.code.integer(8, 0));
        let has_ended = self.code.test(Op::INotEqual, &[value, no]);
        let [ended, on] = std::array::from_fn(|_| self.code.id());
        self.code.branch_if(has_ended, ended, on);
        self.code.begin(ended);
        self.leave()?;
        self.code.begin(on);
        Ok(())
    }

    /// Returns something of the function's type, which nobody looks at.
    fn leave(&mut self) -> Result<(), Refused> {
        let shape = Shape::of(self.function.held_type().result())?;
        let nothing = self.zero(&shape);
        self.return_value(nothing)
    }

    /// The body of a function that is too deep in a cycle of formatting: an error of formatting, which is true.
    pub(super) fn fail_to_format(&mut self) -> Result<(), Refused> {
        let label = self.code.id();
        self.code.begin(label);
        let shape = Shape::of(self.function.held_type().result())?;
        if shape == Shape::Bool {
            let error = self.code.boolean(true);
            self.code.effect(Op::ReturnValue, &[error]);
            return Ok(());
        }
        self.leave()
    }
}
