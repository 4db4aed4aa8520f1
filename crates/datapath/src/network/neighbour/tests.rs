//! Neighbours through their states, and those who would take their places.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::network::interface::{Interface, Roles};
use std::net::Ipv4Addr;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);
const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 8]);
const ANSWER: Word = Word::Answer { replace: true };
const ASKER: Word = Word::Unasked { replace: true, to_us: true };

fn way(interface: u16, host: u32) -> Egress {
    let link = Interface {
        name: "n3".into(),
        port: 0,
        vlan: None,
        mac: MacAddr([2; 6]),
        mtu: 1500,
        roles: Roles::default(),
        addresses: Vec::new(),
        network_instances: Vec::new(),
    };
    Egress::new(interface, &link, Ipv4Addr::from(0x0a00_0000 + host).into(), None)
}

fn neighbours(max: usize, queue: usize) -> Neighbours<u8> {
    Neighbours::new(7, max, queue, Arc::default())
}

fn at(seconds: u64) -> Nanos {
    Nanos(seconds * Nanos::SECOND)
}

fn mac(neighbours: &Neighbours<u8>, host: u32) -> Option<MacAddr> {
    let way = way(0, host);
    neighbours.way(way.interface, way.target)?.mac()
}

/// What is due from one second to another; nobody keeps a way but those of `kept`.
fn pass(
    neighbours: &mut Neighbours<u8>,
    seconds: std::ops::RangeInclusive<u64>,
    kept: bool,
) -> Vec<(u64, Due<u8>)> {
    seconds.flat_map(|s| neighbours.due(at(s), |_, _| kept).into_iter().map(move |due| (s, due))).collect()
}

#[test]
fn frames_wait_and_are_set_free_in_order() {
    let mut neighbours = neighbours(10, 2);
    let peer = way(0, 1);
    assert_eq!(neighbours.hold(&peer, 1, at(1)), Held::Ask);
    assert_eq!(neighbours.hold(&peer, 2, at(1)), Held::Waits);
    assert_eq!(neighbours.hold(&peer, 3, at(1)), Held::Waits);
    assert_eq!(neighbours.take_lost(), [1], "the oldest makes room");
    assert_eq!(mac(&neighbours, 1), None);
    assert!(neighbours.hear(&way(1, 1), MAC, ANSWER, at(1)).frames.is_empty(), "another link's");
    let news = neighbours.hear(&peer, MAC, ANSWER, at(1));
    assert_eq!((news.frames, news.tell, news.before), (VecDeque::from([2, 3]), true, None));
    let again = neighbours.hear(&peer, MAC, ANSWER, at(1));
    assert!(again.way.is_none() && !again.tell, "no news, and nobody asked again");
    assert_eq!(mac(&neighbours, 1), Some(MAC));
    assert_eq!(neighbours.hold(&peer, 4, at(1)), Held::Known(4, MAC));
}

#[test]
fn what_is_known_is_told_in_pieces() {
    let mut neighbours = neighbours(100, 2);
    for host in 1..=10 {
        neighbours.hold(&way(0, host), 1, at(1));
    }
    neighbours.hear(&way(0, 3), MAC, ANSWER, at(2));
    neighbours.fix(
        &[{
            let mut fixed = way(0, 4);
            fixed.set_mac(Some(OTHER));
            fixed
        }],
        at(2),
    );
    neighbours.pin(&way(0, 5), User::Peer(9));
    for most in [1, 3, 10, 512] {
        let (mut seen, mut from) = (Vec::new(), Some(0));
        while let Some(place) = from {
            let (more, next) = neighbours.look(place, most);
            assert!(more.len() <= most as usize);
            seen.extend(more);
            from = next;
        }
        assert_eq!(seen.len(), 10);
        let of = |host: u32| seen.iter().find(|sight| sight.address == way(0, host).target).unwrap();
        let short = |sight: &Sight| (sight.state.name(), sight.mac, sight.heard, sight.users);
        assert_eq!(short(of(1)), ("incomplete", None, None, 0));
        assert_eq!(short(of(3)), ("reachable", Some(MAC), Some(at(2)), 0));
        assert_eq!(short(of(4)), ("fixed", Some(OTHER), None, 0));
        assert_eq!(short(of(5)), ("incomplete", None, None, 1));
    }
}

