//! `nfstune replay`: the decisions of nfstuned over recorded samples. Nothing of this machine is read or written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use nfsrahead::apply::replace::{overwrite_with_folder, put_aside};
use nfsrahead::conf::settings::Settings;
use nfsrahead::cycle::{Around, Decision, Standing, State, Verdict};
use nfsrahead::error::{Error, Result, EXIT_OK};
use nfsrahead::evidence::gather;
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::kernel::knob::{self, Attribute, Knob, Value};
use nfsrahead::nconnect::live::window::Moment;
use nfsrahead::nconnect::watch::{Patience, Watch};
use nfsrahead::record;
use nfsrahead::root::{Root, NFS_CONF};
use nfsrahead::sample::{self, Depth, Sample};
use tempfile::TempDir;

use crate::{complain, exit, print};

#[derive(clap::Args)]
pub struct Args {
    /// An archive that `nfstune record` wrote, or a folder like its contents
    record: PathBuf,
    /// Another configuration than the recorded one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What a record may hold; more is no record.
const FILES_MAX: usize = 1_000_000;
const FILE_BYTES_MAX: u64 = 64 << 20;

pub fn run(args: &Args) -> Result<ExitCode> {
    let failed = || Error::io("read", &args.record);
    let unpacked = TempDir::new().map_err(failed())?;
    let folder = match args.record.is_dir() {
        true => args.record.clone(),
        false => {
            unpack(&args.record, unpacked.path()).map_err(failed())?;
            unpacked.path().to_owned()
        }
    };
    let mut samples: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(failed())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(record::is_folder))
        .collect();
    samples.sort();
    if samples.is_empty() {
        return Err(failed()(io::Error::other("holds no samples")));
    }
    let work = TempDir::new().map_err(failed())?;
    let mut replay = Replay {
        root: Root::new(work.path()),
        state: State::default(),
        ours: BTreeMap::new(),
        said: BTreeMap::new(),
        watch: Watch::default(),
        advised: BTreeSet::new(),
        started_ms: None,
    };
    let mut out = String::new();
    for sample in &samples {
        lay_out(sample, work.path()).map_err(Error::io("read", sample))?;
        replay.step(args.config.as_deref(), &mut out)?;
    }
    print(out.as_bytes())?;
    Ok(exit(EXIT_OK))
}

/// Regular files below the folder, and nothing else: an archive comes from anybody.
fn unpack(archive: &Path, folder: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(File::open(archive)?);
    for (n, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if n >= FILES_MAX || !is_plain || !entry.header().entry_type().is_file() {
            return Err(io::Error::other("holds more than files of samples"));
        }
        let mut bytes = Vec::new();
        entry.by_ref().take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        overwrite_with_folder(&folder.join(path), &bytes)?;
    }
    Ok(())
}

/// The files of one sample over those of the one before. A device that was made anew gets a folder of its own, and one that has
/// gone goes, so that instances are told apart as on a live system.
fn lay_out(sample: &Path, work: &Path) -> io::Result<()> {
    let bdis = Path::new("sys/class/bdi");
    let present = names(&sample.join(bdis));
    for name in names(&work.join(bdis)) {
        let instance = |top: &Path| fs::read(top.join(bdis).join(&name).join(record::INSTANCE)).ok();
        if !present.contains(&name) || instance(sample) != instance(work) {
            put_aside(&work.join(bdis).join(&name), &work.join("gone"))?;
        }
    }
    copy(sample, work, 0)
}

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
}

fn copy(from: &Path, to: &Path, depth: u32) -> io::Result<()> {
    for name in names(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        let kind = fs::symlink_metadata(&from)?.file_type();
        if kind.is_dir() && depth < 16 {
            copy(&from, &to, depth + 1)?;
        } else if kind.is_file() {
            overwrite_with_folder(&to, &fs::read(&from)?)?;
        }
    }
    Ok(())
}

struct Replay {
    root: Root,
    state: State,
    /// What would have been written: over which value, and what.
    ours: BTreeMap<Knob, (Value, Value)>,
    /// The last line about each knob, so that a line is a change.
    said: BTreeMap<Knob, String>,
    watch: Watch,
    /// Advice that was told: each once.
    advised: BTreeSet<String>,
    started_ms: Option<u64>,
}

