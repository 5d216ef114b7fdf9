//! What holds a busy client up: the first rule that holds.

use crate::float::float;
use crate::nconnect::live::window::{Facts, Window};

/// What was learned about the client in quieter times.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Baseline {
    /// What one connection has carried, bytes per second: the 95th percentile of busy windows.
    pub connection_bytes_per_s: Option<f64>,
    /// Small operations without load: the 5th percentile.
    pub small_rtt_s: Option<f64>,
    /// READs and WRITEs at low load.
    pub data_rtt_s: Option<f64>,
}

/// The diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "state", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "state", serde(rename_all = "kebab-case"))]
pub enum Rule {
    LossyPath,
    LinkFull,
    /// One slave of a bond is full, and others are not used.
    BondSlaveFull,
    Slots,
    ShallowReader,
    Server,
    SocketWindow,
    Transport,
    /// Before the wire more waits than on it, and it is not known yet what one connection carries.
    QueueBeforeWire,
    Unbalanced,
}

impl Rule {
    pub const ALL: [Rule; 10] = [
        Rule::LossyPath,
        Rule::LinkFull,
        Rule::BondSlaveFull,
        Rule::Slots,
        Rule::ShallowReader,
        Rule::Server,
        Rule::SocketWindow,
        Rule::Transport,
        Rule::QueueBeforeWire,
        Rule::Unbalanced,
    ];

    /// Stable, for files and programs.
    pub fn name(self) -> &'static str {
        match self {
            Rule::LossyPath => "lossy-path",
            Rule::LinkFull => "link-full",
            Rule::BondSlaveFull => "bond-slave-full",
            Rule::Slots => "slots",
            Rule::ShallowReader => "shallow-reader",
            Rule::Server => "server",
            Rule::SocketWindow => "socket-window",
            Rule::Transport => "transport",
            Rule::QueueBeforeWire => "queue-before-wire",
            Rule::Unbalanced => "unbalanced",
        }
    }

    /// Does it say that more connections help?
    pub fn raises(self) -> bool {
        matches!(self, Rule::BondSlaveFull | Rule::Transport | Rule::QueueBeforeWire)
    }
}

const SENT_AGAIN_MAX: f64 = 0.01;
/// TCP, IP and RPC headers at an MTU of 1500, and jitter.
const LINK_SHARE: f64 = 0.85;
const SLAVE_SHARE: f64 = 1.05;
const SLOTS_SHARE: f64 = 0.9;
/// The share of one CPU's time in the kernel.
pub const HOT_CPU: f64 = 0.9;
const WINDOW_LIMITED: f64 = 0.3;

/// All that hold, the strongest first. Empty: nothing that is known here holds it up.
pub fn holding(window: &Window, facts: &Facts, baseline: &Baseline) -> Vec<Rule> {
    let all = Rule::ALL.into_iter();
    all.filter(|rule| holds(*rule, window, facts, baseline)).collect()
}

