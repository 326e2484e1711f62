//! Branches, loops, switches, calls, and the end of a work-item.

use super::support::{BEGIN, context, run, translated, validated};

/// Runs `k` on 64-bit numbers, one for each work-item.
fn map(code: &str, input: &[u64]) -> Vec<u64> {
    let context = context();
    let bytes = validated(&translated(&context, code).module);
    let from: Vec<u8> = input.iter().flat_map(|number| number.to_le_bytes()).collect();
    let output = run(&bytes, &[("k", &from, from.len())], input.len()).remove(0);
    output.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes"))).collect()
}

/// Begins `k`: `%a` is the work-item's number of the input, `%po` its place in the output.
fn begin() -> String {
    format!(
        "define void @k{BEGIN}  %offset = mul i64 %i, 8
  %pa = getelementptr i8, ptr %in, i64 %offset
  %po = getelementptr i8, ptr %out, i64 %offset
  %a = load i64, ptr %pa\n"
    )
}

fn numbers() -> Vec<u64> {
    vec![0, 1, 2, 3, 7, 27, 97, 255, 256, 1 << 32, (1 << 32) + 1, u64::MAX]
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_loop_ends_when_it_should() {
    let code = begin()
        + "br label %head
head:
  %n = phi i64 [ %a, %0 ], [ %next, %again ]
  %steps = phi i64 [ 0, %0 ], [ %more, %again ]
  %few = icmp ult i64 %steps, 200
  %big = icmp ugt i64 %n, 1
  %on = and i1 %few, %big
  br i1 %on, label %body, label %end
body:
  %odd = trunc i64 %n to i1
  br i1 %odd, label %up, label %down
up:
  %triple = mul i64 %n, 3
  %plus = add i64 %triple, 1
  br label %again
down:
  %half = lshr i64 %n, 1
  br label %again
again:
  %next = phi i64 [ %plus, %up ], [ %half, %down ]
  %more = add i64 %steps, 1
  br label %head
end:
  store i64 %steps, ptr %po
  ret void
}\n";
    let collatz = |mut n: u64| {
        let mut steps = 0;
        while steps < 200 && n > 1 {
            n = if n % 2 == 1 { n.wrapping_mul(3).wrapping_add(1) } else { n / 2 };
            steps += 1;
        }
        steps
    };
    let found = map(&code, &numbers());
    assert_eq!(found, numbers().into_iter().map(collatz).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn switches_of_every_width_find_their_case() {
    for width in [8, 16, 33, 64, 128] {
        let selector = match width {
            64 => "%s = add i64 %a, 0".to_owned(),
            128 => "%x = zext i64 %a to i128\n %y = shl i128 %x, 64\n%s = or i128 %y, %x".to_owned(),
            width => format!("%s = trunc i64 %a to i{width}"),
        };
        let case = |value: u64| match width {
            128 => (u128::from(value) << 64 | u128::from(value)).to_string(),
            width => (value & u64::MAX >> (64 - width)).to_string(),
        };
        let last = if width == 128 { "-1".to_owned() } else { case(u64::MAX) };
        let code = begin()
            + &format!(
                "{selector}
  switch i{width} %s, label %other [ i{width} {}, label %one i{width} {}, label %two i{width} {last}, label %one ]
one: br label %end
two: br label %end
other: br label %end
end:
  %r = phi i64 [ 10, %one ], [ 20, %two ], [ 30, %other ]
  store i64 %r, ptr %po
  ret void
}}\n",
                case(1),
                case(97),
            );
        let reference = |a: u64| {
            let cut = if width < 64 { a & u64::MAX >> (64 - width) } else { a };
            let all = if width < 64 { u64::MAX >> (64 - width) } else { u64::MAX };
            match cut {
                1 => 10,
                97 => 20,
                cut if cut == all => 10,
                _ => 30,
            }
        };
        let found = map(&code, &numbers());
        assert_eq!(found, numbers().into_iter().map(reference).collect::<Vec<_>>(), "{width} bits");
    }
}

