//! Which files make the configuration, and in which order: `/usr/etc/nfs.conf`, its folder, `/etc/nfs.conf`, its folder.
//!
//! The helper does this for every udev event, possibly early at boot and on whatever the admin left there, so nothing here
//! waits (no lock, no FIFO), nothing fails, and everything is bounded.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::grammar::{parse, Header, Item, WarningKind};
use super::order::version_order;
use super::regular::read_regular;
use crate::report::escape::{escape, escape_path};
use crate::root::{usr_twin, Root};

/// Includes within includes; nfs-utils has no limit, and a file that includes itself crashes it.
const MAX_DEPTH: u32 = 16;
/// Files in one load, drop-ins and includes together: bounds what files that include each other can cost.
const MAX_FILES: u32 = 1024;
/// One file, and all files of one load. Real ones have a few KiB.
const MAX_FILE_BYTES: usize = 1 << 20;
const MAX_BYTES: usize = 4 << 20;
/// Warnings kept: enough for any file that is meant as a configuration.
const MAX_WARNINGS: usize = 1000;

/// Where something was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// As it was opened, without the root.
    pub file: Rc<Path>,
    pub line: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", escape_path(&self.file), self.line)
    }
}

/// One `tag = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Lower-cased.
    pub section: Vec<u8>,
    pub arg: Option<Vec<u8>>,
    pub tag: Vec<u8>,
    pub value: Vec<u8>,
    pub at: Location,
}

/// Something that was passed over while reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub kind: WarningKind,
    pub file: Rc<Path>,
    pub line: Option<u32>,
    /// What exactly, where the kind alone does not say it; may be empty.
    pub detail: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", escape_path(&self.file))?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.kind.text())?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

/// What to store of what is read. Warnings come from all sections.
#[derive(Debug, Clone, Copy)]
pub enum Keep<'a> {
    All,
    /// These sections, spelled in lower case, with and without arguments.
    Sections(&'a [&'a [u8]]),
}

/// What the files say, in the order of reading.
#[derive(Debug, Default)]
pub struct Conf {
    pub assignments: Vec<Assignment>,
    pub warnings: Vec<Warning>,
}

/// Reads the configuration whose main file is `main_file` (normally [`crate::root::NFS_CONF`]). A file that is not there is
/// no matter; whatever else cannot be read is a warning.
pub fn load(root: &Root, main_file: &Path, keep: Keep<'_>) -> Conf {
    let mut loader = Loader {
        root,
        keep,
        conf: Conf::default(),
        files: 0,
        bytes: 0,
    };
    if let Some(twin) = usr_twin(main_file) {
        loader.main_and_folder(&twin);
    }
    loader.main_and_folder(main_file);
    loader.conf
}

struct Loader<'a> {
    root: &'a Root,
    keep: Keep<'a>,
    conf: Conf,
    files: u32,
    bytes: usize,
}

enum Text {
    Read(Vec<u8>),
    Missing,
    Unreadable,
}

impl Loader<'_> {
    fn main_and_folder(&mut self, file: &Path) {
        let shown = Rc::from(file);
        if let Text::Read(text) = self.read(&shown) {
            // The other NFS programs drop all that /usr/etc gave, its folder included, as soon as there is a main file.
            self.conf.assignments.clear();
            self.parse(&shown, &text, None, 0);
        }
        let mut folder = file.as_os_str().to_owned();
        folder.push(".d");
        self.folder(Path::new(&folder));
    }

    fn folder(&mut self, folder: &Path) {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return,
            Err(e) => return self.warn(WarningKind::Scandir, &Rc::from(folder), None, e.to_string()),
        };
        let mut names: Vec<Vec<u8>> = Vec::new();
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(e) => {
                    self.warn(WarningKind::Scandir, &Rc::from(folder), None, e.to_string());
                    break;
                }
            };
            let name = entry.file_name().into_vec();
            let is_file = || entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_symlink());
            if !is_drop_in(&name) || !is_file() {
                continue;
            }
            if names.len() >= MAX_FILES as usize {
                let detail = format!("more than {MAX_FILES} files, the rest is not read");
                self.warn(WarningKind::Scandir, &Rc::from(folder), None, detail);
                break;
            }
            names.push(name);
        }
        names.sort_unstable_by(|a, b| version_order(a, b));
        for name in names {
            let file = Rc::from(folder.join(OsStr::from_bytes(&name)));
            if let Text::Read(text) = self.read(&file) {
                self.parse(&file, &text, None, 0);
            }
        }
    }

    fn parse(&mut self, file: &Rc<Path>, text: &[u8], inherited: Option<Header<'_>>, depth: u32) {
        parse(text, inherited, &mut |item| match item {
            Item::Assign {
                section,
                arg,
                tag,
                value,
                line,
            } => {
                if self.keep.wants(section) {
                    self.conf.assignments.push(Assignment {
                        section: section.to_vec(),
                        arg: arg.map(<[u8]>::to_vec),
                        tag: tag.to_vec(),
                        value: value.to_vec(),
                        at: Location {
                            file: Rc::clone(file),
                            line,
                        },
                    });
                }
            }
            Item::Include {
                section,
                arg,
                name,
                optional,
                line,
            } => {
                if depth >= MAX_DEPTH {
                    return self.warn(WarningKind::IncludeDepth, file, Some(line), escape(name));
                }
                let target: Rc<Path> = Rc::from(beside(file, name));
                match self.read(&target) {
                    Text::Read(text) => {
                        let header = Header { section, arg };
                        self.parse(&target, &text, Some(header), depth + 1);
                    }
                    Text::Missing | Text::Unreadable if optional => {}
                    Text::Missing => {
                        let detail = format!("{}: no such file", escape_path(&target));
                        self.warn(WarningKind::Include, file, Some(line), detail);
                    }
                    Text::Unreadable => {
                        let detail = escape_path(&target);
                        self.warn(WarningKind::Include, file, Some(line), detail);
                    }
                }
            }
            Item::Warning { kind, line } => self.warn(kind, file, line, String::new()),
        });
    }

    fn read(&mut self, file: &Rc<Path>) -> Text {
        if self.files >= MAX_FILES {
            let detail = format!("more than {MAX_FILES} files");
            self.warn(WarningKind::Unreadable, file, None, detail);
            return Text::Unreadable;
        }
        let limit = MAX_FILE_BYTES.min(MAX_BYTES.saturating_sub(self.bytes));
        match read_regular(&self.root.join(file), limit) {
            Ok(text) => {
                self.files += 1;
                self.bytes += text.len();
                Text::Read(text)
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Text::Missing,
            Err(e) => {
                self.warn(WarningKind::Unreadable, file, None, e.to_string());
                Text::Unreadable
            }
        }
    }

    fn warn(&mut self, kind: WarningKind, file: &Rc<Path>, line: Option<u32>, detail: String) {
        let kind = match self.conf.warnings.len() {
            ..MAX_WARNINGS => kind,
            MAX_WARNINGS => WarningKind::TooMany,
            _ => return,
        };
        self.conf.warnings.push(Warning {
            kind,
            file: Rc::clone(file),
            line,
            detail,
        });
    }
}

impl Keep<'_> {
    fn wants(&self, section: &[u8]) -> bool {
        match self {
            Keep::All => true,
            Keep::Sections(sections) => sections.contains(&section),
        }
    }
}

fn is_drop_in(name: &[u8]) -> bool {
    name.len() > b".conf".len() && name.ends_with(b".conf") && !name.starts_with(b".")
}

/// A name in an include line, seen from the file that holds the line.
fn beside(file: &Path, name: &[u8]) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(OsStr::from_bytes(name))
}
