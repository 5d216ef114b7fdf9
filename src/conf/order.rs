//! The order of drop-in files: versionsort(3), which scandir of nfs-utils uses, so that both read a folder the same way.

use std::cmp::Ordering;

/// Compares two file names as strverscmp(3) of the GNU C library does: by bytes, but a longer number is greater, and
/// leading zeros make a fraction, which sorts first. `9` comes before `10`, and `010` before both.
pub fn version_order(a: &[u8], b: &[u8]) -> Ordering {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[common..], &b[common..]);
    // The end of a name counts as a zero byte.
    let next_a = rest_a.first().copied().unwrap_or(0);
    let next_b = rest_b.first().copied().unwrap_or(0);
    let by_byte = next_a.cmp(&next_b);
    let by_number = || digits(rest_a).cmp(&digits(rest_b)).then(by_byte);

    let before = &a[..common];
    let number = &before[before.len() - digits_at_end(before)..];
    match number {
        [] => match (next_a, next_b) {
            (b'1'..=b'9', b'1'..=b'9') => by_number(),
            _ => by_byte,
        },
        [b'0', ..] if number.iter().all(|&b| b == b'0') => match (next_a.is_ascii_digit(), next_b.is_ascii_digit()) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => by_byte,
        },
        [b'0', ..] => by_byte,
        _ => by_number(),
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

fn digits_at_end(text: &[u8]) -> usize {
    text.iter().rev().take_while(|b| b.is_ascii_digit()).count()
}
