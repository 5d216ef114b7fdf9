//! One mount of the export, made and undone by mount(8) and umount(8): they know the options and the way of this system.

use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nfsrahead::error::{Error, Result};
use nfsrahead::kernel::mountinfo::{self, Mount};
use nfsrahead::kernel::mountstats;
use nfsrahead::report::escape::escape;
use nfsrahead::root::Root;
use nix::mount::{umount2, MntFlags};

use super::super::child;
use super::super::stop::Stop;
use super::sharing;

/// How long the kernel may keep its client after the last unmount.
const CLIENT_TIME: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

pub struct Mounted {
    pub root: Root,
    pub export: String,
    pub options: String,
    pub folder: PathBuf,
    pub addresses: Vec<IpAddr>,
    pub connections: u64,
}

impl Mounted {
    /// Mounts, and looks whether there are as many connections as were asked for.
    pub fn mount(&self, time: Duration, stop: &Stop) -> Result<Mount> {
        let mut options = self.options.clone();
        // One try, which has its own time: an NFS mount would try for two minutes.
        options.push_str(&format!(",nconnect={},retry=0", self.connections));
        let mut command = Command::new("mount");
        command.args(["-t", "nfs", "-o"]).arg(options.trim_start_matches(','));
        command.arg("--").arg(&self.export).arg(&self.folder);
        let failed = |e| Error::io("mount", &self.export)(e);
        let output = child::run(&mut command, time, Some(stop)).map_err(failed)?;
        if !output.is_success {
            return Err(failed(io::Error::other(said(&output.stderr))));
        }
        match self.look() {
            Ok(Some((mount, connections))) if connections as u64 == self.connections => Ok(mount),
            Ok(Some((_, connections))) => {
                self.unmount(time)?;
                Err(sharing::mismatch(&self.export, self.connections, connections))
            }
            Ok(None) => {
                self.unmount(time)?;
                Err(failed(io::Error::other("it is in no table")))
            }
            Err(e) => self.unmount(time).and(Err(e)),
        }
    }

    /// What the tables of this thread's namespace say.
    fn look(&self) -> Result<Option<(Mount, usize)>> {
        let folder = self.folder.as_os_str().as_bytes();
        let mounts = mountinfo::mounts_of_thread(&self.root)?;
        let stats = self.stats().map_err(Error::io("read", self.root.mountstats()))?;
        let mount = mounts
            .into_iter()
            .rfind(|mount| mount.mount_point.as_deref() == Some(folder));
        let stats = stats.into_iter().rfind(|stats| stats.mount_point == folder);
        Ok(mount.zip(stats).map(|(mount, stats)| (mount, stats.transports.len())))
    }

    /// A thread has no mountstats (kernel: fs/proc/base.c `tid_base_stuff`), a process in its namespace has.
    fn stats(&self) -> io::Result<Vec<mountstats::Mount>> {
        let output = child::run(Command::new("cat").arg(self.root.mountstats()), CLIENT_TIME, None)?;
        mountstats::parse(&*output.stdout)
    }

    /// Waits until the kernel has let its client go, or the next mount would get the connections of this one.
    pub fn unmount(&self, time: Duration) -> Result<()> {
        let mut command = Command::new("umount");
        command.arg("--").arg(&self.folder);
        let output = child::run(&mut command, time, None);
        if !output.as_ref().is_ok_and(|output| output.is_success) {
            // A server that answers no more: the mount goes out of sight at once, and with its last user.
            umount2(&self.folder, MntFlags::MNT_FORCE | MntFlags::MNT_DETACH)
                .map_err(|e| Error::io("unmount", &self.folder)(e.into()))?;
        }
        let end = Instant::now() + CLIENT_TIME;
        while sharing::clients(&self.root, &self.addresses)? > 0 && Instant::now() < end {
            sleep(PAUSE);
        }
        Ok(())
    }
}

/// The first line, which names the cause.
fn said(stderr: &[u8]) -> String {
    let line = stderr.split(|b| *b == b'\n').find(|line| !line.is_empty());
    line.map_or("it failed and said nothing".to_owned(), escape)
}
