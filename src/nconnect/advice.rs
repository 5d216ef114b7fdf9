//! What an admin is told: a stable id, the numbers behind it, what to do, what to beware of, how to undo it.

use crate::float::float;
use crate::nconnect::asked::{connections, Group, MOST};
use crate::nconnect::live::history::{Verdict, IDLE_DAYS};
use crate::nconnect::live::rules::{connections_to_try, has_session, link_bytes_per_s, next_step, step_within, Rule};
use crate::nconnect::live::window::Facts;

/// One piece of advice. All text is escaped already.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    pub id: String,
    pub client: String,
    pub server: String,
    /// "4.2", and "tcp".
    pub version: String,
    pub proto: String,
    /// Stable, for programs: a rule, or `too-many`, `asked`, `kerberos`, `lro-off`, `mtu`, `path-mtu`, `loss-elsewhere`.
    pub kind: &'static str,
    /// One line.
    pub title: String,
    pub now: u64,
    /// Connections to try. None: this is not about their number.
    pub want: Option<u64>,
    /// 0 to 1.
    pub confidence: f64,
    pub why: Vec<String>,
    pub todo: Vec<(String, String)>,
    pub beware: Vec<String>,
    pub undo: Option<String>,
}

/// FNV-1a (Fowler, Noll, Vo): the id must be the same in every release.
pub fn id(parts: &[&str]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("nc-{:06x}", (hash ^ (hash >> 24) ^ (hash >> 48)) & 0xff_ffff)
}

impl Advice {
    fn new(group: &Group, kind: &'static str, want: Option<u64>, title: String) -> Advice {
        let number = want.map(|want| want.to_string()).unwrap_or_default();
        Advice {
            id: id(&[&group.client, kind, &number]),
            client: group.client.clone(),
            server: group.server.clone(),
            version: group.version.clone(),
            proto: group.proto.clone(),
            kind,
            title,
            now: group.connections,
            want,
            confidence: 0.9,
            why: Vec::new(),
            todo: Vec::new(),
            beware: Vec::new(),
            undo: None,
        }
    }
}

/// What the windows of a client say, if there is something to do about it.
pub fn from_verdict(group: &Group, verdict: &Verdict, facts: &Facts) -> Option<Advice> {
    let rule = verdict.rule;
    let mut advice = if rule.raises() {
        raise(group, verdict, facts)?
    } else {
        let title = match rule {
            Rule::LossyPath => "the way to the server loses packets: fix the network; more connections would hide it",
            Rule::LinkFull => "the link is full: more connections cannot help",
            Rule::Slots if has_session(facts) => {
                "all session slots are in use: more of them help, not more connections"
            }
            Rule::Slots => "all slots of the connection are in use: raise sunrpc.tcp_max_slot_table_entries",
            Rule::ShallowReader => "reads are small and one at a time: more readahead helps, not more connections",
            Rule::Server => "the server is slow, not the way to it: more connections will not help",
            Rule::SocketWindow => "writes wait for the socket's window: larger buffers first, more connections second",
            Rule::Unbalanced => "one CPU does the work of all connections: spread the queues of the interface",
            Rule::BondSlaveFull | Rule::Transport | Rule::QueueBeforeWire => return None,
        };
        let mut advice = Advice::new(group, rule.name(), None, title.to_owned());
        advice.todo = todo(rule, facts);
        advice
    };
    advice.confidence = verdict.confidence;
    advice.why = why(verdict, facts);
    Some(advice)
}

fn todo(rule: Rule, facts: &Facts) -> Vec<(String, String)> {
    let one = |place: &str, text: String| vec![(place.to_owned(), text)];
    match rule {
        Rule::Slots if has_session(facts) => {
            let slots = facts.session_slots.saturating_mul(2).min(1024);
            one("a file in modprobe.d", format!("options nfs max_session_slots={slots}"))
        }
        Rule::Slots => one(
            "a file in sysctl.d",
            "sunrpc.tcp_max_slot_table_entries = 128".to_owned(),
        ),
        Rule::ShallowReader => one("nfs.conf", "[nfsrahead]\nnfs = auto\nnfs4 = auto".to_owned()),
        Rule::SocketWindow => one(
            "a file in sysctl.d",
            "net.ipv4.tcp_wmem = 4096 65536 16777216".to_owned(),
        ),
        _ => Vec::new(),
    }
}

