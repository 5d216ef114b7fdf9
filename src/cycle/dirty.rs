//! The dirty limit of one device: three knobs that only mean something together.

use crate::conf::tuned::{DirtyLimit, LimitRule};
use crate::cycle::track::Track;
use crate::cycle::{Around, Decision, Hold, Standing, Verdict};
use crate::float::float;
use crate::kernel::knob::{Attribute, Knob, Value};
use crate::sample::{Device, Sample};
use crate::writeback::size::{self, Limit};

/// A limit is lowered this seldom after it was written. It may grow as soon as it should: what a new device begins with costs rate.
const APART_MS: u64 = 60_000;
/// All floors together, parts per million: the kernel wants less than the whole, a careful daemon much less.
const FLOORS_PPM: u64 = 200_000;

/// Empty where the kernel has no limit for a device (before Linux 6.2).
pub(super) fn decide(
    around: &Around,
    sample: &Sample,
    device: &Device,
    track: &Track,
    floors_ppm: &mut u64,
) -> Vec<Decision> {
    let Some(knobs) = Knobs::of(around, device) else {
        return Vec::new();
    };
    let wanted = want(around, sample, device, track);
    let (limit, reason) = match wanted {
        Wanted::Limit(limit, reason) => (Some(limit), reason),
        Wanted::Nothing(reason) => (None, reason),
    };
    let Some(mut limit) = limit else {
        return knobs.without(&reason);
    };
    limit.min_ppm = limit.min_ppm.min(FLOORS_PPM.saturating_sub(*floors_ppm));
    *floors_ppm = floors_ppm.saturating_add(limit.min_ppm);
    // A limit that stands and is about right stays.
    if let (true, Some(old)) = (knobs.are_ours(), knobs.max.now()) {
        if !size::is_worth_a_change(old, limit.max_ppm) {
            limit.max_ppm = old;
            limit.min_ppm = knobs.min.now().unwrap_or(limit.min_ppm);
        }
    }
    let hold = held(around, sample, device, track, &knobs, limit.max_ppm);
    knobs.with(&limit, &reason, hold)
}

enum Wanted {
    Limit(Limit, String),
    Nothing(String),
}

fn want(around: &Around, sample: &Sample, device: &Device, track: &Track) -> Wanted {
    let rule = rule(around, device);
    let (amount, whence) = match rule {
        Some(rule) => (&rule.limit, format!("{rule}: ")),
        None => (&DirtyLimit::Auto, String::new()),
    };
    let (Some((threshold_bytes, background_bytes)), Some(memory_bytes)) =
        (sample.thresholds_bytes(), sample.memory_bytes())
    else {
        return Wanted::Nothing(format!(
            "{whence}the kernel does not say its memory or its dirty limits"
        ));
    };
    let target_s = float(around.tuned.drain_target_ms) / 1000.0;
    let inputs = size::Inputs {
        drain_bytes_per_s: 0.0,
        target_s,
        wsize_bytes: device
            .mounts
            .iter()
            .filter_map(|mount| mount.wsize_bytes())
            .max()
            .unwrap_or(1 << 20),
        connections: device.mounts.iter().map(|mount| mount.connections()).max().unwrap_or(1),
        rtt_s: track.measured(device).map_or(0.0, |measured| measured.rtt_s),
        written_bytes: device.activity.map(|activity| activity.server_written_bytes),
        memory_bytes,
        threshold_bytes,
        background_bytes,
        needs_floor: size::needs_floor(sample.machine.kernel),
    };
    let result = match amount {
        DirtyLimit::Leave => return Wanted::Nothing(format!("{whence}leave")),
        DirtyLimit::Bytes(bytes) => {
            size::fixed(*bytes, &inputs).map(|limit| (limit, format!("{whence}{}", mib(*bytes))))
        }
        DirtyLimit::Auto => {
            let Some(rate) = track.drain.bytes_per_s(sample.boottime_ms) else {
                let windows = track.drain.windows();
                return Wanted::Nothing(format!(
                    "{whence}the server's rate is not known yet: {windows} of 5 intervals"
                ));
            };
            let reason = format!("{whence}the server takes {:.1} MB/s, {target_s} s of it", rate / 1e6);
            size::limit(&size::Inputs {
                drain_bytes_per_s: rate,
                ..inputs
            })
            .map(|limit| (limit, reason))
        }
    };
    match result {
        Ok((limit, reason)) => {
            let less = if limit.is_of_new { ", less for a new device" } else { "" };
            Wanted::Limit(limit, format!("{reason}{less}: {}", mib(limit.want_bytes)))
        }
        Err(skip) => Wanted::Nothing(format!("{whence}{skip}")),
    }
}

