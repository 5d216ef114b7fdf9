//! Advice, as nfstuned and nfstune keep it: what holds now (/run/nfstuned/advice.json), and the book of what was said, muted and
//! tried (/var/lib/nfstuned/advice.json).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::nconnect::advice::Advice;
use crate::nconnect::trial::{Outcome, Trial};
use crate::root::Root;

/// Grows with every change that a reader would stumble over.
const SCHEMA_VERSION: u32 = 1;
const SIZE_LIMIT: usize = 16 << 20;
/// Advice is not given again for so long, seconds.
pub const REPEAT_S: u64 = 7 * 86_400;
/// More than these are not remembered.
const ENTRIES: usize = 10_000;

/// What holds now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Current {
    pub schema_version: u32,
    pub clients: Vec<ClientStatus>,
    pub advice: Vec<AdviceStatus>,
}

/// How long a client was watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientStatus {
    pub client: String,
    pub server: String,
    pub connections: u64,
    /// Of these, as far as it is known, those that are up.
    pub connected: Option<u64>,
    /// Of the connection that is idle longest.
    pub longest_idle_seconds: Option<u64>,
    pub mounts: Vec<String>,
    pub watched_seconds: u64,
    pub busy_intervals: usize,
}

/// [`Advice`] for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdviceStatus {
    pub id: String,
    pub client: String,
    pub server: String,
    pub version: String,
    pub proto: String,
    pub kind: String,
    pub title: String,
    pub connections: u64,
    /// null: this is not about their number.
    pub connections_wanted: Option<u64>,
    pub confidence: f64,
    pub why: Vec<String>,
    /// Where, and what.
    #[serde(rename = "do")]
    pub todo: Vec<(String, String)>,
    pub beware: Vec<String>,
    pub undo: Option<String>,
    pub muted: bool,
}

impl Current {
    /// What is about an interface comes from each client behind it, and is told once.
    pub fn new(clients: Vec<ClientStatus>, mut advice: Vec<AdviceStatus>) -> Current {
        let mut told = BTreeSet::new();
        advice.retain(|advice| told.insert(advice.id.clone()));
        Current {
            schema_version: SCHEMA_VERSION,
            clients,
            advice,
        }
    }

    /// What a running daemon says.
    pub fn read(root: &Root) -> Result<Option<Current>> {
        super::read(&root.nfstuned_current_advice(), SIZE_LIMIT)
    }

    pub fn to_json(&self) -> Vec<u8> {
        json(self)
    }
}

impl AdviceStatus {
    pub fn new(advice: &Advice, book: &Book) -> AdviceStatus {
        AdviceStatus {
            id: advice.id.clone(),
            client: advice.client.clone(),
            server: advice.server.clone(),
            version: advice.version.clone(),
            proto: advice.proto.clone(),
            kind: advice.kind.to_owned(),
            title: advice.title.clone(),
            connections: advice.now,
            connections_wanted: advice.want,
            confidence: advice.confidence,
            why: advice.why.clone(),
            todo: advice.todo.clone(),
            beware: advice.beware.clone(),
            undo: advice.undo.clone(),
            muted: book.is_muted(&advice.id),
        }
    }
}

/// What was said, muted and tried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Book {
    schema_version: u32,
    pub muted: BTreeSet<String>,
    pub given: BTreeMap<String, Given>,
    trials: Vec<TrialEntry>,
    pub outcomes: Vec<OutcomeEntry>,
}

/// One busy window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Busy {
    pub length_ms: u64,
    pub bytes_per_s: f64,
    /// The 95th percentile of the last day's.
    pub usual_bytes_per_s: f64,
}

