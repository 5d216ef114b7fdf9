//! What `bench write` says.

use std::fmt::Write as _;

use nfsrahead::bench::amount::{shown_bytes, shown_rate, shown_seconds};
use nfsrahead::bench::write::{compare, figures, middle, timeline, Comparison, Figures, Pass};
use nfsrahead::float::{float, whole};
use nfsrahead::report::table::table;
use nfsrahead::writeback::size::Limit;
use serde_json::{json, Value};

use super::super::chart::{self, Stalls};
use super::super::facts::Facts;
use super::super::page::{Figure, Page};
use super::super::Outcome;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    AsItIs,
    Limited,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::AsItIs => "as it is",
            Kind::Limited => "limited",
        }
    }
}

/// One pass.
pub struct Done {
    pub kind: Kind,
    pub pass: Pass,
    pub figures: Figures,
}

pub struct Write {
    pub facts: Facts,
    pub done: Vec<Done>,
    pub size_bytes: u64,
    pub step_percent: u8,
    pub record_bytes: u64,
    /// What the machine may hold dirty.
    pub threshold_bytes: Option<u64>,
    pub limit: Option<Limit>,
    pub is_compare: bool,
    pub is_fio: bool,
    pub cautions: Vec<String>,
    pub cut_short: Option<String>,
}

/// Waits are drawn so many to a picture.
const BINS: usize = 160;
/// Nobody notices a shorter wait.
const WAIT_MIN_S: f64 = 0.1;
/// A limit that shortens the longest write() to this, at this throughput, is worth setting.
const WORTH_WAIT: f64 = 0.8;
const WORTH_THROUGHPUT: f64 = 0.9;

impl Write {
    pub fn step_bytes(&self) -> u64 {
        whole((float(self.size_bytes) * f64::from(self.step_percent) / 100.0).ceil()).max(1)
    }

    /// After the size has become another one.
    pub fn again(&mut self) {
        let step_bytes = self.step_bytes();
        for done in self.done.iter_mut().filter(|done| !done.pass.calls.is_empty()) {
            done.figures = figures(&done.pass, step_bytes);
        }
    }

    fn all(&self, kind: Kind) -> Vec<Figures> {
        let of_kind = self.done.iter().filter(|done| done.kind == kind);
        of_kind.map(|done| done.figures).collect()
    }

    fn comparison(&self) -> Option<Comparison> {
        let (stock, limited) = (self.all(Kind::AsItIs), self.all(Kind::Limited));
        (!limited.is_empty()).then(|| compare(&stock, &limited))
    }

    fn fits_into_cache(&self) -> bool {
        self.threshold_bytes
            .is_some_and(|threshold| self.size_bytes <= threshold / 2)
    }

    /// Two sentences.
    fn conclusion(&self) -> String {
        let stock = middle(&self.all(Kind::AsItIs));
        let seconds = |s: Option<f64>| s.map_or("an unknown time".to_owned(), shown_seconds);
        let rate = |r: Option<f64>| r.map_or(String::new(), |rate| format!(", at {} in all", shown_rate(rate)));
        let (Some(comparison), Some(limit)) = (self.comparison(), self.limit) else {
            let next = if self.fits_into_cache() {
                "The file fits into memory, so no write() had to wait for the server; a larger --size shows one that does."
            } else if self.is_compare {
                "There is no limit to compare with."
            } else {
                "With --compare it is shown what a limit on the dirty data of this mount changes."
            };
            return format!(
                "The longest write() took {}, the worst step of {} % {}, the fsync() {}{}. {next}",
                seconds(stock.longest_write_s),
                self.step_percent,
                seconds(stock.worst_step_s),
                seconds(stock.fsync_s),
                rate(stock.bytes_per_s)
            );
        };
        let limited = middle(&self.all(Kind::Limited));
        let part = |ratio: Option<f64>| ratio.map_or("?".to_owned(), |ratio| format!("{:.0} %", 100.0 * ratio));
        let is_worth = comparison.longest_write.is_some_and(|wait| wait <= WORTH_WAIT)
            && comparison
                .throughput
                .is_some_and(|throughput| throughput >= WORTH_THROUGHPUT);
        let then = if stock.longest_write_s.is_some_and(|longest| longest < WAIT_MIN_S) {
            "No write() waits long enough to need one."
        } else if is_worth {
            "nfstuned keeps it with \"apply = bdi\"."
        } else {
            "It is not worth setting here."
        };
        format!(
            "With a limit of {} the longest write() takes {} instead of {} ({} of it), at {} of the throughput. {then}",
            shown_bytes(limit.want_bytes),
            seconds(limited.longest_write_s),
            seconds(stock.longest_write_s),
            part(comparison.longest_write),
            part(comparison.throughput)
        )
    }

    fn rows(&self) -> Vec<[String; 7]> {
        let step = format!("WORST {} %", self.step_percent);
        let head = ["PASS", "LONGEST WRITE", &step, "FSYNC", "CLOSE", "IN ALL", "BYTES"];
        let mut rows = vec![head.map(str::to_owned)];
        let seconds = |s: Option<f64>| s.map_or("-".to_owned(), shown_seconds);
        for done in &self.done {
            let figures = &done.figures;
            rows.push([
                done.kind.name().to_owned(),
                seconds(figures.longest_write_s),
                seconds(figures.worst_step_s),
                seconds(figures.fsync_s),
                seconds(figures.close_s),
                figures.bytes_per_s.map_or("-".to_owned(), shown_rate),
                shown_bytes(figures.bytes),
            ]);
        }
        rows
    }

