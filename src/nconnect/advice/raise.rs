//! More connections: how many, what they need, and where the option goes.

use crate::nconnect::advice::Advice;
use crate::nconnect::asked::{Group, MOST};
use crate::nconnect::live::history::Verdict;
use crate::nconnect::live::rules::{connections_to_try, has_session, next_step, step_within, Rule};
use crate::nconnect::live::window::Facts;

/// Reserved ports of a client (net/sunrpc/xprtsock.c: `xprt_min_resvport` 665 to `xprt_max_resvport` 1023).
pub const RESERVED_PORTS: u64 = 359;
/// Fewer left than this are worth a word.
const FEW_PORTS: u64 = 60;
/// Azure Files: "no gains beyond" (Microsoft, NFS performance of Azure Files).
const AZURE_FILES: (&str, u64) = (".file.core.windows.net", 4);

/// The most connections that may be suggested. None: more must not be suggested at all.
fn most(group: &Group, facts: &Facts) -> Option<u64> {
    let is_stream = ["tcp", "tcp6", "rdma", "rdma6"].contains(&group.proto.as_str());
    let is_known = facts.kernel.is_none_or(|kernel| kernel >= (5, 3) || kernel == RHEL_8);
    // Late requests fall out of the window of a Kerberos context and are sent again: with integrity and privacy mounts stall.
    if !is_stream || !is_known || group.kerberos().is_some_and(|kerberos| kerberos.is_strong) {
        return None;
    }
    let of_ports = facts
        .ports_left
        .map_or(MOST, |left| group.connections.saturating_add(left));
    let of_vendor = if group.server.ends_with(AZURE_FILES.0) {
        AZURE_FILES.1
    } else {
        MOST
    };
    Some(of_ports.min(of_vendor).min(MOST))
}

/// Its kernel has the option since 8.3, and the same number before.
const RHEL_8: (u64, u64) = (4, 18);

/// None: it must not be suggested.
pub(super) fn raise(group: &Group, verdict: &Verdict, facts: &Facts) -> Option<Advice> {
    let most = most(group, facts)?;
    let now = group.connections;
    let want = match (verdict.rule, facts.bond) {
        (Rule::BondSlaveFull, Some(bond)) => Some(bond.slaves.saturating_mul(2).clamp(2, MOST)),
        // Not known what one connection carries: one step, and then a measurement.
        (Rule::QueueBeforeWire, _) => next_step(now),
        _ => connections_to_try(&verdict.window, facts, &verdict.baseline),
    };
    let want = want.filter(|want| *want > now)?;
    let want = if want <= most { want } else { step_within(most, now)? };
    let title = format!("nconnect {} -> {want}", group.connections);
    let mut advice = Advice::new(group, verdict.rule.name(), Some(want), title);
    advice.todo = snippets(group, want);
    let places: Vec<&str> = group.places.iter().map(|place| place.mount_point.as_str()).collect();
    let all = match places.len() {
        1 => "the mount".to_owned(),
        n => format!("ALL {n} mounts"),
    };
    let decides = match group.places.first() {
        Some(first) if group.places.len() > 1 => {
            format!("{}, mounted first, sets the number for all", first.mount_point)
        }
        _ => "the first mount sets the number for all".to_owned(),
    };
    advice.todo.push((
        "then".to_owned(),
        format!(
            "umount {all} of {} ({}); {decides}, and remount does not change it",
            group.server,
            places.join(" ")
        ),
    ));
    advice.beware = beware(group, facts, want);
    advice.undo = Some("drop the option, umount all, mount".to_owned());
    Some(advice)
}

fn beware(group: &Group, facts: &Facts, want: u64) -> Vec<String> {
    let mut beware = vec![
        "needs Linux 5.3; TCP, TLS or RDMA; stop at the knee: small requests of many clients can get slower".to_owned(),
    ];
    if facts.kernel == Some(RHEL_8) {
        beware.push("Linux 4.18 of RHEL knows the option since 8.3; with an older one the mount fails".to_owned());
    }
    if let Some(left) = facts.ports_left {
        let left_then = left.saturating_sub(want.saturating_sub(group.connections));
        let few = if left_then < FEW_PORTS {
            ": noresvport takes none, and wants `insecure` exports"
        } else {
            ""
        };
        beware.push(format!(
            "{want} reserved ports of {RESERVED_PORTS}; {left_then} are left then{few}"
        ));
    }
    if has_session(facts) {
        beware.push(format!(
            "{} session slots (nfs.max_session_slots) are for all connections together",
            facts.session_slots
        ));
        if is_old_freebsd(&facts.software) {
            beware.push(
                "FreeBSD servers before 12.3 and 13.1 break with several connections on NFSv4.1 and later".to_owned(),
            );
        }
    }
    if group.version == "4.0" {
        beware.push("vendors (ONTAP) advise against it with NFSv4.0".to_owned());
    }
    let names = group.servers();
    if names.len() > 1 {
        beware.push(format!(
            "{} are one server to the kernel: the number holds for all of them",
            names.join(" and ")
        ));
    }
    if let Some(kerberos) = group.kerberos() {
        beware.push(format!(
            "sec={}: requests out of order fall out of the window of a context and are sent again; NetApp and Google advise against it",
            kerberos.flavor
        ));
    }
    beware
}

