//! The charts of a report. Small, so that their letters stay readable on a phone; the page recolours black and grey.

use std::error::Error;

use nfsrahead::nconnect::sweep::stats::count;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const SIZE: (u32, u32) = (360, 250);
const PANEL_HEIGHT: u32 = 165;
/// Letters, in pixels of that size.
const LARGE: u32 = 17;
const SMALL: u32 = 15;
const GREY: RGBColor = RGBColor(205, 205, 205);
const MIB: f64 = 1_048_576.0;
/// Of more values not all have room for their number.
const MAX_NUMBERS: usize = 8;

type Drawn = Result<(), Box<dyn Error>>;

/// Throughput by value.
pub struct Throughput<'a> {
    pub of: &'a str,
    pub values: &'a [u64],
    /// How a value is written at the axis.
    pub label: fn(u64) -> String,
    pub series: Vec<Series>,
    pub chosen: Option<u64>,
    pub present: Option<u64>,
}

/// One kind of reads. The first is drawn with a full line, a band and crosses, the next dashed, with circles.
pub struct Series {
    /// Value, and bytes a second: lowest, middle, highest.
    pub points: Vec<(u64, [f64; 3])>,
}

pub fn throughput(chart: &Throughput) -> Result<String, String> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    draw_throughput(&root, chart).map_err(|e| e.to_string())?;
    drop(root);
    Ok(svg)
}

fn draw_throughput(root: &DrawingArea<SVGBackend, Shift>, of: &Throughput) -> Drawn {
    let place = |value: u64| of.values.binary_search(&value).ok().map(count);
    let all = of.series.iter().flat_map(|series| &series.points);
    let top = all.map(|(_, [_, _, high])| high / MIB).fold(0.001, f64::max) * 1.15;
    let last = count(of.values.len()) - 1.0;
    let mut chart = ChartBuilder::on(root)
        .margin(4)
        .margin_right(8)
        .x_label_area_size(40)
        .y_label_area_size(54)
        .build_cartesian_2d(-0.4..last + 0.4, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GREY)
        .light_line_style(TRANSPARENT)
        .axis_style(BLACK)
        .x_labels(0)
        .y_labels(5)
        .x_desc(of.of)
        .y_desc("MiB/s")
        .axis_desc_style(("sans-serif", SMALL))
        .label_style(("sans-serif", SMALL))
        .y_label_formatter(&|mib| decimals(*mib, top))
        .draw()?;
    for (at, series) in of.series.iter().enumerate() {
        let points: Vec<(f64, [f64; 3])> = series
            .points
            .iter()
            .filter_map(|(value, rates)| Some((place(*value)?, rates.map(|rate| rate / MIB))))
            .collect();
        let middle = || points.iter().map(|(x, rates)| (*x, rates[1]));
        if at == 0 {
            let above = points.iter().map(|(x, rates)| (*x, rates[2]));
            let below = points.iter().rev().map(|(x, rates)| (*x, rates[0]));
            chart.draw_series(std::iter::once(Polygon::new(
                above.chain(below).collect::<Vec<_>>(),
                GREY.filled(),
            )))?;
            chart.draw_series(std::iter::once(PathElement::new(
                middle().collect::<Vec<_>>(),
                BLACK.stroke_width(2),
            )))?;
            chart.draw_series(middle().map(|point| Cross::new(point, 4, BLACK.stroke_width(1))))?;
        } else {
            chart.draw_series(DashedLineSeries::new(middle(), 5, 4, BLACK.stroke_width(1)))?;
            chart.draw_series(middle().map(|point| Circle::new(point, 3, BLACK.stroke_width(1))))?;
        }
    }
    let first = of.series.first();
    let height = |value: u64| {
        let points = &first?.points;
        points
            .iter()
            .find(|(of, _)| *of == value)
            .map(|(_, rates)| rates[1] / MIB)
    };
    if let Some((value, (x, y))) = of
        .chosen
        .and_then(|value| Some((value, (place(value)?, height(value)?))))
    {
        chart.draw_series(std::iter::once(Circle::new((x, y), 9, BLACK.stroke_width(3))))?;
        let below = if y > 0.3 * top { 22 } else { -22 };
        let number = EmptyElement::at((x, y)) + Text::new((of.label)(value), (0, below), style(LARGE));
        chart.draw_series(std::iter::once(number))?;
    }
    if let Some(x) = of.present.and_then(place) {
        chart.draw_series(std::iter::once(
            EmptyElement::at((x, 0.0)) + Text::new("now", (0, -10), style(SMALL)),
        ))?;
    }
    let every = of.values.len().div_ceil(MAX_NUMBERS).max(1);
    for (at, value) in of.values.iter().enumerate().step_by(every) {
        let number = EmptyElement::at((count(at), 0.0)) + Text::new((of.label)(*value), (0, 12), style(SMALL));
        chart.draw_series(std::iter::once(number))?;
    }
    root.present()?;
    Ok(())
}

