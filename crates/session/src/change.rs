//! A request taken in: what the session would be, on a copy.
//!
//! A [`Plan`] starts from the session's thawed model (or from nothing) and applies the request's IEs in the order removals,
//! creations, updates, whatever their order in the message. Nothing outside the plan changes: tunnels and addresses are
//! only *wished for* here, and [`crate::store`] grants the wishes, compiles the whole, and commits or drops it.
//!
//! How IEs merge is where SMFs differ, and the rules are those of docs/interop.md: a repeated Create replaces; an Update
//! replaces the IEs that it carries and keeps the others, also inside PDI and Forwarding Parameters (Open5GS leaves out
//! F-TEID, UE address and QFI, free5GC repeats all); a list of SDF filters is replaced as a whole if there is one.

use crate::config::{Config, Limits};
use crate::dialect::{
    application, apply, destination, distinct, framed_route, merge_qer, merge_urr, new_far, outer_header,
    policy, redirect, sane, source, triggers,
};
use crate::model::{Apply, Bar, Filter, Model, Pdr, Qer, Urr, find, find_mut, position, put};
use crate::refusal::{Bound, Feature, Refusal};
use crate::rules::VolumeLimit;
use crate::sdf::{Extras, Flow};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use packet::Dscp;
use pfcp::ie::{FTeid, MeasurementMethod, SdfFilter, UeIpAddress};
use pfcp::message::{
    CreateBar, CreateFar, CreatePdr, CreateQer, CreateUrr, Pdi, SessionEstablishmentRequest,
    SessionModificationRequest, UpdateFar, UpdatePdr, UpdateQer, UpdateUrr,
};
use pfcp::{FarId, PdrId, RuleId, UrrId};
use std::net::Ipv4Addr;

/// An address of the UE that the request names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wish<T> {
    /// None.
    #[default]
    Nothing,
    /// The UPF shall choose; asked for by this PDR.
    Choose(PdrId),
    /// This one; named by this PDR.
    Given(PdrId, T),
}

impl<T: Copy + PartialEq> Wish<T> {
    /// Joins another PDR's wish. A given address satisfies those who left the choice. False: two that differ.
    fn join(&mut self, other: Self) -> bool {
        match (*self, other) {
            (Self::Given(_, a), Self::Given(_, b)) => return a == b,
            (Self::Nothing, _) | (_, Self::Given(..)) => *self = other,
            _ => {}
        }
        true
    }
}

/// A tunnel that a PDR asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TunnelWish {
    /// The PDR.
    pub pdr: PdrId,
    /// What it said.
    pub fteid: FTeid,
    /// It said so in an Update: what it has already may do.
    pub update: bool,
}

/// What a session would be, and what for that has to be found.
#[derive(Debug, Default)]
pub struct Plan<'a> {
    /// The session.
    pub model: Model,
    /// F-TEIDs asked for.
    pub tunnels: Vec<TunnelWish>,
    /// The UE's IPv4 address.
    pub ipv4: Wish<Ipv4Addr>,
    /// The UE's IPv6 prefix.
    pub ipv6: Wish<Ipv6Net>,
    /// Who wants to be told the UE's addresses, with its question.
    pub ue_questions: Vec<(PdrId, UeIpAddress)>,
    /// Network Instance of a PDR that left the choice of address to us: may name the pool.
    pub pool_name: Option<&'a [u8]>,
    /// FARs that asked for an end marker and whose outer header really changes.
    pub end_markers: Vec<FarId>,
    /// URRs that are no more.
    pub removed_urrs: Vec<UrrId>,
    /// IDs of filters that this request described.
    described: Vec<u32>,
}

