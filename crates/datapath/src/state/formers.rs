//! Whose flows of former classifications are.

use crate::state::shard::Session;
use pfcp::{PdrId, Seid};
use session::prefixes::upper_half;
use std::collections::HashMap;

/// A session's classification that is no more, and of which there are flows.
#[derive(Debug)]
pub(crate) struct Former {
    pub seid: Seid,
    pub prefix: u64,
    /// Number that its first rule's record had.
    pub start: u32,
    /// Its rules, and whether they were about packets from the UE.
    pub rules: Box<[(PdrId, bool)]>,
    /// Flows that are left.
    pub flows: u32,
    /// The session is no more: they are looked for, and end.
    pub gone: bool,
}

/// By version.
pub(crate) type Formers = HashMap<u32, Former>;

/// A session's classification comes to its end. Its flows are still there.
pub(crate) fn retire<F>(formers: &mut Formers, session: &Session<F>) {
    if session.current > 0 && session.rule_records.len() > 0 {
        let rules = &session.rules;
        let former = Former {
            seid: rules.seid,
            prefix: rules.ue_ipv6.map_or(0, |prefix| upper_half(prefix.network())),
            start: session.rule_records.start(),
            rules: rules.pdrs.iter().map(|pdr| (pdr.id, pdr.source.is_uplink())).collect(),
            flows: session.current,
            gone: false,
        };
        formers.insert(session.versions.1, former);
    }
}

/// A session whose classification has retired is no more: how many flows are left of it.
pub(crate) fn bereave<F>(formers: &mut Formers, session: &Session<F>) -> u32 {
    let mut flows = 0;
    let mut lose = |former: &mut Former| {
        former.gone = true;
        flows += former.flows;
    };
    if session.flows > session.current {
        // It had others before.
        let its = |former: &&mut Former| former.seid == session.rules.seid && !former.gone;
        formers.values_mut().filter(its).for_each(lose);
    } else if let Some(former) = formers.get_mut(&session.versions.1).filter(|_| session.current > 0) {
        lose(former);
    }
    flows
}
