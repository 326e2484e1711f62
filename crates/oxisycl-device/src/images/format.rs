//! Formats that are known when the program is built, as types.

use core::fmt::Debug;

use oxisycl_types::{ChannelOrder, ChannelType, ImageFormat};

mod sealed {
    pub trait Sealed {}
}

/// The format of an image: an [`ImageFormat`], or a type such as [`Rgba8Unorm`] that stands for one. Implemented by this crate only.
///
/// A format that is a value is looked at in each read. One that is a type leaves no choices in a kernel.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the format of an image",
    note = "formats are values of `ImageFormat`, or types of `oxisycl::images` such as `Rgba8Unorm`"
)]
pub trait PixelFormat: sealed::Sealed + Copy + Debug + Send + Sync + 'static {
    /// The format; always the same for one value.
    fn format(self) -> ImageFormat;
}

impl sealed::Sealed for ImageFormat {}
impl PixelFormat for ImageFormat {
    #[inline(always)]
    fn format(self) -> ImageFormat {
        self
    }
}

macro_rules! fixed {
    ($($name:ident = $order:ident $channel_type:ident;)*) => { $(
        #[doc = concat!(stringify!($order), " channels, each of them ", stringify!($channel_type), ".")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
        pub struct $name;

        impl sealed::Sealed for $name {}
        impl PixelFormat for $name {
            #[inline(always)]
            fn format(self) -> ImageFormat {
                const { ImageFormat::new(ChannelOrder::$order, ChannelType::$channel_type).expect("it exists") }
            }
        }
    )* };
}

fixed! {
    Rgba8Unorm = Rgba UnormInt8;
    Rgba16Unorm = Rgba UnormInt16;
    Rgba8Sint = Rgba SignedInt8;
    Rgba16Sint = Rgba SignedInt16;
    Rgba32Sint = Rgba SignedInt32;
    Rgba8Uint = Rgba UnsignedInt8;
    Rgba16Uint = Rgba UnsignedInt16;
    Rgba32Uint = Rgba UnsignedInt32;
    Rgba16Float = Rgba Float16;
    Rgba32Float = Rgba Float32;
    Bgra8Unorm = Bgra UnormInt8;
    Rgba8Srgb = Srgba UnormInt8;
    Bgra8Srgb = Sbgra UnormInt8;
    Rgb8Unorm = Rgb UnormInt8;
    Rgb8Srgb = Srgb UnormInt8;
    Rg8Unorm = Rg UnormInt8;
    R8Unorm = R UnormInt8;
    R16Unorm = R UnormInt16;
    R8Uint = R UnsignedInt8;
    R16Float = R Float16;
    Rg32Float = Rg Float32;
    R32Float = R Float32;
}
