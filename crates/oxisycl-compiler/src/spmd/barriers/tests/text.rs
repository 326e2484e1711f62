//! Programs in LLVM's assembly.

use super::operations::{OPERATIONS, Type};
use super::program::{Array, Flow, IN_TABLE, OUTPUT, Operand, Program, SITE, Site, Statement, VARIABLES, Variable};
use crate::spmd::fuzz::program::line;

const DECLARATIONS: &str = "
declare void @llvm.lifetime.start.p0(ptr)
declare void @llvm.lifetime.end.p0(ptr)
declare i32 @llvm.umin.i32(i32, i32)
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i32 @__gcc_personality_v0(i32, i32, i64, ptr, ptr)
declare void @oxisycl.end_item_loop() convergent nounwind willreturn
declare ptr @oxisycl.item_array(i64) convergent nounwind willreturn memory(inaccessiblemem: readwrite)
declare void @group(ptr, i64, i64, i64)
define internal i32 @touch(ptr %array, i32 %value) noinline nounwind willreturn {
    %before = load i32, ptr %array
    %after = add i32 %before, %value
    store i32 %after, ptr %array
    ret i32 %before
}
%given = type { ptr, ptr, ptr, ptr, i64, i64, i64, [4 x i64] }
";

/// What all programs begin with.
const BEGIN: &str = "
define void @body(ptr %env, i64 %z, i64 %y, i64 %x) uwtable personality ptr @__gcc_personality_v0 { start:
    %in = load ptr, ptr %env
    %e1 = getelementptr inbounds %given, ptr %env, i64 0, i32 1 %shared = load ptr, ptr %e1
    %e2 = getelementptr inbounds %given, ptr %env, i64 0, i32 2 %all = load ptr, ptr %e2
    %e3 = getelementptr inbounds %given, ptr %env, i64 0, i32 3 %fail = load ptr, ptr %e3
    %e4 = getelementptr inbounds %given, ptr %env, i64 0, i32 4 %rows = load i64, ptr %e4
    %e5 = getelementptr inbounds %given, ptr %env, i64 0, i32 5 %row = load i64, ptr %e5
    %e6 = getelementptr inbounds %given, ptr %env, i64 0, i32 6 %items = load i64, ptr %e6
    %plane = mul i64 %z, %rows
    %line = add i64 %plane, %y
    %before = mul i64 %line, %row
    %place0 = add i64 %before, %x %place1 = add i64 %x, 0 %place2 = add i64 %y, 0 %place3 = add i64 %z, 0
    %last = sub i64 %items, 1
";

/// The module of a program. A group has a shape that is known, or its function is passed one.
pub(super) fn module(program: &Program, shape: Option<[u64; 3]>) -> String {
    let mut text = format!("{DECLARATIONS}{BEGIN}");
    line(&mut text, format!("%out = getelementptr [{OUTPUT} x i64], ptr %all, i64 %place0"));
    for of in Type::ALL {
        for number in 0..VARIABLES {
            let (name, variable) = (of.name(), variable(Variable { of, number }));
            line(&mut text, format!("{variable} = alloca {name} store {name} zeroinitializer, ptr {variable}"));
        }
    }
    for (number, Array { of, length, alignment, .. }) in program.arrays.iter().enumerate() {
        line(&mut text, format!("%array{number} = alloca [{length} x {}], align {alignment}", of.name()));
        line(&mut text, format!("call void @llvm.lifetime.start.p0(ptr %array{number})"));
    }
    line(&mut text, format!("%table = alloca [{IN_TABLE} x ptr]"));
    let mut writer = Writer { text, program, count: 0 };
    writer.flow(&program.flow);
    writer.line("br label %end end:");
    for number in IN_TABLE..program.arrays.len() {
        writer.line(&format!("call void @llvm.lifetime.end.p0(ptr %array{number})"));
    }
    writer.line("ret void");
    if writer.text.contains("label %trap") {
        writer.line("trap: call void %fail(i64 %place0) noreturn unreachable");
    }
    writer.line("}");
    let counts = shape.map(|counts| counts.map(|count| format!("i64 {count}")));
    let counts = counts.unwrap_or_else(|| ["i64 %planes", "i64 %rows", "i64 %row"].map(str::to_owned));
    writer.line("define void @run(ptr %env, i64 %planes, i64 %rows, i64 %row) uwtable {");
    writer.line(&format!("call void @group(ptr %env, {}) ret void }}", counts.join(", ")));
    writer.text
}

fn variable(Variable { of, number }: Variable) -> String {
    format!("%{}{number}", ["g", "c", "v", "w", "f"][of as usize])
}

struct Writer<'p> {
    text: String,
    program: &'p Program,
    count: u32,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        line(&mut self.text, text.to_owned());
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("t{}", self.count)
    }

    /// Adds an instruction. Returns the name of its result.
    fn add(&mut self, text: String) -> String {
        let name = self.name();
        self.line(&format!("%{name} = {text}"));
        format!("%{name}")
    }

    fn value(&mut self, of: Type, operand: Operand) -> String {
        match operand {
            Operand::Variable(from) => self.add(format!("load {}, ptr {}", from.of.name(), variable(from))),
            Operand::Constant(bits) => of.constant(bits),
            Operand::Place(number) => format!("%place{number}"),
            Operand::Capture(number) => {
                let at = self.add(format!("getelementptr inbounds %given, ptr %env, i64 0, i32 7, i64 {number}"));
                self.add(format!("load i64, ptr {at}"))
            }
        }
    }

    /// Stores a result to a variable, without NaN.
    fn set(&mut self, to: Variable, mut value: String) {
        if to.of == Type::F32 {
            let is_number = self.add(format!("fcmp ord float {value}, 0.0"));
            value = self.add(format!("select i1 {is_number}, float {value}, float 1.0"));
        }
        self.line(&format!("store {} {value}, ptr {}", to.of.name(), variable(to)));
    }

    /// The address of an array's element, whose number is reduced.
    fn element(&mut self, (array, address): (usize, &str), index: Operand) -> String {
        let Array { of, length, .. } = self.program.arrays[array];
        let index = match index {
            Operand::Constant(index) => format!("{}", index % length),
            _ => {
                let index = self.value(Type::I32, index);
                let index = self.add(format!("urem i32 {index}, {length}"));
                self.add(format!("zext i32 {index} to i64"))
            }
        };
        self.add(format!("getelementptr {}, ptr {address}, i64 {index}", of.name()))
    }

    fn place_of_table(&mut self, place: Operand) -> String {
        let place = self.value(Type::I32, place);
        let place = self.add(format!("and i32 {place}, 1"));
        let place = self.add(format!("zext i32 {place} to i64"));
        self.add(format!("getelementptr ptr, ptr %table, i64 {place}"))
    }

    /// The address of an element of a site.
    fn of_site(&mut self, site: usize, index: &str) -> String {
        let Site { of, is_asked_for } = self.program.sites[site];
        let first = if is_asked_for {
            format!("%site{site}")
        } else {
            self.add(format!("getelementptr i8, ptr %shared, i64 {}", SITE * site as u64))
        };
        self.add(format!("getelementptr {}, ptr {first}, i64 {index}", of.name()))
    }

    fn load(&mut self, to: Variable, address: &str) {
        let value = self.add(format!("load {}, ptr {address}", to.of.name()));
        self.set(to, value);
    }

    fn code(&mut self, code: &[Statement]) {
        code.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        match *statement {
            Statement::Compute { to, operation, from } => {
                let (_, operands, text, _) = OPERATIONS[operation];
                let mut text = text.to_owned();
                for ((name, of), from) in ["$a", "$b", "$c"].into_iter().zip(operands).zip(from) {
                    let value = self.value(*of, from);
                    text = text.replace(name, &value);
                }
                let value = self.add(text);
                self.set(to, value);
            }
            Statement::Input { to, index } => {
                let index = self.value(Type::I64, index);
                let index = self.add(format!("and i64 {index}, 63"));
                let address = self.add(format!("getelementptr i64, ptr %in, i64 {index}"));
                if to.of == Type::I1 {
                    let byte = self.add(format!("load i8, ptr {address}"));
                    let bit = self.add(format!("trunc i8 {byte} to i1"));
                    self.set(to, bit);
                } else {
                    self.load(to, &address);
                }
            }
            Statement::Load { to, array, index } => {
                let address = self.element((array, &format!("%array{array}")), index);
                self.load(to, &address);
            }
            Statement::Store { array, index, value } => {
                let of = self.program.arrays[array].of;
                let address = self.element((array, &format!("%array{array}")), index);
                let value = self.value(of, value);
                self.line(&format!("store {} {value}, ptr {address}", of.name()));
            }
            Statement::Point { place, array } => {
                let place = self.place_of_table(place);
                self.line(&format!("store ptr %array{array}, ptr {place}"));
            }
            Statement::LoadByTable { to, place, index } => {
                let place = self.place_of_table(place);
                let array = self.add(format!("load ptr, ptr {place}"));
                let address = self.element((0, &array), index);
                self.load(to, &address);
            }
            Statement::StoreByTable { place, index, value } => {
                let place = self.place_of_table(place);
                let array = self.add(format!("load ptr, ptr {place}"));
                let address = self.element((0, &array), index);
                let value = self.value(Type::I32, value);
                self.line(&format!("store i32 {value}, ptr {address}"));
            }
            Statement::Touch { to, array, value } => {
                let value = self.value(Type::I32, value);
                let before = self.add(format!("call i32 @touch(ptr %array{array}, i32 {value})"));
                self.set(to, before);
            }
            Statement::Bits { to, array } => {
                let address = self.add(format!("ptrtoint ptr %array{array} to i64"));
                let bits = self.add(format!("and i64 {address}, {}", self.program.arrays[array].alignment - 1));
                let bits = self.add(format!("trunc i64 {bits} to i32"));
                self.set(to, bits);
            }
            Statement::Output { number, of, value } => {
                let mut value = self.value(of, value);
                if of == Type::F32 {
                    value = self.add(format!("bitcast float {value} to i32"));
                }
                if of != Type::I64 {
                    let of = if of == Type::F32 { Type::I32 } else { of };
                    value = self.add(format!("zext {} {value} to i64", of.name()));
                }
                let address = self.add(format!("getelementptr i64, ptr %out, i64 {number}"));
                self.line(&format!("store i64 {value}, ptr {address}"));
            }
            Statement::Write { site, value } => {
                let Site { of, is_asked_for } = self.program.sites[site];
                if is_asked_for {
                    self.line(&format!("%site{site} = call ptr @oxisycl.item_array(i64 {})", of.size()));
                }
                let value = self.value(of, value);
                let address = self.of_site(site, "%place0");
                self.line(&format!("store {} {value}, ptr {address}", of.name()));
            }
            Statement::Read { site, to, index } => {
                let index = self.value(Type::I64, index);
                let index = self.add(format!("urem i64 {index}, %items"));
                let address = self.of_site(site, &index);
                self.load(to, &address);
            }
            Statement::Lead { site } => {
                let of = self.program.sites[site].of;
                let (name, [first, behind]) = (of.name(), [(); 2].map(|()| self.name()));
                let is_first = self.add("icmp eq i64 %place0, 0".to_owned());
                self.line(&format!("br i1 {is_first}, label %{first}, label %{behind} {first}:"));
                let values = ["0", "%last"].map(|index| {
                    let address = self.of_site(site, index);
                    self.add(format!("load {name}, ptr {address}"))
                });
                let add = if of == Type::F32 { "fadd" } else { "add" };
                let sum = self.add(format!("{add} {name} {}, {}", values[0], values[1]));
                let address = self.of_site(site, "%items");
                self.line(&format!("store {name} {sum}, ptr {address} br label %{behind} {behind}:"));
            }
            Statement::ReadLed { site, to } => {
                let address = self.of_site(site, "%items");
                self.load(to, &address);
            }
            Statement::If { condition, ref then, ref otherwise } => {
                let [yes, no, behind] = [(); 3].map(|()| self.name());
                let condition = self.value(Type::I1, condition);
                self.line(&format!("br i1 {condition}, label %{yes}, label %{no} {yes}:"));
                self.code(then);
                self.line(&format!("br label %{behind} {no}:"));
                self.code(otherwise);
                self.line(&format!("br label %{behind} {behind}:"));
            }
            Statement::Loop { counter, times, mask, ref body, until } => {
                let [head, inside, latch, behind] = [(); 4].map(|()| self.name());
                let times = self.value(Type::I32, times);
                let times = self.add(format!("and i32 {times}, {mask}"));
                self.line(&format!("store i32 0, ptr {} br label %{head} {head}:", variable(counter)));
                let round = self.value(Type::I32, Operand::Variable(counter));
                let goes_on = self.add(format!("icmp ult i32 {round}, {times}"));
                self.line(&format!("br i1 {goes_on}, label %{inside}, label %{behind} {inside}:"));
                self.code(body);
                let until = self.value(Type::I1, until);
                self.line(&format!("br i1 {until}, label %{behind}, label %{latch} {latch}:"));
                let next = self.add(format!("add i32 {round}, 1"));
                self.line(&format!("store i32 {next}, ptr {} br label %{head} {behind}:", variable(counter)));
            }
            Statement::Fail { item, condition } => {
                let mut condition = self.value(Type::I1, condition);
                if let Some(item) = item {
                    let is_item = self.add(format!("icmp eq i64 %place0, {item}"));
                    condition = self.add(format!("and i1 {is_item}, {condition}"));
                }
                let behind = self.name();
                self.line(&format!("br i1 {condition}, label %trap, label %{behind} {behind}:"));
            }
        }
    }

    fn flow(&mut self, flow: &[Flow]) {
        for part in flow {
            match part {
                Flow::Code(code) => self.code(code),
                Flow::Barrier => self.line("call void @oxisycl.end_item_loop()"),
                Flow::Choice { on, arms } => {
                    let on = self.value(Type::I32, *on);
                    let behind = self.name();
                    let names: Vec<String> = arms.iter().map(|_| self.name()).collect();
                    if arms.len() == 2 {
                        let bit = self.add(format!("trunc i32 {on} to i1"));
                        self.line(&format!("br i1 {bit}, label %{}, label %{}", names[0], names[1]));
                    } else {
                        let cases = (0..).zip(&names[1..]).map(|(case, name)| format!("i32 {case}, label %{name}"));
                        let cases = cases.collect::<Vec<_>>().join(" ");
                        self.line(&format!("switch i32 {on}, label %{} [ {cases} ]", names[0]));
                    }
                    for (arm, name) in arms.iter().zip(names) {
                        self.line(&format!("{name}:"));
                        self.flow(arm);
                        self.line(&format!("br label %{behind}"));
                    }
                    self.line(&format!("{behind}:"));
                }
                Flow::Loop { counter, limit, times, mask, is_tested_first, body } => {
                    let [head, inside, behind] = [(); 3].map(|()| self.name());
                    let times = self.value(Type::I64, *times);
                    let times = self.add(format!("trunc i64 {times} to i32"));
                    let times = self.add(format!("and i32 {times}, {mask}"));
                    let [round, most] = [counter, limit].map(|of| variable(*of));
                    self.line(&format!("store i32 {times}, ptr {most} store i32 0, ptr {round}"));
                    let first = if *is_tested_first { &head } else { &inside };
                    self.line(&format!("br label %{first} {head}:"));
                    let [now, times] = [counter, limit].map(|of| self.value(Type::I32, Operand::Variable(*of)));
                    let goes_on = self.add(format!("icmp ult i32 {now}, {times}"));
                    self.line(&format!("br i1 {goes_on}, label %{inside}, label %{behind} {inside}:"));
                    self.flow(body);
                    let now = self.value(Type::I32, Operand::Variable(*counter));
                    let next = self.add(format!("add i32 {now}, 1"));
                    self.line(&format!("store i32 {next}, ptr {round} br label %{head} {behind}:"));
                }
                Flow::Return { condition } => {
                    let condition = self.value(Type::I1, *condition);
                    let behind = self.name();
                    self.line(&format!("br i1 {condition}, label %end, label %{behind} {behind}:"));
                }
            }
        }
    }
}
