//! Elements and parts by name and index, what vectors are made from, and what they are to the standard library.

use std::collections::HashSet;
use std::format;
use std::panic::catch_unwind;
use std::string::String;
use std::vec::Vec;

use super::super::{Char16, Float2, Float3, Float4, Int2, Int3, Int4, Int8, Int16, MArray, Vector, swizzle};

#[test]
fn elements_have_names() {
    let mut v = Int4::new(1, 2, 3, 4);
    assert_eq!([v.x(), v.y(), v.z(), v.w()], [1, 2, 3, 4]);
    assert_eq!([v.r(), v.g(), v.b(), v.a()], [1, 2, 3, 4]);
    for (set, x) in [Int4::set_x, Int4::set_y, Int4::set_z, Int4::set_w].into_iter().zip(5..) {
        set(&mut v, x);
    }
    assert_eq!(v.to_array(), [5, 6, 7, 8]);
    for (set, x) in [Int4::set_r, Int4::set_g, Int4::set_b, Int4::set_a].into_iter().zip(9..) {
        set(&mut v, x);
    }
    assert_eq!(v.to_array(), [9, 10, 11, 12]);
    v[2] += 1;
    assert_eq!((v[2], v.as_array()[3]), (12, 12));
    let mut w = Int3::new(1, 2, 3);
    w.set_z(w.x() + w.y() + w.z());
    assert_eq!((w, Int2::new(4, 5).y(), Vector::<u8, 1>::new(3).x()), (Int3::new(1, 2, 6), 5, 3));
}

#[test]
fn halves_are_read_and_written() {
    let v = Int8::from_fn(|i| i as i32);
    assert_eq!((v.lo().to_array(), v.hi().to_array()), ([0, 1, 2, 3], [4, 5, 6, 7]));
    assert_eq!((v.even().to_array(), v.odd().to_array()), ([0, 2, 4, 6], [1, 3, 5, 7]));
    let part = Int4::new(-1, -2, -3, -4);
    let with = |write: fn(&mut Int8, Int4)| {
        let mut v = v;
        write(&mut v, part);
        v.to_array()
    };
    assert_eq!(with(Int8::set_lo), [-1, -2, -3, -4, 4, 5, 6, 7]);
    assert_eq!(with(Int8::set_hi), [0, 1, 2, 3, -1, -2, -3, -4]);
    assert_eq!(with(Int8::set_even), [-1, 1, -2, 3, -3, 5, -4, 7]);
    assert_eq!(with(Int8::set_odd), [0, -1, 2, -2, 4, -3, 6, -4]);
    assert_eq!((Int2::new(1, 2).lo()[0], Int2::new(1, 2).hi()[0]), (1, 2));
    assert_eq!(Int16::from((v, v)).odd().lo(), v.odd());
}

#[test]
fn swizzles_read_any_elements_in_any_order() {
    let v = Int4::new(10, 11, 12, 13);
    assert_eq!(swizzle!(v, x).to_array(), [10]);
    assert_eq!(swizzle!(v, wx).to_array(), [13, 10]);
    assert_eq!(swizzle!(v, zzy).to_array(), [12, 12, 11]);
    assert_eq!(swizzle!(v, wzyx).to_array(), [13, 12, 11, 10]);
    assert_eq!(swizzle!(v, abgr), swizzle!(v, wzyx));
    assert_eq!(swizzle!(v, xyzwwzyx).to_array(), [10, 11, 12, 13, 13, 12, 11, 10]);
    assert_eq!(swizzle!(swizzle!(v, wzyx), yx).to_array(), [12, 13]);
    let wide = Char16::from_fn(|i| i as i8);
    assert_eq!(swizzle!(wide, s0f3).to_array(), [0, 15, 3]);
    assert_eq!(swizzle!(wide, sFEab).to_array(), [15, 14, 10, 11]);
    assert_eq!(swizzle!(wide + wide, s0123456789abcdef)[15], 30);
    assert_eq!(v.swizzle([3, 3, 0]).to_array(), [13, 13, 10]);
    let text = catch_unwind(|| v.swizzle([0, 4])).unwrap_err();
    assert_eq!(text.downcast_ref::<String>().unwrap(), "a vector of 4 elements has none with index 4");
}

