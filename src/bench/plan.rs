//! What is measured, and in which order.

use std::time::Duration;

use crate::decimal::decimal;

/// More values than these are a typing error.
const MAX_VALUES: usize = 32;

/// `128..16384`: each the double of the one before, the end always there; or a list, `128,1024,4096`. Sorted, each once, all
/// within the bounds and multiples of `step`.
pub fn values(text: &str, least: u64, most: u64, step: u64) -> Result<Vec<u64>, String> {
    let number = |text: &str| {
        decimal(text.trim().as_bytes())
            .filter(|n| (least..=most).contains(n) && n % step == 0)
            .ok_or_else(|| {
                let of = if step > 1 {
                    format!(", a multiple of {step}")
                } else {
                    String::new()
                };
                format!("each is a whole number from {least} to {most}{of}")
            })
    };
    let mut values = match text.split_once("..") {
        Some((first, last)) => doubled(number(first)?, number(last)?),
        None => text.split(',').map(number).collect::<Result<_, _>>()?,
    };
    values.sort_unstable();
    values.dedup();
    match values.len() {
        0 | 1 => Err("two values at least are needed for an answer".to_owned()),
        2..=MAX_VALUES => Ok(values),
        _ => Err(format!("more than {MAX_VALUES} values")),
    }
}

/// Values that are no multiples of the first's step can only be the last one, which was checked.
fn doubled(first: u64, last: u64) -> Vec<u64> {
    let next = |value: &u64| value.checked_mul(2).filter(|double| *double < last && *double > 0);
    let mut values: Vec<u64> = std::iter::successors(Some(first).filter(|first| *first < last), next).collect();
    values.push(last);
    values
}

/// In random order: what drifts during a round (another user, a warming cache) must not look like an effect of the value.
/// `below(n)` is a random number below n.
pub fn shuffled<T: Clone>(values: &[T], mut below: impl FnMut(usize) -> usize) -> Vec<T> {
    let mut values = values.to_vec();
    for at in (1..values.len()).rev() {
        let other = below(at + 1).min(at);
        values.swap(at, other);
    }
    values
}

/// A shorter measurement is mostly its own beginning.
pub const SLOT_MIN: Duration = Duration::from_millis(200);

/// How long each of `measurements` may take. Err: the time that would be enough.
pub fn slot(time: Duration, measurements: usize) -> Result<Duration, Duration> {
    let measurements = u32::try_from(measurements).unwrap_or(u32::MAX).max(1);
    let slot = time / measurements;
    if slot < SLOT_MIN {
        return Err(SLOT_MIN.saturating_mul(measurements));
    }
    Ok(slot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_double_and_lists_are_sorted() {
        let kib = |text: &str| values(text, 4, 65536, 4);
        assert_eq!(
            kib("128..16384").unwrap(),
            [128, 256, 512, 1024, 2048, 4096, 8192, 16384]
        );
        assert_eq!(kib("128..15360").unwrap().last(), Some(&15360));
        assert_eq!(kib("4096, 128,128").unwrap(), [128, 4096]);
        assert_eq!(values("1..16", 1, 16, 1).unwrap(), [1, 2, 4, 8, 16]);
        for bad in [
            "",
            "128",
            "128,",
            "0..128",
            "130,256",
            "x",
            "-1,2",
            "128..99999999",
            "4096..4096",
        ] {
            assert!(kib(bad).is_err(), "{bad}");
        }
        assert_eq!(
            kib("16384..128").unwrap_err(),
            "two values at least are needed for an answer"
        );
        let many: Vec<String> = (1..40).map(|n| (4 * n).to_string()).collect();
        assert!(kib(&many.join(",")).is_err());
    }

    #[test]
    fn a_slot_is_a_share_or_what_would_be_enough() {
        assert_eq!(slot(Duration::from_secs(48), 48), Ok(Duration::from_secs(1)));
        assert_eq!(slot(Duration::from_secs(1), 48), Err(Duration::from_millis(9600)));
    }

    proptest! {
        #[test]
        fn shuffling_loses_nothing(values in prop::collection::vec(0u64..9, 0..20), random in prop::collection::vec(0usize..99, 20)) {
            let mut random = random.into_iter();
            let mut shuffled = shuffled(&values, |n| random.next().unwrap_or(0) % n);
            let mut values = values;
            shuffled.sort_unstable();
            values.sort_unstable();
            prop_assert_eq!(shuffled, values);
        }

        #[test]
        fn values_are_in_bounds(text in "[0-9.,]{0,12}") {
            if let Ok(values) = values(&text, 4, 65536, 4) {
                prop_assert!(values.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert!(values.iter().all(|value| (4..=65536).contains(value)));
            }
        }
    }
}
