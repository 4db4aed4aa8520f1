//! Values that a configuration writes as text, and the types that they become.
//!
//! Each is a [`TextUnit`]: how it is read, how it is written back, and what to tell someone who wrote it wrong. The
//! serde modules [`text`], [`optional`] and [`list`] put that behind an ordinary field of the plain type.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use packet::{Dscp, MacAddr};
use pfcp::ie::SNssai;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// A type with one spelling as text.
pub trait TextUnit: Sized {
    /// Completes "… is not": what is expected, with an example.
    const EXPECTED: &'static str;
    /// An example for the schema.
    const EXAMPLE: &'static str;
    /// Reads it; `None` if the text is something else.
    fn read(text: &str) -> Option<Self>;
    /// Writes it as [`TextUnit::read`] reads it.
    fn write(&self) -> String;
}

/// The PFCP Node ID of this UPF (TS 29.244 §8.2.38).
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum NodeId {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address.
    V6(Ipv6Addr),
    /// A fully qualified domain name, as plain text: labels of letters, digits and hyphens.
    Fqdn(String),
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => address.fmt(f),
            Self::Fqdn(name) => name.fmt(f),
        }
    }
}

impl From<IpAddr> for NodeId {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6(address),
        }
    }
}

impl TextUnit for NodeId {
    const EXPECTED: &'static str =
        "a Node ID: an IP address or a domain name, such as `192.0.2.1` or `upf1.example.org`";
    const EXAMPLE: &'static str = "upf1.example.org";

    fn read(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(address.into());
        }
        // A name that ends in a number is a mistyped address, not a domain (RFC 3696 §2: no all-numeric top label).
        let numeric_end =
            text.rsplit('.').next().is_none_or(|label| label.bytes().all(|b| b.is_ascii_digit()));
        let valid = text.len() <= 253 && !numeric_end && text.split('.').all(is_host_label);
        valid.then(|| Self::Fqdn(text.to_ascii_lowercase()))
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// A label of a host name (RFC 1123 §2.1): 1 to 63 letters, digits and hyphens, no hyphen at an end.
fn is_host_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// A PCI function: `0000:01:00.0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PciAddress {
    /// Domain (segment).
    pub domain: u16,
    /// Bus.
    pub bus: u8,
    /// Device, 0..=31.
    pub device: u8,
    /// Function, 0..=7.
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

impl PciAddress {
    /// From `DDDD:BB:DD.F` or, domain zero, `BB:DD.F`; hexadecimal.
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, function) = text.rsplit_once('.')?;
        let (rest, device) = rest.rsplit_once(':')?;
        let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0000", rest));
        let hex = |digits: &str, width: usize| {
            (digits.len() == width && digits.bytes().all(|b| b.is_ascii_hexdigit()))
                .then(|| u16::from_str_radix(digits, 16).ok())
                .flatten()
        };
        let address = Self {
            domain: hex(domain, 4)?,
            bus: hex(bus, 2)? as u8,
            device: hex(device, 2)? as u8,
            function: hex(function, 1)? as u8,
        };
        (address.device < 32 && address.function < 8).then_some(address)
    }
}

/// What DPDK is told to open: a PCI function, or a virtual device with its arguments.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum DeviceName {
    /// A NIC (or one of its functions) that is bound to a driver DPDK can use.
    Pci(PciAddress),
    /// A DPDK virtual device.
    Vdev {
        /// Its name, which starts with its driver's: `net_af_packet0`.
        name: String,
        /// What follows the first comma: `iface=veth0,qpairs=1`.
        arguments: String,
    },
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci(address) => address.fmt(f),
            Self::Vdev { name, arguments } if arguments.is_empty() => name.fmt(f),
            Self::Vdev { name, arguments } => write!(f, "{name},{arguments}"),
        }
    }
}

impl TextUnit for DeviceName {
    const EXPECTED: &'static str = "a PCI address such as `0000:01:00.0`, or a DPDK virtual device such as \
                                    `net_af_packet0,iface=veth0`";
    const EXAMPLE: &'static str = "0000:01:00.0";

