//! What one NFS superblock has done, in the few counters that decisions look at.

use crate::float::float;
use crate::kernel::mountstats::{self, Op};

/// Counters since the mount was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    pub age_s: u64,
    /// READ and READ_PLUS.
    pub read: Calls,
    pub write: Calls,
    pub commit: Calls,
    /// GETATTR, ACCESS, LOOKUP: small, and mostly answered from the server's memory.
    pub small: Calls,
    /// All operations.
    pub all: Calls,
    /// Sent again, and given up waiting for (major timeouts); all operations.
    pub retransmissions: u64,
    pub timeouts: u64,
    /// Of READ replies and WRITE requests, with their headers.
    pub read_wire_bytes: u64,
    pub write_wire_bytes: u64,
    /// From and to the server.
    pub server_read_bytes: u64,
    pub server_written_bytes: u64,
    /// By programs.
    pub cached_read_bytes: u64,
    pub direct_read_bytes: u64,
    /// Connections of the client, which other mounts may share. Not a counter.
    pub connections: u64,
}

/// Counters of one or several operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    pub ops: u64,
    pub queue_ms: u64,
    pub rtt_ms: u64,
}

impl Calls {
    pub fn sum(&self, other: &Calls) -> Calls {
        Calls {
            ops: self.ops.saturating_add(other.ops),
            queue_ms: self.queue_ms.saturating_add(other.queue_ms),
            rtt_ms: self.rtt_ms.saturating_add(other.rtt_ms),
        }
    }

    fn add(&mut self, op: &Op) {
        self.ops = self.ops.saturating_add(op.ops);
        self.queue_ms = self.queue_ms.saturating_add(op.queue_ms);
        self.rtt_ms = self.rtt_ms.saturating_add(op.rtt_ms);
    }

    fn since(&self, before: &Calls) -> Option<Calls> {
        Some(Calls {
            ops: self.ops.checked_sub(before.ops)?,
            queue_ms: self.queue_ms.checked_sub(before.queue_ms)?,
            rtt_ms: self.rtt_ms.checked_sub(before.rtt_ms)?,
        })
    }

    /// Mean time from sending to the reply. None: no call.
    pub fn mean_rtt_s(&self) -> Option<f64> {
        (self.ops > 0).then(|| float(self.rtt_ms) / 1000.0 / float(self.ops))
    }

    /// Requests on the wire, on average over this time (Little's law).
    pub fn on_wire(&self, length_ms: u64) -> f64 {
        float(self.rtt_ms) / float(length_ms.max(1))
    }
}

impl Activity {
    pub fn of(mount: &mountstats::Mount) -> Activity {
        let mut activity = Activity {
            age_s: mount.age_s.unwrap_or_default(),
            connections: u64::try_from(mount.transports.len()).unwrap_or_default(),
            ..Activity::default()
        };
        if let Some(bytes) = &mount.bytes {
            activity.server_read_bytes = bytes.server_read_bytes;
            activity.server_written_bytes = bytes.server_written_bytes;
            activity.cached_read_bytes = bytes.cached_read_bytes;
            activity.direct_read_bytes = bytes.direct_read_bytes;
        }
        for op in &mount.ops {
            activity.all.add(op);
            activity.retransmissions = activity.retransmissions.saturating_add(op.retransmissions());
            activity.timeouts = activity.timeouts.saturating_add(op.timeouts);
            match op.name() {
                b"READ" | b"READ_PLUS" => {
                    activity.read.add(op);
                    activity.read_wire_bytes = activity.read_wire_bytes.saturating_add(op.received_bytes);
                }
                b"WRITE" => {
                    activity.write.add(op);
                    activity.write_wire_bytes = activity.write_wire_bytes.saturating_add(op.sent_bytes);
                }
                b"COMMIT" => activity.commit.add(op),
                b"GETATTR" | b"ACCESS" | b"LOOKUP" => activity.small.add(op),
                _ => {}
            }
        }
        activity
    }

    /// What several mounts of one client have done together.
    pub fn sum(&self, other: &Activity) -> Activity {
        let add = |of: fn(&Activity) -> u64| of(self).saturating_add(of(other));
        Activity {
            age_s: self.age_s.min(other.age_s),
            read: self.read.sum(&other.read),
            write: self.write.sum(&other.write),
            commit: self.commit.sum(&other.commit),
            small: self.small.sum(&other.small),
            all: self.all.sum(&other.all),
            retransmissions: add(|a| a.retransmissions),
            timeouts: add(|a| a.timeouts),
            read_wire_bytes: add(|a| a.read_wire_bytes),
            write_wire_bytes: add(|a| a.write_wire_bytes),
            server_read_bytes: add(|a| a.server_read_bytes),
            server_written_bytes: add(|a| a.server_written_bytes),
            cached_read_bytes: add(|a| a.cached_read_bytes),
            direct_read_bytes: add(|a| a.direct_read_bytes),
            connections: self.connections.max(other.connections),
        }
    }

    /// What was done between the two. None: a counter fell, so this is not the same mount any more.
    pub fn since(&self, before: &Activity) -> Option<Activity> {
        Some(Activity {
            age_s: self.age_s.checked_sub(before.age_s)?,
            read: self.read.since(&before.read)?,
            write: self.write.since(&before.write)?,
            commit: self.commit.since(&before.commit)?,
            small: self.small.since(&before.small)?,
            all: self.all.since(&before.all)?,
            retransmissions: self.retransmissions.checked_sub(before.retransmissions)?,
            timeouts: self.timeouts.checked_sub(before.timeouts)?,
            read_wire_bytes: self.read_wire_bytes.checked_sub(before.read_wire_bytes)?,
            write_wire_bytes: self.write_wire_bytes.checked_sub(before.write_wire_bytes)?,
            server_read_bytes: self.server_read_bytes.checked_sub(before.server_read_bytes)?,
            server_written_bytes: self.server_written_bytes.checked_sub(before.server_written_bytes)?,
            cached_read_bytes: self.cached_read_bytes.checked_sub(before.cached_read_bytes)?,
            direct_read_bytes: self.direct_read_bytes.checked_sub(before.direct_read_bytes)?,
            connections: self.connections,
        })
    }
}
