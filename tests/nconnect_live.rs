//! The live rules over time: what ten windows say together, what is remembered, and what must hold for any of them.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::collections::BTreeMap;

use nfsrahead::kernel::host::{Host, Tcp};
use nfsrahead::kernel::mountstats::{Proto, Transport};
use nfsrahead::kernel::route::Bond;
use nfsrahead::kernel::tcp::Socket;
use nfsrahead::nconnect::advice::{from_verdict, Advice};
use nfsrahead::nconnect::asked::{Group, Place};
use nfsrahead::nconnect::live::history::{History, Verdict};
use nfsrahead::nconnect::live::rules::{holding, Baseline, Rule};
use nfsrahead::nconnect::live::window::{Facts, Moment, Window};
use nfsrahead::nconnect::watch::Watch;
use nfsrahead::sample::activity::{Activity, Calls};
use nfsrahead::state::history::Histories;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;
/// A day like any other, at its beginning.
const START: u64 = 20_000 * DAY;

fn facts() -> Facts {
    Facts {
        version: "4.2".to_owned(),
        proto: "tcp".to_owned(),
        rsize_bytes: 1 << 20,
        read_ahead_bytes: 4 << 20,
        link_bits_per_s: Some(40_000_000_000),
        session_slots: 64,
        cpus: 16,
        kernel: Some((6, 12)),
        ports_left: Some(358),
        ..Facts::default()
    }
}

/// Busy, and nothing wrong with it.
fn plain(end_ms: u64) -> Window {
    Window {
        end_ms,
        length_ms: 15 * SECOND,
        connections: 1,
        read_bytes_per_s: 1e9,
        on_wire: 8.0,
        ..Window::default()
    }
}

fn lossy(end_ms: u64) -> Window {
    Window {
        timeouts: 1,
        ..plain(end_ms)
    }
}

/// One connection that carries all it can, and one CPU that does it.
fn full(end_ms: u64, connections: u64, rate: f64) -> Window {
    Window {
        connections,
        read_bytes_per_s: rate,
        hottest_cpu: Some(0.95),
        ..plain(end_ms)
    }
}

fn after(windows: impl IntoIterator<Item = Window>) -> History {
    let mut history = History::default();
    windows.into_iter().for_each(|window| history.add(&window, &facts()));
    history
}

fn rule(history: &History, now_ms: u64) -> Option<Rule> {
    history.verdict(now_ms, &facts()).map(|verdict| verdict.rule)
}

fn at(n: u64) -> u64 {
    START + 15 * SECOND * n
}

#[test]
fn six_of_the_last_ten_busy_windows_agree() {
    for (bad, of, expected) in [
        (6, 10, true),
        (5, 10, false),
        (9, 9, false),
        (6, 12, false),
        (8, 12, true),
    ] {
        // The bad ones first: with twelve, two of them are forgotten.
        let windows = (0..of).map(|n| if n < bad { lossy(at(n)) } else { plain(at(n)) });
        let found = rule(&after(windows), at(of));
        // 8 of 12 leaves 6 of 10; 6 of 12 leaves 4, but six of ten agreed on the way.
        let agreed_on_the_way = bad >= 6 && of >= 10;
        assert_eq!(found.is_some(), expected || agreed_on_the_way, "{bad} of {of}");
        assert!(found.is_none_or(|rule| rule == Rule::LossyPath));
    }
    // Idle windows do not count.
    let idle = |n| Window {
        on_wire: 0.1,
        timeouts: 1,
        ..plain(at(n))
    };
    assert_eq!(rule(&after((0..50).map(idle)), at(50)), None);
}

/// Each rule is counted by itself: one that holds now and then does not hide one that always does.
#[test]
fn a_rule_that_holds_now_and_then_hides_no_other() {
    let windows = (0..10).map(|n| Window {
        timeouts: u64::from(n % 2 == 0),
        ..full(at(n), 1, 1.9e9)
    });
    let history = after(windows);
    assert_eq!(rule(&history, at(10)), Some(Rule::Transport));
    // The loss costs confidence: 0.4, and 0.2 for the CPU, 0.1 for the link, less 0.2.
    let verdict = history.verdict(at(10), &facts()).unwrap();
    assert!((verdict.confidence - 0.5).abs() < 1e-9, "{verdict:?}");
}

