//! Every folder of tests/trees is a case; tests/trees/README.md says how one is made.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{peer, run, tree};
use nfsrahead::kernel::mountinfo::unescape;

/// What may be in the folder of a case.
const FILES: &[&str] = &["why", "cmd", "root", "stdout", "stderr", "exit", "after", "peer"];

/// Where messages show the folder that stood for "/".
const ROOT: &str = "ROOT";

#[test]
fn trees() {
    if nfsrahead::kernel::vm::page_kib() != 4 {
        return common::skip("tests/trees: the values are those of pages of 4 KiB");
    }
    let peer_is_missing = peer::missing();
    if let Some(reason) = &peer_is_missing {
        common::skip(&format!("comparison with nfs-utils: {reason}"));
    }
    let folders = folders();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut report = Report::default();
        while let Some(dir) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
            report.cases += 1;
            match Case::open(dir) {
                Ok(case) => case.check(&name, peer_is_missing.is_none(), &mut report),
                Err(e) => report.fail(&name, "case", &e),
            }
        }
        report
    };
    let reports = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    Report::sum(reports).close();
}

/// Two cases with one number are two cases; a number that is gone stays gone.
fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees");
    let mut dirs: Vec<PathBuf> = fs::read_dir(all)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    dirs.sort();
    dirs
}

#[derive(Default)]
struct Report {
    cases: u32,
    commands: u32,
    compared: u32,
    /// Differences from nfs-utils that were seen and are on purpose.
    differences: Vec<String>,
    failures: Vec<String>,
}

impl Report {
    fn sum(reports: Vec<Report>) -> Report {
        let mut all = Report::default();
        for report in reports {
            all.cases += report.cases;
            all.commands += report.commands;
            all.compared += report.compared;
            all.differences.extend(report.differences);
            all.failures.extend(report.failures);
        }
        all.differences.sort();
        all.failures.sort();
        all
    }

    fn fail(&mut self, case: &str, what: &str, why: &str) {
        self.failures.push(format!("{case}: {what}: {why}"));
    }

    fn compare(&mut self, case: &str, what: &str, expected: &str, got: &str) {
        if expected == got {
            return;
        }
        let mut text = String::new();
        for (mark, lines) in [('-', expected), ('+', got)] {
            for line in lines.split_inclusive('\n') {
                let end = if line.ends_with('\n') {
                    ""
                } else {
                    " (no newline at the end)"
                };
                let _ = write!(text, "\n{mark}{}{end}", line.trim_end_matches('\n'));
            }
        }
        self.fail(case, what, &format!("expected -, got +{text}"));
    }

    fn close(self) {
        let mut text = String::new();
        if !self.differences.is_empty() {
            let _ = writeln!(text, "Differences from nfs-utils on purpose:");
            for line in &self.differences {
                let _ = writeln!(text, "  {line}");
            }
        }
        let _ = writeln!(
            text,
            "trees: {} cases, {} commands, {} of them compared with nfs-utils, {} differ on purpose, {} failures",
            self.cases,
            self.commands,
            self.compared,
            self.differences.len(),
            self.failures.len()
        );
        // Past the test harness, which would keep it back.
        let _ = std::io::stderr().write_all(text.as_bytes());
        assert!(self.cases > 0, "no cases");
        assert!(self.failures.is_empty(), "\n{}", self.failures.join("\n"));
    }
}

struct Case {
    dir: PathBuf,
    steps: Vec<Step>,
    /// By device: what nfs-utils says, and why we do not.
    peer: BTreeMap<String, Difference>,
}

struct Difference {
    code: i32,
    stdout: String,
    why: String,
}

/// One command and what is to come of it.
struct Step {
    /// As in `cmd`.
    line: String,
    environment: Vec<OsString>,
    arguments: Vec<OsString>,
    code: i32,
    stdout: String,
    /// None: messages go to the log, which may or may not be there.
    stderr: Option<String>,
}

