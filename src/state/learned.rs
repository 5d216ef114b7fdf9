//! How fast each export was written to, and how long and wide the path to it is, kept over restarts and reboots:
//! /var/lib/nfstuned/learned.json.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cycle::State;
use crate::error::Result;
use crate::readahead::measure::Known;
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
    /// Likewise. Files of before it was kept have none.
    #[serde(default)]
    paths: BTreeMap<String, Known>,
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

    /// The path to an export, sane or none.
    pub fn path(&self, source: &[u8]) -> Option<Known> {
        self.paths.get(&escape(source)).copied().and_then(Known::sane)
    }

    /// Takes over what is known now; what is not mounted any more is kept. True: something changed by a tenth or more.
    pub fn update(&mut self, state: &State) -> bool {
        self.schema_version = SCHEMA_VERSION;
        let Some(sample) = state.sample() else { return false };
        let mut is_changed = false;
        for device in &sample.devices {
            let source = device.mounts.first().and_then(|mount| mount.source.as_deref());
            let (Some(source), Some(track)) = (source, state.track(device.dev)) else {
                continue;
            };
            let source = escape(source);
            let is_new_rate = |known: &f64, rate: &f64| (known - rate).abs() > known / 10.0;
            let rate = track.drain.bytes_per_s(sample.boottime_ms);
            is_changed |= keep(&mut self.drain_bytes_per_second, &source, rate, is_new_rate);
            let path = track.path.known().and_then(Known::sane);
            is_changed |= keep(&mut self.paths, &source, path, Known::differs);
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

/// True: it is another one than before, or new.
fn keep<T>(all: &mut BTreeMap<String, T>, source: &str, value: Option<T>, is_other: impl Fn(&T, &T) -> bool) -> bool {
    let Some(value) = value else { return false };
    let is_new = match all.get(source) {
        Some(known) => is_other(known, &value),
        None => all.len() < EXPORTS,
    };
    if is_new {
        all.insert(source.to_owned(), value);
    }
    is_new
}