    fn read(text: &str) -> Option<Self> {
        if let Some(address) = PciAddress::parse(text) {
            return Some(Self::Pci(address));
        }
        let (name, arguments) = text.split_once(',').unwrap_or((text, ""));
        let known = name.starts_with("net_") || name.starts_with("eth_");
        let clean = |s: &str| s.bytes().all(|b| b.is_ascii_graphic());
        // 64 is RTE_DEV_NAME_MAX_LEN.
        let fits = (5..64).contains(&name.len()) && arguments.len() < 1024;
        (known && fits && clean(name) && clean(arguments))
            .then(|| Self::Vdev { name: name.to_owned(), arguments: arguments.to_owned() })
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// An address of our own together with the subnet that it lives in: `192.0.2.1/24`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct InterfaceAddress(pub IpNet);

impl InterfaceAddress {
    /// Our address.
    pub fn address(&self) -> IpAddr {
        self.0.addr()
    }

    /// The subnet, host bits zero.
    pub fn subnet(&self) -> IpNet {
        self.0.trunc()
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TextUnit for InterfaceAddress {
    const EXPECTED: &'static str =
        "an address with the length of its subnet's prefix, such as `192.0.2.1/24`";
    const EXAMPLE: &'static str = "192.0.2.1/24";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

macro_rules! parsed_unit {
    ($type:ty, $expected:literal, $example:literal) => {
        impl TextUnit for $type {
            const EXPECTED: &'static str = $expected;
            const EXAMPLE: &'static str = $example;

            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn write(&self) -> String {
                self.to_string()
            }
        }
    };
}

/// Bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct BitRate(pub u64);

/// Units of a bit rate, largest first.
const BIT_RATES: [(&str, u64); 4] =
    [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)];

impl TextUnit for BitRate {
    const EXPECTED: &'static str =
        "a bit rate: a whole number with bit/s, kbit/s, Mbit/s or Gbit/s, such as `250Mbit/s`";
    const EXAMPLE: &'static str = "1Gbit/s";

    fn read(text: &str) -> Option<Self> {
        let (number, unit) =
            BIT_RATES.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
        // `parse` takes a sign.
        let number: u64 = if number.starts_with('+') { None } else { number.trim_end().parse().ok() }?;
        Some(Self(number.checked_mul(*unit)?))
    }

    fn write(&self) -> String {
        let whole = BIT_RATES.iter().find(|(_, unit)| self.0.is_multiple_of(*unit) && self.0 >= *unit);
        let (name, unit) = whole.copied().unwrap_or(("bit/s", 1));
        format!("{}{name}", self.0 / unit)
    }
}

parsed_unit!(
    SNssai,
    "an S-NSSAI: the slice/service type and, if there is one, the differentiator in six hexadecimal digits, such as `1` or `1-00007b`",
    "1-00007b"
);
parsed_unit!(Dscp, "a DSCP: a name such as `EF`, `AF41` or `CS6`, or a number up to 63", "EF");
parsed_unit!(IpAddr, "an IP address, such as `192.0.2.1` or `2001:db8::1`", "192.0.2.254");
parsed_unit!(IpNet, "a prefix, such as `198.51.100.0/24` or `2001:db8::/32`", "198.51.100.0/24");
parsed_unit!(Ipv4Addr, "an IPv4 address, such as `203.0.113.7`", "203.0.113.7");
parsed_unit!(Ipv4Net, "an IPv4 prefix, such as `10.45.0.0/16`", "10.45.0.0/16");
parsed_unit!(Ipv6Net, "an IPv6 prefix, such as `2001:db8:45::/48`", "2001:db8:45::/48");
parsed_unit!(
    SocketAddr,
    "an address and a port, such as `192.0.2.1:8805` or `[2001:db8::1]:8805`",
    "192.0.2.1:8805"
);

impl TextUnit for MacAddr {
    const EXPECTED: &'static str = "a MAC address, such as `02:00:00:00:00:01`";
    const EXAMPLE: &'static str = "02:00:00:00:00:01";

    fn read(text: &str) -> Option<Self> {
        let mut octets = [0; 6];
        let mut parts = text.split([':', '-']);
        for octet in &mut octets {
            let part = parts.next().filter(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()))?;
            *octet = u8::from_str_radix(part, 16).ok()?;
        }
        parts.next().is_none().then_some(Self(octets))
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl TextUnit for Duration {
    const EXPECTED: &'static str =
        "a duration: a whole number and `ms`, `s`, `m` or `h`, such as `500ms` or `10s`";
    const EXAMPLE: &'static str = "10s";

    fn read(text: &str) -> Option<Self> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits)?;
        let number: u64 = number.parse().ok()?;
        let millis = match unit.trim_start() {
            "ms" => 1,
            "s" => 1000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        number.checked_mul(millis).map(Self::from_millis)
    }

    fn write(&self) -> String {
        let millis = self.as_millis();
        match millis {
            0 => "0s".to_owned(),
            m if m % 3_600_000 == 0 => format!("{}h", m / 3_600_000),
            m if m % 60_000 == 0 => format!("{}m", m / 60_000),
            m if m % 1000 == 0 => format!("{}s", m / 1000),
            m => format!("{m}ms"),
        }
    }
}

/// Stands for a [`TextUnit`] in the schema: a string with what is expected and an example.
pub struct Text<T>(PhantomData<T>);

impl<T: TextUnit> JsonSchema for Text<T> {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": T::EXPECTED, "examples": [T::EXAMPLE] })
    }
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: TextUnit> serde::de::Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        T::read(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

/// `#[serde(with = "text")]` on a field of a [`TextUnit`] type.
pub mod text {
    use super::{PhantomData, TextUnit, TextVisitor};
    use serde::{Deserializer, Serializer};

    /// Writes the text.
    pub fn serialize<T: TextUnit, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&value.write())
    }

    /// Reads the text.
    pub fn deserialize<'de, T: TextUnit, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

/// As [`text`], for an optional field.
pub mod optional {
    use super::{TextUnit, text};
    use serde::{Deserializer, Serializer};

    /// Writes the text, or nothing.
    pub fn serialize<T: TextUnit, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => text::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads the text: a key that is there has a value, TOML knows no null.
    pub fn deserialize<'de, T: TextUnit, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        text::deserialize(deserializer).map(Some)
    }
}

/// As [`text`], for a list.
pub mod list {
    use super::{PhantomData, TextUnit, TextVisitor, fmt};
    use serde::de::{DeserializeSeed, SeqAccess, Visitor};
    use serde::{Deserializer, Serializer};

    /// Writes the texts.
    pub fn serialize<T: TextUnit, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(TextUnit::write))
    }

    /// Reads the texts.
    pub fn deserialize<'de, T: TextUnit, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }

    struct Item<T>(PhantomData<T>);

    impl<'de, T: TextUnit> DeserializeSeed<'de> for Item<T> {
        type Value = T;

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
            deserializer.deserialize_str(TextVisitor(PhantomData))
        }
    }

