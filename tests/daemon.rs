//! nfstuned below a root directory of its own: what it writes, what it leaves, and what it gives back.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;
#[path = "common/machine.rs"]
mod machine;

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use machine::Machine;

struct Daemon<'a> {
    machine: &'a Machine,
    child: Child,
}

/// A step of the daemon takes milliseconds; a loaded machine is given time.
const PATIENCE: Duration = Duration::from_secs(20);

impl<'a> Daemon<'a> {
    fn start(machine: &'a Machine) -> Daemon<'a> {
        Daemon::start_as(machine, command(env!("CARGO_BIN_EXE_nfstuned"), machine))
    }

    /// Where these folders cannot be written to.
    fn start_read_only(machine: &'a Machine, folders: &[&str]) -> Daemon<'a> {
        let script = "for f in $1; do mount --bind $f $f; mount -o remount,bind,ro $f; done; shift; exec \"$@\"";
        let paths: Vec<String> = folders.iter().map(|f| machine.at(f).display().to_string()).collect();
        let mut command = common::namespace::shell(script);
        command
            .arg(paths.join(" "))
            .arg(env!("CARGO_BIN_EXE_nfstuned"))
            .arg("--root")
            .arg(machine.path())
            .stdin(Stdio::null());
        Daemon::start_as(machine, command)
    }

    fn start_as(machine: &'a Machine, mut command: Command) -> Daemon<'a> {
        // What a killed one has left says nothing about this one.
        let _ = fs::remove_file(machine.at("run/nfstuned/status.json"));
        // As under systemd, so that each line says how much it matters.
        let child = command
            .arg("--debug")
            .env("JOURNAL_STREAM", "0:0")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let daemon = Daemon { machine, child };
        daemon.until("it says what it thinks", || {
            machine.at("run/nfstuned/status.json").exists()
        });
        daemon
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "waited for: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status();
        assert!(status.unwrap().success());
    }

    /// A whole cycle with what is there now.
    fn look(&self) {
        let output = nfstune(self.machine, &["apply"]);
        assert!(output.status.success(), "{output:?}");
    }

    /// Exit code and messages.
    fn end(&mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (status.code(), text)
    }

    fn stop(&mut self) -> String {
        self.signal("TERM");
        let (code, text) = self.end();
        assert_eq!(code, Some(0), "{text}");
        text
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(program: &str, machine: &Machine) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .arg("--root")
        .arg(machine.path())
        .stdin(Stdio::null());
    command
}

fn nfstune(machine: &Machine, arguments: &[&str]) -> Output {
    command(env!("CARGO_BIN_EXE_nfstune"), machine)
        .args(arguments)
        .output()
        .unwrap()
}

fn printed(output: &Output) -> String {
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn two_mounts(conf: &str) -> Machine {
    let mut machine = Machine::new(conf);
    machine.mount(51, "nas1:/a", "/a");
    machine.mount(52, "nas1:/b", "/b");
    machine
}

#[test]
fn it_observes_by_default() {
    let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfstuned]\nsettle=0\n");
    machine.learned("nas1:/a", 11e6);
    let before = machine.knobs();
    let mut daemon = Daemon::start(&machine);
    daemon.look();
    let status = printed(&nfstune(&machine, &["status"]));
    assert!(
        status.contains("read_ahead_kb 128, 4096 is wanted: /etc/nfs.conf:2: nfs4=4096"),
        "{status}"
    );
    assert!(
        status.contains("not written: apply does not name readahead"),
        "{status}"
    );
    assert!(
        status.contains("the server takes 11.0 MB/s, 2 s of it, less for a new device: 9.0 MiB\n      not written: apply does not name bdi"),
        "{status}"
    );
    assert_eq!(machine.knobs(), before);
    daemon.stop();
    assert_eq!(machine.knobs(), before);
    assert!(!machine.at("run/nfstuned/state").exists());
    assert!(!machine.at("run/nfstuned/status.json").exists());
}

#[test]
fn readahead_is_set_kept_handed_off_and_given_back() {
    let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfsrahead \"/b\"]\nnfs4=8192\n[nfstuned]\napply=readahead\n");
    let mut daemon = Daemon::start(&machine);
    assert_eq!(
        (machine.knob(51, "read_ahead_kb"), machine.knob(52, "read_ahead_kb")),
        ("4096".into(), "8192".into())
    );
    assert_eq!(machine.get("sys/class/bdi/8:0/read_ahead_kb"), "128");

    // An admin's value stays, over any number of looks and a new configuration.
    machine.set(51, "read_ahead_kb", "16384");
    daemon.look();
    machine.put("etc/nfs.conf", "[nfsrahead]\nnfs4=2048\n[nfstuned]\napply=readahead\n");
    daemon.signal("HUP");
    daemon.until("the new value", || machine.knob(52, "read_ahead_kb") == "2048");
    assert_eq!(machine.knob(51, "read_ahead_kb"), "16384");
    let why = printed(&nfstune(&machine, &["explain", "/a"]));
    assert!(
        why.contains("changed by somebody else from 4096 to 16384; nfstune release takes it back"),
        "{why}"
    );

    // Released, it is managed again, and what goes back in the end is the admin's value.
    printed(&nfstune(&machine, &["release", "0:51/read_ahead_kb"]));
    daemon.until("the released knob", || machine.knob(51, "read_ahead_kb") == "2048");
    let log = daemon.stop();
    assert_eq!(
        (machine.knob(51, "read_ahead_kb"), machine.knob(52, "read_ahead_kb")),
        ("16384".into(), "128".into())
    );
    assert_eq!(log.matches("left to them until").count(), 1, "{log}");
}

#[test]
fn the_same_value_written_by_somebody_else_is_theirs() {
    let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead\n");
    let mut daemon = Daemon::start(&machine);
    daemon.look();
    machine.set(51, "read_ahead_kb", "4096");
    daemon.until("it noticed", || {
        machine.get("run/nfstuned/state").contains("0:51/read_ahead_kb") && {
            let state = machine.get("run/nfstuned/state");
            let line = state.lines().find(|line| line.starts_with("0:51/")).unwrap().to_owned();
            line.ends_with(" 4096")
        }
    });
    daemon.stop();
    assert_eq!(
        (machine.knob(51, "read_ahead_kb"), machine.knob(52, "read_ahead_kb")),
        ("4096".into(), "128".into())
    );
}

#[test]
fn a_value_from_before_is_left_alone() {
    let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead\n");
    machine.set(51, "read_ahead_kb", "1024");
    let mut daemon = Daemon::start(&machine);
    assert_eq!(machine.knob(51, "read_ahead_kb"), "1024");
    let status = printed(&nfstune(&machine, &["status"]));
    assert!(
        status.contains("not written: 1024 was set by somebody else"),
        "{status}"
    );
    daemon.stop();
    assert_eq!(machine.knob(51, "read_ahead_kb"), "1024");
}

/// Field case 44: device numbers are taken again.
#[test]
fn nothing_is_remembered_for_the_next_owner_of_a_number() {
    let mut machine = Machine::new("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead\n");
    machine.mount(52, "nas1:/a", "/a");
    {
        let daemon = Daemon::start(&machine);
        machine.set(52, "read_ahead_kb", "16384");
        daemon.look();
        assert_eq!(machine.knob(52, "read_ahead_kb"), "16384");
        daemon.signal("KILL");
    }
    machine.unmount(52);
    machine.mount(52, "nas2:/b", "/b");
    machine.mount(53, "nas1:/a", "/a");
    let mut daemon = Daemon::start(&machine);
    daemon.look();
    assert_eq!(
        (machine.knob(52, "read_ahead_kb"), machine.knob(53, "read_ahead_kb")),
        ("4096".into(), "4096".into())
    );
    daemon.stop();
    assert_eq!(
        (machine.knob(52, "read_ahead_kb"), machine.knob(53, "read_ahead_kb")),
        ("128".into(), "128".into())
    );
}

/// Field case 17.
#[test]
fn mounts_of_pods_are_found_unless_that_is_switched_off() {
    for (namespaces, expected) in [("", "4096"), ("namespaces=no\n", "128")] {
        let machine = Machine::new(&format!(
            "[nfsrahead]\nnfs4=4096\n{namespaces}[nfsrahead \"/data\"]\nnfs4=64\n[nfstuned]\napply=readahead\n"
        ));
        machine.device(91);
        machine.device(92);
        let pod = "700 600 0:91 / /data rw,relatime - nfs4 10.96.0.12:/pvc-1 rw,vers=4.1,rsize=1048576,proto=tcp,addr=10.96.0.12\n";
        machine.put("proc/4242/mountinfo", pod);
        let mut daemon = Daemon::start(&machine);
        daemon.look();
        assert_eq!(machine.knob(91, "read_ahead_kb"), expected);
        assert_eq!(machine.knob(92, "read_ahead_kb"), "128");
        let log = daemon.stop();
        assert!(!log.contains("ERROR"), "{log}");
        assert_eq!(machine.knob(91, "read_ahead_kb"), "128");
    }
}

#[test]
fn what_is_killed_is_given_back_by_nfstune_or_by_the_next_daemon() {
    let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead, bdi, vm\nsettle=0\n");
    machine.learned("nas1:/a", 11e6);
    let before = machine.knobs();
    for by_next in [false, true] {
        let mut daemon = Daemon::start(&machine);
        assert_eq!(machine.knob(51, "strict_limit"), "1");
        assert_eq!(machine.get("proc/sys/vm/dirty_bytes"), (64 << 20).to_string());
        assert_eq!(machine.get("proc/sys/vm/dirty_ratio"), "0");
        // Somebody else's value is not given back.
        machine.set(52, "read_ahead_kb", "777");
        daemon.signal("KILL");
        daemon.end();
        fs::remove_file(machine.at("run/nfstuned/status.json")).unwrap();
        if by_next {
            machine.put("etc/nfs.conf", "");
            Daemon::start(&machine).stop();
        } else {
            let dry = printed(&nfstune(&machine, &["restore", "--dry-run"]));
            assert!(dry.contains("0:51/strict_limit: 1 -> 0\n"), "{dry}");
            let text = printed(&nfstune(&machine, &["restore"]));
            assert!(text.contains("vm.dirty: back to 20%\n"), "{text}");
            assert!(
                text.contains("0:52/read_ahead_kb: somebody else's value stays\n"),
                "{text}"
            );
            assert_eq!(printed(&nfstune(&machine, &["restore"])), "");
        }
        assert_eq!(machine.knob(52, "read_ahead_kb"), "777");
        machine.set(52, "read_ahead_kb", "128");
        assert_eq!(machine.knobs(), before);
        assert!(!machine.at("run/nfstuned/state").exists());
    }
}

#[test]
fn a_bad_configuration_is_not_taken_over() {
    let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead\n");
    let mut daemon = Daemon::start(&machine);
    machine.put(
        "etc/nfs.conf",
        "[nfsrahead]\nnfs4=2048\n[nfstuned]\napply=readahead, everything\n",
    );
    daemon.signal("HUP");
    std::thread::sleep(Duration::from_millis(300));
    daemon.look();
    assert_eq!(machine.knob(51, "read_ahead_kb"), "4096");
    let log = daemon.stop();
    assert!(log.contains("/etc/nfs.conf:4: "), "{log}");
    assert!(log.contains("everything is none of readahead, bdi and vm"), "{log}");
}

#[test]
fn a_new_program_takes_over_in_place() {
    let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead, bdi, vm\nsettle=0\n");
    machine.learned("nas1:/a", 11e6);
    let before = machine.knobs();
    let mut daemon = Daemon::start(&machine);
    let applied = machine.knobs();
    fs::remove_file(machine.at("run/nfstuned/status.json")).unwrap();
    daemon.signal("USR2");
    daemon.until("the new program", || machine.at("run/nfstuned/status.json").exists());
    assert_eq!(machine.knobs(), applied);
    daemon.stop();
    assert_eq!(machine.knobs(), before);
}

#[test]
fn a_second_daemon_and_verbs_that_write_keep_away() {
    let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead\n");
    let mut daemon = Daemon::start(&machine);
    let second = command(env!("CARGO_BIN_EXE_nfstuned"), &machine).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("another nfstuned runs"));
    let restore = nfstune(&machine, &["restore"]);
    assert_eq!(restore.status.code(), Some(1));
    assert_eq!(machine.knob(51, "read_ahead_kb"), "4096");
    daemon.stop();
    let release = nfstune(&machine, &["release", "0:51/read_ahead_kb"]);
    assert_eq!(release.status.code(), Some(1));
    assert_eq!(nfstune(&machine, &["release", "0:51/x"]).status.code(), Some(2));
}

#[test]
fn the_knobs_of_a_container_stay() {
    let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead, bdi, vm\nsettle=0\n");
    machine.put("run/systemd/container", "docker\n");
    machine.learned("nas1:/a", 11e6);
    let before = machine.knobs();
    let mut daemon = Daemon::start(&machine);
    daemon.look();
    let log = daemon.stop();
    assert_eq!(machine.knobs(), before);
    assert_eq!(log.matches("this is a container: it is watched").count(), 1, "{log}");
}

/// Messages for people that say this.
fn said<'a>(log: &'a str, what: &str) -> Vec<&'a str> {
    let is_debug = |line: &str| line.starts_with("<7>");
    log.lines()
        .filter(|line| !is_debug(line) && line.contains(what))
        .collect()
}

