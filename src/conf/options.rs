//! Options on the NFS lines of fstab that fight, that no NFS client knows, or that ask for trouble.

use std::path::Path;

use super::finding::Found;
use super::fstab;
use crate::decimal::decimal;
use crate::nconnect::asked::senseless;
use crate::report::escape::escape;
use crate::root::FSTAB;

/// People expect them of other file systems; for NFS they were proposed in 2021 and refused.
const UNKNOWN: [&[u8]; 3] = [b"read_ahead_kb", b"readahead", b"rasize"];
/// In tenths of a second, as the option is.
const ONE_SECOND: u64 = 10;

/// By line. `kernel` as (major, minor), if it is known.
pub fn lint(text: &[u8], kernel: Option<(u64, u64)>) -> Vec<Found> {
    let mut found = Vec::new();
    for line in fstab::nfs_lines(text) {
        let file = Path::new(FSTAB);
        let at = escape(&line.mount_point);
        let options: Vec<_> = line.options.split(|b| *b == b',').map(name_and_value).collect();
        let last_of = |names: &[&[u8]]| options.iter().rev().find(|(name, _)| names.contains(name));
        let has = |name: &[u8]| last_of(&[name]).is_some();

        if let (true, true, Some((last, _))) = (
            has(b"resvport"),
            has(b"noresvport"),
            last_of(&[b"resvport", b"noresvport"]),
        ) {
            let text = format!("{at}: resvport and noresvport; the later one holds: {}", escape(last));
            found.push(Found::warning("options-fight", file, Some(line.line), text));
        }
        for unknown in UNKNOWN.into_iter().filter(|unknown| has(unknown)) {
            let text = format!(
                "{at}: the NFS client knows no option {}, so the mount fails, or does without it; use {}=, or nfs.conf",
                escape(unknown),
                fstab::OPTION
            );
            found.push(Found::error("unknown-option", file, Some(line.line), text));
        }
        let is_soft = matches!(last_of(&[b"soft", b"softerr", b"hard"]), Some((name, _)) if *name != b"hard");
        let timeo = last_of(&[b"timeo"]).and_then(|(_, value)| decimal((*value)?));
        if let (true, Some(timeo @ 1..ONE_SECOND)) = (is_soft, timeo) {
            let text =
                format!("{at}: soft with timeo={timeo} (0.{timeo} s): programs get I/O errors where a server is busy");
            found.push(Found::warning("soft-timeo", file, Some(line.line), text));
        }
        let text = String::from_utf8_lossy(line.options);
        for senseless in senseless(&text, kernel) {
            let text = format!("{at}: {}", senseless.text());
            found.push(Found::warning(senseless.name(), file, Some(line.line), text));
        }
    }
    found
}

fn name_and_value(option: &[u8]) -> (&[u8], Option<&[u8]>) {
    match option.iter().position(|b| *b == b'=') {
        Some(at) => (&option[..at], Some(&option[at + 1..])),
        None => (option, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_option_holds() {
        let kinds = |options: &str| -> Vec<_> {
            let found = lint(format!("h:/a /a nfs {options} 0 0\n").as_bytes(), None);
            found.iter().map(|found| found.finding.kind).collect()
        };
        for (options, expected) in [
            ("resvport", &[][..]),
            ("noresvport,resvport", &["options-fight"]),
            ("soft,timeo=9", &["soft-timeo"]),
            ("soft,timeo=9,timeo=10", &[]),
            ("soft,timeo=0", &[]),
            ("soft,timeo=7,hard", &[]),
            ("hard,timeo=7,softerr", &["soft-timeo"]),
            (
                "readahead=1,rasize,x-nfsrahead=1",
                &["unknown-option", "unknown-option"],
            ),
        ] {
            assert_eq!(kinds(options), expected, "{options}");
        }
        assert!(lint(b"h:/a /a ceph rasize=1\n#h:/a /a nfs rasize=1\n", None).is_empty());
    }
}
