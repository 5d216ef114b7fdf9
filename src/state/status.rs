//! What is seen, wanted and done about every mount and knob: /run/nfstuned/status.json, and `nfstune status --json`.
//!
//! Base units; what is not known is null.

use serde::{Deserialize, Serialize};

use crate::conf::tuned::Tuned;
use crate::cycle::{Around, Decision, State, Verdict};
use crate::error::Result;
use crate::kernel::knob::{Knob, Value};
use crate::kernel::mountinfo::Mount;
use crate::report::escape::escape;
use crate::root::Root;
use crate::sample::{Device, Sample};

/// Grows with every change that a reader would stumble over.
pub const SCHEMA_VERSION: u32 = 1;
/// 10,000 mounts.
const SIZE_LIMIT: usize = 64 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub schema_version: u32,
    /// Who says so; null: `nfstune` by itself, with nothing learned.
    pub daemon: Option<Daemon>,
    /// What may be written.
    pub apply: Vec<String>,
    pub interval_seconds: u64,
    pub drain_target_seconds: f64,
    pub memory: Memory,
    pub devices: Vec<DeviceStatus>,
    pub knobs: Vec<KnobStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    pub pid: u32,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub total_bytes: Option<u64>,
    pub dirty_bytes: Option<u64>,
    pub writeback_bytes: Option<u64>,
    pub limit_bytes: Option<u64>,
    pub background_bytes: Option<u64>,
}

