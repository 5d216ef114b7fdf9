//! What wakes the daemon: signals, the timer, devices that come and go, mounts, and others who write the same knobs.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nfsrahead::apply::requests;
use nfsrahead::error::{Error, Result};
use nfsrahead::kernel::knob::{self, Knob};
use nfsrahead::kernel::mountinfo::Changes;
use nfsrahead::root::Root;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// Everything that is waited for.
pub struct Watch {
    signals: SignalFd,
    timer: TimerFd,
    mounts: Changes,
    /// None below another root, and where udev does not run.
    bdis: Option<udev::MonitorSocket>,
    writes: Inotify,
    /// What each watch stands for; None: requests.
    watched: BTreeMap<WatchDescriptor, Option<Knob>>,
    knobs: BTreeMap<Knob, Vec<WatchDescriptor>>,
}

/// What has happened.
#[derive(Debug, Default)]
pub struct Woken {
    pub stop: bool,
    pub reload: bool,
    pub start_anew: bool,
    /// A sample is due.
    pub timer: bool,
    /// Devices or mounts have come or gone.
    pub mounts: bool,
    /// Somebody wrote these knobs.
    pub written: Vec<Knob>,
    pub requests: bool,
}

impl Watch {
    pub fn new(root: &Root, interval: Duration) -> Result<Watch> {
        let mut wanted = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR2] {
            wanted.add(signal);
        }
        wanted.thread_block().map_err(failed("block signals"))?;
        let signals = SignalFd::with_flags(&wanted, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .map_err(failed("wait for signals"))?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(failed("make a timer"))?;
        let writes = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).map_err(failed("use inotify"))?;
        let mut watch = Watch {
            signals,
            timer,
            mounts: Changes::open(root)?,
            bdis: root.is_live().then(bdi_events).and_then(io::Result::ok),
            writes,
            watched: BTreeMap::new(),
            knobs: BTreeMap::new(),
        };
        watch.every(interval)?;
        let folder = requests::folder(root);
        if let Ok(descriptor) = watch.writes.add_watch(&folder, AddWatchFlags::IN_MOVED_TO) {
            watch.watched.insert(descriptor, None);
        }
        Ok(watch)
    }

    /// Does udev tell of devices?
    pub fn hears_udev(&self) -> bool {
        self.bdis.is_some()
    }

    /// A sample is due every `interval` from now on.
    pub fn every(&mut self, interval: Duration) -> Result<()> {
        self.timer
            .set(
                Expiration::Interval(TimeSpec::from_duration(interval)),
                TimerSetTimeFlags::empty(),
            )
            .map_err(failed("set a timer"))
    }

    /// Waits, at most `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> Result<Woken> {
        let fds = [
            Some((self.signals.as_fd(), PollFlags::POLLIN)),
            Some((self.timer.as_fd(), PollFlags::POLLIN)),
            // The table itself can always be read; its changes are told as an urgent event.
            Some((self.mounts.as_fd(), PollFlags::POLLPRI)),
            Some((self.writes.as_fd(), PollFlags::POLLIN)),
            self.bdis.as_ref().map(|bdis| (bdis.as_fd(), PollFlags::POLLIN)),
        ];
        let mut fds: Vec<PollFd> = fds
            .into_iter()
            .flatten()
            .map(|(fd, flags)| PollFd::new(fd, flags))
            .collect();
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(failed("wait for events")(e)),
        }
        let is_ready = |n: usize| {
            fds.get(n)
                .and_then(|fd| fd.revents())
                .is_some_and(|events| !events.is_empty())
        };
        let mut woken = Woken {
            timer: is_ready(1),
            // A plain file below another root is always ready, and tells nothing.
            mounts: is_ready(2),
            ..Woken::default()
        };
        let (has_writes, has_bdis) = (is_ready(3), is_ready(4));
        if woken.timer {
            self.timer.wait().map_err(failed("read a timer"))?;
        }
        if has_bdis {
            woken.mounts |= self.bdis.as_ref().is_some_and(|bdis| bdis.iter().count() > 0);
        }
        if has_writes {
            self.written(&mut woken);
        }
        while let Ok(Some(info)) = self.signals.read_signal() {
            match i32::try_from(info.ssi_signo).map(Signal::try_from) {
                Ok(Ok(Signal::SIGHUP)) => woken.reload = true,
                Ok(Ok(Signal::SIGUSR2)) => woken.start_anew = true,
                _ => woken.stop = true,
            }
        }
        Ok(woken)
    }

    fn written(&mut self, woken: &mut Woken) {
        while let Ok(events) = self.writes.read_events() {
            for event in events {
                match self.watched.get(&event.wd) {
                    Some(Some(knob)) => woken.written.push(*knob),
                    Some(None) => woken.requests = true,
                    None => {}
                }
            }
        }
    }

    /// These knobs are ours: tell when somebody writes them. Those that are no longer ours are forgotten.
    pub fn knobs(&mut self, root: &Root, ours: &[Knob]) {
        let gone: Vec<Knob> = self.knobs.keys().filter(|knob| !ours.contains(knob)).copied().collect();
        for knob in gone {
            for descriptor in self.knobs.remove(&knob).unwrap_or_default() {
                // The file may have gone, and its watch with it.
                let _ = self.writes.rm_watch(descriptor);
                self.watched.remove(&descriptor);
            }
        }
        for knob in ours
            .iter()
            .filter(|knob| !self.knobs.contains_key(knob))
            .copied()
            .collect::<Vec<_>>()
        {
            let add = |path: &std::path::PathBuf| self.writes.add_watch(path, AddWatchFlags::IN_MODIFY).ok();
            let descriptors: Vec<_> = knob::paths(root, knob).iter().filter_map(add).collect();
            self.watched
                .extend(descriptors.iter().map(|descriptor| (*descriptor, Some(knob))));
            self.knobs.insert(knob, descriptors);
        }
    }

    /// What was written up to now was written by us. A request that came meanwhile is kept.
    pub fn forget_own_writes(&mut self) -> bool {
        let mut woken = Woken::default();
        self.written(&mut woken);
        woken.requests
    }
}

fn bdi_events() -> io::Result<udev::MonitorSocket> {
    udev::MonitorBuilder::new()?.match_subsystem("bdi")?.listen()
}

fn failed(doing: &'static str) -> impl FnOnce(nix::errno::Errno) -> Error {
    move |errno| Error::Io {
        doing,
        path: "the kernel".into(),
        source: errno.into(),
    }
}
