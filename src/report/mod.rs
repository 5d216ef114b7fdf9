//! What people see.

pub mod escape;
