//! The metrics of all NFS mounts: which families there are, and what they are labelled by.
//!
//! What belongs to a superblock is labelled by its device alone, so that mounts which share one count once; what belongs to
//! a client, by the client. `nfstune_mount_info` says which mount points, exports and clients go with a device.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::{clients, Key, Mounted};
use crate::kernel::bdi::Dev;
use crate::kernel::mountstats::{self, Op, Transport};
use crate::report::openmetrics::{label, Kind, Seconds, Text};

/// Operations that tell reading, writing and waiting for attributes. NFSv4.2 clients read with READ_PLUS.
const OPS: [&str; 5] = ["READ", "READ_PLUS", "WRITE", "COMMIT", "GETATTR"];

/// The metrics text. Mounts without a line in mountinfo have gone meanwhile and are left out.
pub fn metrics(mounts: &[Mounted<'_>], read_ahead_kib: &BTreeMap<Dev, u64>) -> String {
    let present: Vec<Mounted<'_>> = mounts.iter().copied().filter(|m| m.mount.is_some()).collect();
    let mut text = Text::default();
    mount_info(&mut text, &present);
    let help = "Readahead of the device";
    let mut family = text.family(Kind::Gauge, "nfstune_read_ahead_bytes", Some("bytes"), help);
    for (dev, kib) in read_ahead_kib {
        family.sample(&[("device", &dev.to_string())], kib.saturating_mul(1024));
    }
    operations(&mut text, &superblocks(&present));
    transports(&mut text, &clients(&present));
    text.end()
}

fn mount_info(text: &mut Text, mounts: &[Mounted<'_>]) {
    let mut rows = BTreeSet::new();
    for mounted in mounts {
        let Mounted {
            stats,
            mount: Some(mount),
        } = mounted
        else {
            continue;
        };
        let key = Key::of(mounted);
        let option = |name| label(mount.option(name).unwrap_or_default());
        rows.insert((
            mount.dev,
            [
                ("mount_point", label(&stats.mount_point)),
                ("source", label(&stats.source)),
                ("version", label(key.version())),
                ("client", key.to_string()),
                ("rsize", option("rsize")),
                ("wsize", option("wsize")),
                ("sec", option("sec")),
            ],
        ));
    }
    let help = "NFS mounts, by device and client; always 1";
    let mut family = text.family(Kind::Gauge, "nfstune_mount_info", None, help);
    for (dev, labels) in &rows {
        let dev = dev.to_string();
        let mut all = vec![("device", &*dev)];
        // A label without a value is no label.
        let others = labels.iter().filter(|(_, value)| !value.is_empty());
        all.extend(others.map(|(name, value)| (*name, &**value)));
        family.sample(&all, 1);
    }
}

/// The figures of each device. Its mounts show them at slightly different times: the most operations are the newest.
fn superblocks<'a>(mounts: &[Mounted<'a>]) -> BTreeMap<Dev, &'a mountstats::Mount> {
    let newness = |stats: &'a mountstats::Mount| (stats.total_ops(), &stats.ops);
    let mut superblocks: BTreeMap<Dev, &mountstats::Mount> = BTreeMap::new();
    for Mounted { stats, mount } in mounts {
        let Some(mount) = mount else { continue };
        let known = superblocks.entry(mount.dev).or_insert(stats);
        if newness(stats) > newness(known) {
            *known = stats;
        }
    }
    superblocks
}

/// A family: its kind, name, unit and help, and the value, where the kernel has one.
type Row<T> = (
    Kind,
    &'static str,
    Option<&'static str>,
    &'static str,
    fn(&T) -> Option<String>,
);

