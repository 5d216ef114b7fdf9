//! Over which network device an address is reached, and what that device can do.
//! (kernel: net/ipv4/fib_trie.c `fib_route_seq_show`; net/ipv6/ip6_fib.c `ipv6_route_native_seq_show`; net/core/net-sysfs.c)

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::decimal::decimal;
use crate::kernel::netlink::{attribute, attribute_text, messages, u32_at, Ask, End, Protocol, Socket};
use crate::kernel::read_small;
use crate::root::Root;

/// A table of this size is a router's, and is cut.
const TABLE_LIMIT: usize = 4 << 20;
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;
/// Files beside a device, and devices below one.
const ENTRIES: usize = 4096;
const LOWERS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub device: String,
    /// What it is made of, down to the interfaces: of a bond, a bridge, a VLAN. Not itself.
    pub lowers: Vec<String>,
    /// None: the device does not know, as `lo`, or makes it up, as virtual ones.
    pub speed_bits_per_s: Option<u64>,
    pub mtu_bytes: Option<u64>,
    /// It leads over a bond.
    pub bond: Option<Bond>,
}

/// Several links as one: a connection uses one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bond {
    pub slaves: u64,
    pub slave_bits_per_s: u64,
    /// Connections are spread by their ports too.
    pub is_by_port: bool,
}

/// None: no route. On the live system the kernel is asked, with all its rules; elsewhere the tables in /proc are read.
pub fn link(root: &Root, to: IpAddr) -> Option<Link> {
    let device = match root.is_live() {
        true => asked(to).and_then(name),
        false => in_tables(root, to),
    };
    let device = device.filter(|name| is_name(name))?;
    let lowers = lowers(root, &device);
    // Where a device does not know, what it is made of may.
    let only = lowers.first().filter(|_| lowers.len() == 1);
    let speed = |device: &str| {
        // Mbit/s; -1 where it is unknown.
        let mbits = number(root, device, "speed").filter(|n| *n > 0 && !is_made_up(root, device))?;
        mbits.checked_mul(1_000_000)
    };
    Some(Link {
        speed_bits_per_s: speed(&device).or_else(|| speed(only?)),
        mtu_bytes: number(root, &device, "mtu"),
        bond: bond(root, &device, &lowers),
        lowers,
        device,
    })
}

/// The bond that the way leads over, be it below a VLAN (kernel: drivers/net/bonding/bond_sysfs.c).
fn bond(root: &Root, device: &str, lowers: &[String]) -> Option<Bond> {
    let mut devices = [device].into_iter().chain(lowers.iter().map(String::as_str));
    let (slaves, folder) = devices.find_map(|device| {
        let folder = root.network_device(device).join("bonding");
        Some((read_small(&folder.join("slaves"), 4096).ok()?, folder))
    })?;
    let slaves = std::str::from_utf8(&slaves).ok()?;
    let names: Vec<&str> = slaves
        .split_ascii_whitespace()
        .filter(|name| !name.contains('/'))
        .collect();
    let speed = |name: &&str| number(root, name, "speed");
    let policy = read_small(&folder.join("xmit_hash_policy"), 4096).ok()?;
    Some(Bond {
        slaves: u64::try_from(names.len()).unwrap_or_default(),
        slave_bits_per_s: names.iter().filter_map(speed).max()?.checked_mul(1_000_000)?,
        is_by_port: policy.starts_with(b"layer3+4"),
    })
}

impl Link {
    /// What so many connections to one server get of it: one slave of a bond, or as many as they are spread over.
    pub fn speed_of_bits_per_s(&self, connections: u64) -> Option<u64> {
        let Some(bond) = self.bond.filter(|bond| bond.slave_bits_per_s > 0) else {
            return self.speed_bits_per_s;
        };
        let slaves = match bond.is_by_port {
            true => connections.clamp(1, bond.slaves.max(1)),
            false => 1,
        };
        Some(bond.slave_bits_per_s.saturating_mul(slaves))
    }

    /// The interfaces at the bottom, or the device itself.
    pub fn leaves<'a>(&'a self, root: &'a Root) -> impl Iterator<Item = &'a str> + 'a {
        let all = self.lowers.iter().chain([&self.device]).map(String::as_str);
        all.filter(|device| lower_names(root, device).next().is_none())
    }
}

/// A virtual device that stands on no other one says a speed that its driver was written with: 10 Gbit/s of a veth, 10 Mbit/s of a
/// tunnel (kernel: drivers/net/veth.c `veth_get_link_ksettings`, drivers/net/tun.c `tun_default_link_ksettings`).
pub fn is_made_up(root: &Root, device: &str) -> bool {
    let target = fs::read_link(root.network_device(device)).unwrap_or_default();
    let is_virtual = target.components().any(|part| part.as_os_str() == "virtual");
    is_virtual && lower_names(root, device).next().is_none()
}

