//! The steps of random bodies that access fields of structures.

use super::layout::{self, IN_TABLE, SIZES, STRIDES};
use super::pages::PAGE;
use super::program::{F32, F64, FLAG, I8, I16, I32, I64, Step, TYPES};

impl Step<'_> {
    /// The number of a size of structures, and the type and number of their fields.
    fn fields(&mut self) -> (usize, usize, u64) {
        let number = self.below(STRIDES.len() as u64) as usize;
        let stride = STRIDES[number];
        let fits: Vec<usize> = [I8, I16, I32, I64, F32, F64]
            .into_iter()
            .filter(|of| stride > SIZES[*of] && stride.is_multiple_of(SIZES[*of]))
            .collect();
        let of = self.one_of(&fits);
        (number, of, (stride / SIZES[of]) as u64)
    }

    /// The address of the item's structure behind a place of the edges. Of some, no distance from lane to lane is seen.
    fn structure_at(&mut self, start: usize, stride: usize, is_seen: bool) -> String {
        let start = self.value(format!("getelementptr i8, ptr %edges, i64 {start}"));
        let index = if is_seen {
            "%x".to_owned()
        } else {
            let other = self.value("xor i64 %x, 5");
            self.value(format!("xor i64 {other}, 5"))
        };
        self.value(format!("getelementptr [{stride} x i8], ptr {start}, i64 {index}"))
    }

    fn field_at(&mut self, structure: &str, of: usize, field: u64) -> String {
        self.value(format!("getelementptr i8, ptr {structure}, i64 {}", field * SIZES[of] as u64))
    }

    /// Loads and stores of fields of the item's own structure.
    pub(super) fn structure(&mut self) {
        let (number, of, n_fields) = self.fields();
        let start = layout::structures(number) + layout::first_structure(number);
        let [seen, unseen] = [true, false].map(|is_seen| self.structure_at(start, STRIDES[number], is_seen));
        let (is_whole, is_mixed, first) = (self.below(3) > 0, self.below(3) == 0, self.below(n_fields));
        let load = |step: &mut Self| {
            let field = step.below(n_fields);
            let through = if step.below(6) == 0 { &unseen } else { &seen };
            let address = step.field_at(through, of, field);
            step.set(of, format!("load {}, ptr {address}, align 1", TYPES[of].0));
        };
        for _ in 0..self.below(4) {
            load(self);
        }
        for field in 0..n_fields {
            if !is_whole && self.below(2) == 0 {
                continue;
            }
            if is_mixed && self.below(2) == 0 {
                load(self);
            }
            let through = if is_mixed && self.below(6) == 0 { &unseen } else { &seen };
            let address = self.field_at(through, of, (field + first) % n_fields);
            let value = self.get(of);
            let value = self.quiet(of, &value);
            self.line(format!("store {} {value}, ptr {address}, align 1", TYPES[of].0));
        }
    }

    /// Loads of fields of structures that all items read. Nothing is behind the last field that the last of these items reads.
    pub(super) fn table(&mut self) {
        let (number, of, n_fields) = self.fields();
        let (stride, size) = (STRIDES[number] as u64, SIZES[of] as u64);
        let fields: Vec<u64> = (0..1 + self.below(4)).map(|_| self.below(n_fields)).collect();
        let end = fields.iter().max().map_or(0, |last| (last + 1) * size);
        let mut condition = self.value(format!("icmp ult i64 %x, {IN_TABLE}"));
        if self.below(4) == 0 {
            let flag = self.get(FLAG);
            condition = self.value(format!("and i1 {flag}, {condition}"));
        }
        self.guarded(&condition, |step| {
            let start = layout::structures(STRIDES.len()) as u64 + PAGE as u64 - (IN_TABLE - 1) * stride - end;
            let structure = step.structure_at(start as usize, stride as usize, true);
            for field in fields {
                let address = step.field_at(&structure, of, field);
                step.set(of, format!("load {}, ptr {address}, align 1", TYPES[of].0));
            }
        });
    }
}
