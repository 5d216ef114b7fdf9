//! `nfstune apply`, `restore` and `release`: write what is allowed, give it back, and take a knob back.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nfsrahead::apply::ledger::{Applied, Change, Ledger, Owner};
use nfsrahead::apply::lock::{self, Role};
use nfsrahead::apply::requests::{self, Request};
use nfsrahead::cycle::Verdict;
use nfsrahead::error::{Error, Result, EXIT_FAILED, EXIT_OK};
use nfsrahead::kernel::knob::Knob;
use nfsrahead::report::escape::escape;
use nfsrahead::root::{Root, NFS_CONF};
use nfsrahead::state::status::{KnobState, Status};

use crate::view::{self, View};
use crate::{complain, exit, print};

#[derive(clap::Args)]
pub struct ApplyArgs {
    /// Show what would be written, and write nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// The main configuration file; FILE.d is its folder. A running nfstuned has its own
    #[arg(long, value_name = "FILE", default_value = NFS_CONF)]
    config: PathBuf,
}

#[derive(clap::Args)]
pub struct RestoreArgs {
    /// Show what would be given back, and write nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
}

#[derive(clap::Args)]
pub struct ReleaseArgs {
    /// 0:51/read_ahead_kb, vm.dirty; as nfstuned names it in its log and in `nfstune status --json`
    knob: OsString,
}

/// How long a running daemon may take.
const PATIENCE: Duration = Duration::from_secs(5);

pub fn apply(root: &Root, args: &ApplyArgs) -> Result<ExitCode> {
    if args.dry_run {
        let status = view::status(root, &args.config)?;
        print(plan(&status).as_bytes())?;
        return Ok(exit(EXIT_OK));
    }
    if lock::is_held(root, Role::Runs) {
        ask(root, Request::Apply)?;
        let status = view::status(root, &args.config)?;
        print(plan(&status).as_bytes())?;
        return Ok(exit(EXIT_OK));
    }
    let _lock = view::alone(root)?;
    let mut view = View::new(root, &args.config)?;
    let decisions = view.decide();
    let (mut out, mut code) = (String::new(), EXIT_OK);
    for decision in &decisions {
        let (Verdict::Write, Some(value)) = (&decision.verdict, decision.want) else {
            continue;
        };
        let change = Change {
            knob: decision.knob,
            instance: decision.instance,
            value,
        };
        let now = decision.now.map_or_else(|| "?".to_owned(), |now| now.to_string());
        match view.ledger.set(root, &change) {
            Ok(Applied::Written) => {
                let _ = writeln!(out, "{}: {now} -> {value}: {}", decision.knob, decision.reason);
            }
            Ok(Applied::HandedOff(theirs)) => {
                let _ = writeln!(out, "{}: left at {theirs}, which somebody else has set", decision.knob);
            }
            Ok(Applied::Already | Applied::Gone) => {}
            Err(e) => {
                complain(e);
                code = EXIT_FAILED;
            }
        }
    }
    print(out.as_bytes())?;
    Ok(exit(code))
}

/// What would be written, and what is wanted and is not.
fn plan(status: &Status) -> String {
    let mut out = String::new();
    for row in &status.knobs {
        let now = row.now.as_deref().unwrap_or("?");
        let want = row.want.as_deref().unwrap_or("?");
        let _ = match (row.state, &row.held) {
            (KnobState::Write, _) => writeln!(out, "{}: {now} -> {want}: {}", row.knob, row.reason),
            (KnobState::GiveBack, _) => writeln!(out, "{}: {now} goes back: {}", row.knob, row.reason),
            (KnobState::Held, Some(held)) => {
                writeln!(
                    out,
                    "{}: {now}, {want} is wanted: {}; not written: {held}",
                    row.knob, row.reason
                )
            }
            _ => Ok(()),
        };
    }
    out
}

/// A killed benchmark has let its lock go after this.
const BENCHMARK_TIME: Duration = Duration::from_secs(2);

pub fn restore(root: &Root, args: &RestoreArgs) -> Result<ExitCode> {
    let _lock = match args.dry_run {
        true => None,
        false => Some(view::alone(root)?),
    };
    let mut owners = vec![Owner::Daemon];
    // A benchmark that runs gives back what it has changed; one that was killed a moment ago may not have ended yet.
    let end = Instant::now() + BENCHMARK_TIME;
    while lock::is_held(root, Role::Benchmarks) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    if lock::is_held(root, Role::Benchmarks) {
        complain("a benchmark runs, and gives back itself what it has changed");
    } else {
        owners.push(Owner::Benchmark);
    }
    let (mut out, mut code) = (String::new(), EXIT_OK);
    for owner in owners {
        let mut ledger = match Ledger::open(root, owner) {
            Ok(ledger) => ledger,
            Err(e) => {
                complain(e);
                code = EXIT_FAILED;
                continue;
            }
        };
        if args.dry_run {
            for (knob, entry) in ledger.entries().filter(|(_, entry)| entry.foreign.is_none()) {
                let _ = writeln!(out, "{knob}: {} -> {}", entry.ours, entry.original);
            }
            continue;
        }
        let restored = ledger.restore(root);
        for (knob, value) in restored.back {
            let _ = writeln!(out, "{knob}: back to {value}");
        }
        for knob in restored.foreign {
            let _ = writeln!(out, "{knob}: somebody else's value stays");
        }
        for (knob, e) in restored.failed {
            complain(format_args!("{knob}: {e}"));
            code = EXIT_FAILED;
        }
    }
    print(out.as_bytes())?;
    Ok(exit(code))
}

pub fn release(root: &Root, args: &ReleaseArgs) -> Result<ExitCode> {
    let Some(knob) = Knob::parse(args.knob.as_bytes()) else {
        let text = escape(args.knob.as_bytes());
        return Err(Error::Usage(format!(
            "{text} is no knob; they look like 0:51/max_ratio_fine and vm.dirty"
        )));
    };
    if !lock::is_held(root, Role::Runs) {
        return Err(Error::Io {
            doing: "release a knob",
            path: root.nfstuned_lock(),
            source: std::io::Error::other("nfstuned does not run, so there is nothing to take it back"),
        });
    }
    ask(root, Request::Release(knob))?;
    print(format!("{knob}: under management again\n").as_bytes())?;
    Ok(exit(EXIT_OK))
}

/// Asks a running daemon, and waits until it has done it.
fn ask(root: &Root, request: Request) -> Result<()> {
    let path = requests::make(root, request)?;
    let deadline = Instant::now() + PATIENCE;
    while path.exists() {
        if Instant::now() >= deadline {
            requests::done(root, request);
            return Err(Error::Io {
                doing: "be heard by nfstuned at",
                path,
                source: std::io::ErrorKind::TimedOut.into(),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
