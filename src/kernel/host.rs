//! What the host says about its network: drops, what TCP sent again, and how busy its CPUs are.
//! (kernel: net/core/net-procfs.c `softnet_seq_show`; net/ipv4/proc.c `snmp_seq_show`, `netstat_seq_show`; fs/proc/stat.c
//! `show_stat`)

use std::path::Path;

use crate::decimal::decimal;
use crate::kernel::read_small;
use crate::root::Root;

/// Counters since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Packets that no CPU had room for.
    pub softnet_drops: u64,
    /// Of each CPU: ticks in the kernel and its soft interrupts, and all ticks.
    pub cpus: Vec<(u64, u64)>,
    /// None: not known.
    pub tcp: Option<Tcp>,
}

/// Segments of all TCP connections of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tcp {
    pub received: u64,
    pub sent: u64,
    pub retransmitted: u64,
    /// Of these, those that had arrived: the other side said so (DSACK).
    pub needless: u64,
    pub out_of_order: u64,
}

/// What cannot be read is zero or empty, and says nothing.
pub fn host(root: &Root) -> Host {
    let read = |path: &Path| read_small(path, 1 << 20).unwrap_or_default();
    Host {
        softnet_drops: parse_softnet(&read(&root.softnet_stat())),
        cpus: parse_stat(&read(&root.stat())),
        tcp: parse_tcp(&read(&root.snmp()), &read(&root.netstat())),
    }
}

/// The second column, hexadecimal, of all CPUs.
fn parse_softnet(text: &[u8]) -> u64 {
    let lines = text.split(|b| *b == b'\n');
    let drops = lines.filter_map(|line| {
        let field = line.split(|b| *b == b' ').nth(1)?;
        u64::from_str_radix(std::str::from_utf8(field).ok()?, 16).ok()
    });
    drops.fold(0, u64::saturating_add)
}

/// `cpuN user nice system idle iowait irq softirq steal ...`
fn parse_stat(text: &[u8]) -> Vec<(u64, u64)> {
    let lines = text.split(|b| *b == b'\n');
    let cpus = lines.filter_map(|line| {
        let rest = line
            .strip_prefix(b"cpu")
            .filter(|rest| rest.first().is_some_and(u8::is_ascii_digit))?;
        let ticks: Vec<u64> = rest.split(|b| *b == b' ').skip(1).map_while(decimal).collect();
        let [_, _, system, _, _, irq, softirq, ..] = *ticks else {
            return None;
        };
        // Guests are counted in user already.
        let all = ticks.iter().take(8).fold(0u64, |sum, n| sum.saturating_add(*n));
        Some((system.saturating_add(irq).saturating_add(softirq), all))
    });
    cpus.collect()
}

/// A line of names, and one of numbers that begins with the same word.
fn parse_tcp(snmp: &[u8], netstat: &[u8]) -> Option<Tcp> {
    let field = |text: &[u8], group: &[u8], wanted: &[u8]| {
        let mut lines = text.split(|b| *b == b'\n').filter(|line| line.starts_with(group));
        let mut words = || Some(lines.next()?.split(|b| *b == b' '));
        let (names, numbers) = (words()?, words()?);
        let (_, number) = names.zip(numbers).find(|(name, _)| *name == wanted)?;
        decimal(number)
    };
    Some(Tcp {
        received: field(snmp, b"Tcp: ", b"InSegs")?,
        sent: field(snmp, b"Tcp: ", b"OutSegs")?,
        retransmitted: field(snmp, b"Tcp: ", b"RetransSegs")?,
        needless: field(netstat, b"TcpExt: ", b"TCPDSACKRecv")?,
        out_of_order: field(netstat, b"TcpExt: ", b"TCPOFOQueue")?,
    })
}

impl Host {
    /// The busiest CPU's share in the kernel since `before`, 0 to 1. None: not known.
    pub fn hottest_since(&self, before: &Host) -> Option<f64> {
        let both = self.cpus.iter().zip(&before.cpus);
        let share = both.filter_map(|(now, before)| {
            let (busy, all) = (now.0.checked_sub(before.0)?, now.1.checked_sub(before.1)?);
            (all > 0).then(|| crate::float::float(busy) / crate::float::float(all))
        });
        share.max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_cpu() {
        let before =
            parse_stat(b"cpu  9 9 9 9 9 9 9 9\ncpu0 0 0 0 100 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\nintr 5\n");
        let now = parse_stat(b"cpu0 10 0 10 180 0 0 0 0 0 0\ncpu1 0 0 30 110 0 0 60 0 0 0\n");
        assert_eq!(now.len(), 2);
        let host = |cpus| Host {
            cpus,
            ..Host::default()
        };
        assert_eq!(host(now).hottest_since(&host(before)), Some(0.9));
    }

    #[test]
    fn drops_of_all_cpus() {
        assert_eq!(
            parse_softnet(b"0000ffff 00000002 00000000\n00000001 00000010 0\nx\n"),
            18
        );
    }

    #[test]
    fn segments_of_a_real_kernel() {
        let data = |name: &str| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/network/6.12");
            std::fs::read(folder.join(name)).unwrap()
        };
        let (snmp, netstat) = (data("snmp"), data("netstat"));
        let expected = Tcp {
            received: 4129,
            sent: 4131,
            retransmitted: 0,
            needless: 0,
            out_of_order: 0,
        };
        assert_eq!(parse_tcp(&snmp, &netstat), Some(expected));
        assert_eq!(parse_tcp(&snmp, b""), None);
        assert_eq!(parse_tcp(b"Tcp: InSegs\nTcp: x\n", &netstat), None);
    }
}
