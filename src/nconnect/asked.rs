//! What mounts ask for, and what their client has: fstab says 8, the group has 1, because another mount came first.

use std::fmt::Write as _;

/// One mount of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Escaped, as everything that comes from outside.
    pub mount_point: String,
    pub source: String,
    /// `nconnect=` on its line in fstab, or for it in nfsmount.conf. None: nothing asks for a number.
    pub asked: Option<u64>,
    pub has_line: bool,
    /// "sys", "krb5p".
    pub flavor: String,
}

/// A client and its mounts, the oldest first: that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// `192.0.2.10,vers=4.1,proto=tcp`
    pub client: String,
    /// As mounted.
    pub server: String,
    pub version: String,
    pub proto: String,
    /// Counted, not asked for.
    pub connections: u64,
    pub places: Vec<Place>,
}

/// The most the kernel takes (include/linux/nfs_fs_sb.h, fs/nfs/fs_context.c `NFS_MAX_CONNECTIONS`).
pub const MOST: u64 = 16;

impl Group {
    /// Mounts whose wish is not what they have.
    pub fn unheard(&self) -> Vec<&Place> {
        let is_unheard = |place: &&Place| place.asked.is_some_and(|asked| asked != self.connections);
        self.places.iter().filter(is_unheard).collect()
    }

    /// One sentence: who decided, and who is not heard. None: everybody has what it asks for.
    pub fn tell(&self) -> Option<String> {
        let unheard = self.unheard();
        let first = self.places.first()?;
        if unheard.is_empty() {
            return None;
        }
        let mut text = format!("{} has {}", self.server, connections(self.connections));
        for place in &unheard {
            let asked = place.asked.unwrap_or_default();
            // Writing to a string does not fail.
            let _ = write!(text, ", {} asks for {asked}", place.mount_point);
        }
        let _ = write!(text, ": {} was mounted first", first.mount_point);
        let _ = match first.asked {
            Some(asked) if asked == self.connections => write!(text, " with {asked}"),
            _ if first.has_line && self.connections == 1 => write!(text, " without the option"),
            _ => Ok(()),
        };
        text.push_str(", and decides for all mounts of this server");
        Some(text)
    }

    /// The names and addresses that it was mounted by.
    pub fn servers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for place in &self.places {
            let name = place.source.split_once(":/").map_or("", |(server, _)| server);
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// What Kerberos has to do with it. Strong: a privacy or integrity flavor.
    pub fn kerberos(&self) -> Option<Kerberos> {
        let flavors = || self.places.iter().map(|place| place.flavor.as_str());
        let strong = flavors().find(|flavor| matches!(*flavor, "krb5p" | "krb5i"));
        let flavor = strong.or_else(|| flavors().find(|flavor| *flavor == "krb5"))?;
        Some(Kerberos {
            flavor: flavor.to_owned(),
            is_strong: strong.is_some(),
        })
    }
}

/// A flavor of Kerberos among the mounts of a client: each context has one window of 128 numbers, requests that several connections
/// deliver out of order fall out of it and are sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kerberos {
    pub flavor: String,
    pub is_strong: bool,
}

pub fn connections(n: u64) -> String {
    match n {
        1 => "1 connection".to_owned(),
        n => format!("{n} connections"),
    }
}

/// What is wrong with asking for this; of what is asked, without a look at the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Senseless {
    /// One socket is all there is.
    Udp,
    /// The mount fails.
    TooMany,
    /// The mount fails.
    Zero,
    /// Allowed, and vendors advise against it.
    Version40,
    /// `max_connect` is about other addresses of the same server.
    MaxConnect,
    /// The mount fails: the kernel does not know the option.
    OldKernel,
}

impl Senseless {
    pub fn name(self) -> &'static str {
        match self {
            Senseless::Udp => "nconnect-udp",
            Senseless::TooMany => "nconnect-above-16",
            Senseless::Zero => "nconnect-zero",
            Senseless::Version40 => "nconnect-nfs40",
            Senseless::MaxConnect => "max-connect",
            Senseless::OldKernel => "nconnect-old-kernel",
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Senseless::Udp => "nconnect does nothing over UDP, which has one socket",
            Senseless::TooMany => "nconnect above 16 fails the mount on a stock kernel",
            Senseless::Zero => "nconnect=0 fails the mount; 1 is the least",
            Senseless::Version40 => "nconnect with NFSv4.0 is allowed, and vendors (ONTAP) advise against it",
            Senseless::MaxConnect => {
                "max_connect allows connections to other addresses of one server; for one address it does nothing, nconnect does"
            }
            Senseless::OldKernel => {
                "this kernel is older than 5.3 and may not know nconnect (RHEL has it since 8.3); count the connections after the mount"
            }
        }
    }
}

