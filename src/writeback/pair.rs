//! The machine's own limit, vm.dirty_bytes and vm.dirty_background_bytes: for kernels without a limit per device.

use std::fmt;

use crate::float::{float, whole};

/// What the pair depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inputs {
    /// What all servers together take in the target time.
    pub in_time_bytes: f64,
    pub memory_bytes: u64,
    pub threshold_bytes: u64,
    /// Local disks write more than a fifth of what is written.
    pub disks_write: bool,
}

/// What is written: both halves, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    pub dirty_bytes: u64,
    pub background_bytes: u64,
}

/// Why there is nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    NothingToGain,
    NoThreshold,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Skip::NothingToGain => "the limit is no more than what the servers take in time",
            Skip::NoThreshold => "the kernel's dirty threshold is 0",
        })
    }
}

/// Below this a limit of the whole machine costs throughput.
const FLOOR_BYTES: f64 = 64.0 * 1048576.0;
/// Local disks need more: they seek.
const FLOOR_WITH_DISKS_BYTES: f64 = 256.0 * 1048576.0;
/// Shares of memory: the floor of a small machine, and the ceiling.
const FLOOR_SHARE: f64 = 0.05;
const CEILING_SHARE: f64 = 0.1;
/// Nothing to gain from here on, as a share of the machine's threshold.
const ENOUGH: f64 = 0.6;

/// The pair for a machine.
pub fn pair(inputs: &Inputs) -> Result<Pair, Skip> {
    if inputs.threshold_bytes == 0 {
        return Err(Skip::NoThreshold);
    }
    let memory = float(inputs.memory_bytes);
    let floor = if inputs.disks_write {
        FLOOR_WITH_DISKS_BYTES
    } else {
        FLOOR_BYTES.min(memory * FLOOR_SHARE)
    };
    let want = inputs.in_time_bytes.max(floor);
    // Also never a limit above the present one: it would be raised.
    if want >= ENOUGH * float(inputs.threshold_bytes) {
        return Err(Skip::NothingToGain);
    }
    Ok(Pair::of(whole(want.min(memory * CEILING_SHARE))))
}

impl Pair {
    /// Background is half, so that flushing starts long before writers are held.
    pub fn of(dirty_bytes: u64) -> Pair {
        Pair {
            dirty_bytes,
            background_bytes: dirty_bytes / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn inputs() -> Inputs {
        Inputs {
            in_time_bytes: 2.5e9,
            memory_bytes: 256 << 30,
            threshold_bytes: 76 << 30,
            disks_write: false,
        }
    }

    #[test]
    fn a_large_host_with_a_server_of_500_mb_a_second() {
        let pair = pair(&inputs()).unwrap();
        assert_eq!(pair.dirty_bytes, 2_500_000_000);
        assert_eq!(pair.background_bytes, 1_250_000_000);
    }

    #[test]
    fn floors_and_ceilings() {
        let slow = Inputs {
            in_time_bytes: 1e6,
            ..inputs()
        };
        assert_eq!(pair(&slow).unwrap().dirty_bytes, 64 * MIB);
        let with_disks = Inputs {
            disks_write: true,
            ..slow
        };
        assert_eq!(pair(&with_disks).unwrap().dirty_bytes, 256 * MIB);
        let small = Inputs {
            memory_bytes: 500 * MIB,
            threshold_bytes: 77 * MIB,
            ..slow
        };
        assert_eq!(pair(&small).unwrap().dirty_bytes, 25 * MIB);
        let fast = Inputs {
            in_time_bytes: 40e9,
            ..inputs()
        };
        assert_eq!(pair(&fast).unwrap().dirty_bytes, whole(256.0 * 1073741824.0 / 10.0));
    }

    #[test]
    fn a_limit_is_never_raised() {
        let low = Inputs {
            threshold_bytes: 3 << 30,
            ..inputs()
        };
        assert_eq!(pair(&low), Err(Skip::NothingToGain));
        let small_with_disks = Inputs {
            memory_bytes: 500 * MIB,
            threshold_bytes: 77 * MIB,
            disks_write: true,
            ..inputs()
        };
        assert_eq!(pair(&small_with_disks), Err(Skip::NothingToGain));
        assert_eq!(
            pair(&Inputs {
                threshold_bytes: 0,
                ..inputs()
            }),
            Err(Skip::NoThreshold)
        );
    }
}
