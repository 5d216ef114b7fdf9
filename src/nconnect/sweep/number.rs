//! Numbers as benchmarks print them.

/// Digits, perhaps with a fraction; never a sign, an exponent, infinity or NaN. Bounded, so that sums and products of a few
/// of them stay finite.
pub fn rate(text: &str) -> Option<f64> {
    let is_plain =
        text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value: f64 = text.parse().ok()?;
    (is_plain && value <= 1e15).then_some(value)
}

/// A size that a record, a file or a setting can have.
pub fn size(text: &str) -> Option<u64> {
    crate::decimal::decimal(text.as_bytes()).filter(|n| *n <= 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_only() {
        assert_eq!(rate("1085"), Some(1085.0));
        assert_eq!(rate("0.25"), Some(0.25));
        for text in [
            "",
            ".",
            ".5",
            "-1",
            "+1",
            "1e9",
            "inf",
            "NaN",
            "1.2.3",
            "1_0",
            "99999999999999999999",
        ] {
            assert_eq!(rate(text), None, "{text}");
        }
        assert_eq!(size("16384"), Some(16384));
        assert_eq!(size("99999999999999999999"), None);
        assert_eq!(size("1k"), None);
    }
}
