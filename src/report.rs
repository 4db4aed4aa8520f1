//! Tells what went wrong: drawn with the lines in question on a terminal, as plain text elsewhere.

use crate::exit::{Failure, Why};
use config::{Place, Problem, Report, printable};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::io::{IsTerminal, Write};

/// Prints a failure to standard error.
pub fn print(failure: &Failure) {
    let mut err = std::io::stderr().lock();
    let text = match &failure.why {
        Why::Sentence(sentence) => format!("error: {}\n", printable(sentence)),
        Why::Configuration(report) if err.is_terminal() => {
            let colour = std::env::var_os("NO_COLOR").is_none();
            drawn(report, if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() })
        }
        Why::Told => return,
        Why::Configuration(report) => format!("{report}\n{}", summary(report)),
    };
    // If standard error is closed, there is nobody left to tell.
    let _ = err.write_all(text.as_bytes());
}

/// Prints a warning to standard error.
pub fn warn(sentence: &str) {
    // As above.
    let _ = writeln!(std::io::stderr().lock(), "warning: {sentence}");
}

/// The last line of a report.
fn summary(report: &Report) -> String {
    match report.problems.len() {
        1 => format!("error: {} has a problem\n", printable(&report.name)),
        count => format!("error: {} has {count} problems\n", printable(&report.name)),
    }
}

/// The report as a terminal shows it.
fn drawn(report: &Report, theme: GraphicalTheme) -> String {
    let handler = GraphicalReportHandler::new_themed(theme);
    let mut text = String::new();
    for problem in &report.problems {
        if handler.render_report(&mut text, &Drawing::new(report, problem)).is_err() {
            // Writing to a string doesn't fail; drawing what it can't draw might. The plain form always works.
            return report.to_string();
        }
        text.push('\n');
    }
    text + &summary(report)
}

/// A text of as many octets without what would do something to a terminal, so that spans still point at what they did.
fn drawable(text: &str) -> String {
    let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    // Control characters have one octet (C0, DELETE) or two (C1).
    let safe = |c: char| {
        if !is_harmful(c) {
            c
        } else if c.len_utf8() == 1 {
            '?'
        } else {
            '¿'
        }
    };
    text.chars().map(safe).collect()
}

/// A problem with the text that it points into.
#[derive(Debug)]
struct Drawing<'a> {
    problem: &'a Problem,
    source: NamedSource<String>,
    labels: Vec<LabeledSpan>,
}

impl<'a> Drawing<'a> {
    fn new(report: &Report, problem: &'a Problem) -> Self {
        let label = |(place, text): &(Place, String)| match place {
            Place::File(span) => {
                Some(LabeledSpan::new(Some(drawable(text)), span.start, span.end - span.start))
            }
            Place::Environment(_) | Place::Argument(_) => None,
        };
        let whole = |name: &str, text: &String| {
            let value = text.find('=').map_or(0, |at| at + 1);
            let span = LabeledSpan::new(Some("here".into()), value, text.len() - value);
            (NamedSource::new(name, drawable(text)), vec![span])
        };
        let (source, labels) = match &problem.place {
            Place::File(span) => {
                let own = (problem.place != Place::TOP).then(|| {
                    LabeledSpan::new_primary_with_span(
                        Some("here".into()),
                        (span.start, span.end - span.start),
                    )
                });
                let related = problem.related.iter().filter_map(label);
                (
                    NamedSource::new(drawable(&report.name), drawable(&report.text)),
                    own.into_iter().chain(related).collect(),
                )
            }
            Place::Environment(text) => whole("environment", text),
            Place::Argument(text) => whole("--set", text),
        };
        Self { problem, source, labels }
    }
}

impl fmt::Display for Drawing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.problem.wrong.to_string()))
    }
}

impl std::error::Error for Drawing<'_> {}

impl Diagnostic for Drawing<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.wrong.help().map(|help| Box::new(printable(&help).into_owned()) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn drawings_give_a_terminal_no_orders() {
        let shown = |text: &str| {
            let report = config::parse("upf\u{1b}.toml", text, &[], &[]).unwrap_err();
            let drawn = drawn(&report, GraphicalTheme::unicode_nocolor());
            assert!(!drawn.contains(|c: char| c.is_control() && c != '\n'), "{drawn:?}");
            drawn
        };
        assert!(shown("[n4]\n\"t1\\u001b[31m\" = 2\n").contains("`t1\\u{1b}[31m`"));
        assert!(shown("[n4]\nt1 = 'x' # \u{1b}[2J \u{9b} \u{7}\n").contains("# ?[2J ¿ ?"));
    }

    #[test]
    fn drawings_point_at_the_line() {
        let text = "[n4]\nlisten = \"192.0.2.1:8805\"\nt1 = \"1ms\"\n\n[[pool]]\nipv4 = [\"10.0.0.0/16\", \"10.0.0.0/17\"]\n";
        let set = ["node.name=x".to_owned(), "log.filter=loud".to_owned()];
        let report = config::parse("upf.toml", text, &[], &set).unwrap_err();
        insta::assert_snapshot!(drawn(&report, GraphicalTheme::unicode_nocolor()));
    }
}