/// Counters of packets that an interface lost because nobody fetched them in time, in its folder `statistics`.
pub const NIC_DROPS: [&str; 3] = ["rx_missed_errors", "rx_fifo_errors", "rx_dropped"];

/// Of one attribute of a device.
pub fn number(root: &Root, device: &str, attribute: &str) -> Option<u64> {
    decimal(
        read_small(&root.network_device(device).join(attribute), 64)
            .ok()?
            .trim_ascii(),
    )
}

/// The kernel allows no slash in such a name (net/core/dev.c `dev_valid_name`); a copied table may have one.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && !name.starts_with('.')
}

/// `lower_NAME` beside a device, for each device that it uses (kernel: net/core/dev.c `netdev_adjacent_sysfs_add`).
fn lower_names(root: &Root, device: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(root.network_device(device)).into_iter().flatten();
    entries.take(ENTRIES).filter_map(|entry| {
        let name = entry.ok()?.file_name();
        let name = name.to_str()?.strip_prefix("lower_")?;
        is_name(name).then(|| name.to_owned())
    })
}

fn lowers(root: &Root, device: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![device.to_owned()];
    while let Some(upper) = open.pop() {
        for lower in lower_names(root, &upper) {
            if lower != device && found.len() < LOWERS && found.insert(lower.clone()) {
                open.push(lower);
            }
        }
    }
    found.into_iter().collect()
}

/// The index of the device over which the kernel would send now (net/ipv4/route.c `inet_rtm_getroute`).
fn asked(to: IpAddr) -> Option<u32> {
    const RTM_GETROUTE: u16 = 26;
    const RTA_DST: u16 = 1;
    let (family, address) = match to {
        IpAddr::V4(to) => (libc::AF_INET, to.octets().to_vec()),
        IpAddr::V6(to) => (libc::AF_INET6, to.octets().to_vec()),
    };
    // struct rtmsg: family, length of the destination in bits, the rest 0.
    let mut body = vec![u8::try_from(family).ok()?, u8::try_from(8 * address.len()).ok()?];
    body.resize(RTMSG, 0);
    body.extend(attribute_text(RTA_DST, &address));
    let mut index = None;
    let socket = Socket::open(Protocol::Route).ok()?;
    let asked = socket.ask(RTM_GETROUTE, Ask::One, &body, |text| {
        let (found, end) = parse_route(text);
        index = found;
        end
    });
    asked.ok().and(index)
}

const RTMSG: usize = 12;

/// The device of an answer to it.
pub fn parse_route(text: &[u8]) -> (Option<u32>, End) {
    const RTM_NEWROUTE: u16 = 24;
    const RTA_OIF: u16 = 4;
    let mut index = None;
    let end = messages(text, RTM_NEWROUTE, |body| {
        let value = body.get(RTMSG..).and_then(|attributes| attribute(attributes, RTA_OIF));
        index = value.and_then(|value| u32_at(value, 0));
    });
    (index, end)
}

/// The name of a device (net/core/rtnetlink.c `rtnl_getlink`). Asked, not looked for: a host of containers has thousands.
fn name(index: u32) -> Option<String> {
    const RTM_GETLINK: u16 = 18;
    // struct ifinfomsg: family, padding, type, index, the rest 0.
    let mut body = vec![0; 4];
    body.extend(index.to_ne_bytes());
    body.resize(IFINFOMSG, 0);
    let mut name = None;
    let socket = Socket::open(Protocol::Route).ok()?;
    let asked = socket.ask(RTM_GETLINK, Ask::One, &body, |text| {
        let (found, end) = parse_link(text);
        name = found;
        end
    });
    asked.ok().and(name)
}

const IFINFOMSG: usize = 16;

/// The name in an answer to it.
pub fn parse_link(text: &[u8]) -> (Option<String>, End) {
    const RTM_NEWLINK: u16 = 16;
    const IFLA_IFNAME: u16 = 3;
    let mut name = None;
    let end = messages(text, RTM_NEWLINK, |body| {
        let value = body
            .get(IFINFOMSG..)
            .and_then(|attributes| attribute(attributes, IFLA_IFNAME));
        let value = value.and_then(|value| value.split(|b| *b == 0).next());
        name = value.and_then(|value| String::from_utf8(value.to_vec()).ok());
    });
    (name, end)
}

fn in_tables(root: &Root, to: IpAddr) -> Option<String> {
    if to.is_loopback() {
        return Some("lo".to_owned());
    }
    match to {
        IpAddr::V4(to) => ipv4_device(&read_small(&root.ipv4_routes(), TABLE_LIMIT).ok()?, to),
        IpAddr::V6(to) => ipv6_device(&read_small(&root.ipv6_routes(), TABLE_LIMIT).ok()?, to),
    }
}

