//! Who sets a knob by configuration: sysctl.d, the kernel's command line, TuneD, or a udev rule. It is theirs, whatever it shows.

use std::fmt;
use std::path::Path;
use std::rc::Rc;

use super::drop_ins;
use super::finding::Found;
use super::regular::read_regular;
use super::sysctl::{self, Setting};
use super::udev_rules;
use super::udev_scope::Conditions;
use super::Location;
use crate::decimal::decimal;
use crate::kernel::knob::{Attribute, Knob, Threshold, Value};
use crate::report::escape::{escape, escape_path};
use crate::root::{Root, CMDLINE, SYSCTL_CONF, SYSCTL_D, UDEV_RULES};

/// Who sets a knob, and where it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub at: Location,
    pub by: &'static str,
    /// As written, escaped.
    pub text: String,
    /// What a limit of the machine is set to. None: another kind of knob, or no number.
    pub value: Option<Value>,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sets it ({}: {})", self.by, self.at, self.text)
    }
}

/// Who sets what.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct KnobOwners {
    limit: Option<Owner>,
    background: Option<Owner>,
    attributes: Vec<(Attribute, Owner)>,
}

impl KnobOwners {
    /// The one whose value stands in the end. The readahead is not asked for here: its rules are the helper's business too.
    pub fn of(&self, knob: Knob) -> Option<&Owner> {
        match knob {
            Knob::Vm(Threshold::Limit) => self.limit.as_ref(),
            Knob::Vm(Threshold::Background) => self.background.as_ref(),
            Knob::Bdi { attribute, .. } => {
                let owner = self.attributes.iter().rfind(|(set, _)| *set == attribute);
                owner.map(|(_, owner)| owner)
            }
        }
    }
}

const FILE_LIMIT: usize = 1 << 20;

/// Reads all of it. Files that cannot be read say nothing.
pub fn knob_owners(root: &Root) -> KnobOwners {
    let [background, limit] = limit_owners(root).map(|(_, mut owners)| owners.pop());
    KnobOwners {
        limit,
        background,
        attributes: by_rules(root),
    }
}

/// All who set each of the machine's limits, in the order in which they do, so that the last one's value stands in the end. TuneD
/// applies sysctl.d over its profile by default, and the kernel's command line comes before both.
pub fn limit_owners(root: &Root) -> [(Threshold, Vec<Owner>); 2] {
    let settings = settings(root);
    let cmdline = read_regular(&root.join(Path::new(CMDLINE)), FILE_LIMIT).unwrap_or_default();
    let cmdline = sysctl::parse_cmdline(&cmdline);
    let file: Rc<Path> = Path::new(CMDLINE).into();
    let owners = |threshold: Threshold| {
        let names = match threshold {
            Threshold::Limit => ["dirty_bytes", "dirty_ratio"],
            Threshold::Background => ["dirty_background_bytes", "dirty_background_ratio"],
        };
        let keys = names.map(|name| format!("vm/{name}").into_bytes());
        let by_cmdline = cmdline.iter().filter(|setting| keys.contains(&setting.key));
        let mut owners: Vec<Owner> = by_cmdline
            .map(|setting| from(&file, "the kernel's command line", setting))
            .collect();
        owners.extend(by_profile(root, names));
        // Of a key that no line names itself, the pattern that takes it in.
        let by_pattern: Vec<_> = keys.iter().filter_map(|key| sysctl::in_force(&settings, key)).collect();
        let by_files = settings.iter().filter(|found| {
            let is_named = keys.contains(&found.1.key) && found.1.value.is_some();
            is_named || by_pattern.iter().any(|pattern| std::ptr::eq(*pattern, *found))
        });
        owners.extend(by_files.map(|(file, setting)| from(file, "sysctl.d", setting)));
        owners
    };
    Threshold::ALL.map(|threshold| (threshold, owners(threshold)))
}

