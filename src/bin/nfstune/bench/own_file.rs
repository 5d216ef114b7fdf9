//! The file that a measurement writes. It loses its name before anything is in it: whatever ends the program, SIGKILL
//! included, the kernel closes the file and with that it is gone (NFS keeps it as `.nfsXXXX` up to then). Only a client that
//! crashes leaves such a name behind, or SIGKILL between the two requests: so a measurement makes one file, once, before it
//! changes anything.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nfsrahead::error::{Error, Result};
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::root::Root;

/// Names to try where others are there.
const TRIES: u32 = 16;

pub struct OwnFile {
    file: File,
    folder: PathBuf,
}

impl OwnFile {
    /// In `folder`, which must be on the device `dev`; on a copy of a system devices are not what they say, and `dev` is None.
    pub fn make(folder: &Path, dev: Option<Dev>) -> Result<OwnFile> {
        let failed = |e| Error::io("make a file in", folder)(e);
        let (name, file) = create(folder).map_err(failed)?;
        fs::remove_file(name).map_err(failed)?;
        is_on(&file, dev).map_err(failed)?;
        Ok(OwnFile {
            file,
            folder: folder.to_owned(),
        })
    }

    /// Writes some of the bytes, as write(2).
    pub fn put(&self, bytes: &[u8], at: u64) -> io::Result<u64> {
        self.file.write_at(bytes, at).map(|n| n as u64)
    }

    /// At the server, and the time that this takes is its time.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    pub fn len(&self) -> Result<u64> {
        let length = self.file.metadata().map(|metadata| metadata.len());
        length.map_err(Error::io("look at the file made in", &self.folder))
    }

    /// Emptied and opened again, for writing: closing it sends what is left.
    pub fn anew(&self) -> io::Result<OwnFile> {
        let opened = OpenOptions::new().write(true).truncate(true).open(self.name());
        Ok(OwnFile {
            file: opened?,
            folder: self.folder.clone(),
        })
    }

    /// Opened again, for reading: the kernel copies the readahead of the device into each open file.
    pub fn reopen(&self) -> Result<File> {
        File::open(self.name()).map_err(Error::io("open the file made in", &self.folder))
    }

    /// Opened again, past the page cache.
    pub fn reopen_direct(&self) -> Result<DirectFile> {
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_DIRECT)
            .open(self.name());
        opened
            .map(DirectFile)
            .map_err(Error::io("open the file made in", &self.folder))
    }

    /// A name by which other programs can open it while we run.
    pub fn name(&self) -> PathBuf {
        Root::descriptor(std::process::id(), self.file.as_raw_fd())
    }

    /// How much room there is for it, in bytes.
    pub fn room_bytes(&self) -> Result<u64> {
        let stat = nix::sys::statvfs::fstatvfs(&self.file)
            .map_err(|e| Error::io("ask for the free space of", &self.folder)(e.into()))?;
        // Both are smaller on other architectures.
        #[allow(clippy::useless_conversion)]
        let (blocks, size) = (u64::from(stat.blocks_available()), u64::from(stat.fragment_size()));
        Ok(blocks.saturating_mul(size))
    }

    /// What is not at the server yet need not get there: closing the file would send it first.
    pub fn forget(self) {
        let _ = self.file.set_len(0);
    }
}

/// Each call is a request to the server.
pub struct DirectFile(File);

impl DirectFile {
    pub fn put(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.0.write_at(bytes, at)
    }

    pub fn get(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read_at(bytes, at)
    }
}

fn create(folder: &Path) -> io::Result<(PathBuf, File)> {
    let mut tried = 0;
    loop {
        let name = folder.join(format!(
            ".nfstune-bench-{}-{:08x}",
            std::process::id(),
            fastrand::u32(..)
        ));
        let created = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&name);
        match created {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tried < TRIES => tried += 1,
            created => return created.map(|file| (name, file)),
        }
    }
}

/// Is the file where the values are changed?
pub fn is_on(file: &File, dev: Option<Dev>) -> io::Result<()> {
    let Some(dev) = dev else { return Ok(()) };
    let its = file.metadata()?.dev();
    if (libc::major(its), libc::minor(its)) != (dev.major, dev.minor) {
        return Err(io::Error::other(format!("is not on the device {dev} of the mount")));
    }
    Ok(())
}
