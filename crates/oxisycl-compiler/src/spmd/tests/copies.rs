//! Copies of memory, which lanes make one after the other.

use super::bodies::body;
use super::check;

const DECLARED: &str = "
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
";

/// Each lane copies and fills memory of its own, and only if it is active.
#[test]
fn variables_that_are_filled_and_copied() {
    let own = "%mine = alloca [4 x i32], align 8\n %other = alloca [4 x i32], align 8\n %first =";
    let text = body(
        "call void @llvm.memset.p0.i64(ptr %mine, i8 7, i64 16, i1 false)
         %u = load i32, ptr %a
         %k = and i32 %u, 3
         %k64 = zext i32 %k to i64
         %p = getelementptr inbounds i32, ptr %mine, i64 %k64
         store i32 %u, ptr %p
         call void @llvm.memcpy.p0.p0.i64(ptr align 4 %other, ptr align 8 %mine, i64 16, i1 false)
         %is_odd = trunc i32 %u to i1
         br i1 %is_odd, label %odd, label %end
         odd:
         %behind = getelementptr inbounds i32, ptr %other, i64 1
         call void @llvm.memmove.p0.p0.i64(ptr align 4 %behind, ptr align 8 %other, i64 12, i1 false)
         call void @llvm.memset.p0.i64(ptr align 4 %o, i8 5, i64 4, i1 false)
         br label %end
         end:
         %q = getelementptr inbounds i32, ptr %other, i64 %k64
         %r = load i32, ptr %q
         %r3 = getelementptr inbounds i32, ptr %other, i64 3
         %s = load i32, ptr %r3
         %t = add i32 %r, %s
         %to = getelementptr inbounds i32, ptr %o, i64 70
         store i32 %t, ptr %to
         ret void",
    );
    check(&(text.replacen("%first =", own, 1) + DECLARED));
}
