//! /sys/kernel/sunrpc: the connections of RPC clients, and which of them are up (Linux 5.14).
//! (kernel: net/sunrpc/sysfs.c)
//!
//! Read only. Writing here can add connections, and does it wrongly on the kernels that have it.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use crate::decimal::decimal;
use crate::kernel::read_small;
use crate::root::Root;

/// More of either is no client's: nconnect ends at 16.
const SWITCHES: usize = 4096;
const TRANSPORTS: usize = 64;

/// The connections of one client of the kernel's: of NFS, or of what mounting asks (portmap, mountd).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch(pub Vec<Transport>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transport {
    pub to: IpAddr,
    /// None: it has none, for it is not connected.
    pub to_port: Option<u16>,
    pub is_connected: bool,
}

/// Empty where the kernel does not say.
pub fn switches(root: &Root) -> Vec<Switch> {
    let folders = fs::read_dir(root.sunrpc_switches())
        .into_iter()
        .flatten()
        .take(SWITCHES);
    let switch = |folder: &Path| {
        let entries = fs::read_dir(folder).ok()?;
        let named = entries.filter_map(|entry| {
            entry
                .ok()
                .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"xprt-"))
        });
        let transports: Option<Vec<Transport>> = named.take(TRANSPORTS).map(|entry| transport(&entry.path())).collect();
        Some(Switch(transports.filter(|all| !all.is_empty())?))
    };
    folders.filter_map(|folder| switch(&folder.ok()?.path())).collect()
}

fn transport(folder: &Path) -> Option<Transport> {
    let read = |name: &str| read_small(&folder.join(name), 4096).ok();
    let to = read("dstaddr")?;
    // Without a connection this file cannot be read (ENOTCONN).
    let info = read("xprt_info").unwrap_or_default();
    let mut lines = info.split(|b| *b == b'\n');
    let port = lines.find_map(|line| decimal(line.strip_prefix(b"dst_port=")?));
    let state = read("xprt_state")?;
    let mut words = state.split(|b| b.is_ascii_whitespace() || *b == b'=');
    Some(Transport {
        to: std::str::from_utf8(to.trim_ascii()).ok()?.parse().ok()?,
        to_port: port.and_then(|port| u16::try_from(port).ok()),
        is_connected: words.any(|word| word == b"CONNECTED"),
    })
}

/// How many of a client's connections are up. Nothing here names the client, so: None where several that look like it differ.
pub fn connected(switches: &[Switch], to: IpAddr, port: u16, connections: usize) -> Option<u64> {
    let is_it = |transport: &Transport| transport.to == to && transport.to_port.is_none_or(|other| other == port);
    let like = switches
        .iter()
        .filter(|switch| switch.0.len() == connections && switch.0.iter().all(is_it));
    let mut counts = like.map(|switch| switch.0.iter().filter(|transport| transport.is_connected).count());
    let first = counts.next()?;
    counts
        .all(|count| count == first)
        .then_some(first)
        .and_then(|count| u64::try_from(count).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a tree as `grep . -r` shows it: "== PATH", and its lines.
    fn tree(kernel: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let listing = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/network")
            .join(kernel)
            .join("sunrpc");
        let text = fs::read_to_string(listing).unwrap();
        for part in text.split("== ./xprt-switches/").skip(1) {
            let (path, lines) = part.split_once('\n').unwrap();
            let file = root.sunrpc_switches().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, lines).unwrap();
        }
        dir
    }

    #[test]
    fn four_connections_of_a_real_kernel() {
        for kernel in ["6.1", "6.12", "7.2"] {
            let dir = tree(kernel);
            let root = Root::new(dir.path());
            let to = IpAddr::from([127, 0, 0, 1]);
            let all = switches(&root);
            assert_eq!(all.iter().filter(|switch| switch.0.len() == 4).count(), 1, "{kernel}");
            assert_eq!(connected(&all, to, 2049, 4), Some(4), "{kernel}");
            assert_eq!(connected(&all, to, 2049, 5), None);
            assert_eq!(connected(&all, [127, 0, 0, 2].into(), 2049, 4), None);
            // One goes down: its port cannot be asked any more.
            let four = fs::read_dir(root.sunrpc_switches())
                .unwrap()
                .map(|entry| entry.unwrap().path());
            let four = four
                .into_iter()
                .find(|path| fs::read_dir(path).unwrap().count() > 4)
                .unwrap();
            let one = fs::read_dir(four)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .find(|path| path.is_dir())
                .unwrap();
            fs::remove_file(one.join("xprt_info")).unwrap();
            fs::write(one.join("xprt_state"), "state=CLOSED\n").unwrap();
            assert_eq!(connected(&switches(&root), to, 2049, 4), Some(3), "{kernel}");
        }
    }

    #[test]
    fn clients_that_look_alike_are_not_told_apart() {
        let to = IpAddr::from([192, 0, 2, 1]);
        let switch = |connected: &[bool]| {
            let transport = |is_connected: &bool| Transport {
                to,
                to_port: is_connected.then_some(2049),
                is_connected: *is_connected,
            };
            Switch(connected.iter().map(transport).collect())
        };
        let (both, one) = (switch(&[true, true]), switch(&[true, false]));
        assert_eq!(connected(&[both.clone(), both.clone()], to, 2049, 2), Some(2));
        assert_eq!(connected(&[both.clone(), one], to, 2049, 2), None);
        assert_eq!(connected(&[both], to, 20049, 2), None);
        assert_eq!(switches(&Root::new("/nowhere")), []);
    }
}
