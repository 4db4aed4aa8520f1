//! From where tunnels' packets may come, where that is checked.

use super::{gtpu, inner, rib, tunnelled};
use crate::rig::*;
use datapath::command::{Command, Event, Token, Transition};
use datapath::{CheckSource, Config, Reason, SILENCE};
use packet::gtpu::MessageType;
use packet::{PacketBuilder, Teid};
use pfcp::FarId;
use session::rules::*;
use std::net::IpAddr;
use std::sync::Arc;
use tables::Nanos;

/// Another gNB, or another address of the same.
const OTHER: &str = "192.0.2.8";
const THIRD: &str = "192.0.2.9";
const STRANGER: &str = "8.8.4.4";
const SIXTH: &str = "2001:db8:3::7";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn gnb() -> String {
    GNB_IP.to_string()
}

fn config(check_source: CheckSource) -> Config {
    Config { check_source, ..Config::new(rib(true).fib()) }
}

fn worker(check_source: CheckSource) -> Worker {
    Worker::of(config(check_source), 2, |_| true)
}

fn to(peer: &str) -> Action {
    forward(Destination::Access, Some((77, ip(peer))))
}

impl Worker {
    /// The UE's downlink goes here now.
    fn path(&mut self, downlink: Action) {
        self.install(&Arc::new(session_at(place(UE), Some(UE), downlink)), Transition::default());
    }

    /// Whether the UE's packet passes that comes from here.
    fn hears(&mut self, from: &str) -> bool {
        self.hears_of(from, &inner(UE, HOST, 10))
    }

    fn hears_of(&mut self, from: &str, packet: &[u8]) -> bool {
        let own = if ip(from).is_ipv4() { N3_IP.into() } else { ip("2001:db8:3::1") };
        let frame = PacketBuilder::new().ethernet(N3, GNB).ip(ip(from), own).udp(3333, 2152);
        let before = self.dropped(Reason::ForeignFarEnd);
        self.process(0, &[frame.gtpu(teid(UE)).build(packet)]);
        let passed = self.sent(0).len() + self.sent(1).len();
        let refused = self.dropped(Reason::ForeignFarEnd) - before;
        assert!(passed as u64 + refused <= 1);
        passed == 1
    }

    /// What is said of whom the UE's tunnel heard.
    fn heard(&mut self) -> Vec<(Teid, IpAddr)> {
        self.apply(Command::Inspect { token: Token(1), session: place(UE) });
        let Some(Event::Snapshot { session: Some(session), .. }) = self.events().pop() else { panic!() };
        session.heard
    }

    fn later(&mut self, nanos: u64) {
        self.now = self.now.plus(nanos);
    }
}

#[test]
fn unless_it_is_asked_for_nobody_looks_from_where_tunnels_come() {
    let mut worker = worker(CheckSource::Off);
    worker.path(to(&gnb()));
    for from in [&gnb(), OTHER, STRANGER, SIXTH] {
        assert!(worker.hears(from), "{from}");
    }
}

#[test]
fn strictly_only_far_ends_that_the_session_names_are_heard() {
    let mut worker = worker(CheckSource::Strict);
    worker.path(to(&gnb()));
    for _ in 0..2 {
        for from in [OTHER, STRANGER, SIXTH] {
            assert!(!worker.hears(from), "{from}");
        }
        assert!(worker.hears(&gnb()));
    }
    // What was refused is the session's drop, too.
    worker.apply(Command::Inspect { token: Token(1), session: place(UE) });
    let Some(Event::Snapshot { session: Some(session), .. }) = worker.events().pop() else { panic!() };
    assert_eq!(session.drops, [(Reason::ForeignFarEnd, 6)]);
    // A path switch: from now on the new one, and nobody else.
    worker.path(to(OTHER));
    assert!(worker.hears(OTHER) && !worker.hears(&gnb()) && !worker.hears(STRANGER));
    worker.path(to(SIXTH));
    assert!(worker.hears(SIXTH) && !worker.hears(OTHER) && !worker.hears(&gnb()));
    // The same rules once more change nothing.
    worker.path(to(SIXTH));
    assert!(worker.hears(SIXTH) && !worker.hears(OTHER));
}

#[test]
fn a_session_that_names_no_far_end_is_open() {
    // The UE may send before the gNB is named, and again when it wakes up.
    for unnamed in [Action::Buffer { notify: true, packets: 3 }, Action::Drop, Action::ForwardUnresolved] {
        let mut worker = worker(CheckSource::Strict);
        worker.path(unnamed);
        assert!(worker.hears(&gnb()) && worker.hears(OTHER) && worker.hears(&gnb()));
        worker.path(to(OTHER));
        assert!(!worker.hears(&gnb()) && worker.hears(OTHER));
        worker.path(unnamed);
        assert!(worker.hears(THIRD));
    }
}

#[test]
fn two_gnbs_that_share_a_session_are_both_heard() {
    for mode in [CheckSource::Strict, CheckSource::Learn] {
        let mut worker = worker(mode);
        let mut both = session_at(place(UE), Some(UE), to(&gnb()));
        both.fars = both.fars.iter().cloned().chain([Far { id: FarId(3), action: to(OTHER) }]).collect();
        worker.install(&Arc::new(both), Transition::default());
        for _ in 0..3 {
            assert!(worker.hears(&gnb()) && worker.hears(OTHER) && !worker.hears(THIRD), "{mode:?}");
        }
    }
}

