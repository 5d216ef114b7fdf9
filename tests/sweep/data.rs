//! The sweep of 2019 (Linux 4.20-rc7, 40 Gbit/s, `iozone -i0 -i1 -s52m -y2k -az -I`), one file a run and setting; and short
//! ways to ask about it.

use std::fs;
use std::path::{Path, PathBuf};

use nfsrahead::nconnect::sweep::label::label;
use nfsrahead::nconnect::sweep::model::{judge, Class, Depth, Question, Report, Run};
use nfsrahead::nconnect::sweep::{iozone, samples, Direction, Sample, Source};

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/iozone")
}

/// Names and texts, in the order of the names.
pub fn texts() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert_eq!(paths.len(), 20);
    let text = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    paths.into_iter().map(text).collect()
}

pub fn samples_of(texts: &[(String, String)]) -> Vec<Sample> {
    let source = |(name, text): &(String, String)| {
        let label = label(name, "nconnect");
        Source {
            setting: label.setting,
            run: label.run,
            measured: iozone::read(text, "nconnect").unwrap().measured,
        }
    };
    samples(&texts.iter().map(source).collect::<Vec<_>>()).unwrap()
}

pub fn question(tolerance: f64) -> Question {
    Question {
        variable: "nconnect".to_owned(),
        rsize_bytes: 1 << 20,
        tolerance,
    }
}

pub fn report(tolerance: f64) -> Report {
    judge(&samples_of(&texts()), &question(tolerance))
}

pub fn run<'a>(report: &'a Report, name: &str, direction: Direction) -> &'a Run {
    report
        .runs
        .iter()
        .find(|run| run.run == name && run.direction == direction)
        .unwrap()
}

pub fn class(run: &Run, depth: Depth) -> &Class {
    run.classes.iter().find(|class| class.depth == depth).unwrap()
}

/// As a page prints it.
pub fn printed(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}")
}
