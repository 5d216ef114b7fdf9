//! What `nfstune sweep --json` prints. Stable since version 1: fields are added, never changed or taken away. Sizes are
//! bytes, rates bytes a second, gains and scores ratios; null is what is not known.

use nfsrahead::nconnect::sweep::cells::Cell;
use nfsrahead::nconnect::sweep::model::{Advice, Class, Pooled, Run, Undecided, Verdict};
use nfsrahead::nconnect::sweep::Work;
use nfsrahead::report::escape::escape_path;
use serde_json::{json, Value};

use super::Outcome;

pub fn json(outcome: &Outcome) -> Value {
    let cautions = outcome.cautions.iter();
    json!({
        "schema_version": 1,
        "variable": outcome.question.variable,
        "rsize_bytes": outcome.question.rsize_bytes,
        "tolerance": outcome.question.tolerance,
        "repetitions": outcome.report.repetitions,
        "advice": outcome.report.advice.iter().map(advice).collect::<Vec<_>>(),
        "runs": outcome.report.runs.iter().map(run).collect::<Vec<_>>(),
        "pooled": outcome.report.pooled.iter().map(pooled).collect::<Vec<_>>(),
        "cautions": cautions
            .map(|(path, text)| json!({ "file": escape_path(path), "text": text }))
            .collect::<Vec<_>>(),
    })
}

fn advice(advice: &Advice) -> Value {
    json!({
        "direction": advice.direction.name(),
        "depth": advice.depth.map(|depth| depth.name()),
        "try": advice.tries,
        "leave": advice.leave,
    })
}

fn run(run: &Run) -> Value {
    json!({
        "run": run.run,
        "direction": run.direction.name(),
        "settings": run.settings,
        "placebo_noise": run.placebo_noise,
        "one_connection_bytes_per_second": run.one_connection_bytes_per_second,
        "outliers": cells(&run.outliers),
        "stalls": cells(&run.stalls),
        "suspects": cells(&run.suspects),
        "classes": run.classes.iter().map(class).collect::<Vec<_>>(),
    })
}

fn class(class: &Class) -> Value {
    let scores = class.scores.iter();
    json!({
        "depth": class.depth.name(),
        "works": class.works.iter().map(work).collect::<Vec<_>>(),
        "verdict": class.verdict.name(),
        "answer": class.verdict.answer(),
        "confidence": class.confidence,
        "sigma": class.sigma,
        "gain": class.gain,
        "gain_needed": class.gain_needed,
        "peak_bytes_per_second": class.peak_bytes_per_second,
        "envelope_bytes_per_second": class.envelope_bytes_per_second,
        "scores": scores
            .map(|score| json!({
                "setting": score.setting,
                "score": score.score,
                "standard_error": score.standard_error,
                "cells": score.parts.len(),
            }))
            .collect::<Vec<_>>(),
        "why": undecided(class.verdict, Undecided::why),
        "measure": undecided(class.verdict, Undecided::measure),
    })
}

fn undecided(verdict: Verdict, what: impl Fn(Undecided) -> &'static str) -> Option<&'static str> {
    match verdict {
        Verdict::Undecided(why) => Some(what(why)),
        _ => None,
    }
}

fn pooled(pooled: &Pooled) -> Value {
    let scores = pooled.scores.iter();
    json!({
        "direction": pooled.direction.name(),
        "depth": pooled.depth.name(),
        "verdict": pooled.verdict.name(),
        "answer": pooled.verdict.answer(),
        "gain": pooled.gain,
        "gain_needed": pooled.gain_needed,
        "scores": scores
            .map(|(setting, score)| json!({ "setting": setting, "score": score }))
            .collect::<Vec<_>>(),
    })
}

fn cells(cells: &[Cell]) -> Vec<Value> {
    let one = |cell: &Cell| {
        json!({
            "setting": cell.setting,
            "work": work(&cell.work),
            "bytes_per_second": cell.first,
            "again_bytes_per_second": cell.again,
        })
    };
    cells.iter().map(one).collect()
}

fn work(work: &Work) -> Value {
    json!({
        "file_bytes": work.file_bytes,
        "record_bytes": work.record_bytes,
        "in_flight_bytes": work.in_flight_bytes,
        "is_random": work.is_random,
    })
}
