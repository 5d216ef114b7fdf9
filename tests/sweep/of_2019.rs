//! Every number of the evaluation of 2019's data, to the digits in which it is known.

use nfsrahead::nconnect::sweep::cells::Cell;
use nfsrahead::nconnect::sweep::model::{judge, Class, Depth, Verdict};
use nfsrahead::nconnect::sweep::Direction::{self, Read, Write};
use nfsrahead::nconnect::sweep::Sample;

use crate::data::{class, printed, question, report, run, samples_of, texts};

fn places(cells: &[Cell]) -> Vec<(u64, u64)> {
    cells
        .iter()
        .map(|cell| (cell.setting, cell.work.record_bytes / 1024))
        .collect()
}

fn scores(class: &Class) -> Vec<String> {
    class
        .scores
        .iter()
        .map(|score| printed(score.score.unwrap(), 2))
        .collect()
}

#[test]
fn noise_and_what_one_connection_has_carried() {
    let report = report(0.05);
    for (name, direction, noise, carried_kib) in [
        ("disk", Read, "4.1", 1_932_496.0),
        ("tmpfs", Read, "3.3", 1_932_496.0),
        ("disk", Write, "2.0", 1_954_500.0),
        ("tmpfs", Write, "3.2", 1_954_500.0),
    ] {
        let run = run(&report, name, direction);
        assert_eq!(
            printed(100.0 * run.placebo_noise.unwrap(), 1),
            noise,
            "{name} {direction:?}"
        );
        assert_eq!(
            run.one_connection_bytes_per_second,
            Some(carried_kib * 1024.0),
            "{name} {direction:?}"
        );
        assert_eq!(run.settings, (1..=10).collect::<Vec<_>>());
    }
}

#[test]
fn outliers_stalls_and_suspects() {
    let report = report(0.05);
    for (name, direction, outliers, stalls, suspects) in [
        ("disk", Read, 14, vec![(4, 16384)], vec![]),
        ("tmpfs", Read, 9, vec![(3, 16384), (6, 8192)], vec![]),
        ("disk", Write, 1, vec![], vec![(1, 2048), (1, 4096), (1, 8192)]),
        ("tmpfs", Write, 10, vec![(2, 16384)], vec![]),
    ] {
        let run = run(&report, name, direction);
        assert_eq!(run.outliers.len(), outliers, "{name} {direction:?}");
        assert_eq!(places(&run.stalls), stalls, "{name} {direction:?}");
        assert_eq!(places(&run.suspects), suspects, "{name} {direction:?}");
    }
    // Low, but not low enough to be a stall: it stays in, and costs ten connections their score.
    let disk_read = run(&report, "disk", Read);
    assert!(places(&disk_read.outliers).contains(&(10, 8192)));
}

#[test]
fn disk_read() {
    let report = report(0.05);
    let deep = class(run(&report, "disk", Read), Depth::Many);
    assert_eq!(deep.verdict, Verdict::Gain(6));
    assert_eq!(printed(deep.gain.unwrap(), 2), "1.94");
    assert_eq!(printed(deep.gain_needed.unwrap(), 2), "1.16");
    assert_eq!(printed(deep.confidence.unwrap(), 2), "0.92");
    let expected = [
        "0.52", "0.63", "0.83", "0.97", "0.91", "1.00", "0.96", "0.98", "0.99", "0.74",
    ];
    assert_eq!(scores(deep), expected);
    let cells: Vec<usize> = deep.scores.iter().map(|score| score.parts.len()).collect();
    assert_eq!(cells, [2, 2, 2, 1, 2, 2, 2, 2, 2, 2]);
    let shallow = class(run(&report, "disk", Read), Depth::Few);
    assert_eq!(shallow.verdict, Verdict::NoGain(1));
    assert_eq!(printed(shallow.gain.unwrap(), 2), "1.20");
    assert_eq!(printed(shallow.gain_needed.unwrap(), 2), "1.39");
}

#[test]
fn tmpfs_read() {
    let report = report(0.05);
    let deep = class(run(&report, "tmpfs", Read), Depth::Many);
    assert_eq!(deep.verdict, Verdict::Gain(4));
    assert_eq!(printed(deep.gain.unwrap(), 2), "1.96");
    assert_eq!(printed(deep.gain_needed.unwrap(), 2), "1.32");
    assert_eq!(printed(deep.confidence.unwrap(), 2), "0.57");
    let expected = [
        "0.51", "0.90", "0.91", "0.96", "0.94", "0.97", "0.88", "0.99", "0.99", "0.72",
    ];
    assert_eq!(scores(deep), expected);
    assert_eq!(class(run(&report, "tmpfs", Read), Depth::Few).verdict, Verdict::Gain(2));
}

