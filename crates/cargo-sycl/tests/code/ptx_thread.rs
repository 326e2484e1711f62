//! Threads of a kernel of PTX, executed here one after the other: what a kernel does for every position of its grid, without a GPU.
//!
//! Knows the instructions of kernels that move 64-bit words, and those of calls, and panics at any other. Memory is not there: a load gives
//! the address that it is from, so that a store tells which word went where. Nor are variables, but they have addresses.

use std::collections::{BTreeMap, HashMap};

/// Where the two parameters are.
const PARAMETERS: [u64; 2] = [1 << 16, 1 << 17];
/// Bytes of captures, more than the kernels of the tests have.
const N_CAPTURES: usize = 256;
/// More instructions than a function without loops executes.
const MOST_STEPS: usize = 1000;
/// Where a kernel's variables are. Those of what it calls are below.
const STACK: u64 = 1 << 24;
/// Bytes that a call takes beside variables.
const CALL: u64 = 24;
/// The function that leaves a panic for the host. It is not executed.
const RECORD: &str = "__oxisycl_record_panic_numbers";

/// A launch over one dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Launch {
    /// The id of the first work-item.
    pub(crate) first: u64,
    pub(crate) n_items: u32,
    /// Threads of a group, and groups.
    pub(crate) n_threads: u64,
    pub(crate) n_groups: u64,
    /// Bytes of stack for calls.
    pub(crate) call_stack: u32,
}

/// What a thread stored: the address it loaded from, or what it computed, and the address it stored to, in the order of the stores.
pub(crate) type Moves = Vec<(u64, u64)>;

/// What the threads of a launch did.
#[derive(Default)]
pub(crate) struct Ran {
    pub(crate) moves: Moves,
    /// The arguments of each panic's record.
    pub(crate) panics: Vec<Vec<u64>>,
    /// Most bytes of stack that calls of a thread had.
    pub(crate) deepest: u64,
}

impl Launch {
    /// `oxisycl_types::DeviceLaunch` for this launch: begin, offset and end in three dimensions, record, print buffer, counts, stack.
    fn bytes(self) -> Vec<u8> {
        let Self { first, n_items, call_stack, .. } = self;
        let words = [0, 0, first, 0, 0, first, 1, 1, first + u64::from(n_items), 0, 0];
        let numbers = [1, 1, n_items, call_stack];
        words.iter().flat_map(|word| word.to_le_bytes()).chain(numbers.iter().flat_map(|n| n.to_le_bytes())).collect()
    }

    /// What all threads of the launch move by the kernel with that body.
    pub(crate) fn run(self, body: &str) -> Moves {
        self.run_with(body, &BTreeMap::new()).moves
    }

    /// What all threads of the launch do by the kernel with that body, which calls these functions. Each word of the captures is a number
    /// beyond every other word's range. As an address it tells which pointer it was, and as an extent it is large enough.
    pub(crate) fn run_with(self, body: &str, functions: &BTreeMap<String, String>) -> Ran {
        let captures = (1..=N_CAPTURES as u64 / 8).flat_map(|word| (word << 32).to_le_bytes()).collect();
        let parameters = [self.bytes(), captures];
        let kernel = Program::new(body);
        let functions = functions.iter().filter(|(_, body)| body.contains("\n{\n"));
        let functions = functions.map(|(name, body)| (name.as_str(), Program::new(body))).collect();
        let mut ran = Ran::default();
        for group in 0..self.n_groups {
            let mut memory = HashMap::new();
            for thread in 0..self.n_threads {
                let special = [("%ctaid.x", group), ("%ntid.x", self.n_threads), ("%tid.x", thread)];
                let mut rest =
                    Rest { parameters: &parameters, functions: &functions, memory: &mut memory, ran: &mut ran };
                let function =
                    Function { registers: special.into(), arguments: None, passed: HashMap::new(), stack: STACK };
                // Also a work-item that panicked has ended.
                let _ = function.run(&kernel, &mut rest);
            }
        }
        ran
    }
}

/// The instructions of a function, and where its labels are.
struct Program<'t> {
    instructions: Vec<&'t str>,
    labels: HashMap<&'t str, usize>,
    /// Bytes of its variables.
    variables: u64,
}

impl<'t> Program<'t> {
    fn new(body: &'t str) -> Self {
        let (_, code) = body.split_once("\n{\n").expect("a body");
        let (mut instructions, mut labels, mut variables) = (Vec::new(), HashMap::new(), 0);
        for line in code.lines().map(str::trim) {
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label, instructions.len());
            } else if line.starts_with(".local") {
                let size = line.split_once('[').and_then(|(_, size)| size.strip_suffix("];"));
                variables = size.and_then(|size| size.parse().ok()).expect("a size");
            } else if !line.is_empty() && !line.starts_with(['.', '/', '{', '}']) {
                instructions.push(line.trim_end_matches(';'));
            }
        }
        Self { instructions, labels, variables }
    }
}

/// What the functions of a thread share.
struct Rest<'r, 't> {
    parameters: &'r [Vec<u8>; 2],
    functions: &'r HashMap<&'t str, Program<'t>>,
    /// Of the group, by name.
    memory: &'r mut HashMap<&'t str, u64>,
    ran: &'r mut Ran,
}

/// A thread that has ended before its kernel returned.
struct Exited;