/// One line for what is read-only and not one for each mount or interval; what can be written is written.
#[test]
fn what_is_read_only_is_said_once() {
    if let Some(reason) = common::namespace::missing() {
        common::skip(reason);
        return;
    }
    for (folders, bdi, vm) in [
        (&["sys"][..], 1, 0),
        (&["proc/sys"], 0, 1),
        (&["sys", "proc/sys"], 1, 1),
    ] {
        let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead, bdi, vm\nsettle=0\n");
        for minor in [51, 52] {
            // Where devices have no limits, the machine's are asked for.
            for name in ["max_ratio_fine", "min_ratio_fine", "strict_limit"] {
                fs::remove_file(machine.at(&format!("sys/class/bdi/0:{minor}/{name}"))).unwrap();
            }
        }
        machine.learned("nas1:/a", 100e6);
        let before = machine.knobs();
        let mut daemon = Daemon::start_read_only(&machine, folders);
        for _ in 0..5 {
            daemon.look();
        }
        let of = |knobs: &[(String, String)], part: &str| -> Vec<(String, String)> {
            knobs
                .iter()
                .filter(|(name, _)| name.starts_with(part))
                .cloned()
                .collect()
        };
        let after = machine.knobs();
        for (part, is_read_only) in [("sys", bdi == 1), ("proc", vm == 1)] {
            assert_eq!(
                of(&before, part) == of(&after, part),
                is_read_only,
                "{folders:?} {part}"
            );
        }
        let log = daemon.stop();
        assert_eq!(machine.knobs(), before, "{log}");
        let lines = said(&log, "Read-only file system");
        let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
        assert_eq!((count("/sys/class/bdi"), count("/proc/sys/vm")), (bdi, vm), "{log}");
    }
}

