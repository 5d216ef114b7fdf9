//! fstab(5): the option `x-nfsrahead=VALUE` on the line of a mount.
//!
//! mount(8) keeps options that begin with `x-` to itself, so the kernel never hears of this one and it can be read back
//! only here.

use std::borrow::Cow;
use std::io;

use super::regular::read_regular;
use crate::error::{Error, Result};
use crate::kernel::mountinfo::unescape;
use crate::root::{Root, FSTAB};

/// The name of the option.
pub const OPTION: &str = "x-nfsrahead";

/// Longer than any real fstab by far.
const MAX_BYTES: usize = 1 << 20;

/// The text of the file; empty where there is none.
pub fn read(root: &Root) -> Result<Vec<u8>> {
    match read_regular(&root.fstab(), MAX_BYTES) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(Error::io("read", FSTAB)),
    }
}

/// One NFS line that carries the option. Borrowed from the file's text, escapes undone where there are some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    pub source: Cow<'a, [u8]>,
    pub mount_point: Cow<'a, [u8]>,
    /// As written.
    pub value: Cow<'a, [u8]>,
    /// From 1.
    pub line: u32,
}

/// One line of type nfs or nfs4.
pub struct Line<'a> {
    pub source: Cow<'a, [u8]>,
    pub mount_point: Cow<'a, [u8]>,
    /// As written; empty where there are none.
    pub options: &'a [u8],
    /// From 1.
    pub line: u32,
}

pub fn nfs_lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let lines = (1..).zip(text.split(|b| *b == b'\n'));
    lines.filter_map(|(line, text)| nfs_line(text, line))
}

fn nfs_line(text: &[u8], line: u32) -> Option<Line<'_>> {
    let mut fields = text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let source = fields.next().filter(|first| !first.starts_with(b"#"))?;
    let mount_point = fields.next()?;
    if !matches!(fields.next()?, b"nfs" | b"nfs4") {
        return None;
    }
    Some(Line {
        source: unescape(source),
        mount_point: unescape(mount_point),
        options: fields.next().unwrap_or_default(),
        line,
    })
}

/// Lines of type nfs or nfs4 with the option; the last one on a line counts, as with mount options in general.
pub fn parse(text: &[u8]) -> Vec<Entry<'_>> {
    nfs_lines(text).filter_map(entry).collect()
}

fn entry(line: Line<'_>) -> Option<Entry<'_>> {
    let value = line
        .options
        .split(|b| *b == b',')
        .rev()
        .find_map(|option| option.strip_prefix(OPTION.as_bytes())?.strip_prefix(b"="))?;
    Some(Entry {
        source: line.source,
        mount_point: line.mount_point,
        value: unescape(value),
        line: line.line,
    })
}

/// "/srv/a/" and "/srv/a" are one place; "/" stays.
pub fn trim_slashes(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|b| *b != b'/') {
        Some(last) => &path[..=last],
        None => &path[..path.len().min(1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nfs_lines_with_the_option() {
        let text = b"# filer:/c /c nfs x-nfsrahead=1M 0 0\n\
            filer:/a /a nfs4 rw,x-nfsrahead=15M,hard 0 0\n\
            filer:/b /b nfs hard 0 0\n\
            UUID=1 /d ext4 x-nfsrahead=4 0 1\n\
            \tfiler:/sp\\040ace  /sp\\040ace\tnfs x-nfsrahead=4,x-nfsrahead=8\n\
            filer:/e\n\
            filer:/last / nfs x-nfsrahead=";
        let found = parse(text);
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].line, &found[0].value[..]), (2, &b"15M"[..]));
        assert_eq!((found[1].line, &found[1].value[..]), (5, &b"8"[..]));
        assert_eq!(
            (&found[1].source[..], &found[1].mount_point[..]),
            (&b"filer:/sp ace"[..], &b"/sp ace"[..])
        );
        assert_eq!((found[2].line, &found[2].value[..]), (7, &b""[..]));
    }
}
