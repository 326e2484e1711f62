//! The steps on the devices: one function each, which submits one command group for some rows of a strip.
//!
//! A command group names what it uses through accessors. From these the runtime knows what must have run before, on whichever
//! device, and which rows it has to move. So a step says nothing of other steps, of other devices, or of copies.

use std::ops::Range;

use oxisycl::images::{Rgb8Unorm, SampledImageAccessor};
use oxisycl::prelude::*;
use oxisycl::vector::Float4;
use oxisycl::{Chunked, NoInit};

use crate::pipeline::PAGE_ROWS;

/// A pixel: red, green, blue.
pub(crate) type Rgb = [u8; 3];

/// How many pixels the blur reaches to each side.
pub(crate) const RADIUS: usize = 6;
pub(crate) const TAPS: usize = 2 * RADIUS + 1;
/// How many rows around a row its result depends on: the blur, and one for the edges.
pub(crate) const HALO: usize = RADIUS + 1;
/// Levels of luminance.
pub(crate) const LEVELS: usize = 256;

/// Pixels of one row that a work-item takes at once where it takes several.
const CHUNK: usize = 1024;

/// How kernels read the picture. The centre of the first pixel is at 0.5.
const SAMPLER: ImageSampler = ImageSampler::NEAREST;

/// The rows of a picture that are on the devices at one time, and what the steps make of them.
pub(crate) struct Strip {
    /// The picture, an image for each device with the rows of its band. A kernel may sample any place, so a device gets the whole of an image.
    pictures: Vec<SampledImage<2, Rgb8Unorm>>,
    pub(crate) luminance: Buffer<u8, 2>,
    half_blurred: Buffer<f32, 2>,
    pub(crate) blurred: Buffer<f32, 2>,
    pub(crate) edges: Buffer<u8, 2>,
    pub(crate) result: Buffer<Rgb, 2>,
}

impl Strip {
    /// Bytes per pixel on a device.
    pub(crate) const BYTES: usize = 3 + 1 + 4 + 4 + 1 + 3;

    /// Nothing is copied to a device yet: that happens when a command there needs it, and for the rows that it needs.
    pub(crate) fn new(pixels: &[Rgb], width: usize, bands: &[Range<usize>]) -> oxisycl::Result<Self> {
        let range = [pixels.len() / width, width];
        let picture = |band: &Range<usize>| {
            // No image is empty: where a device has no rows, it is one row that no command uses.
            let begin = band.start.min(range[0] - 1);
            let end = band.end.max(begin + 1);
            SampledImage::from_slice(Rgb8Unorm, SAMPLER, &pixels[begin * width..end * width], [end - begin, width])
        };
        // Pages of a few rows: a device that needs the rows around its band gets these, not the whole band of another device.
        let options = BufferOptions::new().page_size([PAGE_ROWS, width]);
        Ok(Self {
            pictures: bands.iter().map(picture).collect::<oxisycl::Result<_>>()?,
            luminance: options.uninit(range)?,
            half_blurred: options.uninit(range)?,
            blurred: options.uninit(range)?,
            edges: options.uninit(range)?,
            result: options.uninit(range)?,
        })
    }

    fn width(&self) -> usize {
        self.luminance.range()[1]
    }

    /// Extent and begin of some rows, as accessors want them.
    fn part(&self, rows: &Range<usize>) -> ([usize; 2], [usize; 2]) {
        ([rows.len(), self.width()], [rows.start, 0])
    }

    /// A part with `halo` rows more on each side as far as there are any, and at which of them `rows` begins.
    fn part_with_halo(&self, rows: &Range<usize>, halo: usize) -> ([usize; 2], [usize; 2], usize) {
        let begin = rows.start.saturating_sub(halo);
        let end = (rows.end + halo).min(self.luminance.range()[0]);
        ([end - begin, self.width()], [begin, 0], rows.start - begin)
    }
}

