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

const RETRANSMITTED_MAX: f64 = 0.005;
const OUT_OF_ORDER_MAX: f64 = 0.01;
const SENT_AGAIN_MAX: f64 = 0.01;
/// TCP, IP and RPC headers at an MTU of 1500, and jitter.
const LINK_SHARE: f64 = 0.85;
const SLAVE_SHARE: f64 = 1.05;
const SLOTS_SHARE: f64 = 0.9;
const HOT_CPU: f64 = 0.9;
const WINDOW_LIMITED: f64 = 0.3;

/// None: nothing that is known here holds it up.
pub fn diagnose(window: &Window, facts: &Facts, baseline: &Baseline) -> Option<Rule> {
    Rule::ALL.into_iter().find(|rule| holds(*rule, window, facts, baseline))
}

fn holds(rule: Rule, w: &Window, facts: &Facts, baseline: &Baseline) -> bool {
    let above = |value: Option<f64>, limit: f64| value.is_some_and(|value| value > limit);
    let is_cpu_hot = w.hottest_cpu.is_some_and(|share| share >= HOT_CPU);
    let sending = w.sending.unwrap_or(0.0);
    // Small operations against their own idle time.
    let slower = |factor: f64| Some(w.small_rtt_s? >= factor * baseline.small_rtt_s?);
    match rule {
        Rule::LossyPath => {
            above(w.retransmitted, RETRANSMITTED_MAX)
                || above(w.out_of_order, OUT_OF_ORDER_MAX)
                || w.sent_again > SENT_AGAIN_MAX
                || w.timeouts > 0
                || w.softnet_drops > 0
        }
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
const UNKNOWN: u64 = 4;

/// How many connections to try: twice what the link needs by what one has carried (calibrated by the sweep of 2019, where the flows
/// spread unevenly over the queues), a step that is common, and no more than there are CPUs to serve them.
pub fn connections_to_try(window: &Window, facts: &Facts, baseline: &Baseline) -> u64 {
    let most = facts.cpus.clamp(2, 16);
    let wanted = match (link_bytes_per_s(facts), baseline.connection_bytes_per_s) {
        (Some(link), Some(c1)) if c1 > 0.0 => crate::float::whole((2.0 * link / c1).ceil()),
        _ => UNKNOWN,
    };
    let wanted = wanted.clamp(2, most);
    let step = STEPS.into_iter().find(|step| *step >= wanted).unwrap_or(16);
    // Never less than one step more than there are.
    let next = STEPS.into_iter().find(|step| *step > window.connections).unwrap_or(16);
    step.max(next)
}
