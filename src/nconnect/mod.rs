//! Decision 3: how many connections. Pure: text and numbers in, plain values out.

pub mod sweep;