fn fields(line: &[u8]) -> Option<Vec<&str>> {
    Some(std::str::from_utf8(line).ok()?.split_ascii_whitespace().collect())
}

/// The longest prefix, of these the lowest metric; a line that is not understood is no route.
pub fn ipv4_device(table: &[u8], to: Ipv4Addr) -> Option<String> {
    let to = u32::from(to);
    let of_line = |line: &[u8]| {
        let fields = fields(line)?;
        let hex = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        // Addresses are printed as the machine holds them.
        let (destination, mask) = (u32::from_be(hex(1)?), u32::from_be(hex(7)?));
        let (flags, metric) = (hex(3)?, decimal(fields.get(6)?.as_bytes())?);
        let is_ours = flags & UP != 0 && flags & REJECT == 0 && to & mask == destination;
        let name = *fields.first()?;
        is_ours.then(|| ((mask.leading_ones(), u64::MAX - metric), name.to_owned()))
    };
    best(table, of_line)
}

/// The same of the other table.
pub fn ipv6_device(table: &[u8], to: Ipv6Addr) -> Option<String> {
    let to = u128::from(to);
    let of_line = |line: &[u8]| {
        let fields = fields(line)?;
        let destination = u128::from_str_radix(fields.first()?, 16).ok()?;
        let hex = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let (length, metric, flags) = (hex(1)?.min(128), hex(5)?, hex(8)?);
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let name = *fields.get(9)?;
        let is_ours = flags & UP != 0 && flags & REJECT == 0 && to & mask == destination;
        is_ours.then(|| ((length, u64::from(u32::MAX - metric)), name.to_owned()))
    };
    best(table, of_line)
}

