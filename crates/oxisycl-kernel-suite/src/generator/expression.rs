//! Expressions: operators, functions of numbers, conversions, and calls.

use super::{F32, F64, Generator, Type, U32, Variable};

/// Expressions are at most so deep.
const DEEPEST: usize = 4;

impl Generator {
    /// A variable, an element, or nothing if there is none of the type.
    fn known(&mut self, of: Type) -> Option<String> {
        let fitting: Vec<Variable> = self.variables.iter().filter(|variable| variable.of == of).cloned().collect();
        if fitting.is_empty() {
            return None;
        }
        let variable = &fitting[self.random.below(fitting.len())];
        Some(match variable.length {
            None => variable.name.clone(),
            Some(length) => {
                let index = self.small_index(length);
                format!("{}[{index}]", variable.name)
            }
        })
    }

    /// An index that needs no deep expression.
    fn small_index(&mut self, length: usize) -> String {
        let words: Vec<String> = self
            .variables
            .iter()
            .filter(|variable| variable.length.is_none() && matches!(variable.of, Type::Integer { .. }))
            .map(|variable| variable.name.clone())
            .collect();
        if words.is_empty() || self.random.percent(30) {
            return self.random.below(length).to_string();
        }
        let word = &words[self.random.below(words.len())];
        format!("({word} as usize) % {length}")
    }

    /// An expression of a type, in parentheses or atomic.
    pub(super) fn expression(&mut self, of: Type, depth: usize) -> String {
        if depth >= DEEPEST || self.random.percent(20) {
            if self.random.percent(75)
                && let Some(known) = self.known(of)
            {
                return known;
            }
            return self.literal(of);
        }
        if self.random.percent(8)
            && let Some(call) = self.call(of, depth)
        {
            return call;
        }
        if self.random.percent(6) {
            let condition = self.expression(Type::Bool, depth + 1);
            let (yes, no) = (self.expression(of, depth + 1), self.expression(of, depth + 1));
            return format!("(if {condition} {{ {yes} }} else {{ {no} }})");
        }
        match of {
            Type::Integer { bits, is_signed } => self.integer(of, bits, is_signed, depth + 1),
            Type::Float { bits } => self.float(of, bits, depth + 1),
            Type::Bool => self.condition(depth + 1),
        }
    }

    fn call(&mut self, of: Type, depth: usize) -> Option<String> {
        let fitting: Vec<usize> =
            (0..self.functions.len()).filter(|&index| self.functions[index].result == of).collect();
        if fitting.is_empty() {
            return None;
        }
        let index = fitting[self.random.below(fitting.len())];
        let parameters = self.functions[index].parameters.clone();
        let values: Vec<String> = parameters.into_iter().map(|of| self.expression(of, depth + 1)).collect();
        Some(format!("{}({})", self.functions[index].name, values.join(", ")))
    }

    fn literal(&mut self, of: Type) -> String {
        let bits = self.random.next();
        match of {
            Type::Integer { .. } => {
                let small = [0, 1, 2, 3, 7, 31, 32, 63, 64, 127, 128, 255, 0x7FFF, 0x8000, 0x7FFF_FFFF, 0x8000_0000];
                let number = match self.random.below(4) {
                    0 => bits,
                    1 => !self.random.pick(&small),
                    _ => self.random.pick(&small),
                };
                format!("(0x{number:X}_u64 as {})", of.name())
            }
            Type::Float { bits: 32 } if self.random.percent(25) => format!("f32::from_bits(0x{:X})", bits as u32),
            Type::Float { .. } => {
                let numbers = [
                    "0.0",
                    "1.0",
                    "0.5",
                    "3.0",
                    "1e-3",
                    "0.1",
                    "1e10",
                    "16777217.0",
                    "1e-39",
                    "3e38",
                    "INFINITY",
                    "NAN",
                ];
                let number = self.random.pick(&numbers);
                let sign = if self.random.percent(30) { "-" } else { "" };
                let name = of.name();
                match number {
                    "INFINITY" | "NAN" => format!("({sign}{name}::{number})"),
                    _ => format!("({sign}{number}_{name})"),
                }
            }
            Type::Bool => (bits & 1 == 0).to_string(),
        }
    }

