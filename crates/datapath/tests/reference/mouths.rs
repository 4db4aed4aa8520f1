//! Who speaks into which tunnel: the check of outer sources once more, as a table of who was heard where.

use datapath::CheckSource;
use packet::Teid;
use session::rules::*;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use tables::Nanos;

/// The first who was heard may be silent for so long.
const PATIENCE: Nanos = Nanos(30_000_000_000);
/// And may be late for so long, when the session has moved elsewhere.
const AFTERWARDS: Nanos = Nanos(1_000_000_000);

/// Whose tunnel it is.
struct Mouth {
    address: IpAddr,
    heard: Nanos,
    /// When the session moved elsewhere, if it did since.
    moved: Option<Nanos>,
}

pub struct Mouths {
    mode: CheckSource,
    of: HashMap<Teid, Mouth>,
}

impl Mouths {
    pub fn new(mode: CheckSource) -> Self {
        Self { mode, of: HashMap::new() }
    }

    /// Whether a packet from here may be in the tunnel. `ue`: whose packet it says it is.
    pub fn may_speak(&mut self, now: Nanos, rules: &Rules, teid: Teid, from: IpAddr, ue: IpAddr) -> bool {
        let named = named(rules, teid);
        match self.mode {
            CheckSource::Off => true,
            CheckSource::Strict => named.is_empty() || named.contains(&from),
            CheckSource::Learn => self.is_believed(now, &named, rules, teid, from, ue),
        }
    }

    fn is_believed(
        &mut self,
        now: Nanos,
        named: &BTreeSet<IpAddr>,
        rules: &Rules,
        teid: Teid,
        from: IpAddr,
        ue: IpAddr,
    ) -> bool {
        let lies = users(rules, teid).iter().all(|pdr| pdr.source == Source::Access) && !may_be(rules, ue);
        match self.of.get_mut(&teid) {
            // The one who always speaks.
            Some(mouth) if mouth.address == from && mouth.moved.is_none() => {
                mouth.heard = now;
                return true;
            }
            // The one who did until the session moved: late, for a while.
            Some(mouth)
                if mouth.address == from
                    && mouth.moved.is_some_and(|moved| ticks(now) - ticks(moved) < ticks(AFTERWARDS))
                    && !named.contains(&from) =>
            {
                return true;
            }
            // Somebody else, while the one is there.
            Some(mouth) if mouth.moved.is_none() && ticks(now) - ticks(mouth.heard) < ticks(PATIENCE) => {
                return named.contains(&from);
            }
            _ => {}
        }
        if !lies {
            self.of.insert(teid, Mouth { address: from, heard: now, moved: None });
        }
        true
    }

    /// A session's rules are others now.
    pub fn change(&mut self, now: Nanos, before: Option<&Rules>, after: &Rules) {
        let Some(before) = before else { return self.forget(after) };
        let tunnels = |rules: &Rules| -> BTreeSet<u32> {
            rules.pdrs.iter().filter_map(|pdr| pdr.tunnel).map(|tunnel| tunnel.teid.0).collect()
        };
        for teid in tunnels(before).union(&tunnels(after)).copied().map(Teid) {
            if users(before, teid).is_empty() || users(after, teid).is_empty() {
                self.of.remove(&teid);
            } else if named(before, teid) != named(after, teid)
                && let Some(mouth) = self.of.get_mut(&teid)
            {
                mouth.moved = Some(now);
            }
        }
    }

    /// A session is gone.
    pub fn forget(&mut self, rules: &Rules) {
        for tunnel in rules.pdrs.iter().filter_map(|pdr| pdr.tunnel) {
            self.of.remove(&tunnel.teid);
        }
    }
}

/// Times are known to 2^24 ns.
fn ticks(time: Nanos) -> u64 {
    time.0 >> 24
}

fn users(rules: &Rules, teid: Teid) -> Vec<&Pdr> {
    rules.pdrs.iter().filter(|pdr| pdr.tunnel.is_some_and(|tunnel| tunnel.teid == teid)).collect()
}

/// The far ends on the side of the tunnel's users, unless one of these sends back to where its packets come from.
fn named(rules: &Rules, teid: Teid) -> BTreeSet<IpAddr> {
    let mut all = BTreeSet::new();
    for user in users(rules, teid) {
        let facing = |forward: &Forward| match user.source {
            Source::Access => forward.destination == Destination::Access,
            Source::Core | Source::N6Lan => {
                [Destination::Core, Destination::N6Lan].contains(&forward.destination)
            }
            Source::CpFunction => forward.destination == Destination::CpFunction,
        };
        if matches!(&rules.fars[user.far as usize].action, Action::Forward(own) if facing(own)) {
            return BTreeSet::new();
        }
        for far in &rules.fars {
            if let Action::Forward(forward) = &far.action
                && facing(forward)
            {
                all.extend(forward.outer_header.map(|outer| outer.peer));
            }
        }
    }
    all
}

/// Whether a UE's packet may have this source, as far as that is known.
fn may_be(rules: &Rules, source: IpAddr) -> bool {
    if rules.ue_ipv4.is_none() && rules.ue_ipv6.is_none() {
        return true;
    }
    match source {
        IpAddr::V4(a) => rules.ue_ipv4 == Some(a) || rules.framed_ipv4.iter().any(|net| net.contains(&a)),
        IpAddr::V6(a) => {
            rules.ue_ipv6.is_some_and(|net| net.contains(&a))
                || rules.framed_ipv6.iter().any(|net| net.contains(&a))
        }
    }
}
