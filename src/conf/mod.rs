//! What the admin wants.

mod files;
pub mod fstab;
pub mod grammar;
mod lookup;
mod order;
pub mod policy;
mod regular;
pub mod scope;
pub mod value;

pub use files::{load, Assignment, Conf, Keep, Location, Warning};
pub use grammar::WarningKind;
pub use lookup::Resolved;
