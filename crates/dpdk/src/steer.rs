//! Receive queues ahead of RSS: which of them a NIC can be made to fill.
//!
//! **The problem.** [`Steering`] wants a queue for control protocols and queues for groups of code points. On a NIC that takes
//! `rte_flow` rules a rule is a line in its tables; but drivers differ in what they take, nobody knows without asking, and a
//! queue that nothing is steered to, or that RSS spreads ordinary packets over, is worse than none.
//!
//! **The model.** The device is started with its ordinary queues and asked which rules it *would* take. What it wouldn't is
//! left out; for the rest it is stopped, and started again with the receive queues that this takes, in the order of
//! [`Steering::place`]; then the rules are given to it. If it refuses after all, the same is done again with less, and in the end with
//! the ordinary queues alone: so there never is a queue that no rule leads to.
//!
//! - *Control protocols* are taken one by one: what is refused goes the ordinary way.
//! - *Groups* are taken whole, and the most urgent first: with the first that is refused those that follow are left out, for
//!   they would otherwise be served before it. A group's packets are spread by the subscriber's address as the ordinary
//!   ones are ([`crate::spread`]), or, where a driver takes no hash with such rules, by the port's own.
//! - *The rest* must stay in the ordinary queues. The port's redirection table says so; a device that has none is given a rule
//!   for all that remains. Where neither can be, nothing is steered. Nor is it where rules could no longer spread packets by
//!   subscriber because of the others that come before them.
//!
//! Priorities put the control queue's rules first, then those of groups (in tunnels before those outside), then those that spread.
//!
//! **The cost.** None per packet. At start one restart of the device where it takes any rule, and a rule or two for each protocol
//! and address: 12 for an address and 6 for all; for a group 6 for a code point, or 8 where whole octets are compared; all of them
//! twice with VLANs.

mod rules;

pub(crate) use rules::Rule;
use rules::Rules;

use io::steering::Steering;

/// A device that may take rules.
pub(crate) trait Nic {
    /// A rule that was taken; dropped, it is given back.
    type Taken;

    /// Stops it, and starts it with the queues for this. `rank`: of the rules that spread packets over the ordinary ones.
    fn restart(&mut self, steering: &Steering, rank: u8) -> Result<(), Stopped>;
    /// How it spreads packets over the ordinary queues.
    fn spreads(&self) -> Spreads;
    /// Whether it would take a rule.
    fn would(&self, rule: &Rule) -> Result<(), String>;
    /// Takes a rule.
    fn take(&self, rule: &Rule) -> Result<Self::Taken, String>;
}

/// Why a device can't be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// What failed.
    pub(crate) step: String,
    /// How.
    pub(crate) errno: i32,
}

/// How a device spreads packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spreads {
    /// By the subscriber's address.
    pub(crate) by_subscriber: bool,
    /// That of the port itself, not of rules.
    pub(crate) port_hash: bool,
    /// The port's redirection table names the ordinary queues and no others.
    pub(crate) table: bool,
    /// The table follows shards that move.
    pub(crate) follows: bool,
}

/// What came of asking.
#[derive(Debug)]
pub(crate) struct Steered<T> {
    /// What holds.
    pub(crate) steering: Steering,
    remarks: Vec<String>,
    /// Drop them before the device.
    _rules: Vec<T>,
}

impl<T> Steered<T> {
    /// Nothing holds, for this reason if something was wanted.
    pub(crate) fn nothing(why: Option<&str>) -> Self {
        let remark = |why| format!("it steers nothing ahead of RSS: {why}");
        Self {
            steering: Steering::default(),
            remarks: why.map(remark).into_iter().collect(),
            _rules: Vec::new(),
        }
    }

    /// For people.
    pub(crate) fn remarks(&self) -> &[String] {
        &self.remarks
    }
}

/// Asks a device that was started with `queues` queues for what is wanted, and leaves it with the queues for what it takes.
///
/// Errors: it can't be started any more.
pub(crate) fn ask<N: Nic>(
    nic: &mut N,
    wanted: &Steering,
    queues: u16,
    tagged: bool,
) -> Result<Steered<N::Taken>, Stopped> {
    let before = nic.spreads();
    let mut found = Found::default();
    let rules = Rules::new(wanted, queues, tagged);
    // No queue but the ordinary ones is there yet.
    let mut next = settle(&rules, wanted, &mut found, |rule| nic.would(&Rule { first: 0, ..*rule })).0;
    let mut ordinary = true;
    while !next.is_none() {
        let rules = Rules::new(&next, queues, tagged);
        ordinary = false;
        if let Err(Stopped { step, errno }) = nic.restart(&next, rules.of_spreading()) {
            let receive = usize::from(queues) + next.extra_queues(queues);
            let cause = crate::error::cause(errno);
            found.nothing =
                Some(format!("it does not start with {receive} receive queues ({step}: {cause})"));
            break;
        }
        let (kept, mut taken) = settle(&rules, &next, &mut found, |rule| nic.take(rule));
        if !kept.is_none() {
            let spreads = nic.spreads();
            if before.by_subscriber && !spreads.by_subscriber {
                found.nothing = Some(
                    "with other rules before it, it takes none that hash the subscriber's address".into(),
                );
                break;
            }
            if !spreads.table {
                match nic.take(&rules.rest()) {
                    Ok(rule) => taken.push(rule),
                    Err(why) => {
                        found.nothing = Some(format!(
                            "it can't keep other packets off such queues (its redirection table can't be changed, and of a rule \
                             for all packets it says: {why})"
                        ));
                        break;
                    }
                }
            }
        }
        if kept == next {
            let remarks = found.remarks(wanted, &kept, queues, nic.spreads());
            return Ok(Steered { steering: kept, remarks, _rules: taken });
        }
        drop(taken);
        next = kept;
    }
    let nothing = Steering::default();
    if !ordinary {
        nic.restart(&nothing, 0)?;
    }
    Ok(Steered { remarks: found.remarks(wanted, &nothing, queues, nic.spreads()), ..Steered::nothing(None) })
}