#[test]
fn whoever_was_heard_first_keeps_strangers_out_until_he_is_silent() {
    let mut worker = worker(CheckSource::Learn);
    worker.path(to(&gnb()));
    // The gNB sends from another address than it receives at.
    assert!(worker.hears(OTHER));
    for _ in 0..10 {
        worker.later(SILENCE / 3);
        assert!(worker.hears(OTHER) && !worker.hears(STRANGER));
        // What the session names is heard in any case, and takes nobody's place.
        assert!(worker.hears(&gnb()));
    }
    worker.later(SILENCE - Nanos::SECOND / 10);
    assert!(!worker.hears(STRANGER), "a stranger's attempts are no sign of life, but it is not time yet");
    worker.later(Nanos::SECOND / 5);
    assert!(worker.hears(THIRD), "the gNB has moved to another address");
    assert!(!worker.hears(OTHER) && !worker.hears(STRANGER) && worker.hears(&gnb()));
    worker.later(SILENCE / 2);
    assert!(!worker.hears(OTHER) && worker.hears(THIRD));
}

#[test]
fn after_a_path_switch_another_is_heard_and_late_packets_too() {
    let mut worker = worker(CheckSource::Learn);
    worker.path(to(&gnb()));
    assert!(worker.hears(&gnb()) && !worker.hears(THIRD));
    worker.path(to(OTHER));
    // Still from the old one; then the new one, whose packets come from a third address.
    assert!(worker.hears(&gnb()) && worker.hears(&gnb()) && worker.hears(THIRD));
    assert!(!worker.hears(&gnb()) && worker.hears(OTHER) && worker.hears(THIRD));
    // The UE sleeps, wakes up at the same gNB, and the gNB keeps its place.
    worker.path(Action::Buffer { notify: false, packets: 1 });
    worker.later(5 * Nanos::SECOND);
    assert!(worker.hears(THIRD) && !worker.hears(STRANGER));
    worker.path(to(OTHER));
    worker.later(2 * Nanos::SECOND);
    assert!(worker.hears(THIRD) && !worker.hears(STRANGER) && worker.hears(OTHER));
    // A change that has nothing to do with the path lets nobody in.
    let mut limited = session_at(place(UE), Some(UE), to(OTHER));
    limited.pdrs[0].precedence = 7;
    worker.install(&Arc::new(limited), Transition::default());
    assert!(!worker.hears(STRANGER) && worker.hears(THIRD));
}

#[test]
fn whoever_feeds_a_tunnel_can_be_asked_for() {
    let mut worker = worker(CheckSource::Learn);
    worker.path(to(&gnb()));
    assert_eq!(worker.heard(), []);
    for from in [OTHER, SIXTH] {
        assert!(worker.hears(from));
        assert!(!worker.hears(STRANGER));
        assert_eq!(worker.heard(), [(teid(UE), ip(from))]);
        // Heard as well, and takes nobody's place.
        assert!(worker.hears(&gnb()));
        assert_eq!(worker.heard(), [(teid(UE), ip(from))]);
        worker.later(SILENCE + Nanos::SECOND);
    }
    // After a path switch it is nobody until somebody speaks.
    worker.path(to(OTHER));
    assert_eq!(worker.heard(), []);
    assert!(worker.hears(THIRD));
    assert_eq!(worker.heard(), [(teid(UE), ip(THIRD))]);
    // Nor does the next session of the tunnel begin with anybody.
    worker.apply(Command::Remove { token: Token(1), session: place(UE) });
    worker.path(to(&gnb()));
    assert_eq!(worker.heard(), []);
    worker.apply(Command::Limits(Arc::new(config(CheckSource::Off))));
    assert!(worker.hears(OTHER));
    assert_eq!(worker.heard(), []);
}

#[test]
fn who_forges_the_ues_address_too_is_not_remembered() {
    let mut worker = worker(CheckSource::Learn);
    worker.path(to(&gnb()));
    let forged = inner(UE2, HOST, 10);
    assert!(!worker.hears_of(STRANGER, &forged));
    assert_eq!((worker.dropped(Reason::SpoofedSource), worker.dropped(Reason::ForeignFarEnd)), (1, 0));
    assert!(worker.hears(OTHER) && !worker.hears(STRANGER));
}

/// What every UE may say on its link says nothing of whose packet it is.
#[test]
fn a_packet_from_nobody_in_particular_takes_no_tunnel() {
    let mut worker = worker(CheckSource::Learn);
    worker.path(to(&gnb()));
    for from in ["fe80::1", "::"] {
        let forged = PacketBuilder::new().ip(ip(from), ip("2001:db8:99::8")).udp(1, 2).build(b"whose?");
        assert!(!worker.hears_of(STRANGER, &forged));
        assert_eq!(worker.dropped(Reason::ForeignFarEnd), 0, "nobody is there yet");
    }
    assert!(worker.hears(OTHER) && !worker.hears(STRANGER));
}

