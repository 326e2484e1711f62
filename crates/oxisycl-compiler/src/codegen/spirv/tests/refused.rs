//! What SPIR-V cannot express has a reason, and the place where it is.

use super::support::{BEGIN, context, translated, try_translate};

fn reason(code: &str) -> String {
    let context = context();
    match try_translate(&context, code) {
        Err(refused) => format!("{} in {}", refused.reason, refused.function.expect("it is known where it is")),
        Ok(_) => panic!("there is a translation of {code}"),
    }
}

#[test]
fn recursion_is_refused() {
    let code = format!(
        "define void @k{BEGIN}call void @again(i64 %i)\nret void\n}}
define internal void @again(i64 %n) noinline {{
  %c = icmp eq i64 %n, 0
  br i1 %c, label %end, label %more
more:
  %m = sub i64 %n, 1
  call void @again(i64 %m)
  br label %end
end:
  ret void\n}}\n"
    );
    assert_eq!(reason(&code), "recursion: devices of this kind have no stack of calls in again");
}

#[test]
fn recursion_through_an_address_is_refused() {
    let code = format!(
        "define void @k{BEGIN}call void @again(i64 %i, ptr %out)\nret void\n}}
define internal void @again(i64 %n, ptr %p) noinline {{
  store ptr @again, ptr %p
  %f = load volatile ptr, ptr %p
  call void %f(i64 %n, ptr %p)
  ret void\n}}\n"
    );
    assert_eq!(reason(&code), "recursion: devices of this kind have no stack of calls in again");
}

#[test]
fn functions_without_code_are_refused_also_by_their_address() {
    let code = format!(
        "@f = private constant ptr @there\ndeclare void @there()
define void @k{BEGIN}%f = load volatile ptr, ptr @f\ncall void %f()\nret void\n}}\n"
    );
    assert!(reason(&code).starts_with("it calls `there`, which has no code for devices"), "{}", reason(&code));
}

#[test]
fn sizes_that_are_not_known_or_not_possible_are_refused() {
    let array = format!("define void @k{BEGIN}%a = alloca i8, i64 %i\nstore i8 1, ptr %a\nret void\n}}\n");
    assert!(reason(&array).starts_with("a local array whose size"), "{}", reason(&array));
    let wide = format!("define void @k{BEGIN}%a = load i256, ptr %in\nstore i256 %a, ptr %out\nret void\n}}\n");
    assert_eq!(reason(&wide), "an integer of 256 bits in k");
}

#[test]
fn only_what_is_used_is_required() {
    let context = context();
    let requirements =
        |body: &str| translated(&context, &format!("define void @k{BEGIN}{body}\nret void\n}}\n")).requirements;
    assert_eq!(requirements("store float 1.0, ptr %out"), [""; 0]);
    assert_eq!(requirements("store double 1.0, ptr %out"), ["fp64"]);
    assert_eq!(requirements("store half 1.0, ptr %out"), ["fp16"]);
    assert_eq!(requirements("%x = atomicrmw add ptr %out, i64 1 monotonic"), ["atomic64"]);
    assert_eq!(requirements("%x = atomicrmw add ptr %out, i32 1 monotonic"), [""; 0]);
}
