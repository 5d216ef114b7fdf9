//! What `bench nconnect` says: what `nfstune sweep` says of the same figures, and what to do with it.

use std::fmt::Write as _;

use nfsrahead::nconnect::sweep::model::{Class, Run, Score};
use nfsrahead::nconnect::sweep::{Direction, Sample};
use serde_json::{json, Value};

use super::super::chart::{self, Series, Throughput};
use super::super::facts::Facts;
use super::super::page::{Figure, Page};
use super::super::{whole_rate, Outcome};
use super::shown_depths;
use crate::sweep;

pub struct Nconnect {
    pub facts: Facts,
    pub sweep: sweep::Outcome,
    pub samples: Vec<Sample>,
    pub options: String,
    pub is_own_netns: bool,
    pub is_fio: bool,
    /// Of those planned, how many were measured whole.
    pub rounds: usize,
    pub planned_rounds: usize,
    pub cut_short: Option<String>,
}

impl Nconnect {
    /// The number to try: of reads and writes the one that wants more.
    fn value(&self) -> Option<u64> {
        let tries = self
            .sweep
            .report
            .advice
            .iter()
            .filter_map(|advice| advice.tries.first());
        tries.max().copied()
    }

    /// Two sentences, one for each direction.
    fn conclusion(&self) -> String {
        let advice = &self.sweep.report.advice;
        let one = |advice: &nfsrahead::nconnect::sweep::model::Advice| {
            let what = match advice.direction {
                Direction::Read => "Reads",
                Direction::Write => "Writes",
            };
            let deciding = self.deciding(advice.direction);
            let gain = deciding.and_then(|(_, class)| class.gain);
            let most = deciding.and_then(|(run, _)| run.settings.last());
            let times = gain.map_or(String::new(), |gain| {
                format!(", up to {gain:.1} times as fast as the fewest")
            });
            match (advice.tries.first(), advice.leave) {
                (Some(n), _) if Some(n) == most => {
                    format!("{what}: {n} connections, the most that were measured, are the best{times}.")
                }
                (Some(n), _) => format!("{what}: {n} connections are enough{times}."),
                (None, Some(leave)) => format!("{what}: more connections than {leave} gain nothing here."),
                (None, None) => format!("{what}: no answer."),
            }
        };
        let sentences: Vec<String> = advice.iter().map(one).collect();
        if sentences.is_empty() {
            return "No answer: nothing was measured. Measure again, with a larger --budget.".to_owned();
        }
        sentences.join(" ")
    }

    /// The class that decides in a direction, with its run.
    fn deciding(&self, direction: Direction) -> Option<(&Run, &Class)> {
        let report = &self.sweep.report;
        let depth = report
            .advice
            .iter()
            .find(|advice| advice.direction == direction)?
            .depth?;
        let run = report.runs.iter().find(|run| run.direction == direction)?;
        Some((run, run.classes.iter().find(|class| class.depth == depth)?))
    }

    fn options_with(&self, n: u64) -> String {
        let options = format!("{},nconnect={n}", self.options);
        options.trim_start_matches(',').to_owned()
    }

    fn copy(&self) -> Option<String> {
        let n = self.value()?;
        let source = self.facts.source.as_deref().unwrap_or("SERVER:/EXPORT");
        Some(format!("{source}  /MOUNT_POINT  nfs  {}  0  0\n", self.options_with(n)))
    }

