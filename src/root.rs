//! Where "/" is.
//!
//! Every program takes `--root DIR`, and every function that reads or writes takes a [`Root`], so that a test, a support
//! case or an image build works on a copy and the same code runs on the real system. Paths of the kernel and of the
//! configuration are spelled here and nowhere else.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The directory that stands for "/".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Root(PathBuf::from("/"))
    }
}

impl Root {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Root(dir.into())
    }

    /// The real system? Only there do system calls about mounts (listmount(2), poll on mountinfo) speak of the same
    /// things as the files.
    pub fn is_live(&self) -> bool {
        self.0.as_os_str() == "/"
    }

    /// An absolute path as the configuration or the kernel spells it, below this root. Takes `..` as it comes: a root is
    /// a view for tests and images, not a jail.
    pub fn join(&self, absolute: &Path) -> PathBuf {
        if self.is_live() {
            return absolute.to_path_buf();
        }
        self.0.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    fn at(&self, absolute: &str) -> PathBuf {
        self.join(Path::new(absolute))
    }

    /// One NFS superblock a line (kernel: fs/nfs/client.c `nfs_volume_list_show`).
    pub fn nfsfs_volumes(&self) -> PathBuf {
        self.at("/proc/fs/nfsfs/volumes")
    }

    /// The servers that the kernel is a client of, in the network namespace of the calling thread (kernel: fs/nfs/client.c
    /// `nfs_server_list_show`).
    pub fn nfsfs_servers_of_thread(&self) -> PathBuf {
        self.at("/proc/thread-self/net/nfsfs/servers")
    }

    /// [`Root::mountinfo`] of the calling thread, which may have a namespace of its own.
    pub fn mountinfo_of_thread(&self) -> PathBuf {
        self.at("/proc/thread-self/mountinfo")
    }

    /// The mount table of this process (kernel: fs/proc_namespace.c `show_mountinfo`).
    pub fn mountinfo(&self) -> PathBuf {
        self.at("/proc/self/mountinfo")
    }

    /// What each mount of that table has done (kernel: fs/proc_namespace.c `show_vfsstat`, fs/nfs/super.c `nfs_show_stats`).
    pub fn mountstats(&self) -> PathBuf {
        self.at("/proc/self/mountstats")
    }

    /// MemTotal and MemAvailable (kernel: fs/proc/meminfo.c).
    pub fn meminfo(&self) -> PathBuf {
        self.at("/proc/meminfo")
    }

    /// Dirty pages and their limits (kernel: mm/vmstat.c).
    pub fn vmstat(&self) -> PathBuf {
        self.at("/proc/vmstat")
    }

    /// A sysctl of memory management, `name` as in "dirty_bytes" (kernel: mm/page-writeback.c).
    pub fn vm_sysctl(&self, name: &str) -> PathBuf {
        self.at("/proc/sys/vm").join(name)
    }

    /// Who waits for memory (kernel: kernel/sched/psi.c).
    pub fn memory_pressure(&self) -> PathBuf {
        self.at("/proc/pressure/memory")
    }

    /// Seconds since boot (kernel: fs/proc/uptime.c).
    pub fn uptime(&self) -> PathBuf {
        self.at("/proc/uptime")
    }

    /// The kernel's release, as uname(2) has it (kernel: kernel/utsname_sysctl.c).
    pub fn osrelease(&self) -> PathBuf {
        self.at("/proc/sys/kernel/osrelease")
    }

    /// One folder a process, see proc(5).
    pub fn proc(&self) -> PathBuf {
        self.at("/proc")
    }

    /// All backing devices (kernel: mm/backing-dev.c `bdi_class`).
    pub fn bdis(&self) -> PathBuf {
        self.at("/sys/class/bdi")
    }

    /// Who made this machine; cloud vendors name themselves here (kernel: drivers/firmware/dmi-id.c).
    pub fn dmi_sys_vendor(&self) -> PathBuf {
        self.at("/sys/class/dmi/id/sys_vendor")
    }

    /// The folder of one backing device, `name` as in "0:51" (kernel: mm/backing-dev.c `bdi_register_va`).
    pub fn bdi(&self, name: &str) -> PathBuf {
        self.bdis().join(name)
    }

    /// The name of this host (kernel: kernel/utsname_sysctl.c).
    pub fn hostname(&self) -> PathBuf {
        self.at("/proc/sys/kernel/hostname")
    }

    /// Routes of IPv4, but for those to this host itself (kernel: net/ipv4/fib_trie.c `fib_route_seq_show`).
    pub fn ipv4_routes(&self) -> PathBuf {
        self.at("/proc/net/route")
    }

    /// Routes of IPv6 (kernel: net/ipv6/ip6_fib.c `ipv6_route_native_seq_show`).
    pub fn ipv6_routes(&self) -> PathBuf {
        self.at("/proc/net/ipv6_route")
    }

    /// The folder of one network device (kernel: net/core/net-sysfs.c).
    pub fn network_device(&self, name: &str) -> PathBuf {
        self.at("/sys/class/net").join(name)
    }

    /// A network namespace with a name, see ip-netns(8).
    pub fn network_namespace(&self, name: &str) -> PathBuf {
        self.at("/run/netns").join(name)
    }

    /// A file that this process has open, under whatever name or none. Opening it again makes a new open file of it, as of a
    /// path. Of the running system always: descriptors are.
    pub fn descriptor(process: u32, fd: i32) -> PathBuf {
        PathBuf::from(format!("/proc/{process}/fd/{fd}"))
    }

    /// Drop-ins of the configuration, read after it in the order of their names.
    pub fn nfs_conf_drop_in(&self, name: &str) -> PathBuf {
        self.at(NFS_CONF_DROP_INS).join(name)
    }

    /// Where the file system table is, see fstab(5).
    pub fn fstab(&self) -> PathBuf {
        self.at(FSTAB)
    }

    /// Held by a running nfstuned.
    pub fn nfstuned_lock(&self) -> PathBuf {
        self.at("/run/nfstuned/lock")
    }

    /// What nfstuned or a benchmark has changed: "state", "bench".
    pub fn nfstuned_ledger(&self, name: &str) -> PathBuf {
        self.at("/run/nfstuned").join(name)
    }

    /// What a running nfstuned is asked to do.
    pub fn nfstuned_requests(&self) -> PathBuf {
        self.at("/run/nfstuned/requests")
    }

    /// Written by container managers.
    pub fn container(&self) -> PathBuf {
        self.at("/run/systemd/container")
    }

    /// The user namespace of this process (kernel: kernel/user_namespace.c).
    pub fn uid_map(&self) -> PathBuf {
        self.at("/proc/self/uid_map")
    }

    /// What nfstuned thinks, for nfstune.
    pub fn nfstuned_status(&self) -> PathBuf {
        self.at("/run/nfstuned/status.json")
    }

    /// What nfstuned has learned about servers.
    pub fn nfstuned_learned(&self) -> PathBuf {
        self.at("/var/lib/nfstuned/learned.json")
    }

    /// Packets that were dropped before any protocol saw them (kernel: net/core/net-procfs.c).
    pub fn softnet_stat(&self) -> PathBuf {
        self.at("/proc/net/softnet_stat")
    }

    /// Time of CPUs (kernel: fs/proc/stat.c).
    pub fn stat(&self) -> PathBuf {
        self.at("/proc/stat")
    }

    /// Connections of RPC clients (kernel: net/sunrpc/sysfs.c).
    pub fn sunrpc_switches(&self) -> PathBuf {
        self.at("/sys/kernel/sunrpc/xprt-switches")
    }

    /// A parameter of the NFS client's module.
    pub fn nfs_parameter(&self, name: &str) -> PathBuf {
        self.at("/sys/module/nfs/parameters").join(name)
    }

    /// Advice that holds now.
    pub fn nfstuned_current_advice(&self) -> PathBuf {
        self.at("/run/nfstuned/advice.json")
    }

    /// Advice that was given, muted, and what came of it.
    pub fn nfstuned_advice(&self) -> PathBuf {
        self.at("/var/lib/nfstuned/advice.json")
    }

    /// What nfstuned has seen of clients.
    pub fn nfstuned_history(&self) -> PathBuf {
        self.at("/var/lib/nfstuned/history.json")
    }

    /// Does this device pass packets on, by "ipv4" and "ipv6"? (kernel: net/ipv4/devinet.c, net/ipv6/addrconf.c)
    pub fn forwarding(&self, device: &str) -> [PathBuf; 2] {
        ["ipv4", "ipv6"].map(|family| {
            let conf = self.at("/proc/sys/net").join(family).join("conf");
            conf.join(device).join("forwarding")
        })
    }

    /// Counters of TCP, as lines of names and of numbers (kernel: net/ipv4/proc.c).
    pub fn snmp(&self) -> PathBuf {
        self.at("/proc/net/snmp")
    }

    /// More of them, of Linux alone.
    pub fn netstat(&self) -> PathBuf {
        self.at("/proc/net/netstat")
    }

    /// Another one after each boot (kernel: drivers/char/random.c).
    pub fn boot_id(&self) -> PathBuf {
        self.at("/proc/sys/kernel/random/boot_id")
    }

    /// How `path` reads to an admin: without the root.
    pub fn shown<'a>(&self, path: &'a Path) -> std::borrow::Cow<'a, Path> {
        match path.strip_prefix(&self.0) {
            Ok(inside) if !self.is_live() => Path::new("/").join(inside).into(),
            _ => path.into(),
        }
    }
}

