//! Masks of lanes as numbers that are as wide as what the lanes compute with.
//!
//! Processors without registers for masks compare into vectors of the same width, and select by these. LLVM makes such code within a block. But a
//! `<8 x i1>` that comes from another block is eight numbers of 16 bits there. LLVM packs it at the end of a block, and unpacks it at each use.
//! So masks that live across blocks become `<8 x i32>` here, with all bits of a lane set or none. Only the sign is asked for, by `icmp slt`.
//!
//! Comes after LLVM's optimisations, which would take it back. Invariant: each lane of a mask has the value that it had.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::llvm::predicate::SIGNED_LESS;
use crate::llvm::{Builder, Module, Opcode, Type, TypeKind, Value};

/// The bits of a lane where no comparison says more.
const USUAL_BITS: u32 = 32;

/// Widens the masks of a module that live across blocks.
pub(crate) fn widen(module: &Module<'_>) {
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        for web in webs(function) {
            if web.lives_across_blocks() && web.leaves.iter().all(|leaf| can_be_widened(*leaf)) {
                Widened::new(module, function, &web).replace(&web);
            }
        }
        for comparison in function.instructions().into_iter().filter(|value| is_mask(*value)) {
            if let Some(bits) = compared_bits(comparison) {
                carry(module, comparison, bits);
            }
        }
    }
}

/// Has a comparison's result come to other blocks as numbers of so many bits.
fn carry(module: &Module<'_>, comparison: Value<'_>, bits: u32) {
    // A phi is one of masks that stay as they are.
    let users = once_each(far_users(comparison).filter(|user| !user.is(Opcode::PHI)));
    if users.is_empty() {
        return;
    }
    let context = module.context();
    let wide = Type::int(context, bits).vector(comparison.value_type().elements().1 as u32);
    let number = Builder::before(context, comparison.next()).cast(Opcode::SEXT, comparison, wide);
    for user in users {
        let mask = Builder::before(context, user).compare(SIGNED_LESS, number, wide.null());
        replace_operands(user, comparison, mask);
    }
}

/// The values in their order, each at its first place.
fn once_each<'c>(values: impl Iterator<Item = Value<'c>>) -> Vec<Value<'c>> {
    let mut seen = FxHashSet::default();
    values.filter(|value| seen.insert(*value)).collect()
}

/// Has an instruction use another value in the place of one.
fn replace_operands<'c>(user: Value<'c>, old: Value<'c>, new: Value<'c>) {
    for operand in 0..user.operands().len() as u32 {
        if user.operand(operand) == old {
            user.set_operand(operand, new);
        }
    }
}

/// Masks that are made of each other by phis, logic and selections.
#[derive(Default)]
struct Web<'c> {
    /// In the order of the function.
    members: Vec<Value<'c>>,
    /// What they are made of: comparisons, constants, and others.
    leaves: Vec<Value<'c>>,
}

impl Web<'_> {
    fn lives_across_blocks(&self) -> bool {
        let is_phi = |member: &Value<'_>| member.is(Opcode::PHI);
        let made = self.leaves.iter().filter(|leaf| !leaf.is_constant());
        self.members.iter().any(is_phi)
            || self.members.iter().chain(made).any(|value| far_users(*value).next().is_some())
    }

    /// The bits that most of the compared numbers have.
    fn bits(&self) -> u32 {
        let mut counts = [8, 16, 32, 64].map(|bits| (bits, 0));
        for leaf in &self.leaves {
            let bits = compared_bits(*leaf);
            counts.iter_mut().filter(|(of, _)| Some(*of) == bits).for_each(|(_, count)| *count += 1);
        }
        // The widest of equals.
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.filter(|(_, count)| *count > 0).map_or(USUAL_BITS, |(bits, _)| bits)
    }
}

/// The users of a value in other blocks than its own.
fn far_users<'c>(value: Value<'c>) -> impl Iterator<Item = Value<'c>> {
    value.users().into_iter().filter(move |user| user.block() != value.block())
}

/// The bits of the numbers that a comparison compares.
fn compared_bits(leaf: Value<'_>) -> Option<u32> {
    if !leaf.is(Opcode::INTEGER_COMPARISON) && !leaf.is(Opcode::FCMP) {
        return None;
    }
    match leaf.operand(0).value_type().elements().0.kind() {
        TypeKind::Integer(bits @ (8 | 16 | 32 | 64)) => Some(bits),
        TypeKind::Float => Some(32),
        TypeKind::Double | TypeKind::Pointer(_) => Some(64),
        _ => None,
    }
}

fn is_mask(value: Value<'_>) -> bool {
    value.value_type().kind() == TypeKind::Vector && value.value_type().elements().0.kind() == TypeKind::Integer(1)
}

