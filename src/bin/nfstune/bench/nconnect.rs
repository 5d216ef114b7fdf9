//! `nfstune bench nconnect`: an export mounted with one number of connections after the other, where nobody else sees it.
//!
//! All of it happens in one thread that has a mount namespace of its own, and perhaps a network namespace: when the thread
//! ends, however it ends, the mount is gone.

mod direct;
mod mounted;
mod outcome;
mod sharing;

use std::fs::File;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nfsrahead::bench::amount::{shown_bytes, Budget};
use nfsrahead::bench::plan::{self, shuffled, values};
use nfsrahead::error::{Error, Result};
use nfsrahead::float::whole;
use nfsrahead::kernel::mountinfo::Mount;
use nfsrahead::nconnect::sweep::model::{judge, Question};
use nfsrahead::nconnect::sweep::{Direction, Sample, Work};
use nfsrahead::root::{Root, SPARE_FOLDERS};
use nix::mount::{mount, MsFlags};
use nix::sched::{setns, unshare, CloneFlags};

use super::facts::{self, Facts};
use super::fio;
use super::progress::Progress;
use super::stop::Stop;
use super::worker::Worker;
use super::{announce, tell, Common, Engine, STOPPED};
use direct::Direct;
use mounted::Mounted;
use outcome::Nconnect;

/// The kernel's most (include/linux/nfs_fs_sb.h `NFS_MAX_CONNECTIONS`).
const MOST: u64 = 16;
/// Requests in flight: one cannot use two connections and so shows the noise, the others are the classes of the model.
const DEPTHS: [u64; 3] = [1, 4, 16];
/// Measurements of each mount: both directions at each depth.
const SLOTS: u32 = 6;
/// Part of the time for measuring; mounting, laying out the file and unmounting have the rest.
const SHARE: f64 = 0.7;
/// For one mount(8) or umount(8).
const MOUNT_TIME: Duration = Duration::from_secs(45);
/// For the name of the server.
const NAME_TIME: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
pub struct Args {
    /// As it would be mounted
    #[arg(value_name = "SERVER:/EXPORT")]
    export: String,
    /// Numbers of connections: a list, or first and last, each the double of the one before
    #[arg(long, value_name = "N,N", default_value = "1,2,4,8,16")]
    values: String,
    /// Mount options, but for nconnect
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    options: String,
    /// Work in this network namespace, which must reach the server; see ip-netns(8)
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,
    /// How often each number is measured
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u8).range(2..=50))]
    rounds: u8,
    /// A number this many percent below the best is as good
    #[arg(long, value_name = "PERCENT", default_value = "5")]
    tolerance: f64,
    #[command(flatten)]
    common: Common,
}

struct Plan {
    values: Vec<u64>,
    rounds: usize,
    slot: Duration,
    budget: Budget,
    engine: Engine,
    export: String,
    server: String,
    options: String,
}