/// What a device says to all the rules for some steering: what is left of that, and the rules that it has taken.
fn settle<T>(
    rules: &Rules<'_>,
    steering: &Steering,
    found: &mut Found,
    mut one: impl FnMut(&Rule) -> Result<T, String>,
) -> (Steering, Vec<T>) {
    let mut all = |rules: &[Rule]| rules.iter().map(&mut one).collect::<Result<Vec<T>, String>>();
    let mut taken = Vec::new();
    let protocols = rules.control();
    if !protocols.is_empty() {
        found.protocols.clear();
    }
    let mut control = false;
    for protocol in protocols {
        let answer = all(&protocol.rules).map(|of_protocol| taken.extend(of_protocol));
        control |= answer.is_ok();
        found.protocols.push((protocol.name, answer));
    }
    let mut groups = 0;
    for number in 0..steering.groups().len() {
        let mut answer = Err(String::new());
        for form in rules.group(number as u8) {
            match all(&form.rules) {
                Ok(of_group) => {
                    taken.extend(of_group);
                    answer = Ok(form.own_hash);
                    break;
                }
                Err(why) => answer = answer.map_err(|first| if first.is_empty() { why } else { first }),
            }
        }
        let refused = answer.is_err();
        match found.groups.get_mut(number) {
            Some(place) => *place = answer,
            None => found.groups.push(answer),
        }
        if refused {
            found.groups.truncate(number + 1);
            break;
        }
        groups += 1;
    }
    (steering.keep(control, groups), taken)
}

/// What a device said last.
#[derive(Default)]
struct Found {
    protocols: Vec<(&'static str, Result<(), String>)>,
    /// Whether its rules name the hash. Beyond the first that is refused nobody asks.
    groups: Vec<Result<bool, String>>,
    /// Why nothing is steered, whatever it said to single rules.
    nothing: Option<String>,
}

impl Found {
    fn remarks(&self, wanted: &Steering, kept: &Steering, queues: u16, spreads: Spreads) -> Vec<String> {
        if let Some(why) = &self.nothing {
            return Steered::<()>::nothing(Some(why)).remarks;
        }
        let mut remarks = Vec::new();
        if wanted.control().is_some() {
            remarks.push(self.of_control(kept.control().is_some()));
        }
        let names: Vec<&str> = kept.groups().iter().map(|group| group.name.as_str()).collect();
        if !names.is_empty() {
            let own_hash = self.groups.iter().take(names.len()).all(|answer| *answer == Ok(true));
            let spread = match spreads {
                _ if queues < 2 => "",
                Spreads { by_subscriber: true, follows: true, port_hash: true, .. } => {
                    ", by the subscriber's address; of shards that move they are handed over by software"
                }
                Spreads { by_subscriber: true, port_hash, .. } if own_hash || port_hash => {
                    ", by the subscriber's address"
                }
                _ => ", by a hash of its own: they reach their worker by hand-off",
            };
            remarks.push(format!(
                "packets of groups ({}) come to queues of their own{spread}",
                names.join(", ")
            ));
        }
        if let (Some(group), Some(Err(why))) =
            (wanted.groups().get(names.len()), self.groups.get(names.len()))
        {
            let others = if wanted.groups().len() > names.len() + 1 { " and less urgent ones" } else { "" };
            remarks.push(format!("it has no queues for the group {}{others} ({why})", group.name));
        }
        remarks
    }

    fn of_control(&self, queue: bool) -> String {
        let taken = self.protocols.iter().filter(|(_, answer)| answer.is_ok());
        let taken = taken.map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        // Those with the same reason together.
        let mut reasons: Vec<(Vec<&str>, &str)> = Vec::new();
        for (name, why) in
            self.protocols.iter().filter_map(|(name, answer)| Some((name, answer.as_ref().err()?)))
        {
            match reasons.iter_mut().find(|(_, reason)| reason == why) {
                Some((names, _)) => names.push(name),
                None => reasons.push((vec![name], why)),
            }
        }
        let refused = reasons.iter().map(|(names, why)| format!("{} ({why})", names.join(", ")));
        let refused = refused.collect::<Vec<_>>().join("; ");
        match (queue, reasons.as_slice()) {
            (true, []) => format!("its control queue takes {taken}"),
            (true, _) => format!("its control queue takes {taken}; the ordinary way go {refused}"),
            (false, [(_, why)]) => format!("it has no control queue ({why})"),
            (false, _) => format!("it has no control queue: it refuses {refused}"),
        }
    }
}

#[cfg(test)]
mod tests;
