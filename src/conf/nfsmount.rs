//! nfsmount.conf(5): the number of connections that mounts ask for without saying so themselves.
//!
//! The same files, folders and grammar as nfs.conf, with sections for a mount point, for a server, and for all.

use std::path::Path;

use super::{load, Assignment, Conf, Keep};
use crate::conf::fstab::trim_slashes;
use crate::decimal::decimal;
use crate::root::{Root, NFSMOUNT_CONF};

const MOUNT_POINT: &[u8] = b"mountpoint";
const SERVER: &[u8] = b"server";
const GLOBAL: &[u8] = b"nfsmount_global_options";

/// What the file says about `nconnect`.
#[derive(Debug, Default)]
pub struct Wishes(Vec<Wish>);

#[derive(Debug)]
struct Wish {
    section: Vec<u8>,
    arg: Option<Vec<u8>>,
    connections: u64,
}

/// What cannot be read asks for nothing.
pub fn wishes(root: &Root) -> Wishes {
    let sections = [MOUNT_POINT, SERVER, GLOBAL];
    of(&load(root, Path::new(NFSMOUNT_CONF), Keep::Sections(&sections)))
}

fn of(conf: &Conf) -> Wishes {
    let wish = |assignment: &Assignment| {
        // Options are written in any case.
        assignment.tag.eq_ignore_ascii_case(b"nconnect").then_some(())?;
        Some(Wish {
            section: assignment.section.clone(),
            arg: assignment.arg.clone(),
            connections: decimal(assignment.value.trim_ascii())?,
        })
    };
    Wishes(conf.assignments.iter().filter_map(wish).collect())
}

impl Wishes {
    /// For a mount whose own options do not say: its mount point, then its server, then all; names in any case, whole and exact.
    pub fn of(&self, mount_point: &[u8], server: &[u8]) -> Option<u64> {
        let find = |section: &[u8], is_meant: &dyn Fn(&[u8]) -> bool| {
            // A later line of a section replaces an earlier one.
            let mut wishes = self.0.iter().rev().filter(|wish| wish.section == section);
            wishes
                .find(|wish| is_meant(wish.arg.as_deref().unwrap_or_default()))
                .map(|wish| wish.connections)
        };
        let is_here = |arg: &[u8]| trim_slashes(arg).eq_ignore_ascii_case(trim_slashes(mount_point));
        find(MOUNT_POINT, &is_here)
            .or_else(|| find(SERVER, &|arg| arg.eq_ignore_ascii_case(server)))
            .or_else(|| find(GLOBAL, &|arg| arg.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_point_then_server_then_all() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        std::fs::create_dir_all(dir.path().join("etc/nfsmount.conf.d")).unwrap();
        std::fs::write(
            dir.path().join("etc/nfsmount.conf"),
            "[ NFSMount_Global_Options ]\nNconnect=2\nProto=tcp\n[ Server \"NAS1\" ]\nnconnect=4\n\
             [ MountPoint \"/Data/\" ]\nnconnect=8\n[ MountPoint \"/bad\" ]\nnconnect=many\n",
        )
        .unwrap();
        std::fs::write(
            dir.path().join("etc/nfsmount.conf.d/nas2.conf"),
            "[ Server \"nas2\" ]\nNCONNECT=6\n",
        )
        .unwrap();
        let wishes = wishes(&root);
        for (mount_point, server, expected) in [
            ("/data", "nas1", 8),
            ("/data/x", "nas1", 4),
            ("/srv", "nas2", 6),
            ("/srv", "nas20", 2),
            ("/bad", "nas3", 2),
        ] {
            let found = wishes.of(mount_point.as_bytes(), server.as_bytes());
            assert_eq!(found, Some(expected), "{mount_point} {server}");
        }
        assert_eq!(Wishes::default().of(b"/data", b"nas1"), None);
    }
}
