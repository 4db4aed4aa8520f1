//! A configuration as a tree of values, each of which knows where it was written.
//!
//! The file, the environment and the `--set` arguments are laid over each other here, before anything is read from
//! them: so an error in a value points at the layer that the value came from.

use super::problem::{Place, Step, Wrong};
use super::report::Problem;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub value: Value,
    pub place: Place,
    /// Found wrong: readers pass over it, so that the rest can be examined.
    pub struck: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    List(Vec<Node>),
    Table(BTreeMap<String, Entry>),
}

/// A table's entry: the value and where its key was written.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: Place,
    pub node: Node,
}

/// Deeper than any setting lies; what nests deeper is cut off and found to be an unknown key.
const MAX_DEPTH: usize = 8;
/// Most keys in a row in one dotted key; the parser recurses into each.
const MAX_DOTS: usize = 32;

impl Node {
    fn new(value: Value, place: Place) -> Self {
        Self { value, place, struck: false }
    }

    /// An empty table.
    pub fn empty(place: Place) -> Self {
        Self::new(Value::Table(BTreeMap::new()), place)
    }

    /// The file's tree, and what of the text is not TOML.
    pub fn from_file(text: &str) -> (Self, Vec<Problem>) {
        if let Some(span) = overlong_key(text) {
            let wrong = Wrong::Syntax("no key has that many parts".into());
            return (
                Self::empty(Place::TOP),
                vec![Problem { wrong, place: Place::File(span), related: Vec::new() }],
            );
        }
        let (document, errors) = DeTable::parse_recoverable(text);
        let mut problems: Vec<Problem> = errors
            .into_iter()
            .map(|error| Problem {
                wrong: Wrong::Syntax(
                    error.message().trim().replace(", expected nothing", "").replace('\n', ", "),
                ),
                place: Place::File(error.span().unwrap_or(0..0)),
                related: Vec::new(),
            })
            .collect();
        let mut root = Self::empty(Place::TOP);
        root.value = table(document.get_ref(), 0, &mut |span| Place::File(span.clone()), &mut problems);
        (root, problems)
    }

    /// The value of an override: TOML if it reads as TOML, else the text itself, so that a string needs no quotes.
    pub fn from_override(text: &str, place: &Place) -> Self {
        let mut problems = Vec::new();
        let parsed = match overlong_key(text) {
            None => DeValue::parse(text).ok(),
            Some(_) => None,
        };
        let value = parsed
            .map(|parsed| value(parsed.get_ref(), 0, &mut |_| place.clone(), &mut problems))
            .filter(|_| problems.is_empty())
            .unwrap_or_else(|| Value::Text(text.to_owned()));
        Self::new(value, place.clone())
    }

    /// Puts `node` where `path` leads, making tables and appending list entries on the way.
    ///
    /// In a list, a number is a position (the one behind the last entry appends) and anything else the `name` of an
    /// entry.
    pub fn set(&mut self, path: &[&str], node: Self) -> Result<(), String> {
        let Some((first, rest)) = path.split_first() else {
            *self = node;
            return Ok(());
        };
        let place = node.place.clone();
        if path.len() > MAX_DEPTH {
            return Err("no setting lies that deep".into());
        }
        match &mut self.value {
            Value::Table(entries) => {
                let entry = entries.entry((*first).to_owned()).or_insert_with(|| {
                    let starts_list =
                        rest.first().is_some_and(|step| step.bytes().all(|b| b.is_ascii_digit()));
                    let value =
                        if starts_list { Value::List(Vec::new()) } else { Value::Table(BTreeMap::new()) };
                    Entry { key: place.clone(), node: Self::new(value, place.clone()) }
                });
                if rest.is_empty() {
                    entry.key = place;
                }
                entry.node.set(rest, node)
            }
            Value::List(items) => {
                let count = items.len();
                let index = match first.parse::<usize>() {
                    Ok(index) => index,
                    Err(_) => items
                        .iter()
                        .position(|item| item.text_at("name") == Some(first))
                        .ok_or_else(|| format!("no entry has the name `{first}`"))?,
                };
                if index == count {
                    items.push(Self::empty(place));
                }
                let item = items.get_mut(index).ok_or_else(|| match count {
                    0 => "the list is empty: 0 adds its first entry".to_owned(),
                    _ => format!("the list's entries are 0 to {}, and {count} adds one", count - 1),
                })?;
                item.set(rest, node)
            }
            _ => Err(format!("`{first}` is sought in a plain value")),
        }
    }