/// What the picture has at a work-item's place. Samplers give parts of one: whole numbers become the same ones again.
#[inline]
fn colour_at(picture: SampledImageAccessor<'_, Float4, 2, Rgb8Unorm>, item: Item<'_, 2>) -> Rgb {
    let centre = [item.get(0) as f32 + 0.5, item.get(1) as f32 + 0.5];
    let colour = picture.sample_with(item, SAMPLER, centre);
    [colour[0], colour[1], colour[2]].map(|channel| (255.0 * channel + 0.5) as u8)
}

/// The luminance of each pixel in the band of a device.
pub(crate) fn luminance(queue: &Queue, strip: &Strip, device: usize, rows: &Range<usize>) -> oxisycl::Result<Event> {
    let (range, offset) = strip.part(rows);
    queue.submit(|cg| {
        cg.name("luminance");
        let picture = cg.access_sampled(&strip.pictures[device]);
        let luminance = cg.access_range(&strip.luminance, Write.no_init(), offset, range);
        cg.parallel_for(range, move |item| luminance.set(item, luminance_of(colour_at(picture, item))))
    })
}

/// Functions that kernels call are ordinary functions.
fn luminance_of([red, green, blue]: Rgb) -> u8 {
    let sum = 54 * u32::from(red) + 183 * u32::from(green) + 19 * u32::from(blue);
    ((sum + 128) >> 8) as u8
}

/// Counts the luminances of rows into line `part` of `counts`. Each device has a line of its own, so that none waits for another.
pub(crate) fn histogram(
    queue: &Queue,
    strip: &Strip,
    rows: &Range<usize>,
    counts: &Buffer<u32, 2>,
    part: usize,
) -> oxisycl::Result<Event> {
    let (range, offset) = strip.part(rows);
    queue.submit(|cg| {
        cg.name("histogram");
        let luminance = cg.access_range(&strip.luminance, Read, offset, range);
        let counts = cg.access_range(counts, Atomic, [part, 0], [1, LEVELS]);
        let n_chunks = [range[0], range[1].div_ceil(CHUNK)];
        cg.parallel_for(n_chunks, move |item: Item<2>| {
            // Counting in private first leaves few atomic operations.
            let mut own = [0u32; LEVELS];
            for &level in chunk_of_row(luminance.view(item), item) {
                own[usize::from(level)] += 1;
            }
            for (level, &count) in own.iter().enumerate() {
                if count > 0 {
                    counts.fetch_add(item, [0, level], count);
                }
            }
        })
    })
}

/// The part of a row that a work-item reads if each takes `CHUNK` elements.
fn chunk_of_row<'k, T>(view: View<'k, T, 2>, item: Item<'k, 2>) -> &'k [T] {
    let row = view.row(item.get(0));
    let begin = item.get(1) * CHUNK;
    &row[begin..row.len().min(begin + CHUNK)]
}

/// Makes the curve of the tone mapping from all lines of `counts`: a histogram equalisation that spreads no level too far.
pub(crate) fn curve(queue: &Queue, counts: &Buffer<u32, 2>, curve: &Buffer<u8, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        cg.name("curve");
        let (counts, curve) = (cg.access(counts, Read), cg.access(curve, Write.no_init()));
        // A single task may write any element.
        cg.single_task(move |task| {
            let counts = counts.view(task);
            let mut total = [0u64; LEVELS];
            for part in 0..counts.range()[0] {
                for (sum, &count) in total.iter_mut().zip(counts.row(part)) {
                    *sum += u64::from(count);
                }
            }
            for (level, &value) in equalised(&total).iter().enumerate() {
                curve.set_at(task, level, value);
            }
        })
    })
}

fn equalised(counts: &[u64; LEVELS]) -> [u8; LEVELS] {
    let n_pixels: u64 = counts.iter().sum();
    // What a level has above the limit is shared by all.
    let limit = 3 * n_pixels / LEVELS as u64 + 1;
    let excess: u64 = counts.iter().map(|&count| count.saturating_sub(limit)).sum();
    let share = excess / LEVELS as u64;
    let total: u64 = counts.iter().map(|&count| count.min(limit) + share).sum();
    let mut curve = [0; LEVELS];
    let mut below = 0;
    for (level, &count) in counts.iter().enumerate() {
        let weight = count.min(limit) + share;
        let equalised = (255 * (2 * below + weight)) / (2 * total).max(1);
        curve[level] = ((level as u64 + 3 * equalised + 2) / 4) as u8;
        below += weight;
    }
    curve
}

