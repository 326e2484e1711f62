//! Algorithms: life, search, codes, random numbers, dynamic programs.

use crate::harness::{Env, kernels, scramble};
use crate::outcome::Tolerance::Exact;

kernels![
    the_game_of_life,
    a_pattern_is_found_by_its_prefixes,
    a_prefix_code_is_decoded,
    random_numbers_of_a_permuted_generator,
    random_numbers_of_a_counter,
    the_distance_of_two_words,
    queens_on_a_board,
    a_maze_is_crossed,
    a_tree_in_an_array,
    run_lengths_are_packed_and_unpacked,
    a_small_machine_runs_a_program,
];

fn the_game_of_life(env: &Env) {
    const SIDE: usize = 32;
    let cells: Vec<u8> = (0..SIDE * SIDE).map(|i| u8::from(scramble(i).is_multiple_of(3))).collect();
    env.compare_over(Exact, cells, |cells, i| {
        // Three generations, from the neighbourhood that decides them.
        fn alive(cells: &[u8], x: usize, y: usize, generation: u32) -> bool {
            let (x, y) = (x % SIDE, y % SIDE);
            if generation == 0 {
                return cells[y * SIDE + x] != 0;
            }
            let at = |dx: usize, dy: usize| alive(cells, x + SIDE + dx - 1, y + SIDE + dy - 1, generation - 1);
            let around = (0..9).filter(|k| *k != 4 && at(k % 3, k / 3)).count();
            around == 3 || (around == 2 && at(1, 1))
        }
        [1, 2, 3].map(|generation| alive(cells, i % SIDE, i / SIDE, generation))
    });
}

fn a_pattern_is_found_by_its_prefixes(env: &Env) {
    const TEXT: &[u8] = b"abababcabcabababdababcababcabababcababababdab";
    fn prefixes<const LENGTH: usize>(pattern: &[u8]) -> [u8; LENGTH] {
        let mut table = [0; LENGTH];
        let mut k = 0;
        for i in 1..pattern.len() {
            while k > 0 && pattern[i] != pattern[k] {
                k = usize::from(table[k - 1]);
            }
            k += usize::from(pattern[i] == pattern[k]);
            table[i] = k as u8;
        }
        table
    }
    env.compare(|i| {
        let start = i % 20;
        let pattern = &TEXT[start..start + 1 + i / 20 % 8];
        let table = prefixes::<8>(pattern);
        let (mut k, mut found, mut first) = (0, 0_u32, None);
        for (place, byte) in TEXT.iter().enumerate() {
            while k > 0 && pattern.get(k) != Some(byte) {
                k = usize::from(table[k - 1]);
            }
            k += usize::from(pattern[k] == *byte);
            if k == pattern.len() {
                first = first.or(Some((place + 1 - k) as u8));
                found += 1;
                k = usize::from(table[k - 1]);
            }
        }
        (found, first, table)
    });
}

#[derive(Clone, Copy)]
enum Node {
    Leaf(u8),
    Branch(u8, u8),
}

fn a_prefix_code_is_decoded(env: &Env) {
    use Node::{Branch, Leaf};
    const TREE: [Node; 9] = [
        Branch(1, 2),
        Leaf(b'e'),
        Branch(3, 4),
        Leaf(b't'),
        Branch(5, 6),
        Branch(7, 8),
        Leaf(b'n'),
        Leaf(b'q'),
        Leaf(0),
    ];
    env.compare(|i| {
        let mut bits = u64::from(scramble(i)) << 32 | u64::from(scramble(i + 1));
        let (mut text, mut length, mut node) = ([0_u8; 24], 0, TREE[0]);
        for _ in 0..64 {
            match node {
                Branch(left, right) => {
                    node = TREE[usize::from(if bits & 1 == 0 { left } else { right })];
                    bits >>= 1;
                }
                Leaf(0) => break,
                Leaf(letter) => {
                    let Some(slot) = text.get_mut(length) else { break };
                    *slot = letter;
                    length += 1;
                    node = TREE[0];
                }
            }
        }
        (text, length as u8)
    });
}

