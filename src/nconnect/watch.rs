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
    facts: Option<Facts>,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Watch {
    clients: BTreeMap<String, Watched>,
}

/// Clients that are remembered, mounted or not: the number of connections changes by an unmount.
const CLIENTS: usize = 256;
/// How long one that is not mounted is.
const FORGOTTEN_AFTER_MS: u64 = 30 * 86_400_000;

/// How sure an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Ten busy windows, of which six agree.
    Verdict,
    /// Whatever the windows so far look like.
    Impression,
}

impl Watch {
    /// Goes on with what was remembered.
    pub fn new(histories: BTreeMap<String, History>) -> Watch {
        let watched = |(client, history): (String, History)| {
            let watched = Watched {
                history: history.bounded(),
                ..Watched::default()
            };
            (client, watched)
        };
        Watch {
            clients: histories.into_iter().take(CLIENTS).map(watched).collect(),
        }
    }

    /// What is worth remembering.
    pub fn histories(&self) -> impl Iterator<Item = (&str, &History)> {
        let seen = self
            .clients
            .iter()
            .filter(|(_, watched)| watched.history.watched_ms() > 0);
        seen.map(|(client, watched)| (client.as_str(), &watched.history))
    }

    /// Takes in what was seen of a client. The window, if there is one.
    pub fn add(&mut self, client: &str, moment: Moment, facts: Facts) -> Option<Window> {
        let watched = self.clients.entry(client.to_owned()).or_default();
        let before = watched.previous.as_ref();
        let window = before.and_then(|before| Window::between(before, &moment));
        watched.previous = Some(moment);
        if let Some(window) = &window {
            watched.history.add(window, &facts);
        }
        watched.facts = Some(facts);
        window
    }

    /// Clients that are not mounted now begin anew with their counters, and are forgotten after a month, or where there are too many.
    pub fn keep(&mut self, now_ms: u64, is_there: impl Fn(&str) -> bool) {
        for (client, watched) in &mut self.clients {
            if !is_there(client) {
                watched.previous = None;
            }
        }
        let age = |watched: &Watched| now_ms.saturating_sub(watched.history.last_seen_ms());
        self.clients
            .retain(|_, watched| watched.previous.is_some() || age(watched) < FORGOTTEN_AFTER_MS);
        while self.clients.len() > CLIENTS {
            let gone = self.clients.iter().filter(|(_, watched)| watched.previous.is_none());
            let Some(oldest) = gone
                .max_by_key(|(_, watched)| age(watched))
                .map(|(client, _)| client.clone())
            else {
                break;
            };
            self.clients.remove(&oldest);
        }
    }

    pub fn of(&self, client: &str) -> Option<&Watched> {
        self.clients.get(client)
    }

    /// All advice about a client, the surest first.
    pub fn advice(&self, group: &Group, interface: Option<&Interface>, patience: Patience, now_ms: u64) -> Vec<Advice> {
        let mut found = advice::of_group(group);
        let watched = self.clients.get(&group.client);
        let Some((watched, facts)) = watched.and_then(|watched| Some((watched, watched.facts.as_ref()?))) else {
            return found;
        };
        let history = &watched.history;
        let verdict = history.verdict(now_ms, facts);
        let verdict = match patience {
            Patience::Verdict => verdict,
            Patience::Impression => verdict.or_else(|| history.impression(now_ms, facts)),
        };
        if let Some(verdict) = &verdict {
            // What CPUs and packets cost matters only where something is full.
            let is_pressed = !matches!(verdict.rule, Rule::Server | Rule::ShallowReader);
            if let Some(interface) = interface.filter(|_| is_pressed) {
                found.extend(advice::of_interface(group, interface));
            }
            found.extend(interface.and_then(|interface| advice::loss_elsewhere(group, verdict, interface)));
            found.extend(advice::from_verdict(group, verdict, facts));
            found.extend(slots_too(group, verdict, facts));
        }
        if history.has_too_many() {
            found.push(advice::too_many(group));
        }
        found.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        found
    }
}

