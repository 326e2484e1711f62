//! Random kernels as Rust source: the same source for the same seed, always.
//!
//! A kernel is a function of the input, of a piece of shared memory and of its index. It computes with integers of all widths and with
//! floats, branches, loops, calls functions that are not inlined, and reads and writes arrays. It updates shared memory by atomic
//! operations whose order does not matter. What it has computed is folded into two numbers, which must be the same wherever it ran.
//!
//! A kernel over groups is a [program](program) of phases: control flow that is the same for a group, and functions of one work-item between barriers.
//!
//! Invariants: a kernel ends, panics nowhere, and computes nothing that Rust leaves open. Which NaN an operation gives is open: bits of
//! floats are taken by a function that makes all NaNs one. Library functions other than the square root are not used.
//!
//! Shared by the build script and the tests of this package; uses the standard library only.

mod expression;
mod nest;
mod phase;
mod program;
mod seeds;

use std::fmt::Write;

pub(crate) use seeds::Seeds;

/// Numbers of a generator that is fixed for ever, so that seeds keep their meaning.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// True in `n` of a hundred cases.
    fn percent(&mut self, n: usize) -> bool {
        self.below(100) < n
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Type {
    Integer { bits: u32, is_signed: bool },
    Float { bits: u32 },
    Bool,
}

const U32: Type = Type::Integer { bits: 32, is_signed: false };
const I32: Type = Type::Integer { bits: 32, is_signed: true };
const I64: Type = Type::Integer { bits: 64, is_signed: true };
const U64: Type = Type::Integer { bits: 64, is_signed: false };
const F32: Type = Type::Float { bits: 32 };
const F64: Type = Type::Float { bits: 64 };

impl Type {
    fn name(self) -> String {
        match self {
            Self::Integer { bits, is_signed } => format!("{}{bits}", if is_signed { 'i' } else { 'u' }),
            Self::Float { bits } => format!("f{bits}"),
            Self::Bool => "bool".to_owned(),
        }
    }
}

/// Something that has a name where code is written.
#[derive(Clone)]
struct Variable {
    name: String,
    of: Type,
    is_mutable: bool,
    /// Elements of an array, a power of two.
    length: Option<usize>,
}

/// A function that kernels call.
struct Function {
    name: String,
    parameters: Vec<Type>,
    result: Type,
}

/// Atomic operations on shared memory, one for each place, so that their order does not matter: name, type, and offset in units of it.
const UPDATES: [(&str, Type, usize); 8] = [
    ("fetch_add", U32, 0),
    ("fetch_xor", U32, 1),
    ("fetch_min", U32, 2),
    ("fetch_max", I32, 3),
    ("fetch_or", U32, 4),
    ("fetch_and", I32, 5),
    ("fetch_add", U64, 3),
    ("fetch_max", I64, 4),
];

/// Loops and branches are at most so deep.
const DEEPEST_BLOCK: usize = 3;

struct Generator {
    random: Random,
    seed: u64,
    text: String,
    variables: Vec<Variable>,
    functions: Vec<Function>,
    n_names: usize,
    /// Statements that may still be written.
    budget: usize,
    /// Whether the input can be reached.
    is_kernel: bool,
    /// Whether shared memory can be reached where the input can.
    has_shared: bool,
    /// Whether anything written divides numbers of `f32` or takes their square root, which not all devices round as Rust does.
    divides: bool,
}

/// The source of a module with a kernel for each seed, and the lists of tests. `TESTS` has kernels over ranges, `GROUPS` kernels over groups,
/// `ARGUMENTS` nests of arguments, and a test of what they take of an argument block.
pub(crate) fn module(seeds: &Seeds) -> String {
    let mut text = String::new();
    let (mut tests, mut groups) = (String::new(), String::new());
    for &seed in &seeds.ranges {
        let (kernel, divides) = kernel(seed);
        text.push_str(&kernel);
        let require = requirement(divides);
        let _ = writeln!(
            tests,
            "    Test {{ name: \"seed_{seed}\", run: |env| {{ {require}crate::compare(env, |input, shared, index| \
             kernel_{seed}(input, shared, index)); }} }},"
        );
    }
    let (mut arguments, mut sizes) = (String::new(), String::new());
    for &seed in &seeds.arguments {
        let nest = nest::nest(seed);
        let _ = writeln!(
            arguments,
            "    Test {{ name: \"arguments_{seed}\", run: |env| crate::arguments::compare::<{nest}>(env, {seed}) }},"
        );
        let _ = writeln!(sizes, "    size_of::<Sent<{nest}>>(),");
    }
    for &seed in &seeds.groups {
        let (program, divides) = program::program(seed);
        let _ = write!(text, "mod group_{seed} {{\nuse super::*;\n\n{program}}}\n\n");
        let require = requirement(divides);
        for form in ["nd", "phases"] {
            let _ = writeln!(
                groups,
                "    Test {{ name: \"{form}_{seed}\", run: |env| {{ {require}crate::groups::compare_{form}(env, \
                 group_{seed}::Program{seed}, {seed}); }} }},"
            );
        }
    }
    let _ = write!(
        text,
        "pub(crate) const TESTS: &[Test] = &[\n{tests}];\npub(crate) const GROUPS: &[Test] = &[\n{groups}];\n\
         pub(crate) const ARGUMENTS: &[Test] = &[\n{arguments}    \
         Test {{ name: \"sizes\", run: |_| crate::arguments::check_sizes(SIZES) }},\n];\n\
         const SIZES: &[usize] = &[\n{sizes}];\n"
    );
    text
}

/// What a test asks of the device first.
fn requirement(divides: bool) -> &'static str {
    if divides { "crate::require_correct_divisions(env); " } else { "" }
}

