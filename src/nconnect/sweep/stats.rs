//! Robust statistics: one wild value in a handful must not move the answer.

/// The middle value, or the mean of the two in the middle; None of nothing. Values are not NaN.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(match values.len() % 2 {
        1 => upper,
        _ => (values[middle - 1] + upper) / 2.0,
    })
}

/// How far apart two rates are, as the size of the logarithm of their ratio. A pass that moved nothing is as far away as
/// one byte a second: far, but a number.
pub fn log_distance(a: f64, b: f64) -> f64 {
    (a.max(1.0) / b.max(1.0)).ln().abs()
}

/// What turns the median of absolute deviations of normal values into their standard deviation.
pub const SIGMA_OF_MAD: f64 = 1.4826;

/// The standard error of a median of n normal values is this · σ / √n.
pub const ERROR_OF_MEDIAN: f64 = 1.2533;

/// Φ: how likely a standard normal value is below z. Within 1e-7 (Abramowitz and Stegun, 26.2.17).
pub fn normal_below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = [
        1.330_274_429,
        -1.821_255_978,
        1.781_477_937,
        -0.356_563_782,
        0.319_381_530,
    ];
    let tail = series.iter().fold(0.0, |sum, c| (sum + c) * t) * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    if z < 0.0 {
        tail
    } else {
        1.0 - tail
    }
}

/// As a number to calculate with. Counts here are far below what an f64 holds exactly.
pub fn count(n: usize) -> f64 {
    u32::try_from(n).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middle() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn normal() {
        for (z, below) in [
            (0.0, 0.5),
            (1.0, 0.841_344_75),
            (-1.0, 0.158_655_25),
            (1.96, 0.975_002_1),
            (-40.0, 0.0),
        ] {
            assert!((normal_below(z) - below).abs() < 1e-7, "{z}");
        }
    }
}
