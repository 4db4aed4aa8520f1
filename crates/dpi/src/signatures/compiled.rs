//! The compiled form of a bundle: one file with a checksum.
//!
//! | octets | what |
//! |---|---|
//! | 8 | `MILLSIG\n` |
//! | 2 | version of the form, 1 |
//! | 4 | length of the whole file |
//! | ... | versions; files with their layers; applications; rules |
//! | 4 | CRC-32 of all before it |
//!
//! Numbers are little-endian, texts have their length in front. It holds what files say after all checks, in the order of the bundle's numbers;
//! tables are made when it is loaded, so that it doesn't depend on how they look. It saves reading TOML, and nothing is missing of it if the checksum
//! is right. What is read is checked like what comes from a file all the same.

use crate::Category;
use crate::signatures::builder::{Builder, Built, Draft, MAX_LAYERS, Place};
use crate::signatures::findings::{Findings, Wrong};
use crate::signatures::{Bundle, Kind};

const MAGIC: &[u8; 8] = b"MILLSIG\n";
const VERSION: u16 = 1;
/// What stands in front of the content.
const HEADER: usize = 14;

/// Why a compiled bundle is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompiledError {
    /// Another kind of file.
    #[error("this is not a compiled bundle")]
    NotCompiled,
    /// Of another version of this program.
    #[error("form {0} is of another version of this program: build it again")]
    Version(u16),
    /// It isn't as long as it says.
    #[error("it has {found} octets and not {stated}: copy it again")]
    Length {
        /// As it says.
        stated: u32,
        /// As it is.
        found: usize,
    },
    /// It was changed.
    #[error("its checksum is wrong: copy it again")]
    Checksum,
    /// Its checksum is right, and what it says isn't.
    #[error("its content is no bundle: build it again")]
    Content,
    /// It says what no bundle may say.
    #[error("{0}")]
    Wrong(#[from] Findings),
}

impl From<Wrong> for CompiledError {
    fn from(_: Wrong) -> Self {
        Self::Content
    }
}

/// Whether this claims to be one.
pub(super) fn is_compiled(octets: &[u8]) -> bool {
    octets.starts_with(MAGIC)
}

/// The last four octets.
pub(super) fn checksum(octets: &[u8]) -> u32 {
    octets.last_chunk().copied().map_or(0, u32::from_le_bytes)
}

fn text(out: &mut Vec<u8>, text: &str) {
    // Names have 64 octets at most, rules 512, files 4096.
    let end = text.floor_char_boundary(u16::MAX.into());
    out.extend((end as u16).to_le_bytes());
    out.extend(text.as_bytes().get(..end).unwrap_or(&[]));
}

/// The compiled form of what was built.
pub(super) fn encode(builder: &Builder) -> Vec<u8> {
    let mut out = Vec::with_capacity(builder.texts.0.len() + builder.entries.len() * 16 + 4096);
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend([0; 4]);
    out.extend((builder.versions.len() as u16).to_le_bytes());
    for version in &builder.versions {
        text(&mut out, version);
    }
    out.extend((builder.files.len() as u16).to_le_bytes());
    for file in &builder.files {
        out.push(file.layer);
        text(&mut out, &file.name);
    }
    out.extend((builder.drafts.len() as u16).to_le_bytes());
    for draft in &builder.drafts {
        text(&mut out, &draft.name);
        text(&mut out, draft.display.as_deref().unwrap_or(""));
        text(&mut out, draft.category.map_or("", Category::name));
        text(&mut out, draft.parent.as_deref().unwrap_or(""));
        out.push(draft.replaced);
        let (place, layer) = draft.place.unwrap_or_default();
        out.push(u8::from(draft.place.is_some()));
        out.push(layer);
        out.extend(place.file.to_le_bytes());
        out.extend(place.line.to_le_bytes());
    }
    out.extend((builder.entries.len() as u32).to_le_bytes());
    for entry in &builder.entries {
        out.extend(entry.application.to_le_bytes());
        out.push(entry.kind as u8);
        out.extend(entry.file.to_le_bytes());
        out.extend(entry.line.to_le_bytes());
        text(&mut out, builder.texts.of(entry));
    }
    let length = (out.len() + 4) as u32;
    if let Some(place) = out.get_mut(10..HEADER) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    out.extend(crc32fast::hash(&out).to_le_bytes());
    out
}

/// Reads what [`encode`] wrote, and builds it.
pub(super) fn decode(octets: &[u8]) -> Result<Built, CompiledError> {
    if !is_compiled(octets) {
        return Err(CompiledError::NotCompiled);
    }
    let short = CompiledError::Length { stated: HEADER as u32 + 4, found: octets.len() };
    let (front, _) = octets.split_last_chunk::<4>().ok_or(short.clone())?;
    let mut reader = Reader(front.get(MAGIC.len()..).ok_or(short.clone())?);
    let version = reader.u16().map_err(|_| short.clone())?;
    if version != VERSION {
        return Err(CompiledError::Version(version));
    }
    let stated = reader.u32().map_err(|_| short)?;
    if stated as usize != octets.len() {
        return Err(CompiledError::Length { stated, found: octets.len() });
    }
    if crc32fast::hash(front) != checksum(octets) {
        return Err(CompiledError::Checksum);
    }
    let builder = content(&mut reader)?;
    if !reader.0.is_empty() {
        return Err(CompiledError::Content);
    }
    Ok(builder.build()?)
}