#[test]
fn what_was_said_stays_for_24_busy_hours() {
    let mut history = after((0..10).map(|n| lossy(at(n))));
    assert_eq!(rule(&history, at(10)), Some(Rule::LossyPath));
    let hour = |n: u64| START + n * HOUR;
    // The first plain windows of the same hour leave fewer and fewer of the others.
    (10..20).for_each(|n| history.add(&plain(at(n)), &facts()));
    for n in 1..=24 {
        assert!(rule(&history, hour(n)).is_some(), "busy hour {n}");
        // Nights are no busy hours.
        history.add(
            &Window {
                on_wire: 0.0,
                ..plain(hour(n))
            },
            &facts(),
        );
        history.add(&plain(hour(n) + 1), &facts());
    }
    assert_eq!(rule(&history, hour(24) + 2), None);
}

#[test]
fn another_number_of_connections_clears_what_was_said() {
    let mut history = after((0..10).map(|n| full(at(n), 1, 1.9e9)));
    assert_eq!(rule(&history, at(10)), Some(Rule::Transport));
    history.add(&full(at(11), 4, 4e9), &facts());
    assert_eq!(rule(&history, at(11)), None);
}

/// With more connections each carries less, and that is not all it can: without a memory of the one, the next step would always look
/// needed.
#[test]
fn it_stops_at_the_knee() {
    let mut history = after((0..20).map(|n| full(at(n), 1, 1.9e9)));
    (20..60).for_each(|n| history.add(&full(at(n), 4, 3e9), &facts()));
    assert_eq!(history.baseline(at(60)).connection_bytes_per_s, Some(1.9e9));
    assert_eq!(rule(&history, at(60)), None);
}

/// A reader that waits for each reply never has two requests on the wire.
#[test]
fn a_shallow_reader_is_never_busy() {
    let facts = Facts {
        read_ahead_bytes: 128 << 10,
        ..facts()
    };
    let mut history = History::default();
    for n in 0..10 {
        assert_eq!(history.verdict(at(n), &facts), None);
        let window = Window {
            on_wire: 0.9,
            read_bytes_per_s: 1e8,
            mean_read_bytes: Some(131_072.0),
            ..plain(at(n))
        };
        history.add(&window, &facts);
    }
    assert_eq!(history.busy(), 0);
    assert_eq!(history.verdict(at(10), &facts).unwrap().rule, Rule::ShallowReader);
}

#[test]
fn seven_quiet_busy_days_say_that_there_are_too_many() {
    let day = |n: u64| Window {
        connections: 8,
        on_wire: 3.0,
        read_bytes_per_s: 1e8,
        ..plain(START + n * DAY)
    };
    let busy = after((0..20).map(|n| full(at(n), 1, 1.9e9)));
    let with = |days: u64| {
        let mut history = busy.clone();
        (1..=days).for_each(|n| history.add(&day(n), &facts()));
        history
    };
    assert!(!with(6).has_too_many());
    assert!(with(7).has_too_many());
    for needed in [
        Window { on_wire: 4.0, ..day(8) },
        Window {
            read_bytes_per_s: 0.5 * 1.9e9,
            ..day(8)
        },
    ] {
        let mut history = with(7);
        history.add(&needed, &facts());
        assert!(!history.has_too_many(), "{needed:?}");
    }
}

#[test]
fn a_rate_of_three_hours_and_a_known_link_are_worth_more() {
    let confidence = |windows: Vec<Window>| {
        let now = windows.last().unwrap().end_ms;
        after(windows).verdict(now, &facts()).unwrap().confidence
    };
    let plain = (0..10).map(|n| full(at(n), 1, 1.9e9)).collect();
    assert!((confidence(plain) - 0.7).abs() < 1e-9);
    let hours = (0..10).map(|n| full(START + n * HOUR / 2, 1, 1.9e9)).collect();
    assert!((confidence(hours) - 0.9).abs() < 1e-9);
    let many = (0..60).map(|n| full(at(20 * n), 1, 1.9e9)).collect();
    assert!((confidence(many) - 0.8).abs() < 1e-9);
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..1.0, 0.0..100.0, 0.0..2e10]
}

