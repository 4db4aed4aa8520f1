//! Whose is this host name? The longest suffix that is known.
//!
//! **Layout.** A hash map of all known names and of what stands to the right in them: for `www.example.com` also `example.com` and `com`.
//! A name is hashed from its end, octet by octet, and looked up at each dot; where nothing is found, nothing longer can be. So a name of
//! nobody costs one or two probes, and no name more than one per label.
//!
//! The map keeps hashes of 64 bits and not the names. That all *known* names differ in their hash is checked when it is built. A name that
//! nobody wrote has the hash of one of 10,000 known ones once in 2^50; who makes such a name on purpose could as well have written the
//! known one.
//!
//! **Parts that vary** (`media-*.cdn.example.com`) are kept with the suffix behind the last `*` and compared only if the walk gets there.

use std::collections::{HashMap, HashSet};

/// Longer names don't exist (RFC 1035 §2.3.4).
pub(super) const MAX_NAME: usize = 253;
/// Most rules with parts that vary below one suffix: a name is compared with each.
pub(super) const MAX_GLOBS: usize = 64;

/// Most labels in front of the suffix behind the last `*`.
pub(super) const MAX_GLOB_LABELS: usize = 4;

const NONE: u32 = u32::MAX;

/// A rule, ready to be put in.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostRule<'t> {
    /// As written: in lower case, `=` in front if it is exact.
    pub text: &'t str,
    pub rule: u32,
    pub layer: u8,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
    /// For the name and all below it.
    suffix: u32,
    /// For the name alone.
    exact: u32,
    /// First of its globs, and how many there are.
    globs: u32,
    glob_count: u8,
    /// Whether longer names are known.
    below: bool,
    suffix_layer: u8,
    exact_layer: u8,
}

const EMPTY: Slot = Slot {
    key: 0,
    suffix: NONE,
    exact: NONE,
    globs: 0,
    glob_count: 0,
    below: false,
    suffix_layer: 0,
    exact_layer: 0,
};

/// The labels in front of a suffix, from right to left, at least one of them with a `*`.
#[derive(Clone, Debug)]
struct Glob {
    labels: Vec<Box<[u8]>>,
    exact: bool,
    layer: u8,
    rule: u32,
}

/// All host rules of a bundle.
#[derive(Clone, Debug)]
pub(super) struct HostTable {
    slots: Box<[Slot]>,
    globs: Box<[Glob]>,
    seed: u64,
}

impl Default for HostTable {
    fn default() -> Self {
        Self { slots: Box::new([EMPTY]), globs: Box::new([]), seed: 0 }
    }
}

/// How good a rule fits: a layer above wins, then more labels, then one without parts that vary, then one for this name alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank {
    layer: u8,
    labels: u16,
    literal: bool,
    exact: bool,
}

/// FNV-1a: one multiplication an octet, and it can stop at each.
#[inline(always)]
const fn mix(hash: u64, octet: u8) -> u64 {
    (hash ^ octet as u64).wrapping_mul(0x0000_0100_0000_01b3)
}

fn hash(seed: u64, name: &str) -> u64 {
    // Zero marks what is empty.
    name.bytes().rev().fold(seed, mix).max(1)
}

/// Where the walk begins to look for a hash. The low bits of FNV are good, the high ones for short names are not.
#[inline(always)]
const fn home(hash: u64, mask: usize) -> usize {
    (hash ^ (hash >> 32)) as usize & mask
}

/// The suffix that a rule is kept with: all, or what stands behind the last label with a `*`.
fn literal_part(name: &str) -> &str {
    name.rfind('*').map_or(name, |star| {
        name.get(star..).and_then(|rest| rest.split_once('.')).map_or("", |(_, literal)| literal)
    })
}

