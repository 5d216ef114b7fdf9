//! What must hold for any input: parsers of what others write, and the decision made of it.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;

use nfsrahead::conf::grammar::{self, Item};
use nfsrahead::conf::policy::Policy;
use nfsrahead::conf::scope::Scope;
use nfsrahead::conf::value::{Value, MAX_FACTOR, MAX_KIB, MIN_KIB};
use nfsrahead::conf::{fstab, Assignment, Conf, Location};
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::kernel::mountinfo::{self, unescape, Mount, Version};
use nfsrahead::kernel::nfsfs;
use nfsrahead::kernel::vm::Memory;
use nfsrahead::readahead::decide::{decide, Action, Device, Machine};
use nfsrahead::report::escape::escape;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// Any bytes, but more of those that mean something to the parsers.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let telling = select(b" \n\t\\0123456789:-,=/[]\"#$*?nfsrize".to_vec());
    vec(prop_oneof![3 => telling, 1 => any::<u8>()], 0..200)
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    bytes().prop_map(|text| text.into_iter().filter(|b| *b != b'\n').collect())
}

fn dev() -> impl Strategy<Value = Dev> {
    (0..1u32 << 12, 0..1u32 << 20).prop_map(|(major, minor)| Dev { major, minor })
}

/// As the kernel writes a path: blank, tab, newline, backslash and # as `\ooo`.
fn mangled(path: &[u8]) -> Vec<u8> {
    let byte = |b: &u8| match b {
        b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("\\{b:03o}").into_bytes(),
        _ => vec![*b],
    };
    path.iter().flat_map(byte).collect()
}

