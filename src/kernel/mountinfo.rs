//! /proc/self/mountinfo: where each superblock is mounted, in text.
//! (kernel: fs/proc_namespace.c `show_mountinfo`; fs/nfs/super.c `nfs_show_options`)

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use crate::decimal::decimal;
use crate::error::{Error, Result};
use crate::kernel::bdi::Dev;
use crate::root::Root;

/// The protocol version as far as nfs.conf cares: the key `nfs` is for 2 and 3, the key `nfs4` for all of 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    V3,
    V4,
}

/// One NFS mount. Paths are decoded bytes; they need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub dev: Dev,
    /// None where the mount cannot be reached from this process's root directory.
    pub mount_point: Option<Vec<u8>>,
    /// `server:/export` as it was mounted. None where the kernel did not say (statmount(2) before Linux 6.13).
    pub source: Option<Vec<u8>>,
    /// What the client negotiated, parted by commas: `vers=`, `rsize=`, `addr=`.
    pub super_options: Vec<u8>,
    /// The type was nfs4. It decides only where the options name no version: kernels of 5.6-rc showed version 4 as nfs.
    pub is_type_nfs4: bool,
}

impl Mount {
    /// The value of a superblock option.
    pub fn option(&self, name: &str) -> Option<&[u8]> {
        option(&self.super_options, name)
    }

    pub fn version(&self) -> Version {
        match self.option("vers").and_then(|vers| vers.first()) {
            Some(b'4') => Version::V4,
            Some(b'2' | b'3') => Version::V3,
            _ if self.is_type_nfs4 => Version::V4,
            _ => Version::V3,
        }
    }

    /// The largest read in KiB. The kernel's smallest is 1 KiB (include/linux/nfs_xdr.h `NFS_MIN_FILE_IO_SIZE`), so 0 says nothing.
    pub fn rsize_kib(&self) -> Option<u64> {
        Some(decimal(self.option("rsize")?)? / 1024).filter(|kib| *kib > 0)
    }

    /// The largest write in bytes.
    pub fn wsize_bytes(&self) -> Option<u64> {
        decimal(self.option("wsize")?).filter(|bytes| *bytes > 0)
    }

    /// Connections of its client, as the first mount of that server has asked for (fs/nfs/super.c `nfs_show_mount_options`).
    pub fn connections(&self) -> u64 {
        self.option("nconnect").and_then(decimal).unwrap_or(1).max(1)
    }

    /// The protocol version with its minor, as the options name it: "3", "4.2".
    pub fn shown_version(&self) -> Cow<'_, [u8]> {
        match (self.option("vers"), self.version()) {
            (Some(vers), _) => vers.into(),
            (None, Version::V3) => b"3"[..].into(),
            (None, Version::V4) => b"4"[..].into(),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::V3 => "3",
            Version::V4 => "4",
        })
    }
}

/// The value of one of `options`, which are parted by commas.
pub(crate) fn option<'a>(options: &'a [u8], name: &str) -> Option<&'a [u8]> {
    options
        .split(|b| *b == b',')
        .find_map(|option| option.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// One line, if it is an NFS mount. Between the mount options and the lone "-" stand any number of tags, so that is looked
/// for and columns are not counted. A line that is not understood is None: one broken line never ends a table.
pub fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.strip_suffix(b"\n").unwrap_or(line).split(|b| *b == b' ');
    let dev = Dev::parse(fields.nth(2)?)?;
    let mount_point = fields.nth(1)?;
    fields.next()?;
    fields.by_ref().find(|field| *field == b"-")?;
    let is_type_nfs4 = match fields.next()? {
        b"nfs" => false,
        b"nfs4" => true,
        _ => return None,
    };
    Some(Mount {
        dev,
        mount_point: Some(unescape(mount_point).into_owned()),
        source: Some(unescape(fields.next()?).into_owned()),
        super_options: fields.next().unwrap_or_default().to_vec(),
        is_type_nfs4,
    })
}

/// The device of a line, without a look at the rest: a table of 50,000 mounts is passed by quickly.
fn dev_field(line: &[u8]) -> Option<&[u8]> {
    line.split(|b| *b == b' ').nth(2)
}