/// The source of one kernel and of the functions that it calls, and whether they divide numbers of `f32` or take their square root.
fn kernel(seed: u64) -> (String, bool) {
    let mut generator = Generator::new(seed ^ 0x6F78_6973_7963_6C21, seed);
    for _ in 0..generator.random.below(3) {
        generator.function();
    }
    generator.kernel();
    (generator.text, generator.divides)
}

impl Generator {
    fn new(state: u64, seed: u64) -> Self {
        Self {
            random: Random(state),
            seed,
            text: String::new(),
            variables: Vec::new(),
            functions: Vec::new(),
            n_names: 0,
            budget: 0,
            is_kernel: false,
            has_shared: true,
            divides: false,
        }
    }

    fn any_type(&mut self) -> Type {
        match self.random.below(10) {
            0..=5 => {
                let (bits, is_signed) = (self.random.pick(&[8, 16, 32, 32, 64, 64, 128]), self.random.percent(50));
                Type::Integer { bits, is_signed }
            }
            6 | 7 => F32,
            8 => F64,
            _ => Type::Bool,
        }
    }

    fn any_integer(&mut self) -> Type {
        loop {
            if let of @ Type::Integer { .. } = self.any_type() {
                return of;
            }
        }
    }

    fn any_name(&mut self, prefix: &str) -> String {
        self.n_names += 1;
        format!("{prefix}{}", self.n_names)
    }

    fn function(&mut self) {
        let parameters: Vec<Type> = (0..1 + self.random.below(4)).map(|_| self.any_type()).collect();
        let result = self.any_type();
        let name = format!("function_{}_{}", self.seed, self.functions.len());
        self.variables.clear();
        for &of in &parameters {
            let name = self.any_name("p");
            self.variables.push(Variable { name, of, is_mutable: false, length: None });
        }
        let list: Vec<String> =
            self.variables.iter().map(|parameter| format!("{}: {}", parameter.name, parameter.of.name())).collect();
        let _ = writeln!(self.text, "#[inline(never)]\nfn {name}({}) -> {} {{", list.join(", "), result.name());
        self.budget = 6;
        self.block(1, 4);
        let value = self.expression(result, 2);
        let _ = writeln!(self.text, "    {value}\n}}\n");
        self.functions.push(Function { name, parameters, result });
    }

    fn kernel(&mut self) {
        self.variables.clear();
        self.is_kernel = true;
        let seed = self.seed;
        let _ = writeln!(self.text, "fn kernel_{seed}(input: &[u32], shared: *mut u64, index: usize) -> [u64; 2] {{");
        self.text.push_str("    let item: u32 = index as u32;\n");
        self.variables.push(Variable { name: "item".to_owned(), of: U32, is_mutable: false, length: None });
        self.budget = 12 + self.random.below(24);
        self.block(1, 40);
        self.text.push_str("    let mut sum = Sum::new();\n");
        for variable in self.variables.clone() {
            let name = &variable.name;
            let _ = match variable.length {
                None => writeln!(self.text, "    {}", add(name, variable.of)),
                Some(_) => writeln!(self.text, "    for value in {name} {{ {} }}", add("value", variable.of)),
            };
        }
        self.text.push_str("    sum.0\n}\n\n");
    }

