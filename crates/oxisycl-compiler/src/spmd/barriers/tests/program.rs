//! Random programs: what a work-item does, with barriers that all work-items come to.
//!
//! *Flow* is the same for all work-items, and barriers are in it. Its conditions are made of variables that get the same values alone. Between two
//! parts of it is code with branches and loops in which work-items part. A work-item reads what others have written behind a barrier alone.

use super::operations::{OPERATIONS, Type};
use crate::random::Random;

/// Where the numbers of variables of one type begin. First are those that are the same for all items.
///
/// Counters and limits of flow follow, then variables that differ, then counters of loops.
const SAME: usize = 0;
const COUNTERS: usize = 4;
const LIMITS: usize = 12;
const OTHERS: usize = 20;
const OWN_COUNTERS: usize = 24;
/// The variables of one type.
pub(super) const VARIABLES: usize = 32;
/// The sizes of what items have: words that they read, places that they write, and bytes of each part of the memory of their group.
pub(super) const INPUT: u64 = 64;
pub(super) const OUTPUT: usize = 160;
pub(super) const SITE: u64 = 4096;
/// Numbers that all items have.
pub(super) const CAPTURES: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Variable {
    pub(super) of: Type,
    pub(super) number: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Variable(Variable),
    Constant(u64),
    /// Of the position: the number in the group, x, y, or z.
    Place(usize),
    Capture(u64),
}

/// A variable of several elements, of each item.
#[derive(Clone, Copy)]
pub(super) struct Array {
    pub(super) of: Type,
    pub(super) length: u64,
    pub(super) alignment: u64,
    /// Whether all items have the same in it.
    is_same: bool,
}

/// Arrays whose addresses are in a table.
pub(super) const IN_TABLE: usize = 2;

/// Where items leave what others read: memory that captures lead to, or that they ask for.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub(super) of: Type,
    pub(super) is_asked_for: bool,
}

pub(super) enum Statement {
    Compute {
        to: Variable,
        operation: usize,
        from: [Operand; 3],
    },
    Input {
        to: Variable,
        index: Operand,
    },
    Load {
        to: Variable,
        array: usize,
        index: Operand,
    },
    Store {
        array: usize,
        index: Operand,
        value: Operand,
    },
    /// Has a place of the table lead to another array.
    Point {
        place: Operand,
        array: usize,
    },
    LoadByTable {
        to: Variable,
        place: Operand,
        index: Operand,
    },
    StoreByTable {
        place: Operand,
        index: Operand,
        value: Operand,
    },
    /// Passes an array's address to a function, which adds to the first element and returns what it was.
    Touch {
        to: Variable,
        array: usize,
        value: Operand,
    },
    /// The last bits of an address, which are 0.
    Bits {
        to: Variable,
        array: usize,
    },
    Output {
        number: usize,
        of: Type,
        value: Operand,
    },
    Write {
        site: usize,
        value: Operand,
    },
    Read {
        site: usize,
        to: Variable,
        index: Operand,
    },
    /// The first item writes the place behind those of all items, from the first and the last one.
    Lead {
        site: usize,
    },
    ReadLed {
        site: usize,
        to: Variable,
    },
    If {
        condition: Operand,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    /// Ends early where a condition holds at the end of a round.
    Loop {
        counter: Variable,
        times: Operand,
        mask: u64,
        body: Vec<Statement>,
        until: Operand,
    },
    /// One item fails, or all do.
    Fail {
        item: Option<u64>,
        condition: Operand,
    },
}

pub(super) enum Flow {
    Code(Vec<Statement>),
    Barrier,
    Choice { on: Operand, arms: Vec<Vec<Flow>> },
    Loop { counter: Variable, limit: Variable, times: Operand, mask: u64, is_tested_first: bool, body: Vec<Flow> },
    Return { condition: Operand },
}

pub(super) struct Program {
    pub(super) flow: Vec<Flow>,
    pub(super) arrays: Vec<Array>,
    pub(super) sites: Vec<Site>,
}

/// Makes the program of a seed.
pub(super) fn program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let mut array = |of: Type, is_same: bool| Array {
        of,
        length: [2, 3, 4, 5][random.below(4) as usize],
        alignment: [of.size(), of.size(), 16, 64][random.below(4) as usize],
        is_same,
    };
    let mut arrays = vec![array(Type::I32, false), array(Type::I32, false)];
    arrays[1].length = arrays[0].length;
    arrays.extend(Type::OF_MEMORY.map(|of| array(of, false)));
    arrays.extend(Type::OF_MEMORY.map(|of| array(of, true)));
    let [n_same, n_others] = [1 + random.below(2), 1 + random.below(3)];
    let can_fail = random.below(3) == 0;
    let left = 4 + random.below(12);
    let mut writer = Writer {
        random,
        n_same,
        n_others,
        arrays,
        sites: Vec::new(),
        open: Vec::new(),
        n_counters: 0,
        n_own_counters: 0,
        outputs: 0,
        left,
        can_fail,
        calls: seed % 4 == 1,
        depth: 0,
    };
    let mut flow = vec![Flow::Code(writer.begin())];
    flow.extend(writer.flow(false));
    flow.extend(writer.exchange(false));
    flow.push(Flow::Code(writer.end()));
    Program { flow, arrays: writer.arrays, sites: writer.sites }
}

