//! The limit that is compared: as nfstuned would set it, or as the admin says.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nfsrahead::conf::tuned::{self, DirtyLimit, Tuned};
use nfsrahead::conf::{self, Keep};
use nfsrahead::error::{Error, Result};
use nfsrahead::float::float;
use nfsrahead::kernel::knob::Attribute;
use nfsrahead::kernel::vm;
use nfsrahead::root::{Root, NFS_CONF};
use nfsrahead::writeback::size::{self, Inputs, Limit};

use super::super::knobs::Knobs;
use super::Target;

/// Before Linux 6.2 a device has no limit that holds.
pub fn is_possible(knobs: &Knobs) -> Result<()> {
    match knobs.now(Attribute::StrictLimit)? {
        Some(_) => Ok(()),
        None => {
            let why = io::Error::other("this kernel has no strict_limit (Linux 6.2)");
            Err(Error::io("compare on", Attribute::StrictLimit.name())(why))
        }
    }
}

/// Does the device hold less than the machine may?
pub fn is_there(knobs: &Knobs) -> Result<bool> {
    Ok(knobs.now(Attribute::StrictLimit)? == Some(1))
}

/// The inner Err says why there is none: it would change nothing, or cannot be computed.
pub fn of(
    root: &Root,
    target: &Target,
    wanted_bytes: Option<u64>,
    drain_bytes_per_s: Option<f64>,
) -> Result<std::result::Result<Limit, String>> {
    let environment = |name: &[u8]| std::env::var_os(OsStr::from_bytes(name)).map(OsString::into_vec);
    let sections: &[&[u8]] = &[tuned::SECTION, b"environment"];
    let conf = conf::load(root, Path::new(NFS_CONF), Keep::Sections(sections));
    let tuned = Tuned::new(&conf, &environment);
    let rule = tuned.limit_for(&target.mount).map(|rule| rule.limit);
    let wanted_bytes = match (wanted_bytes, rule) {
        (Some(bytes), _) | (None, Some(DirtyLimit::Bytes(bytes))) => Some(bytes),
        (None, Some(DirtyLimit::Leave)) => {
            return Ok(Err("the configuration says leave; give one as --limit".to_owned()))
        }
        (None, Some(DirtyLimit::Auto) | None) => None,
    };
    let (Some(stat), Some(memory)) = (vm::vmstat(root)?, vm::memory(root)?) else {
        return Ok(Err("the kernel does not say its memory or its dirty limits".to_owned()));
    };
    let pages = |pages: u64| pages.saturating_mul(vm::page_kib() * 1024);
    let inputs = Inputs {
        drain_bytes_per_s: drain_bytes_per_s.unwrap_or(0.0),
        target_s: float(tuned.drain_target_ms) / 1000.0,
        wsize_bytes: target.mount.wsize_bytes().unwrap_or(1 << 20),
        connections: target.mount.connections(),
        rtt_s: 0.0,
        // What a mount has in the long run, new or not.
        written_bytes: None,
        memory_bytes: memory.total_kib.saturating_mul(1024),
        threshold_bytes: pages(stat.threshold_pages),
        background_bytes: pages(stat.background_pages),
        needs_floor: size::needs_floor(vm::kernel_release(root)),
    };
    let limit = match (wanted_bytes, drain_bytes_per_s) {
        (Some(bytes), _) => size::fixed(bytes, &inputs),
        (None, Some(_)) => size::limit(&inputs),
        (None, None) => return Ok(Err("what the server takes was not measured".to_owned())),
    };
    Ok(limit.map_err(|skip| skip.to_string()))
}

/// The limit before what makes it hold.
pub fn set(knobs: &mut Knobs, limit: &Limit) -> Result<()> {
    knobs.set(Attribute::MaxRatioFine, limit.max_ppm)?;
    knobs.set(Attribute::MinRatioFine, limit.min_ppm)?;
    knobs.set(Attribute::StrictLimit, 1)
}
