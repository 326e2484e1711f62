//! The variables that an address may be of, also where it has been in memory.
//!
//! The analysis is that of Andersen for one function whose calls are inlined. A variable has cells: ranges of bytes, each with an address that
//! was stored there. All other memory is one place. A variable whose address is stored there, or is passed to a function, is *escaped*: any
//! address loaded from that place may be the variable's.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::builtin_table;
use crate::llvm::{Opcode, TypeKind, Value, ValueKind};

/// What an address is relative to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Base<'c> {
    Null,
    Variable(Value<'c>),
    Other,
}

/// An address as a base and its distance from there in bytes. The distance is `None` if it is not constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Address<'c> {
    pub(super) base: Base<'c>,
    distance: Option<u64>,
}

const OTHER: Address<'static> = Address { base: Base::Other, distance: None };

/// Bytes of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Bytes {
    /// The first byte. Any if it is not constant.
    start: Option<u64>,
    /// The number of bytes. `None` if it is not constant.
    size: Option<u64>,
}

impl Bytes {
    const ANY: Self = Self { start: None, size: None };

    fn overlaps(self, other: Self) -> bool {
        let (Some(first), Some(second)) = (self.start, other.start) else { return true };
        let is_behind =
            |start: u64, of: u64, size: Option<u64>| size.is_some_and(|size| start.wrapping_sub(of) >= size);
        if first <= second { !is_behind(second, first, self.size) } else { !is_behind(first, second, other.size) }
    }
}

/// Rounds until distances are given up, so that a pointer that is moved on in memory does not make cells without end.
const N_EXACT_ROUNDS: usize = 4;

/// What the memory of a function's variables may hold.
#[derive(Default)]
pub(super) struct Addresses<'c> {
    cells: FxHashMap<Value<'c>, FxHashSet<(Bytes, Address<'c>)>>,
    /// What each load of the function may give. A load may be a part of its own address, as on a walk along a list.
    loads: FxHashMap<Value<'c>, FxHashSet<Address<'c>>>,
    escaped: FxHashSet<Value<'c>>,
    is_changed: bool,
    is_exact: bool,
}

