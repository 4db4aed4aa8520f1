//! Numbers that people read in hexadecimal, and that JSON tools don't keep exactly.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A number that is written in hexadecimal with a fixed width, and read as that or as a plain number.
macro_rules! hexadecimal {
    ($(#[$doc:meta])* $name:ident($inner:ty), $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                    // `from_str_radix` takes a sign; a number after 0x has none.
                    Some(digits) if digits.starts_with('+') => "".parse().map(Self),
                    Some(digits) => <$inner>::from_str_radix(digits, 16).map(Self),
                    None => text.parse().map(Self),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": "^0x[0-9a-f]+$" })
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a number, or a string such as \"0x1f\"")
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
                    }
                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$name, E> {
                        number
                            .try_into()
                            .map($name)
                            .map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(number), &self))
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }
    };
}

hexadecimal!(/// A SEID (TS 29.244 §7.2.2.4.2).
    SeidText(u64), "{:#018x}");
hexadecimal!(/// A TEID (TS 29.281 §5.1).
    TeidText(u32), "{:#010x}");

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hexadecimal_round_trip(seid: u64, teid: u32) {
            prop_assert_eq!(SeidText(seid).to_string().parse(), Ok(SeidText(seid)));
            prop_assert_eq!(TeidText(teid).to_string().parse(), Ok(TeidText(teid)));
            let json = serde_json::to_string(&SeidText(seid)).unwrap();
            prop_assert_eq!(serde_json::from_str::<SeidText>(&json).unwrap(), SeidText(seid));
            prop_assert_eq!(serde_json::from_str::<SeidText>(&seid.to_string()).unwrap(), SeidText(seid));
            prop_assert!("0x+1".parse::<SeidText>().is_err());
        }
    }
}