#[test]
fn swizzles_write_distinct_elements() {
    let mut v = Int4::new(10, 11, 12, 13);
    swizzle!(v, wx = Int2::new(1, 2));
    assert_eq!(v.to_array(), [2, 11, 12, 1]);
    swizzle!(v, zy = swizzle!(v, yz));
    assert_eq!(v.to_array(), [2, 12, 11, 1]);
    swizzle!(v, s31 -= 1);
    swizzle!(v, rgb *= Int3::new(1, 2, 3));
    assert_eq!(v.to_array(), [2, 22, 33, 0]);
    swizzle!(v, xyzw <<= 1);
    assert_eq!(v.to_array(), [4, 44, 66, 0]);
    // The value and the vector are evaluated once, the value first.
    let (mut rows, mut n_calls) = ([v, v], 0);
    let mut next = || {
        n_calls += 1;
        n_calls - 1
    };
    swizzle!(rows[next()], x += 1);
    assert_eq!((rows[0][0], n_calls), (5, 1));
    v.set_swizzle([3, 0], Int2::new(7, 8));
    assert_eq!(v.to_array(), [8, 44, 66, 7]);
    let before = v;
    assert!(catch_unwind(move || v.set_swizzle([1, 1], Int2::new(7, 8))).is_err());
    assert!(catch_unwind(move || v.set_swizzle([1, 4], Int2::new(7, 8))).is_err());
    assert_eq!(v, before);
}

#[test]
fn vectors_are_made_from_parts() {
    let (a, b) = (Float2::new(1.0, 2.0), Float2::new(3.0, 4.0));
    let c = Float3::new(1.0, 2.0, 3.0);
    let expected = Float4::new(1.0, 2.0, 3.0, 4.0);
    assert_eq!(Float2::from((1.0, 2.0)), a);
    assert_eq!(
        [Float3::from((1.0, 2.0, 3.0)), Float3::from((a, 3.0)), Float3::from((1.0, Float2::new(2.0, 3.0)))],
        [c; 3]
    );
    let made = [
        Float4::from((1.0, 2.0, 3.0, 4.0)),
        Float4::from((a, b)),
        Float4::from((a, 3.0, 4.0)),
        Float4::from((1.0, Float2::new(2.0, 3.0), 4.0)),
        Float4::from((1.0, 2.0, b)),
        Float4::from((c, 4.0)),
        Float4::from((1.0, Float3::new(2.0, 3.0, 4.0))),
        Float4::from([1.0, 2.0, 3.0, 4.0]),
    ];
    assert_eq!(made, [expected; 8]);
    let eight = Vector::<f32, 8>::from((expected, expected));
    assert_eq!(Vector::<f32, 16>::from((eight, eight)).to_array(), std::array::from_fn(|i| (i % 4 + 1) as f32));
    let one: Vector<u16, 1> = 7.into();
    assert_eq!((u16::from(one), <[u16; 1]>::from(one)), (7, [7]));
}

#[test]
fn vectors_and_arrays_have_the_usual_traits() {
    let (v, a) = (Float3::new(1.5, -0.0, f32::INFINITY), MArray::from([1.5, 2.0]));
    assert_eq!((format!("{v}"), format!("{v:?}")), ("{1.5, -0, inf}".into(), "Vector([1.5, -0.0, inf])".into()));
    assert_eq!((format!("{a:.2}"), format!("{:02x}", 5)), ("{1.50, 2.00}".into(), "05".into()));
    let set: HashSet<Int2> = [Int2::new(1, 2), Int2::new(1, 2), Int2::new(2, 1)].into();
    assert_eq!((set.len(), HashSet::from([MArray::from([1]), MArray::from([2])]).len()), (2, 2));
    assert_eq!((Float3::default(), MArray::<u8, 2>::default().to_array()), (Float3::splat(0.0), [0, 0]));
    let mut w = Int3::from_fn(|i| i as i32 * 10);
    for x in &mut w {
        *x += 1;
    }
    w.iter_mut().for_each(|x| *x += 1);
    assert_eq!(w.into_iter().chain(w.iter().copied()).collect::<Vec<i32>>(), [2, 12, 22, 2, 12, 22]);
    assert_eq!((w.as_ref().len(), MArray::from([1, 2]).as_ref().len()), (3, 2));
    assert_eq!(w.map(|x| x as u8).zip_map(w, |x, y| i64::from(x) - i64::from(y)), Vector::splat(0));
    let mut b = MArray::from_fn(|i: usize| i).map(|i| i as u16);
    b[4] = 9;
    b.as_mut()[0] = 5;
    assert_eq!(b.zip_map(MArray::splat(1), |x, y| x + y).to_array(), [6, 2, 3, 4, 10]);
    assert_eq!((b.iter().count(), b.into_iter().max()), (5, Some(9)));
    assert!(catch_unwind(move || w[3]).is_err() && catch_unwind(move || b[5]).is_err());
}
