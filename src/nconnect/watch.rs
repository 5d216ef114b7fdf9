//! All clients over time: each sample's evidence in, advice out.

use std::collections::BTreeMap;

use crate::nconnect::advice::{self, Advice, Interface};
use crate::nconnect::asked::Group;
use crate::nconnect::live::history::{History, Verdict};
use crate::nconnect::live::rules::Rule;
use crate::nconnect::live::window::{Facts, Moment, Window};

/// What is known about one client.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    pub history: History,
    previous: Option<Moment>,
    last: Option<(Window, Facts)>,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Watch {
    clients: BTreeMap<String, Watched>,
}

/// How sure an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Ten busy windows, of which six agree.
    Verdict,
    /// Whatever the windows so far look like.
    Impression,
}

impl Watch {
    /// Takes in what was seen of a client. The window, if there is one.
    pub fn add(&mut self, client: &str, moment: Moment, facts: Facts) -> Option<&Window> {
        let watched = self.clients.entry(client.to_owned()).or_default();
        let window = watched
            .previous
            .as_ref()
            .and_then(|before| Window::between(before, &moment));
        watched.previous = Some(moment);
        let window = window?;
        watched.history.add(&window, &facts);
        watched.last = Some((window, facts));
        watched.last.as_ref().map(|(window, _)| window)
    }

    /// Clients that are not mounted any more are forgotten.
    pub fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.clients.retain(|client, _| is_there(client));
    }

    pub fn of(&self, client: &str) -> Option<&Watched> {
        self.clients.get(client)
    }

    /// All advice about a client, the surest first.
    pub fn advice(&self, group: &Group, interface: Option<&Interface>, patience: Patience) -> Vec<Advice> {
        let mut found = advice::of_group(group);
        let Some(watched) = self.clients.get(&group.client) else {
            return found;
        };
        let Some((window, facts)) = &watched.last else {
            return found;
        };
        let now_ms = window.end_ms;
        let verdict = watched.history.verdict(now_ms, window, facts);
        let verdict = match patience {
            Patience::Verdict => verdict,
            Patience::Impression => verdict.or_else(|| watched.history.impression(now_ms, window, facts)),
        };
        // What more connections or CPUs could gain depends on it only where something is full.
        let is_pressed = verdict
            .as_ref()
            .is_some_and(|verdict| !matches!(verdict.rule, Rule::Server | Rule::ShallowReader));
        if let Some(interface) = interface.filter(|_| is_pressed) {
            found.extend(advice::of_interface(group, interface));
        }
        found.extend(
            verdict
                .as_ref()
                .and_then(|verdict| advice::from_verdict(group, verdict, window, facts)),
        );
        found.extend(
            verdict
                .as_ref()
                .and_then(|verdict| slots_too(group, verdict, window, facts)),
        );
        if watched.history.has_too_many() {
            found.push(advice::too_many(group));
        }
        found.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        found
    }
}

/// More connections do not add slots to a session: where both are short, both are said.
fn slots_too(group: &Group, verdict: &Verdict, window: &Window, facts: &Facts) -> Option<Advice> {
    let is_full = window
        .in_flight
        .is_some_and(|in_flight| in_flight >= 0.9 * crate::float::float(facts.session_slots));
    if verdict.rule != Rule::QueueBeforeWire || !is_full {
        return None;
    }
    let slots = Verdict {
        rule: Rule::Slots,
        ..verdict.clone()
    };
    advice::from_verdict(group, &slots, window, facts)
}