impl<'c> Addresses<'c> {
    /// Finds what the variables of a function may hold, with the function's instructions.
    pub(super) fn new(instructions: &[Value<'c>]) -> Self {
        let loads = instructions.iter().filter(|instruction| loads(**instruction));
        let mut found = Self { loads: loads.map(|load| (*load, FxHashSet::default())).collect(), ..Self::default() };
        let mut rounds = 0;
        loop {
            found.is_changed = false;
            found.is_exact = rounds < N_EXACT_ROUNDS;
            for instruction in instructions {
                found.run(*instruction);
            }
            if !found.is_changed {
                return found;
            }
            rounds += 1;
        }
    }

    /// The addresses that a value may be, each once. Empty for a value of memory that was never written.
    pub(super) fn of(&self, value: Value<'c>) -> FxHashSet<Address<'c>> {
        let mut found = FxHashSet::default();
        let mut seen = FxHashSet::default();
        // A value, and how far it is moved after that.
        let mut queue = vec![(value, Some(0u64))];
        while let Some((value, moved)) = queue.pop() {
            if !seen.insert((value, moved)) {
                continue;
            }
            match value.opcode() {
                Some(Opcode::ALLOCA) => _ = found.insert(Address { base: Base::Variable(value), distance: moved }),
                Some(Opcode::GET_ELEMENT_PTR) => {
                    let step = constant_step(value);
                    queue.push((value.operand(0), moved.zip(step).map(|(moved, step)| moved.wrapping_add(step))));
                }
                Some(Opcode::ADDRESS_SPACE_CAST | Opcode::BITCAST | Opcode::FREEZE) => {
                    queue.push((value.operand(0), moved));
                }
                // A loop may move an address any number of times.
                Some(Opcode::PHI) => queue.extend(value.operands().into_iter().map(|operand| (operand, None))),
                Some(Opcode::SELECT) => queue.extend([(value.operand(1), moved), (value.operand(2), moved)]),
                Some(
                    Opcode::EXTRACT_VALUE
                    | Opcode::INSERT_VALUE
                    | Opcode::EXTRACT_ELEMENT
                    | Opcode::INSERT_ELEMENT
                    | Opcode::SHUFFLE_VECTOR,
                ) => queue.extend(value.operands().into_iter().map(|operand| (operand, None))),
                _ if loads(value) => match self.loads.get(&value) {
                    Some(loaded) => found.extend(loaded.iter().map(|&address| {
                        let distance = address.distance.zip(moved);
                        Address { distance: distance.map(|(distance, moved)| distance.wrapping_add(moved)), ..address }
                    })),
                    None => found.extend(self.elsewhere()),
                },
                Some(Opcode::CALL) if is_mask(value) => queue.push((value.operand(0), None)),
                Some(Opcode::CALL) if may_return_address(value) => found.extend(self.elsewhere()),
                _ if is_null(value) && moved == Some(0) => {
                    found.insert(Address { base: Base::Null, distance: moved });
                }
                _ if value.kind() == ValueKind::Undefined => {}
                _ => _ = found.insert(OTHER),
            }
        }
        found
    }

    /// The bases that a value may have, each once.
    pub(super) fn bases(&self, value: Value<'c>) -> FxHashSet<Base<'c>> {
        // A place behind null is any number.
        let base = |address: Address<'c>| {
            if address == NULL || address.base != Base::Null { address.base } else { Base::Other }
        };
        self.of(value).into_iter().map(base).collect()
    }

    /// Takes account of what an instruction reads and writes.
    fn run(&mut self, instruction: Value<'c>) {
        if loads(instruction) {
            self.load(instruction);
        }
        match instruction.opcode() {
            Some(Opcode::STORE) => {
                let value = instruction.operand(0);
                self.store(instruction.operand(1), size_of(value), value);
            }
            Some(Opcode::ATOMIC_RMW) => {
                let value = instruction.operand(1);
                self.store(instruction.operand(0), size_of(value), value);
            }
            Some(Opcode::ATOMIC_CMP_XCHG) => {
                let value = instruction.operand(2);
                self.store(instruction.operand(0), size_of(value), value);
            }
            Some(Opcode::CALL) => self.call(instruction),
            _ => {}
        }
    }

    fn call(&mut self, call: Value<'c>) {
        let name = call.callee().map(Value::name).unwrap_or_default();
        if name.starts_with("llvm.memcpy.") || name.starts_with("llvm.memmove.") {
            let [target, source, size] = [0, 1, 2].map(|index| call.operand(index));
            return self.copy(target, source, size.integer());
        }
        if KEEP_NOTHING.iter().any(|prefix| name.starts_with(prefix)) || ends(call) {
            return;
        }
        for argument in call.arguments() {
            for address in self.of(argument) {
                self.escape(address.base);
            }
        }
    }

    fn load(&mut self, load: Value<'c>) {
        for mut address in self.loaded(load.operand(0), size_of(load)) {
            if !self.is_exact {
                address.distance = None;
            }
            self.is_changed |= self.loads.entry(load).or_default().insert(address);
        }
    }

    fn store(&mut self, place: Value<'c>, size: Option<u64>, value: Value<'c>) {
        let held = self.of(value);
        for place in self.of(place) {
            let bytes = Bytes { start: place.distance, size };
            for address in &held {
                self.add(place.base, bytes, *address);
            }
        }
    }

    fn copy(&mut self, target: Value<'c>, source: Value<'c>, size: Option<u64>) {
        let mut held = Vec::new();
        for place in self.of(source) {
            let Base::Variable(variable) = place.base else {
                held.push((Bytes { start: Some(0), size }, OTHER));
                if !is_captured(source) {
                    held.extend(self.elsewhere().map(|address| (Bytes::ANY, address)));
                }
                continue;
            };
            let copied = Bytes { start: place.distance, size };
            for (bytes, address) in self.held(variable) {
                if bytes.overlaps(copied) {
                    let start = bytes.start.zip(place.distance).map(|(start, of)| start.wrapping_sub(of));
                    held.push((Bytes { start, ..bytes }, address));
                }
            }
        }
        for place in self.of(target) {
            for (bytes, address) in &held {
                let start = bytes.start.zip(place.distance).map(|(start, of)| start.wrapping_add(of));
                self.add(place.base, Bytes { start, ..*bytes }, *address);
            }
        }
    }

    /// Adds an address that is stored in a variable, or elsewhere.
    fn add(&mut self, place: Base<'c>, mut bytes: Bytes, mut address: Address<'c>) {
        let Base::Variable(variable) = place else { return self.escape(address.base) };
        if !self.is_exact {
            address.distance = None;
            bytes.start = None;
        }
        self.is_changed |= self.cells.entry(variable).or_default().insert((bytes, address));
        if self.escaped.contains(&variable) {
            self.escape(address.base);
        }
    }

    /// Lets all other code know the address of a variable, and of those whose addresses it holds.
    fn escape(&mut self, base: Base<'c>) {
        let mut queue = vec![base];
        while let Some(base) = queue.pop() {
            let Base::Variable(variable) = base else { continue };
            if self.escaped.insert(variable) {
                self.is_changed = true;
                queue.extend(self.cells.get(&variable).into_iter().flatten().map(|(_, address)| address.base));
            }
        }
    }

    /// The addresses that may be at a place.
    fn loaded(&self, place: Value<'c>, size: Option<u64>) -> FxHashSet<Address<'c>> {
        let mut found = FxHashSet::default();
        for from in self.of(place) {
            let Base::Variable(variable) = from.base else {
                found.insert(OTHER);
                if !is_captured(place) {
                    found.extend(self.elsewhere());
                }
                continue;
            };
            let read = Bytes { start: from.distance, size };
            found.extend(self.held(variable).filter(|(bytes, _)| bytes.overlaps(read)).map(|(_, address)| address));
        }
        found
    }

    /// What a variable holds, and where.
    fn held(&self, variable: Value<'c>) -> impl Iterator<Item = (Bytes, Address<'c>)> {
        let is_escaped = self.escaped.contains(&variable);
        let unknown = is_escaped.then(|| self.elsewhere().map(|address| (Bytes::ANY, address)));
        self.cells.get(&variable).into_iter().flatten().copied().chain(unknown.into_iter().flatten())
    }

    /// What memory may hold that is of no variable, or of one that other code knows.
    fn elsewhere(&self) -> impl Iterator<Item = Address<'c>> {
        let escaped = self.escaped.iter().map(|variable| Address { base: Base::Variable(*variable), distance: None });
        escaped.chain([OTHER])
    }
}

/// Whether an instruction has what is in memory as its result.
fn loads(instruction: Value<'_>) -> bool {
    matches!(instruction.opcode(), Some(Opcode::LOAD | Opcode::ATOMIC_RMW | Opcode::ATOMIC_CMP_XCHG))
}

/// Whether an instruction clears bits of an address.
pub(super) fn is_mask(instruction: Value<'_>) -> bool {
    instruction.is(Opcode::CALL)
        && instruction.callee().is_some_and(|callee| callee.name().starts_with("llvm.ptrmask."))
}

/// Whether the result of a call may be an address that the function was given, or hold one.
fn may_return_address(call: Value<'_>) -> bool {
    match call.value_type().kind() {
        TypeKind::Pointer(_) => true,
        TypeKind::Struct | TypeKind::Array | TypeKind::Vector => {
            let name = call.callee().map(Value::name).unwrap_or_default();
            !KEEP_NOTHING.iter().any(|prefix| name.starts_with(prefix))
        }
        _ => false,
    }
}

/// How the names of functions begin that keep no address, and put none into a variable: LLVM's, builtins, and the device library's.
const KEEP_NOTHING: [&str; 3] = ["llvm.", builtin_table::PREFIX, DEVICE_LIBRARY];

/// How the names of the device library's functions begin. None of them has a barrier.
pub(crate) const DEVICE_LIBRARY: &str = "__oxisycl_";

/// Whether no code runs after the block of a call.
fn ends(call: Value<'_>) -> bool {
    call.block().end().is(Opcode::UNREACHABLE)
}

const NULL: Address<'static> = Address { base: Base::Null, distance: Some(0) };

fn is_null(value: Value<'_>) -> bool {
    value.kind() == ValueKind::Null || value.integer() == Some(0)
}

/// How far `getelementptr` moves an address, in bytes, if that is a constant.
fn constant_step(instruction: Value<'_>) -> Option<u64> {
    let is_of_bytes = instruction.gep_type().kind() == TypeKind::Integer(8) && instruction.operands().len() == 2;
    let index = instruction.operand(1);
    index.integer().filter(|_| is_of_bytes && index.value_type().kind() == TypeKind::Integer(64))
}

/// The bytes that a value takes in memory. `None` for what is not a plain number or an address.
fn size_of(value: Value<'_>) -> Option<u64> {
    match value.value_type().kind() {
        TypeKind::Half | TypeKind::BFloat => Some(2),
        TypeKind::Float => Some(4),
        TypeKind::Double | TypeKind::Pointer(_) => Some(8),
        TypeKind::Integer(bits) => Some(u64::from(bits.div_ceil(8))),
        _ => None,
    }
}

/// Whether the memory at an address existed before the launch, and the kernel never writes it.
fn is_captured(address: Value<'_>) -> bool {
    let mut of = address;
    while of.is(Opcode::GET_ELEMENT_PTR) || of.is(Opcode::ADDRESS_SPACE_CAST) || of.is(Opcode::BITCAST) {
        of = of.operand(0);
    }
    of.kind() == ValueKind::Argument
}
