//! What the admin wants.
