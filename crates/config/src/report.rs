//! Everything that is wrong with a configuration, for people.

use super::problem::{Place, Wrong};
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// One thing that is wrong.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// What.
    pub wrong: Wrong,
    /// Where.
    pub place: Place,
    /// Other places that have to do with it, each with what is there.
    pub related: Vec<(Place, String)>,
}

/// Everything that is wrong with a configuration. Its `Display` is the plain rendering: one paragraph per problem, with
/// the line in question.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The file's name, as it was given.
    pub name: String,
    /// The file's text.
    pub text: String,
    /// What is wrong, in the order of the text; overrides come last.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Line and column, both from 1, of a byte of the file. Columns count characters.
    pub fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let (line, column, _) = self.locate(offset);
        (line, column)
    }

    /// Line number, column and the line itself.
    fn locate(&self, offset: usize) -> (usize, usize, &str) {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before.get(start..).unwrap_or("").chars().count() + 1;
        let text = self.text.get(start..).unwrap_or("").lines().next().unwrap_or("");
        (line, column, text)
    }

    fn write_place(&self, f: &mut fmt::Formatter<'_>, place: &Place) -> fmt::Result {
        match place {
            Place::File(span) => {
                let (line, column) = self.line_and_column(span.start);
                write!(f, "{}:{line}:{column}", printable(&self.name))
            }
            Place::Environment(text) => write!(f, "environment, {}", clipped(text, 100)),
            Place::Argument(text) => write!(f, "--set {}", clipped(text, 100)),
        }
    }
}

/// A text without what would do something to a terminal: control characters are written as `\u{1b}`. Lines stay lines.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_harmful(c) { safe.extend(c.escape_unicode()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// At most `limit` characters, on one line.
fn clipped(text: &str, limit: usize) -> String {
    let mut line: String = text.chars().take(limit).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(limit).is_some() {
        line.push('…');
    }
    line
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            self.write_place(f, &problem.place)?;
            writeln!(f, ": {}", printable(&problem.wrong.to_string()))?;
            if let Place::File(span) = &problem.place
                && problem.place != Place::TOP
            {
                let (line, column, text) = self.locate(span.start);
                let shown = clipped(text, 160);
                let width = self
                    .text
                    .get(span.clone())
                    .and_then(|s| s.lines().next())
                    .map_or(1, |s| s.chars().count());
                let room = (shown.chars().count() + 1).saturating_sub(column).max(1);
                writeln!(f, "{line:6} | {shown}")?;
                if column <= 160 {
                    writeln!(
                        f,
                        "       | {:pad$}{}",
                        "",
                        "^".repeat(width.clamp(1, room)),
                        pad = column - 1
                    )?;
                }
            }
            for (place, what) in &problem.related {
                write!(f, "  see: ")?;
                self.write_place(f, place)?;
                writeln!(f, ": {}", printable(what))?;
            }
            if let Some(help) = problem.wrong.help() {
                writeln!(f, "  help: {}", printable(&help))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file can't be read.
    #[error("can't read the configuration {path}: {source}", path = path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It can be read, and is wrong.
    #[error("{0}")]
    Invalid(Box<Report>),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_terminal_is_told_no_orders() {
        let text = "\u{1b}[31m = 1\n\"n4\u{9b}2J\" = 2\n";
        let report = super::super::parse("a\u{7}.toml", text, &[], &["x\u{1b}.y=1".into()]).unwrap_err();
        let shown = report.to_string();
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
        let text = "[n4]\n\"t1\\u001b[31m\" = 2\n";
        let shown = super::super::parse("a.toml", text, &[], &[]).unwrap_err().to_string();
        assert!(shown.contains("unknown key `t1\\u{1b}[31m` in [n4]"), "{shown:?}");
        assert_eq!(printable("a\nb\tc"), "a\nb\\u{9}c");
    }

    #[test]
    fn positions_count_characters() {
        let report = Report { name: "a.toml".into(), text: "ä = 1\nöö = 2".into(), problems: vec![] };
        assert_eq!(report.line_and_column(0), (1, 1));
        assert_eq!(report.line_and_column(7), (2, 1));
        assert_eq!(report.line_and_column(11), (2, 3));
        assert_eq!(report.line_and_column(9999), (2, 7));
    }
}
