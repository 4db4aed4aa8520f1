//! Plans by hand, against brute force, and what holds for all of them.
#![allow(clippy::unwrap_used)]

use super::board::Board;
use super::*;
use proptest::prelude::*;

type Owners = [u8; SHARDS];
type Loads = [u64; SHARDS];

pub(super) fn dealt(workers: usize) -> Owners {
    std::array::from_fn(|shard| (shard % workers) as u8)
}

pub(super) fn apply(owners: &mut Owners, moves: &[Move]) {
    for moved in moves {
        let owner = &mut owners[moved.shard.index()];
        assert_eq!(usize::from(*owner), moved.from, "{moved:?}");
        assert_ne!(moved.from, moved.to);
        *owner = u8::try_from(moved.to).unwrap();
    }
}

fn loads(of: &[(usize, u64)]) -> Loads {
    let mut loads = [0; SHARDS];
    of.iter().for_each(|&(shard, load)| loads[shard] = load);
    loads
}

/// Acts at once and on everything.
fn keen() -> Limits {
    Limits { moves: SHARDS, imbalance: 0.02, gain: 0.0, least: 0, memory: 0.0, rest: 0, ..Limits::default() }
}

fn plan(limits: Limits, loads: &Loads, owners: &Owners, capacities: &[u16]) -> Plan {
    let mut planner = Planner::new(limits);
    planner.observe(loads);
    planner.plan(owners, capacities)
}

pub(super) fn by_worker(loads: &Loads, owners: &Owners, workers: usize) -> Vec<u64> {
    let of = |worker: usize| {
        let own = loads.iter().zip(owners).filter(|(_, owner)| usize::from(**owner) == worker);
        own.map(|(load, _)| load).sum()
    };
    (0..workers).map(of).collect()
}

#[test]
fn level_loads_stay() {
    for workers in 1..=64 {
        let owners = dealt(workers);
        let plan = plan(keen(), &[100; SHARDS], &owners, &vec![1; workers]);
        // 512 shards of one load over 64 workers or fewer differ by one shard, which no move mends.
        assert_eq!((plan.moves.len(), plan.complete), (0, true), "{workers} workers");
    }
}

#[test]
fn what_fits_best_moves() {
    // Worker 0 has 60, worker 1 has 20: one move of 20 levels them.
    let loads = loads(&[(0, 25), (2, 20), (4, 15), (1, 20)]);
    let plan = plan(keen(), &loads, &dealt(2), &[1, 1]);
    assert_eq!(plan.moves, [Move { shard: ShardId::from_hash(2), from: 0, to: 1 }]);
    assert_eq!((plan.before, plan.after, plan.too_heavy.len()), (1.5, 1.0, 0));
}

#[test]
fn an_exchange_is_found_where_no_move_helps() {
    // 7 + 3 against 4 + 4: only 7 for 4 and one more, or 3 for 4, change anything; 3 + 4 and 7 + 4 do not. With 6 + 4 and
    // 5 + 3, 6 for 5 levels.
    let loads = loads(&[(0, 6_000), (2, 4_000), (1, 5_000), (3, 3_000)]);
    let mut owners = dealt(2);
    let plan = plan(keen(), &loads, &owners, &[1, 1]);
    assert_eq!(plan.moves.len(), 2);
    apply(&mut owners, &plan.moves);
    assert_eq!(by_worker(&loads, &owners, 2), [9_000, 9_000]);
}

#[test]
fn a_heavy_shard_has_its_worker_to_itself_and_the_rest_is_level() {
    let mut loads = [10; SHARDS];
    loads[0] = 10_000;
    let mut owners = dealt(4);
    let plan = plan(keen(), &loads, &owners, &[1; 4]);
    apply(&mut owners, &plan.moves);
    assert_eq!(by_worker(&loads, &owners, 4)[0], 10_000);
    let rest = by_worker(&loads, &owners, 4);
    assert!(rest[1..].iter().all(|load| load.abs_diff(5_110 / 3) <= 40), "{rest:?}");
    let [heavy] = plan.too_heavy[..] else { panic!("{:?}", plan.too_heavy) };
    assert_eq!((heavy.shard.index(), heavy.load), (0, 10_000));
    assert!((heavy.share - 10_000.0 / (5_110.0 / 3.0)).abs() < 0.01);
    // Its 127 companions moved, and no other.
    assert_eq!(plan.moves.len(), 127);
}

