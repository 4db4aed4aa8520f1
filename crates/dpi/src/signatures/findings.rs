//! What is wrong with signatures: all of it at once, where, and what to do.

use crate::signatures::Kind;
use std::fmt;

/// The most findings that are kept; further ones are counted.
pub const MAX_FINDINGS: usize = 64;

/// One kind of thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// The file isn't TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that nobody reads.
    #[error("unknown key `{key}`")]
    UnknownKey {
        /// What was written.
        key: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
    },
    /// A value of another type.
    #[error("`{key}` must be {expected}")]
    Type {
        /// Whose value.
        key: String,
        /// What it must be.
        expected: &'static str,
    },
    /// No such category.
    #[error("unknown category `{category}`")]
    UnknownCategory {
        /// What was written.
        category: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
    },
    /// An application without a category.
    #[error("`{0}` has no category")]
    NoCategory(String),
    /// A part of an application that isn't there.
    #[error("`{parent}`, of which `{name}` is said to be a part, is no application")]
    UnknownParent {
        /// The part.
        name: String,
        /// What was written.
        parent: String,
    },
    /// Parts of parts of parts.
    #[error("`{0}` is a part of itself, or of parts more than {MAX_DEPTH} deep", MAX_DEPTH = super::builder::MAX_DEPTH)]
    Depth(String),
    /// Not a name for an application.
    #[error("`{0}` can't be an application's name")]
    Name(String),
    /// Not a name for people.
    #[error("`{0}` can't be shown as an application's name")]
    Display(String),
    /// An application that is written twice in one layer.
    #[error("application `{0}` is written twice")]
    ApplicationTwice(String),
    /// A rule that two applications of one layer have.
    #[error("{} `{text}` is of `{application}`, and of `{other}` too", kind.name())]
    Twice {
        /// What it looks at.
        kind: Kind,
        /// The rule.
        text: String,
        /// Who has it here.
        application: String,
        /// Who had it before.
        other: String,
    },
    /// A rule that an application has twice.
    #[error("{} `{text}` is written twice", kind.name())]
    Repeated {
        /// What it looks at.
        kind: Kind,
        /// The rule.
        text: String,
    },
    /// A host that another rule of the same application has already.
    #[error("host `{text}` is below `{covering}` of the same application")]
    Covered {
        /// The rule.
        text: String,
        /// What covers it.
        covering: String,
    },
    /// An application that nothing finds.
    #[error("application `{0}` has no rules")]
    NoRules(String),
    /// Not a host name.
    #[error("`{text}` is not a host rule: {why}")]
    Host {
        /// What was written.
        text: String,
        /// Why not.
        why: &'static str,
    },
    /// Under which anybody can have a name.
    #[error("`{0}` is a public suffix: names below it are anybody's")]
    PublicSuffix(String),
    /// Not a keyword.
    #[error("`{0}` can't be a keyword")]
    Keyword(String),
    /// Not a regular expression.
    #[error("the regular expression `{text}` can't be used: {why}")]
    Regex {
        /// What was written.
        text: String,
        /// Why not.
        why: String,
    },
    /// Not a prefix.
    #[error("`{text}` is not a prefix of addresses: {why}")]
    Address {
        /// What was written.
        text: String,
        /// Why not.
        why: &'static str,
    },
    /// Not a port.
    #[error("`{0}` is not a port or a range of ports")]
    Port(String),
    /// Not a pattern.
    #[error("`{text}` is not a pattern: {why}")]
    Pattern {
        /// What was written.
        text: String,
        /// Why not.
        why: &'static str,
    },
    /// Not a text of that kind.
    #[error("`{text}` can't be a {}", kind.name())]
    Text {
        /// What it looks at.
        kind: Kind,
        /// What was written.
        text: String,
    },
    /// Too much of something.
    #[error("there are more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

