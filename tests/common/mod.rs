//! What several test programs need; each uses its part.
#![allow(dead_code, unused_imports)]

pub mod namespace;
pub mod peer;
pub mod run;
pub mod tree;

mod skip;
pub use skip::skip;
