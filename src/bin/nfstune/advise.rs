//! `nfstune advise`, `advice` and `snippet`: how many connections, why, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use nfsrahead::apply::lock::{self, Role};
use nfsrahead::apply::replace::replace_with_folder;
use nfsrahead::client::{join, Key};
use nfsrahead::error::{Error, Result, EXIT_FAILED, EXIT_OK};
use nfsrahead::evidence::{gather, Evidence};
use nfsrahead::kernel::host::Host;
use nfsrahead::kernel::mountstats;
use nfsrahead::nconnect::asked::{connections, Group, Place};
use nfsrahead::nconnect::live::history::{History, WINDOWS};
use nfsrahead::nconnect::live::window::{Facts, Moment};
use nfsrahead::nconnect::watch::{Patience, Watch};
use nfsrahead::report::escape::escape;
use nfsrahead::root::Root;
use nfsrahead::sample::activity::Activity;
use nfsrahead::sample::{self, Depth};
use nfsrahead::state::advice::{AdviceStatus, Book, ClientStatus, Current};
use nfsrahead::state::history::Histories;

use crate::{complain, exit, print};

#[derive(clap::Args)]
pub struct Args {
    /// Only this server, as mounted
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Muted advice too
    #[arg(long)]
    all: bool,
    /// Without nfstuned: seconds between samples
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(5..=300))]
    interval: u64,
    /// Without nfstuned: how many samples
    #[arg(long, short = 'n', value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(2..=1000))]
    samples: u64,
    /// Two copies of /proc/self/mountstats instead of this machine
    #[arg(long, value_names = ["BEFORE", "AFTER"], num_args = 2, requires = "seconds")]
    mountstats: Option<Vec<PathBuf>>,
    /// The root directory of an earlier copy: of both together, --root is the later one
    #[arg(long, value_name = "DIR", conflicts_with = "mountstats")]
    before: Option<PathBuf>,
    /// The time between the two copies, where their /proc/uptime does not tell it
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(5..=1000))]
    seconds: Option<u64>,
    /// The speed of the link to the server, where its interface does not say it, Gbit/s
    #[arg(long, value_name = "GBIT", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    link: Option<u64>,
}

