//! What nfstuned costs on a host with many mounts.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::{Dev, Place};
use crate::Result;

pub const MOUNTS: usize = 1_000;
/// The shortest that there is; a longer one costs less.
const INTERVAL_S: u64 = 5;
const INTERVALS: u32 = 3;
/// The default.
const USUAL_INTERVAL_S: f64 = 15.0;

/// It applies readahead and limits; nothing changes, so nothing is to be written.
pub fn report(out: &mut impl Write, nfstuned: &Path, place: &Place, devs: &[Dev]) -> Result<()> {
    let root = PathBuf::from(place.root());
    for dev in devs {
        for (name, value) in [
            ("read_ahead_kb", 128),
            ("max_ratio_fine", 1_000_000),
            ("min_ratio_fine", 0),
            ("strict_limit", 0),
        ] {
            put(&root, &format!("sys/class/bdi/{dev}/{name}"), &format!("{value}\n"))?;
        }
    }
    for (path, text) in [
        (
            "proc/sys/kernel/random/boot_id",
            "7f3e1a52-0000-4000-8000-000000000001\n",
        ),
        ("proc/uptime", "86400.00 1.00\n"),
        (
            "proc/vmstat",
            "nr_dirty 0\nnr_writeback 0\nnr_dirty_threshold 200000\nnr_dirty_background_threshold 100000\n",
        ),
        ("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 4000000 kB\n"),
    ] {
        put(&root, path, text)?;
    }
    let conf = format!("[nfsrahead]\nnfs4=auto\n[nfstuned]\ninterval={INTERVAL_S}\napply=readahead,bdi\n");
    place.configure(&conf)?;
    let mut child = Command::new(nfstuned)
        .arg("--root")
        .arg(&root)
        .stderr(Stdio::null())
        .spawn()?;
    // /proc is made up by now; the kernel's own is beside the root.
    let proc = root.with_file_name("proc").join(child.id().to_string());
    let figures = watch(&mut child, &root, &proc);
    // By its own handle, whatever came of it.
    child.kill()?;
    child.wait()?;
    let (cpu_ms, peak_kib) = figures?;
    let per_interval_ms = cpu_ms / f64::from(INTERVALS);
    writeln!(
        out,
        "\nnfstuned, {MOUNTS} NFS mounts (made up, plain files), nothing changes: {per_interval_ms:.0} ms of CPU an interval, {:.2} % of a \
         core at {USUAL_INTERVAL_S} s; {peak_kib} KiB at most",
        100.0 * per_interval_ms / (1000.0 * USUAL_INTERVAL_S)
    )?;
    Ok(())
}

/// CPU time of some whole intervals, in ms, and peak memory.
fn watch(child: &mut Child, root: &Path, proc: &Path) -> Result<(f64, u64)> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !root.join("run/nfstuned/status.json").exists() {
        if Instant::now() > deadline || child.try_wait()?.is_some() {
            return Err("nfstuned does not start".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // Between two ticks.
    std::thread::sleep(Duration::from_secs(INTERVAL_S / 2));
    let before = ticks(proc)?;
    std::thread::sleep(Duration::from_secs(INTERVAL_S) * INTERVALS);
    let after = ticks(proc)?;
    let status = fs::read_to_string(proc.join("status"))?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM")?;
    let peak_kib = peak.trim().trim_end_matches(" kB").parse()?;
    // USER_HZ, which is 100 on every Linux.
    Ok((10.0 * (after - before), peak_kib))
}

/// User and system time, proc_pid_stat(5).
fn ticks(proc: &Path) -> Result<f64> {
    let text = fs::read_to_string(proc.join("stat"))?;
    let fields: Vec<&str> = text.rsplit(')').next().ok_or("no stat")?.split_whitespace().collect();
    let field = |n: usize| -> Result<f64> { Ok(fields.get(n).ok_or("no field")?.parse()?) };
    Ok(field(11)? + field(12)?)
}

fn put(root: &Path, path: &str, text: &str) -> Result<()> {
    let path = root.join(path);
    fs::create_dir_all(path.parent().ok_or("no folder")?)?;
    fs::write(path, text)?;
    Ok(())
}