/// NFS mounts in the order of the table, which is the order in which they were made; only those of `dev` if one is given.
pub fn parse(mut text: impl BufRead, dev: Option<Dev>) -> io::Result<Vec<Mount>> {
    let wanted = dev.map(|dev| dev.to_string());
    let mut found = Vec::new();
    let mut line = Vec::new();
    while text.read_until(b'\n', &mut line)? > 0 {
        let may_be = match &wanted {
            Some(wanted) => dev_field(&line) == Some(wanted.as_bytes()),
            None => true,
        };
        if may_be {
            found.extend(parse_line(&line));
        }
        line.clear();
    }
    Ok(found)
}

/// [`parse`] on the kernel's table.
pub fn mounts(root: &Root, dev: Option<Dev>) -> Result<Vec<Mount>> {
    read(root.mountinfo(), dev)
}

/// All NFS mounts in the mount namespace of the calling thread.
pub fn mounts_of_thread(root: &Root) -> Result<Vec<Mount>> {
    read(root.mountinfo_of_thread(), None)
}

fn read(path: PathBuf, dev: Option<Dev>) -> Result<Vec<Mount>> {
    File::open(&path)
        .and_then(|file| parse(BufReader::with_capacity(64 << 10, file), dev))
        .map_err(Error::io("read", path))
}

/// Tells when the mount table changes. Open it before the first look at the table: what happens in between is then not lost
/// (kernel: fs/proc_namespace.c `mounts_poll`).
#[derive(Debug)]
pub struct Changes(File);

impl AsFd for Changes {
    /// For poll(2): a change is told as POLLPRI.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Changes {
    pub fn open(root: &Root) -> Result<Changes> {
        let path = root.mountinfo();
        File::open(&path).map(Changes).map_err(Error::io("open", path))
    }

    /// Waits for a change, at most `timeout`. True: something was mounted, moved or unmounted. On a plain file, below
    /// another root, nothing is ever told, so there the answer is true after the whole time.
    pub fn wait(&self, timeout: Duration, root: &Root) -> io::Result<bool> {
        let mut table = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLPRI,
            revents: 0,
        };
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one pollfd is given and said, and its descriptor is open.
        let n = unsafe { libc::poll(&raw mut table, 1, timeout_ms) };
        match n {
            0 => Ok(!root.is_live()),
            1.. => Ok(true),
            _ => match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::Interrupted => Ok(true),
                e => Err(e),
            },
        }
    }
}

/// Undoes the kernel's `\ooo` (fs/seq_file.c `mangle_path` escapes blank, tab, newline, backslash and #). Anything that is
/// no such escape stays.
pub fn unescape(field: &[u8]) -> Cow<'_, [u8]> {
    if !field.contains(&b'\\') {
        return field.into();
    }
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_odd_paths_come_back_as_they_were() {
        let line = br"46 1 0:48 / /mnt/bad\134040sl\040\011\012\043x rw - nfs4 h:/a\040b rw,vers=4.2,rsize=131072";
        let mount = parse_line(line).unwrap();
        assert_eq!(mount.mount_point.as_deref(), Some(&b"/mnt/bad\\040sl \t\n#x"[..]));
        assert_eq!(mount.source.as_deref(), Some(&b"h:/a b"[..]));
        assert_eq!(mount.rsize_kib(), Some(128));
        assert_eq!(unescape(br"\400\08\1"), &br"\400\08\1"[..]);
    }

    #[test]
    fn the_type_is_exact() {
        for fstype in ["nfsd", "nfsfoo", "nfs41", "xnfs", "fuse.nfs", "NFS"] {
            let line = format!("30 27 0:51 / /p rw - {fstype} x rw");
            assert_eq!(parse_line(line.as_bytes()), None, "{fstype}");
        }
    }

    #[test]
    fn an_option_is_a_whole_name() {
        let mount = parse_line(b"1 2 0:5 / /p rw - nfs h:/x rw,mountvers=4,vers=3,wrsize=9,rsize=1048576").unwrap();
        assert_eq!(mount.version(), Version::V3);
        assert_eq!(mount.rsize_kib(), Some(1024));
        assert_eq!(mount.option("addr"), None);
        let mount = parse_line(b"1 2 0:5 / /p rw - nfs h:/x rw,rsize=0").unwrap();
        assert_eq!(mount.rsize_kib(), None);
    }
}
