//! What the admin wants.

pub mod check;
pub mod contest;
mod files;
pub mod fstab;
pub mod grammar;
mod lookup;
mod order;
pub mod policy;
pub mod regular;
pub mod scope;
pub mod value;

pub use files::{load, Assignment, Conf, Keep, Location, Warning};
pub use grammar::WarningKind;
pub use lookup::Resolved;
