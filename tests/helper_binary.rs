//! The static helper as `make helper` builds it: no shared libraries, small, and cheap to run.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{namespace, run, skip};

/// One call that writes a value by protocol version. What a system call or an instruction costs is the machine's; how many
/// there are is ours.
const INSTRUCTIONS: u64 = 80_000;

/// The aim is musl's. A static glibc makes 13 system calls before main, where musl makes 6, and brings along what a static
/// program may need of it (locales, character sets), some 500 KiB, whatever the program uses.
struct Limits {
    system_calls: usize,
    bytes: u64,
}
const MUSL: Limits = Limits {
    system_calls: 30,
    bytes: 700 << 10,
};
const GLIBC: Limits = Limits {
    system_calls: 34,
    bytes: 1300 << 10,
};

fn limits(helper: &Path) -> Limits {
    match helper.to_str().unwrap().contains("-musl") {
        true => MUSL,
        false => GLIBC,
    }
}

/// None, and a skip, where it was not built.
fn helper() -> Option<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = Command::new("make")
        .args(["-s", "helper-path"])
        .current_dir(top)
        .output();
    let path = path.ok().filter(|output| output.status.success());
    let built = path.map(|output| top.join(run::shown(&output.stdout).trim_end()));
    let built = built.filter(|path| path.exists());
    if built.is_none() {
        skip("the static helper is not built (make helper)");
    }
    built
}

/// The types of the program headers (elf(5)).
fn segments(elf: &[u8]) -> Vec<u32> {
    const CLASS_64: u8 = 2;
    assert!(
        elf.starts_with(&[0x7f, b'E', b'L', b'F', CLASS_64]),
        "not ELF of 64 bits"
    );
    let short = |at: usize| usize::from(u16::from_ne_bytes([elf[at], elf[at + 1]]));
    let headers = usize::try_from(u64::from_ne_bytes(elf[32..40].try_into().unwrap())).unwrap();
    let (size, count) = (short(54), short(56));
    assert!(count > 0);
    (0..count)
        .map(|i| headers + i * size)
        .map(|at| u32::from_ne_bytes(elf[at..at + 4].try_into().unwrap()))
        .collect()
}

#[test]
fn it_has_no_interpreter_and_no_shared_libraries() {
    const PT_LOAD: u32 = 1;
    const PT_DYNAMIC: u32 = 2;
    const PT_INTERP: u32 = 3;
    let Some(helper) = helper() else {
        return;
    };
    let segments = segments(&fs::read(helper).unwrap());
    assert!(segments.contains(&PT_LOAD));
    assert!(
        !segments.contains(&PT_INTERP),
        "the kernel would start a dynamic linker"
    );
    assert!(!segments.contains(&PT_DYNAMIC), "there is a list of libraries");
}

#[test]
fn it_is_small() {
    let Some(helper) = helper() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("nfsrahead");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(&helper).output();
    if !strip.is_ok_and(|output| output.status.success()) {
        return skip("no strip (package binutils)");
    }
    let bytes = fs::metadata(stripped).unwrap().len();
    let limit = limits(&helper).bytes;
    println!("stripped: {} KiB of {} KiB", bytes >> 10, limit >> 10);
    assert!(bytes <= limit, "{bytes} bytes stripped, more than {limit}");
}

/// As many lines as the file of a distribution has, which is all comments, with our values among them.
fn conf() -> String {
    let mut text = String::from("#\n# Settings of the NFS programs. Nothing below is changed.\n#\n");
    for section in [
        "general",
        "nfsrahead",
        "exports",
        "exportfs",
        "gssd",
        "lockd",
        "mountd",
        "statd",
        "nfsd",
        "sm-notify",
    ] {
        text += &format!("[{section}]\n");
        if section == "nfsrahead" {
            text += "nfs=15000\nnfs4=16000\n";
        }
        for key in [
            "debug=0",
            "threads=8",
            "port=0",
            "host=",
            "grace-time=90",
            "lease-time=90",
            "manage-gids=n",
            "state=/var/lib",
        ] {
            text += &format!("# {key}\n");
        }
    }
    text
}

/// The helper as udev runs it, on the machine's own /proc but with a device, its line in the list of NFS superblocks and a
/// configuration made up here; `tool` runs it. None, and a skip, where that cannot be done.
fn under(tool: &[&str], helper: &Path) -> Option<std::process::Output> {
    const SCRIPT: &str = r#"
        mount -t tmpfs t /etc; printf %s "$1" >/etc/nfs.conf
        echo 'UUID=01234567-89ab-cdef / ext4 errors=remount-ro 0 1' >/etc/fstab
        mount -t tmpfs t /sys; mkdir -p /sys/class/bdi/0:51; echo 128 >/sys/class/bdi/0:51/read_ahead_kb
        mount -t tmpfs t /proc/fs; mkdir /proc/fs/nfsfs
        printf 'NV SERVER PORT DEV FSID FSC\nv4 7f000001 801 0:51 0:0 no \n' >/proc/fs/nfsfs/volumes
        shift
        env -i "$@" --write 0:51
        read value </sys/class/bdi/0:51/read_ahead_kb; test "$value" = 16000"#;
    if let Some(reason) = namespace::missing() {
        skip(reason);
        return None;
    }
    let program = tool[0];
    if !Path::new(program).exists() {
        skip(&format!("no {program}"));
        return None;
    }
    let mut command = namespace::shell(SCRIPT);
    command.arg(conf()).args(tool).arg(helper);
    let output = run::output(&mut command);
    assert!(output.status.success(), "{tool:?}: {}", run::shown(&output.stderr));
    Some(output)
}

#[test]
fn a_call_takes_few_system_calls() {
    let Some(helper) = helper() else {
        return;
    };
    let Some(output) = under(&["/usr/bin/strace", "-f"], &helper) else {
        return;
    };
    let text = run::shown(&output.stderr);
    // The program's end is a line too.
    let calls: Vec<&str> = text.lines().filter(|line| !line.starts_with("+++")).collect();
    println!("{} system calls", calls.len());
    assert!(
        calls.len() <= limits(&helper).system_calls,
        "{} system calls:\n{}",
        calls.len(),
        calls.join("\n")
    );
}

#[test]
fn a_call_takes_few_instructions() {
    let Some(helper) = helper() else {
        return;
    };
    let callgrind = [
        "/usr/bin/valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
    ];
    let Some(output) = under(&callgrind, &helper) else {
        return;
    };
    let text = run::shown(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected : ")).unwrap().1;
    let instructions: u64 = collected.trim().parse().unwrap();
    println!("{instructions} instructions");
    assert!(instructions <= INSTRUCTIONS, "{instructions} instructions");
}
