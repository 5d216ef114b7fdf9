//! One section of nfs.conf with its sub-sections: what is in force, values with `$NAME` resolved, and what is wrong.

use std::collections::BTreeMap;

use crate::conf::policy::{Environment, Problem, ProblemKind};
use crate::conf::scope::Scope;
use crate::conf::{Assignment, Conf, Location, Resolved};
use crate::decimal::decimal;
use crate::report::escape::escape;

/// A reader of one section. What cannot be used is said once, and the next source is used.
pub struct Section<'a> {
    conf: &'a Conf,
    name: &'static [u8],
    environment: Environment<'a>,
    pub problems: Vec<Problem>,
}

impl<'a> Section<'a> {
    /// `name` in lower case.
    pub fn new(conf: &'a Conf, name: &'static [u8], environment: Environment<'a>) -> Self {
        Section {
            conf,
            name,
            environment,
            problems: Vec::new(),
        }
    }

    /// The last assignment of every key, in the order of the files.
    pub fn in_force(&mut self) -> Vec<&'a Assignment> {
        let name = self.name;
        let ours = self.conf.assignments.iter().filter(|a| a.section == name);
        let mut last: BTreeMap<(Option<&[u8]>, Vec<u8>), &Assignment> = BTreeMap::new();
        let mut in_force = Vec::new();
        for assignment in ours.rev() {
            let slot = (assignment.arg.as_deref(), assignment.tag.to_ascii_lowercase());
            match last.get(&slot) {
                None => {
                    last.insert(slot, assignment);
                    in_force.push(assignment);
                }
                // An override in a later file is what drop-ins are for; twice in one file is a slip.
                Some(later) if later.at.file == assignment.at.file => {
                    let tag = escape(&assignment.tag);
                    let text = format!("{tag} was set already in line {}; this one counts", assignment.at.line);
                    self.problem(&later.at, ProblemKind::Repeated, text);
                }
                Some(_) => {}
            }
        }
        in_force.reverse();
        in_force
    }

    /// `[nfsrahead "ARG"]`
    pub fn title(&self, arg: &[u8]) -> String {
        format!("[{} \"{}\"]", String::from_utf8_lossy(self.name), escape(arg))
    }

    /// What a sub-section speaks of. `first` is its first assignment.
    pub fn scope(&mut self, arg: &[u8], first: &Assignment) -> Option<Scope> {
        let scope = Scope::parse(arg);
        if scope.is_none() {
            let title = self.title(arg);
            let text = format!("{title} is no mount point (/...), export (server:/...) or server (server:)");
            self.problem(&first.at, ProblemKind::BadScope, text);
        }
        scope
    }

    /// The value with `$NAME` resolved. A variable that is not set is the same as no value (R49).
    pub fn text(&mut self, assignment: &Assignment) -> Option<Vec<u8>> {
        match self.conf.resolve(assignment, self.environment) {
            Resolved::Value { value, .. } => Some(value.into_owned()),
            Resolved::Unset => None,
            Resolved::Loop(_) => {
                self.bad(assignment, "the variable leads back to itself");
                None
            }
        }
    }

    pub fn number(&mut self, assignment: &Assignment) -> Option<u64> {
        decimal(self.text(assignment)?.trim_ascii())
    }

    pub fn bad(&mut self, assignment: &Assignment, why: &str) {
        let text = format!(
            "{}={} is not used: {why}",
            escape(&assignment.tag),
            escape(&assignment.value)
        );
        self.problem(&assignment.at, ProblemKind::BadValue, text);
    }

    pub fn problem(&mut self, at: &Location, kind: ProblemKind, text: String) {
        self.problems.push(Problem {
            at: at.clone(),
            kind,
            text,
        });
    }
}

/// The words that nfs-utils knows (nfs.conf R53).
pub fn boolean(text: &[u8]) -> Option<bool> {
    match text.to_ascii_lowercase().as_slice() {
        b"1" | b"t" | b"true" | b"y" | b"yes" | b"on" => Some(true),
        b"0" | b"f" | b"false" | b"n" | b"no" | b"off" => Some(false),
        _ => None,
    }
}
