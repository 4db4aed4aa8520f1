#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

/// Every route, searched.
fn naive<A: Address>(routes: &BTreeMap<(A, u8), u16>, address: A) -> Option<u16> {
    let containing = routes.iter().filter(|((prefix, len), _)| address.masked(*len) == *prefix);
    containing.max_by_key(|((_, len), _)| *len).map(|(_, value)| *value)
}

/// Runs insertions and removals, then compares lookups of all addresses near the routes, and empties the table.
fn run<A: Address, const ROOT: u8>(
    ops: Vec<(A, u8, Option<u16>)>,
    mut addresses: Vec<A>,
    near: impl Fn(A, u8) -> Vec<A>,
) {
    let mut table = Lpm::<A, ROOT>::new(100_000);
    let mut model = BTreeMap::new();
    for (prefix, len, value) in ops {
        let key = (prefix.masked(len), len);
        match value {
            Some(value) => assert_eq!(table.insert(prefix, len, value), Ok(model.insert(key, value))),
            None => assert_eq!(table.remove(prefix, len), model.remove(&key)),
        }
        assert_eq!(table.get(prefix, len), model.get(&key).copied());
        addresses.extend(near(key.0, len));
    }
    assert_eq!(table.len(), model.len());
    let mut out = vec![None; addresses.len()];
    table.lookup_bulk(&addresses, &mut out);
    for (address, bulk) in addresses.iter().zip(out) {
        assert_eq!(table.lookup(address), naive(&model, *address), "{address:?} in {table:?}");
        assert_eq!(bulk, table.lookup(address));
    }
    assert_eq!(table.iter().map(|(p, l, v)| ((p, l), v)).collect::<BTreeMap<_, _>>(), model);
    for ((prefix, len), value) in model {
        assert_eq!(table.remove(prefix, len), Some(value));
    }
    assert_eq!(table.nodes(), 0, "an empty table keeps no nodes");
    // Of 64 MiB only where something was.
    let all = ROOT == 16 && table.root.iter().any(|entry| *entry != 0);
    assert!(!all && table.default.is_none());
    assert!(addresses.iter().all(|address| table.lookup(address).is_none()));
}

proptest! {
    // A short route covers millions of entries.
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn dir_24_8_equals_a_linear_search(
        ops in prop::collection::vec(
            (
                address4(),
                prop_oneof![Just(0_u8), 9_u8..=16, 17_u8..=32, 23_u8..=26],
                prop::option::weighted(0.7, any::<u16>()),
            ),
            0..120,
        ),
        addresses in prop::collection::vec(prop_oneof![address4(), any::<Ipv4Addr>()], 0..40),
    ) {
        run::<_, 24>(ops, addresses, near4);
    }
}

/// The first and last address of a route and those just outside.
fn near4(prefix: Ipv4Addr, len: u8) -> Vec<Ipv4Addr> {
    let first = prefix.to_bits();
    let last = first | u32::MAX.checked_shr(len.into()).unwrap_or(0);
    [first, last, first.wrapping_sub(1), last.wrapping_add(1)].map(Ipv4Addr::from_bits).to_vec()
}

fn near6(prefix: Ipv6Addr, len: u8) -> Vec<Ipv6Addr> {
    let first = prefix.to_bits();
    let last = first | u128::MAX.checked_shr(len.into()).unwrap_or(0);
    [first, last, first.wrapping_sub(1), last.wrapping_add(1)].map(Ipv6Addr::from_bits).to_vec()
}

/// Addresses that share beginnings often.
fn address4() -> impl Strategy<Value = Ipv4Addr> {
    (0_u32..3, 0_u32..3, any::<u32>())
        .prop_map(|(a, b, low)| Ipv4Addr::from_bits((a << 24 | b << 16) ^ (low & 0x8001_83ff)))
}

fn address6() -> impl Strategy<Value = Ipv6Addr> {
    (0_u128..3, prop::sample::select(vec![0_u32, 8, 30, 60, 64, 77, 110, 120]), any::<u8>()).prop_map(
        |(high, shift, low)| Ipv6Addr::from_bits(0x2001_0db8 << 96 | high << 80 | (low as u128) << shift),
    )
}

