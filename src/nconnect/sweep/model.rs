//! From a grid of cells to the smallest setting that is enough, and how sure that is.
//!
//! One request on the way cannot use two connections, so what differs between the settings there (the placebo class) is
//! noise and nothing else. It tells how large a gain must be to be believed at the depths where more connections can help.

use std::collections::{BTreeMap, BTreeSet};

use super::cells::{Cell, Grid, Trust};
use super::stats::{count, log_distance, median, normal_below, ERROR_OF_MEDIAN, SIGMA_OF_MAD};
use super::{Direction, Sample, Work};

/// Two measurements are never closer than this by more than luck.
const LEAST_NOISE: f64 = 0.02;
/// A gain below this is not worth a mount option.
const LEAST_GAIN: f64 = 0.10;
/// How many standard errors a gain must be above nothing.
const ERRORS_NEEDED: f64 = 3.0;
/// The best few settings that say how fast a work can be.
const ENVELOPE: usize = 3;
/// A class that stays below this part of what one connection has carried is held back by something else.
const CARRIED: f64 = 0.5;
/// Confidence in an answer that nothing is to be gained.
const SURE_OF_NO_GAIN: f64 = 0.9;
/// Confidence is never more than this where a series is suspect.
const SUSPECT_CAP: f64 = 0.5;
/// A median of fewer cells is one cell.
const LEAST_CELLS: usize = 2;

/// What the sweep is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What was varied. Depth has its meaning for `nconnect` alone; anything else is judged in one class.
    pub variable: String,
    pub rsize_bytes: u64,
    /// A setting this close to the best is as good: a part of 1.
    pub tolerance: f64,
}

impl Question {
    fn is_nconnect(&self) -> bool {
        self.variable.eq_ignore_ascii_case("nconnect")
    }

    fn depth(&self, work: &Work) -> Depth {
        if !self.is_nconnect() {
            Depth::Any
        } else if work.in_flight_bytes <= self.rsize_bytes {
            Depth::One
        } else if work.in_flight_bytes <= self.rsize_bytes.saturating_mul(4) {
            Depth::Few
        } else {
            Depth::Many
        }
    }

    /// The classes that can answer.
    fn depths(&self) -> &'static [Depth] {
        match self.is_nconnect() {
            true => &[Depth::Few, Depth::Many],
            false => &[Depth::Any],
        }
    }
}

/// Requests on the way at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    One,
    Few,
    Many,
    Any,
}

impl Depth {
    pub fn name(self) -> &'static str {
        match self {
            Depth::One => "1",
            Depth::Few => "2-4",
            Depth::Many => ">4",
            Depth::Any => "any",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub runs: Vec<Run>,
    pub pooled: Vec<Pooled>,
    pub advice: Vec<Advice>,
    /// How many times the least measured setting was measured.
    pub repetitions: usize,
}

/// One sweep in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub run: String,
    pub direction: Direction,
    pub settings: Vec<u64>,
    /// σ₀; None where no work of one request was measured.
    pub placebo_noise: Option<f64>,
    /// What one connection has carried, in this direction, in any run.
    pub one_connection_bytes_per_second: Option<f64>,
    /// Cells of which one pass is far off its twin.
    pub outliers: Vec<Cell>,
    pub stalls: Vec<Cell>,
    pub suspects: Vec<Cell>,
    pub classes: Vec<Class>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    pub depth: Depth,
    pub works: Vec<Work>,
    /// All cells of the class, for the eye.
    pub cells: Vec<Cell>,
    pub scores: Vec<Score>,
    pub sigma: Option<f64>,
    /// The fastest cell.
    pub peak_bytes_per_second: Option<f64>,
    /// Best score against that of the smallest setting, and what it must be to count.
    pub gain: Option<f64>,
    pub gain_needed: Option<f64>,
    pub verdict: Verdict,
    pub confidence: Option<f64>,
    /// What a score of 1 is, in the middle of the class.
    pub envelope_bytes_per_second: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    pub setting: u64,
    /// The cells as parts of the envelope; the score is their median. Empty where all were stalls.
    pub parts: Vec<f64>,
    pub score: Option<f64>,
    pub standard_error: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The smallest setting that is as good as the best.
    Gain(u64),
    /// The smallest setting: no other is better by more than noise.
    NoGain(u64),
    /// The smallest setting: one connection has carried far more than this class ever needs.
    NotTransportBound(u64),
    Undecided(Undecided),
}

