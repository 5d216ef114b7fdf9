//! Decisions over recorded samples: what is learned, when it is enough, and what follows from it.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;
#[path = "common/machine.rs"]
mod machine;

use std::path::Path;
use std::process::Command;

use machine::{Did, Machine};

const MIB: u64 = 1 << 20;

/// Records sample after sample of a machine that `change` brings to its n-th state.
struct Recorder {
    machine: Machine,
    record: tempfile::TempDir,
    samples: u64,
}

impl Recorder {
    fn new(machine: Machine) -> Recorder {
        Recorder {
            machine,
            record: tempfile::tempdir().unwrap(),
            samples: 0,
        }
    }

    /// 15 seconds after the one before.
    fn sample(&mut self, change: impl FnOnce(&mut Machine)) {
        change(&mut self.machine);
        let seconds = 86_400 + 15 * self.samples;
        self.machine.put("proc/uptime", &format!("{seconds}.00 1.00\n"));
        let archive = self.record.path().join(format!("{}.tar", self.samples));
        let status = nfstune(&[
            "--root",
            self.machine.path().to_str().unwrap(),
            "record",
            "--samples",
            "1",
            archive.to_str().unwrap(),
        ]);
        assert!(status.contains("1 samples"), "{status}");
        self.samples += 1;
        // As one archive of several samples would unpack.
        let status = Command::new("tar")
            .arg("-C")
            .arg(self.record.path())
            .arg("-xf")
            .arg(&archive)
            .status();
        assert!(status.unwrap().success());
    }

    fn replay(&self) -> String {
        nfstune(&["replay", self.record.path().to_str().unwrap()])
    }
}

fn nfstune(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_nfstune"))
        .env_clear()
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines about one knob.
fn about(text: &str, knob: &str) -> Vec<String> {
    text.lines()
        .filter(|line| line.contains(&format!("  {knob}: ")))
        .map(|line| line.trim().to_owned())
        .collect()
}

/// 11 MB/s, WRITEs waiting on the wire all the time.
fn writing(n: u64) -> Did {
    Did {
        age_s: 7200 + 15 * n,
        written_bytes: n * 15 * 11_000_000,
        writes: (n * 165, n * 60_000),
        ..Did::default()
    }
}

#[test]
fn five_intervals_of_a_busy_server_make_a_limit() {
    let mut machine = Machine::new("[nfstuned]\napply=bdi\n");
    machine.mount(51, "nas1:/a", "/a");
    let mut recorder = Recorder::new(machine);
    for n in 0..8 {
        recorder.sample(|machine| machine.did(51, writing(n)));
    }
    let text = recorder.replay();
    let lines = about(&text, "0:51/max_ratio_fine");
    assert_eq!(
        lines[0],
        "0 s  0:51/max_ratio_fine: 1000000: the server's rate is not known yet: 0 of 5 intervals"
    );
    assert_eq!(
        lines[5],
        "75 s  0:51/max_ratio_fine: 1000000 -> 39062: the server takes 11.0 MB/s, 2 s of it: 24.0 MiB"
    );
    assert_eq!(
        lines[6],
        "90 s  0:51/max_ratio_fine: 39062: the server takes 11.0 MB/s, 2 s of it: 24.0 MiB"
    );
    assert_eq!(lines.len(), 7, "{text}");
    // The switch comes last.
    let order: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(" -> "))
        .map(|line| line.split([':', '/']).nth(2).unwrap())
        .collect();
    assert_eq!(order, ["max_ratio_fine", "min_ratio_fine", "strict_limit"]);
}

#[test]
fn a_young_mount_a_reboot_and_a_remount_say_nothing() {
    let mut machine = Machine::new("[nfstuned]\napply=bdi\n");
    machine.mount(51, "nas1:/a", "/a");
    let mut recorder = Recorder::new(machine);
    for n in 0..7 {
        let young = Did {
            age_s: 15 * n,
            ..writing(n)
        };
        recorder.sample(|machine| machine.did(51, young));
    }
    let text = recorder.replay();
    assert!(
        about(&text, "0:51/strict_limit")
            .last()
            .unwrap()
            .ends_with("the mount or the machine is young"),
        "{text}"
    );
    // Made anew: what was learned about the old instance is gone, and with it the limit.
    recorder.sample(|machine| {
        machine.unmount(51);
        machine.mount(51, "nas2:/b", "/b");
        machine.did(51, writing(0));
    });
    let text = recorder.replay();
    assert!(
        about(&text, "0:51/max_ratio_fine")
            .last()
            .unwrap()
            .contains("0 of 5 intervals"),
        "{text}"
    );
}

#[test]
fn a_faster_server_gets_a_larger_limit_but_not_at_once() {
    let mut machine = Machine::new("[nfstuned]\napply=bdi\n");
    machine.mount(51, "nas1:/a", "/a");
    let mut recorder = Recorder::new(machine);
    let mut did = writing(0);
    for n in 0..30 {
        recorder.sample(|machine| machine.did(51, did));
        did.age_s += 15;
        did.written_bytes += 15 * if n < 6 { 11_000_000 } else { 55_000_000 };
        did.writes = (did.writes.0 + 165, did.writes.1 + 60_000);
    }
    let text = recorder.replay();
    let written: Vec<String> = about(&text, "0:51/max_ratio_fine")
        .into_iter()
        .filter(|line| line.contains(" -> "))
        .collect();
    // A quarter of the intervals must still be slower for the lower limit to hold.
    assert_eq!(written.len(), 2, "{text}");
    assert!(
        written[1].contains("39062 -> 170742: the server takes 55.0 MB/s"),
        "{written:?}"
    );
}

