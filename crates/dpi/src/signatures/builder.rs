//! Puts a bundle together: applications and rules in layers, and what is wrong with them.

use crate::Category;
use crate::signatures::bundle::Bundle;
use crate::signatures::findings::{Finding, Findings, Location, Wrong};
use crate::signatures::hosts::MAX_GLOBS;
use crate::signatures::matchers::Matchers;
use crate::signatures::rules::{canonical, clipped};
use crate::signatures::{Application, ApplicationId, Kind};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The most applications of a bundle.
pub const MAX_APPLICATIONS: usize = 32_768;
/// The most rules of a bundle.
pub const MAX_RULES: usize = 1 << 20;
/// The most prefixes of addresses: their tables take a KiB or two for each.
pub const MAX_ADDRESSES: usize = 32_768;
/// The most keywords, regular expressions and patterns, each: they are all tried.
pub const MAX_SEARCHED: usize = 1024;
/// The most layers.
pub const MAX_LAYERS: usize = 16;
/// The most files.
pub const MAX_FILES: usize = 1024;
/// How deep applications can be parts of each other.
pub const MAX_DEPTH: usize = 4;

/// Where something was written: which of the builder's files, the line, and what of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Place {
    pub file: u16,
    /// From 1; 0 if it was not written in a file.
    pub line: u32,
    pub column: u32,
    pub length: u32,
}

/// A file, or what else rules come from.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub name: Box<str>,
    /// Of which layer.
    pub layer: u8,
    /// To show lines of; not kept in a bundle.
    pub text: Option<Arc<str>>,
}

/// A rule as it is kept; its text is in [`Texts`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub application: u16,
    pub kind: Kind,
    pub file: u16,
    pub line: u32,
    pub text: u32,
    pub length: u16,
    pub column: u32,
}

/// Texts of all rules, one behind the other.
#[derive(Clone, Default, Debug)]
pub(super) struct Texts(pub String);

impl Texts {
    pub fn of(&self, entry: &Entry) -> &str {
        let from = entry.text as usize;
        self.0.get(from..from + entry.length as usize).unwrap_or("")
    }
}

/// What is written about an application beside its rules.
#[derive(Clone, Default, Debug)]
pub(super) struct Draft {
    pub name: Box<str>,
    pub display: Option<Box<str>>,
    pub category: Option<Category>,
    pub parent: Option<Box<str>>,
    /// Where it was last written, and in which layer; where it is only mentioned, nowhere.
    pub place: Option<(Place, u8)>,
    /// Its rules of the layers below this one are left out.
    pub replaced: u8,
}

/// What was built, and what it would be better to change.
#[derive(Clone, Debug)]
pub struct Built {
    /// To match with.
    pub bundle: Bundle,
    /// Nothing but warnings.
    pub warnings: Findings,
}

/// Collects applications and rules, from files ([`Builder::read`]) or from a program ([`Builder::application`], [`Builder::add`]), in layers:
/// a layer's rules win over those of the layers before it.
///
/// ```
/// use dpi::{Category, signatures::{Builder, Bundle, Kind}};
/// let mut builder = Builder::over(&Bundle::built_in());
/// let intranet = builder.application("intranet", Some("Intranet"), Category::Productivity)?;
/// builder.add(intranet, Kind::Host, "corp.example")?;
/// let bundle = builder.build()?.bundle;
/// let found = bundle.host(b"Wiki.Corp.Example.:443").map(|found| bundle.application(found.application).name.as_ref());
/// assert_eq!(found, Some("intranet"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct Builder {
    pub(super) files: Vec<File>,
    pub(super) layer: u8,
    pub(super) drafts: Vec<Draft>,
    pub(super) names: HashMap<Box<str>, u16>,
    pub(super) entries: Vec<Entry>,
    pub(super) texts: Texts,
    pub(super) versions: Vec<Box<str>>,
    findings: Findings,
}

impl Builder {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn with(
        files: Vec<File>,
        layer: u8,
        drafts: Vec<Draft>,
        names: HashMap<Box<str>, u16>,
        entries: Vec<Entry>,
        texts: Texts,
        versions: Vec<Box<str>>,
    ) -> Self {
        Self { files, layer, drafts, names, entries, texts, versions, findings: Findings::default() }
    }

