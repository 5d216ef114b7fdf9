//! One device on its way to a value.

use std::cell::Cell;
use std::time::Duration;

use log::{debug, info, warn};

use crate::apply::change::{self, Outcome};
use crate::apply::lock::{self, Role};
use crate::conf::policy::Policy;
use crate::error::Result;
use crate::helper::args::Args;
use crate::helper::find::Search;
use crate::helper::{load, machine, shown, Process};
use crate::kernel::bdi::{Access, Bdi, Dev};
use crate::kernel::mountinfo::{Changes, Mount, Version};
use crate::kernel::nfsfs;
use crate::readahead::decide::{self, Action, Decision, Device, Machine};
use crate::report::escape::escape;
use crate::root::Root;

/// The value that a udev rule is to assign. None: nothing to set.
pub fn value_kib(args: &Args, process: &Process, name: &[u8]) -> Result<Option<u64>> {
    let Some(known) = Known::new(args, process, name, Access::Read)? else {
        return Ok(None);
    };
    let decision = known.decide(|_| Ok(()))?;
    Ok(decision.and_then(|decision| {
        known.tell(&decision);
        match decision.action {
            Action::Set(kib) => {
                debug!("{}: {kib}: {}", known.bdi.dev, decision.reason);
                Some(kib)
            }
            Action::Leave => {
                debug!("{}: left alone: {}", known.bdi.dev, decision.reason);
                None
            }
        }
    }))
}

/// Decides, writes and reads back. A mount that is not there yet gets the value of its version first.
pub fn write(args: &Args, process: &Process, name: &[u8]) -> Result<()> {
    let Some(known) = Known::new(args, process, name, Access::ReadWrite)? else {
        return Ok(());
    };
    if let Some(decision) = known.decide(|by_version| known.apply(by_version))? {
        known.tell(&decision);
        known.apply(&decision)?;
    }
    Ok(())
}

/// A device that is NFS and that the configuration has something to say about.
struct Known<'a> {
    root: &'a Root,
    policy: Policy,
    machine: Machine,
    bdi: Bdi,
    version: Version,
    /// Where it took a look at the mount table to tell.
    mounts: Option<Vec<Mount>>,
    is_fresh: bool,
    /// `read_ahead_kb` as it was found, and as we have left it.
    found_kib: Option<u64>,
    left_kib: Cell<Option<u64>>,
}

impl<'a> Known<'a> {
    /// None: not NFS, nothing configured, or gone; nothing is to be done, or said above debug.
    fn new(args: &'a Args, process: &Process, name: &[u8], access: Access) -> Result<Option<Self>> {
        let Some(dev) = Dev::parse(name).filter(|dev| dev.is_anonymous()) else {
            debug!("{}: not an NFS device: its name is not 0:MINOR", escape(name));
            return Ok(None);
        };
        let (policy, warnings) = load(args, process);
        if policy.debug {
            log::set_max_level(log::LevelFilter::Debug);
        }
        if policy.is_empty() && warnings.is_empty() {
            debug!("{dev}: nothing is configured");
            return Ok(None);
        }
        // Opened before anything is looked up: what is learned later is then about this instance of the device, or the
        // device has gone and nothing can be written to it.
        let Some(bdi) = Bdi::open(&args.root, dev, access)? else {
            debug!("{dev}: gone");
            return Ok(None);
        };
        // A udev event that the kernel itself sent has a sequence number and, unlike `udevadm trigger`, no SYNTH_UUID.
        let is_set = |name: &[u8]| (process.variable)(name).is_some();
        let is_fresh = is_set(b"SEQNUM") && !is_set(b"SYNTH_UUID");
        let Some((version, mounts)) = identify(&args.root, dev, is_fresh)? else {
            debug!("{dev}: not an NFS device that can be seen from here");
            return Ok(None);
        };
        for warning in warnings {
            warn!("{warning}");
        }
        let found_kib = bdi.read_ahead_kib()?;
        Ok(Some(Known {
            root: &args.root,
            machine: machine(&args.root, &policy),
            policy,
            bdi,
            version,
            mounts,
            is_fresh,
            found_kib,
            left_kib: Cell::new(found_kib),
        }))
    }

