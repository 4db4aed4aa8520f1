#![allow(clippy::unwrap_used)]
use super::rules::{End, Inside, KEY, What};
use super::*;
use crate::ffi::RawSteer;
use io::steering::{Control, Duty, Group};
use packet::gtpu::MessageType;
use packet::ipv4::Ipv4Header;
use packet::ipv6::Ipv6Header;
use packet::{Dscp, MacAddr, PacketBuilder, Teid};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const OWN6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);

fn steering() -> Steering {
    let groups = vec![Group::new("voice", [Dscp::EF, Dscp::VA]), Group::new("video", [Dscp::AF41])];
    // One address twice, as N4 and an interface may have it.
    Steering::new(Some(Control::new([OWN.into(), OWN6.into(), OWN.into()])), groups).unwrap()
}

fn rule(what: What, rank: u8, first: u16, queues: u16) -> Rule {
    Rule { what, tagged: false, rank, first, queues }
}

#[test]
fn rules_say_what_the_shim_is_to_match() {
    const NONE: RawSteer = RawSteer { first_queue: 6, queues: 1, ..RawSteer::ALL };
    let to4 = RawSteer {
        ip: 4,
        has_destination: 1,
        destination: [192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ..NONE
    };
    let to6 = RawSteer { ip: 6, destination: OWN6.octets(), ..to4 };
    let port = |to: IpAddr, protocol, end, port| What::Port { to, protocol, end, port };
    for (what, raw) in [
        (What::Arp, RawSteer { ether_type: 0x0806, ..NONE }),
        (What::Discovery(135), RawSteer { ip: 6, hops: 255, icmp6: 135, ..NONE }),
        (What::Message(OWN.into(), 26), RawSteer { message: 26, ..to4 }),
        (port(OWN6.into(), 17, End::Source, 8805), RawSteer { protocol: 17, source_port: 8805, ..to6 }),
        (port(OWN.into(), 6, End::Destination, 179), RawSteer { protocol: 6, destination_port: 179, ..to4 }),
        (What::Rest, NONE),
    ] {
        assert_eq!(rule(what, 0, 6, 1).raw(), raw);
        let tagged = Rule { tagged: true, ..rule(what, 0, 6, 1) };
        assert_eq!(tagged.raw(), RawSteer { tagged: 1, ..raw });
    }
    let marked = |v6, inside| What::Marked { v6, tos: 0xb8, mask: 0xfc, inside };
    let key = KEY.as_ptr();
    let spread = RawSteer { first_queue: 2, queues: 2, tos: 0xb8, tos_mask: 0xfc, ip: 4, ..NONE };
    for (what, raw) in [
        (marked(false, Inside::Whatever), spread),
        (marked(true, Inside::Plain), RawSteer { ip: 6, rss_key: key, ..spread }),
        (marked(false, Inside::V6), RawSteer { inside: 6, hash_source: 1, rss_key: key, ..spread }),
        (marked(true, Inside::V4), RawSteer { ip: 6, inside: 4, hash_source: 1, rss_key: key, ..spread }),
    ] {
        assert_eq!(rule(what, 0, 2, 2).raw(), raw);
    }
    assert_eq!(rule(marked(false, Inside::Plain), 0, 2, 1).raw().rss_key, std::ptr::null(), "to one queue");
}

#[test]
fn ranks_put_control_before_groups_and_groups_before_the_rest() {
    let ranks = |steering: &Steering, queues| {
        let rules = Rules::new(steering, queues, false);
        let control: Vec<u8> = rules.control().iter().flat_map(|p| p.rules.iter().map(|r| r.rank)).collect();
        assert!(control.iter().all(|&rank| rank == 0));
        let mut groups = Vec::new();
        for number in 0..steering.groups().len() {
            let forms = rules.group(number as u8);
            groups.extend(forms.iter().flat_map(|form| form.rules.iter().map(|rule| rule.rank)));
        }
        groups.sort_unstable();
        groups.dedup();
        (groups, rules.of_spreading(), rules.rest().rank)
    };
    let both = steering();
    assert_eq!(ranks(&both, 2), (vec![1, 2], 3, 4));
    assert_eq!(ranks(&both.keep(true, 0), 2), (vec![], 1, 2));
    assert_eq!(ranks(&both.keep(false, 1), 2), (vec![0, 1], 2, 3));
    // To single queues nothing is hashed, and nobody spreads.
    assert_eq!(ranks(&both, 1), (vec![1], 3, 3));
}

/// How many rules a device is asked to hold, as the documentation says.
#[test]
fn the_number_of_rules_is_as_documented() {
    let steering = steering();
    for (tagged, factor) in [(false, 1), (true, 2)] {
        let rules = Rules::new(&steering, 2, tagged);
        let control: usize = rules.control().iter().map(|protocol| protocol.rules.len()).sum();
        assert_eq!(control, factor * (6 + 2 * 12));
        let forms: Vec<_> = rules.group(0).iter().map(|form| form.rules.len()).collect();
        assert_eq!(forms, [factor * 2 * 6, factor * 2 * 2, factor * 2 * 8]);
    }
}

// ---- the same choice as software's ----

/// Whether a NIC that looks behind one VLAN tag would carry a rule out.
fn matches(rule: &Rule, frame: &[u8]) -> bool {
    let tagged = frame[12..14] == [0x81, 0];
    let at = if tagged { 18 } else { 14 };
    let (kind, ip) = (&frame[at - 2..at], &frame[at..]);
    let v6 = kind == [0x86, 0xdd];
    if rule.tagged != tagged {
        return rule.what == What::Rest;
    }
    if kind == [8, 6] {
        return matches!(rule.what, What::Arp | What::Rest);
    }
    let (tos, protocol, hops, to, l4) = if v6 {
        let to = IpAddr::from(<[u8; 16]>::try_from(&ip[24..40]).unwrap());
        (ip[0] << 4 | ip[1] >> 4, ip[6], ip[7], to, &ip[40..])
    } else {
        let to = IpAddr::from(<[u8; 4]>::try_from(&ip[16..20]).unwrap());
        (ip[1], ip[9], ip[8], to, &ip[20..])
    };
    let port = |at: usize| u16::from_be_bytes([l4[at], l4[at + 1]]);
    let gtp = protocol == 17 && port(2) == 2152;
    match rule.what {
        What::Arp => false,
        What::Discovery(icmp) => v6 && protocol == 58 && hops == 255 && l4[0] == icmp,
        What::Message(address, message) => to == address && gtp && l4[9] == message,
        What::Port { to: address, protocol: ours, end, port: wanted } => {
            to == address && protocol == ours && port(if end == End::Source { 0 } else { 2 }) == wanted
        }
        What::Marked { v6: six, tos: wanted, mask, inside } => {
            // The user's packet is behind headers of 16 octets with a container.
            let inner = (gtp && l4[9] == 255).then(|| l4[24] >> 4);
            let inside = match inside {
                Inside::Whatever | Inside::Plain => true,
                Inside::V4 => inner == Some(4),
                Inside::V6 => inner == Some(6),
            };
            v6 == six && tos & mask == wanted && inside
        }
        What::Rest => true,
    }
}

fn ethernet() -> PacketBuilder {
    PacketBuilder::new().ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]))
}