impl Verdict {
    pub fn answer(self) -> Option<u64> {
        match self {
            Verdict::Gain(n) | Verdict::NoGain(n) | Verdict::NotTransportBound(n) => Some(n),
            Verdict::Undecided(_) => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Verdict::Gain(_) => "gain",
            Verdict::NoGain(_) => "no gain",
            Verdict::NotTransportBound(_) => "not transport-bound",
            Verdict::Undecided(_) => "cannot decide",
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Undecided {
    OneSetting,
    NothingInCommon,
    NoSuchDepth,
    NoiseUnknown,
    TooFewCells,
    SmallestStalled,
}

impl Undecided {
    pub fn why(self) -> &'static str {
        match self {
            Undecided::OneSetting => "only one setting was measured",
            Undecided::NothingInCommon => "no record size was measured at every setting",
            Undecided::NoSuchDepth => "nothing was measured at this depth",
            Undecided::NoiseUnknown => "how much equal measurements differ is unknown",
            Undecided::TooFewCells => "stalls left too few cells",
            Undecided::SmallestStalled => "the smallest setting has no cell to compare with",
        }
    }

    /// What to measure to get an answer.
    pub fn measure(self) -> &'static str {
        match self {
            Undecided::OneSetting => "measure others too: 1, 2, 4, 8 and 16, in random order",
            Undecided::NothingInCommon => "measure every setting with the same record sizes",
            Undecided::NoSuchDepth => {
                "measure with records of 8 and 16 times rsize, or with several requests in flight"
            }
            Undecided::NoiseUnknown => "repeat every setting at least 3 times, in random order",
            Undecided::TooFewCells | Undecided::SmallestStalled => {
                "measure again: every setting at least 3 times, in random order"
            }
        }
    }
}

/// All runs together that the transport holds back.
#[derive(Debug, Clone, PartialEq)]
pub struct Pooled {
    pub direction: Direction,
    pub depth: Depth,
    pub scores: Vec<(u64, f64)>,
    pub gain: f64,
    pub gain_needed: f64,
    /// Gain or no gain.
    pub verdict: Verdict,
}

/// What to do, in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    pub direction: Direction,
    /// The class that decides: the deepest one with an answer.
    pub depth: Option<Depth>,
    /// Settings to try, the first the most likely. Empty: leave it.
    pub tries: Vec<u64>,
    /// The smallest setting measured; None where nothing could be decided.
    pub leave: Option<u64>,
}

/// Judges all runs, and then all together.
pub fn judge(samples: &[Sample], question: &Question) -> Report {
    let mut by_run: BTreeMap<(&str, Direction), Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        by_run.entry((&sample.run, sample.direction)).or_default().push(sample);
    }
    let mut carried: BTreeMap<Direction, f64> = BTreeMap::new();
    for ((_, direction), samples) in &by_run {
        let most = carried.entry(*direction).or_default();
        *most = smallest_setting_passes(samples).fold(*most, f64::max);
    }
    let mut repetitions = usize::MAX;
    let mut runs = Vec::new();
    for ((run, direction), samples) in by_run {
        let grid = Grid::new(&samples);
        repetitions = repetitions.min(grid.repetitions());
        let carried = carried.get(&direction).copied().filter(|_| question.is_nconnect());
        runs.push(judge_run(run, direction, &grid, carried, question));
    }
    let directions: BTreeSet<Direction> = runs.iter().map(|run| run.direction).collect();
    let mut pooled = Vec::new();
    for &direction in &directions {
        let depths = question.depths().iter();
        pooled.extend(depths.filter_map(|&depth| pool(&runs, direction, depth, question.tolerance)));
    }
    let advice = directions
        .into_iter()
        .map(|direction| advise(&runs, &pooled, direction, question.depths()))
        .collect();
    Report {
        runs,
        pooled,
        advice,
        repetitions: if repetitions == usize::MAX { 0 } else { repetitions },
    }
}

