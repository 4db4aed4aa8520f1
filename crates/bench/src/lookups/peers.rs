//! DPDK's tables, where this program was built with DPDK; without it a report says that they are absent.

use super::{Engine, LookupError};
use crate::report::Report;

#[cfg(not(feature = "dpdk"))]
pub(super) use absent::*;
#[cfg(feature = "dpdk")]
pub(super) use linked::*;

/// What a report says of it.
fn note(report: &mut Report, what: &str) {
    report.notes.push(what.to_owned());
}

#[cfg(feature = "dpdk")]
mod linked {
    use super::*;
    use crate::report::Param;
    use dpdk::peer::{Fib4, Fib6, Hash, Lpm4, Lpm6, PeerError, Way};
    pub(in super::super) use dpdk::peer::{HashKey, Peers};
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::sync::{Mutex, PoisonError};

    /// Memory of all tables of a run, all of which DPDK clears at once.
    const HEAP: usize = 1792 << 20;

    fn refused(error: &PeerError) -> LookupError {
        LookupError::Peer(error.to_string())
    }

    /// EAL starts once in a process.
    static PEERS: Mutex<Option<Peers>> = Mutex::new(None);

    pub(in super::super) fn start(report: &mut Report) -> Result<Option<Peers>, LookupError> {
        let mut peers = PEERS.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.is_none() {
            *peers = Some(Peers::new(HEAP).map_err(|error| refused(&error))?);
        }
        if let Some(peers) = &*peers {
            note(report, &format!("peers: {}", peers.version()));
        }
        Ok(peers.clone())
    }

    /// `rte_hash`, and which position is whose number.
    pub(in super::super) struct HashPeer<K> {
        hash: Hash<K>,
        numbers: Vec<u32>,
        next: u32,
    }

    /// A table of which so many entries are 90 % of the slots.
    pub(in super::super) fn hash<K: HashKey>(
        peers: Option<&Peers>,
        entries: u64,
    ) -> Result<Option<HashPeer<K>>, LookupError> {
        let Some(peers) = peers else { return Ok(None) };
        let slots = (entries * 10).div_ceil(9) as u32;
        let hash = Hash::new(peers, slots).map_err(|error| refused(&error))?;
        Ok(Some(HashPeer { hash, numbers: Vec::new(), next: 0 }))
    }

    impl<K: HashKey> HashPeer<K> {
        /// Adds keys, numbered in order.
        pub(in super::super) fn add(&mut self, keys: &[K]) -> Result<(), LookupError> {
            for key in keys {
                let position = self.hash.add(key).map_err(|error| refused(&error))? as usize;
                if self.numbers.len() <= position {
                    self.numbers.resize(position + 1, 0);
                }
                if let Some(number) = self.numbers.get_mut(position) {
                    *number = self.next;
                }
                self.next += 1;
            }
            Ok(())
        }

