//! Kernels over work-groups: products of matrices by tiles, n-body with bodies in local memory, histograms with local bins.
//!
//! The same algorithms are in `reference.cu`, without checks of bounds. Where several sizes of groups are tried, both sides have the same ones, and
//! the best counts.

use oxisycl::group::{AtomicElements, Atomically, Fixed1, Fixed2, Local, Private};
use oxisycl::math::native::rsqrt;
use oxisycl::prelude::*;
use oxisycl::{Range, Result};

use crate::random::Random;
use crate::{BODIES, Body, Measured, best_of, bodies, check_forces};

/// Rows and columns of the matrices.
const N: usize = 4096;
/// Elements that are checked, and ten times the bodies.
const PLACES: usize = 200;
/// Bytes of a histogram.
const BYTES: usize = 1 << 28;
/// Runs of bytes that a work-item counts.
const RUNS: usize = 16;

/// Bytes that one instruction loads.
#[derive(Clone, Copy, Debug, DeviceCopyable)]
#[repr(C, align(16))]
struct Run([u32; 4]);

pub(crate) fn measure(device: &Device, measured: &mut Measured<'_>) -> Result {
    const GEMMS: [&str; 2] = ["gpu.gemm.tile16", "gpu.gemm.tile32"];
    const HISTOGRAMS: [&str; 2] = ["gpu.histogram", "gpu.histogram.equal"];
    let queue = Queue::builder().device(device).in_order().build()?;
    let mut random = measured.random();
    if measured.options.wants_any(&GEMMS) {
        let matrices = Matrices::new(&mut random)?;
        measured.add(GEMMS[0], || matrices.gflops::<16, 256>(&queue, &mut random))?;
        measured.add(GEMMS[1], || matrices.gflops::<32, 1024>(&queue, &mut random))?;
    }
    measured.add("gpu.nbody.local", || nbody(&queue, &mut random))?;
    let any = |_| Run(std::array::from_fn(|_| random.next() as u32));
    let runs = 0..BYTES / size_of::<Run>();
    measured.add(HISTOGRAMS[0], || histogram(&queue, runs.clone().map(any).collect()))?;
    measured.add(HISTOGRAMS[1], || histogram(&queue, runs.map(|_| Run([0x4d4d_4d4d; 4])).collect()))
}

struct Matrices {
    left: Vec<f32>,
    right: Vec<f32>,
    a: Buffer<f32, 2>,
    b: Buffer<f32, 2>,
    c: Buffer<f32, 2>,
}

impl Matrices {
    fn new(random: &mut Random) -> Result<Self> {
        let [left, right] = [random.floats(N * N), random.floats(N * N)];
        let (a, b) = (Buffer::from_slice_nd(&left, [N, N])?, Buffer::from_slice_nd(&right, [N, N])?);
        Ok(Self { left, right, a, b, c: Buffer::uninit([N, N])? })
    }

    /// Operations in 10^9 per second with tiles of `TILE * TILE` elements, which are `AREA`.
    fn gflops<const TILE: usize, const AREA: usize>(&self, queue: &Queue, random: &mut Random) -> Result<f64> {
        let run = || self.multiply::<TILE, AREA>(queue);
        run()?;
        self.check(&self.c.to_vec()?, random);
        Ok(2e-9 * (N * N * N) as f64 / best_of(10, run)?)
    }

    fn multiply<const TILE: usize, const AREA: usize>(&self, queue: &Queue) -> Result {
        const { assert!(AREA == TILE * TILE) };
        let kernel = queue.submit(|cg| {
            let (a, b, c) = (cg.access(&self.a, Read), cg.access(&self.b, Read), cg.access(&self.c, Write.no_init()));
            let tile = Local::<f32, AREA>::new();
            let (groups, memory) = ([N / TILE, N / TILE], (tile, tile, Private::new(0.0)));
            cg.parallel_for_work_group(
                groups,
                Fixed2::<TILE, TILE>,
                memory,
                move |mut group, (mut left, mut right, mut sum)| {
                    let (a, b) = (a.view(group.uniform()), b.view(group.uniform()));
                    let [row, column] = group.id().0;
                    for step in 0..a.range()[1] / TILE {
                        let a = a.window::<TILE, TILE>([row * TILE, step * TILE]);
                        let b = b.window::<TILE, TILE>([step * TILE, column * TILE]);
                        group.for_each((&mut left, &mut right), move |item, (left, right)| {
                            let at = item.local_id().0;
                            (*left, *right) = (a[at], b[at]);
                        });
                        group.for_each((&left, &right, &mut sum), move |item, (left, right, sum)| {
                            let [y, x] = item.local_id().0;
                            for k in 0..TILE {
                                *sum += left[y * TILE + k] * right[k * TILE + x];
                            }
                        });
                    }
                    group.for_each(&sum, move |item, sum| c.set(item.global(), *sum));
                },
            )
        });
        kernel?.wait()
    }

    /// Compares elements with sums of `f64`.
    fn check(&self, product: &[f32], random: &mut Random) {
        for _ in 0..PLACES {
            let (y, x) = (random.below(N), random.below(N));
            let terms = (0..N).map(|k| f64::from(self.left[y * N + k]) * f64::from(self.right[k * N + x]));
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term: f64| (sum + term, size + term.abs()));
            let found = f64::from(product[y * N + x]);
            assert!((found - sum).abs() < 1e-5 * size, "{found} in row {y}, column {x}, {sum} in plain Rust");
        }
    }
}