/// The weights of the blur, which sum up to one.
pub(crate) fn gaussian() -> [f32; TAPS] {
    let sigma = RADIUS as f32 / 2.5;
    let mut weights = [0.0; TAPS];
    for (k, weight) in weights.iter_mut().enumerate() {
        let distance = k as f32 - RADIUS as f32;
        *weight = (-distance * distance / (2.0 * sigma * sigma)).exp();
    }
    let sum: f32 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}

/// The first pass of the blur, along the rows: a kernel with a name. Its fields are what a closure would capture.
///
/// Each work-item owns a chunk of a row, so that the loop over it becomes vector instructions on a CPU.
#[derive(Clone, Copy)]
struct BlurAlongRows<'cg> {
    luminance: Accessor<'cg, u8, 2, Read>,
    half_blurred: Chunked<'cg, f32, 2, NoInit<ReadWrite>>,
    weights: [f32; TAPS],
}

impl Kernel<Item<'_, 2>> for BlurAlongRows<'_> {
    #[inline]
    fn run(&self, item: Item<'_, 2>) {
        let output = self.half_blurred.block(item);
        let [y, begin] = output.origin().into();
        let (row, output) = (self.luminance.view(item).row(y), output.row(0));
        let end = begin + output.len();
        // Only near the borders of the picture does a tap have to be looked for.
        let first = begin.max(RADIUS).min(end);
        let last = end.min(row.len().saturating_sub(RADIUS)).max(first);
        for x in (begin..first).chain(last..end) {
            let tap = |(k, weight): (usize, &f32)| weight * f32::from(row[near(x, k, RADIUS, row.len())]);
            output[x - begin].set(self.weights.iter().enumerate().map(tap).sum());
        }
        if first < last {
            let inside = &output[first - begin..last - begin];
            for (k, weight) in self.weights.iter().enumerate() {
                for (sum, &tap) in inside.iter().zip(&row[first + k - RADIUS..]) {
                    let term = weight * f32::from(tap);
                    sum.set(if k == 0 { term } else { sum.get() + term });
                }
            }
        }
    }
}

/// The index `k - radius` steps from `index`, or the last one in that direction.
fn near(index: usize, k: usize, radius: usize, length: usize) -> usize {
    (index + k).saturating_sub(radius).min(length - 1)
}

pub(crate) fn blur_along_rows(queue: &Queue, strip: &Strip, rows: &Range<usize>) -> oxisycl::Result<Event> {
    let (range, offset) = strip.part(rows);
    queue.submit(|cg| {
        let kernel = BlurAlongRows {
            luminance: cg.access_range(&strip.luminance, Read, offset, range),
            half_blurred: cg.access_chunks_range(&strip.half_blurred, ReadWrite.no_init(), [1, CHUNK], offset, range),
            weights: gaussian(),
        };
        cg.launch(kernel.half_blurred.n_blocks(), kernel)
    })
}

/// The second pass of the blur, along the columns. Each work-item owns a chunk of a row, and reads the rows around it. These may be
/// another device's: the runtime brings them.
pub(crate) fn blur_along_columns(queue: &Queue, strip: &Strip, rows: &Range<usize>) -> oxisycl::Result<Event> {
    let (range, offset) = strip.part(rows);
    let (around, around_offset, first) = strip.part_with_halo(rows, RADIUS);
    let weights = gaussian();
    queue.submit(|cg| {
        cg.name("blur of columns");
        let half_blurred = cg.access_range(&strip.half_blurred, Read, around_offset, around);
        let blurred: Chunked<'_, f32, 2, _> =
            cg.access_chunks_range(&strip.blurred, ReadWrite.no_init(), [1, CHUNK], offset, range);
        cg.parallel_for(blurred.n_blocks(), move |item: Item<2>| {
            let input = half_blurred.view(item);
            let output = blurred.block(item);
            let [y, x] = output.origin().into();
            let output = output.row(0);
            for (k, weight) in weights.iter().enumerate() {
                let row = input.row(near(first + y, k, RADIUS, input.range()[0]));
                for (sum, &tap) in output.iter().zip(&row[x..]) {
                    sum.set(if k == 0 { weight * tap } else { sum.get() + weight * tap });
                }
            }
        })
    })
}

