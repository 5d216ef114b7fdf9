//! May a udev rule apply to the backing device of an NFS mount? Such a device is `0:MINOR` of subsystem bdi, without parents
//! and without a queue. What cannot be told counts as yes.

use super::udev_rules::{Op, Pair, Rule};

/// What must hold for the rule at `index` to be used: its own conditions, and those of the jumps over it, turned round.
#[derive(Debug)]
pub struct Conditions<'a> {
    pairs: Vec<(&'a Pair, Op)>,
    /// A jump over it that hangs on several conditions, of which one must fail.
    is_guarded: bool,
    is_jumped_over: bool,
}

impl<'a> Conditions<'a> {
    pub fn of(rules: &'a [Rule], index: usize) -> Conditions<'a> {
        let own = rules[index].pairs.iter().filter(|pair| pair.is_match());
        let mut all = Conditions {
            pairs: own.map(|pair| (pair, pair.op)).collect(),
            is_guarded: false,
            is_jumped_over: false,
        };
        for (from, rule) in rules[..index].iter().enumerate().filter(|(_, rule)| !rule.is_broken) {
            let Some(goto) = rule.pairs.iter().find(|pair| pair.is("GOTO")) else {
                continue;
            };
            let is_label = |rule: &Rule| {
                rule.pairs
                    .iter()
                    .any(|pair| pair.is("LABEL") && pair.value == goto.value)
            };
            let label = rules[from + 1..].iter().position(is_label);
            if label.is_none_or(|label| from + 1 + label <= index) {
                continue;
            }
            match &rule.pairs.iter().filter(|pair| pair.is_match()).collect::<Vec<_>>()[..] {
                [] => all.is_jumped_over = true,
                [one] if one.op == Op::Match => all.pairs.push((one, Op::NoMatch)),
                [one] if one.op == Op::NoMatch => all.pairs.push((one, Op::Match)),
                _ => all.is_guarded = true,
            }
        }
        all
    }

    /// Whatever the device, the rule is used.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && !self.is_guarded && !self.is_jumped_over
    }

    pub fn may_be_nfs(&self) -> bool {
        !self.is_jumped_over && self.pairs.iter().all(|(pair, op)| may_hold(pair, *op))
    }
}

fn may_hold(pair: &Pair, op: Op) -> bool {
    let wanted: &[(&[u8], bool)] = match (&pair.key[..], pair.attribute.as_deref()) {
        (b"SUBSYSTEM" | b"SUBSYSTEMS", _) => &[(b"bdi", false)],
        (b"KERNEL", _) => &[(b"0:", true)],
        (b"ACTION", _) => &[(b"add", false), (b"change", false)],
        (b"ATTR", Some(attribute)) if attribute.starts_with(b"queue/") => return op != Op::Match,
        _ => return true,
    };
    let mut patterns = pair.value.split(|b| *b == b'|');
    match op {
        Op::NoMatch => !wanted
            .iter()
            .all(|(name, is_prefix)| patterns.clone().any(|pattern| must_match(pattern, name, *is_prefix))),
        _ => patterns.any(|pattern| {
            wanted
                .iter()
                .any(|(name, is_prefix)| may_match(pattern, name, *is_prefix))
        }),
    }
}

/// May the pattern match `name`, or something that begins with it? Looks as far as the first wildcard.
fn may_match(pattern: &[u8], name: &[u8], is_prefix: bool) -> bool {
    match pattern.iter().position(|b| b"*?[".contains(b)) {
        Some(wildcard) => {
            let literal = &pattern[..wildcard];
            name.starts_with(literal) || (is_prefix && literal.starts_with(name))
        }
        None => pattern == name || (is_prefix && pattern.starts_with(name)),
    }
}

/// Does it match all that begins with `name`?
fn must_match(pattern: &[u8], name: &[u8], is_prefix: bool) -> bool {
    pattern == b"*" || (!is_prefix && pattern == name) || (is_prefix && pattern.strip_suffix(b"*") == Some(name))
}

#[cfg(test)]
mod tests {
    use super::super::udev_rules::parse;
    use super::*;

    fn of_last(text: &str) -> (bool, bool) {
        let rules = parse(text.as_bytes());
        let conditions = Conditions::of(&rules, rules.len() - 1);
        (conditions.may_be_nfs(), conditions.is_empty())
    }

    #[test]
    fn what_is_about_disks_is_not_about_nfs() {
        for (text, may_be_nfs) in [
            ("SUBSYSTEM==\"block\"", false),
            ("SUBSYSTEM==\"block|bdi\"", true),
            ("SUBSYSTEM==\"b*\"", true),
            ("SUBSYSTEM!=\"bdi\"", false),
            ("SUBSYSTEM!=\"block\"", true),
            ("KERNEL==\"sd*[!0-9]|nvme?n*\"", false),
            ("KERNEL==\"[0-9]*:*\"", true),
            ("KERNEL==\"0:5?\"", true),
            ("KERNEL==\"btrfs-*\"", false),
            ("KERNEL!=\"0:*\"", false),
            ("ACTION==\"remove\"", false),
            ("ACTION==\"add|change\"", true),
            ("ACTION!=\"add\"", true),
            ("ATTR{queue/rotational}==\"0\"", false),
            ("SUBSYSTEM!=\"block\", GOTO=\"e\"\nACTION==\"add\"", true),
            ("SUBSYSTEM!=\"block\", GOTO=\"e\"\nA=\"1\"\nLABEL=\"e\"\nB=\"2\"", true),
        ] {
            assert_eq!(of_last(text).0, may_be_nfs, "{text}");
        }
    }

    #[test]
    fn a_jump_is_a_condition() {
        let between = |guard: &str| {
            let text = format!("{guard}GOTO=\"end\"\nATTR{{read_ahead_kb}}=\"1\"\nLABEL=\"end\"");
            let rules = parse(text.as_bytes());
            let conditions = Conditions::of(&rules, 1);
            (conditions.may_be_nfs(), conditions.is_empty())
        };
        assert_eq!(between("SUBSYSTEM!=\"bdi\", "), (true, false));
        assert_eq!(between("SUBSYSTEM!=\"block\", "), (false, false));
        assert_eq!(between("SUBSYSTEM!=\"block\", ACTION!=\"add\", "), (true, false));
        assert_eq!(between(""), (false, false));
        assert_eq!(of_last("ATTR{read_ahead_kb}=\"1\""), (true, true));
    }
}
