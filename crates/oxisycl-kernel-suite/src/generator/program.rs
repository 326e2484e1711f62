//! Kernels over groups: control flow that is the same for a whole group, and in it phases, functions of one work-item.
//!
//! Control flow depends on the group's position, on what the host gave, and on what algorithms gave to all. It is sequences, loops, branches, and calls
//! of functions that have phases of their own. It is written once, over a form of `tests/fuzz/groups`, which says where barriers are. What work-items
//! have of their own is in [phases](super::phase) alone.

use std::fmt::Write;

use super::{Function, Generator, Type, U32, U64, Variable};

/// Loops and branches around phases are at most so deep.
const DEEPEST: usize = 3;

/// What algorithms combine values by. The last three keep the order of operands; the last two depend on how values are grouped, too.
const OPERATORS: [&str; 10] = [
    "Plus",
    "Product",
    "Min",
    "Max",
    "BitXor",
    "BitAnd",
    "BitOr",
    "move |a: VALUE, b: VALUE| if b & 1 == 1 { b } else { a }",
    "move |a: VALUE, b: VALUE| a.wrapping_mul(3).wrapping_add(b)",
    "move |a: VALUE, b: VALUE| (a ^ u0 as VALUE).rotate_left(3).wrapping_sub(b)",
];

/// The first so many operators have an identity.
const WITH_IDENTITY: usize = 7;

/// The sizes and types of a group's memory.
pub(super) struct Memory {
    /// Work-items, and elements of each tile.
    pub(super) items: usize,
    pub(super) bins: usize,
    pub(super) tile: Type,
    /// What algorithms combine.
    pub(super) value: Type,
    /// Private values of each work-item, the first of which is an integer.
    pub(super) own: Vec<Variable>,
}

/// A program that is being written.
pub(super) struct Program {
    pub(super) base: Generator,
    pub(super) memory: Memory,
    pub(super) n_phases: usize,
    /// The control flow that is written at present.
    body: String,
    /// What is the same for the group, where that is written.
    shared: Vec<Variable>,
    /// Functions with phases.
    parts: Vec<Function>,
    /// Phases that may still be written.
    leaves: usize,
    /// The type of what the current function returns, if it is not the kernel itself.
    result: Option<Type>,
}

/// The source of one kernel and of the functions that it calls, and whether they divide numbers of `f32` or take their square root.
pub(super) fn program(seed: u64) -> (String, bool) {
    let mut base = Generator::new(seed ^ 0x6772_6F75_7073_2121, seed);
    base.has_shared = false;
    let integer = |base: &mut Generator| Type::Integer {
        bits: base.random.pick(&[8, 16, 32, 32, 64, 64]),
        is_signed: base.random.percent(40),
    };
    let memory = Memory {
        items: base.random.pick(&[1, 7, 32, 64, 96]),
        bins: base.random.pick(&[1, 5, 16, 40, 130]),
        tile: base.random.pick(&[U32, U32, U64, super::F32]),
        value: integer(&mut base),
        own: (0..2 + base.random.below(3))
            .map(|number| {
                let of = if number == 0 { integer(&mut base) } else { base.any_type() };
                let is_array = number > 0 && base.random.percent(30);
                let length = is_array.then(|| base.random.pick(&[2, 4, 8]));
                Variable { name: format!("w{number}"), of, is_mutable: true, length }
            })
            .collect(),
    };
    let (body, shared, parts) = (String::new(), Vec::new(), Vec::new());
    let mut program = Program { base, memory, n_phases: 0, body, shared, parts, leaves: 0, result: None };
    program.write();
    (program.base.text, program.base.divides)
}

impl Program {
    fn write(&mut self) {
        let seed = self.base.seed;
        let list = |types: &[String]| types.join(", ");
        let own: Vec<String> = self.memory.own.iter().map(type_of).collect();
        let _ = writeln!(self.base.text, "pub(super) type Own{seed} = ({});\n", list(&own));
        for _ in 0..self.base.random.below(2) {
            self.base.function();
        }
        for _ in 0..self.base.random.below(3) {
            self.part();
        }
        self.kernel();
    }

