//! Derived arguments of forty shapes. Each is passed to a kernel of its own, and the program prints the list that its half of the kernel has.

use std::marker::PhantomData;
use std::num::Wrapping;
use std::sync::Arc;

use oxisycl::argument::{Copied, Keep, list};
use oxisycl::prelude::*;
use oxisycl::{Id, Range};

/// Launches a kernel of the function `$name` with the value, and prints the list.
macro_rules! cases {
    ($($name:ident: $of:ty = $value:expr;)*) => {
        $(fn $name(queue: &Queue) -> oxisycl::Result {
            let value: $of = $value;
            println!("{}", stringify!($name));
            list::<(u8, $of)>().iter().for_each(|argument| println!("    argument {argument}"));
            queue.single_task_with((1u8, value), |_: Single, _| {})?.wait()
        })*

        const CASES: &[fn(&Queue) -> oxisycl::Result] = &[$($name),*];
    };
}

#[derive(Clone, Copy, DeviceCopyable)]
#[repr(C, align(16))]
struct Wide(u8);

#[derive(Clone, Copy, DeviceCopyable)]
#[repr(C, align(64))]
struct Line([u8; 3]);

#[derive(KernelArg)]
struct Mixed {
    a: u8,
    b: u64,
    c: u16,
}

#[derive(KernelArg)]
struct Unnamed(u8, u16, u32);

#[derive(KernelArg)]
struct New(u8);

#[derive(KernelArg)]
struct Letters {
    is_set: bool,
    letter: char,
    large: i128,
    natural: usize,
    real: f64,
}

#[derive(KernelArg)]
struct Aligned {
    before: u8,
    wide: Wide,
    after: u8,
}

#[derive(KernelArg)]
struct Aligned64 {
    before: u16,
    line: Line,
    after: [u8; 5],
}

#[derive(KernelArg)]
struct Arrays {
    bytes: [u8; 3],
    rows: [[u16; 2]; 3],
    pairs: [(u8, u32); 2],
}

#[derive(KernelArg)]
struct Tuples {
    nested: ((u8, (u16, u64)), u8),
    one: (u32,),
}

#[derive(KernelArg)]
struct Options {
    number: Option<u32>,
    pair: Option<(u8, u64)>,
    nested: Option<Option<bool>>,
}

#[derive(KernelArg)]
enum Plain {
    #[expect(dead_code, reason = "it is there for the layout")]
    None,
    Some,
}

#[derive(KernelArg)]
enum Data {
    #[expect(dead_code, reason = "it is there for the layout")]
    Number(u64),
    Pair {
        a: u8,
        b: u16,
    },
}

#[derive(KernelArg)]
enum Owning {
    Table(Vec<u32>),
    #[expect(dead_code, reason = "it is there for the layout")]
    Text(String),
}

#[derive(KernelArg)]
enum Either<A, B> {
    #[expect(dead_code, reason = "it is there for the layout")]
    One(A),
    Other(B),
}

#[derive(KernelArg)]
struct Generic<T> {
    value: T,
    tag: u8,
}

#[derive(KernelArg)]
struct Both<A, B> {
    tag: u8,
    a: A,
    b: B,
}

#[derive(KernelArg)]
struct Many<T, const N: usize>([T; N], u8);

#[derive(KernelArg)]
struct Unit;

#[derive(KernelArg)]
struct Empty {
    unit: Unit,
    none: (),
    of: PhantomData<u64>,
    array: [(); 4],
    no: [u32; 0],
}

#[derive(KernelArg)]
struct AroundEmpty {
    a: u8,
    empty: Empty,
    b: u32,
}

#[derive(KernelArg)]
struct Owners {
    bytes: Vec<u8>,
    shared: Arc<[f32]>,
    text: String,
    number: Box<f64>,
}

#[derive(KernelArg)]
struct Held {
    name: Keep<String>,
    number: u16,
}

#[derive(KernelArg)]
struct Borrowed<'a> {
    tag: u8,
    table: Copied<'a, u32>,
}

#[derive(KernelArg)]
struct BorrowedGeneric<'a, 'b, T: DeviceCopyable> {
    first: Copied<'a, T>,
    second: Option<Copied<'b, u8>>,
    tag: T,
}

#[derive(KernelArg)]
struct Library {
    id: Id<2>,
    range: Range<3>,
    wrapping: Wrapping<u32>,
}

#[derive(Clone, Copy, KernelArg)]
#[oxisycl(device = Self)]
struct Same {
    a: u16,
    b: [u64; 2],
}

