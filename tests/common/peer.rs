//! nfs-utils' own nfsrahead, asked the same question in a namespace where /etc and /proc are the case's.

use std::ffi::OsStr;
use std::path::Path;

use super::{namespace, run};

pub const PROGRAM: &str = "/usr/libexec/nfsrahead";

/// What is said of it in the cases was seen with nfs-utils 2.6.2 (Debian 12).
const VERSION: &str = "2.6.2";

/// A hang is an answer too, and gets the code of timeout(1).
pub const HANGS: i32 = 124;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Why it cannot be asked here.
pub fn missing() -> Option<String> {
    if !Path::new(PROGRAM).exists() {
        return Some(format!("no {PROGRAM} (package nfs-common or nfs-utils)"));
    }
    if let Some(reason) = namespace::missing() {
        return Some(reason.to_owned());
    }
    // It cannot say its version. For this name 2.6.2 ends with -EINVAL, later ones with -ENODEV.
    let nowhere = tempfile::tempdir().unwrap();
    let code = ask(nowhere.path(), &[], ["abc"]).code;
    (code != 234).then(|| format!("{PROGRAM} is not the one of nfs-utils {VERSION}"))
}

/// Its answer below this root, whose `etc` and `proc` take the places of the real ones. `environment`: `NAME=value`.
pub fn ask(root: &Path, environment: &[&OsStr], arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Answer {
    // The linker finds the libraries in its own folders: /etc/ld.so.cache is only faster.
    const SCRIPT: &str = r#"
        root=$1; shift
        mount -t tmpfs t /etc; mount -t tmpfs t /proc
        for d in etc proc; do if test -d "$root/$d"; then cp -a "$root/$d/." /$d; fi; done
        exec timeout 5 env -i "$@""#;
    let mut command = namespace::shell(SCRIPT);
    command.arg(root).args(environment).arg(PROGRAM).args(arguments);
    let output = run::output(&mut command);
    Answer {
        code: run::code(output.status),
        stdout: run::shown(&output.stdout),
        stderr: run::shown(&output.stderr),
    }
}