impl<'a> Plan<'a> {
    /// Takes in an establishment.
    pub fn establish(request: &SessionEstablishmentRequest<'a>, config: &Config) -> Result<Self, Refusal> {
        if let Some(pfcp::ie::PdnType::ETHERNET | pfcp::ie::PdnType::NON_IP) = request.pdn_type {
            return Err(Refusal::Unsupported(Feature::PdnType));
        }
        if request.create_pdrs.is_empty() {
            return Err(Refusal::Empty);
        }
        let mut plan = Self::default();
        plan.model.inactivity_timer = sane(request.inactivity_timer);
        plan.model.slice = config.slice(request);
        plan.model.about = crate::about::pack(request);
        plan.model.pdrs.reserve_exact(request.create_pdrs.len().min(config.limits.pdrs));
        plan.model.fars.reserve_exact(request.create_fars.len().min(config.limits.fars));
        plan.model.qers.reserve_exact(request.create_qers.len().min(config.limits.qers));
        plan.model.urrs.reserve_exact(request.create_urrs.len().min(config.limits.urrs));
        plan.create(
            config,
            &request.create_pdrs,
            &request.create_fars,
            &request.create_qers,
            &request.create_urrs,
            &request.create_bars,
        )?;
        plan.resolve_filters()?;
        Ok(plan)
    }

    /// Takes in a modification of `model`.
    pub fn modify(
        model: Model,
        request: &SessionModificationRequest<'a>,
        config: &Config,
    ) -> Result<Self, Refusal> {
        let mut plan = Self { model, ..Self::default() };
        if let Some(seconds) = request.inactivity_timer {
            plan.model.inactivity_timer = sane(Some(seconds));
        }
        plan.remove(request)?;
        plan.create(
            config,
            &request.create_pdrs,
            &request.create_fars,
            &request.create_qers,
            &request.create_urrs,
            &request.create_bars,
        )?;
        for bar in &request.update_bars {
            let old =
                find_mut(&mut plan.model.bars, bar.id).ok_or(Refusal::UnknownRule(RuleId::Bar(bar.id)))?;
            old.delay = bar.notification_delay.or(old.delay);
            old.packets = bar.suggested_packets.map(u16::from).or(old.packets);
        }
        for urr in &request.update_urrs {
            plan.update_urr(urr)?;
        }
        for qer in &request.update_qers {
            plan.update_qer(qer)?;
        }
        for far in &request.update_fars {
            plan.update_far(far, config, request.flags.send_end_marker)?;
        }
        for pdr in &request.update_pdrs {
            plan.update_pdr(pdr, config)?;
        }
        plan.resolve_filters()?;
        Ok(plan)
    }

    fn remove(&mut self, request: &SessionModificationRequest<'a>) -> Result<(), Refusal> {
        let model = &mut self.model;
        for &id in &request.remove_pdrs {
            let at = position(&model.pdrs, id).map_err(|_| Refusal::UnknownRule(RuleId::Pdr(id)))?;
            model.pdrs.remove(at);
        }
        for &id in &request.remove_fars {
            let at = position(&model.fars, id).map_err(|_| Refusal::UnknownRule(RuleId::Far(id)))?;
            model.fars.remove(at);
        }
        // An Update PDR can't say "no QER any more", so that removing a QER or URR is also how a PDR loses its last one.
        // It is not lost if the same message creates it anew.
        for &id in &request.remove_qers {
            let at = position(&model.qers, id).map_err(|_| Refusal::UnknownRule(RuleId::Qer(id)))?;
            model.qers.remove(at);
            if !request.create_qers.iter().any(|qer| qer.id == id) {
                model.pdrs.iter_mut().for_each(|pdr| pdr.qers.retain(|qer| *qer != id));
            }
        }
        for &id in &request.remove_urrs {
            let at = position(&model.urrs, id).map_err(|_| Refusal::UnknownRule(RuleId::Urr(id)))?;
            model.urrs.remove(at);
            if !request.create_urrs.iter().any(|urr| urr.id == id) {
                model.pdrs.iter_mut().for_each(|pdr| pdr.urrs.retain(|urr| *urr != id));
                self.removed_urrs.push(id);
            }
        }
        for &id in &request.remove_bars {
            let at = position(&model.bars, id).map_err(|_| Refusal::UnknownRule(RuleId::Bar(id)))?;
            model.bars.remove(at);
            for far in model.fars.iter_mut().filter(|far| far.bar == Some(id)) {
                far.bar = None;
            }
        }
        Ok(())
    }

