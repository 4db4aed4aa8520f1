//! Scripts of session requests through `session::store`.
//!
//! A refused request leaves everything as it was; tunnels and addresses have one owner; what every worker is told about
//! them adds up to what there is; another process may take over at any time, and goes on as if it had been there all along; when all
//! sessions are gone, nothing is held. Records that are damaged on the way are refused or make sense.
#![no_main]

use fuzz::{Input, requests};
use ipnet::IpNet;
use libfuzzer_sys::fuzz_target;
use packet::Teid;
use pfcp::{Seid, UrrId};
use session::addresses::AddressError;
use session::config::Config;
use session::portable::{Header, Restore};
use session::refusal::Refusal;
use session::rules::{Action, Forward, Rules};
use session::store::{Counts, Deleted, DirectoryChange, PeerId, Store, Sweep};
use session::{SessionRef, TeidRef};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

fuzz_target!(|data: &[u8]| {
    let mut world = World::new();
    let mut input = Input::new(data);
    while !input.is_empty() {
        world.step(&mut input);
    }
    world.end();
});

struct World {
    store: Store,
    peers: [PeerId; 2],
    /// Those that are there, as the requests' outcomes say.
    sessions: Vec<Seid>,
    /// Removals of associations' sessions that are not done.
    sweeps: Vec<Sweep>,
    directory: Directory,
}

/// What a worker knows that has been told every change.
#[derive(Default)]
struct Directory {
    tunnels: HashMap<Teid, TeidRef>,
    addresses: HashMap<IpNet, SessionRef>,
}

impl Directory {
    fn told(&mut self, changes: Vec<DirectoryChange>) {
        for change in changes {
            match change {
                DirectoryChange::Tunnel { teid, place: Some(place) } => {
                    assert_eq!(self.tunnels.insert(teid, place), None, "{teid:?} has an owner");
                }
                DirectoryChange::Tunnel { teid, place: None } => {
                    assert!(self.tunnels.remove(&teid).is_some(), "{teid:?} was not there");
                }
                DirectoryChange::Address { prefix, session: Some(session) } => {
                    assert_eq!(self.addresses.insert(prefix, session), None, "{prefix} has an owner");
                }
                DirectoryChange::Address { prefix, session: None } => {
                    assert!(self.addresses.remove(&prefix).is_some(), "{prefix} was not there");
                }
            }
        }
    }
}

impl World {
    fn new() -> Self {
        let mut store = Store::new(requests::config()).expect("the configuration is right");
        let peers = [store.attach(), store.attach()];
        Self { store, peers, sessions: Vec::new(), sweeps: Vec::new(), directory: Directory::default() }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(8) {
            0..=2 => self.establish(input),
            3..=5 => self.modify(input),
            6 => self.delete(input),
            _ => match input.below(4) {
                0 => self.sweep(input),
                1 if self.sweeps.is_empty() => self.restart(input),
                _ => self.report(input),
            },
        }
    }

    fn some_session(&self, input: &mut Input<'_>) -> Seid {
        let at = usize::from(input.u8());
        match self.sessions.len() {
            0 => Seid(input.u64()),
            // Now and then one of another generation, or none at all.
            _ if at == 0xff => Seid(input.u64()),
            _ if at == 0xfe => Seid(self.sessions[0].0 ^ 1 << 33),
            count => self.sessions[at % count],
        }
    }

    fn establish(&mut self, input: &mut Input<'_>) {
        let peer = input.pick(&self.peers);
        let request = requests::establishment(input);
        let before = (self.store.counts(), self.store.pools().collect::<Vec<_>>());
        match self.store.establish(&request, peer) {
            Ok(established) => {
                let seid = established.rules.seid;
                assert!(!self.sessions.contains(&seid), "{seid:?} was given out twice");
                self.sessions.push(seid);
                let session = self.store.get(seid).expect("it was just established");
                assert_eq!(session.rules(), &established.rules);
                assert!(
                    established.created_pdrs.iter().all(|c| request.create_pdrs.iter().any(|p| p.id == c.id))
                );
                self.directory.told(established.directory);
            }
            Err(refusal) => {
                let _ = refusal.to_string();
                assert_eq!(before, (self.store.counts(), self.store.pools().collect()), "{refusal:?}");
                self.make_way(&refusal);
            }
        }
        self.check();
    }

    /// What an establishment is refused for is not a session whose association is gone, once those have made way.
    fn make_way(&mut self, refusal: &Refusal) {
        let Some(mut sweep) = self.sweeps.pop() else { return };
        let gone = self.store.make_way(refusal, &mut sweep, 4);
        if !sweep.is_done() {
            self.sweeps.push(sweep);
        }
        self.gone(gone);
        let taken = match refusal {
            Refusal::Address(_, AddressError::Taken(net)) => *net,
            _ => return,
        };
        let holds = |rules: &Rules| {
            let four = rules.ue_ipv4.map(|address| IpNet::from(std::net::IpAddr::V4(address)));
            let six = rules.ue_ipv6.map(IpNet::V6);
            four.into_iter().chain(six).any(|net| net == taken)
        };
        for session in self.store.iter().filter(|session| holds(session.rules())) {
            assert!(self.peers.contains(&session.peer()), "{taken} is still a stale session's");
        }
    }

