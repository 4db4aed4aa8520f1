//! What the control side orders, carried out between two bursts ([`crate::command`]).

use crate::Config;
use crate::Reason;
use crate::command::Refusal;
use crate::command::{Command, Event, SessionSnapshot, Transition};
use crate::datapath::Datapath;
use crate::network::Context;
use crate::network::neighbour::Word;
use crate::network::peer::NO_PEER;
use crate::outbox::Outbox;
use crate::state::export::Ledger;
use crate::state::install::Installed;
use crate::state::limits::Rates;
use crate::state::rules;
use io::{Frame, FramePool};
use pfcp::UrrId;
use session::rules::Rules;
use session::usage::Trigger;
use session::{SessionRef, ShardId};
use std::sync::Arc;
use tables::Nanos;

/// Neighbours' places that are looked at between two bursts: some microseconds.
const LOOK: u32 = 512;

impl<F: Frame> Datapath<F> {
    /// Carries out an order of the control side.
    pub fn apply<P: FramePool<Frame = F>>(
        &mut self,
        now: Nanos,
        command: Command,
        out: &mut Outbox<F>,
        pool: &mut P,
    ) {
        let mut cx = Context { now, out, pool, strangers: u32::MAX };
        match command {
            Command::Install { token, rules, transition, query } => {
                match self.install(&mut cx, &rules, &transition, &query) {
                    Ok(installed) => cx.out.events.push(Event::Applied {
                        token,
                        found: installed.found,
                        usage: installed.usage,
                    }),
                    Err(refusal) => cx.out.events.push(Event::Refused { token, refusal }),
                }
            }
            Command::Restore { token, rules, counted } => {
                let place = rules.place;
                let event = match self.install(&mut cx, &rules, &Transition::default(), &[]) {
                    Ok(_) => {
                        let shard = self.shard_mut(place.shard);
                        let whole = shard.is_some_and(|shard| shard.import(place.slot, &counted, now));
                        Event::Restored { token, whole }
                    }
                    Err(refusal) => Event::Refused { token, refusal },
                };
                cx.out.events.push(event);
            }
            Command::Export { token, shard, slots } => {
                let mut sessions = Vec::with_capacity(slots.len());
                if let Some(owned) = self.shard_mut(shard) {
                    let exported = |&slot: &u32| {
                        let seid = owned.session(slot)?.rules.seid;
                        Some((seid, owned.export(slot, now)?.into()))
                    };
                    sessions.extend(slots.iter().filter_map(exported));
                }
                cx.out.events.push(Event::Exported { token, sessions });
            }
            Command::Remove { token, session: place } => {
                let removed = self.shards.get_mut(place.shard.index()).and_then(|shard| {
                    let shard = shard.as_deref_mut()?;
                    let before = shard.divided();
                    let removed = shard.remove(place.slot);
                    self.divided = self.divided - before + shard.divided();
                    removed
                });
                self.purge_flows(cx.now, place.shard);
                let event = match removed {
                    Some(mut session) => {
                        if let Some(shard) = self.shard_mut(place.shard) {
                            shard.buffered -= session.waiting.len() as u32;
                        }
                        self.forget_translations(&mut cx, place.shard, &session.rules, None);
                        self.network.peers.release_all(&session.peers);
                        for frame in session.waiting.drain(..) {
                            self.counters.buffered -= 1;
                            self.counters.drop(Reason::BufferDiscarded);
                            drop(frame);
                        }
                        cx.out.events.extend(mirrors_ended(std::mem::take(&mut session.mirrors)));
                        let usage = session.books.report(&session.rules, &[], Trigger::Termination);
                        Event::Applied { token, found: true, usage }
                    }
                    None => Event::Applied { token, found: false, usage: Vec::new() },
                };
                cx.out.events.push(event);
            }
            Command::Query { token, session, urrs, trigger } => {
                let mut event = Event::Applied { token, found: false, usage: Vec::new() };
                if let Some(shard) = self.shard_mut(session.shard) {
                    shard.fold(session.slot);
                    if let Some(session) = shard.session_mut(session.slot) {
                        let usage = session.books.report(&session.rules, &urrs, trigger);
                        event = Event::Applied { token, found: true, usage };
                    }
                    shard.grant(session.slot);
                }
                cx.out.events.push(event);
            }
            Command::Inspect { token, session } => {
                let snapshot = self.snapshot(session).map(Box::new);
                cx.out.events.push(Event::Snapshot { token, session: snapshot });
            }
            Command::Neighbours { token, from } => {
                let (seen, next) = self.network.neighbours.look(from, LOOK);
                cx.out.events.push(Event::Neighbours { token, seen: seen.into(), next });
            }
            Command::Directory { teid, place } => self.directory.set_teid(teid, place),
            Command::AddressDirectory { prefix, session } => self.directory.set_prefix(prefix, session),
            Command::Limits(config) => self.change_limits(&config),
            Command::Mirror(order) => self.change_mirrors(&mut cx, order),
            Command::FlowMarks(marks) => self.set_marks(marks),
            Command::CountCarried => self.carried.ask(),
            Command::CountStages { clock, until } => self.count_stages(now, clock, until),
            Command::Neighbour { interface, address, mac, confirmed } => {
                let word = Word::Shared { confirmed };
                self.network.hear(&mut cx, &mut self.counters, interface, address, mac, word);
            }
            Command::Fib(fib) => {
                let plan = fib.nat().cloned();
                self.network.replace(&mut cx, &mut self.counters, fib);
                self.size_counters();
                self.translate_by(now, plan, &mut cx.out.events);
            }
        }
        self.settle_aside(&mut cx);
    }

