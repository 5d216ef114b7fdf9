//! Whatever is measured: what is written stays inside its bounds, an idle machine is written to once, and apply with nothing in
//! `apply` writes nothing.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::collections::BTreeMap;
use std::path::Path;

use nfsrahead::conf::policy::Policy;
use nfsrahead::conf::tuned::Tuned;
use nfsrahead::conf::{self, Keep};
use nfsrahead::cycle::{Around, Decision, Standing, State, Verdict};
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::kernel::knob::{Attribute, Knob, Value};
use nfsrahead::kernel::mountinfo::{parse_line, Version};
use nfsrahead::kernel::vm::{Memory, VmStat};
use nfsrahead::root::{Root, NFS_CONF};
use nfsrahead::sample::activity::{Activity, Calls};
use nfsrahead::sample::{Device, Machine, Sample};
use proptest::prelude::*;

/// One interval of one mount: bytes read and written, round trips of both.
type Done = (u64, u64, u64, u64);

fn settings(text: &str) -> (Policy, Tuned) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("etc")).unwrap();
    std::fs::write(dir.path().join("etc/nfs.conf"), text).unwrap();
    let conf = conf::load(&Root::new(dir.path()), Path::new(NFS_CONF), Keep::All);
    (Policy::new(&conf, b"", &|_| None), Tuned::new(&conf, &|_| None))
}

/// The knobs of a machine, as decisions find and leave them.
struct World {
    state: State,
    knobs: BTreeMap<Knob, Value>,
    ours: BTreeMap<Knob, Value>,
    at_s: u64,
    instance: u64,
    activity: [Activity; 2],
    memory_kib: u64,
    threshold_pages: u64,
    block_kib: u64,
}

impl World {
    fn new(memory_kib: u64) -> World {
        World {
            state: State::default(),
            knobs: BTreeMap::new(),
            ours: BTreeMap::new(),
            at_s: 10_000,
            instance: 7,
            activity: [Activity {
                age_s: 9_000,
                ..Activity::default()
            }; 2],
            memory_kib,
            threshold_pages: memory_kib / 4 / 5,
            block_kib: 0,
        }
    }

    fn value(&self, knob: Knob) -> Value {
        self.knobs.get(&knob).copied().unwrap_or_else(|| knob.boot_default())
    }

    fn sample(&self) -> Sample {
        let device = |n: usize| {
            let dev = Dev {
                major: 0,
                minor: 50 + u32::try_from(n).unwrap(),
            };
            let line =
                format!("30 1 {dev} / /m{n} rw - nfs4 nas{n}:/x rw,vers=4.2,rsize=1048576,wsize=1048576,proto=tcp");
            let ahead = self.value(Knob::Bdi {
                dev,
                attribute: Attribute::ReadAheadKib,
            });
            Device {
                dev,
                instance: self.instance,
                version: Version::V4,
                mounts: vec![parse_line(line.as_bytes()).unwrap()],
                is_elsewhere: false,
                read_ahead_kib: ahead.number(),
                link_bits_per_s: (n == 0).then_some(10_000_000_000),
                activity: Some(self.activity[n]),
            }
        };
        Sample {
            boottime_ms: self.at_s * 1000,
            machine: Machine {
                page_kib: 4,
                memory: Some(Memory {
                    total_kib: self.memory_kib,
                    available_kib: self.memory_kib,
                }),
                vmstat: Some(VmStat {
                    dirty_pages: 10,
                    writeback_pages: 10,
                    threshold_pages: self.threshold_pages,
                    background_pages: self.threshold_pages / 2,
                    block_written_kib: self.block_kib,
                }),
                memory_pressure: Some(0),
                kernel: Some((6, 12)),
                is_cloud: false,
            },
            devices: vec![device(0), device(1)],
            clients: BTreeMap::new(),
        }
    }

