//! `nfstune config`: what the files say.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use nfsrahead::conf::{load, Conf, Keep, Resolved};
use nfsrahead::error::{Error, EXIT_FAILED, EXIT_OK};
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
}

pub fn run(root: &Root, args: &Args) -> Result<ExitCode, Error> {
    let conf = load(root, &args.file, Keep::All);
    for warning in &conf.warnings {
        complain(warning);
    }
    let code = match &args.verb {
        Verb::Dump => {
            print(&conf.dump())?;
            EXIT_OK
        }
        Verb::Get { section, name } => get(&conf, section.as_bytes(), name.as_bytes())?,
    };
    Ok(exit(code))
}

fn get(conf: &Conf, section: &[u8], name: &[u8]) -> Result<i32, Error> {
    let mut parts = section.splitn(2, |&b| b == b'/');
    let section = parts.next().unwrap_or_default();
    let env = |name: &[u8]| std::env::var_os(OsStr::from_bytes(name)).map(OsString::into_vec);
    match conf.get(section, parts.next(), name, &env) {
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
