//! Findings about the network, as the report of 2009 made them.

use crate::float::float;
use crate::nconnect::advice::{id, Advice};
use crate::nconnect::asked::Group;
use crate::nconnect::live::history::Verdict;
use crate::nconnect::live::rules::Rule;

/// What an interface lacks, as the report of 2009 found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub mtu_bytes: Option<u64>,
    pub speed_bits_per_s: Option<u64>,
    /// None: not known.
    pub gro: Option<bool>,
    pub lro: Option<bool>,
    pub is_bridged: bool,
    pub forwards: bool,
    /// Of the way to the server, by its connections.
    pub path_mtu_bytes: Option<u64>,
}

/// The network's own findings. Their id is the interface's: several servers may be behind one.
pub fn of_interface(group: &Group, interface: &Interface) -> Vec<Advice> {
    /// From here on packets of 1500 bytes cost a CPU.
    const FAST_BITS_PER_S: u64 = 10_000_000_000;
    /// Ethernet's own.
    const PLAIN_MTU: u64 = 1500;
    let name = &interface.name;
    let new = |kind, title, why: &str, todo: String| {
        let mut advice = Advice::new(group, kind, None, title);
        advice.id = id(&[kind, name]);
        advice.why = vec![why.to_owned()];
        advice.todo = vec![("shell".to_owned(), todo)];
        advice
    };
    let mut found = Vec::new();
    if interface.gro == Some(false) && interface.lro != Some(true) {
        let cause = match (interface.is_bridged, interface.forwards) {
            (true, _) => "; it is a port of a bridge, which switches LRO off",
            (false, true) => "; it forwards packets (ip_forward), which switches LRO off",
            _ => "",
        };
        found.push(new(
            "lro-off",
            format!("{name} merges no received packets: neither GRO nor LRO is on{cause}"),
            "each packet is handled by itself; two 10G ports went from 12 to 18 Gbit/s by merging in 2009",
            format!("ethtool -K {name} gro on"),
        ));
    }
    let mtu = interface.mtu_bytes.unwrap_or_default();
    let is_fast = interface.speed_bits_per_s.is_some_and(|speed| speed >= FAST_BITS_PER_S);
    if is_fast && (1..=PLAIN_MTU).contains(&mtu) {
        let mut advice = new(
            "mtu",
            format!(
                "{name} has an MTU of {mtu} at {:.0} Gbit/s",
                float(interface.speed_bits_per_s.unwrap_or_default()) / 1e9
            ),
            "large packets steadied 16.5 of 20 Gbit/s in 2009; only where the server and every switch between have them",
            format!(
                "ip link set dev {name} mtu 9000 && ping -M do -c 3 -s 8972 {}  # no reply: back to {mtu}",
                group.server
            ),
        );
        advice.confidence = 0.4;
        found.push(advice);
    }
    if let Some(path) = interface
        .path_mtu_bytes
        .filter(|path| mtu > PLAIN_MTU && *path <= PLAIN_MTU)
    {
        found.push(new(
            "path-mtu",
            format!("{name} has an MTU of {mtu}, the way to {} carries {path}", group.server),
            "the server, or a switch or router between, has no large packets: each costs what a small one does",
            format!("ping -M do -c 3 -s {} {}", mtu.saturating_sub(28), group.server),
        ));
    }
    found
}

/// Packets are lost, and not by this host: the report of 2009 found retransmissions on the server, and no error on any interface.
pub fn loss_elsewhere(group: &Group, verdict: &Verdict, interface: &Interface) -> Option<Advice> {
    let window = &verdict.window;
    let is_ours = window.nic_drops != Some(0) || window.softnet_drops > 0;
    let is_lost = window.has_tcp_loss();
    if verdict.rule != Rule::LossyPath || is_ours || !is_lost {
        return None;
    }
    let title = format!("packets are lost, but {} dropped none", interface.name);
    let mut advice = Advice::new(group, "loss-elsewhere", None, title);
    advice.confidence = verdict.confidence;
    advice.why = vec!["no packet was missed, dropped or without room in the interface's counters meanwhile".to_owned()];
    advice.todo = vec![(
        "look at".to_owned(),
        format!(
            "the ports of the switches, and on {}: nstat -az TcpRetransSegs; ethtool -S",
            group.server
        ),
    )];
    Some(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nconnect::advice::made::{group, verdict};

    #[test]
    fn the_report_of_2009() {
        let group = group("nas1", "3", 1, &["sys"]);
        let plain = Interface {
            name: "eth0".to_owned(),
            mtu_bytes: Some(9000),
            speed_bits_per_s: Some(10_000_000_000),
            gro: Some(true),
            lro: Some(false),
            path_mtu_bytes: Some(9000),
            ..Interface::default()
        };
        let kinds = |change: fn(&mut Interface)| {
            let mut interface = plain.clone();
            change(&mut interface);
            let found = of_interface(&group, &interface);
            found.iter().map(|advice| advice.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(|_| {}), [""; 0]);
        assert_eq!(kinds(|i| i.gro = Some(false)), ["lro-off"]);
        assert_eq!(kinds(|i| i.gro = None), [""; 0]);
        assert_eq!(kinds(|i| (i.gro, i.lro) = (Some(false), Some(true))), [""; 0]);
        assert_eq!(kinds(|i| i.mtu_bytes = Some(1500)), ["mtu"]);
        assert_eq!(
            kinds(|i| (i.mtu_bytes, i.speed_bits_per_s) = (Some(1500), Some(1_000_000_000))),
            [""; 0]
        );
        assert_eq!(kinds(|i| i.path_mtu_bytes = Some(1500)), ["path-mtu"]);
        let bridged = Interface {
            gro: Some(false),
            is_bridged: true,
            ..plain.clone()
        };
        assert!(of_interface(&group, &bridged)[0].title.contains("port of a bridge"));

        let mut lossy = verdict(Rule::LossyPath, 1);
        assert_eq!(loss_elsewhere(&group, &lossy, &plain), None);
        lossy.window.retransmitted = Some(0.0051);
        assert!(loss_elsewhere(&group, &lossy, &plain).is_some());
        lossy.window.nic_drops = Some(1);
        assert_eq!(loss_elsewhere(&group, &lossy, &plain), None);
        lossy.window.nic_drops = None;
        assert_eq!(loss_elsewhere(&group, &lossy, &plain), None);
    }
}
