//! What iozone prints: the table of `-a`, and the reports of `-R` where there is no table.
//!
//! In the table the values of a line stand in the order of the tests that ran. Its header may be broken over several lines
//! by a terminal or a mail program, so it is not asked where a column is; the command line says which tests ran. Without a
//! command line they are write, rewrite, read, reread.

use super::number::{rate, size};
use super::{Bad, Direction, Measured, Reading, Work, MAX_ROWS};

const KIB: f64 = 1024.0;

/// Does the text carry a mark of iozone's?
pub fn is_iozone(text: &str) -> bool {
    text.lines().any(|line| {
        let lower = line.to_ascii_lowercase();
        lower.split_whitespace().any(|word| word == "reclen")
            || lower.contains("iozone")
            || lower.contains("output is in")
            || Report::of(line).is_some()
    })
}

/// What the numbers of the table are.
#[derive(Clone, Copy)]
enum Unit {
    KibPerSecond,
    OpsPerSecond,
    MicrosecondsPerOp,
}

impl Unit {
    /// From a line of iozone's introduction.
    fn of(line: &str) -> Option<Unit> {
        let lower = line.to_ascii_lowercase();
        if lower.contains("operations per second") || lower.contains("output is in ops/sec") {
            Some(Unit::OpsPerSecond)
        } else if lower.contains("microseconds per operation") {
            Some(Unit::MicrosecondsPerOp)
        } else {
            None
        }
    }

    fn bytes_per_second(self, value: f64, record_bytes: f64) -> f64 {
        match self {
            Unit::KibPerSecond => value * KIB,
            Unit::OpsPerSecond => value * record_bytes,
            Unit::MicrosecondsPerOp if value > 0.0 => record_bytes * 1e6 / value,
            Unit::MicrosecondsPerOp => 0.0,
        }
    }
}

/// Which of the first columns the table has.
#[derive(Clone, Copy)]
struct Columns {
    writes: bool,
    reads: bool,
}

impl Columns {
    /// From `-i N` on the command line; all tests ran where none is named. A letter cluster may precede the i.
    fn of(command: &str) -> Columns {
        let mut words = command.split_whitespace();
        let mut named = Vec::new();
        while let Some(word) = words.next() {
            let Some(options) = word.strip_prefix('-') else {
                continue;
            };
            let Some((before, number)) = options.split_once('i') else {
                continue;
            };
            if !before.bytes().all(|b| b.is_ascii_alphabetic()) {
                continue;
            }
            let number = if number.is_empty() {
                words.next().unwrap_or_default()
            } else {
                number
            };
            named.extend(size(number));
        }
        Columns {
            writes: named.is_empty() || named.contains(&0),
            reads: named.is_empty() || named.contains(&1),
        }
    }
}

/// One test of a `-R` report.
#[derive(Clone, Copy, PartialEq)]
struct Report {
    direction: Direction,
    is_again: bool,
}

impl Report {
    fn of(line: &str) -> Option<Report> {
        let title = line.trim().trim_matches('"').to_ascii_lowercase();
        let (direction, is_again) = match title.as_str() {
            "writer report" => (Direction::Write, false),
            "re-writer report" => (Direction::Write, true),
            "reader report" => (Direction::Read, false),
            "re-reader report" => (Direction::Read, true),
            _ => return None,
        };
        Some(Report { direction, is_again })
    }
}

/// Reads the text. Lines such as `nconnect=4` or `run=disk` (`variable` is the name of the first) say to what the following
/// tables belong, so that one file can hold a whole sweep.
pub fn read(text: &str, variable: &str) -> Result<Reading, Bad> {
    let mut tables = Table::default();
    let mut reports = Reports::default();
    let mut columns = Columns::of("");
    let mut unit = Unit::KibPerSecond;
    let mut place = Place::default();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(command) = line.split("Command line used:").nth(1) {
            columns = Columns::of(command);
            unit = Unit::KibPerSecond;
        }
        if line.contains("Run began:") {
            unit = Unit::KibPerSecond;
        }
        unit = Unit::of(line).unwrap_or(unit);
        place.follow(line, variable);
        if let Some(report) = Report::of(line) {
            reports.begin(report);
        } else if !reports.line(number, line, unit, &place)? {
            tables.line(number, line, columns, unit, &place)?;
        }
        if tables.rows.len() + reports.values.len() > MAX_ROWS {
            return Err(Bad::new(number, format!("more than {MAX_ROWS} rows")));
        }
    }
    let mut measured = tables.rows;
    if measured.is_empty() {
        measured = reports.measured();
    }
    if measured.is_empty() {
        let last = text.lines().count().max(1);
        return Err(Bad::new(last, "iozone output without a row of reads or writes"));
    }
    drop_empty_second_passes(&mut measured);
    Ok(Reading {
        measured,
        cautions: Vec::new(),
    })
}

/// With `-+n` iozone prints a 0 where the second pass would be. One 0 among other values is a pass that went wrong.
fn drop_empty_second_passes(measured: &mut [Measured]) {
    for direction in [Direction::Read, Direction::Write] {
        let mut passes = measured.iter().filter(|m| m.direction == direction);
        if passes.all(|m| m.again_bytes_per_second.is_none_or(|rate| rate == 0.0)) {
            for m in measured.iter_mut().filter(|m| m.direction == direction) {
                m.again_bytes_per_second = None;
            }
        }
    }
}

