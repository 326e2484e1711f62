; passes: bounds-check-merging
; Two checks in a row, of which the first that fails counts.
declare void @record(i64)
define void @k(ptr %launch, ptr %captures, i64 %i, ptr %p) {
                %count = load i64, ptr %launch
                %inside = icmp ult i64 %i, %count
                br i1 %inside, label %one, label %end
            one:
                %a_place = getelementptr i8, ptr %captures, i64 8
                %a = load i64, ptr %a_place, align 8
                %a_fails = icmp ugt i64 %i, %a
                br i1 %a_fails, label %bad, label %two
            two:
                %b_place = getelementptr i8, ptr %captures, i64 40
                %b = load i64, ptr %b_place, align 8, !noundef !0
                %b_fails = icmp ugt i64 %i, %b
                br i1 %b_fails, label %bad, label %go
            go:
                %sum = add i64 %a, %b
                store i64 %sum, ptr %p
                br label %end
            bad:
                %n = phi i64 [ %a, %one ], [ %b, %two ]
                call void @record(i64 %n)
                unreachable
            end:
                ret void
            }
            !0 = !{}
