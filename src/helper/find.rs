//! Device → its mounts, as fast as the kernel allows, and waiting for one that is not attached yet.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::kernel::bdi::{Bdi, Dev};
use crate::kernel::mountinfo::{self, Changes, Mount};
use crate::kernel::statmount::{self, Depth, NEWEST};
use crate::root::Root;

/// How far a look for a device that has just appeared goes: 50 mounts at once, twenty times over.
const FRESH: usize = 1024;

/// How often to ask whether the device is still there: a pseudo-root level lives for some 30 to 140 ms and its end is no
/// mount event.
const TICK: Duration = Duration::from_millis(20);

/// One search.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    pub root: &'a Root,
    pub dev: Dev,
    /// The device has just appeared (a udev event of the kernel's own), so its mounts are the newest.
    pub is_fresh: bool,
    /// The server and export are needed too.
    pub needs_source: bool,
}

impl Search<'_> {
    /// The mounts that can be seen now.
    pub fn look(&self) -> Result<Vec<Mount>> {
        self.look_to(if self.is_fresh {
            Depth::Newest(FRESH)
        } else {
            Depth::All
        })
    }

    fn look_to(&self, depth: Depth) -> Result<Vec<Mount>> {
        if self.root.is_live() {
            if let Ok(found) = statmount::mounts_of(self.dev, depth) {
                if !self.needs_source || found.iter().all(|mount| mount.source.is_some()) {
                    return Ok(found);
                }
            }
        }
        mountinfo::mounts(self.root, Some(self.dev))
    }

    /// A look after every change of the mount table, until `wait` is over or the device has gone. `changes` was opened
    /// before the look that found nothing.
    pub fn wait(&self, changes: &Changes, bdi: &Bdi, wait: Duration) -> Result<Vec<Mount>> {
        let deadline = Instant::now() + wait;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if !bdi.is_there() {
                return Ok(Vec::new());
            }
            if !changes
                .wait(left.min(TICK), self.root)
                .map_err(Error::io("wait for", self.root.mountinfo()))?
            {
                continue;
            }
            let started = Instant::now();
            let found = self.look_to(Depth::Newest(NEWEST))?;
            if !found.is_empty() {
                return Ok(found);
            }
            // Where every look is a scan of a long table, a storm of mounts must not fill a core: rest four times as long.
            let rest = 4 * started.elapsed();
            std::thread::sleep(rest.min(deadline.saturating_duration_since(Instant::now())));
        }
        // A mount that was made early and attached late is not among the newest.
        self.look_to(Depth::All)
    }
}
