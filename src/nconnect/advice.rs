//! What an admin is told: a stable id, the numbers behind it, what to do, what to beware of, how to undo it.

use crate::float::float;
use crate::nconnect::asked::{connections, Group, MOST};
use crate::nconnect::live::history::{Verdict, IDLE_DAYS};
use crate::nconnect::live::rules::{connections_to_try, has_session, link_bytes_per_s, Rule};
use crate::nconnect::live::window::{Facts, Window};

/// One piece of advice. All text is escaped already.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    pub id: String,
    pub client: String,
    pub server: String,
    /// Stable, for programs: a rule, or `too-many`, `asked`, `kerberos`, `lro-off`, `mtu`.
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
pub fn from_verdict(group: &Group, verdict: &Verdict, window: &Window, facts: &Facts) -> Option<Advice> {
    let rule = verdict.rule;
    let mut advice = if rule.raises() {
        raise(group, verdict, window, facts)?
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
    advice.why = why(verdict, window, facts);
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

/// None: it must not be suggested.
fn raise(group: &Group, verdict: &Verdict, window: &Window, facts: &Facts) -> Option<Advice> {
    let is_stream = group.proto == "tcp" || group.proto == "tcp6" || group.proto == "rdma";
    let kerberos = group.kerberos();
    if !is_stream || kerberos.as_ref().is_some_and(|kerberos| kerberos.is_privacy) || group.connections >= MOST {
        return None;
    }
    let want = match (verdict.rule, facts.bond) {
        (Rule::BondSlaveFull, Some(bond)) => bond.slaves.saturating_mul(2).clamp(2, MOST),
        // Without history one step, and then a measurement.
        (Rule::QueueBeforeWire, _) if group.connections == 1 => 4,
        _ => connections_to_try(window, facts, &verdict.baseline),
    };
    if want <= group.connections {
        return None;
    }
    let title = format!("nconnect {} -> {want}", group.connections);
    let mut advice = Advice::new(group, verdict.rule.name(), Some(want), title);
    advice.todo = snippets(group, want);
    let places: Vec<&str> = group.places.iter().map(|place| place.mount_point.as_str()).collect();
    let all = match places.len() {
        1 => "the mount".to_owned(),
        n => format!("ALL {n} mounts"),
    };
    advice.todo.push((
        "then".to_owned(),
        format!(
            "umount {all} of {} ({}); the first mount sets the number for all, and remount does not change it",
            group.server,
            places.join(" ")
        ),
    ));
    advice.beware = vec![format!(
        "needs Linux 5.3; {want} reserved ports (of 359 on this host, unless noresvport); stop at the knee: small requests of many clients can get slower"
    )];
    if has_session(facts) {
        advice.beware.push(format!(
            "{} session slots (nfs.max_session_slots) are for all connections together",
            facts.session_slots
        ));
    }
    if group.version == "4.0" {
        advice
            .beware
            .push("vendors (ONTAP) advise against it with NFSv4.0".to_owned());
    }
    if let Some(kerberos) = kerberos {
        advice.beware.push(format!(
            "sec={}: requests out of order fall out of the window of a context and are sent again; NetApp and Google advise against it",
            kerberos.flavor
        ));
    }
    advice.undo = Some("drop the option, umount all, mount".to_owned());
    Some(advice)
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

fn why(verdict: &Verdict, window: &Window, facts: &Facts) -> Vec<String> {
    let mut why = vec![format!(
        "{} of the last {} busy intervals agree",
        verdict.windows, verdict.of
    )];
    let gb = |bytes: f64| format!("{:.2} GB/s", bytes / 1e9);
    let carried = match link_bytes_per_s(facts) {
        Some(link) => format!(
            "{} carried {}, {:.0} % of the link of {}",
            connections(window.connections),
            gb(window.bytes_per_s()),
            100.0 * window.bytes_per_s() / link,
            gb(link)
        ),
        None => format!(
            "{} carried {}",
            connections(window.connections),
            gb(window.bytes_per_s())
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

/// The network's own findings.
pub fn of_interface(group: &Group, interface: &Interface) -> Vec<Advice> {
    /// From here on packets of 1500 bytes cost a CPU.
    const FAST_BITS_PER_S: u64 = 10_000_000_000;
    let mut found = Vec::new();
    let is_fast = interface.speed_bits_per_s.is_some_and(|speed| speed >= FAST_BITS_PER_S);
    let name = &interface.name;
    if interface.gro == Some(false) && interface.lro != Some(true) {
        let cause = match (interface.is_bridged, interface.forwards) {
            (true, _) => " (it is a port of a bridge, which switches LRO off)",
            (false, true) => " (ip_forward is on, which switches LRO off)",
            _ => "",
        };
        let mut advice = Advice::new(
            group,
            "lro-off",
            None,
            format!("{name} merges no received packets: neither GRO nor LRO is on{cause}"),
        );
        advice.why =
            vec!["each packet is handled by itself; two 10G ports went from 12 to 18 Gbit/s by it in 2009".to_owned()];
        advice.todo = vec![("shell".to_owned(), format!("ethtool -K {name} gro on"))];
        found.push(advice);
    }
    let is_small = interface.mtu_bytes.is_some_and(|mtu| mtu <= 1500);
    if is_fast && is_small {
        let mut advice = Advice::new(
            group,
            "mtu",
            None,
            format!(
                "{name} has an MTU of 1500 at {:.0} Gbit/s",
                float(interface.speed_bits_per_s.unwrap_or_default()) / 1e9
            ),
        );
        advice.confidence = 0.4;
        advice.why = vec!["large packets steadied 16.5 of 20 Gbit/s in 2009; only where the server and every switch between have them".to_owned()];
        advice.todo = vec![(
            "shell".to_owned(),
            format!("ping -M do -s 8972 {}  # does the way carry 9000?", group.server),
        )];
        found.push(advice);
    }
    found
}
