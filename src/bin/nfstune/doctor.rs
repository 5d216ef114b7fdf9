//! `nfstune doctor`: who sets the readahead of NFS mounts on this host, and what is wrong with it.

use std::path::Path;
use std::process::ExitCode;

use nfsrahead::conf::check;
use nfsrahead::conf::finding::{Found, Severity};
use nfsrahead::conf::knob_owner::undone;
use nfsrahead::conf::owners::{owners, Owners, Sets, Writer};
use nfsrahead::conf::policy::Policy;
use nfsrahead::conf::tuned::Tuned;
use nfsrahead::conf::{fstab, load, options, Keep};
use nfsrahead::error::{Error, EXIT_FAILED, EXIT_OK};
use nfsrahead::kernel::bdi::Bdi;
use nfsrahead::kernel::devices::{devices, NfsDevice};
use nfsrahead::kernel::vm;
use nfsrahead::report::escape::{escape, escape_path};
use nfsrahead::report::table::table;
use nfsrahead::root::{Root, NFS_CONF};
use serde_json::json;

use crate::config::environment;
use crate::{complain, exit, print};

#[derive(clap::Args)]
pub struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// A device and its value at this moment.
struct Now {
    device: NfsDevice,
    kib: Option<u64>,
}

pub fn run(root: &Root, args: &Args) -> Result<ExitCode, Error> {
    let conf = load(root, Path::new(NFS_CONF), Keep::All);
    let fstab = fstab::read(root)?;
    let policy = Policy::new(&conf, &fstab, &environment);
    let now = now(root);
    let mut owners = owners(root, &policy);
    owners.found.extend(options::lint(&fstab, vm::kernel_release(root)));
    let mounts: Option<Vec<_>> = now
        .as_ref()
        .map(|now| now.iter().flat_map(|now| now.device.mounts.clone()).collect());
    let tuned = Tuned::new(&conf, &environment);
    let of_conf = check::check(&conf, &policy, &tuned, mounts.as_deref()).len();
    owners.found.extend(undone(root));
    // A daemon that applies readahead needs no rule.
    owners
        .found
        .retain(|found| found.finding.kind != "no-rule" || !tuned.apply.readahead);
    if of_conf > 0 {
        let text = format!("nfstune config check has more to say, findings: {of_conf}");
        owners
            .found
            .push(Found::note("config-check", Path::new(NFS_CONF), None, text));
    }
    // Stable: within a severity, rules in udev's order, then the rest.
    owners.found.sort_by_key(|found| found.severity);
    let now = now.unwrap_or_default();
    let text = match args.json {
        true => as_json(&owners, &now),
        false => as_text(&owners, &now),
    };
    print(text.as_bytes())?;
    let is_wrong = owners.found.iter().any(|found| found.severity != Severity::Note);
    Ok(exit(if is_wrong { EXIT_FAILED } else { EXIT_OK }))
}

/// None: there is no mount table here. A device that cannot be read takes nothing from the others.
fn now(root: &Root) -> Option<Vec<Now>> {
    let devices = devices(root)
        .inspect_err(|e| complain(format_args!("{e}; mounts are not looked at")))
        .ok()?;
    let now = devices.into_iter().map(|device| {
        let kib = Bdi::now_kib(root, device.dev).unwrap_or_else(|e| {
            complain(e);
            None
        });
        Now { device, kib }
    });
    Some(now.collect())
}

fn as_text(owners: &Owners, now: &[Now]) -> String {
    let mut text = String::from("Rules that set the readahead of NFS mounts, the last one holds:\n");
    let last = owners.last().map(|writer| writer.at.to_string());
    let rules: Vec<_> = owners.writers.iter().map(|w| [w.at.to_string(), w.shown()]).collect();
    text.push_str(&section(&rules, "none"));
    text.push_str("\nNFS devices now:\n");
    let mut rows = vec![["DEVICE", "MOUNT POINTS", "NOW KIB", "LAST RULE"].map(str::to_owned)];
    rows.extend(now.iter().map(|now| {
        [
            now.device.dev.to_string(),
            mount_points(&now.device).join(" "),
            now.kib.map_or_else(|| "?".to_owned(), |kib| kib.to_string()),
            last.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    }));
    text.push_str(&section(if now.is_empty() { &[] } else { &rows }, "none"));
    text.push_str("\nFindings:\n");
    let found: Vec<_> = owners.found.iter().map(|found| [found.to_string()]).collect();
    text.push_str(&section(&found, "nothing is wrong"));
    text
}

fn section<const N: usize>(rows: &[[String; N]], nothing: &str) -> String {
    match rows {
        [] => format!("{nothing}\n"),
        rows => table(rows),
    }
}

fn mount_points(device: &NfsDevice) -> Vec<String> {
    let paths = device.mounts.iter().filter_map(|mount| mount.mount_point.as_deref());
    let mut paths: Vec<_> = paths.map(escape).collect();
    if paths.is_empty() {
        paths.push("?".to_owned());
    }
    paths
}

/// Stable since version 1: fields are added, never changed or taken away.
fn as_json(owners: &Owners, now: &[Now]) -> String {
    let findings = owners.found.iter().map(|Found { severity, finding }| {
        json!({
            "kind": finding.kind,
            "severity": severity.name(),
            "file": finding.file,
            "line": finding.line,
            "text": finding.text,
        })
    });
    let devices = now.iter().map(|now| {
        json!({
            "device": now.device.dev.to_string(),
            "mount_points": now.device.mounts.iter().map(|m| m.mount_point.as_deref().map(escape)).collect::<Vec<_>>(),
            "read_ahead_bytes": now.kib.map(|kib| kib.saturating_mul(1024)),
        })
    });
    let last = owners.last().map(|writer| &writer.at);
    let writers = owners.writers.iter().map(|w| writer(w, last == Some(&w.at)));
    let all = json!({
        "schema_version": 1,
        "writers": writers.collect::<Vec<_>>(),
        "devices": devices.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
    });
    format!("{all:#}\n")
}

fn writer(writer: &Writer, is_last: bool) -> serde_json::Value {
    let (value, command) = match &writer.sets {
        Sets::Value(value) => (Some(escape(value)), None),
        Sets::Helper { program, .. } => (None, Some(escape(program))),
        Sets::Command(command) => (None, Some(escape(command))),
    };
    json!({
        "file": escape_path(&writer.at.file),
        "line": writer.at.line,
        "value": value,
        "command": command,
        "is_effective": writer.is_effective(),
        "is_last": is_last,
    })
}
