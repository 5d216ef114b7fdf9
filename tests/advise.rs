//! `nfstune advise` and its book, on field cases and on a daemon's advice.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;
#[path = "common/machine.rs"]
mod machine;

use std::path::Path;
use std::process::{Command, Output};

use machine::Machine;

fn nfstune(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfstune"));
    common::run::output(command.env_clear().args(arguments))
}

fn printed(arguments: &[&str]) -> String {
    let output = nfstune(arguments);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/nconnect")
        .join(name);
    path.to_str().unwrap().to_owned()
}

fn of_files(case: &str, more: &[&str]) -> String {
    let (before, after) = (data(&format!("{case}.t0")), data(&format!("{case}.t1")));
    let mut arguments = vec![
        "advise",
        "--mountstats",
        &before,
        &after,
        "--seconds",
        "10",
        "--link",
        "100",
    ];
    arguments.extend(more);
    printed(&arguments)
}

/// Field case 29 A: two threads that wait for answers.
#[test]
fn a_mount_that_waits_for_answers_needs_no_connections() {
    let text = of_files("29-A", &[]);
    assert!(text.contains("nothing to advise"), "{text}");
    assert!(!text.contains("nconnect 1 ->"), "{text}");
}

/// Field case 29 B: 84 requests, most of them before the wire, all 64 slots used.
#[test]
fn a_queue_before_the_wire_is_worth_a_try_and_slots_are_named() {
    let text = of_files("29-B", &[]);
    assert!(
        text.contains("nas2.example  nconnect 1 -> 4   confidence 0.4"),
        "{text}"
    );
    assert!(
        text.contains("1 connection carried 1.26 GB/s, 10 % of the link of 12.50 GB/s"),
        "{text}"
    );
    assert!(text.contains("24 requests on the wire, 60 waiting before it"), "{text}");
    assert!(text.contains("options nfs max_session_slots=128"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&of_files("29-B", &["--json"])).unwrap();
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["advice"][0]["connections_wanted"], 4);
    assert_eq!(json["advice"][1]["connections_wanted"], serde_json::Value::Null);
    // A link without room changes the answer.
    let (before, after) = (data("29-B.t0"), data("29-B.t1"));
    let text = printed(&[
        "advise",
        "--mountstats",
        &before,
        &after,
        "--seconds",
        "10",
        "--link",
        "10",
    ]);
    assert!(text.contains("the link is full"), "{text}");
    assert!(!text.contains("nconnect 1 ->"), "{text}");
}

fn with_tables(fstab: &str, mounts: &[(&str, &str, &str, u32)]) -> Machine {
    let machine = Machine::new("");
    machine.put("etc/fstab", fstab);
    let (mut table, mut stats) = (String::new(), String::new());
    for (n, (source, at, options, connections)) in mounts.iter().enumerate() {
        let minor = u32::try_from(50 + n).unwrap();
        machine.device(minor);
        table += &format!("{} 22 0:{minor} / {at} rw,relatime - nfs4 {source} {options}\n", 30 + n);
        let without_address = options.rsplit_once(",addr=").unwrap().0;
        stats += &format!(
            "device {source} mounted on {at} with fstype nfs4 statvers=1.1\n\topts:\t{without_address}\n\tage:\t100\n"
        );
        for port in 0..*connections {
            stats += &format!("\txprt:\ttcp {port} 1 1 0 0 10 10 0 10 0 2 0 0\n");
        }
        stats += "\tper-op statistics\n\t        READ: 1 1 0 0 0 0 0 0 0\n\n";
    }
    machine.put("proc/self/mountinfo", &table);
    machine.put("proc/self/mountstats", &stats);
    machine
}

fn on(machine: &Machine) -> String {
    printed(&[
        "--root",
        machine.path().to_str().unwrap(),
        "advise",
        "-n",
        "2",
        "--interval",
        "5",
    ])
}

