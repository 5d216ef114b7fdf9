//! `make bench`: one call of the static helper against nfs-utils' nfsrahead, and `nfstune metrics` against its mountstats and
//! nfsiostat, side by side in one run; and what nfstuned costs with many mounts.
//!
//! It runs as root of a mount namespace of its own (unshare). Nothing here has NFS in its kernel, so a device is made to
//! look like NFS: what a case makes up is said in its title.

mod daemon;
mod measure;
mod place;

use std::error::Error;
use std::io::{stdout, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use measure::{Figures, Program, Times};
use place::{Dev, Place};

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

const BY_TYPE: &str = "[nfsrahead]\nnfs=15360\nnfs4=16384\n";
const BY_MOUNT_POINT: &str = "[nfsrahead \"/srv/media\"]\nnfs4=16384\n";
const SET: &str = "16384\n";

/// Of /proc only what is named here is made up; the mount table has N real tmpfs mounts.
const REAL: &[Case] = &[
    Case {
        title: "by type: the kernel makes the table of N mounts; the list of NFS superblocks is made up, \
                so nfs-utils ends at \"unsupported type\"",
        conf: BY_TYPE,
        is_listed: true,
        written: SET,
    },
    Case {
        title: "not NFS, or gone: no line in the list; one look, ours at the newest 1,024 mounts by number \
                (not in Ir: callgrind knows no listmount, there it is the text)",
        conf: BY_MOUNT_POINT,
        is_listed: false,
        written: place::KERNEL_DEFAULT,
    },
];

struct Case {
    title: &'static str,
    conf: &'static str,
    is_listed: bool,
    written: &'static str,
}

struct Row {
    mounts: usize,
    ours: Figures,
    peer: Figures,
    wall_ms: Timed,
    cpu_ms: Timed,
}

/// Medians over the rounds.
struct Timed {
    ours: f64,
    peer: f64,
    floor: f64,
    /// Of the rounds' own ratios, to nfs-utils.
    ours_by_peer: f64,
    floor_by_peer: f64,
}

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1);
    let mut path = || {
        args.next()
            .map(PathBuf::from)
            .ok_or("bench HELPER PEER TOOL FOLDER [--quick]")
    };
    let (helper, peer) = (path()?.canonicalize()?, path()?);
    let (tool, folder) = (path()?.canonicalize()?, path()?.canonicalize()?);
    let sizes: &[usize] = match args.next() {
        Some(_) => &[10, 1_000],
        None => &[10, 100, 1_000, 10_000, 50_000],
    };
    let mut out = stdout().lock();
    let has_interpreter = measure::names_an_interpreter(&helper)?;
    let mut place = Place::new(&folder)?;
    let floor = Figures::of(&Program::new(&place.floor(), &[]), &place)?;
    writeln!(
        out,
        "{} against {}, empty environment.\n\
         Ir: user instructions, of nfs-utils with its loader. KiB: peak memory. Times are medians of rounds, in turn.\n\
         floor: an empty static C program; it takes {} Ir, {} calls, {} KiB.",
        shown(&helper),
        shown(&peer),
        floor.instructions,
        floor.calls,
        floor.peak_kib
    )?;

    let mut real: Vec<Vec<Row>> = REAL.iter().map(|_| Vec::new()).collect();
    for &mounts in sizes {
        let dev = place.mount_up_to(mounts)?;
        for (case, rows) in REAL.iter().zip(&mut real) {
            place.configure(case.conf)?;
            let listed = if case.is_listed { vec![dev] } else { Vec::new() };
            place.list_superblocks(&listed)?;
            let ours = Program::new(&helper, &["--write", &dev.to_string()])
                .env("SEQNUM", "1")
                .writes(&place.read_ahead(dev)?, case.written);
            let peer = Program::new(&peer, &[&dev.to_string()]);
            rows.push(row(mounts, &ours, &peer, &place)?);
        }
    }
    for (case, rows) in REAL.iter().zip(&real) {
        table(&mut out, case.title, rows)?;
    }

    // From here on /proc is made up.
    place.fake_proc()?;
    let nfs = Dev::NFS;
    let mut scan = Vec::new();
    let mut superblocks = Vec::new();
    for &mounts in sizes {
        place.configure(BY_MOUNT_POINT)?;
        place.write_table(mounts, place::Others::Tmpfs)?;
        place.list_superblocks(&[nfs])?;
        let root = place.root();
        let ours = Program::new(&helper, &["--root", &root, "--write", &nfs.to_string()])
            .env("SEQNUM", "1")
            .writes(&place.read_ahead_below_root(nfs)?, SET);
        let theirs = Program::new(&peer, &[&nfs.to_string()]);
        scan.push(row(mounts, &ours, &theirs, &place)?);

        place.configure(BY_TYPE)?;
        let all = place.write_table(mounts, place::Others::Nfs)?;
        place.list_superblocks(&all)?;
        let ours = Program::new(&helper, &["--write", &nfs.to_string()])
            .env("SEQNUM", "1")
            .writes(&place.read_ahead(nfs)?, SET);
        superblocks.push(row(mounts, &ours, &theirs, &place)?);
    }
    table(
        &mut out,
        "by mount point, without listmount (--root): one scan of a plain file of N lines, the mount is the last",
        &scan,
    )?;
    table(
        &mut out,
        "by type: N NFS mounts, each with a superblock of its own, in plain files; the device is the last",
        &superblocks,
    )?;
    mountstats(&mut out, &place, &tool)?;
    place.write_mountstats(daemon::MOUNTS, 1)?;
    let devs = place.write_table(daemon::MOUNTS, place::Others::Nfs)?;
    place.list_superblocks(&devs)?;
    daemon::report(&mut out, &tool.with_file_name("nfstuned"), &place, &devs)?;
    targets(&mut out, &real[0], has_interpreter)
}

