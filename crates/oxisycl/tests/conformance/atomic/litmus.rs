//! Litmus tests: two work-items race on two words, many pairs at a time, and outcomes that orders and scopes forbid must not occur.
//!
//! A pair's members are half a launch apart, or in two halves of a group. No work-item waits for another one: a race that did not take place
//! shows nothing, and only forbidden outcomes fail a test. One test races without any order, and prints how often that was seen.

use oxisycl::atomic::{AcqRel, Acquire, AtomicRef, Relaxed, Release, Scope, SeqCst, atomic_fence};
use oxisycl::group::{Atomically, Fixed1, Local, Shares};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};

tests![
    messages_pass_by_release_and_acquire,
    messages_pass_by_fences,
    messages_pass_by_changes,
    messages_pass_in_the_whole_system,
    messages_pass_within_a_group,
    messages_pass_between_groups_by_barriers,
    stores_are_not_both_buffered_in_sequential_consistency,
    stores_are_not_both_buffered_around_fences,
    loads_are_not_both_buffered_with_acquire_and_release,
    loads_are_not_both_buffered_around_fences,
    one_word_never_goes_back,
    readers_agree_on_the_order_of_writers,
    readers_of_a_group_agree_on_the_order_of_writers,
    stores_and_loads_are_not_both_buffered_within_a_group,
    weak_outcomes_of_relaxed_operations_are_counted,
];

/// Pairs of work-items.
const PAIRS: usize = 1 << 12;
/// Races of each in turn, on words of their own.
const ROUNDS: usize = 16;
/// Launches of a test, which has 2^20 races.
const LAUNCHES: usize = 16;
/// What a member says that read nothing.
const NOTHING: u32 = 9;

type Words<'k> = [AtomicRef<'k, u32>; 2];
/// What the two members of a pair saw.
type Outcome = [[u32; 2]; 2];

/// Runs races of pairs of different groups, and asserts that no outcome is forbidden.
fn race(
    env: &Env,
    member: impl for<'k> Fn(Words<'k>, usize) -> [u32; 2] + Copy + Send + Sync + 'static,
    is_forbidden: fn(Outcome) -> bool,
) {
    for _ in 0..LAUNCHES {
        assert_eq!(outcomes(env, member).into_iter().find(|outcome| is_forbidden(*outcome)), None);
    }
}

/// What the pairs of one launch saw.
fn outcomes(
    env: &Env,
    member: impl for<'k> Fn(Words<'k>, usize) -> [u32; 2] + Copy + Send + Sync + 'static,
) -> Vec<Outcome> {
    let words = Buffer::from_vec(vec![0u32; 2 * ROUNDS * PAIRS]).unwrap();
    let seen = Buffer::from_vec(vec![[[NOTHING; 2]; ROUNDS]; 2 * PAIRS]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (words, seen) = (cg.access(&words, Atomic), cg.access(&seen, Write));
        cg.parallel_for(2 * PAIRS, move |item| {
            let (role, pair) = (item.index() / PAIRS, item.index() % PAIRS);
            let word = |index| words.atomic_ref(item, index);
            let mut all = [[NOTHING; 2]; ROUNDS];
            for (round, seen) in all.iter_mut().enumerate() {
                // The words of a race are far from each other.
                let place = round * PAIRS + pair;
                *seen = member([word(place), word(ROUNDS * PAIRS + place)], role);
            }
            seen.set(item, all);
        })
    });
    kernel.unwrap().wait().unwrap();
    let seen = seen.to_vec().unwrap();
    assert!(seen.as_flattened().as_flattened().iter().any(|value| *value != NOTHING));
    let races = (0..PAIRS).flat_map(|pair| (0..ROUNDS).map(move |round| (pair, round)));
    races.map(|(pair, round)| [seen[pair][round], seen[PAIRS + pair][round]]).collect()
}

/// Member 1 has seen the flag, but not what was stored before.
fn is_message_lost([_, [flag, data]]: Outcome) -> bool {
    flag != 0 && flag != NOTHING && data == 0
}

fn messages_pass_by_release_and_acquire(env: &Env) {
    race(
        env,
        |[data, flag], role| {
            if role == 0 {
                data.store(1, Relaxed);
                flag.store(1, Release);
                return [NOTHING; 2];
            }
            let flag = flag.load(Acquire);
            [flag, data.load(Relaxed)]
        },
        is_message_lost,
    );
}

