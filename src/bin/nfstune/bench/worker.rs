//! A thread for everything that may wait for a server. A dead server holds it as long as it likes; the program waits only as
//! long as it said, puts the values back and ends, which ends the thread too (waits in the NFS client can be killed).

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nfsrahead::error::{Error, Result};

use super::progress::Progress;
use super::stop::Stop;

/// How often the bar moves and the end is looked for.
const TICK: Duration = Duration::from_millis(100);
/// After a signal a job has this long to come to its end by itself.
const GRACE: Duration = Duration::from_secs(5);
/// A server that gives no sign for so long over what a job may take is taken for dead.
const PATIENCE: Duration = Duration::from_secs(30);

type Job = Box<dyn FnOnce() + Send>;

pub struct Worker {
    jobs: Sender<Job>,
    /// What it works on, for messages.
    place: PathBuf,
}

impl Worker {
    pub fn start(place: impl Into<PathBuf>) -> Result<Worker> {
        let place = place.into();
        let (jobs, todo) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("measure".to_owned())
            .spawn(move || todo.into_iter().for_each(|job| job()))
            .map_err(Error::io("start a thread for", &place))?;
        Ok(Worker { jobs, place })
    }

    /// Runs `job` in the thread; its own end is expected after `time` or a signal. Jobs run one after the other in the same
    /// thread, so what one of them does to its thread (a namespace of its own) holds for the next.
    pub fn run<T: Send + 'static>(
        &self,
        time: Duration,
        stop: &Stop,
        progress: &Progress,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let (result, done) = mpsc::channel();
        let job = move || drop(result.send(job()));
        let began = Instant::now();
        let mut end = began + time + PATIENCE;
        let mut is_stopping = false;
        self.jobs.send(Box::new(job)).map_err(|_| self.hung(began))?;
        loop {
            match done.recv_timeout(TICK) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Disconnected) => return Err(self.hung(began)),
                Err(RecvTimeoutError::Timeout) => progress.tick(),
            }
            if stop.is_asked() && !is_stopping {
                is_stopping = true;
                end = end.min(Instant::now() + GRACE);
            }
            if Instant::now() >= end {
                return Err(self.hung(began));
            }
        }
    }

    /// Left to the thread; nobody waits for it.
    pub fn later(&self, job: impl FnOnce() + Send + 'static) {
        // A thread that has gone has nothing left to wait for either.
        let _ = self.jobs.send(Box::new(job));
    }

    fn hung(&self, since: Instant) -> Error {
        let seconds = since.elapsed().as_secs();
        let why = std::io::Error::other(format!("no answer from the server for {seconds} s"));
        Error::io("measure", &self.place)(why)
    }
}
