//! Vectors and mathematical arrays in kernels: the same operations, layout and panics as on the host.

use oxisycl::math;
use oxisycl::prelude::*;
use oxisycl::vector::{
    Double2, Float2, Float3, Float4, Float8, Float16, Int2, Int3, Int4, Int8, MArray, Rounding, Short4, Uchar4,
    Uchar16, Uint2, Uint4, Vector, swizzle,
};

use crate::harness::{Env, tests};

tests![
    operators_apply_to_each_element,
    division_by_a_zero_element_is_a_panic,
    comparisons_give_masks_that_choose,
    elements_are_read_and_written_by_names,
    values_convert_with_every_mode,
    doubles_convert_where_there_are_doubles,
    bits_become_those_of_other_vectors,
    vectors_are_loaded_and_stored_in_rows,
    a_load_outside_a_row_is_a_panic,
    buffers_hold_vectors_of_every_length,
    buffers_of_vectors_are_buffers_of_their_elements,
    vectors_are_captured_and_stand_in_structs,
    functions_apply_to_each_element,
    common_functions_apply_to_each_element,
    relational_functions_give_masks,
    integer_functions_apply_to_each_element,
    geometric_functions_take_vectors,
    arrays_of_any_length_are_computed_with,
];

/// What `f` gives for each input, in a kernel; it must be what it gives on the host.
#[track_caller]
fn same_as_on_the_host<I, R>(env: &Env, inputs: &[I], f: impl Fn(I) -> R + Copy + Send + Sync + 'static)
where
    I: DeviceCopyable,
    R: DeviceCopyable + PartialEq + std::fmt::Debug,
{
    let expected: Vec<R> = inputs.iter().map(|input| f(*input)).collect();
    assert_eq!(mapped(env, inputs, f), expected);
}

/// What `f` gives for each input in a kernel.
fn mapped<I: DeviceCopyable, R: DeviceCopyable>(
    env: &Env,
    inputs: &[I],
    f: impl Fn(I) -> R + Copy + Send + Sync + 'static,
) -> Vec<R> {
    let arguments = Buffer::from_slice_nd(inputs, inputs.len()).unwrap();
    // Old values are those of other inputs.
    let results = Buffer::from_vec(inputs.iter().rev().map(|input| f(*input)).collect()).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (arguments, results) = (cg.access(&arguments, Read), cg.access(&results, Write));
        cg.parallel_for(inputs.len(), move |item| results.set(item, f(arguments.get(item))))
    });
    kernel.unwrap().wait().unwrap();
    results.to_vec().unwrap()
}

/// Vectors of different numbers, also negative ones.
fn numbers(n: usize) -> Vec<Float4> {
    (0..n).map(|i| Float4::from_fn(|j| (i * 4 + j) as f32 * 0.75 - 20.0)).collect()
}

fn integers(n: usize) -> Vec<Int4> {
    (0..n).map(|i| Int4::from_fn(|j| (i * 4 + j) as i32 * 37 - 1000)).collect()
}

fn operators_apply_to_each_element(env: &Env) {
    // Exact, so that contraction makes no difference.
    same_as_on_the_host(env, &numbers(100), |v| {
        let mut w = v + 0.5;
        w *= Float4::new(2.0, -1.0, 4.0, 0.5);
        [w - v, 8.0 * v, -w, v / 0.25, v % 2.0, w]
    });
    same_as_on_the_host(env, &integers(100), |v| {
        let mut w = v * v - 3;
        w ^= v;
        w <<= 2;
        [w & 0xff, v | 1, v >> Int4::new(0, 1, 2, 3), !v, v / 7, v % Int4::new(3, 5, 7, 11), 100 - v, w]
    });
    let bytes: Vec<Uchar16> = (0..50).map(|i| Vector::from_fn(|j| (i * 16 + j) as u8)).collect();
    same_as_on_the_host(env, &bytes, |v| (v / 3 + (v >> 2)) ^ Vector::splat(0x55));
    let wide: Vec<Float16> = (0..20).map(|i| Vector::from_fn(|j| (i * 16 + j) as f32)).collect();
    same_as_on_the_host(env, &wide, |v| (v + v) * 0.5 - Vector::splat(1.0));
}