/// A kernel without a knob, or a container that hides it: what is there is looked at, and no interval complains.
#[test]
fn what_is_not_there_is_passed_over() {
    for gone in [
        "proc/sys/vm",
        "sys/class/bdi/0:51",
        "sys/class/bdi/0:51/read_ahead_kb",
        "sys/class/bdi",
    ] {
        let machine = two_mounts("[nfsrahead]\nnfs4=4096\n[nfstuned]\napply=readahead, bdi, vm\nsettle=0\n");
        machine.learned("nas1:/a", 11e6);
        match machine.at(gone).is_dir() {
            true => fs::remove_dir_all(machine.at(gone)).unwrap(),
            false => fs::remove_file(machine.at(gone)).unwrap(),
        }
        let mut daemon = Daemon::start(&machine);
        for _ in 0..5 {
            daemon.look();
        }
        let has_other = machine.at("sys/class/bdi/0:52/read_ahead_kb").exists();
        assert!(!has_other || machine.knob(52, "read_ahead_kb") == "4096", "{gone}");
        let log = daemon.stop();
        assert!(said(&log, "No such file").len() <= 1, "{gone}: {log}");
    }
}

#[test]
fn a_knob_that_a_file_names_is_its_authors() {
    let machine = two_mounts("[nfstuned]\napply=bdi, vm\nsettle=0\n");
    machine.learned("nas1:/a", 11e6);
    machine.put("etc/sysctl.d/90-nfs.conf", "# ours\nvm.dirty_ratio = 20\n");
    machine.put(
        "etc/udev/rules.d/60-x.rules",
        "SUBSYSTEM==\"bdi\", ACTION==\"add\", ATTR{max_ratio}=\"100\"\n",
    );
    let before = machine.knobs();
    let mut daemon = Daemon::start(&machine);
    assert_eq!(machine.knobs(), before);
    let status = printed(&nfstune(&machine, &["status"]));
    assert!(
        status.contains("sysctl.d sets it (/etc/sysctl.d/90-nfs.conf:2: vm/dirty_ratio = 20)"),
        "{status}"
    );
    assert!(
        status.contains("a udev rule sets it (/etc/udev/rules.d/60-x.rules:1: max_ratio = 100)"),
        "{status}"
    );
    daemon.stop();
}

