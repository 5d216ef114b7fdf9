//! The text format of OpenMetrics 1.0, as far as gauges and counters go. Readers of Prometheus' older format, as textfile
//! collectors are, take it too; to them counters have no type.

use std::fmt::{self, Write as _};

use crate::report::escape::escape;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    /// Its samples have the family's name and `_total`.
    Counter,
}

/// A text that grows by whole families.
#[derive(Debug, Default)]
pub struct Text(String);

/// Where the samples of one family go.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
    suffix: &'static str,
}

impl Text {
    /// A new family. Where it has a unit, that is the last word of its name.
    pub fn family(&mut self, kind: Kind, name: &'static str, unit: Option<&str>, help: &str) -> Family<'_> {
        let (kind, suffix) = match kind {
            Kind::Gauge => ("gauge", ""),
            Kind::Counter => ("counter", "_total"),
        };
        let text = &mut self.0;
        let _ = writeln!(text, "# TYPE {name} {kind}");
        if let Some(unit) = unit {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {}", escaped(help));
        Family { text, name, suffix }
    }

    pub fn end(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }
}

impl Family<'_> {
    /// One series; the labels must differ from those of all others of the family.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        let _ = write!(self.text, "{}{}", self.name, self.suffix);
        for (i, (name, value)) in labels.iter().enumerate() {
            let before = if i == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{name}=\"{}\"", escaped(value));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
    }
}

/// Bytes from outside as the value of a label: as in mountinfo, what is not printable UTF-8 is `\ooo`.
pub fn label(bytes: &[u8]) -> String {
    escape(bytes)
}

fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// Milliseconds, as seconds and exact: no counter is too large for it.
pub struct Seconds {
    pub ms: u64,
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.ms / 1000, self.ms % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_counters_end_in_total() {
        let mut text = Text::default();
        let mut family = text.family(Kind::Counter, "wait_seconds", Some("seconds"), "one\nline");
        family.sample(&[], Seconds { ms: u64::MAX });
        family.sample(&[("a", "x\"y\\z\n"), ("b", &label(b"\xff\\\n"))], Seconds { ms: 1001 });
        text.family(Kind::Gauge, "g", None, "h").sample(&[("a", "")], 7);
        let expected = "# TYPE wait_seconds counter\n\
            # UNIT wait_seconds seconds\n\
            # HELP wait_seconds one\\nline\n\
            wait_seconds_total 18446744073709551.615\n\
            wait_seconds_total{a=\"x\\\"y\\\\z\\n\",b=\"\\\\377\\\\134\\\\012\"} 1.001\n\
            # TYPE g gauge\n\
            # HELP g h\n\
            g{a=\"\"} 7\n\
            # EOF\n";
        assert_eq!(text.end(), expected);
    }
}
