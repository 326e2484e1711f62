//! Phases: what one work-item computes between two barriers, which may be anything that a kernel over a range computes.
//!
//! A phase reads the tiles at any index, and changes private values. It returns what its form writes. Work-items part in it as they like.

use std::fmt::Write;

use super::program::{Memory, Program};
use super::{Type, U32, U64, Variable, add};

impl Program {
    /// The name of a phase that returns the element of a tile. Most often it depends on each bit of another work-item's element.
    pub(super) fn mixing(&mut self) -> String {
        let of = self.memory.tile;
        self.phase(Some(&["near", "far", "bins"]), of, |program| program.mixed(of, "other"))
    }

    /// The name of a phase that changes an element, most often to one that depends on each of its bits.
    pub(super) fn changing(&mut self, element: Type) -> String {
        self.phase(None, element, |program| program.mixed(element, "old"))
    }

    fn mixed(&mut self, of: Type, old: &str) -> String {
        let value = self.base.expression(of, 0);
        match of {
            _ if self.base.random.percent(15) => value,
            // What is no number, or so large that it swallows all others, stays behind.
            Type::Float { .. } => {
                format!("{{ let value = {value}; if value.abs() < 1e9 {{ value + {old} }} else {{ {old} * 0.75 }} }}")
            }
            _ => format!("{value}.wrapping_add({old}.rotate_left({}))", 1 + self.base.random.below(31)),
        }
    }

    /// The name of a phase that returns a value of the type, which the form takes from all memory.
    pub(super) fn reading(&mut self, result: Type) -> String {
        self.phase(Some(&["near", "far", "bins"]), result, |program| program.base.expression(result, 0))
    }

    /// The name of a phase that returns a bin and a number. It does not read bins.
    pub(super) fn counting(&mut self) -> String {
        let pair = |program: &mut Self| {
            let (bin, number) = (program.base.expression(U32, 1), program.base.expression(U32, 1));
            format!("({bin}, {number})")
        };
        self.phase(Some(&["near", "far"]), U32, pair)
    }

    /// Writes a phase. One that reads no tiles gets an element and its index.
    fn phase(&mut self, tiles: Option<&[&str]>, of: Type, value: impl Fn(&mut Self) -> String) -> String {
        let name = self.next_name();
        let result = match tiles {
            Some([_, _]) => "(u32, u32)".to_owned(),
            _ => of.name(),
        };
        self.base.variables = self.known(tiles.is_none().then_some(of));
        self.base.is_kernel = true;
        self.head(&name, tiles.is_some(), &of.name(), &result);
        for tile in tiles.unwrap_or_default() {
            self.base.variables.push(self.tile(tile));
        }
        if tiles.is_some() {
            self.neighbour("other".to_owned());
            if self.base.random.percent(40) {
                let name = self.base.any_name("v");
                self.neighbour(name);
            }
        }
        self.base.budget = 1 + self.base.random.below(4);
        self.base.block(2, 4);
        if self.base.random.percent(25) {
            let condition = self.base.expression(Type::Bool, 1);
            let early = value(self);
            self.base.line(1, &format!("if {condition} {{ return {early}; }}"));
            self.base.block(2, 2);
        }
        let value = value(self);
        let own = self.own_values("");
        let _ = writeln!(self.base.text, "    *own = {own};\n    {value}\n}}\n");
        name
    }

    /// The name of the phase that adds up all that a work-item knows.
    pub(super) fn last_phase(&mut self) -> String {
        let name = self.next_name();
        self.head(&name, true, "", "[u64; 2]");
        let Memory { items, tile, .. } = self.memory;
        let mut lines = vec!["let mut sum = Sum::new();".to_owned()];
        for near in ["near", "far"] {
            lines.push(format!("let value = {near}[local as usize]; {}", add("value", tile)));
        }
        lines.push(format!(
            "for value in bins.iter().skip(local as usize).step_by({items}) {{ sum.add(*value as u64); }}"
        ));
        lines.push("for value in shared { sum.add(value); }".to_owned());
        for Variable { name, of, length, .. } in &self.memory.own {
            lines.push(match length {
                None => add(name, *of),
                Some(_) => format!("for value in {name} {{ {} }}", add("value", *of)),
            });
        }
        lines.push("sum.0".to_owned());
        lines.iter().for_each(|line| self.base.line(1, line));
        self.base.text.push_str("}\n\n");
        name
    }

    fn next_name(&mut self) -> String {
        self.n_phases += 1;
        format!("phase_{}_{}", self.base.seed, self.n_phases)
    }

    /// What every phase knows, and an element with its index if it gets one.
    fn known(&self, element: Option<Type>) -> Vec<Variable> {
        let scalar = |name: &str, of| Variable { name: name.to_owned(), of, is_mutable: false, length: None };
        let mut known: Vec<Variable> = ["local", "group", "item"].map(|name| scalar(name, U32)).to_vec();
        known.extend(["u0", "u1", "u2", "u3"].map(|name| scalar(name, U64)));
        known.extend(self.memory.own.iter().cloned());
        known.extend(element.into_iter().flat_map(|of| [scalar("index", U32), scalar("old", of)]));
        known
    }

    fn tile(&self, name: &str) -> Variable {
        let Memory { items, bins, tile, .. } = self.memory;
        let (of, length) = if name == "bins" { (U32, bins) } else { (tile, items) };
        Variable { name: name.to_owned(), of, is_mutable: false, length: Some(length) }
    }

    /// The private values as a tuple, each behind `word`.
    fn own_values(&self, word: &str) -> String {
        let names: Vec<String> = self.memory.own.iter().map(|variable| format!("{word}{}", variable.name)).collect();
        format!("({})", names.join(", "))
    }

    fn head(&mut self, name: &str, reads: bool, element: &str, result: &str) {
        let (seed, tile) = (self.base.seed, self.memory.tile.name());
        let inline = if self.base.random.percent(40) { "#[inline(never)]\n" } else { "" };
        let (tiles, last) = match reads {
            true => (format!("tiles: Tiles<'_, {tile}>, "), String::new()),
            false => (String::new(), format!(", index: u32, old: {element}")),
        };
        let own = self.own_values("mut ");
        let _ = writeln!(
            self.base.text,
            "{inline}fn {name}(place: Place, input: &[u32], {tiles}shared: Shared, own: &mut Own{seed}{last}) -> {result} {{\n    \
             let Place {{ local, group, item }} = place;\n    let [u0, u1, u2, u3] = shared;\n    let {own} = *own;"
        );
        if reads {
            self.base.line(1, "let Tiles { near, far, bins } = tiles;");
        }
    }

    /// Reads an element of another work-item.
    fn neighbour(&mut self, name: String) {
        let Memory { items, tile, .. } = self.memory;
        let from = self.base.random.pick(&["near", "near", "far"]);
        let index = match self.base.random.below(4) {
            0 => format!("(local as usize + {}) % {items}", self.base.random.below(items)),
            1 => format!("{} - local as usize", items - 1),
            2 => format!("(local as usize * {}) % {from}.len()", 1 + 2 * self.base.random.below(8)),
            _ => format!("({} as usize) % {items}", self.base.expression(U32, 2)),
        };
        self.base.line(1, &format!("let mut {name}: {} = {from}[{index}];", tile.name()));
        self.base.variables.push(Variable { name, of: tile, is_mutable: true, length: None });
    }
}
