//! Other people's lists of names, made into rules.
//!
//! | form | lines |
//! |---|---|
//! | domain list | `example.com`, `domain:example.com`, `full:www.example.com`, `keyword:example`, `regexp:^ads[0-9]\.`, `include:other`; attributes (`@ads`) and comments (`#`) behind them |
//! | hosts file | `0.0.0.0 ads.example tracker.example` |
//!
//! What can't become a rule (a public suffix, a name without a dot) is left out and said; the rest is of use all the same.

use crate::Category;
use crate::signatures::bundle::{LoadError, read_text};
use crate::signatures::findings::Wrong;
use crate::signatures::rules::{canonical, clipped};
use crate::signatures::{ApplicationId, Builder, Kind, MAX_FILES, MAX_RULES};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

/// The most lines left out that are kept for reading; further ones are counted.
pub const MAX_LEFT_OUT: usize = 64;

/// Which lines of a domain list are wanted, by their attributes.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Attributes {
    /// At least one of these, if there are any.
    pub with: Vec<String>,
    /// None of these.
    pub without: Vec<String>,
}

impl Attributes {
    /// As written behind a line: `@ads` and `@-cn`.
    fn read<'w>(words: impl Iterator<Item = &'w str>) -> Self {
        let mut it = Self::default();
        for word in words.filter_map(|word| word.strip_prefix('@')) {
            match word.strip_prefix('-') {
                Some(word) => it.without.push(word.to_owned()),
                None => it.with.push(word.to_owned()),
            }
        }
        it
    }

    fn wants(&self, attributes: &[String]) -> bool {
        (self.with.is_empty() || self.with.iter().any(|it| attributes.contains(it)))
            && !self.without.iter().any(|it| attributes.contains(it))
    }
}

/// A line that didn't become a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Of which file.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// Why not.
    pub why: String,
}

/// Rules that were read.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Imported {
    /// In their order, each once.
    pub rules: BTreeSet<(Kind, String)>,
    /// What was left out, at most [`MAX_LEFT_OUT`].
    pub left_out: Vec<LeftOut>,
    /// How much was left out in all.
    pub left_out_count: usize,
}

impl Imported {
    /// Reads a domain list and the lists that it includes, which lie beside it.
    pub fn domain_list(path: &Path, wanted: &Attributes) -> Result<Self, LoadError> {
        let mut it = Self::default();
        let directory = path.parent().unwrap_or(Path::new("."));
        let first = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut seen = HashSet::from([(first.clone(), vec![wanted.clone()])]);
        let mut waiting = vec![(first, vec![wanted.clone()])];
        while let Some((name, wanted)) = waiting.pop() {
            let text = read_text(&directory.join(&name))?;
            for (line, included, attributes) in it.domain_lines(&name, &text, &wanted) {
                let is_name = !included.is_empty()
                    && included.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'!'));
                // What an outer list asks of attributes holds for those that it includes, too.
                let mut all = wanted.clone();
                if attributes != Attributes::default() && !all.contains(&attributes) {
                    all.push(attributes);
                }
                let next = (included, all);
                if !is_name || !directory.join(&next.0).is_file() {
                    it.leave_out(&name, line, format!("there is no list `{}` beside it", clipped(&next.0)));
                } else if seen.len() >= MAX_FILES {
                    it.leave_out(&name, line, format!("more than {MAX_FILES} lists are included"));
                } else if seen.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
        Ok(it)
    }

    /// The lines of one domain list; what it includes.
    fn domain_lines(
        &mut self,
        file: &str,
        text: &str,
        wanted: &[Attributes],
    ) -> Vec<(u32, String, Attributes)> {
        let mut included = Vec::new();
        for (line, content) in lines(text) {
            let mut words = content.split_whitespace();
            let Some(rule) = words.next() else { continue };
            let attributes = Attributes::read(words);
            let (kind, name) = match rule.split_once(':') {
                None | Some(("domain", _)) => (Kind::Host, rule.trim_start_matches("domain:").to_owned()),
                Some(("full", name)) => (Kind::Host, format!("={name}")),
                Some(("keyword", name)) => (Kind::Keyword, name.to_owned()),
                Some(("regexp", text)) => (Kind::Regex, text.to_owned()),
                Some(("include", name)) => {
                    included.push((line, name.to_owned(), attributes));
                    continue;
                }
                Some((other, _)) => {
                    self.leave_out(file, line, format!("`{}:` is unknown", clipped(other)));
                    continue;
                }
            };
            if wanted.iter().all(|wanted| wanted.wants(&attributes.with)) {
                self.take(file, line, kind, &name);
            }
        }
        included
    }

