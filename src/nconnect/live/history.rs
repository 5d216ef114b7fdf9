//! What is remembered about one client: ten busy windows, and what quieter times were like. Bounded, plain values only, kept over
//! restarts and reboots.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::float::float;
use crate::nconnect::live::rules::{holding, Baseline, Rule, HOT_CPU};
use crate::nconnect::live::window::{Facts, Window};

/// The windows that decide, and how many of them must agree.
pub const WINDOWS: usize = 10;
pub const AGREE: usize = 6;
/// Values for a percentile.
const VALUES: usize = 512;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// Days with too many connections before fewer are suggested.
pub const IDLE_DAYS: usize = 7;
const DAYS_KEPT: u64 = 30;
/// What was once said stays, until so many hours with busy windows went by without it.
const CLEARED_AFTER_HOURS: u64 = 24;
/// The rate of a connection is known for some numbers of them; fewer windows than this say nothing about one.
const CARRIED_MIN: usize = WINDOWS;

/// One client.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "state", derive(serde::Serialize, serde::Deserialize))]
pub struct History {
    connections: u64,
    /// The last busy windows, the oldest first.
    busy: VecDeque<Seen>,
    /// The last ones in which anything was on its way: a reader that waits for each reply is never busy.
    active: VecDeque<Seen>,
    per_connection: Values,
    small_rtt_s: Values,
    data_rtt_s: Values,
    /// What one connection has carried when there were so many of them: with more of them each carries less, and that is not what
    /// it can.
    carried: BTreeMap<u64, f64>,
    last_loss_ms: Option<u64>,
    /// Days with busy windows, and of them those in which half of the connections would not have done.
    busy_days: BTreeSet<u64>,
    full_days: BTreeSet<u64>,
    /// Hours with busy windows since there is a history, and the last of them.
    busy_hours: u64,
    last_busy_hour: u64,
    held: Option<Held>,
    watched_ms: u64,
    last_seen_ms: u64,
}

/// A window, and which rules held in it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "state", derive(serde::Serialize, serde::Deserialize))]
struct Seen {
    window: Window,
    rules: Vec<Rule>,
}

/// (when, value), the oldest first.
type Values = VecDeque<(u64, f64)>;

/// What the last windows said together, and in which busy hour.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "state", derive(serde::Serialize, serde::Deserialize))]
struct Held {
    rule: Rule,
    windows: usize,
    busy_hour: u64,
    window: Window,
}

/// What the last windows say together.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub rule: Rule,
    /// Windows that agree, of so many.
    pub windows: usize,
    pub of: usize,
    /// Busy hours since they did. 0: they do now.
    pub busy_hours_ago: u64,
    pub confidence: f64,
    pub baseline: Baseline,
    /// The last one in which the rule held.
    pub window: Window,
}

impl History {
    /// Takes in a window. Another number of connections begins anew, but for what quiet times are like and what a connection can carry.
    pub fn add(&mut self, window: &Window, facts: &Facts) {
        let now_ms = window.end_ms;
        if self.connections != window.connections {
            self.count(window.connections);
        }
        self.watched_ms = self.watched_ms.saturating_add(window.length_ms);
        self.last_seen_ms = now_ms;
        if window.on_wire < 1.0 {
            push(&mut self.small_rtt_s, now_ms, window.small_rtt_s);
            push(&mut self.data_rtt_s, now_ms, window.data_rtt_s);
        }
        if !window.is_active() {
            return;
        }
        if window.is_busy() {
            // Judged by what was known before it, but for the rate, which it may set itself.
            push(&mut self.per_connection, now_ms, Some(window.per_connection()));
        }
        let baseline = self.baseline(now_ms);
        let seen = Seen {
            window: window.clone(),
            rules: holding(window, facts, &baseline),
        };
        if window.is_busy() {
            self.days(window, &baseline);
            if seen.rules.contains(&Rule::LossyPath) {
                self.last_loss_ms = Some(now_ms);
            }
            if self.last_busy_hour != now_ms / HOUR_MS {
                self.last_busy_hour = now_ms / HOUR_MS;
                self.busy_hours = self.busy_hours.saturating_add(1);
            }
            keep_last(&mut self.busy, seen.clone());
        }
        keep_last(&mut self.active, seen);
        if let Some((rule, windows, window)) = self.agreed() {
            self.held = Some(Held {
                rule,
                windows,
                busy_hour: self.busy_hours,
                window: window.clone(),
            });
        }
    }

