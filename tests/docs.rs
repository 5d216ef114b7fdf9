//! The man pages say every flag and every key, and no others.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use nfsrahead::conf::policy::{Policy, ProblemKind};
use nfsrahead::conf::tuned::Tuned;
use nfsrahead::conf::{self, Keep};
use nfsrahead::root::{Root, NFS_CONF};

mod common;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Words that start with two dashes.
fn flags(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words
        .filter_map(|word| word.strip_prefix("--"))
        .filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        .map(str::to_owned)
        .collect()
}

/// Flags of a page in mdoc: `Fl -name`, also after a comma.
fn documented_flags(page: &str) -> BTreeSet<String> {
    let lines = page
        .lines()
        .filter(|line| line.starts_with('.') && line.contains("Fl "));
    lines
        .flat_map(|line| line.split_whitespace())
        .filter_map(|word| word.strip_prefix('-'))
        .filter(|name| name.len() > 1)
        .map(str::to_owned)
        .collect()
}

fn help(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).arg("--help").output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?} --help: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_flag_of_the_helper() {
    let said = flags(&help(env!("CARGO_BIN_EXE_nfsrahead"), &[]));
    assert!(said.contains("dry-run"));
    assert_eq!(said, documented_flags(&read("man/nfsrahead.8.in")));
}

#[test]
fn every_flag_of_the_daemon() {
    let said = flags(&help(env!("CARGO_BIN_EXE_nfstuned"), &[]));
    assert!(said.contains("syslog"));
    assert_eq!(said, documented_flags(&read("man/nfstuned.8")));
}

#[test]
fn every_key_of_the_daemon() {
    let page = read("man/nfsrahead.conf.5");
    let documented: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix(".It Ic "))
        .map(str::to_owned)
        .collect();
    let source = read("src/conf/tuned.rs");
    let candidates = source.split("b\"").skip(1).filter_map(|rest| rest.split('"').next());
    let is_known = |key: &str, section: &str| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        std::fs::write(dir.path().join("etc/nfs.conf"), format!("{section}\n{key}=4\n")).unwrap();
        let conf = conf::load(&Root::new(dir.path()), Path::new(NFS_CONF), Keep::All);
        let tuned = Tuned::new(&conf, &|_| None);
        !tuned
            .problems
            .iter()
            .any(|problem| problem.kind == ProblemKind::UnknownKey)
    };
    let plain = candidates.clone().filter(|key| is_known(key, "[nfstuned]"));
    let sub = candidates.filter(|key| is_known(key, "[nfstuned \"/srv\"]"));
    let known: BTreeSet<String> = plain.chain(sub).map(str::to_owned).collect();
    assert!(known.contains("drain-target") && known.contains("dirty-limit"));
    assert_eq!(known, documented);
}

#[test]
fn every_flag_and_verb_of_the_tool() {
    let page = read("man/nfstune.1");
    let mut said = BTreeSet::new();
    for verb in [
        &[][..],
        &["config"],
        &["config", "dump"],
        &["config", "get"],
        &["config", "check"],
        &["bench"],
        &["bench", "readahead"],
        &["bench", "write"],
        &["bench", "nconnect"],
        &["doctor"],
        &["sweep"],
        &["metrics"],
        &["advise"],
        &["advice"],
        &["advice", "mute"],
        &["advice", "history"],
        &["snippet"],
        &["status"],
        &["explain"],
        &["apply"],
        &["restore"],
        &["release"],
        &["record"],
        &["replay"],
    ] {
        let help = help(env!("CARGO_BIN_EXE_nfstune"), verb);
        said.extend(flags(&help));
        for verb in help
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .map_while(|line| line.split_whitespace().next())
        {
            assert!(
                verb == "help"
                    || ["config", "bench", "advice"]
                        .iter()
                        .any(|of| page.contains(&format!("Cm {of} {verb}")))
                    || page.contains(&format!("| {verb}"))
                    || page.contains(&format!(".Cm {verb}")),
                "{verb}"
            );
        }
    }
    assert!(said.contains("json"));
    assert_eq!(said, documented_flags(&page));
}

/// Keys as `.It Cm key` in the part of the page about keys.
fn documented_keys(page: &str) -> BTreeSet<String> {
    let part = page.split(".Ss Keys").nth(1).unwrap().split(".Ss ").next().unwrap();
    part.lines()
        .filter_map(|line| line.strip_prefix(".It Cm "))
        .map(str::to_owned)
        .collect()
}

