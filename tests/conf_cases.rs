//! Every folder of tests/conf-cases, three ways: through the library, through the built `nfstune`, and against the `nfsconf`
//! that is installed here.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;

/// The program of nfs-utils that shows how it reads nfs.conf.
const NFSCONF: &str = "/usr/sbin/nfsconf";

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nfsrahead::conf::{load, Conf, Keep, Resolved, Warning};
use nfsrahead::root::{Root, NFS_CONF};

/// Where `ours/` holds instead of `expect/`, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    ("25-arg-unclosed", "a broken header opens no section"),
    ("26-arg-bracket", "a broken header opens no section"),
    ("28-arg-override-leak", "plain section and each argument are separate"),
    ("38-continuation-at-end", "warnings always name the file"),
    ("40-no-final-newline", "a last line without newline counts"),
    ("41-no-final-newline-comment", "a last line without newline counts"),
    ("45-nul-byte", "warnings always name the file"),
    ("47-bom", "a byte order mark is skipped, with a warning"),
    ("57-dollar-loop", "a loop of names ends, as not set"),
    ("65-include-optional-broken", "warnings always name the file"),
    ("67-include-empty", "warnings always name the file"),
    ("70-include-self", "includes have a depth limit"),
    ("79-files-folder", "warnings always name the file"),
    ("84-dropin-link-to-folder", "warnings always name the file"),
    ("91-include-loop-two", "includes have a depth limit"),
];

/// What nfs-utils 2.6.2 does differently from the version the cases were recorded with.
const OLDER_PEER: &[(&str, &str)] = &[
    (
        "23-arg-basic",
        "2.6.2: a later argument removes the tags of the earlier ones",
    ),
    ("73-files-all-four", "2.6.2 does not know /usr/etc"),
    ("74-files-no-etc", "2.6.2 does not know /usr/etc"),
    ("76-files-usr-only", "2.6.2 does not know /usr/etc"),
    ("77-files-none", "2.6.2: no main file is an error"),
    ("78-files-dangling", "2.6.2 does not know /usr/etc"),
    ("79-files-folder", "2.6.2 does not know /usr/etc"),
    ("81-dropin-order-digits", "2.6.2: no main file is an error"),
    ("83-dropin-kinds", "2.6.2: no main file is an error"),
    ("84-dropin-link-to-folder", "2.6.2: no main file is an error"),
    ("89-dropin-order-pairs", "2.6.2: no main file is an error"),
];

struct Case {
    name: String,
    dir: PathBuf,
    queries: Vec<Query>,
    env: BTreeMap<Vec<u8>, Vec<u8>>,
}

struct Query {
    section: Vec<u8>,
    arg: Option<Vec<u8>>,
    tag: Vec<u8>,
}

impl Case {
    fn open(dir: PathBuf) -> Case {
        let lines = |file: &str| {
            let text = fs::read(dir.join(file)).unwrap_or_default();
            let lines: Vec<Vec<u8>> = text.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
            lines.into_iter().filter(|line| !line.is_empty())
        };
        let queries = lines("queries").map(|line| {
            let parts: Vec<&[u8]> = line.split(|&b| b == b'\t').collect();
            let [section, arg, tag] = parts.try_into().unwrap();
            Query {
                section: section.to_vec(),
                arg: (arg != b"-").then(|| arg.to_vec()),
                tag: tag.to_vec(),
            }
        });
        let env = lines("env").map(|line| {
            let at = line.iter().position(|&b| b == b'=').unwrap();
            (line[..at].to_vec(), line[at + 1..].to_vec())
        });
        Case {
            name: dir.file_name().unwrap().to_str().unwrap().to_owned(),
            queries: queries.collect(),
            env: env.collect(),
            dir,
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.join("in")
    }

    /// What is to come out: ours where we differ.
    fn expected(&self, file: &str) -> String {
        let text = fs::read(self.dir.join("ours").join(file))
            .unwrap_or_else(|_| fs::read(self.dir.join("expect").join(file)).unwrap());
        shown(&text)
    }

    fn answers(&self, ask: impl Fn(&Query) -> Option<Vec<u8>>) -> String {
        let line = |query| match ask(query) {
            Some(value) => format!("0\t{}\n", shown(&value)),
            None => "1\t\n".to_owned(),
        };
        self.queries.iter().map(line).collect()
    }

    fn check(&self, by: &str, file: &str, actual: &str) -> Result<(), String> {
        let expected = self.expected(file);
        if actual == expected {
            return Ok(());
        }
        Err(format!(
            "{} ({by}): {file}\n--- expected\n{expected}--- actual\n{actual}",
            self.name
        ))
    }
}

/// Bytes as text without loss, so that a failure can be read.
fn shown(bytes: &[u8]) -> String {
    let chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let invalid: String = chunk.invalid().iter().map(|b| format!("\\x{b:02x}")).collect();
        chunk.valid().to_owned() + &invalid
    };
    bytes.utf8_chunks().map(chunk).collect()
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conf-cases");
    let mut dirs: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    dirs.sort();
    assert_eq!(dirs.len(), 71, "cases were lost");
    dirs.into_iter().map(Case::open).collect()
}

