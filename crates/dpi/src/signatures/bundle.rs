//! Signatures, ready to match.

use crate::Category;
use crate::classify::Carrier;
use crate::signatures::builder::{Builder, Built, Draft, Entry, File, Texts};
use crate::signatures::compiled::{self, CompiledError};
use crate::signatures::findings::Findings;
use crate::signatures::hosts::{MAX_NAME, bare};
use crate::signatures::matchers::Matchers;
use crate::signatures::{Application, ApplicationId, Match, Rule, RuleId};
use std::collections::HashMap;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// Signatures, ready to match. They never change: who has others builds another bundle and swaps it as a whole, and the old one lives until
/// the last [`Arc`] of it is gone.
#[derive(Clone, Default, Debug)]
pub struct Bundle {
    applications: Box<[Application]>,
    names: HashMap<Box<str>, u16>,
    drafts: Box<[Draft]>,
    entries: Box<[Entry]>,
    texts: Texts,
    files: Box<[File]>,
    layer: u8,
    versions: Box<[Box<str>]>,
    version: Box<str>,
    matchers: Matchers,
    /// Whose the rules are: all that a match reads of them.
    owners: Box<[u16]>,
}

macro_rules! built_in {
    ($($name:literal)*) => {
        &[$((concat!("signatures/", $name, ".toml"), include_str!(concat!("../../../../signatures/", $name, ".toml")))),*]
    };
}

/// The files that are built in.
pub(super) const BUILT_IN: &[(&str, &str)] = built_in! {
    "amazon" "apple" "asia" "cloud" "files" "games" "google" "know" "life" "messaging" "meta" "microsoft" "money" "music" "regions" "security" "social" "trackers" "video" "work"
};

static BUILT_IN_BUNDLE: LazyLock<Arc<Bundle>> = LazyLock::new(|| {
    // That they have no errors is tested.
    let bundle = Bundle::build_built_in().or_else(|_| Builder::new().build()).map(|built| built.bundle);
    Arc::new(bundle.unwrap_or_default())
});

impl Bundle {
    /// The signatures that come with the program: compiled at the first call, which takes some milliseconds.
    pub fn built_in() -> Arc<Self> {
        Arc::clone(&BUILT_IN_BUNDLE)
    }

    /// The same, compiled anew, with what there is to say about it.
    pub fn build_built_in() -> Result<Built, Findings> {
        let mut builder = Builder::new();
        for (name, text) in BUILT_IN {
            builder.read(name, text);
        }
        builder.build()
    }

    /// Lays files of signatures over a bundle, each over those before it.
    pub fn with_files(&self, paths: &[&Path]) -> Result<Built, LoadError> {
        let mut builder = self.builder();
        for path in paths {
            builder.next_layer();
            builder.read(&path.display().to_string(), &read_text(path)?);
        }
        Ok(builder.build()?)
    }

    /// Reads a bundle from a file, in its compiled form or as TOML; nothing that is built in is added.
    pub fn load(path: &Path) -> Result<Built, LoadError> {
        let octets = read(path)?;
        if compiled::is_compiled(&octets) {
            let failed = |source| LoadError::Compiled { path: path.to_owned(), source };
            return compiled::decode(&octets).map_err(failed);
        }
        let text = String::from_utf8(octets).map_err(|_| LoadError::NotText { path: path.to_owned() })?;
        let mut builder = Builder::new();
        builder.read(&path.display().to_string(), &text);
        Ok(builder.build()?)
    }

    /// The compiled form: one file, with a checksum, that [`Bundle::load`] reads.
    pub fn compiled(&self) -> Vec<u8> {
        compiled::encode(&self.builder())
    }

    pub(super) fn new(builder: Builder, applications: Vec<Application>, matchers: Matchers) -> Self {
        let checksum = compiled::checksum(&compiled::encode(&builder));
        let stated = builder.versions.join("+");
        let version =
            if stated.is_empty() { format!("{checksum:08x}") } else { format!("{stated}-{checksum:08x}") };
        let Builder { files, layer, drafts, names, entries, texts, versions, .. } = builder;
        Self {
            applications: applications.into(),
            names,
            drafts: drafts.into(),
            owners: entries.iter().map(|entry| entry.application).collect(),
            entries: entries.into(),
            texts,
            files: files.into(),
            layer,
            versions: versions.into(),
            version: version.into(),
            matchers,
        }
    }

    /// What a builder needs to go on from here.
    pub(super) fn builder(&self) -> Builder {
        Builder::with(
            self.files.to_vec(),
            self.layer,
            self.drafts.to_vec(),
            self.names.clone(),
            self.entries.to_vec(),
            self.texts.clone(),
            self.versions.to_vec(),
        )
    }

    fn found(&self, rule: u32) -> Option<Match> {
        let owner = self.owners.get(rule as usize)?;
        Some(Match { application: ApplicationId(*owner), rule: RuleId(rule) })
    }

    /// Whose host name this is: of the rules of the highest layer, the longest suffix. Case, a port behind it and a trailing dot don't count.
    /// Only if no suffix fits, keywords and then regular expressions are tried.
    #[inline]
    pub fn host(&self, host: &[u8]) -> Option<Match> {
        let name = bare(host);
        if name.is_empty() || name.len() > MAX_NAME {
            return None;
        }
        self.found(self.matchers.host(name)?)
    }

