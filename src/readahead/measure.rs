//! The measured half of `auto`: how long the path to the server is, and how much it carries.
//!
//! One sequential reader gets B·R/(R + B·rtt) of a path that carries B bytes per second, with R bytes of readahead. B is the
//! link's speed where it is known, and otherwise the most that the path has shown, corrected for the window it was shown with.

use std::fmt;

use crate::float::{float, whole};

/// What one interval said about one device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    pub end_ms: u64,
    pub length_ms: u64,
    /// From the server.
    pub read_bytes: u64,
    /// READs on the wire, on average.
    pub on_wire: f64,
    /// The mean time to the reply of small operations; None where there were too few of them.
    pub small_rtt_s: Option<f64>,
    /// The same of READs.
    pub read_rtt_s: Option<f64>,
    /// `read_ahead_kb` at the time.
    pub read_ahead_bytes: u64,
    pub rsize_bytes: u64,
}

/// Small operations for a mean that is worth something.
pub const SMALL_OPS_MIN: u64 = 5;
/// Below one READ on the wire none waits for another one.
const LOW_LOAD: f64 = 1.0;
/// Shorter windows say nothing about what a path carries.
const LENGTH_MIN_MS: u64 = 4_500;
/// The best of each hour is kept, for a day.
const SLOT_MS: u64 = 3_600_000;
const SLOTS: u64 = 24;
/// Where less than this part of the readahead is not round trip, the path may carry any multiple of what was seen.
const WINDOW_BOUND: f64 = 0.2;
/// For fewer readers nobody gets more.
const STREAMS_MIN: u64 = 8;
/// How many sequential readers to expect where nobody has counted.
pub const STREAMS_UNKNOWN: u64 = 32;

/// What is known about the path of one device. Its memory is bounded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    hours: Vec<Hour>,
}

/// The extremes of an hour.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hour {
    number: u64,
    rtt_s: Option<f64>,
    best: Option<Best>,
}

/// The window that carried the most.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "state", derive(serde::Serialize, serde::Deserialize))]
pub struct Best {
    pub bytes_per_second: f64,
    /// What all readers together had in flight at most.
    pub in_flight_bytes: f64,
    pub streams: f64,
}

/// What the model needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// A READ at low load.
    pub rtt_s: f64,
    /// What the path carries.
    pub bytes_per_s: f64,
    /// Sequential readers, at least 8.
    pub streams: u64,
    /// The rate is the link's, not one that was seen.
    pub is_of_link: bool,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if self.is_of_link { "the link's" } else { "the path's" };
        let (ms, mb_per_s) = (self.rtt_s * 1e3, self.bytes_per_s / 1e6);
        write!(f, "round trip {ms:.2} ms, {whose} {mb_per_s:.0} MB/s")
    }
}

/// What outlives a restart.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "state", derive(serde::Serialize, serde::Deserialize))]
pub struct Known {
    pub rtt_seconds: f64,
    /// None: nobody has read.
    pub best: Option<Best>,
}

impl Known {
    /// What was kept may be anything: sane, or none of it.
    pub fn sane(self) -> Option<Known> {
        let is_rate = |rate: f64| (1e3..=1e12).contains(&rate);
        let is_best = |best: &Best| {
            is_rate(best.bytes_per_second)
                && (1.0..=1e6).contains(&best.streams)
                && (4096.0..=1e12).contains(&best.in_flight_bytes)
        };
        let is_sane = (1e-6..=60.0).contains(&self.rtt_seconds) && self.best.as_ref().is_none_or(is_best);
        is_sane.then_some(self)
    }

    /// By a tenth or more, or about something that was not known.
    pub fn differs(&self, other: &Known) -> bool {
        let is_other = |a: f64, b: f64| (a - b).abs() > a / 10.0;
        is_other(self.rtt_seconds, other.rtt_seconds)
            || match (self.best, other.best) {
                (Some(a), Some(b)) => is_other(a.bytes_per_second, b.bytes_per_second),
                (a, b) => a.is_some() != b.is_some(),
            }
    }
}

