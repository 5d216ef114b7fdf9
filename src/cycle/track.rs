//! What is remembered about one device.

use std::collections::VecDeque;

use crate::float::float;
use crate::kernel::knob::Attribute;
use crate::readahead::measure::{self, Measured, Path};
use crate::sample::activity::Activity;
use crate::sample::{Device, Sample};
use crate::writeback::drain::{self, Drain};

/// One instance of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    pub instance: u64,
    pub first_seen_ms: u64,
    pub drain: Drain,
    pub path: Path,
    pub read_ahead: ReadAhead,
    /// When a limit was written.
    pub limit_changes: Changes,
    /// What the last interval saw. None: nothing, or not the same mount.
    pub last: Option<Interval>,
}

/// What is remembered about the readahead.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadAhead {
    /// The value that was wanted and stood there, whoever wrote it: the helper, or this daemon.
    pub configured_kib: Option<u64>,
    /// Somebody has changed it since: from, to.
    pub handed_off: Option<(u64, u64)>,
    pub changes: Changes,
}

/// One interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub length_ms: u64,
    pub activity: Activity,
}

/// Times of the last changes; bounded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes(VecDeque<u64>);

/// An hour may hold so many.
const CHANGES_AN_HOUR: usize = 10;
const HOUR_MS: u64 = 3_600_000;

impl Changes {
    pub fn add(&mut self, now_ms: u64) {
        if self.0.len() >= CHANGES_AN_HOUR {
            self.0.pop_front();
        }
        self.0.push_back(now_ms);
    }

    /// The last one is `apart_ms` ago, and there were fewer than ten in the last hour.
    pub fn may(&self, now_ms: u64, apart_ms: u64) -> bool {
        let is_apart = self
            .0
            .back()
            .is_none_or(|last| now_ms.saturating_sub(*last) >= apart_ms);
        let are_few = self.0.len() < CHANGES_AN_HOUR
            || self
                .0
                .front()
                .is_none_or(|first| now_ms.saturating_sub(*first) >= HOUR_MS);
        is_apart && are_few
    }
}

impl Track {
    pub fn new(device: &Device, now_ms: u64) -> Track {
        Track {
            instance: device.instance,
            first_seen_ms: now_ms,
            drain: Drain::default(),
            path: Path::default(),
            read_ahead: ReadAhead::default(),
            limit_changes: Changes::default(),
            last: None,
        }
    }

    /// What was done between two looks at the same instance.
    pub fn learn(&mut self, before: &Device, now: &Device, sample: &Sample, previous: Option<&Sample>, length_ms: u64) {
        self.last = None;
        if before.instance != now.instance {
            return;
        }
        let Some(activity) = now
            .activity
            .zip(before.activity)
            .and_then(|(now, before)| now.since(&before))
        else {
            return;
        };
        self.last = Some(Interval { length_ms, activity });
        let has_backlog = |sample: &Sample| {
            sample
                .machine
                .vmstat
                .is_some_and(|stat| stat.dirty_pages > 0 || stat.writeback_pages > 0)
        };
        self.drain.add(&drain::Window {
            end_ms: sample.boottime_ms,
            length_ms,
            written_bytes: activity.server_written_bytes,
            write_rtt_ms: activity.write.rtt_ms,
            has_backlog: has_backlog(sample) && previous.is_some_and(has_backlog),
        });
        let rsize_kib = now.mounts.first().and_then(|mount| mount.rsize_kib());
        let enough = Some(activity.small).filter(|small| small.ops >= measure::SMALL_OPS_MIN);
        self.path.add(&measure::Window {
            end_ms: sample.boottime_ms,
            length_ms,
            read_bytes: activity.server_read_bytes,
            on_wire: activity.read.on_wire(length_ms),
            small_rtt_s: enough.and_then(|small| small.mean_rtt_s()),
            read_rtt_s: activity.read.mean_rtt_s(),
            read_ahead_bytes: before.read_ahead_kib.unwrap_or_default().saturating_mul(1024),
            rsize_bytes: rsize_kib.unwrap_or_default().saturating_mul(1024),
        });
    }

    /// What is known of the way to the server.
    pub fn measured(&self, device: &Device) -> Option<Measured> {
        let bits = device.link_bits_per_s.filter(|bits| *bits > 0);
        self.path.measured(bits.map(|bits| float(bits) / 8.0))
    }

    /// Requests on the wire during the last interval. None: not known.
    pub fn on_wire(&self) -> Option<f64> {
        self.last.map(|last| last.activity.all.on_wire(last.length_ms))
    }

    pub fn done(&mut self, attribute: Attribute, now_ms: u64) {
        match attribute {
            Attribute::ReadAheadKib => self.read_ahead.changes.add(now_ms),
            // One change writes up to three knobs; this is the one that is always among them.
            Attribute::MaxRatioFine => self.limit_changes.add(now_ms),
            Attribute::MinRatioFine | Attribute::StrictLimit => {}
        }
    }
}
