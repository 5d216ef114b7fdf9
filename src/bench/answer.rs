//! The smallest readahead that is enough, from throughput measured at several values, each several times.
//!
//! More readahead helps up to a knee and may harm beyond it, so the throughput rises to one top and then falls: the curve
//! that does so and is nearest to what was measured (a unimodal regression) is steadier than the figures themselves, of which
//! the highest is mostly the luckiest. The answer is where that curve is within the tolerance of its top.

use std::collections::BTreeMap;

use crate::nconnect::sweep::stats::{count, median, normal_below, ERROR_OF_MEDIAN, SIGMA_OF_MAD};

/// Equal measurements never differ by less than this by more than luck.
const LEAST_NOISE: f64 = 0.01;
/// Bytes a second. What moved nothing is no rate.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1.0..=1e15;
/// A gain below this is not worth a line of configuration.
const LEAST_GAIN: f64 = 0.05;
/// How many standard errors a gain must be above nothing.
const ERRORS_NEEDED: f64 = 3.0;
/// The top of a noisy curve is above the true one by about this many standard errors.
const TOP_IS_HIGH_BY: f64 = 0.5;
/// Below this part of the best nothing can be the answer any more, however the noise falls.
const IN_QUESTION: f64 = 0.9;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub value: u64,
    /// All rates, sorted; bytes a second.
    pub rates: Vec<f64>,
    pub median: f64,
    /// The curve.
    pub fitted: f64,
    /// Of the median, as a part of it; None where no value was measured twice.
    pub standard_error: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The smallest value that is as good as the best.
    Enough(u64),
    /// No value is better than the smallest by more than noise: it makes no difference.
    Flat(u64),
    /// Too little was measured.
    Undecided(&'static str),
}

