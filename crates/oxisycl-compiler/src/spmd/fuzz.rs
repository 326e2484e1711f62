//! Random item functions, run for the items of a vector one by one, against what the analyses say of them.
//!
//! The run of an item is kept by place: the block, and the iteration of each loop around it. What is said of a place is checked among the items that
//! come there. Each rule of the shapes is left out once, and the lack must be found.

use std::collections::BTreeMap;

use self::program::program;
use self::run::{Item, Place, run};
use super::PREPARE;
use super::cfg::{Graph, LoopIdx, Node, Region};
use super::shape::{Rule, Shape, Shapes, Status};
use crate::llvm::{Context, Layout, Module, PassTuning};
use crate::passes::tests::{context, module};
use crate::random::Random;

pub(super) mod program;
mod run;

const PROGRAMS: u64 = 3000;
/// Enough that each rule which is left out is missed.
const PROGRAMS_FOR_A_RULE: u64 = 4000;
const LANES: u64 = 6;
/// The number of the first item, near the places where 31 and 32 bits end, too.
const FIRST_ITEMS: [u64; 5] = [0, 5, 64, (1 << 31) - 3, (1 << 32) - 2];

/// How much was checked.
#[derive(Default, Debug)]
struct Checked {
    runs: usize,
    lost: usize,
    uniform: usize,
    affine: usize,
    varying: usize,
    /// Nodes that are full, guarded and masked, without the first one of each region.
    statuses: [usize; 3],
    /// Loops that are not divergent, and those that are.
    loops: [usize; 2],
}

fn prepared<'c>(context: &'c Context, seed: u64) -> Module<'c> {
    let module = module(context, &program(&mut Random::new(seed)));
    module.run("function(mem2reg)", None, &PassTuning::DEVICE).expect("it runs");
    module.run(PREPARE, None, &PassTuning::DEVICE).expect("it runs");
    module
}

/// What is wrong of what the analyses say of the program with that seed.
fn check(context: &Context, seed: u64, without: Option<Rule>, checked: &mut Checked) -> Result<(), String> {
    let module = prepared(context, seed);
    let function = module.function("f").expect("the function");
    let graph = match Graph::of(function) {
        Ok(graph) => graph,
        Err(refusal) => return Err(format!("refused: {}\n{module}", refusal.reason)),
    };
    let layout = Layout::of(&module);
    let shapes = Shapes::without(&graph, layout, without);
    count(&graph, &shapes, checked);
    for (case, first) in FIRST_ITEMS.into_iter().enumerate() {
        let captured = [0, 1, 6][(seed as usize + case) % 3];
        let what = |problem: String| format!("first item {first}, captured {captured}: {problem}\n{module}");
        let items: Result<Option<Vec<Item<'_>>>, String> =
            (0..LANES).map(|lane| run(&graph, layout, captured, first + lane, lane)).collect();
        let items = items.map_err(what)?;
        let Some(items) = items else {
            checked.lost += 1;
            continue;
        };
        checked.runs += 1;
        values(&graph, &shapes, &items).map_err(what)?;
        flow(&graph, &shapes, &items).map_err(what)?;
    }
    Ok(())
}

fn count(graph: &Graph<'_>, shapes: &Shapes<'_, '_>, checked: &mut Checked) {
    for block in graph.order() {
        for instruction in graph.block(*block).instructions() {
            match shapes.shape(instruction) {
                Shape::Uniform => checked.uniform += 1,
                Shape::Affine(_) => checked.affine += 1,
                _ => checked.varying += 1,
            }
        }
    }
    for region in graph.regions() {
        graph.nodes(region)[1..].iter().for_each(|node| checked.statuses[shapes.status(*node) as usize] += 1);
    }
    graph.loops().for_each(|of| checked.loops[usize::from(shapes.is_divergent(of))] += 1);
}

/// Checks the shapes.
fn values(graph: &Graph<'_>, shapes: &Shapes<'_, '_>, items: &[Item<'_>]) -> Result<(), String> {
    let mut by_place: BTreeMap<&Place, Vec<usize>> = BTreeMap::new();
    for (lane, item) in items.iter().enumerate() {
        item.visits.keys().for_each(|place| by_place.entry(place).or_default().push(lane));
    }
    for (place, lanes) in by_place {
        let first = &items[lanes[0]].visits[place];
        for (position, &(value, bits)) in first.values.iter().enumerate() {
            let stride = match shapes.shape(value) {
                Shape::Uniform => 0,
                Shape::Affine(stride) => stride,
                Shape::Varying => continue,
                Shape::Unknown => return Err(format!("{} is unknown", value.print())),
            };
            for &lane in &lanes {
                let distance = stride.wrapping_mul((lane - lanes[0]) as i64) as u64;
                let expected = run::cut(value, bits.wrapping_add(distance));
                let found = items[lane].visits[place].values[position].1;
                if found != expected {
                    let shape = shapes.shape(value);
                    let block = graph.block(place.block).instructions()[0].print();
                    return Err(format!("{shape:?}: {} of lane {lane} is {found} at {place:?} {block}", value.print()));
                }
            }
        }
    }
    Ok(())
}