fn messages_pass_by_fences(env: &Env) {
    race(
        env,
        |[data, flag], role| {
            if role == 0 {
                data.store(1, Relaxed);
                atomic_fence(Release, Scope::Device);
                flag.store(1, Relaxed);
                return [NOTHING; 2];
            }
            let flag = flag.load(Relaxed);
            atomic_fence(Acquire, Scope::Device);
            [flag, data.load(Relaxed)]
        },
        is_message_lost,
    );
}

fn messages_pass_by_changes(env: &Env) {
    race(
        env,
        |[data, flag], role| {
            if role == 0 {
                data.fetch_add(1, Relaxed);
                flag.fetch_max(1, AcqRel);
                return [NOTHING; 2];
            }
            let flag = flag.compare_exchange(1, 2, AcqRel, Relaxed).unwrap_or(0);
            [flag, data.fetch_or(0, Relaxed)]
        },
        is_message_lost,
    );
}

fn messages_pass_in_the_whole_system(env: &Env) {
    race(
        env,
        |words, role| {
            let [data, flag] = words.map(|word| word.with_scope(Scope::System));
            if role == 0 {
                data.store(1, Relaxed);
                flag.exchange(1, Release);
                return [NOTHING; 2];
            }
            let flag = flag.fetch_add(0, Acquire);
            [flag, data.load(Relaxed)]
        },
        is_message_lost,
    );
}

fn messages_pass_within_a_group(env: &Env) {
    const GROUPS: usize = 1 << 14;
    const ITEMS: usize = 128;
    const MEMBERS: usize = ITEMS / 2;
    // By the order of stores and loads, by fences, and by changes.
    let lost = Buffer::from_vec(vec![0u32; 4]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let lost = cg.access(&lost, Atomic);
        cg.parallel_for_work_group(GROUPS, Fixed1::<ITEMS>, Local::<u32, 384>::new(), move |mut group, mut words| {
            group.for_each(Shares(&mut words), move |_, share| share.for_each(|(_, word)| *word = 0));
            group.for_each(Atomically(&mut words), move |item, words| {
                // The first work-items of a group read, so that a host that runs them in turn has nothing to see.
                let (role, pair) = (1 - item.local_linear_id() / MEMBERS, item.local_linear_id() % MEMBERS);
                for way in 0..3 {
                    let [data, flag] = [0, 1].map(|word| words.atomic_ref(way * ITEMS + word * MEMBERS + pair));
                    let seen = match (role, way) {
                        (0, 0) => {
                            data.store(1, Relaxed);
                            flag.store(1, Release);
                            continue;
                        }
                        (0, 1) => {
                            data.store(1, Relaxed);
                            atomic_fence(Release, Scope::WorkGroup);
                            flag.store(1, Relaxed);
                            continue;
                        }
                        (0, _) => {
                            data.store(1, Relaxed);
                            flag.fetch_add(1, AcqRel);
                            continue;
                        }
                        (_, 0) => flag.load(Acquire),
                        (_, 1) => {
                            let seen = flag.load(Relaxed);
                            atomic_fence(Acquire, Scope::WorkGroup);
                            seen
                        }
                        _ => flag.fetch_or(0, AcqRel),
                    };
                    lost.fetch_add(item, 3, 1);
                    if seen == 1 && data.load(Relaxed) == 0 {
                        lost.fetch_add(item, way, 1);
                    }
                }
            });
        })
    });
    kernel.unwrap().wait().unwrap();
    assert_eq!(lost.to_vec().unwrap(), [0, 0, 0, (3 * GROUPS * MEMBERS) as u32]);
}

