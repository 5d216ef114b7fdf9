//! What one client did between two moments.

use crate::float::float;
use crate::kernel::host::{Host, Tcp};
use crate::kernel::mountstats::Transport;
use crate::kernel::route::Bond;
use crate::kernel::tcp::Socket;
use crate::sample::activity::Activity;

/// One client at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moment {
    /// Since boot: how long a window is.
    pub at_ms: u64,
    /// Since 1970: what is remembered over reboots goes by it.
    pub unix_ms: u64,
    /// Of all its mounts, each superblock once.
    pub activity: Activity,
    pub transports: Vec<Transport>,
    /// To its server; empty where they cannot be asked for.
    pub sockets: Vec<Socket>,
    pub host: Host,
    /// Packets that the interfaces to the server have lost. None: they do not say.
    pub nic_drops: Option<u64>,
}

impl Moment {
    /// Of the connection that is idle longest.
    pub fn longest_idle_s(&self) -> Option<u64> {
        self.transports.iter().filter_map(|transport| transport.idle_s).max()
    }
}

/// What is not a counter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// "3", "4.2".
    pub version: String,
    pub proto: String,
    /// Of all its mounts: "sys", "krb5p".
    pub flavors: Vec<String>,
    pub rsize_bytes: u64,
    /// The least of its mounts.
    pub read_ahead_bytes: u64,
    /// Of the way to the server, bits per second. None: the interface does not say.
    pub link_bits_per_s: Option<u64>,
    /// Bytes a second that one connection can have at most, by the bond's slave. None: no bond.
    pub bond: Option<Bond>,
    /// `nfs.max_session_slots`; the server may grant fewer.
    pub session_slots: u64,
    pub cpus: u64,
    /// (6, 12). None: not known.
    pub kernel: Option<(u64, u64)>,
    /// Reserved ports that connections of the host may still take. None: the mounts take none (`noresvport`).
    pub ports_left: Option<u64>,
    /// What the server calls itself (NFSv4.1's implementation id); empty where it does not say.
    pub software: String,
}

/// What happened in between.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "state", derive(serde::Serialize, serde::Deserialize))]
pub struct Window {
    /// Since 1970.
    pub end_ms: u64,
    pub length_ms: u64,
    pub connections: u64,
    pub read_bytes_per_s: f64,
    pub write_bytes_per_s: f64,
    /// Requests on the wire, and waiting before it (Little's law).
    pub on_wire: f64,
    pub queued: f64,
    /// Mean of requests in flight, waiting for the write lock and without a slot, as each send found them. None: no sends.
    pub in_flight: Option<f64>,
    pub sending: Option<f64>,
    pub backlog: Option<f64>,
    /// The largest part of the sends that one connection had.
    pub share_max: Option<f64>,
    pub data_rtt_s: Option<f64>,
    /// None: fewer than 30 small operations.
    pub small_rtt_s: Option<f64>,
    pub mean_read_bytes: Option<f64>,
    /// Shares of 1.
    pub retransmitted: Option<f64>,
    pub out_of_order: Option<f64>,
    pub sent_again: f64,
    pub timeouts: u64,
    pub softnet_drops: u64,
    /// Lost by the interface. None: not known.
    pub nic_drops: Option<u64>,
    pub window_limited: Option<f64>,
    pub hottest_cpu: Option<f64>,
}

/// Small operations for a mean that is worth something.
const SMALL_OPS_MIN: u64 = 30;
/// Shorter windows are noise; longer ones are a sleep.
const LENGTH_MS: std::ops::RangeInclusive<u64> = 4_500..=20 * 60_000;

