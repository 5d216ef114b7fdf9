//! The chart: throughput over the setting, one panel for each run and direction. Readable without colours: cells are
//! crosses, stalls hollow circles, the middle a line, its error a grey band, the answer a ring with its number.

use std::error::Error;

use nfsrahead::nconnect::sweep::model::{Class, Run};
use nfsrahead::nconnect::sweep::stats::count;
use nfsrahead::report::escape::escape;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Outcome;

const PANEL: (u32, u32) = (520, 340);
const COLUMNS: usize = 2;
/// A picture with more panels cannot be looked at.
const MAX_PANELS: usize = 32;
/// The height of the key below the panels.
const KEY: u32 = 44;
const MAX_NUMBERS: usize = 20;
const GREY: RGBColor = RGBColor(205, 205, 205);
const MIB: f64 = 1_048_576.0;

type Drawn = Result<(), Box<dyn Error>>;

pub fn svg(outcome: &Outcome) -> Result<String, String> {
    let mut svg = String::new();
    draw(outcome, &mut svg).map_err(|e| e.to_string())?;
    Ok(svg)
}

/// Each run with its deepest class that has scores.
fn panels(outcome: &Outcome) -> Vec<(&Run, &Class)> {
    let runs = outcome.report.runs.iter();
    runs.filter_map(|run| Some((run, run.classes.iter().rev().find(|class| !class.scores.is_empty())?)))
        .take(MAX_PANELS)
        .collect()
}

fn draw(outcome: &Outcome, svg: &mut String) -> Drawn {
    let panels = panels(outcome);
    let columns = panels.len().clamp(1, COLUMNS);
    let rows = panels.len().div_ceil(columns).max(1);
    let times = |n: usize, pixels: u32| u32::try_from(n).map(|n| n * pixels);
    let size = (times(columns, PANEL.0)?, times(rows, PANEL.1)? + KEY);
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    let (root, key) = root.split_vertically(size.1 - KEY);
    for (line, text) in key_lines(outcome).iter().enumerate() {
        let line = i32::try_from(line)?;
        key.draw_text(text, &("sans-serif", 12).into_font().color(&BLACK), (76, 4 + 16 * line))?;
    }
    if panels.is_empty() {
        root.draw_text("nothing to draw: no settings could be compared", &style(14), (260, 170))?;
    }
    for (area, (run, class)) in root.split_evenly((rows, columns)).iter().zip(panels) {
        panel(area, outcome, run, class)?;
    }
    root.present()?;
    Ok(())
}

fn key_lines(outcome: &Outcome) -> [String; 2] {
    let percent = 100.0 * outcome.question.tolerance;
    [
        "cross: a cell; circle: a stall, left out; line: their middle; band: its standard error".to_owned(),
        format!("dashed: {percent} % below the best; ring: the answer"),
    ]
}

/// Settings stand side by side at equal distances: 1, 2, 4, 8, 16 shall not crowd on the left.
fn panel(area: &DrawingArea<SVGBackend, Shift>, outcome: &Outcome, run: &Run, class: &Class) -> Drawn {
    let settings: Vec<u64> = class.scores.iter().map(|score| score.setting).collect();
    let place = |setting: u64| settings.binary_search(&setting).ok().map(count);
    let full = class.envelope_bytes_per_second.unwrap_or(0.0) / MIB;
    let peak = class.peak_bytes_per_second.unwrap_or(0.0).max(1.0) / MIB;
    let scored: Vec<(f64, f64, f64)> = class
        .scores
        .iter()
        .filter_map(|score| Some((place(score.setting)?, score.score? * full, score.standard_error?)))
        .collect();
    // A band that is wide beyond measure must not flatten the rest.
    let top = scored.iter().map(|(_, y, error)| y * error.exp()).fold(peak, f64::max);
    let top = 1.12 * top.min(1.5 * peak);
    let title = format!(
        "{} {}, in flight {}: {}",
        escape(&run.run),
        run.direction.name(),
        class.depth.name(),
        class.verdict.name()
    );
    let mut chart = ChartBuilder::on(area)
        .caption(title.trim_start(), ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(-0.5..count(class.scores.len()) - 0.5, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(0)
        .x_desc(outcome.question.variable.as_str())
        .y_desc("MiB/s")
        .y_label_formatter(&|mib| {
            if top < 10.0 {
                format!("{mib:.1}")
            } else {
                format!("{mib:.0}")
            }
        })
        .draw()?;

    let above = scored.iter().map(|(x, y, error)| (*x, (y * error.exp()).min(top)));
    let below = scored.iter().rev().map(|(x, y, error)| (*x, y * (-error).exp()));
    chart.draw_series(std::iter::once(Polygon::new(
        above.chain(below).collect::<Vec<_>>(),
        GREY.filled(),
    )))?;
    let best = scored.iter().map(|(_, y, _)| *y).fold(0.0, f64::max);
    let enough = best * (1.0 - outcome.question.tolerance);
    let ends = [(-0.5, enough), (count(settings.len()) - 0.5, enough)];
    chart.draw_series(DashedLineSeries::new(ends, 6, 4, BLACK.stroke_width(1)))?;
    chart.draw_series(std::iter::once(PathElement::new(
        scored.iter().map(|(x, y, _)| (*x, *y)).collect::<Vec<_>>(),
        BLACK.stroke_width(2),
    )))?;
    for cell in &class.cells {
        let Some(x) = place(cell.setting) else { continue };
        let at = (x, cell.best() / MIB);
        if cell.is_usable() {
            chart.draw_series(std::iter::once(Cross::new(at, 3, BLACK.stroke_width(1))))?;
        } else {
            chart.draw_series(std::iter::once(Circle::new(at, 4, BLACK.stroke_width(1))))?;
        }
    }
    let answer = class.verdict.answer();
    let chosen = answer.and_then(|setting| Some((setting, place(setting)?)));
    if let Some((setting, x)) = chosen {
        let y = scored.iter().find(|(at, ..)| *at == x).map_or(0.0, |(_, y, _)| *y);
        chart.draw_series(std::iter::once(Circle::new((x, y), 9, BLACK.stroke_width(3))))?;
        let number = EmptyElement::at((x, y)) + Text::new(setting.to_string(), (0, -24), style(16));
        chart.draw_series(std::iter::once(number))?;
    }
    // Of many settings only some have room for their number.
    let every = settings.len().div_ceil(MAX_NUMBERS).max(1);
    for (at, setting) in settings.iter().enumerate().step_by(every) {
        let number = EmptyElement::at((count(at), 0.0)) + Text::new(setting.to_string(), (0, 12), style(12));
        chart.draw_series(std::iter::once(number))?;
    }
    Ok(())
}

/// Black, with its middle where it is put.
fn style(size: u32) -> TextStyle<'static> {
    let middle = Pos::new(HPos::Center, VPos::Center);
    ("sans-serif", size).into_font().color(&BLACK).pos(middle)
}