    /// `<TILE, VALUE, OWN>` of the form.
    fn form(&self) -> String {
        let Memory { tile, value, .. } = &self.memory;
        format!("Form<{}, {}, Own{}>", tile.name(), value.name(), self.base.seed)
    }

    /// An integer that has a name, the same for the group.
    fn variable(&mut self, name: String, is_mutable: bool) -> Variable {
        let (bits, is_signed) = (self.base.random.pick(&[8, 16, 32, 32, 64, 64]), self.base.random.percent(40));
        Variable { name, of: Type::Integer { bits, is_signed }, is_mutable, length: None }
    }

    /// Declares the three variables that phases get, made of what is known so far.
    fn declare_shared(&mut self) {
        for number in 0..3 {
            let variable = self.variable(format!("u{number}"), true);
            let (value, of) = (self.expression(variable.of, 2), variable.of.name());
            let given = self.shared[self.base.random.below(self.shared.len())].name.clone();
            self.line(1, &format!("let mut {}: {of} = {value}.wrapping_add({given} as {of});", variable.name));
            self.shared.push(variable);
        }
    }

    /// A function that has phases, which later ones and the kernel call.
    fn part(&mut self) {
        let name = format!("part_{}_{}", self.base.seed, self.parts.len());
        let group = Variable { name: "group".to_owned(), of: U32, is_mutable: false, length: None };
        self.shared = vec![group];
        for number in 0..1 + self.base.random.below(2) {
            let parameter = self.variable(format!("q{number}"), false);
            self.shared.push(parameter);
        }
        let parameters: Vec<Type> = self.shared[1..].iter().map(|parameter| parameter.of).collect();
        let list: Vec<String> =
            self.shared.iter().map(|parameter| format!("{}: {}", parameter.name, parameter.of.name())).collect();
        let result = self.variable(String::new(), false).of;
        let inline = self.base.random.pick(&["", "#[inline(never)]\n"]);
        let (form, result_name) = (self.form(), result.name());
        self.body = format!("{inline}fn {name}<F: {form}>(form: &mut F, {}) -> {result_name} {{\n", list.join(", "));
        self.declare_shared();
        (self.leaves, self.result) = (1 + self.base.random.below(2), Some(result));
        self.block(DEEPEST - 1, 3);
        let value = self.expression(result, 2);
        let _ = writeln!(self.body, "    {value}\n}}\n");
        self.base.text.push_str(&self.body);
        self.parts.push(Function { name, parameters, result });
    }

    fn kernel(&mut self) {
        let (seed, form) = (self.base.seed, self.form());
        let Memory { items, bins, tile, value, .. } = &self.memory;
        let (tile, value) = (tile.name(), value.name());
        self.body = format!(
            "#[derive(Clone, Copy)]\npub(super) struct Program{seed};\n\nimpl Program<{items}, {bins}> for Program{seed} {{\n    \
             type Tile = {tile};\n    type Value = {value};\n    type Own = Own{seed};\n\n    \
             fn run<F: {form}>(form: &mut F, [x0, x1, x2]: Arguments) {{\n    let group: u32 = form.group();\n"
        );
        let names = ["group", "x0", "x1", "x2"];
        let given = |name: &str| Variable { name: name.to_owned(), of: U32, is_mutable: false, length: None };
        self.shared = names.map(given).to_vec();
        self.declare_shared();
        self.line(1, &format!("form.begin(|number| scramble(number) as {tile});"));
        (self.leaves, self.result) = (2 + self.base.random.below(5), None);
        self.pass_on();
        while self.leaves > 0 {
            self.block(1, 4);
        }
        self.pass_on();
        let (shared, phase) = (self.shared_values(), self.last_phase());
        self.line(1, &format!("form.finish({shared}, {phase});"));
        self.body.push_str("    }\n}\n\n");
        self.base.text.push_str(&self.body);
    }

