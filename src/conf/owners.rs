//! Who else sets the readahead of NFS mounts: the udev rules of this host, in the order in which udev uses them.

use std::path::{Path, PathBuf};

use super::drop_ins::{self, DropIn, Named};
use super::finding::Found;
use super::grammar::{self, Item};
use super::policy::{Policy, SECTION};
use super::regular::read_regular;
use super::rule_lint::{self, assignment, commands, contains, is_helper, program, HELPER};
use super::udev_rules::{parse, Pair, Rule};
use super::udev_scope::Conditions;
use super::Location;
use crate::report::escape::{escape, escape_path};
use crate::root::{usr_twin, Root, HELPER_FOLDERS, NFS_CONF, UDEV_PROGRAMS, UDEV_RULES};

/// A rule that gives NFS devices a readahead.
#[derive(Debug, Clone)]
pub struct Writer {
    pub at: Location,
    pub sets: Sets,
    /// Programs of RUN are started after all rules.
    is_late: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sets {
    /// As written in the rule.
    Value(Vec<u8>),
    /// What nfsrahead decides.
    Helper { program: Vec<u8>, whose: Whose },
    /// What another command prints or does.
    Command(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Ours,
    NfsUtils,
    /// There is no such file, so nothing is set.
    Nobodys,
}

impl Writer {
    /// Does it set anything?
    pub fn is_effective(&self) -> bool {
        !matches!(
            &self.sets,
            Sets::Helper {
                whose: Whose::Nobodys,
                ..
            }
        )
    }

    fn is_helper(&self) -> bool {
        matches!(self.sets, Sets::Helper { .. })
    }

    /// What it sets, for people.
    pub fn shown(&self) -> String {
        match &self.sets {
            Sets::Value(value) => escape(value),
            Sets::Helper { program, whose } => {
                let whose = match whose {
                    Whose::Ours => "as nfs.conf says, else left alone",
                    Whose::NfsUtils => "nfs-utils' program: as nfs.conf says, else 128",
                    Whose::Nobodys => "nothing: there is no such program",
                };
                format!("{} ({whose})", escape(program))
            }
            Sets::Command(command) => format!("command: {}", escape(command)),
        }
    }
}

/// What was found on a host.
#[derive(Debug, Default)]
pub struct Owners {
    /// In the order in which they write.
    pub writers: Vec<Writer>,
    pub found: Vec<Found>,
}

impl Owners {
    /// Whose value a device has in the end.
    pub fn last(&self) -> Option<&Writer> {
        self.writers.iter().rfind(|writer| writer.is_effective())
    }
}

pub fn owners(root: &Root, policy: &Policy) -> Owners {
    let mut found = Vec::new();
    let mut writers = Vec::new();
    for named in drop_ins::load(root, &UDEV_RULES, ".rules", &mut found) {
        let file = &named.read;
        let rules = parse(file.text.as_deref().unwrap_or_default());
        rule_lint::lint(&file.path, &rules, &mut found);
        writers.extend(writers_of(root, file, &rules, &mut found));
        hidden(&named, &rules, &mut found);
    }
    // Stable: udev keeps the order of the rules within each kind.
    writers.sort_by_key(|writer| writer.is_late);
    let owners = Owners { writers, found };
    let mut found = overridden(&owners, policy);
    found.extend(void_drop_ins(root));
    Owners {
        found: owners.found.into_iter().chain(found).collect(),
        ..owners
    }
}

fn writers_of(root: &Root, file: &DropIn, rules: &[Rule], found: &mut Vec<Found>) -> Vec<Writer> {
    let mut writers = Vec::new();
    for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| !rule.is_broken) {
        let Some((sets, is_late)) = sets(root, rule) else {
            continue;
        };
        if let Sets::Helper {
            program,
            whose: Whose::Nobodys,
        } = &sets
        {
            let text = match elsewhere(root) {
                Some(there) => format!(
                    "{}, which does not exist; found {}",
                    escape(program),
                    escape_path(&there)
                ),
                None => format!("{}, which does not exist", escape(program)),
            };
            found.push(Found::error(
                "no-program",
                &file.path,
                Some(rule.line),
                format!("rule calls {text}"),
            ));
        }
        if Conditions::of(rules, index).may_be_nfs() {
            writers.push(Writer {
                at: Location {
                    file: file.path.clone(),
                    line: rule.line,
                },
                sets,
                is_late,
            });
        }
    }
    writers
}

/// What the rule gives the device, and whether only after all rules.
fn sets(root: &Root, rule: &Rule) -> Option<(Sets, bool)> {
    let assignment = assignment(rule);
    if let Some(set) = assignment {
        if !contains(&set.value, b"%c") && !contains(&set.value, b"$result") {
            return Some((Sets::Value(set.value.clone()), false));
        }
    }
    let is_late = |pair: &Pair| pair.is("RUN");
    if let Some(helper) = commands(rule).find(|pair| is_helper(&pair.value)) {
        let program = program(&helper.value);
        let sets = Sets::Helper {
            program: program.to_vec(),
            whose: whose(root, program),
        };
        return Some((sets, is_late(helper)));
    }
    let is_writer =
        |pair: &&Pair| rule_lint::writes_attribute(&pair.value) || (assignment.is_some() && pair.is("PROGRAM"));
    let command = commands(rule).find(is_writer)?;
    Some((Sets::Command(command.value.clone()), is_late(command)))
}

/// Larger than the helper with all its debug information.
const MAX_PROGRAM: usize = 64 << 20;

fn whose(root: &Root, program: &[u8]) -> Whose {
    use std::os::unix::ffi::OsStrExt;
    let program = Path::new(std::ffi::OsStr::from_bytes(program));
    let places: Vec<PathBuf> = match program.is_absolute() {
        true => vec![program.to_path_buf()],
        false => UDEV_PROGRAMS
            .iter()
            .map(|folder| Path::new(folder).join(program))
            .collect(),
    };
    let there = places.iter().map(|place| root.join(place)).find(|place| place.exists());
    match there.map(|place| read_regular(&place, MAX_PROGRAM)) {
        None => Whose::Nobodys,
        // A flag that only ours has.
        Some(Ok(text)) if contains(&text, b"--dry-run") => Whose::Ours,
        Some(_) => Whose::NfsUtils,
    }
}

/// A helper where distributions put it.
fn elsewhere(root: &Root) -> Option<PathBuf> {
    let name = std::str::from_utf8(HELPER).ok()?;
    let mut places = HELPER_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    places.find(|place| root.join(place).is_file())
}

/// Rules about NFS readahead that are not used because a stronger folder has a file of the same name.
fn hidden(named: &Named, rules: &[Rule], found: &mut Vec<Found>) {
    let is_about = |rules: &[Rule]| rules.iter().any(rule_lint::is_about_readahead);
    for file in &named.hidden {
        let text = file.text.as_deref().unwrap_or_default();
        if Some(text) == named.read.text.as_deref() || !is_about(&parse(text)) {
            continue;
        }
        let path = &named.read.path;
        let hides = format!("hides {}", escape_path(&file.path));
        let runs_helper = rules.iter().flat_map(commands).any(|pair| is_helper(&pair.value));
        found.push(if named.read.text.is_none() {
            Found::note("masked-rule", path, None, format!("{hides}, on purpose: it is empty"))
        } else if runs_helper {
            Found::note("masked-rule", path, None, format!("{hides}; it runs nfsrahead itself"))
        } else {
            let text = format!("{hides}, so that nfsrahead is not run and nfs.conf has no say; give it another name");
            Found::warning("masked-rule", path, None, text)
        });
    }
}

/// Who has the last word, and over whom.
fn overridden(owners: &Owners, policy: &Policy) -> Vec<Found> {
    let mut found = Vec::new();
    let effective: Vec<&Writer> = owners.writers.iter().filter(|writer| writer.is_effective()).collect();
    let place = |writer: &Writer| (writer.at.file.clone(), Some(writer.at.line));
    let helper = effective.iter().rfind(|writer| writer.is_helper());
    if let (None, Some(at)) = (helper, first_wish(policy)) {
        let text = "sets readahead, but no udev rule runs nfsrahead".to_owned();
        found.push(Found::warning("no-rule", &at.file, Some(at.line), text));
    }
    let [.., before, last] = effective[..] else {
        return found;
    };
    let (file, line) = place(before);
    match &last.sets {
        Sets::Helper { whose: Whose::Ours, .. } if !before.is_helper() => {
            let value = before.shown();
            let text = match policy.is_empty() {
                true => format!(
                    "{value} stays: nfsrahead ({}) comes later, but nothing is configured",
                    last.at
                ),
                false => format!(
                    "{value} holds where nfsrahead ({}), which comes later, is told nothing",
                    last.at
                ),
            };
            found.push(Found::note("overridden", &file, line, text));
        }
        Sets::Helper { .. } if !before.is_helper() => {
            let keys = &policy.by_version;
            let has_all = keys.default.is_some() || (keys.nfs.is_some() && keys.nfs4.is_some());
            let value = before.shown();
            found.push(match has_all {
                true => {
                    let text = format!(
                        "{value} does not hold: {} comes later and sets what nfs.conf says",
                        last.at
                    );
                    Found::note("overridden", &file, line, text)
                }
                false => {
                    let text = format!(
                        "{value} does not hold: {} comes later, and nfs-utils' program sets 128 where nfs.conf says \
                         nothing; put the value in nfs.conf, or name this file so that it sorts later (99-z-...)",
                        last.at
                    );
                    Found::warning("overridden", &file, line, text)
                }
            });
        }
        _ => match helper {
            Some(helper) if !last.is_helper() && !policy.is_empty() => {
                let (file, line) = place(helper);
                let text = format!("nfs.conf has no say: {} comes later ({})", last.at, last.shown());
                found.push(Found::warning("overridden", &file, line, text));
            }
            _ if before.sets != last.sets => {
                let text = format!("{} does not hold: {} comes later", before.shown(), last.at);
                found.push(Found::note("overridden", &file, line, text));
            }
            _ => {}
        },
    }
    found
}

/// Where readahead is configured first, if it is.
fn first_wish(policy: &Policy) -> Option<&Location> {
    let keys = &policy.by_version;
    let wishes = [&keys.nfs, &keys.nfs4, &keys.default].into_iter().flatten();
    let mut places = wishes
        .map(|wish| &wish.at)
        .chain(policy.rules.iter().map(|rule| &rule.at));
    places.next()
}

/// Longer than any real configuration by far.
const MAX_CONF: usize = 1 << 20;

/// The vendor's drop-ins about readahead: all NFS programs forget them as soon as the admin has a main file.
fn void_drop_ins(root: &Root) -> Vec<Found> {
    let main = Path::new(NFS_CONF);
    let twin = usr_twin(main).filter(|_| root.join(main).is_file());
    let Some(folder) = twin.map(|twin| twin.with_extension("conf.d")) else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(root.join(&folder)) else {
        return Vec::new();
    };
    let names = entries
        .filter_map(Result::ok)
        .map(|entry| folder.join(entry.file_name()));
    let mut files: Vec<PathBuf> = names
        .filter(|path| path.extension().is_some_and(|e| e == "conf"))
        .collect();
    files.sort();
    let is_about = |path: &&PathBuf| {
        let mut is_about = false;
        let text = read_regular(&root.join(path), MAX_CONF).unwrap_or_default();
        grammar::parse(&text, None, &mut |item| {
            is_about |= matches!(item, Item::Assign { section, .. } if section == SECTION);
        });
        is_about
    };
    let tell = |path: &PathBuf| {
        let text = format!("is not used: with {NFS_CONF} there, the vendor's files are left out");
        Found::warning("void-drop-in", path, None, text)
    };
    files.iter().filter(is_about).map(tell).collect()
}