        pub(in super::super) fn engine(&self) -> impl Engine<K> + '_ {
            HashEngine { peer: self, out: Vec::new() }
        }
    }

    struct HashEngine<'p, K> {
        peer: &'p HashPeer<K>,
        out: Vec<i32>,
    }

    impl<K: HashKey> Engine<K> for HashEngine<'_, K> {
        fn find(&mut self, keys: &[K], _: usize) {
            self.out.resize(keys.len(), 0);
            self.peer.hash.find(keys, &mut self.out);
        }

        fn answers(&self) -> Vec<Option<u32>> {
            let number = |position: &i32| self.peer.numbers.get(usize::try_from(*position).ok()?).copied();
            self.out.iter().map(number).collect()
        }
    }

    /// An IPv6 address.
    type Octets = [u8; 16];

    /// Next hops of peers are one more than ours: zero says that there is no route.
    struct RouteEngine<K, F, P, T> {
        find: F,
        of: fn(K) -> P,
        /// Addresses as DPDK has them.
        form: Vec<P>,
        out: Vec<T>,
        answer: fn(&T) -> Option<u32>,
    }

    impl<K: Copy, P, T: Clone + Default, F: FnMut(&[P], &mut [T])> Engine<K> for RouteEngine<K, F, P, T> {
        fn load(&mut self, keys: &[K]) {
            self.form.clear();
            self.form.extend(keys.iter().map(|key| (self.of)(*key)));
        }

        fn find(&mut self, keys: &[K], at: usize) {
            self.out.resize(keys.len(), T::default());
            (self.find)(self.form.get(at..at + keys.len()).unwrap_or(&[]), &mut self.out);
        }

        fn answers(&self) -> Vec<Option<u32>> {
            self.out.iter().map(self.answer).collect()
        }
    }

    /// An engine with its parameters, and how long its routes took, in seconds; `None` where they weren't added one by one.
    pub(in super::super) struct Routed<K> {
        pub engine: Box<dyn Engine<K>>,
        pub params: Vec<(&'static str, Param)>,
        pub filling: Option<f64>,
    }

    fn named(engine: &'static str, rest: &[(&'static str, Param)]) -> Vec<(&'static str, Param)> {
        [&[("engine", Param::from(engine))], rest].concat()
    }

    /// All that route IPv4. Routes are sorted by length.
    pub(in super::super) fn routers4(
        peers: Option<&Peers>,
        routes: &[(Ipv4Addr, u8, u16)],
        report: &mut Report,
    ) -> Result<Vec<Routed<Ipv4Addr>>, LookupError> {
        let Some(peers) = peers else { return Ok(Vec::new()) };
        let long = routes.iter().filter(|route| route.1 > 24).count() as u32;
        let raised: Vec<_> = routes.iter().map(|(prefix, len, value)| (*prefix, *len, value + 1)).collect();
        let mut all = Vec::new();
        let lpm = Lpm4::new(peers, &raised, long + 1).map_err(|error| refused(&error))?;
        all.push(Routed {
            engine: Box::new(RouteEngine {
                find: move |keys: &[u32], out: &mut [u32]| lpm.find(keys, out),
                of: Ipv4Addr::to_bits,
                form: Vec::new(),
                out: Vec::new(),
                answer: |found: &u32| ((found >> 24) & 1 == 1).then(|| (found & 0xff_ffff) - 1),
            }),
            params: named("rte_lpm", &[]),
            filling: None,
        });
        for (octets, way) in [(2, Way::Scalar), (2, Way::Vector), (4, Way::Scalar), (4, Way::Vector)] {
            let groups = (long + 1).min(if octets == 2 { (1 << 15) - 1 } else { u32::MAX });
            let mut fib = match Fib4::new(peers, routes.len() as u32 + 1, groups, octets, way) {
                Ok(fib) => fib,
                Err(error) => {
                    note(report, &format!("rte_fib with {octets} octets, {way:?}: left out ({error})"));
                    continue;
                }
            };
            let began = crate::dpi::spent();
            for (prefix, len, value) in &raised {
                fib.add(*prefix, *len, *value).map_err(|error| refused(&error))?;
            }
            all.push(Routed {
                engine: Box::new(RouteEngine {
                    find: move |keys: &[u32], out: &mut [u64]| fib.find(keys, out),
                    of: Ipv4Addr::to_bits,
                    form: Vec::new(),
                    out: Vec::new(),
                    answer: |found: &u64| found.checked_sub(1).map(|value| value as u32),
                }),
                params: named(
                    "rte_fib",
                    &[
                        ("octets", u64::from(octets).into()),
                        ("processor", if way == Way::Vector { "avx512" } else { "any" }.into()),
                    ],
                ),
                filling: Some(crate::dpi::spent() - began),
            });
        }
        Ok(all)
    }

    /// All that route IPv6.
    pub(in super::super) fn routers6(
        peers: Option<&Peers>,
        routes: &[(Ipv6Addr, u8, u16)],
        report: &mut Report,
    ) -> Result<Vec<Routed<Ipv6Addr>>, LookupError> {
        let Some(peers) = peers else { return Ok(Vec::new()) };
        let (count, groups) = (routes.len() as u32 + 1, 1 << 19);
        let mut all = Vec::new();
        let mut lpm = Lpm6::new(peers, count, groups / 2).map_err(|error| refused(&error))?;
        let began = crate::dpi::spent();
        for (prefix, len, value) in routes {
            lpm.add(*prefix, *len, value + 1).map_err(|error| refused(&error))?;
        }
        all.push(Routed {
            engine: Box::new(RouteEngine {
                find: move |keys: &[Octets], out: &mut [i32]| lpm.find(keys, out),
                of: |address: Ipv6Addr| address.octets(),
                form: Vec::new(),
                out: Vec::new(),
                answer: |found: &i32| u32::try_from(*found).ok()?.checked_sub(1),
            }),
            params: named("rte_lpm6", &[]),
            filling: Some(crate::dpi::spent() - began),
        });
        for way in [Way::Scalar, Way::Vector] {
            let mut fib = match Fib6::new(peers, count, groups, way) {
                Ok(fib) => fib,
                Err(error) => {
                    note(report, &format!("rte_fib6, {way:?}: left out ({error})"));
                    continue;
                }
            };
            let began = crate::dpi::spent();
            for (prefix, len, value) in routes {
                fib.add(*prefix, *len, value + 1).map_err(|error| refused(&error))?;
            }
            all.push(Routed {
                engine: Box::new(RouteEngine {
                    find: move |keys: &[Octets], out: &mut [u64]| fib.find(keys, out),
                    of: |address: Ipv6Addr| address.octets(),
                    form: Vec::new(),
                    out: Vec::new(),
                    answer: |found: &u64| found.checked_sub(1).map(|value| value as u32),
                }),
                params: named(
                    "rte_fib6",
                    &[("processor", if way == Way::Vector { "avx512" } else { "any" }.into())],
                ),
                filling: Some(crate::dpi::spent() - began),
            });
        }
        Ok(all)
    }
}

