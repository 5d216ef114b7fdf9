//! What is wrong with one udev rule that has to do with readahead.

use std::path::Path;

use super::finding::Found;
use super::udev_rules::{Pair, Rule};
use super::udev_scope::Conditions;
use crate::report::escape::escape;

/// The attribute, of a backing device and of a disk; a disk's folder has its backing device's as well.
const ATTRIBUTE: &[u8] = b"read_ahead_kb";
const OF_DISK: &[u8] = b"bdi/read_ahead_kb";
/// Where hand-made rules look whether a device is NFS.
const VOLUMES: &[u8] = b"nfsfs/volumes";
pub const HELPER: &[u8] = b"nfsrahead";

/// The assignment of the readahead of the device that the rule is about.
pub fn assignment(rule: &Rule) -> Option<&Pair> {
    let is_ours = |pair: &&Pair| is_attribute(pair, ATTRIBUTE);
    rule.pairs.iter().rfind(is_ours)
}

fn is_attribute(pair: &Pair, name: &[u8]) -> bool {
    pair.is("ATTR") && !pair.is_match() && pair.attribute.as_deref() == Some(name)
}

/// The commands that the rule starts.
pub fn commands(rule: &Rule) -> impl Iterator<Item = &Pair> {
    let is_command = |pair: &&Pair| {
        let key = (&pair.key[..], pair.attribute.as_deref());
        matches!(
            key,
            (b"PROGRAM", _) | (b"IMPORT" | b"RUN", Some(b"program")) | (b"RUN", None)
        )
    };
    rule.pairs.iter().filter(is_command)
}

/// The program of a command: its first word.
pub fn program(command: &[u8]) -> &[u8] {
    let command = command.trim_ascii_start();
    let (text, end) = match command.strip_prefix(b"'") {
        Some(quoted) => (quoted, quoted.iter().position(|b| *b == b'\'')),
        None => (command, command.iter().position(u8::is_ascii_whitespace)),
    };
    &text[..end.unwrap_or(text.len())]
}

/// Is the program `nfsrahead`, wherever it is?
pub fn is_helper(command: &[u8]) -> bool {
    program(command).rsplit(|b| *b == b'/').next() == Some(HELPER)
}

/// Does it read, set or talk of the readahead of NFS?
pub fn is_about_readahead(rule: &Rule) -> bool {
    let says = |text: &[u8]| [ATTRIBUTE, VOLUMES, HELPER].iter().any(|word| contains(text, word));
    let is_about = |pair: &Pair| says(&pair.value) || says(pair.attribute.as_deref().unwrap_or_default());
    says(&rule.unread) || rule.pairs.iter().any(is_about)
}

/// Does the command write the attribute itself?
pub fn writes_attribute(command: &[u8]) -> bool {
    contains(command, ATTRIBUTE)
}

pub fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// All that is wrong with the rules of one file.
pub fn lint(file: &Path, rules: &[Rule], found: &mut Vec<Found>) {
    for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| is_about_readahead(rule)) {
        let line = Some(rule.line);
        if rule.is_broken {
            let text = "udev ignores this rule: a key, an operator or a quote is missing".to_owned();
            found.push(Found::warning("broken-rule", file, line, text));
            continue;
        }
        let conditions = Conditions::of(rules, index);
        if conditions.is_empty() {
            if let Some(set) = rule
                .pairs
                .iter()
                .find(|pair| is_attribute(pair, ATTRIBUTE) || is_attribute(pair, OF_DISK))
            {
                let text = every_device(set, &stray_parts(rules, index));
                found.push(Found::error("every-device", file, line, text));
            }
        }
        if conditions.may_be_nfs() {
            substitutions(file, rule, found);
            awk(file, rule, found);
        }
    }
}

fn every_device(set: &Pair, parts: &[&Rule]) -> String {
    let attribute = escape(set.attribute.as_deref().unwrap_or_default());
    let text = format!(
        "sets {attribute} of every device that has it to {}: the rule has no match part",
        escape(&set.value)
    );
    if parts.is_empty() {
        return text;
    }
    let name = |rule: &&Rule| {
        let keys: Vec<_> = rule.pairs.iter().map(|pair| escape(&pair.key)).collect();
        format!("line {} ({})", rule.line, keys.join(", "))
    };
    let parts: Vec<_> = parts.iter().map(name).collect();
    format!(
        "{text}; {} before it set nothing, for a line goes on only after a backslash at its end",
        parts.join(", ")
    )
}

/// The rules right before this one that only match: meant as its beginning.
fn stray_parts(rules: &[Rule], index: usize) -> Vec<&Rule> {
    let mut parts = Vec::new();
    let mut next = &rules[index];
    for rule in rules[..index].iter().rev() {
        let is_part = rule.last_line + 1 == next.line && !rule.is_broken && rule.pairs.iter().all(Pair::is_match);
        if !is_part {
            break;
        }
        parts.insert(0, rule);
        next = rule;
    }
    parts
}

