//! The 18 defects that were found in nfs-utils' nfsrahead (2.6.2, or only in later versions), one test each: ours does not
//! have it. Where 2.6.2 has it and it is cheap to show, it is shown, so that the test is about something real.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::peer::{self, Answer};
use common::{namespace, run, skip, tree};

/// A root directory with one NFS mount, 0:51 on /srv/a, version 4.
struct Fake {
    root: tempfile::TempDir,
}

const DEVICE: &str = "0:51";
const MOUNT: &str = "30 27 0:51 / /srv/a rw - nfs4 filer1:/a rw,vers=4.2,rsize=1048576,addr=192.0.2.10\n";
const OTHER: &str = "27 1 259:2 / / rw,relatime shared:1 - ext4 /dev/root rw\n";

impl Fake {
    fn new(conf: impl AsRef<[u8]>) -> Fake {
        let fake = Fake {
            root: tempfile::tempdir().unwrap(),
        };
        fake.write("etc/nfs.conf", conf);
        fake.mountinfo(&[OTHER, MOUNT]);
        fake.volumes(&[("v4", DEVICE)]);
        fake.bdi(DEVICE);
        fake
    }

    fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        tree::write(self.root.path(), file, text);
    }

    /// In one step, as the kernel's table never shows half a line.
    fn mountinfo(&self, lines: &[&str]) {
        self.write("proc/self/next", lines.concat());
        let folder = self.root.path().join("proc/self");
        fs::rename(folder.join("next"), folder.join("mountinfo")).unwrap();
    }

    fn volumes(&self, devices: &[(&str, &str)]) {
        let lines = devices
            .iter()
            .map(|(version, dev)| format!("{version} c000020a  801 {dev:<12} 0:0                               no \n"));
        let head = "NV SERVER   PORT DEV          FSID                              FSC\n".to_owned();
        self.write("proc/fs/nfsfs/volumes", head + &lines.collect::<String>());
    }

    fn bdi(&self, dev: &str) {
        self.write(&format!("sys/class/bdi/{dev}/read_ahead_kb"), "128\n");
    }

    fn value(&self, dev: &str) -> String {
        let path = self.root.path().join("sys/class/bdi").join(dev).join("read_ahead_kb");
        fs::read_to_string(path).unwrap().trim_end().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = run::nfsrahead();
        command.arg("--root").arg(self.root.path()).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        answer(run::output(&mut self.command(arguments)))
    }

    /// nfs-utils' answer; None, and a skip, where it cannot be asked.
    fn peer(&self, arguments: &[&str]) -> Option<Answer> {
        peer_is_there().then(|| peer::ask(self.root.path(), &[], arguments))
    }

    /// nfs-utils' program, run by a script that has /etc and /proc as here. `$N` is its path.
    fn peer_script(&self, script: &str) -> Option<Answer> {
        if !peer_is_there() {
            return None;
        }
        let take_over = r#"
            mount -t tmpfs t /etc; mount -t tmpfs t /proc
            cp -a "$1/etc/." /etc; cp -a "$1/proc/." /proc; N=$2
            "#;
        let mut command = namespace::shell(&format!("{take_over}{script}"));
        Some(answer(run::output(command.arg(self.root.path()).arg(peer::PROGRAM))))
    }
}

fn answer(output: Output) -> Answer {
    Answer {
        code: run::code(output.status),
        stdout: run::shown(&output.stdout),
        stderr: run::shown(&output.stderr),
    }
}

/// Said once: it is the same half of many tests.
fn peer_is_there() -> bool {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    *IS_THERE.get_or_init(|| {
        let missing = peer::missing();
        if let Some(reason) = &missing {
            skip(&format!("nfs-utils' side of the defects: {reason}"));
        }
        missing.is_none()
    })
}

fn namespace_is_there() -> bool {
    static MISSING: OnceLock<Option<&'static str>> = OnceLock::new();
    let missing = MISSING.get_or_init(namespace::missing);
    if let Some(reason) = missing {
        skip(reason);
    }
    missing.is_none()
}

