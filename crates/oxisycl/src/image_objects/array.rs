//! Arrays of the crate `ndarray` as images, and back.
//!
//! Invariant: the first dimensions of an array are those of the image. Elements are whole pixels, or channels along one dimension more. Their bytes
//! are those of the pixels.

use std::any::type_name;

use bytemuck::Pod;
use ndarray::{Array, ArrayView, ArrayViewMut, Dim, Dimension};
use oxisycl_device::images::{ImageFormat, ImageSampler, PixelData, PixelFormat};
use oxisycl_device::{DeviceCopyable, Mode, Stores};
use oxisycl_types::{ErrorCode, Range};

use super::{BorrowedImage, HostUnsampledImageAccessor, IntoPixelsError, SampledImage, UnsampledImage};
use crate::buffer::array::{Shape, into_row_major, shape_of};
use crate::{Error, Result};

/// Elements of each pixel in an array with the dimensions of an image, or one more.
fn elements_of_pixel<P, const D: usize, const E: usize>(format: ImageFormat) -> Result<usize> {
    const {
        assert!(size_of::<P>() > 0, "a pixel does not consist of zero-sized parts");
        assert!(E == D || E == D + 1, "an array has the dimensions of its image, and at most one more for channels");
    }
    let (pixel, element) = (format.pixel_size(), size_of::<P>());
    if pixel.is_multiple_of(element) && (E > D || pixel == element) {
        return Ok(pixel / element);
    }
    let expected = if E > D { "a part of that" } else { "as many, or a last dimension for channels" };
    Err(Error::invalid(format!(
        "pixels of the format {format} have {pixel} bytes: elements of an array with {E} dimensions need {expected}, and {} has {element}",
        type_name::<P>()
    )))
}

/// The range of the image that an array of that shape becomes.
fn range_of<P, const D: usize, const E: usize>(format: ImageFormat, shape: &[usize]) -> Result<Range<D>> {
    let expected = elements_of_pixel::<P, D, E>(format)?;
    let found = if E > D { shape[D] } else { 1 };
    if found != expected {
        return Err(Error::invalid(format!(
            "an array of shape {shape:?} has {found} elements of {} for each pixel: the format {format} has {expected}",
            type_name::<P>()
        )));
    }
    Ok(Range(std::array::from_fn(|d| shape[d])))
}

/// The shape of the array that an image becomes.
fn shape<P, const D: usize, const E: usize>(format: ImageFormat, range: Range<D>) -> Result<Shape<E>>
where
    Shape<E>: Dimension,
{
    let elements = elements_of_pixel::<P, D, E>(format)?;
    Ok(shape_of(&Range(std::array::from_fn(|d| range.0.get(d).copied().unwrap_or(elements)))))
}

/// The error for a shape that does not fit the pixels of its own image.
fn no_array(error: ndarray::ShapeError) -> Error {
    Error::new(ErrorCode::Runtime, format!("the pixels of an image cannot become an array: {error}"))
}

impl<const D: usize, F: PixelFormat> UnsampledImage<D, F> {
    /// An image that takes over the memory of an array. With the feature `ndarray`.
    ///
    /// The array has the dimensions of the image, `[height, width]` for a picture, and its elements are pixels. Or it has one dimension more, as
    /// in `[height, width, channel]`, and its elements are channels. Only their bytes have to be those of a pixel. If the array is not in standard
    /// layout (row-major without gaps), or not aligned to 16 bytes, it is copied.
    ///
    /// Errors: `Invalid` if elements are not pixels of the format, or channels of one. `Invalid`, too, if an extent is zero or above 2^30.
    /// The array is dropped then: clone it if it is still needed.
    ///
    /// ```
    /// use ndarray::{Array3, array};
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = Array3::from_elem([48, 64, 4], 200u8);
    /// let picture = UnsampledImage::<2, _>::from_array(Rgba8Unorm, picture)?;
    /// assert_eq!(picture.range(), Range([48, 64]));
    /// Queue::default()?.parallel_for_with([48, 64], picture.update(), |item, picture| {
    ///     picture.update(item, |colour: Float4| Float4::splat(1.0) - colour)
    /// })?;
    /// let negative: Array3<u8> = picture.into_array()?; // waits for the kernel
    /// assert_eq!(negative[[47, 63, 3]], 55);
    ///
    /// // Elements that are pixels.
    /// let pixels = array![[[1u8, 2, 3, 4], [5, 6, 7, 8]]].map_axis(ndarray::Axis(2), |c| [c[0], c[1], c[2], c[3]]);
    /// let two: UnsampledImage<2, _> = UnsampledImage::from_array(Rgba8Unorm, pixels)?;
    /// assert_eq!(two.to_vec::<[u8; 4]>()?, [[1, 2, 3, 4], [5, 6, 7, 8]]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_array<P, const E: usize>(format: F, array: Array<P, Dim<[usize; E]>>) -> Result<Self>
    where
        P: DeviceCopyable + Pod,
        Dim<[usize; E]>: Dimension,
    {
        let range = range_of::<P, D, E>(format.format(), array.shape())?;
        Self::from_vec(format, into_row_major(array), range)
    }

