//! The machine's own dirty limit.

use std::collections::BTreeMap;

use crate::cycle::track::{self, Changes};
use crate::cycle::{settling_s, Around, Decision, Hold, Verdict};
use crate::float::float;
use crate::kernel::bdi::Dev;
use crate::kernel::knob::{Knob, Value, VmDirty};
use crate::sample::Sample;
use crate::writeback::pair::{self, Pair};
use crate::writeback::size::is_worth_a_change;

/// The kernel moves a lowered limit down by 1/32 of the gap every 200 ms, so nothing is to be seen of a change before.
const APART_MS: u64 = 60_000;
const HALF_LIFE_MS: f64 = 3_600_000.0;
/// Above this share of what is made dirty local disks are at work too.
const DISKS_SHARE: f64 = 0.2;

/// What is remembered about the machine.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub changes: Changes,
    /// Made dirty on the whole machine, and written to NFS servers; fading sums in bytes.
    dirtied_bytes: f64,
    nfs_bytes: f64,
    /// The limit as it was before ours.
    threshold_bytes: Option<u64>,
}

impl Track {
    pub(super) fn learn(&mut self, previous: Option<&Sample>, sample: &Sample) {
        let Some(previous) = previous else { return };
        let Some(length_ms) = sample.boottime_ms.checked_sub(previous.boottime_ms) else {
            return;
        };
        let fade = 0.5_f64.powf(float(length_ms) / HALF_LIFE_MS);
        self.dirtied_bytes *= fade;
        self.nfs_bytes *= fade;
        if let (Some(before), Some(now)) = (previous.machine.vmstat, sample.machine.vmstat) {
            let pages = now.dirtied_pages.saturating_sub(before.dirtied_pages);
            self.dirtied_bytes += float(pages) * float(sample.machine.page_kib) * 1024.0;
        }
        for device in &sample.devices {
            let before = previous
                .device(device.dev)
                .filter(|before| before.instance == device.instance);
            let both = device.activity.zip(before.and_then(|before| before.activity));
            if let Some(done) = both.and_then(|(now, before)| now.since(&before)) {
                self.nfs_bytes += float(done.server_written_bytes);
            }
        }
    }

    fn disks_write(&self) -> bool {
        self.dirtied_bytes - self.nfs_bytes > DISKS_SHARE * self.dirtied_bytes
    }

    /// None: the kernel does not show its limits.
    pub(super) fn decide(
        &mut self,
        around: &Around,
        sample: &Sample,
        tracks: &BTreeMap<Dev, track::Track>,
    ) -> Option<Decision> {
        let now = (around.value)(Knob::VmDirty)?;
        let standing = (around.standing)(Knob::VmDirty, None);
        if standing.ours.is_none() {
            self.threshold_bytes = sample.thresholds_bytes().map(|(limit, _)| limit);
        }
        let mut decision = Decision {
            knob: Knob::VmDirty,
            instance: None,
            now: Some(now),
            want: None,
            verdict: match standing.ours {
                Some(_) => Verdict::GiveBack,
                None => Verdict::Fine,
            },
            reason: String::new(),
            notes: Vec::new(),
        };
        let pair = match self.want(around, sample, tracks) {
            Ok((pair, reason)) => {
                decision.reason = reason;
                pair
            }
            Err(reason) => {
                decision.reason = reason;
                return Some(decision);
            }
        };
        let wanted = Value::Dirty(VmDirty {
            bytes: pair.dirty_bytes,
            background_bytes: pair.background_bytes,
            ratio: 0,
            background_ratio: 0,
        });
        let is_about_right = match (standing.ours, now) {
            (Some(ours), Value::Dirty(now)) => {
                ours == Value::Dirty(now) && !is_worth_a_change(now.bytes, pair.dirty_bytes)
            }
            _ => false,
        };
        decision.want = Some(if is_about_right { now } else { wanted });
        decision.verdict = match self.held(around, sample, now, standing.ours, standing.handed_off) {
            _ if decision.want == Some(now) => Verdict::Fine,
            Some(hold) => Verdict::Held(hold),
            None => Verdict::Write,
        };
        Some(decision)
    }

    fn want(
        &self,
        around: &Around,
        sample: &Sample,
        tracks: &BTreeMap<Dev, track::Track>,
    ) -> Result<(Pair, String), String> {
        let rates: Vec<f64> = tracks
            .values()
            .filter_map(|track| track.drain.bytes_per_s(sample.boottime_ms))
            .collect();
        if rates.is_empty() {
            return Err("no server's rate is known yet".to_owned());
        }
        let (Some(threshold_bytes), Some(memory_bytes)) = (self.threshold_bytes, sample.memory_bytes()) else {
            return Err("the kernel does not say its memory or its dirty limits".to_owned());
        };
        let target_s = float(around.tuned.drain_target_ms) / 1000.0;
        let rate: f64 = rates.iter().sum();
        let inputs = pair::Inputs {
            in_time_bytes: rate * target_s,
            memory_bytes,
            threshold_bytes,
            disks_write: self.disks_write(),
        };
        let disks = if inputs.disks_write {
            "; local disks write too"
        } else {
            ""
        };
        let servers = match rates.len() {
            1 => "the server takes".to_owned(),
            n => format!("{n} servers take"),
        };
        let reason = format!("{servers} {:.1} MB/s, {target_s} s of it{disks}", rate / 1e6);
        match pair::pair(&inputs) {
            Ok(pair) => Ok((pair, reason)),
            Err(skip) => Err(format!("{skip}: {reason}")),
        }
    }

    fn held(
        &self,
        around: &Around,
        sample: &Sample,
        now: Value,
        ours: Option<Value>,
        handed_off: Option<String>,
    ) -> Option<Hold> {
        if !around.tuned.apply.vm {
            return Some(Hold::NotAllowed("vm"));
        }
        if let Some(what) = handed_off {
            return Some(Hold::HandedOff(what));
        }
        if let Some(who) = (around.owner)(Knob::VmDirty) {
            return Some(Hold::Owner(who));
        }
        if ours != Some(now) && now != Knob::VmDirty.boot_default() {
            return Some(Hold::Owner(format!("{now} was set by somebody else")));
        }
        if around.is_container {
            return Some(Hold::Container);
        }
        if let Some(left) = settling_s(around, sample, None) {
            return Some(Hold::Settling(left));
        }
        let is_too_soon = !self.changes.may(sample.boottime_ms, APART_MS);
        is_too_soon.then_some(Hold::TooSoon)
    }
}