/// The edges: the length of the gradient of the blurred luminance, by Sobel's operator.
pub(crate) fn edges(queue: &Queue, strip: &Strip, rows: &Range<usize>) -> oxisycl::Result<Event> {
    let (range, offset) = strip.part(rows);
    let (around, around_offset, first) = strip.part_with_halo(rows, 1);
    queue.submit(|cg| {
        cg.name("edges");
        let blurred = cg.access_range(&strip.blurred, Read, around_offset, around);
        let edges = cg.access_range(&strip.edges, Write.no_init(), offset, range);
        cg.parallel_for(range, move |item: Item<2>| {
            let gradient = gradient_at(blurred.view(item), first + item.get(0), item.get(1));
            edges.set(item, (EDGE_GAIN * gradient).min(255.0) as u8);
        })
    })
}

/// How bright edges are.
pub(crate) const EDGE_GAIN: f32 = 2.5;

/// The gradient at an element; beyond the border, the nearest elements count.
fn gradient_at(view: View<'_, f32, 2>, y: usize, x: usize) -> f32 {
    let [height, width] = view.range().into();
    if y > 0 && x > 0 && y + 1 < height && x + 1 < width {
        let window = view.window::<3, 3>([y - 1, x - 1]);
        gradient(|dy, dx| window[[dy, dx]])
    } else {
        gradient(|dy, dx| view[[near(y, dy, 1, height), near(x, dx, 1, width)]])
    }
}

/// The length of the gradient in a block of three by three elements.
#[inline]
fn gradient(at: impl Fn(usize, usize) -> f32) -> f32 {
    let horizontal = (at(0, 2) + 2.0 * at(1, 2) + at(2, 2)) - (at(0, 0) + 2.0 * at(1, 0) + at(2, 0));
    let vertical = (at(2, 0) + 2.0 * at(2, 1) + at(2, 2)) - (at(0, 0) + 2.0 * at(0, 1) + at(0, 2));
    (horizontal * horizontal + vertical * vertical).sqrt()
}

/// The tone mapping: the curve for the light as a whole, and more contrast in detail where there are edges.
pub(crate) fn tones(
    queue: &Queue,
    strip: &Strip,
    device: usize,
    rows: &Range<usize>,
    curve: &Buffer<u8, 1>,
) -> oxisycl::Result<Event> {
    let (range, offset) = strip.part(rows);
    queue.submit(|cg| {
        cg.name("tone mapping");
        let picture = cg.access_sampled(&strip.pictures[device]);
        let luminance = cg.access_range(&strip.luminance, Read, offset, range);
        let blurred = cg.access_range(&strip.blurred, Read, offset, range);
        let edges = cg.access_range(&strip.edges, Read, offset, range);
        let curve = cg.access(curve, Read);
        let result = cg.access_range(&strip.result, Write.no_init(), offset, range);
        cg.parallel_for(range, move |item: Item<2>| {
            let level = luminance.get(item);
            let detail = f32::from(level) - blurred.get(item);
            let edge = f32::from(edges.get(item));
            let target = f32::from(*curve.at(item, usize::from(level))) + detail * edge / (edge + 32.0);
            let factor = (target.max(0.0) + 1.0) / (f32::from(level) + 1.0);
            result.set(
                item,
                colour_at(picture, item).map(|channel| (factor * (f32::from(channel) + 1.0) - 0.5).min(255.0) as u8),
            );
        })
    })
}
