//! The worked example of the document on kernel parameters: an `int`, a special type and an aggregate of an array of them. The program prints the list
//! that its half of the kernel has.

use oxisycl::argument::{Decompose, Launch, list};
use oxisycl::prelude::*;

#[derive(Clone, Copy, DeviceCopyable)]
struct X {
    dm: i32,
}

/// The type that is taken apart into an `int` and an `X`.
#[derive(KernelArg)]
#[oxisycl(by_hand)]
struct Special {
    a: i32,
    x: X,
}

impl Decompose for Special {
    type Parts = (i32, X);
    type Device<'k> = (i32, X);
    type Error = std::num::TryFromIntError;
    fn deconstruct(self) -> Result<Self::Parts, Self::Error> {
        u8::try_from(self.a)?;
        Ok((self.a, self.x))
    }
    fn reconstruct<'k>(_: Launch<'k>, (a, x): (i32, X)) -> (i32, X) {
        (a, x)
    }
}

#[derive(KernelArg)]
struct Aggregate {
    sta: [Special; 2],
}

fn example() -> (i32, Special, Aggregate) {
    let special = |a, dm| Special { a, x: X { dm } };
    (1, special(2, 3), Aggregate { sta: [special(4, 5), special(6, 7)] })
}

fn main() -> oxisycl::Result {
    list::<(i32, Special, Aggregate)>().iter().for_each(|argument| println!("{argument}"));
    // Nothing is captured, which is not passed.
    Queue::default()?
        .parallel_for_with(3, example(), |item, (i, st, a)| {
            let sum = a.sta.iter().fold(i + st.0 + st.1.dm, |sum, (a, x)| sum + a + x.dm);
            oxisycl::println!("item {} has {sum}", item.index());
        })?
        .wait()
}