    /// All that this bundle has, and a new layer over it.
    pub fn over(bundle: &Bundle) -> Self {
        let mut builder = bundle.builder();
        builder.next_layer();
        builder
    }

    /// What is added from now on wins over what there is.
    pub fn next_layer(&mut self) {
        if usize::from(self.layer) + 1 >= MAX_LAYERS {
            self.object(Wrong::TooMany { what: "layers", limit: MAX_LAYERS }, Place::default());
        } else if !self.files.is_empty() {
            self.layer += 1;
        }
    }

    /// A file that rules come from from now on.
    pub(super) fn file(&mut self, name: &str, text: Option<Arc<str>>) -> u16 {
        if self.files.len() >= MAX_FILES {
            self.object(Wrong::TooMany { what: "files", limit: MAX_FILES }, Place::default());
        } else {
            self.files.push(File { name: name.into(), layer: self.layer, text });
        }
        self.files.len().saturating_sub(1) as u16
    }

    /// An application of this name: the one there is, or a new one; the display name and the category are given to it. For programs: what they
    /// add is said to come from `its caller`.
    pub fn application(
        &mut self,
        name: &str,
        display: Option<&str>,
        category: Category,
    ) -> Result<ApplicationId, Wrong> {
        let index = self.mention(name)?;
        if let Some(display) = display {
            check_display(display)?;
        }
        let place = Place { file: self.callers_file(), ..Place::default() };
        let layer = self.layer;
        if let Some(draft) = self.drafts.get_mut(index as usize) {
            draft.display = display.map(Into::into).or(draft.display.take());
            draft.category = Some(category);
            draft.place = Some((place, layer));
        }
        Ok(ApplicationId(index))
    }

    /// Adds a rule, written as in a file.
    pub fn add(&mut self, application: ApplicationId, kind: Kind, text: &str) -> Result<(), Wrong> {
        let place = Place { file: self.callers_file(), ..Place::default() };
        self.rule(application.0, kind, text, place)
    }

    /// The file that stands for what a program adds.
    fn callers_file(&mut self) -> u16 {
        const CALLER: &str = "(provisioned)";
        match self.files.last() {
            Some(file) if &*file.name == CALLER && file.layer == self.layer => self.files.len() as u16 - 1,
            _ => self.file(CALLER, None),
        }
    }