impl Window {
    /// None: a counter fell, the connections are others, or the time makes no sense.
    pub fn between(before: &Moment, now: &Moment) -> Option<Window> {
        let length_ms = now
            .at_ms
            .checked_sub(before.at_ms)
            .filter(|ms| LENGTH_MS.contains(ms))?;
        let done = now.activity.since(&before.activity)?;
        let seconds = float(length_ms) / 1000.0;
        let sends = sends(&before.transports, &now.transports)?;
        let all: u64 = sends.iter().fold(0, |sum, n| sum.saturating_add(*n));
        let mean = |of: fn(&Transport) -> Option<u64>| {
            let sum = |transports: &[Transport]| {
                transports
                    .iter()
                    .map(of)
                    .try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
            };
            let grown = sum(&now.transports)?.checked_sub(sum(&before.transports)?)?;
            (all > 0).then(|| float(grown) / float(all))
        };
        let data = done.read.sum(&done.write);
        Some(Window {
            end_ms: now.unix_ms,
            length_ms,
            connections: u64::try_from(now.transports.len()).unwrap_or_default().max(1),
            read_bytes_per_s: float(done.read_wire_bytes) / seconds,
            write_bytes_per_s: float(done.write_wire_bytes) / seconds,
            on_wire: float(done.all.rtt_ms) / float(length_ms),
            queued: float(done.all.queue_ms) / float(length_ms),
            in_flight: mean(|t| Some(t.in_flight_sum)),
            sending: mean(|t| t.sending_sum),
            backlog: mean(|t| Some(t.backlog_sum)),
            share_max: sends
                .iter()
                .max()
                .filter(|_| all > 0)
                .map(|most| float(*most) / float(all)),
            data_rtt_s: data.mean_rtt_s(),
            small_rtt_s: Some(done.small)
                .filter(|small| small.ops >= SMALL_OPS_MIN)
                .and_then(|small| small.mean_rtt_s()),
            mean_read_bytes: (done.read.ops > 0).then(|| float(done.read_wire_bytes) / float(done.read.ops)),
            retransmitted: lost(before, now).or_else(|| of_host(before, now, |tcp| tcp.sent, lost_segments)),
            out_of_order: ratio(before, now, |s| s.out_of_order, |s| s.segments_in)
                .or_else(|| of_host(before, now, |tcp| tcp.received, segments_out_of_order)),
            sent_again: float(done.retransmissions) / float(done.all.ops.max(1)),
            timeouts: done.timeouts,
            softnet_drops: now.host.softnet_drops.saturating_sub(before.host.softnet_drops),
            nic_drops: now
                .nic_drops
                .zip(before.nic_drops)
                .map(|(now, before)| now.saturating_sub(before)),
            window_limited: ratio(
                before,
                now,
                |s| Some(s.window_limited_us?.saturating_add(s.buffer_limited_us?)),
                |s| s.busy_us,
            ),
            hottest_cpu: now.host.hottest_since(&before.host),
        })
    }

    /// Somebody waits: the rest of the windows says nothing about limits.
    pub fn is_busy(&self) -> bool {
        self.on_wire + self.queued >= 2.0
    }

    /// More than a path should lose.
    pub fn has_tcp_loss(&self) -> bool {
        const RETRANSMITTED_MAX: f64 = 0.005;
        const OUT_OF_ORDER_MAX: f64 = 0.01;
        let above = |value: Option<f64>, limit: f64| value.is_some_and(|value| value > limit);
        above(self.retransmitted, RETRANSMITTED_MAX) || above(self.out_of_order, OUT_OF_ORDER_MAX)
    }

    /// Something was on its way, half of the time at least.
    pub fn is_active(&self) -> bool {
        self.on_wire + self.queued >= 0.5
    }

    /// Could two moments make it? A file may hold anything.
    pub fn is_sane(&self) -> bool {
        let known = [
            self.read_bytes_per_s,
            self.write_bytes_per_s,
            self.on_wire,
            self.queued,
            self.sent_again,
        ];
        let others = [
            self.in_flight,
            self.sending,
            self.backlog,
            self.share_max,
            self.data_rtt_s,
            self.small_rtt_s,
            self.mean_read_bytes,
            self.retransmitted,
            self.out_of_order,
            self.window_limited,
            self.hottest_cpu,
        ];
        let mut all = known.into_iter().chain(others.into_iter().flatten());
        self.connections > 0 && all.all(|value| (0.0..1e15).contains(&value))
    }

    /// In the direction that carries more.
    pub fn bytes_per_s(&self) -> f64 {
        self.read_bytes_per_s.max(self.write_bytes_per_s)
    }

    pub fn is_reading(&self) -> bool {
        self.read_bytes_per_s >= self.write_bytes_per_s
    }

    pub fn per_connection(&self) -> f64 {
        self.bytes_per_s() / float(self.connections)
    }
}

/// Of each connection. A reconnect keeps its line; another number of connections is another client.
fn sends(before: &[Transport], now: &[Transport]) -> Option<Vec<u64>> {
    if before.len() != now.len() {
        return None;
    }
    let both = now.iter().zip(before);
    both.map(|(now, before)| now.sends.checked_sub(before.sends)).collect()
}

/// Growth by growth, over the connections that are there at both moments.
fn ratio(
    before: &Moment,
    now: &Moment,
    part: fn(&Socket) -> Option<u64>,
    whole: fn(&Socket) -> Option<u64>,
) -> Option<f64> {
    let (mut parts, mut wholes) = (0u64, 0u64);
    for socket in &now.sockets {
        let same = |other: &&Socket| {
            (other.local_port, other.remote, other.remote_port)
                == (socket.local_port, socket.remote, socket.remote_port)
        };
        let Some(earlier) = before.sockets.iter().find(same) else {
            continue;
        };
        let grown = |of: fn(&Socket) -> Option<u64>| of(socket)?.checked_sub(of(earlier)?);
        if let (Some(part), Some(whole)) = (grown(part), grown(whole)) {
            parts = parts.saturating_add(part);
            wholes = wholes.saturating_add(whole);
        }
    }
    (wholes > 0).then(|| float(parts) / float(wholes))
}

/// Of the bytes sent: those that were sent again because they were lost. Where the answers of a slow server take long, TCP sends
/// requests again that have arrived (tail loss probes: their acknowledgement waits for the answer); the server says so.
fn lost(before: &Moment, now: &Moment) -> Option<f64> {
    let sent_again = ratio(before, now, |s| s.bytes_retransmitted, |s| s.bytes_sent)?;
    let needless = ratio(before, now, |s| s.needless_retransmits, |s| s.retransmits).unwrap_or(0.0);
    Some(sent_again * (1.0 - needless.min(1.0)))
}

