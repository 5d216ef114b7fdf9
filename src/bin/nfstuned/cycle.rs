//! sample → decide → apply → report.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use log::{debug, info, warn};
use nfsrahead::apply::ledger::{self, Applied, Change, HandOff, Ledger};
use nfsrahead::apply::lock::{is_held, Held, Role};
use nfsrahead::apply::replace::{remove, replace, replace_with_folder};
use nfsrahead::apply::requests::{self, Request};
use nfsrahead::conf::knob_owner::{knob_owners, KnobOwners};
use nfsrahead::conf::settings::Settings;
use nfsrahead::cycle::{Around, Decision, State, Verdict};
use nfsrahead::error::{Error, Result};
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::kernel::container::is_container;
use nfsrahead::kernel::knob::{self, Attribute, Knob, Value};
use nfsrahead::root::Root;
use nfsrahead::sample::elsewhere::Elsewhere;
use nfsrahead::sample::{self, Depth};
use nfsrahead::state::learned::Learned;
use nfsrahead::state::status::{self, Status};

use crate::advisor::Advisor;
use crate::args::Args;

pub struct Daemon {
    root: Root,
    settings: Settings,
    lock: Held,
    ledger: Ledger,
    state: State,
    elsewhere: Elsewhere,
    learned: Learned,
    advisor: Advisor,
    /// Who sets knobs by configuration.
    owners: KnobOwners,
    is_container: bool,
    /// What the kernel does not let us write, and why: said once.
    refused: BTreeMap<Kind, String>,
    /// The limits of devices that nobody writes to: of which instance, and what they showed.
    idle: BTreeMap<Knob, (u64, Option<Value>)>,
    turns: u32,
    /// What was last said about a knob, so that it is said once.
    said: BTreeMap<Knob, String>,
}

/// Knobs that are writable together or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Bdi,
    Vm,
}

impl Kind {
    fn of(knob: Knob) -> Kind {
        match knob {
            Knob::Bdi { .. } => Kind::Bdi,
            Knob::Vm(_) => Kind::Vm,
        }
    }
}

/// Turns after which the limits of idle devices are looked at again: four minutes at the default interval.
const IDLE_TURNS: u32 = 16;

/// How a daemon begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// What a dead one left behind goes back first.
    Fresh,
    /// The program was started anew in place: what is on record is still ours.
    InPlace,
}