impl Wrong {
    /// Whether signatures can be used in spite of it.
    pub const fn is_warning(&self) -> bool {
        matches!(self, Self::Repeated { .. } | Self::Covered { .. } | Self::NoRules(_))
    }

    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::Syntax(_) => return None,
            Self::UnknownKey { nearest: Some(nearest), .. }
            | Self::UnknownCategory { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
            Self::UnknownKey { .. } => {
                let keys: Vec<&str> = Kind::ALL.iter().map(|kind| kind.key()).collect();
                format!("an application has name, category, parent, replace, {}", keys.join(", "))
            }
            Self::Type { .. } => "texts stand between quotes, lists between [ and ]".into(),
            Self::UnknownCategory { .. } => {
                let names: Vec<&str> = crate::Category::ALL.iter().map(|it| it.name()).collect();
                format!("there are {}", names.join(", "))
            }
            Self::NoCategory(_) => "give it `category`, or a `parent` that has one".into(),
            Self::UnknownParent { parent, .. } => format!("write an application [{parent}], or leave `parent` out"),
            Self::Depth(_) => "leave `parent` out where it closes the circle".into(),
            Self::Name(_) => "use 1 to 64 letters a to z, digits and hyphens, and put what people read into `name`".into(),
            Self::Display(_) => "use 1 to 64 characters that can be printed".into(),
            Self::ApplicationTwice(_) => "put all rules of an application into one place; what stands in a layer above adds to it".into(),
            Self::Twice { text, other, .. } => {
                format!("take it from one of them, or be more exact than `{text}`: the longer rule wins. To overrule `{other}`, write it in a file of your own")
            }
            Self::Repeated { .. } => "one is enough".into(),
            Self::Covered { .. } => "leave it out: a host rule is for all names below it, too".into(),
            Self::NoRules(_) => format!("give it one of {}", Kind::ALL.iter().map(|kind| kind.key()).collect::<Vec<_>>().join(", ")),
            Self::Host { .. } => "write `example.com`, `=www.example.com` or `media-*.cdn.example.com`".into(),
            Self::PublicSuffix(_) => "name what the application has below it, as in `example.co.uk`".into(),
            Self::Keyword(_) => "use 4 to 63 letters, digits, hyphens and dots".into(),
            Self::Regex { .. } => "names are matched in lower case; look-around and back-references don't exist, and a compiled expression has at most 256 KiB".into(),
            Self::Address { .. } => "write `192.0.2.0/24` or `2001:db8::/32`".into(),
            Self::Port(_) => "write `tcp/5222` or `udp/3478-3481`: at most 1024 ports".into(),
            Self::Pattern { .. } => "write `udp@0 |01 ?? 0a|text`, `tcp GET /x` or `any /regex/`".into(),
            Self::Text { .. } => "use 1 to 128 characters that can be printed".into(),
            Self::TooMany { .. } => "keep what is used, or put several bundles side by side".into(),
        })
    }
}

/// Where something was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The file, as it was given.
    pub file: String,
    /// From 1; 0 if it was not written in a file.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// How many characters are meant.
    pub length: u32,
    /// The line's text; empty if it isn't at hand.
    pub text: String,
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What.
    pub wrong: Wrong,
    /// Where.
    pub location: Location,
    /// What else has to do with it: where the same was written before.
    pub before: Option<Location>,
}

/// Everything that is wrong. Its `Display` is for a terminal: a paragraph each, with the line in question.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Findings {
    /// As they stand in the files, at most [`MAX_FINDINGS`].
    pub list: Vec<Finding>,
    /// How many more there are.
    pub further: usize,
    /// How many of them all are errors.
    pub errors: usize,
}

impl std::error::Error for Findings {}

impl Findings {
    pub(super) fn push(&mut self, finding: Finding) {
        let warning = finding.wrong.is_warning();
        self.errors += usize::from(!warning);
        if self.list.len() < MAX_FINDINGS {
            self.list.push(finding);
            return;
        }
        self.further += 1;
        // An error is never lost behind warnings.
        if !warning && let Some(place) = self.list.iter_mut().rev().find(|kept| kept.wrong.is_warning()) {
            *place = finding;
        }
    }

    /// As they stand in the files.
    pub(super) fn sort(&mut self) {
        self.list.sort_by(|one, other| {
            let key = |it: &Finding| (it.location.line, it.location.column);
            one.location.file.cmp(&other.location.file).then(key(one).cmp(&key(other)))
        });
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// A text without what would do something to a terminal, and not longer than a line or two.
fn printable(text: &str, most: usize) -> String {
    text.chars()
        .take(most)
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect()
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = &self.location;
        write!(f, "{}:", printable(&at.file, 200))?;
        if at.line > 0 {
            write!(f, "{}:{}:", at.line, at.column)?;
        }
        let word = if self.wrong.is_warning() { "warning" } else { "error" };
        writeln!(f, " {word}: {}", printable(&self.wrong.to_string(), 400))?;
        // A line that doesn't fit is not shown: the carets would stand under nothing.
        if !at.text.is_empty() && at.text.chars().count() <= 160 {
            let gutter = at.line.to_string().len().max(5);
            writeln!(f, "{:>gutter$} | {}", at.line, printable(&at.text.replace('\t', " "), 160))?;
            let indent = at.column.saturating_sub(1) as usize;
            writeln!(f, "{:>gutter$} | {:indent$}{}", "", "", "^".repeat(at.length.clamp(1, 160) as usize))?;
        }
        if let Some(before) = &self.before {
            writeln!(f, " before: {}:{}", printable(&before.file, 200), before.line)?;
        }
        if let Some(help) = self.wrong.help() {
            writeln!(f, " help: {}", printable(&help, 800))?;
        }
        Ok(())
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.list {
            write!(f, "{finding}")?;
        }
        if self.further > 0 {
            writeln!(f, "and {} more", self.further)?;
        }
        Ok(())
    }
}
