//! What nfs.conf wants of the daemon: `[nfstuned]` and its sub-sections.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use crate::conf::policy::{Environment, Problem, ProblemKind};
use crate::conf::scope::Scope;
use crate::conf::section::{boolean, Section};
use crate::conf::{Assignment, Conf, Location};
use crate::decimal::decimal;
use crate::kernel::mountinfo::Mount;
use crate::report::escape::escape;

/// The section of nfs.conf.
pub const SECTION: &[u8] = b"nfstuned";

/// Seconds between samples.
const INTERVAL_S: std::ops::RangeInclusive<u64> = 5..=300;
const INTERVAL_DEFAULT_S: u64 = 15;
/// Milliseconds of data that a mount may hold dirty.
const DRAIN_TARGET_MS: std::ops::RangeInclusive<u64> = 200..=30_000;
const DRAIN_TARGET_DEFAULT_MS: u64 = 2_000;
/// Seconds after its making in which a mount gets no limit.
const SETTLE_MAX_S: u64 = 3600;
const SETTLE_DEFAULT_S: u64 = 600;
/// Bytes of a limit that an admin may ask for: the smallest never pauses a writer of 1 MiB calls at every call.
const LIMIT_BYTES: std::ops::RangeInclusive<u64> = 4 << 20..=1 << 40;

/// Everything that was said to the daemon.
#[derive(Debug, PartialEq)]
pub struct Tuned {
    pub interval_s: u64,
    pub apply: Apply,
    pub drain_target_ms: u64,
    pub settle_s: u64,
    /// Strongest first.
    pub limits: Vec<LimitRule>,
    pub debug: bool,
    pub problems: Vec<Problem>,
}

/// What may be written. Nothing by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Apply {
    pub readahead: bool,
    pub bdi: bool,
    pub vm: bool,
}

/// A sub-section with a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitRule {
    pub scope: Scope,
    pub limit: DirtyLimit,
    /// As in the file: `[nfstuned "filer1:/export/scratch"]`.
    pub title: String,
    pub at: Location,
}

/// `dirty-limit`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirtyLimit {
    /// By the measured rate of the server.
    Auto,
    Leave,
    Bytes(u64),
}

impl fmt::Display for LimitRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} dirty-limit", self.at, self.title)
    }
}

impl DirtyLimit {
    /// Err: what is wrong, for people, without the text itself.
    pub fn parse(text: &[u8]) -> Result<DirtyLimit, &'static str> {
        let text = text.trim_ascii();
        if text.eq_ignore_ascii_case(b"auto") {
            return Ok(DirtyLimit::Auto);
        }
        if text.eq_ignore_ascii_case(b"leave") {
            return Ok(DirtyLimit::Leave);
        }
        let shift = match text.last() {
            Some(b'K' | b'k') => 10,
            Some(b'M' | b'm') => 20,
            Some(b'G' | b'g') => 30,
            _ => return Err("must be an amount with its unit, such as 64M or 1G, or auto or leave"),
        };
        match decimal(&text[..text.len() - 1]).map(|n| n.checked_mul(1 << shift)) {
            Some(Some(bytes)) if LIMIT_BYTES.contains(&bytes) => Ok(DirtyLimit::Bytes(bytes)),
            Some(_) => Err("must be from 4M to 1024G"),
            None => Err("must be a whole amount with its unit, such as 64M or 1G, or auto or leave"),
        }
    }
}

impl Tuned {
    pub fn new(conf: &Conf, environment: Environment) -> Tuned {
        let mut section = Section::new(conf, SECTION, environment);
        let mut tuned = Tuned {
            interval_s: INTERVAL_DEFAULT_S,
            apply: Apply::default(),
            drain_target_ms: DRAIN_TARGET_DEFAULT_MS,
            settle_s: SETTLE_DEFAULT_S,
            limits: Vec::new(),
            debug: false,
            problems: Vec::new(),
        };
        // None: the argument names nothing, which was said once.
        let mut scopes: BTreeMap<&[u8], Option<Scope>> = BTreeMap::new();
        for assignment in section.in_force() {
            match assignment.arg.as_deref() {
                None => tuned.plain(&mut section, assignment),
                Some(arg) => {
                    let scope = scopes.entry(arg).or_insert_with(|| section.scope(arg, assignment));
                    if let Some(scope) = scope {
                        tuned.limits.extend(limit(&mut section, arg, scope, assignment));
                    }
                }
            }
        }
        tuned
            .limits
            .sort_by_key(|rule| (rule.scope.kind(), Reverse(rule.scope.detail())));
        tuned.problems = section.problems;
        tuned
    }

