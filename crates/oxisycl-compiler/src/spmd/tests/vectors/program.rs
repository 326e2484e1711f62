//! Random bodies that can be executed, in LLVM's assembly.
//!
//! Blocks and loops are those of the functions for the analyses. Steps here access memory in bounds, and are defined for each item. Each item has
//! places of its own that it writes, so that their order says nothing.
//!
//! The bits of a NaN are not defined by LLVM. Where they would be seen, in memory, as an integer or as a sign, one NaN stands for all.

use crate::random::Random;
use crate::spmd::fuzz::program::{blocks, computation, line};

/// What bodies call.
const DECLARATIONS: &str = "
declare i32 @llvm.umin.i32(i32, i32)
declare i32 @__gcc_personality_v0(i32, i32, i64, ptr, ptr)
declare float @tanf(float)
declare double @tan(double)
declare float @cbrtf(float)
declare double @cbrt(double)
define internal i32 @quotient(i32 %number, i32 %divisor) noinline nounwind willreturn memory(none) {
    %result = udiv i32 %number, %divisor
    ret i32 %result
}
%given = type { ptr, ptr, ptr, i32, ptr }
";

/// The types of variables: their names in LLVM's assembly, and how the variables' names begin. Those that memory has stand first.
pub(super) const TYPES: [(&str, &str); 13] = [
    ("i8", "c"),
    ("i16", "h"),
    ("i32", "v"),
    ("i64", "w"),
    ("float", "f"),
    ("double", "d"),
    ("i24", "ka"),
    ("i40", "kb"),
    ("i48", "kc"),
    ("i56", "kd"),
    ("i1", "g"),
    ("ptr", "q"),
    ("{i32, i1}", "o"),
];
pub(super) const I8: usize = 0;
pub(super) const I16: usize = 1;
pub(super) const I32: usize = 2;
pub(super) const I64: usize = 3;
pub(super) const F32: usize = 4;
pub(super) const F64: usize = 5;
const I24: usize = 6;
const I40: usize = 7;
const I48: usize = 8;
const I56: usize = 9;
pub(super) const FLAG: usize = 10;
pub(super) const POINTER: usize = 11;
const PAIR: usize = 12;
/// What numbers in registers have as many bits as in memory.
const INTEGERS: [usize; 4] = [I8, I16, I32, I64];
/// Integers of a number of bits that no register has.
pub(super) const ODD: [usize; 4] = [I24, I40, I48, I56];
/// The variables that each type has at least.
const VARIABLES: u64 = 3;

/// How variables begin but those of 32 and 64 bits, for all items and for one.
const BEGIN: [(usize, [&str; 3]); 10] = [
    (I8, ["trunc i64 %x to i8", "trunc i32 %n to i8", "add i8 3, 4"]),
    (I16, ["trunc i64 %x to i16", "trunc i32 %n to i16", "add i16 3, 4"]),
    (F32, ["uitofp i64 %x to float", "uitofp i32 %n to float", "fadd float 0.5, 1.0"]),
    (F64, ["uitofp i64 %x to double", "uitofp i32 %n to double", "fadd double 0.5, 1.0"]),
    (I24, ["trunc i64 %x to i24", "trunc i32 %n to i24", "add i24 3, 4"]),
    (I40, ["trunc i64 %x to i40", "zext i32 %n to i40", "add i40 3, 4"]),
    (I48, ["trunc i64 %x to i48", "zext i32 %n to i48", "add i48 3, 4"]),
    (I56, ["trunc i64 %x to i56", "zext i32 %n to i56", "add i56 3, 4"]),
    (FLAG, ["trunc i64 %x to i1", "trunc i32 %n to i1", "icmp ugt i64 %x, 2"]),
    (
        POINTER,
        ["getelementptr i32, ptr %in, i64 %x", "getelementptr i32, ptr %in, i64 5", "getelementptr i8, ptr %in, i64 0"],
    ),
];