    fn create(
        &mut self,
        config: &Config,
        pdrs: &[CreatePdr<'a>],
        fars: &[CreateFar<'a>],
        qers: &[CreateQer],
        urrs: &[CreateUrr],
        bars: &[CreateBar],
    ) -> Result<(), Refusal> {
        let limits = &config.limits;
        for bar in bars {
            let CreateBar { id, notification_delay: delay, suggested_packets } = *bar;
            put(&mut self.model.bars, Bar { id, delay, packets: suggested_packets.map(u16::from) });
            bound(self.model.bars.len(), limits.bars, Bound::Bars, RuleId::Bar(id))?;
        }
        for urr in urrs {
            let urr = self.new_urr(urr);
            put(&mut self.model.urrs, urr);
            bound(self.model.urrs.len(), limits.urrs, Bound::Urrs, RuleId::Urr(urr.id))?;
        }
        for qer in qers {
            let mut new = Qer {
                id: qer.id,
                uplink_open: !qer.gate.uplink_closed,
                downlink_open: !qer.gate.downlink_closed,
                uplink_mbr: None,
                downlink_mbr: None,
                uplink_gbr: None,
                downlink_gbr: None,
                qfi: None,
                reflective: false,
                paging_policy: None,
            };
            merge_qer(&mut new, &qer.parameters);
            put(&mut self.model.qers, new);
            bound(self.model.qers.len(), limits.qers, Bound::Qers, RuleId::Qer(qer.id))?;
        }
        for far in fars {
            let new = new_far(far, config)?;
            put(&mut self.model.fars, new);
            bound(self.model.fars.len(), limits.fars, Bound::Fars, RuleId::Far(far.id))?;
        }
        for pdr in pdrs {
            self.create_pdr(pdr, config)?;
        }
        Ok(())
    }

    fn create_pdr(&mut self, ie: &CreatePdr<'a>, config: &Config) -> Result<(), Refusal> {
        let limits = &config.limits;
        // One that is replaced within this message takes its wishes with it.
        self.tunnels.retain(|wish| wish.pdr != ie.id);
        self.ue_questions.retain(|(pdr, _)| *pdr != ie.id);
        let mut pdr = Pdr {
            id: ie.id,
            precedence: ie.precedence,
            source: source(ie.id, ie.pdi.source_interface)?,
            instance: 0,
            tunnel: None,
            qfis: Vec::new(),
            filters: Vec::new(),
            application: None,
            framed_ipv4: Vec::new(),
            framed_ipv6: Vec::new(),
            outer_header_removal: ie.outer_header_removal.is_some(),
            far: ie.far,
            qers: distinct(&ie.qers, limits.qers)
                .ok_or(Refusal::Limit(Bound::Qers, Some(RuleId::Pdr(ie.id))))?,
            urrs: distinct(&ie.urrs, limits.urrs)
                .ok_or(Refusal::Limit(Bound::Urrs, Some(RuleId::Pdr(ie.id))))?,
        };
        self.merge_pdi(&mut pdr, &ie.pdi, config, false)?;
        put(&mut self.model.pdrs, pdr);
        bound(self.model.pdrs.len(), limits.pdrs, Bound::Pdrs, RuleId::Pdr(ie.id))
    }

    fn update_pdr(&mut self, ie: &UpdatePdr<'a>, config: &Config) -> Result<(), Refusal> {
        let unknown = Refusal::UnknownRule(RuleId::Pdr(ie.id));
        let Ok(at) = position(&self.model.pdrs, ie.id) else { return Err(unknown) };
        let Some(mut pdr) = self.model.pdrs.get(at).cloned() else { return Err(unknown) };
        pdr.precedence = ie.precedence.unwrap_or(pdr.precedence);
        pdr.outer_header_removal |= ie.outer_header_removal.is_some();
        pdr.far = ie.far.or(pdr.far);
        let too_many = |bound| Refusal::Limit(bound, Some(RuleId::Pdr(ie.id)));
        if !ie.qers.is_empty() {
            pdr.qers = distinct(&ie.qers, config.limits.qers).ok_or(too_many(Bound::Qers))?;
        }
        if !ie.urrs.is_empty() {
            pdr.urrs = distinct(&ie.urrs, config.limits.urrs).ok_or(too_many(Bound::Urrs))?;
        }
        if let Some(pdi) = &ie.pdi {
            pdr.source = source(ie.id, pdi.source_interface)?;
            self.merge_pdi(&mut pdr, pdi, config, true)?;
        }
        if let Some(slot) = self.model.pdrs.get_mut(at) {
            *slot = pdr;
        }
        Ok(())
    }

    fn merge_pdi(
        &mut self,
        pdr: &mut Pdr,
        pdi: &Pdi<'a>,
        config: &Config,
        update: bool,
    ) -> Result<(), Refusal> {
        let id = pdr.id;
        if pdi.ethernet {
            return Err(Refusal::Unsupported(Feature::Ethernet(id)));
        }
        if let Some(name) = pdi.application_id {
            pdr.application = application(id, name, config)?;
        }
        if let Some(name) = pdi.network_instance {
            pdr.instance = config.instance(name);
        }
        if let Some(fteid) = pdi.local_fteid {
            self.tunnels.retain(|wish| wish.pdr != id);
            self.tunnels.push(TunnelWish { pdr: id, fteid, update });
        }
        for address in &pdi.ue_ips {
            self.ue_address(id, address, pdi.network_instance)?;
        }
        if !pdi.qfis.is_empty() {
            pdr.qfis = distinct(&pdi.qfis, config.limits.qfis.min(64))
                .ok_or(Refusal::Limit(Bound::Filters, Some(RuleId::Pdr(id))))?;
        }
        if !pdi.sdf_filters.is_empty() {
            bound(pdi.sdf_filters.len(), config.limits.filters, Bound::Filters, RuleId::Pdr(id))?;
            pdr.filters = self.filters(id, &pdi.sdf_filters, &config.limits)?;
        }
        let routes = pdi.framed_routes.len() + pdi.framed_ipv6_routes.len();
        if routes > 0 {
            bound(routes, config.limits.framed_routes, Bound::FramedRoutes, RuleId::Pdr(id))?;
            pdr.framed_ipv4.clear();
            pdr.framed_ipv6.clear();
            for text in pdi.framed_routes.iter().chain(&pdi.framed_ipv6_routes) {
                match framed_route(text).ok_or(Refusal::FramedRoute(id))? {
                    IpNet::V4(net) => pdr.framed_ipv4.push(net),
                    IpNet::V6(net) => pdr.framed_ipv6.push(net),
                }
            }
        }
        Ok(())
    }

    /// A UE IP Address IE. The address is the session's, whichever PDR names it (docs/interop.md rule c).
    fn ue_address(
        &mut self,
        pdr: PdrId,
        ie: &UeIpAddress,
        instance: Option<&'a [u8]>,
    ) -> Result<(), Refusal> {
        let mut agrees = true;
        if let Some(address) = ie.ipv4 {
            agrees &= self.model.ipv4.is_none_or(|own| own == address);
            agrees &= self.ipv4.join(Wish::Given(pdr, address));
        }
        if let Some(address) = ie.ipv6 {
            let delegated = 64u8.saturating_sub(ie.ipv6_delegation_bits.unwrap_or(0));
            let length =
                ie.ipv6_prefix_length.filter(|length| (1..=128).contains(length)).unwrap_or(delegated);
            let Ok(prefix) = Ipv6Net::new(address, length) else { return Err(Refusal::OtherAddress(pdr)) };
            let prefix = prefix.trunc();
            agrees &= self.model.ipv6.is_none_or(|own| own == prefix);
            agrees &= self.ipv6.join(Wish::Given(pdr, prefix));
        }
        if !agrees {
            return Err(Refusal::OtherAddress(pdr));
        }
        if ie.choose_ipv4 {
            self.ipv4.join(Wish::Choose(pdr));
        }
        if ie.choose_ipv6 {
            self.ipv6.join(Wish::Choose(pdr));
        }
        if ie.choose_ipv4 || ie.choose_ipv6 {
            self.pool_name = self.pool_name.or(instance.filter(|name| !name.is_empty()));
            match self.ue_questions.iter_mut().find(|(asker, _)| *asker == pdr) {
                Some((_, question)) => {
                    question.choose_ipv4 |= ie.choose_ipv4;
                    question.choose_ipv6 |= ie.choose_ipv6;
                }
                None => self.ue_questions.push((pdr, *ie)),
            }
        }
        Ok(())
    }

    fn filters(
        &mut self,
        pdr: PdrId,
        ies: &[SdfFilter<'a>],
        limits: &Limits,
    ) -> Result<Vec<Filter>, Refusal> {
        let mut filters = Vec::with_capacity(ies.len());
        for ie in ies {
            let extras = Extras {
                tos: ie.tos_traffic_class.map(|[value, mask]| (value, mask)),
                spi: ie.security_parameter_index,
                flow_label: ie.flow_label.map(|label| label & 0xf_ffff),
            };
            let by_id =
                ie.filter_id.is_some() && ie.flow_description.is_none() && extras == Extras::default();
            let flow = match ie.flow_description {
                Some(text) => Flow::parse(text, limits.sdf).map_err(|error| Refusal::Sdf(pdr, error))?,
                None => Flow::ANY,
            };
            if let Some(id) = ie.filter_id.filter(|_| !by_id) {
                self.described.push(id);
            }
            filters.push(Filter { id: ie.filter_id, by_id, flow, extras });
        }
        Ok(filters)
    }

    /// Gives filters that are named by ID alone the description of that ID (§8.2.5 BID). They keep a copy: the
    /// PDR with the description may be removed before the one that leans on it.
    fn resolve_filters(&mut self) -> Result<(), Refusal> {
        let pdrs = &self.model.pdrs;
        if !pdrs.iter().any(|pdr| pdr.filters.iter().any(|filter| filter.by_id)) {
            return Ok(());
        }
        self.described.sort_unstable();
        let mut copies: Vec<(usize, usize, Flow, Extras)> = Vec::new();
        for (at, pdr) in pdrs.iter().enumerate() {
            for (nth, filter) in pdr.filters.iter().enumerate() {
                let (true, Some(id)) = (filter.by_id, filter.id) else { continue };
                let named = || pdrs.iter().flat_map(|pdr| &pdr.filters).filter(|other| other.id == Some(id));
                let is_new = filter.flow == Flow::ANY && filter.extras == Extras::default();
                if is_new || self.described.binary_search(&id).is_ok() {
                    // The description itself, else a copy of it that an earlier request left behind.
                    let found = named().find(|other| !other.by_id).or_else(|| {
                        named().find(|other| other.flow != Flow::ANY || other.extras != Extras::default())
                    });
                    let found = found.ok_or(Refusal::UnknownFilter(pdr.id, id))?;
                    copies.push((at, nth, found.flow.clone(), found.extras));
                }
            }
        }
        for (at, nth, flow, extras) in copies {
            if let Some(filter) = self.model.pdrs.get_mut(at).and_then(|pdr| pdr.filters.get_mut(nth)) {
                filter.flow = flow;
                filter.extras = extras;
            }
        }
        Ok(())
    }

    fn update_far(&mut self, ie: &UpdateFar<'a>, config: &Config, marker: bool) -> Result<(), Refusal> {
        let far = find_mut(&mut self.model.fars, ie.id).ok_or(Refusal::UnknownRule(RuleId::Far(ie.id)))?;
        let before = far.clone();
        if let Some(action) = ie.apply_action {
            far.apply = apply(ie.id, action)?;
        }
        far.bar = ie.bar.or(far.bar);
        let mut marker = marker;
        if let Some(parameters) = &ie.forwarding {
            if let Some(to) = parameters.redirect {
                far.redirect = redirect(ie.id, to)?;
            }
            if let Some(named) = parameters.forwarding_policy {
                far.policy = policy(ie.id, named, config)?;
            }
            marker |= parameters.flags.send_end_marker;
            if let Some(interface) = parameters.destination_interface {
                far.destination = Some(destination(ie.id, interface)?);
            }
            if let Some(header) = parameters.outer_header_creation {
                far.outer_header = Some(outer_header(header, config));
            }
            if let Some([tos, _]) = parameters.transport_level_marking {
                far.marking = Some(Dscp::from_tos(tos));
            }
            if let Some(name) = parameters.network_instance {
                far.instance = config.instance(name);
            }
        }
        // free5GC sets SNDEM once and never resets it: a marker belongs to a tunnel that really ends (docs/interop.md).
        let ends = before.apply == Apply::Forward
            && before.outer_header.is_some()
            && before.outer_header != far.outer_header;
        if marker && ends {
            self.end_markers.push(ie.id);
        }
        Ok(())
    }

    fn update_qer(&mut self, ie: &UpdateQer) -> Result<(), Refusal> {
        let qer = find_mut(&mut self.model.qers, ie.id).ok_or(Refusal::UnknownRule(RuleId::Qer(ie.id)))?;
        if let Some(gate) = ie.gate {
            qer.uplink_open = !gate.uplink_closed;
            qer.downlink_open = !gate.downlink_closed;
        }
        merge_qer(qer, &ie.parameters);
        Ok(())
    }

    fn new_urr(&mut self, ie: &CreateUrr) -> Urr {
        let mut urr = Urr {
            id: ie.id,
            volume: ie.method.volume,
            duration: ie.method.duration,
            before_enforcement: false,
            inactive: false,
            reduced: false,
            triggers: triggers(ie.triggers),
            threshold: VolumeLimit::default(),
            quota: VolumeLimit::default(),
            quota_generation: 0,
            blocked: false,
            period: None,
            time_threshold: None,
            time_quota: None,
            quota_validity: None,
            quota_holding: None,
        };
        merge_urr(&mut urr, &ie.parameters, &mut self.model.quotas);
        urr
    }

    fn update_urr(&mut self, ie: &UpdateUrr) -> Result<(), Refusal> {
        let urr = find_mut(&mut self.model.urrs, ie.id).ok_or(Refusal::UnknownRule(RuleId::Urr(ie.id)))?;
        if let Some(MeasurementMethod { duration, volume, .. }) = ie.method {
            urr.duration = duration;
            urr.volume = volume;
        }
        if let Some(ie) = ie.triggers {
            urr.triggers = triggers(ie);
        }
        merge_urr(urr, &ie.parameters, &mut self.model.quotas);
        Ok(())
    }

    /// The PDR that has this framed route.
    pub fn router(&self, net: IpNet) -> PdrId {
        let has = |pdr: &&Pdr| match net {
            IpNet::V4(net) => pdr.framed_ipv4.contains(&net),
            IpNet::V6(net) => pdr.framed_ipv6.contains(&net),
        };
        self.model.pdrs.iter().find(has).map(|pdr| pdr.id).unwrap_or_default()
    }

    /// The rule of an ID, as planned.
    pub fn pdr(&self, id: PdrId) -> Option<&Pdr> {
        find(&self.model.pdrs, id)
    }
}

fn bound(count: usize, limit: usize, bound: Bound, rule: RuleId) -> Result<(), Refusal> {
    if count > limit { Err(Refusal::Limit(bound, Some(rule))) } else { Ok(()) }
}

/// The UE's address and prefix.
pub fn ue_networks(model: &Model) -> impl Iterator<Item = IpNet> {
    model.ipv4.map(host).into_iter().chain(model.ipv6.map(IpNet::V6))
}

/// The networks behind a UE, each once.
pub fn framed_routes(model: &Model) -> Vec<IpNet> {
    let four = model.pdrs.iter().flat_map(|pdr| pdr.framed_ipv4.iter().copied().map(IpNet::V4));
    let six = model.pdrs.iter().flat_map(|pdr| pdr.framed_ipv6.iter().copied().map(IpNet::V6));
    let mut routes: Vec<IpNet> = four.chain(six).collect();
    routes.sort_unstable();
    routes.dedup();
    routes
}

/// The network of one IPv4 address.
pub fn host(address: Ipv4Addr) -> IpNet {
    IpNet::V4(Ipv4Net::from(address))
}
