//! What one run of a program costs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::{self, Place};
use crate::{shown, Result};

/// Rounds of the timed programs: enough for a median, and no more seconds than this, for one call may take 0.1 s.
const ROUNDS: usize = 101;
const MIN_ROUNDS: usize = 11;
const ROUNDS_TIME: Duration = Duration::from_secs(2);

/// A program, and what it has to leave behind.
pub struct Program {
    path: PathBuf,
    args: Vec<String>,
    env: Option<(&'static str, &'static str)>,
    file: Option<(PathBuf, &'static str)>,
}

pub struct Figures {
    pub instructions: u64,
    pub calls: usize,
    pub peak_kib: u64,
}

#[derive(Clone, Copy, Default)]
pub struct Times {
    pub wall_ms: f64,
    pub cpu_ms: f64,
}

impl Program {
    pub fn new(path: &Path, args: &[&str]) -> Program {
        Program {
            path: path.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            env: None,
            file: None,
        }
    }

    /// The one variable of an otherwise empty environment.
    pub fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env = Some((name, value));
        self
    }

    /// After each run the file, which starts as the kernel's default, has to hold `text`: what is timed did its work.
    pub fn writes(mut self, file: &Path, text: &'static str) -> Self {
        self.file = Some((file.to_owned(), text));
        self
    }

    /// The program, as an argument of `tool` if there is one.
    fn command(&self, tool: &[&str]) -> Command {
        let mut command = match tool {
            [] => Command::new(&self.path),
            [tool, options @ ..] => {
                let mut command = Command::new(tool);
                command.args(options).arg(&self.path);
                command
            }
        };
        command.args(&self.args).env_clear().envs(self.env);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn checked<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some((file, expected)) = &self.file else {
            return run();
        };
        fs::write(file, place::KERNEL_DEFAULT)?;
        let result = run()?;
        let text = fs::read_to_string(file)?;
        if text != *expected {
            let what = format!("{} {:?} left {text:?}, not {expected:?}", shown(&self.path), self.args);
            return Err(what.into());
        }
        Ok(result)
    }

    fn timed(&self) -> Result<Times> {
        self.checked(|| finish(self.command(&[])))
    }
}

impl Figures {
    pub fn of(program: &Program, place: &Place) -> Result<Figures> {
        Ok(Figures {
            instructions: instructions(program)?,
            calls: calls(program)?,
            peak_kib: peak_kib(program, &place.starter())?,
        })
    }
}

/// The programs again and again, in turn and each first in its turn: what disturbs one disturbs all.
pub fn in_turn<const N: usize>(programs: [&Program; N]) -> Result<Vec<[Times; N]>> {
    let mut rounds = Vec::new();
    let started = Instant::now();
    while rounds.len() < ROUNDS && (rounds.len() < MIN_ROUNDS || started.elapsed() < ROUNDS_TIME) {
        let mut times = [Times::default(); N];
        for i in 0..N {
            let turn = (rounds.len() + i) % N;
            times[turn] = programs[turn].timed()?;
        }
        rounds.push(times);
    }
    Ok(rounds)
}

pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Exit codes are not looked at: nfs-utils ends with a truncated errno where it finds another type.
fn finish(mut command: Command) -> Result<Times> {
    let started = Instant::now();
    let child = command
        .spawn()
        .map_err(|e| format!("{}: {e}", shown(command.get_program().as_ref())))?;
    let pid = libc::pid_t::try_from(child.id())?;
    // SAFETY: rusage is plain numbers, for which all zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: wait4 writes to a rusage that lives, and a null status is allowed.
    let waited = unsafe { libc::wait4(pid, std::ptr::null_mut(), 0, &raw mut usage) };
    let wall_ms = started.elapsed().as_secs_f64() * 1e3;
    if waited != pid {
        return Err(io::Error::last_os_error().into());
    }
    let ms = |t: libc::timeval| t.tv_sec as f64 * 1e3 + t.tv_usec as f64 / 1e3;
    let cpu_ms = ms(usage.ru_utime) + ms(usage.ru_stime);
    Ok(Times { wall_ms, cpu_ms })
}

/// The kernel's count of peak memory begins with whoever called exec, so that is to be somebody small.
fn peak_kib(program: &Program, starter: &str) -> Result<u64> {
    program.checked(|| {
        let output = program.command(&[starter]).stderr(Stdio::piped()).output()?;
        Ok(String::from_utf8_lossy(&output.stderr).trim().parse()?)
    })
}

/// User instructions by callgrind, of the program and its loader.
fn instructions(program: &Program) -> Result<u64> {
    program.checked(|| {
        let mut command = program.command(&[
            "/usr/bin/valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
        ]);
        let output = command.stderr(Stdio::piped()).output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let count = text
            .lines()
            .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
        count.ok_or_else(|| format!("callgrind: {text}").into())
    })
}

/// System calls by strace, exit included, the execve that starts it not.
fn calls(program: &Program) -> Result<usize> {
    program.checked(|| {
        let output = program
            .command(&["/usr/bin/strace", "-f"])
            .stderr(Stdio::piped())
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let calls = text
            .lines()
            .filter(|line| line.contains('(') && !line.starts_with(['+', '-']));
        match calls.count() {
            0 => Err(format!("strace: {text}").into()),
            n => Ok(n - 1),
        }
    })
}

/// Does the program ask for a loader of shared libraries?
pub fn names_an_interpreter(program: &Path) -> Result<bool> {
    let output = Command::new("readelf")
        .args(["--program-headers", "--wide"])
        .arg(program)
        .output()?;
    if !output.status.success() {
        return Err(format!("readelf {}: {}", shown(program), output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).contains("INTERP"))
}
