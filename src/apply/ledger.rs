//! What was changed: what stood there before, and what we have written. Kept ahead of every change, so that it can be given
//! back after any end, SIGKILL at any instant included.
//!
//! The file is below /run: a reboot ends the kernel's state and the ledger together. It is a text, one knob a line:
//!
//! ```text
//! nfstuned ledger 1
//! boot 0e1f...
//! 0:51/max_ratio_fine 7658 1 1000000 56914 - -
//! vm.dirty - 4 20% 67108864B - -
//! ```
//!
//! knob, instance of its device, number in order, what stood there first, what is ours, what else may stand there because a
//! write was not confirmed, and what somebody else has put there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::apply::change::{self, Outcome};
use crate::apply::surface::{self, Surface};
use crate::cycle::Standing;
use crate::decimal::decimal;
use crate::error::{Error, Result};
use crate::kernel::knob::{self, Knob, Value};
use crate::root::Root;

/// Whose ledger it is: both may be open at a time, and never hold the same knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Daemon,
    Benchmark,
}

/// Everything that is ours.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    boot_id: String,
    entries: BTreeMap<Knob, Entry>,
    surface: Rc<dyn Surface>,
}

/// One knob of which we have changed the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Of a device: which one of all that have had its number.
    pub instance: Option<u64>,
    /// Changes go back in the reverse of this order.
    pub number: u64,
    pub original: Value,
    pub ours: Value,
    /// A write of `ours` was not confirmed, so this may stand there still.
    pub unconfirmed: Option<Value>,
    /// Somebody has changed it since: it is theirs.
    pub foreign: Option<Value>,
}

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub knob: Knob,
    pub instance: Option<u64>,
    pub value: Value,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    Written,
    /// It stood there already: nothing is ours.
    Already,
    /// There is no such knob any more.
    Gone,
    /// Somebody else has put this there.
    HandedOff(Value),
}

/// A knob that was ours and is somebody else's now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandOff {
    pub knob: Knob,
    pub ours: Value,
    pub theirs: Value,
}

/// What became of everything that was ours.
#[derive(Debug, Default)]
pub struct Restored {
    pub back: Vec<(Knob, Value)>,
    /// Left to those who have changed it.
    pub foreign: Vec<Knob>,
    pub gone: Vec<Knob>,
    /// Still ours: it could not be written.
    pub failed: Vec<(Knob, Error)>,
}

const HEAD: &str = "nfstuned ledger 1";
/// A ledger that is longer is not ours: 10,000 devices with four knobs each.
const SIZE_LIMIT: u64 = 4 << 20;

impl Ledger {
    /// Opens the ledger of this boot. One of another boot is dropped: its knobs went with the kernel. One that cannot be read is
    /// put aside, for what it says may be anything, and named in the error.
    pub fn open(root: &Root, owner: Owner) -> Result<Ledger> {
        Ledger::open_on(root, owner, surface::of(root))
    }