fn from(file: &Rc<Path>, by: &'static str, setting: &Setting) -> Owner {
    let value = setting.value.as_deref().unwrap_or_default();
    Owner {
        at: Location {
            file: file.clone(),
            line: setting.line,
        },
        by,
        text: format!("{} = {}", escape(&setting.key), escape(value)),
        value: limit(&setting.key, value),
    }
}

/// The key of a pattern says not which of the halves is meant.
fn limit(key: &[u8], value: &[u8]) -> Option<Value> {
    let number = decimal(value.trim_ascii())?;
    match key {
        _ if key.ends_with(b"_bytes") => Some(Value::Bytes(number)),
        _ if key.ends_with(b"_ratio") => Some(Value::Ratio(number)),
        _ => None,
    }
}

/// In the order in which they are applied.
fn settings(root: &Root) -> Vec<(Rc<Path>, Setting)> {
    // What is wrong with these files is their programs' to tell.
    let mut found: Vec<Found> = Vec::new();
    let mut all = Vec::new();
    for named in drop_ins::load(root, &SYSCTL_D, ".conf", &mut found) {
        let text = named.read.text.unwrap_or_default();
        all.extend(
            sysctl::parse(&text)
                .into_iter()
                .map(|setting| (named.read.path.clone(), setting)),
        );
    }
    let file: Rc<Path> = Path::new(SYSCTL_CONF).into();
    let text = read_regular(&root.join(&file), FILE_LIMIT).unwrap_or_default();
    all.extend(sysctl::parse(&text).into_iter().map(|setting| (file.clone(), setting)));
    all
}

/// Halves of one limit that are both set: writing one sets the other to 0, so the later one undoes the earlier one. systemd-sysctl
/// applies each key where it is set last.
pub fn undone(root: &Root) -> Vec<Found> {
    let settings = settings(root);
    let last = |name: &str| {
        let key = format!("vm/{name}").into_bytes();
        settings
            .iter()
            .rposition(|(_, setting)| setting.key == key && setting.value.is_some())
    };
    let mut found = Vec::new();
    for [bytes, ratio] in [
        ["dirty_bytes", "dirty_ratio"],
        ["dirty_background_bytes", "dirty_background_ratio"],
    ] {
        let (Some(a), Some(b)) = (last(bytes), last(ratio)) else {
            continue;
        };
        let (lost, won) = (settings.get(a.min(b)), settings.get(a.max(b)));
        if let (Some((file, lost)), Some((by, won))) = (lost, won) {
            let text = format!(
                "{} is undone by {}:{}: {}; of the two one is in force, the later",
                escape(&lost.key),
                escape_path(by),
                won.line,
                escape(&won.key)
            );
            found.push(Found::warning("undone-sysctl", file, Some(lost.line), text));
        }
    }
    found
}

#[cfg(feature = "state")]
fn by_profile(root: &Root, names: [&str; 2]) -> Option<Owner> {
    use super::tuned_profile::{includes, setting};
    use crate::root::{TUNED_ACTIVE, TUNED_PROFILES};

    /// Profiles that build upon each other.
    const DEPTH: usize = 8;

    let read = |path: &Path| read_regular(&root.join(path), FILE_LIMIT).ok();
    let find = |name: &str| {
        // A name is one part of a path, never a way out of the folder.
        let is_name = !name.starts_with('.') && !name.contains('/');
        TUNED_PROFILES.iter().filter(|_| is_name).find_map(|folder| {
            let path = Path::new(folder).join(name).join("tuned.conf");
            let text = String::from_utf8_lossy(&read(&path)?).into_owned();
            Some((Rc::<Path>::from(path), text))
        })
    };
    let active = String::from_utf8_lossy(&read(Path::new(TUNED_ACTIVE))?).into_owned();
    // The last one wins, and a profile wins over what it includes.
    let mut wanted: Vec<(String, usize)> = active.split_whitespace().map(|name| (name.to_owned(), 0)).collect();
    while let Some((name, depth)) = wanted.pop() {
        let Some((path, text)) = find(&name) else { continue };
        let mut here = names.iter().filter_map(|name| Some((*name, setting(&text, name)?)));
        if let Some((name, (line, value))) = here.next_back() {
            return Some(Owner {
                at: Location { file: path, line },
                by: "the active profile of TuneD",
                text: format!("{name} = {}", escape(&value)),
                value: limit(name.as_bytes(), value.as_bytes()),
            });
        }
        if depth < DEPTH {
            wanted.extend(includes(&text).into_iter().map(|name| (name, depth + 1)));
        }
    }
    None
}

