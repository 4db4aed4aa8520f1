//! Signatures as people write them: TOML.

use crate::Category;
use crate::signatures::Kind;
use crate::signatures::builder::{Builder, Place, check_display};
use crate::signatures::findings::Wrong;
use crate::signatures::rules::clipped;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// The most parts of a dotted key. Each is a table in a table, and the parser recurses into them; no key of signatures has any.
const MAX_DOTS: usize = 16;
/// Keys of an application that are no rules.
const KEYS: [&str; 4] = ["name", "category", "parent", "replace"];
/// The most values of a file that may be wrong before the rest is passed over.
const MAX_WRONG: usize = 1000;

impl Builder {
    /// Reads a file's text. What is wrong with it is said by [`Builder::build`], together with everything else.
    pub fn read(&mut self, name: &str, text: &str) {
        let file = self.file(name, Some(Arc::from(text)));
        let mut reader = Reader { builder: self, file, lines: Lines::new(text), wrong: 0 };
        if let Some(span) = overlong_key(text) {
            return reader.object(Wrong::Syntax("no key has that many parts".into()), &span);
        }
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let message = error.message().trim().replace('\n', ", ");
            reader.object(Wrong::Syntax(message), &error.span().unwrap_or(0..0));
        }
        if errors.is_empty() {
            reader.document(document.get_ref());
        }
    }
}

/// Where a key with too many parts is. Dots in texts and comments don't count.
fn overlong_key(text: &str) -> Option<Range<usize>> {
    let mut dots = 0;
    for token in Source::new(text).lex() {
        match token.kind() {
            TokenKind::Dot => dots += 1,
            TokenKind::Equals
            | TokenKind::Comma
            | TokenKind::Newline
            | TokenKind::LeftCurlyBracket
            | TokenKind::LeftSquareBracket => dots = 0,
            _ => {}
        }
        if dots > MAX_DOTS {
            let span = token.span();
            return Some(span.start()..span.end());
        }
    }
    None
}

/// Where lines begin.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let behind = text.bytes().enumerate().filter(|(_, octet)| *octet == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(behind).collect() }
    }

    fn place(&self, file: u16, span: &Range<usize>) -> Place {
        let line = self.starts.partition_point(|start| *start <= span.start).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let characters =
            |range: Range<usize>| self.text.get(range).map_or(0, |text| text.chars().count()) as u32;
        let end = span.end.min(self.starts.get(line).copied().unwrap_or(self.text.len()));
        Place {
            file,
            line: line as u32,
            column: characters(start..span.start) + 1,
            length: characters(span.start..end),
        }
    }
}

struct Reader<'b, 't> {
    builder: &'b mut Builder,
    file: u16,
    lines: Lines<'t>,
    wrong: usize,
}

impl Reader<'_, '_> {
    fn object(&mut self, wrong: Wrong, span: &Range<usize>) {
        self.wrong += 1;
        let place = self.lines.place(self.file, span);
        self.builder.object(wrong, place);
    }

    /// The text of a value, or a finding.
    fn text<'v>(&mut self, key: &str, value: &'v Spanned<DeValue<'_>>) -> Option<&'v str> {
        if let DeValue::String(text) = value.get_ref() {
            return Some(text);
        }
        self.object(Wrong::Type { key: clipped(key), expected: "a text" }, &value.span());
        None
    }

