//! The readahead of one device: the decision of the helper, with what was measured since, and without a fight.

use crate::conf::value::Value as Wanted;
use crate::cycle::track::Track;
use crate::cycle::{Around, Decision, Hold, Verdict};
use crate::kernel::knob::{Attribute, Knob, Value};
use crate::readahead::decide::{self, Action, Machine};
use crate::sample::{Device, Sample};

/// `auto` changes a value by its measurement this seldom, and by no more than this factor.
const APART_MS: u64 = 10 * 60_000;
const STEP: u64 = 4;
/// Above this share of waiting for memory (hundredths of a percent) no readahead is raised.
const PRESSURE_MAX: u64 = 1000;
/// So long the helper may still be about to write the value of the version, ms.
const HELPER_MS: u64 = 60_000;

pub(super) fn decide(around: &Around, sample: &Sample, device: &Device, track: &mut Track) -> Decision {
    let knob = Knob::Bdi {
        dev: device.dev,
        attribute: Attribute::ReadAheadKib,
    };
    let standing = (around.standing)(knob, Some(device.instance));
    let now_kib = device.read_ahead_kib;
    let mut decision = Decision {
        knob,
        instance: Some(device.instance),
        now: now_kib.map(Value::Number),
        want: None,
        verdict: Verdict::Fine,
        reason: String::new(),
        notes: Vec::new(),
    };
    let is_known = is_known(around, sample, device, track, standing.ours);
    let wish = wish(around, sample, device, track, is_known);
    decision.reason = wish.decided.reason;
    decision.notes = wish.decided.notes;
    let Action::Set(mut kib) = wish.decided.action else {
        if standing.ours.is_some() {
            decision.verdict = Verdict::GiveBack;
        }
        return decision;
    };
    if wish.is_measured {
        if let Some(now) = now_kib.filter(|now| *now != Attribute::ReadAheadKib.boot_default()) {
            kib = step(now, kib, sample.machine.page_kib);
        }
    }
    decision.want = Some(Value::Number(kib));
    if now_kib == Some(kib) {
        track.read_ahead.configured_kib = Some(kib);
        return decision;
    }
    notice(track, now_kib, is_known);
    decision.verdict = match held(around, track, &standing.handed_off, is_known, now_kib) {
        Some(hold) => Verdict::Held(hold),
        None if wish.is_measured => match held_measured(sample, track, now_kib, kib) {
            Some(hold) => Verdict::Held(hold),
            None => Verdict::Write,
        },
        None => Verdict::Write,
    };
    decision
}

struct Wish {
    decided: decide::Decision,
    /// The value comes from watching the path, not from the configuration alone.
    is_measured: bool,
}

fn wish(around: &Around, sample: &Sample, device: &Device, track: &Track, is_known: bool) -> Wish {
    let connections = device.mounts.iter().map(|mount| mount.connections()).max();
    let measured = track.measured(device).filter(|_| connections.is_some());
    let machine = Machine {
        page_kib: sample.machine.page_kib,
        memory: sample.machine.memory,
        is_cloud: sample.machine.is_cloud,
    };
    let looked_at = decide::Device {
        version: device.version,
        mounts: &device.mounts,
        // What is known to be ours may be replaced; whether the rest may, the rule decides.
        now_kib: device.read_ahead_kib.filter(|_| !is_known),
        measured,
    };
    let wish = around
        .policy
        .contest(&device.mounts, device.version)
        .map(|contest| contest.won);
    let is_auto = match wish {
        Some(wish) => wish.value == Wanted::Auto,
        None => false,
    };
    Wish {
        decided: decide::decide(around.policy, &looked_at, &machine),
        is_measured: is_auto && measured.is_some(),
    }
}

/// Is the present value one that may be replaced: the kernel's, ours, or one that was configured before?
fn is_known(around: &Around, sample: &Sample, device: &Device, track: &Track, ours: Option<Value>) -> bool {
    let Some(now) = device.read_ahead_kib else {
        return false;
    };
    let by_version = around.policy.wish_by_version(device.version).map(|wish| wish.value);
    let is_helper_at_work = sample.boottime_ms.saturating_sub(track.first_seen_ms) < HELPER_MS;
    now == Attribute::ReadAheadKib.boot_default()
        || ours == Some(Value::Number(now))
        || track.read_ahead.configured_kib == Some(now)
        || is_helper_at_work && by_version == Some(Wanted::Kib(now))
}

/// A value that stood as it was wanted, and was changed: whoever did that, it is theirs now.
fn notice(track: &mut Track, now_kib: Option<u64>, is_known: bool) {
    let (Some(now), Some(configured)) = (now_kib, track.read_ahead.configured_kib) else {
        return;
    };
    if !is_known || now == Attribute::ReadAheadKib.boot_default() && configured != now {
        track.read_ahead.handed_off.get_or_insert((configured, now));
    }
}

fn held(
    around: &Around,
    track: &Track,
    handed_off: &Option<String>,
    is_known: bool,
    now_kib: Option<u64>,
) -> Option<Hold> {
    if !around.tuned.apply.readahead {
        return Some(Hold::NotAllowed("readahead"));
    }
    if let Some(what) = handed_off {
        return Some(Hold::HandedOff(what.clone()));
    }
    if let Some((from, to)) = track.read_ahead.handed_off {
        return Some(Hold::HandedOff(format!("changed by somebody else from {from} to {to}")));
    }
    if around.is_container {
        return Some(Hold::Container);
    }
    match now_kib {
        Some(now) if !is_known => Some(Hold::Owner(format!("{now} was set by somebody else"))),
        _ => None,
    }
}

/// A measurement is no reason to hurry.
fn held_measured(sample: &Sample, track: &Track, now_kib: Option<u64>, kib: u64) -> Option<Hold> {
    let now = now_kib?;
    if now == Attribute::ReadAheadKib.boot_default() {
        return None;
    }
    if !track.read_ahead.changes.may(sample.boottime_ms, APART_MS) {
        return Some(Hold::TooSoon);
    }
    if track.on_wire().is_none_or(|on_wire| on_wire >= 1.0) {
        return Some(Hold::Busy);
    }
    let is_short = sample
        .machine
        .memory_pressure
        .is_some_and(|pressure| pressure > PRESSURE_MAX);
    (kib > now && is_short).then_some(Hold::Pressure)
}

/// From one measured value to the next. Less than a quarter is not worth it.
fn step(now: u64, wanted: u64, page_kib: u64) -> u64 {
    if now == 0 || wanted.abs_diff(now).saturating_mul(4) <= now {
        return now;
    }
    let least = (now / STEP).max(page_kib);
    let stepped = wanted.clamp(least, now.saturating_mul(STEP).max(least));
    stepped - stepped % page_kib
}
