//! One look at the machine, as a plain value: what decisions are made from.

pub mod activity;
pub mod elsewhere;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::MetadataExt;

use crate::client::{Key, Mounted, Places};
use crate::error::{Error, Result};
use crate::kernel::bdi::{Bdi, Dev};
use crate::kernel::devices;
use crate::kernel::mountinfo::{self, Mount, Version};
use crate::kernel::mountstats::Transport;
use crate::kernel::route::{self, Link};
use crate::kernel::vm::{self, Memory, VmStat};
use crate::kernel::{dmi, mountstats, nfsfs};
use crate::root::Root;
use activity::Activity;

/// The machine and its NFS mounts at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Since boot. Goes on while the machine sleeps, so that a sleep shows as a long interval.
    pub boottime_ms: u64,
    pub machine: Machine,
    /// In the order of the mount table.
    pub devices: Vec<Device>,
    /// By the text of their key.
    pub clients: BTreeMap<String, Client>,
}

/// Mounts that share connections.
#[derive(Debug, Clone, PartialEq)]
pub struct Client {
    pub address: Vec<u8>,
    pub version: Vec<u8>,
    pub proto: Vec<u8>,
    pub port: u16,
    /// What the server calls itself.
    pub implementation: Vec<u8>,
    /// The oldest first: that decided how many connections there are.
    pub devs: Vec<Dev>,
    pub transports: Vec<Transport>,
    /// The way to the server. None: no route, or a host name of which nobody was asked.
    pub link: Option<Link>,
}

/// What is not about one device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    pub page_kib: u64,
    pub memory: Option<Memory>,
    pub vmstat: Option<VmStat>,
    /// Hundredths of a percent of the last 10 s.
    pub memory_pressure: Option<u64>,
    pub kernel: Option<(u64, u64)>,
    pub is_cloud: bool,
}

/// One NFS superblock.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    pub dev: Dev,
    /// Which of all that have had this number: the inode of its folder in sysfs.
    pub instance: u64,
    pub version: Version,
    /// The oldest first. Without mount points where `is_elsewhere`.
    pub mounts: Vec<Mount>,
    /// Mounted in other namespaces only.
    pub is_elsewhere: bool,
    pub read_ahead_kib: Option<u64>,
    /// None: no mount of it is in our mountstats.
    pub activity: Option<Activity>,
    /// What its connections get of the link to the server. None: not known.
    pub link_bits_per_s: Option<u64>,
}

impl Sample {
    pub fn device(&self, dev: Dev) -> Option<&Device> {
        self.devices.iter().find(|device| device.dev == dev)
    }

    /// What holds all dirty data of the machine, and where flushing begins; bytes.
    pub fn thresholds_bytes(&self) -> Option<(u64, u64)> {
        let bytes = |pages: u64| pages.saturating_mul(self.machine.page_kib).saturating_mul(1024);
        let stat = self.machine.vmstat?;
        Some((bytes(stat.threshold_pages), bytes(stat.background_pages)))
    }

    pub fn memory_bytes(&self) -> Option<u64> {
        Some(self.machine.memory?.total_kib.saturating_mul(1024))
    }
}

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// With what the mounts have done: mountstats of 1,000 mounts is some megabytes.
    Counters,
    /// Devices and mounts only.
    Mounts,
}

/// Takes a sample. What cannot be read is unknown in it; without the mount table there is none.
pub fn take(root: &Root, depth: Depth) -> Result<Sample> {
    // The table after the list: a superblock is listed before it is mounted.
    let volumes = nfsfs::volumes(root)?;
    let mounts = mountinfo::mounts(root, None)?;
    let counters = match depth {
        Depth::Counters => counters(root, &mounts)?,
        Depth::Mounts => Counters::default(),
    };
    let counters = counters.with_links(root);
    let links = counters.links();
    let devices = devices::grouped(mounts, &volumes);
    let device = |found: devices::NfsDevice| {
        // A device that has gone meanwhile has no folder.
        let instance = instance(root, found.dev)?;
        Some(Device {
            dev: found.dev,
            instance,
            version: found.version,
            is_elsewhere: found.mounts.is_empty(),
            mounts: found.mounts,
            read_ahead_kib: Bdi::now_kib(root, found.dev).ok().flatten(),
            activity: counters.activities.get(&found.dev).copied(),
            link_bits_per_s: links.get(&found.dev).copied(),
        })
    };
    Ok(Sample {
        boottime_ms: vm::boottime_ms(root).unwrap_or_default(),
        machine: machine(root),
        devices: devices.into_iter().filter_map(device).collect(),
        clients: counters.clients,
    })
}