    /// Whose certificate has this name on it (`*.example.com`); host rules count for those, too.
    pub fn certificate(&self, name: &[u8]) -> Option<Match> {
        let name = name.strip_prefix(b"*.").unwrap_or(name);
        if name.is_empty() || name.len() > MAX_NAME {
            return None;
        }
        self.found(self.matchers.certificate(name)?)
    }

    /// Who speaks this in TLS (RFC 7301). Case counts.
    pub fn alpn(&self, name: &[u8]) -> Option<Match> {
        self.found(self.matchers.alpn(name)?)
    }

    /// Whose ClientHello has this fingerprint.
    pub fn ja4(&self, fingerprint: &[u8]) -> Option<Match> {
        self.found(self.matchers.ja4(fingerprint)?)
    }

    /// Whether there are rules for fingerprints: only then they are made.
    pub fn has_ja4s(&self) -> bool {
        self.matchers.has_ja4s()
    }

    /// Which application calls itself so: the longest of the words that its user agent has.
    pub fn agent(&self, agent: &[u8]) -> Option<Match> {
        self.found(self.matchers.agent(agent)?)
    }

    /// In whose network a server is. Weak: networks carry more than one application.
    #[inline]
    pub fn address(&self, address: IpAddr) -> Option<Match> {
        self.found(self.matchers.address(address)?)
    }

    /// Whether the rule that found it is an operator's own: of a file over what is the lowest.
    pub fn is_own(&self, found: Match) -> bool {
        let file = self.entries.get(found.rule.0 as usize).map(|entry| usize::from(entry.file));
        file.and_then(|file| self.files.get(file)).is_some_and(|file| file.layer > 0)
    }

    /// Whose servers have this port. The last resort.
    pub fn port(&self, carrier: Carrier, port: u16) -> Option<Match> {
        self.found(self.matchers.port(carrier, port)?)
    }

    /// Whose payload looks like this. For what no recogniser knows: it costs a search of the payload's first 512 octets.
    pub fn pattern(&self, carrier: Carrier, payload: &[u8]) -> Option<Match> {
        self.found(self.matchers.pattern(carrier, payload)?)
    }

    /// An application of this bundle; with the number of another bundle, one that is nobody's.
    pub fn application(&self, id: ApplicationId) -> &Application {
        self.applications.get(id.index()).unwrap_or(&NOBODY)
    }

    /// The application of this name.
    pub fn by_name(&self, name: &str) -> Option<ApplicationId> {
        self.names.get(name).copied().map(ApplicationId)
    }

    /// All applications, by their numbers.
    pub fn applications(&self) -> impl ExactSizeIterator<Item = (ApplicationId, &Application)> {
        self.applications.iter().enumerate().map(|(index, it)| (ApplicationId(index as u16), it))
    }

    /// What found something: the rule's text, and where it is written.
    pub fn rule(&self, id: RuleId) -> Option<Rule<'_>> {
        self.entries.get(id.0 as usize).map(|entry| self.rule_of(entry))
    }

    /// All rules, by their numbers.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = Rule<'_>> {
        self.entries.iter().map(|entry| self.rule_of(entry))
    }

    fn rule_of(&self, entry: &Entry) -> Rule<'_> {
        Rule {
            application: ApplicationId(entry.application),
            kind: entry.kind,
            text: self.texts.of(entry),
            file: self.files.get(usize::from(entry.file)).map_or("", |file| &file.name),
            line: entry.line,
        }
    }

    /// How many applications there are.
    pub fn len(&self) -> usize {
        self.applications.len()
    }

    /// Whether it knows nothing.
    pub fn is_empty(&self) -> bool {
        self.applications.is_empty()
    }

    /// The versions that its files state, and a checksum of all of it: bundles with the same are the same.
    pub fn version(&self) -> &str {
        &self.version
    }
}

static NOBODY: LazyLock<Application> = LazyLock::new(|| Application {
    name: "unknown".into(),
    display: "unknown".into(),
    category: Category::Other,
    parent: None,
});

/// The greatest file that is read.
pub const MAX_FILE: usize = 32 << 20;

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let failed = |source| LoadError::Read { path: path.to_owned(), source };
    let mut octets = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(MAX_FILE as u64 + 1).read_to_end(&mut octets).map_err(failed)?;
    if octets.len() > MAX_FILE { Err(LoadError::TooBig { path: path.to_owned() }) } else { Ok(octets) }
}

/// A text file of at most [`MAX_FILE`] octets.
pub(super) fn read_text(path: &Path) -> Result<String, LoadError> {
    String::from_utf8(read(path)?).map_err(|_| LoadError::NotText { path: path.to_owned() })
}

/// Why signatures can't be had from a file, or put into one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It can't be read.
    #[error("can't read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It can't be written.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is too big.
    #[error("{} has more than {} MiB", path.display(), MAX_FILE >> 20)]
    TooBig {
        /// Which.
        path: PathBuf,
    },
    /// It is no text, and not compiled.
    #[error("{} is neither UTF-8 text nor a compiled bundle", path.display())]
    NotText {
        /// Which.
        path: PathBuf,
    },
    /// What it says is wrong.
    #[error("{0}")]
    Wrong(#[from] Findings),
    /// It is compiled, and not whole.
    #[error("{}: {source}", path.display())]
    Compiled {
        /// Which.
        path: PathBuf,
        /// Why.
        source: CompiledError,
    },
}
