//! Sizes and alignments, which devices rely on.

use std::mem::{align_of, offset_of, size_of};

use bytemuck::{AnyBitPattern, Pod, Zeroable};

use super::super::{Double16, Float3, Float4, MArray, Vector, VectorElement};
use crate::DeviceCopyable;

fn check<T: VectorElement<N>, const N: usize>() {
    let bytes = size_of::<T>() * if N == 3 { 4 } else { N };
    assert_eq!((size_of::<Vector<T, N>>(), Vector::<T, N>::byte_size()), (bytes, bytes), "size of {N}");
    assert_eq!(align_of::<Vector<T, N>>(), bytes.min(64), "alignment of {N}");
    assert_eq!(offset_of!(Vector<T, N>, elements), 0);
    assert_eq!(Vector::<T, N>::size(), N);
    assert_eq!(size_of::<T::Mask>(), size_of::<T>());
}

macro_rules! check_all {
    ($($type:ty)*) => { $(
        check::<$type, 1>();
        check::<$type, 2>();
        check::<$type, 3>();
        check::<$type, 4>();
        check::<$type, 8>();
        check::<$type, 16>();
    )* };
}

#[test]
fn size_and_alignment_are_those_of_the_elements_together() {
    check_all! { i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 }
    #[cfg(feature = "half")]
    check_all! { half::f16 }
    assert_eq!((size_of::<Double16>(), align_of::<Double16>()), (128, 64));
}

#[test]
fn arrays_have_the_layout_of_their_elements() {
    assert_eq!((size_of::<MArray<f32, 3>>(), align_of::<MArray<f32, 3>>()), (12, 4));
    assert_eq!((size_of::<MArray<(u8, u32), 5>>(), align_of::<MArray<(u8, u32), 5>>()), (40, 4));
}

#[test]
fn bytes_are_read_where_there_is_no_padding() {
    fn is_plain<T: Pod + DeviceCopyable>() {}
    fn is_any<T: AnyBitPattern + DeviceCopyable>() {}
    is_plain::<Float4>();
    is_plain::<Vector<u8, 16>>();
    is_plain::<MArray<f64, 7>>();
    is_any::<Float3>();

    let rows = [Float4::new(1.0, 2.0, 3.0, 4.0), Float4::splat(0.5)];
    assert_eq!(bytemuck::cast_slice::<_, f32>(&rows), [1.0, 2.0, 3.0, 4.0, 0.5, 0.5, 0.5, 0.5]);
    assert_eq!(bytemuck::bytes_of(&MArray::from([1_u16, 2]))[0], 1_u16.to_ne_bytes()[0]);
    assert_eq!(Float3::zeroed(), Float3::default());
    // From bytes of which the last ones are padding.
    assert_eq!(bytemuck::pod_read_unaligned::<Vector<u8, 3>>(&[1, 2, 3, 4]), Vector::from([1, 2, 3]));
}
