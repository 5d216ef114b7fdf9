//! `nfstune config`: what the files say.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use nfsrahead::conf::check;
use nfsrahead::conf::finding::Finding;
use nfsrahead::conf::policy::Policy;
use nfsrahead::conf::tuned::Tuned;
use nfsrahead::conf::{fstab, load, Conf, Keep, Resolved};
use nfsrahead::error::{Error, EXIT_FAILED, EXIT_OK};
use nfsrahead::kernel::mountinfo;
use nfsrahead::root::{Root, NFS_CONF};

use crate::{complain, exit, print};

#[derive(clap::Args)]
pub struct Args {
    /// The main file; FILE.d is its folder
    #[arg(long, value_name = "FILE", default_value = NFS_CONF, global = true)]
    file: PathBuf,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print every assignment in force
    Dump,
    /// Print one value; exit 1 where it is not set
    Get {
        /// The section, and after a slash the argument in its header, if any
        #[arg(value_name = "SECTION[/ARG]")]
        section: OsString,
        name: OsString,
    },
    /// Print what does not do what it seems to say; exit 1 where there is something
    Check {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub fn run(root: &Root, args: &Args) -> Result<ExitCode, Error> {
    let conf = load(root, &args.file, Keep::All);
    if !matches!(args.verb, Verb::Check { .. }) {
        for warning in &conf.warnings {
            complain(warning);
        }
    }
    let code = match &args.verb {
        Verb::Dump => {
            print(&conf.dump())?;
            EXIT_OK
        }
        Verb::Get { section, name } => get(&conf, section.as_bytes(), name.as_bytes())?,
        Verb::Check { json } => check(root, &conf, *json)?,
    };
    Ok(exit(code))
}

pub fn environment(name: &[u8]) -> Option<Vec<u8>> {
    std::env::var_os(OsStr::from_bytes(name)).map(OsString::into_vec)
}

fn check(root: &Root, conf: &Conf, json: bool) -> Result<i32, Error> {
    let policy = Policy::new(conf, &fstab::read(root)?, &environment);
    let mounts = mountinfo::mounts(root, None)
        .inspect_err(|e| complain(format_args!("{e}; sections are not compared with mounts")))
        .ok();
    let tuned = Tuned::new(conf, &environment);
    let findings = check::check(conf, &policy, &tuned, mounts.as_deref());
    let text = match json {
        true => as_json(&findings),
        false => findings.iter().map(|finding| format!("{finding}\n")).collect(),
    };
    print(text.as_bytes())?;
    Ok(if findings.is_empty() { EXIT_OK } else { EXIT_FAILED })
}

/// Stable since version 1: fields are added, never changed or taken away.
fn as_json(findings: &[Finding]) -> String {
    let findings: Vec<_> = findings
        .iter()
        .map(|f| serde_json::json!({ "kind": f.kind, "file": f.file, "line": f.line, "text": f.text }))
        .collect();
    format!(
        "{:#}\n",
        serde_json::json!({ "schema_version": 1, "findings": findings })
    )
}

fn get(conf: &Conf, section: &[u8], name: &[u8]) -> Result<i32, Error> {
    let mut parts = section.splitn(2, |&b| b == b'/');
    let section = parts.next().unwrap_or_default();
    match conf.get(section, parts.next(), name, &environment) {
        Resolved::Value { value, .. } => {
            let mut line = value.into_owned();
            line.push(b'\n');
            print(&line)?;
            Ok(EXIT_OK)
        }
        Resolved::Unset => Ok(EXIT_FAILED),
        Resolved::Loop(warning) => {
            complain(warning);
            Ok(EXIT_FAILED)
        }
    }
}
