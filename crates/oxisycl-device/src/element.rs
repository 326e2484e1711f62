//! Element types: what may live in buffers and be captured by value.

use crate::argument::plain_arguments;

/// A type whose values can be copied bit by bit between host and devices (SYCL 2020 section 3.13.1).
///
/// Derive it: `#[derive(Clone, Copy, DeviceCopyable)]`. There is no blanket implementation, since `Copy + Send + Sync + 'static`
/// includes references to statics and function pointers, which are host addresses.
///
/// # Safety
/// Every field is `DeviceCopyable`. The value holds no address that safe code follows, and no handle of the operating system. Nothing else in it
/// depends on where it is used. Its layout is the same in host and device code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be copied to a device",
    label = "not `DeviceCopyable`",
    note = "derive it for a type of your own: `#[derive(Clone, Copy, DeviceCopyable)]`",
    note = "types of `half`, `num-complex`, `glam`, `nalgebra` and `image` have it with the feature of `oxisycl` that has the crate's name",
    note = "references, pointers, function pointers and owners of memory mean nothing on a device"
)]
pub unsafe trait DeviceCopyable: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($t:ty)*) => { $(
        // SAFETY: a plain value without addresses, with the same layout everywhere.
        unsafe impl DeviceCopyable for $t {}
        plain_arguments! { [] $t }
    )* };
}

plain! { u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize f32 f64 bool char }

// SAFETY: an array is nothing but its elements.
unsafe impl<T: DeviceCopyable, const N: usize> DeviceCopyable for [T; N] {}
// SAFETY: the discriminant or niche is plain data, the payload is device copyable.
unsafe impl<T: DeviceCopyable> DeviceCopyable for Option<T> {}
// SAFETY: a wrapper without own data.
unsafe impl<T: DeviceCopyable> DeviceCopyable for core::num::Wrapping<T> {}
// SAFETY: plain indices.
unsafe impl<const D: usize> DeviceCopyable for crate::Id<D> {}
// SAFETY: plain extents.
unsafe impl<const D: usize> DeviceCopyable for crate::Range<D> {}

macro_rules! tuples {
    ($($name:ident)*) => {
        // SAFETY: a tuple is nothing but its fields.
        unsafe impl<$($name: DeviceCopyable),*> DeviceCopyable for ($($name,)*) {}
    };
}

tuples! { A }
tuples! { A B }
tuples! { A B C }
tuples! { A B C D }
tuples! { A B C D E }
tuples! { A B C D E F }

#[cfg(feature = "half")]
plain! { half::f16 half::bf16 }

#[cfg(feature = "num-complex")]
// SAFETY: two numbers side by side.
unsafe impl<T: DeviceCopyable> DeviceCopyable for num_complex::Complex<T> {}
#[cfg(feature = "num-complex")]
plain_arguments! { [T: DeviceCopyable] num_complex::Complex<T> }

#[cfg(feature = "glam")]
plain! {
    glam::Vec2 glam::Vec3 glam::Vec3A glam::Vec4 glam::Mat2 glam::Mat3 glam::Mat3A glam::Mat4 glam::Quat
    glam::DVec2 glam::DVec3 glam::DVec4 glam::DMat2 glam::DMat3 glam::DMat4 glam::DQuat
    glam::IVec2 glam::IVec3 glam::IVec4 glam::UVec2 glam::UVec3 glam::UVec4
}

#[cfg(feature = "nalgebra")]
mod of_nalgebra {
    use nalgebra::{
        ArrayStorage, Const, DualQuaternion, Isometry, Matrix, OPoint, Quaternion, Rotation, Scalar, Scale, Similarity,
        Translation, Unit,
    };

    use super::{DeviceCopyable, plain_arguments};

    plain_arguments! {
        [T: DeviceCopyable, const R: usize, const C: usize] Matrix<T, Const<R>, Const<C>, ArrayStorage<T, R, C>>,
        [T: DeviceCopyable + Scalar, const D: usize] OPoint<T, Const<D>>,
        [T: DeviceCopyable] Quaternion<T>,
        [T: DeviceCopyable] DualQuaternion<T>,
        [T: DeviceCopyable] Unit<T>,
        [T: DeviceCopyable, const D: usize] Translation<T, D>,
        [T: DeviceCopyable, const D: usize] Scale<T, D>,
        [T: DeviceCopyable, const D: usize] Rotation<T, D>,
        [T: DeviceCopyable, R: DeviceCopyable, const D: usize] Isometry<T, R, D>,
        [T: DeviceCopyable, R: DeviceCopyable, const D: usize] Similarity<T, R, D>,
    }

    // SAFETY: an array of columns; the extents are in the type.
    unsafe impl<T: DeviceCopyable, const R: usize, const C: usize> DeviceCopyable
        for Matrix<T, Const<R>, Const<C>, ArrayStorage<T, R, C>>
    {
    }
    // SAFETY: nothing but its coordinates, a matrix of one column.
    unsafe impl<T: DeviceCopyable + Scalar, const D: usize> DeviceCopyable for OPoint<T, Const<D>> {}
    // SAFETY: nothing but its coordinates.
    unsafe impl<T: DeviceCopyable> DeviceCopyable for Quaternion<T> {}
    // SAFETY: two quaternions.
    unsafe impl<T: DeviceCopyable> DeviceCopyable for DualQuaternion<T> {}
    // SAFETY: a wrapper without own data.
    unsafe impl<T: DeviceCopyable> DeviceCopyable for Unit<T> {}
    // SAFETY: nothing but its vector.
    unsafe impl<T: DeviceCopyable, const D: usize> DeviceCopyable for Translation<T, D> {}
    // SAFETY: nothing but its vector.
    unsafe impl<T: DeviceCopyable, const D: usize> DeviceCopyable for Scale<T, D> {}
    // SAFETY: nothing but its matrix.
    unsafe impl<T: DeviceCopyable, const D: usize> DeviceCopyable for Rotation<T, D> {}
    // SAFETY: a rotation and a translation.
    unsafe impl<T: DeviceCopyable, R: DeviceCopyable, const D: usize> DeviceCopyable for Isometry<T, R, D> {}
    // SAFETY: an isometry and a factor.
    unsafe impl<T: DeviceCopyable, R: DeviceCopyable, const D: usize> DeviceCopyable for Similarity<T, R, D> {}
}

#[cfg(feature = "image")]
mod of_image {
    use super::{DeviceCopyable, plain_arguments};

    macro_rules! pixels {
        ($($name:ident)*) => { $(
            // SAFETY: an array of channels.
            unsafe impl<T: DeviceCopyable> DeviceCopyable for image::$name<T> {}
            plain_arguments! { [T: DeviceCopyable] image::$name<T> }
        )* };
    }

    pixels! { Luma LumaA Rgb Rgba }
}