/// One NFS superblock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatus {
    pub device: String,
    pub version: String,
    /// Escaped, as everything that comes from outside.
    pub mounts: Vec<MountStatus>,
    /// Mounted in other namespaces only.
    pub elsewhere: bool,
    pub rsize_bytes: Option<u64>,
    pub wsize_bytes: Option<u64>,
    pub connections: Option<u64>,
    /// How fast the server takes data; null: not known yet.
    pub drain_bytes_per_second: Option<f64>,
    pub drain_intervals: usize,
    pub rtt_seconds: Option<f64>,
    pub path_bytes_per_second: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountStatus {
    pub mount_point: Option<String>,
    pub source: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobStatus {
    /// As it is typed: `0:51/read_ahead_kb`.
    pub knob: String,
    /// null: there is none.
    pub device: Option<String>,
    pub now: Option<String>,
    /// null: it is left alone.
    pub want: Option<String>,
    pub state: KnobState,
    /// What stands there is ours.
    pub ours: bool,
    pub reason: String,
    /// Why it is not written.
    pub held: Option<String>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnobState {
    /// As it is wanted, or nothing is wanted.
    Fine,
    /// About to be written.
    Write,
    /// About to be given back.
    GiveBack,
    /// Wanted, not allowed: this is advice.
    Held,
}

impl Status {
    /// After `decisions` were made and those to be made were tried.
    pub fn new(state: &State, decisions: &[Decision], around: &Around, daemon: Option<Daemon>) -> Status {
        let sample = state.sample();
        Status {
            schema_version: SCHEMA_VERSION,
            daemon,
            apply: words(around.tuned),
            interval_seconds: around.tuned.interval_s,
            drain_target_seconds: crate::float::float(around.tuned.drain_target_ms) / 1000.0,
            memory: memory(sample),
            devices: sample
                .map(|sample| {
                    sample
                        .devices
                        .iter()
                        .map(|device| device_status(state, sample, device))
                        .collect()
                })
                .unwrap_or_default(),
            knobs: decisions.iter().map(|decision| knob_status(decision, around)).collect(),
        }
    }

    pub fn to_json(&self) -> Vec<u8> {
        // A plain structure with string keys: this does not fail.
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// What a running daemon says. None: it has said nothing yet.
    pub fn read(root: &Root) -> Result<Option<Status>> {
        super::read(&root.nfstuned_status(), SIZE_LIMIT)
    }
}

impl KnobStatus {
    /// The knob shows another value by now.
    pub fn refresh(&mut self, now: Option<Value>) {
        let now = now.map(|now| now.to_string());
        if now == self.now {
            return;
        }
        self.now = now;
        self.ours = false;
        if self.want.is_some() && self.want == self.now {
            self.state = KnobState::Fine;
        }
    }
}

/// What may be written, as in nfs.conf.
pub fn words(tuned: &Tuned) -> Vec<String> {
    let apply = tuned.apply;
    let words = [(apply.readahead, "readahead"), (apply.bdi, "bdi"), (apply.vm, "vm")];
    words
        .iter()
        .filter(|(is_there, _)| *is_there)
        .map(|(_, word)| (*word).to_owned())
        .collect()
}

fn memory(sample: Option<&Sample>) -> Memory {
    let machine = sample.map(|sample| sample.machine);
    let bytes = |pages: u64| machine.map(|machine| pages.saturating_mul(machine.page_kib).saturating_mul(1024));
    let stat = machine.and_then(|machine| machine.vmstat);
    Memory {
        total_bytes: sample.and_then(Sample::memory_bytes),
        dirty_bytes: stat.and_then(|stat| bytes(stat.dirty_pages)),
        writeback_bytes: stat.and_then(|stat| bytes(stat.writeback_pages)),
        limit_bytes: stat.and_then(|stat| bytes(stat.threshold_pages)),
        background_bytes: stat.and_then(|stat| bytes(stat.background_pages)),
    }
}

fn device_status(state: &State, sample: &Sample, device: &Device) -> DeviceStatus {
    let first = device.mounts.first();
    let track = state.track(device.dev);
    let measured = track.and_then(|track| track.measured(device));
    DeviceStatus {
        device: device.dev.to_string(),
        version: first.map_or_else(|| device.version.to_string(), |mount| escape(mount.shown_version())),
        mounts: device.mounts.iter().map(mount_status).collect(),
        elsewhere: device.is_elsewhere,
        rsize_bytes: first.and_then(|mount| mount.rsize_kib()).map(|kib| kib * 1024),
        wsize_bytes: first.and_then(|mount| mount.wsize_bytes()),
        connections: device.activity.map(|activity| activity.connections),
        drain_bytes_per_second: track.and_then(|track| track.drain.bytes_per_s(sample.boottime_ms)),
        drain_intervals: track.map_or(0, |track| track.drain.windows()),
        rtt_seconds: measured.map(|measured| measured.rtt_s),
        path_bytes_per_second: measured.map(|measured| measured.bytes_per_s),
    }
}

fn mount_status(mount: &Mount) -> MountStatus {
    MountStatus {
        mount_point: mount.mount_point.as_deref().map(escape),
        source: mount.source.as_deref().map(escape),
    }
}

fn knob_status(decision: &Decision, around: &Around) -> KnobStatus {
    let standing = (around.standing)(decision.knob, decision.instance);
    let now = (around.value)(decision.knob).or(decision.now);
    KnobStatus {
        knob: decision.knob.to_string(),
        device: match decision.knob {
            Knob::Bdi { dev, .. } => Some(dev.to_string()),
            Knob::Vm(_) => None,
        },
        now: now.map(|now| now.to_string()),
        want: decision.want.map(|want| want.to_string()),
        state: match &decision.verdict {
            _ if now == decision.want => KnobState::Fine,
            Verdict::Fine => KnobState::Fine,
            Verdict::Write => KnobState::Write,
            Verdict::GiveBack if standing.ours.is_none() => KnobState::Fine,
            Verdict::GiveBack => KnobState::GiveBack,
            Verdict::Held(_) => KnobState::Held,
        },
        ours: standing.ours.is_some() && standing.ours == now,
        reason: decision.reason.clone(),
        held: match &decision.verdict {
            Verdict::Held(hold) => Some(hold.to_string()),
            _ => None,
        },
        notes: decision.notes.clone(),
    }
}