fn division_by_a_zero_element_is_a_panic(env: &Env) {
    let divisors = Buffer::from_vec(vec![Int2::new(2, 3), Int2::new(1, 0)]).unwrap();
    let results = Buffer::from_vec(vec![Int2::splat(7); 2]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (divisors, results) = (cg.access(&divisors, Read), cg.access(&results, ReadWrite));
        cg.parallel_for(2, move |item| results.update(item, |x| x / divisors.get(item)))
    });
    let error = kernel.unwrap().wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    assert!(error.to_string().ends_with(": attempt to divide by zero"), "{error}");
    // The line of the vector's operator, not one of the library.
    let place = error.to_string().split_once("work-item [1] at ").map(|(_, place)| place.to_owned());
    assert!(place.is_some_and(|place| place.contains("vector.rs:")), "{error}");
}

fn comparisons_give_masks_that_choose(env: &Env) {
    let mut inputs = numbers(100);
    inputs[3].set_y(f32::NAN);
    same_as_on_the_host(env, &inputs, |v| {
        let w = Float4::new(0.0, 1.0, -3.5, 20.0);
        [v.lt_mask(w), v.ge_mask(w), v.eq_mask(w), v.ne_mask(v), math::isnan(v), math::isless(v, w)]
    });
    same_as_on_the_host(env, &inputs, |v| {
        let is_small = v.lt_mask(Float4::splat(5.0));
        (math::select(Float4::splat(5.0), v, is_small), math::any(is_small), math::all(is_small))
    });
    let chosen = mapped(env, &[Float4::new(-1.0, 7.0, 3.0, 9.0)], |v| {
        math::select(v, Float4::splat(0.0), v.gt_mask(Float4::splat(4.0)) & Int4::new(-1, -1, -1, 0))
    });
    assert_eq!(chosen[0].to_array(), [-1.0, 0.0, 3.0, 9.0]);
}

fn elements_are_read_and_written_by_names(env: &Env) {
    let results = mapped(env, &[Int4::new(10, 11, 12, 13)], |v| {
        let mut w = v;
        swizzle!(w, xw = swizzle!(v, wx));
        swizzle!(w, gb += Int2::new(100, 200));
        w.set_x(w.x() + 1);
        let eight = Int8::from((v, w));
        let mut halves = eight;
        halves.set_odd(eight.lo());
        (swizzle!(v, zzyx), w, swizzle!(eight, s705), halves, v.swizzle([3, 0]))
    });
    let expected = (
        Int4::new(12, 12, 11, 10),
        Int4::new(14, 111, 212, 10),
        Int3::new(10, 10, 111),
        Int8::from([10, 10, 12, 11, 14, 12, 212, 13]),
        Int2::new(13, 10),
    );
    assert_eq!(results, [expected]);
    // Indices that only the kernel knows.
    same_as_on_the_host(env, &integers(64), |v| {
        let mut w = v;
        let index = (v.x() & 3) as usize;
        w[index] = w[3 - index];
        w.set_swizzle([index, (index + 1) % 4], Int2::new(1, 2));
        w
    });
}

