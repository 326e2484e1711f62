; passes: late-checks
; The address and the number that is stored come before the check, and the comparison right before its branch.
declare void @record(i64)
define void @k(ptr addrspace(1) %p, i64 %i, i64 %n, ptr addrspace(1) %q) {
                %fails = icmp uge i64 %i, %n
                %more = add i64 %i, 5
                br i1 %fails, label %bad, label %go
            go:
                %at = getelementptr i64, ptr addrspace(1) %q, i64 %i
                %x = load i64, ptr addrspace(1) %at
                %sum = add i64 %x, %more
                store i64 %sum, ptr addrspace(1) %p
                ret void
            bad:
                call void @record(i64 %i)
                unreachable
            }