/// Frames of many kinds, with this ToS.
fn frames(tos: u8) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let other = Ipv4Addr::new(10, 45, 0, 1);
    for (to, to6) in [(OWN, OWN6), (other, Ipv6Addr::LOCALHOST)] {
        let v4 = Ipv4Header { source: other, destination: to, tos, ..Ipv4Header::default() };
        let v6 = Ipv6Header {
            source: Ipv6Addr::LOCALHOST,
            destination: to6,
            traffic_class: tos,
            ..Ipv6Header::default()
        };
        for ip in [ethernet().ipv4_header(v4), ethernet().ipv6_header(v6)] {
            for kind in [1, 2, 26, 31, 254] {
                frames.push(ip.clone().udp(2152, 2152).gtpu_message(MessageType(kind), Teid(0)).build(&[]));
            }
            for inner in [0x45, 0x60] {
                // A G-PDU with a container.
                let mut g_pdu = vec![0x34, 255, 0, 60, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0, inner];
                g_pdu.resize(80, 0);
                frames.push(ip.clone().udp(2152, 2152).build(&g_pdu));
            }
            for (source, destination) in
                [(8805, 9), (9, 8805), (3784, 9), (9, 3784), (9, 4784), (179, 179), (9, 53)]
            {
                frames.push(ip.clone().udp(source, destination).build(&[0; 24]));
                // TCP's ports are where UDP's are.
                let mut tcp = frames[frames.len() - 1].clone();
                let protocol = if tcp[12] == 8 { 14 + 9 } else { 14 + 6 };
                tcp[protocol] = 6;
                frames.push(tcp);
            }
        }
    }
    for (hops, kind) in [(255, 132), (255, 133), (255, 135), (254, 136), (255, 137), (255, 138)] {
        let mut icmp = ethernet().ipv6(Ipv6Addr::LOCALHOST, OWN6).build(&[kind, 0, 0, 0, 0, 0, 0, 0]);
        (icmp[14 + 6], icmp[14 + 7]) = (58, hops);
        (icmp[14], icmp[15]) = (0x60 | tos >> 4, tos << 4);
        frames.push(icmp);
    }
    frames.push([&[0xff; 12][..], &[8, 6], &[0; 46]].concat());
    let tag = |frame: &Vec<u8>| [&frame[..12], &[0x81, 0, 0, 100], &frame[12..]].concat();
    let tagged: Vec<_> = frames.iter().map(tag).collect();
    frames.into_iter().chain(tagged).collect()
}

