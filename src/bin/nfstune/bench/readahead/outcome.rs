//! What `bench readahead` says.

use std::fmt::Write as _;

use nfsrahead::apply::replace::replace_with_folder;
use nfsrahead::bench::amount::{shown_bytes, shown_rate};
use nfsrahead::bench::answer::{Answer, Point, Verdict};
use nfsrahead::bench::drop_in::DropIn;
use nfsrahead::error::Result;
use nfsrahead::float::float;
use nfsrahead::report::escape::escape_path;
use nfsrahead::report::table::table;
use nfsrahead::root::Root;
use serde_json::{json, Value};

use super::super::chart::{self, Series, Throughput};
use super::super::facts::Facts;
use super::super::page::{Figure, Page};
use super::super::{whole_rate, Outcome};
use super::{LARGE, SMALL};

#[derive(Debug, Clone)]
pub struct Sample {
    pub kib: u64,
    pub record_bytes: u64,
    pub round: usize,
    pub bytes: u64,
    pub seconds: f64,
}

impl Sample {
    pub fn bytes_per_s(&self) -> f64 {
        float(self.bytes) / self.seconds.max(1e-9)
    }
}

pub struct Readahead {
    pub facts: Facts,
    pub samples: Vec<Sample>,
    /// With reads of 64 KiB: the answer.
    pub small: Answer,
    /// With reads of 1 MiB.
    pub large: Answer,
    pub tolerance: f64,
    pub present_kib: Option<u64>,
    pub file_bytes: u64,
    pub is_own_file: bool,
    pub is_fio: bool,
    pub is_anonymous: bool,
    pub cautions: Vec<String>,
    pub drop_in: Option<DropIn>,
    /// Where the drop-in was written.
    pub applied: Option<String>,
    pub cut_short: Option<String>,
}

impl Readahead {
    /// Nothing where there is no value that makes a difference.
    pub fn apply(&mut self, root: &Root) -> Result<()> {
        let Some(drop_in) = &self.drop_in else {
            if let Verdict::Enough(_) = self.small.verdict {
                self.cautions
                    .push("nothing was written: a header of nfs.conf cannot name this mount point".to_owned());
            }
            return Ok(());
        };
        let path = root.nfs_conf_drop_in(&drop_in.name);
        replace_with_folder(
            &path,
            format!("# by nfstune bench readahead\n{}", drop_in.text).as_bytes(),
        )?;
        self.applied = Some(escape_path(&root.shown(&path)));
        Ok(())
    }

    /// Two sentences.
    fn conclusion(&self) -> String {
        let percent = 100.0 * self.tolerance;
        let (first, best) = (self.small.points.first(), self.small.best());
        match (self.small.verdict, first, best) {
            (Verdict::Enough(kib), Some(first), Some(best)) => {
                let chosen = self.small.point(kib).unwrap_or(best);
                let is_last = self.small.points.last().is_some_and(|last| last.value == kib);
                let rest = if is_last {
                    "It is the largest that was measured.".to_owned()
                } else if best.value == kib {
                    "No other value is faster.".to_owned()
                } else {
                    format!(
                        "The best, {} KiB with {}, is within {percent} %.",
                        best.value,
                        shown_rate(best.median)
                    )
                };
                format!(
                    "{kib} KiB of readahead are enough: {}, {:.1} times as fast as {} KiB. {rest}",
                    shown_rate(chosen.median),
                    chosen.median / first.median,
                    first.value
                )
            }
            (Verdict::Flat(kib), _, Some(best)) => format!(
                "Readahead makes no difference here that is larger than the noise: from {kib} KiB on every value gives \
                 about {}. Leave it as it is{}.",
                shown_rate(best.median),
                self.present_kib.map_or(String::new(), |kib| format!(", at {kib} KiB"))
            ),
            (Verdict::Undecided(why), ..) => format!("No answer: {why}. Measure again, with a larger --budget."),
            _ => "No answer: nothing was measured. Measure again, with a larger --budget.".to_owned(),
        }
    }

    fn value(&self) -> Option<u64> {
        self.small.verdict.value()
    }

    /// None where there is nothing to choose.
    fn enough(&self) -> Option<u64> {
        match self.small.verdict {
            Verdict::Enough(kib) => Some(kib),
            _ => None,
        }
    }

    /// Value, both kinds of reads, part of the best, marks.
    fn rows(&self) -> Vec<[String; 6]> {
        let head = ["READAHEAD KIB", "64K READS", "1M READS", "OF BEST", "TIMES", "NOTE"];
        let mut rows = vec![head.map(str::to_owned)];
        let best = self.small.best().map_or(0.0, |best| best.median);
        let rate = |point: Option<&Point>| point.map_or("-".to_owned(), |point| shown_rate(point.median));
        for point in &self.small.points {
            let mut notes = Vec::new();
            if self.enough() == Some(point.value) {
                notes.push("enough");
            }
            if self.present_kib == Some(point.value) {
                notes.push("now");
            }
            rows.push([
                point.value.to_string(),
                rate(Some(point)),
                rate(self.large.point(point.value)),
                format!("{:.0} %", 100.0 * point.median / best.max(1.0)),
                point.rates.len().to_string(),
                notes.join(", "),
            ]);
        }
        rows
    }

    /// The smallest value against the largest.
    fn ratio(&self) -> Option<(u64, u64, f64)> {
        let (first, last) = (self.small.points.first()?, self.small.points.last()?);
        (first.value != last.value).then(|| (first.value, last.value, last.median / first.median))
    }

