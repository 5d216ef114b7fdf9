//! The live rules of nconnect, run with every sample: what holds is written for `nfstune advise`, what is new is said once.

use std::time::{SystemTime, UNIX_EPOCH};

use log::{debug, info};
use nfsrahead::apply::replace::{replace, replace_with_folder};
use nfsrahead::error::Result;
use nfsrahead::evidence::{gather, Evidence};
use nfsrahead::nconnect::advice::Advice;
use nfsrahead::nconnect::watch::{Patience, Watch};
use nfsrahead::root::Root;
use nfsrahead::sample::Sample;
use nfsrahead::state::advice::{AdviceStatus, Book, ClientStatus, Current};

pub struct Advisor {
    watch: Watch,
    book: Book,
    /// What was written last, so that nothing is written where nothing is new.
    written: Vec<u8>,
}

impl Advisor {
    pub fn new(root: &Root) -> Advisor {
        let book = Book::read(root).unwrap_or_else(|e| {
            debug!("{e}");
            Book::default()
        });
        Advisor {
            watch: Watch::default(),
            book,
            written: Vec::new(),
        }
    }

    /// A sample with counters.
    pub fn tick(&mut self, root: &Root, sample: &Sample) -> Result<()> {
        // An admin may have muted something meanwhile.
        if let Ok(book) = Book::read(root) {
            self.book.muted = book.muted;
        }
        let evidence = gather(root, sample)?;
        self.watch.keep(|client| evidence.contains_key(client));
        let now_s = now_s();
        let mut is_news = false;
        let (mut clients, mut current) = (Vec::new(), Vec::new());
        for (client, evidence) in evidence {
            let Evidence {
                group,
                moment,
                facts,
                interface,
            } = evidence;
            let window = self.watch.add(&client, moment, facts).cloned();
            if let Some(window) = window.filter(|window| window.is_busy()) {
                let (length_ms, rate) = (window.length_ms, window.bytes_per_s());
                is_news |= self.book.judge(&client, group.connections, length_ms, rate, now_s);
            }
            let advice = self.watch.advice(&group, interface.as_ref(), Patience::Verdict);
            let advice: Vec<Advice> = advice
                .into_iter()
                .filter(|advice| !self.book.is_withdrawn(advice))
                .collect();
            let watched = self.watch.of(&client);
            let rate = watched
                .and_then(|watched| watched.history.baseline(sample.boottime_ms).connection_bytes_per_s)
                .map_or(0.0, |rate| rate * nfsrahead::float::float(group.connections));
            for advice in &advice {
                if self.book.give(advice, rate, now_s) {
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
            });
        }
        let text = Current::new(clients, current).to_json();
        if text != self.written {
            replace(&root.nfstuned_current_advice(), &text)?;
            self.written = text;
        }
        if is_news {
            self.save(root)?;
        }
        Ok(())
    }

    /// What is known of trials and advice outlives this process.
    pub fn save(&self, root: &Root) -> Result<()> {
        replace_with_folder(&root.nfstuned_advice(), &self.book.to_json())
    }
}

/// Since 1970.
fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
