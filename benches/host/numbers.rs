//! Numbers without a picture: forces between bodies, prices of options, the product of a sparse matrix and a vector.

use oxisycl::float;
use oxisycl::prelude::*;

use crate::beside::{Figure, Peers, ROUND, Result, copied, n_different};
use crate::bodies::{self, Body, force_in_x};
use crate::protocol::Measured;
use crate::{Setting, finish};

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    bodies(setting, results)?;
    strict_bodies(setting, results)?;
    options(setting, results)?;
    sparse(setting, results)
}

/// Bodies with masses, of a number that is no multiple of a vector.
fn bodies_of(setting: &Setting) -> Vec<Body> {
    let mut random = setting.random();
    let n = 4096 - random.below(64);
    let body = |[x, y, z, w]: [f32; 4]| Body { x, y, z, w: 1.0 + w };
    random.floats(4 * n).as_chunks().0.iter().copied().map(body).collect()
}

fn bodies(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.nbody";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let start = bodies_of(setting);
    let (input, output) = (Buffer::from_slice(&start)?, Buffer::<Body, 1>::from_slice(&start)?);
    let mut ours = || finish(bodies::pull(&setting.queue, &input, &output));
    let figure = Figure { name: NAME, amount: start.len().pow(2) as f64 / 1e6, bar: 1.0 };
    figure.measure(setting, &mut ours, results, |mut peers| {
        check_forces("ours", &start, &output.to_vec()?);
        forces_in_opencl(&mut peers, &start)
    })
}

/// Forces between bodies, each operation rounded by itself.
fn strict_bodies(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.nbody.strict";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let start = bodies_of(setting);
    let (input, output) = (Buffer::from_slice(&start)?, Buffer::<Body, 1>::from_slice(&start)?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (bodies, forces) = (cg.access(&input, Read), cg.access(&output, Write));
            let strict = float::strict(move |item: Item<1>| {
                forces.set(item, bodies::force_on(bodies.get(item), bodies.view(item).iter()));
            });
            cg.parallel_for(input.range(), strict)
        }));
    };
    let figure = Figure { name: NAME, amount: start.len().pow(2) as f64 / 1e6, bar: 0.95 };
    figure.measure(setting, &mut ours, results, |mut peers| {
        let found = output.to_vec()?;
        check_forces("ours", &start, &found);
        #[cfg(target_arch = "x86_64")]
        if crate::hand::is_there() {
            let mut forces = start.clone();
            peers.compare("AVX2 by hand", &mut || crate::hand::pull(&start, &mut forces));
            let whole = start.len() - start.len() % 8;
            assert_eq!(found[..whole], forces[..whole], "{NAME} of {}", start.len());
        }
        Ok(())
    })
}

fn forces_in_opencl(peers: &mut Peers<'_, '_>, start: &[Body]) -> Result {
    let Some(reference) = peers.opencl() else { return Ok(()) };
    let n = start.len().next_multiple_of(64 * ROUND);
    let kernel = reference.kernel("nbody")?;
    let (bodies, mut forces) = (copied(reference, start, n)?, reference.memory::<Body>(n)?);
    kernel.set_memory(0, &bodies)?;
    kernel.set_memory(1, &forces)?;
    kernel.set(2, start.len() as u32)?;
    peers.beside_kernel(&kernel, [n, 1])?;
    check_forces("OpenCL C", start, forces.elements());
    Ok(())
}

fn check_forces(who: &str, start: &[Body], forces: &[Body]) {
    for i in (0..start.len()).step_by(97) {
        let (found, expected) = (f64::from(forces[i].x), force_in_x(start[i], start));
        let error = (found - expected).abs() / expected.abs().max(1.0);
        assert!(error < 1e-2, "body {i} of {}: {found} of {who}, {expected} in plain Rust", start.len());
    }
}

/// The share of a normal distribution that is below `d`.
fn below(d: f32) -> f32 {
    let k = 1.0 / (1.0 + 0.231_641_9 * d.abs());
    let tail = k * (0.319_381_53 + k * (-0.356_563_78 + k * (1.781_477_9 + k * (-1.821_255_9 + k * 1.330_274_5))));
    let c = 0.398_942_3 * (-0.5 * d * d).exp() * tail;
    if d > 0.0 { 1.0 - c } else { c }
}