fn smallest_setting_passes<'a>(samples: &'a [&Sample]) -> impl Iterator<Item = f64> + 'a {
    let smallest = samples.iter().map(|sample| sample.setting).min();
    samples
        .iter()
        .filter(move |sample| Some(sample.setting) == smallest)
        .flat_map(|sample| [Some(sample.bytes_per_second), sample.again_bytes_per_second])
        .flatten()
}

fn judge_run(run: &str, direction: Direction, grid: &Grid, carried: Option<f64>, question: &Question) -> Run {
    let placebo_noise = placebo_noise(grid, question);
    let cells = |trust| {
        grid.cells
            .iter()
            .filter(move |cell| cell.trust == trust)
            .copied()
            .collect()
    };
    let depths = question.depths().iter();
    Run {
        run: run.to_owned(),
        direction,
        settings: grid.settings.clone(),
        placebo_noise,
        one_connection_bytes_per_second: carried,
        outliers: grid.cells.iter().filter(|cell| cell.has_outlier()).copied().collect(),
        stalls: cells(Trust::Stall),
        suspects: cells(Trust::Suspect),
        classes: depths
            .map(|&depth| judge_class(depth, grid, placebo_noise, carried, question))
            .collect(),
    }
}

/// σ₀: how far the settings are apart where they cannot make a difference.
fn placebo_noise(grid: &Grid, question: &Question) -> Option<f64> {
    let middle = grid.middle();
    let placebo = grid
        .cells
        .iter()
        .filter(|cell| question.depth(&cell.work) == Depth::One);
    let distances = placebo.filter_map(|cell| Some(log_distance(cell.best(), *middle.get(&cell.work)?)));
    median(distances).map(|middle| (SIGMA_OF_MAD * middle).max(LEAST_NOISE))
}

fn judge_class(depth: Depth, grid: &Grid, noise: Option<f64>, carried: Option<f64>, question: &Question) -> Class {
    let cells: Vec<Cell> = grid
        .cells
        .iter()
        .filter(|cell| question.depth(&cell.work) == depth)
        .copied()
        .collect();
    let works: Vec<Work> = grid
        .works
        .iter()
        .filter(|work| question.depth(work) == depth)
        .copied()
        .collect();
    let mut class = Class {
        depth,
        peak_bytes_per_second: cells.iter().map(Cell::best).reduce(f64::max),
        works,
        cells,
        scores: Vec::new(),
        sigma: None,
        gain: None,
        gain_needed: None,
        verdict: Verdict::Undecided(Undecided::NoSuchDepth),
        confidence: None,
        envelope_bytes_per_second: None,
    };
    let verdict = class.decide(grid, noise, carried, question.tolerance);
    class.verdict = verdict.unwrap_or_else(Verdict::Undecided);
    class
}