/// Advice that was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Given {
    pub client: String,
    pub server: String,
    pub kind: String,
    pub title: String,
    pub connections: u64,
    pub connections_wanted: Option<u64>,
    /// Since 1970.
    pub first_seconds: u64,
    pub last_seconds: u64,
    /// The 95th percentile of busy intervals at that time.
    pub bytes_per_second: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TrialEntry {
    advice: String,
    client: String,
    server: String,
    kind: String,
    before: u64,
    after: u64,
    before_bytes_per_second: f64,
    busy_milliseconds: u64,
    rates_bytes_per_second: Vec<f64>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutcomeEntry {
    pub advice: String,
    pub server: String,
    pub kind: String,
    pub before: u64,
    pub after: u64,
    pub gain: f64,
    pub helped: bool,
    pub at_seconds: u64,
}

impl Book {
    /// Empty where there is no file, or one of another version.
    pub fn read(root: &Root) -> Result<Book> {
        let book: Option<Book> = super::read(&root.nfstuned_advice(), SIZE_LIMIT)?;
        Ok(book
            .filter(|book| book.schema_version == SCHEMA_VERSION)
            .unwrap_or_default())
    }

    pub fn to_json(&self) -> Vec<u8> {
        json(&Book {
            schema_version: SCHEMA_VERSION,
            ..self.clone()
        })
    }

    /// Takes over what an admin has muted meanwhile, who writes nothing else of the book.
    pub fn mute_as(&mut self, root: &Root) {
        if let Ok(book) = Book::read(root) {
            self.muted = book.muted;
        }
    }

    pub fn is_muted(&self, id: &str) -> bool {
        self.muted.contains(id)
    }

    /// A kind of advice that did not help with this server is not given for it again.
    pub fn is_withdrawn(&self, advice: &Advice) -> bool {
        let last = self
            .outcomes
            .iter()
            .rfind(|outcome| outcome.server == advice.server && outcome.kind == advice.kind);
        last.is_some_and(|outcome| !outcome.helped)
    }

    /// Advice that holds: true where it is to be said now.
    pub fn give(&mut self, advice: &Advice, bytes_per_s: f64, now_s: u64) -> bool {
        if self.given.len() >= ENTRIES && !self.given.contains_key(&advice.id) {
            return false;
        }
        let is_muted = self.is_muted(&advice.id);
        let given = self.given.entry(advice.id.clone()).or_insert_with(|| Given {
            client: advice.client.clone(),
            server: advice.server.clone(),
            kind: advice.kind.to_owned(),
            title: advice.title.clone(),
            connections: advice.now,
            connections_wanted: advice.want,
            first_seconds: now_s,
            last_seconds: 0,
            bytes_per_second: bytes_per_s,
        });
        if is_muted || now_s.saturating_sub(given.last_seconds) < REPEAT_S {
            return false;
        }
        given.last_seconds = now_s;
        given.bytes_per_second = bytes_per_s;
        true
    }

    /// A busy window of a client, and the 95th percentile of those of the last day. As long as the client has the connections that it
    /// was given advice about, that is what it is compared with later; from the first window with another number on it is judged. True:
    /// something changed that is worth keeping.
    pub fn judge(&mut self, client: &str, connections: u64, seen: &Busy, now_s: u64) -> bool {
        let Busy {
            length_ms,
            bytes_per_s,
            usual_bytes_per_s,
        } = *seen;
        let mut is_news = false;
        let about = |given: &Given| given.client == client && given.connections_wanted.is_some();
        for (id, given) in self.given.iter_mut().filter(|(_, given)| about(given)) {
            if given.connections == connections {
                given.bytes_per_second = usual_bytes_per_s;
                continue;
            }
            let is_known = self.trials.iter().any(|trial| trial.advice == *id)
                || self.outcomes.iter().any(|outcome| outcome.advice == *id);
            if !is_known && self.trials.len() < ENTRIES {
                is_news = true;
                self.trials.push(TrialEntry {
                    advice: id.clone(),
                    client: client.to_owned(),
                    server: given.server.clone(),
                    kind: given.kind.clone(),
                    before: given.connections,
                    after: connections,
                    before_bytes_per_second: given.bytes_per_second,
                    busy_milliseconds: 0,
                    rates_bytes_per_second: Vec::new(),
                });
            }
        }
        let mut ended = Vec::new();
        for entry in self
            .trials
            .iter_mut()
            .filter(|trial| trial.client == client && trial.after == connections)
        {
            let mut trial = entry.trial();
            trial.add(length_ms, bytes_per_s);
            if let Some(outcome) = trial.outcome() {
                ended.push((entry.advice.clone(), outcome));
            }
            entry.busy_milliseconds = trial.busy_ms;
            entry.rates_bytes_per_second = trial.rates;
        }
        is_news |= !ended.is_empty();
        for (advice, Outcome { gain, helped }) in ended {
            if let Some(at) = self.trials.iter().position(|trial| trial.advice == advice) {
                let trial = self.trials.remove(at);
                if self.outcomes.len() >= ENTRIES {
                    self.outcomes.remove(0);
                }
                self.outcomes.push(OutcomeEntry {
                    advice,
                    server: trial.server,
                    kind: trial.kind,
                    before: trial.before,
                    after: trial.after,
                    gain,
                    helped,
                    at_seconds: now_s,
                });
            }
        }
        is_news
    }

    /// Trials that go on: advice and busy hours so far.
    pub fn trials(&self) -> impl Iterator<Item = (&str, f64)> {
        let hours = |trial: &TrialEntry| crate::float::float(trial.busy_milliseconds) / 3_600_000.0;
        self.trials
            .iter()
            .map(move |trial| (trial.advice.as_str(), hours(trial)))
    }
}

impl TrialEntry {
    fn trial(&self) -> Trial {
        Trial {
            advice: self.advice.clone(),
            client: self.client.clone(),
            server: self.server.clone(),
            kind: self.kind.clone(),
            before: self.before,
            after: self.after,
            before_bytes_per_s: self.before_bytes_per_second,
            busy_ms: self.busy_milliseconds,
            rates: self.rates_bytes_per_second.clone(),
        }
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // A plain structure with string keys: this does not fail.
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice() -> Advice {
        Advice {
            id: "nc-000001".to_owned(),
            client: "c".to_owned(),
            server: "nas1".to_owned(),
            version: "4.2".to_owned(),
            proto: "tcp".to_owned(),
            kind: "transport",
            title: "nconnect 1 -> 4".to_owned(),
            now: 1,
            want: Some(4),
            confidence: 0.8,
            why: Vec::new(),
            todo: Vec::new(),
            beware: Vec::new(),
            undo: None,
        }
    }

    const DAY: u64 = 86_400;

    #[test]
    fn advice_is_not_repeated_within_a_week_and_not_where_it_is_muted() {
        let mut book = Book::default();
        assert!(book.give(&advice(), 1e9, 100 * DAY));
        assert!(!book.give(&advice(), 1e9, 106 * DAY));
        assert!(book.give(&advice(), 1e9, 107 * DAY));
        book.muted.insert("nc-000001".to_owned());
        assert!(!book.give(&advice(), 1e9, 200 * DAY));
    }

    #[test]
    fn what_did_not_help_is_withdrawn_for_that_server() {
        for (rate, helped) in [(1.09e9, false), (1.11e9, true)] {
            let mut book = Book::default();
            book.give(&advice(), 1e9, 100 * DAY);
            let busy = |bytes_per_s| Busy {
                length_ms: 15_000,
                bytes_per_s,
                usual_bytes_per_s: 1e9,
            };
            assert!(!book.judge("c", 1, &busy(2e9), 0));
            assert_eq!(book.trials().count(), 0);
            let news: Vec<bool> = (0..720).map(|_| book.judge("c", 4, &busy(rate), 101 * DAY)).collect();
            // It begins, and it ends.
            let at: Vec<usize> = (0..720).filter(|n| news[*n]).collect();
            assert_eq!(at, [0, 719]);
            assert_eq!(book.is_withdrawn(&advice()), !helped);
            let other = Advice {
                server: "nas2".to_owned(),
                ..advice()
            };
            assert!(!book.is_withdrawn(&other));
            let text = book.to_json();
            let again: Book = serde_json::from_slice(&text).unwrap();
            assert_eq!(again.outcomes, book.outcomes);
        }
    }
}
