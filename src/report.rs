//! Tells what went wrong: drawn with the lines in question on a terminal, as plain text elsewhere.

use crate::exit::{Failure, Why};
use control::config::{Place, Problem, Report};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::io::{IsTerminal, Write};

/// Prints a failure to standard error.
pub fn print(failure: &Failure) {
    let mut err = std::io::stderr().lock();
    let text = match &failure.why {
        Why::Sentence(sentence) => format!("error: {sentence}\n"),
        Why::Configuration(report) if err.is_terminal() => {
            let colour = std::env::var_os("NO_COLOR").is_none();
            drawn(report, if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() })
        }
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
        1 => format!("error: {} has a problem\n", report.name),
        count => format!("error: {} has {count} problems\n", report.name),
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
                Some(LabeledSpan::new(Some(text.clone()), span.start, span.end - span.start))
            }
            Place::Environment(_) | Place::Argument(_) => None,
        };
        let whole = |name: &str, text: &String| {
            let value = text.find('=').map_or(0, |at| at + 1);
            let span = LabeledSpan::new(Some("here".into()), value, text.len() - value);
            (NamedSource::new(name, text.clone()), vec![span])
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
                    NamedSource::new(&report.name, report.text.clone()),
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
        self.problem.wrong.fmt(f)
    }
}

impl std::error::Error for Drawing<'_> {}

impl Diagnostic for Drawing<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.wrong.help().map(|help| Box::new(help) as Box<dyn fmt::Display>)
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
    fn drawings_point_at_the_line() {
        let text = "[n4]\nlisten = \"192.0.2.1:8805\"\nt1 = \"1ms\"\n\n[[pool]]\nipv4 = [\"10.0.0.0/16\", \"10.0.0.0/17\"]\n";
        let set = ["node.name=x".to_owned(), "log.filter=loud".to_owned()];
        let report = control::config::parse("upf.toml", text, &[], &set).unwrap_err();
        insta::assert_snapshot!(drawn(&report, GraphicalTheme::unicode_nocolor()));
    }
}