/// The generator `XSH RR 64/32` of O'Neill's family.
struct Permuted {
    state: u64,
    increment: u64,
}

impl Permuted {
    fn next(&mut self) -> u32 {
        let old = self.state;
        self.state = old.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(self.increment | 1);
        ((((old >> 18) ^ old) >> 27) as u32).rotate_right((old >> 59) as u32)
    }

    fn below(&mut self, bound: u32) -> u32 {
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let value = self.next();
            if value >= threshold {
                return value % bound;
            }
        }
    }
}

fn random_numbers_of_a_permuted_generator(env: &Env) {
    env.compare(|i| {
        let mut generator = Permuted { state: i as u64, increment: 2 * i as u64 + 1 };
        generator.next();
        // A shuffled deck.
        let mut deck: [u8; 16] = std::array::from_fn(|k| k as u8);
        for k in (1..16).rev() {
            deck.swap(k, generator.below(k as u32 + 1) as usize);
        }
        (deck, generator.next())
    });
}

/// Philox 4x32 with ten rounds (Salmon and others, 2011).
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let product = |a: u32, b: u32| (((u64::from(a) * u64::from(b)) >> 32) as u32, a.wrapping_mul(b));
    for _ in 0..10 {
        let (high_0, low_0) = product(0xD251_1F53, counter[0]);
        let (high_1, low_1) = product(0xCD9E_8D57, counter[2]);
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

fn random_numbers_of_a_counter(env: &Env) {
    // The first of the known answers: counter and key zero.
    assert_eq!(philox([0; 4], [0; 2]), [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]);
    env.compare(|i| philox([i as u32, 0, 7, scramble(i)], [0, 1]));
}

fn the_distance_of_two_words(env: &Env) {
    const WORDS: [&[u8]; 8] =
        [b"kitten", b"sitting", b"accelerator", b"accelerate", b"", b"queue", b"sequence", b"intention"];
    env.compare(|i| {
        let (a, b) = (WORDS[i % 8], WORDS[scramble(i) as usize % 8]);
        let mut row: [u8; 16] = std::array::from_fn(|k| k as u8);
        for (y, left) in a.iter().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], y as u8 + 1);
            for (x, right) in b.iter().enumerate() {
                let replaced = diagonal + u8::from(left != right);
                diagonal = row[x + 1];
                row[x + 1] = replaced.min(row[x] + 1).min(diagonal + 1);
            }
        }
        (row[b.len()], a.len() as u8)
    });
}

