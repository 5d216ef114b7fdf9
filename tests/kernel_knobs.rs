//! The ledger on a kernel that rounds, refuses, parts halves and loses devices: whatever happens between the first change and
//! the last restore, what was ours goes back, and what is somebody else's stays.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

#[path = "common/kernel.rs"]
mod kernel;

use std::collections::BTreeSet;
use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

use kernel::{Died, Event, Kernel};
use nfsrahead::apply::ledger::{Applied, Change, Ledger, Owner};
use nfsrahead::error::Error;
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::kernel::knob::{self, Attribute, Knob, Threshold, Value};
use nfsrahead::root::Root;
use nfsrahead::sample::instance;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

struct Machine {
    root: Root,
    kernel: Rc<Kernel>,
    ledger: Ledger,
    _dir: tempfile::TempDir,
}

fn dev(minor: u32) -> Dev {
    Dev { major: 0, minor }
}

fn bdi(minor: u32, attribute: Attribute) -> Knob {
    Knob::Bdi {
        dev: dev(minor),
        attribute,
    }
}

fn knobs() -> Vec<Knob> {
    let of = |minor| Attribute::ALL.map(|attribute| bdi(minor, attribute));
    let vm = Threshold::ALL.map(Knob::Vm);
    of(51).into_iter().chain(of(52)).chain(vm).collect()
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        fs::create_dir_all(root.boot_id().parent().unwrap()).unwrap();
        fs::write(root.boot_id(), "7f3e1a52-0000-4000-8000-000000000001\n").unwrap();
        let kernel = Rc::new(Kernel::new(&root));
        kernel.register(dev(51));
        kernel.register(dev(52));
        let ledger = Ledger::open_on(&root, Owner::Daemon, kernel.clone()).unwrap();
        Machine {
            root,
            kernel,
            ledger,
            _dir: dir,
        }
    }

    /// Runs the program until its end or its death; then it is started anew.
    fn run<T>(&mut self, f: impl FnOnce(&mut Ledger, &Root) -> T) -> Option<T> {
        let result = catch_unwind(AssertUnwindSafe(|| f(&mut self.ledger, &self.root)));
        match result {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Died>() => {
                self.reopen();
                None
            }
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }

    fn reopen(&mut self) {
        self.ledger = Ledger::open_on(&self.root, Owner::Daemon, self.kernel.clone()).unwrap();
    }

    fn set(&mut self, knob: Knob, value: Value) -> Option<Result<Applied, Error>> {
        let instance = match knob {
            Knob::Bdi { dev, .. } => instance(&self.root, dev),
            Knob::Vm(_) => None,
        };
        let change = Change { knob, instance, value };
        self.run(|ledger, root| ledger.set(root, &change))
    }

    fn echo(&self, knob: Knob, text: &str) -> std::io::Result<()> {
        self.kernel.echo(&path(knob, false), text)
    }
}

fn path(knob: Knob, is_ratio: bool) -> String {
    let [bytes, ratio] = match knob {
        Knob::Bdi { dev, attribute } => return format!("sys/class/bdi/{dev}/{}", attribute.name()),
        Knob::Vm(threshold) => knob::threshold_paths(&Root::new("/x"), threshold),
    };
    let path = if is_ratio { ratio } else { bytes };
    path.strip_prefix("/x").unwrap().to_str().unwrap().to_owned()
}

fn knob_of(path: &str) -> Knob {
    let name = path
        .strip_prefix("sys/class/bdi/")
        .map(str::to_owned)
        .unwrap_or_else(|| path.replace("proc/sys/vm/", "vm."));
    // Percent and bytes are the same two numbers in other units.
    let fine = |name: String| match name.split_once('/') {
        Some((dev, "max_ratio" | "max_bytes")) => format!("{dev}/max_ratio_fine"),
        Some((dev, "min_ratio")) => format!("{dev}/min_ratio_fine"),
        _ => name,
    };
    Knob::parse(fine(name).as_bytes()).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Set(usize, Value),
    Foreign(String, String),
    At(u32, Event),
    Remount(u32),
    Look,
    Reopen,
    GiveBack(usize),
    Release(usize),
}

/// A value that decisions could ask for.
fn ours() -> impl Strategy<Value = (usize, Value)> {
    (0usize..10, 0u64..5).prop_map(|(at, n)| {
        let value = match knobs()[at] {
            Knob::Vm(_) => Value::Bytes((64 + n) * MIB),
            Knob::Bdi { attribute, .. } => Value::Number(match attribute {
                Attribute::ReadAheadKib => 128 + 4 * n,
                // High enough for two devices to pass the whole.
                Attribute::MinRatioFine => [0, 1000, 300_000, 600_000, 900_000][usize::try_from(n).unwrap()],
                Attribute::MaxRatioFine => [1, 2000, 400_000, 700_000, 1_000_000][usize::try_from(n).unwrap()],
                Attribute::StrictLimit => n % 2,
            }),
        };
        (at, value)
    })
}

