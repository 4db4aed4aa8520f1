//! What a rule does with its packets, as far as no packet has a say in it.
//!
//! A FAR and the QERs of its PDR are read here, and nowhere else: a record keeps what it can hold of the answer, and the slow path asks anew
//! for each packet. What the two did of a packet could differ otherwise.

use crate::nat::Choice;
use crate::state::record::flag;
use packet::{Dscp, Qfi};
use session::rules::{Action, Destination, Forward, Pdr, Rules};

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Treatment {
    /// The FAR says so, or there is none.
    Drop,
    /// To where the SMF has not said yet; or to the SMF, which takes no packets but in a tunnel.
    Unresolved,
    /// Kept until the SMF says more.
    Buffer {
        /// The SMF is told.
        notify: bool,
        /// So many are kept.
        packets: u16,
    },
    /// Answered here, by that one of the rules' URLs.
    Redirect(u16),
    /// Out of all tunnels, by its own destination.
    Plain(Choice),
    /// Into a tunnel.
    Tunnel(Tunnelled),
}

/// What all packets of a rule have in common that leave in a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tunnelled {
    /// The far end's.
    pub teid: u32,
    /// How the container is made: [`flag::CONTAINER`], [`flag::TO_ACCESS`], [`flag::MARK`] and [`flag::REFLECTIVE`]; and
    /// [`flag::DSCP_BY_QFI`].
    pub flags: u32,
    /// See [`flag::MARK`].
    pub qfi: u8,
    /// ToS octet of the outer header, if the rule says one.
    pub tos: u8,
    /// Paging policy indicator, which a record has no room for.
    pub paging_policy: Option<u8>,
    /// To the SMF, which also takes what never leaves a link.
    pub to_smf: bool,
}

/// What becomes of packets that this rule matches. Gates, rates and quotas are not in it: these are asked packet by packet.
pub(crate) fn treatment(rules: &Rules, pdr: &Pdr) -> Treatment {
    let forward = match rules.fars.get(usize::from(pdr.far)).map(|far| far.action) {
        Some(Action::Forward(forward)) => forward,
        Some(Action::ForwardUnresolved) => return Treatment::Unresolved,
        Some(Action::Buffer { notify, packets }) => return Treatment::Buffer { notify, packets },
        Some(Action::Drop) | None => return Treatment::Drop,
    };
    // Only a UE asks for pages.
    match forward.redirect.filter(|_| pdr.source.is_uplink()) {
        Some(url) => Treatment::Redirect(url),
        None => onward(rules, pdr, &forward),
    }
}

/// Where the packets of a rule that redirects would go to whom they are for, as far as that is known: connections that were there before are.
pub(crate) fn past_redirection(rules: &Rules, pdr: &Pdr) -> Treatment {
    let far = rules.fars.get(usize::from(pdr.far));
    let Some(Action::Forward(forward)) = far.map(|far| far.action) else { return Treatment::Drop };
    match forward.destination {
        // To the UE itself, which says nothing of where its packets went (TS 29.244 table 8.2.24-1, NOTE 4).
        Destination::Access => Treatment::Plain(Choice::of(&forward)),
        _ => onward(rules, pdr, &forward),
    }
}

fn onward(rules: &Rules, pdr: &Pdr, forward: &Forward) -> Treatment {
    let to_smf = forward.destination == Destination::CpFunction;
    let Forward { outer_header: Some(outer), destination, transport_marking, .. } = *forward else {
        let is_known = matches!(forward.destination, Destination::Core | Destination::N6Lan);
        return if is_known { Treatment::Plain(Choice::of(forward)) } else { Treatment::Unresolved };
    };
    let qers = || pdr.qers.iter().filter_map(|qer| rules.qers.get(usize::from(*qer)));
    let to_access = destination == Destination::Access;
    let marking = rules.marking(pdr);
    let flags = [
        (!to_smf, flag::CONTAINER),
        (to_access, flag::TO_ACCESS),
        (to_access && qers().any(|qer| qer.reflective), flag::REFLECTIVE),
        (marking.is_some(), flag::MARK),
        (transport_marking.is_none() && !to_smf, flag::DSCP_BY_QFI),
    ];
    Treatment::Tunnel(Tunnelled {
        teid: outer.teid.0,
        flags: flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag).sum(),
        qfi: marking.map_or(0, Qfi::get),
        tos: transport_marking.map_or(0, Dscp::to_tos),
        paging_policy: if to_access { qers().find_map(|qer| qer.paging_policy) } else { None },
        to_smf,
    })
}

/// Whether no QER of the rule has closed its gate (TS 29.244 §5.4.3).
pub(crate) fn gates_are_open(rules: &Rules, pdr: &Pdr) -> bool {
    let uplink = pdr.source.is_uplink();
    let mut qers = pdr.qers.iter().filter_map(|qer| rules.qers.get(usize::from(*qer)));
    qers.all(|qer| if uplink { qer.uplink_open } else { qer.downlink_open })
}