#[test]
fn two_heavy_shards_part() {
    let mut loads = [1; SHARDS];
    (loads[0], loads[4]) = (5_000, 4_000);
    let mut owners = dealt(4);
    let plan = plan(keen(), &loads, &owners, &[1; 4]);
    apply(&mut owners, &plan.moves);
    assert_ne!(owners[0], owners[4]);
    let mut level = by_worker(&loads, &owners, 4);
    level.sort_unstable();
    assert_eq!((level[3], level[2], level[0] + level[1]), (5_000, 4_000, 510));
    assert_eq!(plan.too_heavy.iter().map(|heavy| heavy.shard.index()).collect::<Vec<_>>(), [0, 4]);
}

#[test]
fn what_a_core_can_do_decides_what_is_too_heavy() {
    let mut loads = [1; SHARDS];
    loads[0] = 5_000;
    for (core, too_heavy) in [(4_999, 1), (5_000, 0)] {
        let limits = Limits { core: Some(core), ..keen() };
        assert_eq!(plan(limits, &loads, &dealt(2), &[1, 1]).too_heavy.len(), too_heavy);
    }
    let limits = Limits { core: Some(1_000), ..keen() };
    assert_eq!(plan(limits, &loads, &dealt(2), &[5, 5]).too_heavy, []);
}

#[test]
fn one_shard_only_is_left_where_it_is() {
    for workers in 1..=8 {
        let plan = plan(keen(), &loads(&[(3, 77_777)]), &dealt(workers), &vec![1; workers]);
        assert_eq!((plan.moves.len(), plan.complete), (0, true));
    }
}

#[test]
fn capacities_are_parts() {
    let mut owners = dealt(3);
    let plan = plan(keen(), &[100; SHARDS], &owners, &[200, 100, 100]);
    apply(&mut owners, &plan.moves);
    let loads = by_worker(&[100; SHARDS], &owners, 3);
    assert!(loads[0].abs_diff(25_600) <= 600 && loads[1].abs_diff(12_800) <= 300, "{loads:?}");
    // Two thirds come from each of the others: 256 - 171 shards.
    assert!(plan.moves.len() <= 86, "{}", plan.moves.len());
}

#[test]
fn a_round_has_its_limit_and_the_next_goes_on() {
    let mut loads = [0; SHARDS];
    loads.iter_mut().step_by(2).for_each(|load| *load = 100);
    let mut planner = Planner::new(Limits { moves: 10, rest: 3, ..keen() });
    let mut owners = dealt(2);
    let mut rounds = 0;
    loop {
        planner.observe(&loads);
        let plan = planner.plan(&owners, &[1, 1]);
        assert!(plan.moves.len() <= 10);
        apply(&mut owners, &plan.moves);
        rounds += 1;
        if plan.complete {
            break;
        }
        assert_eq!(plan.moves.len(), 10);
    }
    // 12,800 and 12,800 within 2 %.
    assert_eq!(rounds, 13);
    assert_eq!(by_worker(&loads, &owners, 2), [13_000, 12_600]);
}

#[test]
fn small_changes_are_not_worth_a_move() {
    let mut loads = [100; SHARDS];
    // Worker 0 has 9 % more than its part.
    loads.iter_mut().step_by(2).for_each(|load| *load = 120);
    let patient = Limits { least: 0, ..Limits::default() };
    assert_eq!(plan(patient, &loads, &dealt(2), &[1, 1]).moves, []);
    loads.iter_mut().step_by(2).for_each(|load| *load = 125);
    let plan_made = plan(patient, &loads, &dealt(2), &[1, 1]);
    // To within 2 %, not to level: 32,000 of 57,600 to at most 29,376.
    assert_eq!(plan_made.moves.len(), 21);
    // An idle machine's few packets say nothing.
    let few = loads.map(|load| load / 100);
    assert_eq!(plan(Limits::default(), &few, &dealt(2), &[1, 1]).moves, []);
}