const OF_OP: [Row<Op>; 8] = [
    (
        Kind::Counter,
        "nfstune_operations",
        None,
        "Operations that ended",
        |op| shown(op.ops),
    ),
    (
        Kind::Counter,
        "nfstune_operation_sent_bytes",
        Some("bytes"),
        "Sent for these operations, with their headers",
        |op| shown(op.sent_bytes),
    ),
    (
        Kind::Counter,
        "nfstune_operation_received_bytes",
        Some("bytes"),
        "Received for these operations, with their headers",
        |op| shown(op.received_bytes),
    ),
    (
        Kind::Counter,
        "nfstune_operation_queue_seconds",
        Some("seconds"),
        "From the request until it is sent",
        |op| seconds(op.queue_ms),
    ),
    (
        Kind::Counter,
        "nfstune_operation_rtt_seconds",
        Some("seconds"),
        "From sending until the reply",
        |op| seconds(op.rtt_ms),
    ),
    (
        Kind::Counter,
        "nfstune_operation_execution_seconds",
        Some("seconds"),
        "From the request until its end",
        |op| seconds(op.execution_ms),
    ),
    (
        Kind::Counter,
        "nfstune_operation_retransmissions",
        None,
        "Transmissions after the first one",
        |op| shown(op.retransmissions()),
    ),
    (
        Kind::Counter,
        "nfstune_operation_errors",
        None,
        "Operations that ended with an error; since Linux 5.3",
        |op| op.errors.and_then(shown),
    ),
];

fn operations(text: &mut Text, superblocks: &BTreeMap<Dev, &mountstats::Mount>) {
    for (kind, name, unit, help, value) in OF_OP {
        let mut family = text.family(kind, name, unit, help);
        for (dev, stats) in superblocks {
            let dev = dev.to_string();
            for op in OPS {
                if let Some(value) = stats.op(op).and_then(value) {
                    family.sample(&[("device", &dev), ("op", op)], value);
                }
            }
        }
    }
}

const OF_CLIENT: [Row<[Transport]>; 7] = [
    (
        Kind::Gauge,
        "nfstune_client_connections",
        None,
        "Connections of the client, which its mounts share",
        |all| Some(all.len().to_string()),
    ),
    (
        Kind::Gauge,
        "nfstune_client_longest_idle_seconds",
        Some("seconds"),
        "Since the last use of the connection that is idle longest",
        |all| all.iter().filter_map(|t| t.idle_s).max().and_then(shown),
    ),
    (
        Kind::Gauge,
        "nfstune_client_slots_max",
        None,
        "The most slots ever in use on one connection",
        |all| all.iter().filter_map(|t| t.slots_max).max().and_then(shown),
    ),
    (
        Kind::Counter,
        "nfstune_client_sends",
        None,
        "Requests sent on all connections",
        |all| sum(all, |t| t.sends),
    ),
    (
        Kind::Counter,
        "nfstune_client_receives",
        None,
        "Replies received on all connections",
        |all| sum(all, |t| t.receives),
    ),
    (
        Kind::Counter,
        "nfstune_client_bad_xids",
        None,
        "Replies that no request waited for",
        |all| sum(all, |t| t.bad_xids),
    ),
    (
        Kind::Counter,
        "nfstune_client_backlog",
        None,
        "Requests without a slot, added up at each send; divided by the sends it is their mean number",
        |all| sum(all, |t| t.backlog_sum),
    ),
];

fn transports(text: &mut Text, clients: &BTreeMap<Key<'_>, &[Transport]>) {
    for (kind, name, unit, help, value) in OF_CLIENT {
        let mut family = text.family(kind, name, unit, help);
        for (client, transports) in clients {
            if let Some(value) = value(transports) {
                family.sample(&[("client", &client.to_string())], value);
            }
        }
    }
}

fn shown(n: u64) -> Option<String> {
    Some(n.to_string())
}

fn seconds(ms: u64) -> Option<String> {
    Some(Seconds { ms }.to_string())
}

/// None: no connection, so nothing is known.
fn sum(transports: &[Transport], of: fn(&Transport) -> u64) -> Option<String> {
    let sum = transports.iter().map(of).reduce(u64::saturating_add);
    sum.and_then(shown)
}
