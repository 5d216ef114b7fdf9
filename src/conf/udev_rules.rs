//! The text of a udev rule file (udev(7)), as far as it takes to see who sets what.
//!
//! Lines are joined and pairs are cut as udev 252 does it (systemd: src/udev/udev-rules.c). Nothing ends the reading: udev
//! passes over a whole rule that it cannot read, so such a rule is kept and marked.

/// Longer lines are ignored by udev (`UTIL_LINE_SIZE`).
const MAX_LINE: usize = 16 << 10;

/// One logical line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its first and its last line in the file, from 1.
    pub line: u32,
    pub last_line: u32,
    pub pairs: Vec<Pair>,
    /// udev ignores it; `pairs` are those before the mistake.
    pub is_broken: bool,
    /// The text from the mistake on.
    pub unread: Vec<u8>,
}

/// `KEY{attribute}=="value"`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub key: Vec<u8>,
    pub attribute: Option<Vec<u8>>,
    pub op: Op,
    /// Without its quotes, escapes undone.
    pub value: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Match,
    NoMatch,
    Add,
    Remove,
    Assign,
    Final,
}

impl Pair {
    pub fn is(&self, key: &str) -> bool {
        self.key == key.as_bytes()
    }

    /// A condition. Programs are run for their exit code, so they are one whatever the operator.
    pub fn is_match(&self) -> bool {
        matches!(self.op, Op::Match | Op::NoMatch) || self.is("PROGRAM") || self.is("IMPORT")
    }
}

pub fn parse(text: &[u8]) -> Vec<Rule> {
    let lines = logical_lines(text);
    lines.into_iter().filter_map(Line::rule).collect()
}

#[derive(Debug)]
struct Line {
    first: u32,
    last: u32,
    text: Vec<u8>,
    is_ignored: bool,
}

/// Comments are gone, also from between the parts of a line; what begins a part is trimmed, as udev does it.
fn logical_lines(text: &[u8]) -> Vec<Line> {
    let mut found = Vec::new();
    let mut open: Option<Line> = None;
    for (number, physical) in (1..).zip(text.split(|b| *b == b'\n')) {
        let physical = physical.strip_suffix(b"\r").unwrap_or(physical);
        let part = physical.trim_ascii_start();
        if part.starts_with(b"#") {
            continue;
        }
        let (part, goes_on) = match part.strip_suffix(b"\\") {
            Some(part) => (part, true),
            None => (part, false),
        };
        let line = open.get_or_insert(Line {
            first: number,
            last: number,
            text: Vec::new(),
            is_ignored: false,
        });
        line.last = number;
        line.text.extend_from_slice(part);
        line.is_ignored |= line.text.len() >= MAX_LINE;
        if !goes_on {
            found.extend(open.take());
        }
    }
    // A file that ends inside a line.
    found.extend(open.map(|line| Line {
        is_ignored: true,
        ..line
    }));
    found
}

impl Line {
    /// None: nothing is on it.
    fn rule(self) -> Option<Rule> {
        let mut pairs = Vec::new();
        let mut rest = &self.text[..];
        let is_broken = loop {
            rest = trim_start(rest, |b| is_blank(b) || b == b',');
            if rest.is_empty() {
                break self.is_ignored;
            }
            match pair(rest) {
                Some((pair, after)) => {
                    pairs.push(pair);
                    rest = after;
                }
                None => break true,
            }
        };
        (is_broken || !pairs.is_empty()).then_some(Rule {
            line: self.first,
            last_line: self.last,
            pairs,
            is_broken,
            unread: rest.to_vec(),
        })
    }
}

fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r')
}

fn trim_start(text: &[u8], is_trimmed: impl Fn(u8) -> bool) -> &[u8] {
    let start = text.iter().position(|b| !is_trimmed(*b)).unwrap_or(text.len());
    &text[start..]
}

/// The first pair and what follows it. None: a mistake.
fn pair(text: &[u8]) -> Option<(Pair, &[u8])> {
    let end = text.iter().position(|b| is_blank(*b) || b"={+-!:".contains(b))?;
    let (key, mut rest) = text.split_at(end);
    let mut attribute = None;
    if let Some(inside) = rest.strip_prefix(b"{") {
        let end = inside.iter().position(|b| *b == b'}')?;
        attribute = Some(inside[..end].to_vec());
        rest = &inside[end + 1..];
    }
    let rest = trim_start(rest, is_blank);
    let (op, rest) = operator(rest)?;
    let (value, rest) = value(trim_start(rest, is_blank))?;
    let pair = Pair {
        key: key.to_vec(),
        attribute,
        op,
        value,
    };
    Some((pair, rest))
}

