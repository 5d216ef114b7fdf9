//! Synthetic sweeps with the noise of real ones: the truth is known, so the answer can be wrong.

use nfsrahead::nconnect::sweep::model::{judge, Depth, Verdict};
use nfsrahead::nconnect::sweep::{Direction, Sample, Work};

use crate::data::question;

const SWEEPS: u64 = 400;
const NOISE: f64 = 0.04;
const STALLED: f64 = 0.12;

/// splitmix64: the same numbers on every machine and in every version.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let high = u32::try_from((z ^ (z >> 31)) >> 32).unwrap();
        (f64::from(high) + 0.5) / 4_294_967_296.0
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A pass of what should be `truth`.
    fn pass(&mut self, truth: f64) -> f64 {
        let noise = (NOISE * self.normal()).exp();
        let is_stalled = self.uniform() < STALLED;
        let stall = 0.2 + 0.6 * self.uniform();
        truth * noise * if is_stalled { stall } else { 1.0 }
    }
}

/// Ten settings and the fourteen records of the real sweep. `truth` is GB/s of settings and depth.
fn sweep(seed: u64, truth: fn(f64, f64) -> f64) -> Vec<Sample> {
    let mut random = Random(seed);
    let mut samples = Vec::new();
    for setting in 1..=10u64 {
        for shift in 1..=14 {
            let record_bytes = 1024u64 << shift;
            let depth = f64::from(1u32 << shift) / 1024.0;
            // Below one request the time of a round trip counts, not the connections.
            let truth = match depth <= 1.0 {
                true => 1e9 * depth.powf(0.6),
                false => 1e9 * truth(f64::from(u32::try_from(setting).unwrap()), depth),
            };
            samples.push(Sample {
                run: String::new(),
                setting,
                repetition: (usize::try_from(setting).unwrap(), 0),
                direction: Direction::Read,
                work: Work {
                    file_bytes: None,
                    is_random: false,
                    in_flight_bytes: record_bytes,
                    record_bytes,
                },
                bytes_per_second: random.pass(truth),
                again_bytes_per_second: Some(random.pass(truth)),
            });
        }
    }
    samples
}

/// How often each answer was found; at 0 how often a gain was.
fn found(seed: u64, truth: fn(f64, f64) -> f64) -> [u64; 11] {
    let mut found = [0; 11];
    for n in 0..SWEEPS {
        let report = judge(&sweep(seed + n, truth), &question(0.05));
        let deep = report.runs[0]
            .classes
            .iter()
            .find(|class| class.depth == Depth::Many)
            .unwrap();
        let answer = deep.verdict.answer().expect("a whole sweep has an answer");
        found[usize::try_from(answer).unwrap()] += 1;
        found[0] += u64::from(matches!(deep.verdict, Verdict::Gain(_)));
    }
    found
}

#[test]
fn flat_is_left_alone() {
    let found = found(1_000, |_, _| 1.9);
    println!("flat: {found:?}");
    assert!(found[0] * 100 <= 3 * SWEEPS, "false gains: {found:?}");
}

#[test]
fn saturated_at_four_is_never_less() {
    for (seed, truth) in [
        (10_000, (|n, depth| 0.9 * n.min(depth).min(4.0)) as fn(f64, f64) -> f64),
        (20_000, |n, depth| 1.9 * n.min(depth).min(4.0).powf(0.75)),
    ] {
        let found = found(seed, truth);
        println!("saturated at 4: {found:?}");
        assert_eq!(found[1] + found[2] + found[3], 0, "{found:?}");
        assert!((found[4] + found[5]) * 100 >= 85 * SWEEPS, "{found:?}");
    }
}

#[test]
fn like_the_real_sweep() {
    let found = found(30_000, |n, depth| (1.9 * n.min(depth).powf(0.45)).min(3.9));
    println!("saturated at 5: {found:?}");
    assert!((found[5] + found[6]) * 100 >= 80 * SWEEPS, "{found:?}");
}