/// The same of all TCP connections of the host: what is left where the connections themselves cannot be asked, as in a saved tree
/// or on an old kernel. Too few segments say nothing.
fn of_host(before: &Moment, now: &Moment, whole: fn(&Tcp) -> u64, part: fn(&Tcp, &Tcp) -> Option<u64>) -> Option<f64> {
    const SEGMENTS_MIN: u64 = 1000;
    let (before, now) = (before.host.tcp.as_ref()?, now.host.tcp.as_ref()?);
    let (part, whole) = (part(before, now)?, whole(now).checked_sub(whole(before))?);
    (whole >= SEGMENTS_MIN).then(|| float(part) / float(whole))
}

fn lost_segments(before: &Tcp, now: &Tcp) -> Option<u64> {
    let again = now.retransmitted.checked_sub(before.retransmitted)?;
    Some(again.saturating_sub(now.needless.checked_sub(before.needless)?))
}

fn segments_out_of_order(before: &Tcp, now: &Tcp) -> Option<u64> {
    now.out_of_order.checked_sub(before.out_of_order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mountstats::Proto;
    use proptest::prelude::*;

    fn transport(sends: u64) -> Transport {
        Transport {
            proto: Proto::Tcp,
            source_port: Some(700),
            binds: 0,
            connects: Some(1),
            connect_s: Some(0),
            idle_s: Some(0),
            sends,
            receives: sends,
            bad_xids: 0,
            in_flight_sum: 3 * sends,
            backlog_sum: sends / 2,
            slots_max: Some(64),
            sending_sum: Some(2 * sends),
            pending_sum: Some(sends),
        }
    }

    fn moment(at_ms: u64, sends: &[u64]) -> Moment {
        Moment {
            at_ms,
            unix_ms: at_ms,
            transports: sends.iter().map(|sends| transport(*sends)).collect(),
            ..Moment::default()
        }
    }

    #[test]
    fn means_are_of_all_connections() {
        let window = Window::between(&moment(0, &[100, 100]), &moment(10_000, &[400, 200])).unwrap();
        assert_eq!(
            (window.in_flight, window.sending, window.backlog),
            (Some(3.0), Some(2.0), Some(0.5))
        );
        assert_eq!((window.connections, window.share_max), (2, Some(0.75)));
    }

    /// A slow server's requests that TCP repeats too early are no loss; an old kernel does not tell them apart.
    #[test]
    fn what_had_arrived_was_not_lost() {
        let socket = |sent, again, needless| Socket {
            local_port: 700,
            remote: [192, 0, 2, 10].into(),
            remote_port: 2049,
            rtt_us: None,
            min_rtt_us: None,
            path_mtu_bytes: None,
            bytes_received: None,
            segments_in: None,
            busy_us: None,
            window_limited_us: None,
            buffer_limited_us: None,
            bytes_sent: Some(sent),
            bytes_retransmitted: Some(200 * again),
            retransmits: Some(again),
            needless_retransmits: needless,
            out_of_order: None,
        };
        for (needless, lost) in [
            (None, 0.02),
            (Some(0), 0.02),
            (Some(5), 0.01),
            (Some(10), 0.0),
            (Some(12), 0.0),
        ] {
            let (mut before, mut now) = (moment(0, &[100]), moment(10_000, &[200]));
            before.sockets = vec![socket(0, 0, needless.map(|_| 0))];
            now.sockets = vec![socket(100_000, 10, needless)];
            assert_eq!(
                Window::between(&before, &now).unwrap().retransmitted,
                Some(lost),
                "{needless:?}"
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_no_window() {
        let before = moment(100_000, &[100]);
        for now in [
            moment(100_000, &[100]),
            moment(104_000, &[100]),
            moment(99_000, &[100]),
            moment(100_000 + 21 * 60_000, &[200]),
            moment(110_000, &[99]),
            moment(110_000, &[100, 100]),
            moment(110_000, &[]),
        ] {
            assert_eq!(Window::between(&before, &now), None, "{now:?}");
        }
        assert!(Window::between(&before, &moment(110_000, &[100])).is_some());
    }

    proptest! {
        #[test]
        fn the_order_of_connections_is_nothing(sends in proptest::collection::vec((0u64..1 << 40, 0u64..1 << 30), 1..17)) {
            let before: Vec<u64> = sends.iter().map(|(before, _)| *before).collect();
            let now: Vec<u64> = sends.iter().map(|(before, grown)| before + grown).collect();
            let reversed = |list: &[u64]| list.iter().rev().copied().collect::<Vec<u64>>();
            let there = Window::between(&moment(0, &before), &moment(10_000, &now)).unwrap();
            let back = Window::between(&moment(0, &reversed(&before)), &moment(10_000, &reversed(&now))).unwrap();
            prop_assert_eq!(there, back);
        }
    }
}
