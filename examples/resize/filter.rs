//! How much of each pixel goes into another one, along a row or a column.

use std::f64::consts::PI;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Filter {
    Nearest,
    Area,
    Bilinear,
    Bicubic,
    Lanczos,
}

/// For each pixel of the result: the first pixel that goes into it, and the weights of that one and of those that follow.
pub(crate) struct Taps {
    pub(crate) first: Vec<i32>,
    /// `n` for each pixel. They sum up to one, and are zero for pixels outside of the picture.
    pub(crate) weights: Vec<f32>,
    pub(crate) n: usize,
}

impl Filter {
    pub(crate) const ALL: [(&str, Self); 5] = [
        ("nearest", Self::Nearest),
        ("area", Self::Area),
        ("bilinear", Self::Bilinear),
        ("bicubic", Self::Bicubic),
        ("lanczos", Self::Lanczos),
    ];

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text);
        let names = Self::ALL.map(|(name, _)| name).join(", ");
        found.map(|(_, filter)| filter).ok_or_else(|| format!("--filter \"{text}\": expected one of {names}"))
    }

    /// How far it reaches to each side, in pixels.
    fn reach(self) -> f64 {
        match self {
            Self::Nearest | Self::Area => 0.5,
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// The weight of what is at a distance.
    fn weight(self, distance: f64) -> f64 {
        let x = distance.abs();
        if x >= self.reach() {
            return 0.0;
        }
        match self {
            Self::Nearest | Self::Area => 1.0,
            Self::Bilinear => 1.0 - x,
            // Catmull-Rom
            Self::Bicubic if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
            Self::Bicubic => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            Self::Lanczos => sinc(x) * sinc(x / 3.0),
        }
    }

    /// What makes `to` pixels of `from` pixels, neither of them zero.
    pub(crate) fn taps(self, from: usize, to: usize) -> Taps {
        let ratio = from as f64 / to as f64;
        // Where many pixels become one, the filter is as wide as these. So none is left out.
        let stretch = ratio.max(1.0);
        let reach = self.reach() * stretch;
        let n = (2.0 * reach).ceil() as usize + 1;
        let mut taps = Taps { first: Vec::with_capacity(to), weights: Vec::with_capacity(to * n), n };
        for i in 0..to {
            let centre = (i as f64 + 0.5) * ratio;
            let first = (centre - reach).floor();
            let weight = |k: usize| {
                let at = first + k as f64;
                if at < 0.0 || at >= from as f64 {
                    0.0
                } else if self == Self::Area {
                    // The part of the pixel that lies in the area.
                    ((at + 1.0).min(centre + reach) - at.max(centre - reach)).max(0.0)
                } else {
                    self.weight((at + 0.5 - centre) / stretch)
                }
            };
            let own: Vec<f64> = (0..n).map(weight).collect();
            let sum: f64 = own.iter().sum();
            taps.first.push(first as i32);
            taps.weights.extend(own.iter().map(|weight| (weight / sum) as f32));
        }
        taps
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) }
}
