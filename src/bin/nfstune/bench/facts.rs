//! What a reader of a result has to know of the host, and what of it is personal.

use std::net::IpAddr;

use nfsrahead::bench::amount::shown_bytes;
use nfsrahead::conf::scope::split_source;
use nfsrahead::kernel::mountinfo::Mount;
use nfsrahead::kernel::route::{self, Link};
use nfsrahead::kernel::vm;
use nfsrahead::report::escape::escape;
use nfsrahead::root::Root;
use serde_json::{json, Value};

/// Everything is escaped already. None: unknown, not asked, or left out for privacy.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub host: Option<String>,
    pub kernel: Option<String>,
    pub memory_bytes: Option<u64>,
    pub source: Option<String>,
    pub mount_point: Option<String>,
    pub nfs_version: Option<String>,
    pub options: Option<String>,
    pub rsize_bytes: Option<u64>,
    pub wsize_bytes: Option<u64>,
    pub connections: Option<u64>,
    pub link: Option<Link>,
}

/// What stands for a name that was left out.
const SERVER: &str = "SERVER:/EXPORT";
const MOUNT: &str = "MOUNT";
/// Options of a mount that name somebody.
const PERSONAL: [&str; 3] = ["addr", "clientaddr", "mountaddr"];

impl Facts {
    /// Of the host, and the way to `server` where that is an address.
    pub fn of_host(root: &Root, server: Option<IpAddr>) -> Facts {
        let line = |path| {
            let text = nfsrahead::conf::regular::read_regular(path, 4096).ok()?;
            Some(escape(text.trim_ascii()))
        };
        Facts {
            host: line(&root.hostname()),
            kernel: line(&root.osrelease()),
            memory_bytes: vm::memory(root)
                .ok()
                .flatten()
                .map(|memory| memory.total_kib.saturating_mul(1024)),
            link: server.and_then(|server| route::link(root, server)),
            ..Facts::default()
        }
    }

    pub fn of_mount(root: &Root, mount: &Mount) -> Facts {
        let text = |bytes: &[u8]| escape(bytes);
        let address = mount.option("addr").and_then(address);
        Facts {
            source: mount.source.as_deref().map(text),
            mount_point: mount.mount_point.as_deref().map(text),
            nfs_version: Some(text(&mount.shown_version())),
            options: Some(text(&mount.super_options)),
            rsize_bytes: mount.rsize_kib().map(|kib| kib.saturating_mul(1024)),
            wsize_bytes: mount.wsize_bytes(),
            connections: Some(mount.connections()),
            ..Facts::of_host(root, address)
        }
    }

    /// Without host names, addresses and paths.
    pub fn anonymous(mut self) -> Facts {
        self.host = None;
        self.source = self.source.map(|_| SERVER.to_owned());
        self.mount_point = self.mount_point.map(|_| MOUNT.to_owned());
        self.options = self.options.map(|options| without_names(&options));
        self.link = self.link.map(|link| Link {
            device: String::new(),
            ..link
        });
        self
    }

    pub fn place(&self) -> &str {
        self.mount_point.as_deref().or(self.source.as_deref()).unwrap_or("-")
    }

    /// Name and value, for people.
    pub fn rows(&self) -> Vec<[String; 2]> {
        let link = self.link.as_ref().map(|link| {
            let speed = match link.speed_bits_per_s {
                Some(bits) => format!("{} Mbit/s", bits / 1_000_000),
                None => "speed unknown".to_owned(),
            };
            let mtu = link.mtu_bytes.map_or(String::new(), |mtu| format!(", MTU {mtu}"));
            format!("{} {speed}{mtu}", link.device).trim_start().to_owned()
        });
        let number = |number: Option<u64>| number.map(|n| n.to_string());
        let rows = [
            ("host", self.host.clone()),
            ("kernel", self.kernel.clone()),
            ("memory", self.memory_bytes.map(shown_bytes)),
            ("mounted from", self.source.clone()),
            ("mount point", self.mount_point.clone()),
            ("NFS version", self.nfs_version.clone()),
            ("rsize", self.rsize_bytes.map(shown_bytes)),
            ("wsize", self.wsize_bytes.map(shown_bytes)),
            ("connections", number(self.connections)),
            ("link", link),
            ("options", self.options.clone()),
        ];
        let known = rows
            .into_iter()
            .filter_map(|(name, value)| Some([name.to_owned(), value?]));
        known.collect()
    }

    pub fn json(&self) -> Value {
        let link = self.link.as_ref().map(|link| {
            json!({
                "device": Some(&link.device).filter(|device| !device.is_empty()),
                "bits_per_second": link.speed_bits_per_s,
                "mtu_bytes": link.mtu_bytes,
            })
        });
        json!({
            "host": self.host,
            "kernel": self.kernel,
            "memory_bytes": self.memory_bytes,
            "source": self.source,
            "mount_point": self.mount_point,
            "nfs_version": self.nfs_version,
            "options": self.options,
            "rsize_bytes": self.rsize_bytes,
            "wsize_bytes": self.wsize_bytes,
            "connections": self.connections,
            "link": link,
        })
    }
}

/// Options as the kernel shows them; a value has no comma.
fn without_names(options: &str) -> String {
    let is_personal = |option: &&str| {
        let name = option.split('=').next().unwrap_or_default();
        PERSONAL.contains(&name)
    };
    let kept: Vec<&str> = options.split(',').filter(|option| !is_personal(option)).collect();
    kept.join(",")
}

/// Of a mount option, or of the server in `server:/export`.
pub fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    text.parse().ok()
}

/// The server of `server:/export`.
pub fn server(source: &str) -> Option<&str> {
    split_source(source.as_bytes()).and_then(|(server, _)| std::str::from_utf8(server).ok())
}
