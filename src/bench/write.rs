//! How long a writer waits: the time of each step of a file, of each write(), of the final fsync() and close().
//!
//! A file that fits into the page cache is written at memory speed, and waits at its end. One that does not waits in the
//! middle, for as long as the server takes to drain what is above the kernel's limit.

use crate::float::float;
use crate::nconnect::sweep::stats::median;

/// One write(2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// Since the first one began.
    pub start_s: f64,
    pub took_s: f64,
    pub bytes: u64,
}

/// A file written from its beginning, once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pass {
    pub calls: Vec<Call>,
    /// None: it did not come to it.
    pub fsync_s: Option<f64>,
    pub close_s: Option<f64>,
}

/// What a pass comes to. None: not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    pub bytes: u64,
    /// With fsync() and close().
    pub total_s: f64,
    pub bytes_per_s: Option<f64>,
    pub worst_step_s: Option<f64>,
    pub longest_write_s: Option<f64>,
    pub fsync_s: Option<f64>,
    pub close_s: Option<f64>,
}

/// The seconds that each step took: step n ends with the write() that reaches n · `step_bytes`. A part of a step at the end
/// counts only if it is all there is after the last whole one and the pass was not cut short.
pub fn steps(calls: &[Call], step_bytes: u64) -> Vec<f64> {
    let step_bytes = step_bytes.max(1);
    let mut steps = Vec::new();
    let (mut written, mut began_s) = (0u64, 0.0);
    for call in calls {
        let before = written / step_bytes;
        written = written.saturating_add(call.bytes);
        if written / step_bytes > before {
            let end_s = call.start_s + call.took_s;
            steps.push(end_s - began_s);
            began_s = end_s;
        }
    }
    steps
}

/// Adds a pass up.
pub fn figures(pass: &Pass, step_bytes: u64) -> Figures {
    let bytes = pass.calls.iter().fold(0u64, |sum, call| sum.saturating_add(call.bytes));
    let written_s = pass.calls.last().map_or(0.0, |last| last.start_s + last.took_s);
    let total_s = written_s + pass.fsync_s.unwrap_or(0.0) + pass.close_s.unwrap_or(0.0);
    Figures {
        bytes,
        total_s,
        // Without the fsync() it would be the speed of memory.
        bytes_per_s: pass.fsync_s.filter(|_| total_s > 0.0).map(|_| float(bytes) / total_s),
        worst_step_s: steps(&pass.calls, step_bytes).into_iter().reduce(f64::max),
        longest_write_s: pass.calls.iter().map(|call| call.took_s).reduce(f64::max),
        fsync_s: pass.fsync_s,
        close_s: pass.close_s,
    }
}

/// Each figure the middle of all passes that have it.
pub fn middle(all: &[Figures]) -> Figures {
    let of = |figure: fn(&Figures) -> Option<f64>| median(all.iter().filter_map(figure));
    Figures {
        bytes: all.iter().map(|figures| figures.bytes).max().unwrap_or(0),
        total_s: of(|f| Some(f.total_s)).unwrap_or(0.0),
        bytes_per_s: of(|f| f.bytes_per_s),
        worst_step_s: of(|f| f.worst_step_s),
        longest_write_s: of(|f| f.longest_write_s),
        fsync_s: of(|f| f.fsync_s),
        close_s: of(|f| f.close_s),
    }
}

/// The limited passes as parts of the stock ones.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Comparison {
    pub longest_write: Option<f64>,
    pub worst_step: Option<f64>,
    pub throughput: Option<f64>,
}

pub fn compare(stock: &[Figures], limited: &[Figures]) -> Comparison {
    let (stock, limited) = (middle(stock), middle(limited));
    let ratio = |figure: fn(&Figures) -> Option<f64>| {
        let (stock, limited) = (figure(&stock)?, figure(&limited)?);
        (stock > 0.0).then(|| limited / stock)
    };
    Comparison {
        longest_write: ratio(|f| f.longest_write_s),
        worst_step: ratio(|f| f.worst_step_s),
        throughput: ratio(|f| f.bytes_per_s),
    }
}