/// A module's text with the bodies `@body` and `@plain` for each of some programs, which are alike. A *tame* program does not depend on masks for
/// that its addresses are in bounds and its divisors are not 0.
pub(super) fn module(seeds: impl Iterator<Item = u64>, is_tame: bool) -> String {
    let (mut functions, mut intrinsics) = (String::new(), std::collections::BTreeSet::new());
    for seed in seeds {
        let (head, code) = body(seed, is_tame, &mut intrinsics);
        for name in ["body", "plain"] {
            line(&mut functions, head.replace("@body", &format!("@{name}{seed}")) + &code);
        }
    }
    intrinsics.remove("declare i32 @llvm.umin.i32(i32, i32)");
    let intrinsics: Vec<String> = intrinsics.into_iter().collect();
    format!("{DECLARATIONS}{}\n{functions}", intrinsics.join("\n"))
}

fn body(seed: u64, is_tame: bool, intrinsics: &mut std::collections::BTreeSet<String>) -> (String, String) {
    let mut random = Random::new(seed);
    let mut entry = "start:
        %in = load ptr, ptr %env
        %e1 = getelementptr inbounds %given, ptr %env, i64 0, i32 1 %out = load ptr, ptr %e1
        %e2 = getelementptr inbounds %given, ptr %env, i64 0, i32 2 %fail = load ptr, ptr %e2
        %e3 = getelementptr inbounds %given, ptr %env, i64 0, i32 3 %n = load i32, ptr %e3
        %e4 = getelementptr inbounds %given, ptr %env, i64 0, i32 4 %edges = load ptr, ptr %e4
        %id = trunc i64 %x to i32 %m = zext i32 %n to i64
        %few = and i64 %m, 15
        %mine = alloca [4 x i64], align 8\n"
        .to_owned();
    for (of, values) in BEGIN {
        let (name, begin) = TYPES[of];
        for (number, value) in values.into_iter().enumerate() {
            let variable = format!("%{begin}{number}");
            line(&mut entry, format!("{variable} = alloca {name} {variable}.0 = {value}"));
            line(&mut entry, format!("store {name} {variable}.0, ptr {variable}"));
        }
    }
    for number in 0..VARIABLES {
        line(&mut entry, format!("%o{number} = alloca {{i32, i1}} store {{i32, i1}} zeroinitializer, ptr %o{number}"));
    }
    for (number, value) in ["%x", "%m", "1", "%few"].into_iter().enumerate() {
        line(&mut entry, format!("%mine{number} = getelementptr i64, ptr %mine, i64 {number}"));
        line(&mut entry, format!("store i64 {value}, ptr %mine{number}"));
    }
    let mut step = |random: &mut Random, text: &mut String, name: &str| {
        Step { random, text, name, count: 0, intrinsics }.any(is_tame);
    };
    let code = blocks(&mut random, &entry, &mut step);
    let head = "define void @body(ptr %env, i64 %x) uwtable personality ptr @__gcc_personality_v0 {".to_owned();
    (head, code + "trap: call void %fail(i64 %x) noreturn unreachable }")
}

/// A step that is being written.
pub(super) struct Step<'a> {
    random: &'a mut Random,
    text: &'a mut String,
    name: &'a str,
    /// The values that it has so far.
    count: u32,
    intrinsics: &'a mut std::collections::BTreeSet<String>,
}

