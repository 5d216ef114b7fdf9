//! What the name of a file says: `disk-nconnect-04.txt` is setting 4 of the sweep `disk`.

use super::number::size;

/// What one name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub setting: Option<u64>,
    /// The rest of the path, without its ending: what the files of one sweep have in common.
    pub run: String,
}

const SEPARATORS: [char; 5] = ['-', '_', '.', '=', ' '];

/// The number after the last `variable` in the path; where that is missing, the only number in the file's name.
pub fn label(path: &str, variable: &str) -> Label {
    let stem = without_ending(path);
    let after_name = stem
        .to_ascii_lowercase()
        .rfind(&variable.to_ascii_lowercase())
        .and_then(|start| {
            let rest = &stem[start + variable.len()..];
            let digits = rest.trim_start_matches(SEPARATORS);
            let from = stem.len() - digits.len();
            number_at(stem, from).map(|(setting, to)| (setting, start, to))
        });
    let Some((setting, start, end)) = after_name.or_else(|| only_number(stem)) else {
        return Label {
            setting: None,
            run: stem.to_owned(),
        };
    };
    let before = stem[..start].trim_end_matches(SEPARATORS);
    let after = without_repetition(&stem[end..]).trim_end_matches(SEPARATORS);
    let after = if before.is_empty() || before.ends_with('/') {
        after.trim_start_matches(SEPARATORS)
    } else {
        after
    };
    Label {
        setting: Some(setting),
        run: format!("{before}{after}"),
    }
}

fn without_ending(path: &str) -> &str {
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    match path[name..].rfind('.') {
        Some(dot) if dot > 0 && path[name + dot + 1..].starts_with(|c: char| c.is_ascii_alphabetic()) => {
            &path[..name + dot]
        }
        _ => path,
    }
}

/// The number that starts at `from`, and where it ends.
fn number_at(text: &str, from: usize) -> Option<(u64, usize)> {
    let rest = &text[from..];
    let len = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    Some((size(&rest[..len])?, from + len))
}

fn only_number(stem: &str) -> Option<(u64, usize, usize)> {
    let name = stem.rfind('/').map_or(0, |slash| slash + 1);
    let start = name + stem[name..].find(|c: char| c.is_ascii_digit())?;
    let (setting, end) = number_at(stem, start)?;
    let is_only = !stem[end..].contains(|c: char| c.is_ascii_digit());
    is_only.then_some((setting, start, end))
}

/// Without a `-rep2` or `.run3` at the end: files that differ only there are repetitions of one measurement.
fn without_repetition(after: &str) -> &str {
    let head = after.trim_end_matches(|c: char| c.is_ascii_digit());
    if head.len() == after.len() {
        return after;
    }
    let word = head.trim_end_matches(SEPARATORS);
    for name in ["repetition", "repeat", "rep", "run", "try"] {
        if let Some(before) = word.strip_suffix(name).filter(|before| before.ends_with(SEPARATORS)) {
            return before;
        }
    }
    after
}

/// Takes the folders that all names share off them; of one name alone, all folders.
pub fn shorten(runs: &mut [String]) {
    let Some(first) = runs.first() else { return };
    let folder = first.rfind('/').map_or(0, |slash| slash + 1);
    let mut common = &first[..folder];
    while !runs.iter().all(|run| run.starts_with(common)) {
        let parent = common.trim_end_matches('/').rfind('/').map_or(0, |slash| slash + 1);
        common = &common[..parent];
    }
    let len = common.len();
    for run in runs.iter_mut() {
        *run = run[len..].trim_end_matches('/').to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (path, setting, run) in [
            ("disk-nconnect-01.txt", Some(1), "disk"),
            ("/tmp/x/nconnect=16", Some(16), "/tmp/x/"),
            ("/tmp/x/nconnect16-disk.json", Some(16), "/tmp/x/disk"),
            ("nconnect-4/disk.txt", Some(4), "/disk"),
            ("NConnect_8.rep2.csv", Some(8), ""),
            ("disk-nconnect-4-run-3.txt", Some(4), "disk"),
            ("nfs4/disk-07.txt", Some(7), "nfs4/disk"),
            ("v4.2-disk-07.txt", None, "v4.2-disk-07"),
            ("disk.txt", None, "disk"),
            ("nconnect.txt", None, "nconnect"),
            (
                "nconnect-99999999999999999999999.txt",
                None,
                "nconnect-99999999999999999999999",
            ),
            ("ünconnect-3ü.txt", Some(3), "üü"),
            ("", None, ""),
        ] {
            let label = label(path, "nconnect");
            assert_eq!((label.setting, label.run.as_str()), (setting, run), "{path}");
        }
        assert_eq!(label("readahead-15360.txt", "readahead").setting, Some(15360));
    }

    #[test]
    fn common_folders_go() {
        let shortened = |runs: &[&str]| {
            let mut runs: Vec<String> = runs.iter().map(|run| (*run).to_owned()).collect();
            shorten(&mut runs);
            runs
        };
        assert_eq!(shortened(&["/a/disk", "/a/tmpfs"]), ["disk", "tmpfs"]);
        assert_eq!(shortened(&["/a/disk/", "/a/tmpfs/"]), ["disk", "tmpfs"]);
        assert_eq!(shortened(&["a/b/x", "a/c/x"]), ["b/x", "c/x"]);
        assert_eq!(shortened(&["/a/", "/a/"]), ["", ""]);
        assert_eq!(shortened(&[]), [""; 0]);
    }
}