impl Class {
    fn decide(
        &mut self,
        grid: &Grid,
        noise: Option<f64>,
        carried: Option<f64>,
        tolerance: f64,
    ) -> Result<Verdict, Undecided> {
        let &[smallest, _, ..] = grid.settings.as_slice() else {
            return Err(Undecided::OneSetting);
        };
        if grid.works.is_empty() {
            return Err(Undecided::NothingInCommon);
        }
        if self.works.is_empty() {
            return Err(Undecided::NoSuchDepth);
        }
        let sigma = match (noise, self.own_noise()) {
            (None, None) => return Err(Undecided::NoiseUnknown),
            (placebo, own) => placebo.into_iter().chain(own).fold(LEAST_NOISE, f64::max),
        };
        self.sigma = Some(sigma);
        self.score(grid, sigma);

        let enough = LEAST_CELLS.min(self.works.len());
        let scored = |score: &Score| {
            score
                .score
                .filter(|_| score.parts.len() >= enough)
                .map(|s| (score.setting, s))
        };
        let eligible: Vec<(u64, f64)> = self.scores.iter().filter_map(scored).collect();
        let best = eligible.iter().map(|(_, score)| *score).reduce(f64::max);
        let best = best.filter(|best| *best > 0.0).ok_or(Undecided::TooFewCells)?;
        let base = self.scores.iter().find(|score| score.setting == smallest);
        let (Some(base_score), Some(base_error)) = (
            base.and_then(|base| base.score).filter(|score| *score > 0.0),
            base.and_then(|base| base.standard_error),
        ) else {
            return Err(Undecided::SmallestStalled);
        };
        let errors = self.scores.iter().filter_map(|score| score.standard_error);
        let least_error = errors.fold(base_error, f64::min);
        let gain = best / base_score;
        let needed = 1.0 + LEAST_GAIN.max(ERRORS_NEEDED * base_error.hypot(least_error));
        (self.gain, self.gain_needed) = (Some(gain), Some(needed));

        let peak = self.peak_bytes_per_second.unwrap_or(0.0);
        let is_held_back_elsewhere = carried.is_some_and(|carried| peak <= CARRIED * carried);
        let enough_at = smallest_enough(&eligible, best, tolerance);
        let verdict = match enough_at {
            _ if is_held_back_elsewhere => Verdict::NotTransportBound(smallest),
            Some((setting, _)) if gain >= needed => Verdict::Gain(setting),
            _ => Verdict::NoGain(smallest),
        };
        let confidence = match (verdict, enough_at) {
            (Verdict::Gain(setting), Some((_, score))) => self.confidence_at(setting, score / best, tolerance),
            _ => SURE_OF_NO_GAIN,
        };
        let is_suspect = self.cells.iter().any(|cell| cell.trust == Trust::Suspect);
        self.confidence = Some(if is_suspect {
            confidence.min(SUSPECT_CAP)
        } else {
            confidence
        });
        Ok(verdict)
    }

    /// How far equal measurements are apart: passes of one cell, repetitions of one setting.
    fn own_noise(&self) -> Option<f64> {
        let usable = || self.cells.iter().filter(|cell| cell.is_usable());
        let passes = usable().filter_map(|cell| Some(log_distance(cell.first, cell.again?)));
        let passes = median(passes).map(|middle| SIGMA_OF_MAD * middle / std::f64::consts::SQRT_2);
        let mut repeated: BTreeMap<(u64, Work), Vec<f64>> = BTreeMap::new();
        for cell in usable() {
            repeated.entry((cell.setting, cell.work)).or_default().push(cell.best());
        }
        let mut distances = Vec::new();
        for values in repeated.into_values().filter(|values| values.len() > 1) {
            // The middle moves with its values, the more so the fewer there are.
            let n = count(values.len());
            let correction = (n / (n - 1.0)).sqrt();
            if let Some(middle) = median(values.iter().copied()) {
                distances.extend(values.iter().map(|value| correction * log_distance(*value, middle)));
            }
        }
        let repetitions = median(distances).map(|middle| SIGMA_OF_MAD * middle);
        passes.into_iter().chain(repetitions).reduce(f64::max)
    }

    fn score(&mut self, grid: &Grid, sigma: f64) {
        let mut envelope: BTreeMap<Work, f64> = BTreeMap::new();
        for (work, mut values) in grid.typical(Cell::is_usable) {
            if self.works.binary_search(&work).is_err() {
                continue;
            }
            values.sort_unstable_by(|a, b| b.total_cmp(a));
            values.truncate(ENVELOPE);
            envelope.extend(median(values).filter(|e| *e > 0.0).map(|e| (work, e)));
        }
        self.envelope_bytes_per_second = median(envelope.values().copied());
        let mut parts: BTreeMap<u64, Vec<f64>> = grid.settings.iter().map(|setting| (*setting, Vec::new())).collect();
        for cell in self.cells.iter().filter(|cell| cell.is_usable()) {
            if let (Some(envelope), Some(parts)) = (envelope.get(&cell.work), parts.get_mut(&cell.setting)) {
                parts.push(cell.best() / envelope);
            }
        }
        self.scores = parts
            .into_iter()
            .map(|(setting, parts)| Score {
                setting,
                score: median(parts.iter().copied()),
                standard_error: (!parts.is_empty()).then(|| ERROR_OF_MEDIAN * sigma / count(parts.len()).sqrt()),
                parts,
            })
            .collect();
    }

