//! /run/nfstuned/lock: how the helper knows that a daemon will finish the job.
//!
//! nfstuned holds OFD write locks (fcntl(2) `F_OFD_SETLK`) on single bytes of this file for as long as it runs; the kernel
//! drops them when it ends, however it ends. Others only ask (`F_OFD_GETLK`), so asking never keeps the daemon from starting.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::root::Root;

/// What a locked byte means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub enum Role {
    /// A daemon runs; there is never a second one.
    Runs = 0,
    /// It applies readahead, so a mount that shows up late will get its value from it.
    AppliesReadahead = 1,
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

    fn hold(file: &File, role: Role) {
        let mut lock = byte(libc::F_WRLCK, role);
        // SAFETY: as in is_locked.
        let r = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
        assert_eq!(r, 0);
    }

    #[test]
    fn a_role_is_held_while_its_byte_is_locked() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert!(!is_held(&root, Role::Runs));
        std::fs::create_dir_all(root.nfstuned_lock().parent().unwrap()).unwrap();
        let daemon = File::create(root.nfstuned_lock()).unwrap();
        assert!(!is_held(&root, Role::Runs));
        hold(&daemon, Role::Runs);
        assert!(is_held(&root, Role::Runs));
        assert!(!is_held(&root, Role::AppliesReadahead));
        hold(&daemon, Role::AppliesReadahead);
        assert!(is_held(&root, Role::AppliesReadahead));
        drop(daemon);
        assert!(!is_held(&root, Role::Runs));
    }
}
