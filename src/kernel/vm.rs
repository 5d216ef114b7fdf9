//! Memory: page size, how much there is. (kernel: fs/proc/meminfo.c)

use crate::decimal::decimal;
use crate::error::{Error, Result};
use crate::kernel::read_small;
use crate::root::Root;

/// The size of a page in KiB: 4 on x86, 4, 16 or 64 on arm64.
pub fn page_kib() -> u64 {
    // SAFETY: sysconf only reads its argument.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).map_or(4, |bytes| (bytes / 1024).max(1))
}

/// Two lines of /proc/meminfo, KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub total_kib: u64,
    /// What can be had without swapping.
    pub available_kib: u64,
}

/// None where one of the two lines is missing.
pub fn parse_meminfo(text: &[u8]) -> Option<Memory> {
    let field = |name: &str| {
        text.split(|b| *b == b'\n').find_map(|line| {
            let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
            decimal(value.trim_ascii().strip_suffix(b" kB")?)
        })
    };
    Some(Memory {
        total_kib: field("MemTotal")?,
        available_kib: field("MemAvailable")?,
    })
}

pub fn memory(root: &Root) -> Result<Option<Memory>> {
    let path = root.meminfo();
    read_small(&path, 64 << 10)
        .map(|text| parse_meminfo(&text))
        .map_err(Error::io("read", path))
}

/// Pages, of /proc/vmstat (kernel: mm/vmstat.c `vmstat_text`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VmStat {
    pub dirty_pages: u64,
    /// Since Linux 5.8 with what waits for COMMIT.
    pub writeback_pages: u64,
    /// The limits of this moment: writers are held at the first, flushing begins at the second.
    pub threshold_pages: u64,
    pub background_pages: u64,
    /// Written to block devices since boot, KiB (`pgpgout`); NFS is none.
    pub block_written_kib: u64,
}

/// None where one of the lines is missing.
pub fn parse_vmstat(text: &[u8]) -> Option<VmStat> {
    let field = |name: &str| {
        text.split(|b| *b == b'\n').find_map(|line| {
            let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?;
            decimal(value.trim_ascii())
        })
    };
    Some(VmStat {
        dirty_pages: field("nr_dirty")?,
        writeback_pages: field("nr_writeback")?,
        threshold_pages: field("nr_dirty_threshold")?,
        background_pages: field("nr_dirty_background_threshold")?,
        block_written_kib: field("pgpgout").unwrap_or_default(),
    })
}

pub fn vmstat(root: &Root) -> Result<Option<VmStat>> {
    let path = root.vmstat();
    read_small(&path, 64 << 10)
        .map(|text| parse_vmstat(&text))
        .map_err(Error::io("read", path))
}

/// The share of the last 10 s in which some task waited for memory, in hundredths of a percent (kernel: kernel/sched/psi.c
/// `psi_show`). None: no such file, or psi is off.
pub fn memory_pressure(root: &Root) -> Option<u64> {
    parse_pressure(&read_small(&root.memory_pressure(), 4096).ok()?)
}

fn parse_pressure(text: &[u8]) -> Option<u64> {
    let some = text.split(|b| *b == b'\n').find(|line| line.starts_with(b"some "))?;
    let average = some
        .split(|b| *b == b' ')
        .find_map(|field| field.strip_prefix(b"avg10="))?;
    let point = average.iter().position(|b| *b == b'.')?;
    let (whole, part) = (decimal(&average[..point])?, &average[point + 1..]);
    (part.len() == 2).then_some(whole.checked_mul(100)?.checked_add(decimal(part)?)?)
}

/// Since boot, with the time that the machine slept: CLOCK_BOOTTIME, in hundredths of a second (kernel: fs/proc/uptime.c
/// `uptime_proc_show`).
pub fn boottime_ms(root: &Root) -> Option<u64> {
    parse_uptime(&read_small(&root.uptime(), 256).ok()?)
}

fn parse_uptime(text: &[u8]) -> Option<u64> {
    let point = text.iter().position(|b| *b == b'.')?;
    let hundredths = text.get(point + 1..point + 3)?;
    decimal(&text[..point])?
        .checked_mul(1000)?
        .checked_add(decimal(hundredths)? * 10)
}

/// The first two numbers of the kernel's release: (6, 12).
pub fn kernel_release(root: &Root) -> Option<(u64, u64)> {
    let text = read_small(&root.osrelease(), 256).ok()?;
    let mut parts = text.split(|b| !b.is_ascii_digit());
    Some((decimal(parts.next()?)?, decimal(parts.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_in_hundredths() {
        let text =
            b"some avg10=12.05 avg60=0.00 avg300=0.00 total=5\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(parse_pressure(text), Some(1205));
        for bad in [
            &b""[..],
            b"full avg10=1.00",
            b"some avg10=1",
            b"some avg10=.00",
            b"some avg10=99999999999999999999.00",
        ] {
            assert_eq!(parse_pressure(bad), None);
        }
    }

    #[test]
    fn uptime_in_milliseconds() {
        assert_eq!(parse_uptime(b"5000.07 1.00\n"), Some(5_000_070));
        for bad in [
            &b""[..],
            b"5000",
            b"5000.",
            b"5000.1",
            b"x.00",
            b"18446744073709551615.00 ",
        ] {
            assert_eq!(parse_uptime(bad), None);
        }
    }

    #[test]
    fn vmstat_wants_all_of_its_lines() {
        let text = b"nr_dirty 1\nnr_writeback 2\nnr_writeback_temp 9\npgpgout 3\nnr_dirty_threshold 4\nnr_dirty_background_threshold 5\n";
        let stat = parse_vmstat(text).unwrap();
        assert_eq!(
            (stat.dirty_pages, stat.writeback_pages, stat.threshold_pages),
            (1, 2, 4)
        );
        assert_eq!((stat.background_pages, stat.block_written_kib), (5, 3));
        assert_eq!(parse_vmstat(&text[..40]), None);
    }
}
