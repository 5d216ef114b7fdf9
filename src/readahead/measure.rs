//! The measured half of `auto`: how long the path to the server is, and how much it carries.
//!
//! One sequential reader gets B·R/(R + B·rtt) of a path that carries B bytes per second, with R bytes of readahead. B is the
//! link's speed where it is known, and otherwise the most that the path has shown, corrected for the window it was shown with.

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
struct Best {
    bytes_per_s: f64,
    /// What all readers together had in flight at most.
    in_flight_bytes: f64,
    streams: f64,
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
}

impl Path {
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
        if hour.best.is_none_or(|best| bytes_per_s > best.bytes_per_s) {
            // A read(2) above the readahead is sent in units of rsize, whatever the readahead (`ractl_max_pages`).
            let read_ahead = float(window.read_ahead_bytes.max(window.rsize_bytes));
            let streams = (window.on_wire * float(window.rsize_bytes) / read_ahead).max(1.0);
            hour.best = Some(Best {
                bytes_per_s,
                in_flight_bytes: streams * read_ahead,
                streams,
            });
        }
    }

    /// None: too little is known. `link_bytes_per_s` is the speed of the slowest interface on the way, where it says one.
    pub fn measured(&self, link_bytes_per_s: Option<f64>) -> Option<Measured> {
        let rtt_s = self.hours.iter().filter_map(|hour| hour.rtt_s).min_by(f64::total_cmp)?;
        let bests = self.hours.iter().filter_map(|hour| hour.best);
        let best = bests.max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))?;
        Some(Measured {
            rtt_s,
            bytes_per_s: link_bytes_per_s.unwrap_or_else(|| carries(&best, rtt_s)),
            streams: whole(best.streams.ceil()).max(STREAMS_MIN),
        })
    }
}

/// T = B·R/(R + B·rtt), solved for B. Readers that paused make T too small, and B with it.
fn carries(best: &Best, rtt_s: f64) -> f64 {
    let left = (best.in_flight_bytes - best.bytes_per_s * rtt_s).max(best.in_flight_bytes * WINDOW_BOUND);
    best.bytes_per_s * best.in_flight_bytes / left
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
