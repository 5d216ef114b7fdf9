//! /sys/class/bdi/MAJ:MIN: the backing device of a superblock, and its readahead.
//! (kernel: mm/backing-dev.c; fs/super.c `super_setup_bdi_name` gives the name "%u:%u")

use std::ffi::CStr;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::decimal::decimal;
use crate::error::{Error, Result};
use crate::root::Root;

/// A device number as the kernel prints it. A `dev_t` has 12 bits of major and 20 bits of minor (include/linux/kdev_t.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dev {
    pub major: u32,
    pub minor: u32,
}

impl Dev {
    /// The whole text must be a number that the kernel could have printed: digits, colon, digits, no leading zeros, within
    /// 12 and 20 bits. "0:52-fuseblk", "btrfs-1" and "0:52:1" are names of backing devices too, but never NFS.
    pub fn parse(text: &[u8]) -> Option<Dev> {
        let colon = text.iter().position(|b| *b == b':')?;
        Some(Dev {
            major: part(&text[..colon], 12)?,
            minor: part(&text[colon + 1..], 20)?,
        })
    }

    /// NFS superblocks have no device of their own, so their number is anonymous: the major is 0 (fs/super.c `get_anon_bdev`).
    pub fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

fn part(digits: &[u8], bits: u32) -> Option<u32> {
    if digits.len() > 1 && digits[0] == b'0' {
        return None;
    }
    let n = u32::try_from(decimal(digits)?).ok()?;
    (n < 1 << bits).then_some(n)
}

impl fmt::Display for Dev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// One instance of a backing device. Minor numbers are reused at once after an unmount, so the name is no identity; the
/// open folder is: once that instance is unregistered, nothing opens below it any more (fs/kernfs/dir.c
/// `kernfs_iop_lookup` finds no active node), even when a new device has taken the name. Open this first, look at the mount
/// table after it, write through it last: then a write never reaches another mount than the one looked at.
#[derive(Debug)]
pub struct Bdi {
    pub dev: Dev,
    folder: File,
    path: PathBuf,
}

impl Bdi {
    /// None: the device has gone.
    pub fn open(root: &Root, dev: Dev) -> Result<Option<Bdi>> {
        let path = root.bdi(&dev.to_string());
        match OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(&path)
        {
            Ok(folder) => Ok(Some(Bdi { dev, folder, path })),
            Err(e) if has_gone(&e) => Ok(None),
            Err(e) => Err(Error::io("open", path)(e)),
        }
    }

    /// The path of an attribute, for messages.
    pub fn attribute_path(&self, name: &CStr) -> PathBuf {
        self.path.join(name.to_string_lossy().as_ref())
    }

    /// Opens an attribute of this very instance.
    pub fn attribute(&self, name: &CStr, flags: libc::c_int) -> io::Result<File> {
        // SAFETY: the folder's descriptor is open for as long as `self` lives, and `name` ends in a NUL byte.
        let fd = unsafe {
            libc::openat(
                self.folder.as_raw_fd(),
                name.as_ptr(),
                flags | libc::O_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: openat gave a new descriptor that nobody else owns.
        Ok(unsafe { File::from_raw_fd(fd) })
    }

    /// Still registered?
    pub fn is_there(&self) -> bool {
        self.attribute(READ_AHEAD_KB, libc::O_RDONLY).is_ok()
    }

    /// `read_ahead_kb` in KiB. None: gone, or a number that makes no sense (the kernel shows -4 after 2^64 - 1 was written).
    pub fn read_ahead_kib(&self) -> Result<Option<u64>> {
        let shown = self
            .attribute(READ_AHEAD_KB, libc::O_RDONLY)
            .and_then(|mut file| read_number(&mut file));
        match shown {
            Ok(text) => Ok(decimal(text.trim_ascii())),
            Err(e) if has_gone(&e) => Ok(None),
            Err(e) => Err(Error::io("read", self.attribute_path(READ_AHEAD_KB))(e)),
        }
    }
}

/// The attribute for readahead, KiB, since 2.6.26.
pub const READ_AHEAD_KB: &CStr = c"read_ahead_kb";

/// Not there, or there no more: an attribute of a device that is being unregistered answers ENODEV.
pub fn has_gone(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
}

/// One read of an attribute that holds one number.
pub fn read_number(file: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut text = [0u8; 64];
    let n = file.read(&mut text)?;
    Ok(text[..n].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_prints_is_a_device() {
        for good in ["0:51", "0:0", "8:16", "259:0", "0:65600", "4095:1048575"] {
            let dev = Dev::parse(good.as_bytes()).expect(good);
            assert_eq!(dev.to_string(), good);
        }
        for bad in [
            "",
            ":",
            "0:",
            ":51",
            "0:51junk",
            "0:51-fuseblk",
            "0: 51",
            " 0:51",
            "0:51 ",
            "0:51\n",
            "0:51:9",
            "0:+51",
            "0:-1",
            "0:4294967347",
            "0:1048576",
            "4096:0",
            "0x0:51",
            "00:51",
            "0:051",
            "btrfs-1",
            "default",
            "0:٣",
            "99999999999999999999:1",
        ] {
            assert_eq!(Dev::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_folder_made_anew_under_the_same_name_is_another_device() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let dev = Dev::parse(b"0:51").unwrap();
        assert!(Bdi::open(&root, dev).unwrap().is_none());
        let path = root.bdi("0:51");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("read_ahead_kb"), "128\n").unwrap();
        let bdi = Bdi::open(&root, dev).unwrap().unwrap();
        assert_eq!(bdi.read_ahead_kib().unwrap(), Some(128));
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("read_ahead_kb"), "4\n").unwrap();
        assert!(!bdi.is_there());
        assert_eq!(bdi.read_ahead_kib().unwrap(), None);
    }

    #[test]
    fn a_value_that_makes_no_sense_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let path = root.bdi("0:51");
        std::fs::create_dir_all(&path).unwrap();
        for (text, value) in [
            ("-4\n", None),
            ("", None),
            ("x", None),
            ("0\n", Some(0)),
            ("15360\n", Some(15360)),
        ] {
            std::fs::write(path.join("read_ahead_kb"), text).unwrap();
            let bdi = Bdi::open(&root, Dev::parse(b"0:51").unwrap())
                .unwrap()
                .unwrap();
            assert_eq!(bdi.read_ahead_kib().unwrap(), value, "{text:?}");
        }
    }
}
