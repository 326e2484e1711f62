//! What all accessors of images have in common.

/// Gives an accessor with `pixels`, a `brand`, `types` and these further fields what each of them has. In brackets is the mode, if it has one.
macro_rules! image_accessor {
    ($accessor:ident [$($mode:ident)?] $($field:ident)*) => {
        impl<V, const D: usize, $($mode,)? F: Copy> Clone for $accessor<'_, V, D, $($mode,)? F> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<V, const D: usize, $($mode,)? F: Copy> Copy for $accessor<'_, V, D, $($mode,)? F> {}

        impl<V, const D: usize, $($mode,)? F: $crate::images::PixelFormat> PartialEq for $accessor<'_, V, D, $($mode,)? F> {
            /// Whether both give the same access to the same image.
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                (self.pixels.identity() $(, self.$field)*) == (other.pixels.identity() $(, other.$field)*)
            }
        }
        impl<V, const D: usize, $($mode,)? F: $crate::images::PixelFormat> Eq for $accessor<'_, V, D, $($mode,)? F> {}
        impl<V, const D: usize, $($mode,)? F: $crate::images::PixelFormat> core::hash::Hash
            for $accessor<'_, V, D, $($mode,)? F>
        {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                (self.pixels.identity() $(, self.$field)*).hash(state);
            }
        }

        // SAFETY: an accessor gives access only against a token, which proves that the calling work-item is ordered with all other use of
        // the memory. Within the kernel, work-items use disjoint pixels, or only read.
        unsafe impl<V, const D: usize, $($mode,)? F: Send> Send for $accessor<'_, V, D, $($mode,)? F> {}
        // SAFETY: as above.
        unsafe impl<V, const D: usize, $($mode,)? F: Sync> Sync for $accessor<'_, V, D, $($mode,)? F> {}

        impl<V, const D: usize, $($mode,)? F> $accessor<'_, V, D, $($mode,)? F> {
            /// An accessor with the lifetime of a call of a kernel, or without one.
            ///
            /// # Safety
            /// Only launches of the accessor's command group use it.
            #[inline(always)]
            pub(crate) unsafe fn with_brand<'k>(self) -> $accessor<'k, V, D, $($mode,)? F> {
                let Self { pixels, $($field,)* .. } = self;
                $accessor { pixels, $($field,)* brand: PhantomData, types: PhantomData }
            }
        }

        impl<V, const D: usize, $($mode,)? F: $crate::images::PixelFormat> $accessor<'_, V, D, $($mode,)? F> {
            /// The extent of the image.
            #[inline(always)]
            pub fn range(self) -> Range<D> {
                Range(self.pixels.extent())
            }

            /// The format of the image.
            #[inline(always)]
            pub fn format(self) -> ImageFormat {
                self.pixels.format()
            }
        }
    };
}
pub(super) use image_accessor;
