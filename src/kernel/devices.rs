//! The NFS devices of this host, and their mounts.

use std::collections::hash_map::Entry;
use std::collections::HashMap;

use crate::error::Result;
use crate::kernel::bdi::Dev;
use crate::kernel::mountinfo::{self, Mount, Version};
use crate::kernel::nfsfs::{self, Volume};
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
    // The table after the list: a superblock is listed before it is mounted.
    let volumes = nfsfs::volumes(root)?;
    Ok(grouped(mountinfo::mounts(root, None)?, &volumes))
}

/// The same from what was read.
pub fn grouped(mounts: Vec<Mount>, volumes: &[Volume]) -> Vec<NfsDevice> {
    let mut rows: Vec<NfsDevice> = Vec::new();
    let mut by_dev: HashMap<Dev, usize> = HashMap::new();
    for mount in mounts {
        let at = *by_dev.entry(mount.dev).or_insert(rows.len());
        match rows.get_mut(at) {
            Some(row) => row.mounts.push(mount),
            None => rows.push(NfsDevice {
                dev: mount.dev,
                version: mount.version(),
                mounts: vec![mount],
            }),
        }
    }
    for volume in volumes {
        if let Entry::Vacant(free) = by_dev.entry(volume.dev) {
            free.insert(rows.len());
            rows.push(NfsDevice {
                dev: volume.dev,
                version: volume.version,
                mounts: Vec::new(),
            });
        }
    }
    rows
}
