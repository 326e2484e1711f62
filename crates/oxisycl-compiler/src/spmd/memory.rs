//! Memory: one access for all lanes, consecutive ones, and gathers and scatters. Lanes that are not active access nothing.

use super::emitter::{Emitter, Mask, Rule};
use super::packed::packed_bytes;
use super::shape::Shape;
use crate::llvm::{Attribute, Layout, Type, Value};

impl<'c> Emitter<'c, '_> {
    /// Makes a load whose result differs between lanes.
    pub(super) fn load(&mut self, load: Value<'c>, mask: Mask<'c>) {
        if let Some(bytes) = packed_bytes(load.value_type()) {
            return self.packed_load(load, mask, bytes);
        }
        let (address, alignment) = (load.operand(0), load.alignment());
        let of = self.widened(load.value_type());
        let is_consecutive = self.is_consecutive(address, load.value_type());
        let rule = if is_consecutive { Rule::LoadMasks } else { Rule::GatherMasks };
        let mask = if self.has(rule) { mask } else { Mask::All };
        let value = match (is_consecutive, mask) {
            (true, Mask::All) => {
                let address = self.raw(address);
                let value = self.builder.load(of, address);
                value.set_alignment(alignment);
                value
            }
            (true, Mask::Some(mask)) => {
                let address = self.raw(address);
                let alignment = self.alignment_of_any(alignment, load.value_type());
                self.masked("llvm.masked.load", &[address, mask, of.poison()], [of, address.value_type()], 0, alignment)
            }
            (false, mask) => {
                let addresses = self.vector(address);
                let arguments = [addresses, self.mask(mask), of.poison()];
                self.masked("llvm.masked.gather", &arguments, [of, addresses.value_type()], 0, alignment)
            }
        };
        self.define(load, value);
    }

    pub(super) fn store(&mut self, store: Value<'c>, mask: Mask<'c>) {
        let (value, address, alignment) = (store.operand(0), store.operand(1), store.alignment());
        if self.shape(address) == Shape::Uniform {
            // As if the lanes ran one after the other: the last one's value stays.
            let value = match mask {
                _ if self.shape(value) == Shape::Uniform => self.raw(value),
                Mask::Some(mask) if self.has(Rule::LastLane) => {
                    let last = self.last(mask);
                    self.lane(value, last)
                }
                _ => self.lane(value, self.int(self.lanes).constant(u64::from(self.lanes) - 1)),
            };
            let address = self.raw(address);
            return self.builder.store(value, address).set_alignment(alignment);
        }
        if let Some(bytes) = packed_bytes(value.value_type()) {
            return self.packed_store(store, mask, bytes);
        }
        let is_consecutive = self.is_consecutive(address, value.value_type());
        let values = self.vector(value);
        let of = values.value_type();
        let rule = if is_consecutive { Rule::StoreMasks } else { Rule::ScatterMasks };
        let mask = if self.has(rule) { mask } else { Mask::All };
        match (is_consecutive, mask) {
            (true, Mask::All) => {
                let address = self.raw(address);
                self.builder.store(values, address).set_alignment(alignment);
            }
            (true, Mask::Some(mask)) => {
                let address = self.raw(address);
                let alignment = self.alignment_of_any(alignment, value.value_type());
                self.masked("llvm.masked.store", &[values, address, mask], [of, address.value_type()], 1, alignment);
            }
            (false, mask) => {
                let addresses = self.vector(address);
                let arguments = [values, addresses, self.mask(mask)];
                self.masked("llvm.masked.scatter", &arguments, [of, addresses.value_type()], 1, alignment);
            }
        }
    }

    /// Makes a variable of single work-items: one for each lane, one after the other. One that only traps use is theirs.
    pub(super) fn private_variable(&mut self, variable: Value<'c>) {
        if self.is_variable_of_traps(variable) {
            return;
        }
        let stride = stride(Layout::of(self.module), variable);
        let all = self.variable(self.int(8).array(stride).array(u64::from(self.lanes)));
        all.set_alignment(variable.alignment());
        let value = match self.shape(variable) {
            Shape::Varying => self.builder.address(self.int(8), all, &[self.ramp(self.int(64), stride.cast_signed())]),
            _ => all,
        };
        self.define(variable, value);
    }

    /// The alignment of lane 0's address where lane 0 may not be active. Such an address is whole elements away from one of `alignment`.
    fn alignment_of_any(&self, alignment: u32, element: Type<'c>) -> u32 {
        let size = Layout::of(self.module).size(element);
        u32::try_from(size).map_or(alignment, |size| alignment.min(size))
    }

    /// Whether the addresses of the lanes are those of consecutive elements.
    pub(super) fn is_consecutive(&self, address: Value<'c>, element: Type<'c>) -> bool {
        let size = Layout::of(self.module).store_size(element) as i64;
        self.shape(address) == Shape::Affine(size)
    }

    /// Calls an intrinsic for memory, whose alignment is an attribute of the address.
    fn masked(
        &self,
        name: &str,
        arguments: &[Value<'c>],
        types: [Type<'c>; 2],
        address: u32,
        alignment: u32,
    ) -> Value<'c> {
        let call = self.builder.call(self.module.intrinsic(name, &types), arguments);
        call.add_site_attribute(address + 1, Attribute::plain(self.context, "align", alignment.into()));
        call
    }
}

/// The distance of the variables of two lanes in bytes, by which each of them is aligned as the first one is.
pub(super) fn stride(layout: Layout<'_>, variable: Value<'_>) -> u64 {
    let size = layout.size(variable.allocated_type());
    size.checked_next_multiple_of(variable.alignment().into()).unwrap_or(u64::MAX)
}