    /// Statements; what they declare is known until the block that contains this one ends.
    fn block(&mut self, depth: usize, most: usize) {
        for _ in 0..1 + self.random.below(most) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            self.statement(depth);
        }
        // A kernel uses up what it has.
        while depth == 1 && self.is_kernel && self.budget > 0 {
            self.budget -= 1;
            self.statement(depth);
        }
    }

    /// A block of its own, in braces.
    fn inner(&mut self, depth: usize) {
        let n = self.variables.len();
        self.block(depth + 1, 4);
        self.variables.truncate(n);
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "    ".repeat(depth));
    }

    fn statement(&mut self, depth: usize) {
        let choice = if depth >= DEEPEST_BLOCK { self.random.below(60) } else { self.random.below(100) };
        match choice {
            0..=21 => self.declaration(depth),
            22..=25 => self.array(depth),
            26..=45 => self.assignment(depth),
            46..=51 if self.is_kernel && self.has_shared => self.update(depth),
            52..=59 if self.is_kernel => self.fold(depth),
            46..=59 => self.declaration(depth),
            60..=74 => self.branch(depth),
            75..=84 => self.counted_loop(depth),
            85..=91 => self.open_loop(depth),
            _ => self.choice(depth),
        }
    }

    fn declaration(&mut self, depth: usize) {
        let of = self.any_type();
        let value = self.expression(of, 0);
        let is_mutable = self.random.percent(60);
        let name = self.any_name("v");
        let word = if is_mutable { "let mut" } else { "let" };
        self.line(depth, &format!("{word} {name}: {} = {value};", of.name()));
        self.variables.push(Variable { name, of, is_mutable, length: None });
    }

    fn array(&mut self, depth: usize) {
        let of = self.any_type();
        let length = self.random.pick(&[2, 4, 8, 16]);
        let name = self.any_name("a");
        let value = self.expression(of, 2);
        self.line(depth, &format!("let mut {name}: [{}; {length}] = [{value}; {length}];", of.name()));
        self.variables.push(Variable { name, of, is_mutable: true, length: Some(length) });
    }

    fn assignment(&mut self, depth: usize) {
        let targets: Vec<Variable> = self.variables.iter().filter(|variable| variable.is_mutable).cloned().collect();
        if targets.is_empty() {
            return self.declaration(depth);
        }
        let target = &targets[self.random.below(targets.len())];
        let value = self.expression(target.of, 0);
        let place = match target.length {
            None => target.name.clone(),
            Some(length) => format!("{}[{}]", target.name, self.index(length)),
        };
        self.line(depth, &format!("{place} = {value};"));
    }

    /// An index into an array. Sometimes the compiler can see that it is inside, sometimes not.
    fn index(&mut self, length: usize) -> String {
        let of = self.any_integer();
        let value = self.expression(of, 3);
        match self.random.below(2) {
            0 => format!("({value} as usize) & {}", length - 1),
            _ => format!("({value} as u64 % {length}) as usize"),
        }
    }

    fn update(&mut self, depth: usize) {
        let (operation, of, offset) = self.random.pick(&UPDATES);
        let (name, value) = (of.name(), self.expression(of, 2));
        let atomic = format!("Atomic{}", name.to_uppercase());
        let line = format!("update!({atomic}, {name}, shared, {offset}).{operation}({value}, Ordering::Relaxed);");
        self.line(depth, &line);
    }

    /// A value made of several elements of the input by an iterator.
    fn fold(&mut self, depth: usize) {
        let of = self.any_integer();
        let (start, n) = (self.expression(U32, 3), self.random.below(9));
        let (name, first) = (self.any_name("v"), self.expression(of, 3));
        let begin = self.variables.len();
        for (name, of) in [("sum", of), ("element", U32)] {
            self.variables.push(Variable { name: name.to_owned(), of, is_mutable: false, length: None });
        }
        let step = self.expression(of, 2);
        self.variables.truncate(begin);
        let ty = of.name();
        let line = format!(
            "let mut {name}: {ty} = input.iter().skip(({start} % 1024) as usize).take({n}).fold({first}, |sum, &element| {step});"
        );
        self.line(depth, &line);
        self.variables.push(Variable { name, of, is_mutable: true, length: None });
    }

    fn branch(&mut self, depth: usize) {
        let condition = self.expression(Type::Bool, 1);
        self.line(depth, &format!("if {condition} {{"));
        self.inner(depth);
        if self.random.percent(60) {
            self.line(depth, "} else {");
            self.inner(depth);
        }
        self.line(depth, "}");
    }

    fn counted_loop(&mut self, depth: usize) {
        let (name, end) = (self.any_name("n"), self.expression(U32, 2));
        self.line(depth, &format!("for {name} in 0..({end} % 9) {{"));
        let n = self.variables.len();
        self.variables.push(Variable { name, of: U32, is_mutable: false, length: None });
        self.inner(depth);
        self.variables.truncate(n);
        self.line(depth, "}");
    }

    fn open_loop(&mut self, depth: usize) {
        let name = self.any_name("n");
        self.line(depth, &format!("let mut {name}: u32 = 0;"));
        self.line(depth, "loop {");
        let end = self.expression(Type::Bool, 2);
        self.line(depth + 1, &format!("{name} += 1;"));
        self.line(depth + 1, &format!("if {name} > 11 || {end} {{ break; }}"));
        let n = self.variables.len();
        self.variables.push(Variable { name: name.clone(), of: U32, is_mutable: false, length: None });
        self.inner(depth);
        if self.random.percent(50) {
            let next = self.expression(Type::Bool, 2);
            self.line(depth + 1, &format!("if {next} {{ continue; }}"));
            self.inner(depth);
        }
        self.variables.truncate(n);
        self.line(depth, "}");
        self.variables.push(Variable { name, of: U32, is_mutable: false, length: None });
    }

    fn choice(&mut self, depth: usize) {
        let of = self.any_integer();
        let value = self.expression(of, 2);
        self.line(depth, &format!("match {value} as u8 & 7 {{"));
        let n_arms = 1 + self.random.below(4);
        for arm in 0..n_arms {
            let pattern = match arm {
                0 => "0 | 3".to_owned(),
                1 => "1".to_owned(),
                2 => "4..=5".to_owned(),
                _ => "7".to_owned(),
            };
            self.line(depth, &format!("    {pattern} => {{"));
            self.inner(depth + 1);
            self.line(depth, "    }");
        }
        self.line(depth, "    _ => {");
        self.inner(depth + 1);
        self.line(depth, "    }");
        self.line(depth, "}");
    }
}

