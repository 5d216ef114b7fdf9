//! The model behind `auto`.
//!
//! A window of 8 × the bandwidth-delay product gives one sequential reader 8/9 of what the path carries. The helper has measured
//! neither; unmeasured, 4 × rsize is enough up to 1 MiB of it (80 %), and cloud vendors, whose paths are longer, ask for
//! 15 × rsize themselves. nfstuned measures both and goes on from there.

use crate::conf::value::MIN_KIB;
use crate::float::{float, whole};
use crate::kernel::vm::Memory;
use crate::readahead::measure::{Measured, STREAMS_UNKNOWN};

/// What the model looks at.
#[derive(Debug, Clone, Copy)]
pub struct Inputs {
    pub rsize_kib: u64,
    /// nconnect.
    pub connections: u64,
    pub memory: Option<Memory>,
    /// The firmware names a cloud vendor.
    pub is_cloud: bool,
    /// The mount is the root file system: every page fault reads a whole window round it, so a large one multiplies traffic.
    pub is_nfs_root: bool,
    /// None: neither round trip nor rate is known, as when a mount is made.
    pub measured: Option<Measured>,
}

/// No model goes past 16 MiB: past 8 × bandwidth-delay product little is left to win, and one report lost half.
const MAX_KIB: u64 = 16 << 10;
/// Below this the kernel's own default is the better value.
const MIN_SMALL_KIB: u64 = 128;
const MAX_SMALL_KIB: u64 = 1 << 10;
/// A machine with less is taken for a thin client.
const SMALL_MEMORY_KIB: u64 = 2 << 20;
/// Bandwidth-delay products in a window.
const PRODUCTS: f64 = 8.0;
/// So many connections get a READ each from one window.
const CONNECTIONS: u64 = 4;

/// The value in KiB, a whole number of pages.
pub fn readahead_kib(inputs: &Inputs, page_kib: u64) -> u64 {
    let rsize = inputs.rsize_kib.max(page_kib);
    let wanted = match inputs.measured {
        Some(measured) => measured_kib(inputs, &measured, rsize),
        None if inputs.is_cloud => rsize.saturating_mul(15),
        None => rsize.saturating_mul(4),
    };
    let cap = memory_cap_kib(inputs);
    // Where the cap falls below one rsize the cap holds, down to the kernel's default. An rsize above 16 MiB does not exist.
    let capped = wanted.min(MAX_KIB).min(cap);
    let small = inputs.is_nfs_root || inputs.memory.is_some_and(|m| m.total_kib < SMALL_MEMORY_KIB);
    let value = if small {
        capped.clamp(MIN_SMALL_KIB, MAX_SMALL_KIB)
    } else {
        capped.max(MIN_SMALL_KIB)
    };
    // Whole reads, unless the cap has cut one.
    let unit = if value >= rsize { rsize } else { page_kib };
    (value - value % unit).max(MIN_KIB)
}

/// Rounded up to whole reads.
fn measured_kib(inputs: &Inputs, measured: &Measured, rsize: u64) -> u64 {
    let products = whole((PRODUCTS * measured.bytes_per_s * measured.rtt_s / 1024.0).ceil());
    let connections = rsize.saturating_mul(inputs.connections.clamp(1, CONNECTIONS));
    products.max(connections).div_ceil(rsize).saturating_mul(rsize)
}