    fn category(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Category> {
        let text = self.text("category", value)?;
        let category = Category::by_name(text);
        if category.is_none() {
            let nearest = nearest(text, Category::ALL.iter().map(|it| it.name()));
            self.object(Wrong::UnknownCategory { category: clipped(text), nearest }, &value.span());
        }
        category
    }

    fn document(&mut self, document: &DeTable<'_>) {
        let mut category = None;
        for (key, value) in document {
            match (key.get_ref().as_ref(), value.get_ref()) {
                (_, DeValue::Table(_)) => {}
                ("category", _) => category = self.category(value),
                ("version", _) => self.version(value),
                (name, _) => {
                    let nearest = nearest(name, ["category", "version"].into_iter());
                    self.object(Wrong::UnknownKey { key: clipped(name), nearest }, &key.span());
                }
            }
        }
        for (key, value) in document {
            if let DeValue::Table(table) = value.get_ref() {
                self.application(key, table, category);
            }
            if self.wrong > MAX_WRONG {
                return;
            }
        }
    }

    fn version(&mut self, value: &Spanned<DeValue<'_>>) {
        let Some(text) = self.text("version", value) else { return };
        let fits =
            (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
        if !fits {
            let expected = "1 to 32 letters, digits and dots";
            self.object(Wrong::Type { key: "version".into(), expected }, &value.span());
        } else if self.builder.versions.last().is_none_or(|known| **known != *text) {
            self.builder.versions.push(text.into());
        }
    }

    fn application(
        &mut self,
        key: &Spanned<impl AsRef<str>>,
        table: &DeTable<'_>,
        category: Option<Category>,
    ) {
        let index = match self.builder.mention(key.get_ref().as_ref()) {
            Ok(index) => index,
            Err(wrong) => return self.object(wrong, &key.span()),
        };
        self.define(index, key, table, category);
        for (rules, value) in table {
            let name = rules.get_ref().as_ref();
            let Some(kind) = Kind::ALL.iter().copied().find(|kind| kind.key() == name) else {
                if !KEYS.contains(&name) {
                    let known = KEYS.into_iter().chain(Kind::ALL.iter().map(|kind| kind.key()));
                    self.object(
                        Wrong::UnknownKey { key: clipped(name), nearest: nearest(name, known) },
                        &rules.span(),
                    );
                }
                continue;
            };
            let DeValue::Array(list) = value.get_ref() else {
                self.object(Wrong::Type { key: name.to_owned(), expected: "a list of texts" }, &value.span());
                continue;
            };
            for item in list {
                let DeValue::String(text) = item.get_ref() else {
                    self.object(
                        Wrong::Type { key: name.to_owned(), expected: "a list of texts" },
                        &item.span(),
                    );
                    continue;
                };
                let place = self.lines.place(self.file, &item.span());
                if let Err(wrong) = self.builder.rule(index, kind, text, place) {
                    self.object(wrong, &item.span());
                }
                if self.wrong > MAX_WRONG {
                    return;
                }
            }
        }
    }

    /// What is said about the application itself.
    fn define(
        &mut self,
        index: u16,
        key: &Spanned<impl AsRef<str>>,
        table: &DeTable<'_>,
        of_file: Option<Category>,
    ) {
        let place = self.lines.place(self.file, &key.span());
        let layer = self.builder.layer;
        let mut draft = self.builder.drafts.get(usize::from(index)).cloned().unwrap_or_default();
        if draft.place.is_some_and(|(_, known)| known == layer) {
            self.object(Wrong::ApplicationTwice(draft.name.to_string()), &key.span());
        }
        if let Some(value) = table.get("name")
            && let Some(text) = self.text("name", value)
        {
            match check_display(text) {
                Ok(()) => draft.display = Some(text.into()),
                Err(wrong) => self.object(wrong, &value.span()),
            }
        }
        if let Some(value) = table.get("parent")
            && let Some(text) = self.text("parent", value)
        {
            draft.parent = Some(text.into());
        }
        if let Some(value) = table.get("category") {
            draft.category = self.category(value).or(Some(Category::Other));
        } else if draft.category.is_none() && draft.parent.is_none() {
            draft.category = of_file;
        }
        match table.get("replace").map(|value| (value.get_ref(), value.span())) {
            None | Some((DeValue::Boolean(false), _)) => {}
            Some((DeValue::Boolean(true), _)) => draft.replaced = layer,
            Some((_, span)) => {
                self.object(Wrong::Type { key: "replace".into(), expected: "true or false" }, &span);
            }
        }
        draft.place = Some((place, layer));
        if let Some(kept) = self.builder.drafts.get_mut(usize::from(index)) {
            *kept = draft;
        }
    }
}

/// What was probably meant.
fn nearest(typed: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    // The work grows with the product of both lengths, and no name is as long as that.
    let typed: String = typed.to_lowercase().replace(['_', ' '], "-").chars().take(64).collect();
    let allowed = (typed.chars().count() / 3).clamp(1, 3);
    known
        .map(|name| (strsim::osa_distance(&typed, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