#[test]
fn silence_loses_the_frames() {
    let mut neighbours = neighbours(4, 2);
    neighbours.hold(&way(0, 1), 1, at(0));
    let due = pass(&mut neighbours, 1..=9, false);
    let asked = due.iter().filter(|(_, due)| matches!(due, Due::Ask(0, _))).count();
    assert_eq!(asked, 2, "beside the first time");
    assert!(matches!(&due.last().unwrap().1, Due::Lost(frames) if *frames == [1]));
    assert_eq!(neighbours.hold(&way(0, 1), 1, at(9)), Held::Ask, "and may try again");
}

#[test]
fn whom_nobody_sends_to_is_forgotten_and_whom_somebody_does_is_asked_alone() {
    let mut neighbours = neighbours(4, 2);
    for host in [1, 2, 3] {
        neighbours.hold(&way(0, host), 1, at(0));
        neighbours.hear(&way(0, host), MAC, ANSWER, at(0));
    }
    neighbours.pin(&way(0, 1), User::Peer(9));
    // The second was sent to, once; the third never is.
    neighbours.touch(0, way(0, 2).target);
    let due = pass(&mut neighbours, 1..=60, true);
    let first: Vec<_> = due
        .iter()
        .filter_map(|(s, due)| match due {
            Due::Probe(way) if way.mac() == Some(MAC) => Some((*s, way.target)),
            _ => None,
        })
        .collect();
    for host in [1, 2] {
        let asked = |(_, target): &&(u64, IpAddr)| *target == way(0, host).target;
        let when = first.iter().find(asked).unwrap().0;
        assert!((20..=52).contains(&when), "asked after {when} s");
        assert!(first.iter().filter(asked).count() >= 3 || when > 57);
    }
    assert!(!first.iter().any(|(_, target)| *target == way(0, 3).target));
    pass(&mut neighbours, 61..=120, true);
    assert!(!neighbours.knows(0, way(0, 3).target), "grew stale, and nobody asked for it");
}

#[test]
fn whoever_answers_stays_and_whoever_is_silent_is_looked_for_on_the_whole_link() {
    let mut neighbours = neighbours(4, 2);
    let peer = way(0, 1);
    neighbours.pin(&peer, User::Hop(3));
    neighbours.hold(&peer, 1, at(0));
    neighbours.hear(&peer, MAC, ANSWER, at(0));
    let (mut probes, mut answered_until) = (0, 0);
    for s in 1..=300 {
        for due in neighbours.due(at(s), |_, _| true) {
            assert!(matches!(due, Due::Probe(_)), "{due:?}");
            probes += 1;
            neighbours.hear(&peer, MAC, ANSWER, at(s));
            answered_until = s;
        }
    }
    assert!((5..=16).contains(&probes), "{probes} questions in five minutes");
    let due = pass(&mut neighbours, 301..=answered_until + 60, true);
    let kinds: Vec<_> = due.iter().map(|(_, due)| std::mem::discriminant(due)).collect();
    let gone = due.iter().position(|(_, due)| matches!(due, Due::Gone(..))).unwrap();
    assert!(kinds.len() >= gone + 2);
    assert!(due.iter().take(gone).all(|(_, due)| matches!(due, Due::Probe(_))));
    let Due::Gone(lost, users) = &due[gone].1 else { panic!() };
    assert_eq!((lost.mac(), &users[..]), (None, &[User::Hop(3)][..]));
    assert!(matches!(due[gone + 1].1, Due::Ask(..)), "now everybody");
    assert_eq!(mac(&neighbours, 1), None);
    assert!(neighbours.knows(0, peer.target), "it keeps its place");
}

