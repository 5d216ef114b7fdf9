//! What the configuration says, as a whole: taken over whole, or not at all.

use std::path::Path;

use crate::conf::policy::{self, Environment, Policy, Problem, ProblemKind};
use crate::conf::tuned::{self, Tuned};
use crate::conf::{self, fstab, Keep};
use crate::root::Root;

/// Both sections, and what is wrong with them.
pub struct Settings {
    pub policy: Policy,
    pub tuned: Tuned,
    /// What was not used as written, one line each.
    pub warnings: Vec<String>,
    /// Of those, what makes a configuration a bad one: an admin who reloads wants to be told before it counts.
    pub faults: Vec<String>,
}

const SECTIONS: &[&[u8]] = &[policy::SECTION, tuned::SECTION, b"environment"];

impl Settings {
    /// `file` is the main configuration file. This never fails: what cannot be used is a warning, and the next source is used.
    pub fn load(root: &Root, file: &Path, environment: Environment) -> Settings {
        let conf = conf::load(root, file, Keep::Sections(SECTIONS));
        let mut warnings: Vec<String> = conf.warnings.iter().map(ToString::to_string).collect();
        let fstab = fstab::read(root).unwrap_or_else(|e| {
            warnings.push(e.to_string());
            Vec::new()
        });
        let policy = Policy::new(&conf, &fstab, environment);
        let tuned = Tuned::new(&conf, environment);
        let problems = || policy.problems.iter().chain(&tuned.problems);
        warnings.extend(problems().map(ToString::to_string));
        let faults = problems()
            .filter(|problem| is_fault(problem))
            .map(ToString::to_string)
            .collect();
        Settings {
            policy,
            tuned,
            warnings,
            faults,
        }
    }
}

fn is_fault(problem: &Problem) -> bool {
    matches!(problem.kind, ProblemKind::BadValue | ProblemKind::BadScope)
}
