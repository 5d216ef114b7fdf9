//! The namespace that is measured in: many mounts, and what is made up of /etc, /sys and /proc.

use std::ffi::CString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

pub const KERNEL_DEFAULT: &str = "128\n";

/// Runs its arguments and says their peak memory in KiB; small, for its own counts too.
const STARTER: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct rusage usage;
    pid_t pid = vfork();
    if (pid == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (wait4(pid, NULL, 0, &usage) != pid)
        return 1;
    dprintf(2, "%ld\n", usage.ru_maxrss);
    return argc < 2;
}
"#;

#[derive(Clone, Copy)]
pub struct Dev {
    minor: u32,
}

/// What the mounts in a made-up table are, but for the one that is looked for.
#[derive(Clone, Copy, PartialEq)]
pub enum Others {
    Tmpfs,
    Nfs,
}

/// A folder that only this namespace sees, with everything below it.
pub struct Place {
    folder: PathBuf,
    mounts: usize,
    newest: Dev,
}

impl Dev {
    /// The device that is looked for in a made-up table.
    pub const NFS: Dev = Dev { minor: 900_000 };
}

impl std::fmt::Display for Dev {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "0:{}", self.minor)
    }
}

impl Place {
    pub fn new(folder: &Path) -> Result<Place> {
        tmpfs(folder)?;
        let place = Place {
            folder: folder.to_owned(),
            mounts: 0,
            newest: Dev::NFS,
        };
        // Before /etc is covered.
        place.compile("floor", "int main(void) { return 0; }")?;
        place.compile("starter", STARTER)?;
        for folder in [
            "m",
            "etc",
            "proc",
            "root/sys/class/bdi",
            "root/proc/self",
            "root/proc/fs/nfsfs",
        ] {
            fs::create_dir_all(place.at(folder))?;
        }
        // The loader's cache is what makes nfs-utils' start as fast as it is.
        fs::copy("/etc/ld.so.cache", place.at("etc/ld.so.cache"))?;
        fs::write(
            place.at("etc/fstab"),
            "UUID=0000-0000 / ext4 defaults 0 1\nfiler1:/export/media /srv/media nfs4 rw,hard 0 0\n",
        )?;
        symlink(place.at("etc"), place.at("root/etc"))?;
        bind(Path::new("/proc"), &place.at("proc"))?;
        bind(&place.at("etc"), Path::new("/etc"))?;
        tmpfs(Path::new("/sys/class/bdi"))?;
        tmpfs(Path::new("/proc/fs"))?;
        fs::create_dir("/proc/fs/nfsfs")?;
        Ok(place)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn compile(&self, name: &str, source: &str) -> Result<()> {
        let c = self.at(name).with_extension("c");
        fs::write(&c, source)?;
        let mut compiler = Command::new("cc");
        let status = compiler
            .args(["-O2", "-static", "-o"])
            .args([&self.at(name), &c])
            .status()?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("cc -static {}: {status}", crate::shown(&c)).into()),
        }
    }

    pub fn floor(&self) -> PathBuf {
        self.at("floor")
    }

    pub fn starter(&self) -> String {
        self.at("starter").display().to_string()
    }

    /// The root directory for `--root`.
    pub fn root(&self) -> String {
        self.at("root").display().to_string()
    }

    pub fn configure(&self, nfs_conf: &str) -> Result<()> {
        Ok(fs::write("/etc/nfs.conf", nfs_conf)?)
    }

    /// More tmpfs mounts, until there are so many. Gives the device of the newest.
    pub fn mount_up_to(&mut self, mounts: usize) -> Result<Dev> {
        while self.mounts < mounts {
            let at = self.at(&format!("m/{}", self.mounts));
            fs::create_dir(&at)?;
            tmpfs(&at)?;
            self.mounts += 1;
            if self.mounts == mounts {
                // A plain tmpfs, which no server can hang.
                let dev = fs::metadata(&at)?.dev();
                self.newest = Dev {
                    minor: libc::minor(dev),
                };
            }
        }
        Ok(self.newest)
    }

    /// The attribute of a made-up backing device.
    pub fn read_ahead(&self, dev: Dev) -> Result<PathBuf> {
        attribute(Path::new("/sys/class/bdi"), dev)
    }

    pub fn read_ahead_below_root(&self, dev: Dev) -> Result<PathBuf> {
        attribute(&self.at("root/sys/class/bdi"), dev)
    }

    /// /proc/fs/nfsfs/volumes, here and below the other root.
    pub fn list_superblocks(&self, devs: &[Dev]) -> Result<()> {
        let mut text = "NV SERVER   PORT DEV          FSID                              FSC\n".to_owned();
        for dev in devs {
            writeln!(
                text,
                "v4 7f000001  801 {:<12} b:0                               no ",
                dev.to_string()
            )?;
        }
        fs::write(self.at("root/proc/fs/nfsfs/volumes"), &text)?;
        Ok(fs::write("/proc/fs/nfsfs/volumes", text)?)
    }

    /// Covers /proc. Of it, all but the mount table and the list of superblocks is still the kernel's, through links: the
    /// tools that count need it.
    pub fn fake_proc(&self) -> Result<()> {
        let kernels = self.at("proc");
        tmpfs(Path::new("/proc"))?;
        fs::create_dir_all("/proc/fs/nfsfs")?;
        fs::create_dir("/proc/self")?;
        links(&kernels, Path::new("/proc"), &["self", "fs"])?;
        links(
            &kernels.join("self"),
            Path::new("/proc/self"),
            &["mountinfo", "mountstats"],
        )
    }

    /// A mount table of N lines, the last one the mount that is looked for. Gives the devices of all that are NFS.
    pub fn write_table(&self, mounts: usize, others: Others) -> Result<Vec<Dev>> {
        let mut text = String::new();
        let mut nfs = Vec::new();
        for i in 1..mounts {
            let minor = 100 + u32::try_from(i)?;
            match others {
                Others::Tmpfs => writeln!(
                    text,
                    "{i} 1 0:{minor} / {}/{i} rw,relatime - tmpfs none rw",
                    self.at("m").display()
                )?,
                Others::Nfs => {
                    let dev = Dev { minor };
                    nfs_line(&mut text, i, dev, &format!("/srv/other/{i}"))?;
                    nfs.push(dev);
                }
            }
        }
        nfs_line(&mut text, mounts, Dev::NFS, "/srv/media/films")?;
        nfs.push(Dev::NFS);
        fs::write(self.at("root/proc/self/mountinfo"), &text)?;
        fs::write("/proc/self/mountinfo", text)?;
        Ok(nfs)
    }

    /// The file that `write_mountstats` writes, below the root.
    pub fn mountstats(&self) -> PathBuf {
        self.at("root/proc/self/mountstats")
    }

    /// What so many mounts have done, with the table that goes with it, here and below the other root. Gives its size in bytes.
    pub fn write_mountstats(&self, mounts: usize, connections: usize) -> Result<usize> {
        self.write_table(mounts, Others::Nfs)?;
        let mut text = String::new();
        for i in 1..=mounts {
            let at = match i == mounts {
                true => "/srv/media/films".to_owned(),
                false => format!("/srv/other/{i}"),
            };
            stats(&mut text, &at, i, connections)?;
        }
        fs::write(self.mountstats(), &text)?;
        fs::write("/proc/self/mountstats", &text)?;
        Ok(text.len())
    }
}