impl HostTable {
    /// Of these rules; where two have the same text, the one of the layer above stays, and within a layer the first.
    pub fn new(rules: &[HostRule<'_>]) -> Self {
        let mut seed = 0xcbf2_9ce4_8422_2325_u64;
        let mut table = Self::with_seed(rules, seed);
        // A clash of two known names: once in 2^37 bundles of 10,000 names.
        while table.is_none() {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            table = Self::with_seed(rules, seed);
        }
        table.unwrap_or_default()
    }

    fn with_seed(rules: &[HostRule<'_>], seed: u64) -> Option<Self> {
        // Which name has a hash, for each suffix of each rule.
        let mut names: HashMap<u64, &str> = HashMap::with_capacity(rules.len() * 2);
        let mut below: HashSet<u64> = HashSet::new();
        let mut globs: HashMap<u64, Vec<Glob>> = HashMap::new();
        for rule in rules {
            let name = rule.text.trim_start_matches('=');
            let literal = literal_part(name);
            let mut suffix = literal;
            loop {
                let key = hash(seed, suffix);
                match names.insert(key, suffix) {
                    None => {}
                    Some(known) if known != suffix => return None,
                    // What is to its right is there, too.
                    Some(_) => break,
                }
                match suffix.split_once('.') {
                    Some((_, shorter)) => {
                        below.insert(hash(seed, shorter));
                        suffix = shorter;
                    }
                    None => break,
                }
            }
            if literal.len() < name.len() {
                let labels = name.get(..name.len() - literal.len() - 1).unwrap_or("");
                globs.entry(hash(seed, literal)).or_default().push(Glob {
                    labels: labels.rsplit('.').map(|label| label.as_bytes().into()).collect(),
                    exact: rule.text.starts_with('='),
                    layer: rule.layer,
                    rule: rule.rule,
                });
            }
        }
        let capacity = (names.len() * 2).next_power_of_two().max(2);
        let mut table = Self { slots: vec![EMPTY; capacity].into(), globs: Box::new([]), seed };
        for key in names.into_keys() {
            let at = table.position(key);
            if let Some(slot) = table.slots.get_mut(at) {
                slot.key = key;
                slot.below = below.contains(&key);
            }
        }
        for rule in rules {
            let name = rule.text.trim_start_matches('=');
            let at = table.position(hash(seed, name));
            let Some(slot) = table.slots.get_mut(at).filter(|slot| slot.key != 0 && !name.contains('*'))
            else {
                continue;
            };
            let (kept, layer) = if rule.text.starts_with('=') {
                (&mut slot.exact, &mut slot.exact_layer)
            } else {
                (&mut slot.suffix, &mut slot.suffix_layer)
            };
            if *kept == NONE || rule.layer > *layer {
                *kept = rule.rule;
                *layer = rule.layer;
            }
        }
        let mut all = Vec::new();
        for (key, list) in globs {
            let at = table.position(key);
            if let Some(slot) = table.slots.get_mut(at) {
                slot.globs = all.len() as u32;
                slot.glob_count = list.len().min(MAX_GLOBS) as u8;
                all.extend(list.into_iter().take(MAX_GLOBS));
            }
        }
        table.globs = all.into();
        Some(table)
    }

    /// Where a hash is, or would be. Half of the slots are empty, so it ends.
    #[inline(always)]
    fn position(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = home(key, mask);
        while let Some(slot) = self.slots.get(at) {
            if slot.key == key || slot.key == 0 {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    /// The rule for this name, which has no trailing dot and no port.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        if name.len() > MAX_NAME {
            return None;
        }
        let mut best: Option<(Rank, u32)> = None;
        let mut consider = |rank: Rank, rule: u32| {
            if rule != NONE && best.is_none_or(|(known, _)| rank > known) {
                best = Some((rank, rule));
            }
        };
        let mut hash = self.seed;
        let mut labels = 0;
        let mut rest = name.len();
        while let Some(octet) = rest.checked_sub(1).and_then(|last| name.get(last)) {
            hash = mix(hash, octet.to_ascii_lowercase());
            rest -= 1;
            let before = rest.checked_sub(1).and_then(|last| name.get(last));
            if before.is_some_and(|before| *before != b'.') {
                continue;
            }
            labels += 1;
            let Some(slot) = self.slots.get(self.position(hash.max(1))).filter(|slot| slot.key != 0) else {
                break;
            };
            if before.is_none() {
                consider(Rank { layer: slot.exact_layer, labels, literal: true, exact: true }, slot.exact);
            }
            consider(Rank { layer: slot.suffix_layer, labels, literal: true, exact: false }, slot.suffix);
            if slot.glob_count > 0 && rest > 0 {
                let front = Front::new(name.get(..rest - 1).unwrap_or(&[]));
                let from = slot.globs as usize;
                for glob in self.globs.get(from..from + slot.glob_count as usize).unwrap_or(&[]) {
                    if glob.fits(&front) {
                        let labels = labels + glob.labels.len() as u16;
                        let rank = Rank { layer: glob.layer, labels, literal: false, exact: glob.exact };
                        consider(rank, glob.rule);
                    }
                }
            }
            if !slot.below {
                break;
            }
        }
        best.map(|(_, rule)| rule)
    }
}

/// The labels in front of a suffix, from right to left, as many as rules can ask for.
struct Front<'n> {
    labels: [&'n [u8]; MAX_GLOB_LABELS],
    count: usize,
    more: bool,
}

impl<'n> Front<'n> {
    fn new(front: &'n [u8]) -> Self {
        let mut it = Self { labels: [&[]; MAX_GLOB_LABELS], count: 0, more: false };
        for label in front.rsplit(|octet| *octet == b'.') {
            let Some(place) = it.labels.get_mut(it.count) else {
                it.more = true;
                break;
            };
            *place = label;
            it.count += 1;
        }
        it
    }
}

impl Glob {
    /// Whether what stands in front of the suffix ends with these labels.
    fn fits(&self, front: &Front<'_>) -> bool {
        let wanted = self.labels.len();
        if front.count < wanted || (self.exact && (front.count > wanted || front.more)) {
            return false;
        }
        self.labels.iter().zip(&front.labels).all(|(pattern, label)| wild(pattern, label))
    }
}

/// Whether a label is a pattern's, in which `*` is for any octets or none. Its cost is at most the product of both lengths.
pub(super) fn wild(pattern: &[u8], label: &[u8]) -> bool {
    if pattern == b"*" {
        return true;
    }
    let (mut p, mut l) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while let Some(octet) = label.get(l) {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                retry = Some((p, l));
            }
            Some(wanted) if *wanted == octet.to_ascii_lowercase() => {
                p += 1;
                l += 1;
            }
            _ => {
                let Some((after, from)) = retry else { return false };
                p = after;
                l = from + 1;
                retry = Some((after, l));
            }
        }
    }
    pattern.get(p..).is_some_and(|left| left.iter().all(|octet| *octet == b'*'))
}

/// The name alone: without a port (`example.com:443`) and the dot of the root behind it.
#[inline]
pub(super) fn bare(host: &[u8]) -> &[u8] {
    let mut name = host;
    // No top-level domain ends with a digit.
    if name.last().is_some_and(|last| last.is_ascii_digit() || *last == b':') {
        let digits = name.iter().rev().take(5).take_while(|octet| octet.is_ascii_digit()).count();
        let (front, _) = name.split_at_checked(name.len() - digits).unwrap_or((name, &[]));
        name = front.strip_suffix(b":").unwrap_or(name);
    }
    name.strip_suffix(b".").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Labels of few letters, so that names meet.
    fn label() -> impl Strategy<Value = String> {
        "[ab]{1,2}"
    }

    fn rule() -> impl Strategy<Value = (String, u8)> {
        let glob = prop_oneof![4 => label(), 1 => Just("*".to_owned()), 1 => Just("a*".to_owned())];
        let names = (prop::collection::vec(glob, 0..3), prop::collection::vec(label(), 1..4), any::<bool>());
        (names, 0..3_u8).prop_map(|((front, behind, exact), layer)| {
            let name = [front, behind].concat().join(".");
            (if exact { format!("={name}") } else { name }, layer)
        })
    }

    /// As documented, and slowly: all rules that fit, the best of them.
    fn naive(rules: &[HostRule<'_>], name: &str) -> Option<u32> {
        let labels: Vec<&str> = name.split('.').collect();
        let mut best: Option<((u8, usize, bool, bool), u32)> = None;
        for rule in rules {
            let exact = rule.text.starts_with('=');
            let pattern: Vec<&str> = rule.text.trim_start_matches('=').split('.').collect();
            if pattern.len() > labels.len() || (exact && pattern.len() != labels.len()) {
                continue;
            }
            let end = &labels[labels.len() - pattern.len()..];
            let fits = pattern.iter().zip(end).all(|(pattern, label)| match pattern.split_once('*') {
                None => pattern == label,
                Some((front, "")) => label.starts_with(front),
                Some(_) => false,
            });
            let rank = (rule.layer, pattern.len(), !rule.text.contains('*'), exact);
            if fits && best.is_none_or(|(known, _)| rank > known) {
                best = Some((rank, rule.rule));
            }
        }
        best.map(|(_, rule)| rule)
    }

    proptest! {
        #[test]
        fn the_table_finds_what_a_search_finds(
            texts in prop::collection::vec(rule(), 0..24),
            names in prop::collection::vec(prop::collection::vec(label(), 1..6), 1..24),
        ) {
            let rules: Vec<HostRule<'_>> = (0..)
                .zip(&texts)
                .map(|(rule, (text, layer))| HostRule { text, rule, layer: *layer })
                .collect();
            let table = HostTable::new(&rules);
            let rank_of = |rule: Option<u32>| rule.map(|rule| {
                let rule = rules[rule as usize];
                let name = rule.text.trim_start_matches('=');
                (rule.layer, name.split('.').count(), !name.contains('*'), rule.text.starts_with('='))
            });
            for name in names {
                let name = name.join(".");
                // Of two patterns that fit equally well, either will do.
                prop_assert_eq!(rank_of(table.find(name.as_bytes())), rank_of(naive(&rules, &name)), "{}", name);
                let upper = name.to_uppercase();
                prop_assert_eq!(table.find(upper.as_bytes()), table.find(name.as_bytes()));
            }
        }

        #[test]
        fn no_octets_are_too_strange(name in prop::collection::vec(prop_oneof![Just(b'.'), any::<u8>()], 0..300)) {
            let rules = [HostRule { text: "a.b", rule: 0, layer: 0 }, HostRule { text: "*.*a*a*a*a.b", rule: 1, layer: 0 }];
            let _ = HostTable::new(&rules).find(bare(&name));
        }
    }

    #[test]
    fn only_ports_and_the_root_are_taken_off() {
        for (host, expected) in [
            ("example.com", "example.com"),
            ("example.com:443", "example.com"),
            ("example.com.:65535", "example.com"),
            ("example.com:", "example.com"),
            ("example.com:https", "example.com:https"),
            ("example.com:123456", "example.com:123456"),
            (":1", ""),
            ("", ""),
            (".", ""),
        ] {
            assert_eq!(bare(host.as_bytes()), expected.as_bytes(), "{host}");
        }
    }

    #[test]
    fn a_star_is_for_any_octets() {
        for (pattern, label, fits) in [
            ("*", "", true),
            ("*", "abc", true),
            ("a*", "abc", true),
            ("a*", "bac", false),
            ("*c", "ABC", true),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "aXXcYYb", false),
            ("a**b", "ab", true),
            ("ab", "abc", false),
            ("abc", "ab", false),
        ] {
            assert_eq!(wild(pattern.as_bytes(), label.as_bytes()), fits, "{pattern} {label}");
        }
    }
}
