//! Fields of structures that stand in an array: accesses at a constant distance from lane to lane, and which of them are made together.
//!
//! A *group* has accesses of one block whose places are in one structure of each lane. Its loads are made where the first one is, and its stores where
//! the last one is. `interleaved` makes them, if all lanes are active there.
//!
//! # Why that is allowed
//! - *Order.* A load passes no store that may be at its place, and a store passes no access that may be. Two accesses are at different places if
//!   their addresses have the same variable part and their fields do not overlap, in whatever lanes. All else may be at one place.
//! - *What is read.* Bytes between two fields of the group are in a structure of an active lane, or in front of the next one's. They lie less than a page
//!   behind a byte that a lane reads, and in front of another such byte. So they can be read. What they hold is not used.
//!   Nothing is read behind the last lane's last field, or in front of lane 0's first.
//! - *What is written.* A group of stores has all bytes of its structures. So no byte is written that no work-item writes.

use rustc_hash::FxHashMap;

use super::cfg::{BlockIdx, Graph};
use super::emitter::Rule;
use super::packed::packed_bytes;
use super::shape::{Shape, Shapes};
use super::singly::is_copy;
use crate::llvm::{Layout, Opcode, Type, TypeKind, Value};
use place::Place;
use shuffles::Structures;

mod place;
pub(super) mod shuffles;

/// The most bytes of a structure.
const LARGEST: u64 = 64;
/// The most fields that a structure has room for.
const MOST_FIELDS: u64 = 16;

/// An access of a group.
pub(super) struct Field<'c> {
    pub(super) access: Value<'c>,
    /// Where it is in the structure, which begins with the first field.
    pub(super) offset: u64,
    pub(super) of: Type<'c>,
    pub(super) size: u64,
}

/// Accesses that are made together.
pub(super) struct Group<'c> {
    pub(super) is_store: bool,
    /// The bytes from lane to lane.
    pub(super) stride: u64,
    /// The bytes from the first field to the end of the last one.
    pub(super) span: u64,
    /// In the order of the program.
    pub(super) fields: Vec<Field<'c>>,
}

impl<'c> Group<'c> {
    /// The field at whose place in the program all of them are accessed.
    pub(super) fn leader(&self) -> &Field<'c> {
        if self.is_store { &self.fields[self.fields.len() - 1] } else { &self.fields[0] }
    }

    /// The smallest field's bytes.
    pub(super) fn unit(&self) -> u64 {
        self.fields.iter().map(|field| field.size).min().unwrap_or(1)
    }
}

impl Group<'_> {
    /// Whether all bytes of a structure are some field's.
    fn is_whole(&self) -> bool {
        let bytes = |field: &Field<'_>| (u64::MAX >> (64 - field.size)) << field.offset;
        self.fields.iter().fold(0, |all, field| all | bytes(field)) == u64::MAX >> (64 - self.stride)
    }

    /// How its structures lie in memory.
    pub(super) fn structures(&self, lanes: u32) -> Structures {
        let lanes = u64::from(lanes);
        let total = (lanes - 1) * self.stride + self.span;
        Structures { lanes, stride: self.stride, unit: self.unit(), total }
    }

    /// Whether structures are integers of 16 or 32 bits in registers, whose bytes are the fields.
    pub(super) fn is_small(&self) -> bool {
        self.unit() < self.stride && matches!(self.stride, 2 | 4)
    }

    /// Whether elements of several fields are one element on the way. One of them may be poison, and would be all of the element.
    pub(super) fn mixes(&self) -> bool {
        let unit = self.unit();
        let is_apart = self.stride / unit % 2 == 1 && self.fields.iter().all(|field| field.size == unit);
        self.is_small() || self.is_of_three() || self.stride / unit > 2 && !is_apart
    }

    /// Whether structures are integers of 32 bits in registers, of which three bytes are in memory.
    pub(super) fn is_of_three(&self) -> bool {
        self.stride == 3 && self.is_whole()
    }
}

/// The groups of a body.
#[derive(Default)]
pub(super) struct Groups<'c> {
    groups: Vec<Group<'c>>,
    by_access: FxHashMap<Value<'c>, usize>,
}

impl<'c> Groups<'c> {
    pub(super) fn of(graph: &Graph<'c>, shapes: &Shapes<'_, 'c>, layout: Layout<'_>, without: Option<Rule>) -> Self {
        let mut groups = Vec::new();
        for &block in graph.order() {
            groups.extend(in_block(graph, (shapes, layout), block, without));
        }
        let mut all = Self::default();
        groups.into_iter().for_each(|group| all.add(group));
        all
    }

    fn add(&mut self, group: Group<'c>) {
        let number = self.groups.len();
        self.by_access.extend(group.fields.iter().map(|field| (field.access, number)));
        self.groups.push(group);
    }

    /// Leaves the groups that are worth it.
    pub(super) fn retain(&mut self, mut is_worth_it: impl FnMut(&Group<'c>) -> bool) {
        let all = std::mem::take(self);
        all.groups.into_iter().filter(|group| is_worth_it(group)).for_each(|group| self.add(group));
    }

    /// The group of an access.
    pub(super) fn get(&self, access: Value<'c>) -> Option<&Group<'c>> {
        self.by_access.get(&access).map(|number| &self.groups[*number])
    }
}

/// A group that may get more fields.
struct Open<'c> {
    is_store: bool,
    /// No store changes what its loads read.
    is_invariant: bool,
    place: Place<'c>,
    stride: i64,
    /// The accesses, with their distances from the first one.
    fields: Vec<(Value<'c>, Type<'c>, i64)>,
    /// Places in other fields that were stored to since the first load: their distances and sizes.
    stored: Vec<(i64, i64)>,
}

impl Open<'_> {
    /// Where the fields begin and end.
    fn ends(&self, layout: Layout<'_>) -> (i64, i64) {
        let begin = self.fields.iter().map(|(.., at)| *at).min().unwrap_or(0);
        let end = self.fields.iter().map(|(_, of, at)| at + layout.store_size(*of) as i64).max().unwrap_or(0);
        (begin, end)
    }