/// The longest wait that begins in each of `bins` equal parts of the time, for a picture that does not grow with the file.
pub fn timeline(calls: &[Call], end_s: f64, bins: usize) -> Vec<f64> {
    let mut longest = vec![0.0f64; bins];
    for call in calls.iter().filter(|_| end_s > 0.0) {
        let at = crate::float::whole(call.start_s / end_s * float(bins as u64));
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(bins.saturating_sub(1));
        if let Some(bin) = longest.get_mut(at) {
            *bin = bin.max(call.took_s);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn calls(took: &[f64]) -> Vec<Call> {
        let mut start_s = 0.0;
        let each = |took_s: &f64| {
            let call = Call {
                start_s,
                took_s: *took_s,
                bytes: 10,
            };
            start_s += took_s;
            call
        };
        took.iter().map(each).collect()
    }

    #[test]
    fn the_worst_step_and_the_longest_write() {
        let pass = Pass {
            calls: calls(&[1.0, 1.0, 5.0, 1.0, 2.0, 2.0]),
            fsync_s: Some(3.0),
            close_s: Some(0.5),
        };
        assert_eq!(steps(&pass.calls, 20), [2.0, 6.0, 4.0]);
        let figures = figures(&pass, 20);
        assert_eq!((figures.worst_step_s, figures.longest_write_s), (Some(6.0), Some(5.0)));
        assert_eq!((figures.bytes, figures.total_s), (60, 15.5));
        assert_eq!(figures.bytes_per_s, Some(60.0 / 15.5));
    }

    #[test]
    fn what_did_not_happen_is_unknown() {
        let cut = Pass {
            calls: calls(&[1.0, 1.0, 9.0]),
            ..Pass::default()
        };
        let figures = figures(&cut, 20);
        // The step that was not finished does not count, its long write() does.
        assert_eq!((figures.worst_step_s, figures.longest_write_s), (Some(2.0), Some(9.0)));
        assert_eq!(figures.bytes_per_s, None);
        assert_eq!(self::figures(&Pass::default(), 20), Figures::default());
    }

    #[test]
    fn the_middle_against_the_middle() {
        let with = |longest: f64, rate: f64| Figures {
            longest_write_s: Some(longest),
            bytes_per_s: Some(rate),
            ..Figures::default()
        };
        let stock = [with(4.7, 10.8), with(90.0, 10.6), with(4.6, 10.7)];
        let limited = [with(2.1, 10.1), with(2.0, 10.0), with(2.2, 10.2)];
        let ratio = compare(&stock, &limited);
        assert!((ratio.longest_write.unwrap() - 2.1 / 4.7).abs() < 1e-9);
        assert!((ratio.throughput.unwrap() - 10.1 / 10.7).abs() < 1e-9);
        assert_eq!((ratio.worst_step, compare(&stock, &[]).throughput), (None, None));
    }

    #[test]
    fn a_timeline_keeps_the_longest_wait() {
        let calls = calls(&[0.1, 0.1, 7.8, 1.0, 1.0]);
        assert_eq!(timeline(&calls, 10.0, 5), [7.8, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(timeline(&calls, 0.0, 2), [0.0, 0.0]);
        assert_eq!(timeline(&calls, 10.0, 0), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn steps_add_up_to_no_more_than_all(took in prop::collection::vec(0.0..9.0f64, 0..50), step in 0u64..200) {
            let calls = calls(&took);
            let steps = steps(&calls, step);
            prop_assert!(steps.iter().sum::<f64>() <= took.iter().sum::<f64>() + 1e-9);
            let longest = timeline(&calls, took.iter().sum(), 7).into_iter().fold(0.0, f64::max);
            prop_assert!((longest - took.iter().copied().fold(0.0, f64::max)).abs() < 1e-9);
        }
    }
}
