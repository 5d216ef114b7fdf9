//! The sysctls that configuration files and the kernel's command line set, see sysctl.d(5).

use std::path::Path;
use std::rc::Rc;

use super::scope::matches_part;
use crate::root::PROC_SYS;

/// One line that sets or excludes a sysctl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub line: u32,
    /// With slashes: `vm/dirty_ratio`. May be a pattern.
    pub key: Vec<u8>,
    /// None: no pattern sets it (`-key` without a value).
    pub value: Option<Vec<u8>>,
}

impl Setting {
    fn is_pattern(&self) -> bool {
        self.key.iter().any(|b| matches!(b, b'*' | b'?' | b'['))
    }

    /// Does the line name this sysctl itself?
    fn is(&self, key: &[u8]) -> bool {
        self.key == key
    }

    fn matches(&self, key: &[u8]) -> bool {
        let (pattern, key) = (self.key.split(|b| *b == b'/'), key.split(|b| *b == b'/'));
        pattern.clone().count() == key.clone().count()
            && pattern.zip(key).all(|(pattern, part)| matches_part(pattern, part))
    }
}

/// The settings of a file, in its order. What is not understood is passed over, as systemd-sysctl does.
pub fn parse(text: &[u8]) -> Vec<Setting> {
    let lines = text.split(|b| *b == b'\n').zip(1u32..);
    lines.filter_map(|(text, line)| setting(text, line)).collect()
}

fn setting(text: &[u8], line: u32) -> Option<Setting> {
    let text = text.trim_ascii();
    if matches!(text.first()?, b'#' | b';') {
        return None;
    }
    let (key, value) = match text.iter().position(|b| *b == b'=') {
        // With a value the dash says that a failure does not matter.
        Some(equals) => (
            text[..equals].strip_prefix(b"-").unwrap_or(&text[..equals]),
            Some(text[equals + 1..].trim_ascii().to_vec()),
        ),
        None => (text.strip_prefix(b"-")?, None),
    };
    Some(Setting {
        line,
        key: with_slashes(key.trim_ascii()),
        value,
    })
}

/// The first separator decides which of dot and slash parts the names; the other one is then a part of a name.
fn with_slashes(key: &[u8]) -> Vec<u8> {
    let key = key.strip_prefix(PROC_SYS.as_bytes()).unwrap_or(key);
    match key.iter().find(|b| matches!(b, b'.' | b'/')) {
        Some(b'.') => {
            let swap = |b: &u8| match b {
                b'.' => b'/',
                b'/' => b'.',
                other => *other,
            };
            key.iter().map(swap).collect()
        }
        _ => key.to_vec(),
    }
}

/// The setting of `key` that is in force, of those of all files in their order: the last that names it, or else the last
/// pattern that takes it in, unless it is excluded from patterns.
pub fn in_force<'a>(settings: &'a [(Rc<Path>, Setting)], key: &[u8]) -> Option<&'a (Rc<Path>, Setting)> {
    let named = settings
        .iter()
        .rfind(|(_, setting)| setting.is(key) && setting.value.is_some());
    if named.is_some() {
        return named;
    }
    let is_excluded = settings
        .iter()
        .any(|(_, setting)| setting.is(key) && setting.value.is_none());
    let by_pattern = || {
        settings
            .iter()
            .rfind(|(_, setting)| setting.value.is_some() && setting.is_pattern() && setting.matches(key))
    };
    if is_excluded {
        None
    } else {
        by_pattern()
    }
}

/// `sysctl.vm.dirty_ratio=5` on the kernel's command line (kernel: fs/proc/proc_sysctl.c `process_sysctl_arg`).
pub fn parse_cmdline(text: &[u8]) -> Vec<Setting> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let settings = words.filter_map(|word| {
        let rest = word
            .strip_prefix(b"sysctl.")
            .or_else(|| word.strip_prefix(b"sysctl/"))?;
        let equals = rest.iter().position(|b| *b == b'=')?;
        Some(Setting {
            line: 1,
            key: with_slashes(&rest[..equals]),
            value: Some(rest[equals + 1..].to_vec()),
        })
    });
    settings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, key: &str) -> Option<u32> {
        let file: Rc<Path> = Path::new("/x").into();
        let all: Vec<_> = parse(text.as_bytes())
            .into_iter()
            .map(|setting| (file.clone(), setting))
            .collect();
        in_force(&all, key.as_bytes()).map(|(_, setting)| setting.line)
    }

    #[test]
    fn spellings_of_a_key() {
        for text in [
            "vm.dirty_ratio=5",
            " vm/dirty_ratio = 5 ",
            "-vm.dirty_ratio=5",
            "/proc/sys/vm/dirty_ratio=5",
        ] {
            assert_eq!(found(text, "vm/dirty_ratio"), Some(1), "{text}");
        }
        for text in [
            "#vm.dirty_ratio=5",
            ";vm.dirty_ratio=5",
            "vm.dirty_ratio",
            "vm.dirty_ratio2=5",
            "-vm.dirty_ratio",
            "",
            "=",
        ] {
            assert_eq!(found(text, "vm/dirty_ratio"), None, "{text}");
        }
        assert_eq!(
            with_slashes(b"net.ipv4.conf.enp3s0/200.forwarding"),
            b"net/ipv4/conf/enp3s0.200/forwarding"
        );
        assert_eq!(
            with_slashes(b"net/ipv4/conf/enp3s0.200/forwarding"),
            b"net/ipv4/conf/enp3s0.200/forwarding"
        );
    }

    #[test]
    fn the_last_that_names_it_wins_and_patterns_come_after() {
        assert_eq!(
            found("vm.dirty_ratio=5\nvm.dirty_ratio=6\nvm.dirty_*=7", "vm/dirty_ratio"),
            Some(2)
        );
        assert_eq!(found("vm.dirty_*=7\nvm.*=8", "vm/dirty_ratio"), Some(2));
        assert_eq!(found("vm.dirty_*=7\n-vm.dirty_ratio", "vm/dirty_ratio"), None);
        assert_eq!(found("vm.dirty_*=7\n-vm.dirty_ratio", "vm/dirty_bytes"), Some(1));
        assert_eq!(found("*=7\nvm.*.x=7", "vm/dirty_bytes"), None);
    }

    #[test]
    fn the_command_line() {
        let settings =
            parse_cmdline(b"BOOT_IMAGE=/x ro sysctl.vm.dirty_ratio=5 sysctl/vm/dirty_bytes=6 sysctl.x quiet\n");
        assert_eq!(settings.len(), 2);
        assert_eq!(
            (&*settings[0].key, settings[0].value.as_deref()),
            (&b"vm/dirty_ratio"[..], Some(&b"5"[..]))
        );
        assert_eq!(settings[1].key, b"vm/dirty_bytes");
    }
}
