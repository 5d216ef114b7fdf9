//! What nfstuned does with each sample: what was learned and now → decisions with reasons. Pure.
//!
//! The same code runs in the daemon, in `nfstune status` and `apply`, and over recorded samples in `nfstune replay`.

mod dirty;
mod machine;
mod readahead;
pub mod track;

use std::collections::BTreeMap;
use std::fmt;

use crate::conf::policy::Policy;
use crate::conf::tuned::Tuned;
use crate::kernel::bdi::Dev;
use crate::kernel::knob::{Knob, Threshold, Value};
use crate::readahead::measure;
use crate::sample::Sample;
use track::Track;

/// One knob, what it shows, and what is to become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub knob: Knob,
    /// Which instance of the device was looked at.
    pub instance: Option<u64>,
    pub now: Option<Value>,
    /// None: it is left alone.
    pub want: Option<Value>,
    pub verdict: Verdict,
    /// File, line and rule, or the measurement; or why there is nothing to want.
    pub reason: String,
    /// What an admin has to be told beside it.
    pub notes: Vec<String>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it is as wanted, or nothing is wanted.
    Fine,
    Write,
    /// It is ours and not wanted any more.
    GiveBack,
    /// It would be written, were it not for this.
    Held(Hold),
}

/// Why a knob is not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// `apply` does not name it.
    NotAllowed(&'static str),
    /// Somebody sets it by configuration, or has set it before us.
    Owner(String),
    /// Somebody has changed it after us.
    HandedOff(String),
    /// The mount or the machine is too young; seconds left.
    Settling(u64),
    /// The knobs of a container are those of its host.
    Container,
    /// The last change was too short a time ago, or there were too many.
    TooSoon,
    /// The mount is in use.
    Busy,
    /// The machine is short of memory.
    Pressure,
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hold::NotAllowed(word) => write!(f, "apply does not name {word}"),
            Hold::Owner(who) => f.write_str(who),
            Hold::HandedOff(what) => write!(f, "{what}; nfstune release takes it back"),
            Hold::Settling(seconds) => write!(f, "not before {seconds} s from now: the mount or the machine is young"),
            Hold::Container => f.write_str("this is a container, the knob is its host's"),
            Hold::TooSoon => f.write_str("the last change is too recent"),
            Hold::Busy => f.write_str("the mount is in use"),
            Hold::Pressure => f.write_str("the machine is short of memory"),
        }
    }
}

/// What the ledger knows of a knob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// What we have written and what still stands.
    pub ours: Option<Value>,
    /// How somebody else has changed it since.
    pub handed_off: Option<String>,
}

/// What decisions depend on beside samples.
pub struct Around<'a> {
    pub policy: &'a Policy,
    pub tuned: &'a Tuned,
    /// What knobs show.
    pub value: &'a dyn Fn(Knob) -> Option<Value>,
    /// Who sets a knob by configuration.
    pub owner: &'a dyn Fn(Knob) -> Option<String>,
    pub standing: &'a dyn Fn(Knob, Option<u64>) -> Standing,
    pub is_container: bool,
}

/// What was learned so far.
#[derive(Debug, Default)]
pub struct State {
    previous: Option<Sample>,
    tracks: BTreeMap<Dev, Track>,
    machine: machine::Track,
}

/// A longer interval is a machine that slept, or a daemon that was stopped: it says nothing about rates.
const LENGTH_MAX_MS: u64 = 20 * 60_000;

impl State {
    /// What is known about a device.
    pub fn track(&self, dev: Dev) -> Option<&Track> {
        self.tracks.get(&dev)
    }

    /// The sample that was looked at last.
    pub fn sample(&self) -> Option<&Sample> {
        self.previous.as_ref()
    }

