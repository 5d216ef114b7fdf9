//! For tests: a group, its facts, and a verdict about it.

use crate::nconnect::asked::{Group, Place};
use crate::nconnect::live::history::Verdict;
use crate::nconnect::live::rules::{Baseline, Rule};
use crate::nconnect::live::window::{Facts, Window};

pub fn group(server: &str, version: &str, connections: u64, flavors: &[&str]) -> Group {
    let place = |(n, flavor): (usize, &&str)| Place {
        mount_point: format!("/m{n}"),
        source: format!("{server}:/m{n}"),
        flavor: (*flavor).to_owned(),
        ..Place::default()
    };
    Group {
        client: format!("{server},vers={version},proto=tcp"),
        server: server.to_owned(),
        version: version.to_owned(),
        proto: "tcp".to_owned(),
        connections,
        places: flavors.iter().enumerate().map(place).collect(),
    }
}

pub fn facts(group: &Group) -> Facts {
    Facts {
        version: group.version.clone(),
        proto: group.proto.clone(),
        link_bits_per_s: Some(100_000_000_000),
        session_slots: 64,
        cpus: 64,
        kernel: Some((6, 12)),
        ports_left: Some(300),
        ..Facts::default()
    }
}

pub fn verdict(rule: Rule, connections: u64) -> Verdict {
    Verdict {
        rule,
        windows: 8,
        of: 10,
        busy_hours_ago: 0,
        confidence: 0.8,
        baseline: Baseline {
            connection_bytes_per_s: Some(2e9),
            ..Baseline::default()
        },
        window: Window {
            connections,
            nic_drops: Some(0),
            ..Window::default()
        },
    }
}
