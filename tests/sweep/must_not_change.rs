//! What says nothing about connections must not change what is said about them.

use nfsrahead::nconnect::sweep::model::{judge, Depth, Verdict};
use nfsrahead::nconnect::sweep::Direction::{self, Read, Write};
use nfsrahead::nconnect::sweep::Sample;
use proptest::prelude::*;

use crate::data::{class, question, run, samples_of, texts};

/// What is to be done: the answer of each run, of all together, and the advice.
#[derive(Debug, Clone, PartialEq)]
struct Answers {
    disk_read: Verdict,
    tmpfs_read: Verdict,
    disk_write: Verdict,
    tmpfs_write: Verdict,
    pooled_read: Verdict,
    tries: Vec<Vec<u64>>,
}

fn answers(samples: &[Sample]) -> Answers {
    let report = judge(samples, &question(0.05));
    let of = |name: &str, direction: Direction| class(run(&report, name, direction), Depth::Many).verdict;
    let pooled =
        |pooled: &&nfsrahead::nconnect::sweep::model::Pooled| (pooled.direction, pooled.depth) == (Read, Depth::Many);
    Answers {
        disk_read: of("disk", Read),
        tmpfs_read: of("tmpfs", Read),
        disk_write: of("disk", Write),
        tmpfs_write: of("tmpfs", Write),
        pooled_read: report.pooled.iter().find(pooled).unwrap().verdict,
        tries: report.advice.iter().map(|advice| advice.tries.clone()).collect(),
    }
}

fn expected() -> Answers {
    Answers {
        disk_read: Verdict::Gain(6),
        tmpfs_read: Verdict::Gain(4),
        disk_write: Verdict::NotTransportBound(1),
        tmpfs_write: Verdict::NoGain(1),
        pooled_read: Verdict::Gain(4),
        tries: vec![vec![4, 6], vec![]],
    }
}

/// The texts with their rows, and only those, changed.
fn with_rows(change: impl Fn(&str, Vec<u64>) -> Vec<String>) -> Vec<(String, String)> {
    let mut texts = texts();
    for (name, text) in &mut texts {
        let lines = text.lines().map(|line| {
            let row: Option<Vec<u64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
            match row.filter(|row| row.len() == 6) {
                Some(row) => change(name, row).join("  "),
                None => line.to_owned(),
            }
        });
        *text = lines.collect::<Vec<_>>().join("\n");
    }
    texts
}

fn words(row: Vec<u64>) -> Vec<String> {
    row.iter().map(u64::to_string).collect()
}

#[test]
fn as_it_is() {
    assert_eq!(answers(&samples_of(&texts())), expected());
    assert_eq!(answers(&samples_of(&with_rows(|_, row| words(row)))), expected());
}

#[test]
fn operations_a_second() {
    let mut texts = with_rows(|_, row| {
        let record = row[1];
        let ops = row[2..].iter().map(|kib| ((kib + record / 2) / record).to_string());
        row[..2].iter().map(u64::to_string).chain(ops).collect()
    });
    for (_, text) in &mut texts {
        *text = text.replace(
            "Output is in kBytes/sec",
            "OPS Mode. Output is in operations per second.",
        );
    }
    assert_eq!(answers(&samples_of(&texts)), expected());
}

#[test]
fn wrapped_headers() {
    let mut texts = texts();
    for (_, text) in &mut texts {
        *text = text
            .replace("    read    reread", "\n    read\n    reread")
            .replace("  reclen ", "\nreclen\n");
    }
    assert_eq!(answers(&samples_of(&texts)), expected());
}

#[test]
fn no_command_line() {
    let mut texts = texts();
    for (_, text) in &mut texts {
        *text = text
            .lines()
            .filter(|line| !line.contains("Command line"))
            .collect::<Vec<_>>()
            .join("\n");
    }
    assert_eq!(answers(&samples_of(&texts)), expected());
}

#[test]
fn a_pass_that_moved_nothing() {
    let zeroed = with_rows(|_, row| words(row.into_iter().map(|n| if n == 7378 { 0 } else { n }).collect()));
    assert_ne!(samples_of(&zeroed), samples_of(&texts()));
    assert_eq!(answers(&samples_of(&zeroed)), expected());
}

#[test]
fn the_same_files_twice() {
    let mut twice = texts();
    twice.extend(texts());
    assert_eq!(answers(&samples_of(&twice)), expected());
}

