//! The answer as configuration: a file of /etc/nfs.conf.d with one sub-section.

use crate::conf::scope::Scope;

/// A file for each mount point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropIn {
    /// Of the file, after those that admins number up to 89.
    pub name: String,
    pub text: String,
}

impl DropIn {
    /// Of a value in KiB for a mount point. None: it has characters that a header cannot have, or means more than itself.
    pub fn new(place: &[u8], kib: u64) -> Option<DropIn> {
        let text = std::str::from_utf8(place).ok()?;
        let is_plain = text
            .chars()
            .all(|c| !c.is_control() && !matches!(c, '"' | ']' | '\\' | '$'));
        let is_itself = matches!(Scope::parse(place), Some(Scope::MountPoint(_)));
        (is_plain && is_itself).then(|| DropIn {
            name: format!("90-nfstune-bench-{}.conf", slug(place)),
            text: format!("[nfsrahead \"{text}\"]\ndefault = {kib}\n"),
        })
    }
}

/// Another one for every mount point.
fn slug(place: &[u8]) -> String {
    let mut slug = String::new();
    for b in place.strip_prefix(b"/").unwrap_or(place) {
        match b {
            b'/' => slug.push('-'),
            b if b.is_ascii_alphanumeric() || *b == b'.' => slug.push(char::from(*b)),
            b => slug.push_str(&format!("_{b:02x}")),
        }
    }
    if slug.len() > NAME_MAX {
        // So long a name is told from others by all of its bytes.
        let hash = slug.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, b| {
            (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        slug.truncate(NAME_MAX);
        slug.push_str(&format!("-{hash:016x}"));
    }
    slug
}

/// Names of files end at 255 bytes.
const NAME_MAX: usize = 150;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::policy::Policy;
    use crate::conf::{self, Keep};
    use crate::kernel::mountinfo::{parse_line, Version};
    use crate::root::{Root, NFS_CONF};
    use proptest::prelude::*;

    #[test]
    fn a_name_for_each_mount_point() {
        let name = |place: &str| DropIn::new(place.as_bytes(), 4).unwrap().name;
        assert_eq!(name("/srv/media"), "90-nfstune-bench-srv-media.conf");
        assert_ne!(name("/a/b"), name("/a-b"));
        assert_eq!(name("/"), "90-nfstune-bench-.conf");
        let (a, b) = (format!("/{}a", "x".repeat(300)), format!("/{}b", "x".repeat(300)));
        assert_ne!(name(&a), name(&b));
        assert!(name(&a).len() < 255);
    }

    #[test]
    fn what_a_header_cannot_say_is_not_said() {
        for place in ["/a\"b", "/a]b", "/a\nb", "/a*", "/a?b", "relative", "/a$b", ""] {
            assert_eq!(DropIn::new(place.as_bytes(), 4), None, "{place:?}");
        }
        assert_eq!(DropIn::new(b"/\xff", 4), None);
    }

    proptest! {
        #[test]
        fn the_programs_read_it_as_it_is_meant(place in "/[ -~äß]{0,30}", kib in 1u64..16384) {
            let kib = 4 * kib;
            if let Some(drop_in) = DropIn::new(place.as_bytes(), kib) {
                let dir = tempfile::tempdir().unwrap();
                let root = Root::new(dir.path());
                let path = root.nfs_conf_drop_in(&drop_in.name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, &drop_in.text).unwrap();
                let conf = conf::load(&root, std::path::Path::new(NFS_CONF), Keep::All);
                let policy = Policy::new(&conf, b"", &|_| None);
                prop_assert!(policy.problems.is_empty(), "{:?}", policy.problems);
                let escaped: String = place.bytes().map(|b| format!("\\{b:03o}")).collect();
                let line = format!("1 2 0:5 / {escaped} rw - nfs4 h:/x rw,vers=4.2");
                let mount = parse_line(line.as_bytes()).unwrap();
                let (_, wish) = policy.wish_for(&mount, Version::V4).unwrap();
                prop_assert_eq!(wish.value.to_string(), kib.to_string());
            }
        }
    }
}