/// The main configuration file of all NFS programs, nfs.conf(5).
pub const NFS_CONF: &str = "/etc/nfs.conf";
/// Where its drop-ins are.
pub const NFS_CONF_DROP_INS: &str = "/etc/nfs.conf.d";
/// Folders that hold nothing a measurement needs: in a mount namespace of its own one of them is the mount point.
pub const SPARE_FOLDERS: [&str; 4] = ["/mnt", "/media", "/srv", "/opt"];
/// nfsmount.conf(5).
pub const NFSMOUNT_CONF: &str = "/etc/nfsmount.conf";
/// fstab(5).
pub const FSTAB: &str = "/etc/fstab";

/// Where udev looks for rule files, the strongest first (systemd: src/udev/udev-rules.c `RULES_DIRS`).
pub const UDEV_RULES: [&str; 5] = [
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
];
/// Where sysctls are files (kernel: fs/proc/proc_sysctl.c).
pub const PROC_SYS: &str = "/proc/sys/";
/// Where systemd-sysctl looks for its files, the strongest first, see sysctl.d(5).
pub const SYSCTL_D: [&str; 5] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];
/// Read by procps' sysctl(8) after all of these; where there is a link to it among them it is read there.
pub const SYSCTL_CONF: &str = "/etc/sysctl.conf";
/// The arguments that the kernel was started with (kernel: fs/proc/cmdline.c).
pub const CMDLINE: &str = "/proc/cmdline";
/// The profiles of TuneD in force, parted by blanks, and where profiles are, the strongest first, see tuned(8).
pub const TUNED_ACTIVE: &str = "/etc/tuned/active_profile";
pub const TUNED_PROFILES: [&str; 4] = [
    "/etc/tuned",
    "/etc/tuned/profiles",
    "/usr/lib/tuned",
    "/usr/lib/tuned/profiles",
];
/// Where udev looks for a program that a rule names without a path.
pub const UDEV_PROGRAMS: [&str; 2] = ["/usr/lib/udev", "/lib/udev"];
/// Where distributions and admins put a helper.
pub const HELPER_FOLDERS: [&str; 11] = [
    "/usr/libexec",
    "/usr/libexec/nfs-utils",
    "/usr/lib64/nfs-utils",
    "/usr/lib/nfs-utils",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/udev",
    "/usr/sbin",
    "/usr/bin",
    "/usr/local/libexec",
    "/usr/local/sbin",
];

/// The vendor's file that is read before `file`: below /usr/etc, for files below /etc only.
pub fn usr_twin(file: &Path) -> Option<PathBuf> {
    let bytes = file.as_os_str().as_bytes();
    bytes.starts_with(b"/etc/").then(|| {
        let mut twin = OsString::from("/usr");
        twin.push(file);
        PathBuf::from(twin)
    })
}
