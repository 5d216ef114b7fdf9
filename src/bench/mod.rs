//! `nfstune bench`: what is measured in which order, and what the figures say. Pure: those who measure are the program.
//!
//! amounts as people type them ([`amount`]) → which values in which order, how long each may take ([`plan`]) → the figures →
//! the readahead that is enough ([`answer`]) and its line of configuration ([`drop_in`]), how long writers wait ([`write`]). Connections are judged by
//! [`crate::nconnect::sweep`].

pub mod amount;
pub mod answer;
pub mod drop_in;
pub mod plan;
pub mod write;