fn queens_on_a_board(env: &Env) {
    fn place(size: u32, row: u32, columns: u32, left: u32, right: u32) -> u32 {
        if row == size {
            return 1;
        }
        let mut free = !(columns | left | right) & ((1 << size) - 1);
        let mut count = 0;
        while free != 0 {
            let bit = free & free.wrapping_neg();
            free ^= bit;
            count += place(size, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
        }
        count
    }
    env.compare(|i| {
        let (size, first) = (4 + i as u32 % 4, 1 << (i as u32 / 4 % 4));
        (place(size, 0, 0, 0, 0), place(size, 1, first, first << 1, first >> 1))
    });
}

fn a_maze_is_crossed(env: &Env) {
    const SIDE: usize = 12;
    env.compare(|i| {
        let wall = |x: usize, y: usize| scramble(i * SIDE * SIDE + y * SIDE + x) % 10 < 3;
        let mut distance = [[u8::MAX; SIDE]; SIDE];
        let (mut queue, mut head, mut tail) = ([(0_u8, 0_u8); SIDE * SIDE], 0, 1);
        distance[0][0] = 0;
        while head < tail {
            let (x, y) = (usize::from(queue[head].0), usize::from(queue[head].1));
            head += 1;
            for (dx, dy) in [(1, 0), (0, 1), (-1, 0), (0, -1)] {
                let (Some(nx), Some(ny)) = (x.checked_add_signed(dx), y.checked_add_signed(dy)) else { continue };
                if nx < SIDE && ny < SIDE && distance[ny][nx] == u8::MAX && !wall(nx, ny) {
                    distance[ny][nx] = distance[y][x] + 1;
                    queue[tail] = (nx as u8, ny as u8);
                    tail += 1;
                }
            }
        }
        (distance[SIDE - 1][SIDE - 1], tail as u8)
    });
}

/// A binary tree whose nodes name each other by index.
struct Tree {
    nodes: [(u16, Option<u8>, Option<u8>); 24],
    length: usize,
}

impl Tree {
    fn insert(&mut self, value: u16) {
        let new = self.length as u8;
        let mut at = 0;
        while self.length > 0 {
            let (here, left, right) = &mut self.nodes[at];
            let child = if value < *here { left } else { right };
            match child {
                Some(index) => at = usize::from(*index),
                None => {
                    *child = Some(new);
                    break;
                }
            }
        }
        self.nodes[self.length] = (value, None, None);
        self.length += 1;
    }

    fn walk(&self, node: Option<u8>, depth: u32, visit: &mut dyn FnMut(u16, u32)) {
        if let Some(index) = node {
            let (value, left, right) = self.nodes[usize::from(index)];
            self.walk(left, depth + 1, visit);
            visit(value, depth);
            self.walk(right, depth + 1, visit);
        }
    }
}

fn a_tree_in_an_array(env: &Env) {
    env.compare(|i| {
        let mut tree = Tree { nodes: [(0, None, None); 24], length: 0 };
        (0..24).for_each(|k| tree.insert(scramble(i * 24 + k) as u16));
        let (mut hash, mut deepest, mut is_sorted, mut last) = (0_u64, 0, true, 0);
        tree.walk(Some(0), 0, &mut |value, depth| {
            hash = hash.wrapping_mul(65_599).wrapping_add(u64::from(value));
            deepest = depth.max(deepest);
            is_sorted &= last <= value;
            last = value;
        });
        (hash, deepest, is_sorted)
    });
}

fn run_lengths_are_packed_and_unpacked(env: &Env) {
    env.compare(|i| {
        let source: [u8; 32] = std::array::from_fn(|k| (scramble(i * 32 + k / 3) % 3) as u8);
        let (mut packed, mut length) = ([(0_u8, 0_u8); 32], 0);
        for run in source.chunk_by(|a, b| a == b) {
            packed[length] = (run[0], run.len() as u8);
            length += 1;
        }
        let unpacked =
            packed[..length].iter().flat_map(|(byte, count)| std::iter::repeat_n(*byte, usize::from(*count)));
        (unpacked.eq(source.iter().copied()), length as u8, packed[i % 32])
    });
}

fn a_small_machine_runs_a_program(env: &Env) {
    #[derive(Clone, Copy)]
    enum Instruction {
        Set(usize, i32),
        Add(usize, usize),
        Decrement(usize),
        JumpUnlessZero(usize, isize),
        Call(fn(&mut [i32; 4])),
        Halt,
    }
    use Instruction::{Add, Call, Decrement, Halt, JumpUnlessZero, Set};
    env.compare(|i| {
        let program = [
            Set(0, (i % 20) as i32 + 1),
            Set(1, scramble(i) as i32 % 1000),
            Add(2, 1),
            Call(|registers| registers[3] ^= registers[2].rotate_left(5)),
            Call(|registers| registers[1] = registers[1].wrapping_mul(7).wrapping_sub(registers[0])),
            Decrement(0),
            JumpUnlessZero(0, -4),
            Halt,
        ];
        let (mut registers, mut at, mut steps) = ([0_i32; 4], 0_usize, 0_u32);
        while let Some(instruction) = program.get(at) {
            steps += 1;
            at += 1;
            match *instruction {
                Set(register, value) => registers[register] = value,
                Add(to, from) => registers[to] = registers[to].wrapping_add(registers[from]),
                Decrement(register) => registers[register] -= 1,
                JumpUnlessZero(register, by) if registers[register] != 0 => at = at.wrapping_add_signed(by - 1),
                JumpUnlessZero(..) => {}
                Call(function) => function(&mut registers),
                Halt => break,
            }
        }
        (registers, steps)
    });
}
