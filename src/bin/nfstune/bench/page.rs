//! `--report FILE.html`: one page that needs nothing else, for a ticket or a colleague. Readable on a phone, light and dark,
//! and in black and white: lines differ in their dashes and marks, not in colour.

use std::fmt::Write as _;

use super::facts::Facts;

pub struct Page {
    pub title: String,
    /// Two sentences.
    pub conclusion: String,
    /// A line to copy, where there is one.
    pub copy: Option<String>,
    pub figures: Vec<Figure>,
    /// The first row is the head.
    pub table: Vec<Vec<String>>,
    /// How it was measured, and what to know before believing it.
    pub notes: Vec<String>,
}

pub struct Figure {
    pub svg: String,
    pub caption: String,
}

/// The colours of a chart are drawn as these (see `chart.rs`) and shown as the theme has them.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1b1f;--soft:#5c5c66;--page:#fff;--band:#d5d9e3;--line:#e3e5ec;--code:#f3f4f7}
@media(prefers-color-scheme:dark){:root{--ink:#e9e9ee;--soft:#a5a5b2;--page:#17171b;--band:#3c4251;--line:#303440;--code:#23252c}}
*{box-sizing:border-box}
body{margin:0 auto;padding:.9rem;max-width:44rem;font:1rem/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page)}
h1{font-size:1.35rem;line-height:1.25;margin:.2rem 0 .8rem;overflow-wrap:anywhere}
h2{font-size:1.05rem;margin:1.8rem 0 .4rem}
.conclusion{font-size:1.1rem;overflow-wrap:anywhere}
pre{padding:.7rem .9rem;background:var(--code);overflow-x:auto;font-size:.9rem}
figure{margin:1.2rem 0}
figcaption{color:var(--soft);font-size:.9rem}
svg{display:block;width:100%;height:auto;max-width:32rem}svg rect{shape-rendering:crispEdges}
svg [fill=\"#000000\"]{fill:var(--ink)}svg [stroke=\"#000000\"]{stroke:var(--ink)}
svg [fill=\"#CDCDCD\"]{fill:var(--band)}svg [stroke=\"#CDCDCD\"]{stroke:var(--line)}
svg [fill=\"#FFFFFF\"]{fill:var(--page)}svg [fill=\"none\"]{fill:none}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.95rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.25rem 1rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}.facts td{overflow-wrap:anywhere}
.wide th{vertical-align:bottom}.wide td{white-space:nowrap}.wide th,.wide td{padding-right:.7rem}
.wide td:not(:first-child),.wide th:not(:first-child){text-align:right}
.facts th{font-weight:400;color:var(--soft);white-space:nowrap}
li{margin:.3rem 0}
@media print{body{max-width:none}}";

pub fn html(page: &Page, facts: &Facts) -> String {
    let mut out = String::new();
    let title = escaped(&page.title);
    let _ = writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p class=\"conclusion\">{}</p>",
        escaped(&page.conclusion)
    );
    if let Some(copy) = &page.copy {
        let _ = writeln!(out, "<pre>{}</pre>", escaped(copy));
    }
    for figure in &page.figures {
        let _ = writeln!(
            out,
            "<figure>\n{}\n<figcaption>{}</figcaption>\n</figure>",
            figure.svg,
            escaped(&figure.caption)
        );
    }
    table(&mut out, &page.table);
    let _ = writeln!(out, "<h2>The host and the mount</h2>\n<table class=\"facts\">");
    for [name, value] in facts.rows() {
        // A long list of options may break after each comma.
        let value = escaped(&value).replace(',', ",<wbr>");
        let _ = writeln!(out, "<tr><th>{}</th><td>{value}</td></tr>", escaped(&name));
    }
    let _ = writeln!(out, "</table>\n<h2>How it was measured</h2>\n<ul>");
    for note in &page.notes {
        let _ = writeln!(out, "<li>{}</li>", escaped(note));
    }
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(out, "<li>nfstune {version}</li>\n</ul>\n</body>\n</html>");
    out
}

fn table(out: &mut String, rows: &[Vec<String>]) {
    let _ = writeln!(out, "<h2>Figures</h2>\n<div class=\"wide\"><table>");
    for (at, row) in rows.iter().enumerate() {
        let cell = if at == 0 { "th" } else { "td" };
        let cells: String = row
            .iter()
            .map(|text| format!("<{cell}>{}</{cell}>", escaped(text)))
            .collect();
        let _ = writeln!(out, "<tr>{cells}</tr>");
    }
    let _ = writeln!(out, "</table></div>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
