//! The answer as configuration.

use std::path::PathBuf;

use nfsrahead::apply::replace::replace_with_folder;
use nfsrahead::conf::scope::Scope;
use nfsrahead::error::{Error, Result};
use nfsrahead::kernel::mountinfo::Mount;
use nfsrahead::root::Root;

/// A file of /etc/nfs.conf.d with one sub-section.
#[derive(Debug, Clone)]
pub struct DropIn {
    name: String,
    /// None: the mount point cannot be written in a header.
    text: Option<String>,
}

impl DropIn {
    pub fn new(mount: &Mount, kib: u64) -> DropIn {
        let place = mount.mount_point.as_deref().unwrap_or_default();
        DropIn {
            name: format!("90-nfstune-bench-{}.conf", slug(place)),
            text: header(place).map(|header| format!("{header}\ndefault = {kib}\n")),
        }
    }

    /// The lines, for people to copy.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    pub fn write(&self, root: &Root) -> Result<PathBuf> {
        let path = root.nfs_conf_drop_in(&self.name);
        let Some(text) = &self.text else {
            let why = std::io::Error::other("the mount point has characters that a header cannot have");
            return Err(Error::io("write", path)(why));
        };
        let text = format!("# by nfstune bench readahead\n{text}");
        replace_with_folder(&path, text.as_bytes())?;
        Ok(path)
    }
}

/// A mount point of printable characters, which means itself alone and not a pattern.
fn header(place: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(place).ok()?;
    let is_plain = text
        .chars()
        .all(|c| !c.is_control() && !matches!(c, '"' | ']' | '\\' | '$'));
    let is_itself = matches!(Scope::parse(place), Some(Scope::MountPoint(_)));
    (is_plain && is_itself).then(|| format!("[nfsrahead \"{text}\"]"))
}

/// A name for a file, another one for every mount point.
fn slug(place: &[u8]) -> String {
    let mut slug = String::new();
    for b in place.strip_prefix(b"/").unwrap_or(place) {
        match b {
            b'/' => slug.push('-'),
            b if b.is_ascii_alphanumeric() || *b == b'.' => slug.push(char::from(*b)),
            b => slug.push_str(&format!("_{b:02x}")),
        }
    }
    // Names of files end somewhere; so long a path is not a name to recognise anyway.
    slug.truncate(150);
    slug
}