    fn count(&mut self, connections: u64) {
        if self.per_connection.len() >= CARRIED_MIN {
            let all = sorted(self.per_connection.iter());
            self.carried
                .extend(percentile(&all, 95).map(|rate| (self.connections, rate)));
        }
        self.connections = connections;
        self.busy.clear();
        self.active.clear();
        self.per_connection.clear();
        self.busy_days.clear();
        self.full_days.clear();
        self.held = None;
    }

    fn days(&mut self, window: &Window, baseline: &Baseline) {
        let c1 = baseline.connection_bytes_per_s.unwrap_or(f64::INFINITY);
        let half = float(window.connections) / 2.0;
        let today = window.end_ms / DAY_MS;
        self.busy_days.insert(today);
        if window.on_wire >= half || window.bytes_per_s() >= 0.5 * c1 {
            self.full_days.insert(today);
        }
        for days in [&mut self.busy_days, &mut self.full_days] {
            days.retain(|day| (today.saturating_sub(DAYS_KEPT)..=today).contains(day));
        }
    }

    /// Busy windows of the last ten.
    pub fn busy(&self) -> usize {
        self.busy.len()
    }

    pub fn watched_ms(&self) -> u64 {
        self.watched_ms
    }

    /// Since 1970.
    pub fn last_seen_ms(&self) -> u64 {
        self.last_seen_ms
    }

    /// Of the last 24 hours.
    pub fn baseline(&self, now_ms: u64) -> Baseline {
        let values = |of: &Values| {
            let is_young = |at: u64| at <= now_ms && now_ms - at <= DAY_MS;
            sorted(of.iter().filter(|(at, _)| is_young(*at)))
        };
        let now = percentile(&values(&self.per_connection), 95);
        let others = self.carried.iter().filter(|(count, _)| **count != self.connections);
        Baseline {
            connection_bytes_per_s: others.map(|(_, rate)| *rate).chain(now).max_by(f64::total_cmp),
            small_rtt_s: percentile(&values(&self.small_rtt_s), 5),
            data_rtt_s: percentile(&values(&self.data_rtt_s), 5),
        }
    }

    /// The 95th percentile of what all connections carried in busy windows of the last 24 hours.
    pub fn busy_bytes_per_s(&self, now_ms: u64) -> Option<f64> {
        let young = self
            .per_connection
            .iter()
            .filter(|(at, _)| now_ms.saturating_sub(*at) <= DAY_MS);
        percentile(&sorted(young), 95).map(|rate| rate * float(self.connections))
    }

    /// The first rule that held in six of the last ten windows, in how many, and the last of them.
    fn agreed(&self) -> Option<(Rule, usize, &Window)> {
        let of = |seen: &VecDeque<Seen>, rule: Rule| seen.iter().filter(|seen| seen.rules.contains(&rule)).count();
        let full = |seen: &VecDeque<Seen>| seen.len() >= WINDOWS;
        let busy = Rule::ALL
            .into_iter()
            .filter(|_| full(&self.busy))
            .find(|rule| of(&self.busy, *rule) >= AGREE)
            .map(|rule| (rule, &self.busy));
        let shallow = || {
            let rule = Rule::ShallowReader;
            (full(&self.active) && of(&self.active, rule) >= AGREE).then_some((rule, &self.active))
        };
        let (rule, seen) = busy.or_else(shallow)?;
        let window = seen.iter().rfind(|seen| seen.rules.contains(&rule))?;
        Some((rule, of(seen, rule), &window.window))
    }