/// The lanes that come to a place.
fn lanes_at(items: &[Item<'_>], place: &Place) -> Vec<usize> {
    (0..items.len()).filter(|lane| items[*lane].visits.contains_key(place)).collect()
}

/// Checks the statuses and the uniform edges.
fn flow(graph: &Graph<'_>, shapes: &Shapes<'_, '_>, items: &[Item<'_>]) -> Result<(), String> {
    for region in graph.regions() {
        let head = region.map_or(graph.entry(), |of| graph.header(of));
        let mut passages: Vec<Vec<u32>> = items
            .iter()
            .flat_map(|item| item.visits.keys().filter(|place| place.block == head))
            .map(|place| place.iterations.clone())
            .collect();
        passages.sort();
        passages.dedup();
        for iterations in passages {
            let lanes = lanes_at(items, &Place { block: head, iterations: iterations.clone() });
            nodes(graph, shapes, items, region, &iterations, &lanes)?;
            edges(graph, shapes, items, region, &iterations, &lanes)?;
        }
    }
    Ok(())
}

fn nodes(
    graph: &Graph<'_>,
    shapes: &Shapes<'_, '_>,
    items: &[Item<'_>],
    region: Region,
    iterations: &[u32],
    active: &[usize],
) -> Result<(), String> {
    for node in graph.nodes(region) {
        let mut place = Place { block: graph.node_blocks(node)[0], iterations: iterations.to_vec() };
        if let Node::Loop(_) = node {
            place.iterations.push(0);
        }
        let passing = lanes_at(items, &place);
        let status = shapes.status(*node);
        let repeats = |of: LoopIdx| {
            let mut again = Place { block: graph.header(of), iterations: iterations.to_vec() };
            *again.iterations.last_mut().expect("a loop has iterations") += 1;
            !lanes_at(items, &again).is_empty()
        };
        let is_right = match status {
            Status::Full if passing.is_empty() => region.is_some_and(|of| !repeats(of)),
            Status::Full | Status::Guard => passing.is_empty() || passing == active,
            Status::Masked => true,
        };
        if !is_right {
            return Err(format!(
                "{status:?}: of {active:?}, lanes {passing:?} pass {node:?} of {region:?} at {place:?}"
            ));
        }
    }
    Ok(())
}

fn edges(
    graph: &Graph<'_>,
    shapes: &Shapes<'_, '_>,
    items: &[Item<'_>],
    region: Region,
    iterations: &[u32],
    active: &[usize],
) -> Result<(), String> {
    for &from in graph.order().iter().filter(|from| graph.contains(region, **from)) {
        for to in graph.live_successors(from) {
            // Edges inside loops of the region belong to these.
            let is_inside = graph.innermost(from) != region && graph.contains(graph.innermost(from), to);
            let leaves_to_inside = graph.innermost(from) != region
                && graph.contains(region, to)
                && graph.node_of(from, region) == graph.node_of(to, region);
            if is_inside || leaves_to_inside || !shapes.is_uniform_edge(from, to, region) {
                continue;
            }
            let takes = |lane: &usize| {
                items[*lane].visits.iter().any(|(place, visit)| {
                    place.block == from && visit.next == Some(to) && place.iterations.starts_with(iterations)
                })
            };
            let taking: Vec<usize> = active.iter().copied().filter(takes).collect();
            if !taking.is_empty() && taking != active {
                return Err(format!(
                    "of {active:?}, lanes {taking:?} take the uniform edge {from:?} to {to:?} in {region:?}"
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn what_is_said_of_random_functions_holds() {
    let context = context();
    let mut checked = Checked::default();
    for seed in 1..=PROGRAMS {
        if let Err(problem) = check(&context, seed, None, &mut checked) {
            panic!("seed {seed}: {problem}");
        }
    }
    println!("seeds 1 to {PROGRAMS}: {checked:?}");
    // Enough of each kind comes up.
    let is_mixed = |counts: &[usize]| counts.iter().all(|count| count * 40 >= counts.iter().sum());
    assert!(is_mixed(&[checked.uniform, checked.affine, checked.varying]), "{checked:?}");
    assert!(is_mixed(&checked.statuses) && is_mixed(&checked.loops), "{checked:?}");
    assert!(checked.runs > checked.lost, "{checked:?}");
}

#[test]
fn a_rule_that_is_left_out_is_missed() {
    let context = context();
    for rule in Rule::ALL {
        let found = (1..=PROGRAMS_FOR_A_RULE)
            .find_map(|seed| check(&context, seed, Some(rule), &mut Checked::default()).err().map(|why| (seed, why)));
        let (seed, why) = found.unwrap_or_else(|| panic!("seeds 1 to {PROGRAMS_FOR_A_RULE} do not miss {rule:?}"));
        println!("{rule:?}: seed {seed}, {}", why.lines().next().unwrap_or_default());
    }
}
