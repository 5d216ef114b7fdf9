//! Decision 2: how much dirty data a mount may hold, so that its writers do not stall. Pure.

pub mod drain;
pub mod pair;
pub mod size;
