//! Would more connections help, from watching mounts at work? Pure.
//!
//! Two moments of a client → a window ([`window`]) → what holds it up ([`rules`]) → ten busy windows ([`history`]) → advice
//! ([`crate::nconnect::advice`]).

pub mod history;
pub mod rules;
pub mod window;
