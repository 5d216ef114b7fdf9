//! fio's JSON, as the jobs that are in it. Reading JSON is the program's business; what a job means is told here.
//!
//! Jobs of one group ran at the same time: their rates and what they had in flight add up. A job without group reporting
//! appears once for each of its processes.

use std::collections::BTreeMap;

use super::{Bad, Direction, Measured, Reading, Work, MAX_ROWS};
use crate::report::escape::escape;

/// The JSON in what fio wrote: it may be preceded by notes.
pub fn json(text: &str) -> Option<(usize, &str)> {
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_start().starts_with('{') {
            let json = &text[at..];
            return json.contains("\"jobs\"").then_some((index, json));
        }
        at += line.len();
    }
    None
}

/// One entry of `jobs`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Job {
    pub name: String,
    pub group: u64,
    /// The job's own options, over the global ones.
    pub options: BTreeMap<String, String>,
    /// `read.bw_bytes` and `write.bw_bytes`: 0 where the job did not do it.
    pub read_bytes_per_second: f64,
    pub write_bytes_per_second: f64,
}

/// Engines that keep `iodepth` requests on the way; the others wait for each.
const ASYNCHRONOUS: [&str; 4] = ["libaio", "io_uring", "io_uring_cmd", "posixaio"];

impl Job {
    fn option(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|name| self.options.get(*name))
            .map(String::as_str)
    }

    fn count(&self, name: &str) -> Result<u64, String> {
        let Some(text) = self.option(&[name]) else { return Ok(1) };
        super::number::size(text)
            .filter(|n| (1..=1 << 20).contains(n))
            .ok_or_else(|| format!("{name}={} is not a count", escape(text)))
    }

    /// `bs`, or the part of it that is for this direction.
    fn record_bytes(&self, direction: Direction) -> Result<u64, String> {
        let Some(text) = self.option(&["bs", "blocksize"]) else {
            return Ok(4096);
        };
        let mut parts = text.split(',');
        let first = parts.next().unwrap_or_default();
        let part = match direction {
            Direction::Read => first,
            Direction::Write => parts.next().filter(|part| !part.is_empty()).unwrap_or(first),
        };
        bytes(part).ok_or_else(|| format!("bs={} is not one size", escape(text)))
    }

    fn in_flight_bytes(&self, direction: Direction, processes: u64) -> Result<u64, String> {
        let depth = match self.option(&["ioengine"]) {
            Some(engine) if ASYNCHRONOUS.contains(&engine) => self.count("iodepth")?,
            _ => 1,
        };
        let record = self.record_bytes(direction)?;
        Ok(record.saturating_mul(depth).saturating_mul(processes))
    }

    fn is_random(&self) -> bool {
        self.option(&["rw", "readwrite"])
            .is_some_and(|rw| rw.starts_with("rand"))
    }

    fn is_direct(&self) -> bool {
        self.option(&["direct"]).is_some_and(|direct| direct != "0")
    }

    fn bytes_per_second(&self, direction: Direction) -> f64 {
        match direction {
            Direction::Read => self.read_bytes_per_second,
            Direction::Write => self.write_bytes_per_second,
        }
    }
}

/// A size as in a job file. fio has the prefixes the other way round unless told: k is 1024, ki is 1000.
fn bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.len() - lower.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, suffix) = lower.split_at(digits);
    let suffix = suffix.strip_suffix('b').unwrap_or(suffix);
    let (suffix, base) = match suffix.strip_suffix('i') {
        Some(prefix) => (prefix, 1000u64),
        None => (suffix, 1024),
    };
    let power = ["", "k", "m", "g"].iter().position(|s| *s == suffix)?;
    let unit = base.pow(u32::try_from(power).ok()?);
    super::number::size(number)?
        .checked_mul(unit)
        .filter(|bytes| (1..=1 << 40).contains(bytes))
}