    /// The same, with writes made to another surface than the root's own.
    pub fn open_on(root: &Root, owner: Owner, surface: Rc<dyn Surface>) -> Result<Ledger> {
        let path = root.nfstuned_ledger(match owner {
            Owner::Daemon => "state",
            Owner::Benchmark => "bench",
        });
        let boot_id = boot_id(root)?;
        let of_this_boot = |path, entries| Ledger {
            path,
            boot_id: boot_id.clone(),
            entries,
            surface: surface.clone(),
        };
        let empty = |path| of_this_boot(path, BTreeMap::new());
        let text = match read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(empty(path)),
            Err(e) => return Err(Error::io("read", path)(e)),
        };
        match parse(&path, &text) {
            Ok((boot, entries)) if boot == boot_id => Ok(of_this_boot(path, entries)),
            Ok(_) => Ok(empty(path)),
            Err(e) => {
                let aside = path.with_extension("damaged");
                fs::rename(&path, &aside).map_err(Error::io("put aside", &path))?;
                Err(e)
            }
        }
    }

    pub fn entries(&self) -> impl Iterator<Item = (Knob, &Entry)> {
        self.entries.iter().map(|(knob, entry)| (*knob, entry))
    }

    /// What is known of a knob of this very device.
    pub fn entry(&self, knob: Knob, instance: Option<u64>) -> Option<&Entry> {
        self.entries.get(&knob).filter(|entry| entry.instance == instance)
    }

    /// What decisions ask about a knob.
    pub fn standing(&self, knob: Knob, instance: Option<u64>) -> Standing {
        self.entry(knob, instance)
            .map_or_else(Standing::default, |entry| Standing {
                ours: entry.foreign.is_none().then_some(entry.ours),
                handed_off: entry
                    .foreign
                    .map(|theirs| format!("changed by somebody else from {} to {theirs}", entry.ours)),
            })
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Writes a knob and reads it back, after it is on record. Nothing that somebody else has put there since is overwritten.
    pub fn set(&mut self, root: &Root, change: &Change) -> Result<Applied> {
        change::check(root, change)?;
        let opened = match change::open(root, change.knob, change.instance)? {
            Some(opened) => opened,
            None => return Ok(Applied::Gone),
        };
        let Some(now) = knob::read(root, change.knob)? else {
            return Ok(Applied::Gone);
        };
        let number = self.next_number();
        let before = self.entry(change.knob, change.instance).copied();
        let entry = match before {
            Some(entry) => {
                if let Some(theirs) = entry.foreign.or_else(|| entry.is_foreign(now).then_some(now)) {
                    self.hand_off(change.knob, theirs)?;
                    return Ok(Applied::HandedOff(theirs));
                }
                if now == change.value && entry.ours == change.value && entry.unconfirmed.is_none() {
                    return Ok(Applied::Already);
                }
                Entry {
                    ours: change.value,
                    unconfirmed: Some(now),
                    ..entry
                }
            }
            None if now == change.value => return Ok(Applied::Already),
            None => Entry {
                instance: change.instance,
                number,
                original: now,
                ours: change.value,
                unconfirmed: Some(now),
                foreign: None,
            },
        };
        let replaced = self.entries.insert(change.knob, entry);
        if let Err(e) = self.save() {
            self.put_back(change.knob, replaced);
            return Err(e);
        }
        match opened.write(root, &*self.surface, change.value) {
            Ok(Outcome::Written) => {
                self.confirm(change.knob)?;
                Ok(Applied::Written)
            }
            Ok(Outcome::Gone) => {
                self.entries.remove(&change.knob);
                self.save()?;
                Ok(Applied::Gone)
            }
            Err(e) => {
                // What stands there decides: as before, or whatever somebody else has put there in between.
                match knob::read(root, change.knob)? {
                    Some(still) if still == now => self.put_back(change.knob, replaced),
                    Some(theirs) if theirs != change.value => self.hand_off(change.knob, theirs)?,
                    _ => {}
                }
                self.save()?;
                Err(e)
            }
        }
    }

    fn put_back(&mut self, knob: Knob, replaced: Option<Entry>) {
        match replaced {
            Some(entry) => self.entries.insert(knob, entry),
            None => self.entries.remove(&knob),
        };
    }

    fn confirm(&mut self, knob: Knob) -> Result<()> {
        if let Some(entry) = self.entries.get_mut(&knob) {
            entry.unconfirmed = None;
        }
        self.save()
    }

    fn hand_off(&mut self, knob: Knob, theirs: Value) -> Result<()> {
        if let Some(entry) = self.entries.get_mut(&knob) {
            entry.foreign = Some(theirs);
        }
        self.save()
    }

    /// Looks at every knob of ours. What somebody else has changed is theirs from now on; what has gone is forgotten.
    pub fn look(&mut self, root: &Root) -> Result<Vec<HandOff>> {
        let mut handed_off = Vec::new();
        let mut is_changed = false;
        for (knob, mut entry) in self.entries.clone() {
            if entry.has_gone(root, knob) {
                self.entries.remove(&knob);
                is_changed = true;
                continue;
            }
            if entry.foreign.is_some() {
                continue;
            }
            if let Some(now) = knob::read(root, knob)?.filter(|now| entry.is_foreign(*now)) {
                entry.foreign = Some(now);
                self.entries.insert(knob, entry);
                is_changed = true;
                handed_off.push(HandOff {
                    knob,
                    ours: entry.ours,
                    theirs: now,
                });
            }
        }
        if is_changed {
            self.save()?;
        }
        Ok(handed_off)
    }

    /// Somebody has written the knob, if only the value that stood there: it is theirs.
    pub fn written_by_others(&mut self, root: &Root, knob: Knob) -> Result<Option<HandOff>> {
        let Some(entry) = self.entries.get(&knob).copied().filter(|entry| entry.foreign.is_none()) else {
            return Ok(None);
        };
        if entry.has_gone(root, knob) {
            return Ok(None);
        }
        let Some(theirs) = knob::read(root, knob)? else {
            return Ok(None);
        };
        self.hand_off(knob, theirs)?;
        Ok(Some(HandOff {
            knob,
            ours: entry.ours,
            theirs,
        }))
    }

    /// Takes a knob under management with the value that somebody else has put there: that is what goes back in the end.
    /// None: there is no such knob.
    pub fn release(&mut self, root: &Root, knob: Knob) -> Result<Option<Value>> {
        let Some(now) = knob::read(root, knob)? else {
            return Ok(None);
        };
        let entry = Entry {
            instance: match knob {
                Knob::Bdi { dev, .. } => crate::sample::instance(root, dev),
                Knob::Vm(_) => None,
            },
            number: self.next_number(),
            original: now,
            ours: now,
            unconfirmed: None,
            foreign: None,
        };
        self.entries.insert(knob, entry);
        self.save()?;
        Ok(Some(now))
    }

    fn next_number(&self) -> u64 {
        self.entries
            .values()
            .map(|entry| entry.number)
            .max()
            .map_or(1, |n| n.saturating_add(1))
    }

    /// Gives one knob back, if what is ours still stands there. Handed-off knobs stay on record.
    pub fn give_back(&mut self, root: &Root, knob: Knob) -> Result<Option<Value>> {
        let Some(entry) = self.entries.get(&knob).copied() else {
            return Ok(None);
        };
        if entry.foreign.is_some() {
            return Ok(None);
        }
        match self.one_back(root, knob, &entry)? {
            Back::Written(value) => Ok(Some(value)),
            Back::Foreign(theirs) => self.hand_off(knob, theirs).map(|()| None),
            Back::Gone | Back::Already => Ok(None),
        }
    }

    /// Gives everything back, the last change first, and goes on where one fails. What was given back is off the record at once,
    /// so a second restore, after whatever ended the first, does only what is left.
    pub fn restore(&mut self, root: &Root) -> Restored {
        let mut restored = Restored::default();
        let mut all: Vec<(Knob, Entry)> = self.entries.iter().map(|(knob, entry)| (*knob, *entry)).collect();
        all.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.number));
        loop {
            let mut failed = Vec::new();
            let before = restored.back.len();
            for (knob, entry) in all {
                if entry.foreign.is_some() {
                    restored.foreign.push(knob);
                    self.entries.remove(&knob);
                    continue;
                }
                match self.one_back(root, knob, &entry) {
                    Ok(Back::Written(value)) => restored.back.push((knob, value)),
                    Ok(Back::Already) => {}
                    Ok(Back::Gone) => restored.gone.push(knob),
                    Ok(Back::Foreign(_)) => {
                        restored.foreign.push(knob);
                        self.entries.remove(&knob);
                    }
                    Err(e) => failed.push((knob, entry, e)),
                }
            }
            // A floor cannot go back above a ceiling that is still low: what failed is tried again as long as others went back.
            if failed.is_empty() || restored.back.len() == before {
                restored.failed = failed.into_iter().map(|(knob, _, e)| (knob, e)).collect();
                break;
            }
            all = failed.into_iter().map(|(knob, entry, _)| (knob, entry)).collect();
        }
        if let Err(e) = self.save() {
            log::warn!("{e}");
        }
        restored
    }

    /// Off the record when it is back, gone, or was never changed.
    fn one_back(&mut self, root: &Root, knob: Knob, entry: &Entry) -> Result<Back> {
        let opened = change::open(root, knob, entry.instance)?;
        let now = match &opened {
            Some(_) => knob::read(root, knob)?,
            None => None,
        };
        let back = match (opened, now) {
            (Some(_), Some(now)) if now == entry.original => Back::Already,
            (Some(_), Some(now)) if entry.is_foreign(now) => return Ok(Back::Foreign(now)),
            (Some(opened), Some(now)) => {
                if let Some(between) = change::steps_back(entry.original) {
                    if let Some(entry) = self.entries.get_mut(&knob) {
                        // What stands there may be from before a write that was not confirmed.
                        entry.ours = now;
                        entry.unconfirmed = Some(between);
                    }
                    self.save()?;
                    opened.write(root, &*self.surface, between)?;
                }
                match opened.write(root, &*self.surface, entry.original)? {
                    Outcome::Written => Back::Written(entry.original),
                    Outcome::Gone => Back::Gone,
                }
            }
            _ => Back::Gone,
        };
        self.entries.remove(&knob);
        self.save()?;
        Ok(back)
    }

    /// On disk, whole or not at all, before this returns. An empty ledger is no file.
    fn save(&self) -> Result<()> {
        if self.entries.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &self.path)(e)),
                _ => Ok(()),
            };
        }
        self.replace().map_err(Error::io("write", &self.path))
    }

    fn replace(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        let new = self.path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(text(&self.boot_id, &self.entries).as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        File::open(folder)?.sync_all()
    }
}

