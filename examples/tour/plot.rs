//! A plot of the histogram, drawn dot by dot.
//!
//! Everything is drawn at twice the size and halved at the end, which makes slanted lines smooth.

use crate::font;
use crate::picture::Picture;
use crate::steps::{LEVELS, Rgb};

const WIDTH: usize = 960;
const HEIGHT: usize = 540;
/// Dots of the canvas per pixel of the plot.
const SCALE: usize = 2;

/// The frame around the data, in pixels of the plot.
const LEFT: usize = 78;
const RIGHT: usize = WIDTH - 62;
const TOP: usize = 64;
const BOTTOM: usize = HEIGHT - 62;

const BACKGROUND: Rgb = [252, 252, 250];
const GRID: Rgb = [226, 228, 230];
const INK: Rgb = [52, 58, 66];
const BEFORE: Rgb = [148, 170, 200];
const AFTER: Rgb = [222, 108, 38];
const CURVE: Rgb = [72, 132, 90];

/// Levels that one point of the line "after" stands for: tone mapping leaves gaps between single levels.
const MERGED: usize = 8;

/// Bars for the histogram before, a line for the one after, and the curve that led from one to the other.
pub(crate) fn histogram(before: &[u64; LEVELS], after: &[u64; LEVELS], curve: &[u8; LEVELS]) -> Picture {
    let mut canvas = Canvas::new();
    let merged: Vec<f64> = after.chunks(MERGED).map(|chunk| chunk.iter().sum::<u64>() as f64 / MERGED as f64).collect();
    let highest = merged.iter().copied().fold(typical_highest(before), f64::max);
    let step = tick_step(highest);
    let top = (highest / step).ceil().max(1.0) * step;
    let axes = Axes { top };

    axes.draw_grid(&mut canvas, step);
    for (level, &count) in before.iter().enumerate() {
        let (begin, end) = (axes.x(level as f64), axes.x(level as f64 + 0.88));
        canvas.fill(begin, axes.y(count as f64), end, axes.y(0.0), BEFORE);
    }
    let on_right = |value: u8| axes.y(f64::from(value) / 256.0 * top);
    let points: Vec<_> =
        curve.iter().enumerate().map(|(i, &value)| (axes.x(i as f64 + 0.5), on_right(value))).collect();
    canvas.polyline(&points, 1.6, CURVE);
    let centre = |i: usize| (i as f64 + 0.5) * MERGED as f64;
    let points: Vec<_> = merged.iter().enumerate().map(|(i, &count)| (axes.x(centre(i)), axes.y(count))).collect();
    canvas.polyline(&points, 2.4, AFTER);
    axes.draw_frame(&mut canvas);
    draw_labels(&mut canvas);
    canvas.into_picture()
}

/// The highest bar, unless few levels tower above all others, as in pictures with a plain background: these are cut off.
fn typical_highest(counts: &[u64; LEVELS]) -> f64 {
    let mut sorted = *counts;
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let usual = 2.5 * sorted[8] as f64;
    if usual > 0.0 { usual.min(sorted[0] as f64) } else { sorted[0] as f64 }
}

