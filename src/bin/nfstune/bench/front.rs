//! Two processes: one measures, the other one waits for its result and not for its end.
//!
//! A process that has a file of a dead server open cannot end before that server is back: closing the file waits for it, and
//! that wait cannot be killed (kernel: fs/nfs/inode.c `nfs_file_clear_open_context`). So whoever started us would wait too. What
//! was changed is given back by then; the process that stays has nothing left to do.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::process::ExitCode;
use std::time::Duration;

use nfsrahead::error::{Error, Result, EXIT_FAILED};

use super::stop::Stop;
use crate::{complain, exit};

const TICK: Duration = Duration::from_millis(100);

/// Runs `work` in the other process. Call it before there are threads.
pub fn run(work: impl FnOnce() -> Result<i32>) -> Result<ExitCode> {
    let failed = |e| Error::io("start", "a process to measure in")(e);
    let front = std::process::id();
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    // SAFETY: there is one thread, so the other process may go on as this one would.
    match unsafe { libc::fork() } {
        -1 => Err(failed(io::Error::last_os_error())),
        0 => {
            drop(ours);
            Ok(exit(measure(front, theirs, work)))
        }
        pid => {
            drop(theirs);
            wait(ours, pid).map_err(failed)
        }
    }
}

fn measure(front: u32, mut result: UnixStream, work: impl FnOnce() -> Result<i32>) -> i32 {
    // SAFETY: prctl(2) with PR_SET_PDEATHSIG takes a number.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if parent_id() != front {
        // It was killed before that counted.
        return EXIT_FAILED;
    }
    let code = work().unwrap_or_else(|e| {
        complain(&e);
        e.exit_code()
    });
    let _ = result.write_all(&[u8::try_from(code).unwrap_or(u8::MAX)]);
    code
}

/// Signals to us are meant for the other one.
fn wait(mut result: UnixStream, pid: libc::pid_t) -> io::Result<ExitCode> {
    let stop = Stop::on_signals().map_err(io::Error::other)?;
    result.set_read_timeout(Some(TICK))?;
    let mut is_told = false;
    let mut code = [0];
    loop {
        match result.read(&mut code) {
            Ok(0) => {
                complain("the process that measured was killed: nfstune restore gives back what it has changed");
                return Ok(exit(EXIT_FAILED));
            }
            Ok(_) => return Ok(ExitCode::from(code[0])),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
        if stop.is_asked() && !is_told {
            is_told = true;
            // SAFETY: kill(2) takes numbers; nobody has waited for this child, so the number is still its own.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
    }
}
