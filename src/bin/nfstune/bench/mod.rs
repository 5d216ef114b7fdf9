//! `nfstune bench`: measure this mount instead of believing a constant.

mod cache;
mod chart;
mod child;
mod facts;
mod fio;
mod front;
mod knobs;
mod nconnect;
mod own_file;
mod page;
mod progress;
mod readahead;
mod stop;
mod target;
mod worker;
mod write;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use nfsrahead::apply::replace::replace;
use nfsrahead::bench::amount::{shown_bytes, Budget};
use nfsrahead::error::{Error, EXIT_FAILED, EXIT_OK};
use nfsrahead::root::Root;

use crate::{complain, print};
use facts::Facts;
use page::Page;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The smallest readahead that is enough for one sequential reader
    Readahead(readahead::Args),
    /// How long a writer waits, and what a limit on dirty data changes about it
    Write(write::Args),
    /// How many connections are enough
    Nconnect(nconnect::Args),
}

/// What all of them take.
#[derive(clap::Args)]
struct Common {
    /// Time, and perhaps bytes over the wire, that it may take, as 60s or 2m,4G
    #[arg(long, value_name = "TIME[,SIZE]", default_value = "60s")]
    budget: String,
    /// Who reads and writes
    #[arg(long, value_name = "ENGINE", value_enum, default_value = "own")]
    engine: Engine,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Every measurement as a line of a table with commas
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a page with charts, too
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Leave out host names, addresses and paths
    #[arg(long)]
    anonymous: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// nfstune itself
    Own,
    /// An installed fio
    Fio,
}

impl Common {
    fn budget(&self) -> Result<Budget, Error> {
        Budget::parse(&self.budget)
            .ok_or_else(|| Error::Usage("--budget: a time up to 24h, and perhaps a size, as 60s or 2m,4G".to_owned()))
    }

    fn facts(&self, facts: Facts) -> Facts {
        if self.anonymous {
            facts.anonymous()
        } else {
            facts
        }
    }
}

/// What a measurement comes to, in every form. Made only where it is asked for.
trait Outcome {
    fn facts(&self) -> &Facts;
    /// Why it ended before its plan did: ^C or an error. None: it did not.
    fn cut_short(&self) -> Option<&str>;
    fn text(&self) -> String;
    fn json(&self) -> serde_json::Value;
    fn csv(&self) -> String;
    fn page(&self) -> Result<Page, String>;
}

pub fn run(root: &Root, args: &Args) -> Result<ExitCode, Error> {
    front::run(|| match &args.what {
        What::Readahead(args) => readahead::run(root, args),
        What::Write(args) => write::run(root, args),
        What::Nconnect(args) => nconnect::run(root, args),
    })
}

/// What will be done at most, before it is done. Without a size the time alone bounds the bytes.
fn announce(what: &str, budget: &Budget, most_bytes: Option<u64>) {
    let seconds = budget.time.as_secs();
    let bytes = match (most_bytes, budget.bytes) {
        (Some(most), Some(bytes)) => shown_bytes(most.min(bytes)),
        (Some(bytes), None) | (None, Some(bytes)) => shown_bytes(bytes),
        (None, None) => "what goes over the wire in that time".to_owned(),
    };
    complain(format_args!("{what}; at most {seconds} s and {bytes}"));
}

/// Prints a result, whole or partial. A partial one is a failure, and so is one without what was to be measured.
fn tell(common: &Common, outcome: &impl Outcome) -> Result<i32, Error> {
    if let Some(path) = &common.report {
        let page = outcome
            .page()
            .map_err(|e| Error::io("draw", path)(std::io::Error::other(e)))?;
        replace(path, page::html(&page, outcome.facts()).as_bytes())?;
    }
    let text = if common.json {
        format!("{:#}\n", outcome.json())
    } else if common.csv {
        outcome.csv()
    } else {
        outcome.text()
    };
    print(text.as_bytes())?;
    match outcome.cut_short() {
        None => Ok(EXIT_OK),
        Some(why) => {
            complain(format_args!("ended early, what was measured counts: {why}"));
            Ok(EXIT_FAILED)
        }
    }
}

/// What a signal is called in [`Outcome::cut_short`].
const STOPPED: &str = "stopped by a signal";

/// A rate in CSV: whole bytes a second are exact enough.
fn whole_rate(bytes_per_s: f64) -> u64 {
    nfsrahead::float::whole(bytes_per_s.round())
}

/// What no server or link makes smaller.
fn random_bytes(n: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(n).unwrap_or(2 << 20)];
    fastrand::fill(&mut bytes);
    bytes
}

/// `n` of the bytes, for the offset `at` of a file: no two pieces of a file are the same page for page.
fn some_of(bytes: &[u8], n: u64, at: u64) -> &[u8] {
    let n = usize::try_from(n).unwrap_or(usize::MAX).min(bytes.len());
    // An odd step, so that the pieces begin anywhere.
    let from = (at / (64 << 10)).wrapping_mul(4099) % (bytes.len() - n + 1).max(1) as u64;
    let from = usize::try_from(from).unwrap_or(0);
    &bytes[from..from + n]
}
