//! How rules become records: what of a session's rules a packet needs, a cache line each.

use crate::state::flow;
use crate::state::police::{self, Meters, limited_qers};
use crate::state::record::{MAX_METERS, NO_METER, Record, flag};
use crate::state::rules::{candidates, only_link_local, tunnel_of};
use crate::state::shard::Session;
use crate::state::treatment::{Treatment, Tunnelled, gates_are_open, treatment};
use session::rules::Tunnel;

/// The record for a tunnel, or (`None`) for the session's addresses; and whether its meter is shared with packets that the
/// session classifies. The session's rule records are made already.
pub(crate) fn compile<F>(
    session: &Session<F>,
    rule_records: &[Record],
    meters: &[Meters],
    slot: u32,
    tunnel: Option<Tunnel>,
) -> (Record, bool) {
    let rules = &*session.rules;
    let teid = tunnel.map(|tunnel| tunnel.teid.0);
    let mut record =
        Record { session: slot as u16, teid: teid.unwrap_or(0), flags: flag::LIVE, ..Record::default() };
    record.ue_ipv4 = rules.ue_ipv4.map_or(0, u32::from);
    record.ue_prefix = session.prefix.unwrap_or(0);
    let complex = Record { flags: flag::LIVE | flag::COMPLEX, ..record };
    let found = candidates(rules, teid).find(|(_, pdr)| {
        let skip = only_link_local(pdr);
        if skip {
            record.flags |= flag::LINK_LOCAL;
        }
        !skip
    });
    let Some((index, pdr)) = found else { return (complex, false) };
    let may_ask = session.of_all || candidates(rules, teid).any(|(_, pdr)| pdr.application.is_some());
    if !pdr.filters.is_empty() || pdr.qfis.len() > 1 || may_ask {
        let mut record = complex;
        if session.rule_records.len() > 0 && flow::has_flows(rules) {
            record.set_flows(session.versions.1, flow::tos_mask(rules));
        }
        return (record, false);
    }
    // One rule for all that leaves the link. What is checked of each packet is in this record in any case.
    let into_tunnel = rules.fars.get(pdr.far as usize).is_some_and(|far| tunnel_of(far.action).is_some());
    if pdr.source.is_uplink() {
        record.flags |= flag::UPLINK;
        let other_prefix = rules.ue_ipv6.is_some() && session.prefix.is_none();
        if other_prefix || !rules.framed_ipv4.is_empty() || !rules.framed_ipv6.is_empty() {
            record.flags |= flag::MORE_SOURCES;
        }
        if rules.ue_ipv4.is_none() && rules.ue_ipv6.is_none() && into_tunnel {
            record.flags |= flag::ANY_SOURCE;
        }
    }
    if let Some((mut record, shared)) = serves_alone(session, meters, record, index) {
        let marks = record.has(flag::MARK).then_some(record.qfi);
        match *pdr.qfis {
            [] => return (record, shared),
            [qfi] if marks.is_none_or(|mark| mark == qfi.get()) => {
                record.flags |= flag::MATCH;
                record.qfi = qfi.get();
                return (record, shared);
            }
            _ => {}
        }
    }
    match (rule_records.get(index as usize), session.rule_records.element(index)) {
        (Some(rule), Some(element)) if !rule.has(flag::COMPLEX) => {
            if let [qfi] = *pdr.qfis {
                record.flags |= flag::MATCH;
                record.qfi = qfi.get();
            }
            record.set_rule(element);
            (record, false)
        }
        _ => (complex, false),
    }
}

/// The record with all of the rule in it, if there is room for that: one meter fits, if no other rule that can match
/// draws on the same bucket. And whether rules for what stays on the link draw on it.
fn serves_alone<F>(
    session: &Session<F>,
    meters: &[Meters],
    record: Record,
    index: u16,
) -> Option<(Record, bool)> {
    let rules = &*session.rules;
    let pdr = rules.pdrs.get(index as usize)?;
    let mut record = with_way(session, record, index)?;
    let uplink = pdr.source.is_uplink();
    let mut limited = limited_qers(rules, index, uplink);
    if rules.slice.is_some() {
        return None;
    }
    let Some(qer) = limited.next() else { return Some((record, false)) };
    if limited.next().is_some() || police::guarantees(rules, qer, uplink) {
        return None;
    }
    let mut shared = false;
    let others = rules.pdrs.iter().enumerate().filter(|(i, other)| {
        *i != index as usize && other.source.is_uplink() == uplink && other.qers.contains(&qer)
    });
    for (_, other) in others {
        let hidden = other.tunnel == pdr.tunnel && pdr.qfis.is_empty() && !only_link_local(other);
        if only_link_local(other) {
            shared = true;
        } else if !hidden {
            return None;
        }
    }
    record.flags |= flag::METERED;
    record.meter = police::meter_of(meters, qer, uplink);
    Some((record, shared))
}

/// The record with the PDR's way out, if a record can hold it: it forwards, its gates are open, and nothing in it depends
/// on the packet.
fn with_way<F>(session: &Session<F>, mut record: Record, index: u16) -> Option<Record> {
    let rules = &*session.rules;
    let pdr = rules.pdrs.get(index as usize)?;
    if !gates_are_open(rules, pdr) {
        return None;
    }
    record.pdr = index;
    record.flags |= flag::LIVE;
    if pdr.source.is_uplink() {
        record.flags |= flag::UPLINK;
    }
    match treatment(rules, pdr) {
        Treatment::Plain(choice) => record.set_choice(choice),
        Treatment::Tunnel(Tunnelled { teid, flags, qfi, tos, paging_policy: None, .. }) => {
            record.flags |= flag::OUTER | flags;
            record.remote_teid = teid;
            record.peer = session.peer(pdr.far);
            record.tos = tos;
            record.qfi = qfi;
        }
        _ => return None,
    }
    Some(record)
}

/// The record of a PDR, for packets whose flow says that it is theirs. One that can't say everything is
/// [`flag::COMPLEX`].
pub(crate) fn rule_record<F>(session: &Session<F>, slot: u32, index: u16) -> Record {
    let empty = Record { session: slot as u16, pdr: index, ..Record::default() };
    let complex = Record { flags: flag::LIVE | flag::COMPLEX, ..empty };
    let Some(mut record) = with_way(session, empty, index) else { return complex };
    let uplink = record.has(flag::UPLINK);
    let mut meters = [NO_METER; MAX_METERS];
    let mut places = meters.iter_mut();
    let (first, markers) = (session.meters.start(), session.markers.start());
    for number in police::numbers(&session.rules, index, uplink, first, markers) {
        let Some(place) = places.next() else { return complex };
        *place = number;
    }
    if meters != [NO_METER; MAX_METERS] {
        record.set_shared_meters(meters);
    }
    record
}