    /// How likely the setting is really within the tolerance of the best.
    fn confidence_at(&self, setting: u64, part_of_best: f64, tolerance: f64) -> f64 {
        let score = self.scores.iter().find(|score| score.setting == setting);
        let error = score.and_then(|score| score.standard_error).unwrap_or(f64::INFINITY);
        normal_below((part_of_best.ln() - (1.0 - tolerance).ln()) / error)
    }
}

/// Of settings in rising order the first whose score is within the tolerance of the best.
fn smallest_enough(scores: &[(u64, f64)], best: f64, tolerance: f64) -> Option<(u64, f64)> {
    scores
        .iter()
        .find(|(_, score)| *score >= best * (1.0 - tolerance))
        .copied()
}

/// Two runs or more of one direction and depth, cell by cell. None where the smallest setting has too few.
fn pool(runs: &[Run], direction: Direction, depth: Depth, tolerance: f64) -> Option<Pooled> {
    let classes: Vec<&Class> = runs
        .iter()
        .filter(|run| run.direction == direction)
        .flat_map(|run| run.classes.iter().filter(|class| class.depth == depth))
        .filter(|class| matches!(class.verdict, Verdict::Gain(_) | Verdict::NoGain(_)))
        .collect();
    if classes.len() < 2 {
        return None;
    }
    let mut parts: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for score in classes.iter().flat_map(|class| &class.scores) {
        parts.entry(score.setting).or_default().extend(&score.parts);
    }
    let (&smallest, _) = parts.first_key_value()?;
    let scores: Vec<(u64, f64)> = parts
        .into_iter()
        .filter(|(_, parts)| parts.len() >= LEAST_CELLS)
        .filter_map(|(setting, parts)| Some((setting, median(parts)?)))
        .collect();
    let base = scores
        .first()
        .filter(|(setting, score)| *setting == smallest && *score > 0.0)?;
    let best = scores.iter().map(|(_, score)| *score).fold(base.1, f64::max);
    let gain = best / base.1;
    let gain_needed = classes.iter().filter_map(|class| class.gain_needed).reduce(f64::max)?;
    let verdict = match smallest_enough(&scores, best, tolerance) {
        Some((setting, _)) if gain >= gain_needed => Verdict::Gain(setting),
        _ => Verdict::NoGain(smallest),
    };
    Some(Pooled {
        direction,
        depth,
        scores,
        gain,
        gain_needed,
        verdict,
    })
}

/// The runs together come first; a single run may want more, never less.
fn advise(runs: &[Run], pooled: &[Pooled], direction: Direction, depths: &[Depth]) -> Advice {
    let verdicts = |depth: Depth| {
        let runs = runs.iter().filter(move |run| run.direction == direction);
        runs.flat_map(move |run| run.classes.iter().filter(move |class| class.depth == depth))
            .map(|class| class.verdict)
            .filter(|verdict| verdict.answer().is_some())
    };
    let deepest = depths
        .iter()
        .rev()
        .copied()
        .find(|&depth| verdicts(depth).next().is_some());
    let Some(depth) = deepest else {
        return Advice {
            direction,
            depth: None,
            tries: Vec::new(),
            leave: None,
        };
    };
    let together = pooled
        .iter()
        .find(|pooled| (pooled.direction, pooled.depth) == (direction, depth));
    let gains: BTreeSet<u64> = verdicts(depth)
        .filter_map(|verdict| match verdict {
            Verdict::Gain(setting) => Some(setting),
            _ => None,
        })
        .collect();
    let tries = match together.map(|pooled| pooled.verdict) {
        Some(Verdict::Gain(first)) => std::iter::once(first)
            .chain(gains.into_iter().filter(|n| *n > first))
            .collect(),
        Some(_) => Vec::new(),
        None => gains.into_iter().collect(),
    };
    let settings = runs
        .iter()
        .filter(|run| run.direction == direction)
        .flat_map(|run| &run.settings);
    Advice {
        direction,
        depth: Some(depth),
        tries,
        leave: settings.min().copied(),
    }
}