fn report(results: Vec<Result<(), String>>) {
    let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(
        failures.is_empty(),
        "{} differ\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn warning_line(warning: &Warning) -> String {
    let file = shown(warning.file.as_os_str().as_bytes());
    match warning.line {
        Some(line) => format!("{} {file}:{line}\n", warning.kind.name()),
        None => format!("{} {file}\n", warning.kind.name()),
    }
}

fn resolved(resolved: Resolved<'_>) -> Option<Vec<u8>> {
    match resolved {
        Resolved::Value { value, .. } => Some(value.into_owned()),
        Resolved::Unset | Resolved::Loop(_) => None,
    }
}

fn conf(case: &Case) -> Conf {
    load(&Root::new(case.root()), Path::new(NFS_CONF), Keep::All)
}

#[test]
fn library() {
    let mut results = Vec::new();
    for case in cases() {
        let conf = conf(&case);
        let env = |name: &[u8]| case.env.get(name).cloned();
        let warnings: String = conf.warnings.iter().map(warning_line).collect();
        let get = case.answers(|q| resolved(conf.get(&q.section, q.arg.as_deref(), &q.tag, &env)));
        let entry = case.answers(|q| {
            let found = conf.find(&q.section, q.arg.as_deref(), &q.tag);
            found.map(|assignment| assignment.value.clone())
        });
        results.extend([
            case.check("library", "dump", &shown(&conf.dump())),
            case.check("library", "warn", &warnings),
            case.check("library", "get", &get),
            case.check("library", "entry", &entry),
        ]);
    }
    report(results);
}

#[test]
fn program() {
    let mut results = Vec::new();
    for case in cases() {
        let nfstune = |args: &[&OsStr]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_nfstune"));
            command.arg("--root").arg(case.root()).arg("config");
            command.env_clear();
            command.envs(case.env.iter().map(|(k, v)| (os(k), os(v))));
            command.args(args).output().unwrap()
        };
        let dump = nfstune(&[os(b"dump")]);
        assert_eq!(dump.status.code(), Some(0), "{}", case.name);
        results.push(case.check("program", "dump", &shown(&dump.stdout)));

        // A line each, with the place of each; the wording is not fixed here.
        let warn = case.expected("warn");
        let places: Vec<&str> = warn.lines().map(|l| l.split_once(' ').unwrap().1).collect();
        let stderr = shown(&dump.stderr);
        let lines: Vec<&str> = stderr.lines().collect();
        let fits = lines.len() == places.len()
            && lines
                .iter()
                .zip(&places)
                .all(|(line, place)| line.starts_with(&format!("nfstune: {place}: ")));
        if !fits {
            results.push(Err(format!("{}: {lines:?} for {places:?}", case.name)));
        }

        let get = case.answers(|q| {
            let mut section = q.section.clone();
            if let Some(arg) = &q.arg {
                section.push(b'/');
                section.extend_from_slice(arg);
            }
            let output = nfstune(&[os(b"get"), os(&section), os(&q.tag)]);
            value(&output)
        });
        results.push(case.check("program", "get", &get));
    }
    report(results);
}

