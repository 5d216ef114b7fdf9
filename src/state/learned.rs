//! How fast each export was written to, kept over restarts and reboots: /var/lib/nfstuned/learned.json.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cycle::State;
use crate::error::Result;
use crate::report::escape::escape;
use crate::root::Root;

/// Grows with every change that a reader would stumble over.
const SCHEMA_VERSION: u32 = 1;
const SIZE_LIMIT: usize = 4 << 20;
/// More exports than this are not remembered: the alphabet decides, for no better reason is at hand.
const EXPORTS: usize = 10_000;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    schema_version: u32,
    /// By the escaped source of the mount, `server:/export`.
    drain_bytes_per_second: BTreeMap<String, f64>,
}

impl Learned {
    /// Nothing where there is no file, or one of another version.
    pub fn read(root: &Root) -> Result<Learned> {
        let learned: Option<Learned> = super::read(&root.nfstuned_learned(), SIZE_LIMIT)?;
        Ok(learned
            .filter(|learned| learned.schema_version == SCHEMA_VERSION)
            .unwrap_or_default())
    }

    /// The rate of an export, sane or none.
    pub fn drain(&self, source: &[u8]) -> Option<f64> {
        let rate = self.drain_bytes_per_second.get(&escape(source)).copied();
        rate.filter(|rate| (1e3..=1e12).contains(rate))
    }

    /// Takes over what is known now; what is not mounted any more is kept. True: something changed by a tenth or more.
    pub fn update(&mut self, state: &State) -> bool {
        self.schema_version = SCHEMA_VERSION;
        let Some(sample) = state.sample() else { return false };
        let mut is_changed = false;
        for device in &sample.devices {
            let source = device.mounts.first().and_then(|mount| mount.source.as_deref());
            let rate = state
                .track(device.dev)
                .and_then(|track| track.drain.bytes_per_s(sample.boottime_ms));
            let (Some(source), Some(rate)) = (source, rate) else {
                continue;
            };
            let source = escape(source);
            let known = self.drain_bytes_per_second.get(&source).copied();
            let is_new = known.is_none_or(|known| (known - rate).abs() > known / 10.0);
            if is_new && (known.is_some() || self.drain_bytes_per_second.len() < EXPORTS) {
                self.drain_bytes_per_second.insert(source, rate);
                is_changed = true;
            }
        }
        is_changed
    }

    pub fn to_json(&self) -> Vec<u8> {
        // A plain structure with string keys: this does not fail.
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}
