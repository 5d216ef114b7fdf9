//! What must hold for any bytes, one function a target. Shared by the fuzzer and by `tests/fuzz_corpus.rs`, which runs the
//! same functions wherever `cargo test` runs. A broken promise is a panic.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::Path;
use std::rc::Rc;

use nfsrahead::client::join;
use nfsrahead::conf::grammar::{parse, Item};
use nfsrahead::conf::policy::Policy;
use nfsrahead::conf::rule_lint;
use nfsrahead::conf::scope::Scope;
use nfsrahead::conf::udev_rules::{self, Op};
use nfsrahead::conf::value::{Value, MAX_FACTOR, MAX_KIB, MIN_KIB};
use nfsrahead::conf::{Assignment, Conf, Location};
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::kernel::mountinfo::{self, Mount};
use nfsrahead::kernel::{mountstats, nfsfs, route};
use nfsrahead::readahead::decide::{decide, Action, Device, Machine};
use nfsrahead::report::escape::escape;
use nfsrahead::report::metrics::metrics;

/// nfs.conf, a byte 0xff, fstab: the grammar, the policy made of both, and what it decides for a mount.
pub fn grammar(data: &[u8]) {
    let (text, fstab) = part(data, 0xff);
    let policy = Policy::new(&assignments(text), fstab, &|_| None);
    let kinds: Vec<_> = policy.rules.iter().map(|rule| rule.scope.kind()).collect();
    assert!(kinds.is_sorted());
    for problem in &policy.problems {
        assert_shown(&problem.to_string());
    }
    for options in ["vers=3,rsize=32768", "vers=4.2,rsize=1048576,addr=192.0.2.10"] {
        let mount = Mount {
            super_options: options.into(),
            ..mount(b"/srv/a/b", b"filer1:/export/db")
        };
        let device = Device {
            version: mount.version(),
            mounts: &[mount],
            now_kib: Some(128),
            measured: None,
        };
        let machine = Machine {
            page_kib: 4,
            memory: None,
            is_cloud: false,
        };
        let decision = decide(&policy, &device, &machine);
        assert_shown(&decision.reason);
        if let Action::Set(kib) = decision.action {
            assert!(kib <= MAX_KIB && kib % machine.page_kib == 0);
        }
    }
}

fn assignments(text: &[u8]) -> Conf {
    let mut conf = Conf::default();
    let file: Rc<Path> = Path::new("/etc/nfs.conf").into();
    let lines = u32::try_from(text.split(|b| *b == b'\n').count()).unwrap();
    let mut last_line = 1;
    parse(text, None, &mut |item| {
        let line = match item {
            Item::Assign {
                section,
                arg,
                tag,
                value,
                line,
            } => {
                assert!(!tag.is_empty() && !value.is_empty());
                assert!(!section.iter().any(u8::is_ascii_uppercase));
                for field in [section, arg.unwrap_or_default(), tag, value] {
                    assert!(!field.contains(&b'\n') && !field.contains(&0));
                }
                conf.assignments.push(Assignment {
                    section: section.to_vec(),
                    arg: arg.map(<[u8]>::to_vec),
                    tag: tag.to_vec(),
                    value: value.to_vec(),
                    at: Location {
                        file: file.clone(),
                        line,
                    },
                });
                line
            }
            Item::Include { line, .. } => line,
            Item::Warning { line, .. } => line.unwrap_or(last_line),
        };
        assert!((last_line..=lines).contains(&line));
        last_line = line;
    });
    for a in &conf.assignments {
        let found = conf.find(&a.section, a.arg.as_deref(), &a.tag);
        assert!(found.is_some_and(|found| found.at.line >= a.at.line));
        conf.resolve(a, &|_| None);
    }
    conf.dump();
    conf
}

