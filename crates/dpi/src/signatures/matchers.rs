//! The rules of a bundle, put so that they are found quickly. Everything here answers with the rule's number.

use crate::classify::Carrier;
use crate::signatures::hosts::{HostRule, HostTable};
use crate::signatures::rules::{self, Body, Pattern, SEARCHED};
use crate::signatures::{Kind, Wrong};
use aho_corasick::AhoCorasick;
use regex_automata::meta;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tables::lpm::Lpm;
use tables::{Lookup, Lpm4, Lpm6};

/// Number, layer, kind and text of a rule.
type Written<'t> = (u32, u8, Kind, &'t str);

/// See the module's documentation.
#[derive(Clone, Default, Debug)]
pub(super) struct Matchers {
    hosts: HostTable,
    certificates: HostTable,
    keywords: Words,
    regexes: Expressions,
    alpns: HashMap<Box<[u8]>, u32>,
    ja4s: HashMap<Box<[u8]>, u32>,
    agents: Words,
    addresses: Addresses,
    ports: HashMap<(Carrier, u16), u32>,
    patterns: Patterns,
}

impl Matchers {
    pub fn new(all: &[Written<'_>]) -> Result<Self, Wrong> {
        let of = |kind: Kind| all.iter().filter(move |(_, _, it, _)| *it == kind).copied();
        let table = |kind| {
            let rules: Vec<_> =
                of(kind).map(|(rule, layer, _, text)| HostRule { text, rule, layer }).collect();
            HostTable::new(&rules)
        };
        let mut ports = HashMap::new();
        // Layers come in their order: a later one writes over what is there.
        for (rule, _, _, text) in of(Kind::Port) {
            let range = rules::ports(text)?;
            ports.extend((range.from..=range.to).map(|port| ((range.carrier, port), rule)));
        }
        Ok(Self {
            hosts: table(Kind::Host),
            certificates: table(Kind::Certificate),
            keywords: Words::new(of(Kind::Keyword), Whole::Anywhere)?,
            regexes: Expressions::new(of(Kind::Regex).map(|(rule, _, _, text)| (rule, text)))?,
            alpns: of(Kind::Alpn).map(|(rule, _, _, text)| (text.as_bytes().into(), rule)).collect(),
            ja4s: of(Kind::Ja4).map(|(rule, _, _, text)| (text.as_bytes().into(), rule)).collect(),
            agents: Words::new(of(Kind::Agent), Whole::Begins)?,
            addresses: Addresses::new(of(Kind::Address))?,
            ports,
            patterns: Patterns::new(of(Kind::Pattern))?,
        })
    }

    #[inline]
    pub fn host(&self, name: &[u8]) -> Option<u32> {
        self.hosts.find(name).or_else(|| self.other_host(name))
    }

    /// What is dear, for names that no suffix fits.
    fn other_host(&self, name: &[u8]) -> Option<u32> {
        if self.keywords.is_empty() && self.regexes.is_empty() {
            return None;
        }
        let mut lower = [0; super::hosts::MAX_NAME];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.keywords.find(lower).or_else(|| self.regexes.find(lower))
    }

    pub fn certificate(&self, name: &[u8]) -> Option<u32> {
        self.certificates.find(name).or_else(|| self.hosts.find(name))
    }

    pub fn alpn(&self, name: &[u8]) -> Option<u32> {
        self.alpns.get(name).copied()
    }

    pub fn ja4(&self, fingerprint: &[u8]) -> Option<u32> {
        self.ja4s.get(fingerprint).copied()
    }

    pub fn has_ja4s(&self) -> bool {
        !self.ja4s.is_empty()
    }

    pub fn agent(&self, agent: &[u8]) -> Option<u32> {
        self.agents.find(agent.get(..SEARCHED).unwrap_or(agent))
    }

    #[inline]
    pub fn address(&self, address: IpAddr) -> Option<u32> {
        self.addresses.find(address)
    }

    pub fn port(&self, carrier: Carrier, port: u16) -> Option<u32> {
        self.ports.get(&(carrier, port)).copied()
    }

    pub fn pattern(&self, carrier: Carrier, payload: &[u8]) -> Option<u32> {
        self.patterns.find(carrier, payload)
    }
}

/// Where words may stand.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Whole {
    #[default]
    Anywhere,
    /// At the beginning, or behind what is no letter and no digit.
    Begins,
}

/// Words that are all searched at once, whatever their case; the one of the highest layer counts, then the longest.
#[derive(Clone, Default, Debug)]
struct Words {
    automaton: Option<AhoCorasick>,
    /// Rank and number of each.
    rules: Vec<((u8, usize), u32)>,
    whole: Whole,
}