proptest! {
    #[test]
    fn a_device_is_what_the_kernel_prints(dev in dev()) {
        prop_assert_eq!(Dev::parse(dev.to_string().as_bytes()), Some(dev));
    }

    #[test]
    fn nothing_else_is_a_device(text in "[0-9:+ -]{0,12}") {
        if let Some(dev) = Dev::parse(text.as_bytes()) {
            prop_assert_eq!(dev.to_string(), text);
        }
    }

    #[test]
    fn a_number_past_its_bits_is_no_device(major in 0..u64::MAX, minor in 0..u64::MAX) {
        let fits = major < 1 << 12 && minor < 1 << 20;
        prop_assert_eq!(Dev::parse(format!("{major}:{minor}").as_bytes()).is_some(), fits);
        let past = (1u64 << 20) + minor % 5;
        prop_assert_eq!(Dev::parse(format!("0:{past}").as_bytes()), None);
    }

    /// The mount is found between any lines, whatever its path and however many tags stand before the dash.
    #[test]
    fn a_mount_is_found_in_any_table(
        before in vec(line(), 0..10),
        after in vec(line(), 0..10),
        dev in dev(),
        path in vec(1..=u8::MAX, 0..40),
        tags in vec("(shared|master|unknown):[0-9]{1,3}", 0..4),
        is_type_nfs4: bool,
    ) {
        let mut wanted: Vec<u8> = format!("40 22 {dev} /").into_bytes();
        let place = [b"/", &path[..]].concat();
        wanted.extend([&b" "[..], &mangled(&place), b" rw,relatime"].concat());
        for tag in &tags {
            wanted.extend(format!(" {tag}").bytes());
        }
        wanted.extend(if is_type_nfs4 { &b" - nfs4"[..] } else { b" - nfs" });
        wanted.extend(b" filer1:/x rw,rsize=65536");
        let mount = Mount {
            dev,
            mount_point: Some(place),
            source: Some(b"filer1:/x".to_vec()),
            super_options: b"rw,rsize=65536".to_vec(),
            is_type_nfs4,
        };
        let lines: Vec<&[u8]> = before.iter().map(Vec::as_slice).chain([&wanted[..]]).chain(after.iter().map(Vec::as_slice)).collect();
        let text = lines.join(&b'\n');
        let found = mountinfo::parse(&text[..], Some(dev)).unwrap();
        prop_assert!(found.contains(&mount), "{found:?}");
        let of_dev: Vec<Mount> = mountinfo::parse(&text[..], None).unwrap().into_iter().filter(|m| m.dev == dev).collect();
        prop_assert_eq!(found, of_dev);
    }

    #[test]
    fn any_bytes_are_read_to_their_end(text in bytes()) {
        for mount in mountinfo::parse(&text[..], None).unwrap() {
            let _ = (mount.version(), mount.rsize_kib(), mount.shown_version().into_owned());
        }
        for line in text.split(|b| *b == b'\n') {
            let _ = (mountinfo::parse_line(line), nfsfs::parse_line(line), unescape(line), Scope::parse(line));
        }
        let lines = text.split(|b| *b == b'\n').count();
        for entry in fstab::parse(&text) {
            prop_assert!((1..=lines).contains(&usize::try_from(entry.line).unwrap()));
        }
        let _ = policy(&text);
    }

    /// The superblock is found between any lines that do not name its number.
    #[test]
    fn a_volume_is_found_in_any_list(before in vec(line(), 0..10), dev in dev(), version in select(vec!["v2", "v3", "v4"])) {
        let other = |line: &Vec<u8>| nfsfs::parse_line(line).is_none_or(|volume| volume.dev != dev);
        prop_assume!(before.iter().all(other));
        let mut text = before.join(&b'\n');
        text.extend(format!("\n{version} c000020a  801 {dev:<12} 0:0   no \n", dev = dev.to_string()).bytes());
        let found = nfsfs::find(&text[..], dev).unwrap().unwrap();
        prop_assert_eq!(found.version, if version == "v4" { Version::V4 } else { Version::V3 });
    }

    #[test]
    fn an_escaped_text_is_one_line_and_comes_back(text in vec(any::<u8>(), 0..100)) {
        let escaped = escape(&text);
        prop_assert!(!escaped.chars().any(char::is_control), "{escaped:?}");
        prop_assert_eq!(&*unescape(escaped.as_bytes()), &text[..]);
    }

    #[test]
    fn an_escaped_text_of_letters_is_itself(text in "[a-zA-Z0-9 /:._üß日🦀-]{0,40}") {
        prop_assert_eq!(escape(&text), text);
    }

    #[test]
    fn a_path_of_the_kernel_comes_back(path in vec(any::<u8>(), 0..100)) {
        let mangled = mangled(&path);
        prop_assert_eq!(&*unescape(&mangled), &path[..]);
    }

    #[test]
    fn a_value_is_within_its_bounds(text in value_text()) {
        match Value::parse(text.as_bytes()) {
            Ok(value @ Value::Kib(kib)) => {
                prop_assert!(kib == 0 || (MIN_KIB..=MAX_KIB).contains(&kib));
                // 0 is never what is left of something else.
                prop_assert_eq!(kib == 0, text.trim().trim_end_matches(['k', 'K', 'm', 'M']).bytes().all(|b| b == b'0'));
                prop_assert_eq!(Value::parse(value.to_string().as_bytes()), Ok(value));
            }
            Ok(value @ Value::TimesRsize(n)) => {
                prop_assert!((1..=MAX_FACTOR).contains(&n));
                prop_assert_eq!(Value::parse(value.to_string().as_bytes()), Ok(value));
            }
            Ok(Value::Auto) => prop_assert!(text.trim().eq_ignore_ascii_case("auto")),
            Ok(Value::Leave) => prop_assert!(text.trim().eq_ignore_ascii_case("leave")),
            Err(why) => prop_assert!(!why.is_empty()),
        }
    }
}

fn value_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,6}[kKmM]?",
        "[ 0-9kKmM*+.x-]{0,8}",
        "[0-9]{0,5} ?\\* ?(rsize|RSIZE|wsize)",
        "(auto|AUTO|leave|Leave|rsize)",
        any::<u64>().prop_map(|n| n.to_string()),
    ]
}

/// A server as people and the kernel spell it, and what is the same in it.
const SERVERS: &[(&str, &str)] = &[
    ("filer1", "filer1"),
    ("FILER1", "filer1"),
    ("filer10", "filer10"),
    ("192.0.2.10", "192.0.2.10"),
    ("192.0.2.1", "192.0.2.1"),
    ("2001:db8::1", "2001:db8::1"),
    ("[2001:db8::1]", "2001:db8::1"),
    ("2001:DB8:0::1", "2001:db8::1"),
];

/// Few letters, so that things match.
fn parts(letters: &'static str, most: usize) -> impl Strategy<Value = Vec<String>> {
    let part = vec(select(letters.chars().collect::<Vec<_>>()), 1..4).prop_map(String::from_iter);
    vec(part, 0..most)
}

