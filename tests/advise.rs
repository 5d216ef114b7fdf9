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
        text.contains("nas2.example (NFSv4.2, tcp)  nconnect 1 -> 4   confidence 0.4"),
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
            "nas1.example (NFSv4.2, tcp)  nconnect 8 -> 1: sec=krb5p over several connections, stalls are known   confidence 0.8"
        ),
        "{text}"
    );
    assert!(text.contains("nas2.example (NFSv4.2, tcp)  nconnect 4 -> 1: sec=krb5 over several connections, vendors advise against it   confidence 0.5"), "{text}");
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

/// A machine before and after; its clients read 1.2 GB/s on one connection each, or wait.
fn copies(fstab: &str, turned: bool) -> (Machine, Machine) {
    let at = |n: u64| {
        let machine = Machine::new("");
        machine.put("etc/fstab", fstab);
        machine.put("proc/uptime", &format!("{}.00 1.00\n", 5000 + 10 * n));
        machine.put(
            "proc/net/route",
            "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\nbr0 00000000 00000000 0001 0 0 0 00000000 0 0 0\n",
        );
        for (path, text) in [
            ("br0/speed", "-1"),
            ("br0/mtu", "1500"),
            ("br0/lower_eth0/x", ""),
            ("eth0/speed", "100000"),
            ("eth0/brport/state", "3"),
            ("eth0/statistics/rx_missed_errors", "7"),
        ] {
            machine.put(&format!("sys/class/net/{path}"), &format!("{text}\n"));
        }
        let options = "rw,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,sec=sys";
        let mut table = String::new();
        let mut stats = Vec::new();
        for (minor, server, reads) in [(50, 1, 12_000 * (n + 1)), (51, 2, 5)] {
            machine.device(minor);
            let source = format!("nas{server}:/a");
            table += &format!("{minor} 22 0:{minor} / /m{server} rw - nfs4 {source} {options},addr=192.0.2.{server}\n");
            stats.push(format!(
                "device {source} mounted on /m{server} with fstype nfs4 statvers=1.1\n\topts:\t{options}\n\tage:\t{}\n\timpl_id:\tname='FreeBSD 13.0-RELEASE',domain='x',date='0,0'\n\txprt:\ttcp 0 0 1 0 0 {reads} {reads} 0 {} {} 64 0 0\n\tper-op statistics\n\t        READ: {reads} {reads} 0 1 {} {} {} {} 0\n\n",
                3600 + 10 * n, reads * 58, reads * 25, reads * 1_049_166, reads * 50, reads * 20, reads * 70
            ));
        }
        if turned {
            stats.reverse();
        }
        machine.put("proc/self/mountinfo", &table);
        machine.put("proc/self/mountstats", &stats.concat());
        machine
    };
    (at(0), at(1))
}

fn of_copies((before, after): &(Machine, Machine), more: &[&str]) -> String {
    let paths = [before, after].map(|machine| machine.path().to_str().unwrap().to_owned());
    let mut arguments = vec!["--root", &paths[1], "advise", "--before", &paths[0]];
    arguments.extend(more);
    printed(&arguments)
}

