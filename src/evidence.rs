//! What the live rules look at, gathered: clients with their mounts and wishes, their connections, the way to their server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::conf::scope::split_source;
use crate::conf::{fstab, nfsmount};
use crate::decimal::decimal;
use crate::error::Result;
use crate::kernel::ethtool::{offloads, Offloads};
use crate::kernel::host::host;
use crate::kernel::mountinfo::Mount;
use crate::kernel::route::{is_made_up, number, Link, NIC_DROPS};
use crate::kernel::tcp::{self, Socket};
use crate::kernel::{read_small, sunrpc};
use crate::nconnect::advice::{Interface, RESERVED_PORTS};
use crate::nconnect::asked::{Group, Place};
use crate::nconnect::live::window::{Facts, Moment};
use crate::report::escape::escape;
use crate::root::Root;
use crate::sample::activity::Activity;
use crate::sample::{Client, Device, Sample};

/// One client, now.
#[derive(Debug, Clone)]
pub struct Evidence {
    pub group: Group,
    pub moment: Moment,
    pub facts: Facts,
    pub interface: Option<Interface>,
    /// Connections that are up. None: not known, or there is only one.
    pub connected: Option<u64>,
}

/// Of servers, that are asked about.
const PORTS: usize = 64;
/// The module's own default (fs/nfs/nfs4client.c).
const SESSION_SLOTS: u64 = 64;

/// All clients of a sample that holds counters. Sockets are asked for on the live system only.
pub fn gather(root: &Root, sample: &Sample) -> Result<BTreeMap<String, Evidence>> {
    let text = fstab::read(root)?;
    let wishes = Wishes::new(root, &text);
    let host = host(root);
    let slots = read_small(&root.nfs_parameter("max_session_slots"), 64).ok();
    let slots = slots
        .and_then(|text| decimal(text.trim_ascii()))
        .unwrap_or(SESSION_SLOTS);
    let ports: BTreeSet<u16> = sample.clients.values().map(|client| client.port).collect();
    let sockets: Vec<Socket> = match root.is_live() {
        true => ports
            .into_iter()
            .take(PORTS)
            .flat_map(|port| tcp::connections_to(port).unwrap_or_default())
            .collect(),
        false => Vec::new(),
    };
    let unix_ms = unix_ms();
    let has_several = sample.clients.values().any(|client| client.transports.len() > 1);
    let switches = match has_several {
        true => sunrpc::switches(root),
        false => Vec::new(),
    };
    let ports_left = RESERVED_PORTS.saturating_sub(ports_taken(sample));
    let mut all = BTreeMap::new();
    for (key, client) in &sample.clients {
        let devices: Vec<&Device> = client.devs.iter().filter_map(|dev| sample.device(*dev)).collect();
        let group = group(key, client, &devices, &wishes);
        let address = std::str::from_utf8(&client.address)
            .ok()
            .and_then(|text| text.parse::<IpAddr>().ok());
        let link = client.link.as_ref();
        let activities = devices.iter().filter_map(|device| device.activity);
        let activity = activities
            .reduce(|sum, one| sum.sum(&one))
            .unwrap_or_else(Activity::default);
        let mounts = || devices.iter().flat_map(|device| &device.mounts);
        let rsize_kib = mounts().filter_map(Mount::rsize_kib).max().unwrap_or(1024);
        let mut flavors: Vec<String> = group.places.iter().map(|place| place.flavor.clone()).collect();
        flavors.sort();
        flavors.dedup();
        let theirs: Vec<_> = sockets
            .iter()
            .filter(|socket| Some(socket.remote) == address && socket.remote_port == client.port)
            .copied()
            .collect();
        let path_mtu_bytes = theirs.iter().filter_map(|socket| socket.path_mtu_bytes).min();
        all.insert(
            key.clone(),
            Evidence {
                facts: Facts {
                    version: group.version.clone(),
                    proto: group.proto.clone(),
                    flavors,
                    rsize_bytes: rsize_kib.saturating_mul(1024),
                    read_ahead_bytes: devices
                        .iter()
                        .filter_map(|device| device.read_ahead_kib)
                        .min()
                        .unwrap_or(0)
                        .saturating_mul(1024),
                    link_bits_per_s: link.and_then(|link| link.speed_bits_per_s),
                    bond: link.and_then(|link| link.bond),
                    session_slots: slots,
                    cpus: u64::try_from(host.cpus.len()).unwrap_or_default().max(1),
                    kernel: sample.machine.kernel,
                    ports_left: takes_ports(&devices).then_some(ports_left),
                    software: escape(&client.implementation),
                },
                connected: address
                    .and_then(|to| sunrpc::connected(&switches, to, client.port, client.transports.len())),
                interface: link.map(|link| interface(root, link, path_mtu_bytes)),
                moment: Moment {
                    at_ms: sample.boottime_ms,
                    unix_ms,
                    nic_drops: link.and_then(|link| nic_drops(root, link)),
                    activity,
                    transports: client.transports.clone(),
                    sockets: theirs,
                    host: host.clone(),
                },
                group,
            },
        );
    }
    Ok(all)
}

