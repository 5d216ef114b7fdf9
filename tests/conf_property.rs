//! Random configurations: ours against the `nfsconf` that is installed, and what must hold without it.
//!
//! A failure prints the file, made as small as it gets. `NFSRAHEAD_SEED=N` repeats a run.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;

/// The program of nfs-utils that shows how it reads nfs.conf.
const NFSCONF: &str = "/usr/sbin/nfsconf";

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use nfsrahead::conf::grammar::{parse, Header, Item};
use nfsrahead::conf::{load, Assignment, Conf, Keep, Location, Resolved, WarningKind};
use nfsrahead::root::Root;
use proptest::prelude::*;

const FILES: u32 = 2000;

/// xorshift64*: the same files from the same seed on every machine.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from((self.next() >> 33) % n as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, from: &[&'a [u8]]) -> &'a [u8] {
        from[self.below(from.len())]
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }
}

/// Lines as admins write and break them.
struct Generator {
    rng: Rng,
    /// A tag carries the number of the argument it stands below: nfs-utils mixes up equal tags below different arguments.
    arg: usize,
    includes: bool,
}

const BLANKS: &[&[u8]] = &[b"", b"", b"", b" ", b"  ", b"\t", b" \t "];
const ENDS: &[&[u8]] = &[b"", b"", b"", b"", b" ", b"\t", b"\r", b" \r", b"\x0b", b"\x0c "];
const SECTIONS: &[&[u8]] = &[
    b"nfsrahead",
    b"NfsRahead",
    b"s",
    b"S",
    b"",
    b"two words",
    b"environment",
    b"u\xc3\xbc",
    b"\xff",
    b"s 'q'",
    b"a=b",
    b"[x",
    b"#h",
];
const ARGS: &[&[u8]] = &[b"a", b"/srv/x y", b"", b"it's", b"#c;", b" b ", b"\xfe", b"host:/e"];
const TAGS: &[&[u8]] = &[
    b"nfs",
    b"NFS4",
    b"nfs4",
    b"default",
    b"my tag",
    b"a # b",
    b"c;d",
    b"\"q\"",
    b"x[0]",
    b":",
    b"$v",
    b"\xe9",
    b"!",
    b"includes",
    b"\x0ct",
];
const WORDS: &[&[u8]] = &[
    b"1",
    b"15360",
    b"0x10",
    b"15M",
    b"some words",
    b"a\tb",
    b"$v",
    b"$HOME",
    b"$",
    b"it's",
    b"a\"b",
    b"a=b",
    b"%d",
    b"\\n",
    b"end\\",
    b"\xc3\xbc",
    b"\x80",
    b"\x0c",
    b"[x]",
    b"include",
    b"-",
    b"\r",
];
const JUNK: &[&[u8]] = &[
    b"words only",
    b"]",
    b"{}",
    b"\\",
    b"\\\\",
    b"'",
    b"\"",
    b"\x01",
    b"\xef\xbb",
    b"!",
    b"include",
    b"include x",
];
const BREAKERS: &[u8] = b"\"'[]=#;\\\n\n\r \t$-";

impl Generator {
    fn file(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        self.arg = 0;
        if self.rng.chance(90) {
            self.header(&mut text);
            text.push(b'\n');
        }
        for _ in 0..self.rng.below(14) {
            let start = text.len();
            self.line(&mut text);
            if self.rng.chance(8) {
                let at = start + self.rng.below(text.len() - start + 1);
                let join = self.rng.pick(&[b"\\\n", b"\\\n", b"\\\\\n", b"\\ \n", b"\\\r\n"]);
                text.splice(at..at, join.iter().copied());
            }
            text.extend_from_slice(self.rng.pick(&[b"\n", b"\n", b"\n", b"\n", b"\r\n"]));
        }
        if self.rng.chance(25) {
            for _ in 0..=self.rng.below(3) {
                let at = self.rng.below(text.len() + 1);
                let byte = match self.rng.below(20) {
                    0 => 0,
                    1..=5 => self.rng.byte(),
                    _ => BREAKERS[self.rng.below(BREAKERS.len())],
                };
                let end = (at + self.rng.below(2)).min(text.len());
                text.splice(at..end, [byte]);
            }
        }
        text
    }

