//! Programs without a compiler: each item runs up to the next barrier, then the next item does.

use super::operations::{OPERATIONS, Type};
use super::program::{Flow, INPUT, OUTPUT, Operand, Program, Site, Statement, VARIABLES, Variable};

/// What a group is run with.
pub(super) struct Group<'g> {
    pub(super) shape: [u64; 3],
    pub(super) input: &'g [u64],
    pub(super) captures: [u64; 4],
}

impl Group<'_> {
    pub(super) fn items(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// What a run leaves, or the items that fail before the first barrier that others do not reach because of them.
pub(super) type Outcome = Result<Vec<[u64; OUTPUT]>, Vec<u64>>;

/// Runs a program for all items of a group. Places that no item writes have the value `before`.
pub(super) fn run(program: &Program, group: &Group<'_>, before: u64) -> Outcome {
    let items = (0..group.items()).map(|number| {
        let [_, rows, row] = group.shape;
        Item {
            place: [number, number % row, number / row % rows, number / row / rows],
            variables: [[0; VARIABLES]; 5],
            arrays: program.arrays.iter().map(|array| vec![0; array.length as usize]).collect(),
            table: [0; 2],
            output: [before; OUTPUT],
            has_failed: false,
        }
    });
    let mut run = Run {
        items: items.collect(),
        program,
        group,
        sites: vec![vec![0; group.items() as usize + 1]; program.sites.len()],
    };
    match run.flow(&program.flow).and_then(|()| run.meet()) {
        Ok(()) | Err(Stop::Return) => Ok(run.items.iter().map(|item| item.output).collect()),
        Err(Stop::Failed(failed)) => Err(failed),
    }
}

struct Item {
    place: [u64; 4],
    variables: [[u64; VARIABLES]; 5],
    arrays: Vec<Vec<u64>>,
    table: [usize; 2],
    output: [u64; OUTPUT],
    has_failed: bool,
}

/// Why flow does not go on.
enum Stop {
    Return,
    Failed(Vec<u64>),
}

struct Run<'g> {
    items: Vec<Item>,
    program: &'g Program,
    group: &'g Group<'g>,
    sites: Vec<Vec<u64>>,
}

