//! What `nfstune config check` finds: everything in the configuration that does not do what it seems to say.

use crate::conf::finding::Finding;
use crate::conf::policy::Policy;
use crate::conf::scope::Scope;
use crate::conf::tuned::Tuned;
use crate::conf::value::Value;
use crate::conf::{Conf, Location};
use crate::kernel::bdi::Dev;
use crate::kernel::mountinfo::Mount;
use crate::report::escape::{escape, escape_path};

fn at(at: &Location, kind: &'static str, text: String) -> Finding {
    Finding::at(kind, &at.file, Some(at.line), text)
}

/// All findings, by file and line. `mounts`: the NFS mounts of this host, the oldest first; None where there is no mount
/// table to compare with.
pub fn check(conf: &Conf, policy: &Policy, tuned: &Tuned, mounts: Option<&[Mount]>) -> Vec<Finding> {
    let mut found: Vec<Finding> = conf
        .warnings
        .iter()
        .map(|warning| Finding {
            kind: warning.kind.name(),
            file: escape_path(&warning.file),
            line: warning.line,
            text: warning.reason(),
        })
        .collect();
    let problems = policy.problems.iter().chain(&tuned.problems);
    found.extend(problems.map(|problem| at(&problem.at, problem.kind.name(), problem.text.clone())));
    found.extend(read_otherwise(policy));
    if let Some(mounts) = mounts {
        found.extend(without_mount(policy, tuned, mounts));
        found.extend(shared_devices(policy, mounts));
    }
    found.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    found
}

/// Values that nfs-utils' own program would take for another number. It does not see the sub-sections.
fn read_otherwise(policy: &Policy) -> Vec<Finding> {
    let keys = &policy.by_version;
    let wishes = [&keys.nfs, &keys.nfs4, &keys.default].into_iter().flatten();
    wishes
        .filter_map(|wish| {
            let theirs = nfs_utils_number(&wish.text);
            let is_same = match wish.value {
                Value::Kib(kib) => u64::try_from(theirs) == Ok(kib),
                _ => false,
            };
            (!is_same).then(|| {
                let text = format!(
                    "{}={}: nfs-utils' nfsrahead would read {theirs}",
                    wish.rule,
                    escape(&wish.text)
                );
                at(&wish.at, "nfs-utils-differs", text)
            })
        })
        .collect()
}

/// How nfs-utils reads a number: leading blanks, a sign, digits up to the first other character, none of them is 0, cut
/// down to 32 bits.
fn nfs_utils_number(text: &[u8]) -> i32 {
    let text = text.trim_ascii_start();
    let (is_negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|b| b.is_ascii_digit());
    let n = digits.fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')));
    let n = if is_negative { n.saturating_neg() } else { n };
    // The low 32 bits are what a C int keeps of it.
    let [a, b, c, d, ..] = n.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

fn without_mount(policy: &Policy, tuned: &Tuned, mounts: &[Mount]) -> Vec<Finding> {
    let of_policy = policy.rules.iter().map(|rule| (&rule.scope, &rule.at, &rule.title));
    let of_limits = tuned.limits.iter().map(|rule| (&rule.scope, &rule.at, &rule.title));
    of_policy
        .chain(of_limits)
        .filter(|(scope, ..)| !matches!(scope, Scope::Fstab { .. }))
        .filter(|(scope, ..)| !mounts.iter().any(|mount| scope.covers(mount)))
        .map(|(_, place, title)| at(place, "no-mount", format!("{title} matches no present mount")))
        .collect()
}

/// Readahead belongs to the superblock: of several mounts that share one, only one gets what it wants.
fn shared_devices(policy: &Policy, mounts: &[Mount]) -> Vec<Finding> {
    let mut devices: Vec<Dev> = mounts.iter().map(|mount| mount.dev).collect();
    devices.sort_unstable();
    devices.dedup();
    let mut found = Vec::new();
    for dev in devices {
        let sharing: Vec<_> = mounts.iter().filter(|mount| mount.dev == dev).cloned().collect();
        let Some(contest) = policy.contest(&sharing, sharing[0].version()) else {
            continue;
        };
        for (mount, lost) in &contest.losers {
            found.push(at(&lost.at, "shared-device", contest.tell(mount, lost)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_nfs_utils_reads_them() {
        for (text, read) in [
            ("42", 42),
            (" +7", 7),
            ("-5", -5),
            ("0x400", 0),
            ("010", 10),
            ("abc", 0),
            ("1M", 1),
            ("15*rsize", 15),
            ("2147483648", i32::MIN),
            ("4294967295", -1),
            ("4294967296", 0),
            ("99999999999", 1_215_752_191),
            ("99999999999999999999", -1),
        ] {
            assert_eq!(nfs_utils_number(text.as_bytes()), read, "{text}");
        }
    }
}
