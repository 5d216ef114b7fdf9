//! One knob of one device: write it, read it back.

use std::io::{Seek, Write};

use crate::decimal::decimal;
use crate::error::{Error, Result};
use crate::kernel::bdi::{has_gone, read_number, Bdi, READ_AHEAD_KB};

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Written,
    /// The device was unregistered meanwhile: there is nothing to set any more.
    Gone,
}

/// Sets `read_ahead_kb` of this very instance of the device, in KiB, and reads it back. `kib` must be whole pages: the kernel
/// rounds down (mm/backing-dev.c `read_ahead_kb_store`), and any other value read back is an error.
pub fn set_read_ahead(bdi: &Bdi, kib: u64) -> Result<Outcome> {
    let path = bdi.attribute_path(READ_AHEAD_KB);
    let opened = bdi.attribute(READ_AHEAD_KB, libc::O_RDWR | libc::O_TRUNC);
    let mut file = match opened {
        Err(e) if has_gone(&e) => return Ok(Outcome::Gone),
        opened => opened.map_err(Error::io("open for writing", &path))?,
    };
    // One write(2): the kernel takes each as a value of its own.
    let shown = file
        .write_all(format!("{kib}\n").as_bytes())
        .and_then(|()| file.rewind())
        .and_then(|()| read_number(&mut file));
    match shown {
        Err(e) if has_gone(&e) => Ok(Outcome::Gone),
        Err(e) => Err(Error::io("write", path)(e)),
        Ok(read) if decimal(read.trim_ascii()) == Some(kib) => Ok(Outcome::Written),
        Ok(read) => Err(Error::ReadBack {
            path,
            wrote: kib,
            read: crate::report::escape::escape(read.trim_ascii()),
        }),
    }
}
