//! One thing that is wrong, where, and how bad it is.

use std::fmt;
use std::path::Path;

use crate::report::escape::escape_path;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    /// Nothing is wrong.
    Note,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A finding: one line for people, ready for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub severity: Severity,
    pub finding: Finding,
}

/// What was found, without how bad it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A stable name, for scripts.
    pub kind: &'static str,
    pub file: String,
    pub line: Option<u32>,
    /// One line for people, without the place.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {} [{}]", self.text, self.kind)
    }
}

impl Finding {
    pub fn at(kind: &'static str, file: &Path, line: Option<u32>, text: String) -> Finding {
        Finding {
            kind,
            file: escape_path(file),
            line,
            text,
        }
    }
}

impl Found {
    pub fn error(kind: &'static str, file: &Path, line: Option<u32>, text: String) -> Found {
        Found::new(Severity::Error, kind, file, line, text)
    }

    pub fn warning(kind: &'static str, file: &Path, line: Option<u32>, text: String) -> Found {
        Found::new(Severity::Warning, kind, file, line, text)
    }

    pub fn note(kind: &'static str, file: &Path, line: Option<u32>, text: String) -> Found {
        Found::new(Severity::Note, kind, file, line, text)
    }

    pub fn new(severity: Severity, kind: &'static str, file: &Path, line: Option<u32>, text: String) -> Found {
        let finding = Finding::at(kind, file, line, text);
        Found { severity, finding }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity.name(), self.finding)
    }
}
