//! Sessions as the control socket tells of them.
//!
//! A search looks at all sessions where nothing (a UE's address, a TEID) says where those that it is for are. It does so in bites, one question to the control
//! thread each, so that SMFs are answered in between.

use super::convert::{self, dropped, teid};
use super::inspections::OfSession;
use super::labels::{Label, Names};
use super::{Backend, Upf};
use api::{
    Answers, CtlError, ErrorCode, FarLine, MAX_PAGE, PdrLine, QerLine, RuleCounts, SeidText,
    SessionApplication, SessionDetail, SessionLine, SessionPage, Sessions, TunnelEnd, UrrLine,
};
use datapath::{ApplicationFlows, SessionSnapshot};
use pfcp::ie::NodeId;
use pfcp::{PdrId, Seid, UrrId};
use session::model::{self, Model, find};
use session::rules::{Action, Destination, Pdr, Prefix, Rules, SdfFilter, Source, Urr};
use session::store::Session;
use session::usage::Volume;
use session::{SessionRef, ShardId};
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Places that are looked at in one bite: about a millisecond.
const BITE: usize = 2_048;

impl Answers<Sessions> for Backend {
    fn answer(&self, query: Sessions) -> Result<SessionPage, CtlError> {
        let mut search = Search::new(query);
        while !search.is_done() {
            search = self.ask(move |upf| {
                search.go_on(upf);
                Ok(search)
            })?;
        }
        Ok(search.page)
    }
}

impl Answers<api::Session> for Backend {
    fn answer(&self, named: api::Session) -> Result<SessionDetail, CtlError> {
        let seid = self.named(named)?;
        self.ask(move |upf| Sight::of(upf, seid))?.detail()
    }
}

impl Backend {
    /// The one session that is meant.
    fn named(&self, named: api::Session) -> Result<Seid, CtlError> {
        let api::Session { seid, ue, teid, user } = named;
        if let Some(seid) = seid {
            return Ok(Seid(seid.0));
        }
        if ue.is_none() && teid.is_none() && user.is_none() {
            let message = "which session? Name it by seid, ue, teid or user";
            return Err(CtlError::new(ErrorCode::BadRequest, message));
        }
        let page = self.answer(Sessions { limit: 2, ue, teid, user, ..Sessions::default() })?;
        match page.sessions.as_slice() {
            [] => Err(CtlError::new(ErrorCode::NotFound, "there is no such session")),
            [one] => Ok(Seid(one.seid.0)),
            [..] => {
                let message = "several sessions are like that: list them, and choose one by its SEID";
                Err(CtlError::new(ErrorCode::BadRequest, message))
            }
        }
    }
}

/// A search that has got so far.
struct Search {
    query: Sessions,
    /// Where to go on; `None`: it is done.
    at: Option<SessionRef>,
    /// Sessions that match, so far.
    matching: u64,
    page: SessionPage,
}

impl Search {
    fn new(mut query: Sessions) -> Self {
        query.limit = query.limit.min(MAX_PAGE);
        let page = SessionPage { offset: query.offset, ..SessionPage::default() };
        let behind = |seid: SeidText| {
            let SessionRef { shard, slot } = SessionRef::of(Seid(seid.0));
            SessionRef { shard, slot: slot + 1 }
        };
        let first = SessionRef { shard: ShardId::from_hash(0), slot: 0 };
        Self { at: Some(query.after.map_or(first, behind)), matching: 0, query, page }
    }

    const fn is_done(&self) -> bool {
        self.at.is_none()
    }

    /// Looks at some more.
    fn go_on(&mut self, upf: &Upf) {
        let Some(at) = self.at.take() else { return };
        let store = upf.n4.store();
        // An address or a tunnel is one session's, and says where that is.
        let named = match (self.query.ue, self.query.teid) {
            (Some(address), _) => Some(store.by_address(address)),
            (None, Some(teid)) => Some(store.by_teid(packet::Teid(teid.0))),
            (None, None) => None,
        };
        if let Some(session) = named {
            let _ = session.map(|session| self.look_at(upf, session));
            self.page.total = Some(self.matching);
            return;
        }
        let rest = store.look(at, BITE, |session| self.look_at(upf, session));
        // Who asks for none wants them counted.
        let is_enough = self.is_full() && (self.query.limit > 0 || self.takes_all());
        if rest.is_some() && !is_enough {
            self.at = rest;
            return;
        }
        let told = self.page.sessions.len() as u64;
        if self.is_full() && (rest.is_some() || self.matching > self.query.offset + told) {
            self.page.next = self.page.sessions.last().map(|line| line.seid);
        }
        self.page.total = if self.takes_all() {
            Some(store.counts().sessions as u64)
        } else {
            (rest.is_none() && self.query.after.is_none()).then_some(self.matching)
        };
    }

