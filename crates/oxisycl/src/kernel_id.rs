//! Identities of kernels, to be asked for before anything is launched (SYCL 2020 section 4.11.6).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use oxisycl_backend::LoadedKernel;
use oxisycl_device::argument::{Call, KernelArg, RangeFormWith, Sent, SingleFormWith, States, Value};
use oxisycl_device::group::nd::{ByItem, NdArguments, NdExtent, NdItem};
use oxisycl_device::group::{ByGroup, Group, GroupArguments, GroupForm, Shape};
use oxisycl_device::{Captured, DescribeKernel, Item, Kernel, RangeForm, Single, SingleForm, SingleKernel};
use oxisycl_image::{Form, StatedNeeds};
use oxisycl_runtime::program::{KernelKey, KnownKernel, WantedKernel, programs};
use oxisycl_types::HostEntry;

use crate::handler::kernel::{check_stated, describe, range_closure, single_closure};
use crate::{Device, Result};

/// Which kernel: the type of a closure or named kernel, and how it is launched.
#[derive(Clone)]
pub struct KernelId {
    key: KernelKey,
    /// The kernel's native code, if the program has named it.
    entry: Option<HostEntry>,
    name: String,
    /// What the attribute of its function states, if the program has named it.
    stated: StatedNeeds,
}

impl KernelId {
    /// All kernels that the device compiler found in the program and its loaded libraries. None if the program was built without it.
    ///
    /// Errors: `KernelNotSupported` if the device images of a library cannot be read.
    pub fn all() -> Result<Vec<Self>> {
        let known = programs().kernels()?;
        Ok(known.iter().map(Self::known).collect())
    }

