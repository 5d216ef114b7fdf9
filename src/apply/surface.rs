//! How a value gets into the file of a knob: by the kernel's own rules on the live system; in a copy of one, whose files are plain,
//! by hand.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use crate::root::Root;

/// An open file of a knob.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub file: &'a File,
    pub path: &'a Path,
    /// The file that a write of this one sets to 0: bytes and ratio of one limit.
    pub twin: Option<&'a Path>,
}

/// What writes are made to. Tests put a kernel of their own in its place.
pub trait Surface: fmt::Debug {
    fn write(&self, target: &Target, value: u64) -> io::Result<()>;
}

/// The one for this root.
pub fn of(root: &Root) -> Rc<dyn Surface> {
    match root.is_live() {
        true => Rc::new(Live),
        false => Rc::new(Plain),
    }
}

#[derive(Debug)]
struct Live;

impl Surface for Live {
    /// One write(2): the kernel takes each as a value of its own.
    fn write(&self, target: &Target, value: u64) -> io::Result<()> {
        target.file.write_all_at(format!("{value}\n").as_bytes(), 0)
    }
}

#[derive(Debug)]
struct Plain;

impl Surface for Plain {
    fn write(&self, target: &Target, value: u64) -> io::Result<()> {
        write_plain(target.file, value)?;
        match target.twin {
            Some(twin) => write_plain(&OpenOptions::new().write(true).open(twin)?, 0),
            None => Ok(()),
        }
    }
}

/// No plain file that stands for an attribute is longer.
const PLAIN_LIMIT: usize = 4096;

/// A plain file keeps what stood behind a write, so it is written over with newlines, in the same write, and cut after it.
fn write_plain(file: &File, value: u64) -> io::Result<()> {
    let mut text = format!("{value}\n").into_bytes();
    let length = text.len();
    let before = usize::try_from(file.metadata()?.len()).unwrap_or_default();
    text.resize(length.max(before.min(PLAIN_LIMIT)), b'\n');
    file.write_all_at(&text, 0)?;
    file.set_len(u64::try_from(length).unwrap_or_default())
}
