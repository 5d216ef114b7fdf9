//! One knob: write it, read it back.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::apply::ledger::Change;
use crate::apply::surface::{self, Surface, Target};
use crate::conf::value::MAX_KIB;
use crate::decimal::decimal;
use crate::error::{Error, Result};
use crate::kernel::bdi::{has_gone, Bdi, Dev};
use crate::kernel::knob::{self, Attribute, Knob, Threshold, Value};
use crate::report::escape::escape;
use crate::root::Root;
use crate::sample::instance;
use crate::writeback::size::WHOLE_PPM;

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Written,
    /// The device was unregistered meanwhile: there is nothing to set any more.
    Gone,
}

/// Sets `read_ahead_kb` of this very instance of the device, in KiB, and reads it back. `kib` must be whole pages: the kernel
/// rounds down (mm/backing-dev.c `read_ahead_kb_store`), and any other value read back is an error.
pub fn set_read_ahead(root: &Root, bdi: &Bdi, kib: u64) -> Result<Outcome> {
    set_attribute(&*surface::of(root), bdi.read_ahead_file(), bdi.path(), kib)
}

/// An open attribute of a device stays that of its instance: once that is unregistered, a write answers ENODEV.
fn set_attribute(surface: &dyn Surface, file: &File, path: &Path, value: u64) -> Result<Outcome> {
    let target = Target { file, path, twin: None };
    match surface.write(&target, value).and_then(|()| read(file)) {
        Err(e) if has_gone(&e) => Ok(Outcome::Gone),
        Err(e) => Err(Error::io("write", path)(e)),
        Ok(read) if decimal(read.trim_ascii()) == Some(value) => Ok(Outcome::Written),
        Ok(read) => Err(Error::ReadBack {
            path: path.to_owned(),
            wrote: value,
            read: escape(read.trim_ascii()),
        }),
    }
}

fn read(file: &File) -> io::Result<Vec<u8>> {
    let mut text = [0u8; 64];
    let n = file.read_at(&mut text, 0)?;
    Ok(text[..n].to_vec())
}

/// A knob that can be written.
pub(super) enum Opened {
    /// Of one instance of a device.
    Attribute {
        file: File,
        path: PathBuf,
    },
    Threshold(Threshold),
}

/// None: there is no such knob any more, or it is another instance's.
pub(super) fn open(root: &Root, knob: Knob, of: Option<u64>) -> Result<Option<Opened>> {
    match knob {
        Knob::Vm(threshold) => Ok(Some(Opened::Threshold(threshold))),
        Knob::Bdi { dev, attribute } => {
            let path = knob::attribute_path(root, dev, attribute);
            match OpenOptions::new().read(true).write(true).open(&path) {
                Ok(file) if is_instance(root, dev, of) => Ok(Some(Opened::Attribute { file, path })),
                Ok(_) => Ok(None),
                Err(e) if has_gone(&e) => Ok(None),
                Err(e) => Err(Error::io("open", path)(e)),
            }
        }
    }
}

/// Asked after the attribute was opened: if the device was made anew in between, the file is of the old one and cannot be written.
fn is_instance(root: &Root, dev: Dev, of: Option<u64>) -> bool {
    of.is_some() && instance(root, dev) == of
}

impl Opened {
    pub(super) fn write(&self, root: &Root, surface: &dyn Surface, value: Value) -> Result<Outcome> {
        match (self, value) {
            (Opened::Attribute { file, path }, Value::Number(value)) => set_attribute(surface, file, path, value),
            (Opened::Threshold(threshold), Value::Bytes(amount) | Value::Ratio(amount)) => {
                set_threshold(root, surface, *threshold, value, amount)
            }
            (Opened::Attribute { path, .. }, _) => Err(refused(path.clone(), "takes a number")),
            (Opened::Threshold(threshold), _) => {
                let [bytes, _] = knob::threshold_paths(root, *threshold);
                Err(refused(bytes, "takes bytes or a ratio"))
            }
        }
    }
}

/// Writing one of the two sets the other to 0 (mm/page-writeback.c `dirty_bytes_handler`, `dirty_ratio_handler`).
fn set_threshold(
    root: &Root,
    surface: &dyn Surface,
    threshold: Threshold,
    value: Value,
    amount: u64,
) -> Result<Outcome> {
    let [bytes, ratio] = knob::threshold_paths(root, threshold);
    let (path, twin) = match value {
        Value::Bytes(_) => (bytes, ratio),
        _ => (ratio, bytes),
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(Error::io("open", &path))?;
    let target = Target {
        file: &file,
        path: &path,
        twin: Some(&twin),
    };
    surface.write(&target, amount).map_err(Error::io("write", &path))?;
    match knob::read(root, Knob::Vm(threshold))? {
        Some(now) if now == value => Ok(Outcome::Written),
        now => Err(Error::ReadBack {
            path,
            wrote: amount,
            read: now.map_or_else(|| "nothing".to_owned(), |now| now.to_string()),
        }),
    }
}

/// The kernel takes a ratio of 0 for no change where bytes were in force, so another ratio has to come between.
pub(super) fn steps_back(original: Value) -> Option<Value> {
    (original == Value::Ratio(0)).then_some(Value::Ratio(1))
}

/// What no decision may ask for, wherever it comes from. Restoring is not asked.
pub(super) fn check(root: &Root, change: &Change) -> Result<()> {
    let path = || knob::paths(root, change.knob).swap_remove(0);
    match (change.knob, change.value) {
        (Knob::Bdi { attribute, .. }, Value::Number(value)) => {
            let allowed = match attribute {
                Attribute::ReadAheadKib => 0..=MAX_KIB,
                Attribute::MinRatioFine => 0..=WHOLE_PPM,
                // 0 would hold every writer for ever.
                Attribute::MaxRatioFine => 1..=WHOLE_PPM,
                Attribute::StrictLimit => 0..=1,
            };
            if allowed.contains(&value) {
                return Ok(());
            }
            let (least, most) = (allowed.start(), allowed.end());
            Err(refused(
                path(),
                &format!("{value} is refused: must be from {least} to {most}"),
            ))
        }
        (Knob::Vm(threshold), Value::Bytes(bytes)) => {
            let least = match threshold {
                Threshold::Limit => LIMIT_MIN_BYTES,
                Threshold::Background => LIMIT_MIN_BYTES / 2,
            };
            if bytes >= least {
                return Ok(());
            }
            Err(refused(
                path(),
                &format!("{bytes} is refused: must be at least {least}"),
            ))
        }
        _ => Err(refused(path(), "is refused: not a value of this knob")),
    }
}

/// A machine of 128 MiB: 5 % of memory in pages. Less holds nothing.
const LIMIT_MIN_BYTES: u64 = 6 << 20;

fn refused(path: PathBuf, why: &str) -> Error {
    Error::Io {
        doing: "write",
        path,
        source: io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()),
    }
}