/// Field case 30: 256 GiB, ratios 30 and 10, a server of 500 MB/s.
#[test]
fn a_host_with_much_memory_is_told_how_long_it_would_flush() {
    let mut machine = Machine::new("[nfstuned]\ndrain-target=5\n");
    machine.mount(51, "nas1:/a", "/a");
    machine.memory(268_435_456);
    // 76.8 and 25.6 GiB.
    machine.vmstat(20_132_659, 6_710_886);
    machine.put("proc/sys/vm/dirty_ratio", "30\n");
    machine.learned("nas1:/a", 500e6);
    let before = machine.knobs();
    let status = nfstune(&["--root", machine.path().to_str().unwrap(), "status"]);
    assert!(
        status.contains("flushed from 26214 MiB, writers held at 78643 MiB"),
        "{status}"
    );
    assert!(
        status.contains("that is 55 s and 165 s of flushing at 500.0 MB/s"),
        "{status}"
    );
    assert!(
        status.contains("vm.dirty 30%, 2500000000B is wanted: the server takes 500.0 MB/s, 5 s of it"),
        "{status}"
    );
    assert!(
        status.contains("vm.dirty_background 10%, 1250000000B is wanted"),
        "{status}"
    );
    assert_eq!(machine.knobs(), before);
}

/// 10 Gbit/s and 4 ms: reading shows the path, and `auto` follows it, in steps, when the mount is idle.
#[test]
fn auto_follows_the_path() {
    let mut machine = Machine::new("[nfsrahead]\nnfs4=auto\n[nfstuned]\napply=readahead\n");
    machine.memory(64 << 20);
    machine.mount(51, "nas1:/a", "/a");
    let mut recorder = Recorder::new(machine);
    let mut did = Did {
        age_s: 7200,
        ..Did::default()
    };
    for n in 0..60u64 {
        recorder.sample(|machine| machine.did(51, did));
        did.age_s += 15;
        did.getattrs = (did.getattrs.0 + 20, did.getattrs.1 + 20 * 4);
        // Ten intervals of reading, then idle ones.
        if n % 20 < 10 {
            did.read_bytes += 15 * 400 * MIB;
            did.reads = (did.reads.0 + 15 * 400, did.reads.1 + 15 * 4_000);
        }
    }
    let text = recorder.replay();
    let written: Vec<String> = about(&text, "0:51/read_ahead_kb")
        .into_iter()
        .filter(|line| line.contains(" -> "))
        .collect();
    assert!(
        written[0].starts_with("0 s  0:51/read_ahead_kb: 128 -> 4096: /etc/nfs.conf:2: nfs4=auto"),
        "{text}"
    );
    assert_eq!(written.len(), 2, "{text}");
    assert!(written[1].contains("4096 -> 16384"), "{written:?}");
    let held: Vec<String> = about(&text, "0:51/read_ahead_kb")
        .into_iter()
        .filter(|line| line.contains("not written"))
        .collect();
    assert!(
        held.iter().any(|line| line.ends_with("the mount is in use"))
            || held.iter().any(|line| line.ends_with("too recent")),
        "{text}"
    );
}

/// Three ways that were slow for another reason each; nothing else is said of any, though sockets cannot be asked afterwards.
#[test]
fn what_was_recorded_is_told_apart() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nconnect/recorded");
    for (name, expected) in [
        ("limit", &["transport: nconnect 1 -> 4"][..]),
        (
            "server",
            &["server: the server is slow, not the way to it: more connections will not help"],
        ),
        (
            "loss",
            &[
                "loss-elsewhere: packets are lost, but veth-client dropped none",
                "lossy-path: the way to the server loses packets: fix the network; more connections would hide it",
            ],
        ),
    ] {
        let record = tempfile::tempdir().unwrap();
        let archive = data.join(name).with_extension("tar.xz");
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(record.path()).arg("-xJf").arg(archive);
        assert!(tar.status().unwrap().success());
        let text = nfstune(&["replay", record.path().to_str().unwrap()]);
        let advice = text
            .lines()
            .filter_map(|line| line.split_once("10.9.0.2,vers=4.2,proto=tcp: "));
        let advice: Vec<&str> = advice.map(|(_, advice)| advice).collect();
        assert_eq!(advice, expected, "{name}: {text}");
    }
}

#[test]
fn an_archive_that_leads_out_of_its_folder_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("x.tar");
    std::fs::create_dir_all(dir.path().join("00000000000000000001/proc")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("00000000000000000001/proc/vmstat")).unwrap();
    let status = Command::new("tar")
        .arg("-C")
        .arg(dir.path())
        .arg("-cf")
        .arg(&archive)
        .arg("00000000000000000001")
        .status();
    assert!(status.unwrap().success());
    let output = Command::new(env!("CARGO_BIN_EXE_nfstune"))
        .arg("replay")
        .arg(&archive)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("holds more than files of samples"),
        "{output:?}"
    );
    let output = Command::new(env!("CARGO_BIN_EXE_nfstune"))
        .arg("replay")
        .arg(Path::new("/nonexistent"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
}
