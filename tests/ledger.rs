//! Whatever happens between the first change and the last restore: what was ours goes back, what is somebody else's stays.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::collections::BTreeMap;
use std::fs;

use nfsrahead::apply::ledger::{Applied, Change, Ledger, Owner};
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::kernel::knob::{self, Attribute, Knob, Threshold, Value};
use nfsrahead::root::Root;
use nfsrahead::sample::instance;
use proptest::prelude::*;

struct Machine {
    root: Root,
    /// What stands where, and was it last written by us?
    truth: BTreeMap<Knob, (Value, bool)>,
    originals: BTreeMap<Knob, Value>,
    _dir: tempfile::TempDir,
}

const MIB: u64 = 1 << 20;

fn dev(minor: u32) -> Dev {
    Dev { major: 0, minor }
}

fn knobs() -> Vec<Knob> {
    let bdi = |minor| {
        Attribute::ALL.map(|attribute| Knob::Bdi {
            dev: dev(minor),
            attribute,
        })
    };
    let vm = Threshold::ALL.map(Knob::Vm);
    bdi(51).into_iter().chain(bdi(52)).chain(vm).collect()
}

/// Another value of the knob's kind.
fn value(knob: Knob, n: u64) -> Value {
    match knob {
        Knob::Vm(_) => Value::Bytes((64 + n) * MIB),
        Knob::Bdi { attribute, .. } => Value::Number(match attribute {
            Attribute::ReadAheadKib => 4 * (n + 1),
            Attribute::MinRatioFine => n,
            Attribute::MaxRatioFine => 1000 + n,
            Attribute::StrictLimit => n % 2,
        }),
    }
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        fs::create_dir_all(root.boot_id().parent().unwrap()).unwrap();
        fs::write(root.boot_id(), "7f3e1a52-0000-4000-8000-000000000001\n").unwrap();
        fs::create_dir_all(root.vm_sysctl("x").parent().unwrap()).unwrap();
        let mut machine = Machine {
            root,
            truth: BTreeMap::new(),
            originals: BTreeMap::new(),
            _dir: dir,
        };
        for minor in [51, 52] {
            machine.make(dev(minor));
        }
        for threshold in Threshold::ALL {
            let knob = Knob::Vm(threshold);
            machine.put(knob, knob.boot_default());
            machine.originals.insert(knob, knob.boot_default());
        }
        machine
    }

    fn make(&mut self, dev: Dev) {
        let folder = self.root.bdi(&dev.to_string());
        // A number that was used before gets a new inode, as in sysfs: the old folder lives on under another name.
        if folder.exists() {
            fs::rename(
                &folder,
                self.root.bdi(&format!(
                    "gone-{}",
                    self.truth.len() + fs::read_dir(folder.parent().unwrap()).unwrap().count()
                )),
            )
            .unwrap();
        }
        fs::create_dir_all(&folder).unwrap();
        for attribute in Attribute::ALL {
            let knob = Knob::Bdi { dev, attribute };
            self.put(knob, knob.boot_default());
            self.originals.insert(knob, knob.boot_default());
        }
    }

    /// As somebody else does.
    fn put(&mut self, knob: Knob, value: Value) {
        match (knob, value) {
            (Knob::Bdi { dev, attribute }, Value::Number(n)) => {
                fs::write(knob::attribute_path(&self.root, dev, attribute), format!("{n}\n")).unwrap();
            }
            (Knob::Vm(threshold), value) => {
                let (bytes, ratio) = match value {
                    Value::Bytes(n) => (n, 0),
                    Value::Ratio(n) => (0, n),
                    Value::Number(_) => unreachable!(),
                };
                let [bytes_path, ratio_path] = knob::threshold_paths(&self.root, threshold);
                fs::write(bytes_path, format!("{bytes}\n")).unwrap();
                fs::write(ratio_path, format!("{ratio}\n")).unwrap();
            }
            _ => unreachable!(),
        }
        self.truth.insert(knob, (value, false));
    }

    fn now(&self, knob: Knob) -> Value {
        knob::read(&self.root, knob).unwrap().unwrap()
    }

    fn set(&mut self, ledger: &mut Ledger, knob: Knob, value: Value) {
        let instance = match knob {
            Knob::Bdi { dev, .. } => instance(&self.root, dev),
            Knob::Vm(_) => None,
        };
        let before = self.now(knob);
        let change = Change { knob, instance, value };
        match ledger.set(&self.root, &change).unwrap() {
            Applied::Written => {
                self.truth.insert(knob, (value, true));
            }
            Applied::Already => assert_eq!(before, value),
            Applied::HandedOff(theirs) => assert_ne!(theirs, value, "what is wanted is no reason to hand off"),
            Applied::Gone => panic!("nothing has gone"),
        }
        // Somebody else's value never changes by our hand once something was ours.
        if let (value, false) = self.truth[&knob] {
            assert_eq!(self.now(knob), value);
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Set(usize, u64),
    Foreign(usize, u64),
    Remount(u32),
    Look,
    Reopen,
    GiveBack(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0usize..10, 0u64..4).prop_map(|(k, n)| Step::Set(k, n)),
        1 => (0usize..10, 5u64..9).prop_map(|(k, n)| Step::Foreign(k, n)),
        1 => prop_oneof![Just(51u32), Just(52u32)].prop_map(Step::Remount),
        1 => Just(Step::Look),
        2 => Just(Step::Reopen),
        1 => (0usize..10).prop_map(Step::GiveBack),
    ];
    proptest::collection::vec(step, 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn ours_goes_back_and_theirs_stays(steps in steps()) {
        let mut machine = Machine::new();
        let knobs = knobs();
        let mut ledger = Ledger::open(&machine.root, Owner::Daemon).unwrap();
        for step in steps {
            match step {
                Step::Set(k, n) => machine.set(&mut ledger, knobs[k], value(knobs[k], n)),
                // A value of its own kind: one that is never ours, so that the test can tell.
                Step::Foreign(k, n) => {
                    let theirs = match knobs[k] {
                        Knob::Bdi { attribute: Attribute::StrictLimit, .. } => continue,
                        knob => value(knob, n * 100),
                    };
                    machine.put(knobs[k], theirs);
                    machine.originals.insert(knobs[k], theirs);
                }
                Step::Remount(minor) => machine.make(dev(minor)),
                Step::Look => drop(ledger.look(&machine.root).unwrap()),
                Step::Reopen => {
                    let before: Vec<_> = ledger.entries().map(|(knob, entry)| (knob, *entry)).collect();
                    ledger = Ledger::open(&machine.root, Owner::Daemon).unwrap();
                    let after: Vec<_> = ledger.entries().map(|(knob, entry)| (knob, *entry)).collect();
                    prop_assert_eq!(before, after);
                }
                Step::GiveBack(k) => {
                    if let Some(value) = ledger.give_back(&machine.root, knobs[k]).unwrap() {
                        machine.truth.insert(knobs[k], (value, false));
                    }
                }
            }
        }
        let restored = ledger.restore(&machine.root);
        prop_assert!(restored.failed.is_empty());
        prop_assert!(ledger.is_empty());
        prop_assert!(!machine.root.nfstuned_ledger("state").exists());
        for knob in &knobs {
            let (stood, was_ours) = machine.truth[knob];
            let expected = if was_ours { machine.originals[knob] } else { stood };
            prop_assert_eq!(machine.now(*knob), expected, "{}", knob);
        }
        let again = ledger.restore(&machine.root);
        prop_assert!(again.back.is_empty() && again.foreign.is_empty());
    }
}

#[test]
fn a_ledger_of_another_boot_is_dropped_and_a_damaged_one_is_put_aside() {
    let mut machine = Machine::new();
    let knob = Knob::Vm(Threshold::Limit);
    let mut ledger = Ledger::open(&machine.root, Owner::Daemon).unwrap();
    machine.set(&mut ledger, knob, Value::Bytes(64 * MIB));
    fs::write(machine.root.boot_id(), "7f3e1a52-0000-4000-8000-000000000002\n").unwrap();
    let mut other = Ledger::open(&machine.root, Owner::Daemon).unwrap();
    assert!(other.is_empty());
    assert!(other.restore(&machine.root).back.is_empty());
    assert_eq!(machine.now(knob), Value::Bytes(64 * MIB));

    let path = machine.root.nfstuned_ledger("state");
    for bad in [
        "",
        "x\n",
        "nfstuned ledger 2\nboot a\n",
        "nfstuned ledger 1\nboot 7f3e1a52-0000-4000-8000-000000000002\nvm.dirty - 1 20% 1B - -",
        "nfstuned ledger 1\nboot 7f3e1a52-0000-4000-8000-000000000002\nvm.swappiness - 1 20 1 - -\n",
        "nfstuned ledger 1\nboot 7f3e1a52-0000-4000-8000-000000000002\nvm.dirty - 1 20 1 - -\n",
        "nfstuned ledger 1\nboot 7f3e1a52-0000-4000-8000-000000000002\n0:51/../x 1 1 20 1 - -\n",
    ] {
        fs::write(&path, bad).unwrap();
        let error = Ledger::open(&machine.root, Owner::Daemon).unwrap_err().to_string();
        assert!(error.contains("/run/nfstuned/state:"), "{error}");
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(path.with_extension("damaged")).unwrap(), bad);
    }
}

#[test]
fn what_no_decision_may_ask_for_is_refused() {
    let machine = Machine::new();
    let mut ledger = Ledger::open(&machine.root, Owner::Daemon).unwrap();
    let number = |attribute, n| {
        (
            Knob::Bdi {
                dev: dev(51),
                attribute,
            },
            Value::Number(n),
        )
    };
    for (knob, value) in [
        number(Attribute::MaxRatioFine, 0),
        number(Attribute::MaxRatioFine, 1_000_001),
        number(Attribute::StrictLimit, 2),
        number(Attribute::ReadAheadKib, 65_537),
        (Knob::Vm(Threshold::Limit), Value::Bytes(1)),
        (Knob::Vm(Threshold::Limit), Value::Bytes(0)),
        (Knob::Vm(Threshold::Limit), Value::Ratio(5)),
    ] {
        let instance = instance(&machine.root, dev(51)).filter(|_| matches!(knob, Knob::Bdi { .. }));
        let before = machine.now(knob);
        assert!(ledger.set(&machine.root, &Change { knob, instance, value }).is_err());
        assert_eq!(machine.now(knob), before);
        assert!(ledger.is_empty());
    }
}
