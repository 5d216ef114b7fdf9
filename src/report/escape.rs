//! Text from mounts, servers and files is hostile; this makes it safe to show.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes from a mount, a file or a server, for a log line or a table: nothing in them can start a line, move the cursor
/// or hide text. Printable ASCII and well-formed printable UTF-8 stay; the rest becomes `\ooo` as in mountinfo.
pub fn escape(bytes: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    for chunk in bytes.as_ref().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' || c.is_control() || is_invisible(c) {
                octal(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                out.push(c);
            }
        }
        octal(&mut out, chunk.invalid());
    }
    out
}

/// [`escape`] for a path.
pub fn escape_path(path: &Path) -> String {
    escape(path.as_os_str().as_bytes())
}

fn octal(out: &mut String, bytes: &[u8]) {
    use std::fmt::Write as _;
    for b in bytes {
        let _ = write!(out, "\\{b:03o}");
    }
}

/// Marks that reorder or hide the text around them (Unicode bidi controls, zero-width characters, line separators).
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_starts_a_line_or_hides_text() {
        assert_eq!(escape("plain ü 日本 🦀"), "plain ü 日本 🦀");
        assert_eq!(escape("a\nforged"), "a\\012forged");
        assert_eq!(escape("esc\u{1b}[2J"), "esc\\033[2J");
        assert_eq!(escape(b"bad\xffutf"), "bad\\377utf");
        assert_eq!(escape("back\\slash"), "back\\134slash");
        assert_eq!(escape("rtl\u{202e}x"), "rtl\\342\\200\\256x");
    }
}
