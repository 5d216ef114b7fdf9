//! ^C, kill and a lost terminal: measured so far is kept, values go back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use nfsrahead::error::{Error, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Shared by everything that works: once asked, it comes to its end soon.
#[derive(Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn on_signals() -> Result<Stop> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(Error::io("catch", "signals"))?;
        }
        Ok(Stop(flag))
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