fn messages_pass_between_groups_by_barriers(env: &Env) {
    const PAIRS: usize = 1 << 10;
    const ITEMS: usize = 32;
    for scope in [Scope::Device, Scope::System] {
        let words = Buffer::from_vec(vec![0u32; PAIRS * ITEMS]).unwrap();
        let flags = Buffer::from_vec(vec![0u32; PAIRS]).unwrap();
        let lost = Buffer::from_vec(vec![0u32; 2]).unwrap();
        let kernel = env.queue().submit(|cg| {
            let [words, flags, lost] = [&words, &flags, &lost].map(|buffer| cg.access(buffer, Atomic));
            cg.parallel_for_nd_range((2 * PAIRS * ITEMS, Fixed1::<ITEMS>), (), move |mut item, ()| {
                let (role, pair) = (item.group_linear_id() / PAIRS, item.group_linear_id() % PAIRS);
                let word = words.atomic_ref(item.global(), pair * ITEMS + item.local_linear_id()).with_scope(scope);
                let flag = flags.atomic_ref(item.global(), pair).with_scope(scope);
                let is_writer = role == 0;
                if is_writer {
                    word.store(1, Relaxed);
                }
                // What one work-item of a group has seen or stored, others have.
                let seen = if item.is_leader() && !is_writer { flag.load(Relaxed) } else { 0 };
                let seen = item.group().broadcast(seen, 0);
                item.group().barrier_in(scope);
                if is_writer && item.is_leader() {
                    flag.store(1, Relaxed);
                }
                if !is_writer {
                    lost.fetch_add(item.global(), 1, 1);
                    if seen == 1 && word.load(Relaxed) == 0 {
                        lost.fetch_add(item.global(), 0, 1);
                    }
                }
            })
        });
        kernel.unwrap().wait().unwrap();
        assert_eq!(lost.to_vec().unwrap(), [0, (PAIRS * ITEMS) as u32]);
    }
}

/// Neither member has seen the other's store.
fn are_stores_lost([[first, _], [second, _]]: Outcome) -> bool {
    (first, second) == (0, 0)
}

fn stores_are_not_both_buffered_in_sequential_consistency(env: &Env) {
    race(
        env,
        |words, role| {
            words[role].store(1, SeqCst);
            [words[1 - role].load(SeqCst), NOTHING]
        },
        are_stores_lost,
    );
}

fn stores_are_not_both_buffered_around_fences(env: &Env) {
    race(
        env,
        |words, role| {
            words[role].store(1, Relaxed);
            atomic_fence(SeqCst, Scope::Device);
            [words[1 - role].load(Relaxed), NOTHING]
        },
        are_stores_lost,
    );
}

fn loads_are_not_both_buffered_with_acquire_and_release(env: &Env) {
    race(
        env,
        |words, role| {
            let seen = words[role].load(Acquire);
            words[1 - role].store(1, Release);
            [seen, NOTHING]
        },
        |[[first, _], [second, _]]| (first, second) == (1, 1),
    );
}

fn loads_are_not_both_buffered_around_fences(env: &Env) {
    race(
        env,
        |words, role| {
            let seen = words[role].load(Relaxed);
            atomic_fence(AcqRel, Scope::Device);
            words[1 - role].store(1, Relaxed);
            [seen, NOTHING]
        },
        |[[first, _], [second, _]]| (first, second) == (1, 1),
    );
}

fn one_word_never_goes_back(env: &Env) {
    race(
        env,
        |[word, _], role| {
            if role == 0 {
                word.store(1, Relaxed);
                word.store(2, Relaxed);
                return [NOTHING; 2];
            }
            let first = word.load(Relaxed);
            [first, word.load(Relaxed)]
        },
        |[_, [first, second]]| first != NOTHING && second < first,
    );
}

