//! What is installed, and the examples that come with it.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The exact list; a file more or less is a decision.
#[test]
fn the_list_of_files() {
    let output = Command::new("make")
        .args(["-s", "installed"])
        .current_dir(here())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = "\
0755 /usr/libexec/nfsrahead
0755 /usr/bin/nfstune
0755 /usr/sbin/nfstuned
0644 /usr/lib/udev/rules.d/99-nfs.rules
0644 /usr/lib/systemd/system/nfstuned.service
0644 /usr/share/man/man8/nfsrahead.8
0644 /usr/share/man/man8/nfstuned.8
0644 /usr/share/man/man5/nfsrahead.conf.5
0644 /usr/share/man/man1/nfstune.1
0644 /usr/share/bash-completion/completions/nfstune
0644 /usr/share/zsh/vendor-completions/_nfstune
0644 /usr/share/fish/vendor_completions.d/nfstune.fish
0644 /usr/share/doc/nfsrahead/examples/nfsrahead.conf
0644 /usr/share/doc/nfsrahead/examples/nfstuned.conf
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

fn examples() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(here().join("conf/nfs.conf.d"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    all.sort();
    assert_eq!(all.len(), 2);
    all
}

/// As it comes an example changes nothing and is right; with all its keys it is right too, and it has them all.
#[test]
fn examples_are_right_with_and_without_their_marks() {
    let page = fs::read_to_string(here().join("man/nfsrahead.conf.5")).unwrap();
    let documented: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix(".It Cm ").or_else(|| line.strip_prefix(".It Ic ")))
        .filter(|key| {
            key.chars()
                .all(|c| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit())
        })
        .collect();
    let mut seen = BTreeSet::new();
    for example in examples() {
        let text = fs::read_to_string(&example).unwrap();
        let unmarked: String = text
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if rest.starts_with('[') || rest.contains(" = ") && !rest.starts_with(' ') => {
                    format!("{rest}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        seen.extend(
            unmarked
                .lines()
                .filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()))
                .filter(|key| !key.starts_with('#')),
        );
        for text in [&text, &unmarked] {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("etc")).unwrap();
            fs::create_dir_all(dir.path().join("proc/self")).unwrap();
            let mounts = [
                ("/srv/media", "filer1:/export/x", 50),
                ("/db", "filer1:/export/db", 51),
                ("/s", "filer1:/export/scratch", 52),
            ];
            let table: String = mounts
                .iter()
                .map(|(at, source, minor)| {
                    format!("3{minor} 1 0:{minor} / {at} rw - nfs4 {source} rw,vers=4.2,rsize=1048576\n")
                })
                .collect();
            fs::write(dir.path().join("proc/self/mountinfo"), table).unwrap();
            fs::write(dir.path().join("etc/nfs.conf"), text).unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_nfstune"))
                .arg("--root")
                .arg(dir.path())
                .args(["config", "check"])
                .output()
                .unwrap();
            let found = String::from_utf8(output.stdout).unwrap();
            // That nfs-utils reads rules as other numbers is what the man page says about them.
            let wrong: Vec<&str> = found
                .lines()
                .filter(|line| !line.contains("[nfs-utils-differs]"))
                .collect();
            assert!(wrong.is_empty(), "{}: {wrong:?}", example.display());
        }
    }
    let seen: BTreeSet<&str> = seen.iter().map(String::as_str).collect();
    assert!(documented.is_superset(&seen), "{seen:?} {documented:?}");
    for key in [
        "nfs",
        "nfs4",
        "default",
        "wait",
        "namespaces",
        "debug",
        "interval",
        "apply",
        "drain-target",
        "settle",
        "dirty-limit",
    ] {
        assert!(seen.contains(key), "{key} is in no example");
    }
}

/// Maintainer scripts, the spec's shell and other recipes are at least shell that can be read.
#[test]
fn scripts_can_be_read() {
    let mut scripts: Vec<PathBuf> = fs::read_dir(here().join("packaging/debian"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_some_and(|ending| {
                ["preinst", "postinst", "prerm", "postrm"]
                    .iter()
                    .any(|known| ending == *known)
            })
        })
        .collect();
    assert!(scripts.len() >= 4);
    scripts.push(here().join("packaging/arch/PKGBUILD"));
    scripts.push(here().join("packaging/alpine/APKBUILD"));
    for script in scripts {
        let status = Command::new("bash").arg("-n").arg(&script).status().unwrap();
        assert!(status.success(), "{}", script.display());
    }
}
