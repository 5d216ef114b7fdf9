//! /run/nfstuned/lock: how the helper knows that a daemon will finish the job.
//!
//! nfstuned holds OFD write locks (fcntl(2) `F_OFD_SETLK`) on single bytes of this file for as long as it runs; the kernel
//! drops them when it ends, however it ends. Others only ask (`F_OFD_GETLK`), so asking never keeps the daemon from starting.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::error::{Error, Result};
use crate::root::Root;

/// What a locked byte means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub enum Role {
    /// A daemon runs; there is never a second one.
    Runs = 0,
    /// It applies readahead, so a mount that shows up late will get its value from it.
    AppliesReadahead = 1,
    /// A benchmark changes knobs and gives them back itself.
    Benchmarks = 2,
}

/// A lock file with roles that are held for as long as it is open.
#[derive(Debug)]
pub struct Held(File);

impl Held {
    /// Takes a role. None: another process has it.
    pub fn hold(root: &Root, role: Role) -> Result<Option<Held>> {
        let path = root.nfstuned_lock();
        let open = || {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
        };
        let held = Held(open().map_err(Error::io("open", &path))?);
        Ok(held.set(role, true).map_err(Error::io("lock", &path))?.then_some(held))
    }

    /// Takes another role, or lets it go. False: another process has it.
    pub fn set(&self, role: Role, is_held: bool) -> io::Result<bool> {
        let mut lock = byte(if is_held { libc::F_WRLCK } else { libc::F_UNLCK }, role);
        // SAFETY: F_OFD_SETLK reads the flock that it is given, and the descriptor is open.
        let r = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
        match r {
            0.. => Ok(true),
            _ => match io::Error::last_os_error() {
                e if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
                e => Err(e),
            },
        }
    }
}

/// Does a daemon hold this role? No file, no daemon. A file that cannot be asked counts as no daemon: then the helper waits
/// for the mount itself, which is right in both cases.
pub fn is_held(root: &Root, role: Role) -> bool {
    File::open(root.nfstuned_lock())
        .and_then(|file| is_locked(&file, role))
        .unwrap_or(false)
}

fn is_locked(file: &File, role: Role) -> io::Result<bool> {
    // A read lock asked for collides with a write lock held, and the descriptor may be read-only.
    let mut lock = byte(libc::F_RDLCK, role);
    // SAFETY: F_OFD_GETLK fills in the flock that it is given, and the descriptor is open.
    let r = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    if r < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

fn byte(kind: libc::c_int, role: Role) -> libc::flock {
    // Both constants are small on every architecture.
    let short = |n: libc::c_int| libc::c_short::try_from(n).unwrap_or_default();
    libc::flock {
        l_type: short(kind),
        l_whence: short(libc::SEEK_SET),
        l_start: role as i64,
        l_len: 1,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_held_while_its_byte_is_locked() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert!(!is_held(&root, Role::Runs));
        let daemon = Held::hold(&root, Role::Runs).unwrap().unwrap();
        assert!(is_held(&root, Role::Runs));
        assert!(Held::hold(&root, Role::Runs).unwrap().is_none());
        assert!(!is_held(&root, Role::AppliesReadahead));
        assert!(daemon.set(Role::AppliesReadahead, true).unwrap());
        assert!(is_held(&root, Role::AppliesReadahead));
        let bench = Held::hold(&root, Role::Benchmarks).unwrap().unwrap();
        assert!(!bench.set(Role::Runs, true).unwrap());
        assert!(daemon.set(Role::AppliesReadahead, false).unwrap());
        assert!(!is_held(&root, Role::AppliesReadahead));
        drop(daemon);
        assert!(!is_held(&root, Role::Runs));
        assert!(is_held(&root, Role::Benchmarks));
    }
}