/// Two windows live per reader: one being consumed, one in flight. All readers together may fill 5 % of what is available.
fn memory_cap_kib(inputs: &Inputs) -> u64 {
    let streams = inputs
        .measured
        .map_or(STREAMS_UNKNOWN, |measured| measured.streams.max(1));
    inputs
        .memory
        .map_or(MAX_KIB, |m| whole(float(m.available_kib) / 20.0 / 2.0 / float(streams)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 20;

    fn inputs(rsize_kib: u64, available_kib: u64) -> Inputs {
        Inputs {
            rsize_kib,
            memory: Some(Memory {
                total_kib: available_kib.max(4 * GIB),
                available_kib,
            }),
            is_cloud: false,
            is_nfs_root: false,
            connections: 1,
            measured: None,
        }
    }

    /// Mbit/s and ms, as tables of links have them.
    fn link(mbit: u32, rtt_ms: f64) -> Option<Measured> {
        Some(Measured {
            bytes_per_s: f64::from(mbit) * 1e6 / 8.0,
            rtt_s: rtt_ms / 1000.0,
            streams: 8,
            is_of_link: true,
        })
    }

    #[test]
    fn eight_products_of_a_measured_path() {
        let big = inputs(1024, 64 * GIB);
        for (mbit, rtt_ms, mib) in [
            (10_000, 1.0, 10),
            (10_000, 0.2, 2),
            (1_000, 0.2, 1),
            (1_000, 20.0, 16),
            (25_000, 0.5, 12),
        ] {
            let measured = Inputs {
                measured: link(mbit, rtt_ms),
                ..big
            };
            assert_eq!(readahead_kib(&measured, 4), mib << 10, "{mbit} {rtt_ms}");
        }
        let four = Inputs {
            measured: link(1_000, 0.2),
            connections: 16,
            ..big
        };
        assert_eq!(readahead_kib(&four, 4), 4096);
        // 2 GiB available, eight readers: 6553 KiB each.
        let tight = Inputs {
            measured: link(10_000, 1.0),
            ..inputs(1024, 2 * GIB)
        };
        assert_eq!(readahead_kib(&tight, 4), 6144);
    }

    /// One read more where 8 products pass a whole number of reads; and where the connections want more than the products.
    #[test]
    fn on_both_sides_of_each_threshold() {
        let big = inputs(1024, 64 * GIB);
        let kib = |bytes_per_s: f64, connections| {
            let measured = Some(Measured {
                bytes_per_s,
                rtt_s: 0.001,
                streams: 8,
                is_of_link: true,
            });
            readahead_kib(
                &Inputs {
                    measured,
                    connections,
                    ..big
                },
                4,
            )
        };
        // At 1 ms, 2 MiB are 8 products of 256 KiB each millisecond.
        let two_mib = 262_144_000.0;
        assert_eq!((kib(two_mib * 0.999, 1), kib(two_mib * 1.001, 1)), (2048, 3072));
        assert_eq!((kib(two_mib * 0.999, 2), kib(two_mib * 0.999, 3)), (2048, 3072));
        assert_eq!((kib(1.0, 4), kib(1.0, 5)), (4096, 4096));
        // 16 MiB is the end.
        assert_eq!((kib(two_mib * 7.49, 1), kib(two_mib * 8.01, 1)), (15 << 10, 16 << 10));
        assert_eq!(kib(two_mib * 100.0, 1), 16 << 10);
    }

    #[test]
    fn four_reads_or_what_the_cloud_asks_for() {
        let big = inputs(1024, 64 * GIB);
        assert_eq!(readahead_kib(&big, 4), 4096);
        assert_eq!(readahead_kib(&Inputs { is_cloud: true, ..big }, 4), 15360);
        assert_eq!(readahead_kib(&Inputs { memory: None, ..big }, 4), 4096);
        assert_eq!(readahead_kib(&inputs(64, 64 * GIB), 4), 256);
    }

    #[test]
    fn memory_caps_it_down_to_the_kernels_default() {
        // 2 GiB available: 5 % of it for 64 windows is 1638 KiB, one whole read of 1 MiB.
        assert_eq!(readahead_kib(&inputs(1024, 2 * GIB), 4), 1024);
        // 1 GiB: the cap, 819 KiB, is below rsize and holds, in whole pages.
        assert_eq!(readahead_kib(&inputs(1024, GIB), 4), 816);
        assert_eq!(readahead_kib(&inputs(1024, 1024), 4), 128);
    }

    #[test]
    fn thin_clients_stay_below_a_mebibyte() {
        let thin = Inputs {
            is_nfs_root: true,
            ..inputs(1024, 64 * GIB)
        };
        assert_eq!(readahead_kib(&thin, 4), 1024);
        assert_eq!(readahead_kib(&Inputs { rsize_kib: 32, ..thin }, 4), 128);
    }
}
