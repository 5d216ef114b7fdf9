//! `nfstune bench write`: how long a writer waits, step by step, and what a limit on the dirty data of this one mount changes.

mod limit;
mod outcome;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nfsrahead::bench::amount::{bytes, shown_bytes, Budget};
use nfsrahead::bench::plan::shuffled;
use nfsrahead::bench::write::{figures, Call, Figures, Pass};
use nfsrahead::error::{Error, Result};
use nfsrahead::float::{float, whole};
use nfsrahead::kernel::vm;
use nfsrahead::root::Root;
use serde_json::Value;

use super::facts::Facts;
use super::fio;
use super::knobs::Knobs;
use super::own_file::OwnFile;
use super::progress::Progress;
use super::stop::Stop;
use super::target::{self, Target};
use super::worker::Worker;
use super::{announce, tell, Common, Engine, STOPPED};
use outcome::{Done, Kind, Write};

/// Of the time of a pass, for the write() calls; the rest is for the fsync() of what they left in memory.
const WRITE_SHARE: f64 = 0.6;
/// Without --size: twice what the machine may hold dirty, within these.
const SIZE_MIN: u64 = 256 << 20;
const SIZE_MAX: u64 = 4 << 30;
/// Of the room in the export, how much of it may be used.
const ROOM_SHARE: f64 = 0.9;
/// A measurement has no more calls than these to remember.
const CALLS_MAX: u64 = 1 << 20;
/// A pass that is shorter has nothing to show.
const PASS_MIN: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub struct Args {
    /// The mount point, or a folder on the mount in which a file may be made
    #[arg(value_name = "MOUNT")]
    mount: PathBuf,
    /// Of the file; without it twice what this machine may hold dirty, from 256M to 4G
    #[arg(long, value_name = "SIZE")]
    size: Option<String>,
    /// Of each write()
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    record: String,
    /// The file is timed in steps of this many percent
    #[arg(long, value_name = "PERCENT", default_value = "5")]
    step: u8,
    /// Also with the limit that nfstuned would set
    #[arg(long)]
    compare: bool,
    /// Also with this limit; implies --compare
    #[arg(long, value_name = "SIZE")]
    limit: Option<String>,
    /// How often each way; without it once, and twice to compare
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=50))]
    rounds: Option<u8>,
    #[command(flatten)]
    common: Common,
}

struct Plan {
    /// None: as the machine and the room are.
    size: Option<u64>,
    record: u64,
    step_percent: u8,
    is_compare: bool,
    limit_bytes: Option<u64>,
    rounds: usize,
    budget: Budget,
    engine: Engine,
}

impl Plan {
    fn new(args: &Args) -> Result<Plan> {
        let size = |name: &str, text: &str, least: u64, most: u64| {
            bytes(text).filter(|size| (least..=most).contains(size)).ok_or_else(|| {
                let (least, most) = (shown_bytes(least), shown_bytes(most));
                Error::Usage(format!("--{name}: a size from {least} to {most}"))
            })
        };
        if !(1..=50).contains(&args.step) {
            return Err(Error::Usage("--step: from 1 to 50 percent".to_owned()));
        }
        let is_compare = args.compare || args.limit.is_some();
        let plan = Plan {
            size: args
                .size
                .as_deref()
                .map(|text| size("size", text, 1 << 20, 1 << 40))
                .transpose()?,
            record: size("record", &args.record, 1 << 10, 64 << 20)?,
            step_percent: args.step,
            is_compare,
            limit_bytes: args
                .limit
                .as_deref()
                .map(|text| size("limit", text, 1 << 20, 1 << 40))
                .transpose()?,
            rounds: usize::from(args.rounds.unwrap_or(if is_compare { 2 } else { 1 })),
            budget: args.common.budget()?,
            engine: args.common.engine,
        };
        if plan.size.is_some_and(|size| size / plan.record > CALLS_MAX) {
            return Err(Error::Usage(format!("--size: more than {CALLS_MAX} times --record")));
        }
        if plan.pass_time() < PASS_MIN {
            return Err(Error::Usage("--budget: a second at least for each pass".to_owned()));
        }
        Ok(plan)
    }

    fn passes(&self) -> usize {
        self.rounds * if self.is_compare { 2 } else { 1 }
    }

    fn pass_time(&self) -> Duration {
        self.budget.time / u32::try_from(self.passes()).unwrap_or(u32::MAX).max(1)
    }

    /// Before the room is known.
    fn size(&self, threshold: Option<u64>) -> u64 {
        let by_machine = threshold.unwrap_or(0).saturating_mul(2).clamp(SIZE_MIN, SIZE_MAX);
        let size = self.size.unwrap_or(by_machine);
        let share = |bytes: u64| bytes / self.passes().max(1) as u64;
        let size = self.budget.bytes.map_or(size, |bytes| size.min(share(bytes)));
        size.min(self.record.saturating_mul(CALLS_MAX)).max(self.record)
    }
}

