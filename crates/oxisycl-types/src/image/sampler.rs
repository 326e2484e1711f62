//! How a sampled image is read between pixels and beyond its edges.

/// What a coordinate outside of the image gives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddressingMode {
    /// The image is repeated, and every other copy is mirrored.
    MirroredRepeat,
    /// The image is repeated.
    Repeat,
    /// The pixel at the edge.
    ClampToEdge,
    /// The [border colour](crate::ImageFormat::border_alpha) of the format.
    Clamp,
    /// In SYCL the program vouches that no coordinate is outside. Here it is the same as [`Clamp`](Self::Clamp).
    None,
}

/// What a coordinate between the centres of pixels gives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FilteringMode {
    /// The pixel that the coordinate lies in.
    Nearest,
    /// A mixture of the two, four or eight pixels around the coordinate. Integers are not mixed: they are read as by
    /// [`Nearest`](Self::Nearest).
    Linear,
}

/// What coordinates count (SYCL 2020 `coordinate_normalization_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CoordinateMode {
    /// The whole extent is 1.
    Normalized,
    /// A pixel is 1. The centre of the first one is at 0.5.
    Unnormalized,
}

/// How a sampled image is read (SYCL 2020 `image_sampler`). A constant one leaves no choices in a kernel.
///
/// SYCL allows the modes that repeat with normalized coordinates only. Here others repeat by the extent in pixels.
///
/// ```
/// use oxisycl_types::{AddressingMode, CoordinateMode, FilteringMode, ImageSampler};
///
/// const SMOOTH: ImageSampler = ImageSampler::LINEAR.with_addressing(AddressingMode::Repeat);
/// assert_eq!(SMOOTH.filtering, FilteringMode::Linear);
/// assert_eq!(SMOOTH.coordinates, CoordinateMode::Unnormalized);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ImageSampler {
    /// What a coordinate outside of the image gives.
    pub addressing: AddressingMode,
    /// What coordinates count.
    pub coordinates: CoordinateMode,
    /// What a coordinate between the centres of pixels gives.
    pub filtering: FilteringMode,
}

impl ImageSampler {
    /// The nearest pixel by unnormalized coordinates, which are clamped to the edge.
    pub const NEAREST: Self = Self {
        addressing: AddressingMode::ClampToEdge,
        coordinates: CoordinateMode::Unnormalized,
        filtering: FilteringMode::Nearest,
    };

    /// A mixture of pixels by unnormalized coordinates, which are clamped to the edge.
    pub const LINEAR: Self = Self { filtering: FilteringMode::Linear, ..Self::NEAREST };

    /// All of them: each addressing mode with each filtering mode, by normalized and other coordinates.
    ///
    /// ```
    /// use oxisycl_types::ImageSampler;
    ///
    /// assert_eq!(ImageSampler::ALL.len(), 20);
    /// assert!(ImageSampler::ALL.contains(&ImageSampler::LINEAR.normalized()));
    /// ```
    pub const ALL: &'static [Self] = &{
        const FEWEST: [ImageSampler; 4] = [
            ImageSampler::NEAREST.normalized(),
            ImageSampler::NEAREST,
            ImageSampler::LINEAR.normalized(),
            ImageSampler::LINEAR,
        ];
        const ADDRESSING: [AddressingMode; 5] = [
            AddressingMode::MirroredRepeat,
            AddressingMode::Repeat,
            AddressingMode::ClampToEdge,
            AddressingMode::Clamp,
            AddressingMode::None,
        ];
        let mut all = [Self::NEAREST; FEWEST.len() * ADDRESSING.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = FEWEST[i % FEWEST.len()].with_addressing(ADDRESSING[i / FEWEST.len()]);
            i += 1;
        }
        all
    };

    /// This sampler with another addressing mode.
    #[must_use]
    pub const fn with_addressing(self, addressing: AddressingMode) -> Self {
        Self { addressing, ..self }
    }

    /// This sampler with normalized coordinates.
    #[must_use]
    pub const fn normalized(self) -> Self {
        Self { coordinates: CoordinateMode::Normalized, ..self }
    }
}