impl Plan {
    fn new(args: &Args) -> Result<Plan> {
        let values = values(&args.values, 1, MOST, 1).map_err(|why| Error::Usage(format!("--values: {why}")))?;
        let usage = |text: &str| Error::Usage(text.to_owned());
        let is_plain = |text: &str| text.chars().all(|c| !c.is_control());
        let server = facts::server(&args.export)
            .filter(|_| is_plain(&args.export) && !args.export.starts_with('-'))
            .ok_or_else(|| usage("not SERVER:/EXPORT"))?;
        let names = || {
            args.options
                .split(',')
                .map(|option| option.split('=').next().unwrap_or_default())
        };
        if !is_plain(&args.options) || args.options.contains(char::is_whitespace) {
            return Err(usage("--options: a list of mount options, parted by commas"));
        }
        if names().any(|name| name == "nconnect") {
            return Err(usage("--options: nconnect is what is varied: give --values"));
        }
        if args.options.split(',').any(|option| option == "sec=krb5p") {
            return Err(usage("--options: more than one connection is not for sec=krb5p"));
        }
        if !(0.1..=50.0).contains(&args.tolerance) {
            return Err(usage("--tolerance: from 0.1 to 50 percent"));
        }
        if args
            .netns
            .as_ref()
            .is_some_and(|name| name.is_empty() || name.contains('/') || name.starts_with('.'))
        {
            return Err(usage("--netns: a name as ip netns has it"));
        }
        let budget = args.common.budget()?;
        let rounds = usize::from(args.rounds);
        let measurements = values.len() * rounds * DEPTHS.len() * 2;
        let slot = plan::slot(budget.time.mul_f64(SHARE), measurements).map_err(|needed| {
            let seconds = whole((needed.as_secs_f64() / SHARE).ceil());
            Error::Usage(format!("--budget: {seconds}s at least for so many values and rounds"))
        })?;
        // Locks are not needed, and NFSv3 would want a daemon for them.
        let is_v3 = args
            .options
            .split(',')
            .any(|option| matches!(option, "vers=3" | "nfsvers=3" | "v3"));
        let has_lock = names().any(|name| matches!(name, "lock" | "nolock" | "local_lock"));
        let mut options = args.options.clone();
        if is_v3 && !has_lock {
            options.push_str(",nolock");
        }
        Ok(Plan {
            slot,
            rounds,
            budget,
            engine: args.common.engine,
            server: server.to_owned(),
            export: args.export.clone(),
            options,
            values,
        })
    }

    fn measurements(&self) -> u64 {
        (self.values.len() * self.rounds * DEPTHS.len() * 2) as u64
    }
}

pub fn run(root: &Root, args: &Args) -> Result<i32> {
    let plan = Plan::new(args)?;
    if !root.is_live() {
        return Err(Error::Usage("nothing can be mounted below another --root".to_owned()));
    }
    if plan.engine == Engine::Fio {
        fio::find()?;
    }
    let what = format!(
        "{} mounted {} times, {} reads and writes of {:.1} s",
        if args.common.anonymous {
            "the export is"
        } else {
            &plan.export
        },
        plan.values.len() * plan.rounds,
        plan.measurements(),
        plan.slot.as_secs_f64()
    );
    announce(&what, &plan.budget, None);
    let stop = Stop::on_signals()?;
    let bench = Bench {
        progress: Progress::new(plan.budget.time),
        worker: Worker::start(&plan.export)?,
        stop,
        plan: &plan,
        root,
    };
    let mut found = Found::default();
    let result = bench.measure(args.netns.as_deref(), &mut found);
    bench.progress.end();
    let cut_short = match result {
        Err(e) if found.samples.is_empty() => return Err(e),
        Err(e) => Some(e.to_string()),
        Ok(()) => bench.stop.is_asked().then(|| STOPPED.to_owned()),
    };
    let question = Question {
        variable: "nconnect".to_owned(),
        rsize_bytes: found.record_bytes.max(1024),
        tolerance: args.tolerance / 100.0,
    };
    let facts = match &found.mount {
        Some(mount) => Facts {
            mount_point: None,
            connections: None,
            ..Facts::of_mount(root, mount)
        },
        None => Facts::of_host(root, None),
    };
    let outcome = Nconnect {
        facts: args.common.facts(facts),
        sweep: crate::sweep::Outcome {
            report: judge(&found.samples, &question),
            question,
            cautions: Vec::new(),
        },
        samples: found.samples,
        rounds: found.rounds,
        planned_rounds: plan.rounds,
        options: plan.options.clone(),
        is_own_netns: args.netns.is_some(),
        is_fio: plan.engine == Engine::Fio,
        cut_short,
    };
    tell(&args.common, &outcome)
}

#[derive(Default)]
struct Found {
    samples: Vec<Sample>,
    record_bytes: u64,
    mount: Option<Mount>,
    /// Whole ones.
    rounds: usize,
    mounts: u32,
    /// What mounting, laying out the file and unmounting took, of all of them.
    overhead: Duration,
}

struct Bench<'a> {
    root: &'a Root,
    plan: &'a Plan,
    worker: Worker,
    progress: Progress,
    stop: Stop,
}