#[test]
fn rules_choose_the_queues_that_software_chooses() {
    let steering = steering();
    for queues in [1, 3] {
        let rules = Rules::new(&steering, queues, true);
        let forms = rules.group(0).len();
        assert_eq!(forms, if queues == 1 { 2 } else { 3 });
        for form in 0..forms {
            let mut all: Vec<Rule> =
                rules.control().into_iter().flat_map(|protocol| protocol.rules).collect();
            for number in 0..2 {
                all.extend(rules.group(number).swap_remove(form).rules);
            }
            all.push(rules.rest());
            let mut steered = 0;
            for tos in 0..=255u8 {
                for frame in frames(tos) {
                    let first = all.iter().filter(|rule| matches(rule, &frame)).min_by_key(|rule| rule.rank);
                    let duty = steering.duty(&frame);
                    let expected = steering.place(duty, 0, queues);
                    let chosen = first.unwrap();
                    assert_eq!(usize::from(chosen.first), expected, "{chosen:?}: {frame:?}");
                    assert_eq!(chosen.queues, if duty == Some(Duty::Control) { 1 } else { queues });
                    steered += usize::from(duty.is_some());
                    // Two that both come first must say the same.
                    let same =
                        |rule: &&Rule| rule.rank == chosen.rank && matches(rule, &frame) && *rule != chosen;
                    assert!(all.iter().filter(same).all(|rule| rule.first == chosen.first));
                }
            }
            assert!(steered > 1000, "{steered}");
        }
    }
}

// ---- the conversation with a device ----

type Opinion = fn(&Rule) -> bool;

/// A device with opinions.
struct Fake {
    would: Opinion,
    takes: Opinion,
    /// Rules that fit.
    room: usize,
    most_queues: usize,
    queues: u16,
    /// The highest rank at which rules can still spread packets.
    spreads_to: u8,
    table: bool,
    rank: u8,
    given: Rc<RefCell<Vec<Rule>>>,
    /// Receive queues at each start.
    starts: Vec<usize>,
}

impl Fake {
    fn new(queues: u16) -> Self {
        Self {
            would: |_| true,
            takes: |_| true,
            room: 1000,
            most_queues: 1000,
            queues,
            spreads_to: 10,
            table: true,
            rank: 0,
            given: Rc::default(),
            starts: vec![usize::from(queues)],
        }
    }

    fn ask(&mut self, wanted: &Steering) -> Steered<Given> {
        let queues = self.queues;
        ask(self, wanted, queues, false).unwrap()
    }