    /// The kernel that [`parallel_for`](crate::Handler::parallel_for) launches for this closure.
    ///
    /// ```
    /// use oxisycl::KernelId;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let kernel = oxisycl::kernel(|item: Item<1>| oxisycl::println!("{}", item.index()));
    /// let id = KernelId::of_range(&kernel);
    /// let device = Device::default()?;
    /// match device.check_compatible([&id]) {
    ///     Ok(()) => Queue::new(&device)?.parallel_for(4, kernel)?.wait()?,
    ///     Err(error) => println!("{error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_range<const D: usize, K>(_kernel: &K) -> Self
    where
        K: for<'wi> Fn(Item<'wi, D>) + Captured + Send + Sync,
    {
        Self::new(&RangeForm::<K, D>(PhantomData), Form::Range(D as u8))
    }

    /// The kernel that [`single_task`](crate::Handler::single_task) launches for this closure.
    pub fn of_single<K>(_kernel: &K) -> Self
    where
        K: for<'wi> Fn(Single<'wi>) + Captured + Send + Sync,
    {
        Self::new(&SingleForm::<K>(PhantomData), Form::Single)
    }

    /// The kernel that [`parallel_for_work_group`](crate::Handler::parallel_for_work_group) launches for this closure, with groups of this shape and this
    /// memory.
    ///
    /// ```
    /// use oxisycl::KernelId;
    /// use oxisycl::group::{Fixed1, Group, Private, PrivateValues};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// fn kernel(mut group: Group<'_, '_, 1, Fixed1<8>>, mut own: PrivateValues<'_, u32>) {
    ///     group.for_each(&mut own, |item, own| *own = item.local_linear_id() as u32);
    /// }
    /// let id = KernelId::of_work_group(Fixed1::<8>, &Private::new(0u32), &kernel);
    /// println!("{id:?} runs: {}", Device::default()?.check_compatible([&id]).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_work_group<'cg, const D: usize, S, A, K>(_shape: S, _memory: &A, _kernel: &K) -> Self
    where
        S: Shape<D>,
        A: GroupArguments,
        K: for<'wg> Fn(Group<'wg, 'cg, D, S>, A::Bound<'wg>) + Captured + Send + Sync,
    {
        Self::new(&GroupForm::<ByGroup<'cg, S, A, K>, D>::NEW, Form::Group(D as u8))
    }

    /// The kernel that [`parallel_for_nd_range`](crate::Handler::parallel_for_nd_range) launches for this closure, over nd-ranges of this kind and with this
    /// memory.
    ///
    /// ```
    /// use oxisycl::KernelId;
    /// use oxisycl::group::nd::NdItem;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// fn kernel(item: NdItem<'_, '_, 1>, (): ()) {
    ///     assert!(item.local_linear_id() < 8);
    /// }
    /// let id = KernelId::of_nd_range(&NdRange::new(Range::new([8]), Range::new([8])), &(), &kernel);
    /// println!("{id:?} runs: {}", Device::default()?.check_compatible([&id]).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_nd_range<'cg, const D: usize, R, A, K>(_range: &R, _memory: &A, _kernel: &K) -> Self
    where
        R: NdExtent<D>,
        A: NdArguments,
        K: for<'wi> Fn(NdItem<'wi, 'cg, D, R::Shape>, A::Accessors<'wi>) + Captured + Send + Sync,
    {
        Self::new(&GroupForm::<ByItem<'cg, R::Shape, A, K>, D>::NEW, Form::Group(D as u8))
    }

    /// The kernel that [`launch`](crate::Handler::launch) launches for a named type over a range of `D` dimensions.
    pub fn of_kernel<const D: usize, K>() -> Self
    where
        K: for<'wi> Kernel<Item<'wi, D>>,
    {
        fn form<K, C, const D: usize>(_: fn(K) -> C) -> RangeForm<C, D> {
            RangeForm(PhantomData)
        }
        let mut id = Self::new(&form::<K, _, D>(range_closure::<D, K>), Form::Range(D as u8));
        id.name = std::any::type_name::<K>().to_owned();
        id
    }

    /// The kernel that [`launch_single`](crate::Handler::launch_single) launches for a named type.
    pub fn of_single_kernel<K: SingleKernel>() -> Self {
        fn form<K, C>(_: fn(K) -> C) -> SingleForm<C> {
            SingleForm(PhantomData)
        }
        let mut id = Self::new(&form::<K, _>(single_closure::<K>), Form::Single);
        id.name = std::any::type_name::<K>().to_owned();
        id
    }

    /// The kernel that [`launch_call`](crate::Handler::launch_call) launches for this call over a range of `D` dimensions.
    ///
    /// Calls with other arguments have the same one if the kernel gets the same of them.
    ///
    /// ```
    /// use oxisycl::KernelId;
    /// use oxisycl::prelude::*;
    ///
    /// #[kernel]
    /// fn greet<T: std::fmt::Display>(item: Item<1>, values: &[T]) {
    ///     oxisycl::println!("{}", values[item.index()]);
    /// }
    ///
    /// let id = KernelId::of_call(&greet(vec![1u8]));
    /// assert!(id == KernelId::of_call(&greet(std::sync::Arc::<[u8]>::from([2, 3]))));
    /// assert!(id != KernelId::of_call(&greet(vec![1u16])));
    /// ```
    pub fn of_call<const D: usize, A: KernelArg, K, R: States>(_call: &Call<A, K, R>) -> Self
    where
        K: for<'k> Fn(Item<'k, D>, Value<'k, A>) + Captured + Send + Sync,
    {
        Self::new(&RangeFormWith::<K, Sent<A>, D, R>(PhantomData), Form::Range(D as u8))
    }

    /// The kernel that [`launch_single_call`](crate::Handler::launch_single_call) launches for this call.
    pub fn of_single_call<A: KernelArg, K, R: States>(_call: &Call<A, K, R>) -> Self
    where
        K: for<'k> Fn(Single<'k>, Value<'k, A>) + Captured + Send + Sync,
    {
        Self::new(&SingleFormWith::<K, Sent<A>, R>(PhantomData), Form::Single)
    }

    #[track_caller]
    fn new(kernel: &dyn DescribeKernel, form: Form) -> Self {
        let descriptor = describe(kernel, form, None, Location::caller());
        Self {
            key: KernelKey::new(descriptor.id.type_id, form),
            entry: Some(descriptor.host_entry),
            name: descriptor.type_name.to_owned(),
            stated: descriptor.stated,
        }
    }

    /// What the attribute of its function states, if the program has named it.
    pub(crate) fn stated(&self) -> &StatedNeeds {
        &self.stated
    }

    /// The name of its type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A kernel that device images tell of.
    pub(crate) fn known(kernel: &KnownKernel) -> Self {
        Self { key: kernel.key, entry: None, name: kernel.type_name.clone(), stated: StatedNeeds::NONE }
    }

    /// The kernel as one that a bundle is to have.
    pub(crate) fn wanted(&self) -> WantedKernel {
        WantedKernel { key: self.key, entry: self.entry, name: self.name.clone(), stated: self.stated }
    }

    /// What keeps the device from running the kernel, as far as that is known without loading its code.
    ///
    /// Errors: what a launch would fail with.
    pub(crate) fn check(&self, device: &Device) -> Result {
        check_stated(device, || &self.name, &self.stated)?;
        programs().check(device.backend_device().as_ref(), self.key, self.entry, &self.name)
    }

    /// The kernel's code on the device, see [`load_one`](oxisycl_runtime::program::Programs::load_one).
    pub(crate) fn load(&self, device: &Device) -> Result<Option<Arc<dyn LoadedKernel>>> {
        programs().load_one(device.backend_device(), self.key, self.entry, &self.name)
    }
}

impl PartialEq for KernelId {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for KernelId {}
impl Hash for KernelId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl fmt::Debug for KernelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelId").field("name", &self.name).field("form", &self.key.form).finish_non_exhaustive()
    }
}
