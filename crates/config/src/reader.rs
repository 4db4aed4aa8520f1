//! Reads typed values from a tree through serde, and says by path what can't be read.

use super::problem::{Step, Wrong};
use super::tree::{Entry, Node, Value};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use std::collections::btree_map;
use std::fmt;

/// What could not be read, and the way there.
#[derive(Debug)]
pub(crate) struct Fault {
    what: What,
    /// Innermost step first: every level adds its own on the way out.
    way: Vec<Step>,
}

#[derive(Debug)]
enum What {
    Other(String),
    NotThat { found: String, expected: String },
    UnknownWord { found: String, known: Vec<String> },
    UnknownKey { key: String, known: Vec<String> },
    MissingKey(String),
}

impl Fault {
    fn new(what: What) -> Self {
        Self { what, way: Vec::new() }
    }

    fn at(mut self, step: Step) -> Self {
        self.way.push(step);
        self
    }

    /// The path from the root, and what is wrong there.
    pub fn finish(self) -> (Vec<Step>, Wrong) {
        let mut path = self.way;
        path.reverse();
        let last_key = path
            .iter()
            .rev()
            .find_map(|step| match step {
                Step::Key(key) => Some(key.clone()),
                Step::Index(_) => None,
            })
            .unwrap_or_default();
        let wrong = match self.what {
            What::Other(message) => Wrong::NotThat { found: "this".into(), expected: message },
            What::NotThat { found, expected }
                if found == "a table" && expected == "a list in [ ]" && holds_tables(&path) =>
            {
                Wrong::OneTable { section: section(&path) }
            }
            What::NotThat { found, expected } => Wrong::NotThat { found, expected },
            What::UnknownWord { found, known } => Wrong::UnknownWord { key: last_key, found, known },
            What::UnknownKey { key, known } => {
                let parent = path.len().saturating_sub(1);
                Wrong::UnknownKey { key, section: section(path.get(..parent).unwrap_or(&[])), known }
            }
            What::MissingKey(key) => Wrong::MissingKey { key, section: section(&path) },
        };
        (path, wrong)
    }
}

/// Whether the list at the path is one of tables: all are that lie in the file itself or in [qos].
fn holds_tables(path: &[Step]) -> bool {
    match path {
        [Step::Key(_)] => true,
        [Step::Key(outer), Step::Key(_)] => outer == "qos",
        _ => false,
    }
}

/// A table as its header is written.
pub(crate) fn section(path: &[Step]) -> String {
    let keys: Vec<&str> = path
        .iter()
        .filter_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        })
        .collect();
    match path.last() {
        None => "the file".into(),
        Some(Step::Key(_)) => format!("[{}]", keys.join(".")),
        Some(Step::Index(_)) => format!("[[{}]]", keys.join(".")),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.what)
    }
}

impl std::error::Error for Fault {}

/// What serde calls a thing, as a reader of a configuration would.
fn found(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Str(text) => {
            let mut shown: String = text.chars().take(60).collect();
            if shown.len() < text.len() {
                shown.push('…');
            }
            format!("\"{shown}\"")
        }
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        other => other.to_string(),
    }
}

/// Likewise for what serde expects.
fn expected(expected: &dyn de::Expected) -> String {
    let text = expected.to_string();
    match text.as_str() {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number".into(),
        "a boolean" => "`true` or `false`".into(),
        "a sequence" => "a list in [ ]".into(),
        "path string" => "a path".into(),
        _ if text.starts_with("struct ") => "a table".into(),
        _ if text.starts_with("enum ") || text.starts_with("variant ") => {
            "one of the words that can be here".into()
        }
        _ => text,
    }
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(What::Other(message.to_string()))
    }

    fn invalid_type(unexpected: Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        Self::new(What::NotThat { found: found(unexpected), expected: expected(wanted) })
    }

    fn invalid_value(unexpected: Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        Self::invalid_type(unexpected, wanted)
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        Self::new(What::UnknownWord {
            found: variant.into(),
            known: known.iter().map(ToString::to_string).collect(),
        })
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::new(What::UnknownKey {
            key: field.into(),
            known: known.iter().map(ToString::to_string).collect(),
        })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(What::MissingKey(field.into()))
    }
}

/// Reads one node.
pub(crate) struct Reader<'a>(pub &'a Node);

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_str(text),
            Value::Integer(integer) => visitor.visit_i64(*integer),
            Value::Float(float) => visitor.visit_f64(*float),
            Value::Boolean(boolean) => visitor.visit_bool(*boolean),
            Value::List(items) => visitor.visit_seq(Items { items: items.iter().enumerate() }),
            Value::Table(entries) => visitor.visit_map(Entries { entries: entries.iter(), current: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_enum(Word(text)),
            _ => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// A word that names a variant.
struct Word<'a>(&'a str);

impl<'de, 'a> EnumAccess<'de> for Word<'a> {
    type Error = Fault;
    type Variant = NoContent;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, NoContent), Fault> {
        let word: StrDeserializer<'a, Fault> = self.0.into_deserializer();
        seed.deserialize(word).map(|variant| (variant, NoContent))
    }
}

/// A word carries nothing: all variants of a configuration's enums are plain.
struct NoContent;

impl<'de> de::VariantAccess<'de> for NoContent {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Fault> {
        Err(de::Error::invalid_type(Unexpected::UnitVariant, &"a value"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(de::Error::invalid_type(Unexpected::UnitVariant, &"a value"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Fault> {
        Err(de::Error::invalid_type(Unexpected::UnitVariant, &"a value"))
    }
}

struct Items<'a> {
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        match self.items.find(|(_, item)| !item.struck) {
            Some((index, item)) => {
                seed.deserialize(Reader(item)).map(Some).map_err(|fault| fault.at(Step::Index(index)))
            }
            None => Ok(None),
        }
    }
}

struct Entries<'a> {
    entries: btree_map::Iter<'a, String, Entry>,
    current: Option<(&'a str, &'a Node)>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, entry)) = self.entries.find(|(_, entry)| !entry.node.struck) else {
            return Ok(None);
        };
        self.current = Some((key, &entry.node));
        let name: StrDeserializer<'_, Fault> = key.as_str().into_deserializer();
        seed.deserialize(name).map(Some).map_err(|fault| fault.at(Step::Key(key.clone())))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((key, node)) = self.current.take() else {
            return Err(de::Error::custom("a key before its value"));
        };
        seed.deserialize(Reader(node)).map_err(|fault| fault.at(Step::Key(key.to_owned())))
    }
}