/// A call of a function.
struct Function<'t> {
    registers: HashMap<&'t str, u64>,
    /// None of a kernel, whose parameters are in memory.
    arguments: Option<Vec<u64>>,
    /// To a function that is called next, from one that was, and to the caller.
    passed: HashMap<&'t str, u64>,
    /// Where its variables are.
    stack: u64,
}

impl<'t> Function<'t> {
    /// Gives the result, if there is one.
    fn run(mut self, program: &Program<'t>, rest: &mut Rest<'_, 't>) -> Result<Option<u64>, Exited> {
        rest.ran.deepest = rest.ran.deepest.max(STACK - self.stack);
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
            let operands: Vec<&str> =
                operands.split(',').map(|operand| operand.trim().trim_matches(['(', ')', '{', '}'])).collect();
            match name {
                "ret" => return Ok(self.passed.get("func_retval0").copied()),
                "exit" => return Err(Exited),
                "bra" | "bra.uni" => at = program.labels[operands[0]],
                "call.uni" => self.call(&operands, rest)?,
                "ld.param.v2.b32" => {
                    let word = self.parameter(rest, self.address(operands[2]));
                    self.set(operands[0], word & u64::from(u32::MAX));
                    self.set(operands[1], word >> 32);
                }
                _ => self.step(name, &operands, rest),
            }
        }
        panic!("the function does not end");
    }

    fn call(&mut self, operands: &[&'t str], rest: &mut Rest<'_, 't>) -> Result<(), Exited> {
        let has_result = operands[0] == "retval0";
        let operands = &operands[usize::from(has_result)..];
        let arguments: Vec<u64> = operands[1..].iter().map(|name| self.passed[name]).collect();
        if operands[0] == RECORD {
            rest.ran.panics.push(arguments);
            return Ok(());
        }
        let program = &rest.functions[operands[0]];
        let function = Function {
            registers: HashMap::new(),
            arguments: Some(arguments),
            passed: HashMap::new(),
            stack: self.stack - program.variables - CALL,
        };
        if let Some(result) = function.run(program, rest)? {
            self.passed.insert("retval0", result);
        }
        Ok(())
    }

    fn step(&mut self, name: &str, operands: &[&'t str], rest: &mut Rest<'_, 't>) {
        let parts: Vec<&str> = name.split('.').collect();
        let (target, sources) = (operands[0], &operands[1..]);
        if parts[0] == "st" {
            let value = self.value(sources[0]);
            let place = inside(target);
            match parts[1] {
                "param" => _ = self.passed.insert(place, value),
                "shared" => _ = rest.memory.insert(place, value),
                "global" if parts[parts.len() - 1] == "b64" => rest.ran.moves.push((value, self.address(target))),
                _ => panic!("{name} {operands:?}: not a store of these kernels"),
            }
            return;
        }
        let bits = if parts[parts.len() - 1].ends_with("32") { 32 } else { 64 };
        let mask = u64::MAX >> (64 - bits);
        let value = |index: usize| self.value(sources[index]) & mask;
        let result = match parts[0] {
            "ld" if parts[1] == "param" => match (self.passed.get(inside(sources[0])), &self.arguments) {
                (Some(passed), _) => *passed,
                (None, Some(arguments)) => arguments[number_of_parameter(inside(sources[0])).expect("a parameter")],
                (None, None) => self.parameter(rest, self.address(sources[0])),
            },
            "ld" if parts[1] == "shared" => rest.memory[inside(sources[0])],
            "ld" if parts.len() == 2 => self.parameter(rest, self.address(sources[0])),
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
            _ => panic!("{name} {operands:?}: not an instruction of these kernels"),
        };
        self.set(target, result & mask);
    }

    fn set(&mut self, register: &'t str, value: u64) {
        self.registers.insert(register, value);
    }

    /// A register, a number, or the place of a parameter or of the variables.
    fn value(&self, operand: &str) -> u64 {
        if let Some(value) = self.registers.get(operand) {
            return *value;
        }
        if let Ok(number) = operand.parse::<i64>() {
            return number as u64;
        }
        if operand.starts_with("__local_depot") {
            return self.stack;
        }
        PARAMETERS[number_of_parameter(operand).unwrap_or_else(|| panic!("{operand} has no value"))]
    }

    /// `[register]`, `[register+number]`, and the same with a parameter.
    fn address(&self, operand: &str) -> u64 {
        let (base, offset) = inside(operand).split_once('+').unwrap_or((inside(operand), "0"));
        self.value(base).wrapping_add(self.value(offset))
    }

    /// Eight bytes of the kernel's parameters. Of the launch's last ones, which are a number of four bytes, those that there are.
    fn parameter(&self, rest: &Rest<'_, 't>, address: u64) -> u64 {
        let number = usize::from(address >= PARAMETERS[1]);
        let bytes = &rest.parameters[number][(address - PARAMETERS[number]) as usize..];
        let mut word = [0; 8];
        let n = bytes.len().min(8);
        word[..n].copy_from_slice(&bytes[..n]);
        u64::from_le_bytes(word)
    }
}

/// What stands in the brackets of an address.
fn inside(operand: &str) -> &str {
    operand.trim_start_matches('[').trim_end_matches(']')
}

fn number_of_parameter(name: &str) -> Option<usize> {
    name.rsplit_once("_param_")?.1.parse().ok()
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