/// The prices of the options to buy and to sell, after Black and Scholes.
fn prices([now, strike, years]: [f32; 3], rate: f32, volatility: f32) -> [f32; 2] {
    let spread = volatility * years.sqrt();
    let d1 = ((now / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / spread;
    let (c1, c2) = (below(d1), below(d1 - spread));
    let discounted = strike * (-rate * years).exp();
    [now * c1 - discounted * c2, discounted * (1.0 - c2) - now * (1.0 - c1)]
}

fn options(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.black_scholes";
    const RATE: f32 = 0.02;
    const VOLATILITY: f32 = 0.3;
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = (1 << 18) - random.below(64);
    let mut numbers = |least: f32, most: f32| -> Vec<f32> {
        random.floats(n).into_iter().map(|x| least + (most - least) * 0.5 * (x + 1.0)).collect()
    };
    let inputs = [numbers(5.0, 30.0), numbers(1.0, 100.0), numbers(0.25, 10.0)];
    let [now, strike, years] = inputs.each_ref().map(|values| Buffer::from_slice(values));
    let (now, strike, years, output) = (now?, strike?, years?, Buffer::<[f32; 2], 1>::uninit(n)?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (now, strike, years) = (cg.access(&now, Read), cg.access(&strike, Read), cg.access(&years, Read));
            let output = cg.access(&output, Write.no_init());
            cg.parallel_for(n, move |item: Item<1>| {
                let option = [now.get(item), strike.get(item), years.get(item)];
                output.set(item, prices(option, RATE, VOLATILITY));
            })
        }));
    };
    let figure = Figure { name: NAME, amount: n as f64 / 1e6, bar: 1.05 };
    figure.measure(setting, &mut ours, results, |mut peers| {
        let Some(reference) = peers.opencl() else { return Ok(()) };
        let n_rounded = n.next_multiple_of(64 * ROUND);
        let kernel = reference.kernel("black_scholes")?;
        let memories = [&inputs[0], &inputs[1], &inputs[2]].map(|values| copied(reference, values, n_rounded));
        let [now, strike, years] = memories;
        let (now, strike, years, mut theirs) = (now?, strike?, years?, reference.memory::<[f32; 2]>(n_rounded)?);
        for (index, memory) in (0..).zip([&now, &strike, &years]) {
            kernel.set_memory(index, memory)?;
        }
        kernel.set_memory(3, &theirs)?;
        kernel.set(4, RATE)?;
        kernel.set(5, VOLATILITY)?;
        peers.beside_kernel(&kernel, [n_rounded, 1])?;
        let found = output.to_vec()?;
        let n_wrong = n_different(found.as_flattened(), theirs.elements()[..n].as_flattened(), 1e-3);
        assert_eq!(n_wrong, 0, "{NAME} of {n}: prices that differ");
        Ok(())
    })
}

/// A matrix by rows: where each row begins, and the columns and values.
struct Sparse {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

fn sparse(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    const NAME: &str = "host.spmv";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = (1 << 16) - random.below(64);
    let mut matrix = Sparse { rows: vec![0], columns: Vec::new(), values: Vec::new() };
    for _ in 0..n {
        let n_values = 4 + random.below(24);
        matrix.columns.extend((0..n_values).map(|_| random.below(n) as u32));
        matrix.rows.push(matrix.columns.len() as u32);
    }
    matrix.values = random.floats(matrix.columns.len());
    let vector = random.floats(n);
    let (rows, columns) = (Buffer::from_slice(&matrix.rows)?, Buffer::from_slice(&matrix.columns)?);
    let (values, factors) = (Buffer::from_slice(&matrix.values)?, Buffer::from_slice(&vector)?);
    let output = Buffer::<f32, 1>::uninit(n)?;
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (rows, columns) = (cg.access(&rows, Read), cg.access(&columns, Read));
            let (values, factors) = (cg.access(&values, Read), cg.access(&factors, Read));
            let output = cg.access(&output, Write.no_init());
            cg.parallel_for(n, move |item: Item<1>| {
                let (rows, columns) = (rows.view(item), columns.view(item));
                let (values, factors) = (values.view(item), factors.view(item));
                let row = rows[item.index()] as usize..rows[item.index() + 1] as usize;
                let sum = row.map(|k| values[k] * factors[columns[k] as usize]).sum();
                output.set(item, sum);
            })
        }));
    };
    let figure = Figure { name: NAME, amount: matrix.columns.len() as f64 / 1e6, bar: 0.0 };
    figure.measure(setting, &mut ours, results, |mut peers| {
        let Some(reference) = peers.opencl() else { return Ok(()) };
        let n_rounded = n.next_multiple_of(64 * ROUND);
        let kernel = reference.kernel("spmv")?;
        // Rows behind the last one are empty.
        let mut rows = matrix.rows.clone();
        rows.resize(n_rounded + 1, matrix.columns.len() as u32);
        let (rows, columns) = (copied(reference, &rows, 0)?, copied(reference, &matrix.columns, 0)?);
        let (values, factors) = (copied(reference, &matrix.values, 0)?, copied(reference, &vector, 0)?);
        let mut theirs = reference.memory::<f32>(n_rounded)?;
        kernel.set_memory(0, &rows)?;
        kernel.set_memory(1, &columns)?;
        kernel.set_memory(2, &values)?;
        kernel.set_memory(3, &factors)?;
        kernel.set_memory(4, &theirs)?;
        peers.beside_kernel(&kernel, [n_rounded, 1])?;
        assert_eq!(n_different(&output.to_vec()?, &theirs.elements()[..n], 1e-3), 0, "{NAME} of {n}");
        Ok(())
    })
}