impl Case {
    fn open(dir: &Path) -> Result<Case, String> {
        for entry in fs::read_dir(dir).unwrap() {
            let name = entry.unwrap().file_name();
            if !FILES.iter().any(|known| name == *known) {
                return Err(format!("unknown file {name:?}"));
            }
        }
        let text = |file: &str| fs::read_to_string(dir.join(file)).unwrap_or_default();
        if text("why").lines().count() != 1 {
            return Err("`why` is one line".to_owned());
        }
        let cmd = text("cmd");
        let lines: Vec<&str> = cmd
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        if lines.is_empty() {
            return Err("`cmd` has no command".to_owned());
        }
        let stdout = parts("stdout", &text("stdout"), &lines)?;
        let stderr = parts("stderr", &text("stderr"), &lines)?;
        let codes = codes(&text("exit"), lines.len())?;
        let mut steps = Vec::new();
        for (i, line) in lines.iter().enumerate() {
            let mut step = Step::parse(line)?;
            step.code = codes[i];
            step.stdout.clone_from(&stdout[i]);
            if step.is_shown() {
                step.stderr = Some(stderr[i].clone());
            } else if !stderr[i].is_empty() {
                return Err(format!("`stderr`: {line} does not write there without -F"));
            }
            steps.push(step);
        }
        let peer = text("peer").lines().map(difference).collect::<Result<_, _>>()?;
        Ok(Case {
            dir: dir.to_owned(),
            steps,
            peer,
        })
    }

    fn check(&self, name: &str, with_peer: bool, report: &mut Report) {
        let root = tree::copy(&self.dir.join("root"));
        let before = tree::leaves(root.path());
        for step in &self.steps {
            report.commands += 1;
            self.run(name, step, root.path(), report);
        }
        self.check_after(name, &before, root.path(), report);
        if !with_peer {
            return;
        }
        // A root of its own: it is asked about what was there before.
        let root = tree::copy(&self.dir.join("root"));
        let mut asked = BTreeSet::new();
        for step in &self.steps {
            if let Some(device) = step.peer_device() {
                report.compared += 1;
                asked.insert(device.to_owned());
                self.compare_with_peer(name, step, device, root.path(), report);
            }
        }
        for device in self.peer.keys().filter(|device| !asked.contains(*device)) {
            report.fail(name, "peer", &format!("no command for {device}"));
        }
    }

    fn run(&self, name: &str, step: &Step, root: &Path, report: &mut Report) {
        let mut command = run::nfsrahead();
        for variable in &step.environment {
            let (name, value) = variable.to_str().unwrap().split_once('=').unwrap();
            command.env(name, value);
        }
        command.arg("--root").arg(root).args(&step.arguments);
        let output = run::output(&mut command);
        let hidden = |bytes: &[u8]| run::shown(bytes).replace(root.to_str().unwrap(), ROOT);
        let what = |which: &str| format!("{}: {which}", step.line);
        report.compare(name, &what("stdout"), &step.stdout, &hidden(&output.stdout));
        if let Some(expected) = &step.stderr {
            report.compare(name, &what("stderr"), expected, &hidden(&output.stderr));
        }
        let code = format!("{}\n", run::code(output.status));
        report.compare(name, &what("exit"), &format!("{}\n", step.code), &code);
    }

    /// What is in `after` differs now, and is as there; everything else was not touched.
    fn check_after(&self, name: &str, before: &BTreeMap<PathBuf, tree::Leaf>, root: &Path, report: &mut Report) {
        let expected = tree::leaves(&self.dir.join("after"));
        let after = tree::leaves(root);
        let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).chain(expected.keys()).collect();
        for path in paths {
            let what = format!("after/{}", path.display());
            match (before.get(path), after.get(path), expected.get(path)) {
                (Some(was), Some(is), None) if was == is => {}
                (Some(was), Some(is), None) if was.text == is.text => {
                    report.fail(name, &what, "written again with what it held");
                }
                (Some(was), Some(is), None) => {
                    report.compare(name, &what, &run::shown(&was.text), &run::shown(&is.text));
                }
                (Some(was), Some(_), Some(wanted)) if was.text == wanted.text => {
                    report.fail(name, &what, "is as it was, so it is not for `after`");
                }
                (Some(_), Some(is), Some(wanted)) => {
                    report.compare(name, &what, &run::shown(&wanted.text), &run::shown(&is.text));
                }
                (None, ..) => report.fail(name, &what, "was not there before"),
                (_, None, _) => report.fail(name, &what, "is gone"),
            }
        }
    }

    fn compare_with_peer(&self, name: &str, step: &Step, device: &str, root: &Path, report: &mut Report) {
        let environment: Vec<&OsStr> = step.environment.iter().map(OsString::as_os_str).collect();
        let theirs = peer::ask(root, &environment, &step.arguments);
        let is_equal = (theirs.code == 0) == (step.code == 0) && theirs.stdout == step.stdout;
        let said = format!("{} {}", theirs.code, one_word(&theirs.stdout));
        match self.peer.get(device) {
            None if is_equal => {}
            None => {
                let ours = format!("{} {}", step.code, one_word(&step.stdout));
                report.fail(name, &step.line, &format!("nfs-utils says {said}, we {ours}"));
            }
            Some(_) if is_equal => report.fail(name, &step.line, "`peer` tells a difference, but there is none"),
            Some(known) => {
                let documented = format!("{} {}", known.code, known.stdout);
                report.compare(name, &format!("{}: peer", step.line), &documented, &said);
                let why = &known.why;
                report
                    .differences
                    .push(format!("{name}: {}: {said} — {why}", step.line));
            }
        }
    }
}