/// Four work-items of different groups, two words (IRIW): two write one each, and two read both, each in its own order.
fn readers_agree_on_the_order_of_writers(env: &Env) {
    const QUADS: usize = PAIRS;
    // With loads in sequential consistency, and with fences between them.
    for with_fences in [false, true] {
        for _ in 0..LAUNCHES {
            let words = Buffer::from_vec(vec![0u32; 2 * ROUNDS * QUADS]).unwrap();
            let seen = Buffer::from_vec(vec![[[NOTHING; 2]; ROUNDS]; 4 * QUADS]).unwrap();
            let kernel = env.queue().submit(|cg| {
                let (words, seen) = (cg.access(&words, Atomic), cg.access(&seen, Write));
                cg.parallel_for(4 * QUADS, move |item| {
                    let (role, quad) = (item.index() / QUADS, item.index() % QUADS);
                    let mut all = [[NOTHING; 2]; ROUNDS];
                    for (round, seen) in all.iter_mut().enumerate() {
                        let place = round * QUADS + quad;
                        let word = |number: usize| words.atomic_ref(item, (number % 2) * ROUNDS * QUADS + place);
                        // Writers are the first and the last of the launch, readers between them.
                        match role {
                            0 | 3 => word(role).store(1, SeqCst),
                            _ if with_fences => {
                                let first = word(role).load(Relaxed);
                                atomic_fence(SeqCst, Scope::Device);
                                *seen = [first, word(role + 1).load(Relaxed)];
                            }
                            _ => *seen = [word(role).load(SeqCst), word(role + 1).load(SeqCst)],
                        }
                    }
                    seen.set(item, all);
                })
            });
            kernel.unwrap().wait().unwrap();
            let seen = seen.to_vec().unwrap();
            let (one, other) = (seen[QUADS..2 * QUADS].as_flattened(), seen[2 * QUADS..3 * QUADS].as_flattened());
            // Each has seen the store of one writer, and then not that of the other.
            assert!(!one.iter().zip(other).any(|both| both == (&[1, 0], &[1, 0])), "with fences: {with_fences}");
            assert!(one.iter().chain(other).all(|values| !values.contains(&NOTHING)));
        }
    }
}

/// IRIW in local memory, with loads in sequential consistency and with fences.
fn readers_of_a_group_agree_on_the_order_of_writers(env: &Env) {
    const GROUPS: usize = 1 << 15;
    const QUADS: usize = 32;
    let forbidden = Buffer::from_vec(vec![0u32; 3]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let forbidden = cg.access(&forbidden, Atomic);
        let memory = (Local::<u32, { 4 * QUADS }>::new(), Local::<u32, { 8 * QUADS }>::new());
        cg.parallel_for_work_group(GROUPS, Fixed1::<{ 4 * QUADS }>, memory, move |mut group, (mut words, mut seen)| {
            group.for_each((Shares(&mut words), Shares(&mut seen)), move |_, (words, seen)| {
                words.for_each(|(_, word)| *word = 0);
                seen.for_each(|(_, word)| *word = NOTHING);
            });
            group.for_each((Atomically(&mut words), Atomically(&mut seen)), move |item, (words, seen)| {
                let (role, quad) = (item.local_linear_id() / QUADS, item.local_linear_id() % QUADS);
                for way in 0..2 {
                    let word = |number: usize| words.atomic_ref((2 * way + number % 2) * QUADS + quad);
                    let values = match role {
                        0 | 3 => {
                            word(role).store(1, SeqCst);
                            continue;
                        }
                        _ if way == 0 => [word(role).load(SeqCst), word(role + 1).load(SeqCst)],
                        _ => {
                            let first = word(role).load(Relaxed);
                            atomic_fence(SeqCst, Scope::WorkGroup);
                            [first, word(role + 1).load(Relaxed)]
                        }
                    };
                    for (index, value) in values.into_iter().enumerate() {
                        seen.store((4 * way + 2 * (role - 1) + index) * QUADS + quad, value);
                    }
                }
            });
            group.for_each(&seen, move |item, seen| {
                let quad = item.local_linear_id();
                for way in 0..if quad < QUADS { 2 } else { 0 } {
                    let values: [u32; 4] = std::array::from_fn(|index| seen[(4 * way + index) * QUADS + quad]);
                    forbidden.fetch_add(item.global(), way, u32::from(values == [1, 0, 1, 0]));
                    forbidden.fetch_add(item.global(), 2, u32::from(!values.contains(&NOTHING)));
                }
            });
        })
    });
    kernel.unwrap().wait().unwrap();
    assert_eq!(forbidden.to_vec().unwrap(), [0, 0, 2 * GROUPS as u32 * QUADS as u32]);
}

