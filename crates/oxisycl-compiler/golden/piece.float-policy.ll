; A strict kernel, a fast one and one without a choice.
declare void @_ZN14oxisycl_device7builtin12float_strict17h0123456789abcdefE()
declare void @_ZN14oxisycl_device7builtin10float_fast17h0123456789abcdefE()
@table = internal constant [1 x ptr] [ptr @shared]
define internal float @alone(float %x) { %r = fmul float %x, %x ret float %r }
define internal float @shared(float %x) { %r = fmul float %x, %x ret float %r }
define void @wrapped() { call void @_ZN14oxisycl_device7builtin12float_strict17h0123456789abcdefE() ret void }
define float @strict(float %x) {
    call void @wrapped()
    %f = load ptr, ptr @table
    %r = call float %f(float %x)
    ret float %r
}
define float @fast(float %x) {
    call void @_ZN14oxisycl_device7builtin10float_fast17h0123456789abcdefE()
    %a = call float @alone(float %x)
    %b = call float @shared(float %x)
    %r = fadd float %a, %b
    ret float %r
}
define float @plain(float %x) { %r = fadd float %x, 1.0 ret float %r }
