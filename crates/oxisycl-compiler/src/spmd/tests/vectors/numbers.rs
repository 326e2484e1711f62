//! The steps of random bodies that convert numbers, or call functions of mathematics.

use super::program::{F32, F64, FLAG, I8, I16, I32, I64, ODD, Step, TYPES};

impl Step<'_> {
    /// Calls a function of C's, or an intrinsic that becomes one.
    pub(super) fn mathematics(&mut self) {
        let of = self.one_of(&[F32, F64]);
        let name = TYPES[of].0;
        let (width, suffix) = [("f32", "f"), ("f64", "")][of - F32];
        let (left, right) = (self.get(of), self.get(of));
        match self.below(4) {
            0 => {
                let function = self.one_of(&["tan", "cbrt"]);
                self.set(of, format!("call {name} @{function}{suffix}({name} {left})"));
            }
            1 => {
                let result = self.call(name, &format!("pow.{width}"), &[(name, &left), (name, &right)]);
                self.put(of, &result);
            }
            _ => {
                let operation = self.one_of(&["exp", "exp2", "log", "log2", "sin", "cos"]);
                let result = self.call(name, &format!("{operation}.{width}"), &[(name, &left)]);
                self.put(of, &result);
            }
        }
    }

    pub(super) fn conversion(&mut self) {
        let [v, w, f, d, c, h] = [I32, I64, F32, F64, I8, I16].map(|of| self.get(of));
        match self.below(19) {
            0 => self.set(F32, format!("sitofp i32 {v} to float")),
            1 => self.set(F64, format!("uitofp i64 {w} to double")),
            2 => self.set(F64, format!("fpext float {f} to double")),
            3 => self.set(F32, format!("fptrunc double {d} to float")),
            4 => {
                let value = self.call("i32", "fptosi.sat.i32.f32", &[("float", &f)]);
                self.put(I32, &value);
            }
            5 => {
                let value = self.call("i64", "fptoui.sat.i64.f64", &[("double", &d)]);
                self.put(I64, &value);
            }
            6 => {
                let value = self.call("double", "maximumnum.f64", &[("double", &d), ("double", "-1000.0")]);
                let value = self.call("double", "minimumnum.f64", &[("double", &value), ("double", "1000.0")]);
                self.set(I32, format!("fptosi double {value} to i32"));
            }
            7 => {
                let value = self.quiet(F32, &f);
                self.set(I32, format!("bitcast float {value} to i32"));
            }
            8 => {
                let value = self.value(format!("bitcast i64 {w} to double"));
                let value = self.quiet(F64, &value);
                self.put(F64, &value);
            }
            9 => self.set(I32, format!("sext i8 {c} to i32")),
            10 => self.set(I64, format!("zext i16 {h} to i64")),
            11 => self.set(I8, format!("trunc i32 {v} to i8")),
            12 => self.set(I16, format!("trunc i64 {w} to i16")),
            13 => self.set(I16, format!("sext i8 {c} to i16")),
            14 => self.set(F32, format!("uitofp i16 {h} to float")),
            15 => {
                let odd = self.one_of(&ODD);
                self.set(odd, format!("trunc i64 {w} to {}", TYPES[odd].0));
            }
            16 => {
                let odd = self.one_of(&ODD);
                let (value, operation) = (self.get(odd), self.one_of(&["zext", "sext"]));
                self.set(I64, format!("{operation} {} {value} to i64", TYPES[odd].0));
            }
            17 => {
                let odd = self.one_of(&ODD);
                let value = self.get(odd);
                self.set(I16, format!("trunc {} {value} to i16", TYPES[odd].0));
            }
            _ => {
                let flag = self.get(FLAG);
                let operation = self.one_of(&["zext", "sext"]);
                self.set(I32, format!("{operation} i1 {flag} to i32"));
            }
        }
    }
}