    fn line(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.rng.pick(BLANKS));
        match self.rng.below(100) {
            0..14 => self.header(out),
            14..64 => {
                self.tag(out);
                out.extend_from_slice(self.rng.pick(BLANKS));
                out.push(b'=');
                out.extend_from_slice(self.rng.pick(BLANKS));
                self.value(out);
            }
            64..70 => {
                out.push(b"#;"[self.rng.below(2)]);
                out.extend_from_slice(self.rng.pick(WORDS));
                out.extend_from_slice(self.rng.pick(&[b"", b"", b"\\"]));
            }
            70..76 => out.extend_from_slice(self.rng.pick(&[b"", b" ", b"\x0c", b"\x0b\r", b"\t\t"])),
            76..84 => out.extend_from_slice(self.rng.pick(JUNK)),
            84..87 => {
                out.push(b'=');
                self.value(out);
            }
            87..95 => {
                out.extend_from_slice(self.rng.pick(&[b"include", b"Include", b"INCLUDE "]));
                out.push(b'=');
                let present: &[&[u8]] = &[b"one.inc", b"-one.inc", b"'two 2.inc'", b"\"-one.inc\" x"];
                let absent: &[&[u8]] = &[b"none", b"-none", b"- none", b"$v", b"\"none"];
                let names = if self.includes { present } else { absent };
                out.extend_from_slice(self.rng.pick(names));
                out.extend_from_slice(self.rng.pick(ENDS));
            }
            95..98 => out.extend_from_slice(self.rng.pick(&[b"[s", b"[", b"[s \"a\"", b"[#"])),
            _ => {
                self.tag(out);
                out.push(b'=');
                let byte = b"v #="[self.rng.below(4)];
                out.extend(std::iter::repeat_n(byte, 1 + self.rng.below(9000)));
                out.extend_from_slice(b".");
            }
        }
    }

    fn header(&mut self, out: &mut Vec<u8>) {
        out.push(b'[');
        out.extend_from_slice(self.rng.pick(BLANKS));
        out.extend_from_slice(self.rng.pick(SECTIONS));
        out.extend_from_slice(self.rng.pick(BLANKS));
        self.arg = 0;
        if self.rng.chance(35) {
            let at = self.rng.below(ARGS.len());
            self.arg = at + 1;
            out.push(b'"');
            out.extend_from_slice(ARGS[at]);
            out.push(b'"');
            out.extend_from_slice(self.rng.pick(&[b"", b"", b" ", b"junk", b" \"second\" "]));
        }
        out.push(b']');
        out.extend_from_slice(self.rng.pick(&[b"", b"", b"", b" ", b" # c", b"x=1", b"]", b"\r"]));
    }

    fn tag(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.rng.pick(TAGS));
        if self.arg > 0 {
            out.extend_from_slice(format!("{}", self.arg).as_bytes());
        }
    }

    fn value(&mut self, out: &mut Vec<u8>) {
        let word = self.rng.pick(WORDS);
        let quote = [b'"', b'\''][self.rng.below(2)];
        match self.rng.below(10) {
            0 => {}
            1..=5 => out.extend_from_slice(word),
            6..=8 => {
                out.push(quote);
                out.extend_from_slice(self.rng.pick(BLANKS));
                out.extend_from_slice(word);
                out.extend_from_slice(self.rng.pick(&[b"", b" ", b"#x", b"; "]));
                out.push(quote);
                out.extend_from_slice(self.rng.pick(&[b"", b"", b" x", b"=", b"#"]));
            }
            _ => {
                out.push(quote);
                out.extend_from_slice(word);
            }
        }
        out.extend_from_slice(self.rng.pick(&[b"", b"", b"", b"# c", b" # c", b";", b" ;#"]));
        out.extend_from_slice(self.rng.pick(ENDS));
    }
}

/// A main file and two that it may include.
#[derive(Clone)]
struct Files {
    main: Vec<u8>,
    one: Vec<u8>,
    two: Vec<u8>,
}

struct Bench {
    ours: PathBuf,
    theirs: PathBuf,
}

/// Everything a program says about a configuration. Warnings as (kind, file without folder, line).
#[derive(PartialEq)]
struct Said {
    dump: Vec<u8>,
    warnings: Vec<(String, String, u32)>,
    values: Vec<Option<Vec<u8>>>,
}

