//! A machine below a root directory of its own: NFS devices with their knobs, the machine's limits, a configuration.

#![allow(dead_code)] // each test program uses its part

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub struct Machine {
    dir: tempfile::TempDir,
    mounts: Vec<(u32, String)>,
    did: BTreeMap<u32, Did>,
}

/// Counters of one mount.
#[derive(Debug, Clone, Copy, Default)]
pub struct Did {
    pub age_s: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Operations, and the sum of their round trips.
    pub reads: (u64, u64),
    pub writes: (u64, u64),
    pub getattrs: (u64, u64),
}

impl Machine {
    /// 4 GiB of memory, up for a day, limits at 20 and 10 % of it.
    pub fn new(conf: &str) -> Machine {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine {
            dir,
            mounts: Vec::new(),
            did: BTreeMap::new(),
        };
        machine.put("etc/nfs.conf", conf);
        machine.put(
            "proc/sys/kernel/random/boot_id",
            "7f3e1a52-0000-4000-8000-000000000001\n",
        );
        machine.put("proc/sys/kernel/osrelease", "6.12.95\n");
        machine.put("proc/uptime", "86400.00 100.00\n");
        machine.memory(4 << 20);
        machine.vmstat(209_715, 104_857);
        for (name, value) in [
            ("dirty_bytes", 0),
            ("dirty_background_bytes", 0),
            ("dirty_ratio", 20),
            ("dirty_background_ratio", 10),
        ] {
            machine.put(&format!("proc/sys/vm/{name}"), &format!("{value}\n"));
        }
        machine.put("sys/class/bdi/8:0/read_ahead_kb", "128\n");
        machine.tables();
        machine
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub fn put(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    pub fn get(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap().trim().to_owned()
    }

    pub fn memory(&self, kib: u64) {
        self.put("proc/meminfo", &format!("MemTotal: {kib} kB\nMemAvailable: {kib} kB\n"));
    }

    pub fn vmstat(&self, limit_pages: u64, background_pages: u64) {
        let text = format!(
            "nr_dirty 10\nnr_writeback 5\nnr_dirtied 1000\nnr_dirty_threshold {limit_pages}\nnr_dirty_background_threshold {background_pages}\n"
        );
        self.put("proc/vmstat", &text);
    }

    /// One NFSv4.2 mount with a device of its own, and its knobs as the kernel makes them.
    pub fn mount(&mut self, minor: u32, source: &str, at: &str) {
        self.device(minor);
        let options = "rw,vers=4.2,rsize=1048576,wsize=1048576,proto=tcp,addr=192.0.2.1";
        self.mounts.push((
            minor,
            format!(
                "{} 1 0:{minor} / {at} rw - nfs4 {source} {options}",
                100 + self.mounts.len()
            ),
        ));
        self.tables();
    }

    pub fn unmount(&mut self, minor: u32) {
        self.mounts.retain(|(known, _)| *known != minor);
        // The inode is taken again at once if it is free, which it never is in sysfs.
        let gone = format!("gone/{}", fs::read_dir(self.at("gone")).map_or(0, Iterator::count));
        fs::create_dir_all(self.at("gone")).unwrap();
        fs::rename(self.at(&format!("sys/class/bdi/0:{minor}")), self.at(&gone)).unwrap();
        self.tables();
    }

    pub fn device(&self, minor: u32) {
        for (name, value) in [
            ("read_ahead_kb", 128),
            ("max_ratio_fine", 1_000_000),
            ("min_ratio_fine", 0),
            ("strict_limit", 0),
        ] {
            self.put(&format!("sys/class/bdi/0:{minor}/{name}"), &format!("{value}\n"));
        }
    }

    pub fn knob(&self, minor: u32, name: &str) -> String {
        self.get(&format!("sys/class/bdi/0:{minor}/{name}"))
    }

    pub fn set(&self, minor: u32, name: &str, value: &str) {
        self.put(&format!("sys/class/bdi/0:{minor}/{name}"), &format!("{value}\n"));
    }

    /// What a mount has done, for `tables` to tell.
    pub fn did(&mut self, minor: u32, did: Did) {
        self.did.insert(minor, did);
        self.tables();
    }

    pub fn tables(&self) {
        let (mut table, mut volumes) = (
            "22 1 259:2 / / rw - ext4 /dev/root rw\n".to_owned(),
            "NV SERVER PORT DEV FSID FSC\n".to_owned(),
        );
        let mut stats = "device /dev/root mounted on / with fstype ext4\n".to_owned();
        for (minor, line) in &self.mounts {
            table += &format!("{line}\n");
            volumes += &format!("v4 c0000201 801 0:{minor} b:0 no\n");
            let fields: Vec<&str> = line.split(' ').collect();
            let Did {
                age_s,
                read_bytes,
                written_bytes,
                reads,
                writes,
                getattrs,
            } = self.did.get(minor).copied().unwrap_or(Did {
                age_s: 7200,
                ..Did::default()
            });
            stats += &format!(
                "device {} mounted on {} with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,proto=tcp\n\tage:\t{age_s}\n\tbytes:\t0 0 0 0 {read_bytes} {written_bytes} 0 0\n\txprt:\ttcp 700 1 1 0 0 10 10 0 10 0 2 0 0\n\tper-op statistics\n",
                fields[8], fields[4]
            );
            for (name, (ops, rtt_ms)) in [("READ", reads), ("WRITE", writes), ("GETATTR", getattrs)] {
                stats += &format!("\t{name:>12}: {ops} {ops} 0 0 0 0 {rtt_ms} {rtt_ms} 0\n");
            }
            stats += "\n";
        }
        self.put("proc/self/mountinfo", &table);
        self.put("proc/self/mountstats", &stats);
        self.put("proc/fs/nfsfs/volumes", &volumes);
    }

    /// Every knob and its value.
    pub fn knobs(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut devices: Vec<PathBuf> = fs::read_dir(self.at("sys/class/bdi"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        devices.push(self.at("proc/sys/vm"));
        for folder in devices {
            for file in fs::read_dir(&folder).unwrap() {
                let path = file.unwrap().path();
                let name = path.strip_prefix(self.path()).unwrap().display().to_string();
                all.push((name.clone(), self.get(&name)));
            }
        }
        all.sort();
        all
    }

    /// What nfstuned knows from before: this export takes so many bytes a second.
    pub fn learned(&self, source: &str, bytes_per_s: f64) {
        let text = format!("{{\"schema_version\":1,\"drain_bytes_per_second\":{{\"{source}\":{bytes_per_s:.1}}}}}");
        self.put("var/lib/nfstuned/learned.json", &text);
    }
}
