//! `nfsrahead --dry-run`: what would be set, and why. For admins; reads what an ordinary user may read, writes nothing.

use crate::conf::fstab::trim_slashes;
use crate::conf::policy::Policy;
use crate::error::Result;
use crate::helper::args::Args;
use crate::helper::{load, machine, shown, Process};
use crate::kernel::bdi::{Bdi, Dev};
use crate::kernel::devices::{self, NfsDevice};
use crate::kernel::mountinfo::Mount;
use crate::readahead::decide::{self, Action, Device, Machine};
use crate::report::escape::escape;
use crate::report::table::table;

pub struct Report {
    pub text: String,
    /// Names that are neither a device nor a mount point of NFS.
    pub unknown: Vec<Vec<u8>>,
}

pub fn report(args: &Args, names: &[Vec<u8>], process: &Process) -> Result<Report> {
    let (policy, warnings) = load(args, process);
    for warning in warnings {
        log::warn!("{warning}");
    }
    let all = devices::devices(&args.root)?;
    let unknown = names
        .iter()
        .filter(|name| !all.iter().any(|row| is(row, name)))
        .cloned()
        .collect();
    let is_wanted = |row: &&NfsDevice| names.is_empty() || names.iter().any(|name| is(row, name));
    let wanted: Vec<_> = all.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        let text = if names.is_empty() { "no NFS mounts\n" } else { "" };
        return Ok(Report {
            text: text.to_owned(),
            unknown,
        });
    }
    let machine = machine(&args.root, &policy);
    let mut lines = vec![[
        "DEVICE",
        "MOUNT POINT",
        "SOURCE",
        "VERSION",
        "NOW KIB",
        "SET KIB",
        "WHY",
    ]
    .map(str::to_owned)];
    let mut notes = String::new();
    for row in wanted {
        // One device that cannot be read takes nothing from the others.
        let now_kib = Bdi::now_kib(&args.root, row.dev).unwrap_or_else(|e| {
            log::warn!("{e}");
            None
        });
        describe(row, &policy, now_kib, &machine, &mut lines, &mut notes);
    }
    Ok(Report {
        text: table(&lines) + &notes,
        unknown,
    })
}

/// Is it meant by this name? Names are compared as text: a mount point is never touched.
fn is(row: &NfsDevice, name: &[u8]) -> bool {
    let is_mount_point = |mount: &Mount| mount.mount_point.as_deref().is_some_and(|at| at == trim_slashes(name));
    Dev::parse(name) == Some(row.dev) || row.mounts.iter().any(is_mount_point)
}

fn describe(
    row: &NfsDevice,
    policy: &Policy,
    now_kib: Option<u64>,
    machine: &Machine,
    lines: &mut Vec<[String; 7]>,
    notes: &mut String,
) {
    let device = Device {
        version: row.version,
        mounts: &row.mounts,
        now_kib,
        measured: None,
    };
    let decision = decide::decide(policy, &device, machine);
    let set = match decision.action {
        Action::Set(kib) => kib.to_string(),
        Action::Leave => "leave".to_owned(),
    };
    let line = |mount_point: String, source: String, version: String| {
        [
            row.dev.to_string(),
            mount_point,
            source,
            version,
            shown(now_kib),
            set.clone(),
            decision.reason.clone(),
        ]
    };
    let text = |bytes: &Option<Vec<u8>>| bytes.as_deref().map_or_else(|| "?".to_owned(), escape);
    for mount in &row.mounts {
        lines.push(line(
            text(&mount.mount_point),
            text(&mount.source),
            escape(mount.shown_version()),
        ));
    }
    if row.mounts.is_empty() {
        lines.push(line("?".to_owned(), "?".to_owned(), row.version.to_string()));
    }
    for note in &decision.notes {
        notes.push_str(&format!("note: {}: {note}\n", row.dev));
    }
}