/// `options` parted by commas; `kernel` as (major, minor), if it is known.
pub fn senseless(options: &str, kernel: Option<(u64, u64)>) -> Vec<Senseless> {
    let value = |name: &str| {
        options
            .split(',')
            .rev()
            .find_map(|option| option.trim().strip_prefix(name)?.strip_prefix('='))
    };
    let has = |name: &str| options.split(',').any(|option| option.trim() == name);
    let mut found = Vec::new();
    let is_40 = matches!(value("vers").or(value("nfsvers")), Some("4.0")) || value("minorversion") == Some("0");
    let is_udp = value("proto").is_some_and(|proto| proto.starts_with("udp")) || has("udp");
    if let Some(asked) = value("nconnect") {
        match asked.parse::<u64>() {
            Ok(0) => found.push(Senseless::Zero),
            Ok(n) if n > MOST => found.push(Senseless::TooMany),
            Ok(n) if n > 1 && is_udp => found.push(Senseless::Udp),
            Ok(n) if n > 1 && is_40 => found.push(Senseless::Version40),
            _ => {}
        }
        if kernel.is_some_and(|kernel| kernel < (5, 3)) {
            found.push(Senseless::OldKernel);
        }
    } else if value("max_connect").is_some() {
        found.push(Senseless::MaxConnect);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(at: &str, asked: Option<u64>, flavor: &str) -> Place {
        Place {
            mount_point: at.to_owned(),
            source: format!("192.0.2.10:{at}"),
            asked,
            has_line: true,
            flavor: flavor.to_owned(),
        }
    }

    fn group(connections: u64, places: Vec<Place>) -> Group {
        Group {
            client: "192.0.2.10,vers=4.1,proto=tcp".to_owned(),
            server: "192.0.2.10".to_owned(),
            version: "4.1".to_owned(),
            proto: "tcp".to_owned(),
            connections,
            places,
        }
    }

    #[test]
    fn the_first_mount_decides() {
        let unheard = group(
            1,
            vec![
                place("/a", None, "sys"),
                place("/b", Some(8), "sys"),
                place("/c", Some(16), "sys"),
            ],
        );
        assert_eq!(
            unheard.tell().unwrap(),
            "192.0.2.10 has 1 connection, /b asks for 8, /c asks for 16: /a was mounted first without the option, and decides for all mounts of this server"
        );
        assert_eq!(group(4, vec![place("/d", Some(4), "sys")]).tell(), None);
    }

    /// Field case 28.
    #[test]
    fn asks_that_make_no_sense() {
        for (options, kernel, expected) in [
            ("vers=3,proto=udp,nconnect=4", (5, 10), Some(Senseless::Udp)),
            ("vers=4.1,proto=tcp,nconnect=32", (6, 8), Some(Senseless::TooMany)),
            ("vers=4.1,proto=tcp,nconnect=8", (4, 18), Some(Senseless::OldKernel)),
            ("vers=4.1,proto=tcp,nconnect=0", (6, 8), Some(Senseless::Zero)),
            ("vers=4.0,proto=tcp,nconnect=4", (5, 15), Some(Senseless::Version40)),
            ("vers=4.1,proto=tcp,max_connect=8", (5, 15), Some(Senseless::MaxConnect)),
            ("vers=4.1,proto=tcp,nconnect=8", (5, 15), None),
            ("vers=3,udp,nconnect=1", (5, 15), None),
        ] {
            assert_eq!(senseless(options, Some(kernel)), Vec::from_iter(expected), "{options}");
        }
    }

    #[test]
    fn kerberos_is_told_by_its_strongest_flavor() {
        let of =
            |flavors: &[&str]| group(4, flavors.iter().map(|flavor| place("/a", None, flavor)).collect()).kerberos();
        assert_eq!(of(&["sys"]), None);
        for (flavors, strong) in [
            (&["sys", "krb5"][..], Some(false)),
            (&["krb5", "krb5i"], Some(true)),
            (&["krb5p"], Some(true)),
        ] {
            assert_eq!(of(flavors).map(|kerberos| kerberos.is_strong), strong, "{flavors:?}");
        }
    }
}
