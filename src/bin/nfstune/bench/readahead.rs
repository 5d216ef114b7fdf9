//! `nfstune bench readahead`: sequential reads of one file under each value, on the live mount.
//!
//! No remount: the kernel copies the readahead of the device into each open file, so the file is opened anew for each
//! measurement. Its cache is emptied before each, for it alone.

mod outcome;

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nfsrahead::bench::amount::{bytes, shown_bytes, Budget};
use nfsrahead::bench::answer::{answer, Verdict};
use nfsrahead::bench::drop_in::DropIn;
use nfsrahead::bench::plan::{self, shuffled, values};
use nfsrahead::conf::value::{MAX_KIB, MIN_KIB};
use nfsrahead::error::{Error, Result};
use nfsrahead::float::{float, whole};
use nfsrahead::kernel::knob::Attribute;
use nfsrahead::kernel::vm::page_kib;
use nfsrahead::root::Root;

use super::facts::Facts;
use super::knobs::Knobs;
use super::own_file::{is_on, OwnFile};
use super::progress::Progress;
use super::stop::Stop;
use super::target::{self, Target};
use super::worker::Worker;
use super::{announce, cache, fio, tell, Common, Engine, STOPPED};
use outcome::{Readahead, Sample};

/// Reads of this size show what the window is; the answer is theirs.
const SMALL: u64 = 64 << 10;
/// Reads of rsize and more pass a small window by (kernel: mm/readahead.c `ractl_max_pages`), as with `dd bs=1M`.
const LARGE: u64 = 1 << 20;
/// Rounds of the values that may still be the answer, where the budget has time left.
const MORE_ROUNDS: usize = 6;
/// Shares of the time: the file, then the rounds that are always made; the rest is for more rounds.
const FILE_SHARE: f64 = 0.15;
const ROUNDS_SHARE: f64 = 0.6;
/// A smaller file is over before its window has grown.
const SIZE_MIN: u64 = 8 << 20;
/// The file is written so much at a time.
const SYNC_EACH: u64 = 16 << 20;
/// Of the room in the export, how much of it may be used.
const ROOM_SHARE: f64 = 0.5;

#[derive(clap::Args)]
pub struct Args {
    /// The mount point, or a folder on the mount in which a file may be made
    #[arg(value_name = "MOUNT")]
    mount: PathBuf,
    /// Values of read_ahead_kb: a list, or first and last, each the double of the one before
    #[arg(long, value_name = "KIB..KIB", default_value = "128..16384")]
    values: String,
    /// Of the file, at most
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    size: String,
    /// Read this file of the mount, and make none
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Make a file, which has no name and is gone afterwards: the default
    #[arg(long, conflicts_with = "file")]
    make: bool,
    /// How often each value is measured, at least
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u8).range(3..=50))]
    rounds: u8,
    /// A value this many percent below the best is as good
    #[arg(long, value_name = "PERCENT", default_value = "3")]
    tolerance: f64,
    /// Write the answer to a file in /etc/nfs.conf.d
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    common: Common,
}

/// What is to be done, all of it checked.
struct Plan {
    values_kib: Vec<u64>,
    size: u64,
    rounds: usize,
    tolerance: f64,
    budget: Budget,
    engine: Engine,
    slot: Duration,
}

impl Plan {
    fn new(args: &Args) -> Result<Plan> {
        let values_kib = values(&args.values, MIN_KIB.max(page_kib()), MAX_KIB, page_kib())
            .map_err(|why| Error::Usage(format!("--values: {why}")))?;
        let size = bytes(&args.size)
            .filter(|size| *size >= SIZE_MIN)
            .ok_or_else(|| Error::Usage(format!("--size: a size of {} at least", shown_bytes(SIZE_MIN))))?;
        if !(0.1..=50.0).contains(&args.tolerance) {
            return Err(Error::Usage("--tolerance: from 0.1 to 50 percent".to_owned()));
        }
        let budget = args.common.budget()?;
        let rounds = usize::from(args.rounds);
        let slot = plan::slot(budget.time.mul_f64(ROUNDS_SHARE), 2 * rounds * values_kib.len()).map_err(|needed| {
            let seconds = whole((needed.as_secs_f64() / ROUNDS_SHARE).ceil());
            Error::Usage(format!("--budget: {seconds}s at least for so many values and rounds"))
        })?;
        Ok(Plan {
            values_kib,
            size,
            rounds,
            tolerance: args.tolerance / 100.0,
            budget,
            engine: args.common.engine,
            slot,
        })
    }