pub fn run(root: &Root, args: &Args) -> Result<i32> {
    let plan = Plan::new(args)?;
    if plan.engine == Engine::Fio {
        fio::find()?;
    }
    let target = target::find(root, &args.mount)?;
    let threshold_bytes = vm::vmstat(root)?.map(|stat| stat.threshold_pages.saturating_mul(vm::page_kib() * 1024));
    // Without the comparison nothing is changed, and nobody has to be root.
    let mut knobs = None;
    if plan.is_compare {
        let opened = Knobs::open(root, target.mount.dev, target.instance)?;
        limit::is_possible(&opened)?;
        knobs = Some(opened);
    }
    let size = plan.size(threshold_bytes);
    let passes = plan.passes() as u64;
    let what = format!(
        "a file of {} at most is written {passes} time{}, step by step",
        shown_bytes(size),
        if passes == 1 { "" } else { "s" }
    );
    announce(&what, &plan.budget, Some(size.saturating_mul(passes)));
    let stop = Stop::on_signals()?;
    let bench = Bench {
        progress: Progress::new(plan.budget.time),
        worker: Worker::start(&args.mount)?,
        stop,
        plan: &plan,
        target: &target,
    };
    let mut outcome = Write {
        facts: args.common.facts(Facts::of_mount(root, &target.mount)),
        done: Vec::new(),
        size_bytes: size,
        step_percent: plan.step_percent,
        record_bytes: plan.record,
        threshold_bytes,
        limit: None,
        is_compare: plan.is_compare,
        is_fio: plan.engine == Engine::Fio,
        cautions: Vec::new(),
        cut_short: None,
    };
    let result = bench.measure(root, &mut knobs, &mut outcome);
    let restored = knobs.as_mut().map_or(Ok(()), Knobs::restore);
    bench.progress.end();
    if outcome.done.is_empty() {
        result?;
        restored?;
    } else {
        restored?;
        outcome.cut_short = match result {
            Err(e) => Some(e.to_string()),
            Ok(()) => bench.stop.is_asked().then(|| STOPPED.to_owned()),
        };
    }
    tell(&args.common, &outcome)
}

struct Bench<'a> {
    plan: &'a Plan,
    target: &'a Target,
    worker: Worker,
    progress: Progress,
    stop: Stop,
}

impl Bench<'_> {
    fn measure(&self, root: &Root, knobs: &mut Option<Knobs>, outcome: &mut Write) -> Result<()> {
        self.progress.say("making a file");
        let (folder, dev) = (self.target.folder.clone(), self.target.dev);
        let make = move || OwnFile::make(&folder, dev).map(Arc::new);
        let own = self.worker.run(Duration::ZERO, &self.stop, &self.progress, make)??;
        let result = self.passes(&own, root, knobs, outcome);
        // Closing it asks the server.
        self.worker.later(move || drop(own));
        result
    }

    fn passes(&self, own: &Arc<OwnFile>, root: &Root, knobs: &mut Option<Knobs>, outcome: &mut Write) -> Result<()> {
        self.pass(own, Kind::AsItIs, outcome)?;
        // All passes write as much as the first one could in its time.
        let written = outcome.done.first().map_or(0, |done| done.figures.bytes);
        if written < outcome.size_bytes && written > 0 {
            outcome.size_bytes = written;
            outcome
                .cautions
                .push(format!("the time was enough for {} only", shown_bytes(written)));
            outcome.again();
        }
        let mut order = vec![Kind::AsItIs; self.plan.rounds - 1];
        if let Some(knobs) = knobs.as_ref() {
            if limit::is_there(knobs)? {
                let caution = "the mount has a limit already, so \"as it is\" is not what a new mount has";
                outcome.cautions.push(caution.to_owned());
            }
            let drain = outcome.done.first().and_then(|done| done.figures.bytes_per_s);
            match limit::of(root, self.target, self.plan.limit_bytes, drain)? {
                Ok(limit) => {
                    outcome.limit = Some(limit);
                    order.extend(vec![Kind::Limited; self.plan.rounds]);
                }
                Err(why) => outcome.cautions.push(format!("no limit to compare with: {why}")),
            }
        }
        for kind in shuffled(&order, |n| fastrand::usize(..n)) {
            if self.stop.is_asked() {
                return Ok(());
            }
            if let Some(knobs) = knobs.as_mut() {
                match (kind, &outcome.limit) {
                    (Kind::Limited, Some(limit)) => limit::set(knobs, limit)?,
                    _ => knobs.restore()?,
                }
            }
            self.pass(own, kind, outcome)?;
        }
        Ok(())
    }

    /// What is there of a pass that fails counts too.
    fn pass(&self, own: &Arc<OwnFile>, kind: Kind, outcome: &mut Write) -> Result<()> {
        self.progress
            .say(format!("writing {}, {}", shown_bytes(outcome.size_bytes), kind.name()));
        let shared = Arc::new(Mutex::new(Progressing::default()));
        let job = Job {
            own: Arc::clone(own),
            folder: self.target.folder.clone(),
            size: outcome.size_bytes,
            is_size_wanted: self.plan.size.is_some(),
            record: self.plan.record,
            time: self.plan.pass_time(),
            engine: self.plan.engine,
            stop: self.stop.clone(),
            shared: Arc::clone(&shared),
        };
        let result = self
            .worker
            .run(self.plan.pass_time(), &self.stop, &self.progress, move || job.run());
        let result = result.and_then(|result| result);
        let there = std::mem::take(&mut *locked(&shared));
        outcome.size_bytes = outcome.size_bytes.min(there.size.unwrap_or(u64::MAX));
        let step_bytes = outcome.step_bytes();
        let figures = there.by_fio.unwrap_or_else(|| figures(&there.pass, step_bytes));
        if figures.bytes > 0 {
            outcome.done.push(Done {
                kind,
                pass: there.pass,
                figures,
            });
        }
        result
    }
}

