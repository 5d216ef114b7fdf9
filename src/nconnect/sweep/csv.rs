//! A plain table with commas, for results of any other benchmark. The first line names the columns, in any order:
//!
//! - `direction`: read or write
//! - `record_bytes`: the size of one read() or write()
//! - `in_flight_bytes`: what all callers together have on the way; without it, one record
//! - `bytes_per_second`, and `again_bytes_per_second` for the same measured once more right after
//! - the name of the variable (`nconnect`): the setting; without it, the file's name tells
//! - `run`: a name for the sweep that the row belongs to
//! - `file_bytes`: the size of the file
//!
//! Other columns are passed over. A cell may stand in double quotes; a comma inside is not understood. Lines that start
//! with # are comments.

use super::number::{rate, size};
use super::{Bad, Direction, Measured, Reading, Work, MAX_ROWS};

fn rows(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(index, line)| {
            (
                index + 1,
                line.split(',').map(|cell| cell.trim().trim_matches('"')).collect(),
            )
        })
}

/// Does the first line name the columns that cannot be missing?
pub fn is_csv(text: &str) -> bool {
    let header = rows(text).next();
    header.is_some_and(|(_, names)| names.contains(&"bytes_per_second"))
}

pub fn read(text: &str, variable: &str) -> Result<Reading, Bad> {
    let mut rows = rows(text);
    let (line, names) = rows.next().ok_or_else(|| Bad::new(1, "no header"))?;
    let column = |name: &str| names.iter().position(|n| n.eq_ignore_ascii_case(name));
    let needed = |name: &str| column(name).ok_or_else(|| Bad::new(line, format!("no column {name}")));
    let (direction, record, rates) = (
        needed("direction")?,
        needed("record_bytes")?,
        needed("bytes_per_second")?,
    );
    let (in_flight, again) = (column("in_flight_bytes"), column("again_bytes_per_second"));
    let (setting, run, file) = (column(variable), column("run"), column("file_bytes"));
    let mut measured = Vec::new();
    for (line, cells) in rows {
        if measured.len() == MAX_ROWS {
            return Err(Bad::new(line, format!("more than {MAX_ROWS} rows")));
        }
        let row = Row { line, cells };
        let record_bytes = row.size(record)?;
        measured.push(Measured {
            work: Work {
                file_bytes: row.given(file).map(|file| row.size(file)).transpose()?,
                is_random: false,
                in_flight_bytes: row.size(row.given(in_flight).unwrap_or(record))?,
                record_bytes,
            },
            direction: row.direction(direction)?,
            bytes_per_second: row.rate(rates)?,
            again_bytes_per_second: row.given(again).map(|again| row.rate(again)).transpose()?,
            setting: row.given(setting).map(|setting| row.whole(setting)).transpose()?,
            run: row.given(run).map(|run| row.cells[run].to_owned()),
        });
    }
    if measured.is_empty() {
        return Err(Bad::new(line, "a header and no rows"));
    }
    Ok(Reading {
        measured,
        cautions: Vec::new(),
    })
}

struct Row<'a> {
    line: usize,
    cells: Vec<&'a str>,
}

impl Row<'_> {
    /// The column, where the file has it and this row says something in it.
    fn given(&self, column: Option<usize>) -> Option<usize> {
        column.filter(|&column| self.cells.get(column).is_some_and(|cell| !cell.is_empty()))
    }

    fn parse<T>(&self, column: usize, parse: impl Fn(&str) -> Option<T>, what: &str) -> Result<T, Bad> {
        let cell = self.cells.get(column).copied().unwrap_or_default();
        parse(cell).ok_or_else(|| Bad::new(self.line, format!("cell {}: not {what}", column + 1)))
    }

    fn whole(&self, column: usize) -> Result<u64, Bad> {
        self.parse(column, size, "a whole number")
    }

    fn size(&self, column: usize) -> Result<u64, Bad> {
        self.parse(column, |cell| size(cell).filter(|bytes| *bytes > 0), "a size in bytes")
    }

    fn rate(&self, column: usize) -> Result<f64, Bad> {
        self.parse(column, rate, "a rate")
    }

    fn direction(&self, column: usize) -> Result<Direction, Bad> {
        let parse = |cell: &str| match cell.to_ascii_lowercase().as_str() {
            "read" => Some(Direction::Read),
            "write" => Some(Direction::Write),
            _ => None,
        };
        self.parse(column, parse, "read or write")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_any_order() {
        let text = "# by hand\nrun,nconnect,bytes_per_second,direction,record_bytes,in_flight_bytes,note\n\
            a,4,1000,read,65536,262144,x\n\"b\", 8 ,2000.5,WRITE,65536,,\n";
        let measured = read(text, "nconnect").unwrap().measured;
        let [a, b] = measured.as_slice() else {
            panic!("{measured:?}")
        };
        assert_eq!(
            (a.run.as_deref(), a.setting, a.work.in_flight_bytes),
            (Some("a"), Some(4), 262_144)
        );
        assert_eq!(
            (a.direction, a.bytes_per_second, a.again_bytes_per_second),
            (Direction::Read, 1000.0, None)
        );
        assert_eq!(
            (b.run.as_deref(), b.setting, b.work.in_flight_bytes),
            (Some("b"), Some(8), 65_536)
        );
        assert_eq!((b.direction, b.bytes_per_second), (Direction::Write, 2000.5));
        assert_eq!(read(text, "rsize").unwrap().measured[0].setting, None);
    }

    #[test]
    fn bad_cells_are_named() {
        let header = "direction,record_bytes,bytes_per_second,nconnect";
        for (row, why) in [
            ("up,1,1,1", "cell 1: not read or write"),
            ("read,0,1,1", "cell 2: not a size in bytes"),
            ("read,1,fast,1", "cell 3: not a rate"),
            ("read,1,1,-1", "cell 4: not a whole number"),
            ("read", "cell 2: not a size in bytes"),
        ] {
            assert_eq!(
                read(&format!("{header}\n\n{row}\n"), "nconnect"),
                Err(Bad::new(3, why)),
                "{row}"
            );
        }
        assert_eq!(
            read("bytes_per_second\n1\n", "n"),
            Err(Bad::new(1, "no column direction"))
        );
        assert_eq!(read(header, "n"), Err(Bad::new(1, "a header and no rows")));
    }
}