    /// The application's position; a new one if there is none of this name.
    pub(super) fn mention(&mut self, name: &str) -> Result<u16, Wrong> {
        if let Some(index) = self.names.get(name) {
            return Ok(*index);
        }
        let fits = (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !fits {
            return Err(Wrong::Name(clipped(name)));
        }
        if self.drafts.len() >= MAX_APPLICATIONS {
            return Err(Wrong::TooMany { what: "applications", limit: MAX_APPLICATIONS });
        }
        let index = self.drafts.len() as u16;
        self.drafts.push(Draft { name: name.into(), ..Draft::default() });
        self.names.insert(name.into(), index);
        Ok(index)
    }

    /// Adds a rule.
    pub(super) fn rule(
        &mut self,
        application: u16,
        kind: Kind,
        text: &str,
        place: Place,
    ) -> Result<(), Wrong> {
        let text = canonical(kind, text)?;
        if self.entries.len() >= MAX_RULES {
            return Err(Wrong::TooMany { what: "rules", limit: MAX_RULES });
        }
        if usize::from(application) >= self.drafts.len() {
            return Err(Wrong::Text { kind, text });
        }
        let at = self.texts.0.len() as u32;
        self.texts.0.push_str(&text);
        let Place { file, line, column, .. } = place;
        self.entries.push(Entry {
            application,
            kind,
            file,
            line,
            column,
            text: at,
            length: text.len() as u16,
        });
        Ok(())
    }

    /// Notes what is wrong.
    pub(super) fn object(&mut self, wrong: Wrong, place: Place) {
        self.object_twice(wrong, place, None);
    }

    fn object_twice(&mut self, wrong: Wrong, place: Place, before: Option<Place>) {
        let finding =
            Finding { wrong, location: self.locate(place), before: before.map(|before| self.locate(before)) };
        self.findings.push(finding);
    }

    fn locate(&self, place: Place) -> Location {
        let file = self.files.get(usize::from(place.file));
        let text = file.and_then(|file| file.text.as_deref());
        let line =
            place.line.checked_sub(1).and_then(|index| text?.lines().nth(index as usize)).unwrap_or("");
        Location {
            file: file.map_or("signatures", |file| &file.name).to_owned(),
            line: place.line,
            column: place.column,
            length: place.length,
            text: line.to_owned(),
        }
    }

    fn layer_of(&self, entry: &Entry) -> u8 {
        self.files.get(usize::from(entry.file)).map_or(0, |file| file.layer)
    }

    fn place_of(entry: &Entry) -> Place {
        Place { file: entry.file, line: entry.line, column: entry.column, length: u32::from(entry.length) }
    }

    /// Checks all together and makes the matchers. With any error there is no bundle.
    pub fn build(mut self) -> Result<Built, Findings> {
        let applications = self.applications();
        self.entries.retain({
            let (files, drafts) = (&self.files, &self.drafts);
            move |entry| {
                let layer = files.get(usize::from(entry.file)).map_or(0, |file| file.layer);
                drafts.get(usize::from(entry.application)).is_some_and(|draft| layer >= draft.replaced)
            }
        });
        self.doubles();
        self.limits();
        self.idle();
        self.findings.sort();
        if self.findings.errors > 0 {
            return Err(self.findings);
        }
        let rules: Vec<(u32, u8, Kind, &str)> = (0_u32..)
            .zip(&self.entries)
            .map(|(index, entry)| (index, self.layer_of(entry), entry.kind, self.texts.of(entry)))
            .collect();
        let matchers = match Matchers::new(&rules) {
            Ok(matchers) => matchers,
            Err(wrong) => {
                self.object(wrong, Place::default());
                return Err(self.findings);
            }
        };
        let warnings = std::mem::take(&mut self.findings);
        for file in &mut self.files {
            file.text = None;
        }
        Ok(Built { bundle: Bundle::new(self, applications, matchers), warnings })
    }

    /// Applications with their names, categories and parents resolved.
    fn applications(&mut self) -> Vec<Application> {
        let mut wrong = Vec::new();
        let mut applications = Vec::with_capacity(self.drafts.len());
        for draft in &self.drafts {
            let place = draft.place.map(|(place, _)| place).unwrap_or_default();
            let mut category = draft.category;
            let mut above = draft.parent.as_deref();
            let parent = above.and_then(|name| self.names.get(name)).map(|index| ApplicationId(*index));
            let mut depth = 0;
            while let Some(name) = above {
                let known = self.names.get(name).and_then(|index| self.drafts.get(usize::from(*index)));
                let Some(next) = known.filter(|next| next.place.is_some()) else {
                    wrong.push((
                        Wrong::UnknownParent { name: draft.name.to_string(), parent: clipped(name) },
                        place,
                    ));
                    break;
                };
                depth += 1;
                if depth > MAX_DEPTH {
                    wrong.push((Wrong::Depth(draft.name.to_string()), place));
                    break;
                }
                category = category.or(next.category);
                above = next.parent.as_deref();
            }
            if category.is_none() && draft.place.is_some() {
                wrong.push((Wrong::NoCategory(draft.name.to_string()), place));
            }
            applications.push(Application {
                name: draft.name.clone(),
                display: draft.display.clone().unwrap_or_else(|| draft.name.clone()),
                category: category.unwrap_or(Category::Other),
                parent,
            });
        }
        for (wrong, place) in wrong {
            self.object(wrong, place);
        }
        applications
    }

    /// Rules that are there twice, and hosts that others cover.
    fn doubles(&mut self) {
        let mut found: Vec<(Wrong, Place, Option<Place>)> = Vec::new();
        let mut known: HashMap<(u8, Kind, &str), &Entry> = HashMap::with_capacity(self.entries.len());
        let name = |entry: &Entry| {
            self.drafts
                .get(usize::from(entry.application))
                .map_or_else(String::new, |draft| draft.name.to_string())
        };
        for entry in &self.entries {
            let text = self.texts.of(entry);
            let key = (self.layer_of(entry), entry.kind, text);
            let Some(before) = known.insert(key, entry) else { continue };
            let (kind, text) = (entry.kind, clipped(text));
            let wrong = if before.application == entry.application {
                Wrong::Repeated { kind, text }
            } else {
                Wrong::Twice { kind, text, application: name(entry), other: name(before) }
            };
            found.push((wrong, Self::place_of(entry), Some(Self::place_of(before))));
        }
        for entry in self.entries.iter().filter(|entry| entry.kind == Kind::Host) {
            let text = self.texts.of(entry);
            let layer = self.layer_of(entry);
            let bare = text.strip_prefix('=');
            // The name itself covers `=name`.
            let mut above = bare.or_else(|| text.split_once('.').map(|(_, above)| above));
            while let Some(suffix) = above {
                if let Some(covering) = known.get(&(layer, Kind::Host, suffix)) {
                    if covering.application == entry.application {
                        let (text, covering_text) = (clipped(text), clipped(suffix));
                        let wrong = Wrong::Covered { text, covering: covering_text };
                        found.push((wrong, Self::place_of(entry), Some(Self::place_of(covering))));
                    }
                    break;
                }
                above = suffix.split_once('.').map(|(_, above)| above);
            }
        }
        for (wrong, place, before) in found {
            self.object_twice(wrong, place, before);
        }
    }

    /// What costs time in matching, or memory.
    fn limits(&mut self) {
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        let mut globs: HashMap<&str, usize> = HashMap::new();
        for entry in &self.entries {
            *counts.entry(entry.kind).or_default() += 1;
            let text = self.texts.of(entry);
            if matches!(entry.kind, Kind::Host | Kind::Certificate)
                && let Some(star) = text.rfind('*')
            {
                *globs.entry(text.get(star..).unwrap_or("")).or_default() += 1;
            }
        }
        let mut wrong = Vec::new();
        if globs.values().any(|count| *count > MAX_GLOBS) {
            wrong.push(Wrong::TooMany { what: "hosts with `*` before the same suffix", limit: MAX_GLOBS });
        }
        let limits = [
            (Kind::Address, "addresses", MAX_ADDRESSES),
            (Kind::Keyword, "keywords", MAX_SEARCHED),
            (Kind::Regex, "regular expressions", MAX_SEARCHED / 8),
            (Kind::Pattern, "patterns", MAX_SEARCHED),
            (Kind::Agent, "user agents", MAX_SEARCHED * 8),
        ];
        for (kind, what, limit) in limits {
            if counts.get(&kind).is_some_and(|count| *count > limit) {
                wrong.push(Wrong::TooMany { what, limit });
            }
        }
        for wrong in wrong {
            self.object(wrong, Place::default());
        }
    }

    /// Applications that are written and that nothing finds: no rules, and nothing is a part of them.
    fn idle(&mut self) {
        let mut busy = vec![false; self.drafts.len()];
        let parents =
            self.drafts.iter().filter_map(|draft| self.names.get(draft.parent.as_deref()?).copied());
        for index in self.entries.iter().map(|entry| entry.application).chain(parents) {
            if let Some(busy) = busy.get_mut(usize::from(index)) {
                *busy = true;
            }
        }
        let idle: Vec<_> = busy
            .iter()
            .zip(&self.drafts)
            .filter(|(busy, _)| !**busy)
            .filter_map(|(_, draft)| Some((draft.name.to_string(), draft.place?.0)))
            .collect();
        for (name, place) in idle {
            self.object(Wrong::NoRules(name), place);
        }
    }
}

pub(super) fn check_display(display: &str) -> Result<(), Wrong> {
    let fits =
        !display.trim().is_empty() && display.chars().count() <= 64 && !display.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(Wrong::Display(clipped(display))) }
}