/// The strongest rule of all mounts that share the device.
fn rule<'a>(around: &Around<'a>, device: &Device) -> Option<&'a LimitRule> {
    let rules = device.mounts.iter().filter_map(|mount| around.tuned.limit_for(mount));
    rules.min_by_key(|rule| rule.scope.kind())
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", float(bytes) / 1048576.0)
}

/// One of the three.
struct One {
    knob: Knob,
    attribute: Attribute,
    now: Option<Value>,
    standing: Standing,
}

impl One {
    fn now(&self) -> Option<u64> {
        self.now.and_then(Value::number)
    }

    /// Set by nobody but us, if at all.
    fn is_free(&self) -> bool {
        self.now == Some(self.knob.boot_default()) || self.standing.ours.is_some() && self.standing.ours == self.now
    }
}

struct Knobs {
    instance: u64,
    max: One,
    min: One,
    strict: One,
}

impl Knobs {
    /// None: the kernel has none of them.
    fn of(around: &Around, device: &Device) -> Option<Knobs> {
        let one = |attribute| {
            let knob = Knob::Bdi {
                dev: device.dev,
                attribute,
            };
            let now = (around.value)(knob);
            now.map(|_| One {
                knob,
                attribute,
                now,
                standing: (around.standing)(knob, Some(device.instance)),
            })
        };
        Some(Knobs {
            instance: device.instance,
            max: one(Attribute::MaxRatioFine)?,
            min: one(Attribute::MinRatioFine)?,
            strict: one(Attribute::StrictLimit)?,
        })
    }

    fn all(&self) -> [&One; 3] {
        [&self.max, &self.min, &self.strict]
    }

    fn are_ours(&self) -> bool {
        self.max.standing.ours.is_some()
    }

    fn decision(&self, one: &One, want: Option<u64>, verdict: Verdict, reason: &str) -> Decision {
        Decision {
            knob: one.knob,
            instance: Some(self.instance),
            now: one.now,
            want: want.map(Value::Number),
            verdict,
            reason: reason.to_owned(),
            notes: Vec::new(),
        }
    }

    /// No limit is wanted: what is ours goes back, the limit that holds first.
    fn without(&self, reason: &str) -> Vec<Decision> {
        let back = |one: &&One| match one.standing.ours {
            Some(_) => Verdict::GiveBack,
            None => Verdict::Fine,
        };
        [&self.strict, &self.min, &self.max]
            .iter()
            .map(|one| self.decision(one, None, back(one), reason))
            .collect()
    }

    /// In an order in which the minimum is never above the maximum, and with the switch that makes both hold at the end.
    fn with(&self, limit: &Limit, reason: &str, hold: Option<Hold>) -> Vec<Decision> {
        let is_min_in_the_way = self.min.now().is_some_and(|min| min > limit.max_ppm);
        let mut order = self.all();
        if is_min_in_the_way {
            order.swap(0, 1);
        }
        let want = |attribute| match attribute {
            Attribute::MaxRatioFine => limit.max_ppm,
            Attribute::MinRatioFine => limit.min_ppm,
            Attribute::StrictLimit | Attribute::ReadAheadKib => 1,
        };
        let decide = |one: &One| {
            let want = want(one.attribute);
            let verdict = match &hold {
                _ if one.now() == Some(want) => Verdict::Fine,
                Some(hold) => Verdict::Held(hold.clone()),
                None => Verdict::Write,
            };
            self.decision(one, Some(want), verdict, reason)
        };
        order.into_iter().map(decide).collect()
    }
}

fn held(around: &Around, sample: &Sample, device: &Device, track: &Track, knobs: &Knobs, max_ppm: u64) -> Option<Hold> {
    if !around.tuned.apply.bdi {
        return Some(Hold::NotAllowed("bdi"));
    }
    if let Some(what) = knobs.all().iter().find_map(|one| one.standing.handed_off.clone()) {
        return Some(Hold::HandedOff(what));
    }
    if let Some(who) = knobs.all().iter().find_map(|one| (around.owner)(one.knob)) {
        return Some(Hold::Owner(who));
    }
    if let Some(one) = knobs.all().iter().find(|one| !one.is_free()) {
        let now = one.now().map_or_else(|| "?".to_owned(), |now| now.to_string());
        return Some(Hold::Owner(format!(
            "{} {now} was set by somebody else",
            one.attribute.name()
        )));
    }
    if around.is_container {
        return Some(Hold::Container);
    }
    let age_s = device.activity.map_or(0, |activity| activity.age_s);
    if let Some(left) = super::settling_s(around, sample, Some(age_s)) {
        return Some(Hold::Settling(left));
    }
    let grows = knobs.are_ours() && knobs.max.now().is_some_and(|now| now < max_ppm);
    let apart_ms = if grows { 0 } else { APART_MS };
    let is_too_soon = !track.limit_changes.may(sample.boottime_ms, apart_ms);
    is_too_soon.then_some(Hold::TooSoon)
}