struct Writer {
    random: Random,
    n_same: u64,
    n_others: u64,
    arrays: Vec<Array>,
    sites: Vec<Site>,
    /// The sites that can be read.
    open: Vec<usize>,
    n_counters: usize,
    n_own_counters: usize,
    outputs: usize,
    /// The parts of flow that may follow.
    left: u64,
    can_fail: bool,
    /// Whether it passes addresses of variables to functions, which has no lanes.
    calls: bool,
    depth: u64,
}

impl Writer {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn of(&mut self) -> Type {
        Type::ALL[self.below(5) as usize]
    }

    /// A variable to write.
    fn to(&mut self, of: Type, is_same: bool) -> Variable {
        let (first, count) = if is_same { (SAME, self.n_same) } else { (OTHERS, self.n_others) };
        Variable { of, number: first + self.below(count) as usize }
    }

    fn operand(&mut self, of: Type, is_same: bool) -> Operand {
        match self.below(10) {
            0 => Operand::Constant(self.constant(of)),
            1 | 2 if of == Type::I64 => Operand::Capture(self.below(CAPTURES)),
            3..=5 if of == Type::I64 && !is_same => Operand::Place(self.below(4) as usize),
            1 | 2 if of == Type::I32 && self.n_counters > 0 => {
                let number = COUNTERS + self.below(self.n_counters as u64) as usize;
                Operand::Variable(Variable { of, number })
            }
            6 | 7 => Operand::Variable(self.to(of, true)),
            _ => Operand::Variable(self.to(of, is_same)),
        }
    }

    fn constant(&mut self, of: Type) -> u64 {
        let number = [0, 1, 2, 3, 5, 7, 100, 255][self.below(8) as usize];
        of.value(if of == Type::F32 { (number as f32 * 0.75).to_bits().into() } else { number })
    }

    fn compute(&mut self, to: Variable, is_same: bool) -> Statement {
        let fits: Vec<usize> = (0..OPERATIONS.len()).filter(|number| OPERATIONS[*number].0 == to.of).collect();
        let operation = fits[self.below(fits.len() as u64) as usize];
        let mut from = [Operand::Constant(0); 3];
        for (from, of) in from.iter_mut().zip(OPERATIONS[operation].1) {
            *from = self.operand(*of, is_same);
        }
        Statement::Compute { to, operation, from }
    }

    /// The first values of variables.
    fn begin(&mut self) -> Vec<Statement> {
        let mut code = Vec::new();
        for of in [Type::I64, Type::I32, Type::I8, Type::F32, Type::I1] {
            for number in (SAME..SAME + self.n_same as usize).chain(OTHERS..OTHERS + self.n_others as usize) {
                code.push(self.compute(Variable { of, number }, number < OTHERS));
            }
        }
        for array in 0..self.arrays.len() {
            let Array { of, length, is_same, .. } = self.arrays[array];
            for index in 0..length {
                let value = self.operand(of, is_same);
                code.push(Statement::Store { array, index: Operand::Constant(index), value });
            }
        }
        for place in 0..IN_TABLE as u64 {
            let array = self.below(IN_TABLE as u64) as usize;
            code.push(Statement::Point { place: Operand::Constant(place), array });
        }
        code
    }