    /// Lines to copy, and where to.
    fn copy(&self) -> Option<String> {
        let text = &self.drop_in.as_ref()?.text;
        if self.is_anonymous {
            let (_, value) = text.split_once('\n')?;
            return Some(format!("[nfsrahead \"MOUNT\"]\n{value}"));
        }
        Some(text.clone())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            format!(
                "sequential reads of 64 KiB and 1 MiB by {}, of {} of {}, opened anew for each value, its page cache empty",
                if self.is_fio { "fio" } else { "nfstune" },
                shown_bytes(self.file_bytes),
                if self.is_own_file { "a file written before" } else { "a file read before" },
            ),
            "values in random order in each round; the server has the file in its memory, so its disks are not measured".to_owned(),
        ];
        if let Some(noise) = self.small.noise {
            let is_loud = noise > self.tolerance;
            let then = if is_loud {
                ": more than the tolerance, so measure again when it is quiet, or longer"
            } else {
                ""
            };
            notes.push(format!("equal measurements differ by {:.1} %{then}", 100.0 * noise));
        }
        notes.push(
            "one reader: for many at a time, and for mmap, less may be better; the answer is from reads of 64 KiB, for reads \
             of rsize and more pass a small readahead by"
                .to_owned(),
        );
        notes.extend(self.cautions.iter().cloned());
        notes
    }
}

impl Outcome for Readahead {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn cut_short(&self) -> Option<&str> {
        self.cut_short.as_deref()
    }

    fn text(&self) -> String {
        let mut out = format!(
            "{}: {}\n\n{}",
            self.facts.place(),
            self.conclusion(),
            table(&self.rows())
        );
        out.push('\n');
        if let Some((first, last, ratio)) = self.ratio() {
            let _ = writeln!(out, "{last} KiB against {first} KiB: {ratio:.1} times");
        }
        if let Some(confidence) = self.small.confidence {
            let _ = writeln!(out, "confidence {confidence:.2}");
        }
        for note in self.notes() {
            let _ = writeln!(out, "- {note}");
        }
        match (&self.applied, self.copy()) {
            (Some(path), Some(text)) => {
                let path = if self.is_anonymous { "a file" } else { path };
                let _ = write!(out, "\nwritten to {path}:\n{text}");
                out.push_str("for mounts that are there: udevadm trigger --subsystem-match=bdi --action=add\n");
            }
            (None, Some(text)) => {
                let _ = write!(out, "\nfor nfs.conf, or --apply:\n{text}");
            }
            _ => {}
        }
        out
    }

    fn json(&self) -> Value {
        json!({
            "schema_version": 1,
            "bench": "readahead",
            "is_complete": self.cut_short.is_none(),
            "facts": self.facts.json(),
            "verdict": self.small.verdict.name(),
            "read_ahead_bytes": self.value().map(|kib| kib * 1024),
            "present_read_ahead_bytes": self.present_kib.map(|kib| kib * 1024),
            "confidence": self.small.confidence,
            "tolerance": self.tolerance,
            "noise": self.small.noise,
            "gain": self.small.gain,
            "gain_needed": self.small.gain_needed,
            "largest_to_smallest": self.ratio().map(|(_, _, ratio)| ratio),
            "file_bytes": self.file_bytes,
            "engine": if self.is_fio { "fio" } else { "own" },
            "conclusion": self.conclusion(),
            "configuration": self.copy(),
            "applied": self.applied.as_ref().map(|path| if self.is_anonymous { "FILE" } else { path }),
            "series": [series(SMALL, &self.small), series(LARGE, &self.large)],
            "cautions": self.cautions,
        })
    }

    fn csv(&self) -> String {
        let mut out =
            "read_ahead_bytes,direction,record_bytes,file_bytes,round,bytes,seconds,bytes_per_second\n".to_owned();
        for sample in &self.samples {
            let _ = writeln!(
                out,
                "{},read,{},{},{},{},{:.6},{}",
                sample.kib * 1024,
                sample.record_bytes,
                self.file_bytes,
                sample.round,
                sample.bytes,
                sample.seconds,
                whole_rate(sample.bytes_per_s())
            );
        }
        out
    }

    fn page(&self) -> std::result::Result<Page, String> {
        let values: Vec<u64> = self.small.points.iter().map(|point| point.value).collect();
        let drawn = |answer: &Answer| Series {
            points: answer
                .points
                .iter()
                .filter_map(|p| Some((p.value, [*p.rates.first()?, p.median, *p.rates.last()?])))
                .collect(),
        };
        let svg = chart::throughput(&Throughput {
            of: "readahead",
            values: &values,
            label: chart::kib,
            series: vec![drawn(&self.small), drawn(&self.large)],
            chosen: self.enough(),
            present: self.present_kib,
        })?;
        Ok(Page {
            title: format!("Readahead of {}", self.facts.place()),
            conclusion: self.conclusion(),
            copy: self.copy(),
            figures: vec![Figure {
                svg,
                caption:
                    "Line and crosses: reads of 64 KiB, the middle of their rounds; band: slowest to fastest. Dashed, \
                          circles: reads of 1 MiB. Ring: enough."
                        .to_owned(),
            }],
            table: self.rows().into_iter().map(Vec::from).collect(),
            notes: self.notes(),
        })
    }
}

fn series(record_bytes: u64, answer: &Answer) -> Value {
    let points = answer.points.iter().map(|point| {
        json!({
            "read_ahead_bytes": point.value * 1024,
            "bytes_per_second": point.median,
            "fitted_bytes_per_second": point.fitted,
            "standard_error": point.standard_error,
            "rates_bytes_per_second": point.rates,
        })
    });
    json!({
        "record_bytes": record_bytes,
        "points": points.collect::<Vec<_>>(),
    })
}
