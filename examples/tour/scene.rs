//! A picture that is made up, the same on every run: a lake between mountains in the evening. It is rather dark, so that the tone
//! mapping has something to do.

use crate::picture::Picture;

/// Three channels from 0 to 1.
type Colour = [f32; 3];

const SUN: [f32; 2] = [0.68, 0.50];
/// Where the lake begins, from the top.
const SHORE: f32 = 0.74;

pub(crate) fn paint(width: usize, height: usize) -> Picture {
    let aspect = width as f32 / height as f32;
    let mut colours = Vec::with_capacity(3 * width * height);
    // The outline of the mountains depends on the column only.
    let columns: Vec<[f32; RIDGES.len()]> = (0..width).map(|x| ridges(x as f32 / height as f32)).collect();
    for y in 0..height {
        let v = (y as f32 + 0.5) / height as f32;
        for (x, outline) in columns.iter().enumerate() {
            let u = (x as f32 + 0.5) / height as f32;
            let place = Place { u, v, aspect, height: height as f32 };
            let colour = if v < SHORE { land(&place, outline) } else { lake(&place, &columns) };
            // Film grain, so that flat areas are not perfectly flat.
            let grain = (random(x as u32, y as u32) - 0.5) * 0.012;
            colours.extend(colour.map(|channel| to_byte(0.62 * channel * (0.55 + 0.45 * channel) + grain)));
        }
    }
    Picture::new(width, height, colours)
}

fn to_byte(value: f32) -> u8 {
    (value * 255.0 + 0.5).clamp(0.0, 255.0) as u8
}

/// A point of the scene: down from the top in picture heights, and to the right in the same unit.
struct Place {
    u: f32,
    v: f32,
    aspect: f32,
    /// Of the picture, in pixels.
    height: f32,
}

/// Height above the shore, roughness, and colour of each chain of mountains, from far to near.
const RIDGES: [(f32, f32, Colour); 4] = [
    (0.21, 0.9, [0.62, 0.47, 0.56]),
    (0.15, 1.7, [0.42, 0.33, 0.45]),
    (0.085, 2.9, [0.24, 0.21, 0.31]),
    (0.028, 6.5, [0.08, 0.09, 0.13]),
];

/// Where each chain of mountains ends at the top.
fn ridges(u: f32) -> [f32; RIDGES.len()] {
    std::array::from_fn(|i| {
        let (height, roughness, _) = RIDGES[i];
        let outline = fractal(u * roughness * 1.6 + 17.0 * i as f32, 3.7 * i as f32, 6);
        SHORE - height * (0.25 + 1.5 * outline)
    })
}

fn land(place: &Place, outline: &[f32; RIDGES.len()]) -> Colour {
    // How much of the pixel lies below an outline: a part of it on the outline itself.
    let cover = |i: usize| ((place.v - outline[i]) * place.height + 0.5).clamp(0.0, 1.0);
    let hidden = (0..RIDGES.len()).rev().find(|&i| cover(i) >= 1.0);
    let mut colour = hidden.map_or_else(|| sky(place), |i| ridge(i, place, outline[i]));
    for (i, &top) in outline.iter().enumerate().skip(hidden.map_or(0, |i| i + 1)) {
        if cover(i) > 0.0 {
            colour = mix(colour, ridge(i, place, top), cover(i));
        }
    }
    colour
}

fn ridge(i: usize, &Place { u, v, .. }: &Place, outline: f32) -> Colour {
    let (_, roughness, colour) = RIDGES[i];
    let depth = (v - outline) / (SHORE - outline).max(0.001);
    let texture = fractal(u * 9.0 * roughness, v * 16.0 * roughness, 4) - 0.5;
    // Mist gathers in the valleys, except in front.
    let mist = if i + 1 == RIDGES.len() { 0.0 } else { 0.35 * depth * depth };
    mix(colour.map(|channel| channel * (1.0 + 0.55 * texture)), [0.80, 0.62, 0.58], mist)
}

