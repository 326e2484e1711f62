; Bodies of item loops as they are before they are vectorised. `cost.txt` has their estimates.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

declare float @llvm.fma.f32(float, float, float)
declare float @llvm.sqrt.f32(float)
declare i8 @llvm.umin.i8(i8, i8)
declare float @expf(float)
declare void @fails(i64) noreturn

; c[x] = a[x] + s * b[x], with a check.
define void @triad(ptr %env, i64 %x) {
  %a = load ptr, ptr %env
  %b.at = getelementptr i8, ptr %env, i64 8
  %b = load ptr, ptr %b.at
  %c.at = getelementptr i8, ptr %env, i64 16
  %c = load ptr, ptr %c.at
  %n.at = getelementptr i8, ptr %env, i64 24
  %n = load i64, ptr %n.at
  %ok = icmp ult i64 %x, %n
  br i1 %ok, label %in, label %bad
in:
  %pa = getelementptr inbounds float, ptr %a, i64 %x
  %va = load float, ptr %pa
  %pb = getelementptr inbounds float, ptr %b, i64 %x
  %vb = load float, ptr %pb
  %m = fmul float %vb, 3.0
  %r = fadd float %va, %m
  %pc = getelementptr inbounds float, ptr %c, i64 %x
  store float %r, ptr %pc
  ret void
bad:
  call void @fails(i64 %x)
  unreachable
}

; Forces of n bodies: (x, y, z, mass) of each in a loop for all.
define void @nbody(ptr %env, i64 %x) {
start:
  %p = load ptr, ptr %env
  %n.at = getelementptr i8, ptr %env, i64 8
  %n = load i64, ptr %n.at
  %out.at = getelementptr i8, ptr %env, i64 16
  %out = load ptr, ptr %out.at
  %own = getelementptr inbounds [4 x float], ptr %p, i64 %x
  %own.y = getelementptr inbounds i8, ptr %own, i64 4
  %own.z = getelementptr inbounds i8, ptr %own, i64 8
  %ox = load float, ptr %own
  %oy = load float, ptr %own.y
  %oz = load float, ptr %own.z
  br label %head
head:
  %j = phi i64 [ 0, %start ], [ %next, %head ]
  %ax = phi float [ 0.0, %start ], [ %ax2, %head ]
  %ay = phi float [ 0.0, %start ], [ %ay2, %head ]
  %az = phi float [ 0.0, %start ], [ %az2, %head ]
  %q = getelementptr inbounds [4 x float], ptr %p, i64 %j
  %q.y = getelementptr inbounds i8, ptr %q, i64 4
  %q.z = getelementptr inbounds i8, ptr %q, i64 8
  %q.m = getelementptr inbounds i8, ptr %q, i64 12
  %jx = load float, ptr %q
  %jy = load float, ptr %q.y
  %jz = load float, ptr %q.z
  %jm = load float, ptr %q.m
  %dx = fsub float %jx, %ox
  %dy = fsub float %jy, %oy
  %dz = fsub float %jz, %oz
  %d0 = call float @llvm.fma.f32(float %dx, float %dx, float 0x3F847AE140000000)
  %d1 = call float @llvm.fma.f32(float %dy, float %dy, float %d0)
  %d2 = call float @llvm.fma.f32(float %dz, float %dz, float %d1)
  %root = call float @llvm.sqrt.f32(float %d2)
  %cube = fmul float %d2, %root
  %f = fdiv float %jm, %cube
  %ax2 = call float @llvm.fma.f32(float %dx, float %f, float %ax)
  %ay2 = call float @llvm.fma.f32(float %dy, float %f, float %ay)
  %az2 = call float @llvm.fma.f32(float %dz, float %f, float %az)
  %next = add nuw i64 %j, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %head
end:
  %o = getelementptr inbounds [4 x float], ptr %out, i64 %x
  store float %ax2, ptr %o
  %o.y = getelementptr inbounds i8, ptr %o, i64 4
  store float %ay2, ptr %o.y
  %o.z = getelementptr inbounds i8, ptr %o, i64 8
  store float %az2, ptr %o.z
  ret void
}

