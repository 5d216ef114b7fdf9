//! A kernel's dirty limits and readahead, behind the files of a fake root: what is written is understood, rounded, refused or
//! passed over as Linux 6.12 does it, and the files show what came of it.
//! (mm/backing-dev.c; mm/page-writeback.c; lib/kstrtox.c; kernel/sysctl.c `proc_doulongvec_minmax`)

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nfsrahead::apply::surface::{Surface, Target};
use nfsrahead::kernel::bdi::Dev;
use nfsrahead::root::Root;

const PAGE_BYTES: u64 = 4096;
const PAGE_KIB: u64 = PAGE_BYTES / 1024;
/// Parts per million in the whole, and in a percent.
const WHOLE: u64 = 1_000_000;
const SCALE: u64 = 10_000;

/// A backing device as the kernel holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bdi {
    pub ra_pages: u64,
    pub min_ppm: u64,
    pub max_ppm: u64,
    pub is_strict: bool,
}

/// One limit of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub bytes: u64,
    pub ratio: u64,
}

/// All that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub bdis: BTreeMap<Dev, Bdi>,
    pub limit: Limit,
    pub background: Limit,
}

/// What happens at a write of the program under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The program dies, before the write or after it.
    Dies { after: bool },
    /// Somebody else writes this file, right after it.
    Foreign { path: String, text: String },
    /// The device goes, right before it.
    Vanishes(Dev),
}

/// The payload of the unwinding by which the program under test dies.
pub struct Died;

#[derive(Debug)]
pub struct Kernel {
    root: Root,
    /// Dirtyable memory, pages.
    dirtyable: u64,
    inner: RefCell<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    /// What is to happen at which write, counted from now.
    events: BTreeMap<u32, Event>,
    writes: u32,
    gone: u32,
    /// What the files say, so that only those are written of which the value is another one.
    shown: BTreeMap<PathBuf, String>,
    /// Who wrote which file last, the program under test or another.
    log: Vec<(String, bool)>,
}

type Answer = Result<(), i32>;

impl Kernel {
    pub fn new(root: &Root) -> Kernel {
        let limit = |ratio| Limit { bytes: 0, ratio };
        fs::create_dir_all(root.vm_sysctl("x").parent().unwrap()).unwrap();
        let kernel = Kernel {
            root: root.clone(),
            dirtyable: 1 << 20,
            inner: RefCell::new(Inner {
                state: State {
                    bdis: BTreeMap::new(),
                    limit: limit(20),
                    background: limit(10),
                },
                events: BTreeMap::new(),
                writes: 0,
                gone: 0,
                shown: BTreeMap::new(),
                log: Vec::new(),
            }),
        };
        kernel.show();
        kernel
    }

    pub fn state(&self) -> State {
        self.inner.borrow().state.clone()
    }

    /// A mount is made; where there is a device of that number, it goes first.
    pub fn register(&self, dev: Dev) {
        self.unregister(dev);
        fs::create_dir_all(self.root.bdi(&dev.to_string())).unwrap();
        let new = Bdi {
            ra_pages: 32,
            min_ppm: 0,
            max_ppm: WHOLE,
            is_strict: false,
        };
        self.inner.borrow_mut().state.bdis.insert(dev, new);
        self.show();
    }

    /// Its share of the sum of all minima goes with it (`bdi_unregister`).
    pub fn unregister(&self, dev: Dev) {
        let mut inner = self.inner.borrow_mut();
        if inner.state.bdis.remove(&dev).is_none() {
            return;
        }
        inner.gone += 1;
        let folder = self.root.bdi(&dev.to_string());
        inner.shown.retain(|path, _| !path.starts_with(&folder));
        // The inode stays in use, as in sysfs, where a new device never has that of an old one.
        let aside = self.root.join(Path::new(&format!("gone/{}", inner.gone)));
        fs::create_dir_all(aside.parent().unwrap()).unwrap();
        fs::rename(self.root.bdi(&dev.to_string()), aside).unwrap();
    }

    /// At the n-th write from now, from 0.
    pub fn at(&self, n: u32, event: Event) {
        let mut inner = self.inner.borrow_mut();
        let n = inner.writes + n;
        inner.events.insert(n, event);
    }

    /// Nothing that was to happen happens any more.
    pub fn calm(&self) {
        self.inner.borrow_mut().events.clear();
    }

