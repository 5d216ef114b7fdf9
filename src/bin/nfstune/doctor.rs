//! `nfstune doctor`: who sets the readahead of NFS mounts on this host, and what is wrong with it.

use std::path::Path;
use std::process::ExitCode;

use nfsrahead::conf::check;
use nfsrahead::conf::finding::{Found, Severity};
use nfsrahead::conf::knob_owner::{limit_owners, undone, Owner};
use nfsrahead::conf::owners::{owners, Owners, Sets, Writer};
use nfsrahead::conf::policy::Policy;
use nfsrahead::conf::tuned::Tuned;
use nfsrahead::conf::{fstab, load, options, Keep};
use nfsrahead::error::{Error, EXIT_FAILED, EXIT_OK};
use nfsrahead::kernel::bdi::Bdi;
use nfsrahead::kernel::devices::{devices, NfsDevice};
use nfsrahead::kernel::knob::{self, Knob, Value};
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

/// One of the machine's dirty limits, who sets it, the last one of whom holds, and its value at this moment.
struct Limit {
    knob: Knob,
    owners: Vec<Owner>,
    now: Option<Value>,
}

impl Limit {
    /// Does the value stand that was set last? None: nobody sets it, or it is not known.
    fn is_as_set(&self) -> Option<bool> {
        Some(self.owners.last()?.value? == self.now?)
    }
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
    let limits = limits(root);
    let text = match args.json {
        true => as_json(&owners, &now, &limits),
        false => as_text(&owners, &now, &limits),
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

fn limits(root: &Root) -> Vec<Limit> {
    let limits = limit_owners(root).map(|(threshold, owners)| {
        let knob = Knob::Vm(threshold);
        let now = knob::read(root, knob).unwrap_or_else(|e| {
            complain(e);
            None
        });
        Limit { knob, owners, now }
    });
    limits.into()
}

fn as_text(owners: &Owners, now: &[Now], limits: &[Limit]) -> String {
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
    // Where nobody sets them, nothing is to be told of the machine's limits.
    if limits.iter().any(|limit| !limit.owners.is_empty()) {
        text.push_str("\nWho sets the machine's dirty limits, the last one holds:\n");
        let rows: Vec<_> = limits.iter().flat_map(limit_rows).collect();
        text.push_str(&table(&rows));
    }
    text.push_str("\nFindings:\n");
    let found: Vec<_> = owners.found.iter().map(|found| [found.to_string()]).collect();
    text.push_str(&section(&found, "nothing is wrong"));
    text
}

fn limit_rows(limit: &Limit) -> Vec<[String; 3]> {
    let knob = limit.knob.to_string();
    let owners = limit.owners.iter();
    let mut rows: Vec<_> = owners
        .map(|owner| {
            [
                knob.clone(),
                owner.at.to_string(),
                format!("{} ({})", owner.text, owner.by),
            ]
        })
        .collect();
    let now = limit.now.map_or_else(|| "?".to_owned(), |now| now.to_string());
    let verdict = match limit.is_as_set() {
        Some(true) => "as set",
        Some(false) => "not as set: changed since, or not applied",
        None if limit.owners.is_empty() => "nobody sets it",
        None => "cannot be compared",
    };
    rows.push([knob, "now".to_owned(), format!("{now}: {verdict}")]);
    rows
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
fn as_json(owners: &Owners, now: &[Now], limits: &[Limit]) -> String {
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
        "dirty_limits": limits.iter().map(limit_json).collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
    });
    format!("{all:#}\n")
}

fn limit_json(limit: &Limit) -> serde_json::Value {
    let count = limit.owners.len();
    let owners = limit.owners.iter().zip(1..).map(|(owner, n)| {
        json!({
            "by": owner.by,
            "file": escape_path(&owner.at.file),
            "line": owner.at.line,
            "text": owner.text,
            "is_last": n == count,
        })
    });
    let (bytes, percent) = match limit.now {
        Some(Value::Bytes(bytes)) => (Some(bytes), None),
        Some(Value::Ratio(percent)) => (None, Some(percent)),
        Some(Value::Number(_)) | None => (None, None),
    };
    json!({
        "knob": limit.knob.to_string(),
        "owners": owners.collect::<Vec<_>>(),
        "now_bytes": bytes,
        "now_percent": percent,
        "is_as_set": limit.is_as_set(),
    })
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
