//! The live rules of nconnect, run with every sample: what holds is written for `nfstune advise`, what is new is said once.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use log::{debug, info};
use nfsrahead::apply::replace::{replace, replace_with_folder};
use nfsrahead::error::Result;
use nfsrahead::evidence::{gather, Evidence};
use nfsrahead::nconnect::advice::Advice;
use nfsrahead::nconnect::watch::{Patience, Watch};
use nfsrahead::root::Root;
use nfsrahead::sample::Sample;
use nfsrahead::state::advice::{AdviceStatus, Book, Busy, ClientStatus, Current};
use nfsrahead::state::history::Histories;

pub struct Advisor {
    watch: Watch,
    book: Book,
    /// What was written last, so that nothing is written where nothing is new.
    written: Vec<u8>,
    /// When the histories were written last, since 1970.
    histories_s: u64,
}

/// What is remembered of clients is written so often; a crash costs no more.
const HISTORIES_EVERY_S: u64 = 3600;

impl Advisor {
    pub fn new(root: &Root) -> Advisor {
        let book = Book::read(root).unwrap_or_else(|e| {
            debug!("{e}");
            Book::default()
        });
        let histories = Histories::read(root).unwrap_or_else(|e| {
            debug!("{e}");
            BTreeMap::new()
        });
        Advisor {
            watch: Watch::new(histories),
            book,
            written: Vec::new(),
            histories_s: now_s(),
        }
    }

    /// A sample with counters.
    pub fn tick(&mut self, root: &Root, sample: &Sample) -> Result<()> {
        // An admin may have muted something meanwhile.
        self.book.mute_as(root);
        let evidence = gather(root, sample)?;
        let now_s = now_s();
        let now_ms = now_s.saturating_mul(1000);
        self.watch.keep(now_ms, |client| evidence.contains_key(client));
        let mut is_news = false;
        let (mut clients, mut current) = (Vec::new(), Vec::new());
        for (client, evidence) in evidence {
            let Evidence {
                group,
                moment,
                facts,
                interface,
                connected,
            } = evidence;
            let longest_idle_seconds = moment.longest_idle_s();
            let window = self.watch.add(&client, moment, facts);
            let watched = self.watch.of(&client);
            let usual = watched
                .and_then(|watched| watched.history.busy_bytes_per_s(now_ms))
                .unwrap_or(0.0);
            if let Some(window) = window.filter(|window| window.is_busy()) {
                let busy = Busy {
                    length_ms: window.length_ms,
                    bytes_per_s: window.bytes_per_s(),
                    usual_bytes_per_s: usual,
                };
                is_news |= self.book.judge(&client, group.connections, &busy, now_s);
            }
            let advice = self.watch.advice(&group, interface.as_ref(), Patience::Verdict, now_ms);
            let advice: Vec<Advice> = advice
                .into_iter()
                .filter(|advice| !self.book.is_withdrawn(advice))
                .collect();
            for advice in &advice {
                if self.book.give(advice, usual, now_s) {
                    info!(
                        "{}: {}: {} (nfstune advise, {})",
                        advice.client, advice.kind, advice.title, advice.id
                    );
                    is_news = true;
                }
            }
            current.extend(advice.iter().map(|advice| AdviceStatus::new(advice, &self.book)));
            clients.push(ClientStatus {
                mounts: group.places.iter().map(|place| place.mount_point.clone()).collect(),
                watched_seconds: watched.map_or(0, |watched| watched.history.watched_ms() / 1000),
                busy_intervals: watched.map_or(0, |watched| watched.history.busy()),
                client,
                server: group.server,
                connections: group.connections,
                connected,
                longest_idle_seconds,
            });
        }
        let text = Current::new(clients, current).to_json();
        if text != self.written {
            replace(&root.nfstuned_current_advice(), &text)?;
            self.written = text;
        }
        if is_news {
            self.save_book(root)?;
        }
        if now_s.saturating_sub(self.histories_s) >= HISTORIES_EVERY_S {
            self.histories_s = now_s;
            self.save_histories(root)?;
        }
        Ok(())
    }

    /// What is known of trials, advice and clients outlives this process.
    pub fn save(&mut self, root: &Root) -> Result<()> {
        self.save_book(root)?;
        self.save_histories(root)
    }

    fn save_book(&mut self, root: &Root) -> Result<()> {
        self.book.mute_as(root);
        replace_with_folder(&root.nfstuned_advice(), &self.book.to_json())
    }

    fn save_histories(&self, root: &Root) -> Result<()> {
        let histories = Histories::of(&self.watch);
        if histories.is_empty() {
            return Ok(());
        }
        replace_with_folder(&root.nfstuned_history(), &histories.to_json())
    }
}

/// Since 1970.
fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
