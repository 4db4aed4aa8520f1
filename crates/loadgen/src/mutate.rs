//! PFCP messages that are nearly right: one that an SMF would send, with something wrong in it.
//!
//! A message is taken apart into its tree of IEs, changed there, and written again with lengths that fit, so that what is wrong is read
//! and not only the framing; then its octets may be changed too. The choices come from outside: from a generator, or from a fuzzer's input.

use crate::wire::USER_ID;
use pfcp::{Header, Ies, encode_ie, ie_type as ie};

/// Says a number below the one that is given, which is at least 1.
pub type Choose<'a> = dyn FnMut(usize) -> usize + 'a;

/// IEs that consist of IEs.
const GROUPS: [u16; 20] = [
    ie::CREATE_PDR,
    ie::PDI,
    ie::CREATE_FAR,
    ie::FORWARDING_PARAMETERS,
    ie::CREATE_URR,
    ie::CREATE_QER,
    ie::CREATED_PDR,
    ie::UPDATE_PDR,
    ie::UPDATE_FAR,
    ie::UPDATE_FORWARDING_PARAMETERS,
    ie::UPDATE_URR,
    ie::UPDATE_QER,
    ie::REMOVE_PDR,
    ie::REMOVE_FAR,
    ie::REMOVE_URR,
    ie::REMOVE_QER,
    ie::QUERY_URR,
    ie::CREATE_BAR,
    ie::APPLICATION_IDS_PFDS,
    ie::PFD_CONTEXT,
];
/// Octets at which readers go wrong.
const ODD: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, 0x20];

/// An IE with what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Node {
    kind: u16,
    value: Value,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    Octets(Vec<u8>),
    Group(Vec<Node>),
    /// Octets, and a length that isn't theirs.
    Lie(u16, Vec<u8>),
}

fn read(ies: Ies<'_>) -> Vec<Node> {
    let node = |element: pfcp::Ie<'_>| {
        let value = if GROUPS.contains(&element.kind) && element.enterprise.is_none() {
            Value::Group(read(element.group()))
        } else {
            let enterprise = element.enterprise.map(u16::to_be_bytes);
            Value::Octets([enterprise.as_ref().map_or(&[][..], |octets| octets), element.value].concat())
        };
        Node { kind: element.kind, value }
    };
    ies.map_while(Result::ok).map(node).collect()
}

fn write(nodes: &[Node], out: &mut Vec<u8>) {
    for node in nodes {
        match &node.value {
            Value::Octets(octets) => encode_ie(out, node.kind, |out| out.extend(octets)),
            Value::Group(inside) => encode_ie(out, node.kind, |out| write(inside, out)),
            Value::Lie(length, octets) => {
                out.extend(node.kind.to_be_bytes());
                out.extend(length.to_be_bytes());
                out.extend(octets);
            }
        }
    }
}

/// Changes one of these IEs, or one in a group of theirs.
fn change(list: &mut Vec<Node>, choose: &mut Choose<'_>) {
    let groups: Vec<usize> =
        (0..list.len()).filter(|&at| matches!(list[at].value, Value::Group(_))).collect();
    // Deeper two times in three.
    if !groups.is_empty()
        && choose(3) > 0
        && let Value::Group(inside) = &mut list[groups[choose(groups.len())]].value
    {
        return change(inside, choose);
    }
    if list.is_empty() {
        return;
    }
    let at = choose(list.len());
    match choose(9) {
        0 => {
            list.remove(at);
        }
        1 => {
            let again = list[at].clone();
            let to = choose(list.len() + 1);
            list.insert(to, again);
        }
        2 => {
            let other = choose(list.len());
            list.swap(at, other);
        }
        3 => {
            list[at].kind =
                if choose(2) == 0 { choose(300) as u16 } else { (choose(256) << 8 | choose(256)) as u16 }
        }
        4 => {
            let mut octets = Vec::new();
            write(std::slice::from_ref(&list[at]), &mut octets);
            let octets = octets.split_off(4);
            let right = octets.len() as u16;
            let lies = [0, 1, right.wrapping_sub(1), right.wrapping_add(1), right.wrapping_mul(2), u16::MAX];
            list[at].value = Value::Lie(lies[choose(lies.len())], octets);
        }
        5 => list[at].value = Value::Octets((0..choose(24)).map(|_| choose(256) as u8).collect()),
        6 => {
            // Another rule's, or another message's.
            let from = [ie::PDR_ID, ie::FAR_ID, ie::QER_ID, ie::URR_ID, ie::F_TEID, ie::F_SEID, USER_ID];
            list[at].kind = from[choose(from.len())];
        }
        _ => damage(&mut list[at].value, choose),
    }
}

