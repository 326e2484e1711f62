//! Which shuffles take fields out of structures, and put them into structures.
//!
//! A *register* has one field of some lanes, or a chunk of memory. Chunks are made of *pieces* of a register's width or of half of it. Two halves are
//! of lanes that are apart, so that shuffles need not cross the middle of a register. [`Machine`] makes the shuffles, or counts what they cost.

use rustc_hash::FxHashMap;

/// The bytes of a register.
const REGISTER: u64 = 32;
/// The bytes of half a register, within which shuffles are cheap.
const HALF: u64 = 16;

/// What accesses memory and shuffles vectors.
pub(in crate::spmd) trait Machine {
    type Vector: Copy;

    /// Loads so many bytes, from so many bytes behind lane 0's structure on.
    fn load(&mut self, at: u64, bytes: u64) -> Self::Vector;

    fn store(&mut self, vector: Self::Vector, at: u64);

    /// The elements of so many bytes that have these numbers; those of the second vector follow those of the first. Any bits for `None`.
    fn shuffle(
        &mut self,
        unit: u64,
        first: Self::Vector,
        second: Option<Self::Vector>,
        wanted: &[Option<u64>],
    ) -> Self::Vector;
}

/// How the structures of all lanes lie in memory.
#[derive(Clone, Copy)]
pub(in crate::spmd) struct Structures {
    pub(in crate::spmd) lanes: u64,
    /// The bytes from one to the next.
    pub(in crate::spmd) stride: u64,
    /// The bytes of the smallest field.
    pub(in crate::spmd) unit: u64,
    /// The bytes from the first field of lane 0 to the end of the last lane's last field.
    pub(in crate::spmd) total: u64,
}

/// How fields of one size are moved.
#[derive(Clone, Copy)]
struct Form {
    unit: u64,
    /// The bytes of a register.
    register: u64,
    /// The bytes of a piece.
    piece: u64,
}

impl Structures {
    fn form(self, unit: u64) -> Form {
        let register = REGISTER.min(self.lanes * unit);
        let n_fields = self.stride / unit;
        // A number of fields that is odd needs but one shuffle that crosses the middle.
        let is_odd = n_fields % 2 == 1 && (unit >= 4 || n_fields == 1);
        let mut piece = if is_odd { register } else { HALF.min(register) };
        while piece > self.total {
            piece /= 2;
        }
        Form { unit, register, piece }
    }
}

impl Form {
    /// The lanes of a register.
    fn lanes(self) -> u64 {
        self.register / self.unit
    }

    /// Where the pieces of a chunk begin, which is one of a number of lanes from a number on.
    fn pieces(self, stride: u64, first: u64, chunk: u64) -> impl Iterator<Item = u64> {
        let lanes = self.piece / self.unit;
        (0..self.register / self.piece).map(move |part| (first + part * lanes) * stride + chunk * self.piece)
    }
}

/// The numbers of elements for each part of a register, of which `of` has those of one part. Numbers from `each` on are of the second vector.
fn in_parts(form: Form, unit: u64, of: impl Fn(u64) -> Option<u64>) -> Vec<Option<u64>> {
    let (all, each) = (form.register / unit, form.piece / unit);
    let wanted = |at: u64| {
        let (part, at) = (at / each, at % each);
        of(at).map(|number| part * each + if number < each { number } else { all + number - each })
    };
    (0..all).map(wanted).collect()
}

/// A vector of a number of vectors that is a power of two.
fn joined<M: Machine>(machine: &mut M, unit: u64, each: u64, mut parts: Vec<M::Vector>) -> M::Vector {
    let mut count = each / unit;
    while parts.len() > 1 {
        count *= 2;
        let wanted: Vec<_> = (0..count).map(Some).collect();
        parts = parts.chunks_exact(2).map(|pair| machine.shuffle(unit, pair[0], Some(pair[1]), &wanted)).collect();
    }
    parts[0]
}

