//! The walls of the house, read off the sources: which room may name what.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The only places with `unsafe`: system calls that have no safe wrapper, the helper's entry point and its allocator.
const UNSAFE: &[&str] = &[
    "src/apply/lock.rs",
    "src/bin/nfsrahead/arena.rs",
    "src/bin/nfsrahead/main.rs",
    "src/bin/nfsrahead/malloc.rs",
    "src/bin/nfstune/bench/cache.rs",
    "src/bin/nfstune/bench/child.rs",
    "src/bin/nfstune/bench/front.rs",
    "src/kernel/ethtool.rs",
    "src/kernel/mountinfo.rs",
    "src/kernel/netlink.rs",
    "src/kernel/statmount.rs",
    "src/kernel/vm.rs",
];

/// A file of src/ and what is left of it without comments and tests.
struct Source {
    /// As in `src/root.rs`.
    path: String,
    lines: Vec<String>,
}

impl Source {
    fn is_below(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// `path:line` of every line that holds one of the words.
    fn places(&self, words: &[&str]) -> Vec<String> {
        let lines = self.lines.iter().enumerate();
        let hits = lines.filter(|(_, line)| words.iter().any(|word| has_word(line, word)));
        hits.map(|(i, line)| format!("{}:{}: {}", self.path, i + 1, line.trim()))
            .collect()
    }
}

/// Not as a part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().filter(|_| word.starts_with(is_name));
        let after = line[at + word.len()..]
            .chars()
            .next()
            .filter(|_| word.ends_with(is_name));
        ![before, after].into_iter().flatten().any(is_name)
    })
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    collect(Path::new(env!("CARGO_MANIFEST_DIR")), "src", &mut found);
    assert!(found.len() > 20);
    found
}

fn collect(top: &Path, folder: &str, found: &mut Vec<Source>) {
    for entry in fs::read_dir(top.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(top, &path, found);
        } else {
            let text = fs::read_to_string(entry.path()).unwrap();
            found.push(Source {
                lines: code(&path, &text),
                path,
            });
        }
    }
}

/// Lines with their numbers kept: comment lines are empty, and the tests, which end a file, are gone.
fn code(path: &str, text: &str) -> Vec<String> {
    let code = match text.split_once("\n#[cfg(test)]\nmod tests {\n") {
        Some((code, tests)) => {
            let end = tests.find("\n}\n").unwrap();
            assert_eq!(&tests[end..], "\n}\n", "{path}: the tests are not the last thing");
            code
        }
        None => text,
    };
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let line = |line: &str| {
        if is_comment(line) {
            String::new()
        } else {
            line.to_owned()
        }
    };
    code.lines().map(line).collect()
}

fn assert_none(wall: &str, places: impl IntoIterator<Item = String>) {
    let places: Vec<String> = places.into_iter().collect();
    assert!(places.is_empty(), "{wall}:\n{}", places.join("\n"));
}

#[test]
fn what_decides_is_pure() {
    const OUTSIDE: &[&str] = &[
        "std::fs",
        "std::process",
        "std::env",
        "std::net",
        "std::thread",
        "std::io",
        "Instant",
        "SystemTime",
        "File",
        "Root",
        "libc",
        "log",
    ];
    const ROOMS: &[&str] = &[
        "src/bench/",
        "src/cycle/",
        "src/readahead/",
        "src/writeback/",
        "src/nconnect/",
    ];
    let sources = sources();
    let pure: Vec<&Source> = sources
        .iter()
        .filter(|source| ROOMS.iter().any(|room| source.is_below(room)))
        .collect();
    assert!(!pure.is_empty());
    let wall = "no files, no clock, no process, no environment where decisions are made";
    assert_none(wall, pure.iter().flat_map(|source| source.places(OUTSIDE)));
}

#[test]
fn paths_of_the_system_are_spelled_in_root_rs() {
    const PATHS: &[&str] = &["\"/proc", "\"/sys", "\"/run", "\"/etc", "\"/usr", "\"/dev"];
    let (root, others): (Vec<Source>, Vec<Source>) = sources().into_iter().partition(|s| s.path == "src/root.rs");
    assert!(!root[0].places(PATHS).is_empty());
    assert_none(
        "only src/root.rs spells paths",
        others.iter().flat_map(|s| s.places(PATHS)),
    );
}