/// The whole of each program on the same file: start, reading, and what it prints, which goes nowhere.
fn mountstats(out: &mut impl Write, place: &Place, tool: &Path) -> Result<()> {
    const MOUNTS: usize = 500;
    const CONNECTIONS: usize = 4;
    let bytes = place.write_mountstats(MOUNTS, CONNECTIONS)?;
    writeln!(
        out,
        "\nmountstats: {MOUNTS} mounts of {CONNECTIONS} connections in a plain file of {bytes} bytes"
    )?;
    let ours = Program::new(tool, &["--root", &place.root(), "metrics"]);
    for peer in ["/usr/sbin/mountstats", "/usr/sbin/nfsiostat"] {
        let theirs = Program::new(Path::new(peer), &[]);
        if !Path::new(peer).exists() {
            writeln!(out, "no {peer}")?;
            continue;
        }
        let rounds = measure::in_turn([&ours, &theirs, &Program::new(&place.floor(), &[])])?;
        let cpu = Timed::of(&rounds, |times| times.cpu_ms);
        let mb_per_s = |ms: f64| bytes as f64 / 1e3 / ms;
        writeln!(
            out,
            "nfstune metrics {:>8.2} ms CPU, {:>7.1} MB/s | {peer} {:>8.2} ms CPU, {:>6.2} MB/s | ours by theirs {:.4}",
            cpu.ours,
            mb_per_s(cpu.ours),
            cpu.peer,
            mb_per_s(cpu.peer),
            cpu.ours_by_peer
        )?;
    }
    out.flush()?;
    let parser = tool.with_file_name("examples").join("parser");
    let ended = Command::new(&parser).arg(place.mountstats()).status()?;
    if !ended.success() {
        return Err(format!("{}: {ended}", shown(&parser)).into());
    }
    Ok(())
}

fn row(mounts: usize, ours: &Program, peer: &Program, place: &Place) -> Result<Row> {
    let rounds = measure::in_turn([ours, peer, &Program::new(&place.floor(), &[])])?;
    Ok(Row {
        mounts,
        ours: Figures::of(ours, place)?,
        peer: Figures::of(peer, place)?,
        wall_ms: Timed::of(&rounds, |times| times.wall_ms),
        cpu_ms: Timed::of(&rounds, |times| times.cpu_ms),
    })
}

