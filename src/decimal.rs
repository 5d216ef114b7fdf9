//! Numbers in kernel files and in the configuration: whole, unsigned, base ten, or not a number.

/// Digits and nothing else; None as well where 64 bits do not hold them.
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |n, b| {
        let digit = b.checked_sub(b'0').filter(|d| *d <= 9)?;
        n.checked_mul(10)?.checked_add(u64::from(digit))
    })
}