/// Of a pass while it goes on.
#[derive(Default)]
struct Progressing {
    pass: Pass,
    by_fio: Option<Figures>,
    /// What fits into the room.
    size: Option<u64>,
}

fn locked(shared: &Mutex<Progressing>) -> MutexGuard<'_, Progressing> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Job {
    own: Arc<OwnFile>,
    folder: PathBuf,
    size: u64,
    is_size_wanted: bool,
    record: u64,
    time: Duration,
    engine: Engine,
    stop: Stop,
    shared: Arc<Mutex<Progressing>>,
}

impl Job {
    fn run(mut self) -> Result<()> {
        let failed = |e| Error::io("write a file in", &self.folder)(e);
        // What the pass before has left there is no longer needed.
        let own = self.own.anew().map_err(failed)?;
        let room = whole(ROOM_SHARE * float(own.room_bytes()?));
        if room < self.size && (self.is_size_wanted || room < self.record) {
            let why = format!(
                "{} are free there, {} are needed",
                shown_bytes(room),
                shown_bytes(self.size)
            );
            return Err(failed(std::io::Error::other(why)));
        }
        self.size = self.size.min(room);
        locked(&self.shared).size = Some(self.size);
        let result = match self.engine {
            Engine::Own => self.by_us(own),
            Engine::Fio => self.by_fio(&own),
        };
        result.map_err(failed)
    }

    fn by_us(&self, own: OwnFile) -> std::io::Result<()> {
        let bytes = super::random_bytes(2 * self.record);
        let began = Instant::now();
        let time = self.time.mul_f64(WRITE_SHARE);
        let mut done = 0;
        while done < self.size && began.elapsed() < time && !self.stop.is_asked() {
            let part = super::some_of(&bytes, self.record.min(self.size - done), done);
            let start = began.elapsed();
            let n = own.put(part, done)?;
            let took = began.elapsed().saturating_sub(start);
            done += n;
            locked(&self.shared).pass.calls.push(Call {
                start_s: start.as_secs_f64(),
                took_s: took.as_secs_f64(),
                bytes: n,
            });
        }
        if self.stop.is_asked() {
            own.forget();
            return Ok(());
        }
        let sync = Instant::now();
        own.sync()?;
        locked(&self.shared).pass.fsync_s = Some(sync.elapsed().as_secs_f64());
        let close = Instant::now();
        drop(own);
        locked(&self.shared).pass.close_s = Some(close.elapsed().as_secs_f64());
        Ok(())
    }

    /// fio tells its longest write() and no steps.
    fn by_fio(&self, own: &OwnFile) -> std::io::Result<()> {
        let options = [
            "rw=write".to_owned(),
            "end_fsync=1".to_owned(),
            // Or it would make the file anew by its name, which it has not.
            "create_on_open=1".to_owned(),
            format!("bs={}", self.record),
            format!("size={}", self.size),
        ];
        let job = fio::run(&own.name(), self.time.mul_f64(WRITE_SHARE), &options, &self.stop)?;
        locked(&self.shared).by_fio = Some(fio_figures(&job));
        Ok(())
    }
}

fn fio_figures(job: &Value) -> Figures {
    let seconds = |path: &str, unit: f64| fio::number(job, path).map(|number| number / unit);
    let bytes = fio::number(job, "write/io_bytes").unwrap_or(0.0);
    // With the fsync() at the end.
    let total_s = seconds("write/runtime", 1e3).unwrap_or(0.0);
    Figures {
        bytes: whole(bytes),
        total_s,
        bytes_per_s: Some(bytes / total_s).filter(|_| total_s > 0.0),
        worst_step_s: None,
        longest_write_s: seconds("write/lat_ns/max", 1e9),
        fsync_s: None,
        close_s: None,
    }
}
