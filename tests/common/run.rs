//! Running a program that must not hang.

use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// No test waits longer for one program. No measure of anything: what hangs, hangs for ever.
const HANG: Duration = Duration::from_secs(20);

/// [`Command::output`], but a program that hangs is killed and named. Standard input is empty.
pub fn output(command: &mut Command) -> Output {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    let (done, is_done) = mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        let hangs = is_done.recv_timeout(HANG) == Err(mpsc::RecvTimeoutError::Timeout);
        if hangs {
            // SAFETY: kill(2) takes no memory. The child has not been waited for, so the number is still its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        hangs
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    assert!(!guard.join().unwrap(), "{command:?} hangs");
    output
}

/// The code as a shell has it: 128 and the signal where one ended the program.
pub fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|n| 128 + n)).unwrap()
}

/// The program under test, with an empty environment.
pub fn nfsrahead() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfsrahead"));
    command.env_clear();
    command
}

/// Bytes as text without loss, so that a failure can be read.
pub fn shown(bytes: &[u8]) -> String {
    let chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let invalid: String = chunk.invalid().iter().map(|b| format!("\\x{b:02x}")).collect();
        chunk.valid().to_owned() + &invalid
    };
    bytes.utf8_chunks().map(chunk).collect()
}
