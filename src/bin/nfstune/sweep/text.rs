//! What `nfstune sweep` says to people: first what to do, then why, then what not to believe.

use std::fmt::Write as _;

use nfsrahead::nconnect::sweep::cells::Cell;
use nfsrahead::nconnect::sweep::model::{Advice, Class, Depth, Pooled, Run, Score, Undecided, Verdict};
use nfsrahead::nconnect::sweep::Work;
use nfsrahead::report::escape::{escape, escape_path};
use nfsrahead::report::table::table;

use super::Outcome;

/// Cells to name one by one; the rest is counted. JSON has all.
const MAX_NAMED: usize = 40;
/// Fewer equal measurements than this do not tell a stall from a slow setting.
const ENOUGH_REPETITIONS: usize = 3;

pub fn text(outcome: &Outcome) -> String {
    let mut out = advice(outcome);
    out.push('\n');
    out.push_str(&answers(outcome));
    if let Some(scores) = scores(outcome) {
        out.push('\n');
        out.push_str(&scores);
    }
    for run in &outcome.report.runs {
        distrusted(&mut out, outcome, run);
    }
    for (path, caution) in &outcome.cautions {
        let _ = writeln!(out, "\n{}: {caution}", escape_path(path));
    }
    out
}

/// The one line that matters.
fn advice(outcome: &Outcome) -> String {
    let mut parts: Vec<String> = outcome.report.advice.iter().map(one_advice).collect();
    if outcome.report.repetitions < ENOUGH_REPETITIONS {
        let variable = &outcome.question.variable;
        parts.push(format!(
            "repeat each {variable} at least {ENOUGH_REPETITIONS} times, in random order"
        ));
    }
    let undecided = outcome.report.advice.iter().filter(|advice| advice.depth.is_none());
    let mut measure: Vec<&str> = outcome
        .report
        .runs
        .iter()
        .filter(|run| undecided.clone().any(|advice| advice.direction == run.direction))
        .flat_map(told)
        .filter_map(|class| match class.verdict {
            Verdict::Undecided(why) => Some(why.measure()),
            _ => None,
        })
        .collect();
    measure.sort_unstable();
    measure.dedup();
    let mut out = format!("{}\n", parts.join("; "));
    for next in measure {
        let _ = writeln!(out, "to decide: {next}");
    }
    out
}

fn one_advice(advice: &Advice) -> String {
    let direction = advice.direction.name();
    let tries: Vec<String> = advice.tries.iter().map(u64::to_string).collect();
    match advice.leave {
        None => format!("{direction}s: cannot decide"),
        Some(leave) if tries.is_empty() => format!("{direction}s: leave {leave}"),
        Some(_) => format!("{direction}s: try {}", tries.join(", then ")),
    }
}

/// A depth that was not measured is worth a word only where no other was.
fn told(run: &Run) -> impl Iterator<Item = &Class> {
    let is_measured = |class: &&Class| class.verdict != Verdict::Undecided(Undecided::NoSuchDepth);
    let is_any = run.classes.iter().any(|class| is_measured(&class));
    run.classes.iter().filter(move |class| !is_any || is_measured(class))
}

fn name(run: &str) -> String {
    if run.is_empty() {
        "-".to_owned()
    } else {
        escape(run)
    }
}

/// Of how many requests of rsize were on the way.
fn depth(depth: Depth) -> String {
    match depth {
        Depth::Any => "any".to_owned(),
        depth => format!("{} rsize", depth.name()),
    }
}

fn answers(outcome: &Outcome) -> String {
    let mut rows = vec![["RUN", "DIRECTION", "IN FLIGHT", "ANSWER", "CONFIDENCE", "WHY"].map(str::to_owned)];
    for run in &outcome.report.runs {
        for class in told(run) {
            rows.push([
                name(&run.run),
                run.direction.name().to_owned(),
                depth(class.depth),
                class
                    .verdict
                    .answer()
                    .map_or("-".to_owned(), |answer| answer.to_string()),
                class
                    .confidence
                    .map_or("-".to_owned(), |confidence| format!("{confidence:.2}")),
                why(outcome, run, class),
            ]);
        }
    }
    for pooled in &outcome.report.pooled {
        rows.push([
            "all".to_owned(),
            pooled.direction.name().to_owned(),
            depth(pooled.depth),
            pooled
                .verdict
                .answer()
                .map_or("-".to_owned(), |answer| answer.to_string()),
            "-".to_owned(),
            why_pooled(outcome, pooled),
        ]);
    }
    table(&rows)
}

