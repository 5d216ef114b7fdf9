//! Integers and floats into each other, in one place.

/// Counters here are far below 2^53, where this begins to round.
#[allow(clippy::cast_precision_loss)]
pub fn float(n: u64) -> f64 {
    n as f64
}

/// The whole part. NaN and what is negative become 0, what is too large the largest.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn whole(n: f64) -> u64 {
    n as u64
}
