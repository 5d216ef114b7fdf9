//! Reads and writes past the page cache, so many at a time. One of rsize is one request on one connection.

use std::io;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use nfsrahead::error::{Error, Result};
use nfsrahead::float::float;
use nfsrahead::nconnect::sweep::Direction;

use super::super::own_file::{DirectFile, OwnFile};
use super::super::stop::Stop;
use super::super::{fio, random_bytes, Engine};

/// Each caller has a part of the file for itself, of so many records, and goes round in it.
const RECORDS: u64 = 2;

pub struct Direct<'a> {
    own: OwnFile,
    file: DirectFile,
    record_bytes: u64,
    bytes: Vec<u8>,
    engine: Engine,
    stop: &'a Stop,
}

impl<'a> Direct<'a> {
    /// A file of whole parts for `deepest` callers, written once, so that there is something to read.
    pub fn new(folder: &Path, record_bytes: u64, deepest: u64, engine: Engine, stop: &'a Stop) -> Result<Self> {
        let own = OwnFile::make(folder, None)?;
        let size = record_bytes * RECORDS * deepest;
        if own.room_bytes()? < 2 * size {
            let why = io::Error::other("too little space left there");
            return Err(Error::io("make a file in", folder)(why));
        }
        let direct = Direct {
            file: own.reopen_direct()?,
            own,
            record_bytes,
            bytes: random_bytes(record_bytes),
            engine,
            stop,
        };
        let each = record_bytes * RECORDS;
        let written = direct.at_once(Direction::Write, deepest, Duration::MAX, Some(each));
        written.map_err(Error::io("write a file in", folder))?;
        Ok(direct)
    }

    /// Bytes a second that `depth` callers get together.
    pub fn rate(&self, direction: Direction, depth: u64, time: Duration, most_bytes: Option<u64>) -> Result<f64> {
        let rate = match self.engine {
            Engine::Own => self.at_once(direction, depth, time, most_bytes.map(|bytes| bytes / depth)),
            Engine::Fio => self.by_fio(direction, depth, time),
        };
        rate.map_err(Error::io(direction.name(), self.own.name()))
    }

    fn at_once(&self, direction: Direction, depth: u64, time: Duration, bytes_each: Option<u64>) -> io::Result<f64> {
        let ready = Barrier::new(usize::try_from(depth).unwrap_or(1));
        let bytes_each = bytes_each.unwrap_or(u64::MAX);
        let caller = |number: u64| {
            ready.wait();
            let began = Instant::now();
            let part = number * RECORDS * self.record_bytes;
            let mut buffer = self.bytes.clone();
            let (mut done, mut turn) = (0u64, 0);
            while done < bytes_each && began.elapsed() < time && !self.stop.is_asked() {
                let at = part + turn % RECORDS * self.record_bytes;
                done += match direction {
                    Direction::Write => self.file.put(&buffer, at)?,
                    Direction::Read => self.file.get(&mut buffer, at)?,
                } as u64;
                turn += 1;
            }
            Ok((done, began.elapsed()))
        };
        let ended: Vec<io::Result<(u64, Duration)>> = thread::scope(|scope| {
            let callers: Vec<_> = (0..depth).map(|number| scope.spawn(move || caller(number))).collect();
            let joined = callers.into_iter().map(|caller| caller.join());
            joined
                .map(|end| end.unwrap_or_else(|_| Err(io::Error::other("a thread failed"))))
                .collect()
        });
        let (mut bytes, mut longest) = (0u64, Duration::ZERO);
        for end in ended {
            let (done, took) = end?;
            bytes += done;
            longest = longest.max(took);
        }
        Ok(float(bytes) / longest.as_secs_f64().max(1e-9))
    }

    fn by_fio(&self, direction: Direction, depth: u64, time: Duration) -> io::Result<f64> {
        let part = RECORDS * self.record_bytes;
        let options = [
            format!("rw={}", direction.name()),
            format!("bs={}", self.record_bytes),
            format!("numjobs={depth}"),
            format!("size={part}"),
            format!("offset_increment={part}"),
            "direct=1".to_owned(),
            "overwrite=1".to_owned(),
            "time_based".to_owned(),
            "group_reporting".to_owned(),
        ];
        let job = fio::run(&self.own.name(), time, &options, self.stop)?;
        let rate = fio::number(&job, &format!("{}/bw_bytes", direction.name()));
        rate.ok_or_else(|| io::Error::other("fio told no bw_bytes"))
    }
}