/// Is `key` one that the policy knows, in the plain section or in a sub-section?
fn is_known(key: &str, section: &str) -> bool {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("etc")).unwrap();
    std::fs::write(dir.path().join("etc/nfs.conf"), format!("{section}\n{key}=4\n")).unwrap();
    let conf = conf::load(&Root::new(dir.path()), Path::new(NFS_CONF), Keep::All);
    let policy = Policy::new(&conf, b"", &|_| None);
    !policy
        .problems
        .iter()
        .any(|problem| problem.kind == ProblemKind::UnknownKey)
}

#[test]
fn every_key() {
    let documented = documented_keys(&read("man/nfsrahead.conf.5"));
    // The literals of the match arms in the policy are the keys; whatever looks like one is asked about.
    let source = read("src/conf/policy.rs");
    let candidates = source.split("b\"").skip(1).filter_map(|rest| rest.split('"').next());
    let known: BTreeSet<String> = candidates
        .filter(|key| is_known(key, "[nfsrahead]"))
        .map(str::to_owned)
        .collect();
    assert!(known.contains("nfs4"));
    assert_eq!(known, documented);
    for key in &known {
        let is_value = ["nfs", "nfs4", "default"].contains(&key.as_str());
        assert_eq!(is_known(key, "[nfsrahead \"/srv\"]"), is_value, "{key}");
    }
}

#[test]
fn every_kind_of_finding() {
    let page = read("man/nfstune.1");
    let mut kinds = BTreeSet::new();
    for source in ["src/conf/grammar.rs", "src/conf/policy.rs"] {
        let source = read(source);
        let names = source.split("Kind::").skip(1).filter_map(|rest| {
            rest.lines()
                .next()?
                .split("=> \"")
                .nth(1)?
                .split('"')
                .next()
                .map(str::to_owned)
        });
        kinds.extend(names.filter(|name| !name.contains(' ')));
    }
    let check = read("src/conf/check.rs");
    kinds.extend(
        check
            .split("&wish.at, \"")
            .chain(check.split("at(place, \""))
            .chain(check.split("&rule.at, \""))
            .chain(check.split("&lost.at, \""))
            .skip(1)
            .filter_map(|rest| rest.split('"').next().map(str::to_owned))
            .filter(|k| k.chars().all(|c| c.is_ascii_lowercase() || c == '-')),
    );
    for source in [
        "conf/owners.rs",
        "conf/knob_owner.rs",
        "conf/drop_ins.rs",
        "conf/rule_lint.rs",
        "conf/options.rs",
        "bin/nfstune/doctor.rs",
    ] {
        let source = read(&format!("src/{source}"));
        let code = source.split("\n#[cfg(test)]\n").next().unwrap();
        for severity in ["error", "warning", "note"] {
            let call = format!("Found::{severity}(");
            let calls = code.split(&call).skip(1);
            kinds.extend(
                calls.filter_map(|call| Some(call.trim_start().strip_prefix('"')?.split('"').next()?.to_owned())),
            );
        }
    }
    for kind in [
        "every-device",
        "rules-unreadable",
        "unknown-option",
        "config-check",
        "bom",
        "bad-value",
        "nfs-utils-differs",
        "no-mount",
        "shared-device",
    ] {
        assert!(
            kinds.contains(kind),
            "{kind} is not found in the sources any more: mend this test"
        );
    }
    for kind in kinds {
        let is_there = page
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .any(|word| word == kind);
        assert!(is_there, "{kind} is not in man/nfstune.1");
    }
}

#[test]
fn every_family_of_metrics() {
    let text = nfsrahead::report::metrics::metrics(&[], &Default::default());
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let families: BTreeSet<_> = families.filter_map(|family| family.split(' ').next()).collect();
    let page = read("man/nfstune.1");
    let words = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let documented: BTreeSet<_> = words.filter(|word| word.starts_with("nfstune_")).collect();
    assert!(families.contains("nfstune_mount_info"));
    assert_eq!(families, documented);
}

#[test]
fn pages_are_clean() {
    let pages = [
        "man/nfsrahead.8.in",
        "man/nfsrahead.conf.5",
        "man/nfstune.1",
        "man/nfstuned.8",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let linted = Command::new("mandoc")
        .arg("-Tlint")
        .args(pages.map(|page| root.join(page)))
        .output();
    let Ok(linted) = linted else {
        return common::skip("mandoc is not installed");
    };
    let text = String::from_utf8(linted.stdout).unwrap() + &String::from_utf8(linted.stderr).unwrap();
    // Which other pages are installed, and how fresh mandoc's list of them is, says nothing about ours.
    let ours: Vec<_> = text
        .lines()
        .filter(|line| !line.contains("referenced manual not found") && !line.contains("outdated mandoc.db"))
        .collect();
    assert!(ours.is_empty(), "{ours:#?}");
}