impl Words {
    fn new<'t>(words: impl Iterator<Item = Written<'t>>, whole: Whole) -> Result<Self, Wrong> {
        let (rules, texts): (Vec<_>, Vec<_>) =
            words.map(|(rule, layer, _, text)| (((layer, text.len()), rule), text)).unzip();
        Self::build(rules, &texts, whole, true)
    }

    fn build<P: AsRef<[u8]>>(
        rules: Vec<((u8, usize), u32)>,
        texts: &[P],
        whole: Whole,
        any_case: bool,
    ) -> Result<Self, Wrong> {
        let build = || AhoCorasick::builder().ascii_case_insensitive(any_case).build(texts);
        let automaton = if rules.is_empty() { None } else { Some(build()) };
        // It is only refused if it needs more than 2^31 states.
        let automaton =
            automaton.transpose().map_err(|_| Wrong::TooMany { what: "words", limit: rules.len() })?;
        Ok(Self { automaton, rules, whole })
    }

    const fn is_empty(&self) -> bool {
        self.automaton.is_none()
    }

    fn find(&self, text: &[u8]) -> Option<u32> {
        let mut best: Option<((u8, usize), u32)> = None;
        for found in self.automaton.as_ref()?.find_overlapping_iter(text) {
            let before = found.start().checked_sub(1).and_then(|at| text.get(at));
            if self.whole == Whole::Begins && before.is_some_and(u8::is_ascii_alphanumeric) {
                continue;
            }
            let Some(candidate) = self.rules.get(found.pattern().as_usize()) else { continue };
            if best.is_none_or(|(rank, _)| candidate.0 > rank) {
                best = Some(*candidate);
            }
        }
        best.map(|(_, rule)| rule)
    }
}

/// Regular expressions that are all searched at once; the first of the leftmost ones counts.
#[derive(Clone, Default, Debug)]
struct Expressions {
    regex: Option<meta::Regex>,
    rules: Vec<u32>,
}

impl Expressions {
    fn new<'t>(all: impl Iterator<Item = (u32, &'t str)>) -> Result<Self, Wrong> {
        let (rules, texts): (Vec<u32>, Vec<&str>) = all.unzip();
        if texts.is_empty() {
            return Ok(Self::default());
        }
        let regex = rules::regexes(&texts)
            .map_err(|error| Wrong::Regex { text: "(all of them)".into(), why: error.to_string() })?;
        Ok(Self { regex: Some(regex), rules })
    }

    const fn is_empty(&self) -> bool {
        self.regex.is_none()
    }

    fn find(&self, text: &[u8]) -> Option<u32> {
        let found = self.regex.as_ref()?.find(text)?;
        self.rules.get(found.pattern().as_usize()).copied()
    }
}

/// Prefixes of both families; the longest of the highest layer counts.
#[derive(Clone, Default, Debug)]
struct Addresses {
    v4: Option<Box<Lpm4>>,
    v6: Option<Box<Lpm6>>,
    /// What the tables' values mean.
    rules: Vec<u32>,
}

impl Addresses {
    fn new<'t>(written: impl Iterator<Item = Written<'t>>) -> Result<Self, Wrong> {
        let mut prefixes = Vec::new();
        for (rule, layer, _, text) in written {
            let (address, length) = rules::prefix(text)?;
            prefixes.push((layer, address, length, rule));
        }
        // Higher layers first: what they cover is left out.
        prefixes.sort_by_key(|(layer, ..)| std::cmp::Reverse(*layer));
        let mut it = Self::default();
        let mut lengths: BTreeSet<u8> = BTreeSet::new();
        let mut at_layer = (u8::MAX, BTreeSet::new());
        for (layer, address, length, rule) in prefixes {
            if at_layer.0 != layer {
                lengths.append(&mut at_layer.1);
                at_layer.0 = layer;
            }
            let value = it.rules.len() as u16;
            let inserted = match address {
                IpAddr::V4(address) => {
                    let table = it.v4.get_or_insert_with(|| Box::new(Lpm::<Ipv4Addr>::new(1 << 17)));
                    insert(table, address, length, value, &lengths)
                }
                IpAddr::V6(address) => {
                    let table = it.v6.get_or_insert_with(|| Box::new(Lpm::<Ipv6Addr>::new(1 << 17)));
                    insert(table, address, length, value, &lengths)
                }
            };
            inserted.map_err(|_| Wrong::TooMany { what: "addresses", limit: it.rules.len() })?;
            at_layer.1.insert(length);
            it.rules.push(rule);
        }
        Ok(it)
    }

    #[inline]
    fn find(&self, address: IpAddr) -> Option<u32> {
        let value = match address {
            IpAddr::V4(address) => self.v4.as_ref()?.lookup(&address),
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(address) => self.v4.as_ref()?.lookup(&address),
                None => self.v6.as_ref()?.lookup(&address),
            },
        }?;
        self.rules.get(usize::from(value)).copied()
    }
}