fn stores_and_loads_are_not_both_buffered_within_a_group(env: &Env) {
    const GROUPS: usize = 1 << 14;
    const ITEMS: usize = 128;
    const MEMBERS: usize = ITEMS / 2;
    // Of stores in sequential consistency and around fences, of loads with orders and around fences.
    let forbidden = Buffer::from_vec(vec![0u32; 5]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let forbidden = cg.access(&forbidden, Atomic);
        let memory = (Local::<u32, 512>::new(), Local::<u32, 512>::new());
        cg.parallel_for_work_group(GROUPS, Fixed1::<ITEMS>, memory, move |mut group, (mut words, mut seen)| {
            group.for_each((Shares(&mut words), Shares(&mut seen)), move |_, (words, seen)| {
                words.for_each(|(_, word)| *word = 0);
                seen.for_each(|(_, word)| *word = NOTHING);
            });
            group.for_each((Atomically(&mut words), Atomically(&mut seen)), move |item, (words, seen)| {
                let (role, pair) = (item.local_linear_id() / MEMBERS, item.local_linear_id() % MEMBERS);
                for way in 0..4 {
                    let place = |role: usize| way * ITEMS + role * MEMBERS + pair;
                    let (own, other) = (words.atomic_ref(place(role)), words.atomic_ref(place(1 - role)));
                    let value = match way {
                        0 => {
                            own.store(1, SeqCst);
                            other.load(SeqCst)
                        }
                        1 => {
                            own.store(1, Relaxed);
                            atomic_fence(SeqCst, Scope::WorkGroup);
                            other.load(Relaxed)
                        }
                        2 => {
                            let value = own.load(Acquire);
                            other.store(1, Release);
                            value
                        }
                        _ => {
                            let value = own.load(Relaxed);
                            atomic_fence(AcqRel, Scope::WorkGroup);
                            other.store(1, Relaxed);
                            value
                        }
                    };
                    seen.store(place(role), value);
                }
            });
            group.for_each(&seen, move |item, seen| {
                let pair = item.local_linear_id();
                for way in 0..if pair < MEMBERS { 4 } else { 0 } {
                    let both = [0, 1].map(|role| seen[way * ITEMS + role * MEMBERS + pair]);
                    if both == [u32::from(way >= 2); 2] {
                        forbidden.fetch_add(item.global(), way, 1);
                    }
                    forbidden.fetch_add(item.global(), 4, u32::from(!both.contains(&NOTHING)));
                }
            });
        })
    });
    kernel.unwrap().wait().unwrap();
    assert_eq!(forbidden.to_vec().unwrap(), [0, 0, 0, 0, (4 * GROUPS * MEMBERS) as u32]);
}

/// Whether a member of a pair saw what the other one stored. Where none did, a device may have run them far from each other.
fn have_met(outcome: Outcome) -> bool {
    outcome.as_flattened().iter().any(|value| ![0, NOTHING].contains(value))
}

/// How often relaxed operations show an outcome that no order of the members' steps explains. It may be never.
fn weak_outcomes_of_relaxed_operations_are_counted(env: &Env) {
    let mut counts = [[0usize; 2]; 3];
    let mut count = |shape: usize, outcomes: Vec<Outcome>, is_weak: fn(Outcome) -> bool| {
        assert_eq!(outcomes.len(), PAIRS * ROUNDS);
        counts[shape][0] += outcomes.iter().filter(|outcome| is_weak(**outcome)).count();
        counts[shape][1] += outcomes.iter().filter(|outcome| have_met(**outcome)).count();
    };
    for _ in 0..LAUNCHES {
        let passing = outcomes(env, |[data, flag], role| {
            if role == 0 {
                data.store(1, Relaxed);
                flag.store(1, Relaxed);
                return [NOTHING; 2];
            }
            let flag = flag.load(Relaxed);
            [flag, data.load(Relaxed)]
        });
        count(0, passing, is_message_lost);
        let stores = outcomes(env, |words, role| {
            words[role].store(1, Relaxed);
            [words[1 - role].load(Relaxed), NOTHING]
        });
        count(1, stores, are_stores_lost);
        let loads = outcomes(env, |words, role| {
            let seen = words[role].load(Relaxed);
            words[1 - role].store(1, Relaxed);
            [seen, NOTHING]
        });
        count(2, loads, |[[first, _], [second, _]]| (first, second) == (1, 1));
    }
    let (races, name) = (LAUNCHES * PAIRS * ROUNDS, env.device().name());
    for (shape, [weak, met]) in ["message passing", "store buffering", "load buffering"].into_iter().zip(counts) {
        println!("{name}: {shape}: {weak} weak outcomes in {races} races, in {met} of which one saw the other");
    }
}