/// The ledger of a boot, as [`parse`] reads it.
pub fn text(boot_id: &str, entries: &BTreeMap<Knob, Entry>) -> String {
    let mut text = format!("{HEAD}\nboot {boot_id}\n");
    let shown = |value: Option<Value>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    for (knob, entry) in entries {
        let instance = entry
            .instance
            .map_or_else(|| "-".to_owned(), |instance| instance.to_string());
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{knob} {instance} {} {} {} {} {}",
            entry.number,
            entry.original,
            entry.ours,
            shown(entry.unconfirmed),
            shown(entry.foreign)
        );
    }
    text
}

enum Back {
    Written(Value),
    /// What stood there first stands there.
    Already,
    Foreign(Value),
    Gone,
}

impl Entry {
    /// Neither ours nor what may stand there from before a write that was not confirmed.
    fn is_foreign(&self, now: Value) -> bool {
        now != self.ours && Some(now) != self.unconfirmed
    }

    fn has_gone(&self, root: &Root, knob: Knob) -> bool {
        match knob {
            Knob::Bdi { dev, .. } => crate::sample::instance(root, dev) != self.instance,
            Knob::Vm(_) => false,
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(SIZE_LIMIT + 1).read_to_end(&mut text)?;
    Ok(text)
}

fn boot_id(root: &Root) -> Result<String> {
    let path = root.boot_id();
    let text = read(&path).map_err(Error::io("read", &path))?;
    let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return Err(Error::Text {
            path,
            line: 1,
            why: "is no boot ID".to_owned(),
        });
    }
    Ok(text)
}

/// The boot that the ledger is of, and its entries.
pub fn parse(path: &Path, text: &[u8]) -> Result<(String, BTreeMap<Knob, Entry>)> {
    let wrong = |line: usize, why: &str| Error::Text {
        path: path.to_owned(),
        line: u64::try_from(line).unwrap_or_default(),
        why: why.to_owned(),
    };
    // A text that was cut has no newline at its end; a longer one was cut in reading.
    let text = text.strip_suffix(b"\n").ok_or_else(|| wrong(0, "is cut off"))?;
    let mut lines = text.split(|b| *b == b'\n').enumerate();
    if lines.next().map(|(_, line)| line) != Some(HEAD.as_bytes()) {
        return Err(wrong(1, "is no ledger of nfstuned"));
    }
    let boot = lines.next().and_then(|(_, line)| line.strip_prefix(b"boot "));
    let boot = boot
        .and_then(|boot| String::from_utf8(boot.to_vec()).ok())
        .ok_or_else(|| wrong(2, "names no boot"))?;
    let mut entries = BTreeMap::new();
    for (n, line) in lines {
        let (knob, entry) = entry(line).ok_or_else(|| wrong(n + 1, "is no entry of a ledger"))?;
        if entries.insert(knob, entry).is_some() {
            return Err(wrong(n + 1, "names a knob again"));
        }
    }
    Ok((boot, entries))
}

fn entry(line: &[u8]) -> Option<(Knob, Entry)> {
    let fields: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
    let [knob, instance, number, original, ours, unconfirmed, foreign] = *fields else {
        return None;
    };
    let knob = Knob::parse(knob)?;
    let instance = match (knob, instance) {
        (Knob::Vm(_), b"-") => None,
        (Knob::Bdi { .. }, instance) => Some(decimal(instance)?),
        (Knob::Vm(_), _) => return None,
    };
    // The kind of a value is that of its knob.
    let value = |text: &[u8]| {
        Value::parse(text).filter(|value| {
            matches!(
                (knob, value),
                (Knob::Bdi { .. }, Value::Number(_)) | (Knob::Vm(_), Value::Ratio(_) | Value::Bytes(_))
            )
        })
    };
    let optional = |text: &[u8]| match text {
        b"-" => Some(None),
        _ => value(text).map(Some),
    };
    Some((
        knob,
        Entry {
            instance,
            number: decimal(number)?,
            original: value(original)?,
            ours: value(ours)?,
            unconfirmed: optional(unconfirmed)?,
            foreign: optional(foreign)?,
        },
    ))
}
