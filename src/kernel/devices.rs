//! The NFS devices of this host, and their mounts.

use crate::error::Result;
use crate::kernel::bdi::Dev;
use crate::kernel::mountinfo::{self, Mount, Version};
use crate::kernel::nfsfs;
use crate::root::Root;

/// One device and all its mounts.
#[derive(Debug)]
pub struct NfsDevice {
    pub dev: Dev,
    pub version: Version,
    /// Empty: it is mounted where this process cannot see it.
    pub mounts: Vec<Mount>,
}

/// Those of the mount table in its order, then those that only the list of superblocks knows.
pub fn devices(root: &Root) -> Result<Vec<NfsDevice>> {
    let mut rows: Vec<NfsDevice> = Vec::new();
    for mount in mountinfo::mounts(root, None)? {
        match rows.iter_mut().find(|row| row.dev == mount.dev) {
            Some(row) => row.mounts.push(mount),
            None => rows.push(NfsDevice {
                dev: mount.dev,
                version: mount.version(),
                mounts: vec![mount],
            }),
        }
    }
    for volume in nfsfs::volumes(root)? {
        if !rows.iter().any(|row| row.dev == volume.dev) {
            rows.push(NfsDevice {
                dev: volume.dev,
                version: volume.version,
                mounts: Vec::new(),
            });
        }
    }
    Ok(rows)
}
