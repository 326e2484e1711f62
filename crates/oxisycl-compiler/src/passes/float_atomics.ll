; Sums of floats by a loop, for the policy `strict`. A failed exchange loads without an order, which the number 0 says.
; The first load may be of any value: only the exchange decides. `float_atomics.rs` adds the exchanges.

define float @oxisycl.loop.atomic_add_f32(ptr %place, float %value, i32 %order, i32 %scope) {
begin:
  %first = load atomic i32, ptr %place monotonic, align 4
  br label %try
try:
  %expected = phi i32 [ %first, %begin ], [ %seen, %try ]
  %old = bitcast i32 %expected to float
  %sum = fadd float %old, %value
  %new = bitcast float %sum to i32
  %seen = call i32 @oxisycl.loop.atomic_compare_exchange_u32(ptr %place, i32 %expected, i32 %new, i32 %order, i32 0, i32 %scope)
  %is_done = icmp eq i32 %seen, %expected
  br i1 %is_done, label %end, label %try
end:
  ret float %old
}

define double @oxisycl.loop.atomic_add_f64(ptr %place, double %value, i32 %order, i32 %scope) {
begin:
  %first = load atomic i64, ptr %place monotonic, align 8
  br label %try
try:
  %expected = phi i64 [ %first, %begin ], [ %seen, %try ]
  %old = bitcast i64 %expected to double
  %sum = fadd double %old, %value
  %new = bitcast double %sum to i64
  %seen = call i64 @oxisycl.loop.atomic_compare_exchange_u64(ptr %place, i64 %expected, i64 %new, i32 %order, i32 0, i32 %scope)
  %is_done = icmp eq i64 %seen, %expected
  br i1 %is_done, label %end, label %try
end:
  ret double %old
}
