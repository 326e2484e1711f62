//! Which pairs of address spaces are converted, and how.

use core::marker::PhantomData;

use crate::multi_ptr::MultiPtr;
use crate::multi_ptr::space::{
    Constant, Generic, Global, GlobalDevice, GlobalHost, Local, Overlaps, Passed, Private, Shared, Space, Within,
    Writable,
};

/// Answers questions about two spaces: by the methods of the type where their bounds hold, else by those of [`No`].
struct Pair<A, B>(PhantomData<(A, B)>);

trait No {
    fn converts(&self) -> bool {
        false
    }
    fn widens(&self) -> bool {
        false
    }
    fn casts(&self) -> bool {
        false
    }
    fn compares(&self) -> bool {
        false
    }
}

impl<A, B> No for Pair<A, B> {}

impl<A: Space, B: Space> Pair<A, B>
where
    MultiPtr<u32, B>: From<MultiPtr<u32, A>>,
{
    fn converts(&self) -> bool {
        let pointer: MultiPtr<u32, B> = MultiPtr::<u32, A>::null().wrapping_add(3).into();
        pointer.get() == core::ptr::null_mut::<u32>().wrapping_add(3)
    }
}

impl<A: Within<B>, B: Space> Pair<A, B> {
    fn widens(&self) -> bool {
        MultiPtr::<u32, A>::null().wrapping_add(3).widen::<B>().get() == core::ptr::null_mut::<u32>().wrapping_add(3)
    }
}

impl<A: Space, B: Within<A>> Pair<A, B> {
    fn casts(&self) -> bool {
        let pointer = MultiPtr::<u32, A>::null().wrapping_add(3);
        // SAFETY: nothing is accessed.
        let by_promise = unsafe { pointer.static_cast::<B>() };
        pointer.dynamic_cast::<B>().map(MultiPtr::get) == Some(by_promise.get())
    }
}

impl<A: Overlaps<B>, B: Space> Pair<A, B> {
    fn compares(&self) -> bool {
        MultiPtr::<u32, A>::null() == MultiPtr::<u32, B>::null()
    }
}

/// A row of the table: a letter for each space of the second list. `=` the same, `F` by itself, `c` by a cast, `-` not at all.
macro_rules! rows {
    ($($from:ident)*; $to:tt) => { [$(row!($from $to)),*] };
}
macro_rules! row {
    ($from:ident [$($to:ident)*]) => { [$({
        let pair = Pair::<$from, $to>(PhantomData);
        assert_eq!(
            pair.compares(),
            pair.converts() || pair.casts(),
            "{} and {}", <$from>::NAME, <$to>::NAME
        );
        match (<$from>::NAME == <$to>::NAME, pair.converts(), pair.widens(), pair.casts()) {
            (true, true, false, false) => '=',
            (false, true, true, false) => 'F',
            (false, false, false, true) => 'c',
            (false, false, false, false) => '-',
            other => panic!("{} to {}: {other:?}", <$from>::NAME, <$to>::NAME),
        }
    }),*].iter().collect::<std::string::String>() };
}

#[test]
fn all_pairs_of_spaces_are_converted_as_the_table_says() {
    let rows = rows! {
        Generic Global GlobalDevice GlobalHost Constant Local Private;
        [Generic Global GlobalDevice GlobalHost Constant Local Private]
    };
    assert_eq!(rows, ["=ccc-cc", "F=cc---", "FF=----", "FF-=---", "----=--", "F----=-", "F-----="]);
}

/// What may be done in each space, and that its name is SYCL's.
#[test]
fn what_a_space_allows_follows_from_its_memory() {
    struct Of<S>(PhantomData<S>);
    trait Nothing {
        fn is_written(&self) -> bool {
            false
        }
        fn is_shared(&self) -> bool {
            false
        }
        fn is_passed(&self) -> bool {
            false
        }
    }
    impl<S> Nothing for Of<S> {}
    impl<S: Writable> Of<S> {
        fn is_written(&self) -> bool {
            true
        }
    }
    impl<S: Shared> Of<S> {
        fn is_shared(&self) -> bool {
            true
        }
    }
    impl<S: Passed> Of<S> {
        fn is_passed(&self) -> bool {
            true
        }
    }
    macro_rules! allowed {
        ($space:ident) => {{
            let of = Of::<$space>(PhantomData);
            ($space::NAME, of.is_written(), of.is_shared(), of.is_passed())
        }};
    }
    let all = [
        allowed!(Generic),
        allowed!(Global),
        allowed!(GlobalDevice),
        allowed!(GlobalHost),
        allowed!(Constant),
        allowed!(Local),
        allowed!(Private),
    ];
    let expected = [
        ("generic_space", true, true, true),
        ("global_space", true, true, true),
        ("global_device_space", true, true, true),
        ("global_host_space", true, true, true),
        ("constant_space", false, false, false),
        ("local_space", true, true, false),
        ("private_space", true, false, false),
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_pointer_is_as_large_as_an_address_and_shows_its_space() {
    assert_eq!(size_of::<MultiPtr<u64, Local>>(), size_of::<*mut u64>());
    let pointer = MultiPtr::<u8>::new(core::ptr::null_mut::<u8>().wrapping_add(16));
    assert_eq!(std::format!("{pointer:?}"), "generic_space(0x10)");
    assert!(MultiPtr::<u8, Private>::default().is_null());
}
