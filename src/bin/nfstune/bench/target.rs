//! The mount that a path is on, told by the mount table alone: a path of a dead server must not be touched to find out.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nfsrahead::error::{Error, Result};
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::kernel::mountinfo::{self, Mount};
use nfsrahead::root::Root;
use nfsrahead::sample::instance;

pub struct Target {
    pub mount: Mount,
    pub instance: Option<u64>,
    /// Where a file is made: the mount point or a folder below it, below the root.
    pub folder: PathBuf,
    /// To compare files with. None: below another root numbers of devices mean nothing.
    pub dev: Option<Dev>,
}

/// `given` is a mount point or a folder below one.
pub fn find(root: &Root, given: &Path) -> Result<Target> {
    let path = std::path::absolute(given).map_err(Error::io("find", given))?;
    let of_path = |mount: &Mount| {
        let at = Path::new(std::ffi::OsStr::from_bytes(mount.mount_point.as_deref()?));
        path.starts_with(at).then(|| at.components().count())
    };
    // Of mounts upon each other the last one is on top.
    let mounts = mountinfo::mounts(root, None)?.into_iter();
    let found = mounts.filter_map(|mount| Some((of_path(&mount)?, mount)));
    let Some((_, mount)) = found.max_by_key(|(depth, _)| *depth) else {
        return Err(Error::io("measure", given)(io::Error::other("is on no NFS mount")));
    };
    Ok(Target {
        instance: instance(root, mount.dev),
        folder: root.join(&path),
        dev: root.is_live().then_some(mount.dev),
        mount,
    })
}
