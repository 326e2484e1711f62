//! Removes barriers that order nothing.
//!
//! A barrier is for accesses of one work-item before it and of another one behind it. A barrier is dropped if no work-item has accessed
//! memory that others access since the barrier before it, or since the kernel began. It is also dropped if none will, on any path to the
//! kernel's end. Phases over private values, and the last phase of a kernel, end with such barriers.
//!
//! Looks at what the code accesses, whether it was borrowed or captured. No other work-item writes variables and constant memory. Every other access counts, and so
//! does every call of something unknown. Meetings, which count who comes, are barriers here and stay.

use rustc_hash::FxHashMap;

use crate::analyses::uniformity::{COMPUTE, bases};
use crate::builtin_table::LAUNCH;
use crate::codegen::intrinsics::{BARRIERS, PURE};
use crate::llvm::{Block, Module, Opcode, Value, ValueKind};
use crate::passes::early_exits;
use crate::passes::thread_coarsening;

/// Removes such barriers from a kernel.
pub(crate) fn drop(module: &Module<'_>, kernel: Value<'_>) {
    if !BARRIERS.iter().any(|name| module.function(name).is_some_and(Value::is_used)) {
        return;
    }
    let flow = Flow::of(kernel);
    // One way after the other: two barriers without an access between them do not need each other, and one of them is needed.
    flow.idle_behind().into_iter().for_each(Value::erase);
    flow.idle_before().into_iter().for_each(Value::erase);
}

/// The effect of an instruction on barriers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Barrier,
    Meeting,
    Access,
    Other,
}

struct Flow<'c> {
    blocks: Vec<Block<'c>>,
    successors: Vec<Vec<usize>>,
}

impl<'c> Flow<'c> {
    fn of(kernel: Value<'c>) -> Self {
        let blocks = kernel.blocks();
        let numbers: FxHashMap<Block<'c>, usize> = blocks.iter().enumerate().map(|(n, block)| (*block, n)).collect();
        let successors =
            blocks.iter().map(|block| block.successors().iter().map(|next| numbers[next]).collect()).collect();
        Self { blocks, successors }
    }

    /// Barriers without an access since the previous barrier.
    fn idle_behind(&self) -> Vec<Value<'c>> {
        let mut accessed = vec![false; self.blocks.len()];
        let through = |block: usize, mut accessed: bool, idle: &mut Vec<Value<'c>>| {
            for instruction in self.blocks[block].instructions() {
                match kind(instruction) {
                    Kind::Access => accessed = true,
                    Kind::Barrier if !accessed => idle.push(instruction),
                    Kind::Barrier | Kind::Meeting => accessed = false,
                    Kind::Other => (),
                }
            }
            accessed
        };
        loop {
            let mut changed = false;
            for block in 0..self.blocks.len() {
                if through(block, accessed[block], &mut Vec::new()) {
                    for next in &self.successors[block] {
                        changed |= !std::mem::replace(&mut accessed[*next], true);
                    }
                }
            }
            if !changed {
                break;
            }
        }
        let mut idle = Vec::new();
        for (block, accessed) in accessed.into_iter().enumerate() {
            through(block, accessed, &mut idle);
        }
        idle
    }

    /// Barriers without an access on any path to the end.
    fn idle_before(&self) -> Vec<Value<'c>> {
        let mut accesses = vec![false; self.blocks.len()];
        let back_through = |block: usize, accesses: &[bool], idle: &mut Vec<Value<'c>>| {
            let mut accessed = self.successors[block].iter().any(|next| accesses[*next]);
            for instruction in self.blocks[block].instructions().into_iter().rev() {
                match kind(instruction) {
                    Kind::Access => accessed = true,
                    Kind::Barrier if !accessed => idle.push(instruction),
                    Kind::Barrier | Kind::Meeting | Kind::Other => (),
                }
            }
            accessed
        };
        loop {
            let mut changed = false;
            for block in (0..self.blocks.len()).rev() {
                if !accesses[block] && back_through(block, &accesses, &mut Vec::new()) {
                    accesses[block] = true;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let mut idle = Vec::new();
        for block in 0..self.blocks.len() {
            back_through(block, &accesses, &mut idle);
        }
        idle
    }
}

fn kind(instruction: Value<'_>) -> Kind {
    match instruction.opcode() {
        Some(Opcode::LOAD) if instruction.is_atomic() || instruction.is_volatile() => Kind::Access,
        Some(Opcode::LOAD) if instruction.has_metadata(thread_coarsening::CONSTANT) => Kind::Other,
        Some(Opcode::LOAD) => access(instruction.operand(0), true),
        Some(Opcode::STORE) if instruction.is_atomic() || instruction.is_volatile() => Kind::Access,
        Some(Opcode::STORE) => access(instruction.operand(1), false),
        Some(Opcode::ATOMIC_RMW | Opcode::ATOMIC_CMP_XCHG | Opcode::FENCE) => Kind::Access,
        Some(Opcode::CALL) => called(instruction),
        Some(Opcode::INVOKE) => Kind::Access,
        _ => Kind::Other,
    }
}

/// The effect of an access to an address. A kernel's arguments are the launch and its captures, which nothing writes.
fn access(address: Value<'_>, reads: bool) -> Kind {
    let is_own = |base: Value<'_>| {
        let is_constant = base.kind() == ValueKind::Argument
            || (base.kind() == ValueKind::GlobalVariable && base.is_constant_global())
            || base.callee().is_some_and(|callee| callee.name() == LAUNCH);
        base.is(Opcode::ALLOCA) || (reads && is_constant)
    };
    if bases(address).into_iter().all(is_own) { Kind::Other } else { Kind::Access }
}