/// Reserved ports of a client (net/sunrpc/xprtsock.c: `xprt_min_resvport` 665 to `xprt_max_resvport` 1023).
pub const RESERVED_PORTS: u64 = 359;
/// Fewer left than this are worth a word.
const FEW_PORTS: u64 = 60;
/// Azure Files: "no gains beyond" (Microsoft, NFS performance of Azure Files).
const AZURE_FILES: (&str, u64) = (".file.core.windows.net", 4);

/// The most connections that may be suggested. None: more must not be suggested at all.
fn most(group: &Group, facts: &Facts) -> Option<u64> {
    let is_stream = ["tcp", "tcp6", "rdma", "rdma6"].contains(&group.proto.as_str());
    let is_known = facts.kernel.is_none_or(|kernel| kernel >= (5, 3) || kernel == RHEL_8);
    // Late requests fall out of the window of a Kerberos context and are sent again: with integrity and privacy mounts stall.
    if !is_stream || !is_known || group.kerberos().is_some_and(|kerberos| kerberos.is_strong) {
        return None;
    }
    let of_ports = facts
        .ports_left
        .map_or(MOST, |left| group.connections.saturating_add(left));
    let of_vendor = if group.server.ends_with(AZURE_FILES.0) {
        AZURE_FILES.1
    } else {
        MOST
    };
    Some(of_ports.min(of_vendor).min(MOST))
}

/// Its kernel has the option since 8.3, and the same number before.
const RHEL_8: (u64, u64) = (4, 18);

/// None: it must not be suggested.
fn raise(group: &Group, verdict: &Verdict, facts: &Facts) -> Option<Advice> {
    let most = most(group, facts)?;
    let now = group.connections;
    let want = match (verdict.rule, facts.bond) {
        (Rule::BondSlaveFull, Some(bond)) => Some(bond.slaves.saturating_mul(2).clamp(2, MOST)),
        // Not known what one connection carries: one step, and then a measurement.
        (Rule::QueueBeforeWire, _) => next_step(now),
        _ => connections_to_try(&verdict.window, facts, &verdict.baseline),
    };
    let want = want.filter(|want| *want > now)?;
    let want = if want <= most { want } else { step_within(most, now)? };
    let title = format!("nconnect {} -> {want}", group.connections);
    let mut advice = Advice::new(group, verdict.rule.name(), Some(want), title);
    advice.todo = snippets(group, want);
    let places: Vec<&str> = group.places.iter().map(|place| place.mount_point.as_str()).collect();
    let all = match places.len() {
        1 => "the mount".to_owned(),
        n => format!("ALL {n} mounts"),
    };
    let decides = match group.places.first() {
        Some(first) if group.places.len() > 1 => {
            format!("{}, mounted first, sets the number for all", first.mount_point)
        }
        _ => "the first mount sets the number for all".to_owned(),
    };
    advice.todo.push((
        "then".to_owned(),
        format!(
            "umount {all} of {} ({}); {decides}, and remount does not change it",
            group.server,
            places.join(" ")
        ),
    ));
    advice.beware = beware(group, facts, want);
    advice.undo = Some("drop the option, umount all, mount".to_owned());
    Some(advice)
}

fn beware(group: &Group, facts: &Facts, want: u64) -> Vec<String> {
    let mut beware = vec![
        "needs Linux 5.3; TCP, TLS or RDMA; stop at the knee: small requests of many clients can get slower".to_owned(),
    ];
    if facts.kernel == Some(RHEL_8) {
        beware.push("Linux 4.18 of RHEL knows the option since 8.3; with an older one the mount fails".to_owned());
    }
    if let Some(left) = facts.ports_left {
        let left_then = left.saturating_sub(want.saturating_sub(group.connections));
        let few = if left_then < FEW_PORTS {
            ": noresvport takes none, and wants `insecure` exports"
        } else {
            ""
        };
        beware.push(format!(
            "{want} reserved ports of {RESERVED_PORTS}; {left_then} are left then{few}"
        ));
    }
    if has_session(facts) {
        beware.push(format!(
            "{} session slots (nfs.max_session_slots) are for all connections together",
            facts.session_slots
        ));
        if is_old_freebsd(&facts.software) {
            beware.push(
                "FreeBSD servers before 12.3 and 13.1 break with several connections on NFSv4.1 and later".to_owned(),
            );
        }
    }
    if group.version == "4.0" {
        beware.push("vendors (ONTAP) advise against it with NFSv4.0".to_owned());
    }
    let names = group.servers();
    if names.len() > 1 {
        beware.push(format!(
            "{} are one server to the kernel: the number holds for all of them",
            names.join(" and ")
        ));
    }
    if let Some(kerberos) = group.kerberos() {
        beware.push(format!(
            "sec={}: requests out of order fall out of the window of a context and are sent again; NetApp and Google advise against it",
            kerberos.flavor
        ));
    }
    beware
}

