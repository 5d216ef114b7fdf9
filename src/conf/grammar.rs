//! The grammar of nfs.conf: one text → assignments. No files, no environment.
//!
//! It is the grammar of nfs-utils' own reader, because one file serves all NFS programs of a host and must mean one thing
//! to all of them. It is line-based and has no errors: a line that means nothing is a warning, and reading goes on.
//! What differs on purpose: a broken header opens no section, a last line without newline counts, and a byte order mark
//! is skipped (with a warning, because the other programs do not skip it).

use std::ffi::CStr;

/// What a text says, in the order in which it says it. Section names are lower-cased; tags keep their spelling.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// `tag = value` below `[section]` or `[section "arg"]`. Tag and value are never empty.
    Assign {
        section: &'a [u8],
        arg: Option<&'a [u8]>,
        tag: &'a [u8],
        value: &'a [u8],
        line: u32,
    },
    /// `include = name`, or `include = -name` (`optional`). The included text starts inside this section.
    Include {
        section: &'a [u8],
        arg: Option<&'a [u8]>,
        name: &'a [u8],
        optional: bool,
        line: u32,
    },
    Warning {
        kind: WarningKind,
        line: Option<u32>,
    },
}

/// The section that an included text starts in.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    pub section: &'a [u8],
    pub arg: Option<&'a [u8]>,
}

/// What can be wrong with a configuration. Nothing here stops the reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningKind {
    Bom,
    Bracket,
    HeaderQuote,
    NotAssignment,
    NoSection,
    ValueQuote,
    NoTag,
    LastLine,
    Include,
    IncludeDepth,
    Unreadable,
    Scandir,
    DollarLoop,
    TooMany,
}

impl WarningKind {
    /// A stable name, for machines.
    pub fn name(self) -> &'static str {
        match self {
            WarningKind::Bom => "bom",
            WarningKind::Bracket => "bracket",
            WarningKind::HeaderQuote => "header-quote",
            WarningKind::NotAssignment => "not-assignment",
            WarningKind::NoSection => "no-section",
            WarningKind::ValueQuote => "value-quote",
            WarningKind::NoTag => "no-tag",
            WarningKind::LastLine => "last-line",
            WarningKind::Include => "include",
            WarningKind::IncludeDepth => "include-depth",
            WarningKind::Unreadable => "unreadable",
            WarningKind::Scandir => "scandir",
            WarningKind::DollarLoop => "dollar-loop",
            WarningKind::TooMany => "too-many",
        }
    }

    /// What it means, for people.
    pub fn text(self) -> &'static str {
        match self {
            WarningKind::Bom => "byte order mark skipped; other NFS programs do not skip it and lose the first line",
            WarningKind::Bracket => "header without ], ignored up to the next header",
            WarningKind::HeaderQuote => "header argument without closing quote, ignored up to the next header",
            WarningKind::NotAssignment => "neither header, assignment nor comment, ignored",
            WarningKind::NoSection => "assignment outside a section, ignored",
            WarningKind::ValueQuote => "value without closing quote, ignored",
            WarningKind::NoTag => "nothing before the =, ignored",
            WarningKind::LastLine => "the last line has no end, ignored",
            WarningKind::Include => "cannot include",
            WarningKind::IncludeDepth => "includes are nested too deeply, not included",
            WarningKind::Unreadable => "cannot read",
            WarningKind::Scandir => "cannot list the folder",
            WarningKind::DollarLoop => "a $ name leads to too many others, taken as not set",
            WarningKind::TooMany => "further warnings are left out",
        }
    }
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads one text, which starts in the section `inherited` (none for a file of its own). Lines are counted as the other NFS
/// programs count them: physical lines joined by a backslash are one.
pub fn parse(text: &[u8], inherited: Option<Header<'_>>, out: &mut impl FnMut(Item<'_>)) {
    let mut section = Section::default();
    if let Some(header) = inherited {
        section.open(header.section, header.arg);
    }
    // A NUL byte ends the text, and the line it is in has no end.
    let nul = CStr::from_bytes_until_nul(text).ok();
    let mut rest = nul.map_or(text, CStr::to_bytes);
    let mut line: u32 = 1;
    if let Some(after) = rest.strip_prefix(BOM) {
        rest = after;
        out(warning(WarningKind::Bom, line));
    }
    // Filled only where a line is continued; all other lines are read where they stand.
    let mut joined = Vec::new();
    let mut continued = false;
    while !rest.is_empty() {
        let (piece, after) = match split(rest, b'\n') {
            Some(parts) => parts,
            None if nul.is_some() => {
                continued = true;
                break;
            }
            None => (rest, [].as_slice()),
        };
        rest = after;
        if let [before @ .., b'\\'] = piece {
            // Backslash and newline become a blank each.
            joined.extend_from_slice(before);
            joined.extend_from_slice(b"  ");
            continued = true;
            continue;
        }
        if continued {
            joined.extend_from_slice(piece);
            section.line(&joined, line, out);
            joined.clear();
            continued = false;
        } else {
            section.line(piece, line, out);
        }
        line = line.saturating_add(1);
    }
    if continued {
        out(warning(WarningKind::LastLine, line));
    }
}

