//! What nfs.conf and fstab want for a mount: `[nfsrahead]`, its sub-sections, and the fstab option.
//!
//! Building a policy never fails. What cannot be used is a [`Problem`] with file and line, and the next source is used.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use crate::conf::fstab;
use crate::conf::scope::{Kind, Scope};
use crate::conf::section::{boolean, Section};
use crate::conf::value::Value;
use crate::conf::{Assignment, Conf, Location};
use crate::kernel::mountinfo::{Mount, Version};
use crate::report::escape::escape;
use crate::root::FSTAB;

/// The section of nfs.conf.
pub const SECTION: &[u8] = b"nfsrahead";

/// What the helper has to keep of nfs.conf: the section, and where `$NAME` is looked up.
pub const SECTIONS: &[&[u8]] = &[SECTION, b"environment"];

/// Everything that was said about readahead.
#[derive(Debug, Default)]
pub struct Policy {
    /// fstab lines and sub-sections, strongest first.
    pub rules: Vec<Rule>,
    /// The plain `[nfsrahead]` section: by protocol version.
    pub by_version: Keys,
    /// How long the helper may wait for a mount whose rule needs its path, seconds.
    pub wait_s: u64,
    /// May nfstuned look for mounts in other mount namespaces?
    pub namespaces: bool,
    /// Log what is done and why, as `-d` does.
    pub debug: bool,
    pub problems: Vec<Problem>,
}

/// A sub-section, or a line of fstab.
#[derive(Debug)]
pub struct Rule {
    pub scope: Scope,
    /// As in the file: `[nfsrahead "/srv/media"]`, or the name of the fstab option.
    pub title: String,
    /// Where it stands first.
    pub at: Location,
    pub keys: Keys,
}

/// The three keys of a section.
#[derive(Debug, Default)]
pub struct Keys {
    pub nfs: Option<Wish>,
    pub nfs4: Option<Wish>,
    pub default: Option<Wish>,
}

impl Keys {
    pub fn of(&self, version: Version) -> Option<&Wish> {
        let exact = match version {
            Version::V3 => &self.nfs,
            Version::V4 => &self.nfs4,
        };
        exact.as_ref().or(self.default.as_ref())
    }

    fn is_empty(&self) -> bool {
        self.nfs.is_none() && self.nfs4.is_none() && self.default.is_none()
    }
}

/// One usable value and where it was found.
#[derive(Debug, Clone)]
pub struct Wish {
    pub value: Value,
    pub at: Location,
    /// As written, `$NAME` resolved.
    pub text: Vec<u8>,
    /// The key, and the sub-section if there is one: what is printed as the rule.
    pub rule: String,
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}={}", self.at, self.rule, self.value)
    }
}

/// Something in the configuration that was not used as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub at: Location,
    pub kind: ProblemKind,
    /// One line for people, without the place.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The value is not used.
    BadValue,
    /// No program reads this key.
    UnknownKey,
    /// The argument of the sub-section names nothing.
    BadScope,
    /// The same key again in the same section: the last one counts.
    Repeated,
}

impl ProblemKind {
    pub fn name(self) -> &'static str {
        match self {
            ProblemKind::BadValue => "bad-value",
            ProblemKind::UnknownKey => "unknown-key",
            ProblemKind::BadScope => "bad-scope",
            ProblemKind::Repeated => "repeated-key",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.text)
    }
}

/// Seconds the helper waits where nothing else is said, and the most it may be told to.
const WAIT_DEFAULT_S: u64 = 2;
const WAIT_MAX_S: u64 = 10;

/// Where `$NAME` is looked up first.
pub type Environment<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

impl Policy {
    /// `fstab` is the text of the file; empty where there is none.
    pub fn new(conf: &Conf, fstab: &[u8], environment: Environment) -> Policy {
        let mut builder = Builder {
            section: Section::new(conf, SECTION, environment),
            policy: Policy {
                wait_s: WAIT_DEFAULT_S,
                namespaces: true,
                ..Policy::default()
            },
        };
        builder.nfs_conf();
        builder.fstab(fstab);
        let mut policy = builder.policy;
        policy.problems = builder.section.problems;
        policy
            .rules
            .sort_by_key(|rule| (rule.scope.kind(), Reverse(rule.scope.detail())));
        policy
    }

    /// Nothing that could give any mount a value: hands off.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.by_version.is_empty()
    }

    /// The rules that could say something about a mount of this version.
    fn rules_for(&self, version: Version) -> impl Iterator<Item = (&Rule, &Wish)> {
        let rules = self.rules.iter();
        rules.filter_map(move |rule| Some((rule, rule.keys.of(version)?)))
    }

    /// Must the mount be seen before the value is known? If not, the version is enough.
    pub fn needs_mount(&self, version: Version) -> bool {
        self.rules_for(version).next().is_some()
            || matches!(self.wish_by_version(version), Some(wish) if matches!(wish.value, Value::TimesRsize(_) | Value::Auto))
    }

    /// Must the mount's source be known too?
    pub fn needs_source(&self, version: Version) -> bool {
        self.rules_for(version).any(|(rule, _)| rule.scope.needs_source())
    }

    /// Does anything ask for the model, which looks at the machine?
    pub fn uses_auto(&self) -> bool {
        let keys = self.rules.iter().map(|rule| &rule.keys).chain([&self.by_version]);
        keys.flat_map(|keys| [&keys.nfs, &keys.nfs4, &keys.default])
            .flatten()
            .any(|wish| wish.value == Value::Auto)
    }

    /// What is wanted for all mounts of this version.
    pub fn wish_by_version(&self, version: Version) -> Option<&Wish> {
        self.by_version.of(version)
    }

    /// The strongest wish for this mount and where it comes from.
    pub fn wish_for(&self, mount: &Mount, version: Version) -> Option<(Kind, &Wish)> {
        self.rules_for(version)
            .find(|(rule, _)| rule.scope.covers(mount))
            .map(|(rule, wish)| (rule.scope.kind(), wish))
            .or_else(|| Some((Kind::Version, self.wish_by_version(version)?)))
    }
}