/// By what it calls itself: "FreeBSD 13.0-RELEASE ...".
fn is_old_freebsd(software: &str) -> bool {
    let version = software.split_once("FreeBSD ").map(|(_, rest)| rest);
    let mut numbers = version.unwrap_or_default().split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u64>().ok();
    match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) < (12, 3) || (major, minor) == (13, 0),
        _ => false,
    }
}

/// Where the option goes, ready to paste.
pub(super) fn snippets(group: &Group, want: u64) -> Vec<(String, String)> {
    let (source, at) = group.places.first().map_or(("server:/export", "/mnt"), |place| {
        (place.source.as_str(), place.mount_point.as_str())
    });
    let kind = if group.version.starts_with('4') { "nfs4" } else { "nfs" };
    let name = at.rsplit('/').find(|part| !part.is_empty()).unwrap_or("data");
    [
        (
            "fstab",
            format!("{source} {at} {kind} <your options>,nconnect={want} 0 0"),
        ),
        ("mount", format!("Options=<your options>,nconnect={want}")),
        (
            "autofs",
            format!("{name} -fstype={kind},<your options>,nconnect={want} {source}"),
        ),
        ("nfsmount", format!("[ Server \"{}\" ]\nnconnect={want}", group.server)),
    ]
    .map(|(place, text)| (place.to_owned(), text))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nconnect::advice::from_verdict;
    use crate::nconnect::advice::made::{facts, group, verdict};

    fn want(group: &Group, facts: &Facts) -> Option<u64> {
        from_verdict(group, &verdict(Rule::Transport, group.connections), facts)?.want
    }

    #[test]
    fn what_forbids_more_connections() {
        let plain = group("nas1", "4.2", 1, &["sys"]);
        let of = |change: fn(&mut Facts)| {
            let mut facts = facts(&plain);
            change(&mut facts);
            want(&plain, &facts)
        };
        assert_eq!(of(|_| {}), Some(16));
        assert_eq!(of(|f| f.kernel = Some((5, 2))), None);
        assert_eq!(of(|f| f.kernel = Some((5, 3))), Some(16));
        assert_eq!(of(|f| f.kernel = Some((4, 18))), Some(16));
        assert_eq!(of(|f| f.ports_left = Some(14)), Some(12));
        assert_eq!(of(|f| f.ports_left = Some(15)), Some(16));
        assert_eq!(of(|f| f.ports_left = Some(0)), None);
        assert_eq!(of(|f| f.ports_left = None), Some(16));
        for (flavors, expected) in [
            (&["krb5p"][..], None),
            (&["krb5i"], None),
            (&["sys", "krb5i"], None),
            (&["krb5"], Some(16)),
        ] {
            let group = group("nas1", "4.2", 1, flavors);
            assert_eq!(want(&group, &facts(&group)), expected, "{flavors:?}");
        }
        for (proto, expected) in [("udp", None), ("udp6", None), ("rdma", Some(16)), ("tcp6", Some(16))] {
            let group = Group {
                proto: proto.to_owned(),
                ..plain.clone()
            };
            assert_eq!(want(&group, &facts(&group)), expected, "{proto}");
        }
        let azure = group("x.file.core.windows.net", "4.1", 1, &["sys"]);
        assert_eq!(want(&azure, &facts(&azure)), Some(4));
        let azure = group("x.file.core.windows.net", "4.1", 4, &["sys"]);
        assert_eq!(want(&azure, &facts(&azure)), None);
    }

    #[test]
    fn what_to_beware_of() {
        let said =
            |group: &Group, facts: &Facts, text: &str| beware(group, facts, 4).iter().any(|line| line.contains(text));
        let plain = group("nas1", "4.2", 1, &["sys"]);
        let mut facts = facts(&plain);
        assert!(
            !said(&plain, &facts, "noresvport") && !said(&plain, &facts, "FreeBSD") && !said(&plain, &facts, "RHEL")
        );
        facts.ports_left = Some(62);
        assert!(said(&plain, &facts, "noresvport"));
        facts.kernel = Some((4, 18));
        assert!(said(&plain, &facts, "RHEL"));
        for (software, is_old) in [
            ("FreeBSD 12.2-RELEASE", true),
            ("FreeBSD 12.3-RELEASE", false),
            ("FreeBSD 13.0-STABLE #0", true),
            ("FreeBSD 13.1-RELEASE", false),
            ("FreeBSD 99999999999999999999.1", false),
            ("Linux 5.10", false),
        ] {
            facts.software = software.to_owned();
            assert_eq!(said(&plain, &facts, "FreeBSD"), is_old, "{software}");
        }
        assert!(said(&group("nas1", "4.0", 1, &["sys"]), &facts, "ONTAP"));
        let mut two = group("nas1", "4.2", 1, &["sys", "sys"]);
        assert!(!said(&two, &facts, "one server"));
        two.places[1].source = "192.0.2.11:/b".to_owned();
        assert!(said(&two, &facts, "nas1 and 192.0.2.11 are one server"));
        let then = from_verdict(&two, &verdict(Rule::Transport, 1), &facts).unwrap().todo;
        let (_, then) = then.iter().find(|(place, _)| place == "then").unwrap();
        assert!(
            then.contains("umount ALL 2 mounts of nas1 (/m0 /m1); /m0, mounted first, sets the number for all"),
            "{then}"
        );
    }
}