#[test]
fn numbers_that_make_no_sense_are_borne() {
    let odd = Limits {
        moves: 0,
        imbalance: f32::NAN,
        settle: f32::INFINITY,
        gain: -3.0,
        memory: 7.0,
        ..Limits::default()
    };
    assert_eq!(plan(odd, &[u64::MAX; SHARDS], &dealt(3), &[u16::MAX; 3]).moves, []);
    // No worker may own anything; nothing was observed; owners that are no workers.
    assert_eq!(plan(keen(), &[9; SHARDS], &dealt(3), &[0; 3]).moves, []);
    assert_eq!(plan(keen(), &[9; SHARDS], &dealt(3), &[]).moves, []);
    assert_eq!(Planner::new(keen()).plan(&dealt(3), &[1; 3]).moves, []);
    let plan = plan(keen(), &[9; SHARDS], &[255; SHARDS], &[1; 3]);
    assert_eq!(plan.moves.len(), SHARDS);
    assert_eq!(vacate(&[9; SHARDS], &dealt(3), &[0; 3]), []);
    assert_eq!(occupy(&[9; SHARDS], &dealt(3), &[0; 3]), []);
    assert_eq!(scale(&[9; SHARDS], &dealt(3), &[1; 1_000]).len(), SHARDS - 6);
}

#[test]
fn a_worker_leaves_and_comes_back() {
    let loads: Loads = std::array::from_fn(|shard| if shard % 7 == 0 { 1_000 } else { 3 });
    let mut owners = dealt(4);
    let moves = vacate(&loads, &owners, &[1, 1, 1, 0]);
    // All of its shards and no other.
    assert_eq!(moves.len(), 128);
    assert!(moves.iter().all(|moved| moved.from == 3));
    apply(&mut owners, &moves);
    let level = by_worker(&loads, &owners, 4);
    assert!(level[..3].iter().all(|load| load.abs_diff(75_317 / 3) < 1_500) && level[3] == 0, "{level:?}");
    let counts = by_worker(&[1; SHARDS], &owners, 3);
    // 74 busy shards are 25, 25 and 24; idle ones make up for it as far as they count.
    assert!(counts.iter().all(|count| count.abs_diff(512 / 3) < 60), "{counts:?}");
    let moves = occupy(&loads, &owners, &[1; 4]);
    assert!(moves.iter().all(|moved| moved.to == 3) && moves.len() < 40, "{}", moves.len());
    apply(&mut owners, &moves);
    let level = by_worker(&loads, &owners, 4);
    assert!(level.iter().all(|load| load.abs_diff(75_317 / 4) < 1_500), "{level:?}");
}

#[test]
fn idle_shards_are_dealt_out_too() {
    let mut owners = [0; SHARDS];
    for workers in [2, 5, 64, 3, 1] {
        let capacities: Vec<u16> = (0..64).map(|worker| u16::from(worker < workers)).collect();
        let moves = scale(&[0; SHARDS], &owners, &capacities);
        apply(&mut owners, &moves);
        let counts = by_worker(&[1; SHARDS], &owners, workers);
        assert_eq!(counts.iter().sum::<u64>(), SHARDS as u64);
        let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
        assert!(spread <= 512 / workers as u64 / 10 + 1, "{workers}: {counts:?}");
    }
}

