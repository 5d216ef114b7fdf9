//! The machine's own dirty limit.

use std::collections::BTreeMap;

use crate::cycle::track::{self, Changes};
use crate::cycle::{settling_s, Around, Decision, Hold, Standing, Verdict};
use crate::float::float;
use crate::kernel::bdi::Dev;
use crate::kernel::knob::{Knob, Threshold, Value};
use crate::sample::Sample;
use crate::writeback::pair::{self, Pair};
use crate::writeback::size::is_worth_a_change;

/// The kernel moves a lowered limit down by 1/32 of the gap every 200 ms, so nothing is to be seen of a change before.
const APART_MS: u64 = 60_000;
const HALF_LIFE_MS: f64 = 3_600_000.0;
/// Servers that are unmounted and mounted again, as by an automounter, keep the limit where it is.
const KEPT_MS: u64 = 10 * 60_000;
/// A log that is written now and then is no work: less than this in an hour.
const DISKS_BYTES: f64 = 256.0 * 1048576.0;
/// Above this share of what is written local disks are at work too.
const DISKS_SHARE: f64 = 0.2;

/// What is remembered about the machine.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub changes: Changes,
    /// Written to block devices, and to NFS servers; fading sums in bytes.
    block_bytes: f64,
    nfs_bytes: f64,
    /// The limit as it was before ours.
    threshold_bytes: Option<u64>,
    /// When a server's rate was known last.
    known_ms: Option<u64>,
}

impl Track {
    pub(super) fn learn(&mut self, previous: Option<&Sample>, sample: &Sample) {
        let Some(previous) = previous else { return };
        let Some(length_ms) = sample.boottime_ms.checked_sub(previous.boottime_ms) else {
            return;
        };
        let fade = 0.5_f64.powf(float(length_ms) / HALF_LIFE_MS);
        self.block_bytes *= fade;
        self.nfs_bytes *= fade;
        if let (Some(before), Some(now)) = (previous.machine.vmstat, sample.machine.vmstat) {
            self.block_bytes += 1024.0 * float(now.block_written_kib.saturating_sub(before.block_written_kib));
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
        self.block_bytes > DISKS_BYTES && self.block_bytes > DISKS_SHARE * (self.block_bytes + self.nfs_bytes)
    }

    /// Empty where the kernel does not show its limits.
    pub(super) fn decide(
        &mut self,
        around: &Around,
        sample: &Sample,
        tracks: &BTreeMap<Dev, track::Track>,
    ) -> Vec<Decision> {
        let Some(both) = Both::of(around) else {
            return Vec::new();
        };
        if !both.are_ours() {
            self.threshold_bytes = sample.thresholds_bytes().map(|(limit, _)| limit);
        }
        let want = self.want(around, sample, tracks);
        if want.is_ok() {
            self.known_ms = Some(sample.boottime_ms);
        }
        // A mount that was just made has a device before it has a source, by which its server's rate is remembered: to give the
        // limit back in between would be to go without one for a minute.
        let is_any_known = tracks
            .values()
            .any(|track| track.drain.bytes_per_s(sample.boottime_ms).is_some());
        let is_kept = !is_any_known
            && self
                .known_ms
                .is_some_and(|known| sample.boottime_ms.saturating_sub(known) < KEPT_MS);
        match want {
            Err(reason) if is_kept && both.are_ours() => both.kept(&reason),
            Err(reason) => both.without(&reason),
            Ok((mut pair, reason)) => {
                // A limit that stands and is about right stays.
                if let (true, Value::Bytes(old)) = (both.are_ours(), both.limit.now) {
                    if !is_worth_a_change(old, pair.dirty_bytes) {
                        pair = Pair::of(old);
                    }
                }
                both.with(&pair, &reason, self.held(around, sample, &both))
            }
        }
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
        // Not seen without ours, as by a program that was started anew in place: that there is something to gain was found before.
        let threshold_bytes = self
            .threshold_bytes
            .or_else(|| sample.thresholds_bytes().map(|_| u64::MAX));
        let (Some(threshold_bytes), Some(memory_bytes)) = (threshold_bytes, sample.memory_bytes()) else {
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

    fn held(&self, around: &Around, sample: &Sample, both: &Both) -> Option<Hold> {
        if !around.tuned.apply.vm {
            return Some(Hold::NotAllowed("vm"));
        }
        let each = [&both.limit, &both.background];
        if let Some(what) = each.iter().find_map(|one| one.standing.handed_off.clone()) {
            return Some(Hold::HandedOff(what));
        }
        if let Some(who) = each.iter().find_map(|one| (around.owner)(one.knob)) {
            return Some(Hold::Owner(who));
        }
        if let Some(one) = each.iter().find(|one| !one.is_free()) {
            return Some(Hold::Owner(format!(
                "{} {} was set by somebody else",
                one.knob, one.now
            )));
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

struct One {
    knob: Knob,
    now: Value,
    standing: Standing,
}

impl One {
    /// Set by nobody but us, if at all.
    fn is_free(&self) -> bool {
        self.now == self.knob.boot_default() || self.standing.ours == Some(self.now)
    }
}

/// Where writers are held and where flushing begins only mean something together.
struct Both {
    limit: One,
    background: One,
}

impl Both {
    fn of(around: &Around) -> Option<Both> {
        let one = |threshold| {
            let knob = Knob::Vm(threshold);
            Some(One {
                knob,
                now: (around.value)(knob)?,
                standing: (around.standing)(knob, None),
            })
        };
        Some(Both {
            limit: one(Threshold::Limit)?,
            background: one(Threshold::Background)?,
        })
    }

    fn are_ours(&self) -> bool {
        self.limit.standing.ours.is_some()
    }

    /// As it is.
    fn kept(&self, reason: &str) -> Vec<Decision> {
        [&self.limit, &self.background]
            .map(|one| decision(one, Some(one.now), Verdict::Fine, reason))
            .into()
    }

    /// What is ours goes back, the limit that holds writers first.
    fn without(&self, reason: &str) -> Vec<Decision> {
        let back = |one: &One| match one.standing.ours {
            Some(_) => Verdict::GiveBack,
            None => Verdict::Fine,
        };
        [&self.limit, &self.background]
            .map(|one| decision(one, None, back(one), reason))
            .into()
    }

    /// Flushing begins below the point where writers are held at every moment: when the limit rises, it is written first.
    fn with(&self, pair: &Pair, reason: &str, hold: Option<Hold>) -> Vec<Decision> {
        let is_rise = matches!(self.limit.now, Value::Bytes(now) if pair.dirty_bytes > now);
        let mut order = [
            (&self.background, Value::Bytes(pair.background_bytes)),
            (&self.limit, Value::Bytes(pair.dirty_bytes)),
        ];
        if is_rise {
            order.reverse();
        }
        let decide = |(one, want): (&One, Value)| {
            let verdict = match &hold {
                _ if one.now == want => Verdict::Fine,
                Some(hold) => Verdict::Held(hold.clone()),
                None => Verdict::Write,
            };
            decision(one, Some(want), verdict, reason)
        };
        order.map(decide).into()
    }
}

fn decision(one: &One, want: Option<Value>, verdict: Verdict, reason: &str) -> Decision {
    Decision {
        knob: one.knob,
        instance: None,
        now: Some(one.now),
        want,
        verdict,
        reason: reason.to_owned(),
        notes: Vec::new(),
    }
}
