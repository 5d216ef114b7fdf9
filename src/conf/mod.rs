//! What the admin wants.

pub mod check;
pub mod contest;
pub mod drop_ins;
mod files;
pub mod finding;
pub mod fstab;
pub mod grammar;
pub mod knob_owner;
mod lookup;
pub mod nfsmount;
pub mod options;
mod order;
pub mod owners;
pub mod policy;
pub mod regular;
pub mod rule_lint;
pub mod scope;
pub mod section;
pub mod settings;
pub mod sysctl;
pub mod tuned;
#[cfg(feature = "state")]
pub mod tuned_profile;
pub mod udev_rules;
pub mod udev_scope;
pub mod value;

pub use files::{load, Assignment, Conf, Keep, Location, Warning};
pub use grammar::WarningKind;
pub use lookup::Resolved;
