//! Decision 1: the readahead of a mount. Pure: no files, no clock, no process, no environment.

pub mod auto;
pub mod decide;
pub mod measure;
