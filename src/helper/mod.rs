//! nfsrahead: what udev runs for one device, and what an admin runs to see what it would do.

pub mod args;
mod dry_run;
mod find;

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

use log::{debug, info, warn};

use crate::apply::change::{self, Outcome};
use crate::apply::lock::{self, Role};
use crate::conf::policy::{self, Policy};
use crate::conf::{self, Keep};
use crate::error::{Error, Result, EXIT_FAILED, EXIT_OK};
use crate::kernel::bdi::{Bdi, Dev};
use crate::kernel::mountinfo::{Changes, Mount, Version};
use crate::kernel::{dmi, nfsfs, vm};
use crate::readahead::decide::{self, Action, Decision, Device, Machine};
use crate::report::escape::escape;
use crate::root::Root;
use args::{Args, Command};
use find::Search;

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
            let decided = match One::new(args, process, name) {
                Some(one) => {
                    one.decide(|_, _| Ok(!lock::is_held(&args.root, Role::AppliesReadahead)))?
                }
                None => None,
            };
            match decided {
                Some((
                    _,
                    Decision {
                        action: Action::Set(kib),
                        ..
                    },
                )) => print(&mut out, &format!("{kib}\n")),
                // With status 0 and no output udev would write an empty line to the attribute.
                _ => Ok(EXIT_FAILED),
            }
        }
        Command::Write(name) => {
            if let Some(one) = One::new(args, process, name) {
                let decided = one.decide(|bdi, by_version| {
                    one.apply(bdi, by_version)?;
                    Ok(!lock::is_held(&args.root, Role::AppliesReadahead))
                })?;
                if let Some((bdi, decision)) = decided {
                    for note in &decision.notes {
                        warn!("{}: {note}", one.dev);
                    }
                    one.apply(&bdi, &decision)?;
                }
            }
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
    let (fstab, unreadable) = read_fstab(&args.root);
    let policy = Policy::new(&conf, &fstab, process.variable);
    let mut warnings: Vec<String> = conf.warnings.iter().map(ToString::to_string).collect();
    warnings.extend(unreadable.map(|e| e.to_string()));
    warnings.extend(policy.problems.iter().map(ToString::to_string));
    (policy, warnings)
}

/// Longer than any real fstab by far.
const MAX_FSTAB_BYTES: u64 = 1 << 20;

fn read_fstab(root: &Root) -> (Vec<u8>, Option<Error>) {
    use std::os::unix::fs::OpenOptionsExt;
    let path = root.fstab();
    let mut text = Vec::new();
    // Never waits for a FIFO's other end.
    let read = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(&path)
        .and_then(|file| file.take(MAX_FSTAB_BYTES).read_to_end(&mut text));
    match read {
        Err(e) if e.kind() != io::ErrorKind::NotFound => (text, Some(Error::io("read", path)(e))),
        _ => (text, None),
    }
}

fn machine(root: &Root, policy: &Policy) -> Machine {
    let is_asked = policy.uses_auto();
    Machine {
        page_kib: vm::page_kib(),
        memory: is_asked.then(|| vm::memory(root).ok().flatten()).flatten(),
        is_cloud: is_asked && dmi::is_cloud(root),
    }
}

/// One device on its way to a value.
struct One<'a> {
    args: &'a Args,
    process: &'a Process<'a>,
    dev: Dev,
}

impl<'a> One<'a> {
    /// None: no name that an NFS device could have.
    fn new(args: &'a Args, process: &'a Process<'a>, name: &[u8]) -> Option<Self> {
        let dev = Dev::parse(name).filter(|dev| dev.is_anonymous());
        if dev.is_none() {
            debug!(
                "{}: not an NFS device: its name is not 0:MINOR",
                escape(name)
            );
        }
        Some(One {
            args,
            process,
            dev: dev?,
        })
    }