/// The one line of a program that exits with 0 when there is a value, with 1 and in silence when there is none.
fn value(output: &Output) -> Option<Vec<u8>> {
    match output.status.code() {
        Some(0) => Some(output.stdout.strip_suffix(b"\n").unwrap().to_vec()),
        Some(1) => {
            assert_eq!(output.stdout, b"");
            None
        }
        code => panic!("exit code {code:?}: {}", shown(&output.stderr)),
    }
}

fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

#[test]
fn differences_are_listed_and_differ() {
    let listed: BTreeSet<&str> = DIFFERENCES.iter().map(|(case, _)| *case).collect();
    assert_eq!(listed.len(), DIFFERENCES.len());
    for case in cases() {
        let ours = case.dir.join("ours");
        assert_eq!(ours.is_dir(), listed.contains(&*case.name), "{}", case.name);
        if !ours.is_dir() {
            continue;
        }
        let files: Vec<PathBuf> = fs::read_dir(ours).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!files.is_empty());
        for file in files {
            let expect = case.dir.join("expect").join(file.file_name().unwrap());
            assert_ne!(
                fs::read(&file).unwrap(),
                fs::read(expect).unwrap(),
                "{file:?} does not differ"
            );
        }
    }
    let names: BTreeSet<String> = cases().into_iter().map(|case| case.name).collect();
    for (case, _) in DIFFERENCES.iter().chain(OLDER_PEER) {
        assert!(names.contains(*case), "no case {case}");
    }
}

/// The recorded answers are one version's; this asks the program that is installed.
#[test]
fn nfsconf() {
    if !Path::new(NFSCONF).exists() {
        return common::skip("no nfsconf (package nfs-common or nfs-utils)");
    }
    let in_namespace = |script: &str, etc: &Path, args: &[&OsStr]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", script]);
        command.arg("sh").arg(etc).args(args).env_clear().output()
    };
    let bind = "mount --bind \"$1\" /etc && shift &&";
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !in_namespace(&format!("{bind} true"), here, &[]).is_ok_and(|o| o.status.success()) {
        return common::skip("no mount namespace for an ordinary user (unshare, user namespaces)");
    }
    let mut results = Vec::new();
    let mut compared = 0;
    for case in cases() {
        let older = OLDER_PEER.iter().any(|(name, _)| *name == case.name);
        let other_answers = ["dump", "get"]
            .iter()
            .any(|file| case.dir.join("ours").join(file).exists());
        if older || other_answers {
            continue;
        }
        compared += 1;
        let conf = conf(&case);
        let etc = case.root().join("etc");
        let env = |name: &[u8]| case.env.get(name).cloned();
        let nfsconf = |args: &[&OsStr]| {
            let vars: Vec<Vec<u8>> = case
                .env
                .iter()
                .map(|(name, value)| [name, value.as_slice()].join(&b'='))
                .collect();
            let mut all: Vec<&OsStr> = vars.iter().map(|var| os(var)).collect();
            all.push(os(NFSCONF.as_bytes()));
            all.extend(args);
            in_namespace(&format!("{bind} exec /usr/bin/env -i \"$@\""), &etc, &all).unwrap()
        };
        let dump = nfsconf(&[os(b"--dump")]);
        let ours = shown(&conf.dump());
        if shown(&dump.stdout) != ours {
            let theirs = shown(&dump.stdout);
            let name = &case.name;
            results.push(Err(format!("{name}\n--- nfsconf\n{theirs}--- ours\n{ours}")));
        }
        for q in &case.queries {
            let mut args = vec![os(b"--get")];
            if let Some(arg) = &q.arg {
                args.extend([os(b"--arg"), os(arg)]);
            }
            args.extend([os(&q.section), os(&q.tag)]);
            let theirs = value(&nfsconf(&args));
            let ours = resolved(conf.get(&q.section, q.arg.as_deref(), &q.tag, &env));
            if theirs != ours {
                let tag = shown(&q.tag);
                let name = &case.name;
                results.push(Err(format!("{name}: {tag}: nfsconf {theirs:?}, ours {ours:?}")));
            }
        }
    }
    report(results);
    assert!(compared > 40, "only {compared} cases compared");
}
