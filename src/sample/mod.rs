//! One look at the machine, as a plain value: what decisions are made from.
pub mod activity;