#[test]
fn the_next_session_of_a_tunnel_is_not_bound_by_the_last() {
    let mut worker = worker(CheckSource::Learn);
    worker.path(to(&gnb()));
    assert!(worker.hears(OTHER));
    worker.apply(Command::Remove { token: Token(1), session: place(UE) });
    worker.path(to(&gnb()));
    assert!(worker.hears(THIRD) && !worker.hears(OTHER));
    // Nor is another session in the same place.
    let mut next = session_at(place(UE), Some(UE), to(&gnb()));
    next.seid = place(UE).seid(2);
    worker.install(&Arc::new(next), Transition::default());
    assert!(worker.hears(OTHER) && !worker.hears(THIRD));
}

#[test]
fn what_was_learned_moves_with_the_shard() {
    let [mut first, mut second] =
        [worker(CheckSource::Learn), Worker::of(config(CheckSource::Learn), 2, |_| false)];
    first.path(to(&gnb()));
    assert!(first.hears(OTHER));
    let shard = first.datapath.release(place(UE).shard).unwrap();
    assert!(second.datapath.adopt(shard).is_none());
    assert!(!second.hears(THIRD) && second.hears(OTHER) && second.hears(&gnb()));
}

#[test]
fn the_check_begins_and_ends_while_packets_flow() {
    let mut worker = worker(CheckSource::Off);
    worker.path(to(&gnb()));
    let change = |worker: &mut Worker, mode| worker.apply(Command::Limits(Arc::new(config(mode))));
    assert!(worker.hears(STRANGER));
    change(&mut worker, CheckSource::Learn);
    assert!(worker.hears(OTHER) && !worker.hears(STRANGER));
    // Who was learned is not named.
    change(&mut worker, CheckSource::Strict);
    assert!(!worker.hears(OTHER) && worker.hears(&gnb()));
    change(&mut worker, CheckSource::Off);
    assert!(worker.hears(STRANGER));
    // And nothing is left of former times.
    change(&mut worker, CheckSource::Learn);
    assert!(worker.hears(THIRD) && !worker.hears(OTHER));
    // A shard that comes from a worker that has not heard of the change yet is like all others.
    let mut other = Worker::of(config(CheckSource::Strict), 2, |_| false);
    other.datapath.adopt(worker.datapath.release(place(UE).shard).unwrap());
    assert!(!other.hears(THIRD) && other.hears(&gnb()));
}

/// An intermediate UPF: both of its tunnels are fed by those whom it sends to on that side.
#[test]
fn between_two_upfs_each_tunnel_has_its_own_end() {
    let mut worker = worker(CheckSource::Strict);
    let (anchor, radio) = (STRANGER, gnb());
    let mut middle = session_at(place(UE), Some(UE), to(&radio));
    middle.fars[0].action = forward(Destination::Core, Some((99, ip(anchor))));
    let mut from_core = tunnel_at(place(UE));
    from_core.place.slot = 4;
    from_core.teid = from_core.place.teid(1);
    middle.pdrs[1].tunnel = Some(from_core);
    worker.install(&Arc::new(middle), Transition::default());
    let mut hears = |from: &str, teid: Teid, packet: &[u8]| {
        let frame = PacketBuilder::new().ethernet(N3, GNB).ip(ip(from), N3_IP.into()).udp(2152, 2152);
        worker.process(0, &[frame.gtpu(teid).build(packet)]);
        // One far end is behind the router on N6, the other on N3.
        worker.sent(0).len() + worker.sent(1).len() == 1
    };
    let (up, down) = (inner(UE, HOST, 10), inner(HOST, UE, 10));
    assert!(hears(&radio, teid(UE), &up) && !hears(anchor, teid(UE), &up));
    assert!(hears(anchor, from_core.teid, &down) && !hears(&radio, from_core.teid, &down));
    // An End Marker goes on to the gNB only if it comes from there, too.
    for (from, passes) in [(radio.as_str(), 0), (anchor, 1)] {
        let marker = PacketBuilder::new().ethernet(N3, GNB).ip(ip(from), N3_IP.into()).udp(2152, 2152);
        worker.process(0, &[marker.gtpu_message(MessageType::END_MARKER, from_core.teid).build(&[])]);
        let sent = worker.sent(0);
        assert_eq!(sent.len(), passes, "{from}");
        assert!(sent.iter().all(|frame| tunnelled(frame).2 == MessageType::END_MARKER));
    }
}

/// Indirect forwarding in a handover: the old gNB feeds a tunnel to the new one, and no rule says who it is.
#[test]
fn a_tunnel_that_leads_back_to_its_side_is_open() {
    let mut worker = worker(CheckSource::Strict);
    let mut back = session_at(place(UE), None, to(OTHER));
    back.pdrs[0].far = 1;
    worker.install(&Arc::new(back), Transition::default());
    let frame = gtpu(MessageType::G_PDU, teid(UE)).build(&inner(HOST, UE, 10));
    worker.process(0, &[frame]);
    assert_eq!(worker.datapath.counters().dropped_total(), 0, "it waits for its neighbour");
}