fn window() -> impl Strategy<Value = Window> {
    let some = || option::of(number());
    let counts = (1u64..17, number(), number(), number(), number());
    let means = (some(), some(), some(), some(), some(), some(), some());
    let signs = (some(), some(), number(), 0u64..3, 0u64..3, some(), some());
    (counts, means, signs).prop_map(|(counts, means, signs)| Window {
        end_ms: START,
        length_ms: 15 * SECOND,
        connections: counts.0,
        read_bytes_per_s: counts.1,
        write_bytes_per_s: counts.2,
        on_wire: counts.3,
        queued: counts.4,
        in_flight: means.0,
        sending: means.1,
        backlog: means.2,
        share_max: means.3,
        data_rtt_s: means.4,
        small_rtt_s: means.5,
        mean_read_bytes: means.6,
        retransmitted: signs.0,
        out_of_order: signs.1,
        sent_again: signs.2,
        timeouts: signs.3,
        softnet_drops: signs.4,
        nic_drops: Some(signs.4),
        window_limited: signs.5,
        hottest_cpu: signs.6,
    })
}

fn any_facts() -> impl Strategy<Value = Facts> {
    let bond = (1u64..5, 1u64..100).prop_map(|(slaves, gbit)| Bond {
        slaves,
        slave_bits_per_s: gbit * 1_000_000_000,
        is_by_port: true,
    });
    (
        option::of(1u64..400),
        option::of(bond),
        1u64..257,
        option::of((2u64..7, 0u64..20)),
        option::of(0u64..360),
        1u64..2000,
    )
        .prop_map(|(gbit, bond, cpus, kernel, ports_left, slots)| Facts {
            link_bits_per_s: gbit.map(|gbit| gbit * 1_000_000_000),
            bond,
            cpus,
            kernel,
            ports_left,
            session_slots: slots,
            ..facts()
        })
}

fn group(proto: &str, flavors: &[&str], version: &str, connections: u64) -> Group {
    let place = |flavor: &&str| Place {
        mount_point: "/data".to_owned(),
        source: "nas1:/data".to_owned(),
        flavor: (*flavor).to_owned(),
        ..Place::default()
    };
    Group {
        client: "192.0.2.10,vers=4.2,proto=tcp".to_owned(),
        server: "nas1".to_owned(),
        version: version.to_owned(),
        proto: proto.to_owned(),
        connections,
        places: flavors.iter().map(place).collect(),
    }
}

fn raised(group: &Group, window: &Window, facts: &Facts, baseline: &Baseline) -> Vec<Advice> {
    let advice = Rule::ALL.into_iter().filter_map(|rule| {
        let verdict = Verdict {
            rule,
            windows: 6,
            of: 10,
            busy_hours_ago: 0,
            confidence: 0.5,
            baseline: *baseline,
            window: Window {
                connections: group.connections,
                ..window.clone()
            },
        };
        from_verdict(group, &verdict, facts)
    });
    advice.filter(|advice| advice.want.is_some()).collect()
}