impl Verdict {
    pub fn value(self) -> Option<u64> {
        match self {
            Verdict::Enough(value) | Verdict::Flat(value) => Some(value),
            Verdict::Undecided(_) => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Verdict::Enough(_) => "enough",
            Verdict::Flat(_) => "flat",
            Verdict::Undecided(_) => "cannot decide",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// In the order of their values.
    pub points: Vec<Point>,
    /// How far equal measurements are apart, as a part of 1.
    pub noise: Option<f64>,
    /// Top of the curve against its smallest value, and what that must be to count.
    pub gain: Option<f64>,
    pub gain_needed: Option<f64>,
    pub verdict: Verdict,
    /// That the answer is within the tolerance: 0.5 is a guess.
    pub confidence: Option<f64>,
}

impl Answer {
    pub fn point(&self, value: u64) -> Option<&Point> {
        self.points.iter().find(|point| point.value == value)
    }

    /// The highest median.
    pub fn best(&self) -> Option<&Point> {
        let better = |best: &&Point, point: &&Point| best.median.total_cmp(&point.median);
        // Of equals the smallest value.
        self.points.iter().rev().max_by(better)
    }

    /// Values that more measurements could make the answer; and the smallest, which all are compared with.
    pub fn in_question(&self) -> Vec<u64> {
        let best = self.best().map_or(0.0, |best| best.median);
        let part = IN_QUESTION.min(1.0 - 2.0 * self.noise.unwrap_or(0.0));
        let near = self.points.iter().skip(1).filter(|point| point.median >= part * best);
        self.points
            .iter()
            .take(1)
            .chain(near)
            .map(|point| point.value)
            .collect()
    }
}

/// Judges (value, bytes a second) in any order. `tolerance` is a part of 1: a value this close to the best is as good. What
/// moved nothing is left out.
pub fn answer(measured: &[(u64, f64)], tolerance: f64) -> Answer {
    let mut rates: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for &(value, rate) in measured.iter().filter(|(_, rate)| PLAUSIBLE.contains(rate)) {
        rates.entry(value).or_default().push(rate);
    }
    let mut points = Vec::new();
    for (value, mut rates) in rates {
        rates.sort_unstable_by(f64::total_cmp);
        let Some(middle) = median(rates.iter().copied()) else {
            continue;
        };
        points.push(Point {
            value,
            rates,
            median: middle,
            fitted: middle,
            standard_error: None,
        });
    }
    let noise = noise(&points);
    let logs: Vec<(f64, f64)> = points.iter().map(|p| (p.median.ln(), count(p.rates.len()))).collect();
    for (point, fitted) in points.iter_mut().zip(unimodal(&logs)) {
        point.fitted = fitted.exp();
        point.standard_error = noise.map(|noise| ERROR_OF_MEDIAN * noise / count(point.rates.len()).sqrt());
    }
    let mut answer = Answer {
        points,
        noise,
        gain: None,
        gain_needed: None,
        verdict: Verdict::Undecided("two values at least have to be measured"),
        confidence: None,
    };
    answer.decide(tolerance);
    answer
}

impl Answer {
    fn decide(&mut self, tolerance: f64) {
        let higher = |top: &&Point, point: &&Point| top.fitted.total_cmp(&point.fitted);
        let (Some(first), Some(top)) = (self.points.first(), self.points.iter().rev().max_by(higher)) else {
            return;
        };
        if self.points.len() < 2 {
            return;
        }
        let (Some(first_error), Some(top_error)) = (first.standard_error, top.standard_error) else {
            self.verdict = Verdict::Undecided("no value was measured twice, so the noise is unknown");
            return;
        };
        let gain = top.fitted / first.fitted;
        let needed = 1.0 + LEAST_GAIN.max(ERRORS_NEEDED * first_error.hypot(top_error));
        let smallest = first.value;
        let enough_log = top.fitted.ln() - TOP_IS_HIGH_BY * top_error + (1.0 - tolerance).ln();
        let chosen = self.points.iter().find(|point| point.fitted.ln() >= enough_log);
        let margin = chosen.map(|point| {
            let error = point.standard_error.unwrap_or(top_error).hypot(top_error);
            normal_below((point.fitted.ln() - enough_log) / error)
        });
        (self.gain, self.gain_needed) = (Some(gain), Some(needed));
        (self.verdict, self.confidence) = match chosen {
            Some(point) if gain >= needed => (Verdict::Enough(point.value), margin),
            _ => {
                let error = first_error.hypot(top_error);
                (
                    Verdict::Flat(smallest),
                    Some(normal_below((needed.ln() - gain.ln()) / error)),
                )
            }
        };
    }
}

/// The standard deviation of equal measurements: of each value the range of its rates, divided by what the range of as many
/// normal values is in standard deviations; of these the middle, so that one wild value moves nothing.
fn noise(points: &[Point]) -> Option<f64> {
    const RANGES: [f64; 9] = [1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970, 3.078];
    let of_one = |point: &Point| {
        let (low, high) = (point.rates.first()?, point.rates.last()?);
        match RANGES.get(point.rates.len().checked_sub(2)?) {
            Some(range) => Some((high / low).ln() / range),
            None => {
                median(point.rates.iter().map(|rate| (rate / point.median).ln().abs())).map(|mad| SIGMA_OF_MAD * mad)
            }
        }
    };
    median(points.iter().filter_map(of_one)).map(|noise| noise.max(LEAST_NOISE))
}

/// The curve that rises to one top and falls after it, nearest to the values by weighted squares. Of equally near ones that
/// with the first top.
fn unimodal(values: &[(f64, f64)]) -> Vec<f64> {
    let mut best: Option<(f64, Vec<f64>)> = None;
    for top in 0..values.len() {
        let mut curve = rising(values[..=top].iter().copied());
        let mut falling = rising(values[top + 1..].iter().rev().copied());
        falling.reverse();
        curve.extend(falling);
        let squares = curve.iter().zip(values);
        let distance: f64 = squares.map(|(fitted, (y, weight))| weight * (fitted - y).powi(2)).sum();
        if best.as_ref().is_none_or(|(least, _)| distance < least - 1e-12) {
            best = Some((distance, curve));
        }
    }
    best.map(|(_, curve)| curve).unwrap_or_default()
}

/// The rising curve nearest to (value, weight): neighbours in the wrong order become their mean (pool adjacent violators).
fn rising(values: impl Iterator<Item = (f64, f64)>) -> Vec<f64> {
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for (value, weight) in values {
        let mut block = (value, weight, 1);
        while let Some(&(before, its_weight, n)) = blocks.last().filter(|before| before.0 > block.0) {
            blocks.pop();
            let sum = its_weight + block.1;
            block = ((before * its_weight + block.0 * block.1) / sum, sum, n + block.2);
        }
        blocks.push(block);
    }
    blocks
        .into_iter()
        .flat_map(|(value, _, n)| std::iter::repeat_n(value, n))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::float;
    use proptest::prelude::*;

    const VALUES: [u64; 8] = [128, 256, 512, 1024, 2048, 4096, 8192, 16384];

    /// B·R/(R + BDP), BDP in KiB.
    fn reader(bdp: f64) -> impl Fn(u64) -> f64 {
        move |value| 1e9 * float(value) / (float(value) + bdp)
    }

    fn thrice(curve: impl Fn(u64) -> f64) -> Vec<(u64, f64)> {
        let noise = [0.99, 1.0, 1.012];
        let each = |value: u64| noise.map(|noise| (value, curve(value) * noise));
        VALUES.into_iter().flat_map(each).collect()
    }

    #[test]
    fn the_knee_and_no_more() {
        let found = answer(&thrice(reader(60.0)), 0.03);
        // 0.972, 0.986 of B: 2048 is within 3 % of 16384's 0.996.
        assert_eq!(found.verdict, Verdict::Enough(2048));
        assert!(found.confidence.unwrap() >= 0.5);
        assert_eq!(found.best().unwrap().value, 16384);
        assert_eq!(found.in_question(), [128, 1024, 2048, 4096, 8192, 16384]);
    }

    #[test]
    fn a_loss_beyond_the_top_is_seen() {
        // 650, 942 and 380 MB/s at 128 KiB, 1 MiB and 15 MiB: a public report.
        let table = BTreeMap::from([(128, 650.0), (1024, 942.0), (15360, 380.0)]);
        let measured: Vec<_> = table
            .iter()
            .flat_map(|(v, r)| [(*v, r * 1e6), (*v, r * 1.01e6)])
            .collect();
        assert_eq!(answer(&measured, 0.03).verdict, Verdict::Enough(1024));
    }

    #[test]
    fn no_difference_is_said() {
        let found = answer(&thrice(|_| 1e8), 0.03);
        assert_eq!(found.verdict, Verdict::Flat(128));
        assert!(found.confidence.unwrap() > 0.9);
        // The smallest is the best of all: nothing is gained above it.
        assert_eq!(
            answer(&thrice(|value| 1e10 / float(value)), 0.03).verdict,
            Verdict::Flat(128)
        );
    }

    #[test]
    fn one_wild_figure_moves_nothing() {
        let mut measured = thrice(reader(60.0));
        let sane = answer(&measured, 0.03).verdict;
        measured[0].1 *= 40.0;
        assert_eq!(answer(&measured, 0.03).verdict, sane);
        let last = measured.len() - 1;
        measured[last].1 /= 40.0;
        assert_eq!(answer(&measured, 0.03).verdict, sane);
    }

    #[test]
    fn too_little_is_no_answer() {
        for few in [
            &[][..],
            &[(128, 1.0)],
            &[(128, 1.0), (256, 2.0)],
            &[(128, 0.0), (256, f64::NAN)],
        ] {
            assert!(matches!(answer(few, 0.03).verdict, Verdict::Undecided(_)), "{few:?}");
        }
    }

    /// A fixed sequence, so that a bound is met or not, and not sometimes.
    struct Dice(u64);

    impl Dice {
        fn uniform(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(self.0 >> 33).unwrap()) / f64::from(1u32 << 31)
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    /// Three rounds of all, four more of those in question, as the program does it.
    fn measured(curve: &impl Fn(u64) -> f64, noise: f64, dice: &mut Dice) -> Answer {
        let mut all = Vec::new();
        let round = |values: &[u64], all: &mut Vec<(u64, f64)>, dice: &mut Dice| {
            all.extend(values.iter().map(|v| (*v, curve(*v) * (noise * dice.normal()).exp())));
        };
        for _ in 0..3 {
            round(&VALUES, &mut all, dice);
        }
        for _ in 0..4 {
            let values = answer(&all, 0.03).in_question();
            round(&values, &mut all, dice);
        }
        answer(&all, 0.03)
    }

    #[test]
    fn under_three_percent_of_noise_the_answer_moves_one_step_at_most() {
        let step = |value: u64| VALUES.iter().position(|v| *v == value).unwrap();
        let mut dice = Dice(7);
        for bdp in [20.0, 60.0, 150.0, 400.0, 1000.0, 3000.0] {
            let curve = reader(bdp);
            let top = curve(16384);
            let truth = VALUES.iter().position(|v| curve(*v) >= 0.97 * top).unwrap();
            let runs = 400;
            let mut near = 0;
            let mut reached = 0.0;
            for _ in 0..runs {
                let value = measured(&curve, 0.03, &mut dice).verdict.value().unwrap();
                near += usize::from(step(value).abs_diff(truth) <= 1);
                reached += curve(value) / top / f64::from(runs);
            }
            assert!(near * 100 >= 85 * 400, "BDP {bdp} KiB: {near} of {runs}");
            assert!(reached >= 0.97, "BDP {bdp} KiB: {reached}");
        }
    }

    #[test]
    fn noise_alone_is_no_gain() {
        let mut dice = Dice(11);
        let is_flat = |dice: &mut Dice| matches!(measured(&|_| 1e8, 0.03, dice).verdict, Verdict::Flat(128));
        let flat = (0..400).filter(|_| is_flat(&mut dice)).count();
        assert!(flat >= 380, "{flat} of 400");
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter(
            measured in prop::collection::vec((1u64..9, 1.0..1e9f64), 0..40),
            swaps in prop::collection::vec((0usize..40, 0usize..40), 0..40),
        ) {
            let mut other = measured.clone();
            for (a, b) in swaps {
                if a < other.len() && b < other.len() {
                    other.swap(a, b);
                }
            }
            prop_assert_eq!(answer(&measured, 0.03), answer(&other, 0.03));
        }

        #[test]
        fn the_unit_does_not_matter(measured in prop::collection::vec((1u64..9, 1.0..1e9f64), 0..40)) {
            let scaled: Vec<_> = measured.iter().map(|(v, r)| (*v, r * 1024.0)).collect();
            let (a, b) = (answer(&measured, 0.03), answer(&scaled, 0.03));
            prop_assert_eq!(a.verdict.name(), b.verdict.name());
        }

        #[test]
        fn an_answer_is_one_of_the_values(measured in prop::collection::vec((0u64..9, prop::num::f64::ANY), 0..40)) {
            let found = answer(&measured, 0.03);
            if let Some(value) = found.verdict.value() {
                prop_assert!(found.point(value).is_some());
                prop_assert!((0.0..=1.0).contains(&found.confidence.unwrap()));
            }
        }

        #[test]
        fn the_curve_has_one_top(values in prop::collection::vec((-9.0..9.0f64, 1.0..5.0f64), 1..20)) {
            let curve = unimodal(&values);
            prop_assert_eq!(curve.len(), values.len());
            let falls = curve.windows(2).position(|pair| pair[1] < pair[0]).unwrap_or(curve.len() - 1);
            prop_assert!(curve[falls..].windows(2).all(|pair| pair[1] <= pair[0]));
        }
    }
}
