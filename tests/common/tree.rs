//! Fake root directories: copied, and looked at afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A copy of `from` (nothing, if it is not there) that is older than anything a test does to it.
pub fn copy(from: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    if from.exists() {
        copy_folder(from, copy.path());
    }
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            fs::create_dir(&to).unwrap();
            copy_folder(&from, &to);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&from).unwrap(), &to).unwrap();
        } else {
            fs::write(&to, fs::read(&from).unwrap()).unwrap();
            let old = SystemTime::now() - Duration::from_secs(3600);
            fs::File::options()
                .append(true)
                .open(&to)
                .unwrap()
                .set_modified(old)
                .unwrap();
        }
    }
}

/// Makes the file and its folders.
pub fn write(root: &Path, file: &str, text: impl AsRef<[u8]>) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// One file (or link: then its text is where it leads).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    pub text: Vec<u8>,
    inode: u64,
    modified: (i64, i64),
}

/// All files below a folder, by their path from there. A file that is written anew with the same text differs.
pub fn leaves(root: &Path) -> BTreeMap<PathBuf, Leaf> {
    let mut found = BTreeMap::new();
    collect(root, Path::new(""), &mut found);
    found
}

fn collect(root: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Leaf>) {
    let folder = root.join(below);
    if !folder.exists() {
        return;
    }
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            collect(root, &path, found);
            continue;
        }
        let text = match metadata.is_symlink() {
            true => fs::read_link(entry.path())
                .unwrap()
                .into_os_string()
                .into_encoded_bytes(),
            false => fs::read(entry.path()).unwrap(),
        };
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let inode = metadata.ino();
        found.insert(path, Leaf { text, inode, modified });
    }
}
