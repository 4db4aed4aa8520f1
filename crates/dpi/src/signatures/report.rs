//! What people ask about signatures: which applications there are, whose a name is and why, and how much there is of everything.

use crate::Category;
use crate::signatures::bundle::LoadError;
use crate::signatures::{ApplicationId, Bundle, Kind, Match};
use std::net::IpAddr;
use std::path::Path;

/// A row of the table of applications.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplicationRow {
    /// By which rules name it.
    pub name: String,
    /// For people.
    pub display: String,
    /// What it is for.
    pub category: Category,
    /// What it is a part of.
    pub parent: Option<String>,
    /// How many rules find it.
    pub rules: usize,
}

/// Why something is somebody's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The application, and what it is a part of, and so on.
    pub applications: Vec<String>,
    /// The application, for people.
    pub display: String,
    /// What it is for.
    pub category: Category,
    /// What the rule looks at.
    pub kind: Kind,
    /// The rule.
    pub rule: String,
    /// Where it is written.
    pub file: String,
    /// The line there; 0 where it was not written in a file.
    pub line: u32,
}

/// How much there is of everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Of the bundle.
    pub version: String,
    /// How many applications.
    pub applications: usize,
    /// How many rules of each kind that there are any of.
    pub rules: Vec<(Kind, usize)>,
    /// How many applications of each category that there are any of.
    pub categories: Vec<(Category, usize)>,
}

impl Bundle {
    /// The table of applications, by name: those in whose name, display name or category the text is, whatever its case.
    pub fn list(&self, wanted: &str) -> Vec<ApplicationRow> {
        let wanted = wanted.to_lowercase();
        let mut counts = vec![0; self.len()];
        for rule in self.rules() {
            if let Some(count) = counts.get_mut(rule.application.index()) {
                *count += 1;
            }
        }
        let mut rows: Vec<_> = self
            .applications()
            .zip(counts)
            .filter(|((_, it), _)| {
                it.name.contains(&wanted)
                    || it.display.to_lowercase().contains(&wanted)
                    || it.category.name().contains(&wanted)
            })
            .map(|((_, it), rules)| ApplicationRow {
                name: it.name.to_string(),
                display: it.display.to_string(),
                category: it.category,
                parent: it.parent.map(|parent| self.application(parent).name.to_string()),
                rules,
            })
            .collect();
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        rows
    }

    /// Whose an address or a host name is, and why.
    pub fn explain(&self, host_or_address: &str) -> Option<Explanation> {
        match host_or_address.parse::<IpAddr>() {
            Ok(address) => self.explain_match(self.address(address)?),
            Err(_) => self.explain_match(self.host(host_or_address.as_bytes())?),
        }
    }

    /// What a match means.
    pub fn explain_match(&self, found: Match) -> Option<Explanation> {
        let rule = self.rule(found.rule)?;
        let application = self.application(found.application);
        Some(Explanation {
            applications: self
                .lineage(found.application)
                .map(|id| self.application(id).name.to_string())
                .collect(),
            display: application.display.to_string(),
            category: application.category,
            kind: rule.kind,
            rule: rule.text.to_owned(),
            file: rule.file.to_owned(),
            line: rule.line,
        })
    }

    /// An application, what it is a part of, and so on.
    pub fn lineage(&self, id: ApplicationId) -> impl Iterator<Item = ApplicationId> {
        std::iter::successors(Some(id), |id| self.application(*id).parent)
    }

    /// How much there is of everything.
    pub fn summary(&self) -> Summary {
        let count = |kind: Kind| self.rules().filter(|rule| rule.kind == kind).count();
        let of = |category: Category| self.applications().filter(|(_, it)| it.category == category).count();
        Summary {
            version: self.version().to_owned(),
            applications: self.len(),
            rules: Kind::ALL
                .iter()
                .map(|kind| (*kind, count(*kind)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            categories: Category::ALL
                .iter()
                .map(|it| (*it, of(*it)))
                .filter(|(_, count)| *count > 0)
                .collect(),
        }
    }

    /// Writes the compiled form. A file that is there is replaced as a whole: who reads it meanwhile sees the old one.
    pub fn write_compiled(&self, path: &Path) -> Result<(), LoadError> {
        let failed = |source| LoadError::Write { path: path.to_owned(), source };
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        std::fs::write(&beside, self.compiled()).map_err(failed)?;
        std::fs::rename(&beside, path).map_err(failed)
    }
}
