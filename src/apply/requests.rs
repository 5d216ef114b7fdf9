//! What `nfstune` asks a running daemon to do: a file below /run/nfstuned/requests, named by what it asks for. The daemon removes
//! it when that is done. Only root can make one.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::kernel::knob::Knob;
use crate::root::Root;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Take a knob that is somebody else's under management again.
    Release(Knob),
    /// Take a sample, decide and apply now.
    Apply,
}

/// More at once are no admin's.
const REQUESTS: usize = 256;

/// Where they are.
pub fn folder(root: &Root) -> PathBuf {
    root.nfstuned_requests()
}

impl Request {
    /// A slash stands in no file name, a plus in no knob.
    fn name(self) -> String {
        match self {
            Request::Release(knob) => format!("release {}", knob.to_string().replace('/', "+")),
            Request::Apply => "apply".to_owned(),
        }
    }

    fn parse(name: &[u8]) -> Option<Request> {
        if name == b"apply" {
            return Some(Request::Apply);
        }
        let knob: Vec<u8> = name
            .strip_prefix(b"release ")?
            .iter()
            .map(|b| if *b == b'+' { b'/' } else { *b })
            .collect();
        Knob::parse(&knob).map(Request::Release)
    }

    pub fn path(self, root: &Root) -> PathBuf {
        folder(root).join(self.name())
    }
}

/// Makes a request. It is there at once, whole.
pub fn make(root: &Root, request: Request) -> Result<PathBuf> {
    let path = request.path(root);
    let new = folder(root).join(format!(".{}", std::process::id()));
    fs::write(&new, b"")
        .and_then(|()| fs::rename(&new, &path))
        .map_err(Error::io("write", &path))?;
    Ok(path)
}

/// What is asked for, by root. What makes no sense is removed.
pub fn pending(root: &Root) -> Vec<Request> {
    let Ok(entries) = fs::read_dir(folder(root)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.take(REQUESTS).filter_map(io::Result::ok) {
        let name = entry.file_name();
        if name.as_bytes().starts_with(b".") {
            continue;
        }
        let is_roots = entry
            .metadata()
            .is_ok_and(|m| m.is_file() && (m.uid() == 0 || !root.is_live()));
        match Request::parse(name.as_bytes()).filter(|_| is_roots) {
            Some(request) => found.push(request),
            // Nobody waits for it.
            None => drop(fs::remove_file(entry.path())),
        }
    }
    found
}

/// It is done: whoever waits for it sees the file go.
pub fn done(root: &Root, request: Request) {
    // Gone already is done as well.
    let _ = fs::remove_file(request.path(root));
}

/// The folder, made where it is missing.
pub fn prepare(root: &Root) -> Result<()> {
    let folder = folder(root);
    fs::create_dir_all(&folder).map_err(Error::io("make", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert_eq!(pending(&root), []);
        prepare(&root).unwrap();
        let release = Request::Release(Knob::parse(b"0:51/max_ratio_fine").unwrap());
        let vm = Request::Release(Knob::parse(b"vm.dirty").unwrap());
        for request in [release, vm, Request::Apply] {
            assert_eq!(Request::parse(request.name().as_bytes()), Some(request));
            make(&root, request).unwrap();
            assert_eq!(pending(&root), [request]);
            done(&root, request);
            assert_eq!(pending(&root), []);
        }
        fs::write(folder(&root).join("release ..+..+etc"), b"").unwrap();
        assert_eq!(pending(&root), []);
        assert_eq!(fs::read_dir(folder(&root)).unwrap().count(), 0);
    }
}
