//! `nfstune config` as a program: its arguments, its exit codes, its output that cannot be written.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

fn root() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("etc")).unwrap();
    let main = "[s]\nx=plain\n[s \"/srv/a b\"]\nx=path\n[s \"\"]\nx=empty\n";
    fs::write(dir.path().join("etc/nfs.conf"), main).unwrap();
    fs::write(dir.path().join("etc/other"), "[s]\nx=other\njunk\n").unwrap();
    dir
}

fn nfstune(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfstune"));
    command.arg("--root").arg(root).args(args);
    command
}

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let root = root();
    let output = nfstune(root.path(), args).output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn the_argument_follows_the_first_slash() {
    for (section, value) in [
        ("s", "plain\n"),
        ("S", "plain\n"),
        ("s//srv/a b", "path\n"),
        ("s/", "empty\n"),
    ] {
        let expected = (Some(0), value.to_owned(), String::new());
        assert_eq!(run(&["config", "get", section, "X"]), expected, "{section}");
    }
    let unset = (Some(1), String::new(), String::new());
    assert_eq!(run(&["config", "get", "s//srv/a", "x"]), unset);
    assert_eq!(run(&["config", "get", "s", "y"]), unset);
}

#[test]
fn another_file_and_its_warnings() {
    let warning = "nfstune: /etc/other:3: neither header, assignment nor comment, ignored\n";
    assert_eq!(
        run(&["config", "--file", "/etc/other", "get", "s", "x"]),
        (Some(0), "other\n".to_owned(), warning.to_owned())
    );
    assert_eq!(
        run(&["config", "dump", "--file", "/etc/other"]),
        (Some(0), "[s]\n x = other\n".to_owned(), warning.to_owned())
    );
}

#[test]
fn usage() {
    for args in [
        &["config"][..],
        &["config", "get", "s"],
        &["config", "dump", "x"],
        &["config", "nothing"],
        &["--no-such-flag"],
    ] {
        let (code, stdout, stderr) = run(args);
        assert_eq!((code, &*stdout), (Some(2), ""), "{args:?}");
        assert!(stderr.contains("Usage: "), "{args:?}: {stderr}");
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let root = root();
    for verb in [&["config", "dump"][..], &["config", "get", "s", "x"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let child = nfstune(root.path(), verb)
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            stderr.starts_with("nfstune: standard output: cannot write: "),
            "{stderr}"
        );
    }
}