impl Timed {
    fn of(rounds: &[[Times; 3]], ms: fn(&Times) -> f64) -> Timed {
        let median = |of: fn([f64; 3]) -> f64| {
            let figures = rounds.iter().map(|round| of(round.each_ref().map(ms)));
            measure::median(figures)
        };
        Timed {
            ours: median(|[ours, ..]| ours),
            peer: median(|[_, peer, _]| peer),
            floor: median(|[.., floor]| floor),
            ours_by_peer: median(|[ours, peer, _]| ours / peer),
            floor_by_peer: median(|[_, peer, floor]| floor / peer),
        }
    }
}

fn table(out: &mut impl Write, title: &str, rows: &[Row]) -> Result<()> {
    writeln!(
        out,
        "\n{title}\n{:>6} | {:>9} {:>10} | {:>5} {:>6} | {:>5} {:>6} | {:>7} {:>8} {:>6} {:>6} | {:>7} {:>8} {:>6} {:>6}",
        "N", "Ir ours", "theirs", "calls", "theirs", "KiB", "theirs", "wall ms", "theirs", "floor", "ratio", "CPU ms",
        "theirs", "floor", "ratio"
    )?;
    for row in rows {
        let (ours, peer) = (&row.ours, &row.peer);
        write!(
            out,
            "{:>6} | {:>9} {:>10} | {:>5} {:>6} | {:>5} {:>6}",
            row.mounts, ours.instructions, peer.instructions, ours.calls, peer.calls, ours.peak_kib, peer.peak_kib
        )?;
        for t in [&row.wall_ms, &row.cpu_ms] {
            write!(
                out,
                " | {:>7.3} {:>8.3} {:>6.3} {:>6.4}",
                t.ours, t.peer, t.floor, t.ours_by_peer
            )?;
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

/// What one call is to cost, policy by type.
fn targets(out: &mut impl Write, by_type: &[Row], has_interpreter: bool) -> Result<()> {
    let (Some(few), Some(many)) = (by_type.first(), by_type.last()) else {
        return Ok(());
    };
    writeln!(out, "\ntargets, policy by type")?;
    let mut line = |is_met: bool, what: &str, figure: String, target: &str| {
        let verdict = if is_met { "PASS" } else { "MISS" };
        writeln!(out, "{verdict} {what:<42} {figure:>10}  {target}")
    };
    let growth = many.ours.instructions as f64 / few.ours.instructions as f64;
    line(
        few.ours.instructions <= 80_000,
        "user instructions, 10 mounts",
        few.ours.instructions.to_string(),
        "<= 80000",
    )?;
    line(
        few.ours.calls <= 30,
        "system calls, 10 mounts",
        few.ours.calls.to_string(),
        "<= 30",
    )?;
    line(
        (0.98..=1.02).contains(&growth),
        &format!("instructions, {} mounts by 10", many.mounts),
        format!("{growth:.4}"),
        "0.98..1.02",
    )?;
    line(
        many.ours.calls == few.ours.calls,
        &format!("system calls, {} mounts", many.mounts),
        many.ours.calls.to_string(),
        "as at 10",
    )?;
    line(
        !has_interpreter,
        "shared libraries",
        if has_interpreter { "some" } else { "none" }.to_owned(),
        "none",
    )?;
    line(
        few.wall_ms.ours_by_peer <= 0.35,
        "wall by nfs-utils, 10 mounts",
        format!("{:.3}", few.wall_ms.ours_by_peer),
        &format!("<= 0.35; the floor alone {:.3}", few.wall_ms.floor_by_peer),
    )?;
    if many.mounts == 50_000 {
        let cpu = many.cpu_ms.ours_by_peer;
        line(
            cpu <= 0.01,
            "CPU by nfs-utils, 50000 mounts",
            format!("{cpu:.4}"),
            "<= 0.01",
        )?;
    }
    writeln!(
        out,
        "not measured here: a mount found by number among its {} elders takes real NFS",
        many.mounts
    )?;
    Ok(())
}

/// Where a program is, for messages.
pub fn shown(path: &Path) -> std::path::Display<'_> {
    path.display()
}