fn path_of(parts: &[String]) -> String {
    format!("/{}", parts.join("/"))
}

/// Written down as it is said: a pattern takes in what it matches and all below.
fn reference_matches(pattern: &[String], path: &[String]) -> bool {
    (0..=path.len()).any(|n| reference_whole(pattern, &path[..n]))
}

fn reference_whole(pattern: &[String], path: &[String]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some((any, rest)) if any == "**" => (0..=path.len()).any(|n| reference_whole(rest, &path[n..])),
        Some((one, rest)) => path.split_first().is_some_and(|(first, below)| {
            reference_part(one.as_bytes(), first.as_bytes()) && reference_whole(rest, below)
        }),
    }
}

fn reference_part(pattern: &[u8], part: &[u8]) -> bool {
    match pattern.split_first() {
        None => part.is_empty(),
        Some((b'*', rest)) => (0..=part.len()).any(|n| reference_part(rest, &part[n..])),
        Some((one, rest)) => {
            let first = part.split_first();
            first.is_some_and(|(b, below)| (*one == b'?' || one == b) && reference_part(rest, below))
        }
    }
}

fn mount(at: &str, source: &str, options: &str) -> Mount {
    Mount {
        dev: Dev { major: 0, minor: 51 },
        mount_point: Some(at.into()),
        source: Some(source.into()),
        super_options: options.into(),
        is_type_nfs4: true,
    }
}

proptest! {
    #[test]
    fn mount_points_and_patterns_match_as_said(scope in parts("ab*?", 5), at in parts("ab", 6)) {
        let parsed = Scope::parse(path_of(&scope).as_bytes()).unwrap();
        prop_assert_eq!(parsed.covers(&mount(&path_of(&at), "h:/x", "")), reference_matches(&scope, &at));
    }

    #[test]
    fn exports_and_servers_match_as_said(
        wanted in select(SERVERS),
        mounted in select(SERVERS),
        addr in select(SERVERS),
        export in proptest::option::of(parts("ab", 4)),
        source in parts("ab", 5),
    ) {
        let arg = wanted.0.to_owned() + ":" + &export.as_ref().map_or_else(String::new, |parts| path_of(parts));
        let mount = mount("/m", &format!("{}:{}", mounted.0, path_of(&source)), &format!("rw,addr={}", addr.1));
        let is_address = wanted.1.parse::<IpAddr>().is_ok();
        let is_server = wanted.1 == mounted.1 || is_address && wanted.1 == addr.1;
        let is_below = export.is_none_or(|export| source.starts_with(&export));
        prop_assert_eq!(Scope::parse(arg.as_bytes()).unwrap().covers(&mount), is_server && is_below, "{}", arg);
    }
}

fn policy(text: &[u8]) -> Policy {
    let file: Rc<Path> = Path::new("/etc/nfs.conf").into();
    let mut conf = Conf::default();
    grammar::parse(text, None, &mut |item| {
        if let Item::Assign {
            section,
            arg,
            tag,
            value,
            line,
        } = item
        {
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
        }
    });
    Policy::new(&conf, b"", &|_| None)
}

/// Sections of a file, each once, in an order of their own.
fn sections() -> impl Strategy<Value = Vec<String>> {
    const NAMES: &[&str] = &[
        "",
        "/a",
        "/a/b",
        "/a/*",
        "/*/b",
        "/**",
        "/",
        "filer1:",
        "192.0.2.10:",
        "filer1:/x",
        "filer1:/x/y",
        "nonsense",
    ];
    let names = subsequence(NAMES, 0..NAMES.len()).prop_shuffle();
    let key = (select(vec!["nfs", "nfs4", "default"]), value_text());
    (names, vec(vec(key, 1..4), NAMES.len())).prop_map(|(names, keys)| {
        let section = |(name, keys): (&str, Vec<(&str, String)>)| {
            let head = if name.is_empty() {
                "[nfsrahead]\n".to_owned()
            } else {
                format!("[nfsrahead \"{name}\"]\n")
            };
            keys.into_iter()
                .fold(head, |text, (key, value)| text + &format!("{key} = {value}\n"))
        };
        names.into_iter().zip(keys).map(section).collect()
    })
}

