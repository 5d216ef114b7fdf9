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
    /// `vm.dirty`, `vm.dirty_background`: bytes and ratio are one knob, because writing one sets the other to 0.
    Vm(Threshold),
}

/// A limit of the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Threshold {
    /// Where flushing begins.
    Background,
    /// Where writers are held.
    Limit,
}

impl Threshold {
    pub const ALL: [Threshold; 2] = [Threshold::Background, Threshold::Limit];

    fn name(self) -> &'static str {
        match self {
            Threshold::Background => "dirty_background",
            Threshold::Limit => "dirty",
        }
    }

    /// Percent of dirtyable memory.
    fn default_ratio(self) -> u64 {
        match self {
            Threshold::Background => 10,
            Threshold::Limit => 20,
        }
    }
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

/// What a knob shows or is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    Number(u64),
    /// Percent of dirtyable memory.
    Ratio(u64),
    Bytes(u64),
}

impl Value {
    pub fn number(self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(number),
            Value::Ratio(_) | Value::Bytes(_) => None,
        }
    }

    /// As the text of a value says it.
    pub fn parse(text: &[u8]) -> Option<Value> {
        if let Some(ratio) = text.strip_suffix(b"%") {
            return decimal(ratio).map(Value::Ratio);
        }
        match text.strip_suffix(b"B") {
            Some(bytes) => decimal(bytes).map(Value::Bytes),
            None => decimal(text).map(Value::Number),
        }
    }
}

impl Knob {
    /// None: no knob that is known here.
    pub fn parse(text: &[u8]) -> Option<Knob> {
        if let Some(name) = text.strip_prefix(b"vm.") {
            let is = |threshold: &Threshold| {
                let tail = name.strip_prefix(threshold.name().as_bytes());
                tail.is_some_and(|tail| matches!(tail, b"" | b"_bytes" | b"_ratio"))
            };
            return Threshold::ALL.into_iter().find(is).map(Knob::Vm);
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
            Knob::Vm(threshold) => Value::Ratio(threshold.default_ratio()),
        }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Knob::Bdi { dev, attribute } => write!(f, "{dev}/{}", attribute.name()),
            Knob::Vm(threshold) => write!(f, "vm.{}", threshold.name()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Ratio(ratio) => write!(f, "{ratio}%"),
            Value::Bytes(bytes) => write!(f, "{bytes}B"),
        }
    }
}

/// What a knob shows now. None: there is no such knob (a device that has gone, an older kernel), or it shows no number.
pub fn read(root: &Root, knob: Knob) -> Result<Option<Value>> {
    match knob {
        Knob::Bdi { dev, attribute } => Ok(number(attribute_path(root, dev, attribute))?.map(Value::Number)),
        Knob::Vm(threshold) => {
            let [bytes, ratio] = threshold_paths(root, threshold);
            Ok(match (number(bytes)?, number(ratio)?) {
                (Some(0), Some(ratio)) => Some(Value::Ratio(ratio)),
                (Some(bytes), Some(_)) => Some(Value::Bytes(bytes)),
                _ => None,
            })
        }
    }
}

/// The knob's files: those that tell of a write.
pub fn paths(root: &Root, knob: Knob) -> Vec<PathBuf> {
    match knob {
        Knob::Bdi { dev, attribute } => vec![attribute_path(root, dev, attribute)],
        Knob::Vm(threshold) => threshold_paths(root, threshold).into(),
    }
}

/// The attribute's file.
pub fn attribute_path(root: &Root, dev: Dev, attribute: Attribute) -> PathBuf {
    root.bdi(&dev.to_string()).join(attribute.name())
}

/// Bytes and ratio.
pub fn threshold_paths(root: &Root, threshold: Threshold) -> [PathBuf; 2] {
    ["bytes", "ratio"].map(|twin| root.vm_sysctl(&format!("{}_{twin}", threshold.name())))
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
        assert_eq!(
            Knob::parse(b"vm.dirty_background_ratio"),
            Some(Knob::Vm(Threshold::Background))
        );
        assert_eq!(Knob::parse(b"vm.dirty_bytes"), Some(Knob::Vm(Threshold::Limit)));
        for text in ["0", "128", "20%", "0%", "8192B"] {
            assert_eq!(Value::parse(text.as_bytes()).unwrap().to_string(), text);
        }
        for bad in [
            "",
            "0:51",
            "0:51/",
            "0:51/max_ratio",
            "0:51/../x",
            "vm.",
            "vm.swappiness",
            "vm.dirty_expire_centisecs",
            "vm.dirty_bytes_",
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
        assert_eq!(read(&root, Knob::Vm(Threshold::Limit)).unwrap(), None);
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
        assert_eq!(read(&root, Knob::Vm(Threshold::Limit)).unwrap(), Some(Value::Ratio(20)));
        assert_eq!(
            read(&root, Knob::Vm(Threshold::Background)).unwrap(),
            Some(Value::Bytes(8192))
        );
    }
}
