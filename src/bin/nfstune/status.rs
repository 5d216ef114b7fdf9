//! `nfstune status` and `nfstune explain`: values, what is wanted, and why.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use nfsrahead::error::{Error, EXIT_FAILED, EXIT_OK};
use nfsrahead::kernel::knob::Knob;
use nfsrahead::report::escape::escape;
use nfsrahead::root::{Root, NFS_CONF};
use nfsrahead::state::status::{DeviceStatus, KnobState, KnobStatus, Status};

use crate::{complain, exit, print, view};

#[derive(clap::Args)]
pub struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
    /// The main configuration file; FILE.d is its folder. A running nfstuned has its own
    #[arg(long, value_name = "FILE", default_value = NFS_CONF)]
    config: PathBuf,
}

#[derive(clap::Args)]
pub struct ExplainArgs {
    /// A mount point, an export as mounted, a device (0:51) or a knob (0:51/max_ratio_fine, vm.dirty)
    what: OsString,
    /// The main configuration file; FILE.d is its folder. A running nfstuned has its own
    #[arg(long, value_name = "FILE", default_value = NFS_CONF)]
    config: PathBuf,
}

pub fn run(root: &Root, args: &Args) -> Result<ExitCode, Error> {
    let status = view::status(root, &args.config)?;
    if args.json {
        print(&status.to_json())?;
    } else {
        print(text(&status).as_bytes())?;
    }
    Ok(exit(EXIT_OK))
}

pub fn explain(root: &Root, args: &ExplainArgs) -> Result<ExitCode, Error> {
    let status = view::status(root, &args.config)?;
    let what = escape(args.what.as_bytes());
    let is_meant = |row: &KnobStatus| match Knob::parse(args.what.as_bytes()) {
        Some(knob) => row.knob == knob.to_string(),
        None => status
            .devices
            .iter()
            .any(|device| row.device.as_deref() == Some(&device.device) && is_named(device, &what)),
    };
    let rows: Vec<&KnobStatus> = status.knobs.iter().filter(|row| is_meant(row)).collect();
    if rows.is_empty() {
        complain(format_args!(
            "{what}: no NFS mount, export, device or knob of that name"
        ));
        return Ok(exit(EXIT_FAILED));
    }
    let mut out = String::new();
    for device in status
        .devices
        .iter()
        .filter(|device| rows.iter().any(|row| row.device.as_deref() == Some(&device.device)))
    {
        head(&mut out, device);
        measured(&mut out, device);
    }
    for row in rows {
        knob(&mut out, row);
        for note in &row.notes {
            let _ = writeln!(out, "      note: {note}");
        }
    }
    print(out.as_bytes())?;
    Ok(exit(EXIT_OK))
}

fn is_named(device: &DeviceStatus, what: &str) -> bool {
    let is = |text: &Option<String>| text.as_deref() == Some(what);
    device.device == what
        || device
            .mounts
            .iter()
            .any(|mount| is(&mount.mount_point) || is(&mount.source))
}

/// A block a device, a line a knob: nothing depends on the width of the terminal.
fn text(status: &Status) -> String {
    let mut out = String::new();
    let who = match &status.daemon {
        Some(daemon) => format!("nfstuned {} (process {})", daemon.version, daemon.pid),
        None => "nfstuned does not run".to_owned(),
    };
    let apply = match status.apply.is_empty() {
        true => "nothing is applied".to_owned(),
        false => format!("apply: {}", status.apply.join(", ")),
    };
    let _ = writeln!(out, "{who}; {apply}");
    for device in &status.devices {
        out.push('\n');
        head(&mut out, device);
        let rows = status
            .knobs
            .iter()
            .filter(|row| row.device.as_deref() == Some(&device.device));
        let (limit, rest): (Vec<&KnobStatus>, Vec<&KnobStatus>) = rows.partition(|row| is_of_limit(row));
        rest.into_iter().for_each(|row| knob(&mut out, row));
        limit_line(&mut out, &limit);
    }
    let _ = writeln!(out, "\nthe machine");
    let memory = &status.memory;
    let _ = writeln!(
        out,
        "  dirty {}, under writeback {}; flushed from {}, writers held at {}",
        mib(memory.dirty_bytes),
        mib(memory.writeback_bytes),
        mib(memory.background_bytes),
        mib(memory.limit_bytes)
    );
    // What an admin feels: close(), fsync() and ls wait for it.
    let rate: f64 = status
        .devices
        .iter()
        .filter_map(|device| device.drain_bytes_per_second)
        .sum();
    if let (Some(background), Some(limit), true) = (memory.background_bytes, memory.limit_bytes, rate > 0.0) {
        let seconds = |bytes: u64| nfsrahead::float::float(bytes) / rate;
        let _ = writeln!(
            out,
            "  that is {:.0} s and {:.0} s of flushing at {:.1} MB/s, in which close(), fsync() and others wait",
            seconds(background),
            seconds(limit),
            rate / 1e6
        );
    }
    for row in status.knobs.iter().filter(|row| row.device.is_none()) {
        knob(&mut out, row);
    }
    out
}

