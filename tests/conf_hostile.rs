//! What must not hold, crash or fill the helper, whatever is in the place of the configuration.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails by panicking

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use nfsrahead::conf::{load, Conf, Keep};
use nfsrahead::root::{Root, NFS_CONF};
use tempfile::TempDir;

/// A root with these files, all below /etc.
fn root(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let etc = dir.path().join("etc");
    fs::create_dir_all(etc.join("nfs.conf.d")).unwrap();
    for (name, text) in files {
        fs::write(etc.join(name), text).unwrap();
    }
    dir
}

fn etc(root: &TempDir, name: &str) -> PathBuf {
    root.path().join("etc").join(name)
}

/// Loads in a thread of its own: a test that hangs fails instead.
fn load_in_time<T: Send + 'static>(root: &TempDir, look: impl FnOnce(Conf) -> T + Send + 'static) -> T {
    let root = Root::new(root.path());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(look(load(&root, Path::new(NFS_CONF), Keep::All))));
    receiver
        .recv_timeout(Duration::from_secs(30))
        .expect("loading does not end")
}

fn text(conf: Conf) -> (String, Vec<String>) {
    let dump = String::from_utf8(conf.dump()).unwrap();
    let warnings = conf.warnings.iter().map(ToString::to_string).collect();
    (dump, warnings)
}

fn make_fifo(path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a string with its end, alive during the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o644) }, 0);
}

#[test]
fn a_fifo_holds_nobody() {
    let root = root(&[("nfs.conf.d/z.conf", "[s]\nz=1\n")]);
    make_fifo(&etc(&root, "nfs.conf"));
    make_fifo(&etc(&root, "nfs.conf.d/fifo.conf"));
    symlink("../nfs.conf", etc(&root, "nfs.conf.d/link.conf")).unwrap();
    let (dump, warnings) = load_in_time(&root, text);
    assert_eq!(dump, "[s]\n z = 1\n");
    assert_eq!(
        warnings,
        [
            "/etc/nfs.conf: cannot read: not a regular file",
            "/etc/nfs.conf.d/link.conf: cannot read: not a regular file",
        ]
    );
}

#[test]
fn a_lock_holds_nobody() {
    let root = root(&[("nfs.conf", "[s]\na=1\n")]);
    let file = File::open(etc(&root, "nfs.conf")).unwrap();
    // SAFETY: the descriptor is open during the call.
    assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) }, 0);
    assert_eq!(load_in_time(&root, text).0, "[s]\n a = 1\n");
}

#[test]
fn files_that_include_each_other_end() {
    let many = format!("[s]\na=1\n{}", "include=nfs.conf\ninclude=b\n".repeat(50));
    let root = root(&[("nfs.conf", &many), ("b", &many)]);
    let (values, warnings, last) = load_in_time(&root, |conf| {
        let last = conf.warnings.last().map(ToString::to_string);
        (conf.dump(), conf.warnings.len(), last)
    });
    assert_eq!(values, b"[s]\n a = 1\n");
    assert_eq!(warnings, 1001);
    assert!(last.unwrap().ends_with("further warnings are left out"));
}

#[test]
fn the_depth_limit_leaves_sixteen_levels() {
    let root = root(&[("nfs.conf", "[s]\ninclude=1\n")]);
    for level in 1..=20 {
        let text = format!("l{level}=x\n\ninclude={}\n", level + 1);
        fs::write(etc(&root, &level.to_string()), text).unwrap();
    }
    let (dump, warnings) = load_in_time(&root, text);
    assert!(dump.contains("l16 = x\n") && !dump.contains("l17"), "{dump}");
    assert_eq!(
        warnings,
        ["/etc/16:3: includes are nested too deeply, not included: 17"]
    );
}

#[test]
fn sizes_are_bounded() {
    let line = "[s]\na=1\n";
    let at_limit = line.to_owned() + &"#".repeat((1 << 20) - line.len());
    let root = root(&[("nfs.conf", &at_limit)]);
    assert_eq!(load_in_time(&root, text), ("[s]\n a = 1\n".to_owned(), vec![]));

    // Four of them are all that one load reads; one byte more is too long even alone.
    for name in ["1", "2", "3", "4"] {
        fs::write(etc(&root, &format!("nfs.conf.d/{name}.conf")), &at_limit).unwrap();
    }
    let (_, warnings) = load_in_time(&root, text);
    assert_eq!(
        warnings,
        ["/etc/nfs.conf.d/4.conf: cannot read: all files together are longer than 4194304 bytes"]
    );
    fs::remove_dir_all(etc(&root, "nfs.conf.d")).unwrap();
    fs::write(etc(&root, "nfs.conf"), at_limit + "#").unwrap();
    assert_eq!(
        load_in_time(&root, text),
        (
            String::new(),
            vec!["/etc/nfs.conf: cannot read: longer than 1048576 bytes".to_owned()]
        )
    );
}

#[test]
fn the_number_of_files_is_bounded() {
    let root = root(&[]);
    for i in 0..1100 {
        let text = format!("[s]\nt{i}=1\n");
        fs::write(etc(&root, &format!("nfs.conf.d/{i}.conf")), text).unwrap();
    }
    let (assignments, warnings) = load_in_time(&root, |conf| {
        let warnings: Vec<String> = conf.warnings.iter().map(ToString::to_string).collect();
        (conf.assignments.len(), warnings)
    });
    assert_eq!(assignments, 1024);
    assert_eq!(
        warnings,
        ["/etc/nfs.conf.d: cannot list the folder: more than 1024 files, the rest is not read"]
    );
}

#[test]
fn warnings_are_one_line_each() {
    let root = root(&[
        ("nfs.conf", "[s]\ninclude=a\x1b[2Jb\n"),
        ("nfs.conf.d/evil\nnfs: all is well.conf", "junk\n"),
    ]);
    let (_, warnings) = load_in_time(&root, text);
    assert_eq!(
        warnings,
        [
            "/etc/nfs.conf:2: cannot include: /etc/a\\033[2Jb: no such file",
            "/etc/nfs.conf.d/evil\\012nfs: all is well.conf:1: neither header, assignment nor comment, ignored",
        ]
    );
}

/// The helper stores what it needs and is still told all that is wrong.
#[test]
fn keep_drops_values_and_no_warnings() {
    let root = root(&[(
        "nfs.conf",
        "[Nfsrahead]\nnfs=1\n[nfsrahead \"/a\"]\nnfs=2\n[nfsd]\nthreads=8\njunk\n",
    )]);
    let keep = Keep::Sections(&[b"nfsrahead", b"environment"]);
    let conf = load(&Root::new(root.path()), Path::new(NFS_CONF), keep);
    assert_eq!(conf.dump(), b"[nfsrahead]\n nfs = 1\n\n[nfsrahead \"/a\"]\n nfs = 2\n");
    assert_eq!(conf.warnings.len(), 1);
}
