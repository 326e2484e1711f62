//! What the accesses of a group of fields cost together.

use super::table::Table;
use crate::spmd::fields::Group;
use crate::spmd::fields::shuffles::{self, Loads, Machine};

/// The bytes of a register.
const REGISTER: u64 = 32;

impl Table {
    /// The cost of a group whose lanes are all active.
    pub(super) fn fields(self, group: &Group<'_>, lanes: u32) -> u64 {
        let mut counted = Counted { table: self, busy: 0 };
        let (structures, n_fields) = (group.structures(lanes), group.fields.len() as u64);
        if group.is_of_three() || group.is_small() {
            // A register of structures, and what parts or joins each field.
            let bytes = (structures.lanes * group.stride.next_power_of_two()).div_ceil(REGISTER);
            let packed = if group.is_of_three() { self.of_bytes() } else { 0 };
            let of_structures = packed + if group.is_store { self.of_store() } else { self.of_load() };
            return bytes * (of_structures + n_fields * self.of_part());
        }
        if group.is_store {
            let fields: Vec<u64> = group.fields.iter().map(|field| structures.lanes * field.size).collect();
            shuffles::store(&mut counted, structures, &fields);
        } else {
            let mut loads = Loads::new(&mut counted, structures);
            group.fields.iter().for_each(|field| {
                loads.field(field.offset, field.size);
            });
        }
        counted.busy
    }
}

/// Counts what is made. Vectors are their bytes.
struct Counted {
    table: Table,
    busy: u64,
}

impl Machine for Counted {
    type Vector = u64;

    fn load(&mut self, _at: u64, bytes: u64) -> u64 {
        self.busy += self.table.of_load();
        bytes
    }

    fn store(&mut self, _vector: u64, _at: u64) {
        self.busy += self.table.of_store();
    }

    fn shuffle(&mut self, unit: u64, first: u64, second: Option<u64>, wanted: &[Option<u64>]) -> u64 {
        let (count, bytes) = (first / unit, wanted.len() as u64 * unit);
        let mut numbered = (0..).zip(wanted).filter_map(|(at, number)| number.map(|number| (at, number)));
        let is_part = wanted.windows(2).all(|pair| pair[1] == pair[0].map(|number| number + 1));
        let mut is_blend = || second.is_some() && numbered.all(|(at, number): (u64, u64)| number % count == at);
        self.busy += match () {
            // Registers that are named alone.
            () if is_part && bytes.max(first) > REGISTER => 0,
            () if is_part => self.table.of_half(),
            () if is_blend() => self.table.of_blend(unit),
            () => self.table.of_shuffle(unit, second.is_some()),
        };
        bytes
    }
}