/// As long as real ones are.
fn nfs_line(text: &mut String, id: usize, dev: Dev, at: &str) -> std::fmt::Result {
    writeln!(
        text,
        "{id} 1 {dev} / {at} rw,relatime shared:{id} - nfs4 filer1:/export{at} rw,vers=4.2,rsize=1048576,wsize=1048576,\
         namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=192.0.2.2,local_lock=none,addr=192.0.2.10"
    )
}

/// As long as a real one of Linux 6.12 with NFSv4.2.
fn stats(text: &mut String, at: &str, seed: usize, connections: usize) -> std::fmt::Result {
    const OPS: [&str; 60] = [
        "NULL",
        "READ",
        "WRITE",
        "COMMIT",
        "OPEN",
        "OPEN_CONFIRM",
        "OPEN_NOATTR",
        "OPEN_DOWNGRADE",
        "CLOSE",
        "SETATTR",
        "FSINFO",
        "RENEW",
        "SETCLIENTID",
        "SETCLIENTID_CONFIRM",
        "LOCK",
        "LOCKT",
        "LOCKU",
        "ACCESS",
        "GETATTR",
        "LOOKUP",
        "LOOKUP_ROOT",
        "REMOVE",
        "RENAME",
        "LINK",
        "SYMLINK",
        "CREATE",
        "PATHCONF",
        "STATFS",
        "READLINK",
        "READDIR",
        "SERVER_CAPS",
        "DELEGRETURN",
        "GETACL",
        "SETACL",
        "FS_LOCATIONS",
        "RELEASE_LOCKOWNER",
        "SECINFO",
        "FSID_PRESENT",
        "EXCHANGE_ID",
        "CREATE_SESSION",
        "DESTROY_SESSION",
        "SEQUENCE",
        "GET_LEASE_TIME",
        "RECLAIM_COMPLETE",
        "LAYOUTGET",
        "GETDEVICEINFO",
        "LAYOUTCOMMIT",
        "LAYOUTRETURN",
        "SECINFO_NO_NAME",
        "TEST_STATEID",
        "FREE_STATEID",
        "GETDEVICELIST",
        "BIND_CONN_TO_SESSION",
        "DESTROY_CLIENTID",
        "SEEK",
        "ALLOCATE",
        "DEALLOCATE",
        "LAYOUTSTATS",
        "CLONE",
        "COPY",
    ];
    writeln!(
        text,
        "device filer1:/export{at} mounted on {at} with fstype nfs4 statvers=1.1\n\
         \topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,acregmin=3,acregmax=60,acdirmin=30,acdirmax=60,hard,proto=tcp,\
         nconnect={connections},timeo=600,retrans=2,sec=sys,clientaddr=192.0.2.2,local_lock=none\n\tage:\t{seed}\n\
         \timpl_id:\tname='',domain='',date='0,0'\n\tcaps:\tcaps=0x3ffdf,wtmult=512,dtsize=1048576,bsize=0,namlen=255\n\
         \tnfsv4:\tbm0=0xfdffbfff,bm1=0x40f9be3e,bm2=0x803,acl=0x3,sessions,pnfs=not configured,lease_time=90,lease_expired=0\n\
         \tsec:\tflavor=1,pseudoflavor=1\n\tevents:\t1{seed}{} \n\tbytes:\t5{seed} 6{seed} 0 0 7{seed} 8{seed} 9{seed} 4{seed} \n\
         \tRPC iostats version: 1.1  p/v: 100003/4 (nfs)",
        " 12345".repeat(26)
    )?;
    for n in 0..connections {
        writeln!(
            text,
            "\txprt:\ttcp 7{n:02} 0 1 0 {n} 5{seed} 5{seed} 0 123{seed} 9{seed} 64 77{seed} 88{seed}"
        )?;
    }
    writeln!(text, "\tper-op statistics")?;
    for op in OPS {
        writeln!(
            text,
            "\t{op:>12}: 4{seed} 4{seed} 0 96{seed} 12{seed}00 5{seed} 6{seed} 11{seed} 0"
        )?;
    }
    writeln!(text)
}