#[cfg(not(feature = "state"))]
fn by_profile(_: &Root, _: [&str; 2]) -> Option<Owner> {
    None
}

/// Rules that write a limit of NFS devices: `ATTR{max_ratio_fine}="..."`.
fn by_rules(root: &Root) -> Vec<(Attribute, Owner)> {
    /// An attribute, and those that are written as another one: `max_ratio` and `max_bytes` set what `max_ratio_fine` shows.
    const NAMES: [(&[u8], Attribute); 7] = [
        (b"max_ratio_fine", Attribute::MaxRatioFine),
        (b"max_ratio", Attribute::MaxRatioFine),
        (b"max_bytes", Attribute::MaxRatioFine),
        (b"min_ratio_fine", Attribute::MinRatioFine),
        (b"min_ratio", Attribute::MinRatioFine),
        (b"min_bytes", Attribute::MinRatioFine),
        (b"strict_limit", Attribute::StrictLimit),
    ];
    let mut found: Vec<Found> = Vec::new();
    let mut all = Vec::new();
    for named in drop_ins::load(root, &UDEV_RULES, ".rules", &mut found) {
        let rules = udev_rules::parse(named.read.text.as_deref().unwrap_or_default());
        for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| !rule.is_broken) {
            if !Conditions::of(&rules, index).may_be_nfs() {
                continue;
            }
            let written = rule.pairs.iter().filter(|pair| !pair.is_match() && pair.key == b"ATTR");
            for pair in written {
                let name = pair.attribute.as_deref().unwrap_or_default();
                let Some((_, attribute)) = NAMES.iter().find(|(known, _)| *known == name) else {
                    continue;
                };
                let owner = Owner {
                    at: Location {
                        file: named.read.path.clone(),
                        line: rule.line,
                    },
                    by: "a udev rule",
                    text: format!("{} = {}", escape(name), escape(&pair.value)),
                    value: None,
                };
                all.push((*attribute, owner));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field case 32: 90-nfs.conf sets bytes, 99-tuned.conf a ratio.
    #[test]
    fn the_last_writer_of_a_pair_wins() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let put = |name: &str, text: &str| {
            let path = dir.path().join("etc/sysctl.d");
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join(name), text).unwrap();
        };
        put(
            "90-nfs.conf",
            "vm.dirty_bytes=134217728\nvm.dirty_background_bytes=67108864\n",
        );
        put("99-tuned.conf", "vm.dirty_ratio=30\n");
        let found: Vec<String> = undone(&root).iter().map(|found| found.finding.to_string()).collect();
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("/etc/sysctl.d/90-nfs.conf:1"), "{found:?}");
        assert!(
            found[0].contains("vm/dirty_bytes is undone by /etc/sysctl.d/99-tuned.conf:1: vm/dirty_ratio"),
            "{found:?}"
        );
        let owners = knob_owners(&root);
        let shown = |threshold| owners.of(Knob::Vm(threshold)).map(ToString::to_string);
        assert_eq!(
            shown(Threshold::Limit).unwrap(),
            "sysctl.d sets it (/etc/sysctl.d/99-tuned.conf:1: vm/dirty_ratio = 30)"
        );
        assert_eq!(
            shown(Threshold::Background).unwrap(),
            "sysctl.d sets it (/etc/sysctl.d/90-nfs.conf:2: vm/dirty_background_bytes = 67108864)"
        );
        put("95-x.conf", "vm.dirty_background_ratio=5\n");
        assert_eq!(undone(&root).len(), 2);
    }
}
