//! The limit of one device: as much dirty data as the server takes in the target time.
//! (kernel: mm/page-writeback.c `balance_dirty_pages`, `domain_dirty_freerun`, `wb_position_ratio`)

use std::fmt;

use crate::float::{float, whole};

/// What the limit depends on. Bytes, bytes per second, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inputs {
    /// What the server takes.
    pub drain_bytes_per_s: f64,
    /// How long flushing all of it may take.
    pub target_s: f64,
    pub wsize_bytes: u64,
    pub connections: u64,
    /// A WRITE at low load; 0 where unknown.
    pub rtt_s: f64,
    /// What the device has written since it was made. None: not known.
    pub written_bytes: Option<u64>,
    pub memory_bytes: u64,
    /// The machine's limits of this moment: /proc/vmstat `nr_dirty_threshold` and `nr_dirty_background_threshold`.
    pub threshold_bytes: u64,
    pub background_bytes: u64,
    /// The kernel lets the first writers of an idle device wait (before 6.14): it needs a floor too.
    pub needs_floor: bool,
}

/// The limit, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Dirty data that the device shall hold.
    pub want_bytes: u64,
    /// `max_ratio_fine` and `min_ratio_fine`, parts per million of the machine's threshold.
    pub max_ppm: u64,
    pub min_ppm: u64,
    /// Less than it will be once the device has written for a while.
    pub is_of_new: bool,
}

/// Why there is no limit to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// The machine's own limit is about what this device needs.
    NothingToGain,
    /// A limit that a machine of this memory can have would hold fewer than four WRITEs.
    TooSmall,
    /// The kernel's threshold is 0 (vm.dirty_ratio=0): nothing can be computed from it, and writing a limit would divide by it.
    NoThreshold,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Skip::NothingToGain => "the machine's own limit is no more than what this server takes in time",
            Skip::TooSmall => "a limit that fits into this memory would hold fewer than four WRITEs",
            Skip::NoThreshold => "the kernel's dirty threshold is 0",
        })
    }
}

/// Parts per million: `BDI_RATIO_SCALE` × 100.
pub const WHOLE_PPM: u64 = 1_000_000;
/// Of the amount that is wanted: a limit below 16 MiB costs throughput everywhere.
pub const FLOOR_BYTES: u64 = 12 << 20;
/// WRITEs that have to fit.
const WRITES_MIN: u64 = 4;
/// Of memory.
const MEMORY_SHARE: f64 = 0.05;
/// Nothing to gain from here on, as a share of the machine's threshold.
const ENOUGH: f64 = 0.6;

/// The limit for a device.
pub fn limit(inputs: &Inputs) -> Result<Limit, Skip> {
    let threshold = float(inputs.threshold_bytes);
    if inputs.threshold_bytes == 0 {
        return Err(Skip::NoThreshold);
    }
    let in_time = inputs.drain_bytes_per_s * inputs.target_s;
    if in_time >= ENOUGH * threshold {
        return Err(Skip::NothingToGain);
    }
    let four_writes = float(WRITES_MIN.saturating_mul(inputs.wsize_bytes));
    let lowest = float(FLOOR_BYTES)
        .max(chunks(inputs.target_s) * chunk_bytes(inputs.drain_bytes_per_s))
        .max(four_writes * float(inputs.connections.max(1)))
        .max(2.0 * inputs.drain_bytes_per_s * inputs.rtt_s);
    let highest = (MEMORY_SHARE * float(inputs.memory_bytes)).min(threshold / 2.0);
    // Where the floor is above the ceiling, the ceiling holds: it protects the machine.
    let want = in_time.max(lowest).min(highest);
    if want < four_writes {
        return Err(Skip::TooSmall);
    }
    let limit = fixed(whole(want), inputs)?;
    match is_in_one_chunk(&limit, inputs) {
        true => fixed(whole((want * NEW_SHARE).max(four_writes)), inputs).map(|limit| Limit {
            is_of_new: true,
            ..limit
        }),
        false => Ok(limit),
    }
}

/// The kernel takes a new device for one of 100 MiB/s (mm/page-writeback.c `INIT_BW`) and unlearns it while it writes. Until then a
/// chunk is 52 MiB: all that a smaller limit holds goes out at once, the writer is held until the last of it is committed, and
/// waits for as long as the whole limit takes. So a new device of a slow server begins with less.
fn is_in_one_chunk(limit: &Limit, inputs: &Inputs) -> bool {
    let is_new = inputs
        .written_bytes
        .is_some_and(|bytes| float(bytes) < NEW_S * inputs.drain_bytes_per_s);
    let max_bytes = float(limit.max_ppm) / float(WHOLE_PPM) * float(inputs.threshold_bytes);
    is_new && max_bytes < chunk_bytes(INIT_BYTES_PER_S)
}