define void @mandelbrot(ptr %env, i64 %x) {
start:
  %out = load ptr, ptr %env
  %y.at = getelementptr i8, ptr %env, i64 8
  %ci = load float, ptr %y.at
  %i32 = trunc i64 %x to i32
  %xf = uitofp i32 %i32 to float
  %cr = call float @llvm.fma.f32(float %xf, float 0x3F647AE140000000, float -2.0)
  br label %head
head:
  %k = phi i32 [ 0, %start ], [ %next, %body ]
  %re = phi float [ 0.0, %start ], [ %re2, %body ]
  %im = phi float [ 0.0, %start ], [ %im2, %body ]
  %rr = fmul float %re, %re
  %ii = fmul float %im, %im
  %size = fadd float %rr, %ii
  %out.of = fcmp ogt float %size, 4.0
  br i1 %out.of, label %end, label %body
body:
  %diff = fsub float %rr, %ii
  %re2 = fadd float %diff, %cr
  %twice = fmul float %re, 2.0
  %prod = fmul float %twice, %im
  %im2 = fadd float %prod, %ci
  %next = add nuw i32 %k, 1
  %done = icmp eq i32 %next, 256
  br i1 %done, label %end, label %head
end:
  %count = phi i32 [ %k, %head ], [ 256, %body ]
  %o = getelementptr inbounds i32, ptr %out, i64 %x
  store i32 %count, ptr %o
  ret void
}

; out[y][x] of five neighbours, but at the border.
define void @stencil(ptr %env, i64 %x) {
start:
  %in = load ptr, ptr %env
  %out.at = getelementptr i8, ptr %env, i64 8
  %out = load ptr, ptr %out.at
  %w.at = getelementptr i8, ptr %env, i64 16
  %w = load i64, ptr %w.at
  %row.at = getelementptr i8, ptr %env, i64 24
  %row = load i64, ptr %row.at
  %last = add i64 %w, -1
  %here = add i64 %row, %x
  %pc = getelementptr inbounds float, ptr %in, i64 %here
  %c = load float, ptr %pc
  %l = icmp ne i64 %x, 0
  %r = icmp ult i64 %x, %last
  %inside = select i1 %l, i1 %r, i1 false
  br i1 %inside, label %mid, label %end
mid:
  %pl = getelementptr inbounds i8, ptr %pc, i64 -4
  %vl = load float, ptr %pl
  %pr = getelementptr inbounds i8, ptr %pc, i64 4
  %vr = load float, ptr %pr
  %up = sub i64 %here, %w
  %pu = getelementptr inbounds float, ptr %in, i64 %up
  %vu = load float, ptr %pu
  %down = add i64 %here, %w
  %pd = getelementptr inbounds float, ptr %in, i64 %down
  %vd = load float, ptr %pd
  %s1 = fadd float %vl, %vr
  %s2 = fadd float %vu, %vd
  %s3 = fadd float %s1, %s2
  %s4 = fmul float %s3, 0.125
  %s5 = call float @llvm.fma.f32(float %c, float 0.5, float %s4)
  br label %end
end:
  %v = phi float [ %c, %start ], [ %s5, %mid ]
  %po = getelementptr inbounds float, ptr %out, i64 %here
  store float %v, ptr %po
  ret void
}

