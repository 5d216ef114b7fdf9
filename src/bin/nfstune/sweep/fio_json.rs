//! fio's JSON into jobs. What a job means is told in the library.

use std::collections::BTreeMap;

use nfsrahead::nconnect::sweep::fio::{self, Job};
use nfsrahead::nconnect::sweep::Bad;
use serde_json::{Map, Value};

/// The jobs of the first JSON value in the text; fio may write more after it.
pub fn jobs(text: &str) -> Result<Vec<Job>, Bad> {
    let (lines_before, json) = fio::json(text).unwrap_or((0, text));
    let at = lines_before + 1;
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let output = match values.next() {
        Some(Ok(output)) => output,
        Some(Err(e)) => return Err(Bad::new(lines_before + e.line().max(1), format!("not JSON: {e}"))),
        None => return Err(Bad::new(at, "not JSON")),
    };
    let entries = output["jobs"]
        .as_array()
        .ok_or_else(|| Bad::new(at, "no list of jobs"))?;
    let global = options(&output["global options"]);
    let job = |entry: &Value| Job {
        name: entry["jobname"].as_str().unwrap_or_default().to_owned(),
        group: entry["groupid"].as_u64().unwrap_or(0),
        options: global
            .clone()
            .into_iter()
            .chain(options(&entry["job options"]))
            .collect(),
        read_bytes_per_second: rate(&entry["read"]),
        write_bytes_per_second: rate(&entry["write"]),
    };
    Ok(entries.iter().map(job).collect())
}

fn options(value: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let options = value.as_object().into_iter().flat_map(Map::iter);
    options
        .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
        .collect()
}

/// 0 where nothing was done, and of a number that no storage reaches.
fn rate(direction: &Value) -> f64 {
    let rate = direction["bw_bytes"].as_f64().unwrap_or(0.0);
    if (0.0..=1e15).contains(&rate) {
        rate
    } else {
        0.0
    }
}