/// udev knows `$name`, `%c` and `$$`; awk's `$4` must be `$$4`.
fn substitutions(file: &Path, rule: &Rule, found: &mut Vec<Found>) {
    for pair in &rule.pairs {
        let mut rest = &pair.value[..];
        while let Some(at) = rest.iter().position(|b| *b == b'$') {
            rest = &rest[at + 1..];
            match rest.first() {
                Some(b'$') => rest = &rest[1..],
                Some(digit) if digit.is_ascii_digit() => {
                    let digit = char::from(*digit);
                    let text = format!(
                        "{}: ${digit} is no substitution of udev; it must be $${digit}",
                        escape(&pair.key)
                    );
                    found.push(Found::warning("substitution", file, Some(rule.line), text));
                    break;
                }
                _ => {}
            }
        }
    }
}

/// A rule that sets what awk says yes to.
fn awk(file: &Path, rule: &Rule, found: &mut Vec<Found>) {
    let is_awk = |pair: &&Pair| pair.is("PROGRAM") && program(&pair.value).ends_with(b"awk");
    let (Some(awk), true) = (rule.pairs.iter().find(is_awk), assignment(rule).is_some()) else {
        return;
    };
    let exits: Vec<&[u8]> = awk
        .value
        .windows(4)
        .enumerate()
        .filter(|(_, word)| word == b"exit")
        .map(|(at, _)| awk.value[at + 4..].trim_ascii_start())
        .collect();
    let is_zero = |exit: &&[u8]| exit.starts_with(b"0") && !exit.get(1).is_some_and(u8::is_ascii_alphanumeric);
    let line = Some(rule.line);
    if !exits.is_empty() && exits.iter().all(is_zero) {
        let text = "its awk exits 0 whatever the device, so every device is set".to_owned();
        found.push(Found::error("always-true", file, line, text));
    } else if contains(&awk.value, VOLUMES) {
        let text = "starts awk for each backing device, and does not see mounts of other network namespaces".to_owned();
        found.push(Found::note("awk-per-device", file, line, text));
    }
}

#[cfg(test)]
mod tests {
    use super::super::udev_rules::parse;
    use super::*;

    fn kinds(text: &str) -> Vec<(&'static str, Option<u32>)> {
        let mut found = Vec::new();
        lint(Path::new("/r"), &parse(text.as_bytes()), &mut found);
        found
            .iter()
            .map(|found| (found.finding.kind, found.finding.line))
            .collect()
    }

    #[test]
    fn what_is_wrong_and_what_is_not() {
        for (text, expected) in [
            ("ATTR{read_ahead_kb}=\"1\"", &[("every-device", Some(1))][..]),
            ("ATTR{bdi/read_ahead_kb}=\"1\"", &[("every-device", Some(1))]),
            ("ATTR{read_ahead_kb}==\"1\", KERNEL==\"0:1\"", &[]),
            ("KERNEL==\"sd*\", PROGRAM=\"x $1\", ATTR{read_ahead_kb}=\"1\"", &[]),
            (
                "KERNEL==\"0:*\", PROGRAM=\"x $$1 $kernel\", ATTR{read_ahead_kb}=\"1\"",
                &[],
            ),
            (
                "KERNEL==\"0:*\", PROGRAM=\"x $$$1\", ATTR{read_ahead_kb}=\"1\"",
                &[("substitution", Some(1))],
            ),
            ("KERNEL==\"0:*\", ATTR{read_ahead_kb}=\"1", &[("broken-rule", Some(1))]),
            (
                "KERNEL==\"0:*\", PROGRAM=\"awk '{exit 0} END{exit 01}'\", ATTR{read_ahead_kb}=\"1\"",
                &[],
            ),
            (
                "KERNEL==\"0:*\", PROGRAM=\"awk '{exit 0;exit 0}'\", ATTR{read_ahead_kb}=\"1\"",
                &[("always-true", Some(1))],
            ),
            (
                "SUBSYSTEM!=\"bdi\", GOTO=\"e\"\nATTR{read_ahead_kb}=\"1\"\nLABEL=\"e\"",
                &[],
            ),
        ] {
            assert_eq!(kinds(text), expected, "{text}");
        }
    }

    #[test]
    fn the_first_word_is_the_program() {
        assert!(is_helper(b"/usr/libexec/nfsrahead %k"));
        assert!(is_helper(b"'/opt/a b/nfsrahead' x"));
        assert!(is_helper(b" nfsrahead"));
        assert!(!is_helper(b"/bin/sh -c nfsrahead"));
        assert!(!is_helper(b"/usr/libexec/nfsrahead2"));
    }
}
