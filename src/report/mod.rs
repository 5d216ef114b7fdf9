//! What people see.

pub mod escape;
pub mod metrics;
pub mod openmetrics;
pub mod table;
