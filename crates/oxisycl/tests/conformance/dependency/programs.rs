//! Random programs of kernels, copies, fills and host accesses on three devices, against plain vectors.

use oxisycl::prelude::*;

use crate::harness::{Env, queue_on, tests};
use crate::support::{Random, update_range};

tests![
    random_programs_with_whole_buffer_pages_give_what_a_sequential_program_gives,
    random_programs_with_small_pages_give_what_a_sequential_program_gives,
    random_programs_in_two_dimensions_give_what_a_sequential_program_gives,
];

const N_BUFFERS: usize = 3;
const N_STEPS: usize = 250;

struct Program<const D: usize> {
    random: Random,
    queues: Vec<Queue>,
    extent: [usize; D],
    buffers: Vec<Buffer<i32, D>>,
    model: Vec<Vec<i32>>,
}

impl<const D: usize> Program<D> {
    fn new(env: &Env, extent: [usize; D], page: Option<[usize; D]>, seed: u64) -> Self {
        let options = page.map_or(BufferOptions::new(), |page| BufferOptions::new().page_size(page));
        let start: Vec<i32> = (0..Range(extent).size() as i32).collect();
        let mut queues: Vec<Queue> = env.devices().iter().map(queue_on).collect();
        queues.push(env.in_order_queue());
        Self {
            random: Random::new(seed),
            queues,
            extent,
            buffers: (0..N_BUFFERS).map(|_| options.from_vec_nd(start.clone(), extent).unwrap()).collect(),
            model: vec![start; N_BUFFERS],
        }
    }

    fn part(&mut self) -> ([usize; D], [usize; D]) {
        let intervals: [(usize, usize); D] = std::array::from_fn(|d| self.random.interval(self.extent[d]));
        (intervals.map(|(begin, _)| begin), intervals.map(|(_, length)| length))
    }

    /// Positions of a part's elements, in row-major order.
    fn positions(&self, offset: [usize; D], range: [usize; D]) -> Vec<usize> {
        let n_elements = Range(range).size();
        let position = |mut rest: usize| {
            let mut at = [0; D];
            for d in (0..D).rev() {
                at[d] = offset[d] + rest % range[d];
                rest /= range[d];
            }
            Range(self.extent).linear(&Id(at))
        };
        (0..n_elements).map(position).collect()
    }

    fn step(&mut self, number: i32) {
        let queue = self.queues[self.random.below(self.queues.len())].clone();
        let target = self.random.below(N_BUFFERS);
        let source = (target + 1 + self.random.below(N_BUFFERS - 1)) % N_BUFFERS;
        let (offset, range) = self.part();
        let positions = self.positions(offset, range);
        let (buffer, from) = (self.buffers[target].clone(), self.buffers[source].clone());
        match self.random.below(8) {
            0 | 1 => {
                update_range(&queue, &buffer, offset, range, move |x| x.wrapping_mul(3).wrapping_add(number));
                for i in positions {
                    self.model[target][i] = self.model[target][i].wrapping_mul(3).wrapping_add(number);
                }
            }
            2 => {
                let kernel = queue.submit(|cg| {
                    let data = cg.access_range(&buffer, Write.no_init(), offset, range);
                    cg.parallel_for(range, move |item| data.set(item, number))
                });
                kernel.unwrap();
                positions.into_iter().for_each(|i| self.model[target][i] = number);
            }
            3 => {
                let kernel = queue.submit(|cg| {
                    let data = cg.access_range(&buffer, ReadWrite, offset, range);
                    let from = cg.access(&from, Read);
                    cg.parallel_for(range, move |item| {
                        let mirrored = Id(std::array::from_fn(|d| from.range()[d] - 1 - item.get(d)));
                        data.update(item, |x| x.wrapping_sub(from.view(item)[mirrored]));
                    })
                });
                kernel.unwrap();
                let last = self.model[source].len() - 1;
                for (i, item) in positions.iter().zip(self.positions([0; D], range)) {
                    let subtract = self.model[source][last - item];
                    self.model[target][*i] = self.model[target][*i].wrapping_sub(subtract);
                }
            }
            4 => {
                let (other_offset, other_range) = self.part();
                let sources = self.positions(other_offset, other_range);
                let copy = queue.submit(|cg| {
                    let from = cg.access_range(&from, Read, other_offset, other_range);
                    let to = cg.access_range(&buffer, Write, offset, range);
                    cg.copy(from, to)
                });
                assert_eq!(copy.is_ok(), sources.len() <= positions.len());
                if copy.is_ok() {
                    for (from, to) in sources.into_iter().zip(positions) {
                        self.model[target][to] = self.model[source][from];
                    }
                }
            }
            5 => {
                let fill = queue.submit(|cg| {
                    let target = cg.access_range(&buffer, Write, offset, range);
                    cg.fill(target, -number)
                });
                fill.unwrap();
                positions.into_iter().for_each(|i| self.model[target][i] = -number);
            }
            6 => {
                let task = queue.submit(|cg| {
                    let mut data = cg.access_host_range(&buffer, ReadWrite, offset, range);
                    let last = Id(range.map(|n| n - 1));
                    cg.host_task(move |scope| *data.at_mut(scope, last) ^= number)
                });
                task.unwrap();
                self.model[target][positions[positions.len() - 1]] ^= number;
            }
            _ => {
                let mut host = buffer.host_access_range(ReadWrite, offset, range).unwrap();
                let expected: Vec<i32> = positions.iter().map(|&i| self.model[target][i]).collect();
                assert_eq!(host.iter().copied().collect::<Vec<_>>(), expected, "step {number}");
                host[[0; D]] = number;
                self.model[target][positions[0]] = number;
            }
        }
    }

    fn run(mut self) {
        for number in 1..=N_STEPS as i32 {
            self.step(number);
        }
        for (buffer, model) in self.buffers.iter().zip(&self.model) {
            assert_eq!(buffer.to_vec().unwrap(), *model);
        }
    }
}

fn random_programs_with_whole_buffer_pages_give_what_a_sequential_program_gives(env: &Env) {
    for round in 0..4 {
        Program::new(env, [40], None, env.seed() * 1000 + round).run();
    }
}

fn random_programs_with_small_pages_give_what_a_sequential_program_gives(env: &Env) {
    for round in 0..4 {
        let page = 1 + round as usize * 3;
        Program::new(env, [40], Some([page]), env.seed() * 2000 + round).run();
    }
}

fn random_programs_in_two_dimensions_give_what_a_sequential_program_gives(env: &Env) {
    Program::new(env, [6, 7], None, env.seed() * 3000).run();
    for round in 0..3 {
        let page = [1 + round as usize, 3 - round as usize];
        Program::new(env, [6, 7], Some(page), env.seed() * 3001 + round).run();
    }
}