fn called(call: Value<'_>) -> Kind {
    let Some(callee) = call.callee().filter(|callee| callee.kind() == ValueKind::Function) else {
        return Kind::Access;
    };
    let name = callee.name();
    if BARRIERS.contains(&name) {
        return Kind::Barrier;
    }
    if name == early_exits::MEETING {
        return Kind::Meeting;
    }
    let arguments = call.arguments();
    if name.starts_with("llvm.memset.") {
        return access(arguments[0], false);
    }
    if name.starts_with("llvm.memcpy.") || name.starts_with("llvm.memmove.") {
        let is_own = access(arguments[0], false) == Kind::Other && access(arguments[1], true) == Kind::Other;
        return if is_own { Kind::Other } else { Kind::Access };
    }
    let is_pure = [LAUNCH].iter().chain(&PURE).chain(COMPUTE).any(|prefix| name.starts_with(prefix));
    if is_pure { Kind::Other } else { Kind::Access }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    /// Which barriers of a kernel are left, by the numbers of the lines that say `barrier`.
    fn left(body: &str) -> Vec<usize> {
        let context = context();
        let mut n = 0;
        let text = format!(
            "declare void @{}(i32) convergent
            declare i1 @{}(i32, i32) convergent
            declare void @unknown()
            @tile = internal addrspace(3) global i32 undef
            define void @k(ptr %captures, i1 %c) {{
                %own = alloca [8 x i32]
                %global = load ptr, ptr %captures
                {}
                ret void
            }}",
            BARRIERS[0],
            early_exits::MEETING,
            body.lines()
                .map(|line| if line.trim() == "barrier" {
                    n += 1;
                    format!("call void @{}(i32 {})\n", BARRIERS[0], n - 1)
                } else {
                    format!("{line}\n")
                })
                .collect::<String>()
        );
        let module = module(&context, &text);
        let kernel = module.function("k").expect("the kernel");
        drop(&module, kernel);
        module.verify("idle barriers").expect("a valid module");
        let calls = kernel.instructions().into_iter().filter(|call| kind(*call) == Kind::Barrier);
        calls.filter_map(|call| call.arguments()[0].integer()).map(|number| number as usize).collect()
    }

    const READ: &str = "%r = load i32, ptr %global";
    const WRITE: &str = "store i32 1, ptr %global";

    #[test]
    fn what_orders_accesses_stays() {
        assert_eq!(left(&format!("{WRITE}\nbarrier\n{READ}")), [0]);
        assert_eq!(left(&format!("{READ}\nbarrier\n{WRITE}")), [0]);
        assert_eq!(left(&format!("fence seq_cst\nbarrier\n{WRITE}")), [0]);
        assert_eq!(left(&format!("call void @unknown()\nbarrier\n{WRITE}")), [0]);
        // On one way only.
        let way = format!("br i1 %c, label %a, label %b\na:\n{WRITE}\nbr label %b\nb:\nbarrier\n{READ}");
        assert_eq!(left(&way), [0]);
        // From one turn of a loop to the next.
        let turns = format!("br label %a\na:\nbarrier\n{READ}\n{WRITE}\nbr i1 %c, label %a, label %b\nb:");
        assert_eq!(left(&turns), [0]);
    }

    /// An atomic access counts whatever its address: of what was borrowed, of a tile, and even of what no other access changes.
    #[test]
    fn what_orders_atomic_accesses_stays() {
        for pointer in ["ptr %global", "ptr addrspacecast (ptr addrspace(3) @tile to ptr)", "ptr %captures", "ptr %own"]
        {
            let accesses = [
                format!("%a = atomicrmw add {pointer}, i32 1 monotonic"),
                format!("%a = load atomic i32, {pointer} monotonic, align 4"),
                format!("store atomic i32 1, {pointer} monotonic, align 4"),
                format!("%a = cmpxchg {pointer}, i32 0, i32 1 monotonic monotonic"),
            ];
            for access in accesses {
                assert_eq!(left(&format!("{WRITE}\nbarrier\n{access}")), [0], "{access}");
                assert_eq!(left(&format!("{access}\nbarrier\n{READ}")), [0], "{access}");
                // Nothing before or behind it.
                assert_eq!(left(&format!("{access}\nbarrier")), [], "{access}");
                assert_eq!(left(&format!("barrier\n{access}")), [], "{access}");
            }
        }
    }

    #[test]
    fn what_orders_nothing_goes() {
        assert_eq!(left(&format!("barrier\n{WRITE}")), []);
        assert_eq!(left(&format!("{WRITE}\nbarrier")), []);
        assert_eq!(left(&format!("store i32 1, ptr %own\nbarrier\n%v = load i32, ptr %own\n{WRITE}")), []);
        assert_eq!(left(&format!("%v = load i32, ptr %captures\nbarrier\n{WRITE}")), []);
        assert_eq!(left(&format!("%v = load i32, ptr %global, !invariant.load !{{}}\nbarrier\n{WRITE}")), []);
        // One of two.
        assert_eq!(left(&format!("{WRITE}\nbarrier\nstore i32 1, ptr %own\nbarrier\n{READ}")), [0]);
        let ends = format!("{WRITE}\nbr i1 %c, label %a, label %b\na:\nbarrier\nbr label %b\nb:");
        assert_eq!(left(&ends), []);
    }

    #[test]
    fn meetings_stay_and_are_barriers() {
        let meeting = format!("%all = call i1 @{}(i32 32, i32 0)", early_exits::MEETING);
        assert_eq!(left(&format!("{WRITE}\n{meeting}\nbarrier\n{READ}")), []);
        assert_eq!(left(&format!("{WRITE}\nbarrier\n{meeting}\n{READ}")), [0]);
    }
}