fn content(reader: &mut Reader<'_>) -> Result<Builder, CompiledError> {
    let mut builder = Builder::new();
    for _ in 0..reader.u16()? {
        builder.versions.push(reader.text()?.into());
    }
    for _ in 0..reader.u16()? {
        let layer = reader.u8()?;
        if layer < builder.layer || usize::from(layer) >= MAX_LAYERS {
            return Err(CompiledError::Content);
        }
        builder.layer = layer;
        builder.file(reader.text()?, None);
    }
    let files = builder.files.len();
    for index in 0..reader.u16()? {
        let name = reader.text()?;
        if builder.mention(name)? != index {
            return Err(CompiledError::Content);
        }
        let display = reader.optional()?;
        let category = reader.optional()?;
        let category =
            category.map(|name| Category::by_name(name).ok_or(CompiledError::Content)).transpose()?;
        let parent = reader.optional()?.map(Into::into);
        let replaced = reader.u8()?;
        let written = reader.u8()? != 0;
        let layer = reader.u8()?;
        let place = Place { file: reader.u16()?, line: reader.u32()?, ..Place::default() };
        let draft = Draft {
            name: name.into(),
            display: display.map(Into::into),
            category,
            parent,
            place: written.then_some((place, layer)),
            replaced,
        };
        *builder.drafts.last_mut().ok_or(CompiledError::Content)? = draft;
    }
    for _ in 0..reader.u32()? {
        let application = reader.u16()?;
        let kind = Kind::ALL.get(usize::from(reader.u8()?)).copied().ok_or(CompiledError::Content)?;
        let place = Place { file: reader.u16()?, line: reader.u32()?, ..Place::default() };
        if usize::from(place.file) >= files {
            return Err(CompiledError::Content);
        }
        builder.rule(application, kind, reader.text()?, place)?;
    }
    Ok(builder)
}

/// What is left to read.
struct Reader<'o>(&'o [u8]);

impl<'o> Reader<'o> {
    fn take(&mut self, length: usize) -> Result<&'o [u8], CompiledError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CompiledError::Content)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CompiledError> {
        self.take(N)?.first_chunk().copied().ok_or(CompiledError::Content)
    }

    fn u8(&mut self) -> Result<u8, CompiledError> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16, CompiledError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, CompiledError> {
        self.array().map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'o str, CompiledError> {
        let length = self.u16()?;
        std::str::from_utf8(self.take(length.into())?).map_err(|_| CompiledError::Content)
    }

    fn optional(&mut self) -> Result<Option<&'o str>, CompiledError> {
        Ok(Some(self.text()?).filter(|text| !text.is_empty()))
    }
}

impl Bundle {
    /// Reads the compiled form.
    pub fn from_compiled(octets: &[u8]) -> Result<Built, CompiledError> {
        decode(octets)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn small() -> Bundle {
        let mut builder = Builder::new();
        builder.read(
            "a.toml",
            "version = '1.2'\n[a]\ncategory = 'web'\nhosts = ['example.com']\nports = ['udp/53']\n\
             [b]\nname = 'B'\nparent = 'a'\naddresses = ['192.0.2.0/24']\npatterns = ['tcp@0 |00 01|abc']\n",
        );
        builder.next_layer();
        builder.read("b.toml", "[a]\nreplace = true\nhosts = ['=example.org', 'x*.example.net']\n");
        builder.build().unwrap().bundle
    }

    #[test]
    fn what_was_written_is_read() {
        for bundle in [small(), Bundle::clone(&Bundle::built_in()), Builder::new().build().unwrap().bundle] {
            let octets = bundle.compiled();
            let read = decode(&octets).unwrap().bundle;
            assert_eq!(read.version(), bundle.version());
            assert_eq!(read.compiled(), octets);
            assert!(read.rules().eq(bundle.rules()));
            assert!(read.applications().eq(bundle.applications()));
            for host in ["example.com", "example.org", "x1.example.net", "www.youtube.com"] {
                assert_eq!(read.host(host.as_bytes()), bundle.host(host.as_bytes()));
            }
        }
    }

    #[test]
    fn nothing_that_was_cut_or_changed_is_read() {
        let octets = small().compiled();
        for length in 0..octets.len() {
            assert!(decode(&octets[..length]).is_err(), "{length}");
        }
        for at in 0..octets.len() {
            for change in [1, 0x80, 0xff] {
                let mut changed = octets.clone();
                changed[at] ^= change;
                let error = decode(&changed).map(|_| ()).unwrap_err();
                let expected = match at {
                    0..8 => matches!(error, CompiledError::NotCompiled),
                    8..10 => matches!(error, CompiledError::Version(_)),
                    10..HEADER => matches!(error, CompiledError::Length { .. }),
                    _ => matches!(error, CompiledError::Checksum),
                };
                assert!(expected, "{at}: {error}");
            }
        }
        let mut longer = octets.clone();
        longer.push(0);
        assert!(matches!(decode(&longer), Err(CompiledError::Length { .. })));
    }

    /// A checksum keeps chance out, not malice: what it covers is checked as well.
    #[test]
    fn what_is_forged_is_no_bundle_or_a_sound_one() {
        let octets = small().compiled();
        for at in HEADER..octets.len() - 4 {
            for change in [1, 0x80, 0xff] {
                let mut forged = octets[..octets.len() - 4].to_vec();
                forged[at] ^= change;
                let checksum = crc32fast::hash(&forged);
                forged.extend(checksum.to_le_bytes());
                if let Ok(built) = decode(&forged) {
                    let _ = built.bundle.host(b"x1.example.net");
                    built
                        .bundle
                        .rules()
                        .for_each(|rule| assert!(rule.application.index() < built.bundle.len()));
                }
            }
        }
    }
}