impl Bench {
    fn write(&self, files: &Files) {
        for folder in [&self.ours, &self.theirs] {
            for (name, text) in [("one.inc", &files.one), ("two 2.inc", &files.two)] {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        fs::write(self.ours.join("main"), &files.main).unwrap();
        // Ours reads a last line without newline as if it had one; nfs-utils drops it.
        let mut main = files.main.clone();
        if main.last().is_some_and(|&b| b != b'\n') {
            main.push(b'\n');
        }
        fs::write(self.theirs.join("main"), main).unwrap();
    }

    fn nfsconf(&self, args: &[&OsStr]) -> Output {
        let mut command = Command::new(NFSCONF);
        command.arg("--file").arg(self.theirs.join("main"));
        command.env_clear().env("HOME", "/root").args(args);
        command.output().unwrap()
    }

    /// None where the file has one of the shapes that are to differ.
    fn compare(&self, files: &Files) -> Option<Result<(), String>> {
        self.write(files);
        let conf = load(&Root::default(), &self.ours.join("main"), Keep::All);
        if differs_on_purpose(&conf) {
            return None;
        }
        let dump = self.nfsconf(&[OsStr::new("--dump")]);
        assert!(dump.status.success());
        let mut theirs = Said {
            warnings: their_warnings(&dump.stderr),
            dump: dump.stdout,
            values: vec![],
        };
        let mut ours = Said {
            dump: conf.dump(),
            warnings: our_warnings(&conf),
            values: vec![],
        };
        // Of the last one only: a process each.
        let env = |name: &[u8]| (name == b"HOME").then(|| b"/root".to_vec());
        if let Some(a) = conf.assignments.last() {
            match conf.get(&a.section, a.arg.as_deref(), &a.tag, &env) {
                Resolved::Value { value, .. } => ours.values.push(Some(value.into_owned())),
                Resolved::Unset => ours.values.push(None),
                Resolved::Loop(_) => return None,
            }
            let mut args = vec![OsStr::new("--get")];
            if let Some(arg) = &a.arg {
                args.extend([OsStr::new("--arg"), OsStr::from_bytes(arg)]);
            }
            args.push(OsStr::new("--"));
            args.extend([&a.section, &a.tag].map(|bytes| OsStr::from_bytes(bytes)));
            let get = self.nfsconf(&args);
            let value = get.stdout.strip_suffix(b"\n").map(<[u8]>::to_vec);
            assert_eq!(value.is_some(), get.status.success());
            theirs.values.push(value);
        }
        if ours == theirs {
            return Some(Ok(()));
        }
        Some(Err(format!(
            "main:\n{}\none.inc:\n{}\ntwo 2.inc:\n{}\nnfsconf:\n{}\nours:\n{}",
            files.main.escape_ascii(),
            files.one.escape_ascii(),
            files.two.escape_ascii(),
            theirs.shown(),
            ours.shown()
        )))
    }

    /// The same failure with as few lines as possible; bounded, as every try is a process.
    fn shrink(&self, mut files: Files, mut failure: String) -> String {
        let mut tries = 0;
        for part in 0..3 {
            let mut line = 0;
            while tries < 500 {
                let mut fewer = files.clone();
                let text = [&mut fewer.main, &mut fewer.one, &mut fewer.two][part].clone();
                let mut lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
                if line >= lines.len() {
                    break;
                }
                lines.remove(line);
                *[&mut fewer.main, &mut fewer.one, &mut fewer.two][part] = lines.concat();
                tries += 1;
                match self.compare(&fewer) {
                    Some(Err(smaller)) => (files, failure) = (fewer, smaller),
                    _ => line += 1,
                }
            }
        }
        failure
    }
}

impl Said {
    fn shown(&self) -> String {
        let values = self.values.iter().flatten();
        format!(
            "{}{:?}\nvalue: {:?}",
            String::from_utf8_lossy(&self.dump),
            self.warnings,
            values.map(|v| v.escape_ascii().to_string()).collect::<Vec<_>>()
        )
    }
}

/// A header argument that is not closed, and one tag below two arguments of a section: there the reference misbehaves.
fn differs_on_purpose(conf: &Conf) -> bool {
    let broken = |w: &nfsrahead::conf::Warning| w.kind == WarningKind::HeaderQuote;
    let mut names: Vec<_> = conf
        .assignments
        .iter()
        .map(|a| (&a.section, a.tag.to_ascii_lowercase(), &a.arg))
        .collect();
    names.sort();
    names.dedup();
    let two_args = |two: &[(&Vec<u8>, Vec<u8>, _)]| (two[0].0, &two[0].1) == (two[1].0, &two[1].1);
    conf.warnings.iter().any(broken) || names.windows(2).any(two_args)
}

fn our_warnings(conf: &Conf) -> Vec<(String, String, u32)> {
    let warning = |w: &nfsrahead::conf::Warning| match w.kind {
        // The reference says no place for these.
        WarningKind::LastLine | WarningKind::Unreadable => (w.kind.name().to_owned(), String::new(), 0),
        _ => {
            let file = w.file.file_name().unwrap().to_str().unwrap();
            (w.kind.name().to_owned(), file.to_owned(), w.line.unwrap_or(0))
        }
    };
    conf.warnings.iter().map(warning).collect()
}

fn their_warnings(stderr: &[u8]) -> Vec<(String, String, u32)> {
    let stderr = String::from_utf8_lossy(stderr);
    let warning = |line: &str| {
        let kinds = [
            ("non-matched ']'", "bracket"),
            ("not empty and not an assignment", "not-assignment"),
            ("not in a section", "no-section"),
            ("unmatched quotes", "value-quote"),
            ("missing tag", "no-tag"),
            ("error loading included config", "include"),
            ("last line non-terminated", "last-line"),
            ("conf_readfile: ", "unreadable"),
        ];
        let kind = kinds.iter().find(|(text, _)| line.contains(text));
        let (_, kind) = kind.unwrap_or_else(|| panic!("unknown warning of nfsconf: {line}"));
        let place = line.split_once("config error at ").map_or("", |(_, rest)| rest);
        let mut parts = place.rsplit('/').next().unwrap().split(':');
        let file = parts.next().unwrap().to_owned();
        let number = parts.next().map_or(0, |number| number.parse().unwrap());
        ((*kind).to_owned(), file, number)
    };
    stderr.lines().map(warning).collect()
}

fn seed() -> u64 {
    let given = std::env::var("NFSRAHEAD_SEED").ok();
    let seed = given.map_or_else(
        || {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap()
                .subsec_nanos()
                .into()
        },
        |seed| seed.parse().unwrap(),
    );
    let _ = writeln!(std::io::stderr(), "NFSRAHEAD_SEED={seed}");
    seed
}

#[test]
fn as_nfsconf() {
    if !Path::new(NFSCONF).exists() {
        return common::skip("no nfsconf (package nfs-common or nfs-utils)");
    }
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench {
        ours: dir.path().join("ours"),
        theirs: dir.path().join("theirs"),
    };
    fs::create_dir(&bench.ours).unwrap();
    fs::create_dir(&bench.theirs).unwrap();
    let seed = seed();
    let mut generator = Generator {
        // Zero is the one state it never leaves.
        rng: Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
        arg: 0,
        includes: false,
    };
    let (mut compared, mut passed_over, mut with_values, mut with_warnings) = (0, 0, 0, 0);
    while compared < FILES {
        generator.includes = false;
        let mut include = || {
            let mut text = generator.file();
            text.push(b'\n');
            text
        };
        let (one, two) = (include(), include());
        generator.includes = generator.rng.chance(50);
        let mut main = generator.file();
        if generator.rng.chance(20) && main.last() == Some(&b'\n') {
            main.pop();
        }
        let files = Files { main, one, two };
        match bench.compare(&files) {
            None => passed_over += 1,
            Some(Ok(())) => compared += 1,
            Some(Err(failure)) => {
                let failure = bench.shrink(files, failure);
                panic!("NFSRAHEAD_SEED={seed}, file {compared}\n{failure}");
            }
        }
        let conf = load(&Root::default(), &bench.ours.join("main"), Keep::All);
        with_values += u32::from(!conf.assignments.is_empty());
        with_warnings += u32::from(!conf.warnings.is_empty());
    }
    // The generator must reach what it is for.
    assert!(passed_over < FILES / 4, "{passed_over} files passed over");
    assert!(with_values > FILES / 2, "{with_values} files with values");
    assert!(with_warnings > FILES / 3, "{with_warnings} files with warnings");
}

/// An [`Item`] that owns what it says.
#[derive(Debug, Clone, PartialEq)]
enum Owned {
    Assign(Vec<u8>, Option<Vec<u8>>, Vec<u8>, Vec<u8>, u32),
    Include(Vec<u8>, Option<Vec<u8>>, Vec<u8>, bool, u32),
    Warning(WarningKind, Option<u32>),
}

fn items(text: &[u8], inherited: Option<Header<'_>>) -> Vec<Owned> {
    let mut items = Vec::new();
    parse(text, inherited, &mut |item| {
        let owned = |arg: Option<&[u8]>| arg.map(<[u8]>::to_vec);
        items.push(match item {
            Item::Assign {
                section,
                arg,
                tag,
                value,
                line,
            } => {
                assert!(!tag.is_empty() && !value.is_empty());
                assert!(!section.iter().any(u8::is_ascii_uppercase));
                Owned::Assign(section.to_vec(), owned(arg), tag.to_vec(), value.to_vec(), line)
            }
            Item::Include {
                section,
                arg,
                name,
                optional,
                line,
            } => Owned::Include(section.to_vec(), owned(arg), name.to_vec(), optional, line),
            Item::Warning { kind, line } => Owned::Warning(kind, line),
        });
    });
    items
}

impl Owned {
    fn line(&self) -> u32 {
        match self {
            Owned::Assign(.., line) | Owned::Include(.., line) => *line,
            Owned::Warning(_, line) => line.unwrap_or(0),
        }
    }

    fn shifted(mut self, by: u32) -> Owned {
        match &mut self {
            Owned::Assign(.., line) | Owned::Include(.., line) => *line += by,
            Owned::Warning(_, line) => *line = line.map(|line| line + by),
        }
        self
    }
}

/// Bytes that mean something to the grammar more often than others.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => prop::sample::select(b"[]=#;\"'\\\n\n\n\r\t  $-".to_vec()),
        3 => prop::sample::select(b"abcinlude".to_vec()),
        1 => any::<u8>(),
    ];
    prop::collection::vec(byte, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Any bytes are read to their end; lines are named in order and exist.
    #[test]
    fn any_bytes(text in bytes(), inherited in any::<bool>()) {
        let header = Header { section: b"s", arg: Some(b"") };
        let items = items(&text, inherited.then_some(header));
        let newlines = text.iter().filter(|&&b| b == b'\n').count();
        let mut last = 1;
        for item in &items {
            prop_assert!(item.line() >= last);
            last = item.line();
        }
        prop_assert!(last as usize <= newlines + 1);
    }

    /// What stands before a header line does not change what is read from it on.
    #[test]
    fn a_header_starts_anew(before in bytes(), after in bytes()) {
        let mut before: Vec<u8> = before.into_iter().filter(|&b| b != 0).collect();
        before.extend_from_slice(b"\n\n");
        let after = [b"[x]\n", after.as_slice()].concat();
        let count = [before.as_slice(), b"junk"].concat();
        let lines = items(&count, None).last().unwrap().line() - 1;

        let mut expected = items(&before, None);
        expected.extend(items(&after, None).into_iter().map(|item| item.shifted(lines)));
        prop_assert_eq!(items(&[before, after].concat(), None), expected);
    }

    /// A text means the same with and without the newline at its end.
    #[test]
    fn the_last_newline_may_be_missing(text in bytes()) {
        prop_assume!(!text.ends_with(b"\n") && !text.contains(&0) && !text.is_empty());
        prop_assert_eq!(items(&text, None), items(&[&text, b"\n".as_slice()].concat(), None));
    }

    /// What is dumped reads back as the same, for names and values that the syntax can carry without help.
    #[test]
    fn a_dump_reads_back(
        entries in prop::collection::vec(
            (0..3usize, 0..3usize, "[a-cA-C][a-c $:\\[]{0,3}[a-c]", "[!-~&&[^#;\"'\\\\]]|[ -~\\t&&[^#;\"'\\\\]]{1,9}"), 0..20
        )
    ) {
        let sections: [&[u8]; 3] = [b"s", b"two words", b""];
        let args: [Option<&[u8]>; 3] = [None, Some(b""), Some(b" /A # b ")];
        let conf = Conf {
            assignments: entries
                .iter()
                .map(|(section, arg, tag, value)| Assignment {
                    section: sections[*section].to_vec(),
                    arg: args[*arg].map(<[u8]>::to_vec),
                    tag: tag.clone().into_bytes(),
                    value: value.clone().into_bytes(),
                    at: Location { file: Rc::from(Path::new("x")), line: 1 },
                })
                .collect(),
            warnings: vec![],
        };
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("dump");
        fs::write(&file, conf.dump()).unwrap();
        let again = load(&Root::default(), &file, Keep::All);
        prop_assert!(again.warnings.is_empty());
        prop_assert_eq!(again.dump().escape_ascii().to_string(), conf.dump().escape_ascii().to_string());
        for a in &conf.assignments {
            let value = |conf: &Conf| {
                let found = conf.find(&a.section, a.arg.as_deref(), &a.tag);
                found.map(|a| OsString::from_vec(a.value.clone()))
            };
            prop_assert!(value(&conf).is_some());
            prop_assert_eq!(value(&again), value(&conf));
        }
    }
}
