//! The sweep: the data of 2019 with every number of its evaluation, synthetic sweeps whose truth is known, what must not
//! change an answer, hostile files, and the program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod data;
mod hostile;
mod known_truth;
mod must_not_change;
mod of_2019;
mod program;
