//! nfsrahead(8): arguments, one call, one exit code.
//!
//! The entry point is C's: the standard library's own start-up (a handler for stack overflow, among others) would cost this
//! program, which udev starts for every mount, half as many system calls again as all the rest, and gives it nothing.

#![no_main]

#[cfg(target_feature = "crt-static")]
mod arena;
mod journal;
#[cfg(target_feature = "crt-static")]
mod malloc;

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nfsrahead::error::Error;
use nfsrahead::helper::args::{Args, Command};
use nfsrahead::helper::{self, Process};

/// # Safety
/// `argv` holds `argc` strings, as C promises to its main.
#[no_mangle]
pub unsafe extern "C" fn main(argc: libc::c_int, argv: *const *const libc::c_char) -> libc::c_int {
    let arguments = (1..usize::try_from(argc).unwrap_or(0)).map(|i| {
        // SAFETY: C gives `argc` pointers to strings that end in a NUL byte and live as long as the process.
        let argument = unsafe { CStr::from_ptr(*argv.add(i)) };
        OsString::from_vec(argument.to_bytes().to_vec())
    });
    match Args::parse(arguments) {
        Ok(args) => {
            let is_dry_run = matches!(args.command, Command::DryRun(_));
            journal::install(args.is_foreground || is_dry_run, args.is_debug);
            helper::run(&args, &process()).unwrap_or_else(|e| failed(&e))
        }
        Err(e) => {
            journal::install(true, false);
            failed(&e)
        }
    }
}

fn process() -> Process<'static> {
    Process {
        variable: &|name| std::env::var_os(OsStr::from_bytes(name)).map(OsString::into_vec),
        // A duplicate, for `std::io::stdout` takes a closed descriptor for a success.
        stdout: &|| std::io::stdout().as_fd().try_clone_to_owned().map(File::from),
    }
}

fn failed(e: &Error) -> i32 {
    log::error!("{e}");
    e.exit_code()
}