impl Step<'_> {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    pub(super) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub(super) fn line(&mut self, code: impl AsRef<str>) {
        line(self.text, code.as_ref().to_owned());
    }

    /// How names of blocks begin.
    pub(super) fn label(&self) -> String {
        format!("{}.{}", &self.name[1..], self.count)
    }

    /// A new value, which some code computes.
    pub(super) fn value(&mut self, code: impl AsRef<str>) -> String {
        self.count += 1;
        let name = format!("{}.{}", self.name, self.count);
        self.line(format!("{name} = {}", code.as_ref()));
        name
    }

    fn variable(&mut self) -> u64 {
        self.below(VARIABLES)
    }

    /// The value of a variable.
    pub(super) fn get(&mut self, of: usize) -> String {
        let number = self.variable();
        self.value(format!("load {}, ptr %{}{number}", TYPES[of].0, TYPES[of].1))
    }

    /// Gives a variable what some code computes.
    pub(super) fn set(&mut self, of: usize, code: impl AsRef<str>) {
        let value = self.value(code);
        self.put(of, &value);
    }

    pub(super) fn put(&mut self, of: usize, value: &str) {
        let number = self.variable();
        self.line(format!("store {} {value}, ptr %{}{number}", TYPES[of].0, TYPES[of].1));
    }

    /// Calls an intrinsic.
    pub(super) fn call(&mut self, result: &str, name: &str, arguments: &[(&str, &str)]) -> String {
        let types: Vec<&str> = arguments.iter().map(|(of, _)| *of).collect();
        let values: Vec<String> = arguments.iter().map(|(of, value)| format!("{of} {value}")).collect();
        self.intrinsics.insert(format!("declare {result} @llvm.{name}({})", types.join(", ")));
        self.value(format!("call {result} @llvm.{name}({})", values.join(", ")))
    }

    /// A number, whose NaN is always the same one.
    pub(super) fn quiet(&mut self, of: usize, value: &str) -> String {
        if of != F32 && of != F64 {
            return value.to_owned();
        }
        let name = TYPES[of].0;
        let is_nan = self.value(format!("fcmp uno {name} {value}, 0.0"));
        self.value(format!("select i1 {is_nan}, {name} 0x7FF8000000000000, {name} {value}"))
    }

    fn any(&mut self, is_tame: bool) {
        match self.below(51) {
            0..=5 => computation(self.random, self.text, self.name),
            6..=8 => self.integers(),
            9 => self.integer_calls(),
            10..=12 => self.floats(),
            13 | 14 => self.conversion(),
            15 | 16 => self.flag(),
            17 => self.selection(),
            18..=20 => self.input(),
            21..=24 => self.own_place(),
            25 => self.place_of_all(),
            26 => self.private(),
            27 | 38 | 39 => self.check(),
            28 => self.pair(),
            29 => self.division(),
            30 if !is_tame => self.guarded_division(),
            31 if !is_tame => self.guarded_difference(),
            32 | 33 if !is_tame => self.pointers(),
            34 => self.mathematics(),
            35 if !is_tame => self.guarded_call(),
            36 | 37 if !is_tame => self.edge(),
            40..=42 => self.choice(),
            43 | 44 => self.structure(),
            45 | 46 if !is_tame => self.table(),
            47..=50 => self.border(),
            _ => self.own_place(),
        }
    }

    /// Writes code for the items of which a flag, and not more than that, is so.
    pub(super) fn guarded(&mut self, condition: &str, code: impl FnOnce(&mut Self)) {
        let label = self.label();
        self.line(format!("br i1 {condition}, label %{label}.then, label %{label}.join"));
        self.line(format!("{label}.then:"));
        code(self);
        self.line(format!("br label %{label}.join"));
        self.line(format!("{label}.join:"));
    }

    /// Gives a variable another value in some items, and stores what it has in all of them.
    fn choice(&mut self) {
        let odd = self.one_of(&ODD);
        let of = self.one_of(&[I8, I16, I32, I64, F32, F64, odd, PAIR]);
        let variable = format!("%{}{}", TYPES[of].1, self.variable());
        let flag = self.get(FLAG);
        self.guarded(&flag, |step| {
            let operands = if of == PAIR { I32 } else { of };
            let (name, left, right) = (TYPES[operands].0, step.get(operands), step.get(operands));
            let value = match of {
                PAIR => step.call(TYPES[of].0, "uadd.with.overflow.i32", &[(name, &left), (name, &right)]),
                F32 | F64 => step.value(format!("fsub {name} {left}, {right}")),
                _ => step.value(format!("sub {name} {left}, {right}")),
            };
            step.line(format!("store {} {value}, ptr {variable}", TYPES[of].0));
        });
        let value = self.value(format!("load {}, ptr {variable}", TYPES[of].0));
        let (of, value) = match of {
            PAIR => (I32, self.value(format!("extractvalue {{i32, i1}} {value}, 0"))),
            _ => (of, self.quiet(of, &value)),
        };
        self.store(of, &value);
    }

    /// One type of integers, of which each fourth is odd.
    fn any_integer(&mut self) -> usize {
        if self.below(4) == 0 { self.one_of(&ODD) } else { self.one_of(&INTEGERS) }
    }

    fn integers(&mut self) {
        let of = self.any_integer();
        let name = TYPES[of].0;
        let operation = self.one_of(&["add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr"]);
        let left = self.get(of);
        let mut right = self.get(of);
        if operation.contains("sh") {
            right = self.value(format!("and {name} {right}, 7"));
        }
        self.set(of, format!("{operation} {name} {left}, {right}"));
    }

    fn integer_calls(&mut self) {
        let of = self.one_of(&INTEGERS);
        let name = TYPES[of].0;
        let (left, right, third) = (self.get(of), self.get(of), self.get(of));
        let (left, right, third) = ((name, &*left), (name, &*right), (name, &*third));
        let result = match self.below(6) {
            0 => {
                let operation = self.one_of(&["smin", "smax", "umax", "sadd.sat", "usub.sat"]);
                self.call(name, &format!("{operation}.{name}"), &[left, right])
            }
            1 => {
                let operation = self.one_of(&["ctlz", "cttz", "abs"]);
                self.call(name, &format!("{operation}.{name}"), &[left, ("i1", "false")])
            }
            2 => {
                let operation = self.one_of(&["ctpop", "bitreverse"]);
                self.call(name, &format!("{operation}.{name}"), &[left])
            }
            3 => {
                let operation = self.one_of(&["fshl", "fshr"]);
                self.call(name, &format!("{operation}.{name}"), &[left, right, third])
            }
            4 => {
                let operation = self.one_of(&["scmp", "ucmp"]);
                self.call(name, &format!("{operation}.{name}.{name}"), &[left, right])
            }
            _ => {
                let value = self.call("i32", "bswap.i32", &[("i32", "%id")]);
                return self.put(I32, &value);
            }
        };
        self.put(of, &result);
    }

    fn floats(&mut self) {
        let of = self.one_of(&[F32, F64]);
        let name = TYPES[of].0;
        let width = ["f32", "f64"][of - F32];
        let (left, right, third) = (self.get(of), self.get(of), self.get(of));
        match self.below(12) {
            0..=5 => {
                let operation = self.one_of(&["fadd", "fsub", "fmul", "fdiv", "fmul", "fadd"]);
                self.set(of, format!("{operation} {name} {left}, {right}"));
            }
            6 => self.set(of, format!("fneg {name} {left}")),
            7 => {
                let operation = self.one_of(&["minimum", "maximum", "minimumnum", "maximumnum"]);
                let result = self.call(name, &format!("{operation}.{width}"), &[(name, &left), (name, &right)]);
                self.put(of, &result);
            }
            8 => {
                let operations = ["sqrt", "fabs", "floor", "ceil", "trunc", "rint", "roundeven", "round", "nearbyint"];
                let operation = self.one_of(&operations);
                let result = self.call(name, &format!("{operation}.{width}"), &[(name, &left)]);
                self.put(of, &result);
            }
            9 | 10 => {
                let arguments = [(name, &*left), (name, &right), (name, &third)];
                let result = self.call(name, &format!("fma.{width}"), &arguments);
                self.put(of, &result);
            }
            _ => {
                let sign = self.quiet(of, &right);
                let result = self.call(name, &format!("copysign.{width}"), &[(name, &left), (name, &sign)]);
                self.put(of, &result);
            }
        }
    }

    fn flag(&mut self) {
        let odd = self.one_of(&ODD);
        let of = self.one_of(&[I8, I16, I32, I64, F32, F64, FLAG, odd]);
        let name = TYPES[of].0;
        let (left, right) = (self.get(of), self.get(of));
        let code = match of {
            F32 | F64 => {
                let predicate = self.one_of(&["oeq", "one", "olt", "oge", "ugt", "ule", "uno", "ord", "une"]);
                format!("fcmp {predicate} {name} {left}, {right}")
            }
            FLAG => {
                let operation = self.one_of(&["and", "or", "xor"]);
                format!("{operation} i1 {left}, {right}")
            }
            _ => {
                let predicate = self.one_of(&["eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"]);
                format!("icmp {predicate} {name} {left}, {right}")
            }
        };
        self.set(FLAG, code);
    }

    fn selection(&mut self) {
        let odd = self.one_of(&ODD);
        let of = self.one_of(&[I8, I16, I32, I64, F32, F64, odd]);
        let name = TYPES[of].0;
        let (flag, yes, no) = (self.get(FLAG), self.get(of), self.get(of));
        self.set(of, format!("select i1 {flag}, {name} {yes}, {name} {no}"));
    }

    /// Two results as one value.
    fn pair(&mut self) {
        match self.below(2) {
            0 => {
                let (left, right) = (self.get(I32), self.get(I32));
                let operation = self.one_of(&["uadd", "ssub", "smul"]);
                let name = format!("{operation}.with.overflow.i32");
                let pair = self.call("{i32, i1}", &name, &[("i32", &left), ("i32", &right)]);
                self.put(PAIR, &pair);
            }
            _ => {
                let pair = self.get(PAIR);
                self.set(I32, format!("extractvalue {{i32, i1}} {pair}, 0"));
                self.set(FLAG, format!("extractvalue {{i32, i1}} {pair}, 1"));
            }
        }
    }

    fn division(&mut self) {
        let of = self.one_of(&INTEGERS);
        let name = TYPES[of].0;
        let operation = self.one_of(&["udiv", "sdiv", "urem", "srem"]);
        let (left, right) = (self.get(of), self.get(of));
        let low = self.value(format!("and {name} {right}, 63"));
        let divisor = self.value(format!("or {name} {low}, 1"));
        self.set(of, format!("{operation} {name} {left}, {divisor}"));
    }

    fn guarded_division(&mut self) {
        let of = self.one_of(&INTEGERS);
        let name = TYPES[of].0;
        let (operation, predicate) = self.one_of(&[("udiv", "ne"), ("urem", "ne"), ("sdiv", "sgt"), ("srem", "sgt")]);
        let (left, right) = (self.get(of), self.get(of));
        let mut condition = self.value(format!("icmp {predicate} {name} {right}, 0"));
        if self.below(2) == 0 {
            let flag = self.get(FLAG);
            condition = self.value(format!("and i1 {flag}, {condition}"));
        }
        self.guarded(&condition, |step| step.set(of, format!("{operation} {name} {left}, {right}")));
    }

    /// A call that is undefined for items that do not get there.
    fn guarded_call(&mut self) {
        let (number, divisor) = (self.get(I32), self.get(I32));
        let condition = self.value(format!("icmp ne i32 {divisor}, 0"));
        self.guarded(&condition, |step| {
            step.set(I32, format!("call i32 @quotient(i32 {number}, i32 {divisor})"));
        });
    }

    /// A difference that is no index in items that do not get there.
    fn guarded_difference(&mut self) {
        let number = 1 + self.below(9);
        let condition = self.value(format!("icmp uge i64 %x, {number}"));
        self.guarded(&condition, |step| {
            let index = step.value(format!("sub nuw nsw i64 %x, {number}"));
            let address = step.value(format!("getelementptr inbounds nuw i32, ptr %in, i64 {index}"));
            step.set(I32, format!("load i32, ptr {address}"));
            step.set(I64, format!("add nuw nsw i64 {index}, 5"));
        });
    }
}