    fn measurements(&self) -> u64 {
        let more = if self.budget.bytes.is_some() { 0 } else { MORE_ROUNDS };
        (self.values_kib.len() * (2 * self.rounds + more)) as u64
    }

    /// Of each measurement; the file itself goes over the wire too.
    fn bytes_each(&self, file_bytes: u64) -> u64 {
        match self.budget.bytes {
            Some(bytes) => (bytes.saturating_sub(file_bytes) / self.measurements().max(1)).min(file_bytes),
            None => file_bytes,
        }
    }
}

pub fn run(root: &Root, args: &Args) -> Result<i32> {
    let plan = Plan::new(args)?;
    if plan.engine == Engine::Fio {
        fio::find()?;
    }
    let target = target::find(root, &args.mount)?;
    let mut knobs = Knobs::open(root, target.mount.dev, target.instance)?;
    let present_kib = knobs.now(Attribute::ReadAheadKib)?;
    let most = plan.size.saturating_mul(plan.measurements() + 1);
    let what = format!(
        "{} values of read_ahead_kb, {} rounds and more of the best, a file of {} at most",
        plan.values_kib.len(),
        plan.rounds,
        shown_bytes(plan.size)
    );
    announce(&what, &plan.budget, Some(most));
    let stop = Stop::on_signals()?;
    let bench = Bench {
        progress: Progress::new(plan.budget.time),
        worker: Worker::start(&args.mount)?,
        stop,
        plan: &plan,
    };
    let mut found = Found::default();
    let source = args.file.as_deref();
    let result = bench.measure(root, &target, source, &mut knobs, &mut found);
    let restored = knobs.restore();
    bench.progress.end();
    let cut_short = match &result {
        Err(e) => Some(e.to_string()),
        Ok(()) if bench.stop.is_asked() => Some(STOPPED.to_owned()),
        Ok(()) => None,
    };
    if found.samples.is_empty() {
        result?;
    }
    restored?;
    let rates = |record: u64| {
        let of_record = found.samples.iter().filter(move |sample| sample.record_bytes == record);
        of_record
            .map(|sample| (sample.kib, sample.bytes_per_s()))
            .collect::<Vec<_>>()
    };
    let small = answer(&rates(SMALL), plan.tolerance);
    let drop_in = match small.verdict {
        Verdict::Enough(kib) => DropIn::new(target.mount.mount_point.as_deref().unwrap_or_default(), kib),
        _ => None,
    };
    let mut outcome = Readahead {
        facts: args.common.facts(Facts::of_mount(root, &target.mount)),
        large: answer(&rates(LARGE), plan.tolerance),
        small,
        tolerance: plan.tolerance,
        present_kib,
        file_bytes: found.file_bytes,
        is_own_file: args.file.is_none(),
        is_fio: plan.engine == Engine::Fio,
        is_anonymous: args.common.anonymous,
        samples: found.samples,
        cautions: found.cautions,
        drop_in,
        applied: None,
        cut_short,
    };
    if args.apply && outcome.cut_short.is_none() {
        outcome.apply(root)?;
    }
    tell(&args.common, &outcome)
}

/// What there is, also when it ends early.
#[derive(Default)]
struct Found {
    file_bytes: u64,
    samples: Vec<Sample>,
    cautions: Vec<String>,
}

/// The file that is read.
enum Source {
    Own(OwnFile),
    Given(PathBuf),
}

impl Source {
    fn open(&self) -> Result<File> {
        match self {
            Source::Own(own) => own.reopen(),
            Source::Given(path) => open_given(path),
        }
    }

    fn name(&self) -> PathBuf {
        match self {
            Source::Own(own) => own.name(),
            Source::Given(path) => path.clone(),
        }
    }
}

/// Never one that waits for a writer.
fn open_given(path: &Path) -> Result<File> {
    let open = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    open.map_err(Error::io("read", path))
}