    /// Files written since the last call, in order, and whether by the program under test.
    pub fn take_log(&self) -> Vec<(String, bool)> {
        std::mem::take(&mut self.inner.borrow_mut().log)
    }

    /// write(2) by somebody else, below the root: `sys/class/bdi/0:51/strict_limit`.
    pub fn echo(&self, path: &str, text: &str) -> io::Result<()> {
        self.store(path, text, false)
    }

    fn store(&self, path: &str, text: &str, is_ours: bool) -> io::Result<()> {
        let result = {
            let mut inner = self.inner.borrow_mut();
            let result = self.understand(&mut inner.state, path, text);
            if result.is_ok() {
                inner.log.push((path.to_owned(), is_ours));
            }
            result
        };
        self.show();
        result.map_err(io::Error::from_raw_os_error)
    }

    fn understand(&self, state: &mut State, path: &str, text: &str) -> Answer {
        // Nothing written is nothing asked.
        if text.is_empty() {
            return Ok(());
        }
        if let Some(name) = path.strip_prefix("proc/sys/vm/") {
            return state.set_vm(name, text);
        }
        let (dev, attribute) = path
            .strip_prefix("sys/class/bdi/")
            .and_then(|rest| rest.split_once('/'))
            .ok_or(libc::ENOENT)?;
        let dev = Dev::parse(dev.as_bytes()).ok_or(libc::ENOENT)?;
        let threshold = state.threshold_pages(self.dirtyable);
        state.set_bdi(dev, attribute, text, threshold, self.dirtyable)
    }

    /// The files say what the kernel holds.
    fn show(&self) {
        let mut inner = self.inner.borrow_mut();
        let Inner { state, shown, .. } = &mut *inner;
        let mut put = |path: PathBuf, value: String| {
            if shown.get(&path) != Some(&value) {
                fs::write(&path, format!("{value}\n")).unwrap();
                shown.insert(path, value);
            }
        };
        let threshold = state.threshold_pages(self.dirtyable);
        for (dev, bdi) in &state.bdis {
            let folder = self.root.bdi(&dev.to_string());
            // Pages of which KiB are shown as a signed number.
            let ahead = i64::from_le_bytes(bdi.ra_pages.wrapping_mul(PAGE_KIB).to_le_bytes());
            for (name, value) in [
                ("read_ahead_kb", ahead.to_string()),
                ("min_ratio", (bdi.min_ppm / SCALE).to_string()),
                ("max_ratio", (bdi.max_ppm / SCALE).to_string()),
                ("min_ratio_fine", bdi.min_ppm.to_string()),
                ("max_ratio_fine", bdi.max_ppm.to_string()),
                ("max_bytes", (threshold * bdi.max_ppm / WHOLE * PAGE_BYTES).to_string()),
                ("strict_limit", u64::from(bdi.is_strict).to_string()),
            ] {
                put(folder.join(name), value);
            }
        }
        for (name, value) in [
            ("dirty_bytes", state.limit.bytes),
            ("dirty_ratio", state.limit.ratio),
            ("dirty_background_bytes", state.background.bytes),
            ("dirty_background_ratio", state.background.ratio),
        ] {
            put(self.root.vm_sysctl(name), value.to_string());
        }
    }

    /// Below the root.
    fn inside(&self, path: &Path) -> String {
        let root = self.root.join(Path::new("/"));
        path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()
    }
}

impl Surface for Kernel {
    fn write(&self, target: &Target, value: u64) -> io::Result<()> {
        let path = self.inside(target.path);
        let event = {
            let mut inner = self.inner.borrow_mut();
            let n = inner.writes;
            inner.writes += 1;
            inner.events.remove(&n)
        };
        match &event {
            Some(Event::Dies { after: false }) => std::panic::resume_unwind(Box::new(Died)),
            Some(Event::Vanishes(dev)) => self.unregister(*dev),
            _ => {}
        }
        // An open attribute is that of its instance.
        let is_this = |there: fs::Metadata| there.ino() == target.file.metadata().unwrap().ino();
        if !fs::metadata(target.path).is_ok_and(is_this) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        let result = self.store(&path, &format!("{value}\n"), true);
        match event {
            Some(Event::Dies { after: true }) => std::panic::resume_unwind(Box::new(Died)),
            // What it wants may be refused, as anybody's.
            Some(Event::Foreign { path, text }) => drop(self.echo(&path, &text)),
            _ => {}
        }
        result
    }
}