impl Step {
    /// `NAME=value` before the command is its environment. Words are parted by blanks; `\ooo` in them as in mountinfo.
    fn parse(line: &str) -> Result<Step, String> {
        let word = |word: &str| OsString::from_vec(unescape(word.as_bytes()).into_owned());
        let mut words = line.split(' ').filter(|word| !word.is_empty()).peekable();
        let mut environment = Vec::new();
        while let Some(variable) = words.next_if(|word| word.contains('=')) {
            environment.push(word(variable));
        }
        if words.next() != Some("nfsrahead") {
            return Err(format!("`cmd`: no nfsrahead: {line}"));
        }
        Ok(Step {
            line: line.to_owned(),
            environment,
            arguments: words.map(word).collect(),
            code: 0,
            stdout: String::new(),
            stderr: None,
        })
    }

    /// Does it write its messages to stderr whatever the machine has?
    fn is_shown(&self) -> bool {
        self.is_for_people() || self.code == 2
    }

    fn is_for_people(&self) -> bool {
        let is =
            |a: &OsString| a == "-n" || a == "--dry-run" || a == "--foreground" || is_short_flags(a, b"dFwn", b'F');
        self.arguments.iter().any(is)
    }

    /// The device of `nfsrahead [-dF] DEVICE`, the form that both programs know, as it stands in `cmd`.
    fn peer_device(&self) -> Option<&str> {
        let (device, flags) = self.arguments.split_last()?;
        let is_known = |flag: &OsString| is_short_flags(flag, b"dF", b'd') || is_short_flags(flag, b"dF", b'F');
        let is_device = !device.as_bytes().starts_with(b"-");
        (is_device && flags.iter().all(is_known)).then(|| self.line.rsplit(' ').next())?
    }
}

/// `-abc` with nothing but `known` letters, `wanted` among them.
fn is_short_flags(argument: &OsStr, known: &[u8], wanted: u8) -> bool {
    let letters = argument.as_bytes().strip_prefix(b"-").unwrap_or_default();
    letters.iter().all(|letter| known.contains(letter)) && letters.contains(&wanted)
}

/// What each command is to print. For one command the text itself; for several a line `$ COMMAND` before the text of each
/// that prints something.
fn parts(file: &str, text: &str, commands: &[&str]) -> Result<Vec<String>, String> {
    let mut parts = vec![String::new(); commands.len()];
    if commands.len() == 1 {
        text.clone_into(&mut parts[0]);
        return Ok(parts);
    }
    let mut at = None;
    for line in text.split_inclusive('\n') {
        if let Some(command) = line.trim_end().strip_prefix("$ ") {
            let from = at.map_or(0, |i| i + 1);
            let found = commands[from..].iter().position(|c| *c == command);
            let i = found.ok_or_else(|| format!("`{file}`: no such command (any more): {command}"))?;
            at = Some(from + i);
        } else {
            let i = at.ok_or_else(|| format!("`{file}`: of which command?"))?;
            parts[i].push_str(line);
        }
    }
    Ok(parts)
}

/// One for each command, or one for all; 0 where nothing is said.
fn codes(text: &str, commands: usize) -> Result<Vec<i32>, String> {
    let all: Vec<i32> = text
        .split_whitespace()
        .map(|code| code.parse().map_err(|_| format!("`exit`: {code} is no number")))
        .collect::<Result<_, _>>()?;
    match all.len() {
        0 => Ok(vec![0; commands]),
        1 => Ok(vec![all[0]; commands]),
        n if n == commands => Ok(all),
        n => Err(format!("`exit` has {n} codes for {commands} commands")),
    }
}

/// `DEVICE code stdout — why`; `-` for no output.
fn difference(line: &str) -> Result<(String, Difference), String> {
    let parsed = || {
        let (facts, why) = line.split_once(" — ")?;
        let [device, code, stdout] = facts.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let difference = Difference {
            code: code.parse().ok()?,
            stdout: stdout.to_owned(),
            why: why.to_owned(),
        };
        Some((device.to_owned(), difference))
    };
    parsed().ok_or_else(|| format!("`peer` is not DEVICE CODE STDOUT — WHY: {line}"))
}

fn one_word(stdout: &str) -> &str {
    match stdout.trim_end() {
        "" => "-",
        text => text,
    }
}