    /// Shows values of variables and of arrays.
    fn end(&mut self) -> Vec<Statement> {
        let mut code = Vec::new();
        for of in Type::ALL {
            for number in (SAME..SAME + self.n_same as usize).chain(OTHERS..OTHERS + self.n_others as usize) {
                if self.below(3) > 0 {
                    code.push(self.output(of, Operand::Variable(Variable { of, number })));
                }
            }
        }
        for array in 0..self.arrays.len() {
            let Array { of, length, .. } = self.arrays[array];
            let to = self.to(of, false);
            for index in 0..if self.below(2) == 0 { length } else { 0 } {
                let index = Operand::Constant(index);
                code.push(match array {
                    // What the table leads to may be known by it alone.
                    place if place < IN_TABLE => {
                        Statement::LoadByTable { to, place: Operand::Constant(place as u64), index }
                    }
                    _ => Statement::Load { to, array, index },
                });
                code.push(self.output(of, Operand::Variable(to)));
            }
        }
        code
    }

    fn output(&mut self, of: Type, value: Operand) -> Statement {
        self.outputs += 1;
        Statement::Output { number: self.outputs - 1, of, value }
    }

    fn flow(&mut self, is_in_loop: bool) -> Vec<Flow> {
        let mut flow = Vec::new();
        self.depth += 1;
        let n_open = self.open.len();
        for _ in 0..1 + self.below(4) {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            match self.below(if self.depth < 4 { 16 } else { 9 }) {
                0..=2 => flow.push(Flow::Code(self.code(true))),
                3..=5 => flow.push(Flow::Barrier),
                6..=7 => flow.extend(self.exchange(is_in_loop)),
                8 if self.below(3) == 0 => flow.push(Flow::Return { condition: self.operand(Type::I1, true) }),
                8..=11 => {
                    let on = self.operand(Type::I32, true);
                    let mut arms = Vec::new();
                    for _ in 0..2 + self.below(2) {
                        arms.push(self.flow(is_in_loop));
                    }
                    flow.push(Flow::Choice { on, arms });
                }
                _ if self.n_counters == LIMITS - COUNTERS => flow.push(Flow::Barrier),
                _ => {
                    let number = COUNTERS + self.n_counters;
                    let times = Operand::Capture(self.below(CAPTURES));
                    self.n_counters += 1;
                    let mut body = self.flow(true);
                    if self.below(4) > 0 {
                        let at = self.below(body.len() as u64 + 1) as usize;
                        body.insert(at, Flow::Barrier);
                        let code = self.code(true);
                        body.insert(at, Flow::Code(code));
                        body.push(Flow::Code(self.code(true)));
                    }
                    let [counter, limit] =
                        [number, number + LIMITS - COUNTERS].map(|number| Variable { of: Type::I32, number });
                    let (mask, is_tested_first) = ([1, 3, 3][self.below(3) as usize], self.below(3) > 0);
                    flow.push(Flow::Loop { counter, limit, times, mask, is_tested_first, body });
                }
            }
            if self.below(2) == 0 {
                flow.push(Flow::Code(self.code(true)));
            }
        }
        if is_in_loop && self.open.len() > n_open {
            flow.push(Flow::Barrier);
        }
        // What opened them may be in one arm only.
        self.open.truncate(n_open);
        self.depth -= 1;
        flow
    }

    /// Items write what others read behind a barrier.
    fn exchange(&mut self, is_in_loop: bool) -> Vec<Flow> {
        if self.sites.len() == 8 {
            return vec![Flow::Barrier];
        }
        let (of, site) = (Type::OF_MEMORY[self.below(4) as usize], self.sites.len());
        let is_asked_for = self.below(2) == 0;
        self.sites.push(Site { of, is_asked_for });
        let value = self.operand(of, false);
        let mut first = vec![Statement::Write { site, value }];
        first.extend(self.code(true));
        let mut flow = vec![Flow::Code(first), Flow::Barrier];
        self.open.push(site);
        let mut then = self.code(true);
        let index = self.operand(Type::I64, false);
        then.push(Statement::Read { site, to: self.to(of, false), index });
        if self.below(2) == 0 {
            then.push(Statement::Lead { site });
            flow.extend([Flow::Code(then), Flow::Barrier]);
            let is_same = self.sites[site].is_asked_for && self.below(2) == 0;
            then = vec![Statement::ReadLed { site, to: self.to(of, is_same) }];
            then.extend(self.code(true));
        }
        flow.push(Flow::Code(then));
        // Its end closes it in a loop, behind a barrier.
        if !is_in_loop && self.below(2) == 0 {
            self.open.pop();
        }
        flow
    }

