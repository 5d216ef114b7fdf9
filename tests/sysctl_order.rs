//! Which files of sysctl.d are read, and in which order: the same as systemd's own reader says, over folders of all kinds.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use common::{run, skip};
use nfsrahead::conf::knob_owner::limit_owners;
use nfsrahead::kernel::knob::Threshold;
use nfsrahead::root::{Root, SYSCTL_CONF};
use proptest::prelude::*;

const PROGRAM: &str = "/usr/bin/systemd-analyze";
const FOLDERS: [&str; 4] = [
    "etc/sysctl.d",
    "run/sysctl.d",
    "usr/local/lib/sysctl.d",
    "usr/lib/sysctl.d",
];
const NAMES: [&str; 9] = [
    "10-a.conf",
    "9-a.conf",
    "50-default.conf",
    "99-sysctl.conf",
    "A.conf",
    "a.conf",
    ".hidden.conf",
    "a.conf.bak",
    "a",
];

/// What stands under one name in one folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Settings,
    Empty,
    Masks,
    Link,
}

type Tree = BTreeMap<(usize, usize), Kind>;

fn trees() -> impl Strategy<Value = (Tree, bool, bool)> {
    let kind = prop_oneof![
        4 => Just(Kind::Settings),
        1 => Just(Kind::Empty),
        1 => Just(Kind::Masks),
        1 => Just(Kind::Link),
    ];
    let tree = proptest::collection::btree_map((0..FOLDERS.len(), 0..NAMES.len()), kind, 0..14);
    (tree, any::<bool>(), any::<bool>())
}

fn make(root: &Path, tree: &Tree, has_conf: bool, is_usr_merged: bool) {
    let text = "vm.dirty_ratio=7\n";
    fs::create_dir_all(root.join("etc")).unwrap();
    if has_conf {
        fs::write(root.join("etc/sysctl.conf"), text).unwrap();
    }
    fs::create_dir_all(root.join("elsewhere")).unwrap();
    for ((folder, name), kind) in tree {
        let folder = root.join(FOLDERS[*folder]);
        let path = folder.join(NAMES[*name]);
        fs::create_dir_all(&folder).unwrap();
        match kind {
            Kind::Settings => fs::write(&path, text).unwrap(),
            Kind::Empty => fs::write(&path, "").unwrap(),
            Kind::Masks => symlink("/dev/null", &path).unwrap(),
            Kind::Link => {
                let target = root.join("elsewhere").join(NAMES[*name]);
                fs::write(&target, text).unwrap();
                symlink(&target, &path).unwrap();
            }
        }
    }
    if is_usr_merged && root.join("usr/lib").exists() {
        symlink("usr/lib", root.join("lib")).unwrap();
    }
}

/// The files that have settings, in its order: it heads each with its path, and prints masked ones too, which are empty.
fn of_systemd(root: &Path) -> Vec<String> {
    let output = run::output(
        Command::new(PROGRAM)
            .arg("cat-config")
            .arg(format!("--root={}", root.display()))
            .arg("sysctl.d")
            .env("SYSTEMD_COLORS", "0"),
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut files, mut at) = (Vec::new(), None);
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some(path) => at = path.strip_prefix(root.to_str().unwrap()).map(str::to_owned),
            None if line.starts_with("vm.") => files.extend(at.take()),
            None => {}
        }
    }
    files
}

fn of_ours(root: &Path) -> Vec<String> {
    let owners = limit_owners(&Root::new(root));
    let (_, owners) = owners
        .into_iter()
        .find(|(threshold, _)| *threshold == Threshold::Limit)
        .unwrap();
    let files = owners.iter().map(|owner| owner.at.file.display().to_string());
    files.collect()
}

#[test]
fn the_order_of_sysctl_d_is_that_of_systemd() {
    if !Path::new(PROGRAM).exists() {
        skip("no systemd-analyze (package systemd)");
        return;
    }
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(60)
    };
    proptest!(config, |(tree in trees())| {
        let (tree, has_conf, is_usr_merged) = tree;
        let dir = tempfile::tempdir().unwrap();
        make(dir.path(), &tree, has_conf, is_usr_merged);
        let mut ours = of_ours(dir.path());
        // procps reads the old file, after all others; systemd's reader does not.
        let has_last = ours.last().is_some_and(|file| file == SYSCTL_CONF);
        ours.truncate(ours.len() - usize::from(has_last));
        prop_assert_eq!(has_last, has_conf);
        prop_assert_eq!(ours, of_systemd(dir.path()));
    });
}