    /// One interval; what was written.
    fn step(&mut self, policy: &Policy, tuned: &Tuned, done: [Done; 2]) -> Vec<Decision> {
        self.at_s += 15;
        for (activity, (read, written, read_rtt_ms, write_rtt_ms)) in self.activity.iter_mut().zip(done) {
            let calls = |bytes: u64, rtt_ms| Calls {
                ops: bytes >> 20,
                queue_ms: 0,
                rtt_ms,
            };
            activity.age_s += 15;
            activity.server_read_bytes += read;
            activity.server_written_bytes += written;
            activity.read = activity.read.sum(&calls(read, read_rtt_ms));
            activity.write = activity.write.sum(&calls(written, write_rtt_ms));
            activity.small = activity.small.sum(&Calls {
                ops: 10,
                queue_ms: 0,
                rtt_ms: 10,
            });
            activity.all = activity.read.sum(&activity.write);
        }
        self.state.learn(self.sample());
        let (knobs, ours) = (&self.knobs, &self.ours);
        let value = |knob: Knob| Some(knobs.get(&knob).copied().unwrap_or_else(|| knob.boot_default()));
        let decisions = self.state.decide(&Around {
            policy,
            tuned,
            value: &value,
            owner: &|_| None,
            standing: &|knob, _| Standing {
                ours: ours.get(&knob).copied(),
                handed_off: None,
            },
            is_container: false,
        });
        let mut written = Vec::new();
        for decision in decisions {
            match (&decision.verdict, decision.want) {
                (Verdict::Write, Some(want)) => {
                    self.knobs.insert(decision.knob, want);
                    self.ours.insert(decision.knob, want);
                }
                (Verdict::GiveBack, _) => {
                    self.knobs.remove(&decision.knob);
                    self.ours.remove(&decision.knob);
                }
                _ => continue,
            }
            self.state.done(&decision);
            self.check(decision.knob);
            written.push(decision);
        }
        written
    }

    /// At every moment, between two writes of one change as well.
    fn check(&self, knob: Knob) {
        match (knob, self.value(knob)) {
            (
                Knob::Bdi {
                    attribute: Attribute::ReadAheadKib,
                    ..
                },
                Value::Number(kib),
            ) => {
                assert!((128..=16 << 10).contains(&kib) && kib % 4 == 0, "{kib}");
            }
            (Knob::Bdi { dev, .. }, _) => {
                let number = |attribute| self.value(Knob::Bdi { dev, attribute }).number().unwrap();
                let (max, min) = (number(Attribute::MaxRatioFine), number(Attribute::MinRatioFine));
                assert!((1..=1_000_000).contains(&max) && min <= max, "{min} {max}");
                // A limit holds only when its size is there.
                assert!(number(Attribute::StrictLimit) == 0 || max < 1_000_000);
            }
            (Knob::Vm(_), Value::Bytes(bytes)) => {
                assert!(bytes >= 6 << 20 && bytes <= self.memory_kib * 1024 / 10 + 1, "{bytes}");
            }
            _ => {}
        }
    }
}

fn done() -> impl Strategy<Value = Done> {
    prop_oneof![
        Just((0, 0, 0, 0)),
        (0u64..1 << 34, 0u64..1 << 34, 0u64..1 << 20, 0u64..1 << 20),
        // A busy server of the same rate over and over.
        Just((0, 150_000_000, 0, 60_000)),
    ]
}

/// A log that grows a little is no reason to give the machine's limit back; a disk at work is.
#[test]
fn disks_at_work_are_told_from_a_log() {
    let (policy, tuned) = settings("[nfstuned]\napply=vm\nsettle=0\n");
    for (block_kib, stays) in [(200, true), (100_000, false)] {
        let mut world = World::new(1 << 20);
        let busy = (0, 15 * 11_000_000, 0, 60_000);
        for _ in 0..8 {
            world.step(&policy, &tuned, [busy, (0, 0, 0, 0)]);
        }
        let limit = Knob::Vm(nfsrahead::kernel::knob::Threshold::Limit);
        assert!(world.ours.contains_key(&limit));
        for _ in 0..40 {
            world.block_kib += block_kib;
            world.step(&policy, &tuned, [(0, 0, 0, 0); 2]);
        }
        assert_eq!(world.ours.contains_key(&limit), stays, "{block_kib}");
    }
}

