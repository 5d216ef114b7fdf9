//! Values that are changed for the measurement, by the ledger: they go back whatever ends the program, after SIGKILL by
//! `nfstune restore`. A running nfstuned leaves them alone meanwhile.

use std::io;

use nfsrahead::apply::ledger::{Applied, Change, Ledger, Owner};
use nfsrahead::apply::lock::{Held, Role};
use nfsrahead::error::{Error, Result};
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::kernel::knob::{self, Attribute, Knob, Value};
use nfsrahead::root::Root;

pub struct Knobs {
    root: Root,
    dev: Dev,
    instance: Option<u64>,
    ledger: Ledger,
    /// Two measurements at a time would disturb each other, and take each other's values for the admin's.
    _role: Held,
}

impl Knobs {
    /// Of one device. What a killed measurement has left behind goes back first.
    pub fn open(root: &Root, dev: Dev, instance: Option<u64>) -> Result<Knobs> {
        let Some(role) = Held::hold(root, Role::Benchmarks)? else {
            let busy = io::Error::other("another measurement runs");
            return Err(Error::io("measure", root.bdi(&dev.to_string()))(busy));
        };
        let mut knobs = Knobs {
            root: root.clone(),
            dev,
            instance,
            ledger: Ledger::open(root, Owner::Benchmark)?,
            _role: role,
        };
        knobs.restore()?;
        Ok(knobs)
    }

    pub fn now(&self, attribute: Attribute) -> Result<Option<u64>> {
        Ok(knob::read(&self.root, self.knob(attribute))?.and_then(Value::number))
    }

    fn knob(&self, attribute: Attribute) -> Knob {
        Knob::Bdi {
            dev: self.dev,
            attribute,
        }
    }

    /// The value stands there afterwards, or it is an error: a measurement under another value is worth nothing.
    pub fn set(&mut self, attribute: Attribute, value: u64) -> Result<()> {
        let knob = self.knob(attribute);
        let change = Change {
            knob,
            instance: self.instance,
            value: Value::Number(value),
        };
        let why = match self.ledger.set(&self.root, &change)? {
            Applied::Written | Applied::Already => return Ok(()),
            Applied::Gone => "there is no such knob (any more)".to_owned(),
            Applied::HandedOff(theirs) => format!("somebody else has set it to {theirs} meanwhile"),
        };
        let path = knob::attribute_path(&self.root, self.dev, attribute);
        Err(Error::io("measure with", path)(io::Error::other(why)))
    }

    /// Everything back, the last first. What somebody else has changed meanwhile stays.
    pub fn restore(&mut self) -> Result<()> {
        let restored = self.ledger.restore(&self.root);
        match restored.failed.into_iter().next() {
            Some((_, e)) => Err(e),
            None => Ok(()),
        }
    }
}
