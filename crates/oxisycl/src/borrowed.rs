//! How a borrow of the host's memory ends, for buffers and images.
//!
//! Invariant: commands never see borrowed memory. Their elements are copied to it once all of them have ended, all or none.

/// What a type that borrows memory of the host for `$target` is without an explicit end: the target, and written back when it is dropped. It has a
/// method `write_back`, which does nothing for the second time.
macro_rules! written_back {
    ([$($generics:tt)*] $borrowed:ty, $field:ident: $target:ty, $this:ident => $name:expr) => {
        impl<$($generics)*> std::ops::Deref for $borrowed {
            type Target = $target;
            fn deref(&self) -> &$target {
                &self.$field
            }
        }

        impl<$($generics)*> Drop for $borrowed {
            fn drop(&mut self) {
                if let Err(error) = self.write_back() {
                    let $this = self;
                    oxisycl_runtime::graph::report_later(format!("write-back of borrowed {}: {error:?}", $name));
                }
            }
        }
    };
}
pub(crate) use written_back;