#[derive(Subcommand)]
pub enum BookVerb {
    /// Say it no more
    Mute { id: String },
    /// Say it again
    Unmute { id: String },
    /// What was advised, tried and gained
    History {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
pub struct SnippetArgs {
    /// Of an advice: nc-5f1c22
    id: String,
    /// Which file it is for
    #[arg(long = "for", value_enum)]
    place: PlaceArg,
}

#[derive(Clone, Copy, ValueEnum)]
enum PlaceArg {
    Fstab,
    /// A systemd .mount unit
    Mount,
    Autofs,
    /// A file in nfsmount.conf.d
    Nfsmount,
}

impl PlaceArg {
    fn name(self) -> &'static str {
        match self {
            PlaceArg::Fstab => "fstab",
            PlaceArg::Mount => "mount",
            PlaceArg::Autofs => "autofs",
            PlaceArg::Nfsmount => "nfsmount",
        }
    }
}

pub fn run(root: &Root, args: &Args) -> Result<ExitCode> {
    let mut current = match (&args.mountstats, &args.before, args.seconds) {
        (Some(files), _, Some(seconds)) => from_files(files, seconds, args.link)?,
        (_, Some(before), _) => from_trees(&Root::new(before), root, args)?,
        (_, None, Some(_)) => return Err(Error::Usage("--seconds is for two copies".to_owned())),
        _ => current(root, args)?,
    };
    if let Some(server) = &args.server {
        let server = escape(server);
        current.clients.retain(|client| client.server == server);
        current.advice.retain(|advice| advice.server == server);
        if current.clients.is_empty() {
            complain(format_args!("{server}: no mount of this server"));
            return Ok(exit(EXIT_FAILED));
        }
    }
    if !args.all {
        current.advice.retain(|advice| !advice.muted);
    }
    match args.json {
        true => print(&current.to_json())?,
        false => print(text(&current).as_bytes())?,
    }
    Ok(exit(EXIT_OK))
}

/// What the daemon says, or what some samples of our own look like.
fn current(root: &Root, args: &Args) -> Result<Current> {
    if lock::is_held(root, Role::Runs) {
        if let Some(current) = Current::read(root)? {
            return Ok(current);
        }
    }
    let mut watch = Watch::new(histories(root));
    let mut last = BTreeMap::new();
    for n in 0..args.samples {
        if n > 0 {
            std::thread::sleep(Duration::from_secs(args.interval));
        }
        last = look(root, args.link)?;
        take_in(&mut watch, &last);
    }
    let book = Book::read(root)?;
    Ok(summed_up(&watch, &last, &book))
}

/// What nfstuned has learned, if it ever ran here. Without it advice is an impression.
fn histories(root: &Root) -> BTreeMap<String, History> {
    Histories::read(root).unwrap_or_else(|e| {
        complain(e);
        BTreeMap::new()
    })
}

fn look(root: &Root, link: Option<u64>) -> Result<BTreeMap<String, Evidence>> {
    let mut all = gather(root, &sample::take(root, Depth::Counters)?)?;
    if let Some(gbit) = link {
        for evidence in all.values_mut() {
            evidence.facts.link_bits_per_s = Some(gbit.saturating_mul(1_000_000_000));
        }
    }
    Ok(all)
}

fn take_in(watch: &mut Watch, all: &BTreeMap<String, Evidence>) {
    for (client, evidence) in all {
        watch.add(client, evidence.moment.clone(), evidence.facts.clone());
    }
}

/// Two copies of /proc, /sys and /etc of one machine.
fn from_trees(before: &Root, after: &Root, args: &Args) -> Result<Current> {
    let mut watch = Watch::default();
    let mut last = BTreeMap::new();
    for (root, seconds) in [(before, 0), (after, args.seconds.unwrap_or_default())] {
        last = look(root, args.link)?;
        for evidence in last.values_mut() {
            if args.seconds.is_some() {
                evidence.moment.at_ms = seconds.saturating_mul(1000);
            }
        }
        take_in(&mut watch, &last);
    }
    Ok(summed_up(&watch, &last, &Book::read(after)?))
}

fn summed_up(watch: &Watch, last: &BTreeMap<String, Evidence>, book: &Book) -> Current {
    let (mut clients, mut advice) = (Vec::new(), Vec::new());
    for (client, evidence) in last {
        let found = watch.advice(
            &evidence.group,
            evidence.interface.as_ref(),
            Patience::Impression,
            evidence.moment.unix_ms,
        );
        advice.extend(
            found
                .iter()
                .filter(|advice| !book.is_withdrawn(advice))
                .map(|advice| AdviceStatus::new(advice, book)),
        );
        let history = watch.of(client).map(|watched| &watched.history);
        clients.push(ClientStatus {
            client: client.clone(),
            server: evidence.group.server.clone(),
            connections: evidence.group.connections,
            connected: evidence.connected,
            longest_idle_seconds: evidence.moment.longest_idle_s(),
            mounts: evidence
                .group
                .places
                .iter()
                .map(|place| place.mount_point.clone())
                .collect(),
            watched_seconds: history.map_or(0, |history| history.watched_ms() / 1000),
            busy_intervals: history.map_or(0, |history| history.busy()),
        });
    }
    Current::new(clients, advice)
}

/// Nothing but two copies of mountstats: no addresses, no sockets, no link.
fn from_files(files: &[PathBuf], seconds: u64, link: Option<u64>) -> Result<Current> {
    let mut watch = Watch::default();
    let mut last = BTreeMap::new();
    for (file, at_ms) in files.iter().zip([0, seconds.saturating_mul(1000)]) {
        last = evidence_of(file, at_ms, link)?;
        take_in(&mut watch, &last);
    }
    Ok(summed_up(&watch, &last, &Book::default()))
}

fn evidence_of(file: &Path, at_ms: u64, link: Option<u64>) -> Result<BTreeMap<String, Evidence>> {
    let mounts = File::open(file)
        .and_then(|file| mountstats::parse(BufReader::new(file)))
        .map_err(Error::io("read", file))?;
    let mut all: BTreeMap<String, Evidence> = BTreeMap::new();
    // Without device numbers: what comes from one source is one superblock, however often it is mounted.
    let mut counted = BTreeSet::new();
    for mounted in join(&mounts, &[]) {
        let stats = mounted.stats;
        let key = Key::of(&mounted);
        let option = |name| stats.option(name).map(escape).unwrap_or_default();
        let place = Place {
            mount_point: escape(&stats.mount_point),
            source: escape(&stats.source),
            asked: None,
            has_line: false,
            flavor: option("sec"),
        };
        let activity = match counted.insert((key.to_string(), &stats.source)) {
            true => Activity::of(stats),
            false => Activity {
                age_s: u64::MAX,
                ..Activity::default()
            },
        };
        match all.get_mut(&key.to_string()) {
            Some(known) => {
                known.group.places.push(place);
                known.moment.activity = known.moment.activity.sum(&activity);
            }
            None => {
                let group = Group {
                    client: key.to_string(),
                    server: escape(key.address()),
                    version: escape(key.version()),
                    proto: escape(key.proto()),
                    connections: u64::try_from(stats.transports.len()).unwrap_or_default().max(1),
                    places: vec![place],
                };
                let evidence = Evidence {
                    facts: Facts {
                        version: group.version.clone(),
                        proto: group.proto.clone(),
                        flavors: vec![option("sec")],
                        rsize_bytes: option("rsize").parse().unwrap_or(1 << 20),
                        // Not known from here: taken for enough.
                        read_ahead_bytes: u64::MAX,
                        link_bits_per_s: link.map(|gbit| gbit.saturating_mul(1_000_000_000)),
                        bond: None,
                        session_slots: 64,
                        cpus: 16,
                        kernel: None,
                        ports_left: None,
                        software: escape(&stats.implementation),
                    },
                    interface: None,
                    connected: None,
                    moment: Moment {
                        at_ms,
                        unix_ms: at_ms,
                        activity,
                        transports: stats.transports.clone(),
                        sockets: Vec::new(),
                        host: Host::default(),
                        nic_drops: None,
                    },
                    group,
                };
                all.insert(key.to_string(), evidence);
            }
        }
    }
    Ok(all)
}

fn text(current: &Current) -> String {
    let mut out = String::new();
    for client in &current.clients {
        let _ = writeln!(
            out,
            "{}  {}{} ({}), {} mounts, watched for {} s, {} of 10 busy intervals",
            client.server,
            connections(client.connections),
            at_rest(client),
            client.client,
            client.mounts.len(),
            client.watched_seconds,
            client.busy_intervals
        );
    }
    for advice in &current.advice {
        let muted = if advice.muted { "  (muted)" } else { "" };
        let _ = writeln!(
            out,
            "\nADVICE {}  {} (NFSv{}, {})  {}   confidence {:.1}{muted}",
            advice.id, advice.server, advice.version, advice.proto, advice.title, advice.confidence
        );
        let mut row = |name: &str, text: &str| {
            for (n, line) in text.lines().enumerate() {
                let name = if n == 0 { name } else { "" };
                let colon = if name.is_empty() { ' ' } else { ':' };
                let _ = writeln!(out, "  {name:<6}{colon} {line}");
            }
        };
        for (n, why) in advice.why.iter().enumerate() {
            row(if n == 0 { "why" } else { "" }, why);
        }
        for (n, (place, todo)) in advice.todo.iter().enumerate() {
            row(
                if n == 0 { "do" } else { "" },
                &format!("{place}\n    {}", todo.replace('\n', "\n    ")),
            );
        }
        for (n, beware) in advice.beware.iter().enumerate() {
            row(if n == 0 { "beware" } else { "" }, beware);
        }
        if let Some(undo) = &advice.undo {
            row("undo", undo);
        }
        row("mute", &format!("nfstune advice mute {}", advice.id));
    }
    let is_new = |client: &ClientStatus| client.busy_intervals < WINDOWS;
    let few = current.clients.iter().any(is_new);
    let text = match (current.advice.is_empty(), few) {
        (true, true) => "nothing to advise: too little was seen at work",
        (true, false) => "nothing to advise",
        (false, true) => "\nnot enough for a verdict about a client with fewer than 10 busy intervals: what is said of it is an impression",
        (false, false) => return out,
    };
    let _ = writeln!(out, "{text}");
    out
}

/// "I asked for 4 and use 3": which of several connections do nothing.
fn at_rest(client: &ClientStatus) -> String {
    /// The kernel closes a connection after five minutes; until then it may just have nothing to do.
    const IDLE_S: u64 = 60;
    let down = client
        .connected
        .map_or(0, |connected| client.connections.saturating_sub(connected));
    let idle = client
        .longest_idle_seconds
        .filter(|idle| client.connections > 1 && *idle >= IDLE_S);
    let mut text = String::new();
    if down > 0 {
        let _ = write!(text, ", {down} not connected");
    }
    if let Some(idle) = idle {
        let _ = write!(text, ", one idle for {idle} s");
    }
    text
}

pub fn book(root: &Root, verb: &BookVerb) -> Result<ExitCode> {
    let mut book = Book::read(root)?;
    match verb {
        BookVerb::Mute { id } => {
            if !book.given.contains_key(id) && !is_current(root, id)? {
                complain(format_args!("{}: no such advice", escape(id)));
                return Ok(exit(EXIT_FAILED));
            }
            book.muted.insert(id.clone());
        }
        BookVerb::Unmute { id } => {
            if !book.muted.remove(id) {
                complain(format_args!("{}: is not muted", escape(id)));
                return Ok(exit(EXIT_FAILED));
            }
        }
        BookVerb::History { json } => {
            match json {
                true => print(&book.to_json())?,
                false => print(history(&book).as_bytes())?,
            }
            return Ok(exit(EXIT_OK));
        }
    }
    replace_with_folder(&root.nfstuned_advice(), &book.to_json())?;
    Ok(exit(EXIT_OK))
}

fn is_current(root: &Root, id: &str) -> Result<bool> {
    let current = Current::read(root)?;
    Ok(current.is_some_and(|current| current.advice.iter().any(|advice| advice.id == id)))
}

fn history(book: &Book) -> String {
    let mut out = String::new();
    for (id, given) in &book.given {
        let muted = if book.is_muted(id) { ", muted" } else { "" };
        let _ = writeln!(out, "{id}  {}  {}{muted}", given.server, given.title);
        if let Some(outcome) = book.outcomes.iter().rfind(|outcome| outcome.advice == *id) {
            let verdict = if outcome.helped {
                "it helped"
            } else {
                "it did not help, and is not said again for this server"
            };
            let _ = writeln!(
                out,
                "    tried with {}: {:.2} times as fast: {verdict}",
                outcome.after, outcome.gain
            );
        }
        if let Some((_, hours)) = book.trials().find(|(advice, _)| advice == id) {
            let _ = writeln!(out, "    being tried: {hours:.1} of 3 busy hours");
        }
    }
    if out.is_empty() {
        out.push_str("nothing was advised yet\n");
    }
    out
}

pub fn snippet(root: &Root, args: &SnippetArgs) -> Result<ExitCode> {
    let current = Current::read(root)?;
    let advice = current
        .iter()
        .flat_map(|current| &current.advice)
        .find(|advice| advice.id == args.id);
    let Some(advice) = advice else {
        complain(format_args!(
            "{}: no advice of that name holds now; nfstuned keeps those that do",
            escape(&args.id)
        ));
        return Ok(exit(EXIT_FAILED));
    };
    let Some((_, text)) = advice.todo.iter().find(|(place, _)| place == args.place.name()) else {
        complain(format_args!("{}: is not about {}", advice.id, args.place.name()));
        return Ok(exit(EXIT_FAILED));
    };
    print(format!("{text}\n").as_bytes())?;
    Ok(exit(EXIT_OK))
}