    /// An image with a copy of the elements of a view of any layout, which are those of [`from_array`](Self::from_array), with its errors. With
    /// the feature `ndarray`.
    ///
    /// ```
    /// use ndarray::{array, s};
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// let right: UnsampledImage<2, _> = UnsampledImage::from_array_view(R32Float, levels.slice(s![.., 1..]))?;
    /// assert_eq!(right.to_vec::<f32>()?, [2.0, 3.0, 5.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_array_view<P, const E: usize>(format: F, view: ArrayView<'_, P, Dim<[usize; E]>>) -> Result<Self>
    where
        P: DeviceCopyable + Pod,
        Dim<[usize; E]>: Dimension,
    {
        let range = range_of::<P, D, E>(format.format(), view.shape())?;
        match view.as_slice() {
            Some(slice) => Self::from_slice(format, slice, range),
            None => Self::from_vec(format, view.iter().copied().collect(), range),
        }
    }

    /// An image with a copy of the elements of a view, which are written back when the result is dropped. With the feature `ndarray`.
    ///
    /// Errors: as those of [`from_array`](Self::from_array), and `Invalid` if the view is not in standard layout (row-major without gaps).
    ///
    /// ```
    /// use ndarray::Array2;
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let mut levels = Array2::<f32>::zeros([3, 4]);
    /// let image = UnsampledImage::<2, _>::from_array_view_mut(R32Float, levels.view_mut())?;
    /// Queue::default()?.fill_image(&image, Float4::splat(0.5))?;
    /// image.finish()?; // waits for the command
    /// assert_eq!(levels, Array2::from_elem([3, 4], 0.5));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_array_view_mut<P, const E: usize>(
        format: F,
        view: ArrayViewMut<'_, P, Dim<[usize; E]>>,
    ) -> Result<BorrowedImage<'_, D, F>>
    where
        P: Pod,
        Dim<[usize; E]>: Dimension,
    {
        let range = range_of::<P, D, E>(format.format(), view.shape())?;
        let (shape, strides) = (view.shape().to_vec(), view.strides().to_vec());
        match view.into_slice() {
            Some(slice) => Self::from_slice_mut(format, slice, range),
            None => Err(Error::invalid(format!(
                "an array view of shape {shape:?} with strides {strides:?} cannot be written back: expected the standard layout, row-major without gaps"
            ))),
        }
    }

    /// The pixels as an array in standard layout, as [`from_array`](Self::from_array) takes them. Waits for all submitted commands that use the image.
    /// If it was made by [`from_array`](Self::from_array), or by [`from_vec`](Self::from_vec) of a vector of `P`, it is the same memory, unless that
    /// had to be copied. With the feature `ndarray`.
    ///
    /// Errors: as those of [`into_vec`](Self::into_vec), and `Invalid` if `P` is no pixel of the format, or channel of one. The error gives the
    /// image back by `into_image`.
    pub fn into_array<P, const E: usize>(self) -> Result<Array<P, Dim<[usize; E]>>, IntoPixelsError<D, F>>
    where
        P: DeviceCopyable + Pod,
        Dim<[usize; E]>: Dimension,
    {
        // Before the pixels leave the image.
        match shape::<P, D, E>(self.format(), self.range()) {
            Ok(shape) => {
                let pixels = self.into_vec()?;
                Ok(Array::from_shape_vec(shape, pixels).expect("the vector has the elements of all pixels"))
            }
            Err(error) => Err(IntoPixelsError::new(self, error)),
        }
    }

    /// A copy of the pixels as an array, as [`into_array`](Self::into_array) gives. Blocks like [`to_vec`](Self::to_vec). With the feature `ndarray`.
    ///
    /// Errors: as those of [`to_vec`](Self::to_vec), and `Invalid` if `P` is no pixel of the format, or channel of one.
    ///
    /// ```
    /// use ndarray::{Array2, Array3, array};
    /// use oxisycl::images::Rg32Float;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let flow = UnsampledImage::from_vec(Rg32Float, vec![[1.0f32, 2.0], [3.0, 4.0]], [1, 2])?;
    /// let channels: Array3<f32> = flow.to_array()?;
    /// assert_eq!(channels, array![[[1.0, 2.0], [3.0, 4.0]]]); // [row, column, channel]
    /// let pixels: Array2<[f32; 2]> = flow.to_array()?;
    /// assert_eq!(pixels[[0, 1]], [3.0, 4.0]);
    /// let bytes: oxisycl::Result<Array2<u8>> = flow.to_array();
    /// assert_eq!(bytes.unwrap_err().code(), ErrorCode::Invalid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_array<P, const E: usize>(&self) -> Result<Array<P, Dim<[usize; E]>>>
    where
        P: DeviceCopyable + Pod,
        Dim<[usize; E]>: Dimension,
    {
        let shape = shape::<P, D, E>(self.format(), self.range())?;
        Array::from_shape_vec(shape, self.to_vec()?).map_err(no_array)
    }
}

