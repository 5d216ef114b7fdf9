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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Drop-in names in the order in which nfs-utils reads them.
    const ORDER: [&str; 20] = [
        "001.conf",
        "00.conf",
        "01.conf",
        "0.conf",
        "1.5.conf",
        "1.10.conf",
        "1.conf",
        "9.conf",
        "10.conf",
        "A.conf",
        "_.conf",
        "a b.conf",
        "a-b.conf",
        "a.b.conf",
        "a.conf",
        "a01.conf",
        "a1.conf",
        "a2.conf",
        "a10.conf",
        "é.conf",
    ];

    #[test]
    fn all_pairs() {
        for (i, a) in ORDER.iter().enumerate() {
            for (j, b) in ORDER.iter().enumerate() {
                let order = version_order(a.as_bytes(), b.as_bytes());
                assert_eq!(order, i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[cfg(target_env = "gnu")]
    fn strverscmp(a: &[u8], b: &[u8]) -> Ordering {
        use std::ffi::{c_char, c_int, CString};
        extern "C" {
            fn strverscmp(a: *const c_char, b: *const c_char) -> c_int;
        }
        let (a, b) = (CString::new(a).unwrap(), CString::new(b).unwrap());
        // SAFETY: both are strings with their end, alive during the call, which only reads them.
        unsafe { strverscmp(a.as_ptr(), b.as_ptr()) }.cmp(&0)
    }

    fn name() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            6 => Just(b'0'),
            3 => b'1'..=b'9',
            2 => prop::sample::select(b"a.-_ ".to_vec()),
            1 => 1..=255u8,
        ];
        prop::collection::vec(byte, 0..10)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[cfg(target_env = "gnu")]
        #[test]
        fn as_the_c_library((a, b) in (name(), name())) {
            prop_assert_eq!(version_order(&a, &b), strverscmp(&a, &b));
        }

        #[test]
        fn total((a, b, c) in (name(), name(), name())) {
            prop_assert_eq!(version_order(&a, &b), version_order(&b, &a).reverse());
            prop_assert_eq!(version_order(&a, &b).is_eq(), a == b);
            if version_order(&a, &b).is_le() && version_order(&b, &c).is_le() {
                prop_assert!(version_order(&a, &c).is_le());
            }
        }
    }
}
