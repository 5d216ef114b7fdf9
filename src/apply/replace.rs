//! A file that others read at any time: they see the old text or the new one, never a part.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Left behind by writers that were killed, under our process number: more than these are no accident.
const TRIES: u32 = 16;

/// Writes a new file next to `path` and gives it that name. No fsync: after a crash a new text is due anyway.
pub fn replace(path: &Path, text: &[u8]) -> Result<()> {
    let (new, mut file) = create_beside(path).map_err(Error::io("write", path))?;
    file.write_all(text)
        .and_then(|()| fs::rename(&new, path))
        .inspect_err(|_| drop(fs::remove_file(&new)))
        .map_err(Error::io("write", path))
}

/// [`replace`], in a folder that is made where it is missing.
pub fn replace_with_folder(path: &Path, text: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
    }
    replace(path, text)
}

/// What is not there is gone as well.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
        _ => Ok(()),
    }
}

/// A new file; never one that is there, never through a link.
pub fn create_new(path: &Path) -> Result<File> {
    File::create_new(path).map_err(Error::io("make", path))
}

/// Writes over a file in place, so that it stays the same file; its folder is made where it is missing.
pub fn overwrite_with_folder(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// Moves a folder out of the way: its inode stays in use, so that the next one of its name is another one.
pub fn put_aside(path: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let n = fs::read_dir(folder)?.count();
    fs::rename(path, folder.join(n.to_string()))
}

/// Hidden, and with an ending that no collector looks for. Never through a link, never a file that is there.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or_else(|| io::Error::other("names no file"))?;
    let mut tried = 0;
    loop {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{tried}.tmp", std::process::id()));
        let new = path.with_file_name(hidden);
        match File::create_new(&new) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tried < TRIES => tried += 1,
            created => return created.map(|file| (new, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect()
    }

    #[test]
    fn a_file_is_new_or_old() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nfs.prom");
        let left_behind = format!(".nfs.prom.{}-0.tmp", std::process::id());
        std::os::unix::fs::symlink(&path, dir.path().join(&left_behind)).unwrap();
        fs::write(&path, "old").unwrap();
        let mut old = File::open(&path).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(io::read_to_string(&mut old).unwrap(), "old");
        assert_eq!(names(dir.path()).len(), 2);
    }

    #[test]
    fn what_fails_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a folder");
        fs::create_dir(&folder).unwrap();
        for path in [
            &*folder,
            &dir.path().join("none/x"),
            Path::new("/"),
            &dir.path().join(".."),
        ] {
            assert!(replace(path, b"text").is_err(), "{path:?}");
        }
        assert_eq!(names(dir.path()), ["a folder"]);
    }
}
