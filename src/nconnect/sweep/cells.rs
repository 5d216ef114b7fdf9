//! One run and direction as a grid of cells, and which of them to believe.

use std::collections::{BTreeMap, BTreeSet};

use super::stats::median;
use super::{Sample, Work};

/// Two passes of one cell further apart than this: one of them met something else.
const OUTLIER: f64 = 1.5;
/// A cell below this part of what is expected is low.
const LOW: f64 = 0.6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Good,
    /// Low, alone: something held up the whole cell. Left out.
    Stall,
    /// Low, next to other low ones: something is wrong with the series. Kept, with less confidence.
    Suspect,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    pub setting: u64,
    pub repetition: (usize, usize),
    pub work: Work,
    pub first: f64,
    pub again: Option<f64>,
    pub trust: Trust,
}

impl Cell {
    /// The better pass: noise only slows.
    pub fn best(&self) -> f64 {
        self.again.map_or(self.first, |again| again.max(self.first))
    }

    pub fn is_usable(&self) -> bool {
        self.trust != Trust::Stall
    }

    /// Is one pass so far off its twin that it cannot be noise?
    pub fn has_outlier(&self) -> bool {
        self.again
            .is_some_and(|again| self.best() > OUTLIER * again.min(self.first))
    }
}

/// Cells in the order of setting, repetition, work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grid {
    pub settings: Vec<u64>,
    /// What was measured at every setting; nothing else is compared.
    pub works: Vec<Work>,
    pub cells: Vec<Cell>,
}

impl Grid {
    pub fn new(samples: &[&Sample]) -> Grid {
        let repetitions = without_copies(samples);
        let mut by_setting: BTreeMap<u64, BTreeSet<Work>> = BTreeMap::new();
        for cell in repetitions.iter().flatten() {
            by_setting.entry(cell.setting).or_default().insert(cell.work);
        }
        let settings = by_setting.keys().copied().collect();
        let works = by_setting
            .into_values()
            .reduce(|a, b| a.intersection(&b).copied().collect())
            .unwrap_or_default();
        let mut cells: Vec<Cell> = repetitions.into_iter().flatten().collect();
        cells.retain(|cell| works.contains(&cell.work));
        let mut grid = Grid {
            settings,
            works: works.into_iter().collect(),
            cells,
        };
        grid.find_stalls();
        grid
    }

    /// What each setting reached at a work, the middle one of its repetitions.
    pub fn typical(&self, is_asked: impl Fn(&Cell) -> bool) -> BTreeMap<Work, Vec<f64>> {
        let mut values: BTreeMap<(Work, u64), Vec<f64>> = BTreeMap::new();
        for cell in self.cells.iter().filter(|cell| is_asked(cell)) {
            values.entry((cell.work, cell.setting)).or_default().push(cell.best());
        }
        let mut typical: BTreeMap<Work, Vec<f64>> = BTreeMap::new();
        for ((work, _), values) in values {
            typical.entry(work).or_default().extend(median(values));
        }
        typical
    }

    /// For each work the middle one of what the settings reached.
    pub fn middle(&self) -> BTreeMap<Work, f64> {
        let typical = self.typical(|_| true).into_iter();
        typical
            .filter_map(|(work, values)| Some((work, median(values)?)))
            .collect()
    }

    /// How many times the setting with the fewest repetitions was measured.
    pub fn repetitions(&self) -> usize {
        let mut by_setting: BTreeMap<u64, BTreeSet<(usize, usize)>> = BTreeMap::new();
        for cell in &self.cells {
            by_setting.entry(cell.setting).or_default().insert(cell.repetition);
        }
        by_setting.values().map(BTreeSet::len).min().unwrap_or(0)
    }

    /// A deeper work is at least as fast as a shallower one, and one setting is not far from all others: a cell that breaks
    /// both is low.
    fn find_stalls(&mut self) {
        let middle = self.middle();
        let series =
            |a: &Cell, b: &Cell| (a.setting, a.repetition) == (b.setting, b.repetition) && a.work.is_series_of(&b.work);
        for cells in self.cells.chunk_by_mut(series) {
            let mut best_before: Option<f64> = None;
            let mut is_low = vec![false; cells.len()];
            for (cell, is_low) in cells.iter().zip(&mut is_low) {
                let y = cell.best();
                let is_below_middle = middle.get(&cell.work).is_some_and(|middle| y < LOW * middle);
                *is_low = is_below_middle && best_before.is_some_and(|best| y < LOW * best);
                best_before = Some(best_before.map_or(y, |best| best.max(y)));
            }
            for (at, cell) in cells.iter_mut().enumerate().filter(|(at, _)| is_low[*at]) {
                let has_low_neighbour = (at > 0 && is_low[at - 1]) || is_low.get(at + 1) == Some(&true);
                cell.trust = if has_low_neighbour {
                    Trust::Suspect
                } else {
                    Trust::Stall
                };
            }
        }
    }
}

/// The cells of each repetition. The same numbers twice are one measurement, given twice: it says nothing more.
fn without_copies(samples: &[&Sample]) -> Vec<Vec<Cell>> {
    let mut repetitions: BTreeMap<(u64, (usize, usize)), Vec<Cell>> = BTreeMap::new();
    for sample in samples {
        repetitions
            .entry((sample.setting, sample.repetition))
            .or_default()
            .push(Cell {
                setting: sample.setting,
                repetition: sample.repetition,
                work: sample.work,
                first: sample.bytes_per_second,
                again: sample.again_bytes_per_second,
                trust: Trust::Good,
            });
    }
    let mut seen = BTreeSet::new();
    let is_new = |cells: &Vec<Cell>| {
        let numbers: Vec<_> = cells
            .iter()
            .map(|cell| {
                (
                    cell.setting,
                    cell.work,
                    cell.first.to_bits(),
                    cell.again.map(f64::to_bits),
                )
            })
            .collect();
        seen.insert(numbers)
    };
    repetitions
        .into_values()
        .map(|mut cells| {
            cells.sort_by_key(|cell| cell.work);
            cells
        })
        .filter(is_new)
        .collect()
}
