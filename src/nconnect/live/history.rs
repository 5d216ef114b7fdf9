//! What is remembered about one client: ten busy windows, and what quieter times were like. Bounded, and plain values only.

use std::collections::{BTreeSet, VecDeque};

use crate::nconnect::live::rules::{diagnose, Baseline, Rule};
use crate::nconnect::live::window::{Facts, Window};

/// The windows that decide, and how many of them must agree.
pub const WINDOWS: usize = 10;
pub const AGREE: usize = 6;
/// Values for a percentile: a day of busy intervals, of the hours at hand.
const VALUES: usize = 512;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// Days with too many connections before fewer are suggested.
pub const IDLE_DAYS: usize = 7;
const DAYS_KEPT: usize = 30;

/// One client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    connections: u64,
    /// Diagnosis of the last busy windows and their hour, the oldest first.
    recent: VecDeque<(Option<Rule>, u64)>,
    /// (when, value), the oldest first.
    per_connection: VecDeque<(u64, f64)>,
    small_rtt_s: VecDeque<(u64, f64)>,
    data_rtt_s: VecDeque<(u64, f64)>,
    last_loss_ms: Option<u64>,
    /// Days with busy windows, and of them those in which half of the connections would have done.
    busy_days: BTreeSet<u64>,
    full_days: BTreeSet<u64>,
    /// When the diagnosis last held that was advised.
    last_held_ms: Option<u64>,
    watched_ms: u64,
}

/// What the last windows say together.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub rule: Rule,
    /// Windows that agree, of so many.
    pub windows: usize,
    pub of: usize,
    pub confidence: f64,
    pub baseline: Baseline,
}

impl History {
    /// Takes in a window. Another number of connections is another client: only its idle times stay.
    pub fn add(&mut self, window: &Window, facts: &Facts) {
        if self.connections != window.connections {
            self.connections = window.connections;
            self.recent.clear();
            self.per_connection.clear();
            self.busy_days.clear();
            self.full_days.clear();
        }
        self.watched_ms = self.watched_ms.saturating_add(window.length_ms);
        let now_ms = window.end_ms;
        if window.on_wire < 1.0 {
            push(&mut self.small_rtt_s, now_ms, window.small_rtt_s);
            push(&mut self.data_rtt_s, now_ms, window.data_rtt_s);
        }
        if !window.is_busy() {
            return;
        }
        // Judged by what was known before it, but for the rate, which it may set itself.
        push(&mut self.per_connection, now_ms, Some(window.per_connection()));
        let baseline = self.baseline(now_ms);
        let rule = diagnose(window, facts, &baseline);
        if rule == Some(Rule::LossyPath) {
            self.last_loss_ms = Some(now_ms);
        }
        let c1 = baseline.connection_bytes_per_s.unwrap_or(f64::INFINITY);
        let half = crate::float::float(window.connections) / 2.0;
        let day = now_ms / DAY_MS;
        self.busy_days.insert(day);
        if window.on_wire >= half || window.bytes_per_s() >= 0.5 * c1 {
            self.full_days.insert(day);
        }
        for days in [&mut self.busy_days, &mut self.full_days] {
            while days.len() > DAYS_KEPT {
                days.pop_first();
            }
        }
        if self.recent.len() >= WINDOWS {
            self.recent.pop_front();
        }
        self.recent.push_back((rule, now_ms / HOUR_MS));
    }

    /// Busy windows of the last ten.
    pub fn busy(&self) -> usize {
        self.recent.len()
    }

    pub fn watched_ms(&self) -> u64 {
        self.watched_ms
    }

    /// Of the last 24 hours.
    pub fn baseline(&self, now_ms: u64) -> Baseline {
        let values = |of: &VecDeque<(u64, f64)>| -> Vec<f64> {
            let young = of.iter().filter(|(at, _)| now_ms.saturating_sub(*at) <= DAY_MS);
            let mut values: Vec<f64> = young.map(|(_, value)| *value).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        Baseline {
            connection_bytes_per_s: percentile(&values(&self.per_connection), 95),
            small_rtt_s: percentile(&values(&self.small_rtt_s), 5),
            data_rtt_s: percentile(&values(&self.data_rtt_s), 5),
        }
    }

    /// None: fewer than ten busy windows, or fewer than six of them agree.
    pub fn verdict(&self, now_ms: u64, window: &Window, facts: &Facts) -> Option<Verdict> {
        if self.recent.len() < WINDOWS {
            return None;
        }
        let count = |rule: Rule| self.recent.iter().filter(|(other, _)| *other == Some(rule)).count();
        let rule = Rule::ALL.into_iter().find(|rule| count(*rule) >= AGREE)?;
        Some(Verdict {
            rule,
            windows: count(rule),
            of: self.recent.len(),
            confidence: self.confidence(rule, now_ms, window, facts),
            baseline: self.baseline(now_ms),
        })
    }

    /// What the last windows show, however few they are: no verdict, and little to trust.
    pub fn impression(&self, now_ms: u64, window: &Window, facts: &Facts) -> Option<Verdict> {
        let rule = self.recent.back().and_then(|(rule, _)| *rule)?;
        let agree = self.recent.iter().filter(|(other, _)| *other == Some(rule)).count();
        Some(Verdict {
            rule,
            windows: agree,
            of: self.recent.len(),
            confidence: self.confidence(rule, now_ms, window, facts).min(0.4),
            baseline: self.baseline(now_ms),
        })
    }

    /// Seven busy days in which half of the connections would have done.
    pub fn has_too_many(&self) -> bool {
        self.connections > 1 && self.busy_days.len() >= IDLE_DAYS && self.full_days.is_empty()
    }

    fn confidence(&self, rule: Rule, now_ms: u64, window: &Window, facts: &Facts) -> f64 {
        let hours: BTreeSet<u64> = self
            .recent
            .iter()
            .filter(|(other, _)| *other == Some(rule))
            .map(|(_, hour)| *hour)
            .collect();
        let is_cpu_hot = window.hottest_cpu.is_some_and(|share| share >= 0.9);
        let has_loss = self.last_loss_ms.is_some_and(|at| now_ms.saturating_sub(at) <= DAY_MS);
        let signs = [
            (hours.len() >= 3, 0.2),
            (is_cpu_hot || window.sending.is_some_and(|sending| sending >= 1.0), 0.2),
            (self.per_connection.len() >= 50, 0.1),
            (facts.link_bits_per_s.is_some(), 0.1),
            (has_loss && rule != Rule::LossyPath, -0.2),
        ];
        let sum: f64 = signs.iter().filter(|(holds, _)| *holds).map(|(_, weight)| weight).sum();
        let most = if rule == Rule::QueueBeforeWire { 0.6 } else { 1.0 };
        (0.4 + sum).clamp(0.0, most)
    }
}

fn push(values: &mut VecDeque<(u64, f64)>, now_ms: u64, value: Option<f64>) {
    let Some(value) = value else { return };
    if values.len() >= VALUES {
        values.pop_front();
    }
    values.push_back((now_ms, value));
}

/// Of sorted values: the nearest rank.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last * percent + 50) / 100).copied()
}
