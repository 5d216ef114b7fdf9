//! `nfstune metrics`: what the mounts have done, for a monitoring system.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use nfsrahead::apply::replace::replace;
use nfsrahead::client::{join, Mounted};
use nfsrahead::error::{Error, EXIT_OK};
use nfsrahead::kernel::bdi::{Bdi, Dev};
use nfsrahead::kernel::{mountinfo, mountstats};
use nfsrahead::report::metrics::metrics;
use nfsrahead::root::Root;

use crate::{complain, exit, print};

#[derive(clap::Args)]
pub struct Args {
    /// Write this file, whole or not at all, instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(root: &Root, args: &Args) -> Result<ExitCode, Error> {
    let stats = mountstats::mounts(root)?;
    let mut table = mountinfo::mounts(root, None)?;
    // A table that changes while it is read can lack a mount that is there: what is missing twice has gone.
    if join(&stats, &table).iter().any(|mounted| mounted.mount.is_none()) {
        table = mountinfo::mounts(root, None)?;
    }
    let mounts = join(&stats, &table);
    let text = metrics(&mounts, &read_ahead(root, &mounts));
    match &args.output {
        Some(file) => replace(file, text.as_bytes())?,
        None => print(text.as_bytes())?,
    }
    Ok(exit(EXIT_OK))
}

/// Where it is known: a device may go at any time.
fn read_ahead(root: &Root, mounts: &[Mounted<'_>]) -> BTreeMap<Dev, u64> {
    let mut found = BTreeMap::new();
    for dev in mounts.iter().filter_map(|mounted| Some(mounted.mount?.dev)) {
        match Bdi::now_kib(root, dev) {
            Ok(Some(kib)) => drop(found.insert(dev, kib)),
            Ok(None) => {}
            Err(e) => complain(e),
        }
    }
    found
}
