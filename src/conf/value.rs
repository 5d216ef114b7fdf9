//! One readahead value as the configuration spells it.

use std::fmt;

use crate::decimal::decimal;

/// What an admin can ask for. Units are KiB, as in `read_ahead_kb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// 0 (off), or one page to 64 MiB.
    Kib(u64),
    /// A whole multiple of the mount's rsize; kernels before 5.4 had 15 × rsize built in (fs/nfs/super.c).
    TimesRsize(u64),
    /// The model in [`crate::readahead::auto`].
    Auto,
    /// Hands off: whatever the device has.
    Leave,
}

/// The largest value anybody may configure. A window is allocated and sent for at once (kernel: mm/readahead.c), and
/// nothing in the kernel stops 16 TiB.
pub const MAX_KIB: u64 = 64 << 10;

/// The smallest page of any Linux; below it a value would become 0, readahead off (kernel: mm/backing-dev.c
/// `read_ahead_kb_store` rounds down to pages).
pub const MIN_KIB: u64 = 4;

/// The largest factor of `N*rsize`.
pub const MAX_FACTOR: u64 = 1024;

impl Value {
    /// Err: what is wrong, for people, without the text itself.
    pub fn parse(text: &[u8]) -> Result<Value, &'static str> {
        let text = text.trim_ascii();
        if text.eq_ignore_ascii_case(b"auto") {
            return Ok(Value::Auto);
        }
        if text.eq_ignore_ascii_case(b"leave") {
            return Ok(Value::Leave);
        }
        if let Some(factor) = times_rsize(text) {
            return match decimal(factor.trim_ascii()) {
                Some(n @ 1..=MAX_FACTOR) => Ok(Value::TimesRsize(n)),
                _ => Err("the factor of rsize must be a whole number from 1 to 1024"),
            };
        }
        let (digits, unit_kib) = match text.split_last() {
            Some((b'K' | b'k', digits)) => (digits, 1),
            Some((b'M' | b'm', digits)) => (digits, 1024),
            _ => (text, 1),
        };
        match decimal(digits).map(|n| n.checked_mul(unit_kib)) {
            Some(Some(kib @ (0 | MIN_KIB..=MAX_KIB))) => Ok(Value::Kib(kib)),
            Some(_) => Err("must be 0, or 4 KiB to 64 MiB"),
            None => Err("must be a whole number of KiB, such as 15360, 16384K or 15M, or N*rsize, auto or leave"),
        }
    }
}

/// The part before `*rsize`, blanks allowed round the star.
fn times_rsize(text: &[u8]) -> Option<&[u8]> {
    let (head, tail) = text.split_at_checked(text.len().checked_sub(b"rsize".len())?)?;
    if !tail.eq_ignore_ascii_case(b"rsize") {
        return None;
    }
    head.trim_ascii_end().strip_suffix(b"*")
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Kib(kib) => write!(f, "{kib}"),
            Value::TimesRsize(n) => write!(f, "{n}*rsize"),
            Value::Auto => f.write_str("auto"),
            Value::Leave => f.write_str("leave"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_the_man_page() {
        for (text, value) in [
            ("15360", Value::Kib(15360)),
            ("15M", Value::Kib(15360)),
            ("16384K", Value::Kib(16384)),
            ("1m", Value::Kib(1024)),
            ("64M", Value::Kib(65536)),
            ("010", Value::Kib(10)),
            ("0", Value::Kib(0)),
            (" 9 ", Value::Kib(9)),
            ("15*rsize", Value::TimesRsize(15)),
            ("15 * RSIZE", Value::TimesRsize(15)),
            ("Auto", Value::Auto),
            ("leave", Value::Leave),
        ] {
            assert_eq!(Value::parse(text.as_bytes()), Ok(value), "{text}");
        }
    }

    /// Peer defect 6: each of these made nfs-utils' program switch readahead off, or set another number in silence.
    #[test]
    fn everything_else_is_refused() {
        for text in [
            "abc",
            "0x400",
            "4294967296",
            "-5",
            "99999999999",
            "12 34",
            "-1",
            "4294967295",
            "100000000000000000000",
            "1e3",
            "3.9",
            "+7",
            "12abc",
            "",
            "K",
            "M",
            "1",
            "3",
            "65537",
            "65M",
            "18446744073709551615M",
            "*rsize",
            "0*rsize",
            "1025*rsize",
            "x*rsize",
            "15rsize",
            "rsize",
            "15*wsize",
            "1G",
            "15MiB",
            "auto 3",
            "-1*rsize",
        ] {
            assert!(Value::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