#[cfg(not(feature = "dpdk"))]
#[allow(clippy::unnecessary_wraps)] // signatures are those of the other half
mod absent {
    use super::*;
    use crate::report::Param;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// Nothing.
    pub(in super::super) enum Peers {}

    /// Any key.
    pub(in super::super) trait HashKey: Copy {}
    impl<K: Copy> HashKey for K {}

    pub(in super::super) fn start(report: &mut Report) -> Result<Option<Peers>, LookupError> {
        note(report, "peers: absent, this program was built without DPDK");
        Ok(None)
    }

    /// Nothing.
    pub(in super::super) struct HashPeer<K>(Peers, std::marker::PhantomData<K>);

    pub(in super::super) fn hash<K>(_: Option<&Peers>, _: u64) -> Result<Option<HashPeer<K>>, LookupError> {
        Ok(None)
    }

    impl<K> HashPeer<K> {
        pub(in super::super) fn add(&mut self, _: &[K]) -> Result<(), LookupError> {
            match self.0 {}
        }

        pub(in super::super) fn engine(&self) -> impl Engine<K> + '_ {
            Nobody(&self.0)
        }
    }

    struct Nobody<'p>(&'p Peers);

    impl<K> Engine<K> for Nobody<'_> {
        fn find(&mut self, _: &[K], _: usize) {
            match *self.0 {}
        }

        fn answers(&self) -> Vec<Option<u32>> {
            match *self.0 {}
        }
    }

    pub(in super::super) struct Routed<K> {
        pub engine: Box<dyn Engine<K>>,
        pub params: Vec<(&'static str, Param)>,
        pub filling: Option<f64>,
    }

    pub(in super::super) fn routers4(
        _: Option<&Peers>,
        _: &[(Ipv4Addr, u8, u16)],
        _: &mut Report,
    ) -> Result<Vec<Routed<Ipv4Addr>>, LookupError> {
        Ok(Vec::new())
    }

    pub(in super::super) fn routers6(
        _: Option<&Peers>,
        _: &[(Ipv6Addr, u8, u16)],
        _: &mut Report,
    ) -> Result<Vec<Routed<Ipv6Addr>>, LookupError> {
        Ok(Vec::new())
    }
}