#[test]
fn a_flood_of_forged_messages_keeps_nobody_out() {
    let mut neighbours = neighbours(64, 2);
    // A gNB whose tunnels are in use, a router that hasn't answered yet, and a server that is sent to.
    neighbours.pin(&way(0, 1), User::Peer(1));
    neighbours.hold(&way(0, 1), 1, at(0));
    neighbours.hear(&way(0, 1), MAC, ANSWER, at(0));
    neighbours.pin(&way(0, 2), User::Hop(1));
    neighbours.hold(&way(0, 3), 1, at(0));
    neighbours.hear(&way(0, 3), MAC, ANSWER, at(0));
    for forged in 100..20_100 {
        neighbours.hear(&way(0, forged), OTHER, ASKER, at(1));
        if forged % 16 == 0 {
            neighbours.touch(0, way(0, 3).target);
        }
        assert!(neighbours.entries.len() <= 64);
    }
    assert_eq!([1, 3].map(|host| mac(&neighbours, host)), [Some(MAC); 2]);
    // Whoever comes now is found: there is a place for the question, and one for the answer.
    for (host, interface) in [(2, 0), (4, 0), (5, 1)] {
        let wanted = way(interface, host);
        assert_eq!(neighbours.hold(&wanted, 1, at(2)), Held::Ask);
        for forged in 30_000..30_008 {
            neighbours.hear(&way(0, forged), OTHER, ASKER, at(2));
        }
        assert_eq!(neighbours.hear(&wanted, MAC, ANSWER, at(2)).frames, [1]);
    }
    assert_eq!(neighbours.way(0, way(0, 2).target).unwrap().mac(), Some(MAC));
}

#[test]
fn a_scan_takes_no_place_from_those_who_answered() {
    let mut neighbours = neighbours(64, 2);
    for host in 0..40 {
        neighbours.hear(&way(0, host), MAC, ASKER, at(0));
    }
    let mut lost = 0;
    for scanned in 1000..3000 {
        assert_eq!(neighbours.hold(&way(0, scanned), 1, at(1)), Held::Ask);
        lost += neighbours.take_lost().len();
    }
    assert_eq!((0..40).filter(|host| mac(&neighbours, *host) == Some(MAC)).count(), 40);
    assert_eq!(lost, 2000 - 24, "the oldest questions made room");
}

#[test]
fn a_configured_neighbour_is_where_it_was_configured_to_be() {
    let mut neighbours = neighbours(4, 2);
    let mut fixed = way(0, 1);
    fixed.set_mac(Some(MAC));
    assert_eq!(neighbours.hold(&way(0, 1), 1, at(0)), Held::Ask);
    let free = neighbours.fix(&[fixed], at(0));
    assert!(matches!(&free[..], [(way, frames)] if way.mac() == Some(MAC) && *frames == [1]));
    for word in [ANSWER, ASKER, Word::Shared { confirmed: true }] {
        let news = neighbours.hear(&way(0, 1), OTHER, word, at(9));
        assert!(news.way.is_none() && !news.tell && news.before == Some(MAC));
    }
    assert!(pass(&mut neighbours, 1..=300, false).is_empty());
    assert_eq!(mac(&neighbours, 1), Some(MAC));
    // It is configured no longer: from now on it is one like any other.
    neighbours.fix(&[], at(300));
    assert!(neighbours.hear(&way(0, 1), OTHER, ASKER, at(301)).way.is_some());
}

