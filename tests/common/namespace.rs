//! A user and mount namespace of its own: mounts, and files in place of the machine's, without root and without a trace.

use std::process::Command;

/// `script` for /bin/sh, with its arguments from `$1` on still to be added.
pub fn shell(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "--",
        "/bin/sh",
        "-ec",
        script,
        "sh",
    ]);
    command
}

/// Why there can be none here.
pub fn missing() -> Option<&'static str> {
    let tried = shell("mount -t tmpfs t /mnt").output();
    let works = tried.is_ok_and(|output| output.status.success());
    (!works).then_some("no mount namespace for an ordinary user (unshare, user namespaces)")
}
