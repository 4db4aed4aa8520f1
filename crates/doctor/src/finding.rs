//! What was found, and how it is told.

use serde::Serialize;
use std::fmt;

/// How far something serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and costs speed, evenness or a choice.
    CouldBeBetter,
    /// `millrace run` can't start with it.
    WontWork,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::CouldBeBetter => "could be better",
            Self::WontWork => "won't work",
        })
    }
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// Instructions and time.
    Processor,
    /// Where workers run.
    Cores,
    /// Pages.
    Memory,
    /// The kernel's network, and N4's sockets.
    Network,
    /// Where packets come from.
    Ports,
    /// Who else can compute.
    Accelerators,
    /// Whether the configuration fits.
    Configuration,
}

impl Area {
    const fn heading(self) -> &'static str {
        match self {
            Self::Processor => "PROCESSOR",
            Self::Cores => "CORES",
            Self::Memory => "MEMORY",
            Self::Network => "NETWORK",
            Self::Ports => "PORTS",
            Self::Accelerators => "ACCELERATORS",
            Self::Configuration => "CONFIGURATION",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub area: Area,
    /// The thing: `huge pages`, `NIC 0000:3b:00.0`.
    pub what: String,
    /// How it is.
    pub found: String,
    /// How far that serves.
    pub verdict: Verdict,
    /// What Millrace makes of it, and why.
    pub reason: String,
    /// The command, or the setting, that makes it better.
    pub remedy: Option<String>,
}

impl Finding {
    /// What is as it should be.
    pub(crate) fn ok(
        area: Area,
        what: impl Into<String>,
        found: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        let (what, found, reason) = (what.into(), found.into(), reason.into());
        Self { area, what, found, verdict: Verdict::Ok, reason, remedy: None }
    }

    /// The same with a remedy, and so not ok.
    pub(crate) fn but(self, verdict: Verdict, remedy: impl Into<String>) -> Self {
        Self { verdict, remedy: Some(remedy.into()), ..self }
    }
}

/// All findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The worst of all verdicts.
    pub verdict: Verdict,
    /// In order of their areas.
    pub findings: Vec<Finding>,
    /// Files that can't be read or understood: what they would have said counts as missing.
    pub unread: Vec<String>,
}

impl Report {
    pub(crate) fn new(findings: Vec<Finding>, unread: Vec<String>) -> Self {
        let verdict = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok);
        Self { verdict, findings, unread }
    }
}

/// Columns of the page.
const WIDTH: usize = 110;

/// Lines of at most [`WIDTH`] columns, with so many spaces in front of each.
fn wrapped(f: &mut fmt::Formatter<'_>, text: &str, indent: usize) -> fmt::Result {
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column == 0 || column + 1 + width > WIDTH {
            let end = if column == 0 { "" } else { "\n" };
            write!(f, "{end}{:indent$}{word}", "")?;
            column = indent + width;
        } else {
            write!(f, " {word}")?;
            column += 1 + width;
        }
    }
    writeln!(f)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
        let mut area = None;
        for finding in &self.findings {
            if area.replace(finding.area) != Some(finding.area) {
                writeln!(f, "{}", finding.area.heading())?;
            }
            writeln!(f, "  {:<15}  {:<what$}  {}", finding.verdict, finding.what, finding.found)?;
            wrapped(f, &finding.reason, 19)?;
            for line in finding.remedy.iter().flat_map(|remedy| remedy.lines()) {
                writeln!(f, "{:17}> {line}", "")?;
            }
        }
        if !self.unread.is_empty() {
            writeln!(f, "NOT READ: counts as missing")?;
            self.unread.iter().try_for_each(|file| writeln!(f, "  {file}"))?;
        }
        let count = |verdict| self.findings.iter().filter(|finding| finding.verdict == verdict).count();
        let [ok, better, wont] = [Verdict::Ok, Verdict::CouldBeBetter, Verdict::WontWork].map(count);
        writeln!(f, "{ok} ok, {better} could be better, {wont} won't work")
    }
}