/// Takes fields out of structures.
pub(in crate::spmd) struct Loads<'m, M: Machine> {
    machine: &'m mut M,
    structures: Structures,
    pieces: FxHashMap<[u64; 2], M::Vector>,
    /// Chunks and what was made of them. Keys are the first lane, the units of the form and of the fields, the number of fields, the field, and the
    /// register.
    known: FxHashMap<[u64; 6], M::Vector>,
}

impl<'m, M: Machine> Loads<'m, M> {
    pub(in crate::spmd) fn new(machine: &'m mut M, structures: Structures) -> Self {
        Self { machine, structures, pieces: FxHashMap::default(), known: FxHashMap::default() }
    }

    #[cfg(test)]
    pub(super) fn machine(&self) -> &M {
        self.machine
    }

    /// The field of all lanes that begins with that byte and has so many.
    pub(in crate::spmd) fn field(&mut self, offset: u64, size: u64) -> M::Vector {
        let form = self.structures.form(size);
        let (n_fields, field) = (self.structures.stride / size, offset / size);
        let starts = (0..self.structures.lanes).step_by(form.lanes() as usize);
        let registers = starts.map(|first| self.register((form, first), size, (n_fields, field), 0)).collect();
        joined(self.machine, size, form.register, registers)
    }

    fn piece(&mut self, at: u64, bytes: u64) -> M::Vector {
        if let Some(known) = self.pieces.get(&[at, bytes]) {
            return *known;
        }
        let Structures { total, unit, .. } = self.structures;
        let vector = match (at + bytes).checked_sub(total) {
            None | Some(0) => self.machine.load(at, bytes),
            // There may be no memory behind the last field. So the piece ends there, and its elements move. None of them becomes poison, which
            // would be all of a wider element.
            Some(beyond) => {
                let ending = self.machine.load(total - bytes, bytes);
                let of = |number: u64| Some((number + beyond / unit) % (bytes / unit));
                let wanted: Vec<_> = (0..bytes / unit).map(of).collect();
                self.machine.shuffle(unit, ending, None, &wanted)
            }
        };
        self.pieces.insert([at, bytes], vector);
        vector
    }

    fn chunk(&mut self, (form, first): (Form, u64), number: u64) -> M::Vector {
        let starts: Vec<u64> = form.pieces(self.structures.stride, first, number).collect();
        let pieces = starts.into_iter().map(|at| self.piece(at, form.piece)).collect();
        joined(self.machine, self.structures.unit, form.piece, pieces)
    }

    /// One register of a field, of structures with so many fields of a size.
    fn register(
        &mut self,
        place @ (form, first): (Form, u64),
        unit: u64,
        (n_fields, field): (u64, u64),
        number: u64,
    ) -> M::Vector {
        let key = [first, form.unit, unit, n_fields, field, number];
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let each = form.piece / unit;
        let vector = if n_fields == 1 || each == 1 {
            self.chunk(place, number * n_fields + field)
        } else if n_fields % 2 == 0 {
            // Fields of two, and one of each two.
            let mut half = |number| self.register(place, 2 * unit, (n_fields / 2, field / 2), number);
            let (low, high) = (half(2 * number), half(2 * number + 1));
            self.machine.shuffle(unit, low, Some(high), &in_parts(form, unit, |at| Some(2 * at + field % 2)))
        } else {
            // Each lane's field is at another place of its chunk, so that they fit into one.
            let at = |lane: u64| ((lane * n_fields + field) / each, (lane * n_fields + field) % each);
            let mut chunks: Vec<u64> = (0..each).map(|lane| at(lane).0).collect();
            chunks.dedup();
            let mut all = self.chunk(place, number * n_fields + chunks[0]);
            if let &[_, second] = &chunks[..] {
                let next = self.chunk(place, number * n_fields + second);
                let of = |lane: u64| Some(at(lane).1 + if at(lane).0 == second { each } else { 0 });
                let vector = self.machine.shuffle(unit, all, Some(next), &in_parts(form, unit, of));
                self.known.insert(key, vector);
                return vector;
            }
            for &chunk in &chunks[1..] {
                let next = self.chunk(place, number * n_fields + chunk);
                let is_there = |place: u64| (0..each).any(|lane| at(lane) == (chunk, place));
                let wanted = in_parts(form, unit, |place| Some(place + if is_there(place) { each } else { 0 }));
                all = self.machine.shuffle(unit, all, Some(next), &wanted);
            }
            self.machine.shuffle(unit, all, None, &in_parts(form, unit, |lane| Some(at(lane).1)))
        };
        self.known.insert(key, vector);
        vector
    }
}

