//! Arguments that consist of arguments: tuples, arrays and options.

use core::marker::PhantomData;
use core::mem::offset_of;

use oxisycl_types::{ArgumentPart, ArgumentType};

use super::{Deconstruct, DeviceForm, KernelArg, Launch, LaunchHost, Part, Sent};

/// Nothing crosses.
const NOTHING: &ArgumentType = &ArgumentType::leaf(core::any::type_name::<()>, 0);

// SAFETY: it has no bits.
unsafe impl DeviceForm for () {
    type Value<'k> = ();
    const TYPE: &'static ArgumentType = NOTHING;

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) {}
}

impl KernelArg for () {
    type Sent = ();
}

impl<H: LaunchHost> Deconstruct<H> for () {
    #[inline(always)]
    unsafe fn deconstruct(self, _host: &mut H) -> Result<(), H::Error> {
        Ok(())
    }
}

/// What crosses for a [`PhantomData`].
pub struct Phantom<T: ?Sized>(PhantomData<fn() -> PhantomData<T>>);

impl<T: ?Sized> Clone for Phantom<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ?Sized> Copy for Phantom<T> {}

// SAFETY: it has no bits.
unsafe impl<T: ?Sized + 'static> DeviceForm for Phantom<T> {
    type Value<'k> = PhantomData<T>;
    const TYPE: &'static ArgumentType = NOTHING;

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> PhantomData<T> {
        PhantomData
    }
}

impl<T: ?Sized + 'static> KernelArg for PhantomData<T> {
    type Sent = Phantom<T>;
}

impl<H: LaunchHost, T: ?Sized + 'static> Deconstruct<H> for PhantomData<T> {
    #[inline(always)]
    unsafe fn deconstruct(self, _host: &mut H) -> Result<Phantom<T>, H::Error> {
        Ok(Phantom(PhantomData))
    }
}

macro_rules! tuples {
    ($($name:ident $index:tt)*) => {
        impl<$($name: KernelArg),*> KernelArg for ($($name,)*) {
            type Sent = ($(Sent<$name>,)*);
        }

        // SAFETY: a tuple is nothing but its fields.
        unsafe impl<$($name: DeviceForm),*> DeviceForm for ($($name,)*) {
            type Value<'k> = ($($name::Value<'k>,)*);
            const TYPE: &'static ArgumentType = &ArgumentType {
                type_name: core::any::type_name::<Self>,
                size: size_of::<Self>(),
                length: ArgumentType::NO_ARRAY,
                parts: &[$(ArgumentPart {
                    name: stringify!($index),
                    offset: offset_of!(Self, $index),
                    part: $name::TYPE,
                }),*],
            };

            #[inline(always)]
            unsafe fn reconstruct<'k>(self, launch: Launch<'k>) -> Self::Value<'k> {
                // SAFETY: by the contract of this function.
                unsafe { ($(self.$index.reconstruct(launch),)*) }
            }
        }

        impl<Host: LaunchHost, $($name: Deconstruct<Host>),*> Deconstruct<Host> for ($($name,)*) {
            #[inline(always)]
            unsafe fn deconstruct(self, host: &mut Host) -> Result<Self::Sent, Host::Error> {
                Ok(($(
                    // SAFETY: by the contract of this function.
                    unsafe { self.$index.deconstruct(host) }
                        .map_err(|error| Host::within(error, Part::Field(stringify!($index))))?,
                )*))
            }
        }
    };
}

tuples! { A 0 }
tuples! { A 0 B 1 }
tuples! { A 0 B 1 C 2 }
tuples! { A 0 B 1 C 2 D 3 }
tuples! { A 0 B 1 C 2 D 3 E 4 }
tuples! { A 0 B 1 C 2 D 3 E 4 F 5 }
tuples! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 }
tuples! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 }
tuples! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 }
tuples! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 }
tuples! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 }
tuples! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 }

impl<T: KernelArg, const N: usize> KernelArg for [T; N] {
    type Sent = [T::Sent; N];
}

// SAFETY: an array is nothing but its elements.
unsafe impl<S: DeviceForm, const N: usize> DeviceForm for [S; N] {
    type Value<'k> = [S::Value<'k>; N];
    const TYPE: &'static ArgumentType = &ArgumentType {
        type_name: core::any::type_name::<Self>,
        size: size_of::<Self>(),
        length: N,
        parts: &[ArgumentPart { name: "", offset: 0, part: S::TYPE }],
    };

    const IS_VALUE: bool = S::IS_VALUE;

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, launch: Launch<'k>) -> Self::Value<'k> {
        if S::IS_VALUE {
            // One by one, they would be copied to variables of the work-item.
            // SAFETY: an array of values is nothing but them, and each is the bits of its element.
            return unsafe { core::mem::transmute_copy(&self) };
        }
        // SAFETY: by the contract of this function.
        self.map(|element| unsafe { element.reconstruct(launch) })
    }
}

impl<H: LaunchHost, T: Deconstruct<H>, const N: usize> Deconstruct<H> for [T; N] {
    #[inline(always)]
    unsafe fn deconstruct(self, host: &mut H) -> Result<Self::Sent, H::Error> {
        // Stable Rust maps no array by a function that can fail. The elements behind the one that fails are dropped as they are.
        let (mut failed, mut index) = (None, 0);
        let sent = self.map(|element| {
            let position = index;
            index += 1;
            if failed.is_some() {
                return None;
            }
            // SAFETY: by the contract of this function.
            match unsafe { element.deconstruct(host) } {
                Ok(sent) => Some(sent),
                Err(error) => {
                    failed = Some(H::within(error, Part::Element(position)));
                    None
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(sent.map(|sent| sent.expect("no element failed"))),
        }
    }
}

impl<T: KernelArg> KernelArg for Option<T> {
    type Sent = Option<T::Sent>;
}

// SAFETY: a discriminant or a niche, which is plain data, and the value. Its parts depend on the value, so that it is one leaf.
unsafe impl<S: DeviceForm> DeviceForm for Option<S> {
    type Value<'k> = Option<S::Value<'k>>;
    const TYPE: &'static ArgumentType = &ArgumentType::leaf(core::any::type_name::<Self>, size_of::<Self>());

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, launch: Launch<'k>) -> Self::Value<'k> {
        // SAFETY: by the contract of this function.
        self.map(|sent| unsafe { sent.reconstruct(launch) })
    }
}

impl<H: LaunchHost, T: Deconstruct<H>> Deconstruct<H> for Option<T> {
    #[inline(always)]
    unsafe fn deconstruct(self, host: &mut H) -> Result<Self::Sent, H::Error> {
        // SAFETY: by the contract of this function.
        self.map(|value| unsafe { value.deconstruct(host) }).transpose()
    }
}