    /// Learns from a sample. `intervals` that were not planned, as after an event, count as well: rates are by time.
    pub fn learn(&mut self, sample: Sample) {
        let length_ms = self
            .previous
            .as_ref()
            .and_then(|previous| sample.boottime_ms.checked_sub(previous.boottime_ms))
            .filter(|length_ms| (1..=LENGTH_MAX_MS).contains(length_ms));
        let mut tracks = BTreeMap::new();
        for device in &sample.devices {
            let known = self
                .tracks
                .remove(&device.dev)
                .filter(|track| track.instance == device.instance);
            let mut track = known.unwrap_or_else(|| Track::new(device, sample.boottime_ms));
            let before = self.previous.as_ref().and_then(|previous| previous.device(device.dev));
            if let (Some(length_ms), Some(before)) = (length_ms, before) {
                track.learn(before, device, &sample, self.previous.as_ref(), length_ms);
            }
            tracks.insert(device.dev, track);
        }
        self.tracks = tracks;
        self.machine.learn(self.previous.as_ref(), &sample);
        self.previous = Some(sample);
    }

    /// Takes in devices and mounts that came or went between two samples. Nothing is learned from it: its time is arbitrary.
    pub fn see(&mut self, seen: Sample) {
        let Some(previous) = &mut self.previous else {
            return self.learn(seen);
        };
        let mut devices = Vec::new();
        for mut device in seen.devices {
            let known = previous
                .device(device.dev)
                .filter(|known| known.instance == device.instance);
            match known {
                Some(known) => {
                    device.activity = known.activity;
                    device.link_bits_per_s = known.link_bits_per_s;
                }
                None => drop(self.tracks.insert(device.dev, Track::new(&device, seen.boottime_ms))),
            }
            devices.push(device);
        }
        previous.devices = devices;
    }

    /// Decides about everything in the last sample. Without one there is nothing to decide about.
    pub fn decide(&mut self, around: &Around) -> Vec<Decision> {
        let Some(sample) = &self.previous else {
            return Vec::new();
        };
        let mut decisions = Vec::new();
        let mut floors_ppm = 0;
        for device in &sample.devices {
            if let Some(track) = self.tracks.get_mut(&device.dev) {
                decisions.push(readahead::decide(around, sample, device, track));
                decisions.extend(dirty::decide(around, sample, device, track, &mut floors_ppm));
            }
        }
        decisions.extend(self.machine.decide(around, sample, &self.tracks));
        decisions
    }

    /// Gives devices of which nothing is known what was learned before about their source: how fast it takes data, and the path.
    pub fn remember(
        &mut self,
        drain_of: impl Fn(&[u8]) -> Option<f64>,
        path_of: impl Fn(&[u8]) -> Option<measure::Known>,
    ) {
        let Some(sample) = &self.previous else { return };
        for device in &sample.devices {
            let source = device.mounts.first().and_then(|mount| mount.source.as_deref());
            let (Some(source), Some(track)) = (source, self.tracks.get_mut(&device.dev)) else {
                continue;
            };
            if let Some(rate) = drain_of(source) {
                track.drain.seed(sample.boottime_ms, rate);
            }
            if let Some(known) = path_of(source) {
                track.path.seed(sample.boottime_ms, known);
            }
        }
    }

    /// A decision was carried out.
    pub fn done(&mut self, decision: &Decision) {
        let Some(now_ms) = self.previous.as_ref().map(|sample| sample.boottime_ms) else {
            return;
        };
        match decision.knob {
            Knob::Bdi { dev, attribute } => {
                if let Some(track) = self.tracks.get_mut(&dev) {
                    track.done(attribute, now_ms);
                }
            }
            Knob::Vm(Threshold::Limit) => self.machine.changes.add(now_ms),
            Knob::Vm(Threshold::Background) => {}
        }
    }

    /// Takes a handed-off knob back.
    pub fn release(&mut self, knob: Knob) {
        if let Knob::Bdi { dev, .. } = knob {
            if let Some(track) = self.tracks.get_mut(&dev) {
                track.read_ahead.handed_off = None;
            }
        }
    }
}

/// The first five minutes after boot and the first ten of a mount say little about the rest; `settle` shortens both.
const SETTLE_BOOT_S: u64 = 300;

/// Seconds to wait. `age_s` is that of the mount.
fn settling_s(around: &Around, sample: &Sample, age_s: Option<u64>) -> Option<u64> {
    let of_mount = age_s.map_or(0, |age| around.tuned.settle_s.saturating_sub(age));
    let of_boot = around
        .tuned
        .settle_s
        .min(SETTLE_BOOT_S)
        .saturating_sub(sample.boottime_ms / 1000);
    Some(of_mount.max(of_boot)).filter(|left| *left > 0)
}
