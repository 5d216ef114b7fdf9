//! Readahead belongs to the superblock: of several mounts that share one, only one gets what it wants.

use crate::conf::policy::{Policy, Wish};
use crate::conf::scope::Kind;
use crate::kernel::mountinfo::{Mount, Version};
use crate::report::escape::escape;

/// Who wins a device, and who does not get what it wants.
pub struct Contest<'a> {
    pub won: &'a Wish,
    pub winner: &'a Mount,
    pub losers: Vec<(&'a Mount, &'a Wish)>,
}

impl Policy {
    /// The wish of the strongest kind wins; among equals that of the oldest mount. A mount without a rule of its own loses nothing.
    /// None: nothing is configured for any of them.
    pub fn contest<'a>(&'a self, mounts: &'a [Mount], version: Version) -> Option<Contest<'a>> {
        let wishes = mounts
            .iter()
            .filter_map(|mount| self.wish_for(mount, version).map(|(kind, wish)| (kind, mount, wish)));
        let (_, winner, won) = wishes.clone().min_by_key(|(kind, ..)| *kind)?;
        let losers = wishes
            .filter(|(kind, _, wish)| *kind != Kind::Version && wish.value != won.value)
            .map(|(_, mount, wish)| (mount, wish))
            .collect();
        Some(Contest { won, winner, losers })
    }
}

impl Contest<'_> {
    /// One line for a loser.
    pub fn tell(&self, mount: &Mount, lost: &Wish) -> String {
        let place = mount
            .mount_point
            .as_deref()
            .map_or_else(|| "a mount".to_owned(), escape);
        format!(
            "{place} wants {} ({lost}), but device {} has one value for all its mounts, {} ({}); mount it with nosharecache to part them",
            lost.value, mount.dev, self.won.value, self.won
        )
    }
}
