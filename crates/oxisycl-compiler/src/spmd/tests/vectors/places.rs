//! The steps of random bodies that access memory, or check an index.

use super::layout::{self, ITEMS, KINDS, SECTION};
use super::pages::PAGE;
use super::program::{F32, F64, FLAG, I8, I32, I64, POINTER, Step, TYPES};

/// The ways to places of an item's own.
const WAYS: u64 = 4;

impl Step<'_> {
    /// A check that some items may not pass, which tell what they have before they fail.
    pub(super) fn check(&mut self) {
        let is_near = self.below(2) == 0;
        let (index, bound) = if is_near {
            let bound = self.one_of(&["20", "46", "60", "%m"]);
            (self.value("add nuw i64 %x, %few"), bound)
        } else {
            let wide = self.get(I64);
            (self.value(format!("and i64 {wide}, 127")), "126")
        };
        let is_so = match self.below(3) {
            0 => self.value(format!("icmp ugt i64 {bound}, {index}")),
            _ => self.value(format!("icmp ult i64 {index}, {bound}")),
        };
        let flag = self.get(FLAG);
        let is_so = if is_near && self.below(3) == 0 { self.value(format!("or i1 {flag}, {is_so}")) } else { is_so };
        let label = self.label();
        self.line(format!("br i1 {is_so}, label %{label}.good, label %{label}.bad"));
        self.line(format!("{label}.bad:"));
        for of in [I32, F64] {
            let address = self.own(of, 0);
            let value = self.get(of);
            let value = self.quiet(of, &value);
            self.line(format!("store {} {value}, ptr {address}", TYPES[of].0));
        }
        self.line("call void %fail(i64 %x) noreturn unreachable");
        self.line(format!("{label}.good:"));
    }

    /// Has items at the ends of a range do something else than those between them.
    pub(super) fn border(&mut self) {
        let first = self.at_border();
        let condition = match self.below(6) {
            0 | 1 => {
                let (join, second) = (self.one_of(&["and", "or"]), self.at_border());
                self.value(format!("{join} i1 {first}, {second}"))
            }
            2 => {
                let second = self.at_border();
                let values = self.one_of(&["SECOND, i1 false", "true, i1 SECOND"]).replace("SECOND", &second);
                self.value(format!("select i1 {first}, i1 {values}"))
            }
            3 => self.value(format!("xor i1 {first}, true")),
            _ => first,
        };
        let label = self.label();
        self.line(format!("br i1 {condition}, label %{label}.yes, label %{label}.no"));
        for side in ["yes", "no"] {
            self.line(format!("{label}.{side}:"));
            for _ in 0..self.below(3) {
                match self.below(6) {
                    0 => self.check(),
                    1 | 2 => self.own_place(),
                    _ => self.input(),
                }
            }
            self.line(format!("br label %{label}.behind"));
        }
        self.line(format!("{label}.behind:"));
    }

    /// A comparison of what is a constant distance apart in neighbouring items, which may wrap.
    fn at_border(&mut self) -> String {
        let (name, x, n) = self.one_of(&[("i64", "%x", "%m"), ("i32", "%id", "%n")]);
        let number = self.below(24);
        let index = match self.below(7) {
            0 => self.value(format!("sub {name} {x}, {number}")),
            1 => self.value(format!("sub {name} {number}, {x}")),
            2 => self.value(format!("mul {name} {x}, {}", 1 + number % 5)),
            3 => self.value(format!("mul {name} {x}, -{}", 1 + number % 5)),
            // Near the end of what a number can be, with a sign and without.
            4 => {
                let last = [u64::MAX >> 1, u64::MAX][number as usize % 2] >> if name == "i64" { 0 } else { 32 };
                self.value(format!("add {name} {x}, {}", last - number))
            }
            _ => x.to_owned(),
        };
        let predicate = self.one_of(&["eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"]);
        let bound = match self.below(4) {
            0 => n.to_owned(),
            1 => self.value(format!("sub {name} {n}, {}", number % 4)),
            _ => self.below(36).to_string(),
        };
        match self.below(3) {
            0 => self.value(format!("icmp {predicate} {name} {bound}, {index}")),
            _ => self.value(format!("icmp {predicate} {name} {index}, {bound}")),
        }
    }

    /// An address in what all items read, with at least 8 bytes behind it.
    pub(super) fn pointers(&mut self) {
        let (first, second) = (self.get(POINTER), self.get(POINTER));
        match self.below(6) {
            0 => {
                let wide = self.get(I64);
                let index = self.value(format!("and i64 {wide}, 63"));
                self.set(POINTER, format!("getelementptr inbounds i32, ptr %in, i64 {index}"));
            }
            1 => {
                let flag = self.get(FLAG);
                self.set(POINTER, format!("select i1 {flag}, ptr {first}, ptr {second}"));
            }
            2 => self.set(FLAG, format!("icmp ult ptr {first}, {second}")),
            3 => {
                let [first, second] = [first, second].map(|of| self.value(format!("ptrtoint ptr {of} to i64")));
                self.set(I64, format!("sub i64 {first}, {second}"));
            }
            _ => self.set(I32, format!("load i32, ptr {first}")),
        }
    }

    /// Loads from what all items read.
    pub(super) fn input(&mut self) {
        let of = self.below(KINDS as u64) as usize;
        let index = match self.below(12) {
            0 => self.below(100).to_string(),
            1 => "%few".to_owned(),
            2 => "%x".to_owned(),
            3 => self.value("add nuw nsw i64 %x, %few"),
            4 => {
                let double = self.value("shl nuw nsw i64 %x, 1");
                self.value(format!("or disjoint i64 {double}, 1"))
            }
            5 => self.value("sub nuw nsw i64 63, %x"),
            6 | 7 => {
                let wide = self.get(I64);
                self.value(format!("and i64 {wide}, 127"))
            }
            8 => {
                let narrow = self.get(I8);
                let low = self.value(format!("lshr i8 {narrow}, 1"));
                self.value(format!("zext i8 {low} to i64"))
            }
            9 => self.value("sext i32 %id to i64"),
            10 => {
                let flag = self.get(FLAG);
                self.value(format!("select i1 {flag}, i64 %x, i64 %few"))
            }
            _ => self.value("lshr i64 %x, 2"),
        };
        let name = TYPES[of].0;
        let start = self.value(format!("getelementptr inbounds i8, ptr %in, i64 {}", layout::input(of)));
        let inbounds = self.one_of(&["", "inbounds ", "inbounds nuw "]);
        let (element, align) = layout::element(of);
        let address = self.value(format!("getelementptr {inbounds}{element}, ptr {start}, i64 {index}"));
        self.set(of, format!("load {name}, ptr {address}{align}"));
    }

    /// The address of a place that the item alone accesses.
    fn own(&mut self, of: usize, way: u64) -> String {
        let ((element, _), size) = (layout::element(of), layout::SIZES[of]);
        if way == WAYS - 1 {
            // Somewhere in a region of bytes.
            let per_item = layout::REGION / size as u64;
            let offset = if self.below(2) == 0 {
                (self.below(per_item) * size as u64).to_string()
            } else {
                let wide = self.get(I64);
                let index = self.value(format!("and i64 {wide}, {}", layout::choices(per_item) - 1));
                self.value(format!("mul i64 {index}, {size}"))
            };
            let start = self.value(format!("getelementptr inbounds i8, ptr %out, i64 {}", layout::regions()));
            let region = format!("[{} x i8]", layout::REGION);
            return self.value(format!("getelementptr inbounds {region}, ptr {start}, i64 %x, i64 {offset}"));
        }
        let index = match way {
            0 => "%x".to_owned(),
            1 => self.value(format!("sub i64 {}, %x", ITEMS - 1)),
            _ => self.value("xor i64 %x, 5"),
        };
        let start = layout::part(way) + of * SECTION;
        let start = self.value(format!("getelementptr inbounds i8, ptr %out, i64 {start}"));
        self.value(format!("getelementptr inbounds {element}, ptr {start}, i64 {index}"))
    }

    pub(super) fn own_place(&mut self) {
        let of = self.below(KINDS as u64) as usize;
        let way = self.below(WAYS);
        let address = self.own(of, way);
        self.access(of, &address);
    }

    /// Stores a value to a place of the item's own.
    pub(super) fn store(&mut self, of: usize, value: &str) {
        let way = self.below(WAYS);
        let address = self.own(of, way);
        self.line(format!("store {} {value}, ptr {address}{}", TYPES[of].0, layout::element(of).1));
    }

    /// An atomic operation whose result is not used. Another one could decide what the item does, as a wait would.
    fn atomic(&mut self, of: usize, address: &str, value: &str) {
        let (name, value) = (TYPES[of].0, self.quiet(of, value));
        if of == F32 || of == F64 || self.below(3) == 0 {
            let order = self.one_of(&["monotonic", "release"]);
            let size = layout::SIZES[of];
            return self.line(format!("store atomic {name} {value}, ptr {address} {order}, align {size}"));
        }
        let operation = self.one_of(&["add", "xor", "umax", "xchg"]);
        _ = self.value(format!("atomicrmw {operation} ptr {address}, {name} {value} monotonic"));
    }

    /// Stores to an address, or loads from it, or does both, sometimes as an atomic operation.
    fn access(&mut self, of: usize, address: &str) {
        let name = TYPES[of].0;
        let align = if self.below(4) == 0 { ", align 1" } else { layout::element(of).1 };
        let value = self.get(of);
        let how = self.below(5);
        if how == 4 && layout::SIZES[of].is_power_of_two() {
            return self.atomic(of, address, &value);
        }
        if how == 0 {
            return self.set(of, format!("load {name}, ptr {address}{align}"));
        }
        let mut value = value;
        if how == 1 {
            let old = self.value(format!("load {name}, ptr {address}{align}"));
            let operation = if of == F32 || of == F64 { "fadd" } else { "add" };
            value = self.value(format!("{operation} {name} {old}, {value}"));
        }
        let value = self.quiet(of, &value);
        self.line(format!("store {name} {value}, ptr {address}{align}"));
    }

    /// An address that is the same one for all items, and of which one item alone makes use.
    pub(super) fn place_of_all(&mut self) {
        let of = self.below(KINDS as u64) as usize;
        let item = self.below(8) + 8 * self.below(2);
        let mut condition = self.value(format!("icmp eq i64 %x, {item}"));
        if self.below(3) == 0 {
            let flag = self.get(FLAG);
            condition = self.value(format!("and i1 {flag}, {condition}"));
        }
        self.guarded(&condition, |step| {
            let at = layout::part(layout::OF_ALL) + of * SECTION + item as usize * 8;
            let address = step.value(format!("getelementptr inbounds i8, ptr %out, i64 {at}"));
            step.access(of, &address);
        });
    }

    /// An access of an element at an edge, by the items that have one. Those of the other items would be beyond, where nothing can be accessed.
    pub(super) fn edge(&mut self) {
        let of = self.below(KINDS as u64) as usize;
        let ((element, _), size) = (layout::element(of), layout::SIZES[of] as u64);
        // Where the element of item 0 is or would be. No item is of the third kind.
        let (condition, start) = match self.below(5) {
            0 | 1 => (format!("icmp ult i64 %x, {}", layout::AT_END), (PAGE as u64 - layout::AT_END * size) as i64),
            2 | 3 => (format!("icmp uge i64 %x, {}", layout::AT_BEGIN), -((layout::AT_BEGIN * size) as i64)),
            _ => (format!("icmp uge i64 %x, {ITEMS}"), PAGE as i64),
        };
        let is_of_none = start == PAGE as i64;
        let mut condition = self.value(condition);
        if self.below(3) == 0 {
            let flag = self.get(FLAG);
            condition = self.value(format!("and i1 {flag}, {condition}"));
        }
        self.guarded(&condition, |step| {
            let start = layout::edge(of) as i64 + start;
            let start = step.value(format!("getelementptr i8, ptr %edges, i64 {start}"));
            let index = match step.below(2) {
                0 => {
                    // No distance from lane to lane is seen in that.
                    let other = step.value("xor i64 %x, 5");
                    step.value(format!("xor i64 {other}, 5"))
                }
                _ if is_of_none => "%few".to_owned(),
                _ => "%x".to_owned(),
            };
            let address = step.value(format!("getelementptr {element}, ptr {start}, i64 {index}"));
            step.access(of, &address);
        });
    }

    /// An access of a variable that is an array.
    pub(super) fn private(&mut self) {
        let of = self.below(KINDS as u64) as usize;
        let ((element, _), count) = (layout::element(of), layout::choices(32 / layout::SIZES[of] as u64));
        let wide = self.get(I64);
        let index = match self.below(3) {
            0 => self.below(count).to_string(),
            _ => self.value(format!("and i64 {wide}, {}", count - 1)),
        };
        let address = self.value(format!("getelementptr inbounds {element}, ptr %mine, i64 {index}"));
        self.access(of, &address);
    }
}