    /// The first queues that rules lead to.
    fn led_to(&self) -> Vec<u16> {
        let mut queues: Vec<u16> = self.given.borrow().iter().map(|rule| rule.first).collect();
        queues.sort_unstable();
        queues.dedup();
        queues
    }
}

struct Given(Rule, Rc<RefCell<Vec<Rule>>>);

impl Drop for Given {
    fn drop(&mut self) {
        let mut given = self.1.borrow_mut();
        let at = given.iter().position(|rule| *rule == self.0).unwrap();
        given.remove(at);
    }
}

impl Nic for Fake {
    type Taken = Given;

    fn restart(&mut self, steering: &Steering, rank: u8) -> Result<(), Stopped> {
        assert!(self.given.borrow().is_empty(), "rules outlive the queues they lead to");
        let queues = usize::from(self.queues) + steering.extra_queues(self.queues);
        self.starts.push(queues);
        self.rank = rank;
        if queues > self.most_queues {
            return Err(Stopped { step: "configuring its queues".into(), errno: 22 });
        }
        Ok(())
    }

    fn spreads(&self) -> Spreads {
        let by_subscriber = self.rank <= self.spreads_to;
        Spreads { by_subscriber, port_hash: true, table: self.table, follows: false }
    }

    fn would(&self, rule: &Rule) -> Result<(), String> {
        assert_eq!(rule.first, 0, "asked for a queue that isn't there");
        (self.would)(rule).then_some(()).ok_or_else(|| "it would not".into())
    }

    fn take(&self, rule: &Rule) -> Result<Given, String> {
        let mut given = self.given.borrow_mut();
        assert!(!given.contains(rule), "given twice");
        self.would(&Rule { first: 0, ..*rule })?;
        if given.len() >= self.room || !(self.takes)(rule) {
            return Err("it does not".into());
        }
        given.push(*rule);
        Ok(Given(*rule, Rc::clone(&self.given)))
    }
}

fn is_control(rule: &Rule) -> bool {
    !matches!(rule.what, What::Marked { .. } | What::Rest)
}

#[test]
fn a_device_that_takes_all_is_started_once_more() {
    let mut nic = Fake::new(2);
    let steered = nic.ask(&steering());
    assert_eq!(steered.steering, steering());
    assert_eq!((nic.starts.as_slice(), nic.rank), ([2, 2 + 2 * 2 + 1].as_slice(), 3));
    assert_eq!(nic.led_to(), [2, 4, 6]);
    assert_eq!(nic.given.borrow().len(), 30 + 12 + 6);
    assert_eq!(
        steered.remarks(),
        [
            "its control queue takes ARP, neighbour discovery, GTP-U signalling, PFCP, BFD, BGP",
            "packets of groups (voice, video) come to queues of their own, by the subscriber's address"
        ]
    );
    drop(steered);
    assert_eq!(nic.led_to(), [0; 0]);
}

#[test]
fn a_device_that_would_take_nothing_is_left_alone() {
    let mut nic = Fake { would: |_| false, ..Fake::new(2) };
    let steered = nic.ask(&steering());
    assert!(steered.steering.is_none());
    assert_eq!(nic.starts, [2]);
    assert_eq!(
        steered.remarks(),
        [
            "it has no control queue (it would not)",
            "it has no queues for the group voice and less urgent ones (it would not)"
        ]
    );
}

#[test]
fn a_device_that_refuses_after_all_goes_back_to_its_ordinary_queues() {
    let mut nic = Fake { takes: |_| false, ..Fake::new(1) };
    let steered = nic.ask(&steering());
    assert!(steered.steering.is_none());
    assert_eq!((nic.starts.as_slice(), nic.rank), ([1, 4, 1].as_slice(), 0));
    assert_eq!(steered.remarks()[0], "it has no control queue (it does not)");
}