#[test]
fn an_old_kernel_has_no_limit_for_a_device() {
    let machine = two_mounts("[nfstuned]\napply=bdi, vm\nsettle=0\n");
    for minor in [51, 52] {
        for name in ["max_ratio_fine", "min_ratio_fine", "strict_limit"] {
            fs::remove_file(machine.at(&format!("sys/class/bdi/0:{minor}/{name}"))).unwrap();
        }
    }
    machine.learned("nas1:/a", 100e6);
    let mut daemon = Daemon::start(&machine);
    assert_eq!(machine.get("proc/sys/vm/dirty_bytes"), "200000000");
    assert_eq!(machine.get("proc/sys/vm/dirty_background_bytes"), "100000000");
    daemon.stop();
    assert_eq!(machine.get("proc/sys/vm/dirty_ratio"), "20");
    assert_eq!(machine.get("proc/sys/vm/dirty_background_ratio"), "10");
}

/// An automounter takes all mounts away and brings them back.
#[test]
fn the_machines_limit_outlives_an_unmount_for_a_while() {
    let mut machine = Machine::new("[nfstuned]\napply=vm\ninterval=5\nsettle=0\n");
    machine.mount(51, "nas1:/a", "/a");
    machine.learned("nas1:/a", 100e6);
    let at = machine.path().to_owned();
    let mut daemon = Daemon::start(&machine);
    let limit = || {
        fs::read_to_string(at.join("proc/sys/vm/dirty_bytes"))
            .unwrap()
            .trim()
            .to_owned()
    };
    assert_eq!(limit(), "200000000");
    fs::write(
        at.join("proc/self/mountinfo"),
        "22 1 259:2 / / rw - ext4 /dev/root rw\n",
    )
    .unwrap();
    fs::write(at.join("proc/fs/nfsfs/volumes"), "").unwrap();
    daemon.look();
    assert_eq!(limit(), "200000000");
    fs::write(at.join("proc/uptime"), "87001.00 1.00\n").unwrap();
    daemon.look();
    daemon.until("ten minutes are over", || {
        limit() == "0" || {
            daemon.look();
            false
        }
    });
    daemon.stop();
}