impl<const D: usize, F: PixelFormat> SampledImage<D, F> {
    /// An image that takes over the memory of an array, as [`UnsampledImage::from_array`] does, with its errors. With the feature `ndarray`.
    ///
    /// ```
    /// use ndarray::Array2;
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let heights = Array2::<f32>::zeros([3, 4]);
    /// let heights = SampledImage::<2, _>::from_array(R32Float, ImageSampler::LINEAR, heights)?;
    /// assert_eq!(heights.range(), Range([3, 4]));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_array<P, const E: usize>(
        format: F,
        sampler: ImageSampler,
        array: Array<P, Dim<[usize; E]>>,
    ) -> Result<Self>
    where
        P: DeviceCopyable + Pod,
        Dim<[usize; E]>: Dimension,
    {
        Ok(UnsampledImage::from_array(format, array)?.sampled(sampler))
    }

    /// An image with a copy of the elements of a view, as [`UnsampledImage::from_array_view`] makes, with its errors. With the feature `ndarray`.
    #[track_caller]
    pub fn from_array_view<P, const E: usize>(
        format: F,
        sampler: ImageSampler,
        view: ArrayView<'_, P, Dim<[usize; E]>>,
    ) -> Result<Self>
    where
        P: DeviceCopyable + Pod,
        Dim<[usize; E]>: Dimension,
    {
        Ok(UnsampledImage::from_array_view(format, view)?.sampled(sampler))
    }

    /// The pixels as an array, as [`UnsampledImage::into_array`] gives, with its errors. The error gives the image back without its sampler. With
    /// the feature `ndarray`.
    pub fn into_array<P, const E: usize>(self) -> Result<Array<P, Dim<[usize; E]>>, IntoPixelsError<D, F>>
    where
        P: DeviceCopyable + Pod,
        Dim<[usize; E]>: Dimension,
    {
        self.into_unsampled().into_array()
    }

    /// A copy of the pixels as an array, as [`UnsampledImage::to_array`] gives, with its errors. With the feature `ndarray`.
    pub fn to_array<P, const E: usize>(&self) -> Result<Array<P, Dim<[usize; E]>>>
    where
        P: DeviceCopyable + Pod,
        Dim<[usize; E]>: Dimension,
    {
        self.unsampled().to_array()
    }
}

impl<V: PixelData, const D: usize, M: Mode, F: PixelFormat> HostUnsampledImageAccessor<V, D, M, F> {
    /// The bytes of the pixels as an array, without a copy, in the shapes that [`UnsampledImage::to_array`] gives. With the feature `ndarray`.
    ///
    /// Errors: `Invalid` if `P` is no pixel of the format, or channel of one.
    ///
    /// ```
    /// use ndarray::{ArrayView3, Axis};
    /// use oxisycl::images::Rgb8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(Rgb8Unorm, vec![[10u8, 20, 30]; 6], [2, 3])?;
    /// let host = picture.host_access::<Float4, _>(Read)?;
    /// let channels: ArrayView3<'_, u8> = host.array_view()?;
    /// assert_eq!((channels.shape(), channels.index_axis(Axis(2), 1).sum()), (&[2, 3, 3][..], 120));
    /// # Ok(())
    /// # }
    /// ```
    pub fn array_view<P: Pod, const E: usize>(&self) -> Result<ArrayView<'_, P, Dim<[usize; E]>>>
    where
        Dim<[usize; E]>: Dimension,
    {
        let shape = shape::<P, D, E>(self.format(), self.range())?;
        ArrayView::from_shape(shape, bytemuck::try_cast_slice(self.as_bytes()).map_err(not_elements)?).map_err(no_array)
    }

    /// The bytes of the pixels as an array, for writing, without a copy, in the shapes that [`UnsampledImage::to_array`] gives. With the
    /// feature `ndarray`.
    ///
    /// Errors: as those of [`array_view`](Self::array_view).
    ///
    /// ```
    /// use ndarray::ArrayViewMut2;
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = UnsampledImage::zeroed(R32Float, [2, 3])?;
    /// let mut host = levels.host_access::<Float4, _>(ReadWrite)?;
    /// let mut array: ArrayViewMut2<'_, f32> = host.array_view_mut()?;
    /// array.column_mut(1).fill(7.0);
    /// assert_eq!(host.read([1, 1])[0], 7.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn array_view_mut<P: Pod, const E: usize>(&mut self) -> Result<ArrayViewMut<'_, P, Dim<[usize; E]>>>
    where
        M: Stores,
        Dim<[usize; E]>: Dimension,
    {
        let shape = shape::<P, D, E>(self.format(), self.range())?;
        let elements = bytemuck::try_cast_slice_mut(self.as_mut_bytes()).map_err(not_elements)?;
        ArrayViewMut::from_shape(shape, elements).map_err(no_array)
    }
}

/// Pixels on the host are aligned to those of all formats. A type may need more.
fn not_elements(error: bytemuck::PodCastError) -> Error {
    Error::invalid(format!("the pixels of an image cannot be seen as elements of that type: {error}"))
}
