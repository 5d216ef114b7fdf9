//! NFS mounts: their readahead from nfs.conf, what they do, and how many connections they need.
//!
//! Data flows one way; each step gives a plain value that can be printed.
//!
//! `nfsrahead`, run by udev for one device:
//! arguments ([`helper`]) → device number ([`kernel::bdi`]) → configuration ([`conf`]) → is it NFS, which version
//! ([`kernel::nfsfs`]) → where is it mounted, only if the configuration asks ([`helper`], with [`kernel::statmount`] or
//! [`kernel::mountinfo`]) → value and reason ([`readahead`]) → write and read back ([`apply`]).
//!
//! `nfstuned`, woken by a timer, devices, mounts, writes of others and requests: a look at the machine ([`sample`]) → what was
//! learned ([`cycle`]: how fast servers take data, [`writeback::drain`]; how long the way to them is, [`readahead::measure`]) →
//! decisions with reasons ([`cycle`], with [`readahead`] and [`writeback`]; who else sets a knob, [`conf::knob_owner`]) → those that
//! may be carried out, ahead of each on record ([`apply::ledger`]) → what it thinks, for others (`state::status`) → in the end
//! everything back. Beside it, for every client: what was gathered ([`evidence`]) → windows, diagnosis, advice
//! ([`nconnect::watch`]) → what holds and what came of it (`state::advice`).
//!
//! `nfstune status`, `explain`, `apply`, `advise`: the same from the daemon's files, or from samples of their own.
//! `nfstune record` keeps the files behind a sample ([`record`]), `nfstune replay` takes samples from them.
//!
//! `nfstune config`, run by an admin: configuration ([`conf`]) → the present mounts ([`kernel::mountinfo`]) → findings
//! ([`conf`]) → text or JSON.
//!
//! `nfstune doctor`, run by an admin: udev's rule files, fstab and nfs.conf → who sets the readahead, in udev's order, and what
//! is wrong ([`conf::owners`], [`conf::options`]) → with the present values ([`kernel::devices`]) as text or JSON.
//!
//! `nfstune sweep`, run by an admin on results of a benchmark: text → what was measured → cells → an answer for each run,
//! direction and depth, and advice ([`nconnect::sweep`]) → text, JSON or a chart.
//!
//! `nfstune bench`, run by an admin on a mount: values in random order, each under the ledger ([`bench`], [`apply::ledger`]) →
//! reads, writes and times, by the program → the smallest readahead that is enough, the longest wait of a writer, connections
//! ([`bench`], [`nconnect::sweep`]) → text, JSON, CSV or a page.
//!
//! `nfstune metrics`: what the mounts have done ([`kernel::mountstats`]) → their devices and addresses
//! ([`kernel::mountinfo`]) → which share their connections ([`client`]) → OpenMetrics text ([`report::metrics`]) → standard
//! output, or a file ([`apply::replace`]).
//!
//! The walls: [`readahead`], [`writeback`], [`nconnect`], [`cycle`] and [`bench`] are pure, `kernel` and `conf` never write, only `apply` writes, and the root
//! directory is an argument everywhere ([`root::Root`]).

pub mod apply;
pub mod bench;
pub mod client;
pub mod conf;
pub mod cycle;
pub mod decimal;
pub mod error;
pub mod evidence;
pub mod float;
pub mod helper;
pub mod kernel;
pub mod nconnect;
pub mod readahead;
pub mod record;
pub mod report;
pub mod root;
pub mod sample;
#[cfg(feature = "state")]
pub mod state;
pub mod writeback;

#[cfg(test)]
#[path = "../tests/common/skip.rs"]
mod common;