/// The statement that adds a value to the sum.
fn add(name: &str, of: Type) -> String {
    match of {
        Type::Integer { bits: 128, .. } => format!("sum.add({name} as u64); sum.add(({name} as u128 >> 64) as u64);"),
        Type::Float { .. } => format!("sum.add(bits_of_{}({name}));", of.name()),
        Type::Integer { .. } | Type::Bool => format!("sum.add({name} as u64);"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_kernel_and_another_seed_another() {
        assert_eq!(kernel(7), kernel(7));
        assert_ne!(kernel(7).0.replace("_7", "_"), kernel(8).0.replace("_8", "_"));
    }

    #[test]
    fn kernels_that_divide_numbers_of_f32_are_told_from_the_others() {
        let (mut n_dividing, mut n_others) = (0, 0);
        for seed in 0..400 {
            let (text, divides) = kernel(seed);
            // Neither is written for anything but floats, of which some are `f64`.
            let may_divide = text.contains(" / ") || text.contains(".sqrt()");
            assert!(may_divide || !divides, "seed {seed}");
            assert!(divides || !may_divide || text.contains("f64"), "seed {seed}");
            *(if divides { &mut n_dividing } else { &mut n_others }) += 1;
        }
        assert!(n_dividing > 20 && n_others > 20, "{n_dividing}, {n_others}");
    }

    #[test]
    fn kernels_use_all_that_is_compared() {
        let text = module(&Seeds { ranges: (0..200).collect(), groups: Vec::new(), arguments: Vec::new() });
        let parts = [
            "fetch_add",
            "fetch_max",
            "loop {",
            "match ",
            "else {",
            "wrapping_div",
            "checked_mul",
            ".sqrt()",
            " / ",
            "input.iter()",
            "[bool; ",
            "u128",
            "i8",
            "f64",
            "function_",
            "continue",
            "as usize) & ",
        ];
        for part in parts {
            assert!(text.contains(part), "no kernel of 200 has \"{part}\"");
        }
    }
}