/// What was seen of a client is not lost with the daemon: ten busy intervals may lie on both sides of an upgrade.
#[test]
fn clients_are_remembered_over_a_restart() {
    let mut machine = Machine::new("[nfstuned]\ninterval=5\n");
    machine.mount(51, "nas1:/a", "/a");
    let at = machine.path().to_owned();
    let current = || fs::read_to_string(at.join("run/nfstuned/advice.json")).unwrap_or_default();
    let mut daemon = Daemon::start(&machine);
    daemon.until("it has looked at the client", || current().contains("\"nas1\""));
    // The tables of the mount in 15 s of its time, with four requests on the wire.
    let stats = fs::read_to_string(at.join("proc/self/mountstats")).unwrap();
    let busy = stats.replace("age:\t7200", "age:\t7215").replace(
        "        READ: 0 0 0 0 0 0 0 0 0",
        "        READ: 900 900 0 0 0 0 60000 60000 0",
    );
    assert_ne!(stats, busy);
    fs::write(at.join("proc/self/mountstats"), busy).unwrap();
    fs::write(at.join("proc/uptime"), "86415.00 1.00\n").unwrap();
    let is_seen = |text: &str| text.contains("\"busy_intervals\": 1") && text.contains("\"watched_seconds\": 15");
    daemon.until("it has seen an interval", || is_seen(&current()));
    daemon.stop();
    assert_eq!(current(), "");
    assert!(at.join("var/lib/nfstuned/history.json").exists());
    let mut daemon = Daemon::start(&machine);
    daemon.until("it goes on", || is_seen(&current()));
    daemon.stop();
}