    fn gone(&mut self, gone: Vec<Deleted>) {
        for deleted in gone {
            assert!(!self.peers.contains(&deleted.peer));
            self.sessions.retain(|seid| *seid != deleted.rules.seid);
            self.directory.told(deleted.directory);
        }
    }

    fn modify(&mut self, input: &mut Input<'_>) {
        let seid = self.some_session(input);
        let request = requests::modification(input);
        let before = (self.store.counts(), self.store.pools().collect::<Vec<_>>());
        let session =
            |store: &Store| store.get(seid).map(|s| (s.octets().to_vec(), s.rules().clone(), s.cp_fseid()));
        let old = session(&self.store);
        match self.store.modify(seid, &request) {
            Ok(modified) => {
                assert!(old.is_some());
                let session = self.store.get(seid).expect("it was just modified");
                assert_eq!(session.rules(), &modified.rules);
                self.directory.told(modified.directory);
            }
            Err(refusal) => {
                let _ = refusal.to_string();
                assert_eq!(old, session(&self.store), "{refusal:?}");
                assert_eq!(before, (self.store.counts(), self.store.pools().collect()), "{refusal:?}");
            }
        }
        self.check();
    }

    fn delete(&mut self, input: &mut Input<'_>) {
        let seid = self.some_session(input);
        let known = self.sessions.contains(&seid);
        match self.store.delete(seid) {
            Ok(deleted) => {
                assert!(known);
                self.sessions.retain(|one| *one != seid);
                self.directory.told(deleted.directory);
            }
            Err(_) => assert!(!known),
        }
        self.check();
    }

    /// An SMF is gone, and another takes its place.
    fn sweep(&mut self, input: &mut Input<'_>) {
        let at = input.below(self.peers.len());
        let old = self.peers[at];
        let mut sweep = self.store.detach(old);
        self.peers[at] = self.store.attach();
        let most = input.below(4);
        // Some of it now; now and then the rest is left for later.
        let rounds = if input.flag() { usize::MAX } else { input.below(64) };
        for _ in 0..rounds {
            if sweep.is_done() {
                break;
            }
            let gone = self.store.sweep(&mut sweep, most);
            assert!(gone.iter().all(|deleted| deleted.peer == old));
            self.gone(gone);
        }
        if sweep.is_done() {
            assert_eq!(self.store.sessions_of(old), 0);
            assert!(self.store.iter().all(|session| session.peer() != old));
        } else {
            self.sweeps.push(sweep);
        }
        self.check();
    }

    /// Another process takes over.
    fn restart(&mut self, input: &mut Input<'_>) {
        let header = Header::read(&self.store.header()).expect("it was just written");
        let records = records(&self.store);
        // On the way an octet changes: whatever is taken in then is sound, can be modified, and can leave again.
        let mut damaged = next(&header);
        let mut restore = Restore::new(&mut damaged, &header);
        for record in &records {
            let mut record = record.clone();
            let at = usize::from(input.u16()) % record.len();
            record[at] ^= input.u8();
            if let Err(unportable) = restore.session(&record) {
                let _ = unportable.to_string();
            }
        }
        restore.finish();
        damaged.iter().for_each(|session| in_range(session.rules()));
        let seids: Vec<Seid> = damaged.iter().map(|session| session.rules().seid).collect();
        for seid in &seids {
            if let Err(refusal) = damaged.modify(*seid, &requests::modification(input)) {
                let _ = refusal.to_string();
            }
        }
        let mut after = taken_over(&damaged);
        assert_eq!((damaged.counts(), seen(&damaged)), (after.counts(), seen(&after)));
        seids.into_iter().for_each(|seid| drop(after.delete(seid).expect("it is there")));
        assert_eq!(after.counts(), Counts::default());

        let mut store = next(&header);
        let mut restore = Restore::new(&mut store, &header);
        self.peers = self.peers.map(|peer| restore.peer(peer.number()));
        for record in &records {
            restore.session(record).expect("it was just written");
        }
        restore.finish();
        assert_eq!((self.store.counts(), seen(&self.store)), (store.counts(), seen(&store)));
        assert_eq!(self.store.pools().collect::<Vec<_>>(), store.pools().collect::<Vec<_>>());
        self.directory = Directory::default();
        self.directory.told(store.directory().collect());
        self.store = store;
        self.check();
    }

    fn report(&mut self, input: &mut Input<'_>) {
        let seid = self.some_session(input);
        let urr = UrrId(1 + u32::from(input.u8() % 4));
        if input.flag() {
            let first = self.store.next_sequence(seid, urr);
            assert_eq!(first.is_some(), self.sessions.contains(&seid));
        } else if let Some(rules) = self.store.set_blocked(seid, urr, input.flag()) {
            assert_eq!(self.store.get(seid).map(|s| s.rules()), Some(&rules));
        }
        self.check();
    }