/// Changes a value, in part.
fn damage(value: &mut Value, choose: &mut Choose<'_>) {
    match value {
        Value::Group(inside) => change(inside, choose),
        Value::Octets(octets) | Value::Lie(_, octets) => match choose(5) {
            0 => octets.truncate(choose(octets.len() + 1)),
            1 => octets.extend((0..=choose(8)).map(|_| choose(256) as u8)),
            _ => damage_octets(octets, choose),
        },
    }
}

/// Changes an octet, if there is one.
fn damage_octets(octets: &mut [u8], choose: &mut Choose<'_>) {
    if octets.is_empty() {
        return;
    }
    let at = choose(octets.len());
    match choose(3) {
        0 => octets[at] ^= 1 << choose(8),
        1 => octets[at] = ODD[choose(ODD.len())],
        _ => octets[at] = choose(256) as u8,
    }
}

/// Does something wrong to a datagram of one message. What can't be read is damaged octet by octet.
pub fn mutate(datagram: &mut Vec<u8>, choose: &mut Choose<'_>) {
    let head = Header::decode(datagram)
        .ok()
        .map(|(header, body, _)| (header.encoded_length(), read(Ies::new(body))));
    match head {
        Some((length, mut nodes)) if choose(8) > 0 => {
            change(&mut nodes, choose);
            datagram.truncate(length);
            write(&nodes, datagram);
            set_length(datagram);
        }
        _ => match choose(4) {
            // Whose the message is, what it is, how long it says it is.
            0 => damage_octets(datagram.get_mut(..16).unwrap_or_default(), choose),
            1 => datagram.truncate(choose(datagram.len() + 1)),
            2 => datagram.extend((0..=choose(16)).map(|_| choose(256) as u8)),
            _ => damage_octets(datagram, choose),
        },
    }
}

/// Makes a message's length field right.
fn set_length(message: &mut [u8]) {
    let length = message.len().saturating_sub(4).min(usize::from(u16::MAX)) as u16;
    if let Some(field) = message.get_mut(2..4) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// One datagram of several messages (§7.2.1A).
pub fn bundle(messages: &[Vec<u8>]) -> Vec<u8> {
    /// FO: another message follows.
    const FOLLOW_ON: u8 = 1 << 2;
    let mut datagram = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let begin = datagram.len();
        datagram.extend(message);
        if at + 1 < messages.len()
            && let Some(flags) = datagram.get_mut(begin)
        {
            *flags |= FOLLOW_ON;
        }
    }
    datagram
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;
    use crate::wire::Writer;
    use pfcp::{Datagram, MessageType, Seid, SequenceNumber};
    use std::collections::HashSet;

    fn request() -> Vec<u8> {
        let header = Header::session(MessageType::SESSION_ESTABLISHMENT_REQUEST, Seid(7), SequenceNumber(9));
        let mut out = Vec::new();
        Writer::message(&mut out, &header, |w| {
            w.f_seid(5, [127, 0, 0, 1].into());
            w.group(ie::CREATE_PDR, |w| {
                w.u16(ie::PDR_ID, 1);
                w.group(ie::PDI, |w| w.u8(ie::SOURCE_INTERFACE, 0));
            });
        });
        out
    }

    #[test]
    fn a_tree_is_written_as_it_was_read() {
        let request = request();
        let (header, body, _) = Header::decode(&request).unwrap();
        let nodes = read(Ies::new(body));
        assert!(matches!(&nodes[1].value, Value::Group(pdr) if matches!(&pdr[1].value, Value::Group(_))));
        let mut again = request[..header.encoded_length()].to_vec();
        write(&nodes, &mut again);
        assert_eq!(again, request);
    }

    #[test]
    fn mutants_differ_and_most_are_still_messages() {
        let (request, mut rng) = (request(), SplitMix64::new(3));
        let (mut seen, mut readable, mut same) = (HashSet::new(), 0, 0);
        for _ in 0..10_000 {
            let mut mutant = request.clone();
            mutate(&mut mutant, &mut |n| rng.below(n as u32) as usize);
            readable += u32::from(Header::decode(&mutant).is_ok());
            same += u32::from(mutant == request);
            seen.insert(mutant);
        }
        assert!(seen.len() > 3_000 && readable > 8_000 && same < 2_500, "{} {readable} {same}", seen.len());
    }

    #[test]
    fn any_octets_can_be_damaged_more_and_more() {
        let mut rng = SplitMix64::new(4);
        for length in 0..200 {
            let mut octets: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
            for _ in 0..50 {
                mutate(&mut octets, &mut |n| rng.below(n as u32) as usize);
            }
        }
    }

    #[test]
    fn bundles_are_several_messages() {
        let datagram = bundle(&[request(), request(), request()]);
        assert_eq!(Datagram::new(&datagram).flatten().count(), 3);
        assert!(bundle(&[]).is_empty());
    }
}