#[test]
fn the_order_of_a_phi_s_ways_makes_no_other_code() {
    let code = |ways: &str| {
        let context = context();
        let code = begin()
            + &format!(
                "switch i64 %a, label %other [ i64 1, label %one i64 97, label %two ]
one: br label %end
two: br label %end
other: br label %end
end:
  %r = phi i64 {ways}
  store i64 %r, ptr %po
  ret void
}}\n"
            );
        validated(&translated(&context, &code).module)
    };
    let [one, two, other] = ["[ 10, %one ]", "[ 20, %two ]", "[ 30, %other ]"];
    let expected = code(&[one, two, other].join(", "));
    for ways in [[one, other, two], [two, one, other], [two, other, one], [other, one, two], [other, two, one]] {
        assert!(code(&ways.join(", ")) == expected, "{ways:?}");
    }
    let [ten, twenty] = ["[ 20, %one ]", "[ 10, %two ]"];
    assert!(code(&[ten, twenty, other].join(", ")) != expected, "values of other ways are other code");
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn an_address_may_come_from_different_memories() {
    let code = begin()
        + "%local = alloca i64, align 8
  %v = add i64 %a, 5
  store i64 %v, ptr %local
  %odd = trunc i64 %a to i1
  br i1 %odd, label %one, label %two
one: br label %end
two: br label %end
end:
  %p = phi ptr [ %local, %one ], [ %pa, %two ]
  %q = select i1 %odd, ptr %pa, ptr %local
  %x = load i64, ptr %p
  %y = load i64, ptr %q
  %same = icmp eq ptr %p, %q
  %s = zext i1 %same to i64
  %z = shl i64 %y, 1
  %r = sub i64 %x, %z
  %t = add i64 %r, %s
  store i64 %t, ptr %po
  ret void
}\n";
    let found = map(&code, &numbers());
    let reference = |a: u64| {
        let v = a.wrapping_add(5);
        let (x, y) = if a % 2 == 1 { (v, a) } else { (a, v) };
        x.wrapping_sub(y << 1)
    };
    assert_eq!(found, numbers().into_iter().map(reference).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn functions_that_were_not_inlined_are_called() {
    let code = begin()
        + "%local = alloca [2 x i64], align 8
  %w = zext i64 %a to i128
  call void @fill(ptr %local, i128 %w)
  %r = call i64 @sum(ptr %local, i1 true)
  store i64 %r, ptr %po
  ret void
}
define internal void @fill(ptr %p, i128 %w) noinline {
  %s = mul i128 %w, %w
  store i128 %s, ptr %p, align 8
  ret void
}
define internal i64 @sum(ptr %p, i1 %high) noinline {
  %q = getelementptr i64, ptr %p, i64 1
  %l = load i64, ptr %p
  %h = load i64, ptr %q
  %m = select i1 %high, i64 %h, i64 0
  %r = add i64 %l, %m
  ret i64 %r
}\n";
    let found = map(&code, &numbers());
    let reference = |a: u64| {
        let square = u128::from(a) * u128::from(a);
        (square as u64).wrapping_add((square >> 64) as u64)
    };
    assert_eq!(found, numbers().into_iter().map(reference).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_work_item_that_ended_does_nothing_more() {
    let code = begin()
        + "store i64 1, ptr %po
  %big = icmp ugt i64 %a, 100
  br i1 %big, label %bad, label %good
bad:
  call void @oxisycl.end_work_item()
  unreachable
good:
  store i64 2, ptr %po
  ret void
}
declare void @oxisycl.end_work_item() noreturn\n";
    let found = map(&code, &numbers());
    assert_eq!(found, numbers().into_iter().map(|a| if a > 100 { 1 } else { 2 }).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn vectors_are_taken_apart() {
    let code = begin()
        + "%v = bitcast i64 %a to <4 x i16>
  %w = add <4 x i16> %v, <i16 1, i16 2, i16 3, i16 4>
  %x = shufflevector <4 x i16> %w, <4 x i16> %v, <4 x i32> <i32 3, i32 2, i32 5, i32 0>
  %n = trunc i64 %i to i32
  %index = and i32 %n, 3
  %e = extractelement <4 x i16> %v, i32 %index
  %y = insertelement <4 x i16> %x, i16 %e, i32 1
  %r = bitcast <4 x i16> %y to i64
  store i64 %r, ptr %po
  ret void
}\n";
    let found = map(&code, &numbers());
    let reference = |(i, a): (usize, u64)| {
        let v: [u16; 4] = std::array::from_fn(|lane| (a >> (16 * lane)) as u16);
        let w: [u16; 4] = std::array::from_fn(|lane| v[lane].wrapping_add(lane as u16 + 1));
        let y = [w[3], v[i & 3], v[1], w[0]];
        y.iter().rev().fold(0, |all, lane| all << 16 | u64::from(*lane))
    };
    assert_eq!(found, numbers().into_iter().enumerate().map(reference).collect::<Vec<_>>());
}
