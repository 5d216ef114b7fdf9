//! `nfstune bench` as a program, on a copy of a system whose mount is a plain folder: what it says, what it leaves behind.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

mod common;
use common::run::{code, output, shown};
use common::tree::write;

/// On a disk: what is in a tmpfs cannot leave the page cache.
fn root() -> TempDir {
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let table = "29 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        30 29 0:51 / /mnt/x rw - nfs4 filer1.example:/export/a rw,vers=4.2,rsize=262144,wsize=262144,proto=tcp,sec=sys,\
        clientaddr=192.0.2.9,addr=192.0.2.5\n";
    let vmstat =
        "nr_dirty 0\nnr_writeback 0\nnr_dirtied 9\nnr_dirty_threshold 20000\nnr_dirty_background_threshold 10000\n";
    for (path, text) in [
        ("proc/self/mountinfo", table),
        ("proc/vmstat", vmstat),
        ("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n"),
        ("proc/sys/kernel/osrelease", "6.12.1-test\n"),
        ("proc/sys/kernel/hostname", "secret-host\n"),
        ("proc/sys/kernel/random/boot_id", "0e1f\n"),
        ("sys/class/bdi/0:51/read_ahead_kb", "128\n"),
        ("sys/class/bdi/0:51/strict_limit", "0\n"),
        ("sys/class/bdi/0:51/max_ratio_fine", "1000000\n"),
        ("sys/class/bdi/0:51/min_ratio_fine", "0\n"),
    ] {
        write(dir.path(), path, text);
    }
    fs::create_dir_all(dir.path().join("mnt/x/folder")).unwrap();
    dir
}

fn bench(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfstune"));
    command.arg("--root").arg(root).arg("bench").args(arguments);
    command
}

const READAHEAD: [&str; 8] = [
    "readahead",
    "/mnt/x",
    "--size",
    "8M",
    "--values",
    "128,1024",
    "--budget",
    "10s",
];

fn readahead(root: &Path, more: &[&str]) -> Output {
    output(bench(root, &READAHEAD).args(more))
}

fn knob(root: &Path, name: &str) -> String {
    let text = fs::read_to_string(root.join("sys/class/bdi/0:51").join(name)).unwrap();
    text.trim().to_owned()
}

