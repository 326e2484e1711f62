//! Derived arguments: what crosses, what the kernel gets, and what happens when a part cannot be passed.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use oxisycl::BufferAccess;
use oxisycl::argument::{Bits, Copied, Decompose, Deconstruct, DeviceForm, Keep, Launch, Sent, Value};
use oxisycl::observe::counters;
use oxisycl::prelude::*;
use oxisycl_image::Argument;

use crate::harness::{Env, tests};

tests![
    structs_arrive_field_by_field,
    parts_with_an_alignment_arrive,
    parameters_stand_for_arguments,
    parameters_of_elements_are_kept,
    lifetimes_are_those_of_the_host,
    types_may_be_their_own_device_form,
    enums_arrive_with_their_data,
    types_from_macros_and_in_functions_arrive,
    types_are_taken_apart_by_hand,
    a_part_that_fails_leaves_nothing_behind;
    once:
    lists_have_the_fields_at_their_places,
];

/// Passes `argument` to a kernel, which gives a number for each index.
fn assert_gets<A, F>(env: &Env, argument: A, expected: &[i64], number: F)
where
    A: KernelArg + for<'cg> Deconstruct<Handler<'cg>>,
    F: for<'k> Fn(Value<'k, A>, usize, Item<'k, 1>) -> i64 + Copy + Send + Sync + 'static,
{
    let numbers = Buffer::from_vec(vec![0; expected.len()]).unwrap();
    let arguments = (argument, numbers.write());
    let event = env.queue().parallel_for_with(expected.len(), arguments, move |item, (argument, numbers)| {
        numbers.set(item, number(argument, item.index(), item));
    });
    event.unwrap();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

/// The leaves of what crosses, with their sizes. They are aligned as their sizes ask for, inside the type, and apart.
#[track_caller]
fn assert_listed<A: KernelArg>(expected: &[(&str, usize)]) {
    let list = Argument::list(Sent::<A>::TYPE);
    let leaves: Vec<_> = list.iter().map(|leaf| (&*leaf.path, leaf.size)).collect();
    assert_eq!(leaves, expected);
    let mut places: Vec<_> = list.iter().map(|leaf| leaf.offset..leaf.offset + leaf.size).collect();
    places.sort_by_key(|place| place.start);
    assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start), "{list:?}");
    assert!(places.last().is_none_or(|place| place.end <= size_of::<Sent<A>>()), "{list:?}");
}

/// Fields of all alignments, in an order that has gaps.
#[derive(KernelArg)]
struct Odd {
    flag: bool,
    long: i64,
    /// A name that is a keyword.
    r#type: u16,
    bytes: [u8; 3],
    pub float: f32,
}

#[derive(KernelArg)]
struct Tuple(u8, pub(crate) i64, (u16, ()));

#[derive(KernelArg)]
struct Unit;

#[derive(KernelArg)]
struct Braces {}

#[derive(KernelArg)]
#[oxisycl(device = Renamed)]
struct Nested {
    odd: Odd,
    units: [Unit; 2],
    tuples: [Tuple; 2],
    braces: Option<Braces>,
}