impl Bench<'_> {
    fn measure(&self, netns: Option<&str>, found: &mut Found) -> Result<()> {
        self.progress.say("looking for mounts of the same server");
        let addresses = self.addresses()?;
        let (root, name) = (self.root.clone(), netns.map(str::to_owned));
        let enter = move || enter(&root, name.as_deref());
        let folder = self.worker.run(NAME_TIME, &self.stop, &self.progress, enter)??;
        self.refuse_shared(&addresses, netns.is_some())?;
        for round in 0..self.plan.rounds {
            let order = shuffled(&self.plan.values, |n| fastrand::usize(..n));
            for (at, value) in order.iter().enumerate() {
                let mounts = self.plan.values.len() * (self.plan.rounds - round) - at;
                let Some(slot) = self.slot(mounts, found.overhead / found.mounts.max(1)) else {
                    return Ok(());
                };
                if self.stop.is_asked() {
                    return Ok(());
                }
                let before = self.progress.elapsed();
                self.one(*value, round, slot, &folder, &addresses, found)?;
                let took = self.progress.elapsed().saturating_sub(before);
                found.overhead += took.saturating_sub(SLOTS * slot);
                found.mounts += 1;
            }
            found.rounds = round + 1;
        }
        Ok(())
    }

    /// As long as planned, or as the time that is left allows for so many more mounts. None: there is none left.
    fn slot(&self, mounts: usize, overhead: Duration) -> Option<Duration> {
        let left = self.progress.left();
        let mounts = u32::try_from(mounts).unwrap_or(u32::MAX).max(1);
        let each = (left / mounts).saturating_sub(overhead) / SLOTS;
        (!left.is_zero()).then(|| each.min(self.plan.slot).max(plan::SLOT_MIN))
    }

    /// Those that the name means; a name server may be as dead as an NFS server.
    fn addresses(&self) -> Result<Vec<IpAddr>> {
        let server = self
            .plan
            .server
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let export = self.plan.export.clone();
        let ask = move || {
            let found = (server.as_str(), 2049).to_socket_addrs();
            let found = found.map_err(Error::io("find the server of", export))?;
            Ok(found.map(|address| address.ip()).collect())
        };
        self.worker.run(NAME_TIME, &self.stop, &self.progress, ask)?
    }

    fn refuse_shared(&self, addresses: &[IpAddr], is_own_netns: bool) -> Result<()> {
        let (root, addresses) = (self.root.clone(), addresses.to_vec());
        let look = move || sharing::clients(&root, &addresses);
        let clients = self.worker.run(NAME_TIME, &self.stop, &self.progress, look)??;
        match clients {
            0 => Ok(()),
            _ => Err(sharing::refusal(&self.plan.export, is_own_netns)),
        }
    }

    /// One mount: writes, then reads of what was written.
    fn one(
        &self,
        value: u64,
        round: usize,
        slot: Duration,
        folder: &Path,
        addresses: &[IpAddr],
        found: &mut Found,
    ) -> Result<()> {
        self.progress.say(format!("nconnect {value}, round {}", round + 1));
        let shared = Arc::new(Mutex::new((Vec::new(), None)));
        let job = One {
            mount: Mounted {
                root: self.root.clone(),
                export: self.plan.export.clone(),
                options: self.plan.options.clone(),
                folder: folder.to_owned(),
                addresses: addresses.to_vec(),
                connections: value,
            },
            slot,
            bytes_each: self
                .plan
                .budget
                .bytes
                .map(|bytes| bytes / self.plan.measurements().max(1)),
            engine: self.plan.engine,
            stop: self.stop.clone(),
            shared: Arc::clone(&shared),
        };
        let time = 2 * MOUNT_TIME + 2 * SLOTS * slot;
        let result = self.worker.run(time, &self.stop, &self.progress, move || job.run());
        let (rates, mount) = std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some((mount, record_bytes)) = mount {
            found.record_bytes = record_bytes;
            found.mount.get_or_insert(mount);
        }
        found.samples.extend(rates.into_iter().map(|rate: Rate| Sample {
            run: String::new(),
            setting: value,
            repetition: (round, 0),
            direction: rate.direction,
            work: Work {
                file_bytes: None,
                is_random: false,
                in_flight_bytes: rate.depth * rate.record_bytes,
                record_bytes: rate.record_bytes,
            },
            bytes_per_second: rate.bytes_per_s,
            again_bytes_per_second: None,
        }));
        result?
    }
}

