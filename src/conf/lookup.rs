//! Questions to a configuration that was read: the value of a name, and all of it as text.

use std::borrow::Cow;

use super::files::{Assignment, Conf, Warning};
use super::grammar::{is_space, WarningKind};

/// How many names a chain of `$NAME` in `[environment]` may have; nfs-utils has no limit, and a loop hangs it.
const MAX_HOPS: u32 = 16;

/// What asking for a name gives.
#[derive(Debug, PartialEq, Eq)]
pub enum Resolved<'a> {
    /// The value with `$NAME` replaced, and the assignment that was asked for: its line is the one to show to people.
    Value { value: Cow<'a, [u8]>, from: &'a Assignment },
    /// Not assigned, or `$NAME` of something that is not set.
    Unset,
    /// `$NAME` leads to too many others. Taken as not set, but somebody should be told.
    Loop(Warning),
}

impl Conf {
    /// The assignment in force. Section and tag match in any case. So does the argument, as in nfs-utils, but the spelling that
    /// was asked for is preferred: arguments are paths, and of `/srv/A` and `/srv/a` each has its own. A section with an
    /// argument and the one without have nothing to do with each other.
    pub fn find(&self, section: &[u8], arg: Option<&[u8]>, tag: &[u8]) -> Option<&Assignment> {
        let last = |is_arg: &dyn Fn(&Option<Vec<u8>>) -> bool| {
            self.assignments
                .iter()
                .rev()
                .find(|a| a.tag.eq_ignore_ascii_case(tag) && a.section.eq_ignore_ascii_case(section) && is_arg(&a.arg))
        };
        last(&|theirs| theirs.as_deref() == arg).or_else(|| {
            let arg = arg?;
            last(&|theirs| theirs.as_deref().is_some_and(|theirs| theirs.eq_ignore_ascii_case(arg)))
        })
    }

    /// The value in force. One that starts with `$` is a name as a whole: the environment (`env`) answers first, and its text
    /// is taken as it is; then the section `[environment]` with the same argument.
    pub fn get(
        &self,
        section: &[u8],
        arg: Option<&[u8]>,
        tag: &[u8],
        env: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Resolved<'_> {
        match self.find(section, arg, tag) {
            Some(from) => self.resolve(from, env),
            None => Resolved::Unset,
        }
    }

    /// [`Conf::get`] where the assignment in force is known already.
    pub fn resolve<'a>(&'a self, from: &'a Assignment, env: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> Resolved<'a> {
        let mut assignment = from;
        for _ in 0..=MAX_HOPS {
            let [b'$', name @ ..] = assignment.value.as_slice() else {
                let value = Cow::Borrowed(assignment.value.as_slice());
                return Resolved::Value { value, from };
            };
            if let Some(value) = env(name).filter(|value| !value.is_empty()) {
                let value = Cow::Owned(value);
                return Resolved::Value { value, from };
            }
            match self.find(b"environment", from.arg.as_deref(), name) {
                Some(next) => assignment = next,
                None => return Resolved::Unset,
            }
        }
        Resolved::Loop(Warning {
            kind: WarningKind::DollarLoop,
            file: from.at.file.clone(),
            line: Some(from.at.line),
            detail: String::new(),
        })
    }

    /// All assignments in force, sorted, in the layout of `nfsconf --dump`. `$NAME` is not replaced.
    pub fn dump(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut last: Option<&Assignment> = None;
        for a in self.in_force() {
            if last.is_none_or(|last| (&last.section, &last.arg) != (&a.section, &a.arg)) {
                if last.is_some() {
                    out.push(b'\n');
                }
                out.push(b'[');
                out.extend_from_slice(&a.section);
                if let Some(arg) = &a.arg {
                    out.extend_from_slice(b" \"");
                    out.extend_from_slice(arg);
                    out.push(b'"');
                }
                out.extend_from_slice(b"]\n");
            }
            let is_space_at = |b: Option<&u8>| b.is_some_and(|&b| is_space(b));
            let quote: &[u8] = match is_space_at(a.value.first()) || is_space_at(a.value.last()) {
                true => b"\"",
                false => b"",
            };
            for part in [b" ", a.tag.as_slice(), b" = ", quote, &a.value, quote, b"\n"] {
                out.extend_from_slice(part);
            }
            last = Some(a);
        }
        out
    }

    /// The last assignment of every name, sorted by the bytes of section, argument and tag.
    fn in_force(&self) -> Vec<&Assignment> {
        let section = |a: &Assignment, b: &Assignment| (&a.section, &a.arg).cmp(&(&b.section, &b.arg));
        let folded = |a: &Assignment, b: &Assignment| {
            let (a, b) = (a.tag.iter(), b.tag.iter());
            a.map(u8::to_ascii_lowercase).cmp(b.map(u8::to_ascii_lowercase))
        };
        // Last read first; the sort is stable, so of equal names that one is kept.
        let mut all: Vec<&Assignment> = self.assignments.iter().rev().collect();
        all.sort_by(|a, b| section(a, b).then_with(|| folded(a, b)));
        all.dedup_by(|a, b| section(a, b).is_eq() && folded(a, b).is_eq());
        all.sort_by(|a, b| section(a, b).then_with(|| a.tag.cmp(&b.tag)));
        all
    }
}