impl Replay {
    fn step(&mut self, config: Option<&Path>, out: &mut String) -> Result<()> {
        let settings = self.settings(config);
        let mut sample = sample::take(&self.root, Depth::Counters)?;
        self.overlay(&mut sample);
        let seconds = sample
            .boottime_ms
            .saturating_sub(*self.started_ms.get_or_insert(sample.boottime_ms))
            / 1000;
        self.advise(&sample, seconds, out)?;
        self.state.learn(sample);
        let decisions = self.decide(&settings);
        for decision in &decisions {
            let text = line(decision);
            if self.said.get(&decision.knob) != Some(&text) {
                let _ = writeln!(out, "{seconds:>6} s  {}: {text}", decision.knob);
            }
            self.said.insert(decision.knob, text);
            self.carry_out(decision);
        }
        Ok(())
    }

    /// As nfstuned would, but for what it knows from before and of single sockets.
    fn advise(&mut self, sample: &Sample, seconds: u64, out: &mut String) -> Result<()> {
        let now_ms = sample.boottime_ms;
        let all = gather(&self.root, sample)?;
        self.watch.keep(now_ms, |client| all.contains_key(client));
        for (client, evidence) in all {
            let moment = Moment {
                unix_ms: now_ms,
                ..evidence.moment
            };
            self.watch.add(&client, moment, evidence.facts);
            let interface = evidence.interface.as_ref();
            for advice in self.watch.advice(&evidence.group, interface, Patience::Verdict, now_ms) {
                if self.advised.insert(advice.id) {
                    let _ = writeln!(out, "{seconds:>6} s  {client}: {}: {}", advice.kind, advice.title);
                }
            }
        }
        Ok(())
    }

    /// The recorded configuration is read with the recorded variables: none.
    fn settings(&self, config: Option<&Path>) -> Settings {
        let (root, file) = match config {
            Some(file) => (Root::default(), file),
            None => (self.root.clone(), Path::new(NFS_CONF)),
        };
        let settings = Settings::load(&root, file, &|_| None);
        if self.started_ms.is_none() {
            for warning in &settings.warnings {
                complain(warning);
            }
        }
        settings
    }

    /// A knob shows what would have been written, as long as its record shows what it was written over.
    fn overlay(&mut self, sample: &mut Sample) {
        let root = &self.root;
        self.ours
            .retain(|knob, (over, _)| knob::read(root, *knob).ok().flatten() == Some(*over));
        for device in &mut sample.devices {
            let knob = read_ahead(device.dev);
            if let Some((_, Value::Number(kib))) = self.ours.get(&knob) {
                device.read_ahead_kib = Some(*kib);
            }
        }
    }

    fn decide(&mut self, settings: &Settings) -> Vec<Decision> {
        let mut state = std::mem::take(&mut self.state);
        let ours = |knob: Knob| self.ours.get(&knob).map(|(_, value)| *value);
        let decisions = state.decide(&Around {
            policy: &settings.policy,
            tuned: &settings.tuned,
            value: &|knob| ours(knob).or_else(|| knob::read(&self.root, knob).ok().flatten()),
            owner: &|_| None,
            standing: &|knob, _| Standing {
                ours: ours(knob),
                handed_off: None,
            },
            is_container: false,
        });
        self.state = state;
        decisions
    }

    fn carry_out(&mut self, decision: &Decision) {
        match (&decision.verdict, decision.want, decision.now) {
            (Verdict::Write, Some(value), Some(now)) => {
                let over = self.ours.get(&decision.knob).map_or(now, |(over, _)| *over);
                self.ours.insert(decision.knob, (over, value));
                self.state.done(decision);
            }
            (Verdict::GiveBack, ..) => {
                self.ours.remove(&decision.knob);
                self.state.done(decision);
            }
            _ => {}
        }
    }
}

fn read_ahead(dev: Dev) -> Knob {
    Knob::Bdi {
        dev,
        attribute: Attribute::ReadAheadKib,
    }
}

fn line(decision: &Decision) -> String {
    let shown = |value: Option<Value>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
    let (now, want) = (shown(decision.now), shown(decision.want));
    let reason = &decision.reason;
    match &decision.verdict {
        Verdict::Fine => format!("{now}: {reason}"),
        Verdict::Write => format!("{now} -> {want}: {reason}"),
        Verdict::GiveBack => format!("{now} goes back: {reason}"),
        Verdict::Held(hold) => format!("{now}, {want} is wanted: {reason}; not written: {hold}"),
    }
}