/// Which instance of the device there is now. None: none.
pub fn instance(root: &Root, dev: Dev) -> Option<u64> {
    fs::metadata(root.bdi(&dev.to_string())).ok().map(|folder| folder.ino())
}

fn machine(root: &Root) -> Machine {
    Machine {
        page_kib: vm::page_kib(),
        memory: vm::memory(root).ok().flatten(),
        vmstat: vm::vmstat(root).ok().flatten(),
        memory_pressure: vm::memory_pressure(root),
        kernel: vm::kernel_release(root),
        is_cloud: dmi::is_cloud(root),
    }
}

/// What mountstats says.
#[derive(Default)]
struct Counters {
    /// Of each device. Its mounts show it at slightly different times: the most operations are the newest.
    activities: HashMap<Dev, Activity>,
    clients: BTreeMap<String, Client>,
}

impl Counters {
    /// Asked once for an address, whoever mounts from it.
    fn with_links(mut self, root: &Root) -> Counters {
        let mut known: HashMap<Vec<u8>, Option<Link>> = HashMap::new();
        for client in self.clients.values_mut() {
            let ask = || route::link(root, std::str::from_utf8(&client.address).ok()?.parse().ok()?);
            client.link = known.entry(client.address.clone()).or_insert_with(ask).clone();
        }
        self
    }

    fn links(&self) -> HashMap<Dev, u64> {
        let mut links = HashMap::new();
        for client in self.clients.values() {
            let connections = u64::try_from(client.transports.len()).unwrap_or_default();
            let speed = client
                .link
                .as_ref()
                .and_then(|link| link.speed_of_bits_per_s(connections));
            links.extend(
                speed
                    .into_iter()
                    .flat_map(|speed| client.devs.iter().map(move |dev| (*dev, speed))),
            );
        }
        links
    }

    fn add(&mut self, stats: &mountstats::Mount, mount: &Mount) {
        let activity = Activity::of(stats);
        let known = self.activities.entry(mount.dev).or_insert(activity);
        if activity.all.ops > known.all.ops {
            *known = activity;
        }
        let key = Key::of(&Mounted {
            stats,
            mount: Some(mount),
        });
        let client = self.clients.entry(key.to_string()).or_insert_with(|| Client {
            address: key.address().to_vec(),
            version: key.version().to_vec(),
            proto: key.proto().to_vec(),
            port: key.port(),
            implementation: stats.implementation.clone(),
            devs: Vec::new(),
            transports: Vec::new(),
            link: None,
        });
        if !client.devs.contains(&mount.dev) {
            client.devs.push(mount.dev);
        }
        let sends = |transports: &[Transport]| transports.iter().fold(0u64, |sum, t| sum.saturating_add(t.sends));
        if client.transports.is_empty() || sends(&stats.transports) > sends(&client.transports) {
            client.transports.clone_from(&stats.transports);
        }
    }
}

fn counters(root: &Root, mounts: &[Mount]) -> Result<Counters> {
    let path = root.mountstats();
    let mut counters = Counters::default();
    let mut places = Places::new(mounts);
    File::open(&path)
        .and_then(|file| {
            mountstats::each(BufReader::with_capacity(64 << 10, file), |stats| {
                if let Some(mount) = places.take(stats) {
                    counters.add(stats, mount);
                }
            })
        })
        .map_err(Error::io("read", path))?;
    Ok(counters)
}
