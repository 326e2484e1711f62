//! What both kinds of image say of themselves.
//!
//! Invariant: both kinds answer by the same code. It asks the image without a sampler, which the private `image()` of each kind gives.

/// The methods that an image has whether or not it has a sampler.
macro_rules! properties {
    ($image:ident) => {
        impl<const D: usize, F: PixelFormat> $image<D, F> {
            /// Extent in pixels.
            pub fn range(&self) -> Range<D> {
                self.image().range
            }

            /// Number of pixels.
            pub fn size(&self) -> usize {
                self.image().range.size()
            }

            /// Size in bytes.
            pub fn byte_size(&self) -> usize {
                self.image().bytes.byte_size()
            }

            /// The format of its pixels.
            pub fn format(&self) -> ImageFormat {
                self.image().format.format()
            }

            /// A number of the image, as messages use it.
            pub fn id(&self) -> u64 {
                self.image().bytes.id()
            }

            /// The name that [`named`](Self::named) gave it.
            pub fn name(&self) -> Option<&'static str> {
                self.image().bytes.name()
            }

            /// Gives the image a name for messages. Its copies, and those with another format or sampler, have it, too.
            #[must_use]
            pub fn named(self, name: &'static str) -> Self {
                self.image().bytes.buffer_view().core.set_name(name);
                self
            }

            /// Whether the image has an allocation on `device`.
            pub fn is_allocated_on(&self, device: &Device) -> bool {
                self.image().bytes.is_allocated_on(device)
            }

            /// Whether all pixels are up to date on `device`, as far as commands submitted so far make it so.
            pub fn is_current_on(&self, device: &Device) -> bool {
                self.image().bytes.is_current_on(device)
            }

            /// Makes the image's allocation on `device` now rather than at its first use there. Moves no data.
            ///
            /// Errors: `MemoryAllocation` if there is no memory, or if the image is larger than the device's largest allocation.
            pub fn reserve(&self, device: &Device) -> Result {
                self.image().check_fits(device)?;
                self.image().bytes.reserve(device)
            }

            /// Frees the image's allocation on `device`, as [`Buffer::release`](crate::Buffer::release) does, with its errors.
            pub fn release(&self, device: &Device) -> Result {
                self.image().bytes.release(device)
            }
        }
    };
}
pub(super) use properties;
