//! What judging a packet is going to read, asked for ahead.
//!
//! **Problem.** A flow's first packet meets a session of which nothing is in the cache: from the session's slot to its rules,
//! their filters and the filters' ports it is a chain of seven dependent accesses to some thirty lines, and each packet of a burst
//! waits for all of its own. A scan, or the minute after an outage, consists of such packets.
//!
//! **Model.** All packets of a burst whose flow isn't known take the chain together, one link at a time: while one packet's line is on its
//! way, the others' are asked for. A step reads only what the step before it fetched. Nothing is decided here, and nothing kept: what
//! was fetched in vain costs time and no more.
//!
//! **When not to use it.** For packets of known flows, of which there are more: they don't come here.

use crate::meta::{Kind, Meta};
use crate::state::flow::Lookup;
use crate::state::rules;
use crate::state::shard::Shard;
use session::rules::{Pdr, Rules};
use std::iter::zip;
use tables::prefetch::{prefetch, prefetch_lines, prefetch_slice_at};

/// PDRs of a session that are asked for, at most. Who has more has a classifier, which leaves most out.
const PDRS: usize = 8;
/// Lines of a session, or of its rules.
const LINES: usize = 4;
/// Lines of a PDR, of its filters, and of each other small table of a session.
const FEW: usize = 2;

/// Asks for what packets need whose flow is under question, and the first `most` of those whose flow isn't known. `shards` are the worker's.
#[inline(never)]
pub fn fetch<F>(shards: &[Option<Box<Shard<F>>>], metas: &[Meta], lookups: &[Option<Lookup>], most: usize) {
    let all = || {
        zip(metas, lookups).filter_map(|(meta, lookup)| {
            let lookup = lookup.as_ref().filter(|lookup| !lookup.is_settled())?;
            Some((shards.get(usize::from(meta.shard))?.as_deref()?, meta, lookup))
        })
    };
    let unknown = || {
        let strangers = all().filter(|(_, _, lookup)| lookup.is_stranger()).take(most);
        strangers.filter_map(|(shard, meta, lookup)| {
            Some((shard, meta, lookup, u32::from(shard.record(meta)?.session)))
        })
    };
    // Those under question go by handles: to a conversation and the rule that they have so far, and to what the inspector remembers.
    let questioned = || {
        all()
            .filter(|(_, _, lookup)| lookup.is_under_question())
            .filter_map(|(shard, _, lookup)| Some((shard, shard.conversations.as_deref()?, lookup.rule)))
    };
    for (_, conversations, handle) in questioned() {
        conversations.expect_hung(handle);
    }
    for (shard, _, lookup, slot) in unknown() {
        prefetch_slice_at(&shard.sessions, slot as usize);
        shard.flows.expect(lookup.probe);
    }
    for (shard, conversations, handle) in questioned() {
        if let Some(rule) = conversations.expect_conversation(handle) {
            prefetch_slice_at(shard.rules.elements(), rule as usize);
        }
    }
    let sessions =
        || unknown().filter_map(|(shard, meta, _, slot)| Some((shard, meta, shard.session(slot)?)));
    for (_, _, session) in sessions() {
        prefetch_lines(std::slice::from_ref(session), LINES);
    }
    for (shard, meta, session) in sessions() {
        prefetch_lines(std::slice::from_ref(&*session.rules), LINES);
        prefetch_lines(shard.meters.get(session.meters), FEW);
        if meta.kind == Kind::Plain {
            prefetch_lines(&session.peers, 1);
        }
    }
    for (_, _, session) in sessions() {
        let rules = &*session.rules;
        match &rules.classifier {
            Some(classifier) => prefetch(&**classifier),
            None => prefetch_lines(&rules.pdrs, FEW * PDRS),
        }
        prefetch_lines(&rules.fars, FEW);
        prefetch_lines(&rules.qers, FEW);
    }
    let few = || sessions().filter(|(_, _, session)| session.rules.classifier.is_none());
    for (shard, meta, session) in few() {
        let records = shard.rules.get(session.rule_records);
        for (index, pdr) in candidates(&session.rules, meta) {
            prefetch_slice_at(records, usize::from(index));
            prefetch_lines(&pdr.filters, FEW);
            prefetch_lines(&pdr.qers, 1);
        }
    }
    // Where somebody is going to be asked for an application: the conversation, and then what the inspector remembers of it.
    let asking = || {
        unknown().filter_map(|(shard, meta, lookup, slot)| {
            let (conversations, rules) = (shard.conversations.as_deref()?, &*shard.session(slot)?.rules);
            let asks = || candidates(rules, meta).any(|(_, pdr)| pdr.application.is_some());
            let is_asked = conversations.of_all || (rules.classifier.is_none() && asks());
            is_asked.then_some((conversations, lookup, rules))
        })
    };
    for (conversations, lookup, rules) in asking() {
        conversations.expect(&lookup.key.ends(), rules.seid);
    }
    for (_, meta, session) in few() {
        for (_, pdr) in candidates(&session.rules, meta) {
            if let Some(filter) = pdr.filters.first() {
                prefetch_lines(&filter.source_ports, 1);
                prefetch_lines(&filter.destination_ports, 1);
            }
        }
    }
    for (_, conversations, handle) in questioned() {
        conversations.expect_state(handle);
    }
}

/// Rules that a packet may be classified by, of those that were asked for.
fn candidates<'r>(rules: &'r Rules, meta: &Meta) -> impl Iterator<Item = (u16, &'r Pdr)> {
    let tunnel = (meta.kind == Kind::Tunnel).then_some(meta.teid);
    rules::candidates(rules, tunnel).take(PDRS)
}
