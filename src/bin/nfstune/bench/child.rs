//! Other programs, run with an end: `mount`, `umount`, `fio`.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::stop::Stop;

const PAUSE: Duration = Duration::from_millis(5);
/// More output than this is none of the programs'.
const OUTPUT_LIMIT: u64 = 16 << 20;

pub struct Output {
    pub is_success: bool,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs it to its end, or kills it after `limit`, or after a signal where `stop` is given. It is killed with the thread that
/// started it as well, so that nothing is left behind, whatever ends us.
pub fn run(command: &mut Command, limit: Duration, stop: Option<&Stop>) -> io::Result<Output> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("LC_ALL", "C");
    // SAFETY: prctl(2) is async-signal-safe, and PR_SET_PDEATHSIG takes a number.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    let mut child = command.spawn()?;
    let stdout = reader(child.stdout.take());
    let stderr = reader(child.stderr.take());
    let is_success = wait(&mut child, limit, stop)?;
    let text = |reader: thread::JoinHandle<Vec<u8>>| reader.join().unwrap_or_default();
    Ok(Output {
        is_success,
        stdout: text(stdout),
        stderr: text(stderr),
    })
}

fn wait(child: &mut Child, limit: Duration, stop: Option<&Stop>) -> io::Result<bool> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        let is_late = Instant::now() >= end;
        if is_late || stop.is_some_and(Stop::is_asked) {
            let _ = child.kill();
            child.wait()?;
            let why = if is_late { "it took too long" } else { super::STOPPED };
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        thread::sleep(PAUSE);
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(pipe) = pipe {
            let _ = pipe.take(OUTPUT_LIMIT).read_to_end(&mut text);
        }
        text
    })
}