#[derive(KernelArg)]
struct Deep {
    mixed: [Mixed; 2],
    tuple: (New, [Generic<Unnamed>; 2]),
    option: Option<New>,
}

const fn mixed() -> Mixed {
    Mixed { a: 1, b: 2, c: 3 }
}

const fn empty() -> Empty {
    Empty { unit: Unit, none: (), of: PhantomData, array: [(); 4], no: [] }
}

static NUMBERS: [u32; 3] = [1, 2, 3];

cases! {
    mixed_widths: Mixed = mixed();
    unnamed: Unnamed = Unnamed(1, 2, 3);
    new: New = New(1);
    letters: Letters = Letters { is_set: true, letter: 'a', large: -1, natural: 2, real: 0.5 };
    aligned_to_16: Aligned = Aligned { before: 1, wide: Wide(2), after: 3 };
    aligned_to_64: Aligned64 = Aligned64 { before: 1, line: Line([2; 3]), after: [3; 5] };
    arrays: Arrays = Arrays { bytes: [1; 3], rows: [[2; 2]; 3], pairs: [(3, 4); 2] };
    tuples: Tuples = Tuples { nested: ((1, (2, 3)), 4), one: (5,) };
    options: Options = Options { number: Some(1), pair: None, nested: Some(None) };
    plain_enum: Plain = Plain::Some;
    enum_with_data: Data = Data::Pair { a: 1, b: 2 };
    owning_enum: Owning = Owning::Table(vec![1]);
    generic_enum: Either<u64, [u8; 3]> = Either::Other([1; 3]);
    enum_of_owners: Either<Vec<u8>, Data> = Either::Other(Data::Pair { a: 1, b: 2 });
    generic: Generic<u64> = Generic { value: 1, tag: 2 };
    generic_of_array: Generic<[u8; 5]> = Generic { value: [1; 5], tag: 2 };
    generic_of_option: Generic<Option<char>> = Generic { value: Some('a'), tag: 2 };
    generic_of_generic: Generic<Generic<u16>> = Generic { value: Generic { value: 1, tag: 2 }, tag: 3 };
    generic_of_owner: Generic<Vec<u64>> = Generic { value: vec![1], tag: 2 };
    generic_of_nothing: Generic<()> = Generic { value: (), tag: 2 };
    two_parameters: Both<u64, u16> = Both { tag: 1, a: 2, b: 3 };
    two_parameters_exchanged: Both<u16, u64> = Both { tag: 1, a: 2, b: 3 };
    two_owners: Both<String, Arc<[u16]>> = Both { tag: 1, a: "a".to_owned(), b: [1].into() };
    four: Many<u32, 4> = Many([1; 4], 2);
    four_aligned: Many<Wide, 4> = Many([Wide(1); 4], 2);
    none: Many<u64, 0> = Many([], 2);
    two_derived: Many<Unnamed, 2> = Many([Unnamed(1, 2, 3), Unnamed(4, 5, 6)], 2);
    unit: Unit = Unit;
    nothing: Empty = empty();
    around_nothing: AroundEmpty = AroundEmpty { a: 1, empty: empty(), b: 2 };
    owners: Owners = Owners { bytes: vec![1], shared: [0.5].into(), text: "a".to_owned(), number: Box::new(0.5) };
    held: Held = Held { name: Keep("a".to_owned()), number: 1 };
    borrowed: Borrowed<'static> = Borrowed { tag: 1, table: Copied(&NUMBERS) };
    borrowed_generic: BorrowedGeneric<'static, 'static, u32> =
        BorrowedGeneric { first: Copied(&NUMBERS), second: None, tag: 1 };
    of_the_library: Library = Library { id: Id([1, 2]), range: Range([3, 4, 5]), wrapping: Wrapping(6) };
    same_on_devices: Same = Same { a: 1, b: [2; 2] };
    array_of_derived: [Mixed; 3] = [mixed(), mixed(), mixed()];
    option_of_derived: Option<Mixed> = Some(mixed());
    tuple_of_derived: (New, (Mixed, Unit), [New; 2]) = (New(1), (mixed(), Unit), [New(2), New(3)]);
    deep: Deep = Deep {
        mixed: [mixed(), mixed()],
        tuple: (New(1), [1, 2].map(|tag| Generic { value: Unnamed(3, 4, 5), tag })),
        option: Some(New(6)),
    };
}

fn main() -> oxisycl::Result {
    let queue = Queue::builder().build()?;
    CASES.iter().try_for_each(|case| case(&queue))
}
