//! One error for everything that can go wrong, and the one place where it becomes an exit code.

use std::io;
use std::path::PathBuf;

use crate::report::escape::escape_path;

/// What failed, where, and why. Its text is one line, ready for a terminal or a log: whatever came from outside is escaped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),

    /// A file could not be opened, read, written, or was of the wrong kind.
    #[error("{}: cannot {doing}: {source}", escape_path(path))]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },

    /// The kernel took a value and shows another one.
    #[error("{}: wrote {wrote}, reads back {read}", escape_path(path))]
    ReadBack { path: PathBuf, wrote: u64, read: String },

    /// A file whose text is not what it must be.
    #[error("{}:{line}: {why}", escape_path(path))]
    Text { path: PathBuf, line: u64, why: String },
}

pub type Result<T> = std::result::Result<T, Error>;

/// Exit codes of all programs: done or nothing to do.
pub const EXIT_OK: i32 = 0;
/// Something failed or, where a verb says so, there are findings.
pub const EXIT_FAILED: i32 = 1;
/// The command line makes no sense.
pub const EXIT_USAGE: i32 = 2;

impl Error {
    pub fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { doing, path, source }
    }

    pub fn exit_code(&self) -> i32 {
        match self {
            Error::Usage(_) => EXIT_USAGE,
            _ => EXIT_FAILED,
        }
    }
}