fn structs_arrive_field_by_field(env: &Env) {
    let odd = || Odd { flag: true, long: -7, r#type: 3, bytes: [4, 5, 6], float: 0.5 };
    assert_gets(env, odd(), &[1, -7, 3, 5, 50], |odd, index, _| {
        let OddOnDevice { flag, long, r#type, bytes, float } = odd;
        [i64::from(flag), long, i64::from(r#type), i64::from(bytes[1]), (float * 100.0) as i64][index]
    });
    assert_gets(env, Tuple(1, -2, (3, ())), &[1, -2, 3], |t, index, _| [i64::from(t.0), t.1, i64::from(t.2.0)][index]);
    assert_gets(env, Unit, &[9], |UnitOnDevice, _, _| 9);
    let tuples = [1, 2].map(|n| Tuple(n, i64::from(n) << 40, (10, ())));
    let nested = Nested { odd: odd(), units: [Unit, Unit], tuples, braces: Some(Braces {}) };
    assert_gets(env, nested, &[-7, 1, 2 << 40, 1], |nested, index, _| {
        let Renamed { odd, units: [_, UnitOnDevice], tuples, braces } = nested;
        [odd.long, i64::from(tuples[0].0), tuples[1].1, i64::from(braces.is_some())][index]
    });
}

/// Plain data that is aligned by more than its size asks for.
#[derive(Clone, Copy, DeviceCopyable)]
#[repr(align(64))]
struct Line([u8; 3]);

#[derive(Clone, Copy, DeviceCopyable)]
#[repr(C, packed)]
struct Packed(u8, u32);

#[derive(KernelArg)]
struct Aligned {
    small: u8,
    line: Line,
    packed: Packed,
    last: (u8, Line),
}

fn parts_with_an_alignment_arrive(env: &Env) {
    let aligned =
        Aligned { small: 1, line: Line([2, 3, 4]), packed: Packed(5, 0x0607_0809), last: (10, Line([11, 12, 13])) };
    assert_gets(env, aligned, &[1, 4, 0x0607_0809, 10, 12], |aligned, index, _| {
        let Packed(_, word) = aligned.packed;
        let numbers = [aligned.small, aligned.line.0[2], 0, aligned.last.0, aligned.last.1.0[1]];
        if index == 2 { i64::from(word) } else { i64::from(numbers[index]) }
    });
    assert_eq!(align_of::<Sent<Aligned>>(), 64);
}

#[derive(KernelArg)]
struct Pair<A, B> {
    first: A,
    second: B,
}

#[derive(KernelArg)]
struct Row<A, const N: usize>([A; N], core::option::Option<(A, u8)>);

/// The bounds are those of the host's type. What crosses has none of them.
#[derive(KernelArg)]
struct Bounded<A: Clone, B: Into<Vec<u8>>>
where
    B: PartialEq,
{
    a: A,
    b: B,
}

fn parameters_stand_for_arguments(env: &Env) {
    let pair = Pair { first: vec![1i64, 2, 3], second: Pair { first: "ab".to_owned(), second: 5u8 } };
    assert_gets(env, pair, &[1 + 2 + 5, 2 + 2 + 5], |pair, index, _| {
        let PairOnDevice { first, second } = pair;
        first[index] + second.first.len() as i64 + i64::from(second.second)
    });
    let numbers = Buffer::from_vec(vec![1i64, 2]).unwrap();
    let row = Row([numbers.read(), numbers.read().range(1, 1)], Some((numbers.read(), 3)));
    assert_gets(env, row, &[1 + 2 + 1 + 3], |row, _, item| {
        row.0[0].get(item) + row.0[1].at(item, 0) + row.1.map_or(0, |(numbers, n)| numbers.get(item) + i64::from(n))
    });
    let bounded = Bounded { a: Arc::<[i64]>::from([4, 5]), b: vec![6u8] };
    assert_gets(env, bounded, &[4 + 6, 5 + 6], |bounded, index, _| bounded.a[index] + i64::from(bounded.b[0]));
    // One kernel for all that give the same.
    assert_eq!(std::any::TypeId::of::<Sent<Pair<Vec<u8>, u8>>>(), std::any::TypeId::of::<Sent<Pair<Arc<[u8]>, u8>>>());
}

/// An element type, whose bound is stated where the type is used.
#[derive(KernelArg)]
struct Table<'a, T: DeviceCopyable> {
    names: Vec<T>,
    shared: Arc<T>,
    copied: Copied<'a, T>,
    scale: Bits<T>,
    kind: PhantomData<T>,
}

impl<T: DeviceCopyable + Into<i64>> TableOnDevice<'_, T> {
    fn sum(&self, index: usize) -> i64 {
        [self.names[index], *self.shared, self.copied[0], self.scale].into_iter().map(Into::into).sum()
    }
}

/// A parameter that is both the type of a field and that of elements.
#[derive(KernelArg)]
struct Both<T: DeviceCopyable>(T, Vec<T>);

fn parameters_of_elements_are_kept(env: &Env) {
    fn passed<T: DeviceCopyable + Into<i64>>(env: &Env, [a, b, c, d]: [T; 4], expected: &[i64]) {
        let table =
            Table { names: vec![a, b], shared: Arc::new(c), copied: Copied(&[d]), scale: Bits(a), kind: PhantomData };
        assert_gets(env, table, expected, |table, index, _| table.sum(index));
    }
    passed(env, [1u8, 2, 3, 4], &[9, 10]);
    passed(env, [10i32, 20, 30, 40], &[90, 100]);
    assert_gets(env, Both(3i64, vec![4, 5]), &[7, 8], |both, index, _| both.0 + both.1[index]);
}

#[derive(KernelArg)]
struct Views<'a, 'b: 'a, T: DeviceCopyable> {
    from: BufferAccess<'a, T, 1, Read>,
    to: BufferAccess<'b, T, 1, ReadWrite>,
    keep: Keep<Arc<()>>,
}

fn lifetimes_are_those_of_the_host(env: &Env) {
    let (from, to) = (Buffer::from_vec(vec![1i64, 2]).unwrap(), Buffer::from_vec(vec![10i64, 20]).unwrap());
    let kept = Arc::new(());
    let views = Views { from: from.read(), to: to.update(), keep: Keep(Arc::clone(&kept)) };
    assert_gets(env, views, &[10, 20], |views, _, item| {
        let ViewsOnDevice { from, to, keep: () } = views;
        let old = to.get(item);
        to.set(item, old + from.get(item));
        old
    });
    assert_eq!(to.to_vec().unwrap(), [11, 22]);
    env.queue().wait().unwrap();
}

#[derive(Clone, Copy, KernelArg)]
#[oxisycl(device = Self)]
struct Weights<const N: usize> {
    row: [i64; N],
    bias: i64,
}

/// The accessors of a group, or those of a kernel.
#[derive(KernelArg)]
#[oxisycl(device = Self)]
struct Inputs<'k, A, T: DeviceCopyable> {
    from: Accessor<'k, T, 1, Read>,
    weights: Weights<2>,
    other: A,
}