/// More connections do not add slots to a session: where both are short, both are said.
fn slots_too(group: &Group, verdict: &Verdict, facts: &Facts) -> Option<Advice> {
    let is_full = verdict
        .window
        .in_flight
        .is_some_and(|in_flight| in_flight >= 0.9 * crate::float::float(facts.session_slots));
    if verdict.rule != Rule::QueueBeforeWire || !is_full {
        return None;
    }
    let slots = Verdict {
        rule: Rule::Slots,
        ..verdict.clone()
    };
    advice::from_verdict(group, &slots, facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mountstats::{Proto, Transport};
    use crate::nconnect::asked::Place;
    use crate::sample::activity::{Activity, Calls};

    const NOW_MS: u64 = 60 * 15_000;

    fn group(proto: &str, flavor: &str, connections: u64) -> Group {
        Group {
            client: "192.0.2.10,vers=4.2".to_owned(),
            server: "nas1".to_owned(),
            version: "4.2".to_owned(),
            proto: proto.to_owned(),
            connections,
            places: vec![Place {
                mount_point: "/a".to_owned(),
                source: "nas1:/a".to_owned(),
                asked: None,
                has_line: false,
                flavor: flavor.to_owned(),
            }],
        }
    }

    fn facts() -> Facts {
        Facts {
            version: "4.2".to_owned(),
            proto: "tcp".to_owned(),
            flavors: Vec::new(),
            rsize_bytes: 1 << 20,
            read_ahead_bytes: 4 << 20,
            link_bits_per_s: Some(40_000_000_000),
            bond: None,
            session_slots: 64,
            cpus: 16,
            ..Facts::default()
        }
    }

    /// The n-th interval of 15 s: idle, or one full connection behind which everything waits.
    fn moment(n: u64, busy: u64, connections: usize) -> Moment {
        let sends = 1000 * n + 27_000 * busy;
        Moment {
            at_ms: n * 15_000,
            unix_ms: n * 15_000,
            activity: Activity {
                read: Calls {
                    ops: 27_000 * busy,
                    queue_ms: 0,
                    rtt_ms: 120_000 * busy,
                },
                small: Calls {
                    ops: 100 * n,
                    queue_ms: 0,
                    rtt_ms: 20 * n + 100 * busy,
                },
                all: Calls {
                    ops: sends,
                    queue_ms: 0,
                    rtt_ms: 120_000 * busy + 20 * n + 100 * busy,
                },
                read_wire_bytes: busy * 15 * 1_900_000_000,
                ..Activity::default()
            },
            transports: vec![
                Transport {
                    proto: Proto::Tcp,
                    source_port: None,
                    binds: 0,
                    connects: None,
                    connect_s: None,
                    idle_s: None,
                    sends,
                    receives: sends,
                    bad_xids: 0,
                    in_flight_sum: 8 * sends,
                    backlog_sum: 0,
                    slots_max: None,
                    sending_sum: Some(0),
                    pending_sum: None,
                };
                connections
            ],
            ..Moment::default()
        }
    }

    /// Twenty idle intervals, then busy ones.
    fn watched(group: &Group, busy: u64) -> Watch {
        let mut watch = Watch::default();
        let connections = usize::try_from(group.connections).unwrap();
        for n in 0..20 + busy {
            watch.add(&group.client, moment(n, n.saturating_sub(19), connections), facts());
        }
        watch
    }

    #[test]
    fn ten_busy_intervals_of_a_full_connection_raise_it() {
        let group = group("tcp", "sys", 1);
        assert_eq!(watched(&group, 9).advice(&group, None, Patience::Verdict, NOW_MS), []);
        assert_eq!(
            watched(&group, 9)
                .advice(&group, None, Patience::Impression, NOW_MS)
                .len(),
            1
        );
        let advice = watched(&group, 10).advice(&group, None, Patience::Verdict, NOW_MS);
        assert_eq!(advice.len(), 1, "{advice:?}");
        assert_eq!((advice[0].kind, advice[0].want), ("transport", Some(6)));
        assert_eq!(
            advice[0].id,
            watched(&group, 15).advice(&group, None, Patience::Verdict, NOW_MS)[0].id
        );
    }

    #[test]
    fn what_must_not_be_suggested() {
        for (proto, flavor, connections, raises, kinds) in [
            ("tcp", "sys", 1, true, 1),
            ("rdma", "sys", 1, true, 1),
            ("udp", "sys", 1, false, 0),
            ("tcp", "krb5p", 1, false, 0),
            ("tcp", "krb5", 1, true, 1),
            ("tcp", "krb5i", 1, false, 0),
            ("tcp", "sys", 16, false, 0),
            // Kerberos over several connections is a finding of its own.
            ("tcp", "krb5p", 4, false, 1),
        ] {
            let group = group(proto, flavor, connections);
            let advice = watched(&group, 12).advice(&group, None, Patience::Verdict, NOW_MS);
            assert_eq!(
                advice.iter().any(|advice| advice.want > Some(connections)),
                raises,
                "{proto} {flavor} {connections}: {advice:?}"
            );
            assert_eq!(advice.len(), kinds, "{proto} {flavor} {connections}: {advice:?}");
            let warns = advice
                .iter()
                .any(|advice| advice.beware.iter().any(|text| text.contains("sec=krb5")));
            assert_eq!(warns, raises && flavor.starts_with("krb5"));
        }
    }

    #[test]
    fn another_number_of_connections_is_another_client() {
        let one = group("tcp", "sys", 1);
        let mut watch = watched(&one, 12);
        let four = group("tcp", "sys", 4);
        for n in 40..45 {
            watch.add(&four.client, moment(n, n - 19, 4), facts());
        }
        assert_eq!(watch.advice(&four, None, Patience::Verdict, NOW_MS), []);
        assert_eq!(watch.of(&four.client).unwrap().history.busy(), 4);
        // Not mounted any more: what is known stays for a while.
        watch.keep(NOW_MS, |_| false);
        assert_eq!(watch.of(&four.client).unwrap().history.busy(), 4);
        watch.keep(NOW_MS + FORGOTTEN_AFTER_MS, |_| false);
        assert!(watch.of(&four.client).is_none());
    }
}