    fn notes(&self) -> Vec<String> {
        let record = self.samples.first().map_or(0, |sample| sample.work.record_bytes);
        let mut notes = vec![format!(
            "reads and writes past the page cache by {}, {}; each number mounted anew, in random order, the connections counted",
            if self.is_fio { "fio" } else { "nfstune" },
            shown_depths(record)
        )];
        if self.rounds < self.planned_rounds {
            let (rounds, planned) = (self.rounds, self.planned_rounds);
            notes.push(format!(
                "the time was enough for {rounds} of {planned} rounds: give a larger --budget"
            ));
        }
        if self.is_own_netns {
            notes.push("in a network namespace of its own".to_owned());
        }
        notes.push(
            "the first mount of a server decides for all: unmount them all before another number counts".to_owned(),
        );
        if self.options.split(',').any(|option| option.starts_with("sec=krb5")) {
            notes.push(
                "with Kerberos the number of connections has limits at some servers: ask their makers".to_owned(),
            );
        }
        notes
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let mut rows = vec![["DIRECTION", "IN FLIGHT", "CONNECTIONS", "OF BEST"]
            .map(str::to_owned)
            .to_vec()];
        for run in &self.sweep.report.runs {
            for class in &run.classes {
                let best = class.scores.iter().filter_map(|score| score.score).fold(1e-9, f64::max);
                rows.extend(class.scores.iter().map(|score| {
                    vec![
                        run.direction.name().to_owned(),
                        class.depth.name().to_owned(),
                        score.setting.to_string(),
                        score
                            .score
                            .map_or("-".to_owned(), |part| format!("{:.0} %", 100.0 * part / best)),
                    ]
                }));
            }
        }
        rows
    }
}

impl Outcome for Nconnect {
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
            sweep::text(&self.sweep)
        );
        for note in self.notes() {
            let _ = writeln!(out, "- {note}");
        }
        if let Some(copy) = self.copy() {
            let _ = write!(out, "\nfor fstab:\n{copy}");
        }
        out
    }

    fn json(&self) -> Value {
        let sample = |sample: &Sample| {
            json!({
                "nconnect": sample.setting,
                "round": sample.repetition.0 + 1,
                "direction": sample.direction.name(),
                "record_bytes": sample.work.record_bytes,
                "in_flight_bytes": sample.work.in_flight_bytes,
                "bytes_per_second": sample.bytes_per_second,
            })
        };
        json!({
            "schema_version": 1,
            "bench": "nconnect",
            "is_complete": self.cut_short.is_none(),
            "facts": self.facts.json(),
            "nconnect": self.value(),
            "engine": if self.is_fio { "fio" } else { "own" },
            "is_own_network_namespace": self.is_own_netns,
            "conclusion": self.conclusion(),
            "samples": self.samples.iter().map(sample).collect::<Vec<_>>(),
            "sweep": sweep::json(&self.sweep),
        })
    }

    /// As `nfstune sweep` reads it.
    fn csv(&self) -> String {
        let mut out = "nconnect,direction,record_bytes,in_flight_bytes,bytes_per_second\n".to_owned();
        for sample in &self.samples {
            let _ = writeln!(
                out,
                "{},{},{},{},{}",
                sample.setting,
                sample.direction.name(),
                sample.work.record_bytes,
                sample.work.in_flight_bytes,
                whole_rate(sample.bytes_per_second)
            );
        }
        out
    }

    fn page(&self) -> Result<Page, String> {
        let mut figures = Vec::new();
        for direction in [Direction::Read, Direction::Write] {
            let Some((run, class)) = self.deciding(direction) else {
                continue;
            };
            let full = class.envelope_bytes_per_second.unwrap_or(0.0);
            let point = |score: &Score| {
                let (low, high) = score.parts.iter().fold((f64::MAX, 0.0f64), |(low, high), part| {
                    (low.min(*part), high.max(*part))
                });
                Some((score.setting, [low * full, score.score? * full, high * full]))
            };
            let svg = chart::throughput(&Throughput {
                of: "connections (nconnect)",
                values: &run.settings,
                label: chart::plain,
                series: vec![Series {
                    points: class.scores.iter().filter_map(point).collect(),
                }],
                chosen: class.verdict.answer(),
                present: None,
            })?;
            figures.push(Figure {
                svg,
                caption: format!(
                    "{}s, {} in flight. Line and crosses: the middle of the rounds; band: slowest to fastest. Ring: enough.",
                    direction.name(),
                    class.depth.name()
                ),
            });
        }
        Ok(Page {
            title: format!("Connections to {}", self.facts.place()),
            conclusion: self.conclusion(),
            copy: self.copy(),
            figures,
            table: self.rows(),
            notes: self.notes(),
        })
    }
}