impl<A: Copy + Into<i64>, T: DeviceCopyable + Into<i64>> Inputs<'_, A, T> {
    fn at(&self, item: Item<1>) -> i64 {
        self.from.get(item).into() * self.weights.row[item.index()] + self.weights.bias + self.other.into()
    }
}

/// An element of buffers that crosses in another way than bit by bit.
#[derive(Clone, Copy, DeviceCopyable, KernelArg)]
#[oxisycl(element_only)]
struct Element {
    x: i64,
}

fn types_may_be_their_own_device_form(env: &Env) {
    let (from, to) = (Buffer::from_vec(vec![2i32, 3]).unwrap(), Buffer::from_vec(vec![0i64; 2]).unwrap());
    let event = env.queue().submit(|cg| {
        let from = cg.access(&from, Read);
        let inputs = Inputs { from, weights: Weights { row: [10, 100], bias: 1 }, other: 5u8 };
        cg.parallel_for_with(2, (inputs, to.write()), |item, (inputs, to)| to.set(item, inputs.at(item)))
    });
    event.unwrap();
    assert_eq!(to.to_vec().unwrap(), [26, 306]);
    let elements = Buffer::from_vec(vec![Element { x: 4 }]).unwrap();
    assert_gets(env, (Element { x: 1 }, elements.read()), &[5], |(ElementOnDevice { x }, elements), _, item| {
        x + elements.get(item).x
    });
}

#[derive(KernelArg, Clone, Copy)]
#[repr(i16)]
enum Kind {
    First = -3,
    /// Others.
    Second = 1000,
    Third,
}

#[derive(KernelArg)]
enum Source<A> {
    Nothing,
    Table(A),
    Mixed { a: A, kind: Kind, pair: (u8, i64) },
}

/// One with a niche.
#[derive(KernelArg)]
enum Only {
    Text(Box<str>),
    Letter(char),
}

