//! Files from anywhere: no text makes a reader panic or run away, and what is no result is an error that names its line.

use std::time::{Duration, Instant};

use nfsrahead::nconnect::sweep::label::label;
use nfsrahead::nconnect::sweep::model::{judge, Depth, Verdict};
use nfsrahead::nconnect::sweep::{csv, iozone, samples, Format, Source, MAX_ROWS};
use proptest::prelude::*;

use crate::data::{question, texts};

/// Everything that the library does with a text.
fn swallow(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let format = Format::of(&text);
    let lines = u64::try_from(text.lines().count().max(1)).unwrap();
    for reading in [iozone::read(&text, "nconnect"), csv::read(&text, "nconnect")] {
        match reading {
            Ok(reading) => {
                let (first, second) = (reading.measured.clone(), reading.measured);
                let source = |setting, measured| Source {
                    setting: Some(setting),
                    run: String::new(),
                    measured,
                };
                judge(
                    &samples(&[source(1, first), source(2, second)]).unwrap(),
                    &question(0.05),
                );
            }
            Err(bad) => assert!((1..=lines).contains(&bad.line), "{bad:?} {format:?}"),
        }
    }
    label(&text, "nconnect");
}

/// A real file with bytes changed, cut off, or put in.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let texts: Vec<Vec<u8>> = texts().into_iter().map(|(_, text)| text.into_bytes()).collect();
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), 0u8..3, any::<u8>()), 0..12);
    (prop::sample::select(texts), edits).prop_map(|(mut text, edits)| {
        for (at, what, byte) in edits {
            let at = at.index(text.len().max(1));
            match what {
                0 if at < text.len() => text[at] = byte,
                1 => text.insert(at.min(text.len()), b"0123456789 \n\"=,-.\xff"[usize::from(byte) % 18]),
                _ => text.truncate(at.max(40)),
            }
        }
        text
    })
}

/// Words of all formats in any order.
fn word_salad() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "kB reclen write",
        "Command line used:",
        "-i0",
        "-i",
        "53248",
        "0",
        "4",
        "18446744073709551615",
        "\"Writer report\"",
        "\"Re-reader report\"",
        "\"4\"",
        "nconnect=3",
        "nconnect=",
        "run=x",
        "operations per second",
        "\n",
        ",",
        "direction",
        "record_bytes",
        "bytes_per_second",
        "nconnect",
        "read",
        "write",
        "{",
        "\"jobs\"",
        "#",
        "1e9",
        "-1",
        "nan",
        "é",
        "\u{feff}",
    ]);
    proptest::collection::vec((word, prop::sample::select(vec![" ", "\n", ","])), 0..60).prop_map(|words| {
        words
            .into_iter()
            .map(|(word, gap)| format!("{word}{gap}"))
            .collect::<String>()
            .into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        swallow(&bytes);
    }

    #[test]
    fn random_words(bytes in word_salad()) {
        swallow(&bytes);
    }

    #[test]
    fn damaged_files(bytes in mutated()) {
        swallow(&bytes);
    }
}

#[test]
fn no_format() {
    for text in ["", "\n", "hello\n", "a,b,c\n1,2,3\n", "{\"x\":1}", "[global]\nbs=1M\n"] {
        assert_eq!(Format::of(text), None, "{text:?}");
    }
}

fn within(guard: Duration, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    assert!(start.elapsed() < guard, "{:?}", start.elapsed());
}

#[test]
fn as_many_rows_as_allowed_and_no_more() {
    let header = "nconnect,direction,record_bytes,bytes_per_second\n";
    let many = |setting: fn(usize) -> usize, record: fn(usize) -> usize, rows: usize| {
        let row = |n| format!("{},read,{},{}\n", setting(n), 4096 * (1 + record(n)), 1000 + n % 7);
        header.to_owned() + &(0..rows).map(row).collect::<String>()
    };
    let verdict = |text: String| {
        let measured = csv::read(&text, "nconnect").unwrap().measured;
        let source = Source {
            setting: None,
            run: String::new(),
            measured,
        };
        let report = judge(&samples(&[source]).unwrap(), &question(0.05));
        report.runs[0]
            .classes
            .iter()
            .find(|class| class.depth == Depth::Many)
            .unwrap()
            .verdict
    };
    within(Duration::from_secs(120), || {
        // Many settings, many records, many repetitions.
        assert!(matches!(
            verdict(many(|n| n, |_| 4096, MAX_ROWS)),
            Verdict::Undecided(_)
        ));
        assert!(verdict(many(|n| n % 2, |n| n / 2, MAX_ROWS)).answer().is_some());
        assert!(verdict(many(|n| n % 2, |_| 4096, MAX_ROWS)).answer().is_some());
    });
    let bad = csv::read(&many(|n| n, |n| n, MAX_ROWS + 1), "nconnect").unwrap_err();
    assert_eq!(bad.line, 2 + u64::try_from(MAX_ROWS).unwrap());
    let table = "kB reclen\n".to_owned() + &"64 4 1 2 3 4\n".repeat(MAX_ROWS / 2 + 1);
    assert_eq!(
        iozone::read(&table, "nconnect").unwrap_err().why,
        format!("more than {MAX_ROWS} rows")
    );
}
