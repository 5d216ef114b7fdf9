//! `nfstune metrics` as a program, and its text.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use nfsrahead::client::join;
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::kernel::{mountinfo, mountstats};
use nfsrahead::report::metrics::metrics;
use tempfile::TempDir;

mod common;
use common::run::{code, output, shown};
use common::tree::write;

fn data(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

fn root(stats: &str, table: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "proc/self/mountstats", stats);
    write(dir.path(), "proc/self/mountinfo", table);
    dir
}

fn nfstune(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfstune"));
    command.arg("--root").arg(root).arg("metrics");
    command
}

/// Standard output of a run that ends well and says nothing else.
fn text(root: &Path) -> String {
    let output = output(&mut nfstune(root));
    assert_eq!((code(output.status), shown(&output.stderr)), (0, String::new()));
    String::from_utf8(output.stdout).unwrap()
}

/// Series with their values, after a look at the form: families in one piece, their samples named after them, no series
/// twice.
fn series(text: &str) -> BTreeMap<String, String> {
    let mut families = BTreeSet::new();
    let mut found = BTreeMap::new();
    let mut sample = String::new();
    let body = text.strip_suffix("# EOF\n").unwrap();
    for line in body.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').unwrap();
            assert!(families.insert(name.to_owned()), "{name} twice");
            sample = if kind == "counter" {
                format!("{name}_total{{")
            } else {
                format!("{name}{{")
            };
        } else if let Some(unit) = line.strip_prefix("# UNIT ") {
            let (name, unit) = unit.split_once(' ').unwrap();
            assert!(
                sample.starts_with(name) && name.ends_with(&format!("_{unit}")),
                "{line}"
            );
        } else if !line.starts_with("# HELP ") {
            assert!(line.starts_with(&sample), "{line} is not of {sample}");
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert_eq!(found.insert(name.to_owned(), value.to_owned()), None, "{name} twice");
        }
    }
    assert!(families.len() > 12, "{families:?}");
    found
}

#[test]
fn the_text_of_a_real_kernel() {
    let root = root(&data("mountstats/7.2/mountstats"), &data("mountstats/7.2/mountinfo"));
    for (device, kib) in [
        ("0:31", "128\n"),
        ("0:34", "15360\n"),
        ("0:35", "128\n"),
        ("0:36", "128\n"),
    ] {
        write(root.path(), &format!("sys/class/bdi/{device}/read_ahead_kb"), kib);
    }
    let text = text(root.path());
    assert_eq!(text, data("metrics/7.2"));
    series(&text);
}

/// `addr=` of each mount, in a table that goes with the stats.
fn table(mounts: &[(&str, &str, u32)]) -> String {
    let line = |(source, point, minor): &(&str, &str, u32)| {
        format!("1 2 0:{minor} / {point} rw shared:1 - nfs4 {source} rw,vers=4.2,proto=tcp,sec=sys,addr=192.0.2.1\n")
    };
    mounts.iter().map(line).collect()
}

#[test]
fn the_field_cases_in_metrics() {
    let many = root(
        &data("mountstats/several-xprt"),
        &table(&[("nas1.example:/a", "/a", 9)]),
    );
    let series_of_many = series(&text(many.path()));
    let shared = root(
        &data("mountstats/shared-transport-not-summed-twice"),
        &table(&[("nas1.example:/p", "/p", 51), ("nas1.example:/q", "/q", 52)]),
    );
    let series_of_shared = series(&text(shared.path()));
    let client = "{client=\"192.0.2.1,vers=4.2,proto=tcp\"}";
    for (series, name, value) in [
        (&series_of_many, "connections", "4"),
        (&series_of_many, "sends_total", "100000"),
        (&series_of_many, "receives_total", "99999"),
        (&series_of_many, "bad_xids_total", "1"),
        (&series_of_many, "backlog_total", "40"),
        (&series_of_many, "slots_max", "32"),
        (&series_of_many, "longest_idle_seconds", "200"),
        (&series_of_shared, "connections", "2"),
        (&series_of_shared, "sends_total", "10000"),
    ] {
        assert_eq!(series[&format!("nfstune_client_{name}{client}")], value, "{name}");
    }
    let reads = |device| &series_of_shared[&format!("nfstune_operations_total{{device=\"0:{device}\",op=\"READ\"}}")];
    assert_eq!((&**reads(51), &**reads(52)), ("6000", "4000"));
    let rtt = "nfstune_operation_rtt_seconds_total{device=\"0:9\",op=\"READ\"}";
    assert_eq!(series_of_many[rtt], "54.000");
}

#[test]
fn what_old_kernels_do_not_know_has_no_series() {
    let stats = "device h:/x mounted on /x with fstype nfs4 statvers=1.0\n\topts:\trw,vers=4.2,proto=tcp\n\
        \txprt:\tudp 1 2 3 4 5 6 7\n\tper-op statistics\n\t READ: 3 5 0 0 0 1 2 18446744073709551615\n";
    let root = root(stats, &table(&[("h:/x", "/x", 5)]));
    let series = series(&text(root.path()));
    let has = |part: &str| series.keys().any(|name| name.contains(part));
    assert!(has("retransmissions") && has("sends") && has("connections"));
    assert!(!has("errors") && !has("slots_max") && !has("idle") && !has("read_ahead") && !has("WRITE"));
    let retransmissions = "nfstune_operation_retransmissions_total{device=\"0:5\",op=\"READ\"}";
    assert_eq!(series[retransmissions], "2");
    let execution = "nfstune_operation_execution_seconds_total{device=\"0:5\",op=\"READ\"}";
    assert_eq!(series[execution], "18446744073709551.615");
}

