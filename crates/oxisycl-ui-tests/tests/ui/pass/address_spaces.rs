//! What differs from the refused programs about address spaces by one word.

use oxisycl::multi_ptr::{Constant, MultiPtr, space};
use oxisycl::prelude::*;

static TABLE: Constant<[u32; 2]> = Constant::new([1, 2]);
static AS_LARGE: Constant<[u32; 16384]> = Constant::new([0; 16384]);

fn main() -> oxisycl::Result<()> {
    let generic = MultiPtr::<u32, space::Generic>::null();
    let global = MultiPtr::<u32, space::Global>::null();
    let of_device = MultiPtr::<u32, space::GlobalDevice>::null();
    let local = MultiPtr::<u32, space::Local>::null();
    let private = MultiPtr::<u32, space::Private>::null();

    let _: MultiPtr<u32, space::Generic> = global.into();
    let _: MultiPtr<u32, space::Generic> = local.into();
    let _: MultiPtr<u32, space::Generic> = private.into();
    let _: MultiPtr<u32, space::Global> = of_device.into();
    let _: MultiPtr<u32, space::Global> = of_device.widen();
    // SAFETY: null.
    let _: MultiPtr<u32, space::Global> = unsafe { generic.static_cast() };

    let _ = generic.dynamic_cast::<space::Private>();
    let _ = generic.dynamic_cast::<space::Global>();
    let _ = generic.dynamic_cast::<space::Local>();
    let _ = global.dynamic_cast::<space::GlobalHost>();
    assert!(global == generic && local == generic && of_device == global && local == local);

    let _: MultiPtr<[u32; 2], space::Constant> = TABLE.multi_ptr().into();
    // SAFETY: the table's value.
    assert_eq!((unsafe { TABLE.multi_ptr().read() }, AS_LARGE[0]), ([1, 2], 0));

    let queue = Queue::default()?;
    queue.single_task_with(global, |_, _| ())?;
    queue.single_task(move |_| assert!(global.is_null()))?;
    Buffer::from_vec(vec![of_device])?;
    // SAFETY: no address.
    unsafe { global.prefetch(0) };
    queue.single_task(move |task| {
        if !local_is_used() {
            return;
        }
        // SAFETY: never reached.
        unsafe { MultiPtr::<u32, space::Local>::null().atomic_ref(task) };
    })?;
    queue.wait()
}

fn local_is_used() -> bool {
    false
}
