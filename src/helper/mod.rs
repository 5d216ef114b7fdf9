//! nfsrahead: what udev runs for one device, and what an admin runs to see what it would do.

pub mod args;
mod device;
mod dry_run;
mod find;

use std::fs::File;
use std::io::{self, Write};

use log::warn;

use crate::conf::policy::{self, Policy};
use crate::conf::{self, Keep};
use crate::error::{Error, Result, EXIT_FAILED, EXIT_OK};
use crate::kernel::{dmi, vm};
use crate::readahead::decide::Machine;
use crate::report::escape::escape;
use crate::root::Root;
use args::{Args, Command};

/// What the helper takes from the process it runs in.
pub struct Process<'a> {
    /// The environment.
    pub variable: policy::Environment<'a>,
    /// Standard output, once, before any other file is opened. Err: it is closed.
    pub stdout: &'a dyn Fn() -> io::Result<File>,
}

/// Does what the arguments say. The error, if any, has not been printed.
pub fn run(args: &Args, process: &Process) -> Result<i32> {
    match &args.command {
        Command::Help => print(&mut stdout(process)?, args::HELP),
        Command::Version => print(
            &mut stdout(process)?,
            concat!("nfsrahead ", env!("CARGO_PKG_VERSION"), "\n"),
        ),
        Command::DryRun(names) => {
            let mut out = stdout(process)?;
            let report = dry_run::report(args, names, process)?;
            for name in &report.unknown {
                warn!("{}: no NFS mount here", escape(name));
            }
            print(&mut out, &report.text)?;
            Ok(if report.unknown.is_empty() {
                EXIT_OK
            } else {
                EXIT_FAILED
            })
        }
        Command::Print(name) => {
            let mut out = stdout(process)?;
            match device::value_kib(args, process, name)? {
                Some(kib) => print(&mut out, &format!("{kib}\n")),
                // With status 0 and no output udev would write an empty line to the attribute.
                None => Ok(EXIT_FAILED),
            }
        }
        Command::Write(name) => {
            device::write(args, process, name)?;
            Ok(EXIT_OK)
        }
    }
}

fn stdout(process: &Process) -> Result<File> {
    (process.stdout)().map_err(Error::io("write", "standard output"))
}

fn print(out: &mut File, text: &str) -> Result<i32> {
    out.write_all(text.as_bytes())
        .map_err(Error::io("write", "standard output"))?;
    Ok(EXIT_OK)
}

/// The configuration, and what was wrong with it.
fn load(args: &Args, process: &Process) -> (Policy, Vec<String>) {
    let conf = conf::load(&args.root, &args.config, Keep::Sections(policy::SECTIONS));
    let mut warnings: Vec<String> = conf.warnings.iter().map(ToString::to_string).collect();
    let fstab = conf::fstab::read(&args.root).unwrap_or_else(|e| {
        warnings.push(e.to_string());
        Vec::new()
    });
    let policy = Policy::new(&conf, &fstab, process.variable);
    warnings.extend(policy.problems.iter().map(ToString::to_string));
    (policy, warnings)
}

fn machine(root: &Root, policy: &Policy) -> Machine {
    let is_asked = policy.uses_auto();
    Machine {
        page_kib: vm::page_kib(),
        memory: is_asked.then(|| vm::memory(root).ok().flatten()).flatten(),
        is_cloud: is_asked && dmi::is_cloud(root),
    }
}

/// A value that may be unknown.
fn shown(kib: Option<u64>) -> String {
    kib.map_or_else(|| "?".to_owned(), |kib| kib.to_string())
}