/// A mount table; and any bytes as a path through the kernel's escapes and back.
pub fn mountinfo(data: &[u8]) {
    let all = mountinfo::parse(data, None).unwrap();
    for one in &all {
        assert!(mountinfo::parse_line(line(one).as_slice()).is_some_and(|again| again == *one));
        let vers = one.option("vers").unwrap_or_default();
        assert!(one.shown_version().ends_with(vers));
        assert!(one.rsize_kib().is_none_or(|kib| kib <= u64::MAX / 1024));
        let of_device: Vec<_> = all.iter().filter(|mount| mount.dev == one.dev).cloned().collect();
        assert_eq!(mountinfo::parse(data, Some(one.dev)).unwrap(), of_device);
    }
    assert!(mountinfo::unescape(data).len() <= data.len());
    assert_eq!(mountinfo::unescape(&mangle(data)), data);
    assert_shown(&escape(data));
}

/// The line that the kernel would have made.
fn line(mount: &Mount) -> Vec<u8> {
    let kind = if mount.is_type_nfs4 { "nfs4" } else { "nfs" };
    let field = |bytes: &Option<Vec<u8>>| mangle(bytes.as_deref().unwrap());
    [
        format!("36 25 {} / ", mount.dev).into_bytes(),
        field(&mount.mount_point),
        format!(" rw shared:1 - {kind} ").into_bytes(),
        field(&mount.source),
        b" ".to_vec(),
        mount.super_options.clone(),
        b"\n".to_vec(),
    ]
    .concat()
}

/// kernel: fs/seq_file.c `mangle_path`.
fn mangle(path: &[u8]) -> Vec<u8> {
    let escaped = |b: &u8| match b {
        b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("\\{b:03o}").into_bytes(),
        _ => vec![*b],
    };
    path.iter().flat_map(escaped).collect()
}

/// What the mounts have done: read in pieces it is the same, and as metrics no text from outside leaves its quotes.
pub fn mountstats(data: &[u8]) {
    let stats = mountstats::parse(data).unwrap();
    let mut in_pieces = Vec::new();
    mountstats::each(BufReader::with_capacity(7, data), |mount| in_pieces.push(mount.clone())).unwrap();
    assert_eq!(stats, in_pieces);
    assert!(stats
        .iter()
        .all(|mount| mount.transports.len() <= 256 && mount.ops.len() <= 256));

    let table: Vec<Mount> = (0..).zip(&stats).map(|(minor, stats)| in_table(minor, stats)).collect();
    let mut series = BTreeSet::new();
    for line in metrics(&join(&stats, &table), &BTreeMap::new()).lines() {
        assert_shown(line);
        if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.bytes().all(|b| b.is_ascii_digit() || b == b'.'), "{line}");
            assert!(is_series(name), "{line}");
            assert!(series.insert(name.to_owned()), "{line} twice");
        }
    }
}

fn in_table(minor: u32, stats: &mountstats::Mount) -> Mount {
    Mount {
        dev: Dev {
            major: 0,
            minor: minor / 2,
        },
        super_options: [&stats.options[..], b",addr=192.0.2.10"].concat(),
        ..mount(&stats.mount_point, &stats.source)
    }
}

/// `name{label="value",label="value"}`
fn is_series(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let Some((name, mut labels)) = text.strip_suffix('}').and_then(|text| text.split_once('{')) else {
        return false;
    };
    while let Some((label, value)) = labels.split_once("=\"") {
        let mut is_escaped = false;
        let end = value.bytes().position(|b| {
            let ends = b == b'"' && !is_escaped;
            is_escaped = b == b'\\' && !is_escaped;
            ends
        });
        let Some(end) = end.filter(|_| is_name(label)) else {
            return false;
        };
        labels = &value[end + 1..];
        match labels.strip_prefix(',') {
            Some(more) => labels = more,
            None => break,
        }
    }
    is_name(name) && labels.is_empty()
}

