//! Decision 3: how many connections. Pure: text and numbers in, plain values out.

pub mod advice;
pub mod asked;
pub mod live;
pub mod sweep;
pub mod trial;
pub mod watch;