#[test]
fn protocols_are_refused_one_by_one() {
    let would: Opinion = |rule| !matches!(rule.what, What::Discovery(137) | What::Message(..));
    // PFCP by source port is taken and given back, for by destination port it is refused.
    let takes: Opinion =
        |rule| !matches!(rule.what, What::Port { to: IpAddr::V6(_), port: 8805, end: End::Destination, .. });
    let mut nic = Fake { would, takes, ..Fake::new(2) };
    let steered = nic.ask(&steering().keep(true, 0));
    assert_eq!(steered.steering, steering().keep(true, 0));
    assert_eq!(nic.led_to(), [2]);
    let given = nic.given.borrow();
    assert!(!given.iter().any(|rule| matches!(rule.what, What::Port { port: 8805, .. })));
    // ARP, and for two addresses BFD's four and BGP's two.
    assert_eq!(given.len(), 1 + 2 * (4 + 2));
    assert_eq!(
        steered.remarks(),
        [
            "its control queue takes ARP, BFD, BGP; the ordinary way go neighbour discovery, GTP-U signalling (it would not); PFCP (it does not)"
        ]
    );
}

#[test]
fn a_full_device_keeps_the_most_urgent_and_its_queues_close_up() {
    // Control's 30 and the first group's 12, whose other forms fit no better.
    let mut nic = Fake { room: 42, ..Fake::new(2) };
    let steered = nic.ask(&steering());
    assert_eq!(steered.steering, steering().keep(true, 1));
    assert_eq!(nic.starts, [2, 7, 5]);
    assert_eq!(nic.led_to(), [2, 4]);
    assert_eq!(
        steered.remarks()[1..],
        [
            "packets of groups (voice) come to queues of their own, by the subscriber's address",
            "it has no queues for the group video (it does not)"
        ]
    );
}

#[test]
fn groups_without_a_hash_of_their_own_use_the_ports() {
    let would: Opinion = |rule| is_control(rule) || rule.raw().rss_key.is_null();
    let mut nic = Fake { would, takes: would, ..Fake::new(2) };
    assert_eq!(nic.ask(&steering()).steering, steering());
    // Whole octets only.
    let would: Opinion = |rule| is_control(rule) || rule.raw().tos_mask == 0xff;
    let mut nic = Fake { would, takes: would, ..Fake::new(2) };
    let steered = nic.ask(&steering().keep(false, 2));
    assert_eq!(steered.steering, steering().keep(false, 2));
    assert_eq!(nic.given.borrow().len(), 16 + 8);
}

#[test]
fn spreading_by_subscriber_is_not_given_up() {
    let mut nic = Fake { spreads_to: 0, ..Fake::new(2) };
    let steered = nic.ask(&steering());
    assert!(steered.steering.is_none() && nic.led_to().is_empty());
    assert_eq!(nic.starts, [2, 7, 2]);
    assert!(steered.remarks()[0].contains("hash the subscriber's address"), "{:?}", steered.remarks());
    assert_eq!(steered.remarks().len(), 1);
}

#[test]
fn without_a_table_the_rest_needs_a_rule() {
    let mut nic = Fake { table: false, ..Fake::new(2) };
    let steered = nic.ask(&steering().keep(true, 0));
    assert_eq!(nic.led_to(), [0, 2]);
    assert_eq!(nic.given.borrow().last().unwrap(), &rule(What::Rest, 2, 0, 2));
    drop(steered);
    let mut nic = Fake { table: false, takes: |rule| rule.what != What::Rest, ..Fake::new(2) };
    let steered = nic.ask(&steering());
    assert!(steered.steering.is_none() && nic.led_to().is_empty());
    assert!(steered.remarks()[0].contains("keep other packets off"), "{:?}", steered.remarks());
    assert_eq!(nic.starts, [2, 7, 2]);
}

#[test]
fn a_device_that_does_not_start_with_more_queues_starts_with_its_own() {
    let mut nic = Fake { most_queues: 6, ..Fake::new(2) };
    let steered = nic.ask(&steering());
    assert!(steered.steering.is_none());
    assert_eq!(nic.starts, [2, 7, 2]);
    assert!(
        steered.remarks()[0].contains("7 receive queues (configuring its queues: "),
        "{:?}",
        steered.remarks()
    );
    // And one that starts no more is an error.
    let mut nic = Fake { most_queues: 1, ..Fake::new(2) };
    assert_eq!(ask(&mut nic, &steering(), 2, false).err().unwrap().errno, 22);
}