    const fn takes_all(&self) -> bool {
        let query = &self.query;
        query.ue.is_none()
            && query.user.is_none()
            && query.dnn.is_none()
            && query.teid.is_none()
            && query.peer.is_none()
            && query.network_instance.is_none()
    }

    fn is_full(&self) -> bool {
        self.page.sessions.len() >= self.query.limit as usize
    }

    /// Breaks where nothing that it could find would change the answer.
    fn look_at(&mut self, upf: &Upf, session: &Session) -> ControlFlow<()> {
        if !self.matches(upf, session) {
            return ControlFlow::Continue(());
        }
        self.matching += 1;
        if self.matching <= self.query.offset {
            return ControlFlow::Continue(());
        }
        if !self.is_full() {
            self.page.sessions.push(line(upf, session));
            return ControlFlow::Continue(());
        }
        // There is more than the page has room for, and how many there are in all is known.
        if self.takes_all() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn matches(&self, upf: &Upf, session: &Session) -> bool {
        let query = &self.query;
        let is = |octets: &[u8], name: &String| octets.eq_ignore_ascii_case(name.as_bytes());
        let about = session.about();
        query.ue.is_none_or(|address| session.has_address(address))
            && query.teid.is_none_or(|teid| session.has_tunnel(packet::Teid(teid.0)))
            && query.peer.as_ref().is_none_or(|peer| is_of(upf, session, peer))
            && query.dnn.as_ref().is_none_or(|name| is(about.dnn(), name))
            && query.user.as_ref().is_none_or(|name| about.user().is_some_and(|user| user.is(name)))
            && query
                .network_instance
                .as_ref()
                .is_none_or(|name| about.instances().any(|instance| is(instance, name)))
    }
}

/// Whether its SMF has this Node ID.
fn is_of(upf: &Upf, session: &Session, peer: &str) -> bool {
    upf.n4.association_of(session).is_some_and(|known| match &known.node_id {
        NodeId::Ip(address) => peer.parse() == Ok(*address),
        NodeId::Fqdn(name) => name.eq_ignore_ascii_case(peer),
    })
}

fn line(upf: &Upf, session: &Session) -> SessionLine {
    let (rules, about) = (session.rules(), session.about());
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let instances: Vec<_> = about.instances().map(text).collect();
    SessionLine {
        seid: convert::seid(rules.seid),
        cp_seid: convert::seid(session.cp_fseid().seid),
        // Empty while it is being removed because its association ended.
        peer: upf.n4.association_of(session).map(|peer| peer.node_id.to_string()).unwrap_or_default(),
        ue_ipv4: rules.ue_ipv4,
        ue_ipv6: rules.ue_ipv6.map(|prefix| prefix.to_string()),
        user: about.user().and_then(|user| user.texts().next()),
        dnn: Some(about.dnn()).filter(|name| !name.is_empty()).map(text),
        s_nssai: about.s_nssai().map(|slice| slice.to_string()),
        network_instance: instances.join(","),
        shard: rules.place.shard.index() as u16,
        rules: RuleCounts {
            pdrs: rules.pdrs.len() as u16,
            fars: rules.fars.len() as u16,
            qers: rules.qers.len() as u16,
            urrs: rules.urrs.len() as u16,
        },
    }
}

/// What the control thread knows of a session, and the question to its worker.
struct Sight {
    rules: Arc<Rules>,
    brief: SessionLine,
    model: Model,
    identities: Vec<String>,
    /// PDRs that ask for applications which nobody detects.
    undetected: Vec<PdrId>,
    names: Names,
    snapshot: OfSession,
}

impl Sight {
    fn of(upf: &mut Upf, seid: Seid) -> Result<Self, CtlError> {
        let not_found = || CtlError::new(ErrorCode::NotFound, format!("no session has the SEID {seid}"));
        let session = upf.n4.store().get(seid).ok_or_else(not_found)?;
        let (rules, brief) = (session.rules().clone(), line(upf, session));
        let model = session.model().unwrap_or_default();
        let identities = session.about().user().map(|user| user.texts().collect()).unwrap_or_default();
        let applications = &upf.n4.store().config().applications;
        let waits = |pdr: &&Pdr| pdr.application.is_some_and(|it| !applications.is_detected(it));
        let undetected = rules.pdrs.iter().filter(waits).map(|pdr| pdr.id).collect();
        let snapshot = upf.inspections.of_session(&mut upf.engine, rules.place);
        Ok(Self { rules, brief, model, identities, undetected, names: upf.names.clone(), snapshot })
    }

