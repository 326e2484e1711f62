//! Operations that must know the memory of an address.

use rspirv::spirv::{Op, StorageClass, Word};

use super::function::{FunctionTranslator, assemble, leaves};
use super::memory::Place;
use super::quirks::GENERIC_ATOMICS;
use super::value::{Shape, Translated};
use crate::codegen::quirks::is_worked_around;
use crate::refused::Refused;

/// The memories that a generic address is tested for, in this order; an address of neither is the work-item's own. A device with only one
/// memory, such as a processor, may answer yes to the first question (the quirk `generic-atomics`). That question is for global memory,
/// where operations are atomic for all work-items.
const ASKED: [StorageClass; 2] = [StorageClass::CrossWorkgroup, StorageClass::Workgroup];

impl FunctionTranslator<'_, '_, '_> {
    /// Makes an operation, with a result of the shape `result`, on an address of known memory. If the memory is known only at run time, the
    /// operation is done in one of three branches. They are for memory of the device, of the group, and of the work-item.
    pub(super) fn in_each_memory(
        &mut self,
        place: Place,
        result: &Shape,
        operation: impl Fn(&mut Self, Place) -> Result<Translated, Refused>,
    ) -> Result<Translated, Refused> {
        let (address, class) = place;
        if class != StorageClass::Generic || !is_worked_around(&GENERIC_ATOMICS) {
            return operation(self, place);
        }
        let end = self.code.id();
        let mut results = Vec::new();
        for class in ASKED {
            let (candidate, is_there) = self.cast_and_test(address, class);
            let [there, elsewhere] = std::array::from_fn(|_| self.code.id());
            self.code.branch_if(is_there, there, elsewhere);
            self.code.begin(there);
            results.push((operation(self, (candidate, class))?, self.code.label()));
            self.code.branch(end);
            self.code.begin(elsewhere);
        }
        let own = self.cast(place, StorageClass::Function);
        results.push((operation(self, (own, StorageClass::Function))?, self.code.label()));
        self.code.branch(end);
        self.code.begin(end);
        Ok(self.one_of(&results, result))
    }

    /// A generic address as one of a memory, and whether it is one.
    pub(super) fn cast_and_test(&mut self, address: Word, class: StorageClass) -> (Word, Word) {
        // Null, if the address is of another memory.
        let candidate = self.code.cast_if(address, class);
        let bits = self.address_bits((candidate, class));
        let null = self.code.integer(64, 0);
        (candidate, self.code.test(Op::INotEqual, &[bits, null]))
    }

    /// The value of the predecessor block, by a phi over the values of all of them.
    fn one_of(&mut self, values: &[(Translated, Word)], shape: &Shape) -> Translated {
        let incoming: Vec<_> = values
            .iter()
            .map(|(value, label)| {
                let mut ids = Vec::new();
                leaves(value, &mut ids);
                (ids, *label)
            })
            .collect();
        let mut phis = Vec::new();
        for (position, scalar) in shape.scalars().into_iter().enumerate() {
            let phi = self.code.phi(scalar);
            let values: Vec<_> = incoming.iter().map(|(ids, label)| (ids[position], *label)).collect();
            self.code.set_phi(phi, &values);
            phis.push(phi);
        }
        assemble(shape, &mut phis.into_iter())
    }
}
