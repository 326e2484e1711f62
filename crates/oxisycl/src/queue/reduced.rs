//! Reductions of buffers by one call, whose results stay on the device until the program asks.

use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};

use oxisycl_device::argument::{Deconstruct, KernelArg, Value};
use oxisycl_device::operator::Identity;
use oxisycl_device::{AnyBits, Captured, DeviceCopyable, Item};
use oxisycl_runtime::graph::forbid_blocking;
use oxisycl_types::Range;

use crate::handler::Handler;
use crate::reduction::{Reducer, WithIdentity, reduction};
use crate::{Accessor, Buffer, Event, HostCopy, Queue, Read, Result, Write};

/// A value that a reduction makes. It stays on the device, for other commands to use, until [`get`](Self::get) or `.await` asks for it.
#[derive(Debug)]
pub struct Reduced<T: DeviceCopyable> {
    value: Buffer<T, 1>,
    event: Event,
    queue: Queue,
    /// The way of the value to the host, once `.await` has asked for it.
    copy: Option<HostCopy<Vec<T>>>,
}

impl<T: DeviceCopyable> Reduced<T> {
    /// Blocks until the reduction has ended, and gives its value.
    ///
    /// Errors: those of the reduction, and of what it depends on.
    ///
    /// ```
    /// use oxisycl::operator::Max;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let readings = Buffer::from_vec(vec![3u32, 9, 4])?;
    /// let largest = Queue::default()?.reduce(&readings, Max)?;
    /// assert_eq!(largest.get()?, 9);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self) -> Result<T> {
        self.event.wait()?;
        let value = self.value.host_access(Read)?;
        Ok(value[0])
    }

    /// The event.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The buffer of one element that the value is in, for further commands.
    ///
    /// ```
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let shares = Buffer::from_vec(vec![1.0f32, 2.0, 5.0])?;
    /// let sum = queue.reduce(&shares, Sum)?;
    /// queue.submit(|cg| {
    ///     let sum = cg.access(sum.buffer(), Read);
    ///     let shares = cg.access(&shares, ReadWrite);
    ///     cg.parallel_for(3, move |item| shares.update(item, |share| share / sum.at(item, 0)))
    /// })?;
    /// assert_eq!(shares.to_vec()?, [0.125, 0.25, 0.625]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffer(&self) -> &Buffer<T, 1> {
        &self.value
    }
}

/// Gives what [`get`](Reduced::get) gives. The thread never blocks: the value comes to the host by a copy of its own.
impl<T: DeviceCopyable + AnyBits> Future for Reduced<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Result<T>> {
        // No field is structurally pinned: events and copies are `Unpin`.
        let this = self.get_mut();
        // An error of the reduction comes before that of the copy, which would only name it as its source.
        if let Err(error) = task::ready!(Pin::new(&mut this.event).poll(context)) {
            return Poll::Ready(Err(error));
        }
        let copy = match &mut this.copy {
            Some(copy) => copy,
            None => this.copy.insert(this.queue.copy_to_host(&this.value, vec![T::zeroed()])?),
        };
        let value = task::ready!(Pin::new(copy).poll(context));
        // Who asks once more gets what is in the buffer then.
        this.copy = None;
        Poll::Ready(value.map(|value| value[0]))
    }
}

impl Queue {
    /// Combines all elements of a buffer, by the fixed [tree](crate::reduction) of all reductions.
    ///
    /// Errors: as those of [`Handler::parallel_reduce`].
    ///
    /// ```
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec((0..1000u64).collect())?;
    /// let sum = Queue::default()?.reduce(&numbers, Sum)?;
    /// assert_eq!(sum.get()?, 499_500);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn reduce<T, const D: usize, O>(&self, buffer: &Buffer<T, D>, operator: O) -> Result<Reduced<T>>
    where
        T: DeviceCopyable + AnyBits,
        O: Identity<T> + 'static,
    {
        self.transform_reduce(buffer, |value| value, operator)
    }

    /// Combines what `transform` makes of each element of a buffer.
    ///
    /// Errors: as those of [`Handler::parallel_reduce`].
    ///
    /// ```
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![3.0f32, 4.0])?;
    /// let squares = Queue::default()?.transform_reduce(&numbers, |x| x * x, Sum)?;
    /// assert_eq!(squares.get()?.sqrt(), 5.0);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn transform_reduce<T, U, const D: usize, F, O>(
        &self,
        buffer: &Buffer<T, D>,
        transform: F,
        operator: O,
    ) -> Result<Reduced<U>>
    where
        T: DeviceCopyable,
        U: DeviceCopyable + AnyBits,
        F: Fn(T) -> U + Copy + Send + Sync + 'static,
        O: Identity<U> + 'static,
    {
        let value = Buffer::uninit(1)?;
        let location = std::panic::Location::caller();
        let event = self.submit(|cg: &mut Handler<'_>| {
            cg.name("reduce");
            let elements: Accessor<'_, T, D, Read> = cg.access(buffer, Read);
            let into = reduction(cg.access(&value, Write.no_init()), operator);
            cg.reduce_at(buffer.range(), into, location, move |item, result| {
                result.combine(transform(elements.get(item)))
            })
        })?;
        Ok(Reduced { value, event, queue: self.clone(), copy: None })
    }

    /// Combines what a kernel gives to its reducer, which runs once for each id of `range` and gets `arguments`, such as buffers. See
    /// [`argument`](crate::argument).
    ///
    /// Errors: as those of [`Handler::parallel_reduce_with`] and of [`submit`](Self::submit).
    ///
    /// ```
    /// use oxisycl::operator::Sum;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (x, y) = (Buffer::from_vec(vec![1.0f64, 2.0])?, Buffer::from_vec(vec![3.0f64, 4.0])?);
    /// let queue = Queue::default()?;
    /// let product = queue.parallel_reduce_with(2, Sum, (x.read(), y.read()), |item, sum, (x, y)| *sum += x.get(item) * y.get(item))?;
    /// assert_eq!(product.get()?, 11.0);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn parallel_reduce_with<T, const D: usize, O, A, K>(
        &self,
        range: impl Into<Range<D>>,
        operator: O,
        arguments: A,
        kernel: K,
    ) -> Result<Reduced<T>>
    where
        T: DeviceCopyable + AnyBits,
        O: Identity<T> + 'static,
        A: KernelArg + for<'cg> Deconstruct<Handler<'cg>>,
        K: for<'wi> Fn(Item<'wi, D>, &'wi mut Reducer<T, WithIdentity<O>>, Value<'wi, A>)
            + Captured
            + Send
            + Sync
            + 'static,
    {
        forbid_blocking("submit")?;
        let value = Buffer::uninit(1)?;
        let mut handler = Handler::new(self);
        let into = reduction(handler.access(&value, Write.no_init()), operator);
        handler.parallel_reduce_with(range, into, arguments, kernel)?;
        let event = Event::new(handler.submit()?);
        Ok(Reduced { value, event, queue: self.clone(), copy: None })
    }
}
