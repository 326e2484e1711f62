; passes: cpu-features
; A question for a feature of the processor, and its instruction.
@cache = internal global i64 0
define internal i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 %bit) {
    %cached = load atomic i64, ptr @cache monotonic, align 8
    %known = icmp ne i64 %cached, 0
    ret i1 %known
}
define i32 @f(i32 %x) {
    %fast = call i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 29)
    %ids = call { i32, i64, i32, i32 } asm sideeffect inteldialect "mov $0:r, rbx\0Acpuid\0Axchg $0:r, rbx", "=&{ax},=&r,=&{cx},=&{dx}"()
    %id = extractvalue { i32, i64, i32, i32 } %ids, 0
    %r = select i1 %fast, i32 %x, i32 %id
    ret i32 %r
}
