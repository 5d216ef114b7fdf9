//! What the configuration says, as a whole: taken over whole, or not at all.

use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nfsrahead::conf::policy::{self, Policy, Problem, ProblemKind};
use nfsrahead::conf::tuned::{self, Tuned};
use nfsrahead::conf::{self, Keep};

use crate::args::Args;

pub struct Settings {
    pub policy: Policy,
    pub tuned: Tuned,
    /// What was not used as written, one line each.
    pub warnings: Vec<String>,
    /// Of those, what makes a configuration a bad one: an admin who reloads wants to be told before it counts.
    pub faults: Vec<String>,
}

const SECTIONS: &[&[u8]] = &[policy::SECTION, tuned::SECTION, b"environment"];

pub fn load(args: &Args) -> Settings {
    let conf = conf::load(&args.root, &args.config, Keep::Sections(SECTIONS));
    let variable = |name: &[u8]| std::env::var_os(std::ffi::OsStr::from_bytes(name)).map(std::ffi::OsString::into_vec);
    let mut warnings: Vec<String> = conf.warnings.iter().map(ToString::to_string).collect();
    let fstab = conf::fstab::read(&args.root).unwrap_or_else(|e| {
        warnings.push(e.to_string());
        Vec::new()
    });
    let policy = Policy::new(&conf, &fstab, &variable);
    let tuned = Tuned::new(&conf, &variable);
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

fn is_fault(problem: &Problem) -> bool {
    matches!(problem.kind, ProblemKind::BadValue | ProblemKind::BadScope)
}