/// Interactions in 10^9 per second.
fn nbody(queue: &Queue, random: &mut Random) -> Result<f64> {
    let start = bodies(random);
    let (bodies, forces) = (Buffer::from_slice(&start)?, Buffer::from_slice(&start)?);
    let mut best = f64::INFINITY;
    for run in [attract::<128>, attract::<256>, attract::<512>] {
        best = best.min(best_of(10, || run(queue, &bodies, &forces))?);
        check_forces(&start, &forces.to_vec()?, PLACES / 10, random);
    }
    Ok((BODIES * BODIES) as f64 / best / 1e9)
}

/// Forces, by tiles of as many bodies as a group has work-items.
fn attract<const ITEMS: usize>(queue: &Queue, bodies: &Buffer<Body, 1>, forces: &Buffer<Body, 1>) -> Result {
    let kernel = queue.submit(|cg| {
        let (bodies, forces) = (cg.access(bodies, Read), cg.access(forces, Write));
        let memory = (Local::<Body, ITEMS>::new(), Private::new(Body { x: 0.0, y: 0.0, z: 0.0, w: 0.0 }));
        cg.parallel_for_work_group(BODIES / ITEMS, Fixed1::<ITEMS>, memory, move |mut group, (mut tile, mut force)| {
            let (tiles, _) = bodies.view(group.uniform()).as_slice().as_chunks::<ITEMS>();
            for bodies_of_tile in tiles {
                group.for_each(&mut tile, move |item, slot| *slot = bodies_of_tile[item.local_linear_id()]);
                group.for_each((&tile, &mut force), move |item, (tile, force)| {
                    let own = bodies.get(item.global());
                    let mut sum = *force;
                    for other in tile {
                        let (dx, dy, dz) = (other.x - own.x, other.y - own.y, other.z - own.z);
                        let r = rsqrt(dx * dx + dy * dy + dz * dz + 1e-6);
                        let f = other.w * r * r * r;
                        sum.x += f * dx;
                        sum.y += f * dy;
                        sum.z += f * dz;
                    }
                    *force = sum;
                });
            }
            group.for_each(&force, move |item, force| forces.set(item.global(), *force));
        })
    });
    kernel?.wait()
}

/// Gigabytes per second.
fn histogram(queue: &Queue, runs: Vec<Run>) -> Result<f64> {
    let mut expected = vec![0_u32; 256];
    for word in runs.iter().flat_map(|run| run.0) {
        word.to_le_bytes().into_iter().for_each(|byte| expected[usize::from(byte)] += 1);
    }
    let runs = Buffer::from_vec(runs)?;
    let mut best = f64::INFINITY;
    for run in [count::<256, 4096>, count::<512, 8192>, count::<1024, 16384>] {
        let bins = Buffer::from_vec(vec![0; 256])?;
        run(queue, &runs, &bins)?;
        assert_eq!(bins.to_vec()?, expected, "the histogram agrees with plain Rust");
        best = best.min(best_of(10, || run(queue, &runs, &bins))?);
    }
    Ok(BYTES as f64 / best / 1e9)
}

/// Counts the bytes of a word. Written out, since a loop over an array of them would put them into memory.
#[inline]
fn count_bytes(own: AtomicElements<'_, u32>, word: u32) {
    own.fetch_add((word & 255) as usize, 1);
    own.fetch_add((word >> 8 & 255) as usize, 1);
    own.fetch_add((word >> 16 & 255) as usize, 1);
    own.fetch_add((word >> 24) as usize, 1);
}

/// Adds to bins, by groups of `ITEMS` that count `PART` runs each.
fn count<const ITEMS: usize, const PART: usize>(queue: &Queue, runs: &Buffer<Run, 1>, bins: &Buffer<u32, 1>) -> Result {
    const { assert!(PART == RUNS * ITEMS && ITEMS >= 256) };
    let Range([n_runs]) = runs.range();
    let kernel = queue.submit(|cg| {
        let (runs, bins) = (cg.access(runs, Read), cg.access(bins, Atomic));
        let groups = n_runs / PART;
        cg.parallel_for_work_group(groups, Fixed1::<ITEMS>, Local::<u32, 256>::new(), move |mut group, mut own| {
            let (parts, _) = runs.view(group.uniform()).as_slice().as_chunks::<PART>();
            let part = &parts[group.linear_id()];
            group.for_each_of([256], &mut own, move |_, bin| *bin = 0);
            group.for_each(Atomically(&mut own), move |item, own| {
                for step in 0..RUNS {
                    let Run([a, b, c, d]) = part[step * ITEMS + item.local_linear_id()];
                    count_bytes(own, a);
                    count_bytes(own, b);
                    count_bytes(own, c);
                    count_bytes(own, d);
                }
            });
            group.for_each(&own, move |item, own| {
                if let Some(n) = own.get(item.local_linear_id()) {
                    bins.fetch_add(item, item.local_linear_id(), *n);
                }
            });
        })
    });
    kernel?.wait()
}