fn sky(&Place { u, v, aspect, .. }: &Place) -> Colour {
    let height = (v / SHORE).clamp(0.0, 1.0);
    let base = if height < 0.55 {
        mix([0.13, 0.20, 0.42], [0.52, 0.42, 0.60], height / 0.55)
    } else {
        mix([0.52, 0.42, 0.60], [1.0, 0.66, 0.40], (height - 0.55) / 0.45)
    };
    let (dx, dy) = (u - SUN[0] * aspect, v - SUN[1]);
    let distance = dx * dx + dy * dy;
    let glow = 0.9 / (1.0 + 28.0 * distance);
    let disc = smooth((0.0016 - distance) / 0.0003);
    let clouds = smooth((fractal(u * 2.2 + 5.0, v * 8.5, 5) - 0.50) * 4.0) * (0.9 - 0.5 * height);
    let lit = mix([0.66, 0.50, 0.58], [1.0, 0.80, 0.60], glow);
    let stars = if random((u * 620.0) as u32, (v * 620.0) as u32) > 0.9985 { (0.45 - height).max(0.0) } else { 0.0 };
    let colour = mix(base, lit, 0.75 * clouds);
    let warm: Colour = [0.75 * glow, 0.48 * glow, 0.22 * glow];
    let colour: Colour = std::array::from_fn(|c| colour[c] + 0.55 * warm[c] + stars);
    mix(colour, [1.35, 1.28, 1.10], disc)
}

/// The land upside down, shaken by waves that grow towards the viewer.
fn lake(&Place { u, v, aspect, height }: &Place, columns: &[[f32; RIDGES.len()]]) -> Colour {
    let depth = (v - SHORE) / (1.0 - SHORE);
    let wave = fractal(u * (9.0 - 5.0 * depth), v * 130.0 / (0.5 + 2.0 * depth), 3) - 0.5;
    let mirrored = SHORE - (v - SHORE) * 1.25 + wave * 0.10 * depth;
    let shifted = u + wave * 0.05 * depth;
    let column = ((shifted * height).max(0.0) as usize).min(columns.len() - 1);
    let mirrored = Place { u: shifted, v: mirrored.clamp(0.0, SHORE), aspect, height };
    let reflected = land(&mirrored, &columns[column]);
    let crest = smooth((wave - 0.12) * 6.0) * (0.10 + 0.25 * depth);
    let water = mix(reflected.map(|channel| channel * 0.82), [0.10, 0.16, 0.24], 0.18 + 0.32 * depth);
    mix(water, [0.95, 0.72, 0.55], crest * 0.55)
}

fn mix(a: Colour, b: Colour, share: f32) -> Colour {
    let share = share.clamp(0.0, 1.0);
    std::array::from_fn(|c| a[c] + (b[c] - a[c]) * share)
}

/// From 0 to 1 without corners.
fn smooth(t: f32) -> f32 {
    let t = t.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// Noise with detail at several scales, from 0 to 1.
fn fractal(x: f32, y: f32, n_octaves: u32) -> f32 {
    let (mut sum, mut amplitude, mut scale) = (0.0, 0.5, 1.0);
    for octave in 0..n_octaves {
        sum += amplitude * noise(x * scale + 31.0 * octave as f32, y * scale + 57.0 * octave as f32);
        amplitude *= 0.5;
        scale *= 2.0;
    }
    sum
}

/// Random values on a grid, smooth between them.
fn noise(x: f32, y: f32) -> f32 {
    let (cell_x, cell_y) = (x.floor(), y.floor());
    let (s, t) = (smooth(x - cell_x), smooth(y - cell_y));
    let (i, j) = (cell_x as i32 as u32, cell_y as i32 as u32);
    let (right, below) = (i.wrapping_add(1), j.wrapping_add(1));
    let above = random(i, j) + (random(right, j) - random(i, j)) * s;
    let beneath = random(i, below) + (random(right, below) - random(i, below)) * s;
    above + (beneath - above) * t
}

/// A number from 0 to 1 that looks random.
fn random(x: u32, y: u32) -> f32 {
    let mut bits = x.wrapping_mul(0x9E37_79B1) ^ y.wrapping_mul(0x85EB_CA77);
    bits = (bits ^ (bits >> 15)).wrapping_mul(0x2C1B_3C6D);
    bits = (bits ^ (bits >> 12)).wrapping_mul(0x297A_2D39);
    ((bits ^ (bits >> 15)) >> 8) as f32 / (1 << 24) as f32
}
