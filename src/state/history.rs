//! What is remembered about clients, kept over restarts and reboots: /var/lib/nfstuned/history.json.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::nconnect::live::history::History;
use crate::nconnect::watch::Watch;
use crate::root::Root;

/// Grows with every change that a reader would stumble over.
const SCHEMA_VERSION: u32 = 1;
/// 256 clients, of which each has some 40 KiB.
const SIZE_LIMIT: usize = 32 << 20;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Histories {
    schema_version: u32,
    /// By the text of the client's key.
    clients: BTreeMap<String, History>,
}

impl Histories {
    /// Empty where there is no file, or one of another version. What the file holds is as strange as it may be: [`Watch::new`] bounds it.
    pub fn read(root: &Root) -> Result<BTreeMap<String, History>> {
        let histories: Option<Histories> = super::read(&root.nfstuned_history(), SIZE_LIMIT)?;
        Ok(histories.unwrap_or_default().clients())
    }

    /// None of another version.
    pub fn clients(self) -> BTreeMap<String, History> {
        match self.schema_version {
            SCHEMA_VERSION => self.clients,
            _ => BTreeMap::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    pub fn of(watch: &Watch) -> Histories {
        let all = watch.histories();
        Histories {
            schema_version: SCHEMA_VERSION,
            clients: all
                .map(|(client, history)| (client.to_owned(), history.clone()))
                .collect(),
        }
    }

    pub fn to_json(&self) -> Vec<u8> {
        // A plain structure with string keys: this does not fail.
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}
