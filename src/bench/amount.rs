//! Sizes, times and what both may add up to, as people type them.

use std::time::Duration;

use crate::decimal::decimal;
use crate::float::float;

/// Bytes: `4096`, `64K`, `1M`, `4G`; units are powers of 1024.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.as_bytes();
    let (digits, unit) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 1 << 10),
        (b'M' | b'm', digits) => (digits, 1 << 20),
        (b'G' | b'g', digits) => (digits, 1 << 30),
        (b'T' | b't', digits) => (digits, 1 << 40),
        _ => (text, 1),
    };
    decimal(digits)?.checked_mul(unit).filter(|bytes| *bytes <= 1 << 50)
}

/// Whole seconds, minutes or hours: `90`, `60s`, `2m`, `1h`; at least a second, at most a day.
pub fn time(text: &str) -> Option<Duration> {
    let text = text.as_bytes();
    let (digits, unit_s) = match text.split_last()? {
        (b's', digits) => (digits, 1),
        (b'm', digits) => (digits, 60),
        (b'h', digits) => (digits, 3600),
        _ => (text, 1),
    };
    let seconds = decimal(digits)?.checked_mul(unit_s)?;
    (1..=86_400).contains(&seconds).then(|| Duration::from_secs(seconds))
}

/// What a measurement may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub time: Duration,
    /// Over the wire, in both directions together. None: as much as fits into the time.
    pub bytes: Option<u64>,
}

impl Budget {
    /// `60s` or `60s,4G`.
    pub fn parse(text: &str) -> Option<Budget> {
        let (time, bytes) = match text.split_once(',') {
            Some((time, bytes)) => (time, Some(self::bytes(bytes).filter(|bytes| *bytes > 0)?)),
            None => (text, None),
        };
        Some(Budget {
            time: self::time(time)?,
            bytes,
        })
    }
}

/// For people: three digits or so, powers of 1024.
pub fn shown_bytes(bytes: u64) -> String {
    let mut value = float(bytes);
    let mut unit = "bytes";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if value.fract() == 0.0 || value >= 100.0 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// For people.
pub fn shown_rate(bytes_per_s: f64) -> String {
    let mib = bytes_per_s / 1_048_576.0;
    if mib < 10.0 {
        format!("{mib:.1} MiB/s")
    } else {
        format!("{mib:.0} MiB/s")
    }
}

/// For people: `85 ms`, `4.71 s`.
pub fn shown_seconds(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else if seconds < 100.0 {
        format!("{seconds:.2} s")
    } else {
        format!("{seconds:.0} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type() {
        assert_eq!(bytes("4096"), Some(4096));
        assert_eq!(bytes("64k"), Some(65536));
        assert_eq!(bytes("2G"), Some(2 << 30));
        for bad in ["", "K", "-1", "1.5G", "1 G", "9999999999999G", "0x10"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
        assert_eq!(time("2m"), Some(Duration::from_secs(120)));
        for bad in ["", "0", "0s", "25h", "1d", "s", "1.5s", "99999999999999999999s"] {
            assert_eq!(time(bad), None, "{bad}");
        }
        let budget = Budget::parse("60s,4G").unwrap();
        assert_eq!((budget.time.as_secs(), budget.bytes), (60, Some(4 << 30)));
        assert_eq!(Budget::parse("60").unwrap().bytes, None);
        for bad in ["60s,", "60s,0", ",4G", "4G,60s"] {
            assert_eq!(Budget::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_people_read() {
        assert_eq!(shown_bytes(0), "0 bytes");
        assert_eq!(shown_bytes(1 << 20), "1 MiB");
        assert_eq!(shown_bytes(1_600_000), "1.5 MiB");
        assert_eq!(shown_bytes(u64::MAX), "16777216 TiB");
        assert_eq!(shown_rate(5.0 * 1_048_576.0), "5.0 MiB/s");
        assert_eq!(shown_seconds(0.0854), "85 ms");
        assert_eq!(shown_seconds(4.713), "4.71 s");
    }
}
