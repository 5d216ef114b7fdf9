//! One knob of one device: write it, read it back.

use std::io;
use std::os::unix::fs::FileExt;

use crate::decimal::decimal;
use crate::error::{Error, Result};
use crate::kernel::bdi::{has_gone, Bdi};
use crate::report::escape::escape;
use crate::root::Root;

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Written,
    /// The device was unregistered meanwhile: there is nothing to set any more.
    Gone,
}

/// Sets `read_ahead_kb` of this very instance of the device, in KiB, and reads it back. `kib` must be whole pages: the kernel
/// rounds down (mm/backing-dev.c `read_ahead_kb_store`), and any other value read back is an error.
pub fn set_read_ahead(root: &Root, bdi: &Bdi, kib: u64) -> Result<Outcome> {
    match write(root, bdi, kib).and_then(|()| bdi.read_text()) {
        Err(e) if has_gone(&e) => Ok(Outcome::Gone),
        Err(e) => Err(Error::io("write", bdi.path())(e)),
        Ok(read) if decimal(read.trim_ascii()) == Some(kib) => Ok(Outcome::Written),
        Ok(read) => Err(Error::ReadBack {
            path: bdi.path().to_owned(),
            wrote: kib,
            read: escape(read.trim_ascii()),
        }),
    }
}

/// One write(2): the kernel takes each as a value of its own. A plain file keeps what stood behind it, so there it is cut.
fn write(root: &Root, bdi: &Bdi, kib: u64) -> io::Result<()> {
    if !root.is_live() {
        bdi.read_ahead_file().set_len(0)?;
    }
    bdi.read_ahead_file().write_all_at(format!("{kib}\n").as_bytes(), 0)
}
