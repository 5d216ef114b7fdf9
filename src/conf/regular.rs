//! Reading a file that an admin left: a regular one, of bounded size, without waiting for anybody.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The whole file in one read where its size is known. Opened so that a FIFO or a device cannot hold us.
pub fn read_regular(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("is a folder"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let too_long = || io::Error::other(format!("longer than the limit of {limit} bytes"));
    let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    if size > limit {
        return Err(too_long());
    }
    // Room for one byte more: a read that does not fill it has seen the end of the file.
    let mut text = vec![0; size + 1];
    let mut filled = 0;
    loop {
        match file.read(&mut text[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if filled > limit {
            return Err(too_long());
        }
        if filled < text.len() && filled >= size {
            break;
        }
        if filled == text.len() {
            text.resize((filled * 2).max(4096), 0);
        }
    }
    text.truncate(filled);
    Ok(text)
}