/// Puts a prefix in if no prefix of a layer above, which has one of these lengths, covers it.
fn insert<A: tables::lpm::Address>(
    table: &mut Lpm<A>,
    address: A,
    length: u8,
    value: u16,
    above: &BTreeSet<u8>,
) -> Result<(), tables::LpmError> {
    let covered =
        above.iter().take_while(|shorter| **shorter <= length).any(|it| table.get(address, *it).is_some());
    if covered { Ok(()) } else { table.insert(address, length, value).map(|_| ()) }
}

/// Octets at an offset.
#[derive(Clone, Debug)]
struct Anchored {
    carrier: Option<Carrier>,
    offset: usize,
    octets: Box<[Option<u8>]>,
    rule: u32,
}

impl Anchored {
    fn fits(&self, carrier: Carrier, payload: &[u8]) -> bool {
        self.carrier.is_none_or(|it| it == carrier)
            && payload.get(self.offset..self.offset + self.octets.len()).is_some_and(|there| {
                there
                    .iter()
                    .zip(&*self.octets)
                    .all(|(octet, wanted)| wanted.is_none_or(|wanted| wanted == *octet))
            })
    }
}

/// Patterns of payloads: those at an offset first, then those anywhere, then regular expressions.
#[derive(Clone, Default, Debug)]
struct Patterns {
    /// The best first.
    anchored: Vec<Anchored>,
    /// Of each carrier.
    anywhere: [Words; 3],
    expressions: [Expressions; 3],
}

impl Patterns {
    fn new<'t>(written: impl Iterator<Item = Written<'t>>) -> Result<Self, Wrong> {
        let mut anchored = Vec::new();
        let mut floating = Vec::new();
        let mut expressions = Vec::new();
        for (rule, layer, _, text) in written {
            let Pattern { carrier, offset, body } = Pattern::parse(text)?;
            match (body, offset) {
                (Body::Octets(octets), Some(offset)) => {
                    let rank = (layer, octets.iter().flatten().count());
                    let octets = octets.into_boxed_slice();
                    anchored.push((rank, Anchored { carrier, offset: usize::from(offset), octets, rule }));
                }
                (Body::Octets(octets), None) => {
                    let octets: Vec<u8> = octets.into_iter().flatten().collect();
                    floating.push((carrier, ((layer, octets.len()), rule), octets));
                }
                (Body::Regex(text), _) => expressions.push((carrier, rule, text)),
            }
        }
        anchored.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        let words = |carrier: Carrier| {
            let fitting = floating.iter().filter(|(it, ..)| it.is_none_or(|it| it == carrier));
            let (rules, texts): (Vec<_>, Vec<_>) = fitting.map(|(_, rule, octets)| (*rule, octets)).unzip();
            Words::build(rules, &texts, Whole::Anywhere, false)
        };
        let regexes = |carrier: Carrier| {
            let fitting = expressions.iter().filter(|(it, ..)| it.is_none_or(|it| it == carrier));
            Expressions::new(fitting.map(|(_, rule, text)| (*rule, text.as_str())))
        };
        Ok(Self {
            anchored: anchored.into_iter().map(|(_, pattern)| pattern).collect(),
            anywhere: [words(Carrier::Tcp)?, words(Carrier::Udp)?, words(Carrier::Sctp)?],
            expressions: [regexes(Carrier::Tcp)?, regexes(Carrier::Udp)?, regexes(Carrier::Sctp)?],
        })
    }

    fn find(&self, carrier: Carrier, payload: &[u8]) -> Option<u32> {
        let anchored = self.anchored.iter().find(|pattern| pattern.fits(carrier, payload)).map(|it| it.rule);
        let index = match carrier {
            Carrier::Tcp => 0,
            Carrier::Udp => 1,
            Carrier::Sctp => 2,
        };
        let start = payload.get(..SEARCHED).unwrap_or(payload);
        anchored
            .or_else(|| self.anywhere.get(index)?.find(start))
            .or_else(|| self.expressions.get(index)?.find(start))
    }
}