    /// None: fewer than ten busy windows, or no rule held in six of them, now or in the last 24 busy hours.
    pub fn verdict(&self, now_ms: u64, facts: &Facts) -> Option<Verdict> {
        let held = self.held.as_ref()?;
        let busy_hours_ago = self.busy_hours.saturating_sub(held.busy_hour);
        (busy_hours_ago < CLEARED_AFTER_HOURS).then(|| Verdict {
            rule: held.rule,
            windows: held.windows,
            of: WINDOWS,
            busy_hours_ago,
            confidence: self.confidence(held.rule, now_ms, &held.window, facts),
            baseline: self.baseline(now_ms),
            window: held.window.clone(),
        })
    }

    /// What the last window shows, however few there are: no verdict, and little to trust.
    pub fn impression(&self, now_ms: u64, facts: &Facts) -> Option<Verdict> {
        let first = |seen: &Seen| seen.rules.first().copied();
        let shallow = || {
            self.active
                .back()
                .filter(|seen| seen.rules.contains(&Rule::ShallowReader))
        };
        let (seen, all) = match self.busy.back().filter(|seen| first(seen).is_some()) {
            Some(seen) => (seen, &self.busy),
            None => (shallow()?, &self.active),
        };
        let rule = first(seen)
            .filter(|_| seen.window.is_busy())
            .unwrap_or(Rule::ShallowReader);
        Some(Verdict {
            rule,
            windows: all.iter().filter(|seen| seen.rules.contains(&rule)).count(),
            of: all.len(),
            busy_hours_ago: 0,
            confidence: self.confidence(rule, now_ms, &seen.window, facts).min(0.4),
            baseline: self.baseline(now_ms),
            window: seen.window.clone(),
        })
    }

    /// Seven busy days in which half of the connections would have done.
    pub fn has_too_many(&self) -> bool {
        self.connections > 1 && self.busy_days.len() >= IDLE_DAYS && self.full_days.is_empty()
    }

    fn confidence(&self, rule: Rule, now_ms: u64, window: &Window, facts: &Facts) -> f64 {
        let of_rule = self.busy.iter().filter(|seen| seen.rules.contains(&rule));
        let hours: BTreeSet<u64> = of_rule.map(|seen| seen.window.end_ms / HOUR_MS).collect();
        let is_cpu_hot = window.hottest_cpu.is_some_and(|share| share >= HOT_CPU);
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

    /// As it may have been made here, whatever a file said: bounded, and only numbers that make sense.
    pub fn bounded(mut self) -> History {
        let is_sane = |value: f64| value.is_finite() && value >= 0.0;
        for seen in [&mut self.busy, &mut self.active] {
            seen.retain(|seen| seen.window.is_sane());
            seen.truncate(WINDOWS);
            seen.iter_mut().for_each(|seen| seen.rules.truncate(Rule::ALL.len()));
        }
        for values in [&mut self.per_connection, &mut self.small_rtt_s, &mut self.data_rtt_s] {
            values.retain(|(_, value)| is_sane(*value));
            values.truncate(VALUES);
        }
        self.carried.retain(|_, rate| is_sane(*rate));
        while self.carried.len() > CARRIED_MAX {
            self.carried.pop_last();
        }
        for days in [&mut self.busy_days, &mut self.full_days] {
            while days.len() > 31 {
                days.pop_first();
            }
        }
        self.held = self.held.filter(|held| held.window.is_sane());
        self
    }
}

/// The kernel allows 16 connections.
const CARRIED_MAX: usize = 16;

fn keep_last(all: &mut VecDeque<Seen>, seen: Seen) {
    while all.len() >= WINDOWS {
        all.pop_front();
    }
    all.push_back(seen);
}

/// Where there is no room every other value goes: the old ones get fewer, and the day stays covered.
fn push(values: &mut Values, now_ms: u64, value: Option<f64>) {
    let Some(value) = value.filter(|value| value.is_finite()) else {
        return;
    };
    // A clock that was set back leaves nothing from the future.
    values.retain(|(at, _)| *at <= now_ms);
    if values.len() >= VALUES {
        let mut n = 0usize;
        values.retain(|_| {
            n += 1;
            n % 2 == 0
        });
    }
    values.push_back((now_ms, value));
}

fn sorted<'a>(values: impl Iterator<Item = &'a (u64, f64)>) -> Vec<f64> {
    let mut values: Vec<f64> = values.map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Of sorted values: the nearest rank.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last * percent + 50) / 100).copied()
}