struct Builder<'a> {
    section: Section<'a>,
    policy: Policy,
}

impl Builder<'_> {
    /// In the order of the files, so that what is wrong is told in that order too.
    fn nfs_conf(&mut self) {
        // None: the argument names nothing, which was said once.
        let mut rules: BTreeMap<&[u8], Option<Rule>> = BTreeMap::new();
        for assignment in self.section.in_force() {
            let tag = assignment.tag.to_ascii_lowercase();
            match assignment.arg.as_deref() {
                None => self.plain(&tag, assignment),
                Some(arg) => {
                    let rule = rules.entry(arg).or_insert_with(|| self.rule(arg, assignment));
                    if let Some(rule) = rule {
                        self.key(&mut rule.keys, &tag, assignment, Some(&rule.title));
                    }
                }
            }
        }
        let usable = rules.into_values().flatten().filter(|rule| !rule.keys.is_empty());
        self.policy.rules.extend(usable);
    }

    fn rule(&mut self, arg: &[u8], first: &Assignment) -> Option<Rule> {
        Some(Rule {
            scope: self.section.scope(arg, first)?,
            title: self.section.title(arg),
            at: first.at.clone(),
            keys: Keys::default(),
        })
    }

    fn plain(&mut self, tag: &[u8], assignment: &Assignment) {
        match tag {
            b"wait" => {
                let seconds = self.section.number(assignment);
                match seconds.filter(|s| *s <= WAIT_MAX_S) {
                    Some(seconds) => self.policy.wait_s = seconds,
                    None => self
                        .section
                        .bad(assignment, "must be a whole number of seconds from 0 to 10"),
                }
            }
            b"namespaces" => match self.section.text(assignment).as_deref().and_then(boolean) {
                Some(yes) => self.policy.namespaces = yes,
                None => self.section.bad(assignment, "must be yes or no"),
            },
            // nfs.conf(5) has it for every program: 0, or names of facilities. Here there is one.
            b"debug" => {
                let text = self.section.text(assignment).unwrap_or_default();
                self.policy.debug = boolean(&text) != Some(false) && !text.eq_ignore_ascii_case(b"none");
            }
            _ => {
                let mut keys = std::mem::take(&mut self.policy.by_version);
                self.key(&mut keys, tag, assignment, None);
                self.policy.by_version = keys;
            }
        }
    }

    fn key(&mut self, keys: &mut Keys, tag: &[u8], assignment: &Assignment, title: Option<&str>) {
        let slot = match tag {
            b"nfs" => &mut keys.nfs,
            b"nfs4" => &mut keys.nfs4,
            b"default" => &mut keys.default,
            _ => {
                let hint = match tag {
                    b"nfsv4" | b"nfs4.0" | b"nfs4.1" | b"nfs4.2" | b"nfs41" | b"nfs42" => ", did you mean nfs4?",
                    b"nfs2" | b"nfs3" | b"nfsv2" | b"nfsv3" => ", did you mean nfs?",
                    _ => "",
                };
                let text = format!("unknown key {}{hint}", escape(tag));
                return self.section.problem(&assignment.at, ProblemKind::UnknownKey, text);
            }
        };
        let key = String::from_utf8_lossy(tag);
        let rule = match title {
            Some(title) => format!("{title} {key}"),
            None => key.into_owned(),
        };
        // A variable that is not set is the same as no value (R49).
        if let Some(text) = self.section.text(assignment) {
            *slot = self.wish(&text, assignment.at.clone(), rule);
        }
    }

    fn wish(&mut self, text: &[u8], at: Location, rule: String) -> Option<Wish> {
        match Value::parse(text) {
            Ok(value) => Some(Wish {
                value,
                at,
                text: text.to_vec(),
                rule,
            }),
            Err(why) => {
                let text = format!("{rule}={} is not used: {why}", escape(text));
                self.section.problem(&at, ProblemKind::BadValue, text);
                None
            }
        }
    }

    fn fstab(&mut self, text: &[u8]) {
        let file: Rc<Path> = Path::new(FSTAB).into();
        for entry in fstab::parse(text) {
            let at = Location {
                file: file.clone(),
                line: entry.line,
            };
            if let Some(wish) = self.wish(&entry.value, at.clone(), fstab::OPTION.to_owned()) {
                self.policy.rules.push(Rule {
                    scope: Scope::Fstab {
                        mount_point: entry.mount_point.into_owned(),
                        source: entry.source.into_owned(),
                    },
                    title: fstab::OPTION.to_owned(),
                    at,
                    keys: Keys {
                        default: Some(wish),
                        ..Keys::default()
                    },
                });
            }
        }
    }
}