fn values_convert_with_every_mode(env: &Env) {
    let inputs = [
        Float4::new(2.5, -2.5, 3.5, -0.1),
        Float4::new(1.0e10, -1.0e10, f32::NAN, f32::INFINITY),
        Float4::new(255.5, 256.0, 127.9, -128.9),
    ];
    same_as_on_the_host(env, &inputs, |v| {
        [
            Rounding::Automatic,
            Rounding::ToEven,
            Rounding::TowardZero,
            Rounding::TowardPositive,
            Rounding::TowardNegative,
        ]
        .map(|rounding| {
            (v.convert_with::<i32>(rounding), v.convert_with::<u8>(rounding), v.convert_with::<i64>(rounding))
        })
    });
    let inputs = [Int4::new(i32::MAX, i32::MIN, (1 << 24) + 1, -(1 << 24) - 3), Int4::new(0, 1, -1, 1 << 30)];
    same_as_on_the_host(env, &inputs, |v| {
        [Rounding::Automatic, Rounding::TowardZero, Rounding::TowardPositive, Rounding::TowardNegative]
            .map(|rounding| (v.convert_with::<f32>(rounding), v.convert::<u64>().convert_with::<f32>(rounding)))
    });
    same_as_on_the_host(env, &inputs, |v| (v.convert::<i8>(), v.convert::<u16>(), v.convert::<i64>()));
}

fn doubles_convert_where_there_are_doubles(env: &Env) {
    if !env.device().has(Aspect::Fp64) {
        env.skip("the device has no f64");
    }
    let inputs = [Double2::new(0.1, -0.1), Double2::new(1.0e300, -1.0e-300), Double2::new(2.5, 4294967295.5)];
    same_as_on_the_host(env, &inputs, |v| {
        [Rounding::ToEven, Rounding::TowardZero, Rounding::TowardPositive, Rounding::TowardNegative]
            .map(|rounding| (v.convert_with::<f32>(rounding), v.convert_with::<u32>(rounding)))
    });
}

fn bits_become_those_of_other_vectors(env: &Env) {
    let inputs = numbers(50);
    same_as_on_the_host(env, &inputs, |v| {
        (v.bit_cast::<u32, 4>(), v.bit_cast::<u8, 16>(), v.lo().bit_cast::<i16, 4>())
    });
    same_as_on_the_host(env, &inputs, |v| v.bit_cast::<u8, 16>().bit_cast::<f32, 4>());
    let bits = mapped(env, &[Float2::new(1.0, -0.0)], |v| v.bit_cast::<u32, 2>());
    assert_eq!(bits, [Uint2::new(0x3f80_0000, 0x8000_0000)]);
}

fn vectors_are_loaded_and_stored_in_rows(env: &Env) {
    let numbers: Vec<f32> = (0..301).map(|i| i as f32).collect();
    let (from, to) = (Buffer::from_vec(numbers).unwrap(), Buffer::from_vec(vec![0.0_f32; 300]).unwrap());
    let kernel = env.queue().submit(|cg| {
        let (from, to) = (cg.access(&from, Read), cg.access_chunks(&to, ReadWrite, 12));
        cg.parallel_for(to.n_blocks(), move |item| {
            let (row, block) = (from.view(item), to.block(item));
            // From the second element on, where vectors are not aligned.
            let row = &row.as_slice()[1..];
            for i in 0..3 {
                let v = Float4::load(item.index() * 3 + i, row);
                v.store_cells(2 - i, block.as_cells());
            }
            let three = Float3::load_cells(0, block.as_cells());
            (-three).store_cells(3, block.as_cells());
        })
    });
    kernel.unwrap();
    let mut expected = Vec::new();
    for block in 0..25 {
        let number = |i: usize| (block * 12 + i + 1) as f32;
        let mut part: Vec<f32> = [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3].map(number).to_vec();
        for i in 0..3 {
            part[9 + i] = -part[i];
        }
        expected.extend(part);
    }
    assert_eq!(to.to_vec().unwrap(), expected);
}

fn a_load_outside_a_row_is_a_panic(env: &Env) {
    let row = Buffer::from_vec(vec![1; 10]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let row = cg.access(&row, Read);
        cg.parallel_for(3, move |item| {
            std::hint::black_box(Int4::load(item.index(), row.view(item).as_slice()));
        })
    });
    let error = kernel.unwrap().wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    let message = ": vector 2 of 4 elements lies outside of a slice of 10 elements";
    assert!(error.to_string().ends_with(message), "{error}");
}

