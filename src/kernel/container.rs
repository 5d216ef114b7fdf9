//! Is this a container? Its /proc/sys and /sys are those of its host, writable or not.

use crate::kernel::read_small;
use crate::root::Root;

/// A container manager says so (systemd: src/basic/virt.c `detect_container`), or the user namespace is not the first one
/// (kernel: kernel/user_namespace.c `uid_m_show`).
pub fn is_container(root: &Root) -> bool {
    if root.container().exists() {
        return true;
    }
    // Where there is no map there are no user namespaces.
    read_small(&root.uid_map(), 4096).is_ok_and(|map| !is_whole(&map))
}

fn is_whole(map: &[u8]) -> bool {
    let fields: Vec<&[u8]> = map
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty())
        .collect();
    fields == [&b"0"[..], b"0", b"4294967295"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_its_own_is_a_container() {
        assert!(is_whole(b"         0          0 4294967295\n"));
        for map in [
            &b"         0     100000      65536\n"[..],
            b"",
            b"0 0 4294967295\n1 1 1\n",
            b"0 1000 1\n",
        ] {
            assert!(!is_whole(map));
        }
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert!(!is_container(&root));
        std::fs::create_dir_all(root.container().parent().unwrap()).unwrap();
        std::fs::write(root.container(), "docker\n").unwrap();
        assert!(is_container(&root));
    }
}
