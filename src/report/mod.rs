//! What people see.

pub mod escape;
pub mod table;