    struct ListVisitor<T>(PhantomData<T>);

    impl<'de, T: TextUnit> Visitor<'de> for ListVisitor<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list; each item is {}", T::EXPECTED)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut values = Vec::new();
            while let Some(value) = items.next_element_seed(Item(PhantomData))? {
                values.push(value);
            }
            Ok(values)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn node_ids() {
        assert_eq!(NodeId::read("192.0.2.1"), Some(NodeId::V4(Ipv4Addr::new(192, 0, 2, 1))));
        assert_eq!(NodeId::read("2001:db8::1").unwrap().write(), "2001:db8::1");
        assert_eq!(NodeId::read("UPF1.example.org"), Some(NodeId::Fqdn("upf1.example.org".into())));
        for wrong in ["", "192.0.2.300", "a..b", "-a", "a b", "a.1"] {
            assert_eq!(NodeId::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn devices() {
        let pci = DeviceName::read("0000:3b:00.1").unwrap();
        assert_eq!(pci, DeviceName::Pci(PciAddress { domain: 0, bus: 0x3b, device: 0, function: 1 }));
        assert_eq!(DeviceName::read("3b:00.1").unwrap(), pci);
        assert_eq!(DeviceName::read("net_tap0,iface=tap0").unwrap().write(), "net_tap0,iface=tap0");
        for wrong in ["0000:01:20.0", "0000:01:00.8", "eth0", "+000:01:00.0", "net_tap0, iface=a", "01:00"] {
            assert_eq!(DeviceName::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(Duration::read("1500ms"), Some(Duration::from_millis(1500)));
        assert_eq!(Duration::read("2 m"), Some(Duration::from_mins(2)));
        for wrong in ["10", "s", "-1s", "1.5s", "", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(Duration::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn mac_addresses() {
        assert_eq!(MacAddr::read("02:00:00:00:00:0a"), Some(MacAddr([2, 0, 0, 0, 0, 10])));
        assert_eq!(MacAddr::read("02-00-00-00-00-0A"), Some(MacAddr([2, 0, 0, 0, 0, 10])));
        for wrong in ["02:00:00:00:00", "02:00:00:00:00:00:00", "2:0:0:0:0:a", "+2:00:00:00:00:0a"] {
            assert_eq!(MacAddr::read(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(millis: u32, octets: [u8; 6], domain: u16, bus: u8, device in 0u8..32, function in 0u8..8) {
            let duration = Duration::from_millis(millis.into());
            prop_assert_eq!(Duration::read(&duration.write()), Some(duration));
            prop_assert_eq!(MacAddr::read(&MacAddr(octets).write()), Some(MacAddr(octets)));
            let pci = DeviceName::Pci(PciAddress { domain, bus, device, function });
            prop_assert_eq!(DeviceName::read(&pci.write()), Some(pci));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,64}") {
            if let Some(id) = NodeId::read(&text) { prop_assert_eq!(NodeId::read(&id.write()), Some(id)); }
            if let Some(name) = DeviceName::read(&text) { prop_assert_eq!(DeviceName::read(&name.write()), Some(name)); }
            let _ = Duration::read(&text);
            let _ = MacAddr::read(&text);
        }
    }
}
