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