/// A device is seen before its mount says whose it is: the machine's limit stays meanwhile, for ten minutes at most.
#[test]
fn the_machines_limit_outlasts_a_device_of_which_nothing_is_known() {
    let (policy, tuned) = settings("[nfstuned]\napply=vm\nsettle=0\n");
    let mut world = World::new(1 << 20);
    let (busy, idle) = ((0, 15 * 11_000_000, 0, 60_000), (0, 0, 0, 0));
    for _ in 0..8 {
        world.step(&policy, &tuned, [busy, idle]);
    }
    let limit = Knob::Vm(nfsrahead::kernel::knob::Threshold::Limit);
    let ours = world.ours.get(&limit).copied();
    assert!(ours.is_some());
    // Unmounted and mounted again.
    world.instance += 1;
    for _ in 0..39 {
        world.step(&policy, &tuned, [idle; 2]);
        assert_eq!(world.ours.get(&limit).copied(), ours);
    }
    for _ in 0..2 {
        world.step(&policy, &tuned, [idle; 2]);
    }
    assert_eq!(world.ours.get(&limit), None);
}

/// What the first writer of a new device must not wait for; the second interval of writing ends it, though a limit was just set.
#[test]
fn a_limit_grows_when_its_device_is_no_longer_new() {
    let (policy, tuned) = settings("[nfstuned]\napply=bdi\nsettle=0\n");
    let mut world = World::new(1 << 20);
    world.step(&policy, &tuned, [(0, 0, 0, 0); 2]);
    let dev = Dev { major: 0, minor: 50 };
    world.state.remember(|_: &[u8]| Some(11e6), |_: &[u8]| None);
    let max = Knob::Bdi {
        dev,
        attribute: Attribute::MaxRatioFine,
    };
    let busy = (0, 15 * 11_000_000, 0, 60_000);
    let mut seen = vec![];
    for done in [(0, 0, 0, 0), (0, 80_000_000, 0, 60_000), busy, busy] {
        world.step(&policy, &tuned, [done, (0, 0, 0, 0)]);
        seen.push(world.value(max).number().unwrap());
    }
    // 9 and 24 MiB, which are three quarters of it, of a threshold of 205 MiB.
    assert_eq!(seen, [58_594, 58_594, 156_252, 156_252]);
}

proptest! {
    #[test]
    fn values_stay_inside_their_bounds_and_an_idle_machine_is_left_alone(
        memory_kib in (1u64 << 18)..(1 << 30),
        steps in proptest::collection::vec((done(), done()), 1..40),
    ) {
        let (policy, tuned) = settings("[nfsrahead]\nnfs4=auto\n[nfstuned]\napply=readahead,bdi,vm\nsettle=0\n");
        let mut world = World::new(memory_kib);
        for (a, b) in steps {
            world.step(&policy, &tuned, [a, b]);
        }
        // Changes that had to wait are made, and then there are none.
        for _ in 0..120 {
            world.step(&policy, &tuned, [(0, 0, 0, 0); 2]);
        }
        for _ in 0..20 {
            let written = world.step(&policy, &tuned, [(0, 0, 0, 0); 2]);
            prop_assert_eq!(written, vec![]);
        }
    }

    #[test]
    fn nothing_is_written_that_apply_does_not_name(steps in proptest::collection::vec((done(), done()), 1..30)) {
        let (policy, tuned) = settings("[nfsrahead]\nnfs4=auto\n[nfstuned]\nsettle=0\n");
        let mut world = World::new(4 << 20);
        for (a, b) in steps {
            prop_assert_eq!(world.step(&policy, &tuned, [a, b]), vec![]);
        }
    }
}
