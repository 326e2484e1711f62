//! The kernels that a stream has launched, with their numbers of launches, and the executables of frequent ones.
//!
//! Invariants:
//! - A family is one function. Its number stays the same as long as it has executables.
//! - Families with executables stay until their module is unloaded, or the stream is closed.

use std::sync::Arc;

use crate::executable::Executable;
use crate::module::CudaModule;
use crate::sys::RawFunction;

/// The most families of a stream.
const MOST: usize = 64;
/// How many sizes of executables there are.
pub(crate) const N_SIZES: usize = 8;

/// The families of one stream.
#[derive(Default)]
pub(crate) struct Families {
    /// The function of each family. Kept separately, since it is searched for each launch.
    functions: Vec<RawFunction>,
    pub(crate) of: Vec<Family>,
    /// The family that was counted last.
    last: usize,
    /// The next family to be replaced by a new one, if it has no executables.
    next: usize,
}

/// The launches of one function.
#[derive(Default)]
pub(crate) struct Family {
    /// The number of launches.
    pub(crate) n_launches: u32,
    /// The executables, by size. Several of one size are for launches that follow each other closely.
    pub(crate) executables: [Vec<Executable>; N_SIZES],
}

impl Families {
    /// Counts launches of a function. Returns the number of its family; `None` if there are too many families.
    #[inline]
    pub(crate) fn count(&mut self, function: RawFunction, n_launches: usize) -> Option<usize> {
        if self.functions.get(self.last) != Some(&function) {
            self.last = self.find(function)?;
        }
        let family = &mut self.of[self.last];
        family.n_launches = family.n_launches.saturating_add(u32::try_from(n_launches).unwrap_or(u32::MAX));
        Some(self.last)
    }

    fn find(&mut self, function: RawFunction) -> Option<usize> {
        if let Some(known) = self.functions.iter().position(|known| *known == function) {
            return Some(known);
        }
        if self.functions.len() < MOST {
            self.functions.push(function);
            self.of.push(Family::default());
            return Some(self.functions.len() - 1);
        }
        let is_spare = |family: &usize| self.of[*family].is_spare();
        let spare = (self.next..MOST).chain(0..self.next).find(is_spare)?;
        self.next = (spare + 1) % MOST;
        self.functions[spare] = function;
        self.of[spare] = Family::default();
        Some(spare)
    }

    /// Removes and returns all executables of the module.
    pub(crate) fn release(&mut self, module: &Arc<CudaModule>) -> Vec<Executable> {
        // All executables of a family have its function.
        let of_module = |made: &&mut Vec<Executable>| made.first().is_some_and(|first| first.holds(module));
        let made = self.of.iter_mut().flat_map(|family| &mut family.executables);
        let released: Vec<_> = made.filter(of_module).flat_map(std::mem::take).collect();
        // The function may be another kernel's soon.
        self.of.iter_mut().filter(|family| family.is_spare()).for_each(|family| family.n_launches = 0);
        released
    }
}

impl Family {
    fn is_spare(&self) -> bool {
        self.executables.iter().all(Vec::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(number: usize) -> RawFunction {
        RawFunction(std::ptr::without_provenance_mut(number))
    }

    #[test]
    fn launches_are_counted_by_function() {
        let mut families = Families::default();
        let counted = [(7, 1), (7, 3), (8, 1), (7, 2)].map(|(number, n)| families.count(function(number), n));
        assert_eq!(counted, [Some(0), Some(0), Some(1), Some(0)]);
        assert_eq!([0, 1].map(|family| families.of[family].n_launches), [6, 1]);
    }

    #[test]
    fn a_family_without_executables_gives_way_to_a_new_one() {
        let mut families = Families::default();
        for number in 1..=2 * MOST {
            assert!(families.count(function(number), 1).is_some_and(|family| family < MOST));
        }
        assert_eq!(families.of.iter().map(|family| family.n_launches).sum::<u32>(), MOST as u32);
    }
}
