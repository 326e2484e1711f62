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
    // What exceeds a limit of the pass that makes loops of recursion has a note.
    let noted = code.replace("noinline", "noinline \"oxisycl-limit\"=\"it is called from 5 places\"");
    let expected = "recursion: devices of this kind have no stack of calls; it is called from 5 places in again";
    assert_eq!(reason(&noted), expected);
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

/// Only the library's code, and methods that give a formatting error, may be cut off where they are too deep in a message.
#[test]
fn recursion_that_only_looks_like_formatting_is_refused() {
    let begin = "_ZN43_$LT$app..X$u20$as$u20$core..fmt..Debug$GT$3fmt";
    for (name, result) in [("4deep", "i1"), ("4deep", "i32"), ("", "i32")] {
        let name = format!("\"{begin}{name}17h0123456789abcdefE\"");
        let code = format!(
            "define void @k{BEGIN}%x = call {result} @{name}(ptr %out, ptr %out)\nret void\n}}
define internal {result} @{name}(ptr %n, ptr %p) noinline {{
  store ptr @{name}, ptr %p
  %f = load volatile ptr, ptr %p
  %r = call {result} %f(ptr %n, ptr %p)
  ret {result} %r\n}}\n"
        );
        assert!(reason(&code).starts_with("recursion: devices of this kind have no stack"), "{}", reason(&code));
    }
    // A method to which other functions lead back can say itself that it failed. Only a message tells that from any other failure.
    let method = format!("\"{begin}17h0123456789abcdefE\"");
    let code = |first: &str| {
        format!(
            "define void @k{BEGIN}%x = call i1 {first}(ptr %out, ptr %out)\nret void\n}}
define internal i1 @__oxisycl_print_formatted(ptr %n, ptr %p) noinline {{ %r = call i1 @{method}(ptr %n, ptr %p) ret i1 %r }}
define internal i1 @other(ptr %n, ptr %p) noinline {{ %r = call i1 @{method}(ptr %n, ptr %p) ret i1 %r }}
define internal i1 @{method}(ptr %n, ptr %p) noinline {{
  store ptr @other, ptr %p
  %f = load volatile ptr, ptr %p
  %r = call i1 %f(ptr %n, ptr %p)
  ret i1 %r\n}}\n"
        )
    };
    let context = context();
    assert!(try_translate(&context, &code("@__oxisycl_print_formatted")).is_ok());
    let outside = reason(&code(&format!("@{method}")));
    assert!(outside.starts_with("recursion: devices of this kind have no stack"), "{outside}");
}

/// A closure of a user's may be inlined into the library's code, and call what gives a truth value.
#[test]
fn a_users_call_within_the_librarys_code_is_not_taken_for_a_formatters() {
    let writer = "_ZN43_$LT$app..W$u20$as$u20$core..fmt..Write$GT$9write_str17h0123456789abcdefE";
    let code = |called: &str| {
        format!(
            "define void @k{BEGIN}call void @__oxisycl_print_formatted(ptr %out, ptr %out)\nret void\n}}
define internal void @__oxisycl_print_formatted(ptr %n, ptr %p) noinline {{ %r = call i1 @\"{called}\"(ptr %n, ptr %p) ret void }}
define internal i1 @\"{called}\"(ptr %n, ptr %p) noinline {{
  %r = call i1 @\"core::fmt::Formatter::pad\"(ptr %n, ptr %p)
  ret i1 %r\n}}
define internal i1 @\"core::fmt::Formatter::pad\"(ptr %n, ptr %p) noinline {{
  store ptr @\"{called}\", ptr %p
  %f = load volatile ptr, ptr %p
  %r = call i1 %f(ptr %n, ptr %p)
  ret i1 %r\n}}\n"
        )
    };
    let context = context();
    assert!(try_translate(&context, &code(writer)).is_ok());
    let refused = reason(&code("app::is_odd"));
    assert!(refused.starts_with("recursion: devices of this kind have no stack"), "{refused}");
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