/// Field case 24: the first mount decides for all of a server.
#[test]
fn wishes_are_compared_with_what_there_is() {
    let options = "rw,vers=4.1,rsize=1048576,wsize=1048576,hard,proto=tcp";
    let ten = format!("{options},addr=192.0.2.10");
    let twelve = format!("{options},nconnect=4,addr=192.0.2.12");
    let machine = with_tables(
        "192.0.2.10:/vol1 /m/vol1 nfs vers=4.1,hard 0 0\n192.0.2.10:/vol2 /m/vol2 nfs vers=4.1,hard,nconnect=8 0 0\n\
         192.0.2.10:/vol3 /m/vol3 nfs vers=4.1,nconnect=16 0 0\n192.0.2.12:/vol4 /m/vol4 nfs vers=4.1,nconnect=4 0 0\n",
        &[
            ("192.0.2.10:/vol1", "/m/vol1", &ten, 1),
            ("192.0.2.10:/vol2", "/m/vol2", &ten, 1),
            ("192.0.2.10:/vol3", "/m/vol3", &ten, 1),
            ("192.0.2.12:/vol4", "/m/vol4", &twelve, 4),
        ],
    );
    let text = on(&machine);
    assert!(text.contains("192.0.2.10  1 connection ("), "{text}");
    assert!(text.contains("192.0.2.12  4 connections ("), "{text}");
    assert!(
        text.contains("192.0.2.10 has 1 connection, /m/vol2 asks for 8, /m/vol3 asks for 16: /m/vol1 was mounted first without the option"),
        "{text}"
    );
    assert!(
        text.contains("the same nconnect=16 on the lines of /m/vol1 /m/vol2 /m/vol3"),
        "{text}"
    );
    assert!(
        text.contains("umount all of them (/m/vol1 /m/vol2 /m/vol3) and mount again; remount is not enough"),
        "{text}"
    );
    assert_eq!(text.matches("ADVICE").count(), 1, "{text}");
}

/// Field case 26: Kerberos.
#[test]
fn kerberos_over_several_connections_is_advised_against() {
    let options = |n: u32, more: &str| format!("rw,vers=4.2,rsize=1048576,proto=tcp,{more},addr=192.0.2.{}", 9 + n);
    let all = [
        options(1, "nconnect=8,sec=krb5p"),
        options(2, "nconnect=4,sec=krb5"),
        options(3, "sec=krb5i"),
        options(4, "nconnect=8,sec=sys"),
    ];
    let machine = with_tables(
        "",
        &[
            ("nas1.example:/k1", "/k1", &all[0], 8),
            ("nas2.example:/k2", "/k2", &all[1], 4),
            ("nas3.example:/k3", "/k3", &all[2], 1),
            ("nas4.example:/k4", "/k4", &all[3], 8),
        ],
    );
    let text = on(&machine);
    assert!(
        text.contains(
            "nas1.example  nconnect 8 -> 1: sec=krb5p over several connections, stalls are known   confidence 0.8"
        ),
        "{text}"
    );
    assert!(text.contains("nas2.example  nconnect 4 -> 1: sec=krb5 over several connections, vendors advise against it   confidence 0.5"), "{text}");
    assert_eq!(text.matches("ADVICE").count(), 2, "{text}");
}

#[test]
fn the_book_is_kept() {
    let machine = Machine::new("");
    let root = machine.path().to_str().unwrap().to_owned();
    let verb = |arguments: &[&str]| {
        let mut all = vec!["--root", &root];
        all.extend(arguments);
        nfstune(&all)
    };
    assert_eq!(
        String::from_utf8_lossy(&verb(&["advice", "history"]).stdout),
        "nothing was advised yet\n"
    );
    assert_eq!(verb(&["advice", "mute", "nc-000000"]).status.code(), Some(1));
    machine.put(
        "var/lib/nfstuned/advice.json",
        r#"{"schema_version":1,"muted":[],"given":{"nc-5f1c22":{"client":"c","server":"nas1","kind":"transport","title":"nconnect 1 -> 6","connections":1,"connections_wanted":6,"first_seconds":1,"last_seconds":1,"bytes_per_second":1.9e9}},"trials":[],"outcomes":[{"advice":"nc-5f1c22","server":"nas1","kind":"transport","before":1,"after":6,"gain":1.94,"helped":true,"at_seconds":2}]}"#,
    );
    assert!(verb(&["advice", "mute", "nc-5f1c22"]).status.success());
    let text = String::from_utf8(verb(&["advice", "history"]).stdout).unwrap();
    assert_eq!(
        text,
        "nc-5f1c22  nas1  nconnect 1 -> 6, muted\n    tried with 6: 1.94 times as fast: it helped\n"
    );
    assert!(verb(&["advice", "unmute", "nc-5f1c22"]).status.success());
    assert_eq!(verb(&["advice", "unmute", "nc-5f1c22"]).status.code(), Some(1));
    assert_eq!(verb(&["snippet", "nc-5f1c22", "--for", "fstab"]).status.code(), Some(1));
    assert_eq!(verb(&["snippet", "nc-5f1c22", "--for", "x"]).status.code(), Some(2));
}