/// One, two or five times a power of ten, so that there are four to ten ticks.
fn tick_step(highest: f64) -> f64 {
    let rough = (highest / 5.0).max(1.0);
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

/// A count in few letters.
fn short(count: f64) -> String {
    let (value, unit) = match count {
        c if c >= 1e6 => (c / 1e6, "M"),
        c if c >= 1e3 => (c / 1e3, "k"),
        c => (c, ""),
    };
    format!("{}{unit}", (value * 100.0).round() / 100.0)
}

/// Where values are on the plot, in pixels of it.
struct Axes {
    top: f64,
}

impl Axes {
    fn x(&self, level: f64) -> f64 {
        LEFT as f64 + level / LEVELS as f64 * (RIGHT - LEFT) as f64
    }

    fn y(&self, count: f64) -> f64 {
        BOTTOM as f64 - (count / self.top).min(1.0) * (BOTTOM - TOP) as f64
    }

    fn draw_grid(&self, canvas: &mut Canvas, step: f64) {
        let n_steps = (self.top / step).round() as usize;
        for i in 0..=n_steps {
            let y = self.y(i as f64 * step);
            canvas.fill(LEFT as f64, y - 0.5, RIGHT as f64, y + 0.5, GRID);
            canvas.text(&short(i as f64 * step), LEFT as f64 - 10.0, y, Anchor::Right, INK);
        }
        for level in (0..=LEVELS).step_by(32) {
            let x = self.x(level as f64);
            canvas.fill(x - 0.5, TOP as f64, x + 0.5, BOTTOM as f64, GRID);
            canvas.fill(x - 0.5, BOTTOM as f64, x + 0.5, BOTTOM as f64 + 6.0, INK);
            canvas.text(&level.to_string(), x, BOTTOM as f64 + 18.0, Anchor::Centre, INK);
        }
        for value in (0..=LEVELS).step_by(64) {
            let y = BOTTOM as f64 - value as f64 / LEVELS as f64 * (BOTTOM - TOP) as f64;
            canvas.fill(RIGHT as f64, y - 0.5, RIGHT as f64 + 6.0, y + 0.5, CURVE);
            canvas.text(&value.to_string(), RIGHT as f64 + 11.0, y, Anchor::Left, CURVE);
        }
    }

    fn draw_frame(&self, canvas: &mut Canvas) {
        let (left, right, top, bottom) = (LEFT as f64, RIGHT as f64, TOP as f64, BOTTOM as f64);
        canvas.fill(left - 1.0, top, left, bottom + 1.0, INK);
        canvas.fill(left - 1.0, bottom, right + 1.0, bottom + 1.0, INK);
        canvas.fill(right, top, right + 1.0, bottom + 1.0, CURVE);
    }
}

fn draw_labels(canvas: &mut Canvas) {
    let line = TOP as f64 - 34.0;
    canvas.text("pixels per level", LEFT as f64 - 1.0, line, Anchor::Left, INK);
    canvas.text("luminance", (LEFT + RIGHT) as f64 / 2.0, BOTTOM as f64 + 42.0, Anchor::Centre, INK);
    let entries = [("before", BEFORE, 10.0), ("after", AFTER, 3.0), ("tone curve, right axis", CURVE, 2.0)];
    let mut x = RIGHT as f64;
    for (name, colour, thickness) in entries.into_iter().rev() {
        x -= text_width(name);
        canvas.text(name, x, line, Anchor::Left, INK);
        canvas.fill(x - 34.0, line - thickness / 2.0, x - 10.0, line + thickness / 2.0, colour);
        x -= 62.0;
    }
}

/// Which side of a text its position means.
#[derive(Clone, Copy)]
enum Anchor {
    Left,
    Centre,
    Right,
}

/// Pixels of the plot per dot of a letter.
const LETTER_DOT: f64 = 2.0;

fn text_width(text: &str) -> f64 {
    (text.chars().count() * (font::WIDTH + 1)).saturating_sub(1) as f64 * LETTER_DOT
}

struct Canvas {
    dots: Vec<Rgb>,
}

impl Canvas {
    fn new() -> Self {
        Self { dots: vec![BACKGROUND; WIDTH * HEIGHT * SCALE * SCALE] }
    }

    /// A rectangle. Positions are in pixels of the plot, as everywhere.
    fn fill(&mut self, left: f64, top: f64, right: f64, bottom: f64, colour: Rgb) {
        let dot = |position: f64, most: usize| ((position * SCALE as f64).round().max(0.0) as usize).min(most);
        let (begin, end) = (dot(left, WIDTH * SCALE), dot(right, WIDTH * SCALE));
        for y in dot(top, HEIGHT * SCALE)..dot(bottom, HEIGHT * SCALE) {
            let row = y * WIDTH * SCALE;
            self.dots[row + begin..row + end.max(begin)].fill(colour);
        }
    }

    /// Straight lines from point to point.
    fn polyline(&mut self, points: &[(f64, f64)], thickness: f64, colour: Rgb) {
        for pair in points.windows(2) {
            let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
            let n_steps = ((x1 - x0).abs().max((y1 - y0).abs()) * SCALE as f64 * 2.0).ceil().max(1.0);
            for i in 0..=n_steps as usize {
                let t = i as f64 / n_steps;
                self.disc(x0 + (x1 - x0) * t, y0 + (y1 - y0) * t, thickness / 2.0, colour);
            }
        }
    }

    fn disc(&mut self, x: f64, y: f64, radius: f64, colour: Rgb) {
        let scale = SCALE as f64;
        let dots =
            |centre: f64| ((centre - radius) * scale).floor() as isize..=((centre + radius) * scale).ceil() as isize;
        for j in dots(y) {
            for i in dots(x) {
                let (dx, dy) = ((i as f64 + 0.5) / scale - x, (j as f64 + 0.5) / scale - y);
                let inside = (0..(WIDTH * SCALE) as isize).contains(&i) && (0..(HEIGHT * SCALE) as isize).contains(&j);
                if inside && dx * dx + dy * dy <= radius * radius {
                    self.dots[j as usize * WIDTH * SCALE + i as usize] = colour;
                }
            }
        }
    }

    /// A line of text, centred vertically on `y` by its digits.
    fn text(&mut self, text: &str, x: f64, y: f64, anchor: Anchor, colour: Rgb) {
        let mut left = match anchor {
            Anchor::Left => x,
            Anchor::Centre => x - text_width(text) / 2.0,
            Anchor::Right => x - text_width(text),
        }
        .round();
        let top = (y - 3.5 * LETTER_DOT).round();
        for letter in text.chars() {
            for (i, j) in font::dots(letter) {
                let (x, y) = (left + i as f64 * LETTER_DOT, top + j as f64 * LETTER_DOT);
                self.fill(x, y, x + LETTER_DOT, y + LETTER_DOT, colour);
            }
            left += (font::WIDTH + 1) as f64 * LETTER_DOT;
        }
    }

    /// The plot: each pixel is the mean of its dots, two by two.
    fn into_picture(self) -> Picture {
        const { assert!(SCALE == 2) };
        let row = WIDTH * SCALE;
        let mut colours = Vec::with_capacity(3 * WIDTH * HEIGHT);
        for rows in self.dots.chunks_exact(SCALE * row) {
            let (upper, lower) = rows.split_at(row);
            for (upper, lower) in upper.chunks_exact(SCALE).zip(lower.chunks_exact(SCALE)) {
                for channel in 0..3 {
                    let sum = |dots: &[Rgb]| u16::from(dots[0][channel]) + u16::from(dots[1][channel]);
                    colours.push(((sum(upper) + sum(lower)) / 4) as u8);
                }
            }
        }
        Picture::new(WIDTH, HEIGHT, colours)
    }
}