/// To what a table belongs.
#[derive(Clone, Default)]
struct Place {
    setting: Option<u64>,
    run: Option<String>,
}

impl Place {
    fn follow(&mut self, line: &str, variable: &str) {
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some((name, value)) if name.eq_ignore_ascii_case(variable) => {
                    self.setting = size(value).or(self.setting);
                }
                Some(("run", value)) if !value.is_empty() => self.run = Some(value.to_owned()),
                _ => {}
            }
        }
    }
}

#[derive(Default)]
struct Table {
    rows: Vec<Measured>,
}

impl Table {
    /// A row starts with two whole numbers: the file in KiB and the record in KiB. Any other line is not a row.
    fn line(&mut self, number: usize, line: &str, columns: Columns, unit: Unit, place: &Place) -> Result<(), Bad> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [file, record, values @ ..] = words.as_slice() else {
            return Ok(());
        };
        let is_whole = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
        if !is_whole(file) || !is_whole(record) || values.is_empty() {
            return Ok(());
        }
        let work = work(number, file, record)?;
        let values: Vec<f64> = values
            .iter()
            .map(|word| value(number, word, unit, work))
            .collect::<Result<_, _>>()?;
        let mut values = values.chunks(2);
        for (is_there, direction) in [(columns.writes, Direction::Write), (columns.reads, Direction::Read)] {
            if !is_there {
                continue;
            }
            // A line that ends early is the end of a run that was stopped.
            if let Some(passes) = values.next() {
                self.rows.push(Measured {
                    work,
                    direction,
                    bytes_per_second: passes[0],
                    again_bytes_per_second: passes.get(1).copied(),
                    setting: place.setting,
                    run: place.run.clone(),
                });
            }
        }
        Ok(())
    }
}

fn work(number: usize, file_kib: &str, record_kib: &str) -> Result<Work, Bad> {
    let kib = |word: &str| {
        size(word)
            .filter(|kib| (1..=1 << 40).contains(kib))
            .map(|kib| kib * 1024)
    };
    match (kib(file_kib), kib(record_kib)) {
        (Some(file_bytes), Some(record_bytes)) => Ok(Work {
            file_bytes: Some(file_bytes),
            is_random: false,
            in_flight_bytes: record_bytes,
            record_bytes,
        }),
        _ => Err(Bad::new(number, "not a size of file or record")),
    }
}

fn value(number: usize, word: &str, unit: Unit, work: Work) -> Result<f64, Bad> {
    let value = rate(word).ok_or_else(|| Bad::new(number, "not a rate"))?;
    let record_kib = u32::try_from(work.record_bytes / 1024).map_err(|_| Bad::new(number, "not a size of a record"))?;
    Ok(unit.bytes_per_second(value, f64::from(record_kib) * KIB))
}

/// The `-R` reports: for each test a line of record sizes and then for each file size a line of values.
#[derive(Default)]
struct Reports {
    current: Option<Report>,
    records: Vec<String>,
    values: Vec<(Report, Work, f64, Place)>,
}

impl Reports {
    fn begin(&mut self, report: Report) {
        self.current = Some(report);
        self.records.clear();
    }