fn head(out: &mut String, device: &DeviceStatus) {
    let place = |mount: &nfsrahead::state::status::MountStatus| {
        let at = mount.mount_point.as_deref().unwrap_or("(in another namespace)");
        format!("{at}  {}", mount.source.as_deref().unwrap_or("?"))
    };
    let mut mounts = device.mounts.iter().map(place);
    let first = mounts
        .next()
        .unwrap_or_else(|| "(mounted in another namespace)".to_owned());
    let _ = writeln!(out, "{first}  NFSv{}  {}", device.version, device.device);
    for other in mounts {
        let _ = writeln!(out, "{other}");
    }
}

fn measured(out: &mut String, device: &DeviceStatus) {
    let number = |value: Option<f64>, factor: f64, unit: &str| {
        value.map_or_else(
            || "not known".to_owned(),
            |value| format!("{:.2} {unit}", value * factor),
        )
    };
    let _ = writeln!(
        out,
        "  the server takes {} (of {} intervals); round trip {}, the path carries {}",
        number(device.drain_bytes_per_second, 1e-6, "MB/s"),
        device.drain_intervals,
        number(device.rtt_seconds, 1e3, "ms"),
        number(device.path_bytes_per_second, 1e-6, "MB/s")
    );
    let amount = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), |bytes| (bytes / 1024).to_string());
    let _ = writeln!(
        out,
        "  rsize {} KiB, wsize {} KiB, connections {}",
        amount(device.rsize_bytes),
        amount(device.wsize_bytes),
        device.connections.map_or_else(|| "?".to_owned(), |n| n.to_string())
    );
}

fn knob(out: &mut String, row: &KnobStatus) {
    let name = row.knob.split_once('/').map_or(&*row.knob, |(_, attribute)| attribute);
    let now = row.now.as_deref().unwrap_or("?");
    let change = match (&row.want, row.state) {
        (Some(want), KnobState::Held | KnobState::Write) => format!("{now}, {want} is wanted"),
        (_, KnobState::GiveBack) => format!("{now}, goes back"),
        _ => now.to_owned(),
    };
    let ours = if row.ours { " (set by nfstuned)" } else { "" };
    let _ = writeln!(out, "  {name} {change}{ours}: {}", row.reason);
    if let (Some(held), KnobState::Held) = (&row.held, row.state) {
        let _ = writeln!(out, "      not written: {held}");
    }
}

/// The three knobs of a limit only mean something together.
fn is_of_limit(row: &KnobStatus) -> bool {
    ["/max_ratio_fine", "/min_ratio_fine", "/strict_limit"]
        .iter()
        .any(|name| row.knob.ends_with(name))
}

fn limit_line(out: &mut String, rows: &[&KnobStatus]) {
    let Some(first) = rows.first() else { return };
    let shown = |value: fn(&KnobStatus) -> Option<&str>| {
        let of = |name: &str| {
            rows.iter()
                .find(|row| row.knob.ends_with(name))
                .and_then(|row| value(row))
        };
        match (of("/strict_limit"), of("/max_ratio_fine"), of("/min_ratio_fine")) {
            (Some("0"), _, _) => "none".to_owned(),
            (Some(_), Some(max), Some(min)) => format!("{max} ppm (at least {min})"),
            _ => "?".to_owned(),
        }
    };
    let now = shown(|row| row.now.as_deref());
    let state = rows.iter().map(|row| row.state).find(|state| *state != KnobState::Fine);
    let change = match state {
        Some(KnobState::Held | KnobState::Write) => format!("{now}, {} is wanted", shown(|row| row.want.as_deref())),
        Some(KnobState::GiveBack) => format!("{now}, goes back"),
        _ => now,
    };
    let ours = if rows.iter().any(|row| row.ours) {
        " (set by nfstuned)"
    } else {
        ""
    };
    let _ = writeln!(out, "  dirty limit {change}{ours}: {}", first.reason);
    if let (Some(held), Some(KnobState::Held)) = (rows.iter().find_map(|row| row.held.as_ref()), state) {
        let _ = writeln!(out, "      not written: {held}");
    }
}

fn mib(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{} MiB", bytes >> 20))
}