proptest! {
    #[test]
    fn ipv4_equals_a_linear_search(
        ops in prop::collection::vec((address4(), 0_u8..=32, prop::option::weighted(0.7, any::<u16>())), 0..80),
        addresses in prop::collection::vec(prop_oneof![address4(), any::<Ipv4Addr>()], 0..40),
    ) {
        run::<_, 16>(ops, addresses, near4);
    }

    #[test]
    fn ipv6_equals_a_linear_search(
        ops in prop::collection::vec((address6(), 0_u8..=128, prop::option::weighted(0.7, any::<u16>())), 0..60),
        addresses in prop::collection::vec(prop_oneof![address6(), any::<Ipv6Addr>()], 0..40),
    ) {
        run::<_, 16>(ops, addresses, near6);
    }

    /// Likewise, where nodes are skipped: hosts beside each other, their links, and what is shorter.
    #[test]
    fn ipv6_survives_churn(
        ops in prop::collection::vec(
            (
                0_u128..3, 0_u128..3, 0_u128..4,
                prop::sample::select(vec![0_u8, 16, 17, 24, 40, 48, 56, 63, 64, 65, 72, 120, 127, 128]),
                prop::option::of(0_u16..9),
            ),
            0..200,
        ),
    ) {
        let ops = ops.into_iter().map(|(site, link, host, len, value)| {
            let address = 0x2001_0db8 << 96 | site << 87 | link << 64 | (host * 0x81);
            (Ipv6Addr::from_bits(address), len, value)
        });
        run::<_, 16>(ops.collect(), Vec::new(), near6);
    }

    /// Removals that hit: prefixes of few addresses, few lengths.
    #[test]
    fn ipv4_survives_churn(
        ops in prop::collection::vec(
            (0_u32..4, prop::sample::select(vec![0_u8, 1, 8, 15, 16, 17, 23, 24, 25, 31, 32]), prop::option::of(0_u16..9)),
            0..200,
        ),
    ) {
        let ops = ops.into_iter().map(|(a, len, value)| (Ipv4Addr::from_bits(0x0a01_0100 + a * 0x81), len, value));
        run::<_, 16>(ops.collect(), Vec::new(), near4);
    }
}

#[test]
fn limits_are_kept_and_refusals_change_nothing() {
    let mut table = Lpm6::new(2);
    let [link, host, other, beside]: [Ipv6Addr; 4] =
        ["2001:db8::", "2001:db8::1", "2001:db8:1:1::", "2001:db8::2"]
            .map(|address| address.parse().unwrap());
    assert_eq!(table.insert(link, 129, 1), Err(LpmError::PrefixLength));
    assert_eq!(table.nodes(), 0);
    assert_eq!(table.insert(link, 64, 1), Ok(None));
    assert_eq!(table.insert(host, 128, 2), Ok(None));
    assert_eq!(table.nodes(), 2, "one for the link, one for the host, however far from each other");
    assert_eq!(table.insert(beside, 128, 3), Ok(None), "in the host's node");
    assert_eq!(table.insert(other, 64, 4), Err(LpmError::Full));
    assert_eq!(table.insert(link, 64, u16::MAX), Ok(Some(1)), "what is there needs no room");
    let found = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::1:1", "2001:db8:1:1::"];
    let found = found.map(|address| table.lookup(&address.parse().unwrap()));
    assert_eq!(found, [Some(2), Some(3), Some(u16::MAX), Some(u16::MAX), None]);
    assert_eq!(table.remove(link, 60), None);
    assert_eq!(table.remove(link, 64), Some(u16::MAX));
    assert_eq!(table.nodes(), 1);
    assert_eq!(table.insert(other, 64, 4), Err(LpmError::Full), "its own, and one where their ways part");
    assert_eq!((table.remove(host, 128), table.nodes()), (Some(2), 1));
    assert_eq!((table.remove(beside, 128), table.nodes()), (Some(3), 0));
    assert_eq!(table.insert(other, 64, 4), Ok(None));
    assert_eq!(table.lookup(&other), Some(4));
}