fn best(table: &[u8], of_line: impl Fn(&[u8]) -> Option<((u32, u64), String)>) -> Option<String> {
    let routes = table.split(|b| *b == b'\n').filter_map(of_line);
    routes.max_by_key(|(rank, _)| *rank).map(|(_, device)| device)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        eth1\t00000000\t0102A8C0\t0003\t0\t0\t50\t00000000\t0\t0\t0\n\
        eth0\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        dead\t0102A8C0\t00000000\t0200\t0\t0\t0\tFFFFFFFF\t0\t0\t0\nbroken\n";

    #[test]
    fn the_longest_prefix_then_the_lowest_metric() {
        if cfg!(target_endian = "big") {
            return;
        }
        let device = |to: &str| ipv4_device(ROUTES.as_bytes(), to.parse().unwrap());
        assert_eq!(device("192.168.2.1").as_deref(), Some("eth0"));
        assert_eq!(device("10.0.0.1").as_deref(), Some("eth1"));
        assert_eq!(ipv4_device(b"", Ipv4Addr::LOCALHOST), None);
    }

    #[test]
    fn the_same_for_ipv6() {
        let zero = "0".repeat(32);
        let table = format!(
            "{zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003     wan\n\
             20010db8000000000000000000000000 20 {zero} 00 {zero} 00000100 00000001 00000000 00000001     lan\n\
             {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200       lo\n"
        );
        let device = |to: &str| ipv6_device(table.as_bytes(), to.parse().unwrap());
        assert_eq!(device("2001:db8::1").as_deref(), Some("lan"));
        assert_eq!(device("2001:db9::1").as_deref(), Some("wan"));
    }

    #[test]
    fn the_live_kernel_says_it_too() {
        let root = Root::default();
        match link(&root, IpAddr::V4(Ipv4Addr::LOCALHOST)) {
            Some(link) => assert_eq!((link.device.as_str(), link.speed_bits_per_s), ("lo", None)),
            None => crate::common::skip("no loopback, or no netlink"),
        }
    }

    #[test]
    fn an_answer_of_the_kernel() {
        let body = [
            &[0; RTMSG][..],
            &attribute_text(8, &[9; 4]),
            &attribute_text(4, &7u32.to_ne_bytes()),
        ]
        .concat();
        let mut text = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
        text.extend(24u16.to_ne_bytes());
        text.resize(16, 0);
        text.extend(&body);
        assert_eq!(parse_route(&text).0, Some(7));
        text.truncate(20);
        assert_eq!(parse_route(&text).0, None);
    }

    #[test]
    fn down_to_the_interfaces() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        for (device, lowers) in [
            ("vlan7", &["bond0"][..]),
            ("bond0", &["eth0", "eth1"]),
            ("eth0", &[]),
            ("eth1", &[]),
            ("loop0", &["loop1", "loop0"]),
            ("loop1", &["loop0"]),
        ] {
            std::fs::create_dir_all(root.network_device(device)).unwrap();
            for lower in lowers {
                std::fs::create_dir_all(root.network_device(device).join(format!("lower_{lower}"))).unwrap();
            }
        }
        assert_eq!(lowers(&root, "vlan7"), ["bond0", "eth0", "eth1"]);
        assert_eq!(lowers(&root, "loop0"), ["loop1"]);
        let link = |device: &str| Link {
            device: device.to_owned(),
            lowers: lowers(&root, device),
            speed_bits_per_s: None,
            mtu_bytes: None,
            bond: None,
        };
        assert_eq!(link("vlan7").leaves(&root).collect::<Vec<_>>(), ["eth0", "eth1"]);
        assert_eq!(link("eth0").leaves(&root).collect::<Vec<_>>(), ["eth0"]);
    }

    #[test]
    fn a_connection_gets_one_slave_of_a_bond() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let put = |path: &str, text: &str| {
            let path = root.network_device("bond0").join("..").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        std::fs::create_dir_all(root.network_device("bond0")).unwrap();
        put("bond0/bonding/slaves", "eth0 eth1\n");
        for name in ["eth0", "eth1"] {
            put(&format!("{name}/speed"), "10000\n");
        }
        for (policy, two, four) in [("layer2 0\n", 10, 10), ("layer3+4 1\n", 20, 20)] {
            put("bond0/bonding/xmit_hash_policy", policy);
            let link = Link {
                device: "bond0".to_owned(),
                lowers: Vec::new(),
                speed_bits_per_s: Some(20_000_000_000),
                mtu_bytes: None,
                bond: bond(&root, "bond0", &[]),
            };
            let gbit = |connections| link.speed_of_bits_per_s(connections).map(|bits| bits / 1_000_000_000);
            assert_eq!(
                (gbit(0), gbit(1), gbit(2), gbit(4)),
                (Some(10), Some(10), Some(two), Some(four))
            );
            assert_eq!(Link { bond: None, ..link }.speed_of_bits_per_s(1), Some(20_000_000_000));
        }
    }

    #[test]
    fn what_a_device_does_not_know_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        for name in ["lo", "eth0"] {
            std::fs::create_dir_all(root.network_device(name)).unwrap();
            std::fs::write(root.network_device(name).join("mtu"), "9000\n").unwrap();
        }
        std::fs::write(root.network_device("eth0").join("speed"), "10000\n").unwrap();
        std::fs::create_dir_all(root.ipv4_routes().parent().unwrap()).unwrap();
        std::fs::write(root.ipv4_routes(), ROUTES.replace("eth1", "../x")).unwrap();
        let lo = link(&root, IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        assert_eq!((lo.speed_bits_per_s, lo.mtu_bytes), (None, Some(9000)));
        let lan = link(&root, "192.168.2.1".parse().unwrap());
        if cfg!(target_endian = "little") {
            assert_eq!(lan.unwrap().speed_bits_per_s, Some(10_000_000_000));
            assert_eq!(link(&root, "10.0.0.1".parse().unwrap()), None);
        }
    }

    /// As the kernel has them: links into /sys/devices, where a veth is `virtual` and a bond too.
    #[test]
    fn a_speed_that_a_driver_makes_up_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let class = root.network_device("x").parent().unwrap().to_owned();
        std::fs::create_dir_all(&class).unwrap();
        for (name, place, lower) in [
            ("eth0", "pci0000:00/0000:00:03.0/net/eth0", None),
            ("veth0", "virtual/net/veth0", None),
            ("bond0", "virtual/net/bond0", Some("lower_eth0")),
        ] {
            let device = dir.path().join("sys/devices").join(place);
            std::fs::create_dir_all(device.join(lower.unwrap_or_default())).unwrap();
            std::fs::write(device.join("speed"), "10000\n").unwrap();
            std::os::unix::fs::symlink(format!("../../devices/{place}"), class.join(name)).unwrap();
        }
        let made_up = ["eth0", "veth0", "bond0", "gone"].map(|name| is_made_up(&root, name));
        assert_eq!(made_up, [false, true, false, false]);
        std::fs::create_dir_all(root.ipv4_routes().parent().unwrap()).unwrap();
        for (name, speed) in [
            ("eth0", Some(10_000_000_000)),
            ("veth0", None),
            ("bond0", Some(10_000_000_000)),
        ] {
            std::fs::write(root.ipv4_routes(), ROUTES.replace("eth0", name)).unwrap();
            let link = link(&root, "192.168.2.1".parse().unwrap());
            if cfg!(target_endian = "little") {
                assert_eq!(link.unwrap().speed_bits_per_s, speed, "{name}");
            }
        }
    }
}
