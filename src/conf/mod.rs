//! What the admin wants.

mod files;
pub mod grammar;
mod lookup;
mod order;

pub use files::{load, Assignment, Conf, Keep, Location, Warning};
pub use grammar::WarningKind;
pub use lookup::Resolved;