const INIT_BYTES_PER_S: f64 = 100.0 * 1048576.0;
/// So many seconds of writing. Measured over 100 Mbit/s, Linux 6.12, a client with 512 MB and a first writer of 512 MiB: 12 MiB for
/// 15 s and then 32 MiB let its longest write() be 0.9 to 1.3 s at 0.96 of the rate, 32 MiB from the beginning 1.0 to 1.6 s.
const NEW_S: f64 = 15.0;
const NEW_SHARE: f64 = 0.375;

/// What is under writeback goes out, and is committed, in chunks (fs/fs-writeback.c `writeback_chunk_size`: half a second of the
/// device's rate and 4 MiB, in whole 4 MiB; fs/nfs/write.c `nfs_writepages` commits each). The writer waits for whole chunks unless
/// the room between where it is slowed down and where it is held, a quarter of the limit, takes one in: so three chunks and a third.
/// Measured over 100 Mbit/s, Linux 6.12, on a device that the kernel knows by then: a limit of 32 MiB lets the longest write() be
/// 0.23 s at full rate, 24 MiB 0.42 s, 16 MiB 1.0 s at 0.9 of it.
fn chunk_bytes(drain_bytes_per_s: f64) -> f64 {
    ((drain_bytes_per_s / 2.0 + CHUNK_BYTES) / CHUNK_BYTES).floor() * CHUNK_BYTES
}

const CHUNK_BYTES: f64 = 4.0 * 1048576.0;
/// Of the amount that is wanted, which is three quarters of the limit. Whoever asks for a shorter time than the usual one gets half:
/// a new mount's first writer then waits half as long, at 0.9 to 0.96 of the rate.
fn chunks(target_s: f64) -> f64 {
    if target_s < USUAL_TARGET_S {
        1.5
    } else {
        3.0
    }
}

/// `drain-target`, if nothing is said.
const USUAL_TARGET_S: f64 = 2.0;

/// The limit for a given amount, as an admin's `dirty-limit`.
pub fn fixed(want_bytes: u64, inputs: &Inputs) -> Result<Limit, Skip> {
    if inputs.threshold_bytes == 0 {
        return Err(Skip::NoThreshold);
    }
    let threshold = float(inputs.threshold_bytes);
    // The kernel halves a background at or above the limit (domain_dirty_limits). Writers run free up to the middle of both.
    let background = (float(inputs.background_bytes) / threshold).min(0.5);
    let max = float(want_bytes) * 2.0 / (1.0 + background);
    let ppm = max * float(WHOLE_PPM) / threshold;
    if ppm >= float(WHOLE_PPM) {
        return Err(Skip::NothingToGain);
    }
    let max_ppm = whole(ppm).max(1);
    Ok(Limit {
        want_bytes,
        max_ppm,
        min_ppm: if inputs.needs_floor { max_ppm / 4 } else { 0 },
        is_of_new: false,
    })
}

/// Since Linux 6.14 an idle device needs no floor (mm/page-writeback.c `__wb_calc_thresh`). Of an unknown kernel: it may.
pub fn needs_floor(kernel: Option<(u64, u64)>) -> bool {
    kernel.is_none_or(|kernel| kernel < (6, 14))
}

