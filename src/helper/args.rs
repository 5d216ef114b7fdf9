//! The helper's command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use lexopt::prelude::{Long, Short, Value};

use crate::error::{Error, Result};
use crate::root::{Root, NFS_CONF};

/// What to do, for what, how loudly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args {
    pub command: Command,
    pub root: Root,
    /// The main configuration file; its drop-ins are in the folder of the same name with `.d`.
    pub config: PathBuf,
    /// `-d`: say what is done and why.
    pub is_debug: bool,
    /// `-F`: messages go to stderr, not to syslog.
    pub is_foreground: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Print the value; udev writes it.
    Print(Vec<u8>),
    /// Decide, write, read back.
    Write(Vec<u8>),
    /// Show devices or mount points, all NFS mounts if none is named; write nothing.
    DryRun(Vec<Vec<u8>>),
    Help,
    Version,
}

pub const HELP: &str = "\
Usage: nfsrahead [-dF] [--root DIR] [--config FILE] DEVICE
       nfsrahead [-dF] [--root DIR] [--config FILE] --write DEVICE
       nfsrahead [-d] [--root DIR] [--config FILE] --dry-run [DEVICE | MOUNT POINT]...

Readahead of an NFS mount from nfs.conf. DEVICE is MAJOR:MINOR of its backing device.

      DEVICE         print the value in KiB, for a udev rule that assigns it
  -w, --write        decide, write read_ahead_kb and read it back
  -n, --dry-run      show what would be set and why; all NFS mounts if none is named
  -d, --debug        say what is done and why
  -F, --foreground   messages go to stderr, not to syslog
      --config FILE  another main configuration file instead of /etc/nfs.conf
      --root DIR     everything below another root directory
  -h, --help         show this help
  -V, --version      show the version

Exit status: 0 done or nothing to do, 1 failed or (DEVICE) nothing to set, 2 usage.
See nfsrahead(8), nfsrahead.conf(5).
";

impl Args {
    /// `arguments` without the program's name.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Args> {
        let mut args = Args {
            command: Command::Help,
            root: Root::default(),
            config: PathBuf::from(NFS_CONF),
            is_debug: false,
            is_foreground: false,
        };
        let (mut is_write, mut is_dry_run) = (false, false);
        let mut operands = Vec::new();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next().map_err(usage)? {
            match argument {
                Short('w') | Long("write") => is_write = true,
                Short('n') | Long("dry-run") => is_dry_run = true,
                Short('d') | Long("debug") => args.is_debug = true,
                Short('F') | Long("foreground") => args.is_foreground = true,
                Long("root") => args.root = Root::new(parser.value().map_err(usage)?),
                Long("config") => args.config = parser.value().map_err(usage)?.into(),
                Short('h') | Long("help") => return Ok(args),
                Short('V') | Long("version") => {
                    return Ok(Args {
                        command: Command::Version,
                        ..args
                    })
                }
                Value(operand) => operands.push(operand.into_vec()),
                other => return Err(usage(other.unexpected())),
            }
        }
        args.command = match (is_write, is_dry_run) {
            (true, true) => return Err(usage("--write and --dry-run exclude each other")),
            (false, true) => Command::DryRun(operands),
            (true, false) => Command::Write(one(operands)?),
            (false, false) => Command::Print(one(operands)?),
        };
        Ok(args)
    }
}

fn one(mut operands: Vec<Vec<u8>>) -> Result<Vec<u8>> {
    match (operands.pop(), operands.is_empty()) {
        (Some(device), true) => Ok(device),
        (None, _) => Err(usage("a DEVICE is missing")),
        (Some(_), false) => Err(usage("only one DEVICE can be given")),
    }
}

fn usage(what: impl ToString) -> Error {
    Error::Usage(format!(
        "{}; see nfsrahead --help",
        crate::report::escape::escape(what.to_string())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args> {
        Args::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn short_flags_combine_and_come_in_any_order() {
        let args = parse("-dF 0:51").unwrap();
        assert!(args.is_debug && args.is_foreground);
        assert_eq!(args.command, Command::Print(b"0:51".to_vec()));
        assert_eq!(parse("0:51 -wF").unwrap().command, Command::Write(b"0:51".to_vec()));
        assert_eq!(parse("-n").unwrap().command, Command::DryRun(vec![]));
        assert_eq!(parse("--root=/x --write 0:5").unwrap().root, Root::new("/x"));
        assert_eq!(parse("-w -- -x").unwrap().command, Command::Write(b"-x".to_vec()));
        assert_eq!(parse("-V").unwrap().command, Command::Version);
    }

    #[test]
    fn anything_else_is_a_usage_error() {
        for line in [
            "",
            "-x 0:51",
            "--no-such 0:51",
            "0:51 0:52",
            "-w",
            "-nw 0:51",
            "--root",
            "--debug=3 0:51",
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.exit_code(), crate::error::EXIT_USAGE, "{line}");
        }
    }
}