/// Nothing that was changed for a measurement stays.
fn assert_as_before(root: &Path) {
    let knobs = ["read_ahead_kb", "strict_limit", "max_ratio_fine", "min_ratio_fine"].map(|name| knob(root, name));
    assert_eq!(knobs, ["128", "0", "1000000", "0"]);
    let left: Vec<PathBuf> = fs::read_dir(root.join("mnt/x"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(left, [root.join("mnt/x/folder")]);
    assert_eq!(fs::read_dir(root.join("mnt/x/folder")).unwrap().count(), 0);
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

#[test]
fn readahead_says_all_and_leaves_nothing() {
    let dir = root();
    let page = dir.path().join("page.html");
    let done = readahead(dir.path(), &["--json", "--report", page.to_str().unwrap()]);
    assert_eq!(code(done.status), 0, "{}", shown(&done.stderr));
    // The budget comes first.
    assert!(
        shown(&done.stderr).contains("at most 10 s and "),
        "{}",
        shown(&done.stderr)
    );
    let said = json(&done);
    assert_eq!(
        (&said["schema_version"], &said["bench"]),
        (&1.into(), &"readahead".into())
    );
    assert_eq!(
        (&said["is_complete"], &said["file_bytes"]),
        (&true.into(), &(8 << 20).into())
    );
    assert_eq!(said["present_read_ahead_bytes"], 128 << 10);
    assert!([128 << 10, 1024 << 10].contains(&said["read_ahead_bytes"].as_u64().unwrap()));
    for (series, record) in said["series"].as_array().unwrap().iter().zip([64 << 10, 1 << 20]) {
        assert_eq!(series["record_bytes"], record);
        for point in series["points"].as_array().unwrap() {
            assert!(
                point["rates_bytes_per_second"].as_array().unwrap().len() >= 3,
                "{point}"
            );
        }
    }
    assert_eq!(said["facts"]["source"], "filer1.example:/export/a");
    assert_eq!(said["facts"]["link"], Value::Null);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg") && page.contains("prefers-color-scheme"));
    for outside in ["http://", "https://", "<script", "<link", "url("] {
        let shown = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!shown.contains(outside), "{outside}");
    }
    assert_as_before(dir.path());
}

#[test]
fn rows_are_what_sweep_reads() {
    let dir = root();
    let done = readahead(dir.path(), &["--csv", "--file", "/mnt/x/given"]);
    assert_eq!(code(done.status), 1, "there is no such file");
    fs::write(dir.path().join("mnt/x/given"), vec![7; 9 << 20]).unwrap();
    let done = readahead(dir.path(), &["--csv", "--file", "/mnt/x/given"]);
    assert_eq!(code(done.status), 0, "{}", shown(&done.stderr));
    fs::remove_file(dir.path().join("mnt/x/given")).unwrap();
    assert_as_before(dir.path());
    let rows = dir.path().join("rows");
    fs::write(&rows, &done.stdout).unwrap();
    let mut sweep = Command::new(env!("CARGO_BIN_EXE_nfstune"));
    let swept = output(sweep.args(["sweep", "--of", "read_ahead_bytes"]).arg(&rows));
    assert_eq!(code(swept.status), 0, "{}", shown(&swept.stderr));
}

#[test]
fn names_are_left_out_on_request() {
    let dir = root();
    let page = dir.path().join("page.html");
    let arguments = ["--anonymous", "--report", page.to_str().unwrap()];
    for format in [&["--json"][..], &[]] {
        let done = readahead(dir.path(), &[&arguments[..], format].concat());
        let all = shown(&done.stdout) + &shown(&done.stderr) + &fs::read_to_string(&page).unwrap();
        for name in ["secret-host", "filer1", "192.0.2", "/export", "/mnt/x"] {
            assert!(!all.contains(name), "{name}: {all}");
        }
        assert!(all.contains("6.12.1-test"));
    }
}

/// A bench that is in the middle of it.
fn begun(root: &Path, arguments: &[&str], is_begun: impl Fn() -> bool) -> Child {
    let child = bench(root, arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while !is_begun() {
        assert!(Instant::now() < end, "it does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn signal(child: &Child, signal: libc::c_int) {
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: kill(2) takes no memory; the child has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

const LONG: [&str; 9] = [
    "readahead",
    "/mnt/x",
    "--size",
    "64M",
    "--values",
    "512,1024",
    "--rounds",
    "40",
    "--json",
];

#[test]
fn a_signal_ends_it_with_what_there_is() {
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let dir = root();
        let child = begun(dir.path(), &LONG, || knob(dir.path(), "read_ahead_kb") != "128");
        std::thread::sleep(Duration::from_millis(300));
        signal(&child, number);
        let done = child.wait_with_output().unwrap();
        assert_eq!(code(done.status), 1);
        assert_eq!(json(&done)["is_complete"], false);
        assert_as_before(dir.path());
    }
}

#[test]
fn what_sigkill_leaves_is_given_back() {
    let limited = ["write", "/mnt/x", "--size", "64M", "--limit", "8M", "--rounds", "25"];
    for (arguments, name, value) in [(&LONG[..], "read_ahead_kb", "128"), (&limited, "strict_limit", "0")] {
        let dir = root();
        let mut child = begun(dir.path(), arguments, || knob(dir.path(), name) != value);
        // Another one is not let in meanwhile.
        let second = readahead(dir.path(), &[]);
        assert_eq!(code(second.status), 1);
        assert!(
            shown(&second.stderr).contains("another measurement runs"),
            "{}",
            shown(&second.stderr)
        );
        signal(&child, libc::SIGKILL);
        child.wait().unwrap();
        let mut restore = Command::new(env!("CARGO_BIN_EXE_nfstune"));
        let restored = output(restore.arg("--root").arg(dir.path()).arg("restore"));
        assert_eq!(code(restored.status), 0, "{}", shown(&restored.stderr));
        assert_as_before(dir.path());
    }
}

#[test]
fn a_value_changed_by_others_stays() {
    let dir = root();
    let mut child = begun(dir.path(), &LONG, || knob(dir.path(), "read_ahead_kb") != "128");
    write(dir.path(), "sys/class/bdi/0:51/read_ahead_kb", "777\n");
    assert_eq!(code(child.wait().unwrap()), 1, "it cannot go on");
    assert_eq!(knob(dir.path(), "read_ahead_kb"), "777");
}

#[test]
fn writing_is_timed_in_steps_with_and_without_a_limit() {
    let dir = root();
    let arguments = [
        "write",
        "/mnt/x/folder",
        "--size",
        "32M",
        "--limit",
        "8M",
        "--rounds",
        "1",
        "--json",
    ];
    let done = output(&mut bench(dir.path(), &arguments));
    assert_eq!(code(done.status), 0, "{}", shown(&done.stderr));
    let said = json(&done);
    assert_eq!(
        (&said["limit_bytes"], &said["file_bytes"]),
        (&(8 << 20).into(), &(32 << 20).into())
    );
    let kinds: Vec<_> = said["passes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pass| pass["kind"].clone())
        .collect();
    assert_eq!(kinds, ["as it is", "limited"]);
    for figure in [
        "longest_write_seconds",
        "worst_step_seconds",
        "fsync_seconds",
        "close_seconds",
        "bytes_per_second",
    ] {
        assert!(said["limited"][figure].as_f64().is_some(), "{figure}: {said}");
    }
    assert!(said["limited_to_as_it_is"]["longest_write"].as_f64().unwrap() > 0.0);
    assert_as_before(dir.path());

    let done = output(&mut bench(
        dir.path(),
        &["write", "/mnt/x", "--size", "2M", "--record", "64K", "--csv"],
    ));
    assert_eq!(shown(&done.stdout).lines().count(), 1 + 32, "{}", shown(&done.stderr));
    assert_as_before(dir.path());
}

#[test]
fn a_kernel_without_limits_is_said() {
    let dir = root();
    fs::remove_file(dir.path().join("sys/class/bdi/0:51/strict_limit")).unwrap();
    let done = output(&mut bench(dir.path(), &["write", "/mnt/x", "--compare"]));
    assert_eq!(code(done.status), 1);
    assert!(shown(&done.stderr).contains("Linux 6.2"), "{}", shown(&done.stderr));
}

#[test]
fn too_little_room_is_refused() {
    let dir = root();
    let done = output(&mut bench(
        dir.path(),
        &["write", "/mnt/x", "--size", "1T", "--record", "64M"],
    ));
    assert_eq!(code(done.status), 1);
    assert!(
        shown(&done.stderr).contains("are free there"),
        "{}",
        shown(&done.stderr)
    );
    assert_as_before(dir.path());
}

#[test]
fn fio_measures_the_same() {
    if Command::new("fio").arg("--version").output().is_err() {
        return common::skip("fio is not installed");
    }
    let dir = root();
    let done = readahead(dir.path(), &["--engine", "fio", "--json"]);
    assert_eq!(code(done.status), 0, "{}", shown(&done.stderr));
    assert_eq!(json(&done)["engine"], "fio");
    let done = output(&mut bench(
        dir.path(),
        &["write", "/mnt/x", "--size", "32M", "--engine", "fio", "--json"],
    ));
    let said = json(&done);
    assert_eq!(said["passes"][0]["bytes"], 32 << 20, "{}", shown(&done.stderr));
    // fio has no steps.
    assert_eq!(said["as_it_is"]["worst_step_seconds"], Value::Null);
    assert_as_before(dir.path());
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_done() {
    let dir = root();
    for (arguments, said) in [
        (&["readahead", "/mnt/x", "--values", "128"][..], "--values"),
        (&["readahead", "/mnt/x", "--values", "130,256"], "--values"),
        (&["readahead", "/mnt/x", "--size", "1K"], "--size"),
        (&["readahead", "/mnt/x", "--budget", "1s"], "--budget"),
        (&["readahead", "/mnt/x", "--budget", "soon"], "--budget"),
        (&["readahead", "/mnt/x", "--rounds", "2"], "--rounds"),
        (&["readahead", "/mnt/x", "--tolerance", "NaN"], "--tolerance"),
        (&["readahead", "/mnt/x", "--file", "f", "--make"], "--make"),
        (&["readahead", "/mnt/x", "--csv", "--json"], "--csv"),
        (&["write", "/mnt/x", "--step", "0"], "--step"),
        (&["write", "/mnt/x", "--size", "1T", "--record", "1K"], "--size"),
        (&["write", "/mnt/x", "--limit", "much"], "--limit"),
        (&["nconnect", "filer1"], "SERVER:/EXPORT"),
        (&["nconnect", "h:/x", "--values", "1,17"], "--values"),
        (&["nconnect", "h:/x", "--options", "nconnect=4"], "nconnect"),
        (&["nconnect", "h:/x", "--options", "sec=krb5p"], "krb5p"),
        (&["nconnect", "h:/x", "--options", "ro soft"], "--options"),
        (&["nconnect", "h:/x", "--netns", "../x"], "--netns"),
        (&["nconnect", "h:/x", "--budget", "2s"], "--budget"),
    ] {
        let done = output(&mut bench(dir.path(), arguments));
        assert_eq!(code(done.status), 2, "{arguments:?}: {}", shown(&done.stderr));
        assert!(
            shown(&done.stderr).contains(said),
            "{arguments:?}: {}",
            shown(&done.stderr)
        );
    }
    for elsewhere in ["/", "/mnt", "/mnt/xy", "/proc"] {
        let done = output(&mut bench(dir.path(), &["readahead", elsewhere]));
        assert_eq!(code(done.status), 1);
        assert!(
            shown(&done.stderr).contains("is on no NFS mount"),
            "{}",
            shown(&done.stderr)
        );
    }
    assert_as_before(dir.path());
    assert!(!dir.path().join("run").exists());
}