/// The section that is open while a text is read.
#[derive(Default)]
struct Section {
    is_open: bool,
    name: Vec<u8>,
    has_arg: bool,
    arg: Vec<u8>,
}

impl Section {
    fn open(&mut self, name: &[u8], arg: Option<&[u8]>) {
        self.is_open = true;
        self.name.clear();
        self.name.extend_from_slice(name);
        self.name.make_ascii_lowercase();
        self.has_arg = arg.is_some();
        self.arg.clear();
        self.arg.extend_from_slice(arg.unwrap_or_default());
    }

    fn line(&mut self, line: &[u8], number: u32, out: &mut impl FnMut(Item<'_>)) {
        let line = trim_start(line);
        let result = match line {
            [] | [b'#' | b';', ..] => Ok(()),
            [b'[', inside @ ..] => self.header(inside),
            _ => self.assignment(line, number, out),
        };
        if let Err(kind) = result {
            out(warning(kind, number));
        }
    }

    /// `inside` is the line after its `[`. The first `]` ends the header, even inside quotes; what follows is ignored.
    fn header(&mut self, inside: &[u8]) -> Result<(), WarningKind> {
        self.is_open = false;
        let (inside, _) = split(inside, b']').ok_or(WarningKind::Bracket)?;
        match split(inside, b'"') {
            None => self.open(trim(inside), None),
            Some((name, after)) => {
                let (arg, _) = split(after, b'"').ok_or(WarningKind::HeaderQuote)?;
                self.open(trim(name), Some(arg));
            }
        }
        Ok(())
    }

    fn assignment(&self, text: &[u8], line: u32, out: &mut impl FnMut(Item<'_>)) -> Result<(), WarningKind> {
        let Some((tag, value)) = split(text, b'=') else {
            return match text.iter().all(|&b| is_space(b)) {
                true => Ok(()),
                false => Err(WarningKind::NotAssignment),
            };
        };
        if !self.is_open {
            return Err(WarningKind::NoSection);
        }
        let tag = trim_end(tag);
        let value = match trim_start(value) {
            [quote @ (b'"' | b'\''), inside @ ..] => split(inside, *quote).ok_or(WarningKind::ValueQuote)?.0,
            value => unquoted(value),
        };
        if tag.is_empty() {
            return Err(WarningKind::NoTag);
        }
        let section = self.name.as_slice();
        let arg = self.has_arg.then_some(self.arg.as_slice());
        if tag.eq_ignore_ascii_case(b"include") {
            let (name, optional) = match value {
                [b'-', name @ ..] => (name, true),
                name => (name, false),
            };
            out(Item::Include {
                section,
                arg,
                name,
                optional,
                line,
            });
        } else if !value.is_empty() {
            out(Item::Assign {
                section,
                arg,
                tag,
                value,
                line,
            });
        }
        Ok(())
    }
}

fn warning(kind: WarningKind, line: u32) -> Item<'static> {
    Item::Warning { kind, line: Some(line) }
}

/// Up to the comment, without white space at its end. The first byte stays even if it is white space (a lone CR).
fn unquoted(value: &[u8]) -> &[u8] {
    let comment = value.iter().position(|&b| b == b'#' || b == b';');
    let mut value = &value[..comment.unwrap_or(value.len())];
    while let [before @ .., last] = value {
        if before.is_empty() || !is_space(*last) {
            break;
        }
        value = before;
    }
    value
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&b| b == at)?;
    Some((&text[..at], &text[at + 1..]))
}

fn trim(text: &[u8]) -> &[u8] {
    trim_end(trim_start(text))
}

fn trim_start(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', after @ ..] = text {
        text = after;
    }
    text
}

fn trim_end(mut text: &[u8]) -> &[u8] {
    while let [before @ .., b' ' | b'\t'] = text {
        text = before;
    }
    text
}

/// White space as isspace(3) has it in the C locale: one more (vertical tab) than Rust's.
pub(super) fn is_space(b: u8) -> bool {
    b.is_ascii_whitespace() || b == 0x0b
}