fn enums_arrive_with_their_data(env: &Env) {
    let kinds = [Kind::First, Kind::Second, Kind::Third];
    assert_gets(env, kinds, &[-3, 1000, 1001], |kinds, index, _| {
        let [first, second, third] = kinds;
        [first as i64, second as i64, third as i64][index]
    });
    let mixed = Source::Mixed { a: vec![100i64], kind: Kind::Second, pair: (7, 1 << 33) };
    let sources = [Source::Nothing, Source::Table(vec![5, 6]), mixed, Source::Table(vec![])];
    assert_gets(env, sources, &[-1, 5, 100 + 7 + (1 << 33), -2], |sources, index, _| {
        let [nothing, table, mixed, empty] = sources;
        let number = |source| match source {
            SourceOnDevice::Nothing => -1,
            SourceOnDevice::Table(table) => <[i64]>::first(table).copied().unwrap_or(-2),
            SourceOnDevice::Mixed { a, kind: KindOnDevice::Second, pair } => a[0] + i64::from(pair.0) + pair.1,
            SourceOnDevice::Mixed { .. } => -3,
        };
        match index {
            0 => number(nothing),
            1 => number(table),
            2 => number(mixed),
            _ => number(empty),
        }
    });
    assert_gets(env, (Only::Text("abc".into()), Only::Letter('d')), &[3, 100], |only, index, _| {
        let number = |only| match only {
            OnlyOnDevice::Text(text) => str::len(text) as i64,
            OnlyOnDevice::Letter(letter) => i64::from(u32::from(letter)),
        };
        if index == 0 { number(only.0) } else { number(only.1) }
    });
}

macro_rules! declares {
    ($name:ident { $($field:ident: $of:ty),* }) => {
        #[derive(KernelArg)]
        struct $name<A> {
            $($field: $of,)*
            other: A,
        }
    };
}

declares! { Declared { names: Vec<i64>, pair: (u8, [u16; 2]) } }

fn types_from_macros_and_in_functions_arrive(env: &Env) {
    #[derive(KernelArg)]
    struct Local(Declared<i64>);
    let declared = Declared { names: vec![1, 2], pair: (3, [4, 5]), other: 6 };
    assert_gets(env, Local(declared), &[1 + 3 + 4 + 6, 2 + 3 + 5 + 6], |LocalOnDevice(declared), index, _| {
        let (a, b) = declared.pair;
        declared.names[index] + i64::from(a) + i64::from(b[index]) + declared.other
    });
}

/// A polynomial, by its coefficients.
#[derive(KernelArg)]
#[oxisycl(by_hand)]
struct Polynomial<T>(Vec<T>);

struct PolynomialOnDevice<'k, T>(&'k [T]);

impl<T: DeviceCopyable> Decompose for Polynomial<T> {
    type Parts = Vec<T>;
    type Device<'k> = PolynomialOnDevice<'k, T>;
    type Error = std::convert::Infallible;

    fn deconstruct(self) -> Result<Vec<T>, Self::Error> {
        Ok(self.0)
    }

    fn reconstruct<'k>(_: Launch<'k>, coefficients: &'k [T]) -> PolynomialOnDevice<'k, T> {
        PolynomialOnDevice(coefficients)
    }
}

fn types_are_taken_apart_by_hand(env: &Env) {
    let pair = Pair { first: Polynomial(vec![1i64, 2, 3]), second: () };
    assert_gets(env, pair, &[1, 6, 17], |pair, index, _| {
        pair.first.0.iter().rev().fold(0, |sum, coefficient| index as i64 * sum + coefficient)
    });
}

/// One of six values. One of them cannot be passed.
#[derive(KernelArg)]
#[oxisycl(by_hand)]
struct Fragile {
    number: i64,
    failing: i64,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Relaxed);
    }
}

#[derive(Debug)]
struct Unlucky(i64);

impl std::fmt::Display for Unlucky {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "number {} is unlucky", self.0)
    }
}

impl std::error::Error for Unlucky {}