    /// The strongest rule for this mount.
    pub fn limit_for(&self, mount: &Mount) -> Option<&LimitRule> {
        self.limits.iter().find(|rule| rule.scope.covers(mount))
    }

    fn plain(&mut self, section: &mut Section, assignment: &Assignment) {
        match assignment.tag.to_ascii_lowercase().as_slice() {
            b"interval" => match section.number(assignment).filter(|s| INTERVAL_S.contains(s)) {
                Some(seconds) => self.interval_s = seconds,
                None => section.bad(assignment, "must be a whole number of seconds from 5 to 300"),
            },
            b"settle" => match section.number(assignment).filter(|s| *s <= SETTLE_MAX_S) {
                Some(seconds) => self.settle_s = seconds,
                None => section.bad(assignment, "must be a whole number of seconds from 0 to 3600"),
            },
            b"drain-target" => {
                let text = section.text(assignment).unwrap_or_default();
                match milliseconds(text.trim_ascii()).filter(|ms| DRAIN_TARGET_MS.contains(ms)) {
                    Some(ms) => self.drain_target_ms = ms,
                    None => section.bad(assignment, "must be seconds from 0.2 to 30"),
                }
            }
            b"apply" => {
                let text = section.text(assignment).unwrap_or_default();
                self.apply = Apply::default();
                let words = text
                    .split(|b| matches!(b, b',' | b' ' | b'\t'))
                    .filter(|word| !word.is_empty());
                for word in words {
                    match word.to_ascii_lowercase().as_slice() {
                        b"readahead" => self.apply.readahead = true,
                        b"bdi" => self.apply.bdi = true,
                        b"vm" => self.apply.vm = true,
                        _ => {
                            let why = format!("{} is none of readahead, bdi and vm", escape(word));
                            section.bad(assignment, &why);
                        }
                    }
                }
            }
            // nfs.conf(5) has it for every program: 0, or names of facilities. Here there is one.
            b"debug" => {
                let text = section.text(assignment).unwrap_or_default();
                self.debug = boolean(&text) != Some(false) && !text.eq_ignore_ascii_case(b"none");
            }
            _ => {
                let text = format!("unknown key {}", escape(&assignment.tag));
                section.problem(&assignment.at, ProblemKind::UnknownKey, text);
            }
        }
    }
}

fn limit(section: &mut Section, arg: &[u8], scope: &Scope, assignment: &Assignment) -> Option<LimitRule> {
    if !assignment.tag.eq_ignore_ascii_case(b"dirty-limit") {
        let text = format!("unknown key {}", escape(&assignment.tag));
        section.problem(&assignment.at, ProblemKind::UnknownKey, text);
        return None;
    }
    match DirtyLimit::parse(&section.text(assignment)?) {
        Ok(limit) => Some(LimitRule {
            scope: scope.clone(),
            limit,
            title: section.title(arg),
            at: assignment.at.clone(),
        }),
        Err(why) => {
            section.bad(assignment, why);
            None
        }
    }
}

/// Seconds with up to three decimals.
fn milliseconds(text: &[u8]) -> Option<u64> {
    let (whole, part) = match text.iter().position(|b| *b == b'.') {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &b"0"[..]),
    };
    let digits = u32::try_from(part.len()).ok().filter(|n| (1..=3).contains(n))?;
    let thousandths = decimal(part)?.checked_mul(10u64.pow(3 - digits))?;
    decimal(whole)?.checked_mul(1000)?.checked_add(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_in_any_form() {
        for (text, ms) in [
            ("2", 2000),
            ("0.2", 200),
            ("30", 30_000),
            ("1.25", 1250),
            ("007.5", 7500),
        ] {
            assert_eq!(milliseconds(text.as_bytes()), Some(ms), "{text}");
        }
        for bad in [
            "",
            ".",
            "1.",
            ".5",
            "1.2345",
            "-1",
            "1e3",
            "99999999999999999999",
            "18446744073709551615",
        ] {
            assert_eq!(milliseconds(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_limit_has_a_unit_and_bounds() {
        for (text, limit) in [
            ("64M", DirtyLimit::Bytes(64 << 20)),
            ("4096K", DirtyLimit::Bytes(4 << 20)),
            ("1024g", DirtyLimit::Bytes(1 << 40)),
            (" auto ", DirtyLimit::Auto),
            ("LEAVE", DirtyLimit::Leave),
        ] {
            assert_eq!(DirtyLimit::parse(text.as_bytes()), Ok(limit), "{text}");
        }
        for bad in [
            "",
            "M",
            "64",
            "3M",
            "1025G",
            "64 M",
            "64MB",
            "0M",
            "99999999999999999999G",
        ] {
            assert!(DirtyLimit::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