/// Reserved ports that the connections of all clients hold.
fn ports_taken(sample: &Sample) -> u64 {
    let taken = sample.clients.values().map(|client| {
        let devices: Vec<&Device> = client.devs.iter().filter_map(|dev| sample.device(*dev)).collect();
        match takes_ports(&devices) {
            true => u64::try_from(client.transports.len()).unwrap_or_default(),
            false => 0,
        }
    });
    taken.fold(0, u64::saturating_add)
}

/// The first mount decides this too.
fn takes_ports(devices: &[&Device]) -> bool {
    let first = devices.iter().flat_map(|device| &device.mounts).next();
    first.is_none_or(|mount| {
        !mount
            .super_options
            .split(|b| *b == b',')
            .any(|option| option == b"noresvport")
    })
}

/// Who asks for how many connections.
struct Wishes {
    /// `nconnect=` by mount point and source.
    fstab: BTreeMap<(Vec<u8>, Vec<u8>), Option<u64>>,
    nfsmount: nfsmount::Wishes,
}

impl Wishes {
    fn new(root: &Root, fstab: &[u8]) -> Wishes {
        let wish = |line: fstab::Line| {
            let mut options = line.options.split(|b| *b == b',').rev();
            let asked = options.find_map(|option| decimal(option.strip_prefix(b"nconnect=")?));
            let place = fstab::trim_slashes(&line.mount_point).to_vec();
            ((place, line.source.to_vec()), asked)
        };
        Wishes {
            fstab: fstab::nfs_lines(fstab).map(wish).collect(),
            nfsmount: nfsmount::wishes(root),
        }
    }

    /// Has it a line in fstab, and what is asked for it?
    fn of(&self, mount: &Mount) -> (bool, Option<u64>) {
        let (Some(mount_point), Some(source)) = (&mount.mount_point, &mount.source) else {
            return (false, None);
        };
        let place = fstab::trim_slashes(mount_point).to_vec();
        let line = self.fstab.get(&(place, source.clone())).copied();
        let server = split_source(source).map(|(server, _)| server).unwrap_or_default();
        let asked = line.flatten().or_else(|| self.nfsmount.of(mount_point, server));
        (line.is_some(), asked)
    }
}

fn group(key: &str, client: &Client, devices: &[&Device], wishes: &Wishes) -> Group {
    let place = |mount: &Mount| {
        let (has_line, asked) = wishes.of(mount);
        Place {
            mount_point: mount.mount_point.as_deref().map(escape).unwrap_or_default(),
            source: mount.source.as_deref().map(escape).unwrap_or_default(),
            asked,
            has_line,
            flavor: mount.option("sec").map_or_else(|| "sys".to_owned(), escape),
        }
    };
    let places: Vec<Place> = devices.iter().flat_map(|device| &device.mounts).map(place).collect();
    let first = devices
        .iter()
        .flat_map(|device| &device.mounts)
        .find_map(|mount| mount.source.as_deref());
    let server = first
        .and_then(split_source)
        .map_or_else(|| escape(&client.address), |(server, _)| escape(server));
    Group {
        client: key.to_owned(),
        server,
        version: escape(&client.version),
        proto: escape(&client.proto),
        connections: u64::try_from(client.transports.len()).unwrap_or_default().max(1),
        places,
    }
}

/// Of all interfaces on the way.
fn nic_drops(root: &Root, link: &Link) -> Option<u64> {
    let of = |device: &str| {
        let counter = |name: &str| number(root, device, &format!("statistics/{name}"));
        let counters = NIC_DROPS.map(counter);
        counters.into_iter().flatten().reduce(u64::saturating_add)
    };
    link.leaves(root).filter_map(of).reduce(u64::saturating_add)
}

fn interface(root: &Root, link: &Link, path_mtu_bytes: Option<u64>) -> Interface {
    // Features are the live kernel's; a copied tree has none. Between virtual devices packets are never split.
    let of = |device: &str| match root.is_live() && !is_made_up(root, device) {
        true => offloads(device),
        false => Offloads::default(),
    };
    // Packets are merged by the interfaces that receive them: the one that does not is what matters.
    let leaves: Vec<(&str, Offloads)> = link.leaves(root).map(|device| (device, of(device))).collect();
    let worst = leaves
        .iter()
        .find(|(_, offloads)| offloads.gro == Some(false))
        .or(leaves.first());
    let (name, offloads) = worst.copied().unwrap_or((&link.device, Offloads::default()));
    let is_on = |path: &PathBuf| read_small(path, 64).is_ok_and(|text| text.trim_ascii() == b"1");
    Interface {
        name: escape(name),
        mtu_bytes: link.mtu_bytes,
        speed_bits_per_s: link.speed_bits_per_s,
        gro: offloads.gro,
        lro: offloads.lro,
        is_bridged: root.network_device(name).join("brport").exists(),
        forwards: root.forwarding(name).iter().any(is_on),
        path_mtu_bytes,
    }
}

/// Since 1970.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
