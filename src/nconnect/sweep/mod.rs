//! nconnect from a sweep: the same benchmark, measured once or more for each setting.
//!
//! Text ([`iozone`], [`csv`]) or jobs ([`fio`]) → what was measured ([`Measured`]) → with the setting of its file
//! ([`label`]) a [`Sample`] → cells ([`cells`]) → an answer for each run, direction and depth ([`model`]).

pub mod cells;
pub mod csv;
pub mod fio;
pub mod iozone;
pub mod label;
pub mod model;
mod number;
pub mod stats;

/// Rows that one file may hold; a sweep has hundreds.
pub const MAX_ROWS: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    Read,
    Write,
}

impl Direction {
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
        }
    }
}

/// What was done, apart from the setting. In this order the works of one series (same file size, same pattern) go from the
/// shallowest to the deepest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work {
    pub file_bytes: Option<u64>,
    pub is_random: bool,
    /// What the callers together have on the way at a time: for one caller its record.
    pub in_flight_bytes: u64,
    pub record_bytes: u64,
}

impl Work {
    /// Are the two comparable as depths of the same thing?
    pub fn is_series_of(&self, other: &Work) -> bool {
        (self.file_bytes, self.is_random) == (other.file_bytes, other.is_random)
    }
}

/// One line of a result. Rates are finite and not negative.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    pub work: Work,
    pub direction: Direction,
    pub bytes_per_second: f64,
    /// The same once more, right after the first (rewrite, reread).
    pub again_bytes_per_second: Option<f64>,
    /// Where the text says so; else the name of the file tells.
    pub setting: Option<u64>,
    pub run: Option<String>,
}

/// All of one file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    pub measured: Vec<Measured>,
    /// What to know about these numbers before believing them.
    pub cautions: Vec<String>,
}

/// A text that cannot be read as a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// Counted from 1.
    pub line: u64,
    pub why: String,
}

impl Bad {
    pub fn new(line: usize, why: impl Into<String>) -> Bad {
        Bad {
            line: u64::try_from(line).unwrap_or(u64::MAX),
            why: why.into(),
        }
    }
}

/// One measurement that knows where it belongs.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Sweeps are judged one by one, and then together.
    pub run: String,
    pub setting: u64,
    /// The file, and which of the equal rows in it: what one repetition measured belongs together.
    pub repetition: (usize, usize),
    pub direction: Direction,
    pub work: Work,
    pub bytes_per_second: f64,
    pub again_bytes_per_second: Option<f64>,
}

/// One file of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// What the command line or the name says of this file; the text itself is asked first.
    pub setting: Option<u64>,
    pub run: String,
    pub measured: Vec<Measured>,
}

/// The samples of all files; Err is the place of the first file that nothing gives a setting.
pub fn samples(sources: &[Source]) -> Result<Vec<Sample>, usize> {
    let mut samples = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        let mut seen = std::collections::BTreeMap::new();
        for m in &source.measured {
            let setting = m.setting.or(source.setting).ok_or(file)?;
            let run = m.run.clone().unwrap_or_else(|| source.run.clone());
            let row = seen.entry((run.clone(), setting, m.direction, m.work)).or_insert(0);
            samples.push(Sample {
                run,
                setting,
                repetition: (file, *row),
                direction: m.direction,
                work: m.work,
                bytes_per_second: m.bytes_per_second,
                again_bytes_per_second: m.again_bytes_per_second,
            });
            *row += 1;
        }
    }
    Ok(samples)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Iozone,
    Fio,
    Csv,
}

impl Format {
    /// By the marks that every output of its kind carries.
    pub fn of(text: &str) -> Option<Format> {
        if fio::json(text).is_some() {
            Some(Format::Fio)
        } else if csv::is_csv(text) {
            Some(Format::Csv)
        } else if iozone::is_iozone(text) {
            Some(Format::Iozone)
        } else {
            None
        }
    }
}