    fn install<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        rules: &Arc<Rules>,
        transition: &Transition,
        query: &[UrrId],
    ) -> Result<Installed, Refusal> {
        let Some(Some(shard)) = self.shards.get_mut(rules.place.shard.index()) else {
            return Err(Refusal::NotOwned);
        };
        let mut peers = Vec::with_capacity(rules.fars.len());
        let mut full = false;
        for far in &rules.fars {
            let peer =
                rules::remote(far.action).map_or(Some(NO_PEER), |peer| self.network.acquire_peer(peer));
            full |= peer.is_none();
            peers.push(peer.unwrap_or(NO_PEER));
        }
        if full {
            self.network.peers.release_all(&peers);
            return Err(Refusal::TooManyPeers);
        }
        let former = shard.nat.as_ref().and_then(|_| shard.session(rules.place.slot));
        let former = former.map(|session| Arc::clone(&session.rules));
        let before = shard.divided();
        let installed = shard.install(rules, peers.clone().into(), query, &transition.end_markers, cx.now);
        self.divided = self.divided - before + shard.divided();
        let (mut installed, before) = match installed {
            Ok(done) => done,
            Err(refusal) => {
                self.network.peers.release_all(&peers);
                return Err(refusal);
            }
        };
        if let Some(former) = former {
            self.forget_translations(cx, rules.place.shard, &former, Some(rules));
        }
        for (peer, teid) in &installed.left {
            self.end_marker(cx, *peer, *teid);
        }
        if installed.replaced {
            self.purge_flows(cx.now, rules.place.shard);
        }
        cx.out.events.extend(mirrors_ended(std::mem::take(&mut installed.mirrors)));
        // Only now: the old tunnel's far end was still needed.
        self.network.peers.release_all(&before);
        self.flush(cx, rules.place, transition.drop_buffered || installed.replaced);
        Ok(installed)
    }

    /// A session is gone: its flows follow, the first of them now.
    fn purge_flows(&mut self, now: Nanos, shard: ShardId) {
        let Some(Some(shard)) = self.shards.get_mut(shard.index()) else { return };
        let (export, counters) = (&mut self.export, &mut self.counters.flows);
        shard.purge_flows(&mut Ledger { now, export, counters, room: &mut self.room });
    }

    /// Limits and rates are others from now on. Nothing goes at once that is beyond a lower one: where something new comes, two or three
    /// of the old go, so that no packet waits for the clearing of a table. What else a configuration says is for the start.
    pub(crate) fn change_limits(&mut self, new: &Config) {
        let own = &mut self.config;
        let rates = |config: &Config| (config.echo_rate, config.error_rate, config.icmp_rate);
        if rates(own) != rates(new) {
            (own.echo_rate, own.error_rate, own.icmp_rate) = rates(new);
            self.rates = Rates::new(own);
        }
        // These are looked at where they matter.
        own.buffered.resize(&new.buffered);
        own.flows_per_session = new.flows_per_session;
        own.flow_idle = new.flow_idle;
        own.new_flows_in_overload = new.new_flows_in_overload;
        own.flows = new.flows;
        self.room.set_limit(new.flows);
        self.network.neighbours.set_limit(new.neighbours);
        self.reassembly.set_limit(new.reassemblies);
        self.fragment_flows.set_limit(new.fragment_flows);
        self.nat_fragments.set_limit(new.fragment_flows);
        for shard in self.shards.iter_mut().flatten() {
            shard.flows.set_limit(new.flows);
            shard.flows.join(&mut self.supply);
            shard.check_sources(new.check_source);
        }
        if own.check_source != new.check_source {
            own.check_source = new.check_source;
            // Devices forward tunnels' packets only where their sources are not checked: each rule is looked at anew.
            self.network.generation += 1;
        }
    }

    fn snapshot(&mut self, place: SessionRef) -> Option<SessionSnapshot> {
        let shard = self.shard_mut(place.shard)?;
        shard.fold(place.slot);
        shard.grant(place.slot);
        let id = shard.id();
        let session = shard.session(place.slot)?;
        let pdrs = session.rules.pdrs.iter().zip(&session.books.pdrs);
        let (last_packet, last_measured) = session.books.activity(&session.rules);
        let (applications, all_applications) = shard.applications_of(session.rules.seid);
        Some(SessionSnapshot {
            seid: session.rules.seid,
            shard: id,
            pdrs: pdrs.map(|(pdr, state)| (pdr.id, state.packets, state.bytes)).collect(),
            urrs: session.books.measured(&session.rules).collect(),
            consumed: session.books.consumed(&session.rules).collect(),
            drops: session.drops(),
            buffered: session.waiting.len() as u32,
            heard: shard.heard(session),
            last_packet,
            last_measured,
            applications,
            all_applications,
        })
    }
}

/// Told if a session had mirrors.
fn mirrors_ended(numbers: Vec<u16>) -> Option<Event> {
    (!numbers.is_empty()).then_some(Event::MirrorsEnded { numbers })
}
