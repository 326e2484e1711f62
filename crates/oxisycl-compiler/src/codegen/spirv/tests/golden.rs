//! The text of a few modules, kept beside the tests. `BLESS=1` writes it anew.

use rspirv::binary::Disassemble;
use rspirv::dr::Module;

use super::support::{BEGIN, context, translated, validated};

/// The assembly of a module.
pub(super) fn text(module: &Module) -> String {
    module.disassemble()
}

fn check(name: &str, code: &str) {
    let context = context();
    let translation = translated(&context, code);
    let bytes = validated(&translation.module);
    assert_eq!(bytes, validated(&translated(&context, code).module), "the same bytes again");
    let found = text(&translation.module) + "\n";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/codegen/spirv/tests/golden")
        .join(name)
        .with_extension("spvasm");
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
        std::fs::write(&path, &found).expect("the file");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{} differs: run with BLESS=1 if that is right", path.display());
}

#[test]
fn a_kernel_over_an_array() {
    let code = format!(
        "define void @k{BEGIN}  %offset = mul i64 %i, 4
  %pa = getelementptr inbounds i8, ptr %in, i64 %offset
  %po = getelementptr inbounds i8, ptr %out, i64 %offset
  %a = load float, ptr %pa, align 4
  %s = fmul float %a, 2.0
  store float %s, ptr %po, align 4
  ret void\n}}\n"
    );
    check("array", &code);
}

#[test]
fn a_loop_with_a_condition() {
    let code = format!(
        "define void @k{BEGIN}  br label %head
head:
  %n = phi i32 [ 0, %0 ], [ %next, %more ]
  %sum = phi i64 [ 0, %0 ], [ %added, %more ]
  %c = icmp ult i32 %n, 10
  br i1 %c, label %more, label %end
more:
  %wide = zext i32 %n to i64
  %added = add i64 %sum, %wide
  %next = add i32 %n, 1
  br label %head
end:
  store i64 %sum, ptr %out, align 8
  ret void\n}}\n"
    );
    check("loop", &code);
}

#[test]
fn functions_that_end_the_work_item_and_cut_off_what_they_format() {
    let code = format!(
        "declare void @oxisycl.end_work_item() noreturn
declare i1 @oxisycl.spirv.was_cut_off()
define void @k{BEGIN}  %bad = icmp ugt i64 %i, 3
  br i1 %bad, label %panics, label %fine
panics:
  call void @__oxisycl_record_panic_formatted(ptr %out)
  call void @oxisycl.end_work_item()
  unreachable
fine:
  ret void\n}}
define internal void @__oxisycl_record_panic_formatted(ptr %out) noinline {{
  %failed = call i1 @\"<app::Inner as core::fmt::Debug>::fmt\"(ptr %out)
  %cut = call i1 @oxisycl.spirv.was_cut_off()
  %text = select i1 %cut, i8 1, i8 2
  store i8 %text, ptr %out
  ret void\n}}
define internal i1 @\"<app::Inner as core::fmt::Debug>::fmt\"(ptr %out) noinline {{
  %n = load volatile i8, ptr %out
  %again = icmp eq i8 %n, 0
  br i1 %again, label %inner, label %panics
inner:
  %r = call i1 @\"<app::Inner as core::fmt::Debug>::fmt\"(ptr %out)
  ret i1 %r
panics:
  call void @__oxisycl_record_panic_formatted(ptr %out)
  call void @oxisycl.end_work_item()
  unreachable\n}}\n"
    );
    check("formatting", &code);
}

#[test]
fn bf16_is_kept_as_bits() {
    let code = format!(
        "define void @k{BEGIN}  %a = load bfloat, ptr %in, align 2
  %s = fadd bfloat %a, %a
  store bfloat %s, ptr %out, align 2
  ret void\n}}\n"
    );
    check("bfloat16", &code);
}