    fn notes(&self) -> Vec<String> {
        let by = if self.is_fio { "fio" } else { "nfstune" };
        let mut notes = vec![format!(
            "a new file of {} in write() calls of {} by {by}, then fsync() and close()",
            shown_bytes(self.size_bytes),
            shown_bytes(self.record_bytes)
        )];
        if let Some(threshold) = self.threshold_bytes {
            notes.push(format!(
                "this machine lets {} become dirty before writers wait",
                shown_bytes(threshold)
            ));
        }
        if let Some(limit) = self.limit {
            notes.push(format!(
                "limit: strict_limit=1, max_ratio_fine={}, min_ratio_fine={}",
                limit.max_ppm, limit.min_ppm
            ));
        }
        notes.extend(self.cautions.iter().cloned());
        notes
    }
}

impl Outcome for Write {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn cut_short(&self) -> Option<&str> {
        self.cut_short.as_deref()
    }

    fn text(&self) -> String {
        let mut out = format!(
            "{}: {}\n\n{}\n",
            self.facts.place(),
            self.conclusion(),
            table(&self.rows())
        );
        for note in self.notes() {
            let _ = writeln!(out, "- {note}");
        }
        out
    }

    fn json(&self) -> Value {
        let pass = |done: &Done| {
            let mut value = figures_json(&done.figures);
            value["kind"] = json!(done.kind.name());
            value
        };
        let comparison = self.comparison().map(|ratio| {
            json!({
                "longest_write": ratio.longest_write,
                "worst_step": ratio.worst_step,
                "throughput": ratio.throughput,
            })
        });
        json!({
            "schema_version": 1,
            "bench": "write",
            "is_complete": self.cut_short.is_none(),
            "facts": self.facts.json(),
            "file_bytes": self.size_bytes,
            "record_bytes": self.record_bytes,
            "step": f64::from(self.step_percent) / 100.0,
            "dirty_threshold_bytes": self.threshold_bytes,
            "limit_bytes": self.limit.map(|limit| limit.want_bytes),
            "max_ratio_fine": self.limit.map(|limit| limit.max_ppm),
            "min_ratio_fine": self.limit.map(|limit| limit.min_ppm),
            "engine": if self.is_fio { "fio" } else { "own" },
            "passes": self.done.iter().map(pass).collect::<Vec<_>>(),
            "as_it_is": figures_json(&middle(&self.all(Kind::AsItIs))),
            "limited": self.limit.map(|_| figures_json(&middle(&self.all(Kind::Limited)))),
            "limited_to_as_it_is": comparison,
            "conclusion": self.conclusion(),
            "cautions": self.cautions,
        })
    }

    fn csv(&self) -> String {
        let mut out = "pass,kind,start_seconds,took_seconds,bytes\n".to_owned();
        for (pass, done) in (1..).zip(&self.done) {
            for call in &done.pass.calls {
                let kind = done.kind.name();
                let _ = writeln!(
                    out,
                    "{pass},{kind},{:.6},{:.6},{}",
                    call.start_s, call.took_s, call.bytes
                );
            }
        }
        out
    }

    /// The pass of each kind that waited longest.
    fn page(&self) -> Result<Page, String> {
        let worst = |kind: Kind| {
            let of_kind = self
                .done
                .iter()
                .filter(|done| done.kind == kind && !done.pass.calls.is_empty());
            of_kind.max_by(|a, b| {
                let longest = |done: &Done| done.figures.longest_write_s.unwrap_or(0.0);
                longest(a).total_cmp(&longest(b))
            })
        };
        let panel = |done: &Done| {
            let last = done.pass.calls.last().map_or(0.0, |call| call.start_s + call.took_s);
            Stalls {
                title: format!(
                    "{}: longest write() {}",
                    done.kind.name(),
                    shown_seconds(done.figures.longest_write_s.unwrap_or(0.0))
                ),
                end_s: last,
                longest_s: timeline(&done.pass.calls, last, BINS),
            }
        };
        let panels: Vec<Stalls> = [Kind::AsItIs, Kind::Limited]
            .into_iter()
            .filter_map(worst)
            .map(panel)
            .collect();
        let mut shown = Vec::new();
        if !panels.is_empty() {
            shown.push(Figure {
                svg: chart::stalls(&panels)?,
                caption: "How long each write() took, by when it began; of each moment the longest. All panels have the same \
                          scale."
                    .to_owned(),
            });
        }
        Ok(Page {
            title: format!("Writing to {}", self.facts.place()),
            conclusion: self.conclusion(),
            copy: None,
            figures: shown,
            table: self.rows().into_iter().map(Vec::from).collect(),
            notes: self.notes(),
        })
    }
}

fn figures_json(figures: &Figures) -> Value {
    json!({
        "bytes": figures.bytes,
        "seconds": figures.total_s,
        "bytes_per_second": figures.bytes_per_s,
        "longest_write_seconds": figures.longest_write_s,
        "worst_step_seconds": figures.worst_step_s,
        "fsync_seconds": figures.fsync_s,
        "close_seconds": figures.close_s,
    })
}
