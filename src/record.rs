//! Which files make a sample, so that it can be taken again from a copy: what `nfstune record` keeps and `nfstune replay` reads.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::kernel::bdi::Dev;
use crate::kernel::knob::{attribute_path, threshold_paths, Attribute, Threshold};
use crate::kernel::route::{self, NIC_DROPS};
use crate::root::{Root, FSTAB};
use crate::sample::{instance, Sample};

/// One file: its path as it is on the system, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// Beside the attributes of a device in a record: which instance it was.
pub const INSTANCE: &str = "instance";

/// Of one file; the rest is cut.
const FILE_LIMIT: u64 = 64 << 20;
/// Drop-ins of one folder.
const DROP_INS: usize = 256;

/// The files behind a sample that was just taken. What cannot be read is left out.
pub fn files(root: &Root, sample: &Sample) -> Vec<Kept> {
    let mut paths = vec![
        root.mountinfo(),
        root.mountstats(),
        root.nfsfs_volumes(),
        root.vmstat(),
        root.meminfo(),
        root.memory_pressure(),
        root.uptime(),
        root.osrelease(),
        root.boot_id(),
        root.dmi_sys_vendor(),
    ];
    paths.extend(
        Threshold::ALL
            .iter()
            .flat_map(|threshold| threshold_paths(root, *threshold)),
    );
    for device in &sample.devices {
        paths.extend(
            Attribute::ALL
                .iter()
                .map(|attribute| attribute_path(root, device.dev, *attribute)),
        );
    }
    // The way to the servers: the tables that are read where no kernel can be asked. And how the way is doing.
    paths.extend([root.ipv4_routes(), root.ipv6_routes()]);
    paths.extend([root.snmp(), root.netstat(), root.softnet_stat(), root.stat()]);
    paths.push(root.nfs_parameter("max_session_slots"));
    let links: BTreeSet<&String> = sample
        .clients
        .values()
        .filter_map(|client| client.link.as_ref())
        .flat_map(|link| link.lowers.iter().chain([&link.device]))
        .collect();
    for device in links {
        let folder = root.network_device(device);
        paths.extend(["mtu", "bonding/slaves", "bonding/xmit_hash_policy"].map(|name| folder.join(name)));
        paths.extend(NIC_DROPS.map(|name| folder.join("statistics").join(name)));
        // A copy does not tell what it is a copy of.
        if !route::is_made_up(root, device) {
            paths.push(folder.join("speed"));
        }
    }
    let mut kept: Vec<Kept> = paths.iter().filter_map(|path| keep(root, path)).collect();
    kept.extend(sample.devices.iter().filter_map(|device| instance_of(root, device.dev)));
    kept
}

/// The configuration: kept once.
pub fn configuration(root: &Root, file: &Path) -> Vec<Kept> {
    let mut paths = vec![root.join(file), root.join(Path::new(FSTAB))];
    let mut folder = file.as_os_str().to_owned();
    folder.push(".d");
    if let Ok(entries) = fs::read_dir(root.join(Path::new(&folder))) {
        paths.extend(entries.take(DROP_INS).filter_map(|entry| Some(entry.ok()?.path())));
    }
    paths.iter().filter_map(|path| keep(root, path)).collect()
}

fn keep(root: &Root, path: &Path) -> Option<Kept> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    // The configuration may be anything; kernel files are regular to look at.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    file.take(FILE_LIMIT).read_to_end(&mut bytes).ok()?;
    Some(Kept {
        path: root.shown(path).into_owned(),
        bytes,
    })
}

fn instance_of(root: &Root, dev: Dev) -> Option<Kept> {
    let path = root.bdi(&dev.to_string()).join(INSTANCE);
    Some(Kept {
        path: root.shown(&path).into_owned(),
        bytes: instance(root, dev)?.to_string().into_bytes(),
    })
}

/// The folder of a sample in a record: its time, so that they sort.
pub fn folder(boottime_ms: u64) -> String {
    format!("{boottime_ms:020}")
}

/// Is this the folder of a sample?
pub fn is_folder(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.len() == 20 && name.iter().all(u8::is_ascii_digit)
}
