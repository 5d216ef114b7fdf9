//! What the live rules look at, gathered: clients with their mounts and wishes, their connections, the way to their server.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::conf::fstab;
use crate::conf::scope::split_source;
use crate::decimal::decimal;
use crate::error::Result;
use crate::kernel::ethtool::offloads;
use crate::kernel::host::host;
use crate::kernel::mountinfo::Mount;
use crate::kernel::route::{self, Link};
use crate::kernel::{read_small, tcp};
use crate::nconnect::advice::Interface;
use crate::nconnect::asked::{Group, Place};
use crate::nconnect::live::window::{Bond, Facts, Moment};
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
}

/// NFS, where no option says another one.
const PORT: u16 = 2049;
/// The module's own default (fs/nfs/nfs4client.c).
const SESSION_SLOTS: u64 = 64;

/// All clients of a sample that holds counters. Sockets are asked for on the live system only.
pub fn gather(root: &Root, sample: &Sample) -> Result<BTreeMap<String, Evidence>> {
    let text = fstab::read(root)?;
    let wishes = Wishes::new(&text);
    let host = host(root);
    let slots = read_small(&root.nfs_parameter("max_session_slots"), 64).ok();
    let slots = slots
        .and_then(|text| decimal(text.trim_ascii()))
        .unwrap_or(SESSION_SLOTS);
    let sockets = match root.is_live() {
        true => tcp::connections_to(PORT).unwrap_or_default(),
        false => Vec::new(),
    };
    let mut all = BTreeMap::new();
    for (key, client) in &sample.clients {
        let devices: Vec<&Device> = client.devs.iter().filter_map(|dev| sample.device(*dev)).collect();
        let group = group(key, client, &devices, &wishes);
        let address = std::str::from_utf8(&client.address)
            .ok()
            .and_then(|text| text.parse::<IpAddr>().ok());
        let link = address.and_then(|address| route::link(root, address));
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
            .filter(|socket| Some(socket.remote) == address)
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
                    link_bits_per_s: link.as_ref().and_then(|link| link.speed_bits_per_s),
                    bond: link.as_ref().and_then(|link| bond(root, &link.device)),
                    session_slots: slots,
                    cpus: u64::try_from(host.cpus.len()).unwrap_or_default().max(1),
                },
                interface: link.map(|link| interface(root, &link, path_mtu_bytes)),
                moment: Moment {
                    at_ms: sample.boottime_ms,
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

/// `nconnect=` by mount point and source.
struct Wishes(BTreeMap<(Vec<u8>, Vec<u8>), Option<u64>>);

impl Wishes {
    fn new(text: &[u8]) -> Wishes {
        let wish = |line: fstab::Line| {
            let mut options = line.options.split(|b| *b == b',').rev();
            let asked = options.find_map(|option| decimal(option.strip_prefix(b"nconnect=")?));
            let place = fstab::trim_slashes(&line.mount_point).to_vec();
            ((place, line.source.to_vec()), asked)
        };
        Wishes(fstab::nfs_lines(text).map(wish).collect())
    }

    /// None: there is no line.
    fn of(&self, mount: &Mount) -> Option<Option<u64>> {
        let place = fstab::trim_slashes(mount.mount_point.as_deref()?).to_vec();
        self.0.get(&(place, mount.source.clone()?)).copied()
    }
}

fn group(key: &str, client: &Client, devices: &[&Device], wishes: &Wishes) -> Group {
    let place = |mount: &Mount| {
        let wish = wishes.of(mount);
        Place {
            mount_point: mount.mount_point.as_deref().map(escape).unwrap_or_default(),
            source: mount.source.as_deref().map(escape).unwrap_or_default(),
            asked: wish.flatten(),
            has_line: wish.is_some(),
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

/// (kernel: drivers/net/bonding/bond_sysfs.c)
fn bond(root: &Root, device: &str) -> Option<Bond> {
    let folder = root.network_device(device).join("bonding");
    let read = |name: &str| read_small(&folder.join(name), 4096).ok();
    let slaves = read("slaves")?;
    let names: Vec<&[u8]> = slaves
        .split(u8::is_ascii_whitespace)
        .filter(|name| !name.is_empty() && !name.contains(&b'/'))
        .collect();
    let speed = |name: &&[u8]| {
        let folder = root.network_device(std::str::from_utf8(name).ok()?);
        decimal(read_small(&folder.join("speed"), 64).ok()?.trim_ascii())
    };
    Some(Bond {
        slaves: u64::try_from(names.len()).unwrap_or_default(),
        slave_bits_per_s: names.iter().filter_map(speed).max()?.checked_mul(1_000_000)?,
        is_by_port: read("xmit_hash_policy")?.starts_with(b"layer3+4"),
    })
}

fn interface(root: &Root, link: &Link, path_mtu_bytes: Option<u64>) -> Interface {
    let folder = root.network_device(&link.device);
    // Features are the live kernel's; a copied tree has none.
    let offloads = match root.is_live() {
        true => offloads(&link.device),
        false => Default::default(),
    };
    Interface {
        name: escape(&link.device),
        mtu_bytes: link.mtu_bytes,
        speed_bits_per_s: link.speed_bits_per_s,
        gro: offloads.gro,
        lro: offloads.lro,
        is_bridged: folder.join("brport").exists(),
        forwards: read_small(&root.ip_forward(), 64).is_ok_and(|text| text.trim_ascii() == b"1"),
        path_mtu_bytes,
    }
}