/// By what it calls itself: "FreeBSD 13.0-RELEASE ...".
fn is_old_freebsd(software: &str) -> bool {
    let version = software.split_once("FreeBSD ").map(|(_, rest)| rest);
    let mut numbers = version.unwrap_or_default().split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u64>().ok();
    match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) < (12, 3) || (major, minor) == (13, 0),
        _ => false,
    }
}

/// Where the option goes, ready to paste.
pub fn snippets(group: &Group, want: u64) -> Vec<(String, String)> {
    let (source, at) = group.places.first().map_or(("server:/export", "/mnt"), |place| {
        (place.source.as_str(), place.mount_point.as_str())
    });
    let kind = if group.version.starts_with('4') { "nfs4" } else { "nfs" };
    let name = at.rsplit('/').find(|part| !part.is_empty()).unwrap_or("data");
    [
        (
            "fstab",
            format!("{source} {at} {kind} <your options>,nconnect={want} 0 0"),
        ),
        ("mount", format!("Options=<your options>,nconnect={want}")),
        (
            "autofs",
            format!("{name} -fstype={kind},<your options>,nconnect={want} {source}"),
        ),
        ("nfsmount", format!("[ Server \"{}\" ]\nnconnect={want}", group.server)),
    ]
    .map(|(place, text)| (place.to_owned(), text))
    .into()
}

fn why(verdict: &Verdict, facts: &Facts) -> Vec<String> {
    let window = &verdict.window;
    let agree = match verdict.busy_hours_ago {
        0 => format!("{} of the last {} busy intervals agree", verdict.windows, verdict.of),
        hours => format!(
            "{} of {} busy intervals agreed, {hours} busy hours ago",
            verdict.windows, verdict.of
        ),
    };
    let mut why = vec![agree];
    let carried = match link_bytes_per_s(facts) {
        Some(link) => format!(
            "{} carried {}, {:.0} % of the link of {}",
            connections(window.connections),
            rate(window.bytes_per_s()),
            100.0 * window.bytes_per_s() / link,
            rate(link)
        ),
        None => format!(
            "{} carried {}",
            connections(window.connections),
            rate(window.bytes_per_s())
        ),
    };
    why.push(carried);
    why.push(format!(
        "{:.0} requests on the wire, {:.0} waiting before it, on average",
        window.on_wire, window.queued
    ));
    if let (Some(now), Some(idle)) = (window.small_rtt_s, verdict.baseline.small_rtt_s) {
        why.push(format!(
            "small operations wait {:.1} times their idle time",
            now / idle.max(1e-6)
        ));
    }
    if let (Some(now), Some(low)) = (window.data_rtt_s, verdict.baseline.data_rtt_s) {
        why.push(format!("READs and WRITEs wait {:.1} times theirs", now / low.max(1e-6)));
    }
    if let Some(sending) = window.sending.filter(|sending| *sending >= 0.5) {
        why.push(format!(
            "{sending:.1} requests wait for another one to be written to the socket"
        ));
    }
    if let Some(share) = window.hottest_cpu.filter(|share| *share >= 0.8) {
        why.push(format!("one CPU is {:.0} % busy in the kernel", 100.0 * share));
    }
    let shares = [
        (window.retransmitted, 0.005, "of the bytes were sent again by TCP"),
        (window.out_of_order, 0.01, "of the packets came out of order"),
        (Some(window.sent_again), 0.01, "of the requests were sent again"),
        (
            window.window_limited,
            0.3,
            "of the sending time the socket's window was full",
        ),
    ];
    for (share, limit, text) in shares {
        if let Some(share) = share.filter(|share| *share > limit) {
            why.push(format!("{:.2} % {text}", 100.0 * share));
        }
    }
    if window.timeouts > 0 {
        why.push(format!("{} requests timed out", window.timeouts));
    }
    if window.softnet_drops > 0 {
        why.push(format!(
            "{} packets were dropped because no CPU had room",
            window.softnet_drops
        ));
    }
    why
}

fn rate(bytes_per_s: f64) -> String {
    match bytes_per_s >= 1e9 {
        true => format!("{:.2} GB/s", bytes_per_s / 1e9),
        false => format!("{:.1} MB/s", bytes_per_s / 1e6),
    }
}