impl Path {
    /// The extremes of the last day. None: no round trip was seen.
    pub fn known(&self) -> Option<Known> {
        let rtts = self.hours.iter().filter_map(|hour| hour.rtt_s);
        let bests = self.hours.iter().filter_map(|hour| hour.best);
        Some(Known {
            rtt_seconds: rtts.min_by(f64::total_cmp)?,
            best: bests.max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second)),
        })
    }

    /// What was known before, where nothing was seen yet. It counts as seen now, and is forgotten in a day like the rest.
    pub fn seed(&mut self, now_ms: u64, known: Known) {
        if self.hours.is_empty() {
            self.hours.push(Hour {
                number: now_ms / SLOT_MS,
                rtt_s: Some(known.rtt_seconds),
                best: known.best,
            });
        }
    }

    pub fn add(&mut self, window: &Window) {
        let number = window.end_ms / SLOT_MS;
        if self.hours.last().is_none_or(|hour| hour.number != number) {
            self.hours.retain(|hour| number.abs_diff(hour.number) < SLOTS);
            self.hours.push(Hour {
                number,
                rtt_s: None,
                best: None,
            });
        }
        let Some(hour) = self.hours.last_mut() else { return };
        let quiet_read_s = window.read_rtt_s.filter(|_| window.on_wire < LOW_LOAD);
        for rtt_s in [window.small_rtt_s, quiet_read_s].into_iter().flatten() {
            hour.rtt_s = Some(hour.rtt_s.map_or(rtt_s, |least| least.min(rtt_s)));
        }
        if window.length_ms < LENGTH_MIN_MS || window.read_bytes == 0 || window.read_ahead_bytes == 0 {
            return;
        }
        let bytes_per_s = float(window.read_bytes) * 1000.0 / float(window.length_ms);
        if hour.best.is_none_or(|best| bytes_per_s > best.bytes_per_second) {
            // A read(2) above the readahead is sent in units of rsize, whatever the readahead (`ractl_max_pages`).
            let read_ahead = float(window.read_ahead_bytes.max(window.rsize_bytes));
            let streams = (window.on_wire * float(window.rsize_bytes) / read_ahead).max(1.0);
            hour.best = Some(Best {
                bytes_per_second: bytes_per_s,
                in_flight_bytes: streams * read_ahead,
                streams,
            });
        }
    }

    /// None: too little is known. `link_bytes_per_s` is what the connections get of the link, where it says one: then the round
    /// trip is enough, and whoever reads is not asked for.
    pub fn measured(&self, link_bytes_per_s: Option<f64>) -> Option<Measured> {
        let Known { rtt_seconds, best } = self.known()?;
        let seen = best.map(|best| carries(&best, rtt_seconds));
        Some(Measured {
            rtt_s: rtt_seconds,
            bytes_per_s: link_bytes_per_s.or(seen)?,
            streams: best.map_or(STREAMS_UNKNOWN, |best| whole(best.streams.ceil()).max(STREAMS_MIN)),
            is_of_link: link_bytes_per_s.is_some(),
        })
    }
}