proptest! {
    #[test]
    fn nothing_is_ever_suggested_that_cannot_work_or_is_known_to_stall(
        window in window(),
        facts in any_facts(),
        c1 in option::of(number()),
        connections in 1u64..17,
        version in select(&["3", "4.0", "4.1", "4.2"][..]),
    ) {
        let baseline = Baseline { connection_bytes_per_s: c1, small_rtt_s: c1, data_rtt_s: c1 };
        for (proto, flavors) in [
            ("udp", &["sys"][..]),
            ("udp6", &["sys"]),
            ("local", &["sys"]),
            ("tcp", &["krb5p"]),
            ("tcp", &["sys", "krb5p"]),
            ("rdma", &["krb5i"]),
        ] {
            let group = group(proto, flavors, version, connections);
            prop_assert_eq!(raised(&group, &window, &facts, &baseline), []);
        }
        let group = group("tcp", &["sys", "krb5"], version, connections);
        for advice in raised(&group, &window, &facts, &baseline) {
            let want = advice.want.unwrap();
            prop_assert!(want > connections && want <= 16);
            prop_assert!(facts.kernel.is_none_or(|kernel| kernel >= (5, 3) || kernel == (4, 18)));
            prop_assert!(facts.ports_left.is_none_or(|left| want - connections <= left));
            prop_assert!(advice.beware.iter().any(|text| text.contains("sec=krb5")));
            prop_assert!(advice.undo.is_some() && !advice.why.is_empty());
        }
    }

    /// Any windows: what is remembered stays small, and is the same after it was written and read.
    #[test]
    fn memory_is_bounded_and_outlives_a_restart(windows in vec(window(), 1..40), times in 1usize..40) {
        let client = "192.0.2.10,vers=4.2,proto=tcp";
        let mut history = History::default();
        let mut now = START;
        for window in windows.iter().cycle().take(windows.len() * times) {
            now += 15 * SECOND;
            history.add(&Window { end_ms: now, ..window.clone() }, &facts());
        }
        let watch = Watch::new(BTreeMap::from([(client.to_owned(), history.clone())]));
        let text = Histories::of(&watch).to_json();
        prop_assert!(text.len() < 128 << 10, "{}", text.len());
        let again: Histories = serde_json::from_slice(&text).unwrap();
        let again = again.clients().remove(client).unwrap();
        prop_assert_eq!(again.verdict(now, &facts()).map(|v| v.rule), history.verdict(now, &facts()).map(|v| v.rule));
        // The text has a digit less now and then.
        let rates = |history: &History| {
            let baseline = history.baseline(now);
            [baseline.connection_bytes_per_s, baseline.small_rtt_s, baseline.data_rtt_s]
        };
        for (one, other) in rates(&again).into_iter().zip(rates(&history)) {
            prop_assert!(about(one.unwrap_or(-1.0), other.unwrap_or(-1.0)));
        }
        prop_assert_eq!(again.bounded().busy(), history.busy());
    }

    /// The order of rules is the order of what they say.
    #[test]
    fn rules_hold_in_their_order(window in window(), facts in any_facts(), c1 in option::of(number())) {
        let baseline = Baseline { connection_bytes_per_s: c1, small_rtt_s: c1, data_rtt_s: c1 };
        let held = holding(&window, &facts, &baseline);
        prop_assert!(held.is_sorted());
        // A full link has no room for more.
        if held.contains(&Rule::LinkFull) {
            prop_assert!(!held.contains(&Rule::QueueBeforeWire));
        }
    }
}

fn transport(n: u64) -> Transport {
    Transport {
        proto: Proto::Tcp,
        source_port: None,
        binds: 0,
        connects: Some(1),
        connect_s: Some(0),
        idle_s: Some(0),
        sends: n,
        receives: n,
        bad_xids: 0,
        in_flight_sum: 7 * n,
        backlog_sum: n / 3,
        slots_max: Some(64),
        sending_sum: Some(2 * n),
        pending_sum: Some(5 * n),
    }
}

fn socket(port: u16, n: u64) -> Socket {
    Socket {
        local_port: port,
        remote: [192, 0, 2, 10].into(),
        remote_port: 2049,
        rtt_us: Some(100),
        min_rtt_us: Some(90),
        path_mtu_bytes: Some(1500),
        bytes_received: Some(1000 * n),
        segments_in: Some(9 * n),
        busy_us: Some(50 * n),
        window_limited_us: Some(5 * n),
        buffer_limited_us: Some(n),
        bytes_sent: Some(400 * n),
        bytes_retransmitted: Some(n),
        retransmits: Some(2 * n),
        needless_retransmits: Some(n),
        out_of_order: Some(n / 2),
    }
}