impl Decompose for Fragile {
    type Parts = i64;
    type Device<'k> = i64;
    type Error = Unlucky;

    fn deconstruct(self) -> Result<i64, Unlucky> {
        if self.number == self.failing { Err(Unlucky(self.number)) } else { Ok(self.number) }
    }

    fn reconstruct(_: Launch<'_>, number: i64) -> i64 {
        number
    }
}

#[derive(KernelArg)]
enum Choice<A> {
    Taken {
        part: A,
    },
    #[expect(dead_code, reason = "an enum of one variant may have no discriminant")]
    Left,
}

#[derive(KernelArg)]
struct Six {
    first: Fragile,
    pair: Pair<Fragile, Fragile>,
    row: [Fragile; 2],
    last: (Choice<Fragile>, u8),
}

fn a_part_that_fails_leaves_nothing_behind(env: &Env) {
    let paths = ["0.first", "0.pair.first", "0.pair.second", "0.row[0]", "0.row[1]", "0.last.0.Taken.part"];
    for failing in 0..=6 {
        let dropped = Arc::new(AtomicUsize::new(0));
        let part = |number| Fragile { number, failing, dropped: Arc::clone(&dropped) };
        let six = Six {
            first: part(0),
            pair: Pair { first: part(1), second: part(2) },
            row: [part(3), part(4)],
            last: (Choice::Taken { part: part(5) }, 0),
        };
        let (before, sum) = (counters(), Buffer::from_vec(vec![0]).unwrap());
        let result = env.queue().single_task_with((six, sum.write()), |task, (six, sum)| {
            let (ChoiceOnDevice::Taken { part: last }, _) = six.last else { return };
            let pair = six.pair;
            sum.set_at(task, 0, six.first + pair.first + 10 * pair.second + six.row[0] + six.row[1] + last);
        });
        assert_eq!(dropped.load(Relaxed), 6, "{failing}");
        let Some(path) = paths.get(failing as usize) else {
            result.unwrap();
            assert_eq!(sum.to_vec().unwrap(), [1 + 20 + 3 + 4 + 5]);
            continue;
        };
        let error = result.unwrap_err();
        assert_eq!(error.code(), ErrorCode::KernelArgument);
        assert!(error.to_string().contains(&format!("argument \"{path}\" of kernel \"")), "{error}");
        assert!(error.to_string().contains(&format!("number {failing} is unlucky")), "{error}");
        assert_eq!((counters() - before).kernels, 0);
        assert_eq!(sum.to_vec().unwrap(), [0]);
    }
}

fn lists_have_the_fields_at_their_places() {
    assert_listed::<Odd>(&[
        ("flag", 1),
        ("long", 8),
        ("type", 2),
        ("bytes[0]", 1),
        ("bytes[1]", 1),
        ("bytes[2]", 1),
        ("float", 4),
    ]);
    assert_listed::<Tuple>(&[("0", 1), ("1", 8), ("2.0", 2)]);
    assert_listed::<Unit>(&[]);
    assert_listed::<Pair<Vec<u8>, Unit>>(&[("first", 16)]);
    assert_listed::<Row<u16, 2>>(&[("0[0]", 2), ("0[1]", 2), ("1", 6)]);
    assert_listed::<Aligned>(&[("small", 1), ("line", 64), ("packed", 5), ("last.0", 1), ("last.1", 64)]);
    assert_listed::<Table<'_, u64>>(&[("names", 16), ("shared", 8), ("copied", 16), ("scale", 8)]);
    assert_listed::<Both<u8>>(&[("0", 1), ("1", 16)]);
    assert_listed::<Weights<2>>(&[("row[0]", 8), ("row[1]", 8), ("bias", 8)]);
    // An enum is one value.
    assert_listed::<Kind>(&[("", 1)]);
    assert_listed::<(Only, Option<Kind>)>(&[("0", 16), ("1", 1)]);
    let [of_enum] = &*Argument::list(Sent::<Only>::TYPE) else { panic!("an enum is one value") };
    assert!(of_enum.type_name.contains("OnlyOnDevice"), "{of_enum}");
}
