//! Inputs: from all exponents alike, and near the places where functions are difficult.

/// The number of inputs of a function.
pub(crate) fn n_inputs() -> usize {
    let text = std::env::var("OXISYCL_TEST_MATH_INPUTS");
    text.map_or(1 << 20, |text| text.parse().expect("OXISYCL_TEST_MATH_INPUTS is a number of inputs"))
}

/// Numbers near which functions change, or are hard to compute.
fn places() -> Vec<f64> {
    vec![
        0.0,
        f64::from_bits(1),
        f64::from(f32::from_bits(1)),
        f64::from(f32::MIN_POSITIVE),
        f64::MIN_POSITIVE,
        1.0e-8,
        1.0 / 4096.0,
        0.25,
        0.29,
        0.33,
        0.4,
        0.5,
        0.6,
        0.92,
        1.0,
        1.5,
        2.0,
        3.0,
        3.95,
        4.0,
        10.0,
        10.06,
        17.33,
        24.0,
        26.6,
        35.04,
        38.53,
        40.0,
        42.0,
        44.85,
        88.72,
        89.41,
        103.97,
        126.0,
        128.0,
        149.0,
        171.62,
        184.0,
        308.25,
        709.78,
        710.47,
        745.13,
        1024.0,
        1074.0,
        65536.0,
        8388608.0,
        16777216.0,
        4503599627370496.0,
        9007199254740992.0,
        1.0e18,
        f64::from(f32::MAX),
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
        std::f64::consts::E,
        std::f64::consts::LN_2,
        std::f64::consts::SQRT_2,
    ]
}

/// The places, and angles that are near multiples of a quarter turn.
fn angles() -> Vec<f64> {
    let mut places = places();
    // Multiples of a quarter turn, small and large, and numbers between integers.
    for n in (1..200_u64).chain((8..60).map(|n| 1 << n)) {
        places.push(n as f64 * std::f64::consts::FRAC_PI_4);
        places.push(n as f64 * 0.25);
    }
    // Those of f32 and f64 that are nearest to such multiples.
    places.extend([16367173.0 * 2.0_f64.powi(72), 6381956970095103.0 * 2.0_f64.powi(797)]);
    places
}

/// A number that looks random, the same in each run.
pub(crate) fn scattered(index: usize) -> u64 {
    let mut bits = (index as u64).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 29).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 32
}

macro_rules! inputs {
    ($name:ident, $edges:ident, $float:ident, $bits:ident) => {
        /// Numbers around each place, with both signs.
        pub(crate) fn $edges(places: Vec<f64>, n_neighbours: usize) -> Vec<$float> {
            let mut edges = Vec::new();
            for place in places {
                let place = place as $float;
                for sign in [1.0, -1.0] {
                    let (mut up, mut down) = (place, place);
                    edges.push(place * sign);
                    for _ in 0..n_neighbours {
                        (up, down) = (up.next_up(), down.next_down());
                        edges.extend([up * sign, down * sign]);
                    }
                }
            }
            edges
        }

        /// At least `n` numbers: one of each of `n` equal ranges of bits, and the edges.
        pub(crate) fn $name(n: usize) -> Vec<$float> {
            let step = $bits::MAX / n as $bits;
            let mut inputs: Vec<_> =
                (0..n).map(|i| $float::from_bits(i as $bits * step + scattered(i) as $bits % step)).collect();
            inputs.extend($edges(angles(), 4));
            inputs
        }
    };
}

inputs!(single, single_edges, f32, u32);
inputs!(double, double_edges, f64, u64);

/// Pairs: edges with edges, and of the rest one half of any exponents, the other half of exponents near each other.
macro_rules! pairs {
    ($name:ident, $edges:ident, $float:ident, $bits:ident, $mantissa:literal) => {
        pub(crate) fn $name(n: usize) -> Vec<[$float; 2]> {
            let edges = $edges(places(), 1);
            let mut pairs: Vec<_> = edges.iter().flat_map(|&x| edges.iter().map(move |&y| [x, y])).collect();
            for i in 0..n {
                let (x, other) = (scattered(2 * i) as $bits, scattered(2 * i + 1) as $bits);
                let near = (x & ($bits::MAX << $mantissa)).wrapping_add(other % (8 << $mantissa))
                    ^ (other & 1) << ($bits::BITS - 1);
                pairs.push([$float::from_bits(x), $float::from_bits(if i % 2 == 0 { other } else { near })]);
            }
            // Powers in range have exponents near 1, or bases near 1.
            for i in 0..n {
                let (x, y) = (
                    scattered(3 * i) as $float / u64::MAX as $float,
                    scattered(3 * i + 1) as $float / u64::MAX as $float,
                );
                let small = (scattered(3 * i + 2) % 60) as i32 - 30;
                pairs.push([
                    (x * 4.0 - 2.0) * $float::powi(2.0, small),
                    (y * 4.0 - 2.0) * $float::powi(2.0, 5 - small.abs() / 3),
                ]);
            }
            pairs
        }
    };
}

pairs!(single_pairs, single_edges, f32, u32, 23);
pairs!(double_pairs, double_edges, f64, u64, 52);