/// Is the difference worth a write? Below 25 % it is not.
pub fn is_worth_a_change(old_ppm: u64, new_ppm: u64) -> bool {
    old_ppm.abs_diff(new_ppm).saturating_mul(4) > old_ppm
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    /// 256 GiB, 1.1 GB/s.
    fn large() -> Inputs {
        Inputs {
            drain_bytes_per_s: 1.1e9,
            target_s: 2.0,
            wsize_bytes: MIB,
            connections: 1,
            rtt_s: 0.001,
            written_bytes: None,
            memory_bytes: 256 * GIB,
            threshold_bytes: 48 * GIB,
            background_bytes: 24 * GIB,
            needs_floor: true,
        }
    }

    /// The 2005 report: 256 MB, 100 Mbit/s.
    fn small() -> Inputs {
        Inputs {
            drain_bytes_per_s: 7e6,
            memory_bytes: 256 * MIB,
            threshold_bytes: 40 * MIB,
            background_bytes: 20 * MIB,
            ..large()
        }
    }

    #[test]
    fn two_seconds_of_a_fast_server() {
        let limit = limit(&large()).unwrap();
        assert_eq!(limit.want_bytes, 2_200_000_000);
        // want / 0.75 of 48 GiB
        assert_eq!(limit.max_ppm, 56_914);
        assert_eq!(limit.min_ppm, 14_228);
        assert_eq!(
            limit_of(Inputs {
                needs_floor: false,
                ..large()
            })
            .min_ppm,
            0
        );
    }

    fn limit_of(inputs: Inputs) -> Limit {
        limit(&inputs).unwrap()
    }

    #[test]
    fn three_chunks_fit() {
        // 11 MB/s: chunks of 8 MiB, and more than two seconds of it.
        let slow = Inputs {
            drain_bytes_per_s: 11e6,
            ..large()
        };
        assert_eq!(limit_of(slow).want_bytes, 24 * MIB);
        // 100 MB/s: 48 MiB a chunk, two seconds are more.
        assert_eq!(
            limit_of(Inputs {
                drain_bytes_per_s: 100e6,
                ..slow
            })
            .want_bytes,
            200_000_000
        );
        assert_eq!(
            limit_of(Inputs {
                drain_bytes_per_s: 100e6,
                target_s: 0.2,
                ..slow
            })
            .want_bytes,
            72 * MIB
        );
    }

    #[test]
    fn a_new_device_of_a_slow_server_begins_with_less() {
        let slow = |written_bytes| {
            limit_of(Inputs {
                drain_bytes_per_s: 11e6,
                written_bytes,
                ..large()
            })
        };
        assert_eq!(slow(None).want_bytes, 24 * MIB);
        assert_eq!(slow(Some(164_999_999)).want_bytes, 9 * MIB);
        assert_eq!(slow(Some(165_000_000)).want_bytes, 24 * MIB);
        // 39 MiB wanted are a limit of 52.
        for (want_mib, of_new_mib) in [(38.0, 14.25), (39.1, 39.1)] {
            let inputs = Inputs {
                drain_bytes_per_s: want_mib * 1048576.0 / 2.0,
                written_bytes: Some(0),
                ..large()
            };
            assert_eq!(limit_of(inputs).want_bytes, whole(of_new_mib * 1048576.0));
        }
    }

    #[test]
    fn a_small_machine_gets_a_limit_too() {
        // 13.4 MiB are wanted, 5 % of memory hold.
        assert_eq!(limit_of(small()).want_bytes, 256 * MIB / 20);
        assert_eq!(
            limit(&Inputs {
                wsize_bytes: 4 * MIB,
                ..small()
            }),
            Err(Skip::TooSmall)
        );
    }

    #[test]
    fn nothing_to_gain_is_nothing_to_do() {
        let edge = Inputs {
            threshold_bytes: 4_000_000_000,
            background_bytes: 2_000_000_000,
            ..large()
        };
        assert!(limit(&Inputs {
            drain_bytes_per_s: 1.199e9,
            ..edge
        })
        .is_ok());
        assert_eq!(
            limit(&Inputs {
                drain_bytes_per_s: 1.2e9,
                ..edge
            }),
            Err(Skip::NothingToGain)
        );
        assert_eq!(
            limit(&Inputs {
                threshold_bytes: 0,
                ..large()
            }),
            Err(Skip::NoThreshold)
        );
    }

    #[test]
    fn an_admins_amount_is_taken_as_it_is() {
        let limit = fixed(64 * MIB, &small());
        assert_eq!(limit, Err(Skip::NothingToGain));
        assert_eq!(fixed(6 * MIB, &small()).unwrap().max_ppm, 200_000);
    }

    #[test]
    fn a_quarter_is_worth_a_write() {
        assert!(!is_worth_a_change(100_000, 125_000));
        assert!(is_worth_a_change(100_000, 125_001));
        assert!(is_worth_a_change(100_000, 74_999));
        assert!(is_worth_a_change(0, 1));
    }

    proptest! {
        #[test]
        fn a_limit_stays_inside_its_bounds(
            drain in 0.0..1e11f64, target in 0.2..30.0f64, wsize in 1u64 << 12..1 << 22, connections in 0u64..17,
            rtt in 0.0..2.0f64, written in proptest::option::of(0u64..1 << 40), memory in 1u64 << 26..1 << 42, share in 0u64..100, background in 0u64..150,
        ) {
            let threshold = memory / 100 * share;
            let inputs = Inputs {
                drain_bytes_per_s: drain, target_s: target, wsize_bytes: wsize, connections, rtt_s: rtt, written_bytes: written,
                memory_bytes: memory, threshold_bytes: threshold, background_bytes: threshold / 100 * background, needs_floor: true,
            };
            if let Ok(limit) = limit(&inputs) {
                prop_assert!(limit.max_ppm >= 1 && limit.max_ppm < WHOLE_PPM);
                prop_assert!(limit.min_ppm * 4 <= limit.max_ppm);
                prop_assert!(limit.want_bytes >= 4 * wsize);
                prop_assert!(limit.want_bytes <= memory / 20 + 1 && limit.want_bytes <= threshold / 2);
                // 2/3 of the threshold at most, so the kernel's own limit stays behind it.
                prop_assert!(limit.max_ppm <= 1_000_000);
            }
        }

        #[test]
        fn a_faster_server_never_gets_a_lower_limit(a in 0.0..1e9f64, b in 0.0..1e9f64, is_new: bool) {
            let written_bytes = is_new.then_some(0);
            let with = |drain_bytes_per_s| limit(&Inputs { drain_bytes_per_s, written_bytes, ..large() }).map(|l| l.want_bytes);
            if let (Ok(low), Ok(high)) = (with(a.min(b)), with(a.max(b))) {
                prop_assert!(low <= high);
            }
        }
    }
}