/// A number as it is.
pub fn plain(value: u64) -> String {
    value.to_string()
}

/// KiB, short: 512K, 16M.
pub fn kib(value: u64) -> String {
    match value % 1024 {
        0 if value > 0 => format!("{}M", value / 1024),
        _ => format!("{value}K"),
    }
}

/// How long each write() took, over the time of its pass: one bar a moment, all panels to the same scale.
pub struct Stalls {
    pub title: String,
    pub end_s: f64,
    /// The longest wait of each moment.
    pub longest_s: Vec<f64>,
}

pub fn stalls(panels: &[Stalls]) -> Result<String, String> {
    let mut svg = String::new();
    let rows = u32::try_from(panels.len().max(1)).unwrap_or(1);
    let root = SVGBackend::with_string(&mut svg, (SIZE.0, PANEL_HEIGHT * rows)).into_drawing_area();
    draw_stalls(&root, panels).map_err(|e| e.to_string())?;
    drop(root);
    Ok(svg)
}

fn draw_stalls(root: &DrawingArea<SVGBackend, Shift>, panels: &[Stalls]) -> Drawn {
    let most = |of: fn(&Stalls) -> f64| panels.iter().map(of).fold(0.001, f64::max);
    let end = most(|panel| panel.end_s);
    let top = 1.15 * most(|panel| panel.longest_s.iter().copied().fold(0.0, f64::max));
    let is_short = top < 1.0;
    for (area, panel) in root.split_evenly((panels.len().max(1), 1)).iter().zip(panels) {
        let mut chart = ChartBuilder::on(area)
            .caption(&panel.title, ("sans-serif", SMALL))
            .margin(4)
            .margin_right(8)
            .x_label_area_size(38)
            .y_label_area_size(54)
            .build_cartesian_2d(0.0..end, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GREY)
            .light_line_style(TRANSPARENT)
            .axis_style(BLACK)
            .x_labels(5)
            .y_labels(4)
            .x_desc("seconds since the first write()")
            .y_desc(if is_short { "waits, ms" } else { "waits, s" })
            .axis_desc_style(("sans-serif", SMALL))
            .label_style(("sans-serif", SMALL))
            .x_label_formatter(&|s| decimals(*s, end))
            .y_label_formatter(&|s| {
                if is_short {
                    format!("{:.1}", 1000.0 * s)
                } else {
                    decimals(*s, top)
                }
            })
            .draw()?;
        let bins = count(panel.longest_s.len().max(1));
        let bar = |(at, longest): (usize, &f64)| {
            let x = |at: usize| count(at) / bins * panel.end_s;
            Rectangle::new([(x(at), 0.0), (x(at + 1), *longest)], BLACK.filled())
        };
        let waits = panel
            .longest_s
            .iter()
            .enumerate()
            .filter(|(_, longest)| **longest > 0.0);
        chart.draw_series(waits.map(bar))?;
    }
    root.present()?;
    Ok(())
}

/// As exact as an axis that ends there needs.
fn decimals(value: f64, end: f64) -> String {
    match end {
        ..1.0 => format!("{value:.2}"),
        1.0..10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Black, with its middle where it is put.
fn style(size: u32) -> TextStyle<'static> {
    let middle = Pos::new(HPos::Center, VPos::Center);
    ("sans-serif", size).into_font().color(&BLACK).pos(middle)
}