#[test]
fn a_neighbour_moves_once_a_second_at_most() {
    let mut neighbours = neighbours(4, 2);
    neighbours.hear(&way(0, 1), MAC, ASKER, at(0));
    let moved = neighbours.hear(&way(0, 1), OTHER, ASKER, at(1));
    assert!(moved.way.is_some() && moved.tell && moved.before == Some(MAC));
    let back = neighbours.hear(&way(0, 1), MAC, ASKER, Nanos(at(1).0 + 1));
    assert!(back.way.is_none() && !back.tell && back.before == Some(OTHER));
    // An advertisement that is not to replace anything replaces nothing (RFC 4861, 7.2.5).
    let meek = Word::Unasked { replace: false, to_us: false };
    assert!(neighbours.hear(&way(0, 1), MAC, meek, at(5)).way.is_none());
    assert!(neighbours.hear(&way(0, 1), MAC, ASKER, at(5)).way.is_some());
}

#[test]
fn an_answer_to_another_workers_question_is_told_and_one_to_nobodys_is_not() {
    let asked: Arc<Asked> = Arc::default();
    let [mut one, mut two] = [1, 2].map(|seed| Neighbours::<u8>::new(seed, 4, 2, Arc::clone(&asked)));
    let peer = way(0, 1);
    assert!(!two.hear(&peer, MAC, ANSWER, at(0)).tell);
    assert_eq!(one.hold(&peer, 1, at(0)), Held::Ask);
    assert!(two.hear(&peer, MAC, ANSWER, at(0)).tell);
    assert!(!two.hear(&peer, OTHER, ANSWER, at(0)).tell, "once");
    assert!(!two.knows(0, peer.target), "nobody here asked");
    // What the control side then tells all.
    let shared = Word::Shared { confirmed: true };
    for worker in [&mut one, &mut two] {
        let news = worker.hear(&peer, MAC, shared, at(0));
        assert!(!news.tell);
        assert_eq!(worker.way(0, peer.target).unwrap().mac(), Some(MAC));
    }
}

#[test]
fn who_has_been_waited_for_longest_is_given_up_first() {
    let mut neighbours = neighbours(10, 2);
    assert_eq!(neighbours.oldest(), None);
    for (n, frame) in [(1, 10), (2, 20), (1, 11), (3, 30)] {
        neighbours.hold(&way(0, n), frame, at(u64::from(n)));
    }
    // What is answered is waited for no more; what is held for him later is another wait.
    neighbours.hear(&way(0, 2), MAC, ANSWER, at(5));
    assert_eq!(neighbours.oldest(), Some(at(1)));
    assert_eq!([(); 2].map(|()| neighbours.give_up()), [Some(10), Some(11)]);
    assert_eq!(neighbours.hold(&way(0, 1), 12, at(6)), Held::Waits);
    assert_eq!(neighbours.oldest(), Some(at(3)));
    assert_eq!([(); 3].map(|()| neighbours.give_up()), [Some(30), Some(12), None]);
    // A thousand waits that are over leave nothing.
    for n in 0..1000 {
        neighbours.hold(&way(0, 1), n as u8, at(7 + n));
        neighbours.give_up();
    }
    assert!(neighbours.waits.len() < 200, "{}", neighbours.waits.len());
}

#[test]
fn beyond_a_lower_limit_two_make_room_for_one_that_comes() {
    let mut neighbours = neighbours(20, 2);
    let known =
        |neighbours: &Neighbours<u8>| (1..=100).filter(|host| mac(neighbours, *host).is_some()).count();
    for host in 1..=20 {
        neighbours.hear(&way(0, host), MAC, ASKER, at(1));
    }
    assert_eq!(known(&neighbours), 20);
    neighbours.set_limit(12);
    let come = |neighbours: &mut Neighbours<u8>, host| {
        neighbours.hear(&way(0, host), MAC, ASKER, at(2));
        known(neighbours)
    };
    assert_eq!([21, 22].map(|host| come(&mut neighbours, host)), [19, 18]);
    assert_eq!((23..60).map(|host| come(&mut neighbours, host)).last(), Some(12));
    neighbours.set_limit(14);
    assert_eq!([60, 61, 62].map(|host| come(&mut neighbours, host)), [13, 14, 14]);
}
