//! Mounts that only other processes see: in pods and services with a mount namespace of their own.
//!
//! A backing device is global, a mount is not. /proc/PID/mountinfo may be read without a capability
//! (kernel: fs/proc_namespace.c `mounts_open_common`), /proc/PID/ns/mnt may not, so a namespace is known by the mount of its root
//! directory, the first line of that table: no two namespaces share a mount.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::decimal::decimal;
use crate::error::{Error, Result};
use crate::kernel::bdi::Dev;
use crate::kernel::mountinfo::{self, Mount};
use crate::root::Root;

/// So many namespaces are looked through, those of the newest processes first.
pub const NAMESPACES: usize = 64;
/// So many processes are asked for theirs.
const PROCESSES: usize = 8192;
/// Of one mount table, bytes: some 50,000 mounts.
const TABLE_LIMIT: u64 = 16 << 20;

/// The mounts of `wanted` devices in other namespaces. Their mount points mean nothing here, so they have none.
pub fn mounts_elsewhere(root: &Root, wanted: &BTreeSet<Dev>) -> Result<Vec<Mount>> {
    let mut seen = BTreeSet::from([root_mount(&root.mountinfo())]);
    let mut found: Vec<Mount> = Vec::new();
    for pid in newest_processes(root)? {
        let table = root.proc().join(pid.to_string()).join("mountinfo");
        // A process may end at any time; a kernel thread has no table.
        let Some(namespace) = root_mount(&table) else { continue };
        if !seen.insert(Some(namespace)) {
            continue;
        }
        found.extend(mounts_of(&table, wanted));
        let is_all = wanted.iter().all(|dev| found.iter().any(|mount| mount.dev == *dev));
        if is_all || seen.len() > NAMESPACES {
            break;
        }
    }
    Ok(found)
}

fn newest_processes(root: &Root) -> Result<Vec<u64>> {
    let path = root.proc();
    let entries = fs::read_dir(&path).map_err(Error::io("list", path))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut pids: Vec<u64> = names.filter_map(|name| decimal(name.as_encoded_bytes())).collect();
    pids.sort_unstable_by(|a, b| b.cmp(a));
    pids.truncate(PROCESSES);
    Ok(pids)
}

/// Mount and parent ID of the first line.
fn root_mount(table: &Path) -> Option<(u64, u64)> {
    let mut line = Vec::new();
    let file = fs::File::open(table).ok()?;
    BufReader::new(file.take(64 << 10)).read_until(b'\n', &mut line).ok()?;
    let mut fields = line.split(|b| *b == b' ');
    Some((decimal(fields.next()?)?, decimal(fields.next()?)?))
}

fn mounts_of(table: &Path, wanted: &BTreeSet<Dev>) -> Vec<Mount> {
    let Ok(file) = fs::File::open(table) else {
        return Vec::new();
    };
    let mounts = mountinfo::parse(BufReader::new(file.take(TABLE_LIMIT)), None).unwrap_or_default();
    let ours = mounts.into_iter().filter(|mount| wanted.contains(&mount.dev));
    ours.map(|mount| Mount {
        mount_point: None,
        ..mount
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "22 1 259:2 / / rw shared:1 - ext4 /dev/root rw\n";
    const POD: &str = "700 600 0:91 / /data rw - nfs4 10.96.0.12:/pvc-1 rw,vers=4.1,rsize=1048576\n";

    fn fake() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        for (process, table) in [("self", HOST), ("1", HOST), ("4242", POD), ("5000", HOST), ("77", "")] {
            let folder = root.proc().join(process);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("mountinfo"), table).unwrap();
        }
        fs::create_dir_all(root.proc().join("4243")).unwrap();
        (dir, root)
    }

    fn dev(minor: u32) -> Dev {
        Dev { major: 0, minor }
    }

    #[test]
    fn a_mount_of_a_pod_is_found_without_its_place() {
        let (_dir, root) = fake();
        let found = mounts_elsewhere(&root, &BTreeSet::from([dev(91), dev(92)])).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].dev, found[0].mount_point.as_deref()), (dev(91), None));
        assert_eq!(found[0].source.as_deref(), Some(&b"10.96.0.12:/pvc-1"[..]));
        assert_eq!(mounts_elsewhere(&root, &BTreeSet::from([dev(92)])).unwrap(), []);
    }

    #[test]
    fn the_search_is_bounded_and_begins_with_the_newest() {
        let (_dir, root) = fake();
        for pid in 10_000..10_100u64 {
            let folder = root.proc().join(pid.to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("mountinfo"), format!("{pid} 1 0:3 / / rw - tmpfs t rw\n")).unwrap();
        }
        assert_eq!(mounts_elsewhere(&root, &BTreeSet::from([dev(91)])).unwrap(), []);
        fs::write(root.proc().join("10080/mountinfo"), POD).unwrap();
        assert_eq!(mounts_elsewhere(&root, &BTreeSet::from([dev(91)])).unwrap().len(), 1);
    }
}