#[test]
fn disk_write() {
    let report = report(0.05);
    let run = run(&report, "disk", Write);
    let deep = class(run, Depth::Many);
    assert_eq!(deep.verdict, Verdict::NotTransportBound(1));
    assert_eq!(deep.confidence, Some(0.5), "a suspect series");
    let peak = deep.peak_bytes_per_second.unwrap();
    assert_eq!(printed(peak / 1024.0 / 1e6, 2), "0.18", "million KiB/s");
    assert_eq!(
        printed(100.0 * peak / run.one_connection_bytes_per_second.unwrap(), 0),
        "9"
    );
}

#[test]
fn tmpfs_write() {
    let report = report(0.05);
    let deep = class(run(&report, "tmpfs", Write), Depth::Many);
    assert_eq!(deep.verdict, Verdict::NoGain(1));
    assert_eq!(printed(deep.gain.unwrap(), 2), "1.00");
    assert_eq!(printed(deep.gain_needed.unwrap(), 2), "2.22");
    assert_eq!(deep.confidence, Some(0.9));
    let others = deep.scores[1..].iter().map(|score| score.score.unwrap());
    assert_eq!(printed(others.clone().fold(f64::INFINITY, f64::min), 2), "0.67");
    assert_eq!(printed(others.fold(0.0, f64::max), 2), "0.99");
    let record = deep.cells.iter().max_by(|a, b| a.best().total_cmp(&b.best())).unwrap();
    assert_eq!((record.setting, record.best()), (1, 1_954_500.0 * 1024.0));
}

#[test]
fn a_wider_tolerance_is_content_with_fewer() {
    let report = report(0.10);
    let answer = |name: &str| class(run(&report, name, Read), Depth::Many).verdict;
    assert_eq!(answer("disk"), Verdict::Gain(5));
    assert_eq!(answer("tmpfs"), Verdict::Gain(2));
}

#[test]
fn pooled() {
    let report = report(0.05);
    let pooled = |direction: Direction, depth: Depth| {
        report
            .pooled
            .iter()
            .find(|pooled| (pooled.direction, pooled.depth) == (direction, depth))
    };
    let deep = pooled(Read, Depth::Many).unwrap();
    assert_eq!(deep.verdict, Verdict::Gain(4));
    assert_eq!(printed(deep.gain, 2), "1.96");
    let score = |setting: u64| printed(deep.scores.iter().find(|(n, _)| *n == setting).unwrap().1, 2);
    assert_eq!((score(4).as_str(), score(6).as_str()), ("0.97", "0.99"));
    assert_eq!(pooled(Read, Depth::Few).unwrap().verdict, Verdict::NoGain(1));
    assert_eq!(
        pooled(Write, Depth::Many),
        None,
        "only one run is bound by the transport"
    );
}

#[test]
fn advice() {
    let report = report(0.05);
    let [read, write] = report.advice.as_slice() else {
        panic!("{:?}", report.advice)
    };
    assert_eq!(
        (read.direction, read.depth, read.tries.as_slice()),
        (Read, Some(Depth::Many), &[4, 6][..])
    );
    assert_eq!(
        (write.direction, write.tries.as_slice(), write.leave),
        (Write, &[][..], Some(1))
    );
    assert_eq!(report.repetitions, 1);
}

/// The setting of the largest number is what a simple evaluation takes.
#[test]
fn the_largest_number_is_no_answer() {
    let samples = samples_of(&texts());
    let report = judge(&samples, &question(0.05));
    for (direction, largest, answer) in [(Read, 10, 6), (Write, 3, 1)] {
        let disk = samples
            .iter()
            .filter(|sample| sample.run == "disk" && sample.direction == direction);
        let better = |s: &Sample| s.again_bytes_per_second.unwrap().max(s.bytes_per_second);
        let most = disk.max_by(|a, b| better(a).total_cmp(&better(b))).unwrap();
        assert_eq!(most.setting, largest);
        let deep = class(run(&report, "disk", direction), Depth::Many);
        assert_eq!(deep.verdict.answer(), Some(answer));
    }
}
