//! What is thought about every knob now: by the daemon, or where none runs, by the same code from one sample.

use std::path::Path;

use nfsrahead::apply::ledger::{Ledger, Owner};
use nfsrahead::apply::lock::{self, Role};
use nfsrahead::conf::knob_owner::{knob_owners, KnobOwners};
use nfsrahead::conf::settings::Settings;
use nfsrahead::cycle::{Around, Decision, State};
use nfsrahead::error::{Error, Result};
use nfsrahead::kernel::container::is_container;
use nfsrahead::kernel::knob::{self, Knob};
use nfsrahead::root::Root;
use nfsrahead::sample::elsewhere::Elsewhere;
use nfsrahead::sample::{self, Depth};
use nfsrahead::state::learned::Learned;
use nfsrahead::state::status::Status;

use crate::complain;
use crate::config::environment;

/// The daemon's view, with the values that stand there now; or ours.
pub fn status(root: &Root, config: &Path) -> Result<Status> {
    if lock::is_held(root, Role::Runs) {
        if let Some(mut status) = Status::read(root)? {
            for row in &mut status.knobs {
                row.refresh(Knob::parse(row.knob.as_bytes()).and_then(|knob| knob::read(root, knob).ok().flatten()));
            }
            return Ok(status);
        }
    }
    let mut view = View::new(root, config)?;
    let decisions = view.decide();
    Ok(view.around(|around| Status::new(&view.state, &decisions, around, None)))
}

/// One look at the machine, without a daemon.
pub struct View<'a> {
    root: &'a Root,
    settings: Settings,
    owners: KnobOwners,
    pub ledger: Ledger,
    pub state: State,
}

impl<'a> View<'a> {
    pub fn new(root: &'a Root, config: &Path) -> Result<View<'a>> {
        let settings = Settings::load(root, config, &environment);
        for warning in &settings.warnings {
            complain(warning);
        }
        let mut sample = sample::take(root, Depth::Counters)?;
        if settings.policy.namespaces {
            Elsewhere::default().complete(root, &mut sample)?;
        }
        let mut state = State::default();
        state.learn(sample);
        let learned = Learned::read(root).unwrap_or_else(|e| {
            complain(e);
            Learned::default()
        });
        state.remember(|source| learned.drain(source), |source| learned.path(source));
        Ok(View {
            root,
            settings,
            owners: knob_owners(root),
            ledger: Ledger::open(root, Owner::Daemon)?,
            state,
        })
    }

    pub fn decide(&mut self) -> Vec<Decision> {
        let mut state = std::mem::take(&mut self.state);
        let decisions = self.around(|around| state.decide(around));
        self.state = state;
        decisions
    }

    pub fn around<T>(&self, f: impl FnOnce(&Around) -> T) -> T {
        f(&Around {
            policy: &self.settings.policy,
            tuned: &self.settings.tuned,
            value: &|knob| knob::read(self.root, knob).ok().flatten(),
            owner: &|knob| self.owners.of(knob).map(ToString::to_string),
            standing: &|knob, instance| self.ledger.standing(knob, instance),
            is_container: is_container(self.root),
        })
    }
}

/// For verbs that write themselves: nobody else may.
pub fn alone(root: &Root) -> Result<lock::Held> {
    lock::Held::hold(root, Role::Runs)?.ok_or_else(|| Error::Io {
        doing: "lock",
        path: root.nfstuned_lock(),
        source: std::io::Error::other("nfstuned runs; it gives everything back when it is stopped"),
    })
}