; Nine pixels to the right, in a loop of a known length.
define void @blur(ptr %env, i64 %x) {
start:
  %in = load ptr, ptr %env
  %out.at = getelementptr i8, ptr %env, i64 8
  %out = load ptr, ptr %out.at
  %f.at = getelementptr i8, ptr %env, i64 16
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %next, %head ]
  %s = phi float [ 0.0, %start ], [ %s2, %head ]
  %at = add nuw i64 %x, %k
  %p = getelementptr inbounds float, ptr %in, i64 %at
  %v = load float, ptr %p
  %pf = getelementptr inbounds float, ptr %f.at, i64 %k
  %f = load float, ptr %pf
  %s2 = call float @llvm.fma.f32(float %v, float %f, float %s)
  %next = add nuw i64 %k, 1
  %done = icmp eq i64 %next, 9
  br i1 %done, label %end, label %head
end:
  %o = getelementptr inbounds float, ptr %out, i64 %x
  store float %s2, ptr %o
  ret void
}

; The product of a row of a sparse matrix and a vector.
define void @spmv(ptr %env, i64 %x) {
start:
  %rows = load ptr, ptr %env
  %cols.at = getelementptr i8, ptr %env, i64 8
  %cols = load ptr, ptr %cols.at
  %vals.at = getelementptr i8, ptr %env, i64 16
  %vals = load ptr, ptr %vals.at
  %v.at = getelementptr i8, ptr %env, i64 24
  %v = load ptr, ptr %v.at
  %out.at = getelementptr i8, ptr %env, i64 32
  %out = load ptr, ptr %out.at
  %pb = getelementptr inbounds i32, ptr %rows, i64 %x
  %b = load i32, ptr %pb
  %pe = getelementptr inbounds i8, ptr %pb, i64 4
  %e = load i32, ptr %pe
  %empty = icmp uge i32 %b, %e
  br i1 %empty, label %end, label %head
head:
  %k = phi i32 [ %b, %start ], [ %next, %head ]
  %s = phi float [ 0.0, %start ], [ %s2, %head ]
  %k64 = zext i32 %k to i64
  %pc = getelementptr inbounds i32, ptr %cols, i64 %k64
  %c = load i32, ptr %pc
  %c64 = zext i32 %c to i64
  %pa = getelementptr inbounds float, ptr %vals, i64 %k64
  %a = load float, ptr %pa
  %pv = getelementptr inbounds float, ptr %v, i64 %c64
  %w = load float, ptr %pv
  %s2 = call float @llvm.fma.f32(float %a, float %w, float %s)
  %next = add nuw i32 %k, 1
  %done = icmp eq i32 %next, %e
  br i1 %done, label %end, label %head
end:
  %r = phi float [ 0.0, %start ], [ %s2, %head ]
  %o = getelementptr inbounds float, ptr %out, i64 %x
  store float %r, ptr %o
  ret void
}

define void @histogram(ptr %env, i64 %x) {
  %in = load ptr, ptr %env
  %bins.at = getelementptr i8, ptr %env, i64 8
  %bins = load ptr, ptr %bins.at
  %p = getelementptr inbounds i8, ptr %in, i64 %x
  %v = load i8, ptr %p
  %w = zext i8 %v to i64
  %bin = getelementptr inbounds i32, ptr %bins, i64 %w
  %old = atomicrmw add ptr %bin, i32 1 monotonic
  ret void
}

define void @mathematics(ptr %env, i64 %x) {
  %in = load ptr, ptr %env
  %p = getelementptr inbounds float, ptr %in, i64 %x
  %v = load float, ptr %p
  %e = call float @expf(float %v) memory(none) willreturn nounwind
  %r = fmul float %e, 0.5
  store float %r, ptr %p
  ret void
}

define void @gather(ptr %env, i64 %x) {
  %in = load ptr, ptr %env
  %index.at = getelementptr i8, ptr %env, i64 8
  %index = load ptr, ptr %index.at
  %out.at = getelementptr i8, ptr %env, i64 16
  %out = load ptr, ptr %out.at
  %pi = getelementptr inbounds i32, ptr %index, i64 %x
  %i = load i32, ptr %pi
  %w = zext i32 %i to i64
  %p = getelementptr inbounds float, ptr %in, i64 %w
  %v = load float, ptr %p
  %o = getelementptr inbounds float, ptr %out, i64 %x
  store float %v, ptr %o
  ret void
}