    /// Was this a line of a report?
    fn line(&mut self, number: usize, line: &str, unit: Unit, place: &Place) -> Result<bool, Bad> {
        let Some(report) = self.current else { return Ok(false) };
        let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches('"')).collect();
        let is_numbers = !words.is_empty() && words.iter().all(|word| rate(word).is_some());
        if !is_numbers {
            self.current = None;
            return Ok(false);
        }
        if self.records.is_empty() {
            self.records = words.into_iter().map(str::to_owned).collect();
            return Ok(true);
        }
        let (file, values) = (words[0], &words[1..]);
        if values.len() > self.records.len() {
            return Err(Bad::new(number, "more values than record sizes"));
        }
        for (record, word) in self.records.iter().zip(values) {
            let work = work(number, file, record)?;
            let value = value(number, word, unit, work)?;
            // 0 marks a record larger than its file, which was not measured.
            if value > 0.0 {
                self.values.push((report, work, value, place.clone()));
            }
        }
        Ok(true)
    }

    /// First and second passes of the same work, put together.
    fn measured(self) -> Vec<Measured> {
        let mut measured: Vec<Measured> = Vec::new();
        let mut again = std::collections::BTreeMap::new();
        for (report, work, value, place) in self.values.iter().filter(|(report, ..)| report.is_again) {
            again.insert((report.direction, *work, place.setting, place.run.clone()), *value);
        }
        for (report, work, value, place) in self.values.into_iter().filter(|(report, ..)| !report.is_again) {
            let key = (report.direction, work, place.setting, place.run.clone());
            measured.push(Measured {
                work,
                direction: report.direction,
                bytes_per_second: value,
                again_bytes_per_second: again.get(&key).copied(),
                setting: place.setting,
                run: place.run,
            });
        }
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "              kB  reclen    write  rewrite    read    reread\n";

    fn rates(text: &str) -> Vec<(Direction, u64, f64, Option<f64>)> {
        let reading = read(text, "nconnect").unwrap();
        let rows = reading.measured.into_iter();
        rows.map(|m| {
            (
                m.direction,
                m.work.record_bytes / 1024,
                m.bytes_per_second / KIB,
                m.again_bytes_per_second.map(|r| r / KIB),
            )
        })
        .collect()
    }

    #[test]
    fn table() {
        use Direction::{Read, Write};
        let row = "           53248    1024   10   11  20 21\n";
        let both = vec![(Write, 1024, 10.0, Some(11.0)), (Read, 1024, 20.0, Some(21.0))];
        assert_eq!(rates(&format!("{HEADER}{row}")), both);
        assert_eq!(
            rates(&format!("kB reclen write\nrewrite read reread\n{row}")),
            both,
            "a wrapped header"
        );
        assert_eq!(
            rates(&format!("kB reclen write\r\n{}", row.replace('\n', "\r\n"))),
            both
        );
        let command = |tests: &str| format!("\tCommand line used: iozone {tests} -s52m -I\n{HEADER}{row}");
        assert_eq!(rates(&command("-i0 -i 2")), [(Write, 1024, 10.0, Some(11.0))]);
        assert_eq!(rates(&command("-azi1")), [(Read, 1024, 10.0, Some(11.0))]);
        assert_eq!(rates(&command("-f /mnt/i -i0 -i1")), both);
        let stopped = format!("{HEADER}53248 1024 10\n");
        assert_eq!(rates(&stopped), [(Write, 1024, 10.0, None)]);
    }

    #[test]
    fn units() {
        let row = "53248 1024 10 20 40 80\n";
        let of = |unit: &str| rates(&format!("{unit}\n{HEADER}{row}"))[0].2;
        assert_eq!(of("Output is in kBytes/sec"), 10.0);
        assert_eq!(of("OPS Mode. Output is in operations per second."), 10240.0);
        assert_eq!(of("Output is in ops/sec"), 10240.0);
        assert_eq!(
            of("Microseconds/op Mode. Output is in microseconds per operation."),
            1024.0 * 1e6 / 10.0
        );
    }

    #[test]
    fn no_second_pass() {
        let first = format!("{HEADER}53248 1024 10 0 40 0\n53248 2048 10 0 40 0\n");
        assert!(rates(&first).iter().all(|row| row.3.is_none()));
        let one_zero = format!("{HEADER}53248 1024 10 0 40 0\n53248 2048 10 9 40 0\n");
        assert_eq!(rates(&one_zero)[0].3, Some(0.0));
    }

    #[test]
    fn reports() {
        use Direction::{Read, Write};
        let text = "Excel output is below:\n\n\"Writer report\"\n        \"4\"  \"8\"\n\"64\"   100  200 \n\"128\"  300  0 \n\n\
            \"Re-writer report\"\n \"4\" \"8\"\n\"64\" 110 210\n\n\"Reader report\"\n\"4\" \"8\"\n\"64\" 5 6\n\
            \n\"Random read report\"\n\"4\"\n\"64\" 7\n";
        let reports = [
            (Write, 4, 100.0, Some(110.0)),
            (Write, 8, 200.0, Some(210.0)),
            (Write, 4, 300.0, None),
            (Read, 4, 5.0, None),
            (Read, 8, 6.0, None),
        ];
        assert_eq!(rates(text), reports);
        let table = format!("{HEADER}64 4 1 2 3 4\n{text}");
        assert_eq!(rates(&table).len(), 2, "the reports repeat the table");
    }

    #[test]
    fn a_whole_sweep_in_one_file() {
        let text =
            format!("run=disk nconnect=1\n{HEADER}64 4 1 2 3 4\n# nconnect=2\n64 4 1 2 3 4\nrun=tmpfs\n64 4 1 2 3 4\n");
        let places: Vec<_> = read(&text, "nconnect")
            .unwrap()
            .measured
            .into_iter()
            .map(|m| (m.run, m.setting))
            .collect();
        let place = |run: &str, setting| (Some(run.to_owned()), Some(setting));
        assert_eq!(
            places,
            [
                ("disk", 1),
                ("disk", 1),
                ("disk", 2),
                ("disk", 2),
                ("tmpfs", 2),
                ("tmpfs", 2)
            ]
            .map(|(r, s)| place(r, s))
        );
    }

    #[test]
    fn bad_rows_are_named() {
        for (row, why) in [
            ("53248 0 1 2", "not a size of file or record"),
            ("53248 99999999999999999999 1 2", "not a size of file or record"),
            ("53248 4 1 x", "not a rate"),
            ("53248 4 99999999999999999999", "not a rate"),
        ] {
            assert_eq!(
                read(&format!("{HEADER}{row}\n"), "nconnect"),
                Err(Bad::new(2, why)),
                "{row}"
            );
        }
        assert_eq!(read(HEADER, "nconnect").unwrap_err().line, 1);
    }
}
