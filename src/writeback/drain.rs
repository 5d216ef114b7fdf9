//! How fast a server takes data, learned from the time in which it was the bottleneck.
//!
//! A rate counts only while writeback is saturated: WRITEs wait on the wire and dirty data never runs out, so the server (or
//! the link) decides and not the programs that write. What was learned fades with a half-life of an hour.

use crate::float::float;

/// What one interval said about one device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// When it ended.
    pub end_ms: u64,
    pub length_ms: u64,
    /// Taken by the server.
    pub written_bytes: u64,
    /// The growth of WRITE's `rtt`: divided by the length it is the mean number of WRITEs on the wire (Little's law).
    pub write_rtt_ms: u64,
    /// Dirty data or data under writeback was there at both ends.
    pub has_backlog: bool,
}

impl Window {
    /// Nobody but the path and the server limited the rate.
    fn is_saturated(&self) -> bool {
        self.has_backlog
            && self.length_ms >= LENGTH_MIN_MS
            && self.write_rtt_ms >= self.length_ms.saturating_mul(ON_WIRE_MIN)
    }

    fn bytes_per_s(&self) -> f64 {
        float(self.written_bytes) * 1000.0 / float(self.length_ms.max(1))
    }
}

/// Shorter windows are noise: a COMMIT alone may take a second.
const LENGTH_MIN_MS: u64 = 4_500;
/// WRITEs on the wire of a saturated window.
const ON_WIRE_MIN: u64 = 2;
/// So many saturated windows make a rate; with fewer it is unknown.
const WINDOWS_MIN: usize = 5;
/// What is kept: four hours of writing without a pause, at the default interval.
const WINDOWS_KEPT: usize = 960;
const HALF_LIFE_MS: f64 = 3_600_000.0;
/// A quarter of the weight lies below the answer: a rate that the server nearly always reaches.
const PERCENTILE: f64 = 0.25;

/// What is known about one device. Its memory is bounded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drain {
    /// When and how fast, the oldest first.
    rates: Vec<(u64, f64)>,
}

impl Drain {
    /// True: the window was saturated and counts.
    pub fn add(&mut self, window: &Window) -> bool {
        if !window.is_saturated() {
            return false;
        }
        if self.rates.len() >= WINDOWS_KEPT {
            self.rates.remove(0);
        }
        self.rates.push((window.end_ms, window.bytes_per_s()));
        true
    }

    /// Begins with what was learned before: as good as the fewest windows that make a rate, and as quickly outdone by new ones.
    pub fn seed(&mut self, now_ms: u64, bytes_per_s: f64) {
        if self.rates.is_empty() {
            self.rates = vec![(now_ms, bytes_per_s); WINDOWS_MIN];
        }
    }

    /// Windows that counted.
    pub fn windows(&self) -> usize {
        self.rates.len()
    }

    /// Pessimistic: the server is at least as fast in three of four windows, the younger the weightier. None: too few windows.
    pub fn bytes_per_s(&self, now_ms: u64) -> Option<f64> {
        if self.rates.len() < WINDOWS_MIN {
            return None;
        }
        let weight = |end_ms: u64| 0.5_f64.powf(float(now_ms.saturating_sub(end_ms)) / HALF_LIFE_MS);
        let mut by_rate: Vec<(f64, f64)> = self.rates.iter().map(|(end, rate)| (*rate, weight(*end))).collect();
        by_rate.sort_by(|a, b| a.0.total_cmp(&b.0));
        let all: f64 = by_rate.iter().map(|(_, weight)| weight).sum();
        let mut below = 0.0;
        let found = by_rate.iter().find(|(_, weight)| {
            below += weight;
            below >= all * PERCENTILE
        });
        // After weeks without a window all weights are 0, and the slowest is the answer.
        found.or(by_rate.first()).map(|(rate, _)| *rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(end_s: u64, mib: u64) -> Window {
        Window {
            end_ms: end_s * 1000,
            length_ms: 15_000,
            written_bytes: mib << 20,
            write_rtt_ms: 40_000,
            has_backlog: true,
        }
    }

    #[test]
    fn only_saturated_windows_count() {
        let good = window(15, 100);
        let mut drain = Drain::default();
        for bad in [
            Window {
                has_backlog: false,
                ..good
            },
            Window {
                length_ms: 4_000,
                ..good
            },
            Window {
                write_rtt_ms: 29_999,
                ..good
            },
        ] {
            assert!(!drain.add(&bad));
        }
        assert!(drain.add(&Window {
            write_rtt_ms: 30_000,
            ..good
        }));
        assert_eq!(drain.windows(), 1);
        assert_eq!(drain.bytes_per_s(15_000), None);
    }

    #[test]
    fn five_windows_make_a_rate_and_the_slow_quarter_decides() {
        let mut drain = Drain::default();
        for (n, mib) in [150, 30, 150, 150, 150].into_iter().enumerate() {
            drain.add(&window(15 * (n as u64 + 1), mib));
        }
        let rate = drain.bytes_per_s(75_000).unwrap();
        assert!((rate - 10.0 * 1048576.0).abs() < 1.0, "{rate}");
        for n in 6..9 {
            drain.add(&window(15 * n, 30));
        }
        let rate = drain.bytes_per_s(135_000).unwrap();
        assert!((rate - 2.0 * 1048576.0).abs() < 1.0, "{rate}");
    }

    #[test]
    fn what_was_long_ago_fades() {
        let mut drain = Drain::default();
        for n in 1..=5 {
            drain.add(&window(15 * n, 15));
        }
        for n in 1..=5 {
            drain.add(&window(4 * 3600 + 15 * n, 150));
        }
        let rate = drain.bytes_per_s((4 * 3600 + 75) * 1000).unwrap();
        assert!((rate - 10.0 * 1048576.0).abs() < 1.0, "{rate}");
        // However long ago it was, there is an answer.
        assert!(drain.bytes_per_s(u64::MAX).is_some());
    }

    proptest! {
        #[test]
        fn the_answer_is_one_of_the_rates(rates in proptest::collection::vec((0u64..1 << 40, 1u64..1 << 40), 0..50), now in any::<u64>()) {
            let mut drain = Drain::default();
            for (end_ms, written_bytes) in &rates {
                drain.add(&Window { end_ms: *end_ms, written_bytes: *written_bytes, ..window(0, 0) });
            }
            let seen: Vec<f64> = rates.iter().map(|(_, bytes)| *bytes as f64 / 15.0).collect();
            match drain.bytes_per_s(now) {
                None => prop_assert!(rates.len() < WINDOWS_MIN),
                Some(rate) => prop_assert!(seen.iter().any(|seen| (seen - rate).abs() <= seen * 1e-9)),
            }
        }

        #[test]
        fn memory_is_bounded(n in 0u64..3000) {
            let mut drain = Drain::default();
            for end in 0..n {
                drain.add(&window(end, end));
            }
            prop_assert!(drain.windows() <= WINDOWS_KEPT);
        }
    }
}
