//! The daemon's command line.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::{Long, Short};
use nfsrahead::error::{Error, Result};
use nfsrahead::report::escape::escape;
use nfsrahead::root::{Root, NFS_CONF};

/// Where, by which configuration, how loudly.
#[derive(Debug, Clone)]
pub struct Args {
    pub root: Root,
    pub config: PathBuf,
    pub is_debug: bool,
    pub is_syslog: bool,
}

/// What the command line asks for.
pub enum Command {
    Run(Args),
    /// Text for standard output.
    Print(&'static str),
}

const HELP: &str = "\
Usage: nfstuned [-d] [--syslog] [--root DIR] [--config FILE]

Watches the NFS mounts: readahead, dirty data, connections. Writes only what [nfstuned] apply in nfs.conf names, and gives
everything back when it ends. Runs in the foreground, as a service manager wants it.

  -d, --debug        say what is done and why
      --syslog       messages go to syslog, not to stderr
      --config FILE  another main configuration file instead of /etc/nfs.conf
      --root DIR     everything below another root directory
  -h, --help         show this help
  -V, --version      show the version

Signals: TERM and INT end it, HUP reads the configuration anew, USR2 starts the program anew in place (after an upgrade).
Exit status: 0 ended as told, 1 failed, 2 usage.
See nfstuned(8), nfsrahead.conf(5).
";

impl Args {
    /// `arguments` without the program's name.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command> {
        let mut args = Args {
            root: Root::default(),
            config: PathBuf::from(NFS_CONF),
            is_debug: false,
            is_syslog: false,
        };
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next().map_err(usage)? {
            match argument {
                Short('d') | Long("debug") => args.is_debug = true,
                Long("syslog") => args.is_syslog = true,
                Long("root") => args.root = Root::new(parser.value().map_err(usage)?),
                Long("config") => args.config = parser.value().map_err(usage)?.into(),
                Short('h') | Long("help") => return Ok(Command::Print(HELP)),
                Short('V') | Long("version") => {
                    return Ok(Command::Print(concat!("nfstuned ", env!("CARGO_PKG_VERSION"), "\n")))
                }
                other => return Err(usage(other.unexpected())),
            }
        }
        Ok(Command::Run(args))
    }
}

fn usage(what: impl ToString) -> Error {
    Error::Usage(format!("{}; see nfstuned --help", escape(what.to_string())))
}