fn attribute(folder: &Path, dev: Dev) -> Result<PathBuf> {
    let folder = folder.join(dev.to_string());
    fs::create_dir_all(&folder)?;
    let path = folder.join("read_ahead_kb");
    fs::write(&path, KERNEL_DEFAULT)?;
    Ok(path)
}

fn links(from: &Path, to: &Path, but: &[&str]) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        if !but.iter().any(|but| name == *but) {
            symlink(from.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}

fn tmpfs(at: &Path) -> Result<()> {
    mount("none", at, Some("tmpfs"), 0)
}

fn bind(from: &Path, at: &Path) -> Result<()> {
    mount(from, at, None, libc::MS_BIND | libc::MS_REC)
}

fn mount(source: impl AsRef<Path>, at: &Path, kind: Option<&str>, flags: libc::c_ulong) -> Result<()> {
    let source = CString::new(source.as_ref().as_os_str().as_bytes())?;
    let target = CString::new(at.as_os_str().as_bytes())?;
    let kind = CString::new(kind.unwrap_or_default())?;
    // SAFETY: three strings that end in a NUL byte and live, and no data.
    let r = unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) };
    match r {
        0 => Ok(()),
        _ => Err(format!("mount on {}: {}", crate::shown(at), io::Error::last_os_error()).into()),
    }
}