    /// Gives each work-item values of others, in every group: what is wrong in one shows in more of them.
    fn pass_on(&mut self) {
        let (shared, phase) = (self.shared_values(), self.mixing());
        self.line(1, &format!("form.exchange({shared}, {phase});"));
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.body, "{}{text}", "    ".repeat(depth));
    }

    /// An expression of what is the same for the group. Functions are left out: most have arrays, and the compiler
    /// proves nothing of values in the memory of functions that are not inlined.
    pub(super) fn expression(&mut self, of: Type, depth: usize) -> String {
        let functions = std::mem::take(&mut self.base.functions);
        self.base.is_kernel = false;
        std::mem::swap(&mut self.base.variables, &mut self.shared);
        let text = self.base.expression(of, depth);
        std::mem::swap(&mut self.base.variables, &mut self.shared);
        self.base.functions = functions;
        text
    }

    /// A condition that differs from group to group more often than a random one would.
    fn condition(&mut self) -> String {
        if self.base.random.percent(20) {
            return self.expression(Type::Bool, 1);
        }
        let name = self.shared[self.base.random.below(self.shared.len())].name.clone();
        let modulus = 2 + self.base.random.below(3);
        let operation = self.base.random.pick(&["==", "!=", "<"]);
        format!("({name} as u32 % {modulus} {operation} {})", 1 + self.base.random.below(modulus - 1))
    }

    /// The array of values that phases get.
    fn shared_values(&mut self) -> String {
        let last = self.shared[self.base.random.below(self.shared.len())].name.clone();
        format!("[u0 as u64, u1 as u64, u2 as u64, {last} as u64]")
    }

    fn block(&mut self, depth: usize, most: usize) {
        let n = self.shared.len();
        for _ in 0..1 + self.base.random.below(most) {
            if self.leaves > 0 {
                self.statement(depth);
            }
        }
        self.shared.truncate(n);
    }

    fn statement(&mut self, depth: usize) {
        let choice = if depth >= DEEPEST { self.base.random.below(67) } else { self.base.random.below(100) };
        match choice {
            0..=54 => self.leaf(depth),
            55..=59 => self.assign(depth),
            60..=64 if depth < DEEPEST => self.call(depth),
            60..=64 => self.leaf(depth),
            65 | 66 => self.give_up(depth),
            67..=78 => self.branch(depth),
            79..=88 => self.counted_loop(depth),
            89..=94 => self.open_loop(depth),
            _ => self.choice(depth),
        }
    }

    /// A variable that is the same for the group, to be written.
    fn target(&mut self) -> (String, String) {
        let target = self.shared.iter().filter(|variable| variable.is_mutable).collect::<Vec<_>>();
        let target = target[self.base.random.below(target.len())];
        (target.name.clone(), target.of.name())
    }

    fn assign(&mut self, depth: usize) {
        let (name, of) = self.target();
        let other = self.base.any_type();
        let value = self.expression(other, 1);
        self.line(depth, &format!("{name} = {name}.wrapping_add({value} as {of});"));
    }

    /// A function with phases, or a leaf if there is none.
    fn call(&mut self, depth: usize) {
        if self.parts.is_empty() {
            return self.leaf(depth);
        }
        let index = self.base.random.below(self.parts.len());
        let parameters = self.parts[index].parameters.clone();
        let values: Vec<String> = parameters.into_iter().map(|of| self.expression(of, 2)).collect();
        let (name, of) = self.target();
        let part = &self.parts[index].name;
        let line = format!("{name} = {part}(form, group, {}) as {of};", values.join(", "));
        self.line(depth, &line);
    }

    /// Some groups return from the function.
    fn give_up(&mut self, depth: usize) {
        let condition = self.condition();
        let value = self.result.map(|of| format!(" {}", self.expression(of, 3))).unwrap_or_default();
        // Groups that end without a result are compared least, so they are few.
        if self.result.is_some() || self.base.random.percent(20) {
            self.line(depth, &format!("if {condition} {{ return{value}; }}"));
        }
    }

    fn branch(&mut self, depth: usize) {
        let condition = self.condition();
        self.line(depth, &format!("if {condition} {{"));
        self.block(depth + 1, 2);
        if self.base.random.percent(60) {
            self.line(depth, "} else {");
            self.block(depth + 1, 2);
        }
        self.line(depth, "}");
    }

    fn counted_loop(&mut self, depth: usize) {
        let name = self.base.any_name("n");
        let end = match self.base.random.below(3) {
            0 => format!("{}_u32", 1 + self.base.random.below(3)),
            1 => format!("(group + {}) % 4", self.base.random.below(4)),
            _ => format!("({} ^ group) % 4", self.expression(U32, 2)),
        };
        self.line(depth, &format!("for {name} in 0..{end} {{"));
        self.shared.push(Variable { name, of: U32, is_mutable: false, length: None });
        self.block(depth + 1, 3);
        self.shared.pop();
        self.line(depth, "}");
    }

    fn open_loop(&mut self, depth: usize) {
        let name = self.base.any_name("n");
        self.line(depth, &format!("let mut {name}: u32 = 0;"));
        self.line(depth, "loop {");
        let end = self.condition();
        self.line(depth + 1, &format!("{name} += 1;"));
        self.line(depth + 1, &format!("if {name} > 3 || {end} {{ break; }}"));
        self.shared.push(Variable { name, of: U32, is_mutable: false, length: None });
        self.block(depth + 1, 2);
        if self.base.random.percent(50) {
            let next = self.condition();
            self.line(depth + 1, &format!("if {next} {{ continue; }}"));
            self.block(depth + 1, 2);
        }
        self.shared.pop();
        self.line(depth, "}");
    }

    fn choice(&mut self, depth: usize) {
        let value = self.expression(U32, 2);
        self.line(depth, &format!("match ({value} ^ group) & 3 {{"));
        for pattern in ["0", "1 | 3", "_"] {
            self.line(depth, &format!("    {pattern} => {{"));
            self.block(depth + 2, 1);
            self.line(depth, "    }");
        }
        self.line(depth, "}");
    }

    /// One phase, with what its form does around it.
    fn leaf(&mut self, depth: usize) {
        self.leaves = self.leaves.saturating_sub(1);
        let shared = self.shared_values();
        let Memory { items, tile, value, .. } = self.memory;
        let text = match self.base.random.below(20) {
            0..=4 => format!("form.exchange({shared}, {})", self.mixing()),
            5..=7 => format!("form.advance({shared}, {})", self.mixing()),
            8 | 9 => format!("form.change({shared}, {})", self.changing(tile)),
            10 => format!("form.change_bins({shared}, {})", self.changing(U32)),
            11 | 12 => {
                let update = self.base.random.pick(&["Add", "Xor", "Min", "Max", "And", "Or"]);
                format!("form.count({shared}, Update::{update}, {})", self.counting())
            }
            13 => {
                let index = self.expression(U32, 2);
                self.given(&format!("form.read({index} as usize % {items})"))
            }
            14 => {
                let operator = self.operator(OPERATORS.len());
                let phase = self.reading(value);
                self.given(&format!("form.reduce({shared}, {phase}, {operator})"))
            }
            15 => {
                let (index, phase) = (self.expression(U32, 2), self.reading(value));
                self.given(&format!("form.broadcast({shared}, {phase}, {index} as usize % {items})"))
            }
            16 => {
                let vote = self.base.random.pick(&["Any", "All", "None"]);
                let phase = self.reading(Type::Bool);
                self.given(&format!("form.vote({shared}, Vote::{vote}, {phase})"))
            }
            17 | 18 => self.scan(&shared),
            _ => self.lanes(&shared),
        };
        self.line(depth, &format!("{text};"));
    }

    fn operator(&mut self, n: usize) -> String {
        self.base.random.pick(&OPERATORS[..n]).replace("VALUE", &self.memory.value.name())
    }

    /// What all work-items get, put into a variable of the group.
    fn given(&mut self, value: &str) -> String {
        let (name, of) = self.target();
        format!("{name} = {value} as {of}")
    }

    /// What puts a value into a private one.
    fn store(&mut self) -> String {
        let is_number = |variable: &Variable| {
            variable.length.is_none() && matches!(variable.of, Type::Integer { bits, .. } if bits <= 64)
        };
        let own = &self.memory.own;
        let fitting: Vec<usize> = (0..own.len()).filter(|index| is_number(&own[*index])).collect();
        let index = fitting[self.base.random.below(fitting.len())];
        let (of, value, seed) = (own[index].of.name(), self.memory.value.name(), self.base.seed);
        format!("|own: &mut Own{seed}, value: {value}| own.{index} = own.{index}.rotate_left(5) ^ value as {of}")
    }

    fn scan(&mut self, shared: &str) -> String {
        let (phase, store) = (self.reading(self.memory.value), self.store());
        match self.base.random.below(3) {
            0 => format!("form.inclusive_scan({shared}, {phase}, {}, {store})", self.operator(OPERATORS.len())),
            1 => format!("form.exclusive_scan({shared}, {phase}, {}, {store})", self.operator(WITH_IDENTITY)),
            _ => {
                let first = self.expression(self.memory.value, 2);
                let operator = self.operator(OPERATORS.len());
                format!("form.exclusive_scan_from({shared}, {phase}, {first}, {operator}, {store})")
            }
        }
    }

    fn lanes(&mut self, shared: &str) -> String {
        let lanes = self.base.random.pick(&[4, 8, 16, 32, 64]);
        let (phase, store) = (self.reading(self.memory.value), self.store());
        let n = self.base.random.below(lanes + 1);
        match self.base.random.below(3) {
            0 => {
                format!("form.lanes_reduce::<{lanes}>({shared}, {phase}, {}, {store})", self.operator(OPERATORS.len()))
            }
            1 => format!("form.lanes_shift::<{lanes}>({shared}, {phase}, {n}, {store})"),
            _ => format!("form.lanes_permute::<{lanes}>({shared}, {phase}, {n}, {store})"),
        }
    }
}