    /// What holds between any two requests.
    fn check(&self) {
        let counts = self.store.counts();
        assert_eq!(counts.sessions, self.sessions.len());
        let stale = self.store.iter().filter(|session| !self.peers.contains(&session.peer())).count();
        assert!(stale == 0 || !self.sweeps.is_empty(), "{stale} sessions that nobody will sweep");
        assert_eq!(
            counts.sessions,
            stale + self.peers.iter().map(|peer| self.store.sessions_of(*peer)).sum::<usize>()
        );
        let (mut tunnels, mut owners) = (HashMap::new(), Owners::default());
        for session in self.store.iter() {
            let rules = session.rules();
            assert!(self.sessions.contains(&rules.seid));
            in_range(rules);
            for tunnel in rules.pdrs.iter().filter_map(|pdr| pdr.tunnel) {
                let owner = *tunnels.entry(tunnel).or_insert(rules.seid);
                assert_eq!(owner, rules.seid, "{tunnel:?} has two owners");
                assert_eq!(tunnel.place.shard, rules.place.shard);
            }
            owners.add(rules);
        }
        let teids: BTreeSet<u32> = tunnels.keys().map(|tunnel| tunnel.teid.0).collect();
        assert_eq!(teids.len(), tunnels.len(), "a TEID leads to two places");
        assert_eq!(counts.tunnels, tunnels.len());
        let chosen =
            tunnels.keys().filter(|tunnel| self.directory.tunnels.get(&tunnel.teid) == Some(&tunnel.place));
        assert_eq!(counts.chosen_tunnels, chosen.count());
        assert_eq!(counts.chosen_tunnels, self.directory.tunnels.len());
        for (prefix, place) in &self.directory.addresses {
            assert!(owners.nets.contains(&(*prefix, *place)), "the directory leads {prefix} astray");
        }
    }

    fn end(mut self) {
        for seid in std::mem::take(&mut self.sessions) {
            let deleted = self.store.delete(seid).expect("it is there");
            self.directory.told(deleted.directory);
        }
        assert_eq!(self.store.counts(), Counts::default());
        assert!(self.store.pools().all(|usage| usage.ipv4.0 == 0 && usage.ipv6.0 == 0));
        assert!(self.directory.tunnels.is_empty() && self.directory.addresses.is_empty());
    }
}

/// The store of a process that takes over from one with this header.
fn next(header: &Header) -> Store {
    let config = Config { epoch: header.epoch().next(), teids: header.teids(), ..requests::config() };
    Store::new(config).expect("the configuration is right")
}

fn records(store: &Store) -> Vec<Vec<u8>> {
    store.iter().map(|session| store.record(session)).collect()
}

/// What can be seen of a store's sessions.
fn seen(store: &Store) -> Vec<(Vec<u8>, Arc<Rules>)> {
    store.iter().map(|session| (session.octets().to_vec(), session.rules().clone())).collect()
}

/// Another process's store with the same sessions.
fn taken_over(store: &Store) -> Store {
    let header = Header::read(&store.header()).expect("it was just written");
    let mut after = next(&header);
    let mut restore = Restore::new(&mut after, &header);
    for record in records(store) {
        restore.session(&record).expect("it was just written");
    }
    restore.finish();
    after
}

/// Whose each address and network is.
#[derive(Default)]
struct Owners {
    nets: BTreeSet<(IpNet, SessionRef)>,
}

impl Owners {
    fn add(&mut self, rules: &Rules) {
        let own = rules
            .ue_ipv4
            .map(|a| IpNet::from(std::net::IpAddr::V4(a)))
            .into_iter()
            .chain(rules.ue_ipv6.map(IpNet::V6));
        let behind = rules.framed_ipv4.iter().copied().map(IpNet::V4);
        let nets: BTreeSet<IpNet> =
            own.chain(behind).chain(rules.framed_ipv6.iter().copied().map(IpNet::V6)).collect();
        for net in nets {
            // Networks behind different UEs, and UEs' own addresses, don't overlap.
            let other = self.nets.iter().find(|(taken, place)| {
                *place != rules.place && (taken.contains(&net) || net.contains(taken))
            });
            assert_eq!(other, None, "{net} of {:?}", rules.place);
            self.nets.insert((net, rules.place));
        }
    }
}

/// Every reference between rules leads somewhere, and PDRs are in their order.
fn in_range(rules: &Rules) {
    for pdr in &rules.pdrs {
        assert!(usize::from(pdr.far) < rules.fars.len());
        assert!(pdr.qers.iter().all(|qer| usize::from(*qer) < rules.qers.len()));
        assert!(pdr.urrs.iter().all(|urr| usize::from(*urr) < rules.urrs.len()));
    }
    assert!(rules.pdrs.is_sorted_by_key(|pdr| (pdr.precedence, pdr.id.0)));
    for far in &rules.fars {
        if let Action::Forward(Forward { outer_header: Some(outer), .. }) = far.action {
            let peer = outer.peer;
            let nowhere = peer.is_unspecified() || peer.is_multicast() || peer.is_loopback();
            assert!(outer.teid.0 != 0 && !nowhere, "{far:?} leads nowhere");
        }
    }
}