/// Values from outside stay inside their quotes.
#[test]
fn hostile_names() {
    let stats = b"device h\"},x{:/a\\134b mounted on /\xff\"\\012\\040 with fstype nfs4\n\topts:\trw,vers=4.2\n";
    let line = b"1 2 0:5 / /\xff\"\\012\\040 rw - nfs4 h\"},x{:/a\\134b rw,vers=4.2,rsize=\"\\,addr=1\"2\n";
    let stats = mountstats::parse(&stats[..]).unwrap();
    let mounts = mountinfo::parse(&line[..], None).unwrap();
    let text = metrics(&join(&stats, &mounts), &BTreeMap::new());
    let expected = r#"nfstune_mount_info{device="0:5",mount_point="/\\377\"\\012 ",source="h\"},x{:/a\\134b","#
        .to_owned()
        + r#"version="4.2",client="1\"2,vers=4.2,proto=tcp",rsize="\"\\134"} 1"#;
    assert!(text.lines().any(|line| line == expected), "{text}");
    series(&text);
}

/// Mounts upon each other and bind mounts: one superblock, and in a moment between two lines its figures grew.
#[test]
fn a_superblock_counts_once_and_its_newest_figures_count() {
    let mount = |reads: u32, sends: u32| {
        format!(
            "device h:/x mounted on /x with fstype nfs4\n\topts:\trw,vers=4.2\n\txprt:\tudp 1 2 {sends} 4 5 6 7\n\
             \tper-op statistics\n\t READ: {reads} 9 0 0 0 0 0 0\n"
        )
    };
    let table = table(&[("h:/x", "/x", 5), ("h:/x", "/x", 5)]);
    for stats in [mount(7, 20) + &mount(8, 21), mount(8, 21) + &mount(7, 20)] {
        let root = root(&stats, &table);
        let text = text(root.path());
        let series = series(&text);
        assert_eq!(series["nfstune_operations_total{device=\"0:5\",op=\"READ\"}"], "8");
        let sends = series.iter().find(|(name, _)| name.contains("sends")).unwrap();
        assert_eq!(sends.1, "21");
        assert_eq!(text.matches("nfstune_mount_info{").count(), 1);
    }
}

/// Between the reading of the two tables a mount went: nobody knows its device, so it is left out, with its client.
#[test]
fn a_mount_without_a_line_in_mountinfo() {
    let root = root(
        &data("mountstats/shared-transport-not-summed-twice"),
        &table(&[("nas1.example:/p", "/p", 51)]),
    );
    let text = text(root.path());
    assert_eq!(text.matches("nfstune_mount_info{").count(), 1);
    assert_eq!(text.matches("nfstune_client_sends_total{").count(), 1);
}

#[test]
fn no_mounts_and_no_tables() {
    let empty = root("device proc mounted on /proc with fstype proc\n", "");
    assert_eq!(series(&text(empty.path())), BTreeMap::new());
    fs::remove_file(empty.path().join("proc/self/mountinfo")).unwrap();
    let output = output(&mut nfstune(empty.path()));
    assert_eq!((code(output.status), &*output.stdout), (1, &b""[..]));
    assert!(shown(&output.stderr).contains("mountinfo: cannot read: "));
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let root = root(
        &data("mountstats/several-xprt"),
        &table(&[("nas1.example:/a", "/a", 9)]),
    );
    let folder = root.path().join("textfile");
    let file = folder.join("nfs.prom");
    let run = || output(nfstune(root.path()).arg("--output").arg(&file));

    let failed = run();
    assert_eq!((code(failed.status), &*failed.stdout), (1, &b""[..]));
    assert!(shown(&failed.stderr).contains("nfs.prom: cannot write: "));

    fs::create_dir(&folder).unwrap();
    fs::write(&file, "old").unwrap();
    let mut old = File::open(&file).unwrap();
    let done = run();
    assert_eq!(
        (code(done.status), &*done.stdout, shown(&done.stderr)),
        (0, &b""[..], String::new())
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text(root.path()));
    assert_eq!(std::io::read_to_string(&mut old).unwrap(), "old");
    let names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["nfs.prom"]);
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let root = root("", "");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let status = nfstune(root.path()).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn the_readahead_is_in_bytes() {
    let device = Dev::parse(b"0:5").unwrap();
    for (kib, bytes) in [(0, "0"), (15360, "15728640"), (u64::MAX, "18446744073709551615")] {
        let text = metrics(&[], &BTreeMap::from([(device, kib)]));
        assert_eq!(series(&text)["nfstune_read_ahead_bytes{device=\"0:5\"}"], bytes);
    }
}