impl Daemon {
    /// Err: another one runs, or the machine cannot be read.
    pub fn new(args: &Args, start: Start) -> Result<Daemon> {
        let root = args.root.clone();
        let Some(lock) = lock(&root)? else {
            return Err(Error::Io {
                doing: "lock",
                path: root.nfstuned_lock(),
                source: io::Error::other("another nfstuned runs"),
            });
        };
        requests::prepare(&root)?;
        // A damaged ledger is put aside and said; a daemon that did not start would help nobody.
        let mut ledger = Ledger::open(&root, ledger::Owner::Daemon).or_else(|e| {
            warn!("{e}; put aside, its knobs stay as they are");
            Ledger::open(&root, ledger::Owner::Daemon)
        })?;
        if start == Start::Fresh && !ledger.is_empty() {
            tell_restored(&ledger.restore(&root));
        }
        let learned = Learned::read(&root).unwrap_or_else(|e| {
            warn!("{e}");
            Learned::default()
        });
        let daemon = Daemon {
            settings: load(args),
            lock,
            ledger,
            state: State::default(),
            elsewhere: Elsewhere::default(),
            learned,
            advisor: Advisor::new(&root),
            owners: knob_owners(&root),
            is_container: is_container(&root),
            refused: BTreeMap::new(),
            idle: BTreeMap::new(),
            turns: 0,
            said: BTreeMap::new(),
            root,
        };
        for warning in &daemon.settings.warnings {
            warn!("{warning}");
        }
        daemon.take_roles()?;
        if daemon.is_container {
            info!("this is a container: it is watched, its knobs are those of its host and stay as they are");
        }
        Ok(daemon)
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes over a new configuration. False: it is bad, and the old one stays.
    pub fn reload(&mut self, args: &Args) -> Result<bool> {
        let new = load(args);
        if !new.faults.is_empty() {
            for fault in &new.faults {
                warn!("{fault}");
            }
            warn!("the configuration is not taken over; the one before stays in force");
            return Ok(false);
        }
        for warning in &new.warnings {
            warn!("{warning}");
        }
        self.settings = new;
        self.owners = knob_owners(&self.root);
        self.refused.clear();
        self.said.clear();
        self.take_roles()?;
        info!("the configuration was read anew");
        Ok(true)
    }

    /// The helper leaves late mounts to a daemon that applies readahead.
    fn take_roles(&self) -> Result<()> {
        let applies = self.settings.tuned.apply.readahead && !self.is_container;
        self.lock
            .set(Role::AppliesReadahead, applies)
            .map(drop)
            .map_err(Error::io("lock", self.root.nfstuned_lock()))
    }

    /// A sample is due: learn from it, then act.
    pub fn tick(&mut self) -> Result<()> {
        let mut sample = sample::take(&self.root, Depth::Counters)?;
        self.complete(&mut sample);
        self.state.learn(sample);
        self.state
            .remember(|source| self.learned.drain(source), |source| self.learned.path(source));
        self.act()?;
        if self.learned.update(&self.state) {
            self.save_learned();
        }
        match self.state.sample() {
            Some(sample) => self.advisor.tick(&self.root, sample),
            None => Ok(()),
        }
    }

    /// Mounts or devices came or went: act, and learn nothing.
    pub fn look(&mut self) -> Result<()> {
        let mut sample = sample::take(&self.root, Depth::Mounts)?;
        self.complete(&mut sample);
        self.state.see(sample);
        self.state
            .remember(|source| self.learned.drain(source), |source| self.learned.path(source));
        self.act()
    }

    fn complete(&mut self, sample: &mut sample::Sample) {
        if !self.settings.policy.namespaces {
            return;
        }
        match self.elsewhere.complete(&self.root, sample) {
            Ok(given_up) => {
                for dev in given_up {
                    debug!("{dev}: no mount of it is to be seen anywhere; left alone");
                }
            }
            Err(e) => debug!("{e}"),
        }
    }

    fn save_learned(&self) {
        if let Err(e) = replace_with_folder(&self.root.nfstuned_learned(), &self.learned.to_json()) {
            debug!("{e}");
        }
    }

    fn act(&mut self) -> Result<()> {
        for handed_off in self.ledger.look(&self.root)? {
            tell_handed_off(&handed_off);
        }
        let decisions = self.decide();
        let mut values: BTreeMap<Knob, Option<Value>> =
            decisions.iter().map(|decision| (decision.knob, decision.now)).collect();
        for decision in &decisions {
            match self.carry_out(decision) {
                Ok(false) => {}
                Ok(true) => drop(values.insert(decision.knob, knob::read(&self.root, decision.knob)?)),
                Err(e) => self.failed(decision, &e),
            }
            self.tell(decision);
        }
        self.said.retain(|knob, _| values.contains_key(knob));
        self.report(&decisions, &|knob| values.get(&knob).copied().flatten())
    }

    fn decide(&mut self) -> Vec<Decision> {
        self.turns = self.turns.wrapping_add(1);
        if self.turns % IDLE_TURNS == 0 {
            self.idle.clear();
        }
        let mut state = std::mem::take(&mut self.state);
        let devices = state
            .sample()
            .map(|sample| sample.devices.as_slice())
            .unwrap_or_default();
        // Most mounts of a large host are idle: the limits of those that nobody writes to are looked at now and then.
        let idle_instances: BTreeMap<Dev, u64> = devices
            .iter()
            .filter(|device| state.track(device.dev).is_some_and(|track| track.drain.windows() == 0))
            .map(|device| (device.dev, device.instance))
            .collect();
        let idle = RefCell::new(std::mem::take(&mut self.idle));
        let value = |knob: Knob| {
            let Knob::Bdi { dev, .. } = knob else {
                return self.read(knob);
            };
            let Some(instance) = idle_instances.get(&dev).copied() else {
                return self.read(knob);
            };
            if self.ledger.entry(knob, Some(instance)).is_some() {
                return self.read(knob);
            }
            let known = idle
                .borrow()
                .get(&knob)
                .filter(|(of, _)| *of == instance)
                .map(|(_, value)| *value);
            known.unwrap_or_else(|| {
                let value = self.read(knob);
                idle.borrow_mut().insert(knob, (instance, value));
                value
            })
        };
        let decisions = self.around(&value, |around| state.decide(around));
        self.idle = idle.into_inner();
        self.state = state;
        decisions
    }

    fn read(&self, knob: Knob) -> Option<Value> {
        knob::read(&self.root, knob).ok().flatten()
    }

    fn around<T>(&self, value: &dyn Fn(Knob) -> Option<Value>, f: impl FnOnce(&Around) -> T) -> T {
        let benched = self.benched();
        let owner = |knob: Knob| match self.refused.get(&Kind::of(knob)) {
            Some(why) => Some(why.clone()),
            None if benched.contains(&knob) => Some("a benchmark holds it".to_owned()),
            None => self.owners.of(knob).map(ToString::to_string),
        };
        let standing = |knob: Knob, instance: Option<u64>| self.ledger.standing(knob, instance);
        f(&Around {
            policy: &self.settings.policy,
            tuned: &self.settings.tuned,
            value,
            owner: &owner,
            standing: &standing,
            is_container: self.is_container,
        })
    }

    /// What a running benchmark has changed, and will give back itself.
    fn benched(&self) -> BTreeSet<Knob> {
        if !is_held(&self.root, Role::Benchmarks) {
            return BTreeSet::new();
        }
        let ledger = Ledger::open(&self.root, ledger::Owner::Benchmark);
        ledger.map_or_else(
            |_| BTreeSet::new(),
            |ledger| ledger.entries().map(|(knob, _)| knob).collect(),
        )
    }

    /// True: the knob was tried.
    fn carry_out(&mut self, decision: &Decision) -> Result<bool> {
        let knob = decision.knob;
        match (&decision.verdict, decision.want) {
            (Verdict::Write, Some(value)) => {
                let change = Change {
                    knob,
                    instance: decision.instance,
                    value,
                };
                match self.ledger.set(&self.root, &change)? {
                    Applied::Written => {
                        let now = decision.now.map_or_else(|| "?".to_owned(), |now| now.to_string());
                        info!("{knob}: {now} -> {value}: {}", decision.reason);
                        self.state.done(decision);
                    }
                    Applied::HandedOff(theirs) => tell_handed_off(&HandOff {
                        knob,
                        ours: value,
                        theirs,
                    }),
                    Applied::Already | Applied::Gone => {}
                }
                Ok(true)
            }
            (Verdict::GiveBack, _) => {
                if let Some(value) = self.ledger.give_back(&self.root, knob)? {
                    info!("{knob}: back to {value}: {}", decision.reason);
                    self.state.done(decision);
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// A knob that cannot be written stays so for all of its kind: said once, until the configuration is read anew.
    fn failed(&mut self, decision: &Decision, e: &Error) {
        let is_for_all = matches!(e, Error::Io { source, .. } if matches!(
            source.raw_os_error(),
            Some(libc::EROFS | libc::EACCES | libc::EPERM)
        ));
        let kind = Kind::of(decision.knob);
        if is_for_all && self.refused.insert(kind, e.to_string()).is_some() {
            return;
        }
        self.say(decision.knob, e.to_string());
    }

    fn tell(&mut self, decision: &Decision) {
        let Verdict::Held(hold) = &decision.verdict else { return };
        let want = decision
            .want
            .map_or_else(|| "nothing".to_owned(), |want| want.to_string());
        debug!(
            "{}: {want} is wanted ({}), not written: {hold}",
            decision.knob, decision.reason
        );
        for note in &decision.notes {
            debug!("{}: {note}", decision.knob);
        }
    }

    fn say(&mut self, knob: Knob, text: String) {
        if self.said.get(&knob) != Some(&text) {
            warn!("{knob}: {text}");
            self.said.insert(knob, text);
        }
    }

    fn report(&self, decisions: &[Decision], value: &dyn Fn(Knob) -> Option<Value>) -> Result<()> {
        let daemon = status::Daemon {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let status = self.around(value, |around| {
            Status::new(&self.state, decisions, around, Some(daemon))
        });
        replace(&self.root.nfstuned_status(), &status.to_json())
    }

    /// One line for a service manager.
    pub fn summary(&self) -> String {
        let devices = self.state.sample().map_or(0, |sample| sample.devices.len());
        let apply = status::words(&self.settings.tuned);
        let applies = if apply.is_empty() {
            "observes".to_owned()
        } else {
            format!("applies {}", apply.join(", "))
        };
        format!(
            "{applies}; {devices} NFS devices, {} knobs changed",
            self.ledger.entries().count()
        )
    }

    /// The knobs to watch for writes of others.
    pub fn ours(&self) -> Vec<Knob> {
        let ours = self.ledger.entries().filter(|(_, entry)| entry.foreign.is_none());
        ours.map(|(knob, _)| knob).collect()
    }

    /// Somebody wrote these.
    pub fn written(&mut self, knobs: &[Knob]) -> Result<()> {
        let mut is_changed = false;
        for knob in knobs.iter().collect::<BTreeSet<_>>() {
            if let Some(handed_off) = self.ledger.written_by_others(&self.root, *knob)? {
                tell_handed_off(&handed_off);
                is_changed = true;
            }
        }
        if is_changed {
            self.look()?;
        }
        Ok(())
    }

    /// Does what `nfstune` has asked for.
    pub fn requests(&mut self) -> Result<()> {
        let pending = requests::pending(&self.root);
        if pending.is_empty() {
            return Ok(());
        }
        for request in &pending {
            if let Request::Release(knob) = request {
                if let Some(value) = self.ledger.release(&self.root, *knob)? {
                    info!("{knob}: {value} is taken under management");
                }
                self.state.release(*knob);
                self.said.remove(knob);
            }
        }
        self.look()?;
        for request in pending {
            requests::done(&self.root, request);
        }
        Ok(())
    }

    /// Gives everything back.
    pub fn stop(&mut self) -> Result<()> {
        if self.learned.update(&self.state) {
            self.save_learned();
        }
        if let Err(e) = self.advisor.save(&self.root) {
            debug!("{e}");
        }
        let restored = self.ledger.restore(&self.root);
        tell_restored(&restored);
        // Nobody is there any more to stand behind what it says.
        for path in [self.root.nfstuned_status(), self.root.nfstuned_current_advice()] {
            if let Err(e) = remove(&path) {
                debug!("{e}");
            }
        }
        match restored.failed.into_iter().next() {
            Some((_, e)) => Err(e),
            None => Ok(()),
        }
    }

    /// Before the program is started anew in place.
    pub fn hand_over(&mut self) {
        self.learned.update(&self.state);
        self.save_learned();
        if let Err(e) = self.advisor.save(&self.root) {
            debug!("{e}");
        }
    }
}

/// None: another daemon runs. An admin's `nfstune apply` or `restore` is over in a moment.
fn lock(root: &Root) -> Result<Option<Held>> {
    for _ in 0..20 {
        if let Some(held) = Held::hold(root, Role::Runs)? {
            return Ok(Some(held));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(None)
}

fn tell_handed_off(handed_off: &HandOff) {
    let HandOff { knob, ours, theirs } = handed_off;
    let attribute = matches!(
        knob,
        Knob::Bdi {
            attribute: Attribute::ReadAheadKib,
            ..
        }
    );
    let unit = if attribute { " KiB" } else { "" };
    if ours == theirs {
        warn!("{knob}: somebody else has set {theirs}{unit} too; left to them until nfstune release {knob}");
    } else {
        warn!(
            "{knob}: changed by somebody else from {ours} to {theirs}{unit}; left to them until nfstune release {knob}"
        );
    }
}

fn tell_restored(restored: &ledger::Restored) {
    for (knob, value) in &restored.back {
        info!("{knob}: back to {value}");
    }
    for knob in &restored.foreign {
        info!("{knob}: somebody else's value stays");
    }
    for (knob, e) in &restored.failed {
        warn!("{knob}: {e}");
    }
}

fn load(args: &Args) -> Settings {
    Settings::load(&args.root, &args.config, &|name| {
        std::env::var_os(OsStr::from_bytes(name)).map(OsString::into_vec)
    })
}
