//! `nfstune sweep`: which setting is enough, from results of a benchmark.

mod chart;
mod fio_json;
mod json;
mod text;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nfsrahead::apply::replace::replace;
use nfsrahead::conf::regular::read_regular;
use nfsrahead::decimal::decimal;
use nfsrahead::error::{Error, EXIT_OK};
use nfsrahead::nconnect::sweep::label::{label, shorten};
use nfsrahead::nconnect::sweep::model::{judge, Question, Report};
use nfsrahead::nconnect::sweep::{csv, fio, iozone, samples, Bad, Format, Reading, Source};
use nfsrahead::report::escape::escape_path;

use crate::{exit, print};

/// The largest file that is read. fio with all its histograms stays far below.
const MAX_FILE: usize = 64 << 20;

#[derive(clap::Args)]
pub struct Args {
    /// Results of iozone or fio (JSON), or CSV; the setting is in the name, as in disk-nconnect-04.txt
    #[arg(value_name = "FILE", required_unless_present = "set")]
    files: Vec<PathBuf>,
    /// A FILE whose name does not tell the setting N, and perhaps the sweep it belongs to
    #[arg(long, value_name = "[RUN:]N=FILE")]
    set: Vec<OsString>,
    /// What was varied
    #[arg(long, value_name = "NAME", default_value = "nconnect")]
    of: String,
    /// The rsize and wsize of the mount, in bytes or as 256K, 1M
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    rsize: String,
    /// A setting this many percent below the best is as good
    #[arg(long, value_name = "PERCENT", default_value = "5")]
    tolerance: f64,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Draw throughput over the setting
    #[arg(long, value_name = "FILE.svg")]
    chart: Option<PathBuf>,
}

/// A file, and what the command line says of it.
struct Input {
    path: PathBuf,
    setting: Option<u64>,
    run: String,
}

/// All that the outputs are made of.
pub struct Outcome {
    pub question: Question,
    pub report: Report,
    /// What to know about a file's numbers.
    pub cautions: Vec<(PathBuf, String)>,
}

/// What is said to people.
pub fn text(outcome: &Outcome) -> String {
    text::text(outcome)
}

/// What is said to programs.
pub fn json(outcome: &Outcome) -> serde_json::Value {
    json::json(outcome)
}

pub fn run(args: &Args) -> Result<ExitCode, Error> {
    let question = question(args)?;
    let inputs = inputs(args)?;
    let mut sources = Vec::new();
    let mut cautions = Vec::new();
    for input in &inputs {
        let reading = read(&input.path, &question.variable)?;
        cautions.extend(
            reading
                .cautions
                .into_iter()
                .map(|caution| (input.path.clone(), caution)),
        );
        sources.push(Source {
            setting: input.setting,
            run: input.run.clone(),
            measured: reading.measured,
        });
    }
    let samples = samples(&sources).map_err(|file| {
        let path = &inputs[file].path;
        Error::Usage(format!(
            "{}: its name does not tell {}: give it as --set N=FILE",
            escape_path(path),
            question.variable
        ))
    })?;
    let outcome = Outcome {
        report: judge(&samples, &question),
        question,
        cautions,
    };
    if let Some(path) = &args.chart {
        let svg = chart::svg(&outcome).map_err(|e| Error::io("draw", path)(std::io::Error::other(e)))?;
        replace(path, svg.as_bytes())?;
    }
    let text = if args.json {
        format!("{:#}\n", json(&outcome))
    } else {
        self::text(&outcome)
    };
    print(text.as_bytes())?;
    Ok(exit(EXIT_OK))
}

fn question(args: &Args) -> Result<Question, Error> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    if !is_name(&args.of) {
        return Err(Error::Usage("--of: a name is letters, digits, - and _".to_owned()));
    }
    let rsize_bytes =
        rsize(args.rsize.as_bytes()).ok_or_else(|| Error::Usage("--rsize: a size from 1K to 1024M".to_owned()))?;
    if !(0.0..=50.0).contains(&args.tolerance) {
        return Err(Error::Usage("--tolerance: from 0 to 50 percent".to_owned()));
    }
    Ok(Question {
        variable: args.of.clone(),
        rsize_bytes,
        tolerance: args.tolerance / 100.0,
    })
}

fn rsize(text: &[u8]) -> Option<u64> {
    let (digits, unit) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 1 << 10),
        (b'M' | b'm', digits) => (digits, 1 << 20),
        _ => (text, 1),
    };
    let bytes = decimal(digits)?.checked_mul(unit)?;
    (1024..=1 << 30).contains(&bytes).then_some(bytes)
}

/// The files in the order given, those with a name of their own first.
fn inputs(args: &Args) -> Result<Vec<Input>, Error> {
    let labels = args.files.iter().map(|path| label(&path.to_string_lossy(), &args.of));
    let (settings, mut runs): (Vec<_>, Vec<_>) = labels.map(|label| (label.setting, label.run)).unzip();
    shorten(&mut runs);
    let named = args.files.iter().zip(settings).zip(runs);
    let mut inputs: Vec<Input> = named
        .map(|((path, setting), run)| Input {
            path: path.clone(),
            setting,
            run,
        })
        .collect();
    for set in &args.set {
        inputs.push(parse_set(set)?);
    }
    Ok(inputs)
}

fn parse_set(set: &OsString) -> Result<Input, Error> {
    let bad = || Error::Usage("--set: not [RUN:]N=FILE".to_owned());
    let bytes = set.as_bytes();
    let equals = bytes.iter().position(|&b| b == b'=').ok_or_else(bad)?;
    let name = std::str::from_utf8(&bytes[..equals]).map_err(|_| bad())?;
    let path = &bytes[equals + 1..];
    let (run, number) = name.rsplit_once(':').unwrap_or(("", name));
    let setting = decimal(number.as_bytes()).filter(|n| *n <= 1 << 60).ok_or_else(bad)?;
    if path.is_empty() {
        return Err(bad());
    }
    Ok(Input {
        path: OsString::from_vec(path.to_vec()).into(),
        setting: Some(setting),
        run: run.to_owned(),
    })
}

fn read(path: &Path, variable: &str) -> Result<Reading, Error> {
    let text = read_regular(path, MAX_FILE).map_err(Error::io("read", path))?;
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_start_matches('\u{feff}');
    let reading = match Format::of(text) {
        Some(Format::Iozone) => iozone::read(text, variable),
        Some(Format::Csv) => csv::read(text, variable),
        Some(Format::Fio) => fio_json::jobs(text).and_then(|jobs| fio::read(&jobs)),
        None => Err(Bad {
            line: 1,
            why: "neither iozone's output, nor fio's JSON, nor CSV with a column bytes_per_second".to_owned(),
        }),
    };
    reading.map_err(|bad| Error::Text {
        path: path.to_owned(),
        line: bad.line,
        why: bad.why,
    })
}