/// The operands of a member that are masks of the web, by their numbers; `None` if the instruction is no member.
fn mask_operands(instruction: Value<'_>) -> Option<Vec<u32>> {
    if !is_mask(instruction) {
        return None;
    }
    match instruction.opcode()? {
        Opcode::PHI => Some((0..instruction.operands().len() as u32).collect()),
        Opcode::AND | Opcode::OR | Opcode::XOR => Some(vec![0, 1]),
        // Its condition may be a mask of another web.
        Opcode::SELECT => Some(vec![1, 2]),
        _ => None,
    }
}

/// Whether a number can be made of a value right behind it.
fn can_be_widened(leaf: Value<'_>) -> bool {
    leaf.is_constant() || leaf.opcode().is_some_and(|opcode| opcode != Opcode::INVOKE && opcode != Opcode::CALL_BRANCH)
}

/// The webs of a function.
fn webs(function: Value<'_>) -> Vec<Web<'_>> {
    let members: Vec<_> = function.instructions().into_iter().filter(|value| mask_operands(*value).is_some()).collect();
    let indices: FxHashMap<_, _> = members.iter().enumerate().map(|(index, member)| (*member, index)).collect();
    // The first member of each one's web, by way of others.
    let mut first: Vec<usize> = (0..members.len()).collect();
    fn find(first: &mut [usize], mut index: usize) -> usize {
        while first[index] != index {
            first[index] = first[first[index]];
            index = first[index];
        }
        index
    }
    for (index, member) in members.iter().enumerate() {
        for operand in mask_operands(*member).unwrap_or_default() {
            if let Some(&other) = indices.get(&member.operand(operand)) {
                let (a, b) = (find(&mut first, index), find(&mut first, other));
                first[a.max(b)] = a.min(b);
            }
        }
    }
    let mut webs: Vec<Web<'_>> = Vec::new();
    let mut numbers = FxHashMap::default();
    for (index, member) in members.iter().enumerate() {
        let number = *numbers.entry(find(&mut first, index)).or_insert_with(|| {
            webs.push(Web::default());
            webs.len() - 1
        });
        let web = &mut webs[number];
        web.members.push(*member);
        for operand in mask_operands(*member).unwrap_or_default() {
            let operand = member.operand(operand);
            if !indices.contains_key(&operand) && !web.leaves.contains(&operand) {
                web.leaves.push(operand);
            }
        }
    }
    webs
}

/// The numbers that stand for the masks of a web.
struct Widened<'m, 'c> {
    module: &'m Module<'c>,
    wide: Type<'c>,
    of: FxHashMap<Value<'c>, Value<'c>>,
}

impl<'m, 'c> Widened<'m, 'c> {
    fn new(module: &'m Module<'c>, function: Value<'c>, web: &Web<'c>) -> Self {
        let context = module.context();
        let lanes = web.members[0].value_type().elements().1 as u32;
        let wide = Type::int(context, web.bits()).vector(lanes);
        let mut widened = Self { module, wide, of: FxHashMap::default() };
        let entry = function.blocks()[0].instructions()[0];
        for leaf in &web.leaves {
            // A constant is extended by the builder itself.
            let behind = if leaf.is_constant() { entry } else { leaf.next() };
            let number = Builder::before(context, behind).cast(Opcode::SEXT, *leaf, wide);
            widened.of.insert(*leaf, number);
        }
        for phi in web.members.iter().filter(|member| member.is(Opcode::PHI)) {
            widened.of.insert(*phi, Builder::before(context, *phi).phi(wide, &[]));
        }
        widened
    }

    /// Replaces the members of the web.
    fn replace(mut self, web: &Web<'c>) {
        let mut left: Vec<_> = web.members.iter().copied().filter(|member| !member.is(Opcode::PHI)).collect();
        // What a member is made of comes before it, by way of blocks that may be listed behind its own.
        while !left.is_empty() {
            let n_before = left.len();
            left.retain(|member| !self.define(*member));
            if left.len() == n_before {
                // Made of each other, which is only where nothing gets to.
                self.of.extend(left.drain(..).map(|member| (member, self.wide.poison())));
            }
        }
        for phi in web.members.iter().filter(|member| member.is(Opcode::PHI)) {
            let incoming: Vec<_> = phi.incoming().into_iter().map(|(mask, from)| (self.of[&mask], from)).collect();
            self.of[phi].add_incoming(&incoming);
        }
        let members: FxHashSet<_> = web.members.iter().copied().collect();
        for member in &web.members {
            self.narrow_for_others(*member, &members);
        }
        for member in &web.members {
            member.replace_all_uses_with(member.value_type().poison());
            member.erase();
        }
    }

    /// Makes the number of a member, if those of its operands are there.
    fn define(&mut self, member: Value<'c>) -> bool {
        let operands = mask_operands(member).unwrap_or_default().into_iter();
        let numbers: Option<Vec<_>> = operands.map(|operand| self.of.get(&member.operand(operand)).copied()).collect();
        let Some([left, right]) = numbers.as_deref() else { return false };
        let builder = Builder::before(self.module.context(), member);
        let number = match member.opcode() {
            Some(Opcode::SELECT) => builder.select(member.operand(0), *left, *right),
            Some(opcode) => builder.binary(opcode, *left, *right),
            None => return false,
        };
        self.of.insert(member, number);
        true
    }

    /// Gives the mask to those who use it as such, in their own blocks.
    fn narrow_for_others(&self, member: Value<'c>, members: &FxHashSet<Value<'c>>) {
        for user in once_each(member.users().into_iter().filter(|user| !members.contains(user))) {
            let builder = Builder::before(self.module.context(), user);
            let mask = builder.compare(SIGNED_LESS, self.of[&member], self.wide.null());
            replace_operands(user, member, mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    fn widened(body: &str) -> String {
        let context = context();
        let text = format!(
            "declare void @use(<8 x i1>)\ndefine void @f(<8 x float> %x, <8 x double> %d, ptr %p, i1 %c) {{\n{body}\n}}"
        );
        let module = module(&context, &text);
        widen(&module);
        module.verify("wide masks").expect("a valid module");
        module.to_string()
    }

    /// A loop that lanes leave one by one.
    const LOOP: &str = "e: br label %h
        h: %live = phi <8 x i1> [ splat (i1 true), %e ], [ %next, %h ]
        %v = phi <8 x float> [ %x, %e ], [ %w, %h ]
        %w = fadd <8 x float> %v, %x
        %is = fcmp olt <8 x float> %w, splat (float 4.0)
        %next = and <8 x i1> %live, %is
        %bits = bitcast <8 x i1> %next to i8
        %none = icmp eq i8 %bits, 0
        br i1 %none, label %x1, label %h
        x1: store <8 x float> %w, ptr %p
        ret void";

    #[test]
    fn masks_across_blocks_have_the_width_of_what_is_compared() {
        let code = widened(LOOP);
        for expected in ["phi <8 x i32>", "sext <8 x i1> %is to <8 x i32>", "icmp slt <8 x i32>", "and <8 x i32>"] {
            assert!(code.contains(expected), "{expected}: {code}");
        }
        assert!(!code.contains("phi <8 x i1>") && !code.contains("and <8 x i1>"), "{code}");
        let of_doubles = LOOP.replace("float", "double").replace("%x,", "%d,").replace("%v, %x", "%v, %d");
        assert!(widened(&of_doubles).contains("phi <8 x i64>"));
    }

    #[test]
    fn masks_within_a_block_stay() {
        let code = widened(
            "%is = fcmp olt <8 x float> %x, splat (float 4.0)
            %other = fcmp ogt <8 x float> %x, splat (float 1.0)
            %both = and <8 x i1> %is, %other
            call void @use(<8 x i1> %both)
            ret void",
        );
        assert!(!code.contains("sext") && code.contains("and <8 x i1>"), "{code}");
    }

    #[test]
    fn a_mask_that_selects_masks_is_asked_for_its_signs() {
        let code = widened(
            "%a = fcmp olt <8 x float> %x, splat (float 4.0)
            %m = and <8 x i1> %a, splat (i1 true)
            %n = xor <8 x i1> %a, splat (i1 true)
            br i1 %c, label %t, label %u
            t: %s = select <8 x i1> %m, <8 x i1> %n, <8 x i1> zeroinitializer
            br label %u
            u: %r = phi <8 x i1> [ %n, %0 ], [ %s, %t ]
            call void @use(<8 x i1> %r)
            ret void",
        );
        assert!(code.contains("select <8 x i1> %") && code.contains("<8 x i32>"), "{code}");
        assert!(!code.contains("phi <8 x i1>") && !code.contains("poison"), "{code}");
    }

    #[test]
    fn masks_that_come_from_outside_stay() {
        let context = context();
        let text = "define <8 x i1> @f(<8 x i1> %m, i1 %c) {
            br i1 %c, label %t, label %u
            t: br label %u
            u: %r = phi <8 x i1> [ %m, %0 ], [ zeroinitializer, %t ]
            ret <8 x i1> %r }";
        let module = module(&context, text);
        widen(&module);
        assert!(module.to_string().contains("phi <8 x i1>"));
    }
}