/// The list of NFS superblocks: the first line that names a device is the answer for it.
pub fn nfsfs(data: &[u8]) {
    let mut seen = Vec::new();
    for line in data.split_inclusive(|b| *b == b'\n') {
        let Some(volume) = nfsfs::parse_line(line) else {
            continue;
        };
        if !seen.contains(&volume.dev) {
            seen.push(volume.dev);
            assert_eq!(nfsfs::find(data, volume.dev).unwrap(), Some(volume));
        }
    }
    let absent = (0..=u32::try_from(seen.len()).unwrap())
        .map(|minor| Dev { major: 0, minor })
        .find(|dev| !seen.contains(dev));
    assert_eq!(nfsfs::find(data, absent.unwrap()).unwrap(), None);
}

/// Tables of routes: a device that is answered is named in the table; and an address of a server is one line's.
pub fn route(data: &[u8]) {
    let names: Vec<&[u8]> = data.split(u8::is_ascii_whitespace).collect();
    let v4 = [0, 0x7f00_0001, u32::MAX].map(|to| route::ipv4_device(data, to.into()));
    let v6 = [0, 1, u128::MAX].map(|to| route::ipv6_device(data, to.into()));
    for device in v4.into_iter().chain(v6).flatten() {
        assert!(names.contains(&device.as_bytes()));
    }
    for line in data.split(|b| *b == b'\n') {
        if let Some(address) = nfsfs::parse_server(line) {
            assert!(line.len() >= 11, "{address}");
        }
    }
}

/// What is taken for a device is spelled as the kernel spells it.
pub fn device(data: &[u8]) {
    if let Some(dev) = Dev::parse(data) {
        assert_eq!(dev.to_string().as_bytes(), data);
        assert!(dev.major < 1 << 12 && dev.minor < 1 << 20);
    }
    if let Some((bytes, _)) = data.split_first_chunk() {
        let number = u32::from_ne_bytes(*bytes);
        let dev = Dev {
            major: number >> 20,
            minor: number & 0xf_ffff,
        };
        assert_eq!(Dev::parse(dev.to_string().as_bytes()), Some(dev));
    }
}

/// A udev rule file: rules stand in order, what is found can be printed, and a rule that is written out again is the same.
pub fn rules(data: &[u8]) {
    let rules = udev_rules::parse(data);
    let mut last_line = 0;
    for rule in &rules {
        assert!(last_line < rule.line && rule.line <= rule.last_line);
        last_line = rule.last_line;
        if rule.pairs.iter().all(|pair| is_writable(&pair.value)) && !rule.is_broken {
            let again = udev_rules::parse(&written(rule));
            assert_eq!(again.len(), 1);
            assert_eq!(again[0].pairs, rule.pairs);
        }
    }
    let mut found = Vec::new();
    rule_lint::lint(Path::new("/etc/udev/rules.d/x.rules"), &rules, &mut found);
    for found in &found {
        assert_shown(&found.to_string());
        assert!(rules.iter().any(|rule| Some(rule.line) == found.finding.line));
    }
}

/// Without need of an escape other than that of the quote.
fn is_writable(value: &[u8]) -> bool {
    !value.contains(&b'\\') && !value.contains(&b'\n')
}

fn written(rule: &udev_rules::Rule) -> Vec<u8> {
    // A key may begin with what begins a comment.
    let mut text = b",".to_vec();
    for pair in &rule.pairs {
        text.extend_from_slice(&pair.key);
        if let Some(attribute) = &pair.attribute {
            text.extend_from_slice(&[b"{", &attribute[..], b"}"].concat());
        }
        let op = match pair.op {
            Op::Match => "==",
            Op::NoMatch => "!=",
            Op::Add => "+=",
            Op::Remove => "-=",
            Op::Assign => "=",
            Op::Final => ":=",
        };
        text.extend_from_slice(op.as_bytes());
        text.push(b'"');
        for byte in &pair.value {
            if *byte == b'"' {
                text.push(b'\\');
            }
            text.push(*byte);
        }
        text.extend_from_slice(b"\", ");
    }
    text
}