    /// Reads a hosts file, or a list of bare names: each name is for itself, not for those below it.
    pub fn hosts_file(file: &str, text: &str) -> Self {
        let mut it = Self::default();
        for (line, content) in lines(text) {
            let mut words = content.split_whitespace().peekable();
            if let Some(address) = words.peek().and_then(|word| word.parse::<IpAddr>().ok()) {
                words.next();
                if !address.is_unspecified() && !address.is_loopback() {
                    it.leave_out(file, line, format!("{address} is a real address, not one to block by"));
                    continue;
                }
            }
            for name in words {
                let name = name.trim_end_matches('.');
                // Every hosts file begins with what the machine calls itself.
                if name.contains('.') && !name.starts_with("localhost.") && name.parse::<IpAddr>().is_err() {
                    it.take(file, line, Kind::Host, &format!("={name}"));
                }
            }
        }
        it
    }

    fn take(&mut self, file: &str, line: u32, kind: Kind, text: &str) {
        match canonical(kind, text) {
            Ok(text) if self.rules.len() < MAX_RULES => {
                self.rules.insert((kind, text));
            }
            Ok(_) => self.leave_out(file, line, format!("there are more than {MAX_RULES} rules")),
            Err(wrong) => self.leave_out(file, line, wrong.to_string()),
        }
    }

    fn leave_out(&mut self, file: &str, line: u32, why: String) {
        self.left_out_count += 1;
        if self.left_out.len() < MAX_LEFT_OUT {
            self.left_out.push(LeftOut { file: file.to_owned(), line, why });
        }
    }

    /// Without hosts that others cover.
    fn needed(&self) -> impl Iterator<Item = &(Kind, String)> {
        self.rules.iter().filter(|(kind, text)| {
            let mut above = Some(text.as_str());
            // `=name` is covered by `name`, and `name` by what is above it.
            if let Some(rest) = above.and_then(|text| text.strip_prefix('='))
                && self.rules.contains(&(Kind::Host, rest.to_owned()))
            {
                return false;
            }
            while let Some((_, suffix)) = above.and_then(|text| text.split_once('.')) {
                if *kind == Kind::Host && self.rules.contains(&(Kind::Host, suffix.to_owned())) {
                    return false;
                }
                above = Some(suffix);
            }
            true
        })
    }

    /// Adds the rules to an application; how many.
    pub fn add_to(&self, builder: &mut Builder, application: ApplicationId) -> Result<usize, Wrong> {
        let mut count = 0;
        for (kind, text) in self.needed() {
            builder.add(application, *kind, text)?;
            count += 1;
        }
        Ok(count)
    }

    /// A file of signatures with one application that has these rules.
    pub fn to_toml(&self, name: &str, display: Option<&str>, category: Category) -> Result<String, Wrong> {
        // The names are checked as a builder would.
        Builder::new().application(name, display, category)?;
        let mut out = String::new();
        let mut line = |text: &str| {
            out.push_str(text);
            out.push('\n');
        };
        line(&format!("[{name}]"));
        if let Some(display) = display {
            line(&format!("name = {}", quoted(display)));
        }
        line(&format!("category = \"{}\"", category.name()));
        for kind in Kind::ALL {
            let mut texts = self.needed().filter(|(it, _)| it == kind).peekable();
            if texts.peek().is_none() {
                continue;
            }
            line(&format!("{} = [", kind.key()));
            for (_, text) in texts {
                line(&format!("    {},", quoted(text)));
            }
            line("]");
        }
        Ok(out)
    }
}