/// A program that is killed with the test that fails.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Background {
    fn start(command: &mut Command) -> Background {
        Background(command.spawn().unwrap())
    }

    fn exit_code(&mut self, limit: Duration) -> Option<i32> {
        let started = Instant::now();
        while started.elapsed() < limit {
            if let Some(status) = self.0.try_wait().unwrap() {
                return Some(run::code(status));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }
}

/// Until it is true, at most `limit`; how long it took.
fn until(limit: Duration, is_true: impl Fn() -> bool) -> Option<Duration> {
    let started = Instant::now();
    while started.elapsed() < limit {
        if is_true() {
            return Some(started.elapsed());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

/// The machine's own /proc with its mount table, but a list of NFS superblocks, devices and a configuration made up here.
/// `$N` is the program of the test or nfs-utils' one.
fn live(conf: &str, program: &OsStr, script: &str) -> Command {
    // Every mount of the mount tree, doubled again and again: 8192 of them.
    let many = r#"
        mkdir -p /mnt/many; mount -t tmpfs t /mnt/many
        for i in $(seq 13); do mkdir /mnt/many/$i; mount --rbind /mnt/many /mnt/many/$i; done
        "#;
    let take_over = r#"
        N=$2
        mount -t tmpfs t /etc; printf "$1" >/etc/nfs.conf
        mount -t tmpfs t /sys; mkdir -p /sys/class/bdi/0:999999; echo 128 >/sys/class/bdi/0:999999/read_ahead_kb
        mount -t tmpfs t /proc/fs; mkdir /proc/fs/nfsfs
        mount -t tmpfs t /mnt
        "#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--", "/bin/bash", "-ec"]);
    command.arg(format!("{take_over}{many}{script}"));
    command.arg("bash").arg(conf).arg(program);
    command
}

/// For [`live`]: 0:999999 is a superblock of NFS.
const LISTED: &str = r#"
        printf 'NV SERVER PORT DEV FSID FSC\nv4 7f000001 801 0:999999 0:0 no\n' >/proc/fs/nfsfs/volumes"#;

fn ours() -> &'static OsStr {
    OsStr::new(env!("CARGO_BIN_EXE_nfsrahead"))
}

/// 1: a device that never enters mountinfo (FUSE in another namespace, a level of the pseudo root) held udev for 10 s.
#[test]
fn defect_01_a_device_that_is_never_mounted_is_not_waited_for() {
    if !namespace_is_there() {
        return;
    }
    let conf = "[nfsrahead]\\nwait=10\\nnfs4=8192\\n[nfsrahead \"/\"]\\nnfs4=4096\\n";
    let script = "SEQNUM=1 $N -F --write 0:999999; cat /sys/class/bdi/0:999999/read_ahead_kb";
    let started = Instant::now();
    let ours = answer(run::output(&mut live(conf, ours(), script)));
    assert!(
        started.elapsed() < Duration::from_secs(8),
        "waited for a device that is not known to be NFS"
    );
    assert_eq!((ours.code, &*ours.stdout, &*ours.stderr), (0, "128\n", ""));
}

/// 2: each mount event made it read the whole table again, up to a full core for 10 s; 2.6.2 reads it 110 times at once.
#[test]
fn defect_02_a_storm_of_mounts_costs_little() {
    if !namespace_is_there() {
        return;
    }
    let conf = "[nfsrahead]\\nwait=1\\n[nfsrahead \"/never\"]\\nnfs4=4096\\n";
    // Superblock 0:999999 is NFS, and its mount never shows up while others come and go.
    let script = LISTED.to_owned()
        + r#"
        churn() { for i in $(seq 1000); do mount -t tmpfs t $1; umount $1; done; }
        mkdir /mnt/1 /mnt/2; churn /mnt/1 & one=$!; churn /mnt/2 & two=$!
        TIMEFORMAT='%3U %3S'; time $N -F 0:999999 || echo "rc=$?"
        kill $one $two"#;
    // Its exit code, and seconds of CPU.
    let run = |program: &OsStr| {
        let answer = answer(run::output(&mut live(conf, program, &script)));
        assert_eq!(answer.code, 0, "no storm any more: {answer:?}");
        let times = answer.stderr.lines().last().unwrap().to_owned();
        let cpu = times.split(' ').map(|s| s.parse::<f64>().unwrap()).sum::<f64>();
        (answer.stdout, cpu)
    };
    let (said, ours) = run(ours());
    assert_eq!(said, "rc=1\n");
    if peer_is_there() {
        let (said, theirs) = run(OsStr::new(peer::PROGRAM));
        assert_eq!(said, "rc=2\n");
        println!("8192 mounts, storm: {ours:.3} s of CPU in 1 s, nfs-utils {theirs:.3} s");
        assert!(ours < theirs / 6.0, "{ours} s of CPU, nfs-utils {theirs}");
    }
    assert!(ours < 0.5, "{ours} s of CPU in 1 s");
}

/// 3: the watch on the mount table was opened after the first look, and nothing was looked at when the time was up: a mount
/// in between was missed. The order of system calls is the proof.
#[test]
fn defect_03_no_mount_is_missed_between_a_look_and_the_wait() {
    if !namespace_is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("strace");
    let conf = "[nfsrahead]\\nwait=1\\n[nfsrahead \"/never\"]\\nnfs4=4096\\n";
    let script = format!(
        "{LISTED}\nstrace -o {} $N -F 0:999999 || test -s {0}",
        log.to_str().unwrap()
    );
    if !run::output(&mut live(conf, ours(), &script)).status.success() {
        return skip("strace is missing or may not trace");
    }
    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let is_poll = |line: &str| line.starts_with("poll(") || line.starts_with("ppoll(");
    // 0x1ca: listmount, where strace does not know it yet.
    let is_look = |line: &str| {
        ["/mountinfo\"", "listmount(", "_0x1ca("]
            .iter()
            .any(|look| line.contains(look))
    };
    let watch = lines.iter().position(|line| line.contains("/mountinfo\"")).unwrap();
    let first_look = lines.iter().position(|line| is_look(line)).unwrap();
    let polls: Vec<usize> = (0..lines.len()).filter(|i| is_poll(lines[*i])).collect();
    let (first_poll, last_poll) = (polls[0], polls[polls.len() - 1]);
    let descriptor = lines[watch].rsplit("= ").next().unwrap();
    for poll in &polls {
        assert!(lines[*poll].contains(&format!("fd={descriptor},")), "{}", lines[*poll]);
    }
    let closed = format!("close({descriptor})");
    assert!(
        !lines[watch..last_poll].iter().any(|line| line.starts_with(&closed)),
        "the watch was for the look"
    );
    assert!(first_look >= watch, "looked before the watch was there:\n{log}");
    assert!(
        lines[watch + 1..first_poll].iter().any(|line| is_look(line)),
        "no look before the wait:\n{log}"
    );
    assert!(
        lines[last_poll..].iter().any(|line| is_look(line)),
        "no look when the time was up:\n{log}"
    );
}

/// 3, with a clock: the line comes 1.8 s after the event, another one before it. The value is there at once after that; the
/// value of the version was there from the start.
#[test]
fn defect_03_a_late_mount_gets_its_value() {
    let late = || {
        let fake = Fake::new("[nfsrahead]\nwait=10\nnfs4=512\n[nfsrahead \"/srv/a\"]\nnfs4=8192\n");
        fake.mountinfo(&[OTHER]);
        let mut helper = Background::start(fake.command(&["-F", "--write", DEVICE]).env("SEQNUM", "1"));
        std::thread::sleep(Duration::from_millis(350));
        fake.mountinfo(&[OTHER, "31 27 0:99 / /tmp rw - tmpfs tmpfs rw\n"]);
        std::thread::sleep(Duration::from_millis(1450));
        assert_eq!(fake.value(DEVICE), "512", "the value of the version until then");
        fake.mountinfo(&[OTHER, "31 27 0:99 / /tmp rw - tmpfs tmpfs rw\n", MOUNT]);
        let took = until(Duration::from_secs(6), || fake.value(DEVICE) == "8192");
        assert_eq!(helper.exit_code(Duration::from_secs(6)), Some(0));
        took.unwrap()
    };
    // A busy machine may be late once or twice.
    let took = (0..3).map(|_| late()).find(|took| *took < Duration::from_millis(400));
    assert!(took.is_some(), "three times more than 400 ms after the line");
}

/// 3, the other ends of a wait: the device goes away, or the time is up.
#[test]
fn defect_03_a_wait_ends_with_the_device_or_with_its_time() {
    let fake = Fake::new("[nfsrahead]\nwait=10\n[nfsrahead \"/srv/a\"]\nnfs4=8192\n");
    fake.mountinfo(&[OTHER]);
    let mut helper = Background::start(&mut fake.command(&["-F", "--write", DEVICE]));
    assert_eq!(helper.exit_code(Duration::from_millis(300)), None, "it waits");
    fs::remove_dir_all(fake.root.path().join("sys/class/bdi").join(DEVICE)).unwrap();
    assert_eq!(
        helper.exit_code(Duration::from_secs(5)),
        Some(0),
        "the device is gone, the wait is not over"
    );

    let fake = Fake::new("[nfsrahead]\nwait=1\n[nfsrahead \"/srv/a\"]\nnfs4=8192\n");
    fake.mountinfo(&[OTHER]);
    let started = Instant::now();
    let ours = fake.run(&["-F", "--write", DEVICE]);
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!((ours.code, fake.value(DEVICE)), (0, "128".to_owned()));
    assert_eq!(ours.stderr.lines().count(), 1, "said once: {}", ours.stderr);
}

/// 3: while nfstuned applies readahead, it will see the mount; nobody has to wait.
#[test]
fn defect_03_no_wait_while_the_daemon_will_see_the_mount() {
    let fake = Fake::new("[nfsrahead]\nwait=10\nnfs4=512\n[nfsrahead \"/srv/a\"]\nnfs4=8192\n");
    fake.mountinfo(&[OTHER]);
    fake.write("run/nfstuned/lock", "");
    let lock = fs::File::options()
        .write(true)
        .open(fake.root.path().join("run/nfstuned/lock"))
        .unwrap();
    let byte = libc::flock {
        l_type: libc::c_short::try_from(libc::F_WRLCK).unwrap(),
        l_whence: libc::c_short::try_from(libc::SEEK_SET).unwrap(),
        l_start: 1,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: F_OFD_SETLK reads the flock that it is given, and the descriptor is open.
    let r = unsafe { libc::fcntl(lock.as_raw_fd(), libc::F_OFD_SETLK, &raw const byte) };
    assert_eq!(r, 0);
    let started = Instant::now();
    let ours = fake.run(&["-F", "--write", DEVICE]);
    assert!(started.elapsed() < Duration::from_secs(8), "waited");
    assert_eq!(
        (ours.code, &*ours.stderr, fake.value(DEVICE)),
        (0, "", "512".to_owned())
    );
}

/// 4: what failed was not said, what was no event was logged; a process started for every disk.
#[test]
fn defect_04_misses_are_said_and_disks_are_not() {
    let fake = Fake::new("[nfsrahead]\nwait=0\nnfs4=512\n[nfsrahead \"/srv/a\"]\nnfs4=8192\n");
    assert_eq!(fake.run(&["-F", DEVICE]).stderr, "", "a success");
    fake.mountinfo(&[OTHER]);
    let miss = fake.run(&["-F", DEVICE]).stderr;
    assert_eq!(miss.lines().count(), 1, "{miss}");
    assert!(
        miss.starts_with("nfsrahead: 0:51: ") && !miss.contains("\n\n"),
        "{miss}"
    );
    assert_eq!(fake.run(&["-F", "254:0"]).stderr, "", "a disk");
    if let Some(theirs) = fake.peer(&["-F", DEVICE]) {
        assert_eq!((theirs.code, &*theirs.stderr), (2, ""));
    }
    let rule = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("udev/99-nfs.rules.in")).unwrap();
    let rules: Vec<&str> = rule.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!rules.is_empty());
    assert!(rules.iter().all(|line| line.contains(r#"KERNEL=="0:*""#)), "{rule}");
}

/// 4: a test of disks raises thousands of events.
#[test]
fn defect_04_five_thousand_disks_pass_in_seconds() {
    let fake = Fake::new("[nfsrahead]\nnfs=8192\nnfs4=8192\n");
    let started = Instant::now();
    for _ in 0..5000 {
        let status = fake.command(&["-F", "--write", "8:16"]).status().unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(started.elapsed() < Duration::from_secs(120), "minutes");
    }
}

/// 5: numbers were read as far as they went, so garbage was a device.
#[test]
fn defect_05_garbage_is_no_device() {
    let fake = Fake::new("[nfsrahead]\nnfs4=512\n");
    for dev in ["0:51junk", "0:51-fuseblk", "0: 51", "0:51:9", "0:+51", "0:4294967347"] {
        let ours = fake.run(&["-F", dev]);
        assert_eq!((ours.code, &*ours.stdout, &*ours.stderr), (1, "", ""), "{dev}");
        if let Some(theirs) = fake.peer(&[dev]) {
            assert_eq!((theirs.code, &*theirs.stdout), (0, "512\n"), "{dev}");
        }
    }
    for dev in ["0:", "0:abc", "abc", "1:2:3", ""] {
        let ours = fake.run(&["-F", dev]);
        assert_eq!((ours.code, &*ours.stdout, &*ours.stderr), (1, "", ""), "{dev}");
    }
}

/// 6: bad numbers reached the kernel, without a word.
#[test]
fn defect_06_bad_numbers_are_refused_by_name() {
    for (text, theirs) in [
        ("abc", "0\n"),
        ("0x400", "0\n"),
        ("4294967296", "0\n"),
        ("1M1", "1\n"),
        ("-5", "-5\n"),
        ("99999999999", "1215752191\n"),
        ("12 34", "12\n"),
    ] {
        let fake = Fake::new(format!("[nfsrahead]\ndefault=512\nnfs4={text}\n"));
        let ours = fake.run(&["-F", DEVICE]);
        assert_eq!((ours.code, &*ours.stdout), (0, "512\n"), "{text}");
        let place = format!("nfsrahead: /etc/nfs.conf:3: nfs4={text} is not used: ");
        assert!(ours.stderr.starts_with(&place), "{}", ours.stderr);
        if let Some(peer) = fake.peer(&[DEVICE]) {
            assert_eq!((peer.code, &*peer.stdout, &*peer.stderr), (0, theirs, ""), "{text}");
        }
    }
    let fake = Fake::new("[nfsrahead]\ndefault=-1\n");
    assert_eq!(fake.run(&[DEVICE]).code, 1);
    if let Some(theirs) = fake.peer(&[DEVICE]) {
        assert_eq!((theirs.code, &*theirs.stdout), (0, "-1\n"));
    }
}

/// 7: a file that includes itself crashed it.
#[test]
fn defect_07_an_include_loop_ends() {
    let fake = Fake::new("[nfsrahead]\nnfs4=512\ninclude=/etc/nfs.conf\n");
    let ours = fake.run(&["-F", DEVICE]);
    assert_eq!((ours.code, &*ours.stdout), (0, "512\n"));
    assert!(
        ours.stderr.contains("/etc/nfs.conf:3: includes are nested too deeply"),
        "{}",
        ours.stderr
    );
    if let Some(theirs) = fake.peer(&[DEVICE]) {
        assert_eq!(theirs.code, 128 + libc::SIGSEGV, "{theirs:?}");
    }
}

/// 8: a variable that leads to itself hung it (shown by the case 56-variable-loop, as a hang takes its time).
#[test]
fn defect_08_a_variable_loop_ends() {
    let fake = Fake::new("[environment]\nA=$A\n[nfsrahead]\nnfs4=$A\ndefault=512\n");
    let ours = fake.run(&["-F", DEVICE]);
    assert_eq!((ours.code, &*ours.stdout), (0, "512\n"));
    assert!(
        ours.stderr.contains("/etc/nfs.conf:4: nfs4=$A is not used"),
        "{}",
        ours.stderr
    );
}

/// 9: a section and a section with an argument took each other's tags.
#[test]
fn defect_09_sections_keep_their_tags() {
    let plain = "[nfsrahead]\nnfs4=512\n";
    let sub = "[nfsrahead \"/srv/a\"]\nnfs4=1024\n";
    let other = OTHER.to_owned() + &MOUNT.replace("0:51", "0:52").replace("/srv/a", "/srv/b");
    for conf in [plain.to_owned() + sub, sub.to_owned() + plain] {
        let fake = Fake::new(conf);
        fake.mountinfo(&[&other, MOUNT]);
        fake.volumes(&[("v4", DEVICE), ("v4", "0:52")]);
        fake.bdi("0:52");
        assert_eq!(fake.run(&[DEVICE]).stdout, "1024\n");
        assert_eq!(fake.run(&["0:52"]).stdout, "512\n");
    }
    let fake = Fake::new(plain.to_owned() + sub);
    if let Some(theirs) = fake.peer(&[DEVICE]) {
        assert_eq!(theirs.stdout, "128\n", "the plain section's 512 is lost");
    }
}

/// 10: a broken header opened its section all the same, and a last line without newline was lost.
#[test]
fn defect_10_broken_headers_and_last_lines() {
    let fake = Fake::new("[nfsrahead \"x]\nnfs4=8\n");
    let ours = fake.run(&["-F", DEVICE]);
    assert_eq!((ours.code, &*ours.stdout), (1, ""));
    assert!(ours.stderr.contains("/etc/nfs.conf:1: "), "{}", ours.stderr);
    if let Some(theirs) = fake.peer(&[DEVICE]) {
        assert_eq!(theirs.stdout, "8\n");
    }
    let fake = Fake::new("[nfsrahead]\nnfs4=8");
    let ours = fake.run(&["-F", DEVICE]);
    assert_eq!((ours.code, &*ours.stdout, &*ours.stderr), (0, "8\n", ""));
    if let Some(theirs) = fake.peer(&[DEVICE]) {
        assert_eq!(theirs.stdout, "128\n");
    }
}

/// 11: anyone who may open nfs.conf could hold it by a lock; a FIFO in its place hung it.
#[test]
fn defect_11_neither_a_lock_nor_a_fifo_holds_it() {
    let fake = Fake::new("[nfsrahead]\nnfs4=512\n");
    let conf = fake.root.path().join("etc/nfs.conf");
    let holder = fs::File::open(&conf).unwrap();
    // SAFETY: flock(2) takes no memory, and the descriptor is open.
    assert_eq!(unsafe { libc::flock(holder.as_raw_fd(), libc::LOCK_EX) }, 0);
    let ours = fake.run(&["-F", DEVICE]);
    assert_eq!((ours.code, &*ours.stdout, &*ours.stderr), (0, "512\n", ""));
    drop(holder);
    let locked = r#"exec 9</etc/nfs.conf; flock -x 9; timeout 1 $N -F 0:51 9<&- || echo "rc=$?""#;
    if let Some(theirs) = fake.peer_script(locked) {
        assert_eq!(theirs.stdout, "rc=124\n", "{theirs:?}");
    }

    for fifo in ["etc/nfs.conf", "etc/fstab", "etc/nfs.conf.d/a.conf"] {
        let fake = Fake::new("[nfsrahead]\nnfs4=512\n");
        let path = fake.root.path().join(fifo);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let ours = fake.run(&["-F", DEVICE]);
        let expected = if fifo == "etc/nfs.conf" { (1, "") } else { (0, "512\n") };
        assert_eq!((ours.code, &*ours.stdout), expected, "{fifo}");
    }
    if let Some(theirs) = fake.peer_script("rm /etc/nfs.conf; mkfifo /etc/nfs.conf; timeout 1 $N -F 0:51 || echo rc=$?")
    {
        assert_eq!(theirs.stdout, "rc=124\n", "{theirs:?}");
    }
}

/// 12: whether the value could be printed was not looked at.
#[test]
fn defect_12_a_value_that_cannot_be_printed_is_a_failure() {
    let fake = Fake::new("[nfsrahead]\nnfs4=512\n");
    for output in [">/dev/full", ">&-"] {
        for arguments in ["-F 0:51", "--dry-run", "--help", "--version"] {
            let mut sh = Command::new("/bin/sh");
            sh.arg("-c").arg(format!("\"$0\" --root \"$1\" {arguments} {output}"));
            let ours = answer(run::output(sh.arg(ours()).arg(fake.root.path())));
            assert_eq!(ours.code, 1, "{arguments} {output}");
            assert!(
                ours.stderr.starts_with("nfsrahead: standard output: cannot write: "),
                "{arguments} {output}: {}",
                ours.stderr
            );
        }
        if let Some(theirs) = fake.peer_script(&format!("$N -F 0:51 {output}; echo \"rc=$?\"")) {
            assert!(theirs.stdout.ends_with("rc=0\n"), "{output}: {theirs:?}");
        }
    }
}

/// 13: unknown flags were complained about and the answer given all the same; there was neither help nor version; `debug` in
/// the file had no effect.
#[test]
fn defect_13_flags_mean_something() {
    let fake = Fake::new("[nfsrahead]\ndebug=all\nnfs4=512\n");
    let ours = fake.run(&["-x", DEVICE]);
    assert_eq!((ours.code, &*ours.stdout), (2, ""));
    let help = fake.run(&["--help"]);
    assert_eq!((help.code, &*help.stderr), (0, ""));
    assert!(help.stdout.starts_with("Usage: nfsrahead "));
    let version = fake.run(&["--version"]);
    assert_eq!((version.code, &*version.stderr), (0, ""));
    assert!(version.stdout.starts_with("nfsrahead "));
    assert_eq!(
        fake.run(&["-F", "--write", DEVICE]).stderr.lines().count(),
        1,
        "debug=all in the file"
    );
    if let Some(theirs) = fake.peer(&["-x", DEVICE]) {
        assert_eq!((theirs.code, &*theirs.stdout), (0, "512\n"));
        assert_eq!(fake.peer(&["--help"]).unwrap().code, 1);
    }
}

/// 14: exit codes were what was left of a negative errno.
#[test]
fn defect_14_exit_codes_are_0_1_2() {
    let fake = Fake::new("[nfsrahead]\nnfs4=512\n");
    fake.mountinfo(&[OTHER, &MOUNT.replace("nfs4", "tmpfs")]);
    fake.volumes(&[]);
    let codes = |arguments: &[&str]| fake.run(arguments).code;
    assert_eq!(codes(&[DEVICE]), 1, "another type");
    assert_eq!(codes(&["0:52"]), 1, "not there");
    assert_eq!(codes(&["--write", DEVICE]), 0, "nothing to do");
    assert_eq!(codes(&[]), 2);
    if let Some(theirs) = fake.peer(&[DEVICE]) {
        assert_eq!(theirs.code, 234);
        assert_eq!(fake.peer(&["0:52"]).unwrap().code, 2);
    }
}

/// A log that is this test's. The program sees it as /dev/log.
struct Log {
    socket: UnixDatagram,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Log {
    fn new() -> Log {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        Log {
            socket,
            path,
            _folder: folder,
        }
    }

    /// What has been logged so far.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut buffer = [0; 8192];
        while let Ok(n) = self.socket.recv(&mut buffer) {
            lines.push(run::shown(&buffer[..n]));
        }
        lines
    }

    fn run(&self, program: &OsStr, arguments: &[&OsStr]) -> Answer {
        let script = r#"log=$1; shift; mount -t tmpfs t /dev; ln -s "$log" /dev/log; exec "$@""#;
        answer(run::output(
            namespace::shell(script).arg(&self.path).arg(program).args(arguments),
        ))
    }
}

/// 15: what was wrong with the file went to stderr even without -F, under no name, and to syslog under another one.
#[test]
fn defect_15_one_way_for_messages_and_one_name() {
    if !namespace_is_there() {
        return;
    }
    let fake = Fake::new("[nfsrahead]\nbad\nnfs4=512\n");
    let log = Log::new();
    let root = fake.root.path().as_os_str();
    let arguments = |flag: &'static str| [OsStr::new("--root"), root, OsStr::new(flag), OsStr::new(DEVICE)];
    let ours = log.run(self::ours(), &arguments("--"));
    assert_eq!((ours.code, &*ours.stdout, &*ours.stderr), (0, "512\n", ""));
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    // <28>: daemon.warning.
    assert!(
        lines[0].starts_with("<28>") && lines[0].contains(" nfsrahead["),
        "{lines:?}"
    );
    assert!(lines[0].contains("]: /etc/nfs.conf:2: "), "{lines:?}");

    let ours = log.run(self::ours(), &arguments("-F"));
    assert_eq!((ours.code, &*ours.stdout), (0, "512\n"));
    assert!(
        ours.stderr.starts_with("nfsrahead: /etc/nfs.conf:2: "),
        "{}",
        ours.stderr
    );
    assert_eq!(log.lines(), [""; 0], "-F: only to stderr");

    if let Some(theirs) = fake.peer(&[DEVICE]) {
        assert!(
            theirs.stderr.starts_with(": config error at /etc/nfs.conf:2"),
            "{theirs:?}"
        );
    }
}

/// 16: everything that begins with nfs was an NFS mount.
#[test]
fn defect_16_the_type_is_the_whole_word() {
    for kind in ["nfsd", "nfsfoo"] {
        let fake = Fake::new("[nfsrahead]\nnfs=512\nnfs4=512\ndefault=512\n");
        fake.mountinfo(&[OTHER, &MOUNT.replace("nfs4", kind)]);
        fake.volumes(&[]);
        let ours = fake.run(&["-F", DEVICE]);
        assert_eq!((ours.code, &*ours.stdout, &*ours.stderr), (1, "", ""), "{kind}");
        if let Some(theirs) = fake.peer(&[DEVICE]) {
            assert_eq!((theirs.code, &*theirs.stdout), (0, "512\n"), "{kind}");
        }
    }
}

/// 17: a newline in a path began a line of its own in the log.
#[test]
fn defect_17_no_line_can_be_forged() {
    let fake = Fake::new("[nfsrahead]\nnfs4=512\n[nfsrahead \"/a*\"]\nnfs4=4\n[nfsrahead \"/b*\"]\nnfs4=8\n");
    let forged = |at: &str| MOUNT.replace("/srv/a", &format!("/{at}\\012forged"));
    fake.mountinfo(&[OTHER, &forged("a"), &forged("b")]);
    for arguments in [
        &["-dF", DEVICE][..],
        &["-n"],
        &["-dF", "0:51\nforged"],
        &["-n", "/x\nforged"],
        &["--\nforged"],
    ] {
        let ours = fake.run(arguments);
        let text = ours.stdout + &ours.stderr;
        assert!(text.contains("\\012forged"), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("forged")), "{text}");
    }
    if let Some(theirs) = fake.peer(&["-dF", DEVICE]) {
        assert!(
            theirs.stderr.lines().any(|line| line.starts_with("forged")),
            "{theirs:?}"
        );
    }
}

/// 18, kept on purpose because all NFS programs of a host must read one file the same way: drop-ins below /usr/etc count only
/// while there is no /etc/nfs.conf.
#[test]
fn defect_18_vendor_drop_ins_go_as_for_all_nfs_programs() {
    let fake = Fake::new("");
    fake.write("usr/etc/nfs.conf.d/vendor.conf", "[nfsrahead]\nnfs4=512\n");
    assert_eq!(fake.run(&["-F", DEVICE]).code, 1, "an empty /etc/nfs.conf hides them");
    fs::remove_file(fake.root.path().join("etc/nfs.conf")).unwrap();
    assert_eq!(fake.run(&["-F", DEVICE]).stdout, "512\n");
}
