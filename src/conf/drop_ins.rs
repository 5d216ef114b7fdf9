//! Which drop-in files udev and systemd-sysctl read, and in which order: those of all folders together, by the bytes of their
//! names. Of files with one name only that of the first folder is read; an empty one, or a link to /dev/null, is there to hide
//! the others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::finding::Found;
use super::regular::read_regular;
use crate::root::Root;

/// Longer than any real rule file by far.
const MAX_BYTES: usize = 1 << 20;
/// Of one folder; a host has some hundred.
const MAX_FILES: usize = 4096;

/// One file, without the root.
#[derive(Debug, Clone)]
pub struct DropIn {
    pub path: Rc<Path>,
    /// None: it only hides.
    pub text: Option<Vec<u8>>,
}

/// What udev reads, and what it does not read because of it.
#[derive(Debug)]
pub struct Named {
    pub read: DropIn,
    pub hidden: Vec<DropIn>,
}

/// All names with this ending, in their order. `folders` begins with the strongest. What cannot be read is told.
pub fn load(root: &Root, folders: &[&str], ending: &str, found: &mut Vec<Found>) -> Vec<Named> {
    let mut names: BTreeMap<OsString, Vec<DropIn>> = BTreeMap::new();
    let mut seen = Vec::new();
    for folder in folders.iter().copied() {
        let here = root.join(folder.as_ref());
        // /lib is /usr/lib on most hosts.
        let Ok(metadata) = fs::metadata(&here) else { continue };
        let identity = (metadata.dev(), metadata.ino());
        if seen.contains(&identity) {
            continue;
        }
        seen.push(identity);
        let entries = match fs::read_dir(&here) {
            Ok(entries) => entries,
            Err(e) => {
                found.push(Found::warning("rules-unreadable", folder.as_ref(), None, e.to_string()));
                continue;
            }
        };
        for entry in entries.take(MAX_FILES).filter_map(io::Result::ok) {
            let name = entry.file_name();
            if !name.as_bytes().ends_with(ending.as_bytes()) || name.as_bytes().starts_with(b".") {
                continue;
            }
            let path: Rc<Path> = PathBuf::from(folder).join(&name).into();
            match read(&entry.path()) {
                Ok(Some(text)) => names.entry(name).or_default().push(DropIn { path, text }),
                Ok(None) => {}
                Err(e) => found.push(Found::warning("rules-unreadable", &path, None, e.to_string())),
            }
        }
    }
    let named = names.into_values().filter_map(|mut files| {
        let hidden = files.split_off(1);
        let read = files.pop()?;
        Some(Named { read, hidden })
    });
    named.collect()
}

/// None: nothing that udev takes for a file of that name. Some(None): a file that only hides.
fn read(path: &Path) -> io::Result<Option<Option<Vec<u8>>>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    if metadata.file_type().is_char_device() || (metadata.is_file() && metadata.len() == 0) {
        return Ok(Some(None));
    }
    if metadata.is_dir() {
        return Ok(None);
    }
    read_regular(path, MAX_BYTES).map(|text| Some(Some(text)))
}
