//! /proc/fs/nfsfs/volumes: every NFS superblock of this network namespace, before udev hears of it.
//! (kernel: fs/nfs/client.c `nfs_volume_list_show`)
//!
//! A superblock is listed before its backing device raises the "add" event, so this file answers at once whether a device
//! is NFS and which version it speaks. It has no minor version, no rsize and no path.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::IpAddr;

use crate::error::{Error, Result};
use crate::kernel::bdi::Dev;
use crate::kernel::mountinfo::Version;
use crate::kernel::read_small;
use crate::root::Root;

/// One line: `NV SERVER PORT DEV FSID FSC`, parted by blanks; the server's address and port are hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    pub version: Version,
    pub dev: Dev,
}

/// None: the header, or a line that is not understood.
pub fn parse_line(line: &[u8]) -> Option<Volume> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty());
    let version = match fields.next()? {
        b"v2" | b"v3" => Version::V3,
        b"v4" => Version::V4,
        _ => return None,
    };
    let dev = Dev::parse(fields.nth(2)?)?;
    Some(Volume { version, dev })
}

/// The volume of `dev`. A number belongs to one superblock at a time, so the first line that names it is the only one.
pub fn find(mut text: impl BufRead, dev: Dev) -> io::Result<Option<Volume>> {
    let mut line = Vec::new();
    while text.read_until(b'\n', &mut line)? > 0 {
        match parse_line(&line) {
            Some(volume) if volume.dev == dev => return Ok(Some(volume)),
            _ => line.clear(),
        }
    }
    Ok(None)
}

/// [`find`] on the kernel's list. No file means no NFS client here, so no volume.
pub fn volume_of(root: &Root, dev: Dev) -> Result<Option<Volume>> {
    with_list(root, |list| find(list, dev)).map(Option::flatten)
}

/// All volumes, in the kernel's order: the newest is the last.
pub fn volumes(root: &Root) -> Result<Vec<Volume>> {
    let all = with_list(root, |list| {
        Ok(list
            .split(b'\n')
            .map_while(io::Result::ok)
            .filter_map(|line| parse_line(&line))
            .collect())
    })?;
    Ok(all.unwrap_or_default())
}

/// Addresses of the servers to which the kernel has a client, in the network namespace of the calling thread; one client a
/// line of `NV SERVER PORT USE HOSTNAME` (kernel: fs/nfs/client.c `nfs_server_list_show`). They stay listed as long as
/// anything uses them, mounted or not. No file, no clients.
pub fn servers_of_thread(root: &Root) -> Result<Vec<IpAddr>> {
    let path = root.nfsfs_servers_of_thread();
    match read_small(&path, SERVERS_LIMIT) {
        Ok(text) => Ok(text.split(|b| *b == b'\n').filter_map(parse_server).collect()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::io("read", path)(e)),
    }
}

/// More servers than fit here are no client's.
const SERVERS_LIMIT: usize = 1 << 20;

/// The address, in hexadecimal and in the order of the network. None: the header, or a line that is not understood.
pub fn parse_server(line: &[u8]) -> Option<IpAddr> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty());
    if !matches!(fields.next()?, b"v2" | b"v3" | b"v4") {
        return None;
    }
    let digits = std::str::from_utf8(fields.next()?).ok()?;
    match digits.len() {
        8 => Some(IpAddr::V4(u32::from_str_radix(digits, 16).ok()?.into())),
        32 => Some(IpAddr::V6(u128::from_str_radix(digits, 16).ok()?.into())),
        _ => None,
    }
}

/// The kernel gives about a page at a time, whatever the buffer (fs/seq_file.c).
const ONE_READ: usize = 4 << 10;

fn with_list<T>(root: &Root, read: impl FnOnce(BufReader<File>) -> io::Result<T>) -> Result<Option<T>> {
    let path = root.nfsfs_volumes();
    match File::open(&path) {
        Ok(file) => read(BufReader::with_capacity(ONE_READ, file))
            .map(Some)
            .map_err(Error::io("read", path)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("open", path)(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &[u8] = b"NV SERVER   PORT DEV          FSID                              FSC\n\
        v3 7f000001  801 0:30         b:0                               no \n\
        v4 7f000001  801 0:33         b:0                               no \n\
        v4 fe800000000000000000000000000001  801 0:1048575    0123456789abcdef:fedcba9876543210 yes\n";

    fn dev(text: &str) -> Dev {
        Dev::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_line_names_the_version_of_its_device() {
        let version = |d| find(REAL, dev(d)).unwrap().map(|v| v.version);
        assert_eq!(version("0:30"), Some(Version::V3));
        assert_eq!(version("0:33"), Some(Version::V4));
        assert_eq!(version("0:1048575"), Some(Version::V4));
        assert_eq!(version("0:3"), None);
    }

    #[test]
    fn lines_that_make_no_sense_are_no_volumes() {
        for line in [
            "",
            "v4",
            "v4 7f000001 801",
            "v4 7f000001 801 0:x b:0 no",
            "v5 7f000001 801 0:30 b:0 no",
            "NV SERVER PORT DEV",
        ] {
            assert_eq!(parse_line(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn servers_by_their_address() {
        let server = |line: &[u8]| parse_server(line).map(|address| address.to_string());
        assert_eq!(server(b"v4 0a090002  801   2 10.9.0.2").as_deref(), Some("10.9.0.2"));
        let v6 = b"v3 20010db8000000000000000000000005  801   1 filer";
        assert_eq!(server(v6).as_deref(), Some("2001:db8::5"));
        for other in [
            &b"NV SERVER   PORT USE HOSTNAME"[..],
            b"",
            b"v4",
            b"v4 0a09",
            b"v5 0a090002 801",
            b"v4 0a0900zz 801",
        ] {
            assert_eq!(server(other), None);
        }
    }
}