    /// With what the worker says: on the thread of whoever asks.
    fn detail(self) -> Result<SessionDetail, CtlError> {
        let silent = || CtlError::new(ErrorCode::Unavailable, "the session's worker does not answer");
        let Self { rules, brief, model, identities, undetected, names, snapshot } = self;
        let snapshot = snapshot.wait().ok_or_else(silent)?;
        let mut applications: Vec<_> =
            snapshot.applications.iter().map(|flows| application(flows, &names)).collect();
        applications.sort_by_key(|line| Reverse(line.uplink_bytes + line.downlink_bytes));
        let detail = detail(&rules, brief, (&model, &undetected), identities, &snapshot);
        Ok(SessionDetail { applications, more_applications: !snapshot.all_applications, ..detail })
    }
}

fn detail(
    rules: &Rules,
    brief: SessionLine,
    (model, undetected): (&Model, &[PdrId]),
    identities: Vec<String>,
    snapshot: &SessionSnapshot,
) -> SessionDetail {
    let counted =
        |id| snapshot.pdrs.iter().find(|(pdr, _, _)| *pdr == id).map_or((0, 0), |&(_, p, b)| (p, b));
    let volume = |list: &[(UrrId, Volume)], id| {
        list.iter().find(|(urr, _)| *urr == id).map(|(_, volume)| *volume).unwrap_or_default()
    };
    let heard = |teid| snapshot.heard.iter().find(|(of, _)| *of == teid).map(|(_, from)| *from);
    let pdrs = rules.pdrs.iter().map(|pdr| {
        let (packets, bytes) = counted(pdr.id);
        PdrLine {
            id: pdr.id.0,
            precedence: pdr.precedence,
            source: source(pdr.source).into(),
            teid: pdr.tunnel.map(|tunnel| teid(tunnel.teid)),
            heard: pdr.tunnel.and_then(|tunnel| heard(tunnel.teid)),
            qfis: pdr.qfis.iter().map(|qfi| qfi.get()).collect(),
            filters: pdr.filters.iter().map(filter).collect(),
            application: find(&model.pdrs, pdr.id)
                .and_then(|pdr| pdr.application.as_deref())
                .map(|name| String::from_utf8_lossy(name).into_owned()),
            undetected: undetected.contains(&pdr.id),
            far: rules.fars.get(usize::from(pdr.far)).map_or(0, |far| far.id.0),
            qers: pdr.qers.iter().filter_map(|&at| rules.qers.get(usize::from(at))).map(|q| q.id.0).collect(),
            urrs: pdr.urrs.iter().filter_map(|&at| rules.urrs.get(usize::from(at))).map(|u| u.id.0).collect(),
            packets,
            bytes,
        }
    });
    let fars = rules.fars.iter().map(|far| {
        let forward = match far.action {
            Action::Forward(forward) => Some(forward),
            _ => None,
        };
        FarLine {
            id: far.id.0,
            action: action(far.action).into(),
            destination: forward.map(|forward| destination(forward.destination).into()),
            tunnel: forward
                .and_then(|forward| forward.outer_header)
                .map(|outer| TunnelEnd { teid: teid(outer.teid), peer: outer.peer }),
            redirect: forward
                .and_then(|forward| rules.redirects.get(usize::from(forward.redirect?)))
                .map(ToString::to_string),
        }
    });
    let qers = rules.qers.iter().map(|qer| QerLine {
        id: qer.id.0,
        uplink_open: qer.uplink_open,
        downlink_open: qer.downlink_open,
        uplink_mbr: qer.uplink_mbr,
        downlink_mbr: qer.downlink_mbr,
        uplink_gbr: qer.uplink_gbr,
        downlink_gbr: qer.downlink_gbr,
        qfi: qer.qfi.map(packet::Qfi::get),
    });
    let urrs = rules.urrs.iter().map(|urr| {
        let used = volume(&snapshot.consumed, urr.id);
        urr_line(urr, find(&model.urrs, urr.id), volume(&snapshot.urrs, urr.id), used)
    });
    SessionDetail {
        session: brief,
        identities,
        inactivity_timer: model.inactivity_timer,
        pdrs: pdrs.collect(),
        fars: fars.collect(),
        qers: qers.collect(),
        urrs: urrs.collect(),
        drops: snapshot.drops.iter().copied().map(dropped).collect(),
        buffered: snapshot.buffered,
        ..SessionDetail::default()
    }
}

fn application(flows: &ApplicationFlows, names: &Names) -> SessionApplication {
    let ApplicationFlows { finding, flows, uplink, downlink } = *flows;
    let Label { application, open, by } = Label::of(finding, names);
    let (by, confidence) = by.unzip();
    SessionApplication {
        application: application.map(Into::into),
        under_question: open,
        by: by.map(Into::into),
        confidence: confidence.map(Into::into),
        flows,
        uplink_packets: uplink.packets,
        uplink_bytes: uplink.bytes,
        downlink_packets: downlink.packets,
        downlink_bytes: downlink.bytes,
    }
}

/// `measured`: since the last report; `used`: since the quota was given.
fn urr_line(urr: &Urr, timed: Option<&model::Urr>, measured: Volume, used: Volume) -> UrrLine {
    let left = |quota: Option<u64>, used: u64| quota.map(|quota| quota.saturating_sub(used));
    let total = left(urr.quota.total, used.uplink_bytes + used.downlink_bytes);
    let (up, down) =
        (left(urr.quota.uplink, used.uplink_bytes), left(urr.quota.downlink, used.downlink_bytes));
    UrrLine {
        id: urr.id.0,
        uplink_bytes: measured.uplink_bytes,
        downlink_bytes: measured.downlink_bytes,
        threshold: urr.threshold.total,
        uplink_threshold: urr.threshold.uplink,
        downlink_threshold: urr.threshold.downlink,
        quota: urr.quota.total,
        uplink_quota: urr.quota.uplink,
        downlink_quota: urr.quota.downlink,
        left: total,
        uplink_left: up,
        downlink_left: down,
        used_up: urr.blocked || [total, up, down].contains(&Some(0)),
        period: timed.and_then(|urr| urr.period),
        time_threshold: timed.and_then(|urr| urr.time_threshold),
        time_quota: timed.and_then(|urr| urr.time_quota),
        quota_validity: timed.and_then(|urr| urr.quota_validity),
        quota_holding: timed.and_then(|urr| urr.quota_holding),
    }
}

const fn source(source: Source) -> &'static str {
    match source {
        Source::Access => "access",
        Source::Core => "core",
        Source::N6Lan => "n6-lan",
        Source::CpFunction => "cp-function",
    }
}

