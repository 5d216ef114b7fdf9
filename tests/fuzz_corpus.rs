//! The fuzz targets without a fuzzer: every seed, then a few thousand changed ones, the same in every run.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

#[path = "fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

/// Per target; what `make fuzz` tries in the blink of an eye.
const CHANGED: usize = 3000;

#[test]
fn grammar() {
    run(
        "grammar",
        &["tests/fuzz/seeds/grammar", "tests/conf-cases"],
        targets::grammar,
    );
}

#[test]
fn mountinfo() {
    run("mountinfo", &["tests/fuzz/seeds/mountinfo"], targets::mountinfo);
}

#[test]
fn mountstats() {
    run("mountstats", &["tests/fuzz/seeds/mountstats"], targets::mountstats);
}

#[test]
fn nfsfs() {
    run("nfsfs", &["tests/fuzz/seeds/nfsfs"], targets::nfsfs);
}

#[test]
fn route() {
    run("route", &["tests/fuzz/seeds/route"], targets::route);
}

#[test]
fn device() {
    run("device", &["tests/fuzz/seeds/device"], targets::device);
}

#[test]
fn rules() {
    run("rules", &["tests/fuzz/seeds/rules"], targets::rules);
}

#[test]
fn scope() {
    run("scope", &["tests/fuzz/seeds/scope"], targets::scope);
}

#[test]
fn value() {
    run("value", &["tests/fuzz/seeds/value"], targets::value);
}

#[test]
fn ledger() {
    run("ledger", &["tests/fuzz/seeds/ledger"], targets::ledger);
}

#[test]
fn sysctl() {
    run("sysctl", &["tests/fuzz/seeds/sysctl"], targets::sysctl);
}

#[test]
fn tuned_profile() {
    run(
        "tuned_profile",
        &["tests/fuzz/seeds/tuned_profile"],
        targets::tuned_profile,
    );
}

#[test]
fn netlink() {
    run("netlink", &["tests/fuzz/seeds/netlink"], targets::netlink);
}

#[test]
fn history() {
    run("history", &["tests/fuzz/seeds/history"], targets::history);
}

#[test]
fn book() {
    run("book", &["tests/fuzz/seeds/book"], targets::book);
}

fn run(name: &str, folders: &[&str], target: fn(&[u8])) {
    let mut seeds = Vec::new();
    for folder in folders {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut seeds);
    }
    assert!(seeds.len() > 1, "the seeds of {name} were lost");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for i in 0..seeds.len() + CHANGED {
        let input = match seeds.get(i) {
            Some(seed) => seed.clone(),
            None => random.changed(&seeds),
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
        assert!(outcome.is_ok(), "{name} breaks on {}", input.escape_ascii());
    }
}

/// Sorted, so that every run takes them in one order.
fn collect(folder: &Path, seeds: &mut Vec<Vec<u8>>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, seeds);
        } else if let Ok(seed) = fs::read(&path) {
            seeds.push(seed);
        }
    }
}

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (n as u64).max(1)).unwrap()
    }

    /// A seed with one to eight changes: a byte flipped, put in or taken out, or a piece of another seed put in.
    fn changed(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(8) {
            let at = self.below(input.len() + 1);
            match self.below(4) {
                0 if at < input.len() => input[at] ^= 1 << self.below(8),
                1 if at < input.len() => drop(input.remove(at)),
                2 => input.insert(at, u8::try_from(self.below(256)).unwrap()),
                _ => {
                    let other = &seeds[self.below(seeds.len())];
                    let start = self.below(other.len());
                    let end = (start + self.below(64)).min(other.len());
                    input.splice(at..at, other[start..end].iter().copied());
                }
            }
        }
        input
    }
}