fn holds(rule: Rule, w: &Window, facts: &Facts, baseline: &Baseline) -> bool {
    let is_cpu_hot = w.hottest_cpu.is_some_and(|share| share >= HOT_CPU);
    let sending = w.sending.unwrap_or(0.0);
    // Small operations against their own idle time.
    let slower = |factor: f64| Some(w.small_rtt_s? >= factor * baseline.small_rtt_s?);
    match rule {
        Rule::LossyPath => w.has_tcp_loss() || w.sent_again > SENT_AGAIN_MAX || w.timeouts > 0 || w.softnet_drops > 0,
        Rule::LinkFull => link_bytes_per_s(facts).is_some_and(|link| w.bytes_per_s() >= LINK_SHARE * link),
        Rule::BondSlaveFull => facts.bond.is_some_and(|bond| {
            let slave = float(bond.slave_bits_per_s) / 8.0;
            let rate = w.bytes_per_s();
            bond.slaves > 1 && bond.is_by_port && rate >= LINK_SHARE * slave && rate <= SLAVE_SHARE * slave
        }),
        Rule::Slots if has_session(facts) => w.on_wire >= SLOTS_SHARE * float(facts.session_slots) && sending < 1.0,
        Rule::Slots => w.backlog.is_some_and(|backlog| backlog >= 0.5),
        Rule::ShallowReader => {
            w.is_reading()
                && w.on_wire <= 1.3
                && w.mean_read_bytes
                    .is_some_and(|mean| mean <= float(facts.rsize_bytes) / 2.0)
                && facts.read_ahead_bytes < facts.rsize_bytes.saturating_mul(2)
        }
        Rule::Server => {
            let is_data_slow = w
                .data_rtt_s
                .zip(baseline.data_rtt_s)
                .is_some_and(|(now, low)| now >= 5.0 * low);
            slower(2.0) == Some(false) && is_data_slow && sending < 1.0 && is_connection_below(w, baseline, 0.5)
        }
        Rule::SocketWindow => !w.is_reading() && w.window_limited.is_some_and(|share| share >= WINDOW_LIMITED),
        Rule::Transport => {
            let is_full = baseline
                .connection_bytes_per_s
                .is_some_and(|c1| w.per_connection() >= 0.8 * c1);
            is_full && (slower(3.0) == Some(true) || sending >= 1.0 || is_cpu_hot)
        }
        Rule::QueueBeforeWire => {
            let waiting = w.in_flight.unwrap_or(0.0).max(w.on_wire + w.queued);
            let has_room = link_bytes_per_s(facts).is_none_or(|link| w.bytes_per_s() < LINK_SHARE * link);
            w.queued >= 2.0 * w.on_wire && waiting >= 16.0 && has_room
        }
        Rule::Unbalanced => {
            let fair = 1.0 / float(w.connections);
            w.connections > 1 && w.share_max.is_some_and(|share| share > 1.5 * fair) && is_cpu_hot
        }
    }
}

fn is_connection_below(window: &Window, baseline: &Baseline, share: f64) -> bool {
    baseline
        .connection_bytes_per_s
        .is_some_and(|c1| window.per_connection() < share * c1)
}

pub fn link_bytes_per_s(facts: &Facts) -> Option<f64> {
    facts.link_bits_per_s.map(|bits| float(bits) / 8.0)
}

/// NFSv4.1 and later have slots in the session, for the client as a whole.
pub fn has_session(facts: &Facts) -> bool {
    facts.version.starts_with("4.") && facts.version != "4.0"
}

/// Steps that are suggested: no mount needs 11.
const STEPS: [u64; 6] = [2, 4, 6, 8, 12, 16];
/// Without a rate of one connection, or of the link: try, measure, then the next.
const CAREFUL_STEPS: [u64; 4] = [4, 8, 12, 16];

/// How many connections to try: twice what the link needs by what one has carried (calibrated by the sweep of 2019, where the flows
/// spread unevenly over the queues), a step that is common, and no more than there are CPUs to serve them. None: there are enough.
pub fn connections_to_try(window: &Window, facts: &Facts, baseline: &Baseline) -> Option<u64> {
    let (Some(link), Some(c1)) = (
        link_bytes_per_s(facts),
        baseline.connection_bytes_per_s.filter(|c1| *c1 > 0.0),
    ) else {
        return next_step(window.connections);
    };
    let most = facts.cpus.clamp(2, 16);
    let wanted = crate::float::whole((2.0 * link / c1).ceil()).clamp(2, most);
    let step = STEPS.into_iter().find(|step| *step >= wanted).unwrap_or(16);
    (step > window.connections).then_some(step)
}

/// 4, and from there on by measurement. None: there is none.
pub fn next_step(connections: u64) -> Option<u64> {
    CAREFUL_STEPS.into_iter().find(|step| *step > connections)
}