fn buffers_hold_vectors_of_every_length(env: &Env) {
    macro_rules! check {
        ($($type:ty, $n:literal;)*) => { $(
            let inputs: Vec<Vector<$type, $n>> =
                (0..37).map(|i| Vector::from_fn(|j| (i * 16 + j) as $type)).collect();
            let neighbours = Buffer::from_vec(inputs.clone()).unwrap();
            let results = Buffer::from_vec(inputs.clone()).unwrap();
            let kernel = env.queue().submit(|cg| {
                let (neighbours, results) = (cg.access(&neighbours, Read), cg.access(&results, ReadWrite));
                cg.parallel_for(37, move |item| {
                    let next = neighbours.view(item)[(item.index() + 1) % 37];
                    results.update(item, |own| next - own / (2 as $type));
                })
            });
            kernel.unwrap();
            let expected: Vec<_> = (0..37).map(|i| inputs[(i + 1) % 37] - inputs[i] / (2 as $type)).collect();
            assert_eq!(results.to_vec().unwrap(), expected);
        )* };
    }
    check! {
        f32, 1; f32, 2; f32, 3; f32, 4; f32, 8; f32, 16;
        i64, 1; i64, 2; i64, 3; i64, 4; i64, 8; i64, 16;
        i16, 1; i16, 2; i16, 3; i16, 4; i16, 8; i16, 16;
    }
}

fn buffers_of_vectors_are_buffers_of_their_elements(env: &Env) {
    let vectors = Buffer::from_vec((0..8).map(Short4::splat).collect::<Vec<_>>()).unwrap();
    let elements = vectors.reinterpret::<i16, 1>(32).unwrap();
    let kernel = env.queue().submit(|cg| {
        let elements = cg.access(&elements, ReadWrite);
        cg.parallel_for(32, move |item| elements.update(item, |x| x * 10 + (item.index() % 4) as i16))
    });
    kernel.unwrap();
    let expected: Vec<Short4> = (0..8).map(|i| Short4::new(i * 10, i * 10 + 1, i * 10 + 2, i * 10 + 3)).collect();
    assert_eq!(vectors.to_vec().unwrap(), expected);

    // Vectors of three have four places.
    assert_eq!(size_of::<[Float3; 5]>(), 80);
    let three = Buffer::<Float3, 1>::uninit(5).unwrap();
    let kernel = env.queue().submit(|cg| {
        let three = cg.access(&three, Write.no_init());
        cg.parallel_for(5, move |item| three.set(item, Float3::new(0.0, 0.5, 1.0) + item.index() as f32))
    });
    kernel.unwrap();
    let expected: Vec<Float3> = (0..5).map(|i| Float3::new(i as f32, i as f32 + 0.5, i as f32 + 1.0)).collect();
    assert_eq!(three.to_vec().unwrap(), expected);
}

#[derive(Clone, Copy, DeviceCopyable)]
struct Particle {
    position: Float3,
    mass: f32,
    colour: Uchar4,
    flags: MArray<bool, 3>,
}

fn vectors_are_captured_and_stand_in_structs(env: &Env) {
    let particle = Particle {
        position: Float3::new(1.0, 2.0, 3.0),
        mass: 2.0,
        colour: Uchar4::new(1, 2, 3, 255),
        flags: MArray::from([true, false, true]),
    };
    let step = Float8::from_fn(|i| i as f32);
    let results = Buffer::from_vec(vec![particle; 20]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let results = cg.access(&results, ReadWrite);
        cg.parallel_for(20, move |item| {
            let i = item.index();
            results.update(item, |old| Particle {
                position: old.position * old.mass + particle.position * step[i % 8],
                mass: old.mass + 1.0,
                colour: old.colour ^ particle.colour,
                flags: old.flags ^ MArray::splat(i % 2 == 0),
            });
        })
    });
    kernel.unwrap();
    for (i, found) in results.to_vec().unwrap().into_iter().enumerate() {
        assert_eq!(found.position, particle.position * (2.0 + (i % 8) as f32));
        assert_eq!((found.mass, found.colour), (3.0, Uchar4::splat(0)));
        assert_eq!(found.flags.to_array(), if i % 2 == 0 { [false, true, false] } else { [true, false, true] });
    }
}

