//! nfstuned(8): one loop, no threads. What it reads is kernel memory and never waits for a server.

mod advisor;
mod args;
mod cycle;
mod journal;
mod watch;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command as Process, ExitCode};
use std::time::{Duration, Instant};

use log::{debug, error, warn};
use nfsrahead::error::{Error, Result, EXIT_OK};
use sd_notify::NotifyState;

use args::{Args, Command};
use cycle::{Daemon, Start};
use watch::{Watch, Woken};

/// Set for the program that is started anew in place.
const IN_PLACE: &str = "NFSTUNED_IN_PLACE";
/// A storm of mounts is looked at in one go: so long it may gather...
const GATHER: Duration = Duration::from_millis(50);
/// ...and a look may take a tenth of the time at most.
const REST: u32 = 10;
/// Without a watchdog the loop still turns this often.
const TURN: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let code = match Args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Print(text)) => std::io::stdout()
            .write_all(text.as_bytes())
            .map_err(Error::io("write", "standard output"))
            .map_or_else(|e| failed(&e), |()| EXIT_OK),
        Ok(Command::Run(args)) => {
            journal::install(args.is_syslog, args.is_debug);
            run(&args).map_or_else(|e| failed(&e), |()| EXIT_OK)
        }
        Err(e) => {
            journal::install(false, false);
            failed(&e)
        }
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn failed(e: &Error) -> i32 {
    error!("{e}");
    e.exit_code()
}

fn run(args: &Args) -> Result<()> {
    // Where the program will be after an upgrade: asked before one can have taken it away.
    let program = std::env::current_exe().ok();
    let start = match std::env::var_os(IN_PLACE) {
        Some(_) => Start::InPlace,
        None => Start::Fresh,
    };
    let mut daemon = Daemon::new(args, start)?;
    let mut watch = Watch::new(&args.root, interval(&daemon))?;
    if args.root.is_live() && !watch.hears_udev() {
        debug!("udev does not tell of devices; the mount table does");
    }
    daemon.tick()?;
    settle(&mut daemon, &mut watch, args);
    notify(&[NotifyState::Ready, NotifyState::Status(&daemon.summary())]);
    match turn(args, &mut daemon, &mut watch)? {
        End::Stop => {
            notify(&[NotifyState::Stopping]);
            daemon.stop()
        }
        End::StartAnew => {
            daemon.hand_over();
            start_anew(program)
        }
    }
}

enum End {
    Stop,
    StartAnew,
}

/// The loop.
fn turn(args: &Args, daemon: &mut Daemon, watch: &mut Watch) -> Result<End> {
    let mut watchdog_us = 0;
    let has_watchdog = sd_notify::watchdog_enabled(false, &mut watchdog_us);
    let longest = if has_watchdog {
        Duration::from_micros(watchdog_us / 3)
    } else {
        TURN
    };
    // When a look at the mounts is due, and not before when.
    let mut due: Option<Instant> = None;
    let mut not_before = Instant::now();
    loop {
        let left = due.map_or(longest, |due| {
            due.saturating_duration_since(Instant::now()).min(longest)
        });
        let woken = watch.wait(left)?;
        if has_watchdog {
            notify(&[NotifyState::Watchdog]);
        }
        if woken.stop {
            return Ok(End::Stop);
        }
        if woken.start_anew {
            return Ok(End::StartAnew);
        }
        let started = Instant::now();
        let worked = work(args, daemon, watch, &woken);
        if woken.mounts {
            due.get_or_insert((started + GATHER).max(not_before));
        }
        let is_due = due.is_some_and(|due| due <= Instant::now());
        if is_due {
            due = None;
            if let Err(e) = daemon.look() {
                warn!("{e}");
            }
            not_before = Instant::now() + REST * started.elapsed();
        }
        if worked || is_due {
            settle(daemon, watch, args);
        }
    }
}

/// True: something may have been written.
fn work(args: &Args, daemon: &mut Daemon, watch: &mut Watch, woken: &Woken) -> bool {
    let mut results = Vec::new();
    if woken.reload {
        results.push(reload(args, daemon, watch));
    }
    if !woken.written.is_empty() {
        results.push(daemon.written(&woken.written));
    }
    if woken.requests {
        results.push(daemon.requests());
    }
    if woken.timer {
        results.push(daemon.tick());
        notify(&[NotifyState::Status(&daemon.summary())]);
    }
    for e in results.iter().filter_map(|result| result.as_ref().err()) {
        warn!("{e}");
    }
    !results.is_empty()
}

fn reload(args: &Args, daemon: &mut Daemon, watch: &mut Watch) -> Result<()> {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now());
    notify(&states);
    let result = daemon.reload(args).and_then(|is_new| {
        if is_new {
            journal::set_debug(args.is_debug || daemon.settings().tuned.debug);
            watch.every(interval(daemon))?;
            daemon.look()?;
        }
        Ok(())
    });
    notify(&[NotifyState::Ready, NotifyState::Status(&daemon.summary())]);
    result
}

/// What was written since the last wait was written by us; from now on others are listened for.
fn settle(daemon: &mut Daemon, watch: &mut Watch, args: &Args) {
    watch.knobs(&args.root, &daemon.ours());
    if watch.forget_own_writes() {
        if let Err(e) = daemon.requests() {
            warn!("{e}");
        }
    }
}

fn interval(daemon: &Daemon) -> Duration {
    Duration::from_secs(daemon.settings().tuned.interval_s)
}

/// Nobody listens where no service manager is.
fn notify(states: &[NotifyState]) {
    if let Err(e) = sd_notify::notify(false, states) {
        debug!("the service manager cannot be told: {e}");
    }
}

/// The same process goes on with the program that is on disk now. The ledger says what is ours.
fn start_anew(program: Option<PathBuf>) -> Result<()> {
    let program = program.ok_or_else(|| Error::Io {
        doing: "start",
        path: "nfstuned".into(),
        source: std::io::Error::other("its path is not known"),
    })?;
    let e = Process::new(&program)
        .args(std::env::args_os().skip(1))
        .env(IN_PLACE, "1")
        .exec();
    Err(Error::Io {
        doing: "start",
        path: program,
        source: e,
    })
}