    /// None: another device has taken the number. `meanwhile` gets the value by version alone where the mount that the rules
    /// ask for is not there yet.
    fn decide(&self, meanwhile: impl FnOnce(&Decision) -> Result<()>) -> Result<Option<Decision>> {
        let device = |mounts| Device {
            version: self.version,
            mounts,
            now_kib: self.found_kib,
            measured: None,
        };
        let by_version = decide::by_version(&self.policy, &device(&[]), &self.machine);
        if !self.policy.needs_mount(self.version) {
            return Ok(Some(by_version));
        }
        let looked;
        let mounts = match &self.mounts {
            Some(mounts) => mounts,
            None => {
                looked = self.look_or_wait(|| meanwhile(&by_version))?;
                &looked
            }
        };
        match mounts.first() {
            None => Ok(Some(by_version)),
            Some(mount) if mount.version() != self.version => {
                debug!("{}: the mount table speaks of another mount by now", self.bdi.dev);
                Ok(None)
            }
            Some(_) => Ok(Some(decide::decide(&self.policy, &device(mounts), &self.machine))),
        }
    }

    fn look_or_wait(&self, meanwhile: impl FnOnce() -> Result<()>) -> Result<Vec<Mount>> {
        let search = Search {
            root: self.root,
            dev: self.bdi.dev,
            is_fresh: self.is_fresh,
            needs_source: self.policy.needs_source(self.version),
        };
        let changes = Changes::open(self.root)?;
        let found = search.look()?;
        if !found.is_empty() {
            return Ok(found);
        }
        meanwhile()?;
        if lock::is_held(self.root, Role::AppliesReadahead) {
            debug!("{}: nfstuned will see its mount", self.bdi.dev);
            return Ok(found);
        }
        let found = search.wait(&changes, &self.bdi, Duration::from_secs(self.policy.wait_s))?;
        // A level of the pseudo root is passed through and gone; nobody misses its mount.
        if found.is_empty() && self.bdi.is_there() {
            info!(
                "{}: its mount did not show up within {} s, so only its version was looked at",
                self.bdi.dev, self.policy.wait_s
            );
        }
        Ok(found)
    }

    fn tell(&self, decision: &Decision) {
        for note in &decision.notes {
            warn!("{}: {note}", self.bdi.dev);
        }
    }

    fn apply(&self, decision: &Decision) -> Result<()> {
        let dev = self.bdi.dev;
        let Action::Set(kib) = decision.action else {
            debug!("{dev}: left alone: {}", decision.reason);
            return Ok(());
        };
        let now_kib = self.left_kib.get();
        if now_kib == Some(kib) {
            debug!("{dev}: has {kib} already: {}", decision.reason);
            return Ok(());
        }
        match change::set_read_ahead(self.root, &self.bdi, kib)? {
            Outcome::Written => {
                self.left_kib.set(Some(kib));
                debug!("{dev}: read_ahead_kb {} -> {kib}: {}", shown(now_kib), decision.reason);
            }
            Outcome::Gone => debug!("{dev}: gone before its value was written"),
        }
        Ok(())
    }
}

/// Is it NFS, and which version? The kernel's list of NFS superblocks says at once. It is silent about FUSE, about levels of
/// a pseudo root that have gone, and about mounts made in another network namespace; those last are in the mount table, if
/// anywhere, so one look there and no waiting.
fn identify(root: &Root, dev: Dev, is_fresh: bool) -> Result<Option<(Version, Option<Vec<Mount>>)>> {
    if let Some(volume) = nfsfs::volume_of(root, dev)? {
        return Ok(Some((volume.version, None)));
    }
    if lock::is_held(root, Role::AppliesReadahead) {
        return Ok(None);
    }
    let mounts = Search {
        root,
        dev,
        is_fresh,
        needs_source: true,
    }
    .look()?;
    let version = mounts.first().map(Mount::version);
    Ok(version.map(|version| (version, Some(mounts))))
}
