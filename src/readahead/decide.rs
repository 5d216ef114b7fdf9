//! A device, its mounts and the policy → a value and the reason for it.

use crate::conf::policy::{Policy, Wish};
use crate::conf::value::{Value, MAX_KIB};
use crate::kernel::mountinfo::{Mount, Version};
use crate::kernel::vm::Memory;
use crate::readahead::auto;
use crate::readahead::measure::Measured;

/// What is known about one device.
#[derive(Debug, Clone, Copy)]
pub struct Device<'a> {
    pub version: Version,
    /// All its mounts, the oldest first. Empty while (or because) none can be seen.
    pub mounts: &'a [Mount],
    /// `read_ahead_kb` as it stood before this program touched it.
    pub now_kib: Option<u64>,
    /// The path to its server, where it has been watched for long enough.
    pub measured: Option<Measured>,
}

/// What is known about the machine.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    pub page_kib: u64,
    pub memory: Option<Memory>,
    pub is_cloud: bool,
}

/// What to do, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub action: Action,
    /// File, line and rule; or why there is nothing to do.
    pub reason: String,
    /// What an admin has to be told beside it, one line each.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// `read_ahead_kb` in KiB, a whole number of pages.
    Set(u64),
    /// Hands off.
    Leave,
}

/// The kernel's default since 5.4 (include/linux/mm.h `VM_READAHEAD_PAGES`).
const KERNEL_DEFAULT_KIB: u64 = 128;

/// The value for a device: that of the mount whose wish is the strongest, and a word to those that lose.
pub fn decide(policy: &Policy, device: &Device, machine: &Machine) -> Decision {
    let Some(contest) = policy.contest(device.mounts, device.version) else {
        return by_version(policy, device, machine);
    };
    let mut decision = with_mount(contest.won, contest.winner, device, machine);
    let losers = contest.losers.iter();
    decision
        .notes
        .extend(losers.map(|(mount, lost)| contest.tell(mount, lost)));
    decision
}

/// The value for a device by its version alone: right at once, and final where no rule needs the mount.
pub fn by_version(policy: &Policy, device: &Device, machine: &Machine) -> Decision {
    match policy.wish_by_version(device.version) {
        None => leave("nothing is configured for it"),
        Some(wish) => match wish.value {
            Value::Kib(kib) => set(kib, wish, machine, wish.to_string()),
            Value::Leave => leave(wish),
            Value::TimesRsize(_) | Value::Auto => {
                leave(format_args!("{wish}: needs the mount, which is not to be seen"))
            }
        },
    }
}

fn with_mount(wish: &Wish, mount: &Mount, device: &Device, machine: &Machine) -> Decision {
    let kib = match wish.value {
        Value::Kib(kib) => return set(kib, wish, machine, wish.to_string()),
        Value::Leave => return leave(wish),
        Value::TimesRsize(n) => mount.rsize_kib().map(|rsize| rsize.saturating_mul(n)),
        Value::Auto => mount.rsize_kib().map(|rsize_kib| {
            let inputs = auto::Inputs {
                rsize_kib,
                memory: machine.memory,
                connections: mount.connections(),
                is_cloud: machine.is_cloud,
                measured: device.measured,
                is_nfs_root: device.mounts.iter().any(|m| m.mount_point.as_deref() == Some(b"/")),
            };
            auto::readahead_kib(&inputs, machine.page_kib)
        }),
    };
    let Some(kib) = kib else {
        return leave(format_args!("{wish}: the mount does not say its rsize"));
    };
    if let Some(now) = device.now_kib.filter(|now| !is_default_or_rule(*now, mount)) {
        if now != kib {
            return leave(format_args!(
                "{wish}: {kib}, but {now} was set by somebody else; a rule takes the place of the kernel's value only"
            ));
        }
    }
    let mut reason = match mount.rsize_kib() {
        Some(rsize) => format!("{wish}, rsize {rsize} KiB"),
        None => wish.to_string(),
    };
    if let Some(measured) = device.measured.filter(|_| wish.value == Value::Auto) {
        reason.push_str(&format!(", {measured}"));
    }
    set(kib, wish, machine, reason)
}

/// May a rule such as `15*rsize` replace this value? The kernel's own values may go: 128 KiB, and on kernels before 5.4
/// 15 × rsize; and what such a rule has set before, several rsize. Anything else somebody has chosen for this mount.
fn is_default_or_rule(now_kib: u64, mount: &Mount) -> bool {
    let is_multiple = |rsize: u64| rsize > 0 && now_kib > rsize && now_kib % rsize == 0;
    now_kib == KERNEL_DEFAULT_KIB || mount.rsize_kib().is_some_and(is_multiple)
}

fn set(kib: u64, wish: &Wish, machine: &Machine, reason: String) -> Decision {
    let bounded = kib.min(MAX_KIB);
    // As the kernel does (mm/backing-dev.c read_ahead_kb_store), so that what is written is what is read back.
    let whole = bounded - bounded % machine.page_kib;
    let mut notes = Vec::new();
    if bounded < kib {
        notes.push(format!("{}: {kib} KiB is above 64 MiB; 64 MiB it is", wish.at));
    }
    if whole == 0 {
        notes.push(match kib {
            0 => format!("{}: 0 switches readahead off", wish.at),
            _ => format!(
                "{}: {kib} KiB is less than a page of {} KiB; not used",
                wish.at, machine.page_kib
            ),
        });
        if kib != 0 {
            return Decision { notes, ..leave(wish) };
        }
    }
    Decision {
        action: Action::Set(whole),
        reason,
        notes,
    }
}

fn leave(reason: impl ToString) -> Decision {
    Decision {
        action: Action::Leave,
        reason: reason.to_string(),
        notes: Vec::new(),
    }
}