/// The largest step that is not above `most`, and above what there is.
pub fn step_within(most: u64, connections: u64) -> Option<u64> {
    let steps = STEPS.into_iter().rev();
    steps.filter(|step| *step > connections).find(|step| *step <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::route::Bond;

    fn diagnose(window: &Window, facts: &Facts, baseline: &Baseline) -> Option<Rule> {
        holding(window, facts, baseline).first().copied()
    }

    /// One connection at half of a 40 Gbit/s link, eight READs on the wire, nothing else to see.
    fn window() -> Window {
        Window {
            end_ms: 1_000_000,
            length_ms: 15_000,
            connections: 1,
            read_bytes_per_s: 1e9,
            write_bytes_per_s: 0.0,
            on_wire: 8.0,
            queued: 1.0,
            in_flight: Some(8.0),
            sending: Some(0.1),
            backlog: Some(0.0),
            share_max: Some(1.0),
            data_rtt_s: Some(0.008),
            small_rtt_s: Some(0.0002),
            mean_read_bytes: Some(1048576.0),
            retransmitted: Some(0.0),
            out_of_order: Some(0.0),
            sent_again: 0.0,
            timeouts: 0,
            softnet_drops: 0,
            nic_drops: Some(0),
            window_limited: Some(0.0),
            hottest_cpu: Some(0.3),
        }
    }

    fn facts() -> Facts {
        Facts {
            version: "4.2".to_owned(),
            proto: "tcp".to_owned(),
            flavors: vec!["sys".to_owned()],
            rsize_bytes: 1 << 20,
            read_ahead_bytes: 4 << 20,
            link_bits_per_s: Some(40_000_000_000),
            bond: None,
            session_slots: 64,
            cpus: 16,
            ..Facts::default()
        }
    }

    fn baseline() -> Baseline {
        Baseline {
            connection_bytes_per_s: Some(1.9e9),
            small_rtt_s: Some(0.0002),
            data_rtt_s: Some(0.004),
        }
    }

    /// One row: below the threshold by a hundredth it does not hold, above it does.
    fn edge(rule: Rule, threshold: f64, with: impl Fn(f64) -> (Window, Facts)) {
        for (value, holds) in [(threshold * 0.99, false), (threshold * 1.01, true)] {
            let (window, facts) = with(value);
            let found = diagnose(&window, &facts, &baseline());
            assert_eq!(found == Some(rule), holds, "{rule:?} at {value}: {found:?}");
        }
    }

    /// The same, where it holds below.
    fn edge_down(rule: Rule, threshold: f64, with: impl Fn(f64) -> (Window, Facts)) {
        for (value, holds) in [(threshold * 0.99, true), (threshold * 1.01, false)] {
            let (window, facts) = with(value);
            let found = diagnose(&window, &facts, &baseline());
            assert_eq!(found == Some(rule), holds, "{rule:?} at {value}: {found:?}");
        }
    }

    #[test]
    fn nothing_is_wrong_with_a_busy_mount() {
        assert_eq!(diagnose(&window(), &facts(), &baseline()), None);
        assert_eq!(diagnose(&window(), &facts(), &Baseline::default()), None);
    }

    #[test]
    fn a_lossy_path() {
        let with = |change: fn(&mut Window, f64)| {
            move |value| {
                let mut window = window();
                change(&mut window, value);
                (window, facts())
            }
        };
        edge(Rule::LossyPath, 0.005, with(|w, v| w.retransmitted = Some(v)));
        edge(Rule::LossyPath, 0.01, with(|w, v| w.out_of_order = Some(v)));
        edge(Rule::LossyPath, 0.01, with(|w, v| w.sent_again = v));
        for change in [|w: &mut Window| w.timeouts = 1, |w: &mut Window| w.softnet_drops = 1] {
            let mut window = window();
            change(&mut window);
            assert_eq!(diagnose(&window, &facts(), &baseline()), Some(Rule::LossyPath));
        }
    }

    #[test]
    fn a_full_link_and_a_full_slave() {
        edge(Rule::LinkFull, 0.85 * 5e9, |v| {
            (
                Window {
                    read_bytes_per_s: v,
                    ..window()
                },
                facts(),
            )
        });
        edge(Rule::LinkFull, 0.85 * 5e9, |v| {
            (
                Window {
                    write_bytes_per_s: v,
                    ..window()
                },
                facts(),
            )
        });
        let bond = Bond {
            slaves: 4,
            slave_bits_per_s: 10_000_000_000,
            is_by_port: true,
        };
        let bonded = Facts {
            bond: Some(bond),
            ..facts()
        };
        edge(Rule::BondSlaveFull, 0.85 * 1.25e9, |v| {
            (
                Window {
                    read_bytes_per_s: v,
                    ..window()
                },
                bonded.clone(),
            )
        });
        edge_down(Rule::BondSlaveFull, 1.05 * 1.25e9, |v| {
            (
                Window {
                    read_bytes_per_s: v,
                    ..window()
                },
                bonded.clone(),
            )
        });
        let by_address = Facts {
            bond: Some(Bond {
                is_by_port: false,
                ..bond
            }),
            ..facts()
        };
        assert_eq!(
            diagnose(
                &Window {
                    read_bytes_per_s: 1.2e9,
                    ..window()
                },
                &by_address,
                &baseline()
            ),
            None
        );
    }

    #[test]
    fn slots_of_a_session_and_of_a_connection() {
        edge(Rule::Slots, 0.9 * 64.0, |v| {
            (Window { on_wire: v, ..window() }, facts())
        });
        edge_down(Rule::Slots, 1.0, |v| {
            (
                Window {
                    on_wire: 64.0,
                    sending: Some(v),
                    ..window()
                },
                facts(),
            )
        });
        let v3 = Facts {
            version: "3".to_owned(),
            ..facts()
        };
        edge(Rule::Slots, 0.5, |v| {
            (
                Window {
                    backlog: Some(v),
                    ..window()
                },
                v3.clone(),
            )
        });
        assert_eq!(
            diagnose(
                &Window {
                    on_wire: 64.0,
                    ..window()
                },
                &v3,
                &baseline()
            ),
            None
        );
    }

    #[test]
    fn a_reader_that_is_too_shallow() {
        let shallow = || Window {
            on_wire: 1.2,
            queued: 0.9,
            mean_read_bytes: Some(131_072.0),
            read_bytes_per_s: 1e8,
            ..window()
        };
        let small = Facts {
            read_ahead_bytes: 128 << 10,
            ..facts()
        };
        assert_eq!(diagnose(&shallow(), &small, &baseline()), Some(Rule::ShallowReader));
        edge_down(Rule::ShallowReader, 1.3, |v| {
            (
                Window {
                    on_wire: v,
                    ..shallow()
                },
                small.clone(),
            )
        });
        edge_down(Rule::ShallowReader, 524_288.0, |v| {
            (
                Window {
                    mean_read_bytes: Some(v),
                    ..shallow()
                },
                small.clone(),
            )
        });
        assert_eq!(
            diagnose(
                &shallow(),
                &Facts {
                    read_ahead_bytes: 2 << 20,
                    ..facts()
                },
                &baseline()
            ),
            None
        );
        let writer = Window {
            write_bytes_per_s: 2e8,
            ..shallow()
        };
        assert_eq!(diagnose(&writer, &small, &baseline()), None);
    }

    #[test]
    fn a_slow_server() {
        let slow = || Window {
            read_bytes_per_s: 5e8,
            data_rtt_s: Some(0.03),
            ..window()
        };
        assert_eq!(diagnose(&slow(), &facts(), &baseline()), Some(Rule::Server));
        edge(Rule::Server, 0.02, |v| {
            (
                Window {
                    data_rtt_s: Some(v),
                    ..slow()
                },
                facts(),
            )
        });
        edge_down(Rule::Server, 0.0004, |v| {
            (
                Window {
                    small_rtt_s: Some(v),
                    ..slow()
                },
                facts(),
            )
        });
        edge_down(Rule::Server, 0.95e9, |v| {
            (
                Window {
                    read_bytes_per_s: v,
                    ..slow()
                },
                facts(),
            )
        });
        edge_down(Rule::Server, 1.0, |v| {
            (
                Window {
                    sending: Some(v),
                    ..slow()
                },
                facts(),
            )
        });
    }

    #[test]
    fn a_full_socket_window() {
        let writer = || Window {
            write_bytes_per_s: 1.1e9,
            ..window()
        };
        edge(Rule::SocketWindow, 0.3, |v| {
            (
                Window {
                    window_limited: Some(v),
                    ..writer()
                },
                facts(),
            )
        });
        assert_eq!(
            diagnose(
                &Window {
                    window_limited: Some(0.9),
                    ..window()
                },
                &facts(),
                &baseline()
            ),
            None
        );
    }

    #[test]
    fn a_full_connection() {
        let full = || Window {
            read_bytes_per_s: 1.6e9,
            small_rtt_s: Some(0.0007),
            ..window()
        };
        assert_eq!(diagnose(&full(), &facts(), &baseline()), Some(Rule::Transport));
        edge(Rule::Transport, 0.8 * 1.9e9, |v| {
            (
                Window {
                    read_bytes_per_s: v,
                    ..full()
                },
                facts(),
            )
        });
        edge(Rule::Transport, 0.0006, |v| {
            (
                Window {
                    small_rtt_s: Some(v),
                    ..full()
                },
                facts(),
            )
        });
        edge(Rule::Transport, 1.0, |v| {
            (
                Window {
                    small_rtt_s: None,
                    sending: Some(v),
                    ..full()
                },
                facts(),
            )
        });
        edge(Rule::Transport, 0.9, |v| {
            (
                Window {
                    small_rtt_s: None,
                    hottest_cpu: Some(v),
                    ..full()
                },
                facts(),
            )
        });
        // Without history nothing is known about one connection.
        assert_eq!(diagnose(&full(), &facts(), &Baseline::default()), None);
    }

    #[test]
    fn a_queue_before_the_wire() {
        let queued = || Window {
            on_wire: 8.0,
            queued: 20.0,
            in_flight: Some(20.0),
            ..window()
        };
        assert_eq!(
            diagnose(&queued(), &facts(), &Baseline::default()),
            Some(Rule::QueueBeforeWire)
        );
        edge(Rule::QueueBeforeWire, 16.0, |v| {
            (Window { queued: v, ..queued() }, facts())
        });
        edge(Rule::QueueBeforeWire, 16.0, |v| {
            (
                Window {
                    on_wire: 1.4,
                    queued: 4.0,
                    in_flight: Some(v),
                    ..queued()
                },
                facts(),
            )
        });
        let unknown = Facts {
            link_bits_per_s: None,
            ..facts()
        };
        assert_eq!(diagnose(&queued(), &unknown, &baseline()), Some(Rule::QueueBeforeWire));
    }

    #[test]
    fn unbalanced_connections() {
        let four = || Window {
            connections: 4,
            share_max: Some(0.5),
            hottest_cpu: Some(0.95),
            read_bytes_per_s: 5e9 * 0.5,
            ..window()
        };
        let slow = Baseline {
            connection_bytes_per_s: Some(1.9e9),
            ..baseline()
        };
        assert_eq!(diagnose(&four(), &facts(), &slow), Some(Rule::Unbalanced));
        edge(Rule::Unbalanced, 0.375, |v| {
            (
                Window {
                    share_max: Some(v),
                    ..four()
                },
                facts(),
            )
        });
        edge(Rule::Unbalanced, 0.9, |v| {
            (
                Window {
                    hottest_cpu: Some(v),
                    ..four()
                },
                facts(),
            )
        });
    }

    #[test]
    fn connections_to_try_fit_the_sweep_of_2019() {
        let of_sweep = Baseline {
            connection_bytes_per_s: Some(1.93e9),
            ..baseline()
        };
        let with = |connections| Window {
            connections,
            ..window()
        };
        assert_eq!(connections_to_try(&with(1), &facts(), &of_sweep), Some(6));
        assert_eq!(connections_to_try(&with(4), &facts(), &of_sweep), Some(6));
        // The knee: six are enough for this link, whatever else is seen.
        assert_eq!(connections_to_try(&with(6), &facts(), &of_sweep), None);
        assert_eq!(connections_to_try(&with(8), &facts(), &of_sweep), None);
        let unknown = Facts {
            link_bits_per_s: None,
            ..facts()
        };
        for (connections, next) in [(1, Some(4)), (4, Some(8)), (8, Some(12)), (16, None)] {
            assert_eq!(connections_to_try(&with(connections), &unknown, &baseline()), next);
        }
        let four_cpus = Facts {
            cpus: 4,
            link_bits_per_s: Some(400_000_000_000),
            ..facts()
        };
        assert_eq!(connections_to_try(&with(1), &four_cpus, &baseline()), Some(4));
        assert_eq!(connections_to_try(&with(4), &four_cpus, &baseline()), None);
        let one_cpu = Facts { cpus: 1, ..four_cpus };
        assert_eq!(connections_to_try(&with(1), &one_cpu, &baseline()), Some(2));
        assert_eq!(
            [step_within(7, 1), step_within(7, 6), step_within(1, 1)],
            [Some(6), None, None]
        );
    }
}
