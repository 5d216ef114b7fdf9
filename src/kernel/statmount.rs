//! listmount(2) and statmount(2): the mount table by number, newest mount first, without making text of every mount.
//! (kernel: fs/namespace.c; include/uapi/linux/mount.h. Linux 6.8; newest first and mount options since 6.11; the source
//! since 6.13)
//!
//! Ids grow in the order in which mounts are made, which is not the order in which they are attached.

use std::io;

use crate::kernel::bdi::Dev;
use crate::kernel::mountinfo::Mount;

/// The same on every architecture: new system calls have one number (alpha, which adds 110, has no Rust standard library).
const SYS_STATMOUNT: libc::c_long = 457;
const SYS_LISTMOUNT: libc::c_long = 458;

const LISTMOUNT_REVERSE: libc::c_uint = 1;
/// The root of this process's mount namespace.
const LSMT_ROOT: u64 = u64::MAX;

const STATMOUNT_SB_BASIC: u64 = 0x1;
const STATMOUNT_MNT_POINT: u64 = 0x10;
const STATMOUNT_FS_TYPE: u64 = 0x20;
const STATMOUNT_MNT_OPTS: u64 = 0x80;
const STATMOUNT_SB_SOURCE: u64 = 0x200;

/// include/uapi/linux/magic.h: one for all NFS versions.
const NFS_SUPER_MAGIC: u64 = 0x6969;

/// struct mnt_id_req, its first published size (24 bytes).
#[repr(C)]
struct MountIdRequest {
    size: u32,
    spare: u32,
    mnt_id: u64,
    param: u64,
}

impl MountIdRequest {
    fn new(mnt_id: u64, param: u64) -> Self {
        MountIdRequest {
            size: 24,
            spare: 0,
            mnt_id,
            param,
        }
    }
}

/// How many ids one call asks for.
pub const NEWEST: usize = 64;

/// Ids of mounts in this namespace, newest first, `NEWEST` at most; `before` is the last id of the call before, 0 at first.
/// Err(EINVAL) or Err(ENOSYS): this kernel cannot.
fn newest_ids(before: u64) -> io::Result<([u64; NEWEST], usize)> {
    let request = MountIdRequest::new(LSMT_ROOT, before);
    let mut ids = [0u64; NEWEST];
    // SAFETY: the request says its own size, and the kernel writes at most `NEWEST` ids, which is what `ids` holds.
    let n = unsafe {
        libc::syscall(
            SYS_LISTMOUNT,
            &raw const request,
            ids.as_mut_ptr(),
            NEWEST,
            LISTMOUNT_REVERSE,
        )
    };
    match usize::try_from(n) {
        Ok(n) => Ok((ids, n.min(NEWEST))),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// What statmount(2) fills in: fixed fields, then strings; offsets of strings count from byte 512.
struct Answer {
    bytes: Vec<u8>,
}

const STRINGS: usize = 512;

impl Answer {
    fn ask(id: u64, mask: u64) -> io::Result<Answer> {
        let room = if mask == STATMOUNT_SB_BASIC { STRINGS } else { 16 << 10 };
        let mut bytes = vec![0u8; room];
        loop {
            let request = MountIdRequest::new(id, mask);
            // SAFETY: the request says its own size, and the kernel writes at most `bytes.len()` bytes. It asks for no
            // alignment of the buffer: it copies byte by byte (copy_to_user).
            let r = unsafe { libc::syscall(SYS_STATMOUNT, &raw const request, bytes.as_mut_ptr(), bytes.len(), 0) };
            if r == 0 {
                return Ok(Answer { bytes });
            }
            let e = io::Error::last_os_error();
            // A path and options of a page each fit in 16 KiB. One larger try; what does not fit that either is left to the
            // text.
            if e.raw_os_error() != Some(libc::EOVERFLOW) || bytes.len() > 16 << 10 {
                return Err(e);
            }
            bytes.resize(256 << 10, 0);
        }
    }

    fn u32(&self, at: usize) -> u32 {
        let mut n = [0; 4];
        n.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_ne_bytes(n)
    }

    fn u64(&self, at: usize) -> u64 {
        let mut n = [0; 8];
        n.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_ne_bytes(n)
    }

    fn has(&self, field: u64) -> bool {
        self.u64(8) & field != 0
    }

    fn dev(&self) -> Dev {
        Dev {
            major: self.u32(16),
            minor: self.u32(20),
        }
    }

    fn is_nfs(&self) -> bool {
        self.has(STATMOUNT_SB_BASIC) && self.u64(24) == NFS_SUPER_MAGIC
    }

    /// None where the kernel did not fill the field in, or says an offset that is not in the buffer.
    fn string(&self, field: u64, offset_at: usize) -> Option<&[u8]> {
        if !self.has(field) {
            return None;
        }
        let start = STRINGS.checked_add(usize::try_from(self.u32(offset_at)).ok()?)?;
        let text = self.bytes.get(start..)?;
        text.split(|b| *b == 0).next()
    }
}

fn mount(id: u64) -> io::Result<Mount> {
    let answer = Answer::ask(
        id,
        STATMOUNT_SB_BASIC | STATMOUNT_MNT_POINT | STATMOUNT_FS_TYPE | STATMOUNT_MNT_OPTS | STATMOUNT_SB_SOURCE,
    )?;
    Ok(Mount {
        dev: answer.dev(),
        // An empty path: not reachable from this process's root.
        mount_point: answer
            .string(STATMOUNT_MNT_POINT, 108)
            .filter(|p| !p.is_empty())
            .map(<[u8]>::to_vec),
        source: answer.string(STATMOUNT_SB_SOURCE, 124).map(<[u8]>::to_vec),
        super_options: answer
            .string(STATMOUNT_MNT_OPTS, 4)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?
            .to_vec(),
        is_type_nfs4: answer.string(STATMOUNT_FS_TYPE, 36) == Some(b"nfs4"),
    })
}

/// The mount if it is NFS and of this device: most are not, so the paths are asked for only then.
fn mount_if_of(id: u64, dev: Dev) -> io::Result<Option<Mount>> {
    let brief = Answer::ask(id, STATMOUNT_SB_BASIC)?;
    if brief.dev() == dev && brief.is_nfs() {
        mount(id).map(Some)
    } else {
        Ok(None)
    }
}

/// A mount may go away between the list and the question; that is no error.
fn gone_is_none<T>(answer: io::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        answer => answer.map(Some),
    }
}

/// How far back to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// At most so many of the newest mounts, and no further than the first [`NEWEST`] that hold one of the device: all
    /// mounts of a device that has just appeared are young.
    Newest(usize),
    /// Every mount: a device that has been there for long may have been mounted again and again.
    All,
}