/// Seven busy days with connections that nobody needed.
pub fn too_many(group: &Group) -> Advice {
    let want = (group.connections / 2).max(1);
    let title = format!("nconnect {} -> {want}", group.connections);
    let mut advice = Advice::new(group, "too-many", Some(want), title);
    advice.why = vec![format!(
        "on {IDLE_DAYS} busy days half of the connections would have done"
    )];
    advice.todo = snippets(group, want);
    advice.beware = vec!["each connection takes a reserved port and memory of the server".to_owned()];
    advice
}

/// What the mounts of a client ask for and do not get; Kerberos over several connections.
pub fn of_group(group: &Group) -> Vec<Advice> {
    let mut found = Vec::new();
    if let Some(text) = group.tell() {
        let most = group.places.iter().filter_map(|place| place.asked).max().unwrap_or(1);
        let mut advice = Advice::new(group, "asked", None, text);
        let places: Vec<&str> = group.places.iter().map(|place| place.mount_point.as_str()).collect();
        advice.todo = vec![
            (
                "fstab".to_owned(),
                format!("the same nconnect={most} on the lines of {}", places.join(" ")),
            ),
            (
                "then".to_owned(),
                format!(
                    "umount all of them ({}) and mount again; remount is not enough",
                    places.join(" ")
                ),
            ),
        ];
        found.push(advice);
    }
    if let Some(kerberos) = group.kerberos().filter(|_| group.connections > 1) {
        let strength = if kerberos.is_strong {
            "stalls are known"
        } else {
            "vendors advise against it"
        };
        let title = format!(
            "nconnect {} -> 1: sec={} over several connections, {strength}",
            group.connections, kerberos.flavor
        );
        let mut advice = Advice::new(group, "kerberos", Some(1), title);
        advice.confidence = if kerberos.is_strong { 0.8 } else { 0.5 };
        advice.why = vec![
            "requests out of order fall out of the window of 128 of a context, are dropped and sent again".to_owned(),
        ];
        advice.todo = snippets(group, 1);
        found.push(advice);
    }
    found
}

/// What an interface lacks, as the report of 2009 found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub mtu_bytes: Option<u64>,
    pub speed_bits_per_s: Option<u64>,
    /// None: not known.
    pub gro: Option<bool>,
    pub lro: Option<bool>,
    pub is_bridged: bool,
    pub forwards: bool,
    /// Of the way to the server, by its connections.
    pub path_mtu_bytes: Option<u64>,
}

/// The network's own findings. Their id is the interface's: several servers may be behind one.
pub fn of_interface(group: &Group, interface: &Interface) -> Vec<Advice> {
    /// From here on packets of 1500 bytes cost a CPU.
    const FAST_BITS_PER_S: u64 = 10_000_000_000;
    /// Ethernet's own.
    const PLAIN_MTU: u64 = 1500;
    let name = &interface.name;
    let new = |kind, title, why: &str, todo: String| {
        let mut advice = Advice::new(group, kind, None, title);
        advice.id = id(&[kind, name]);
        advice.why = vec![why.to_owned()];
        advice.todo = vec![("shell".to_owned(), todo)];
        advice
    };
    let mut found = Vec::new();
    if interface.gro == Some(false) && interface.lro != Some(true) {
        let cause = match (interface.is_bridged, interface.forwards) {
            (true, _) => "; it is a port of a bridge, which switches LRO off",
            (false, true) => "; it forwards packets (ip_forward), which switches LRO off",
            _ => "",
        };
        found.push(new(
            "lro-off",
            format!("{name} merges no received packets: neither GRO nor LRO is on{cause}"),
            "each packet is handled by itself; two 10G ports went from 12 to 18 Gbit/s by merging in 2009",
            format!("ethtool -K {name} gro on"),
        ));
    }
    let mtu = interface.mtu_bytes.unwrap_or_default();
    let is_fast = interface.speed_bits_per_s.is_some_and(|speed| speed >= FAST_BITS_PER_S);
    if is_fast && (1..=PLAIN_MTU).contains(&mtu) {
        let mut advice = new(
            "mtu",
            format!(
                "{name} has an MTU of {mtu} at {:.0} Gbit/s",
                float(interface.speed_bits_per_s.unwrap_or_default()) / 1e9
            ),
            "large packets steadied 16.5 of 20 Gbit/s in 2009; only where the server and every switch between have them",
            format!(
                "ip link set dev {name} mtu 9000 && ping -M do -c 3 -s 8972 {}  # no reply: back to {mtu}",
                group.server
            ),
        );
        advice.confidence = 0.4;
        found.push(advice);
    }
    if let Some(path) = interface
        .path_mtu_bytes
        .filter(|path| mtu > PLAIN_MTU && *path <= PLAIN_MTU)
    {
        found.push(new(
            "path-mtu",
            format!("{name} has an MTU of {mtu}, the way to {} carries {path}", group.server),
            "the server, or a switch or router between, has no large packets: each costs what a small one does",
            format!("ping -M do -c 3 -s {} {}", mtu.saturating_sub(28), group.server),
        ));
    }
    found
}