struct Bench<'a> {
    plan: &'a Plan,
    worker: Worker,
    progress: Progress,
    stop: Stop,
}

impl Bench<'_> {
    fn measure(
        &self,
        root: &Root,
        target: &Target,
        given: Option<&Path>,
        knobs: &mut Knobs,
        found: &mut Found,
    ) -> Result<()> {
        // Who may not write the knob shall know before a file is made: what stands there is put there.
        if let Some(kib) = knobs.now(Attribute::ReadAheadKib)? {
            knobs.set(Attribute::ReadAheadKib, kib)?;
        }
        let (source, file_bytes) = match given {
            Some(path) => self.given(root, target, path)?,
            None => self.make(target)?,
        };
        let source = Arc::new(source);
        found.file_bytes = file_bytes;
        if file_bytes < self.plan.size && given.is_none() {
            found.cautions.push(format!(
                "the file has {} only: more did not fit into the time or the room",
                shown_bytes(file_bytes)
            ));
        }
        for round in 1..=self.plan.rounds {
            for record in [SMALL, LARGE] {
                self.round(&self.plan.values_kib, round, record, &source, knobs, found)?;
            }
        }
        if self.plan.budget.bytes.is_some() {
            return Ok(());
        }
        for round in self.plan.rounds + 1..=self.plan.rounds + MORE_ROUNDS {
            let small = found.samples.iter().filter(|sample| sample.record_bytes == SMALL);
            let rates: Vec<_> = small.map(|sample| (sample.kib, sample.bytes_per_s())).collect();
            let values = answer(&rates, self.plan.tolerance).in_question();
            let needed = self
                .plan
                .slot
                .saturating_mul(u32::try_from(values.len()).unwrap_or(u32::MAX));
            if self.stop.is_asked() || self.progress.left() < needed {
                break;
            }
            self.round(&values, round, SMALL, &source, knobs, found)?;
        }
        Ok(())
    }

    /// A file of the admin's, read once before, so that the server's cache is warm for all values.
    fn given(&self, root: &Root, target: &Target, path: &Path) -> Result<(Source, u64)> {
        let path = root.join(&std::path::absolute(path).map_err(Error::io("find", path))?);
        let (time, dev, size) = (self.plan.budget.time.mul_f64(FILE_SHARE), target.dev, self.plan.size);
        let stop = self.stop.clone();
        self.progress.say("reading the file once");
        let warm = move || {
            let file = open_given(&path)?;
            let looked = is_on(&file, dev).and_then(|()| file.metadata());
            let metadata = looked.map_err(Error::io("read", &path))?;
            if !metadata.is_file() || metadata.len() < SIZE_MIN {
                let why = format!("is no file of {} at least", shown_bytes(SIZE_MIN));
                return Err(Error::io("read", &path)(io::Error::other(why)));
            }
            let size = metadata.len().min(size);
            let read = read(&file, LARGE, size, time, &stop).map_err(Error::io("read", &path))?;
            // What was not read in this time is not read later either.
            Ok((Source::Given(path), read.bytes.max(SIZE_MIN).min(size)))
        };
        self.worker.run(time, &self.stop, &self.progress, warm)?
    }

    fn make(&self, target: &Target) -> Result<(Source, u64)> {
        let (time, dev, size) = (self.plan.budget.time.mul_f64(FILE_SHARE), target.dev, self.plan.size);
        let size = self.plan.budget.bytes.map_or(size, |bytes| size.min(bytes / 4));
        let folder = target.folder.clone();
        let stop = self.stop.clone();
        self.progress.say("writing a file");
        let make = move || {
            let own = OwnFile::make(&folder, dev)?;
            let room = whole(ROOM_SHARE * float(own.room_bytes()?));
            if room < SIZE_MIN {
                let why = io::Error::other("too little space left there");
                return Err(Error::io("make a file in", &folder)(why));
            }
            fill(&own, size.min(room), time, &stop).map_err(Error::io("write a file in", &folder))?;
            let length = own.len()?;
            Ok((Source::Own(own), length))
        };
        // The time of the fsync() at its end is the server's.
        self.worker.run(3 * time, &self.stop, &self.progress, make)?
    }

    fn round(
        &self,
        values: &[u64],
        round: usize,
        record: u64,
        source: &Arc<Source>,
        knobs: &mut Knobs,
        found: &mut Found,
    ) -> Result<()> {
        for kib in shuffled(values, |n| fastrand::usize(..n)) {
            if self.stop.is_asked() {
                return Ok(());
            }
            self.progress.say(format!(
                "read_ahead_kb {kib}, reads of {}, round {round}",
                shown_bytes(record)
            ));
            knobs.set(Attribute::ReadAheadKib, kib)?;
            let bytes = self.plan.bytes_each(found.file_bytes);
            let read = self.one(source, record, bytes)?;
            if read.stayed_pages > 0 {
                found.stayed(read.stayed_pages, found.file_bytes);
            }
            if read.bytes > 0 && !self.stop.is_asked() {
                found.samples.push(Sample {
                    kib,
                    record_bytes: record,
                    round,
                    bytes: read.bytes,
                    seconds: read.seconds,
                });
            }
        }
        Ok(())
    }

    fn one(&self, source: &Arc<Source>, record: u64, bytes: u64) -> Result<Read> {
        let (slot, engine, stop) = (self.plan.slot, self.plan.engine, self.stop.clone());
        let source = Arc::clone(source);
        let job = move || {
            let file = source.open()?;
            let name = source.name();
            let failed = |e| Error::io("read", &name)(e);
            let stayed_pages = cache::drop_cached(&file, bytes).map_err(failed)?;
            let read = match engine {
                Engine::Own => read(&file, record, bytes, slot, &stop),
                Engine::Fio => read_by_fio(&name, record, bytes, slot, &stop),
            };
            let read = read.map_err(failed)?;
            Ok(Read { stayed_pages, ..read })
        };
        self.worker.run(slot, &self.stop, &self.progress, job)?
    }
}

