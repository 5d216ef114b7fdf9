//! Which mounts share one client of the kernel, and with it its connections.
//!
//! Mounts of one server, version and transport share one `struct nfs_client` (kernel: fs/nfs/client.c `nfs_match_client`),
//! whatever their exports and security flavors. Each of them lists all connections of that client, so these count once a
//! client; operations belong to the mount.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::conf::scope::split_source;
use crate::decimal::decimal;
use crate::kernel::mountinfo;
use crate::kernel::mountstats::{self, Transport};
use crate::report::escape::escape;

/// What the two tables say of one mount.
#[derive(Debug, Clone, Copy)]
pub struct Mounted<'a> {
    pub stats: &'a mountstats::Mount,
    /// Device and address. None: made or gone between the reading of the two, or only one was kept.
    pub mount: Option<&'a mountinfo::Mount>,
}

/// Puts both tables together, in the order of `stats`.
pub fn join<'a>(stats: &'a [mountstats::Mount], table: &'a [mountinfo::Mount]) -> Vec<Mounted<'a>> {
    let mut places = Places::new(table);
    let find = |stats: &'a mountstats::Mount| Mounted {
        stats,
        mount: places.take(stats),
    };
    stats.iter().map(find).collect()
}

/// Finds the mounts of mountinfo for those of mountstats, which names no device. The kernel makes both from one list, so where
/// mounts of one source stand upon each other, the first of one is the first of the other.
pub struct Places<'a> {
    by_place: HashMap<Place<'a>, usize>,
    /// The first mount is the last.
    mounts: Vec<Vec<&'a mountinfo::Mount>>,
}

/// Mount point and source.
type Place<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

impl<'a> Places<'a> {
    pub fn new(table: &'a [mountinfo::Mount]) -> Self {
        let mut places = Places {
            by_place: HashMap::new(),
            mounts: Vec::new(),
        };
        for mount in table.iter().rev() {
            let place = (mount.mount_point.as_deref(), mount.source.as_deref());
            let at = *places.by_place.entry(place).or_insert(places.mounts.len());
            match places.mounts.get_mut(at) {
                Some(same) => same.push(mount),
                None => places.mounts.push(vec![mount]),
            }
        }
        places
    }

    /// The mount of the next entry in mountstats.
    pub fn take(&mut self, stats: &mountstats::Mount) -> Option<&'a mountinfo::Mount> {
        let place = (Some(&*stats.mount_point), Some(&*stats.source));
        let at = *self.by_place.get(&place)?;
        self.mounts.get_mut(at)?.pop()
    }
}

/// What makes two mounts share a client. Its text names it for people and machines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a> {
    /// `addr=`, and where there is none the server as it was mounted. The kernel finds out when two addresses are one server
    /// (NFSv4.1 trunking), and then shows the same `addr=` for both.
    address: &'a [u8],
    port: Option<&'a [u8]>,
    /// With the minor: "3", "4.2".
    version: &'a [u8],
    proto: &'a [u8],
    /// TLS on the transport. Not `sec=`: mounts with several flavors share their connections.
    xprtsec: Option<&'a [u8]>,
}

impl<'a> Key<'a> {
    pub fn of(mounted: &Mounted<'a>) -> Key<'a> {
        let Mounted { stats, mount } = *mounted;
        let server = || split_source(&stats.source).map_or(&*stats.source, |(server, _)| server);
        let of_type: &[u8] = if stats.is_type_nfs4 { b"4" } else { b"3" };
        Key {
            address: mount.and_then(|mount| mount.option("addr")).unwrap_or_else(server),
            port: stats.option("port"),
            version: stats.option("vers").unwrap_or(of_type),
            proto: stats.option("proto").unwrap_or(b"tcp"),
            xprtsec: stats.option("xprtsec"),
        }
    }

    /// Where its connections go.
    pub fn address(&self) -> &'a [u8] {
        self.address
    }

    pub fn proto(&self) -> &'a [u8] {
        self.proto
    }

    /// Of the server; NFS has 2049 where no option says another one.
    pub fn port(&self) -> u16 {
        const NFS: u16 = 2049;
        let asked = self.port.and_then(decimal).and_then(|port| u16::try_from(port).ok());
        asked.filter(|port| *port > 0).unwrap_or(NFS)
    }

    pub fn version(&self) -> &'a [u8] {
        self.version
    }
}

/// As mount options: `192.0.2.10,vers=4.2,proto=tcp`.
impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, version, proto) = (escape(self.address), escape(self.version), escape(self.proto));
        write!(f, "{address},vers={version},proto={proto}")?;
        for (name, value) in [("port", self.port), ("xprtsec", self.xprtsec)] {
            if let Some(value) = value {
                write!(f, ",{name}={}", escape(value))?;
            }
        }
        Ok(())
    }
}

/// The connections of each client. Its mounts list them at slightly different times: the list with the most sends is the
/// newest.
pub fn clients<'a>(mounts: &[Mounted<'a>]) -> BTreeMap<Key<'a>, &'a [Transport]> {
    let newness = |transports: &[Transport]| transports.iter().fold(0u64, |sum, t| sum.saturating_add(t.sends));
    let mut clients: BTreeMap<Key<'a>, &'a [Transport]> = BTreeMap::new();
    for mounted in mounts {
        let theirs = &*mounted.stats.transports;
        let known = clients.entry(Key::of(mounted)).or_insert(theirs);
        if (newness(theirs), theirs) > (newness(known), *known) {
            *known = theirs;
        }
    }
    clients
}