#[test]
fn two_copies_of_a_machine_are_looked_at_without_waiting() {
    let machines = copies("nas1:/a /m1 nfs4 nconnect=1 0 0\n", false);
    let text = of_copies(&machines, &[]);
    for expected in [
        "nas1  1 connection (192.0.2.1,vers=4.2,proto=tcp), 1 mounts, watched for 10 s, 1 of 10 busy intervals",
        "nas1 (NFSv4.2, tcp)  nconnect 1 -> 4   confidence 0.4",
        // The bridge does not say its speed, what it is made of does.
        "1 connection carried 1.26 GB/s, 10 % of the link of 12.50 GB/s",
        "FreeBSD servers before 12.3 and 13.1 break",
        "nas1:/a /m1 nfs4 <your options>,nconnect=4 0 0",
        "not enough for a verdict",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    // Whatever the order in which the kernel lists them.
    let json = |turned| of_copies(&copies("", turned), &["--json"]);
    assert_eq!(json(false), json(true));
    // A machine that was started anew between the copies says nothing.
    let (before, after) = machines;
    let text = of_copies(&(after, before), &[]);
    assert!(text.contains("watched for 0 s") && !text.contains("ADVICE"), "{text}");
}

#[test]
fn a_wish_in_nfsmount_conf_is_a_wish() {
    let machines = copies("", false);
    machines.1.put("etc/nfsmount.conf", "[ Server \"nas2\" ]\nNconnect=8\n");
    let text = of_copies(&machines, &["--server", "nas2"]);
    assert!(
        text.contains("nas2 has 1 connection, /m2 asks for 8: /m2 was mounted first"),
        "{text}"
    );
}

/// A mount whose own option is at least what its line says is heard, whatever the file says.
#[test]
fn a_line_of_fstab_comes_before_nfsmount_conf() {
    let machines = copies("nas2:/a /m2 nfs4 nconnect=1 0 0\n", false);
    machines.1.put("etc/nfsmount.conf", "[ Server \"nas2\" ]\nNconnect=8\n");
    let text = of_copies(&machines, &["--server", "nas2"]);
    assert!(!text.contains("asks for"), "{text}");
}

#[test]
fn copies_of_two_kinds_make_no_sense() {
    for arguments in [
        &[
            "advise",
            "--before",
            "/x",
            "--mountstats",
            "/a",
            "/b",
            "--seconds",
            "10",
        ][..],
        &["advise", "--seconds", "10"],
        &["advise", "--mountstats", "/a", "/b"],
    ] {
        assert_eq!(nfstune(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

/// Field case 34: one of four connections does nothing.
#[test]
fn an_idle_connection_is_told() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mountstats/several-xprt");
    let file = file.to_str().unwrap();
    let text = printed(&["advise", "--mountstats", file, file, "--seconds", "10"]);
    assert!(
        text.contains("nas1.example  4 connections, one idle for 200 s ("),
        "{text}"
    );
}

/// What nfstuned has learned is used where it does not run: nine busy intervals, and the tenth seen now.
#[test]
fn a_history_makes_a_verdict_of_an_impression() {
    use nfsrahead::nconnect::live::history::History;
    use nfsrahead::nconnect::live::window::{Facts, Window};
    use nfsrahead::nconnect::watch::Watch;
    use nfsrahead::state::history::Histories;

    let machine = Machine::new("");
    let options = "rw,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,sec=sys";
    machine.device(50);
    machine.put(
        "proc/self/mountinfo",
        &format!("50 22 0:50 / /m1 rw - nfs4 nas1:/a {options},addr=192.0.2.1\n"),
    );
    machine.put(
        "proc/self/mountstats",
        &format!("device nas1:/a mounted on /m1 with fstype nfs4 statvers=1.1\n\topts:\t{options}\n\tage:\t10\n\txprt:\ttcp 0 0 1 0 0 1 1 0 1 0 2 0 0\n"),
    );
    let facts = Facts {
        version: "4.2".to_owned(),
        session_slots: 64,
        ..Facts::default()
    };
    let mut history = History::default();
    for n in 0..10 {
        let window = Window {
            end_ms: 1_700_000_000_000 + n * 15_000,
            length_ms: 15_000,
            connections: 1,
            on_wire: 60.0,
            ..Window::default()
        };
        history.add(&window, &facts);
    }
    let watch = Watch::new(std::collections::BTreeMap::from([(
        "192.0.2.1,vers=4.2,proto=tcp".to_owned(),
        history,
    )]));
    let text = String::from_utf8(Histories::of(&watch).to_json()).unwrap();
    machine.put("var/lib/nfstuned/history.json", &text);
    let said = on(&machine);
    assert!(said.contains("10 of the last 10 busy intervals agree"), "{said}");
    assert!(
        said.contains("max_session_slots=128") && !said.contains("impression"),
        "{said}"
    );
    // One that is damaged is said, and does without.
    machine.put("var/lib/nfstuned/history.json", &text[..text.len() / 2]);
    let output = nfstune(&[
        "--root",
        machine.path().to_str().unwrap(),
        "advise",
        "-n",
        "2",
        "--interval",
        "5",
    ]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("history.json:1: "));
}