    fn code(&mut self, is_of_all: bool) -> Vec<Statement> {
        (0..self.below(9)).map(|_| self.statement(is_of_all)).collect()
    }

    fn statement(&mut self, is_of_all: bool) -> Statement {
        let is_same = is_of_all && self.below(3) == 0;
        let of = self.of();
        let to = self.to(of, is_same);
        let in_memory = Type::OF_MEMORY[self.below(4) as usize];
        let index = self.operand(Type::I32, is_same);
        let in_table = self.below(IN_TABLE as u64) as usize;
        let fits = |array: &usize| *array >= IN_TABLE;
        match self.below(24) {
            0 | 1 if !is_same => Statement::Input { to, index: self.operand(Type::I64, false) },
            2 | 3 => {
                let array = (0..self.arrays.len()).filter(fits).find(|array| {
                    let array = &self.arrays[*array];
                    array.of == in_memory && array.is_same == is_same
                });
                let to = self.to(in_memory, is_same);
                Statement::Load { to, array: array.expect("there is one"), index }
            }
            4 | 5 => {
                let array = (0..self.arrays.len()).filter(fits).find(|array| {
                    let array = &self.arrays[*array];
                    array.of == in_memory && array.is_same == is_same
                });
                let value = self.operand(in_memory, is_same);
                Statement::Store { array: array.expect("there is one"), index, value }
            }
            6 if !is_same && self.calls => Statement::Point { place: index, array: in_table },
            7 if !is_same => {
                let place = self.operand(Type::I32, false);
                Statement::LoadByTable { to: self.to(Type::I32, false), place, index }
            }
            8 if !is_same => {
                let [place, value] = [(); 2].map(|()| self.operand(Type::I32, false));
                Statement::StoreByTable { place, index, value }
            }
            9 if !is_same && self.calls => {
                let value = self.operand(Type::I32, false);
                Statement::Touch { to: self.to(Type::I32, false), array: in_table, value }
            }
            10 if !is_same => {
                let array = IN_TABLE + self.below(Type::OF_MEMORY.len() as u64) as usize;
                Statement::Bits { to: self.to(Type::I32, false), array }
            }
            11 if self.outputs < OUTPUT / 3 => {
                let value = self.operand(of, is_same);
                self.output(of, value)
            }
            12 | 13 if !self.open.is_empty() => {
                let number = self.below(self.open.len() as u64) as usize;
                let site = self.open[number];
                let Site { of, is_asked_for } = self.sites[site];
                let is_same = is_same && is_asked_for;
                Statement::Read { site, to: self.to(of, is_same), index: self.operand(Type::I64, is_same) }
            }
            14 | 15 if self.depth < 6 => {
                self.depth += 1;
                let condition = self.operand(Type::I1, false);
                let (then, otherwise) = (self.code(false), self.code(false));
                self.depth -= 1;
                Statement::If { condition, then, otherwise }
            }
            16 if self.depth < 6 && self.n_own_counters < VARIABLES - OWN_COUNTERS => {
                let counter = Variable { of: Type::I32, number: OWN_COUNTERS + self.n_own_counters };
                self.n_own_counters += 1;
                self.depth += 1;
                let (times, body) = (self.operand(Type::I32, false), self.code(false));
                self.depth -= 1;
                let until = self.operand(Type::I1, false);
                Statement::Loop { counter, times, mask: [3, 7][self.below(2) as usize], body, until }
            }
            17..=20 if self.can_fail => {
                let item = (self.below(8) > 0).then(|| self.below(16));
                Statement::Fail { item, condition: self.operand(Type::I1, item.is_none()) }
            }
            _ => self.compute(to, is_same),
        }
    }
}