; Many sums and products of one element.
define void @polynomial(ptr %env, i64 %x) {
start:
  %in = load ptr, ptr %env
  %p = getelementptr inbounds double, ptr %in, i64 %x
  %v = load double, ptr %p
  br label %head
head:
  %k = phi i32 [ 0, %start ], [ %next, %head ]
  %s = phi double [ 1.0, %start ], [ %s3, %head ]
  %s1 = fmul double %s, %v
  %s2 = fadd double %s1, 0.25
  %s3 = fsub double %s2, %v
  %next = add nuw i32 %k, 1
  %done = icmp eq i32 %next, 32
  br i1 %done, label %end, label %head
end:
  store double %s3, ptr %p
  ret void
}

; Divisions by numbers that differ.
define void @quotients(ptr %env, i64 %x) {
  %in = load ptr, ptr %env
  %p = getelementptr inbounds i32, ptr %in, i64 %x
  %v = load i32, ptr %p
  %d = or i32 %v, 1
  %q = udiv i32 1000000, %d
  store i32 %q, ptr %p
  ret void
}

; Bytes, some of which are stored.
define void @threshold(ptr %env, i64 %x) {
  %in = load ptr, ptr %env
  %p = getelementptr inbounds i8, ptr %in, i64 %x
  %v = load i8, ptr %p
  %low = icmp ult i8 %v, 40
  br i1 %low, label %then, label %end
then:
  %m = call i8 @llvm.umin.i8(i8 %v, i8 20)
  store i8 %m, ptr %p
  br label %end
end:
  ret void
}

; The sum of a row: the items' rows are far apart.
define void @rows(ptr %env, i64 %x) {
start:
  %in = load ptr, ptr %env
  %n.at = getelementptr i8, ptr %env, i64 8
  %n = load i64, ptr %n.at
  %out.at = getelementptr i8, ptr %env, i64 16
  %out = load ptr, ptr %out.at
  %row = mul i64 %x, %n
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %next, %head ]
  %s = phi i32 [ 0, %start ], [ %s2, %head ]
  %at = add i64 %row, %k
  %p = getelementptr inbounds i32, ptr %in, i64 %at
  %v = load i32, ptr %p
  %s2 = add i32 %s, %v
  %next = add nuw i64 %k, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %head
end:
  %o = getelementptr inbounds i32, ptr %out, i64 %x
  store i32 %s2, ptr %o
  ret void
}

; Vectors of three numbers, which get length 1.
define void @normalised(ptr %env, i64 %x) {
  %a = load ptr, ptr %env
  %b.at = getelementptr i8, ptr %env, i64 8
  %b = load ptr, ptr %b.at
  %p = getelementptr inbounds [12 x i8], ptr %a, i64 %x
  %p1 = getelementptr inbounds i8, ptr %p, i64 4
  %p2 = getelementptr inbounds i8, ptr %p, i64 8
  %v0 = load float, ptr %p
  %v1 = load float, ptr %p1
  %v2 = load float, ptr %p2
  %s0 = fmul float %v0, %v0
  %s1 = fmul float %v1, %v1
  %s2 = fmul float %v2, %v2
  %s01 = fadd float %s0, %s1
  %s = fadd float %s01, %s2
  %root = call float @llvm.sqrt.f32(float %s)
  %by = fdiv float 1.0, %root
  %r0 = fmul float %v0, %by
  %r1 = fmul float %v1, %by
  %r2 = fmul float %v2, %by
  %q = getelementptr inbounds [12 x i8], ptr %b, i64 %x
  %q1 = getelementptr inbounds i8, ptr %q, i64 4
  %q2 = getelementptr inbounds i8, ptr %q, i64 8
  store float %r0, ptr %q
  store float %r1, ptr %q1
  store float %r2, ptr %q2
  ret void
}