/// NFS mounts of `dev` in the order in which they were made. Err: this kernel has no listmount that starts with the newest,
/// or this process may not use it (seccomp): use the text.
pub fn mounts_of(dev: Dev, depth: Depth) -> io::Result<Vec<Mount>> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut before = 0;
    loop {
        let (ids, n) = newest_ids(before)?;
        for &id in &ids[..n] {
            if let Some(mount) = gone_is_none(mount_if_of(id, dev))?.flatten() {
                found.push(mount);
            }
        }
        seen += n;
        let is_enough = match depth {
            Depth::Newest(limit) => seen >= limit || !found.is_empty(),
            Depth::All => false,
        };
        match ids[..n].last() {
            Some(oldest) if n == NEWEST && !is_enough => before = *oldest,
            _ => break,
        }
    }
    found.reverse();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const INSIDE: &str = "NFSRAHEAD_TEST_MANY_MOUNTS";

    /// All ids, by as many calls as it takes.
    fn walk() -> Vec<u64> {
        let mut all = Vec::new();
        let mut before = 0;
        loop {
            let (ids, n) = newest_ids(before).unwrap();
            all.extend(&ids[..n]);
            match ids[..n].last() {
                Some(oldest) if n == NEWEST => before = *oldest,
                _ => return all,
            }
        }
    }

    /// Runs itself again where it may make mounts, several calls' worth of them.
    #[test]
    fn every_mount_is_listed_once_newest_first() {
        if newest_ids(0).is_err() {
            return crate::common::skip("this kernel has no listmount that starts with the newest");
        }
        if std::env::var_os(INSIDE).is_none() {
            let many = "for i in $(seq 200); do mount -t tmpfs t /mnt || exit 9; done; exec \"$@\"";
            let test = "kernel::statmount::tests::every_mount_is_listed_once_newest_first";
            let run = Command::new("unshare")
                .args(["--user", "--map-root-user", "--mount", "sh", "-c", many, "sh"])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", test])
                .env(INSIDE, "1")
                .output()
                .unwrap();
            assert!(run.status.success(), "{run:?}");
            return;
        }
        let ids = walk();
        let table = std::fs::read_to_string(crate::root::Root::default().mountinfo()).unwrap();
        assert_eq!(ids.len(), table.lines().count());
        assert!(ids.windows(2).all(|pair| pair[0] > pair[1]));
        assert!(ids.len() > 3 * NEWEST);
        let newest = Answer::ask(ids[0], STATMOUNT_SB_BASIC | STATMOUNT_MNT_POINT | STATMOUNT_FS_TYPE).unwrap();
        assert_eq!(newest.string(STATMOUNT_MNT_POINT, 108), Some(&b"/mnt"[..]));
        assert_eq!(newest.string(STATMOUNT_FS_TYPE, 36), Some(&b"tmpfs"[..]));
        assert!(!newest.is_nfs());
        let last_line = table.lines().last().unwrap();
        assert_eq!(
            Some(newest.dev()),
            Dev::parse(last_line.split(' ').nth(2).unwrap().as_bytes())
        );
        assert_eq!(mounts_of(newest.dev(), Depth::All).unwrap(), []);
    }
}
