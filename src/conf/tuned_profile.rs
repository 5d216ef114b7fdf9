//! What a profile of TuneD sets of the machine's dirty limits, see tuned.conf(5).

use configparser::ini::Ini;

/// The profiles that this one builds upon, in order.
pub fn includes(text: &str) -> Vec<String> {
    let value = read(text).and_then(|ini| ini.get("main", "include"));
    let names = value.unwrap_or_default();
    names
        .split([',', ' '])
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The line and value of one of `dirty_bytes`, `dirty_ratio`, ...: of the [vm] plugin, or of the [sysctl] plugin.
pub fn setting(text: &str, name: &str) -> Option<(u32, String)> {
    let ini = read(text)?;
    let sysctl = format!("vm.{name}");
    for (section, key) in [("sysctl", sysctl.as_str()), ("vm", name)] {
        if let Some(value) = ini.get(section, key) {
            return Some((line_of(text, section, key), value));
        }
    }
    None
}

fn read(text: &str) -> Option<Ini> {
    let mut ini = Ini::new_cs();
    ini.read(text.to_owned()).ok()?;
    Some(ini)
}

/// The reader keeps no places. 0: not found, which a value that spans lines may cause.
fn line_of(text: &str, section: &str, key: &str) -> u32 {
    let mut at = "";
    for (line, n) in text.lines().zip(1u32..) {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            at = name.trim();
        }
        let name = line.split(['=', ':']).next().unwrap_or_default().trim();
        if at == section && name == key {
            return n;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "# a comment\n[main]\nsummary=x\ninclude=base, other\n\n[vm]\ndirty_ratio = 40\n\n[sysctl]\nvm.dirty_background_ratio=10 # some\nvm.swappiness=10\n";

    #[test]
    fn both_plugins() {
        assert_eq!(includes(PROFILE), ["base", "other"]);
        assert_eq!(setting(PROFILE, "dirty_ratio").map(|(line, _)| line), Some(7));
        assert_eq!(
            setting(PROFILE, "dirty_background_ratio").map(|(line, _)| line),
            Some(10)
        );
        assert_eq!(setting(PROFILE, "dirty_bytes"), None);
        assert_eq!(includes(""), Vec::<String>::new());
    }
}
