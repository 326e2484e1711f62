//! Elements by `view[[y, x]]` and `view[[z, y, x]]` in loops, beside elements of rows: how many instructions each takes in PTX and SPIR-V.

use std::collections::{BTreeMap, BTreeSet};

use crate::groups::modules;
use crate::program::{build, functions};

/// How `kernels/views.rs` finds elements: by indices in a loop, or in an iterator's sum, or in rows.
const FORMS: [&str; 3] = ["indices", "sums", "rows"];
/// The loops there, and the most instructions for an element by each form, in PTX and in SPIR-V.
///
/// Elements cost the same by all forms. Products by indices alone check in the loop: how many rows the second factor has is not how many columns the
/// first one has. So they are not unrolled in PTX.
const LOOPS: [(&str, [usize; 3], [usize; 3]); 3] =
    [("product", [11, 11, 5], [21, 21, 21]), ("line", [3, 3, 3], [11, 11, 11]), ("planes", [5, 5, 5], [14, 14, 14])];

/// Some instructions that run one after the other.
#[derive(Default, Debug)]
struct Block {
    /// How often each instruction is in it.
    counts: BTreeMap<String, usize>,
    /// The blocks that may follow, by their labels.
    next: Vec<String>,
}

/// The blocks of a function by their labels. The first one has none.
type Blocks = Vec<(String, Block)>;

/// How often each instruction is in the rounds of the innermost loops, in the order of the code.
fn innermost_loops(blocks: &Blocks) -> Vec<BTreeMap<&str, usize>> {
    let at: BTreeMap<&str, usize> = blocks.iter().zip(0..).map(|((label, _), at)| (label.as_str(), at)).collect();
    let next = |block: usize| blocks[block].1.next.iter().map(|label| at[label.as_str()]);
    let mut loops: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for latch in 0..blocks.len() {
        for head in next(latch).filter(|head| *head <= latch) {
            // What leads back without the head.
            let (body, mut rest) = (loops.entry(head).or_default(), vec![latch]);
            body.insert(head);
            while let Some(block) = rest.pop() {
                if body.insert(block) {
                    rest.extend((0..blocks.len()).filter(|before| next(*before).any(|after| after == block)));
                }
            }
        }
    }
    let is_innermost =
        |head: &usize, body: &BTreeSet<usize>| !body.iter().any(|at| at != head && loops.contains_key(at));
    let inner = loops.iter().filter(|(head, body)| is_innermost(head, body));
    inner
        .map(|(_, body)| {
            let mut counts = BTreeMap::new();
            for (name, n) in body.iter().flat_map(|block| &blocks[*block].1.counts) {
                *counts.entry(name.as_str()).or_default() += n;
            }
            counts
        })
        .collect()
}

fn blocks_of_ptx(code: &str) -> Blocks {
    let mut blocks = vec![(String::new(), Block::default())];
    let mut falls_through = true;
    for line in code.lines().map(str::trim) {
        let begin = line.strip_suffix(':').filter(|label| label.starts_with("$L__BB"));
        if let Some(label) = begin {
            if falls_through {
                blocks.last_mut().unwrap().1.next.push(label.to_owned());
            }
            blocks.push((label.to_owned(), Block::default()));
            falls_through = true;
        }
        let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
        let (is_conditional, words) = match &words[..] {
            [condition, words @ ..] if condition.starts_with('@') => (true, words),
            words => (false, words),
        };
        let Some(name) = words.first().filter(|name| line.ends_with(';') && !name.starts_with('.')) else { continue };
        let block = &mut blocks.last_mut().unwrap().1;
        *block.counts.entry((*name).to_owned()).or_default() += 1;
        if name.starts_with("bra") {
            block.next.push(words[1].to_owned());
        }
        falls_through &= is_conditional || !["bra", "bra.uni", "ret", "exit", "trap"].contains(name);
    }
    blocks
}

/// The blocks of all functions of a module of SPIR-V. Instructions have their numbers as names.
fn blocks_of_spirv(module: &[u8]) -> Blocks {
    const LABEL: u32 = 248;
    const BRANCH: u32 = 249;
    const BRANCH_IF: u32 = 250;
    const SWITCH: u32 = 251;
    let words: Vec<u32> = module.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let (mut position, mut blocks) = (5, Blocks::new());
    while let Some(first) = words.get(position) {
        let operands = &words[position + 1..position + (first >> 16) as usize];
        let code = first & 0xFFFF;
        if code == LABEL {
            blocks.push((operands[0].to_string(), Block::default()));
        } else if let Some((_, block)) = blocks.last_mut() {
            *block.counts.entry(code.to_string()).or_default() += 1;
            let next = match code {
                BRANCH => &operands[..1],
                BRANCH_IF => &operands[1..3],
                SWITCH => &operands[1..2],
                _ => &[],
            };
            block.next.extend(next.iter().map(u32::to_string));
        }
        position += operands.len() + 1;
    }
    blocks
}

/// The most instructions for one element among these loops, those of the loop itself shared by the elements of a round. Fails for a loop that has more.
fn holds(name: &str, by: &str, loops: &[BTreeMap<&str, usize>], sums: &[&str], most: usize) {
    // Messages of panics are written in loops, too.
    let n_sums = |counts: &BTreeMap<&str, usize>| sums.iter().filter_map(|sum| counts.get(sum)).sum::<usize>();
    let summing: Vec<_> = loops.iter().filter(|counts| n_sums(counts) > 0).collect();
    // The first one has the most elements in a round. Another one is for the rest.
    let counts = summing.first().unwrap_or_else(|| panic!("{name} by {by} has no loop: {loops:?}"));
    let n_instructions: usize = counts.values().sum();
    assert!(n_instructions <= most * n_sums(counts), "{name} by {by}: more than {most} for an element: {counts:?}");
}

/// The code of a kernel.
fn of<'c, C>(mut codes: impl Iterator<Item = (&'c String, C)>, name: &str, by: &str) -> C {
    let part = format!("views_{name}_by_{by}_closure");
    codes.find(|(found, _)| found.contains(&part)).unwrap_or_else(|| panic!("no kernel {part}")).1
}

#[test]
fn ptx() {
    let built = build("views", &["--release"]);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    let functions = functions(&built.code);
    for (name, most, _) in LOOPS {
        for (by, most) in FORMS.into_iter().zip(most) {
            let blocks = blocks_of_ptx(of(functions.iter(), name, by));
            holds(name, by, &innermost_loops(&blocks), &["add.f32", "add.rn.f32", "fma.rn.f32"], most);
        }
    }
}

#[test]
fn spirv() {
    const ADDITION: &str = "129";
    let modules = modules("views");
    for (name, _, most) in LOOPS {
        for (by, most) in FORMS.into_iter().zip(most) {
            let blocks = blocks_of_spirv(of(modules.iter().map(|(name, module)| (name, module)), name, by));
            holds(name, by, &innermost_loops(&blocks), &[ADDITION], most);
        }
    }
}