fn functions_apply_to_each_element(env: &Env) {
    let inputs = numbers(100);
    // Functions whose results are exact.
    same_as_on_the_host(env, &inputs, |v| {
        let (rest, whole) = math::modf(v);
        let (mantissa, exponent) = math::frexp(v);
        ([math::floor(v), math::fabs(v), math::rint(v), math::fmax(v, -v), rest, whole, mantissa], exponent)
    });
    same_as_on_the_host(env, &inputs, |v| {
        [math::clamp(v, Float4::splat(-1.0), Float4::splat(2.0)), math::sign(v), math::step(Float4::splat(0.0), v)]
    });
    // Functions that devices may round in another way.
    let results =
        mapped(env, &inputs, |v| [math::sin(v), math::sqrt(math::fabs(v)), math::pow(math::fabs(v), v * 0.03125)]);
    for (v, found) in inputs.iter().zip(results) {
        for i in 0..4 {
            let expected = [v[i].sin(), v[i].abs().sqrt(), v[i].abs().powf(v[i] * 0.03125)];
            for (found, expected) in found.iter().zip(expected) {
                let error = (found[i] - expected).abs();
                assert!(error <= 4.0e-6 * expected.abs().max(0.1), "{} {} {expected}", v[i], found[i]);
            }
        }
    }
}

fn common_functions_apply_to_each_element(env: &Env) {
    let inputs = numbers(100);
    // Few digits, so that all is exact.
    same_as_on_the_host(env, &inputs, |v| {
        let (low, high) = (Float4::splat(-2.0), Float4::new(1.0, 2.0, 4.0, 8.0));
        let mixed = [math::mix(v, high, Float4::splat(0.5)), math::mix(low, v, Float4::new(0.0, 0.25, 0.75, 1.0))];
        let arrays = [v, high].map(|v| MArray::from(v.to_array()));
        ([math::max(v, low), math::min(v, high)], mixed, math::max(arrays[0], arrays[1]))
    });
    // Functions that devices may round in another way.
    let results = mapped(env, &inputs, |v| {
        let step = math::smoothstep(Float4::splat(-8.0), Float4::new(8.0, 16.0, 24.0, 32.0), v);
        ([math::degrees(v), math::radians(v), step], math::radians(MArray::from(v.to_array())))
    });
    for (v, (found, array)) in inputs.iter().zip(results) {
        for i in 0..4 {
            let t = ((v[i] + 8.0) / (16.0 + 8.0 * i as f32)).clamp(0.0, 1.0);
            let expected = [v[i].to_degrees(), v[i].to_radians(), t * t * (3.0 - 2.0 * t), v[i].to_radians()];
            for (found, expected) in [found[0][i], found[1][i], found[2][i], array[i]].into_iter().zip(expected) {
                assert!((found - expected).abs() <= 1.0e-6 * expected.abs().max(0.1), "{}: {found} {expected}", v[i]);
            }
        }
    }
}

fn relational_functions_give_masks(env: &Env) {
    let special = [0.0, -0.0, 1.5, -1.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE];
    let inputs: Vec<Float4> = (0..64).map(|i| Float4::from_fn(|j| special[(i * 3 + i / 8 * j + j) % 8])).collect();
    same_as_on_the_host(env, &inputs, |v| {
        let w = Float4::new(0.0, f32::NAN, f32::INFINITY, 1.5);
        let pairs = [math::isequal(v, w), math::isnotequal(v, w), math::isgreater(v, w), math::isgreaterequal(v, w)];
        let less = [math::isless(v, w), math::islessequal(v, w), math::islessgreater(v, w)];
        let order = [math::isordered(v, w), math::isunordered(v, w)];
        (pairs, less, order, [math::isfinite(v), math::isinf(v), math::isnan(v), math::isnormal(v), math::signbit(v)])
    });
    // The bit of the sign alone.
    same_as_on_the_host(env, &numbers(100), |v| {
        math::bitselect(v, Float4::new(1.0, -1.0, 0.0, -0.0), Float4::splat(-0.0))
    });
}