    fn overlaps(&self, layout: Layout<'_>, at: (i64, i64)) -> bool {
        let of_own = |(_, of, own): &(_, Type<'_>, i64)| (*own, layout.store_size(*of) as i64);
        self.fields.iter().map(of_own).any(|own| overlap(self.stride, own, at))
    }
}

/// Whether two fields share bytes, in whatever structures. Each has a place and a size.
fn overlap(stride: i64, (first, first_size): (i64, i64), (second, second_size): (i64, i64)) -> bool {
    let distance = second.wrapping_sub(first).rem_euclid(stride);
    distance < first_size || distance + second_size > stride
}

/// The groups of a block.
fn in_block<'c>(
    graph: &Graph<'c>,
    (shapes, layout): (&Shapes<'_, 'c>, Layout<'_>),
    block: BlockIdx,
    without: Option<Rule>,
) -> Vec<Group<'c>> {
    let (mut open, mut done) = (Vec::<Open<'c>>::new(), Vec::new());
    for instruction in graph.block(block).instructions() {
        let is_load = match instruction.opcode() {
            Some(Opcode::LOAD) if !instruction.is_atomic() => true,
            Some(Opcode::STORE) if !instruction.is_atomic() => false,
            Some(Opcode::LOAD | Opcode::STORE | Opcode::ATOMIC_RMW | Opcode::FENCE) => {
                done.append(&mut open);
                continue;
            }
            // Other calls have no memory.
            Some(Opcode::CALL) if is_copy(instruction) => {
                done.append(&mut open);
                continue;
            }
            _ => continue,
        };
        let (address, of) = match is_load {
            true => (instruction.operand(0), instruction.value_type()),
            false => (instruction.operand(1), instruction.operand(0).value_type()),
        };
        let is_invariant = is_load && instruction.has_metadata("invariant.load");
        let size = layout.store_size(of) as i64;
        let place = Place::of(layout, address);
        let stride = stride(shapes.shape(address), size).filter(|_| is_field(of));
        let own = |group: &Open<'c>| group.place.distance(&place).filter(|_| stride == Some(group.stride));
        if without != Some(Rule::FieldOrder) {
            let is_passed = |group: &mut Open<'c>| {
                // Loads pass loads.
                if is_load && !group.is_store || is_invariant || group.is_invariant {
                    return false;
                }
                match own(group) {
                    Some(at) if group.is_store => group.overlaps(layout, (at, size)),
                    Some(at) => {
                        group.stored.push((at, size));
                        false
                    }
                    None => true,
                }
            };
            done.extend(open.extract_if(.., is_passed));
        }
        let Some(stride) = stride else { continue };
        let joined = open.iter_mut().find_map(|group| {
            let is_alike = group.is_store != is_load && group.is_invariant == is_invariant;
            let at = own(group).filter(|at| is_alike && at.unsigned_abs() < LARGEST)?;
            let (begin, end) = group.ends(layout);
            let fits = end.max(at + size) - begin.min(at) <= stride;
            let is_stored = group.stored.iter().any(|stored| overlap(stride, *stored, (at, size)));
            (fits && !is_stored).then_some((group, at))
        });
        match joined {
            Some((group, at)) => group.fields.push((instruction, of, at)),
            None => {
                // The stores of an open group are made at its last one. Later loads of the new group must not pass them.
                if is_load && without != Some(Rule::FieldOrder) {
                    done.extend(open.extract_if(.., |group| group.is_store));
                }
                open.push(Open {
                    is_store: !is_load,
                    is_invariant,
                    place,
                    stride,
                    fields: vec![(instruction, of, 0)],
                    stored: Vec::new(),
                });
            }
        }
    }
    done.append(&mut open);
    done.into_iter().filter_map(|group| finished(layout, group, without)).collect()
}

/// The distance of a lane's element from that of the lane before, if it is one of structures.
fn stride(shape: Shape, size: i64) -> Option<i64> {
    let Shape::Affine(stride) = shape else { return None };
    let is_one = stride > size && stride as u64 <= LARGEST && stride % size == 0 && stride / size <= MOST_FIELDS as i64;
    is_one.then_some(stride)
}

fn is_field(of: Type<'_>) -> bool {
    let is_number = matches!(of.kind(), TypeKind::Integer(8 | 16 | 32 | 64) | TypeKind::Float | TypeKind::Double);
    is_number && packed_bytes(of).is_none()
}

/// A group with all of its fields; `None` if they cannot be made together.
fn finished<'c>(layout: Layout<'_>, open: Open<'c>, without: Option<Rule>) -> Option<Group<'c>> {
    let (begin, end) = open.ends(layout);
    let field = |(access, of, at): (Value<'c>, Type<'c>, i64)| Field {
        access,
        offset: (at - begin) as u64,
        of,
        size: layout.store_size(of),
    };
    let fields: Vec<_> = open.fields.into_iter().map(field).collect();
    let (stride, span) = (open.stride as u64, (end - begin) as u64);
    let is_aligned = fields.iter().all(|field| field.offset % field.size == 0 && stride % field.size == 0);
    let group = Group { is_store: open.is_store, stride, span, fields };
    let unit = group.unit();
    let is_whole = group.is_whole() || without == Some(Rule::WholeStructures);
    let is_made = !group.is_store || is_whole && group.fields.iter().all(|field| field.size == unit);
    (is_aligned && is_made).then_some(group)
}

#[cfg(test)]
mod tests;