impl Run<'_> {
    fn meet(&self) -> Result<(), Stop> {
        let failed: Vec<u64> = self.items.iter().filter(|item| item.has_failed).map(|item| item.place[0]).collect();
        if failed.is_empty() { Ok(()) } else { Err(Stop::Failed(failed)) }
    }

    /// A value that all items have.
    fn same(&self, operand: Operand) -> Result<u64, Stop> {
        let mut values = self.items.iter().filter(|item| !item.has_failed).map(|item| self.value(item, operand));
        let Some(first) = values.next() else { return self.meet().map(|()| 0) };
        assert!(values.all(|value| value == first), "flow is the same for all items");
        Ok(first)
    }

    fn value(&self, item: &Item, operand: Operand) -> u64 {
        match operand {
            Operand::Variable(Variable { of, number }) => item.variables[of as usize][number],
            Operand::Constant(bits) => bits,
            Operand::Place(number) => item.place[number],
            Operand::Capture(number) => self.group.captures[number as usize],
        }
    }

    fn flow(&mut self, flow: &[Flow]) -> Result<(), Stop> {
        for part in flow {
            match part {
                Flow::Code(code) => {
                    for number in 0..self.items.len() {
                        self.code(number, code);
                    }
                }
                Flow::Barrier => self.meet()?,
                Flow::Choice { on, arms } => {
                    let on = self.same(*on)?;
                    let arm = match arms.len() {
                        2 => 1 - (on & 1) as usize,
                        n if on < n as u64 - 1 => on as usize + 1,
                        _ => 0,
                    };
                    self.flow(&arms[arm])?;
                }
                Flow::Loop { counter, limit, times, mask, is_tested_first, body } => {
                    let times = self.same(*times)? & mask;
                    self.set_all(*limit, times);
                    self.set_all(*counter, 0);
                    let mut round = 0;
                    while round < times || round == 0 && !is_tested_first {
                        self.flow(body)?;
                        round += 1;
                        self.set_all(*counter, round);
                    }
                }
                Flow::Return { condition } => {
                    if self.same(*condition)? != 0 {
                        self.meet()?;
                        return Err(Stop::Return);
                    }
                }
            }
        }
        Ok(())
    }

    fn set_all(&mut self, to: Variable, value: u64) {
        self.items.iter_mut().for_each(|item| item.variables[to.of as usize][to.number] = value);
    }

    fn code(&mut self, number: usize, code: &[Statement]) {
        for statement in code {
            if self.items[number].has_failed {
                return;
            }
            self.statement(number, statement);
        }
    }

    /// The element of an array that a number stands for.
    fn element(&self, item: &Item, array: usize, index: Operand) -> usize {
        (self.value(item, index) % self.program.arrays[array].length) as usize
    }

    fn statement(&mut self, number: usize, statement: &Statement) {
        let item = &self.items[number];
        let in_table = |place: Operand| item.table[(self.value(item, place) & 1) as usize];
        let (to, value) = match *statement {
            Statement::Compute { to, operation, from } => {
                (to, (OPERATIONS[operation].3)(from.map(|operand| self.value(item, operand))))
            }
            Statement::Input { to, index } => (to, self.group.input[(self.value(item, index) % INPUT) as usize]),
            Statement::Load { to, array, index } => (to, item.arrays[array][self.element(item, array, index)]),
            Statement::LoadByTable { to, place, index } => {
                (to, item.arrays[in_table(place)][self.element(item, 0, index)])
            }
            Statement::Bits { to, .. } => (to, 0),
            Statement::Read { site, to, index } => {
                (to, self.sites[site][(self.value(item, index) % self.group.items()) as usize])
            }
            Statement::ReadLed { site, to } => (to, self.sites[site][self.group.items() as usize]),
            Statement::Touch { to, array, value } => {
                let (before, value) = (item.arrays[array][0], self.value(item, value));
                self.items[number].arrays[array][0] = Type::I32.value(before.wrapping_add(value));
                (to, before)
            }
            Statement::Store { array, index, value } => {
                let (index, value) = (self.element(item, array, index), self.value(item, value));
                self.items[number].arrays[array][index] = value;
                return;
            }
            Statement::Point { place, array } => {
                let place = (self.value(item, place) & 1) as usize;
                self.items[number].table[place] = array;
                return;
            }
            Statement::StoreByTable { place, index, value } => {
                let (array, index, value) = (in_table(place), self.element(item, 0, index), self.value(item, value));
                self.items[number].arrays[array][index] = value;
                return;
            }
            Statement::Output { number: place, value, .. } => {
                let value = self.value(item, value);
                self.items[number].output[place] = value;
                return;
            }
            Statement::Write { site, value } => {
                self.sites[site][number] = self.value(item, value);
                return;
            }
            Statement::Lead { site } => {
                if number == 0 {
                    let Site { of, .. } = self.program.sites[site];
                    let site = &mut self.sites[site];
                    let [first, last] = [site[0], site[self.items.len() - 1]];
                    let sum = match of {
                        Type::F32 => (f32::from_bits(first as u32) + f32::from_bits(last as u32)).to_bits().into(),
                        _ => first.wrapping_add(last),
                    };
                    site[self.items.len()] = sum;
                }
                return;
            }
            Statement::If { condition, ref then, ref otherwise } => {
                let arm = if self.value(item, condition) != 0 { then } else { otherwise };
                return self.code(number, arm);
            }
            Statement::Loop { counter, times, mask, ref body, until } => {
                let times = self.value(item, times) & mask;
                let set =
                    |run: &mut Self, round| run.items[number].variables[Type::I32 as usize][counter.number] = round;
                set(self, 0);
                for round in 0..times {
                    self.code(number, body);
                    if self.items[number].has_failed || self.value(&self.items[number], until) != 0 {
                        return;
                    }
                    set(self, round + 1);
                }
                return;
            }
            Statement::Fail { item: only, condition } => {
                let fails = self.value(item, condition) != 0 && only.is_none_or(|only| only == item.place[0]);
                self.items[number].has_failed = fails;
                return;
            }
        };
        self.items[number].variables[to.of as usize][to.number] = to.of.value(value);
    }
}
