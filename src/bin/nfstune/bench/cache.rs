//! The page cache of one file: emptied for it alone, and looked at, so that a figure is of the network and not of memory.
//! (kernel: mm/fadvise.c `generic_fadvise`; mm/filemap.c `SYSCALL_DEFINE4(cachestat)`, since 6.5; mm/mincore.c)

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::fcntl::{posix_fadvise, PosixFadviseAdvice};

/// Pages that are on their way cannot be dropped before they arrive. Where for so long none has, they are in use.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// Drops what the cache holds of `bytes` from the start, and waits for what is still on its way. The pages that stay: 0, or some
/// that another program has mapped or keeps reading.
pub fn drop_cached(file: &File, bytes: u64) -> io::Result<u64> {
    let (mut least, mut since) = (u64::MAX, Instant::now());
    let mut pause = PAUSE;
    loop {
        // Without POSIX_FADV_SEQUENTIAL ever: it doubles the window.
        posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
        match cached_pages(file, bytes)? {
            0 => return Ok(0),
            fewer if fewer < least => (least, since) = (fewer, Instant::now()),
            stay if since.elapsed() >= PATIENCE => return Ok(stay),
            _ => {}
        }
        sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(100));
    }
}

/// Pages of the first `bytes` that are in the cache.
pub fn cached_pages(file: &File, bytes: u64) -> io::Result<u64> {
    match cachestat(file) {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EOPNOTSUPP)) => {
            mincore(file, bytes)
        }
        pages => pages,
    }
}

/// The same number on all architectures (include/uapi/asm-generic/unistd.h); alpha, which has another one, runs no Rust.
const SYS_CACHESTAT: libc::c_long = 451;

fn cachestat(file: &File) -> io::Result<u64> {
    // struct cachestat_range { off, len }: a length of 0 is up to the end. struct cachestat: pages in the cache come first.
    let range = [0u64; 2];
    let mut stat = [0u64; 5];
    // SAFETY: both arrays have the layout of the structures that the kernel reads and fills in, and live through the call.
    let r = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range.as_ptr(), stat.as_mut_ptr(), 0) };
    match r {
        0 => Ok(stat[0]),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A part of the file at a time, so that a large one needs little memory.
const PART_BYTES: u64 = 256 << 20;

fn mincore(file: &File, bytes: u64) -> io::Result<u64> {
    let page = nfsrahead::kernel::vm::page_kib() * 1024;
    let mut resident = 0;
    let mut from = 0;
    while from < bytes {
        let length = (bytes - from).min(PART_BYTES);
        resident += mincore_part(file, from, length, page)?;
        from += length;
    }
    Ok(resident)
}

fn mincore_part(file: &File, from: u64, length: u64, page: u64) -> io::Result<u64> {
    let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
    let offset = libc::off_t::try_from(from).map_err(too_large)?;
    let pages = usize::try_from(length.div_ceil(page)).map_err(too_large)?;
    let length = usize::try_from(length).map_err(too_large)?;
    let mut flags = vec![0u8; pages];
    // SAFETY: a new mapping of an open file; nothing reads through it, and it is unmapped below.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `flags` has a byte for each page of the mapping.
    let r = unsafe { libc::mincore(address, length, flags.as_mut_ptr().cast()) };
    let result = if r == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    };
    // SAFETY: the mapping made above, whole.
    unsafe { libc::munmap(address, length) };
    result.map(|()| flags.iter().filter(|flag| **flag & 1 != 0).count() as u64)
}