/// Stores structures all of whose fields have the size of a unit: the vectors of all lanes, in the order of the fields.
pub(in crate::spmd) fn store<M: Machine>(machine: &mut M, structures: Structures, fields: &[M::Vector]) {
    let Structures { lanes, stride, unit, .. } = structures;
    let form = structures.form(unit);
    for first in (0..lanes).step_by(form.lanes() as usize) {
        let mut register = |field: M::Vector| {
            if form.lanes() == lanes {
                return field;
            }
            let wanted: Vec<_> = (first..first + form.lanes()).map(Some).collect();
            machine.shuffle(unit, field, None, &wanted)
        };
        let registers = fields.iter().map(|field| vec![register(*field)]).collect();
        for (number, chunk) in chunks(machine, form, unit, registers).into_iter().enumerate() {
            for (part, at) in form.pieces(stride, first, number as u64).enumerate() {
                if form.piece == form.register {
                    machine.store(chunk, at);
                    continue;
                }
                let each = form.piece / unit;
                let wanted: Vec<_> = (0..each).map(|number| Some(part as u64 * each + number)).collect();
                let piece = machine.shuffle(unit, chunk, None, &wanted);
                machine.store(piece, at);
            }
        }
    }
}

/// The chunks of structures: of the registers of each of their fields.
fn chunks<M: Machine>(machine: &mut M, form: Form, unit: u64, fields: Vec<Vec<M::Vector>>) -> Vec<M::Vector> {
    let (n_fields, each) = (fields.len() as u64, form.piece / unit);
    let n_registers = fields[0].len();
    if n_fields == 1 || each == 1 {
        return (0..n_registers).flat_map(|register| fields.iter().map(move |field| field[register])).collect();
    }
    if n_fields % 2 == 0 {
        let mut mixed = |low: M::Vector, high: M::Vector, from: u64| {
            let of = |at: u64| Some((from + at) / 2 + if at.is_multiple_of(2) { 0 } else { each });
            machine.shuffle(unit, low, Some(high), &in_parts(form, unit, of))
        };
        let mut doubled = Vec::new();
        for pair in fields.chunks_exact(2) {
            let registers = pair[0].iter().zip(&pair[1]);
            doubled.push(registers.flat_map(|(low, high)| [0, each].map(|from| mixed(*low, *high, from))).collect());
        }
        return chunks(machine, form, 2 * unit, doubled);
    }
    let mut all = Vec::new();
    for register in 0..n_registers {
        // Each field's elements at their places in some chunk, where no two of them are at one place.
        let placed: Vec<_> = (0..n_fields)
            .zip(&fields)
            .map(|(field, registers)| {
                let of = |place: u64| (0..each).find(|lane| (lane * n_fields + field) % each == place);
                machine.shuffle(unit, registers[register], None, &in_parts(form, unit, of))
            })
            .collect();
        for chunk in 0..n_fields {
            let field_at = |place: u64| (chunk * each + place) % n_fields;
            let mut blended = placed[0];
            for (field, next) in placed.iter().enumerate().skip(1) {
                let of = |place: u64| Some(place + if field_at(place) == field as u64 { each } else { 0 });
                blended = machine.shuffle(unit, blended, Some(*next), &in_parts(form, unit, of));
            }
            all.push(blended);
        }
    }
    all
}