/// Lines with something on them but comments, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, line.split('#').next().unwrap_or("").trim()))
        .filter(|(_, line)| !line.is_empty())
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Lists in a directory of their own.
    fn lists(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let directory = std::env::temp_dir().join(format!("millrace-lists-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (name, text) in files {
            std::fs::write(directory.join(name), text).unwrap();
        }
        directory
    }

    fn rules(imported: &Imported) -> Vec<String> {
        imported.rules.iter().map(|(kind, text)| format!("{} {text}", kind.name())).collect()
    }

    #[test]
    fn domain_lists_become_rules() {
        let files = [
            (
                "site",
                "# A comment\n\nexample.com # another\ndomain:Example.NET @cn @ads\nfull:www.example.org\n\
                 keyword:example-cdn\nregexp:^ads[0-9]+\\.example\\.\ninclude:more @ads\ninclude:gone\ninclude:../etc\n\
                 domain:com\nother:x\nregexp:(\n",
            ),
            ("more", "ads.example.edu @ads\nwww.example.edu\ninclude:site\n"),
        ];
        let directory = lists("domains", &files);
        let all = Imported::domain_list(&directory.join("site"), &Attributes::default()).unwrap();
        assert_eq!(
            rules(&all),
            [
                "host =www.example.org",
                "host ads.example.edu",
                "host example.com",
                "host example.net",
                "keyword example-cdn",
                r"regular expression ^ads[0-9]+\.example\.",
            ]
        );
        let why: Vec<(u32, &str)> = all.left_out.iter().map(|it| (it.line, it.why.as_str())).collect();
        // Read twice: once for itself, and once for its lines with `@ads`.
        assert!(why.len() >= 5, "{why:?}");
        for expected in [
            (9, "there is no list `gone` beside it"),
            (10, "there is no list `../etc` beside it"),
            (11, "`com` is a public suffix: names below it are anybody's"),
            (12, "`other:` is unknown"),
        ] {
            assert!(why.contains(&expected), "{why:?}");
        }
        let without = Attributes { without: vec!["ads".into()], ..Attributes::default() };
        let some = Imported::domain_list(&directory.join("site"), &without).unwrap();
        assert!(!rules(&some).contains(&"host example.net".to_owned()));
        assert!(matches!(
            Imported::domain_list(&directory.join("absent"), &without),
            Err(LoadError::Read { .. })
        ));
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn hosts_files_become_rules() {
        let text = "127.0.0.1 localhost localhost.localdomain\n::1 ip6-localhost\n0.0.0.0 Ads.Example.com tracker.example.com. # x\n\
                    0.0.0.0 0.0.0.0\nbare.example.com\n192.0.2.1 router.example.com\n0.0.0.0 bad_*name!.example.com\n";
        let imported = Imported::hosts_file("hosts", text);
        assert_eq!(
            rules(&imported),
            ["host =ads.example.com", "host =bare.example.com", "host =tracker.example.com"]
        );
        let lines: Vec<u32> = imported.left_out.iter().map(|it| it.line).collect();
        assert_eq!(lines, [6, 7]);
    }

    #[test]
    fn what_was_imported_is_read_again() {
        let mut imported = Imported::default();
        for (kind, text) in [
            (Kind::Host, "example.com"),
            (Kind::Host, "=example.com"),
            (Kind::Host, "www.example.com"),
            (Kind::Host, "=only.example.org"),
            (Kind::Regex, r#"^a"b\.c"#),
        ] {
            imported.take("list", 1, kind, text);
        }
        let text = imported.to_toml("mine", Some("M\"ine"), Category::Web).unwrap();
        let mut builder = Builder::new();
        builder.read("mine.toml", &text);
        let built = builder.build().unwrap();
        assert!(built.warnings.is_empty(), "{}", built.warnings);
        let texts: Vec<&str> = built.bundle.rules().map(|rule| rule.text).collect();
        assert_eq!(texts, ["=only.example.org", "example.com", r#"^a"b\.c"#]);
        let mut builder = Builder::new();
        let id = builder.application("mine", None, Category::Web).unwrap();
        assert_eq!(imported.add_to(&mut builder, id), Ok(3));
        assert_eq!(builder.build().unwrap().bundle.rules().len(), 3);
        assert!(matches!(imported.to_toml("Not a name", None, Category::Web), Err(Wrong::Name(_))));
    }
}
