//! What an admin is told: a stable id, the numbers behind it, what to do, what to beware of, how to undo it.

#[cfg(test)]
mod made;
mod network;
mod raise;
mod why;

use crate::nconnect::asked::Group;
use crate::nconnect::live::history::{Verdict, IDLE_DAYS};
use crate::nconnect::live::rules::{has_session, Rule};
use crate::nconnect::live::window::Facts;

pub use network::{loss_elsewhere, of_interface, Interface};
pub use raise::RESERVED_PORTS;
use raise::{raise, snippets};
use why::why;

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