/// Throughput is `bw_bytes`; the depth is bs · iodepth · numjobs.
pub fn read(jobs: &[Job]) -> Result<Reading, Bad> {
    let bad = |name: &str, why: String| Bad::new(1, format!("job \"{}\": {why}", escape(name)));
    if jobs.len() > MAX_ROWS {
        return Err(Bad::new(1, format!("more than {MAX_ROWS} jobs")));
    }
    let mut groups: BTreeMap<u64, Vec<&Job>> = BTreeMap::new();
    for job in jobs {
        groups.entry(job.group).or_default().push(job);
    }
    let mut reading = Reading::default();
    for group in groups.values() {
        for direction in [Direction::Read, Direction::Write] {
            let active: Vec<&Job> = group
                .iter()
                .copied()
                .filter(|job| job.bytes_per_second(direction) > 0.0)
                .collect();
            let Some(first) = active.first() else { continue };
            let mut entries: BTreeMap<&str, (&Job, u64)> = BTreeMap::new();
            for job in &active {
                entries.entry(&job.name).or_insert((job, 0)).1 += 1;
            }
            let mut in_flight_bytes = 0u64;
            for (name, (job, entries)) in entries {
                let processes = job.count("numjobs").map_err(|why| bad(name, why))?.max(entries);
                let bytes = job
                    .in_flight_bytes(direction, processes)
                    .map_err(|why| bad(name, why))?;
                in_flight_bytes = in_flight_bytes.saturating_add(bytes);
            }
            reading.measured.push(Measured {
                work: Work {
                    file_bytes: None,
                    is_random: first.is_random(),
                    in_flight_bytes: in_flight_bytes.min(1 << 60),
                    record_bytes: first.record_bytes(direction).map_err(|why| bad(&first.name, why))?,
                },
                direction,
                bytes_per_second: active.iter().map(|job| job.bytes_per_second(direction)).sum(),
                again_bytes_per_second: None,
                setting: None,
                run: None,
            });
        }
    }
    if reading.measured.is_empty() {
        return Err(Bad::new(1, "fio output without a job that read or wrote"));
    }
    if jobs.iter().any(|job| !job.is_direct()) {
        reading.cautions.push(
            "measured through the page cache: fio doubles the readahead window (fadvise_hint=0 keeps it from that) and a \
             warm cache makes all settings look equal; use direct=1"
                .to_owned(),
        );
    }
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, group: u64, options: &str, read: f64) -> Job {
        Job {
            name: name.to_owned(),
            group,
            options: options
                .split_whitespace()
                .map(|option| option.split_once('=').unwrap())
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            read_bytes_per_second: read,
            write_bytes_per_second: 0.0,
        }
    }

    #[test]
    fn sizes() {
        for (text, size) in [
            ("4096", Some(4096)),
            ("4k", Some(4096)),
            ("1M", Some(1 << 20)),
            ("1mb", Some(1 << 20)),
            ("1MiB", Some(1_000_000)),
            ("4k-64k", None),
            ("", None),
            ("k", None),
            ("99999999999999999999g", None),
            ("0", None),
        ] {
            assert_eq!(bytes(text), size, "{text}");
        }
    }

    fn in_flight(jobs: &[Job]) -> Vec<(u64, f64)> {
        let measured = read(jobs).unwrap().measured.into_iter();
        measured
            .map(|m| (m.work.in_flight_bytes >> 20, m.bytes_per_second))
            .collect()
    }

    #[test]
    fn depth_and_groups() {
        let direct = "direct=1 bs=1M ioengine=libaio iodepth=4";
        assert_eq!(in_flight(&[job("a", 0, direct, 10.0)]), [(4, 10.0)]);
        assert_eq!(
            in_flight(&[job("a", 0, "bs=1M ioengine=psync iodepth=4", 10.0)]),
            [(1, 10.0)],
            "psync waits for each"
        );
        let reported = job("a", 0, &format!("{direct} numjobs=3"), 10.0);
        assert_eq!(
            in_flight(std::slice::from_ref(&reported)),
            [(12, 10.0)],
            "group reporting"
        );
        assert_eq!(
            in_flight(&[reported.clone(), reported.clone(), reported]),
            [(12, 30.0)],
            "one entry a process"
        );
        let (a, b) = (job("a", 0, "bs=1M", 10.0), job("b", 1, "bs=2M", 5.0));
        assert_eq!(in_flight(&[b, a]), [(1, 10.0), (2, 5.0)]);
    }

    #[test]
    fn each_direction_has_its_size() {
        let mut both = job("a", 0, "bs=64k,1M", 1.0);
        both.write_bytes_per_second = 2.0;
        let sizes: Vec<_> = read(&[both])
            .unwrap()
            .measured
            .iter()
            .map(|m| m.work.record_bytes >> 10)
            .collect();
        assert_eq!(sizes, [64, 1024]);
    }

    #[test]
    fn says_what_the_cache_does() {
        assert!(read(&[job("a", 0, "direct=1", 1.0)]).unwrap().cautions.is_empty());
        assert_eq!(read(&[job("a", 0, "", 1.0)]).unwrap().cautions.len(), 1);
        assert_eq!(
            read(&[job("a", 0, "bs=4k-8k", 1.0)]).unwrap_err().why,
            "job \"a\": bs=4k-8k is not one size"
        );
        assert!(read(&[job("a", 0, "", 0.0)]).is_err());
        assert!(read(&[]).is_err());
    }

    #[test]
    fn notes_before_the_json() {
        assert_eq!(json("note: x\n{ \"jobs\" : [] }"), Some((1, "{ \"jobs\" : [] }")));
        assert_eq!(json("{}"), None);
        assert_eq!(json("kB reclen\n"), None);
    }
}
