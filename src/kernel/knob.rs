//! What can be turned: the attributes of a backing device, and the machine's dirty limits.
//! (kernel: mm/backing-dev.c; mm/page-writeback.c `vm_page_writeback_sysctls`)

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::decimal::decimal;
use crate::error::{Error, Result};
use crate::kernel::bdi::{has_gone, Dev};
use crate::kernel::read_small;
use crate::root::Root;

/// One thing to turn. Its text is what admins type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// `0:51/max_ratio_fine`
    Bdi { dev: Dev, attribute: Attribute },
    /// `vm.dirty`: the four halves are one knob, because writing one of a pair sets its twin to 0.
    VmDirty,
}

/// An attribute of a backing device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// KiB, since 2.6.26. The kernel rounds down to pages.
    ReadAheadKib,
    /// Parts per million of the machine's threshold, 0..1000000, since 6.2; at most the maximum.
    MinRatioFine,
    /// Likewise; at least the minimum.
    MaxRatioFine,
    /// 0 or 1, since 6.2: without it the other two limit nothing while the machine is below its own limit.
    StrictLimit,
}

impl Attribute {
    pub const ALL: [Attribute; 4] = [
        Attribute::ReadAheadKib,
        Attribute::MinRatioFine,
        Attribute::MaxRatioFine,
        Attribute::StrictLimit,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Attribute::ReadAheadKib => "read_ahead_kb",
            Attribute::MinRatioFine => "min_ratio_fine",
            Attribute::MaxRatioFine => "max_ratio_fine",
            Attribute::StrictLimit => "strict_limit",
        }
    }

    /// What a new device has.
    pub fn boot_default(self) -> u64 {
        match self {
            Attribute::ReadAheadKib => 128,
            Attribute::MinRatioFine | Attribute::StrictLimit => 0,
            Attribute::MaxRatioFine => 1_000_000,
        }
    }
}

/// The four sysctls `vm.dirty_*`. Of each pair one is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VmDirty {
    pub bytes: u64,
    pub background_bytes: u64,
    /// Percent of dirtyable memory.
    pub ratio: u64,
    pub background_ratio: u64,
}

impl VmDirty {
    pub const BOOT_DEFAULT: VmDirty = VmDirty {
        bytes: 0,
        background_bytes: 0,
        ratio: 20,
        background_ratio: 10,
    };
}

/// What a knob shows or is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    Number(u64),
    Dirty(VmDirty),
}

impl Value {
    pub fn number(self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(number),
            Value::Dirty(_) => None,
        }
    }
}

impl Knob {
    /// None: no knob that is known here.
    pub fn parse(text: &[u8]) -> Option<Knob> {
        if let Some(name) = text.strip_prefix(b"vm.") {
            let is_one = [
                "dirty",
                "dirty_bytes",
                "dirty_ratio",
                "dirty_background_bytes",
                "dirty_background_ratio",
            ]
            .iter()
            .any(|known| known.as_bytes() == name);
            return is_one.then_some(Knob::VmDirty);
        }
        let slash = text.iter().position(|b| *b == b'/')?;
        Some(Knob::Bdi {
            dev: Dev::parse(&text[..slash])?,
            attribute: Attribute::ALL
                .into_iter()
                .find(|attribute| attribute.name().as_bytes() == &text[slash + 1..])?,
        })
    }

    pub fn boot_default(self) -> Value {
        match self {
            Knob::Bdi { attribute, .. } => Value::Number(attribute.boot_default()),
            Knob::VmDirty => Value::Dirty(VmDirty::BOOT_DEFAULT),
        }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Knob::Bdi { dev, attribute } => write!(f, "{dev}/{}", attribute.name()),
            Knob::VmDirty => f.write_str("vm.dirty"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = |f: &mut fmt::Formatter<'_>, bytes: u64, ratio: u64| match bytes {
            0 => write!(f, "{ratio}%"),
            _ => write!(f, "{bytes}"),
        };
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Dirty(dirty) => {
                half(f, dirty.bytes, dirty.ratio)?;
                f.write_str("/")?;
                half(f, dirty.background_bytes, dirty.background_ratio)
            }
        }
    }
}

/// What a knob shows now. None: there is no such knob (a device that has gone, an older kernel), or it shows no number.
pub fn read(root: &Root, knob: Knob) -> Result<Option<Value>> {
    match knob {
        Knob::Bdi { dev, attribute } => Ok(number(attribute_path(root, dev, attribute))?.map(Value::Number)),
        Knob::VmDirty => Ok(vm_dirty(root)?.map(Value::Dirty)),
    }
}

/// The attribute's file.
pub fn attribute_path(root: &Root, dev: Dev, attribute: Attribute) -> PathBuf {
    root.bdi(&dev.to_string()).join(attribute.name())
}

/// All four, or None.
pub fn vm_dirty(root: &Root) -> Result<Option<VmDirty>> {
    let read = |name: &str| number(root.vm_sysctl(name));
    let all = (
        read("dirty_bytes")?,
        read("dirty_background_bytes")?,
        read("dirty_ratio")?,
        read("dirty_background_ratio")?,
    );
    let (Some(bytes), Some(background_bytes), Some(ratio), Some(background_ratio)) = all else {
        return Ok(None);
    };
    Ok(Some(VmDirty {
        bytes,
        background_bytes,
        ratio,
        background_ratio,
    }))
}

fn number(path: PathBuf) -> Result<Option<u64>> {
    match read_small(&path, 64) {
        Ok(text) => Ok(decimal(text.trim_ascii())),
        Err(e) if has_gone(&e) || e.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(e) => Err(Error::io("read", path)(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_is_read_as_it_is_written() {
        for text in [
            "0:51/read_ahead_kb",
            "0:51/max_ratio_fine",
            "4095:0/strict_limit",
            "vm.dirty",
        ] {
            assert_eq!(Knob::parse(text.as_bytes()).unwrap().to_string(), text);
        }
        assert_eq!(Knob::parse(b"vm.dirty_background_ratio"), Some(Knob::VmDirty));
        for bad in [
            "",
            "0:51",
            "0:51/",
            "0:51/max_ratio",
            "0:51/../x",
            "vm.",
            "vm.swappiness",
            "/0:51/strict_limit",
            "btrfs-1/strict_limit",
        ] {
            assert_eq!(Knob::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn what_is_not_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let knob = Knob::parse(b"0:51/strict_limit").unwrap();
        assert_eq!(read(&root, knob).unwrap(), None);
        assert_eq!(read(&root, Knob::VmDirty).unwrap(), None);
        std::fs::create_dir_all(root.bdi("0:51")).unwrap();
        std::fs::write(root.bdi("0:51").join("strict_limit"), "1\n").unwrap();
        assert_eq!(read(&root, knob).unwrap(), Some(Value::Number(1)));
        std::fs::create_dir_all(root.vm_sysctl("x").parent().unwrap()).unwrap();
        for (name, text) in [
            ("dirty_bytes", "0"),
            ("dirty_background_bytes", "8192"),
            ("dirty_ratio", "20"),
            ("dirty_background_ratio", "0"),
        ] {
            std::fs::write(root.vm_sysctl(name), format!("{text}\n")).unwrap();
        }
        assert_eq!(read(&root, Knob::VmDirty).unwrap().unwrap().to_string(), "20%/8192");
    }
}