/// Packets are lost, and not by this host: the report of 2009 found retransmissions on the server, and no error on any interface.
pub fn loss_elsewhere(group: &Group, verdict: &Verdict, interface: &Interface) -> Option<Advice> {
    let window = &verdict.window;
    let is_ours = window.nic_drops != Some(0) || window.softnet_drops > 0;
    let is_lost = window.has_tcp_loss();
    if verdict.rule != Rule::LossyPath || is_ours || !is_lost {
        return None;
    }
    let title = format!("packets are lost, but {} dropped none", interface.name);
    let mut advice = Advice::new(group, "loss-elsewhere", None, title);
    advice.confidence = verdict.confidence;
    advice.why = vec!["no packet was missed, dropped or without room in the interface's counters meanwhile".to_owned()];
    advice.todo = vec![(
        "look at".to_owned(),
        format!(
            "the ports of the switches, and on {}: nstat -az TcpRetransSegs; ethtool -S",
            group.server
        ),
    )];
    Some(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nconnect::asked::Place;
    use crate::nconnect::live::rules::Baseline;
    use crate::nconnect::live::window::Window;

    fn group(server: &str, version: &str, connections: u64, flavors: &[&str]) -> Group {
        let place = |(n, flavor): (usize, &&str)| Place {
            mount_point: format!("/m{n}"),
            source: format!("{server}:/m{n}"),
            flavor: (*flavor).to_owned(),
            ..Place::default()
        };
        Group {
            client: format!("{server},vers={version},proto=tcp"),
            server: server.to_owned(),
            version: version.to_owned(),
            proto: "tcp".to_owned(),
            connections,
            places: flavors.iter().enumerate().map(place).collect(),
        }
    }

    fn facts(group: &Group) -> Facts {
        Facts {
            version: group.version.clone(),
            proto: group.proto.clone(),
            link_bits_per_s: Some(100_000_000_000),
            session_slots: 64,
            cpus: 64,
            kernel: Some((6, 12)),
            ports_left: Some(300),
            ..Facts::default()
        }
    }

    fn verdict(rule: Rule, connections: u64) -> Verdict {
        Verdict {
            rule,
            windows: 8,
            of: 10,
            busy_hours_ago: 0,
            confidence: 0.8,
            baseline: Baseline {
                connection_bytes_per_s: Some(2e9),
                ..Baseline::default()
            },
            window: Window {
                connections,
                nic_drops: Some(0),
                ..Window::default()
            },
        }
    }

    fn want(group: &Group, facts: &Facts) -> Option<u64> {
        from_verdict(group, &verdict(Rule::Transport, group.connections), facts)?.want
    }

    #[test]
    fn what_forbids_more_connections() {
        let plain = group("nas1", "4.2", 1, &["sys"]);
        let of = |change: fn(&mut Facts)| {
            let mut facts = facts(&plain);
            change(&mut facts);
            want(&plain, &facts)
        };
        assert_eq!(of(|_| {}), Some(16));
        assert_eq!(of(|f| f.kernel = Some((5, 2))), None);
        assert_eq!(of(|f| f.kernel = Some((5, 3))), Some(16));
        assert_eq!(of(|f| f.kernel = Some((4, 18))), Some(16));
        assert_eq!(of(|f| f.ports_left = Some(14)), Some(12));
        assert_eq!(of(|f| f.ports_left = Some(15)), Some(16));
        assert_eq!(of(|f| f.ports_left = Some(0)), None);
        assert_eq!(of(|f| f.ports_left = None), Some(16));
        for (flavors, expected) in [
            (&["krb5p"][..], None),
            (&["krb5i"], None),
            (&["sys", "krb5i"], None),
            (&["krb5"], Some(16)),
        ] {
            let group = group("nas1", "4.2", 1, flavors);
            assert_eq!(want(&group, &facts(&group)), expected, "{flavors:?}");
        }
        for (proto, expected) in [("udp", None), ("udp6", None), ("rdma", Some(16)), ("tcp6", Some(16))] {
            let group = Group {
                proto: proto.to_owned(),
                ..plain.clone()
            };
            assert_eq!(want(&group, &facts(&group)), expected, "{proto}");
        }
        let azure = group("x.file.core.windows.net", "4.1", 1, &["sys"]);
        assert_eq!(want(&azure, &facts(&azure)), Some(4));
        let azure = group("x.file.core.windows.net", "4.1", 4, &["sys"]);
        assert_eq!(want(&azure, &facts(&azure)), None);
    }

    #[test]
    fn what_to_beware_of() {
        let said =
            |group: &Group, facts: &Facts, text: &str| beware(group, facts, 4).iter().any(|line| line.contains(text));
        let plain = group("nas1", "4.2", 1, &["sys"]);
        let mut facts = facts(&plain);
        assert!(
            !said(&plain, &facts, "noresvport") && !said(&plain, &facts, "FreeBSD") && !said(&plain, &facts, "RHEL")
        );
        facts.ports_left = Some(62);
        assert!(said(&plain, &facts, "noresvport"));
        facts.kernel = Some((4, 18));
        assert!(said(&plain, &facts, "RHEL"));
        for (software, is_old) in [
            ("FreeBSD 12.2-RELEASE", true),
            ("FreeBSD 12.3-RELEASE", false),
            ("FreeBSD 13.0-STABLE #0", true),
            ("FreeBSD 13.1-RELEASE", false),
            ("FreeBSD 99999999999999999999.1", false),
            ("Linux 5.10", false),
        ] {
            facts.software = software.to_owned();
            assert_eq!(said(&plain, &facts, "FreeBSD"), is_old, "{software}");
        }
        assert!(said(&group("nas1", "4.0", 1, &["sys"]), &facts, "ONTAP"));
        let mut two = group("nas1", "4.2", 1, &["sys", "sys"]);
        assert!(!said(&two, &facts, "one server"));
        two.places[1].source = "192.0.2.11:/b".to_owned();
        assert!(said(&two, &facts, "nas1 and 192.0.2.11 are one server"));
        let then = from_verdict(&two, &verdict(Rule::Transport, 1), &facts).unwrap().todo;
        let (_, then) = then.iter().find(|(place, _)| place == "then").unwrap();
        assert!(
            then.contains("umount ALL 2 mounts of nas1 (/m0 /m1); /m0, mounted first, sets the number for all"),
            "{then}"
        );
    }

    #[test]
    fn the_report_of_2009() {
        let group = group("nas1", "3", 1, &["sys"]);
        let plain = Interface {
            name: "eth0".to_owned(),
            mtu_bytes: Some(9000),
            speed_bits_per_s: Some(10_000_000_000),
            gro: Some(true),
            lro: Some(false),
            path_mtu_bytes: Some(9000),
            ..Interface::default()
        };
        let kinds = |change: fn(&mut Interface)| {
            let mut interface = plain.clone();
            change(&mut interface);
            let found = of_interface(&group, &interface);
            found.iter().map(|advice| advice.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(|_| {}), [""; 0]);
        assert_eq!(kinds(|i| i.gro = Some(false)), ["lro-off"]);
        assert_eq!(kinds(|i| i.gro = None), [""; 0]);
        assert_eq!(kinds(|i| (i.gro, i.lro) = (Some(false), Some(true))), [""; 0]);
        assert_eq!(kinds(|i| i.mtu_bytes = Some(1500)), ["mtu"]);
        assert_eq!(
            kinds(|i| (i.mtu_bytes, i.speed_bits_per_s) = (Some(1500), Some(1_000_000_000))),
            [""; 0]
        );
        assert_eq!(kinds(|i| i.path_mtu_bytes = Some(1500)), ["path-mtu"]);
        let bridged = Interface {
            gro: Some(false),
            is_bridged: true,
            ..plain.clone()
        };
        assert!(of_interface(&group, &bridged)[0].title.contains("port of a bridge"));

        let mut lossy = verdict(Rule::LossyPath, 1);
        assert_eq!(loss_elsewhere(&group, &lossy, &plain), None);
        lossy.window.retransmitted = Some(0.0051);
        assert!(loss_elsewhere(&group, &lossy, &plain).is_some());
        lossy.window.nic_drops = Some(1);
        assert_eq!(loss_elsewhere(&group, &lossy, &plain), None);
        lossy.window.nic_drops = None;
        assert_eq!(loss_elsewhere(&group, &lossy, &plain), None);
    }
}
