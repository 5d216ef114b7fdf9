//! /sys/class/bdi/MAJ:MIN: the backing device of a superblock, and its readahead.
//! (kernel: mm/backing-dev.c; fs/super.c `super_setup_bdi_name` gives the name "%u:%u")

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

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

/// One instance of a backing device, by its open attribute `read_ahead_kb` (KiB, since 2.6.26).
///
/// Minor numbers are reused at once after an unmount, so the name is no identity; the open file is: once that instance is
/// unregistered, reads and writes answer ENODEV (fs/kernfs/file.c `kernfs_get_active`), even when a new device has taken the
/// name. Open this first, look at the mount table after it, write through it last: then a write never reaches another mount
/// than the one looked at.
#[derive(Debug)]
pub struct Bdi {
    pub dev: Dev,
    read_ahead_kb: File,
    path: PathBuf,
}

/// What the attribute is opened for; writing is root's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    ReadWrite,
}

impl Bdi {
    /// None: the device has gone.
    pub fn open(root: &Root, dev: Dev, access: Access) -> Result<Option<Bdi>> {
        let path = root.bdi(&dev.to_string()).join("read_ahead_kb");
        let opened = OpenOptions::new()
            .read(true)
            .write(access == Access::ReadWrite)
            .open(&path);
        match opened {
            Ok(read_ahead_kb) => Ok(Some(Bdi {
                dev,
                read_ahead_kb,
                path,
            })),
            Err(e) if has_gone(&e) => Ok(None),
            Err(e) => Err(Error::io("open", path)(e)),
        }
    }

    /// The readahead of a device at this moment, KiB. None: gone, or unknown.
    pub fn now_kib(root: &Root, dev: Dev) -> Result<Option<u64>> {
        match Bdi::open(root, dev, Access::Read)? {
            Some(bdi) => bdi.read_ahead_kib(),
            None => Ok(None),
        }
    }

    /// The attribute's path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The attribute itself, for those who may write.
    pub fn read_ahead_file(&self) -> &File {
        &self.read_ahead_kb
    }

    /// Still registered? (A plain file below another root tells by its links.)
    pub fn is_there(&self) -> bool {
        let is_linked = self.read_ahead_kb.metadata().is_ok_and(|m| m.nlink() > 0);
        is_linked && self.read_text().is_ok()
    }

    /// The value in KiB. None: gone, or a number that makes no sense (the kernel shows -4 after 2^64 - 1 was written).
    pub fn read_ahead_kib(&self) -> Result<Option<u64>> {
        match self.read_text() {
            Ok(text) => Ok(decimal(text.trim_ascii())),
            Err(e) if has_gone(&e) => Ok(None),
            Err(e) => Err(Error::io("read", &self.path)(e)),
        }
    }

    /// What the attribute shows, whole: reading from the start makes the kernel show it anew (fs/seq_file.c `seq_read_iter`).
    pub fn read_text(&self) -> io::Result<Vec<u8>> {
        let mut text = [0u8; 64];
        let n = self.read_ahead_kb.read_at(&mut text, 0)?;
        Ok(text[..n].to_vec())
    }
}

/// Not there, or there no more.
pub fn has_gone(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
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

    fn fake(text: &str) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        std::fs::create_dir_all(root.bdi("0:51")).unwrap();
        std::fs::write(root.bdi("0:51").join("read_ahead_kb"), text).unwrap();
        (dir, root)
    }

    fn open(root: &Root) -> Option<Bdi> {
        Bdi::open(root, Dev::parse(b"0:51").unwrap(), Access::Read).unwrap()
    }

    #[test]
    fn a_device_made_anew_under_the_same_name_is_another_one() {
        let (_dir, root) = fake("128\n");
        let bdi = open(&root).unwrap();
        assert_eq!(bdi.read_ahead_kib().unwrap(), Some(128));
        assert!(bdi.is_there());
        std::fs::remove_dir_all(root.bdi("0:51")).unwrap();
        assert!(open(&root).is_none());
        std::fs::create_dir_all(root.bdi("0:51")).unwrap();
        std::fs::write(bdi.path(), "4\n").unwrap();
        assert!(!bdi.is_there());
        assert_eq!(bdi.read_ahead_kib().unwrap(), Some(128));
    }

    #[test]
    fn a_value_that_makes_no_sense_is_unknown() {
        for (text, value) in [
            ("-4\n", None),
            ("", None),
            ("x", None),
            ("0\n", Some(0)),
            ("15360\n", Some(15360)),
        ] {
            let (_dir, root) = fake(text);
            assert_eq!(open(&root).unwrap().read_ahead_kib().unwrap(), value, "{text:?}");
        }
    }
}