/// Into namespaces of this thread's own. Where nothing is that a measurement needs, the export will be mounted.
fn enter(root: &Root, netns: Option<&str>) -> Result<PathBuf> {
    if let Some(name) = netns {
        let path = root.network_namespace(name);
        let file = File::open(&path).map_err(Error::io("open", &path))?;
        setns(file, CloneFlags::CLONE_NEWNET).map_err(|e| Error::io("enter", &path)(e.into()))?;
    }
    let own = || {
        unshare(CloneFlags::CLONE_NEWNS)?;
        // Or the mount would be seen outside.
        mount(
            None::<&str>,
            "/",
            None::<&str>,
            MsFlags::MS_REC | MsFlags::MS_PRIVATE,
            None::<&str>,
        )
    };
    own().map_err(|e| Error::io("make a mount namespace for", "/")(e.into()))?;
    let nfs = nfsrahead::kernel::mountinfo::mounts(root, None)?;
    let is_free = |folder: &&Path| {
        let is_nfs = |mount: &Mount| mount.mount_point.as_deref() == Some(folder.as_os_str().as_encoded_bytes());
        !nfs.iter().any(is_nfs) && folder.is_dir()
    };
    let found = SPARE_FOLDERS.iter().map(Path::new).find(is_free);
    found.map(Path::to_owned).ok_or_else(|| {
        let none = std::io::Error::from(std::io::ErrorKind::NotFound);
        Error::io("find a folder to mount on, as", SPARE_FOLDERS[0])(none)
    })
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    direction: Direction,
    depth: u64,
    record_bytes: u64,
    bytes_per_s: f64,
}

/// What is known already when the rest takes too long.
type Shared = Arc<Mutex<(Vec<Rate>, Option<(Mount, u64)>)>>;

struct One {
    mount: Mounted,
    slot: Duration,
    bytes_each: Option<u64>,
    engine: Engine,
    stop: Stop,
    shared: Shared,
}

impl One {
    fn run(self) -> Result<()> {
        let mount = self.mount.mount(MOUNT_TIME, &self.stop)?;
        // Unmounts whatever comes of it.
        let result = self.measure(&mount);
        let unmounted = self.mount.unmount(MOUNT_TIME);
        result.and(unmounted)
    }

    fn measure(&self, mount: &Mount) -> Result<()> {
        let largest = |bytes: Option<u64>| bytes.unwrap_or(1 << 20).clamp(4 << 10, 1 << 20);
        let record_bytes = largest(mount.rsize_kib().map(|kib| kib * 1024)).min(largest(mount.wsize_bytes()));
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).1 = Some((mount.clone(), record_bytes));
        let deepest = DEPTHS.into_iter().max().unwrap_or(1);
        let direct = Direct::new(&self.mount.folder, record_bytes, deepest, self.engine, &self.stop)?;
        for direction in [Direction::Write, Direction::Read] {
            for depth in shuffled(&DEPTHS, |n| fastrand::usize(..n)) {
                if self.stop.is_asked() {
                    return Ok(());
                }
                let bytes_per_s = direct.rate(direction, depth, self.slot, self.bytes_each)?;
                if !self.stop.is_asked() {
                    self.shared.lock().unwrap_or_else(PoisonError::into_inner).0.push(Rate {
                        direction,
                        depth,
                        record_bytes,
                        bytes_per_s,
                    });
                }
            }
        }
        Ok(())
    }
}

/// How a size is shown in the notes of the outcome.
fn shown_depths(record_bytes: u64) -> String {
    let depths: Vec<String> = DEPTHS.iter().map(u64::to_string).collect();
    format!("{} at a time of {}", depths.join(", "), shown_bytes(record_bytes))
}