impl Found {
    fn stayed(&mut self, pages: u64, of_bytes: u64) {
        let percent = 100.0 * float(pages * page_kib() * 1024) / float(of_bytes.max(1));
        let text = format!(
            "up to {percent:.0} % of the file stayed in the cache, in use by another program: figures may be too high"
        );
        self.cautions.retain(|caution| !caution.contains("stayed in the cache"));
        self.cautions.push(text);
    }
}

/// One measurement.
#[derive(Default)]
struct Read {
    bytes: u64,
    seconds: f64,
    stayed_pages: u64,
}

/// From the start, until `bytes` are read, the file or the time ends.
fn read(file: &File, record: u64, bytes: u64, time: Duration, stop: &Stop) -> io::Result<Read> {
    let mut buffer = vec![0; usize::try_from(record).unwrap_or(64 << 10)];
    let began = Instant::now();
    let mut done = 0;
    while done < bytes && began.elapsed() < time && !stop.is_asked() {
        match file.read_at(&mut buffer, done) {
            Ok(0) => break,
            Ok(n) => done += n as u64,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(Read {
        bytes: done,
        seconds: began.elapsed().as_secs_f64(),
        stayed_pages: 0,
    })
}

fn read_by_fio(name: &Path, record: u64, bytes: u64, time: Duration, stop: &Stop) -> io::Result<Read> {
    let options = [
        "rw=read".to_owned(),
        "readonly".to_owned(),
        format!("bs={record}"),
        format!("size={bytes}"),
    ];
    let job = fio::run(name, time, &options, stop)?;
    let number = |path| fio::number(&job, path).unwrap_or(0.0);
    Ok(Read {
        bytes: whole(number("read/io_bytes")),
        seconds: number("read/runtime").max(1.0) / 1000.0,
        stayed_pages: 0,
    })
}

/// Writes random bytes: nothing that a server or a link could make smaller.
fn fill(own: &OwnFile, size: u64, time: Duration, stop: &Stop) -> io::Result<()> {
    let bytes = super::random_bytes(2 * LARGE);
    let began = Instant::now();
    let (mut done, mut synced) = (0, 0);
    // What is only in memory would be written after the time.
    while done < size && began.elapsed() < time && !stop.is_asked() {
        let part = super::some_of(&bytes, LARGE.min(size - done), done);
        done += own.put(part, done)?;
        if done - synced >= SYNC_EACH {
            own.sync()?;
            synced = done;
        }
    }
    own.sync()
}