const fn destination(destination: Destination) -> &'static str {
    match destination {
        Destination::Access => "access",
        Destination::Core => "core",
        Destination::N6Lan => "n6-lan",
        Destination::CpFunction => "cp-function",
    }
}

const fn action(action: Action) -> &'static str {
    match action {
        Action::Drop => "drop",
        Action::Forward(_) => "forward",
        Action::ForwardUnresolved => "forward (tunnel not known yet)",
        Action::Buffer { notify: false, .. } => "buffer",
        Action::Buffer { notify: true, .. } => "buffer and notify",
    }
}

/// A filter in the manner of an IPFilterRule, in the packet's own direction.
fn filter(filter: &SdfFilter) -> String {
    let prefix = |prefix: Option<Prefix>| match prefix {
        None => "any".to_owned(),
        Some(Prefix::V4(net)) => net.to_string(),
        Some(Prefix::V6(net)) => net.to_string(),
    };
    let ports = |ports: &[(u16, u16)]| {
        let one = |&(first, last): &(u16, u16)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        let list: Vec<_> = ports.iter().map(one).collect();
        if list.is_empty() { String::new() } else { format!(" {}", list.join(",")) }
    };
    let protocol = filter.protocol.map_or_else(|| "ip".to_owned(), |protocol| protocol.to_string());
    let mut text = format!(
        "{protocol} from {}{} to {}{}",
        prefix(filter.source),
        ports(&filter.source_ports),
        prefix(filter.destination),
        ports(&filter.destination_ports)
    );
    // Writing to a string can't fail.
    if let Some((value, mask)) = filter.tos {
        let _ = write!(text, " tos {value:#04x}/{mask:#04x}");
    }
    if let Some(spi) = filter.spi {
        let _ = write!(text, " spi {spi:#010x}");
    }
    if let Some(label) = filter.flow_label {
        let _ = write!(text, " flow-label {label:#07x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_bounded_whoever_asks() {
        let search = Search::new(Sessions { limit: u32::MAX, ..Sessions::default() });
        assert_eq!(search.query.limit, MAX_PAGE);
    }
}