/// The argument of a sub-section, a NUL, a mount point, a NUL, a source.
pub fn scope(data: &[u8]) {
    let (arg, rest) = part(data, 0);
    let (path, source) = part(rest, 0);
    let Some(scope) = Scope::parse(arg) else {
        return;
    };
    scope.detail();
    let at = mount(path, source);
    let covers = scope.covers(&at);
    if let Scope::Pattern(pattern) = &scope {
        assert_eq!(covers, is_matched(pattern, path));
    }
    // What holds for a mount holds for all below it.
    if covers {
        assert!(scope.covers(&mount(&[path, b"/x"].concat(), source)));
    }
}

/// The meaning of a pattern, without the cleverness: `**` is any number of parts, `*` any number of bytes.
fn is_matched(pattern: &[u8], path: &[u8]) -> bool {
    let parts = |path: &[u8]| -> Vec<Vec<u8>> {
        let parts = path.split(|b| *b == b'/').filter(|part| !part.is_empty());
        parts.map(<[u8]>::to_vec).collect()
    };
    let (pattern, path) = (parts(pattern), parts(path));
    let in_part = |pattern: &Vec<u8>, part: &Vec<u8>| {
        *prefixes(pattern, part, |b| *b == b'*', |p, b| *p == b'?' || p == b)
            .last()
            .unwrap()
    };
    prefixes(&pattern, &path, |part| part == b"**", in_part).contains(&true)
}

/// Which prefixes of the text the whole pattern matches, by the textbook's table.
fn prefixes<T>(pattern: &[T], text: &[T], is_any: impl Fn(&T) -> bool, is_one: impl Fn(&T, &T) -> bool) -> Vec<bool> {
    let mut row: Vec<bool> = (0..=text.len()).map(|i| i == 0).collect();
    for p in pattern {
        let before = row.clone();
        for i in 0..row.len() {
            row[i] = match is_any(p) {
                true => before[i] || (i > 0 && row[i - 1]),
                false => i > 0 && before[i - 1] && is_one(p, &text[i - 1]),
            };
        }
    }
    row
}

/// What is taken for a value is within bounds, and means the same when it is read back from what is shown.
pub fn value(data: &[u8]) {
    match Value::parse(data) {
        Ok(value) => {
            match value {
                Value::Kib(kib) => assert!(kib == 0 || (MIN_KIB..=MAX_KIB).contains(&kib)),
                Value::TimesRsize(n) => assert!((1..=MAX_FACTOR).contains(&n)),
                Value::Auto | Value::Leave => {}
            }
            assert_eq!(Value::parse(value.to_string().as_bytes()), Ok(value));
        }
        Err(why) => assert!(!why.is_empty()),
    }
}

fn mount(at: &[u8], source: &[u8]) -> Mount {
    Mount {
        dev: Dev { major: 0, minor: 51 },
        mount_point: Some(at.to_vec()),
        source: Some(source.to_vec()),
        super_options: b"rw,vers=4.2,rsize=1048576,addr=192.0.2.10".to_vec(),
        is_type_nfs4: true,
    }
}

