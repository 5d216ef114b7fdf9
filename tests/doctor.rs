//! `nfstune doctor`: every folder of tests/doctor is a case. `why` is one line, `root` stands for "/", `stdout` is what is
//! printed, exactly, and `exit` the exit code; nothing on stderr. `json`, where there is one, is the output with `--json`.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{run, tree};

const FILES: &[&str] = &["why", "root", "stdout", "exit", "json"];

fn doctor(root: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfstune"));
    command
        .env_clear()
        .arg("--root")
        .arg(root)
        .arg("doctor")
        .args(arguments);
    run::output(&mut command)
}

#[test]
fn cases() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor");
    let mut cases: Vec<PathBuf> = fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 10);
    let failures: Vec<String> = cases.iter().flat_map(|case| check(case)).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn check(case: &Path) -> Vec<String> {
    let name = case.file_name().unwrap().to_str().unwrap();
    for entry in fs::read_dir(case).unwrap() {
        let file = entry.unwrap().file_name();
        assert!(
            FILES.iter().any(|known| file == *known),
            "{name}: unknown file {file:?}"
        );
    }
    let text = |file: &str| fs::read_to_string(case.join(file)).unwrap_or_else(|e| panic!("{name}/{file}: {e}"));
    assert_eq!(text("why").lines().count(), 1, "{name}: `why` is one line");

    let root = tree::copy(&case.join("root"));
    let before = tree::leaves(root.path());
    let mut failures = Vec::new();
    let mut compare = |what: &str, expected: &str, got: &str| {
        if expected != got {
            failures.push(format!("{name}: {what}: expected\n{expected}got\n{got}"));
        }
    };
    let outputs = [
        ("stdout", doctor(root.path(), &[])),
        ("json", doctor(root.path(), &["--json"])),
    ];
    for (file, output) in &outputs {
        if *file == "stdout" || case.join(file).exists() {
            compare(file, &text(file), &run::shown(&output.stdout));
        }
        compare("stderr", "", &run::shown(&output.stderr));
        compare("exit", &text("exit"), &format!("{}\n", run::code(output.status)));
    }
    let is_untouched = before == tree::leaves(root.path());
    compare(
        "root",
        "untouched\n",
        if is_untouched { "untouched\n" } else { "changed\n" },
    );
    failures
}

/// Names and values of files are the files' own: nothing in them starts a line or reaches the terminal as it is.
#[test]
fn nothing_from_files_forges_a_line() {
    let root = tempfile::tempdir().unwrap();
    let rules = "KERNEL==\"0:*\", ATTR{read_ahead_kb}=e\"1\\nerror: forged\\x1b[2J\"\n\
        ATTR{read_ahead_kb}=\"\u{1b}[2J\"\n\
        PROGRAM=e\"/x\\n/nfsrahead\", RUN+=e\"echo > read_ahead_kb\\n\"\n";
    tree::write(root.path(), "etc/udev/rules.d/a\n\u{1b}.rules", rules);
    tree::write(root.path(), "etc/fstab", "h:/a /a\u{1b}[2J nfs readahead=1 0 0\n");
    tree::write(root.path(), "proc/self/mountinfo", "");
    for arguments in [&[][..], &["--json"]] {
        let output = doctor(root.path(), arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("every-device") && text.contains("unknown-option"),
            "{text}"
        );
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{text}");
        assert_eq!(run::code(output.status), 1);
    }
}

/// What cannot be read is said, and the rest is looked at.
#[test]
fn files_of_the_wrong_kind() {
    let root = tempfile::tempdir().unwrap();
    tree::write(root.path(), "etc/udev/rules.d/b.rules", "ATTR{read_ahead_kb}=\"1\"\n");
    tree::write(root.path(), "etc/udev/rules.d/dir.rules/x", "");
    tree::write(
        root.path(),
        "etc/udev/rules.d/.hidden.rules",
        "ATTR{read_ahead_kb}=\"2\"\n",
    );
    tree::write(root.path(), "etc/udev/rules.d/other", "ATTR{read_ahead_kb}=\"3\"\n");
    let folder = root.path().join("etc/udev/rules.d");
    let fifo = std::ffi::CString::new(folder.join("fifo.rules").to_str().unwrap()).unwrap();
    // SAFETY: the path is a string that ends in a NUL.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    // A link to nowhere hides nothing; /lib is the same folder as /usr/lib and is read once.
    std::os::unix::fs::symlink("nowhere", folder.join("c.rules")).unwrap();
    tree::write(
        root.path(),
        "usr/lib/udev/rules.d/c.rules",
        "KERNEL==\"0:*\", ATTR{read_ahead_kb}=\"4\"\n",
    );
    std::os::unix::fs::symlink("usr/lib", root.path().join("lib")).unwrap();
    tree::write(root.path(), "proc/self/mountinfo", "");
    let output = doctor(root.path(), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = "Rules that set the readahead of NFS mounts, the last one holds:\n\
        /etc/udev/rules.d/b.rules:1      1\n\
        /usr/lib/udev/rules.d/c.rules:1  4\n\
        \n\
        NFS devices now:\n\
        none\n\
        \n\
        Findings:\n\
        error: /etc/udev/rules.d/b.rules:1: sets read_ahead_kb of every device that has it to 1: the rule has no match \
        part [every-device]\n\
        warning: /etc/udev/rules.d/fifo.rules: not a regular file [rules-unreadable]\n\
        note: /etc/udev/rules.d/b.rules:1: 1 does not hold: /usr/lib/udev/rules.d/c.rules:1 comes later [overridden]\n";
    assert_eq!(text, expected);
}

#[test]
fn usage() {
    let root = tempfile::tempdir().unwrap();
    for arguments in [&["x"][..], &["--no-such-flag"]] {
        let output = doctor(root.path(), arguments);
        assert_eq!(
            (run::code(output.status), &output.stdout[..]),
            (2, &b""[..]),
            "{arguments:?}"
        );
    }
}