fn operator(text: &[u8]) -> Option<(Op, &[u8])> {
    const ALL: [(&[u8], Op); 6] = [
        (b"==", Op::Match),
        (b"!=", Op::NoMatch),
        (b"+=", Op::Add),
        (b"-=", Op::Remove),
        (b":=", Op::Final),
        (b"=", Op::Assign),
    ];
    ALL.iter().find_map(|(mark, op)| Some((*op, text.strip_prefix(*mark)?)))
}

/// `"..."`, where only `\"` is an escape, or `e"..."`, where C's are. A newer udev has `i"..."` too (any case).
fn value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let quote = text.iter().position(|b| !matches!(b, b'e' | b'i'))?;
    let is_escaped = text[..quote].contains(&b'e');
    let mut rest = text[quote..].strip_prefix(b"\"")?;
    let mut value = Vec::new();
    loop {
        match rest {
            [] => return None,
            [b'"', after @ ..] => return Some((value, after)),
            [b'\\', b'"', after @ ..] => {
                value.push(b'"');
                rest = after;
            }
            [b'\\', escaped, after @ ..] if is_escaped => {
                let (byte, after) = match escaped {
                    b'n' => (b'\n', after),
                    b't' => (b'\t', after),
                    b's' => (b' ', after),
                    b'x' => number(after, 2, 16)?,
                    b'0'..=b'7' => number(&rest[1..], 3, 8)?,
                    other => (*other, after),
                };
                value.push(byte);
                rest = after;
            }
            [byte, after @ ..] => {
                value.push(*byte);
                rest = after;
            }
        }
    }
}

fn number(text: &[u8], digits: usize, radix: u32) -> Option<(u8, &[u8])> {
    let (number, after) = text.split_at_checked(digits)?;
    let number = u8::from_str_radix(std::str::from_utf8(number).ok()?, radix).ok()?;
    Some((number, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(text: &str) -> Vec<(u32, Vec<String>, bool)> {
        let shown = |pair: &Pair| String::from_utf8_lossy(&pair.value).into_owned();
        parse(text.as_bytes())
            .iter()
            .map(|rule| (rule.line, rule.pairs.iter().map(shown).collect(), rule.is_broken))
            .collect()
    }

    #[test]
    fn lines_and_values() {
        let text = "# A==\"a\" \\\n\
            KERNEL == \"0:*\" , ATTR{read_ahead_kb} = \"a\\\"b\\n\"\n\
            \n\
            A==\"1 \\\n  # between\n   2\", B:=e\"\\x41\\102\\t\\\\\"\r\n\
            A==\"1\", B\n\
            A=1\n\
            LABEL=\"x";
        assert_eq!(
            values(text),
            [
                (2, vec!["0:*".to_owned(), "a\"b\\n".to_owned()], false),
                (4, vec!["1 2".to_owned(), "AB\t\\".to_owned()], false),
                (7, vec!["1".to_owned()], true),
                (8, vec![], true),
                (9, vec![], true),
            ]
        );
        assert_eq!(values("A=\"1\" \\\n"), [(1, vec!["1".to_owned()], false)]);
        assert_eq!(values("A=\"1\" \\"), [(1, vec!["1".to_owned()], true)]);
    }

    proptest! {
        #[test]
        fn no_bytes_end_it(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            for rule in parse(&text) {
                prop_assert!(rule.line <= rule.last_line);
            }
        }

        /// A line may be broken anywhere by a backslash, except before what would be trimmed or be a comment.
        #[test]
        fn a_continued_line_is_one_line(
            pairs in proptest::collection::vec(r#"[A-Z]{1,4}(\{[a-z/]{1,4}\})?(==|!=|=|\+=|:=)"([a-z0-9$% ]|\\")*""#, 1..5),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..5),
        ) {
            let text = pairs.join(", ");
            let mut broken = text.clone();
            for cut in cuts {
                let at = cut.index(broken.len());
                let next = broken.as_bytes()[at];
                if !next.is_ascii_whitespace() && next != b'\\' {
                    broken.insert_str(at, "\\\n");
                }
            }
            let (whole, joined) = (parse(text.as_bytes()), parse(broken.as_bytes()));
            prop_assert_eq!(whole.len(), 1);
            prop_assert_eq!(whole[0].pairs.len(), pairs.len());
            prop_assert!(!whole[0].is_broken);
            prop_assert_eq!(joined.len(), 1);
            prop_assert_eq!(&joined[0].pairs, &whole[0].pairs);
        }
    }
}
