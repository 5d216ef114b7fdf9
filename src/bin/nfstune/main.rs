//! `nfstune`: what an admin asks about NFS on this host.

mod advise;
mod apply;
mod bench;
mod config;
mod doctor;
mod metrics;
mod record;
mod replay;
mod status;
mod sweep;
mod view;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use nfsrahead::error::{Error, EXIT_OK};
use nfsrahead::root::Root;

/// NFS mounts: the configuration of their readahead, what they do, and how many connections they need
#[derive(Parser)]
#[command(name = "nfstune", version)]
struct Cli {
    /// The directory that stands for /
    #[arg(long, value_name = "DIR", default_value = "/", global = true)]
    root: PathBuf,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Say how many connections the mounts should have, and what else holds them up
    Advise(advise::Args),
    /// Mute advice, unmute it, or show what came of it
    Advice {
        #[command(subcommand)]
        verb: advise::BookVerb,
    },
    /// Write now what the configuration allows nfstuned to write
    Apply(apply::ApplyArgs),
    /// Completions for a shell, for those who package this
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Measure this mount: its readahead, how long writers wait, how many connections are enough
    Bench(bench::Args),
    /// The configuration, as all NFS programs read it
    Config(config::Args),
    /// Find who sets the readahead of NFS mounts, and what is wrong with it; exit 1 where something is
    Doctor(doctor::Args),
    /// Say why a mount or a knob has its value, and what is wanted instead
    Explain(status::ExplainArgs),
    /// Print what the NFS mounts have done, as OpenMetrics text
    Metrics(metrics::Args),
    /// Keep the kernel's files behind some samples, for `nfstune replay`
    Record(record::Args),
    /// Take a knob under management again that somebody else has changed
    Release(apply::ReleaseArgs),
    /// Show what nfstuned would have decided over a record
    Replay(replay::Args),
    /// Give back what nfstuned or a benchmark has changed and left behind
    Restore(apply::RestoreArgs),
    /// Print what an advice asks for, ready to paste
    Snippet(advise::SnippetArgs),
    /// Show the mounts: values, what is wanted, and why
    Status(status::Args),
    /// How many connections are enough, from the same benchmark run with each number of them
    Sweep(sweep::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let root = Root::new(cli.root);
    let result = match cli.verb {
        Verb::Advise(args) => advise::run(&root, &args),
        Verb::Advice { verb } => advise::book(&root, &verb),
        Verb::Apply(args) => apply::apply(&root, &args),
        Verb::Completions { shell } => completions(shell),
        Verb::Bench(args) => bench::run(&root, &args),
        Verb::Config(args) => config::run(&root, &args),
        Verb::Doctor(args) => doctor::run(&root, &args),
        Verb::Explain(args) => status::explain(&root, &args),
        Verb::Metrics(args) => metrics::run(&root, &args),
        Verb::Record(args) => record::run(&root, &args),
        Verb::Release(args) => apply::release(&root, &args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Restore(args) => apply::restore(&root, &args),
        Verb::Snippet(args) => advise::snippet(&root, &args),
        Verb::Status(args) => status::run(&root, &args),
        Verb::Sweep(args) => sweep::run(&args),
    };
    result.unwrap_or_else(|e| {
        complain(&e);
        exit(e.exit_code())
    })
}

fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Error> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "nfstune", &mut text);
    print(&text)?;
    Ok(exit(EXIT_OK))
}

/// One line to stderr, under our name. Nothing can be done where that fails.
fn complain(what: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "nfstune: {what}");
}

/// All of what a verb prints, at once; output that cannot be written is a failure.
fn print(bytes: &[u8]) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .map_err(Error::io("write", "standard output"))
}

fn exit(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