/// The type of a variable, or of an array.
pub(super) fn type_of(variable: &Variable) -> String {
    match variable.length {
        Some(length) => format!("[{}; {length}]", variable.of.name()),
        None => variable.of.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_program_and_another_seed_another() {
        assert_eq!(program(7), program(7));
        assert_ne!(program(7).0.replace('7', ""), program(8).0.replace('8', ""));
    }

    #[test]
    fn programs_use_all_that_forms_have() {
        let text: String = (0..200).map(|seed| program(seed).0).collect();
        let methods = [
            "begin",
            "change",
            "change_bins",
            "exchange",
            "advance",
            "count",
            "read",
            "reduce",
            "broadcast",
            "vote",
            "inclusive_scan",
            "exclusive_scan",
            "exclusive_scan_from",
            "lanes_reduce::<8>",
            "lanes_shift::<32>",
            "lanes_permute::<64>",
            "finish",
        ];
        for method in methods {
            assert!(text.contains(&format!("form.{method}(")), "no program of 200 calls {method}");
        }
        for size in [1, 7, 32, 64, 96] {
            assert!(text.contains(&format!("impl Program<{size}, ")), "no group of 200 has {size} work-items");
        }
        let parts = ["(form, group", "continue", "break", "{ return; }", "Tile = f32", "Value = u64", "Update::Xor"];
        for part in parts {
            assert!(text.contains(part), "no program of 200 has \"{part}\"");
        }
    }

    #[test]
    fn phases_do_not_update_memory_that_all_groups_share() {
        assert!((0..200).all(|seed| !program(seed).0.contains("update!")));
    }
}