#[test]
fn the_same_runs_under_another_name() {
    let mut twice = texts();
    let copies = texts()
        .into_iter()
        .map(|(name, text)| (format!("copy-of-{name}"), text));
    twice.extend(copies);
    assert_eq!(answers(&samples_of(&twice)), expected());
}

/// A record size that one file lacks is not compared; those of the class itself are what is compared.
#[test]
fn missing_records() {
    for lost in [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096] {
        let mut texts = texts();
        for name in ["disk-nconnect-03.txt", "tmpfs-nconnect-07.txt"] {
            let (_, text) = texts.iter_mut().find(|(n, _)| n == name).unwrap();
            let keep = |line: &&str| line.split_whitespace().nth(1) != Some(&lost.to_string());
            *text = text.lines().filter(keep).collect::<Vec<_>>().join("\n");
        }
        assert_eq!(answers(&samples_of(&texts)), expected(), "without {lost}");
    }
}

/// Each setting left out in turn, where it is neither the answer nor beside it nor what all are compared with.
#[test]
fn a_missing_setting() {
    let all = samples_of(&texts());
    for lost in 2..=10u64 {
        let some: Vec<Sample> = all.iter().filter(|sample| sample.setting != lost).cloned().collect();
        let report = judge(&some, &question(0.05));
        for (name, direction, verdict, answer) in [
            ("disk", Read, Verdict::Gain(6), 6u64),
            ("tmpfs", Read, Verdict::Gain(4), 4),
            ("disk", Write, Verdict::NotTransportBound(1), 1),
            ("tmpfs", Write, Verdict::NoGain(1), 1),
        ] {
            if lost.abs_diff(answer) > 1 {
                let found = class(run(&report, name, direction), Depth::Many).verdict;
                assert_eq!(found, verdict, "{name} {direction:?} without {lost}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn order(samples in Just(samples_of(&texts())).prop_shuffle()) {
        prop_assert_eq!(answers(&samples), expected());
    }

    #[test]
    fn scale(factor in 0.001f64..1000.0) {
        let mut samples = samples_of(&texts());
        for sample in &mut samples {
            sample.bytes_per_second *= factor;
            sample.again_bytes_per_second = sample.again_bytes_per_second.map(|rate| rate * factor);
        }
        prop_assert_eq!(answers(&samples), expected());
    }

    #[test]
    fn which_pass_was_first(swapped in proptest::collection::vec(any::<bool>(), 560)) {
        let mut samples = samples_of(&texts());
        for (sample, _) in samples.iter_mut().zip(swapped).filter(|(_, swap)| *swap) {
            let again = sample.again_bytes_per_second.replace(sample.bytes_per_second);
            sample.bytes_per_second = again.unwrap();
        }
        prop_assert_eq!(answers(&samples), expected());
    }

    /// What a program may be given: whatever the numbers, what is said of them is finite and within its bounds.
    #[test]
    fn any_numbers(
        rows in proptest::collection::vec((1u64..6, 0u32..8, 0usize..2, 0f64..1e15, proptest::option::of(0f64..1e15)), 0..80),
        is_nconnect in any::<bool>(),
    ) {
        let samples: Vec<Sample> = rows
            .into_iter()
            .map(|(setting, shift, repetition, first, again)| Sample {
                run: String::new(),
                setting,
                repetition: (repetition, 0),
                direction: if shift % 2 == 0 { Read } else { Write },
                work: nfsrahead::nconnect::sweep::Work {
                    file_bytes: None,
                    is_random: false,
                    in_flight_bytes: (1 << 18) << shift,
                    record_bytes: (1 << 18) << shift,
                },
                bytes_per_second: first,
                again_bytes_per_second: again,
            })
            .collect();
        let mut question = question(0.05);
        if !is_nconnect {
            question.variable = "readahead".to_owned();
        }
        for run in judge(&samples, &question).runs {
            for class in run.classes {
                if let Some(confidence) = class.confidence {
                    prop_assert!((0.0..=1.0).contains(&confidence), "{}", confidence);
                }
                if let Some(answer) = class.verdict.answer() {
                    prop_assert!(run.settings.contains(&answer));
                    prop_assert!(class.gain.unwrap().is_finite() && class.gain_needed.unwrap() >= 1.1);
                }
            }
        }
    }
}
