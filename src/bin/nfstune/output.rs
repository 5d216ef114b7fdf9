//! Files that somebody asked for by name on the command line: the only thing that `nfstune` itself writes.

use std::fs;
use std::path::Path;

use nfsrahead::error::Error;

pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(Error::io("write", path))
}
