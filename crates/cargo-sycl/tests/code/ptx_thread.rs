//! Threads of a kernel of PTX, executed here one after the other: what a kernel does for every position of its grid, without a GPU.
//!
//! Knows the instructions of kernels that move 64-bit words, and panics at any other. Memory is not there: a load gives the address that
//! it is from, so that a store tells which word went where.

use std::collections::HashMap;

/// Where the two parameters are.
const PARAMETERS: [u64; 2] = [1 << 16, 1 << 17];
/// Bytes of captures, more than the kernels of the tests have.
const N_CAPTURES: usize = 256;
/// More instructions than a kernel without loops executes.
const MOST_STEPS: usize = 1000;

/// A launch over one dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Launch {
    /// The id of the first work-item.
    pub(crate) first: u64,
    pub(crate) n_items: u32,
    /// Threads of a group, and groups.
    pub(crate) n_threads: u64,
    pub(crate) n_groups: u64,
}

/// What a thread stored: the address it loaded from, and the address it stored to, in the order of the stores.
pub(crate) type Moves = Vec<(u64, u64)>;

impl Launch {
    /// `oxisycl_types::DeviceLaunch` for this launch: begin, offset and end in three dimensions, record, print buffer, counts.
    fn bytes(self) -> Vec<u8> {
        let Self { first, n_items, .. } = self;
        let words = [0, 0, first, 0, 0, first, 1, 1, first + u64::from(n_items), 0, 0];
        let counts = [1, 1, n_items];
        words.iter().flat_map(|word| word.to_le_bytes()).chain(counts.iter().flat_map(|n| n.to_le_bytes())).collect()
    }

    /// What all threads of the launch move by the kernel with that body. Each word of the captures is a number beyond every other word's
    /// range: as an address it tells which pointer it was, as an extent it is large enough.
    pub(crate) fn run(self, body: &str) -> Moves {
        let captures = (1..=N_CAPTURES as u64 / 8).flat_map(|word| (word << 32).to_le_bytes()).collect();
        let parameters = [self.bytes(), captures];
        let program = Program::new(body);
        let mut moves = Moves::new();
        for group in 0..self.n_groups {
            for thread in 0..self.n_threads {
                let special = [("%ctaid.x", group), ("%ntid.x", self.n_threads), ("%tid.x", thread)];
                Thread { registers: special.into(), parameters: &parameters, moves: &mut moves }.run(&program);
            }
        }
        moves
    }
}

/// The instructions of a kernel, and where its labels are.
struct Program<'t> {
    instructions: Vec<&'t str>,
    labels: HashMap<&'t str, usize>,
}

impl<'t> Program<'t> {
    fn new(body: &'t str) -> Self {
        let (_, code) = body.split_once("\n{\n").expect("a body");
        let (mut instructions, mut labels) = (Vec::new(), HashMap::new());
        for line in code.lines().map(str::trim) {
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label, instructions.len());
            } else if !line.is_empty() && !line.starts_with('.') && !line.starts_with("//") {
                instructions.push(line.trim_end_matches(';'));
            }
        }
        Self { instructions, labels }
    }
}

struct Thread<'r, 't> {
    registers: HashMap<&'t str, u64>,
    parameters: &'r [Vec<u8>; 2],
    moves: &'r mut Moves,
}

