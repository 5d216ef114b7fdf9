//! What the kernel says. One file an interface, named as the kernel names it; bytes in, plain values out. Nothing here
//! writes, and nothing here touches a mount point: a dead server would hang it.

pub mod bdi;
pub mod container;
pub mod devices;
pub mod dmi;
pub mod ethtool;
pub mod host;
pub mod knob;
pub mod mountinfo;
pub mod mountstats;
pub mod namespaces;
pub mod netlink;
pub mod nfsfs;
pub mod route;
pub mod statmount;
pub mod sunrpc;
pub mod tcp;
pub mod vm;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A small kernel file, whole. Kernel files say nothing true about their size, so this reads until `limit` bytes are there
/// or the file ends; what is longer is cut, for a length from outside is never trusted.
pub(crate) fn read_small(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(limit.min(4096));
    File::open(path)?.take(limit as u64).read_to_end(&mut text)?;
    Ok(text)
}