fn integer_functions_apply_to_each_element(env: &Env) {
    let inputs: Vec<(Uint4, Uint4)> = (0..100_u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b9) + Uint4::new(0, 1, 2, 3), i + Uint4::new(1, 2, 3, 4)))
        .collect();
    same_as_on_the_host(env, &inputs, |(x, y)| {
        (
            [math::add_sat(x, y), math::mul_hi(x, x), math::rotate(x, y), math::abs_diff(x, y), math::hadd(x, y)],
            [math::clz(x), math::popcount(x), math::max(x, y), math::mad_sat(x, y, x)],
            math::upsample(x, y),
        )
    });
}

fn geometric_functions_take_vectors(env: &Env) {
    // Small integers and powers of two, so that all is exact.
    let inputs: Vec<Float3> = (0..60).map(|i| Float3::from_fn(|j| ((i * 5 + j * 3) % 11) as f32 - 4.0)).collect();
    same_as_on_the_host(env, &inputs, |v| {
        let w = Float3::new(1.0, -2.0, 4.0);
        (math::cross(v, w), math::dot(v, w), math::dot(MArray::from(v.to_array()), MArray::from(w.to_array())))
    });
    let lengths = mapped(env, &[Float2::new(3.0e30, 4.0e30), Float2::new(3.0, -4.0)], |v| {
        (math::length(v), math::distance(v, Float2::splat(0.0)), math::normalize(v))
    });
    for ((length, distance, unit), expected) in lengths.into_iter().zip([5.0e30_f32, 5.0]) {
        assert!((length / expected - 1.0).abs() < 1.0e-6 && distance == length, "{length} {distance}");
        assert!((unit.x() - 0.6).abs() < 1.0e-6 && (unit.y().abs() - 0.8).abs() < 1.0e-6, "{unit}");
    }
    let fast = mapped(env, &[Float2::new(3.0, -4.0), Float2::new(0.75, 1.0)], |v| {
        ([math::fast_length(v), math::fast_distance(v, Float2::new(0.0, 0.0))], math::fast_normalize(v))
    });
    // Of square roots with half of the digits.
    for ((lengths, unit), [expected, y]) in fast.into_iter().zip([[5.0_f32, -0.8], [1.25, 0.8]]) {
        assert!(lengths.iter().all(|length| (length / expected - 1.0).abs() < 1.0e-3), "{lengths:?}");
        assert!((unit.x() - 0.6).abs() < 1.0e-3 && (unit.y() - y).abs() < 1.0e-3, "{unit}");
    }
}

fn arrays_of_any_length_are_computed_with(env: &Env) {
    let inputs: Vec<MArray<i32, 5>> = (0..50).map(|i| MArray::from_fn(|j| (i * 5 + j) as i32 * 13 - 700)).collect();
    same_as_on_the_host(env, &inputs, |a| {
        let mut b = a * 2 - MArray::from([1, 2, 3, 4, 5]);
        b[3] -= 7;
        b %= 100;
        let is_less = a.lt_mask(b);
        (math::select(a, b, is_less), !is_less, math::any(is_less), math::clz(a), a.map(|x| x as i8), 3 - b)
    });
    let inputs: Vec<MArray<f32, 7>> = (0..50).map(|i| MArray::from_fn(|j| (i * 7 + j) as f32 * 0.5 - 80.0)).collect();
    same_as_on_the_host(env, &inputs, |a| (-a + 1.0, math::floor(a), math::isnan(a), math::ilogb(a)));
}
