//! `--engine fio`: the same measurements by an installed fio. It gets the file that we have made, without a name, through
//! /proc; and is kept from doubling the readahead (`fadvise_hint`).

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nfsrahead::error::{Error, Result};
use serde_json::Value;

use super::child;
use super::stop::Stop;

/// Over what a job may take: starting and ending it.
const OVERHEAD: Duration = Duration::from_secs(20);

/// Is there one?
pub fn find() -> Result<()> {
    let output = child::run(Command::new("fio").arg("--version"), OVERHEAD, None);
    output.map(drop).map_err(Error::io("run", "fio"))
}

/// One job. `options` are fio's, without the dashes.
pub fn run(file: &Path, time: Duration, options: &[String], stop: &Stop) -> io::Result<Value> {
    let mut command = Command::new("fio");
    command
        .arg("--name=nfstune")
        .arg(format!("--filename={}", file.display()))
        .args([
            "--output-format=json",
            "--thread",
            "--ioengine=psync",
            "--fadvise_hint=0",
        ])
        .args([
            "--invalidate=0",
            "--fallocate=none",
            "--allow_file_create=0",
            "--randrepeat=0",
        ])
        .arg(format!("--runtime={}ms", time.as_millis().max(1)))
        .args(options.iter().map(|option| format!("--{option}")));
    let output = child::run(&mut command, time + OVERHEAD, Some(stop))?;
    let bad = |why: String| io::Error::other(format!("fio: {why}"));
    if !output.is_success {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("failed");
        return Err(bad(nfsrahead::report::escape::escape(line)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // Notes may come before the object.
    let json = text.find('{').map_or("", |at| &text[at..]);
    let value: Value = serde_json::from_str(json).map_err(|e| bad(e.to_string()))?;
    let job = value.get("jobs").and_then(|jobs| jobs.get(0)).cloned();
    job.ok_or_else(|| bad("no job in its output".to_owned()))
}

/// A number at `path`, as in `read/bw_bytes`.
pub fn number(job: &Value, path: &str) -> Option<f64> {
    job.pointer(&format!("/{path}")).and_then(Value::as_f64)
}