/// What admins write, right or wrong.
fn theirs() -> impl Strategy<Value = (String, String)> {
    let names = [
        (
            "read_ahead_kb",
            &["777", "1", "0", "+32", "-1", "18446744073709551615", ""][..],
        ),
        ("min_ratio", &["1", "30", "99", "101"]),
        ("max_ratio", &["1", "50", "100", "101"]),
        ("max_ratio_fine", &["1500", "650000", "0"]),
        ("max_bytes", &["104857600", "4096", "99999999999999"]),
        ("strict_limit", &["1", "0", "2"]),
    ];
    let mut all = Vec::new();
    for (name, texts) in names {
        for text in texts {
            for minor in [51, 52] {
                all.push((format!("sys/class/bdi/0:{minor}/{name}"), format!("{text}\n")));
            }
        }
    }
    for (name, texts) in [
        ("dirty_bytes", &["0", "8191", "123456789"][..]),
        ("dirty_ratio", &["0", "5", "101"]),
        ("dirty_background_bytes", &["0", "1", "98765432"]),
        ("dirty_background_ratio", &["0", "3"]),
    ] {
        for text in texts {
            all.push((format!("proc/sys/vm/{name}"), format!("{text}\n")));
        }
    }
    prop::sample::select(all)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let minor = || prop_oneof![Just(51u32), Just(52u32)];
    let event = prop_oneof![
        any::<bool>().prop_map(|after| Event::Dies { after }),
        theirs().prop_map(|(path, text)| Event::Foreign { path, text }),
        minor().prop_map(|minor| Event::Vanishes(dev(minor))),
    ];
    let step = prop_oneof![
        8 => ours().prop_map(|(knob, value)| Step::Set(knob, value)),
        2 => theirs().prop_map(|(path, text)| Step::Foreign(path, text)),
        2 => (0u32..4, event).prop_map(|(n, event)| Step::At(n, event)),
        1 => minor().prop_map(Step::Remount),
        1 => Just(Step::Look),
        1 => Just(Step::Reopen),
        1 => (0usize..10).prop_map(Step::GiveBack),
        1 => (0usize..10).prop_map(Step::Release),
    ];
    proptest::collection::vec(step, 0..32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Nobody else is there: the kernel is in the state in which it was found, whatever was set, refused, or died in between.
    #[test]
    fn apply_then_restore_is_identity(
        sets in proptest::collection::vec((ours(), proptest::option::weighted(0.2, any::<bool>())), 0..24),
        start in proptest::collection::vec(theirs(), 0..8),
        dies_in_restore in proptest::option::of((0u32..8, any::<bool>())),
    ) {
        let mut machine = Machine::new();
        for (path, text) in start {
            // What is refused changes nothing.
            let before = machine.kernel.state();
            if machine.kernel.echo(&path, &text).is_err() {
                prop_assert_eq!(machine.kernel.state(), before);
            }
        }
        let found = machine.kernel.state();
        for ((at, value), dies) in sets {
            if let Some(after) = dies {
                machine.kernel.at(0, Event::Dies { after });
            }
            let before = machine.kernel.state();
            let knob = knobs()[at];
            match machine.set(knob, value) {
                Some(Ok(Applied::Written | Applied::Already)) => {
                    prop_assert_eq!(knob::read(&machine.root, knob).unwrap(), Some(value));
                }
                // The kernel refused it, or shows no number there.
                Some(Err(_) | Ok(Applied::Gone)) => prop_assert_eq!(machine.kernel.state(), before),
                Some(Ok(Applied::HandedOff(theirs))) => prop_assert!(false, "{} {}", knob, theirs),
                None => {}
            }
            machine.kernel.calm();
        }
        if let Some((n, after)) = dies_in_restore {
            machine.kernel.at(n, Event::Dies { after });
        }
        let restored = machine.run(|ledger, root| ledger.restore(root));
        machine.kernel.calm();
        let restored = restored.unwrap_or_else(|| machine.ledger.restore(&machine.root));
        prop_assert!(restored.failed.is_empty(), "{:?}", restored.failed);
        prop_assert_eq!(machine.kernel.state(), found);
        prop_assert!(!machine.root.nfstuned_ledger("state").exists());
        machine.kernel.take_log();
        prop_assert!(machine.ledger.restore(&machine.root).back.is_empty());
        prop_assert_eq!(machine.kernel.take_log(), vec![]);
    }

    /// Once somebody else has changed a knob of ours, we write it no more, until it is released or its device is another one.
    #[test]
    fn a_foreign_write_at_any_step_is_never_overwritten(steps in steps()) {
        let mut machine = Machine::new();
        let knobs = knobs();
        // Knobs whose value somebody else has changed while they were on record.
        let mut foreign: BTreeSet<Knob> = BTreeSet::new();
        let end = [Step::Reopen];
        for step in steps.into_iter().chain(end) {
            let on_record: BTreeSet<Knob> = machine.ledger.entries().map(|(knob, _)| knob).collect();
            match step {
                Step::Set(at, value) => drop(machine.set(knobs[at], value)),
                Step::Foreign(path, text) => drop(machine.kernel.echo(&path, &text)),
                Step::At(n, event) => machine.kernel.at(n, event),
                Step::Remount(minor) => machine.kernel.register(dev(minor)),
                Step::Look => drop(machine.run(|ledger, root| ledger.look(root).map(drop))),
                Step::Reopen => machine.reopen(),
                Step::GiveBack(at) => drop(machine.run(|ledger, root| ledger.give_back(root, knobs[at]).map(drop))),
                Step::Release(at) => {
                    drop(machine.ledger.release(&machine.root, knobs[at]));
                    foreign.remove(&knobs[at]);
                }
            }
            check(&machine, &mut foreign, &on_record)?;
        }
        let on_record: BTreeSet<Knob> = machine.ledger.entries().map(|(knob, _)| knob).collect();
        if machine.run(|ledger, root| drop(ledger.restore(root))).is_none() {
            machine.kernel.calm();
            machine.ledger.restore(&machine.root);
        }
        check(&machine, &mut foreign, &on_record)?;
    }
}

/// Goes through the writes of a step in their order.
fn check(machine: &Machine, foreign: &mut BTreeSet<Knob>, on_record: &BTreeSet<Knob>) -> Result<(), TestCaseError> {
    let now = machine.kernel.state();
    // A device that was made anew has a history of its own.
    let is_same = |knob: &Knob| match knob {
        Knob::Bdi { dev, .. } => {
            let entry = machine.ledger.entries().find(|(known, _)| known == knob);
            entry.is_some_and(|(_, entry)| entry.instance == instance(&machine.root, *dev))
        }
        Knob::Vm(_) => true,
    };
    let mut ours_now: BTreeSet<Knob> = BTreeSet::new();
    for (path, is_ours) in machine.kernel.take_log() {
        let knob = knob_of(&path);
        match is_ours {
            true => {
                prop_assert!(!foreign.contains(&knob), "{knob} was written over");
                ours_now.insert(knob);
            }
            false if (on_record.contains(&knob) || ours_now.contains(&knob)) && is_same(&knob) => {
                let entry = machine
                    .ledger
                    .entries()
                    .find(|(known, _)| *known == knob)
                    .map(|(_, e)| *e);
                let stands = knob::read(&machine.root, knob).unwrap();
                // The same value as ours is told by inotify only.
                let is_other = entry.is_some_and(|e| {
                    stands.is_some_and(|v| v != e.ours && Some(v) != e.unconfirmed && v != e.original)
                });
                if is_other {
                    foreign.insert(knob);
                }
            }
            false => {}
        }
    }
    foreign.retain(is_same);
    for (dev, bdi) in &now.bdis {
        let minima: u64 = now.bdis.values().map(|bdi| bdi.min_ppm).sum();
        prop_assert!(bdi.min_ppm <= bdi.max_ppm && minima < 1_000_000, "{dev}");
    }
    Ok(())
}

/// The simulated kernel itself, by the tables it was made from.
#[test]
fn the_simulator_does_as_the_tables_say() {
    let machine = Machine::new();
    let ahead = bdi(51, Attribute::ReadAheadKib);
    let shows = |name: &str| {
        let path = machine.root.bdi("0:51").join(name);
        fs::read_to_string(path).unwrap().trim().to_owned()
    };
    for (text, shown) in [
        ("777\n", "776"),
        ("3\n", "0"),
        ("+32", "32"),
        ("18446744073709551615", "-4"),
        ("", "-4"),
    ] {
        machine.echo(ahead, text).unwrap();
        assert_eq!(shows("read_ahead_kb"), shown, "{text:?}");
    }
    let code = |result: std::io::Result<()>| result.unwrap_err().raw_os_error().unwrap();
    for (text, error) in [
        ("-1", libc::EINVAL),
        ("0x10", libc::EINVAL),
        ("16 ", libc::EINVAL),
        ("\n", libc::EINVAL),
        ("18446744073709551616", libc::ERANGE),
    ] {
        assert_eq!(code(machine.echo(ahead, text)), error, "{text:?}");
    }
    let put = |name: &str, text: &str| machine.kernel.echo(&format!("sys/class/bdi/{name}"), text);
    put("0:51/min_ratio", "60").unwrap();
    assert_eq!(code(put("0:51/max_ratio", "50")), libc::EINVAL);
    assert_eq!(code(put("0:52/min_ratio_fine", "400000")), libc::EINVAL);
    put("0:52/min_ratio_fine", "399999").unwrap();
    put("0:51/max_ratio_fine", "615999").unwrap();
    assert_eq!(shows("max_ratio"), "61");
    machine.kernel.unregister(dev(51));
    put("0:52/min_ratio_fine", "400001").unwrap();
    machine.kernel.register(dev(51));
    put("0:51/max_bytes", "4096").unwrap();
    assert_eq!(shows("max_ratio_fine"), "4");
    machine.kernel.echo("proc/sys/vm/dirty_bytes", "17179869184").unwrap();
    put("0:51/max_bytes", "4096").unwrap();
    assert_eq!(shows("max_ratio_fine"), "0");
    let vm = |name: &str, text: &str| machine.kernel.echo(&format!("proc/sys/vm/{name}"), text);
    assert_eq!(code(vm("dirty_bytes", "0")), libc::EINVAL);
    assert_eq!(code(vm("dirty_background_bytes", "0")), libc::EINVAL);
    vm("dirty_bytes", "1073741824").unwrap();
    vm("dirty_ratio", "0").unwrap();
    assert_eq!(machine.kernel.state().limit.bytes, 1 << 30);
    vm("dirty_ratio", "1").unwrap();
    vm("dirty_ratio", "0").unwrap();
    assert_eq!(
        (machine.kernel.state().limit.bytes, machine.kernel.state().limit.ratio),
        (0, 0)
    );
}

/// Values that are lowered and raised cross each other on the way back: the floor cannot go back before the ceiling.
#[test]
fn a_floor_that_waits_for_its_ceiling_goes_back_in_the_same_restore() {
    let mut machine = Machine::new();
    let (max, min) = (bdi(51, Attribute::MaxRatioFine), bdi(51, Attribute::MinRatioFine));
    machine.echo(max, "5000").unwrap();
    machine.echo(min, "3000").unwrap();
    let found = machine.kernel.state();
    for (knob, n) in [(max, 6000), (min, 500), (max, 600)] {
        machine.set(knob, Value::Number(n)).unwrap().unwrap();
    }
    let restored = machine.ledger.restore(&machine.root);
    assert!(restored.failed.is_empty(), "{:?}", restored.failed);
    assert_eq!(machine.kernel.state(), found);
}

/// Taken back, it is ours again, and the value that stood there goes back in the end.
#[test]
fn released_it_is_ours_again() {
    let mut machine = Machine::new();
    let max = bdi(51, Attribute::MaxRatioFine);
    machine.set(max, Value::Number(2000)).unwrap().unwrap();
    machine.echo(max, "7000").unwrap();
    let stands = machine.set(max, Value::Number(3000)).unwrap().unwrap();
    assert_eq!(stands, Applied::HandedOff(Value::Number(7000)));
    machine.ledger.release(&machine.root, max).unwrap();
    let written = machine.set(max, Value::Number(3000)).unwrap().unwrap();
    assert_eq!(written, Applied::Written);
    machine.ledger.restore(&machine.root);
    assert_eq!(machine.kernel.state().bdis[&dev(51)].max_ppm, 7000);
}

/// Killed before a write and again in the restore, where a ratio of 0 takes two steps: the value that stands there is still known.
#[test]
fn killed_twice_on_the_way_back_to_a_ratio_of_0() {
    let mut machine = Machine::new();
    let background = Knob::Vm(Threshold::Background);
    machine.kernel.echo("proc/sys/vm/dirty_background_ratio", "0").unwrap();
    let found = machine.kernel.state();
    machine.set(background, Value::Bytes(64 * MIB)).unwrap().unwrap();
    for n in 0..2 {
        machine.kernel.at(0, Event::Dies { after: false });
        match n {
            0 => drop(machine.set(background, Value::Bytes(65 * MIB))),
            _ => drop(machine.run(|ledger, root| drop(ledger.restore(root)))),
        }
    }
    machine.ledger.restore(&machine.root);
    assert_eq!(machine.kernel.state(), found);
}