impl State {
    fn threshold_pages(&self, dirtyable: u64) -> u64 {
        match self.limit.bytes {
            0 => self.limit.ratio * dirtyable / 100,
            bytes => bytes.div_ceil(PAGE_BYTES),
        }
    }

    fn set_vm(&mut self, name: &str, text: &str) -> Answer {
        // Unlike attributes, sysctls take blanks around a number.
        let value = number(text.trim_ascii(), u64::MAX).map_err(|_| libc::EINVAL)?;
        let (limit, half) = match name {
            "dirty_bytes" | "dirty_ratio" => (&mut self.limit, &name["dirty_".len()..]),
            "dirty_background_bytes" | "dirty_background_ratio" => {
                (&mut self.background, &name["dirty_background_".len()..])
            }
            _ => return Err(libc::ENOENT),
        };
        let (range, is_background) = match (name, half) {
            ("dirty_bytes", _) => (2 * PAGE_BYTES..=u64::MAX, false),
            (_, "bytes") => (1..=u64::MAX, true),
            (name, _) => (0..=100, name != "dirty_ratio"),
        };
        if !range.contains(&value) {
            return Err(libc::EINVAL);
        }
        let before = *limit;
        match half {
            "bytes" => limit.bytes = value,
            _ => limit.ratio = value,
        }
        // The limit itself parts with its other half only when the value is another one; the background at each write.
        if is_background || *limit != before {
            match half {
                "bytes" => limit.ratio = 0,
                _ => limit.bytes = 0,
            }
        }
        Ok(())
    }

    fn set_bdi(&mut self, dev: Dev, attribute: &str, text: &str, threshold: u64, dirtyable: u64) -> Answer {
        let minima: u64 = self.bdis.values().map(|bdi| bdi.min_ppm).sum();
        let bdi = self.bdis.get_mut(&dev).ok_or(libc::ENOENT)?;
        let unsigned = || number(text, u64::from(u32::MAX));
        match attribute {
            "read_ahead_kb" => bdi.ra_pages = number(text, u64::MAX)? / PAGE_KIB,
            "min_ratio" => bdi.set_min(unsigned()?.saturating_mul(SCALE), minima)?,
            "min_ratio_fine" => bdi.set_min(unsigned()?, minima)?,
            "max_ratio" => bdi.set_max(unsigned()?.saturating_mul(SCALE))?,
            "max_ratio_fine" => bdi.set_max(unsigned()?)?,
            "max_bytes" => {
                let pages = number(text, u64::MAX)? / PAGE_BYTES;
                if pages > dirtyable || threshold == 0 {
                    return Err(libc::EINVAL);
                }
                bdi.set_max(pages * WHOLE / threshold)?;
            }
            "strict_limit" => match unsigned()? {
                n @ 0..=1 => bdi.is_strict = n == 1,
                _ => return Err(libc::EINVAL),
            },
            _ => return Err(libc::ENOENT),
        }
        Ok(())
    }
}

impl Bdi {
    /// `__bdi_set_min_ratio`; `minima`: the sum of all devices.
    fn set_min(&mut self, ppm: u64, minima: u64) -> Answer {
        let is_lower = ppm < self.min_ppm;
        if ppm > WHOLE || ppm > self.max_ppm || !is_lower && minima - self.min_ppm + ppm >= WHOLE {
            return Err(libc::EINVAL);
        }
        self.min_ppm = ppm;
        Ok(())
    }

    fn set_max(&mut self, ppm: u64) -> Answer {
        if ppm > WHOLE || ppm < self.min_ppm {
            return Err(libc::EINVAL);
        }
        self.max_ppm = ppm;
        Ok(())
    }
}

/// `kstrtoull` of base 10: a plus may stand before, one newline behind, and nothing else.
fn number(text: &str, most: u64) -> Result<u64, i32> {
    let digits = text.strip_suffix('\n').unwrap_or(text);
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(libc::EINVAL);
    }
    let value: u64 = digits.parse().map_err(|_| libc::ERANGE)?;
    if value > most {
        return Err(libc::ERANGE);
    }
    Ok(value)
}