#[test]
fn the_library_names_no_crate_of_a_program() {
    const CRATES: &[&str] = &[
        "udev",
        "nix",
        "clap",
        "serde_json",
        "syslog",
        "plotters",
        "fastrand",
        "indicatif",
        "signal_hook",
        "configparser",
        "sd_notify",
    ];
    let words: Vec<String> = CRATES
        .iter()
        .flat_map(|name| {
            [
                format!("{name}::"),
                format!("use {name};"),
                format!("extern crate {name}"),
            ]
        })
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // Files that one program writes and another reads are described once, behind a feature that the helper is built without.
    let shared: &[&str] = &["src/bin/", "src/state/", "src/conf/tuned_profile.rs"];
    let is_shared = |source: &Source| shared.iter().any(|folder| source.is_below(folder));
    let (programs, library): (Vec<Source>, Vec<Source>) = sources().into_iter().partition(is_shared);
    assert!(programs.iter().any(|source| !source.places(&words).is_empty()));
    assert_none("belongs to a program", library.iter().flat_map(|s| s.places(&words)));
}

#[test]
fn only_apply_writes_to_the_system() {
    const WRITES: &[&str] = &[
        "fs::write",
        "fs::rename",
        "fs::copy",
        "fs::remove_file",
        "fs::remove_dir",
        "fs::remove_dir_all",
        "fs::create_dir",
        "fs::create_dir_all",
        "fs::set_permissions",
        "File::create",
        "File::create_new",
        ".set_len(",
        ".write_at(",
        ".write_all_at(",
        ".append(true)",
        ".create(true)",
        ".create_new(true)",
        ".truncate(true)",
        ".write(true)",
    ];
    // An attribute is opened once, for reading or for writing too, and that open file is its identity: so it is opened where
    // attributes are known, by what `apply` is going to do.
    const OPENS: &[&str] = &[".write("];
    // A measurement writes a file of its own, without a name, on the mount that it measures.
    const OWN_FILE: &str = "src/bin/nfstune/bench/own_file.rs";
    let is_known = |s: &Source| s.is_below("src/apply/") || s.path == OWN_FILE;
    let (apply, others): (Vec<Source>, Vec<Source>) = sources().into_iter().partition(is_known);
    assert!(apply.iter().any(|source| !source.places(WRITES).is_empty()));
    assert_none("only src/apply writes", others.iter().flat_map(|s| s.places(WRITES)));
    let openers = others.iter().filter(|source| source.path != "src/kernel/bdi.rs");
    assert_none(
        "only src/kernel/bdi.rs opens for writing",
        openers.flat_map(|s| s.places(OPENS)),
    );
}

#[test]
fn unsafe_code_is_where_it_is_known_to_be() {
    let found: BTreeSet<String> = sources()
        .into_iter()
        .filter(|source| !source.places(&["unsafe"]).is_empty())
        .map(|source| source.path)
        .collect();
    let known: BTreeSet<String> = UNSAFE.iter().map(|path| (*path).to_owned()).collect();
    assert_eq!(found, known);
}

#[test]
fn each_dependency_has_its_reason() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(top.join("Cargo.toml")).unwrap();
    let mut is_dependency = false;
    let mut dependencies = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dependency = line.ends_with("dependencies]");
        } else if let (true, Some((name, _))) = (is_dependency, line.split_once(" = ")) {
            dependencies.insert(name.to_owned());
        }
    }
    assert!(dependencies.contains("libc") && dependencies.contains("tempfile"));

    let readme = fs::read_to_string(top.join("README.md")).unwrap();
    let table = readme.split_once("\n## Dependencies\n").unwrap().1;
    let table = table.split("\n## ").next().unwrap();
    let rows: BTreeSet<String> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .filter(|(_, rest)| rest.split('|').count() == 3)
        .flat_map(|(names, _)| names.split(", ").map(str::to_owned))
        .filter(|name| name != "crate")
        .collect();
    assert_eq!(rows, dependencies, "README's table and Cargo.toml");
}
