//! SIGKILL at every system call of an apply, of a restore, and of a restore after that: nothing is lost, nothing is given back
//! twice, nobody else's value is touched.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;
#[path = "common/machine.rs"]
mod machine;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use common::skip;
use machine::Machine;

fn machine() -> Machine {
    let mut machine = Machine::new("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead, bdi, vm\nsettle=0\n");
    machine.mount(51, "nas1:/a", "/a");
    machine.learned("nas1:/a", 11e6);
    machine
}

/// The n-th call of one name: what strace can stop at.
#[derive(Debug, Clone)]
struct Call {
    name: String,
    n: u32,
}

/// Runs a verb under strace with these options.
fn traced(machine: &Machine, verb: &str, options: &[&str]) -> std::process::ExitStatus {
    Command::new("strace")
        .args(options)
        .arg(env!("CARGO_BIN_EXE_nfstune"))
        .arg("--root")
        .arg(machine.path())
        .arg(verb)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
}

/// Killed as it enters this call. An address or two more or less may change the number of calls for memory: such a call may
/// not come.
fn kill_at(machine: &Machine, verb: &str, call: &Call) -> bool {
    let inject = format!("inject={}:signal=KILL:when={}", call.name, call.n);
    let status = traced(machine, verb, &["-qq", "-o", "/dev/null", "-e", &inject]);
    assert!(
        status.signal() == Some(9) || status.code() == Some(137) || status.success(),
        "{verb} {call:?}: {status}"
    );
    !status.success()
}

/// All calls from the first that has to do with what nfstuned keeps: before it the program is only being loaded.
fn calls(machine: &Machine, verb: &str) -> Vec<Call> {
    let trace = machine.at("trace");
    assert!(traced(machine, verb, &["-o", trace.to_str().unwrap()]).success());
    let text = fs::read_to_string(&trace).unwrap();
    fs::remove_file(&trace).unwrap();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut is_begun = false;
    let mut calls = Vec::new();
    for line in text.lines() {
        let Some((name, _)) = line.split_once('(') else {
            continue;
        };
        let n = seen.entry(name.to_owned()).or_default();
        *n += 1;
        is_begun |= line.contains("run/nfstuned");
        if is_begun && name != "exit_group" {
            calls.push(Call {
                name: name.to_owned(),
                n: *n,
            });
        }
    }
    calls
}

fn can_trace() -> bool {
    let status = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    if status.is_ok_and(|status| status.success()) {
        return true;
    }
    skip("strace cannot trace here");
    false
}

fn restore(machine: &Machine) {
    let output = Command::new(env!("CARGO_BIN_EXE_nfstune"))
        .arg("--root")
        .arg(machine.path())
        .arg("restore")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn killed_while_it_applies() {
    if !can_trace() {
        return;
    }
    let calls = calls(&machine(), "apply");
    let mut kills = 0;
    for call in &calls {
        let machine = machine();
        let before = machine.knobs();
        kills += u32::from(kill_at(&machine, "apply", call));
        // Every state in between is one of before and after: a limit never holds before its size is there.
        if machine.knob(51, "strict_limit") == "1" {
            assert_ne!(machine.knob(51, "max_ratio_fine"), "1000000", "{call:?}");
        }
        restore(&machine);
        assert_eq!(machine.knobs(), before, "killed at {call:?}");
        assert!(!machine.at("run/nfstuned/state").exists(), "killed at {call:?}");
    }
    println!("killed {kills} times");
    assert!(kills > 100, "{kills}");
}

#[test]
fn killed_while_it_gives_back() {
    if !can_trace() {
        return;
    }
    let applied = || {
        let machine = machine();
        let before = machine.knobs();
        assert!(traced(&machine, "apply", &["-qq", "-o", "/dev/null"]).success());
        assert_ne!(machine.knobs(), before);
        // By somebody else.
        machine.set(51, "read_ahead_kb", "777");
        let expected = before
            .into_iter()
            .map(|(name, value)| match name.ends_with("0:51/read_ahead_kb") {
                true => (name, "777".to_owned()),
                false => (name, value),
            })
            .collect::<Vec<_>>();
        (machine, expected)
    };
    let calls = calls(&applied().0, "restore");
    let mut kills = 0;
    for call in &calls {
        let (machine, expected) = applied();
        kills += u32::from(kill_at(&machine, "restore", call));
        restore(&machine);
        assert_eq!(machine.knobs(), expected, "killed at {call:?}");
        assert!(!machine.at("run/nfstuned/state").exists(), "killed at {call:?}");
    }
    println!("killed {kills} times");
    assert!(kills > 50, "{kills}");
}
