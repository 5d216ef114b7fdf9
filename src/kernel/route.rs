//! Over which network device an address is reached, and what that device can do.
//! (kernel: net/ipv4/fib_trie.c `fib_route_seq_show`; net/ipv6/ip6_fib.c `ipv6_route_native_seq_show`; net/core/net-sysfs.c)

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::decimal::decimal;
use crate::kernel::read_small;
use crate::root::Root;

/// A table of this size is a router's, and is cut.
const TABLE_LIMIT: usize = 4 << 20;
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub device: String,
    /// None: the device does not know, as virtual ones and `lo`.
    pub speed_bits_per_s: Option<u64>,
    pub mtu_bytes: Option<u64>,
}

/// None: no route, or one to this host itself that is not over `lo`.
pub fn link(root: &Root, to: IpAddr) -> Option<Link> {
    let device = if to.is_loopback() {
        "lo".to_owned()
    } else {
        match to {
            IpAddr::V4(to) => ipv4_device(&read_small(&root.ipv4_routes(), TABLE_LIMIT).ok()?, to)?,
            IpAddr::V6(to) => ipv6_device(&read_small(&root.ipv6_routes(), TABLE_LIMIT).ok()?, to)?,
        }
    };
    // The kernel allows no slash in such a name (net/core/dev.c `dev_valid_name`); a copied table may have one.
    if device.contains('/') || device.starts_with('.') {
        return None;
    }
    let folder = root.network_device(&device);
    let number = |name: &str| decimal(read_small(&folder.join(name), 64).ok()?.trim_ascii());
    Some(Link {
        // Mbit/s; -1 where it is unknown.
        speed_bits_per_s: number("speed")
            .filter(|n| *n > 0)
            .and_then(|n| n.checked_mul(1_000_000)),
        mtu_bytes: number("mtu"),
        device,
    })
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
}
