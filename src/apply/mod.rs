//! The only code that writes: to the kernel, and files; and the lock that tells one writer of another.

pub mod change;
pub mod ledger;
pub mod lock;
pub mod replace;
pub mod requests;
pub mod surface;