impl<'t> Thread<'_, 't> {
    fn run(mut self, program: &Program<'t>) {
        let mut at = 0;
        for _ in 0..MOST_STEPS {
            let mut line = program.instructions[at];
            at += 1;
            if let Some(guarded) = line.strip_prefix('@') {
                let (guard, rest) = guarded.split_once(char::is_whitespace).expect("an instruction after a guard");
                line = rest.trim();
                if self.value(guard.trim_start_matches('!')) == u64::from(guard.starts_with('!')) {
                    continue;
                }
            }
            let (name, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
            match name {
                "ret" => return,
                "bra" | "bra.uni" => at = program.labels[operands[0]],
                _ => self.step(name, &operands),
            }
        }
        panic!("the kernel does not end");
    }

    fn step(&mut self, name: &str, operands: &[&'t str]) {
        let parts: Vec<&str> = name.split('.').collect();
        let (target, sources) = (operands[0], &operands[1..]);
        if parts[0] == "st" {
            assert_eq!((parts[1], parts[parts.len() - 1]), ("global", "b64"), "{name}");
            return self.moves.push((self.value(sources[0]), self.address(target)));
        }
        let bits = if parts[parts.len() - 1].ends_with("32") { 32 } else { 64 };
        let mask = u64::MAX >> (64 - bits);
        let value = |index: usize| self.value(sources[index]) & mask;
        let result = match parts[0] {
            "ld" if parts[1] == "param" => self.parameter(self.address(sources[0])),
            "ld" if parts[1] == "global" && bits == 64 => self.address(sources[0]),
            "mov" | "cvta" => self.value(sources[0]),
            // The type of the source is last.
            "cvt" => value(0),
            "add" => value(0).wrapping_add(value(1)),
            "sub" => value(0).wrapping_sub(value(1)),
            "shl" => value(0) << self.value(sources[1]),
            "mul" if parts[1] == "wide" && parts[2] == "u32" => return self.set(target, value(0) * value(1)),
            "mul" if parts[1] == "lo" => value(0).wrapping_mul(value(1)),
            "mad" if parts[1] == "lo" => value(0).wrapping_mul(value(1)).wrapping_add(value(2)),
            "mad" if parts[1] == "wide" && parts[2] == "u32" => {
                return self.set(target, (value(0) * value(1)).wrapping_add(self.value(sources[2])));
            }
            "min" if parts[1].starts_with('u') => value(0).min(value(1)),
            "max" if parts[1].starts_with('u') => value(0).max(value(1)),
            "and" => value(0) & value(1),
            "or" => value(0) | value(1),
            "not" if parts[1] == "pred" => 1 - value(0),
            "setp" => u64::from(compare(parts[1], parts[2], value(0), value(1))),
            _ => panic!("{name} {operands:?}: not an instruction of a kernel that only moves words"),
        };
        self.set(target, result & mask);
    }

    fn set(&mut self, register: &'t str, value: u64) {
        self.registers.insert(register, value);
    }

    /// A register, a number, or the place of a parameter.
    fn value(&self, operand: &str) -> u64 {
        if let Some(value) = self.registers.get(operand) {
            return *value;
        }
        if let Ok(number) = operand.parse::<i64>() {
            return number as u64;
        }
        let parameter = (0..2).find(|number| operand.ends_with(&format!("_param_{number}")));
        PARAMETERS[parameter.unwrap_or_else(|| panic!("{operand} has no value"))]
    }

    /// `[register]`, `[register+number]`, and the same with a parameter.
    fn address(&self, operand: &str) -> u64 {
        let inner = operand.trim_start_matches('[').trim_end_matches(']');
        let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
        self.value(base).wrapping_add(self.value(offset))
    }

    /// Eight bytes of the parameters. Of the launch's last ones, which are a number of four bytes, those that there are.
    fn parameter(&self, address: u64) -> u64 {
        let number = usize::from(address >= PARAMETERS[1]);
        let bytes = &self.parameters[number][(address - PARAMETERS[number]) as usize..];
        let mut word = [0; 8];
        let n = bytes.len().min(8);
        word[..n].copy_from_slice(&bytes[..n]);
        u64::from_le_bytes(word)
    }
}

fn compare(how: &str, kind: &str, left: u64, right: u64) -> bool {
    let is_signed = kind.starts_with('s');
    assert!(!is_signed || matches!(how, "eq" | "ne"), "setp.{how}.{kind}: not known here");
    match how {
        "eq" => left == right,
        "ne" => left != right,
        "lt" => left < right,
        "le" => left <= right,
        "gt" => left > right,
        "ge" => left >= right,
        _ => panic!("setp.{how}.{kind}: not known here"),
    }
}