fn mounts() -> impl Strategy<Value = Vec<Mount>> {
    let at = select(vec!["/", "/a", "/a/b", "/a/b/c", "/c/b", "/ab"]);
    let source = select(vec!["filer1:/x", "filer1:/x/y/z", "filer2:/x", "none"]);
    let options = select(vec![
        "rw,vers=4.2,rsize=1048576,addr=192.0.2.10",
        "rw,vers=4.1,rsize=4096,nconnect=8",
        "rw",
        "rw,rsize=0",
        "rw,rsize=18446744073709551615",
    ]);
    vec(
        (at, source, options).prop_map(|(at, source, options)| mount(at, source, options)),
        0..4,
    )
}

fn machine() -> impl Strategy<Value = Machine> {
    let memory = proptest::option::of(
        (0..u64::MAX, 0..u64::MAX).prop_map(|(total_kib, available_kib)| Memory {
            total_kib,
            available_kib,
        }),
    );
    (select(vec![4, 16, 64]), memory, any::<bool>()).prop_map(|(page_kib, memory, is_cloud)| Machine {
        page_kib,
        memory,
        is_cloud,
    })
}

proptest! {
    /// Whole pages within the bounds, 0 only where 0 was asked for, the same again, and hands off where nothing is said.
    #[test]
    fn a_decision_is_within_its_bounds(
        sections in sections(),
        mounts in mounts(),
        machine in machine(),
        now_kib in proptest::option::of(select(vec![0, 128, 15360, 1024, u64::MAX])),
        version in select(vec![Version::V3, Version::V4]),
    ) {
        let text = sections.concat();
        let policy = policy(text.as_bytes());
        let device = Device { version, mounts: &mounts, now_kib, measured: None };
        let decision = decide(&policy, &device, &machine);
        prop_assert_eq!(&decision, &decide(&policy, &device, &machine));
        prop_assert!(!decision.reason.is_empty());
        if let Action::Set(kib) = decision.action {
            prop_assert!(!policy.is_empty());
            prop_assert!(kib <= MAX_KIB, "{kib}");
            prop_assert_eq!(kib % machine.page_kib, 0);
            let all = policy.rules.iter().map(|rule| &rule.keys).chain([&policy.by_version]);
            let mut wishes = all.flat_map(|keys| [&keys.nfs, &keys.nfs4, &keys.default]).flatten();
            let is_asked = wishes.any(|wish| wish.value == Value::Kib(0));
            prop_assert!(kib > 0 || is_asked, "{decision:?}");
        }
    }

    /// What stands first in the file is no stronger for it.
    #[test]
    fn the_order_of_sections_does_not_matter(sections in sections(), turn in any::<usize>(), mounts in mounts(), machine in machine()) {
        let mut turned = sections.clone();
        turned.rotate_left(turn % sections.len().max(1));
        turned.reverse();
        let (one, other) = (policy(sections.concat().as_bytes()), policy(turned.concat().as_bytes()));
        for version in [Version::V3, Version::V4] {
            for mount in &mounts {
                let wish = |policy: &Policy| policy.wish_for(mount, version).map(|(kind, wish)| (kind, wish.value, wish.rule.clone()));
                prop_assert_eq!(wish(&one), wish(&other));
            }
            let device = Device { version, mounts: &mounts, now_kib: Some(128) , measured: None};
            prop_assert_eq!(decide(&one, &device, &machine).action, decide(&other, &device, &machine).action);
            prop_assert_eq!(one.needs_mount(version), other.needs_mount(version));
        }
    }
}

#[test]
fn an_empty_policy_sets_nothing() {
    let mounts = [mount("/a", "filer1:/x", "rw,vers=4.2,rsize=1048576")];
    for text in [
        "",
        "[nfsrahead]\n",
        "[nfsrahead]\nwait=3\n",
        "[nfsrahead \"/a\"]\nnfs4=x\n",
        "[other]\nnfs4=512\n",
    ] {
        let policy = policy(text.as_bytes());
        assert!(policy.is_empty(), "{text}");
        let machine = Machine {
            page_kib: 4,
            memory: None,
            is_cloud: true,
        };
        let device = Device {
            version: Version::V4,
            mounts: &mounts,
            now_kib: Some(128),
            measured: None,
        };
        assert_eq!(decide(&policy, &device, &machine).action, Action::Leave, "{text}");
    }
}
