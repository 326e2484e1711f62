; Atomic sums of floats, without an order. Two forms of each: the device's own operation, and a loop that rounds as every sum does.

define float @oxisycl.native.atomic_add_f32(ptr %place, float %value) {
  %old = atomicrmw fadd ptr %place, float %value monotonic
  ret float %old
}

define double @oxisycl.native.atomic_add_f64(ptr %place, double %value) {
  %old = atomicrmw fadd ptr %place, double %value monotonic
  ret double %old
}

define float @oxisycl.loop.atomic_add_f32(ptr %place, float %value) {
begin:
  %first = load atomic i32, ptr %place monotonic, align 4
  br label %try
try:
  %expected = phi i32 [ %first, %begin ], [ %seen, %try ]
  %old = bitcast i32 %expected to float
  %sum = fadd float %old, %value
  %new = bitcast float %sum to i32
  %pair = cmpxchg ptr %place, i32 %expected, i32 %new monotonic monotonic
  %seen = extractvalue { i32, i1 } %pair, 0
  %is_done = extractvalue { i32, i1 } %pair, 1
  br i1 %is_done, label %end, label %try
end:
  ret float %old
}

define double @oxisycl.loop.atomic_add_f64(ptr %place, double %value) {
begin:
  %first = load atomic i64, ptr %place monotonic, align 8
  br label %try
try:
  %expected = phi i64 [ %first, %begin ], [ %seen, %try ]
  %old = bitcast i64 %expected to double
  %sum = fadd double %old, %value
  %new = bitcast double %sum to i64
  %pair = cmpxchg ptr %place, i64 %expected, i64 %new monotonic monotonic
  %seen = extractvalue { i64, i1 } %pair, 0
  %is_done = extractvalue { i64, i1 } %pair, 1
  br i1 %is_done, label %end, label %try
end:
  ret double %old
}
