//! The JSON Schema of the file, and the bounds that it states: one source for editors and for the loader.

use super::problem::{Step, Wrong};
use super::sections::File;
use super::tree::{Node, Value};
use serde_json::Value as Json;

/// The JSON Schema (2020-12) of a configuration file, with descriptions and defaults.
pub fn schema() -> Json {
    let mut schema = schemars::schema_for!(File);
    schema.insert("title".into(), "Millrace configuration".into());
    let mut schema = schema.to_value();
    // The same text whether or not some other crate of a build turns serde_json's `preserve_order` on.
    schema.sort_all_objects();
    schema
}

/// Numbers outside the bounds that the schema gives them, and lists of a length that it does not allow.
pub(crate) fn out_of_range(root: &Node, schema: &Json) -> Vec<(Vec<Step>, Wrong)> {
    let mut found = Vec::new();
    walk(schema, schema, root, &mut Vec::new(), &mut found);
    found
}

fn walk(schema: &Json, at: &Json, node: &Node, path: &mut Vec<Step>, found: &mut Vec<(Vec<Step>, Wrong)>) {
    let at = resolve(schema, at);
    match &node.value {
        Value::Integer(integer) => {
            let least = at.get("minimum").and_then(Json::as_u64);
            let greatest = at.get("maximum").and_then(Json::as_u64);
            let below = least.is_some_and(|least| i128::from(*integer) < i128::from(least));
            let above = greatest.is_some_and(|greatest| i128::from(*integer) > i128::from(greatest));
            if below || above {
                let (least, greatest) = (least.unwrap_or(0), greatest.unwrap_or(u64::MAX));
                let value = match *integer {
                    i64::MAX | i64::MIN => "this number".to_owned(),
                    integer => integer.to_string(),
                };
                found.push((path.clone(), Wrong::OutOfRange { value, least, greatest }));
            }
        }
        Value::List(items) => {
            let least = at.get("minItems").and_then(Json::as_u64).unwrap_or(0);
            let greatest = at.get("maxItems").and_then(Json::as_u64).unwrap_or(u64::MAX);
            if !(least..=greatest).contains(&(items.len() as u64)) {
                let value = format!("a list of {} items", items.len());
                found.push((path.clone(), Wrong::OutOfRange { value, least, greatest }));
            }
            if let Some(of) = at.get("items") {
                for (index, item) in items.iter().enumerate() {
                    path.push(Step::Index(index));
                    walk(schema, of, item, path, found);
                    path.pop();
                }
            }
        }
        Value::Table(entries) => {
            for (key, entry) in entries {
                if let Some(of) = at.get("properties").and_then(|properties| properties.get(key)) {
                    path.push(Step::Key(key.clone()));
                    walk(schema, of, &entry.node, path, found);
                    path.pop();
                }
            }
        }
        Value::Text(_) | Value::Float(_) | Value::Boolean(_) => {}
    }
}

/// Follows a reference into `$defs`, and a choice between something and null to the something.
fn resolve<'a>(schema: &'a Json, at: &'a Json) -> &'a Json {
    if let Some(name) = at.get("$ref").and_then(Json::as_str).and_then(|r| r.strip_prefix("#/$defs/")) {
        return schema.get("$defs").and_then(|defs| defs.get(name)).unwrap_or(at);
    }
    let choices = at.get("anyOf").and_then(Json::as_array);
    match choices.and_then(|choices| choices.iter().find(|c| c.get("type") != Some(&Json::from("null")))) {
        Some(choice) if choice.get("$ref").is_some() => resolve(schema, choice),
        Some(choice) => choice,
        None => at,
    }
}