    /// The text of a table's entry.
    fn text_at(&self, key: &str) -> Option<&str> {
        match &self.value {
            Value::Table(entries) => match &entries.get(key)?.node.value {
                Value::Text(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    /// Where the path's value was written, or, where there is none, the nearest thing around it.
    pub fn place(&self, path: &[Step]) -> Place {
        let mut node = self;
        for step in path {
            let next = match (&node.value, step) {
                (Value::Table(entries), Step::Key(key)) => entries.get(key).map(|entry| &entry.node),
                (Value::List(items), Step::Index(index)) => items.get(*index),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node.place.clone()
    }

    /// Where the key that the path ends with was written; as [`Node::place`] if the path ends with a position.
    pub fn key_place(&self, path: &[Step]) -> Place {
        let Some((Step::Key(key), parent)) = path.split_last() else {
            return self.place(path);
        };
        match self.get(parent).map(|node| &node.value) {
            Some(Value::Table(entries)) => {
                entries.get(key).map_or_else(|| self.place(path), |entry| entry.key.clone())
            }
            _ => self.place(path),
        }
    }

    /// The value at the path.
    pub fn get(&self, path: &[Step]) -> Option<&Self> {
        path.iter().try_fold(self, |node, step| match (&node.value, step) {
            (Value::Table(entries), Step::Key(key)) => entries.get(key).map(|entry| &entry.node),
            (Value::List(items), Step::Index(index)) => items.get(*index),
            _ => None,
        })
    }

    /// Marks the value at the path as wrong. False if there is none, or it was marked before.
    pub fn strike(&mut self, path: &[Step]) -> bool {
        let mut node = self;
        for step in path {
            let next = match (&mut node.value, step) {
                (Value::Table(entries), Step::Key(key)) => entries.get_mut(key).map(|entry| &mut entry.node),
                (Value::List(items), Step::Index(index)) => items.get_mut(*index),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => return false,
            }
        }
        !std::mem::replace(&mut node.struck, true)
    }
}

type Placer<'a> = dyn FnMut(&std::ops::Range<usize>) -> Place + 'a;

fn value(from: &DeValue<'_>, depth: usize, place: &mut Placer<'_>, problems: &mut Vec<Problem>) -> Value {
    match from {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => Value::Integer(integer),
            // Beyond 64 bits, and so beyond every setting's range: the range is what will be said.
            Err(_) if integer.as_str().starts_with('-') => Value::Integer(i64::MIN),
            Err(_) => Value::Integer(i64::MAX),
        },
        DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Datetime(datetime) => Value::Text(datetime.to_string()),
        DeValue::Array(items) if depth < MAX_DEPTH => Value::List(
            items
                .iter()
                .map(|item| Node::new(value(item.get_ref(), depth + 1, place, problems), place(&item.span())))
                .collect(),
        ),
        DeValue::Table(entries) if depth < MAX_DEPTH => table(entries, depth + 1, place, problems),
        DeValue::Array(_) | DeValue::Table(_) => Value::Boolean(false),
    }
}

fn table(from: &DeTable<'_>, depth: usize, place: &mut Placer<'_>, problems: &mut Vec<Problem>) -> Value {
    let entries = from.iter().map(|(key, item)| {
        let node = Node::new(value(item.get_ref(), depth, place, problems), place(&item.span()));
        (key.get_ref().to_string(), Entry { key: place(&key.span()), node })
    });
    Value::Table(entries.collect())
}

/// A dotted key of more than [`MAX_DOTS`] parts. The TOML parser bounds how deep arrays and inline tables nest, but not
/// how many parts a key has, each of which is a table in a table.
fn overlong_key(text: &str) -> Option<std::ops::Range<usize>> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        // Dots in strings and comments count too; no line of a configuration holds that many.
        let dots = line.bytes().filter(|b| *b == b'.').count();
        if dots > MAX_DOTS && !line.trim_start().starts_with('#') && key_parts(line) > MAX_DOTS {
            return Some(start..start + line.trim_end().len());
        }
        start += line.len();
    }
    None
}

/// The most dots in a row that separate bare words, anywhere in the line: an upper bound of its longest key's parts.
fn key_parts(line: &str) -> usize {
    line.split(['=', ',', '{', '}'])
        .map(|part| part.bytes().filter(|b| *b == b'.').count())
        .max()
        .unwrap_or(0)
}