fn why(outcome: &Outcome, run: &Run, class: &Class) -> String {
    let mut why = match (class.verdict, class.gain.zip(class.gain_needed)) {
        (Verdict::Undecided(undecided), _) => format!("cannot decide: {}: {}", undecided.why(), undecided.measure()),
        (Verdict::NotTransportBound(_), _) => not_transport_bound(run, class),
        (verdict, Some((gain, needed))) => why_gain(outcome, verdict, gain, needed),
        (verdict, None) => verdict.name().to_owned(),
    };
    if run
        .suspects
        .iter()
        .any(|cell| class.works.binary_search(&cell.work).is_ok())
    {
        why.push_str("; suspect series");
    }
    why
}

fn not_transport_bound(run: &Run, class: &Class) -> String {
    let peak = class.peak_bytes_per_second.unwrap_or(0.0);
    let carried = run.one_connection_bytes_per_second.unwrap_or(f64::INFINITY);
    format!(
        "not transport-bound: the best, {}, is {:.0} % of the {} that one connection has carried",
        mib(peak),
        100.0 * peak / carried,
        mib(carried)
    )
}

fn why_gain(outcome: &Outcome, verdict: Verdict, gain: f64, needed: f64) -> String {
    match verdict {
        Verdict::Gain(_) => format!(
            "gain {gain:.2} x ({needed:.2} x needed), smallest within {} % of the best",
            100.0 * outcome.question.tolerance
        ),
        _ => format!("no gain: the best is {gain:.2} x, {needed:.2} x needed"),
    }
}

fn why_pooled(outcome: &Outcome, pooled: &Pooled) -> String {
    why_gain(outcome, pooled.verdict, pooled.gain, pooled.gain_needed)
}

/// How fast each setting was, as a part of how fast it can be. None where nothing was compared.
fn scores(outcome: &Outcome) -> Option<String> {
    let mut rows = vec![["RUN", "DIRECTION", "IN FLIGHT", "SCORES"].map(str::to_owned)];
    for run in &outcome.report.runs {
        for class in run.classes.iter().filter(|class| !class.scores.is_empty()) {
            let enough = class.works.len().min(2);
            let one = |score: &Score| {
                let value = score.score.map_or("-".to_owned(), |value| format!("{value:.2}"));
                let few = if score.parts.len() < enough {
                    " (too few cells)"
                } else {
                    ""
                };
                format!("{}: {value}{few}", score.setting)
            };
            rows.push([
                name(&run.run),
                run.direction.name().to_owned(),
                depth(class.depth),
                class.scores.iter().map(one).collect::<Vec<_>>().join(", "),
            ]);
        }
    }
    for pooled in &outcome.report.pooled {
        let one = |(setting, score): &(u64, f64)| format!("{setting}: {score:.2}");
        rows.push([
            "all".to_owned(),
            pooled.direction.name().to_owned(),
            depth(pooled.depth),
            pooled.scores.iter().map(one).collect::<Vec<_>>().join(", "),
        ]);
    }
    (rows.len() > 1).then(|| table(&rows))
}

fn distrusted(out: &mut String, outcome: &Outcome, run: &Run) {
    let noise = match run.placebo_noise {
        Some(noise) => format!("noise {:.1} %", 100.0 * noise),
        None => "noise not measured by records of one request".to_owned(),
    };
    let _ = writeln!(out, "\n{} {}: {noise}", name(&run.run), run.direction.name());
    for (title, cells) in [
        ("stalls, left out", &run.stalls),
        ("suspect series, measure again", &run.suspects),
        ("one pass far off the other", &run.outliers),
    ] {
        if cells.is_empty() {
            continue;
        }
        let _ = writeln!(out, "  {title}: {}", cells.len());
        for cell in cells.iter().take(MAX_NAMED) {
            let _ = writeln!(
                out,
                "    {} {}, {}: {}",
                outcome.question.variable,
                cell.setting,
                work(&cell.work),
                passes(cell)
            );
        }
        if cells.len() > MAX_NAMED {
            let _ = writeln!(out, "    and {} more", cells.len() - MAX_NAMED);
        }
    }
}

fn work(work: &Work) -> String {
    let mut text = format!("{} KiB", work.record_bytes / 1024);
    if work.in_flight_bytes != work.record_bytes {
        let _ = write!(text, " ({} KiB in flight)", work.in_flight_bytes / 1024);
    }
    text
}

fn passes(cell: &Cell) -> String {
    match cell.again {
        Some(again) => format!("{} and {}", mib(cell.first), mib(again)),
        None => mib(cell.first),
    }
}

fn mib(bytes_per_second: f64) -> String {
    let mib = bytes_per_second / 1_048_576.0;
    let decimals = if mib < 10.0 { 1 } else { 0 };
    format!("{mib:.decimals$} MiB/s")
}