    /// The value and the reason. None: not NFS, nothing configured, or gone; nothing is to be done or said.
    ///
    /// `meanwhile` gets the value by version alone when the mount that the rules ask for is not there yet; it says whether to
    /// wait for the mount.
    fn decide(
        &self,
        meanwhile: impl FnOnce(&Bdi, &Decision) -> Result<bool>,
    ) -> Result<Option<(Bdi, Decision)>> {
        let (policy, warnings) = load(self.args, self.process);
        if policy.debug {
            log::set_max_level(log::LevelFilter::Debug);
        }
        if policy.is_empty() && warnings.is_empty() {
            debug!("{}: nothing is configured", self.dev);
            return Ok(None);
        }
        // Opened before anything is looked up: what is learned later is then about this instance of the device, or the
        // device has gone and nothing can be written to it.
        let Some(bdi) = Bdi::open(&self.args.root, self.dev)? else {
            debug!("{}: gone", self.dev);
            return Ok(None);
        };
        let Some((version, mounts)) = self.identify()? else {
            debug!("{}: not an NFS device that can be seen from here", self.dev);
            return Ok(None);
        };
        for warning in &warnings {
            warn!("{warning}");
        }
        let now_kib = bdi.read_ahead_kib()?;
        let machine = machine(&self.args.root, &policy);
        let device = |mounts| Device {
            version,
            mounts,
            now_kib,
        };
        if !policy.needs_mount(version) {
            let decision = decide::by_version(&policy, &device(&[]), &machine);
            return Ok(Some((bdi, decision)));
        }
        let by_version = decide::by_version(&policy, &device(&[]), &machine);
        let mounts = match mounts {
            Some(mounts) => mounts,
            None => {
                let search = self.search(policy.needs_source(version));
                let changes = Changes::open(&self.args.root)?;
                let found = search.look()?;
                if !found.is_empty() {
                    found
                } else if meanwhile(&bdi, &by_version)? {
                    search.wait(&changes, &bdi, Duration::from_secs(policy.wait_s))?
                } else {
                    debug!("{}: nfstuned will look at its mount", self.dev);
                    return Ok(Some((bdi, by_version)));
                }
            }
        };
        let Some(first) = mounts.first() else {
            self.tell_missing(&bdi, &policy);
            return Ok(Some((bdi, by_version)));
        };
        if first.version() != version {
            // Another superblock has taken the number. It has an event of its own.
            debug!(
                "{}: the mount table speaks of another mount by now",
                self.dev
            );
            return Ok(None);
        }
        let decision = decide::decide(&policy, &device(&mounts), &machine);
        Ok(Some((bdi, decision)))
    }

    /// Is it NFS, and which version? The kernel's list of NFS superblocks says at once. It is silent about FUSE, about levels
    /// of a pseudo root that have gone, and about mounts made in another network namespace; those last are in the mount
    /// table, if anywhere, so one look there and no waiting.
    fn identify(&self) -> Result<Option<(Version, Option<Vec<Mount>>)>> {
        if let Some(volume) = nfsfs::volume_of(&self.args.root, self.dev)? {
            return Ok(Some((volume.version, None)));
        }
        if lock::is_held(&self.args.root, Role::AppliesReadahead) {
            return Ok(None);
        }
        let mounts = self.search(true).look()?;
        Ok(mounts
            .first()
            .map(Mount::version)
            .map(|version| (version, Some(mounts))))
    }

    fn search(&self, needs_source: bool) -> Search<'a> {
        // A udev event that the kernel itself sent has a sequence number and, unlike `udevadm trigger`, no SYNTH_UUID.
        let is_set = |name: &[u8]| (self.process.variable)(name).is_some();
        Search {
            root: &self.args.root,
            dev: self.dev,
            is_fresh: is_set(b"SEQNUM") && !is_set(b"SYNTH_UUID"),
            needs_source,
        }
    }

    fn tell_missing(&self, bdi: &Bdi, policy: &Policy) {
        // A level of the pseudo root is passed through and gone; nobody misses its mount.
        if bdi.is_there() {
            info!(
                "{}: its mount did not show up within {} s; rules for mounts were not looked at",
                self.dev, policy.wait_s
            );
        }
    }

    fn apply(&self, bdi: &Bdi, decision: &Decision) -> Result<()> {
        let Action::Set(kib) = decision.action else {
            debug!("{}: left alone: {}", self.dev, decision.reason);
            return Ok(());
        };
        let now_kib = bdi.read_ahead_kib()?;
        if now_kib == Some(kib) {
            debug!("{}: has {kib} already: {}", self.dev, decision.reason);
            return Ok(());
        }
        match change::set_read_ahead(bdi, kib)? {
            Outcome::Written => debug!(
                "{}: read_ahead_kb {} -> {kib}: {}",
                self.dev,
                shown(now_kib),
                decision.reason
            ),
            Outcome::Gone => debug!("{}: gone before its value was written", self.dev),
        }
        Ok(())
    }
}

/// A value that may be unknown.
fn shown(kib: Option<u64>) -> String {
    kib.map_or_else(|| "?".to_owned(), |kib| kib.to_string())
}