/// T = B·R/(R + B·rtt), solved for B. Readers that paused make T too small, and B with it.
fn carries(best: &Best, rtt_s: f64) -> f64 {
    let left = (best.in_flight_bytes - best.bytes_per_second * rtt_s).max(best.in_flight_bytes * WINDOW_BOUND);
    best.bytes_per_second * best.in_flight_bytes / left
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn window(mib_per_s: u64) -> Window {
        Window {
            end_ms: 100_000,
            length_ms: 10_000,
            read_bytes: 10 * mib_per_s * MIB,
            on_wire: 4.0,
            small_rtt_s: Some(0.02),
            read_rtt_s: Some(0.05),
            read_ahead_bytes: 4 * MIB,
            rsize_bytes: MIB,
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < b * 0.01
    }

    #[test]
    fn a_reader_that_waits_for_round_trips_shows_a_faster_path() {
        let mut path = Path::default();
        assert_eq!(path.measured(None), None);
        path.add(&window(100));
        // 4 MiB in flight, 2 of them round trip: the path carries twice of what was seen.
        let measured = path.measured(None).unwrap();
        assert!(near(measured.bytes_per_s, 200.0 * 1048576.0), "{measured:?}");
        assert_eq!((measured.rtt_s, measured.streams), (0.02, 8));
        assert!(near(path.measured(Some(1.25e8)).unwrap().bytes_per_s, 1.25e8));
        // All of it round trip: at most five times.
        path.add(&window(200));
        assert!(near(path.measured(None).unwrap().bytes_per_s, 1000.0 * 1048576.0));
    }

    #[test]
    fn a_read_tells_the_round_trip_only_when_none_waits() {
        let mut path = Path::default();
        path.add(&Window {
            small_rtt_s: None,
            ..window(1)
        });
        assert_eq!(path.measured(None), None);
        path.add(&Window {
            small_rtt_s: None,
            on_wire: 0.9,
            ..window(1)
        });
        assert!(near(path.measured(None).unwrap().rtt_s, 0.05));
    }

    #[test]
    fn what_is_older_than_a_day_is_forgotten() {
        let mut path = Path::default();
        path.add(&Window {
            small_rtt_s: Some(0.001),
            ..window(500)
        });
        path.add(&Window {
            end_ms: 100_000 + 23 * SLOT_MS,
            ..window(50)
        });
        assert!(near(path.measured(None).unwrap().rtt_s, 0.001));
        path.add(&Window {
            end_ms: 100_000 + 24 * SLOT_MS,
            ..window(50)
        });
        assert!(near(path.measured(None).unwrap().rtt_s, 0.02));
    }

    /// The link's speed and a round trip are enough; without the link somebody has to have read.
    #[test]
    fn a_known_link_needs_the_round_trip_only() {
        let mut path = Path::default();
        let link = Some(1.25e9);
        assert_eq!(path.measured(link), None);
        path.add(&Window {
            read_bytes: 0,
            on_wire: 0.0,
            ..window(0)
        });
        assert_eq!(path.measured(None), None);
        let measured = path.measured(link).unwrap();
        assert_eq!(
            (measured.bytes_per_s, measured.rtt_s, measured.streams),
            (1.25e9, 0.02, 32)
        );
        assert_eq!(measured.to_string(), "round trip 20.00 ms, the link's 1250 MB/s");
        path.add(&window(100));
        assert_eq!(path.measured(link).unwrap().streams, 8);
        assert_eq!(
            path.measured(None).unwrap().to_string(),
            "round trip 20.00 ms, the path's 210 MB/s"
        );
    }

    #[test]
    fn what_was_known_before_holds_until_it_is_a_day_old() {
        let mut path = Path::default();
        path.add(&window(100));
        let known = path.known().unwrap();
        assert_eq!(known.sane(), Some(known));
        let mut later = Path::default();
        later.seed(0, known);
        assert_eq!(later.measured(None), path.measured(None));
        // Once something was seen, nothing is put in its place.
        later.seed(
            0,
            Known {
                rtt_seconds: 1.0,
                ..known
            },
        );
        assert_eq!(later.measured(None), path.measured(None));
        let slow = Window {
            small_rtt_s: Some(0.04),
            end_ms: 24 * SLOT_MS,
            ..window(1)
        };
        later.add(&slow);
        assert!(near(later.measured(None).unwrap().rtt_s, 0.04));
        for rtt_seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 61.0] {
            assert_eq!(
                Known {
                    rtt_seconds,
                    best: None
                }
                .sane(),
                None
            );
        }
        for (a, b, differs) in [
            (1.0, 1.09, false),
            (1.0, 1.11, true),
            (1.0, 0.91, false),
            (1.0, 0.89, true),
        ] {
            let known = |rtt_seconds| Known {
                rtt_seconds,
                best: None,
            };
            assert_eq!(known(a).differs(&known(b)), differs, "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_seen_the_answer_is_finite(
            windows in proptest::collection::vec((any::<u64>(), 0u64..1 << 40, 0.0..1e6f64, 0.0..1e3f64, 0u64..1 << 30, 0u64..1 << 22), 1..60)
        ) {
            let mut path = Path::default();
            for (end_ms, read_bytes, on_wire, rtt, read_ahead_bytes, rsize_bytes) in windows {
                path.add(&Window { end_ms, read_bytes, on_wire, small_rtt_s: Some(rtt), read_ahead_bytes, rsize_bytes, ..window(0) });
                prop_assert!(path.hours.len() <= 48);
                if let Some(measured) = path.measured(None) {
                    prop_assert!(measured.bytes_per_s.is_finite() && measured.bytes_per_s > 0.0);
                }
            }
        }
    }
}
