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
    pub fn new(clients: Vec<ClientStatus>, advice: Vec<AdviceStatus>) -> Current {
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

    /// The client has another number of connections than when advice about it was given: from now on it is judged. A busy window
    /// of the client. True: something changed that is worth keeping.
    pub fn judge(&mut self, client: &str, connections: u64, length_ms: u64, bytes_per_s: f64, now_s: u64) -> bool {
        let tried = self.given.iter().find(|(id, given)| {
            given.client == client
                && given.connections_wanted.is_some()
                && given.connections != connections
                && !self.trials.iter().any(|trial| trial.advice == **id)
                && !self.outcomes.iter().any(|outcome| outcome.advice == **id)
        });
        if let Some((id, given)) = tried {
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
        let is_news = !ended.is_empty();
        for (advice, Outcome { gain, helped }) in ended {
            if let Some(at) = self.trials.iter().position(|trial| trial.advice == advice) {
                let trial = self.trials.remove(at);
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
        for (rate, helped) in [(1.05e9, false), (2e9, true)] {
            let mut book = Book::default();
            book.give(&advice(), 1e9, 100 * DAY);
            assert!(!book.judge("c", 1, 15_000, 1e9, 0));
            assert_eq!(book.trials().count(), 0);
            let ends: Vec<bool> = (0..720).map(|_| book.judge("c", 4, 15_000, rate, 101 * DAY)).collect();
            assert_eq!(ends.iter().position(|end| *end), Some(719));
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