/// The way to a server, by what is kept of it, and by the link where that is known: used at once by the daemon that comes after.
#[test]
fn the_path_is_remembered_over_a_restart() {
    let mut machine = Machine::new("[nfsrahead]\nnfs4=auto\n[nfstuned]\ninterval=5\n");
    machine.memory(64 << 20);
    machine.mount(51, "nas1:/a", "/a");
    let at = machine.path().to_owned();
    let status = || fs::read_to_string(at.join("run/nfstuned/status.json")).unwrap_or_default();
    let mut daemon = Daemon::start(&machine);
    daemon.until("it has looked", || status().contains("\"0:51\""));
    assert!(status().contains("\"rtt_seconds\":null"), "{}", status());
    // 15 s of reading and some small operations, 4 ms each, over a path of which nothing says how wide it is.
    let stats = fs::read_to_string(at.join("proc/self/mountstats")).unwrap();
    let busy = [
        ("age:\t7200", "age:\t7215"),
        ("bytes:\t0 0 0 0 0 0 0 0", "bytes:\t0 0 0 0 6291456000 0 0 0"),
        ("READ: 0 0 0 0 0 0 0 0 0", "READ: 6000 6000 0 0 0 0 60000 60000 0"),
        ("GETATTR: 0 0 0 0 0 0 0 0 0", "GETATTR: 20 20 0 0 0 0 80 80 0"),
    ]
    .iter()
    .fold(stats, |text, (idle, busy)| {
        assert!(text.contains(idle), "{text}");
        text.replace(idle, busy)
    });
    machine.put("proc/self/mountstats", &busy);
    machine.put("proc/uptime", "86415.00 1.00\n");
    let is_known =
        |text: &str| text.contains("\"rtt_seconds\":0.004") && text.contains("round trip 4.00 ms, the path's");
    daemon.until("it has measured", || is_known(&status()));
    daemon.stop();
    let kept = fs::read_to_string(at.join("var/lib/nfstuned/learned.json")).unwrap();
    assert!(
        kept.contains("\"paths\"") && kept.contains("\"rtt_seconds\": 0.004"),
        "{kept}"
    );
    let mut daemon = Daemon::start(&machine);
    daemon.until("it goes on with it", || is_known(&status()));
    daemon.stop();
    // The route to the server, and a link of 10 Gbit/s.
    let route = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n\
        eth0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\n";
    machine.put("proc/net/route", route);
    machine.put("sys/class/net/eth0/speed", "10000\n");
    let mut daemon = Daemon::start(&machine);
    daemon.until("it knows the link", || {
        status().contains("round trip 4.00 ms, the link's 1250 MB/s")
    });
    daemon.stop();
    // What was kept by another version, or makes no sense, is passed over.
    for bad in [
        kept.replace("\"schema_version\": 1", "\"schema_version\": 2"),
        kept.replace("0.004", "-4"),
    ] {
        machine.put("sys/class/net/eth0/speed", "-1\n");
        machine.put("var/lib/nfstuned/learned.json", &bad);
        let mut daemon = Daemon::start(&machine);
        daemon.until("it has looked", || status().contains("\"0:51\""));
        assert!(status().contains("\"rtt_seconds\":null"), "{}", status());
        daemon.stop();
    }
}