/// All counters grow as `n` does.
fn moment(at_ms: u64, n: u64) -> Moment {
    let calls = |factor: u64| Calls {
        ops: factor * n,
        queue_ms: 3 * factor * n,
        rtt_ms: 2 * factor * n,
    };
    Moment {
        at_ms,
        unix_ms: START + at_ms,
        activity: Activity {
            age_s: at_ms / SECOND,
            read: calls(10),
            write: calls(5),
            commit: calls(1),
            small: calls(20),
            all: calls(40),
            retransmissions: n / 10,
            timeouts: 0,
            read_wire_bytes: 100_000 * n,
            write_wire_bytes: 50_000 * n,
            server_read_bytes: 90_000 * n,
            server_written_bytes: 45_000 * n,
            cached_read_bytes: 80_000 * n,
            direct_read_bytes: 10_000 * n,
            connections: 2,
        },
        transports: vec![transport(30 * n), transport(10 * n)],
        sockets: vec![socket(700, n), socket(701, 3 * n)],
        host: Host {
            softnet_drops: n,
            cpus: vec![(10 * n, 20 * n), (n, 20 * n)],
            tcp: Some(Tcp {
                received: 9 * n,
                sent: 8 * n,
                retransmitted: n,
                needless: n / 2,
                out_of_order: n,
            }),
        },
        nic_drops: Some(n),
    }
}

fn about(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

proptest! {
    /// Twice as long and twice as much is the same.
    #[test]
    fn rates_are_by_time(n in 40u64..1 << 20, seconds in 5u64..500, times in 2u64..3) {
        let window = Window::between(&moment(0, 0), &moment(seconds * SECOND, n)).unwrap();
        let longer = Window::between(&moment(0, 0), &moment(times * seconds * SECOND, times * n)).unwrap();
        let rates = |w: &Window| [w.read_bytes_per_s, w.write_bytes_per_s, w.on_wire, w.queued, w.per_connection()];
        for (one, other) in rates(&window).into_iter().zip(rates(&longer)) {
            prop_assert!(about(one, other), "{} {}", one, other);
        }
        let means = |w: &Window| [w.in_flight, w.sending, w.share_max, w.data_rtt_s, w.small_rtt_s, w.retransmitted, w.window_limited, w.hottest_cpu];
        for (one, other) in means(&window).into_iter().zip(means(&longer)) {
            prop_assert!(about(one.unwrap(), other.unwrap()), "{:?} {:?}", one, other);
        }
        prop_assert!(window.is_sane());
    }

    /// A counter that fell belongs to another mount or connection, and a long time is a machine that slept.
    #[test]
    fn a_fallen_counter_or_a_sleep_is_no_window(n in 1u64..1000, which in 0usize..9, slept in 21u64..10_000) {
        let before = moment(0, 1000);
        let now = moment(15 * SECOND, 1000 + n);
        prop_assert!(Window::between(&before, &now).is_some());
        let mut fallen = now.clone();
        let a = &mut fallen.activity;
        let counter = [
            &mut a.read.ops, &mut a.write.rtt_ms, &mut a.commit.queue_ms, &mut a.small.ops, &mut a.all.rtt_ms,
            &mut a.read_wire_bytes, &mut a.server_written_bytes, &mut a.retransmissions, &mut fallen.transports[1].sends,
        ].into_iter().nth(which).unwrap();
        *counter = 0;
        prop_assert_eq!(Window::between(&before, &fallen), None);
        let woken = Moment { at_ms: slept * 60 * SECOND, ..now.clone() };
        prop_assert_eq!(Window::between(&before, &woken), None);
        // The wall clock may jump as it likes.
        let jumped = Moment { unix_ms: 0, ..now.clone() };
        prop_assert_eq!(Window::between(&before, &jumped).unwrap().length_ms, 15 * SECOND);
    }

    /// Sockets and transports come in any order.
    #[test]
    fn order_is_nothing(n in 1u64..1000) {
        let (before, now) = (moment(0, 0), moment(15 * SECOND, n));
        let mut turned = now.clone();
        turned.sockets.reverse();
        let window = Window::between(&before, &now).unwrap();
        let other = Window::between(&before, &turned).unwrap();
        prop_assert_eq!(&window, &other);
        let (a, b) = (now.activity, before.activity);
        prop_assert_eq!(a.sum(&b), b.sum(&a));
        // New connections, as after a reconnect, are not compared with old ones.
        turned.sockets.iter_mut().for_each(|socket| socket.local_port += 10);
        let fresh = Window::between(&before, &turned).unwrap();
        prop_assert_eq!(fresh.window_limited, None);
    }
}