    fn integer(&mut self, of: Type, bits: u32, is_signed: bool, depth: usize) -> String {
        let ty = of.name();
        match self.random.below(22) {
            0..=3 => {
                let operation = self.random.pick(&["wrapping_add", "wrapping_sub", "wrapping_mul"]);
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                format!("{a}.{operation}({b})")
            }
            4..=6 => {
                let operation = self.random.pick(&["&", "|", "^"]);
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                format!("({a} {operation} {b})")
            }
            7 => format!("(!{})", self.expression(of, depth)),
            8 | 9 => {
                let operation = self.random.pick(&["wrapping_shl", "wrapping_shr", "rotate_left", "rotate_right"]);
                let (a, b) = (self.expression(of, depth), self.expression(U32, depth + 1));
                format!("{a}.{operation}({b})")
            }
            10 | 11 => {
                let operation = self.random.pick(&["wrapping_div", "wrapping_rem"]);
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                format!("{a}.{operation}({b} | 1)")
            }
            12 => {
                let operation = self.random.pick(&["checked_add", "checked_sub", "checked_mul", "checked_div"]);
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                let otherwise = self.expression(of, depth + 1);
                format!("{a}.{operation}({b}).unwrap_or({otherwise})")
            }
            13 => {
                let operation = self.random.pick(&["saturating_add", "saturating_sub", "saturating_mul"]);
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                format!("{a}.{operation}({b})")
            }
            14 => {
                let operation = self.random.pick(&["leading_zeros", "trailing_zeros", "count_ones"]);
                format!("({}.{operation}() as {ty})", self.expression(of, depth))
            }
            15 => {
                let operation = self.random.pick(&["swap_bytes", "reverse_bits"]);
                format!("{}.{operation}()", self.expression(of, depth))
            }
            16 => {
                let operation = self.random.pick(&["min", "max"]);
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                format!("{a}.{operation}({b})")
            }
            17 if is_signed => format!("{}.wrapping_abs()", self.expression(of, depth)),
            17 if bits < 128 => {
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                format!("{a}.abs_diff({b})")
            }
            18 => {
                let float = self.random.pick(&[F32, F64]);
                format!("(bits_of_{}({}) as {ty})", float.name(), self.expression(float, depth))
            }
            19 if self.is_kernel => {
                let place = self.expression(U32, depth + 1);
                format!("(input[{place} as usize % input.len()] as {ty})")
            }
            _ => {
                let other = self.any_type();
                format!("({} as {ty})", self.expression(other, depth))
            }
        }
    }

    fn float(&mut self, of: Type, bits: u32, depth: usize) -> String {
        let ty = of.name();
        match self.random.below(14) {
            0..=6 => {
                let operation = self.random.pick(&["+", "-", "*", "/"]);
                self.divides |= bits == 32 && operation == "/";
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                format!("({a} {operation} {b})")
            }
            7 => format!("(-{})", self.expression(of, depth)),
            8 => {
                self.divides |= bits == 32;
                format!("{}.sqrt()", self.expression(of, depth))
            }
            9 => format!("{}.abs()", self.expression(of, depth)),
            10 if bits == 32 => format!("f32::from_bits({})", self.expression(U32, depth)),
            11 => {
                let other = if bits == 32 { F64 } else { F32 };
                format!("({} as {ty})", self.expression(other, depth))
            }
            _ => {
                let other = self.any_integer();
                format!("({} as {ty})", self.expression(other, depth))
            }
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        match self.random.below(10) {
            0..=5 => {
                let of = self.any_type();
                let operation = self.random.pick(&["<", "<=", "==", "!=", ">", ">="]);
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                format!("({a} {operation} {b})")
            }
            6 | 7 => {
                let operation = self.random.pick(&["&&", "||", "^"]);
                let (a, b) = (self.expression(Type::Bool, depth), self.expression(Type::Bool, depth));
                format!("({a} {operation} {b})")
            }
            8 => {
                let of = self.any_integer();
                let operation = self.random.pick(&["overflowing_add", "overflowing_sub", "overflowing_mul"]);
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                format!("{a}.{operation}({b}).1")
            }
            _ => format!("(!{})", self.expression(Type::Bool, depth)),
        }
    }
}