/// One line that no terminal and no log takes for anything else.
fn assert_shown(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

fn part(data: &[u8], at: u8) -> (&[u8], &[u8]) {
    match data.iter().position(|b| *b == at) {
        Some(i) => (&data[..i], &data[i + 1..]),
        None => (data, b""),
    }
}

/// What is read as a ledger is written back as it was read, and names known knobs only.
pub fn ledger(data: &[u8]) {
    let path = std::path::Path::new("/run/nfstuned/state");
    if let Ok((boot, entries)) = nfsrahead::apply::ledger::parse(path, data) {
        let again = nfsrahead::apply::ledger::text(&boot, &entries);
        let (boot_again, entries_again) = nfsrahead::apply::ledger::parse(path, again.as_bytes()).unwrap();
        assert_eq!((boot, entries), (boot_again, entries_again));
    }
}

/// Files and the command line: a setting that is in force is one of those that were read.
pub fn sysctl(data: &[u8]) {
    let file: std::rc::Rc<std::path::Path> = std::path::Path::new("/etc/sysctl.d/x.conf").into();
    let settings = [
        nfsrahead::conf::sysctl::parse(data),
        nfsrahead::conf::sysctl::parse_cmdline(data),
    ]
    .concat();
    let settings: Vec<_> = settings.into_iter().map(|setting| (file.clone(), setting)).collect();
    for key in ["vm/dirty_ratio", "vm/dirty_background_bytes"] {
        if let Some((_, setting)) = nfsrahead::conf::sysctl::in_force(&settings, key.as_bytes()) {
            assert!(setting.value.is_some());
        }
    }
}

/// Lines that are named hold the key.
pub fn tuned_profile(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = nfsrahead::conf::tuned_profile::includes(&text);
    for name in ["dirty_ratio", "dirty_background_bytes"] {
        if let Some((line @ 1.., _)) = nfsrahead::conf::tuned_profile::setting(&text, name) {
            let at = usize::try_from(line).unwrap() - 1;
            assert!(text.lines().nth(at).unwrap().contains(name));
        }
    }
}

/// Answers over netlink: no length is trusted, and no more connections come out than their headers have room for.
pub fn netlink(data: &[u8]) {
    let mut found = Vec::new();
    nfsrahead::kernel::tcp::parse(data, &mut found);
    assert!(found.len() <= data.len() / 72);
    for socket in &found {
        assert!(socket.out_of_order.is_none() || socket.bytes_sent.is_some());
    }
    nfsrahead::kernel::route::parse_route(data);
    if let (Some(name), _) = nfsrahead::kernel::route::parse_link(data) {
        assert!(!name.contains('\0'));
    }
    for kind in [0, 2, 4] {
        let value = nfsrahead::kernel::netlink::attribute(data, kind).unwrap_or_default();
        assert!(value.len() <= data.len());
    }
}

/// What is remembered of clients, from any file: bounded, and good for going on.
pub fn history(data: &[u8]) {
    use nfsrahead::nconnect::live::window::{Facts, Window};
    use nfsrahead::nconnect::watch::Watch;
    use nfsrahead::state::history::Histories;

    let Ok(histories) = serde_json::from_slice::<Histories>(data) else {
        return;
    };
    let watch = Watch::new(histories.clients());
    let text = Histories::of(&watch).to_json();
    // A NaN is written as null, which is no number: none is left.
    let again: Histories = serde_json::from_slice(&text).unwrap();
    for (_, mut history) in again.clients() {
        let facts = Facts::default();
        for n in 0..20 {
            let window = Window {
                end_ms: n * 15_000,
                length_ms: 15_000,
                connections: 1,
                on_wire: 4.0,
                ..Window::default()
            };
            history.add(&window, &facts);
        }
        assert_eq!(history.busy(), 10);
        for verdict in [history.verdict(300_000, &facts), history.impression(300_000, &facts)] {
            assert!(verdict.is_none_or(|verdict| (0.0..=1.0).contains(&verdict.confidence)));
        }
    }
}

/// The book of advice, from any file: a busy interval is taken in, and what is written is read again.
pub fn book(data: &[u8]) {
    use nfsrahead::state::advice::{Book, Busy};

    let Ok(mut book) = serde_json::from_slice::<Book>(data) else {
        return;
    };
    let clients: Vec<String> = book.given.values().map(|given| given.client.clone()).collect();
    let busy = Busy {
        length_ms: 15_000,
        bytes_per_s: 1e9,
        usual_bytes_per_s: 5e8,
    };
    for client in clients {
        for connections in [1, 4] {
            book.judge(&client, connections, &busy, 1_700_000_000);
        }
    }
    assert!(book.trials().all(|(_, hours)| hours >= 0.0));
    let again: Book = serde_json::from_slice(&book.to_json()).unwrap();
    assert_eq!(again.muted, book.muted);
}