/// The least overload of any assignment of the shards that have load, and the fewest moves to one with it.
fn brute_force(board: &Board) -> (u64, usize) {
    let shards: Vec<usize> = (0..SHARDS).filter(|&shard| board.load[shard] > 0).collect();
    let able: Vec<usize> = (0..board.workers.len()).filter(|&w| board.workers[w].capacity > 0).collect();
    let mut best = (u64::MAX, usize::MAX);
    for mut number in 0..able.len().pow(shards.len() as u32) {
        let mut tried = board.clone();
        for &shard in &shards {
            tried.give(shard, able[number % able.len()]);
            number /= able.len();
        }
        best = best.min((tried.overload(), tried.moves_from(&board.owner)));
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn few_shards_are_planned_as_well_as_can_be(
        of in proptest::collection::vec((1u64..40, 0u8..3), 1..=7),
        capacities in prop_oneof![Just([1u16, 1, 1]), Just([1, 1, 0]), Just([3, 2, 1])],
    ) {
        let mut loads = [0.0; SHARDS];
        let mut owners = [0; SHARDS];
        for (shard, (load, owner)) in of.iter().enumerate() {
            loads[shard] = *load as f64;
            owners[shard] = if capacities[usize::from(*owner)] > 0 { *owner } else { 0 };
        }
        let mut board = Board::new(&loads, &owners, &capacities);
        board.set_ceilings(0.02);
        let improved = improve(&board, &owners, SHARDS).board;
        let cost = (improved.overload(), improved.moves_from(&owners));
        prop_assert_eq!(cost, brute_force(&board));
    }
}

/// Loads of all kinds.
pub(super) fn any_loads() -> impl Strategy<Value = Loads> {
    let loads = |values: BoxedStrategy<u64>| {
        proptest::collection::vec(values, SHARDS).prop_map(|loads| -> Loads { loads.try_into().unwrap() })
    };
    prop_oneof![
        loads((0u64..1_000).boxed()),
        // A few carry all.
        loads(prop_oneof![20 => Just(0u64), 1 => 1u64..1_000_000].boxed()),
        // From packets to millions.
        loads((0u32..24, 1u64..16).prop_map(|(power, times)| times << power).boxed()),
        loads(any::<u64>().boxed()),
    ]
}

fn any_capacities() -> impl Strategy<Value = Vec<u16>> {
    prop_oneof![
        4 => (1usize..=64).prop_map(|workers| vec![1; workers]),
        1 => proptest::collection::vec(0u16..4, 1..=64),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_holds_for_every_plan(
        loads in any_loads(),
        owners in proptest::collection::vec(any::<u8>(), SHARDS),
        capacities in any_capacities(),
        most in prop_oneof![Just(SHARDS), 1usize..40],
    ) {
        let start: Owners = std::array::from_fn(|shard| owners[shard] % capacities.len() as u8);
        let able = |worker: usize| capacities[worker] > 0;
        prop_assume!((0..capacities.len()).any(able));
        let limits = Limits { moves: most, ..keen() };
        let mut planner = Planner::new(limits);
        planner.observe(&loads);
        let plan = planner.plan(&start, &capacities);
        let homeless = start.iter().filter(|owner| !able(usize::from(**owner))).count();
        prop_assert!(plan.moves.len() <= most + homeless);
        prop_assert!(plan.moves.iter().all(|moved| able(moved.to)));
        let mut shards: Vec<_> = plan.moves.iter().map(|moved| moved.shard).collect();
        shards.sort_unstable();
        shards.dedup();
        prop_assert_eq!(shards.len(), plan.moves.len());
        let mut owners = start;
        apply(&mut owners, &plan.moves);
        prop_assert!(owners.iter().all(|owner| able(usize::from(*owner))));

        // The bound on what is not level, and rest.
        let mut board = Board::new(&loads.map(|load| load as f64), &owners, &capacities);
        board.set_ceilings(0.02);
        if plan.complete {
            for (number, worker) in board.workers.iter().enumerate().filter(|(_, w)| w.excess() > 0) {
                let lightest = board.movable(number).map(|shard| board.load[shard]).min();
                prop_assert!(worker.excess() < lightest.unwrap(), "{number}: {worker:?} {lightest:?}");
            }
            planner.observe(&loads);
            let again = planner.plan(&owners, &capacities);
            prop_assert_eq!(again.moves, []);
        }
    }

    #[test]
    fn exactly_those_with_a_capacity_own_shards(
        loads in any_loads(),
        owners in proptest::collection::vec(0u8..64, SHARDS),
        capacities in any_capacities(),
    ) {
        prop_assume!(capacities.iter().any(|capacity| *capacity > 0));
        let mut owners: Owners = owners.try_into().unwrap();
        let own = owners;
        apply(&mut owners, &scale(&loads, &own, &capacities));
        for worker in 0..64 {
            let shards = owners.iter().filter(|owner| usize::from(**owner) == worker).count();
            prop_assert_eq!(shards > 0, capacities.get(worker).is_some_and(|capacity| *capacity > 0));
        }
        // There is nothing more to do.
        prop_assert_eq!(vacate(&loads, &owners, &capacities), []);
        let again = occupy(&loads, &owners, &capacities);
        prop_assert!(again.is_empty(), "{} more", again.len());
    }
}
