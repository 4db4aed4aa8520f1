//! What all workers know: recognisers and signatures.

use crate::classify::{Carrier, Classifier, Confidence, End, Evidence, Sheet, Verdict};
use crate::signatures::{Application, ApplicationId, Bundle, Match};
use crate::track::names::{Names, Said};
use crate::{Category, Protocol};
use std::sync::Arc;

/// Recognisers and signatures. Immutable, so that all workers share one; another one takes its place as a whole.
#[derive(Debug)]
pub struct Knowledge {
    /// Who is asked about messages.
    pub classifier: Classifier,
    /// Whose names and addresses are whose.
    pub bundle: Arc<Bundle>,
    /// Applications, and the parts of them that are their calls.
    calls: Vec<(ApplicationId, ApplicationId)>,
    /// Protocols that one application speaks.
    speakers: Vec<(Protocol, ApplicationId)>,
}

/// Protocols that are one application's own: whoever speaks them is it.
const SPEAKERS: &[(Protocol, &str)] = &[
    (Protocol::Discord, "discord"),
    (Protocol::DropboxLan, "dropbox"),
    (Protocol::KakaoTalk, "kakaotalk"),
    (Protocol::LineCall, "line-call"),
    (Protocol::Qq, "qq"),
    (Protocol::SpotifyAp, "spotify"),
    (Protocol::SpotifyLan, "spotify"),
    (Protocol::Steam, "steam"),
    (Protocol::TeamViewer, "teamviewer"),
    (Protocol::Telegram, "telegram"),
    (Protocol::Viber, "viber"),
    (Protocol::WeChat, "wechat"),
    (Protocol::WhatsApp, "whatsapp"),
    (Protocol::XboxLive, "xbox"),
    (Protocol::Zoom, "zoom"),
];

/// How the part of an application is named that is its calls: `telegram-call` of `telegram`.
const CALLS: [&str; 3] = ["-call", "-calls", "-voice"];

/// Whether it opens or carries a call. Servers that help with that, and peers, are reached by everybody's applications: whose address they have says
/// nothing of whose call it is, unless calls are what they are for.
const fn is_of_calls(protocol: Protocol) -> bool {
    use Protocol::{Call, Dtls, Rtcp, Rtp, Srtp, Stun, Turn, WebRtc, Zrtp};
    matches!(protocol, Call | Dtls | Rtcp | Rtp | Srtp | Stun | Turn | WebRtc | Zrtp)
}

impl Knowledge {
    /// What is built in, with these signatures.
    pub fn new(bundle: Arc<Bundle>) -> Self {
        let call_of = |(id, application): (ApplicationId, &Application)| {
            let parent = bundle.application(application.parent?);
            let kind = application.name.strip_prefix(&*parent.name)?;
            CALLS.contains(&kind).then_some((application.parent?, id))
        };
        let calls = bundle.applications().filter_map(call_of).collect();
        let speakers =
            SPEAKERS.iter().filter_map(|(protocol, name)| Some((*protocol, bundle.by_name(name)?))).collect();
        Self { classifier: Classifier::new(), calls, speakers, bundle }
    }

    /// Which application a host's name is of.
    pub(crate) fn of_host(&self, host: &[u8]) -> Option<ApplicationId> {
        self.bundle.host(host).map(|found| found.application)
    }

    /// Which application speaks so, by what was found written: a server's name before all that a client says of itself.
    fn matches(&self, sheet: &Sheet) -> Option<(Match, Evidence)> {
        let bundle = &self.bundle;
        bundle
            .host(sheet.host.bytes())
            .map(|found| (found, Evidence::Host))
            .or_else(|| bundle.certificate(sheet.host.bytes()).map(|found| (found, Evidence::Certificate)))
            .or_else(|| bundle.agent(sheet.agent.bytes()).map(|found| (found, Evidence::Agent)))
            .or_else(|| bundle.alpn(sheet.alpn.bytes()).map(|found| (found, Evidence::Alpn)))
            .or_else(|| bundle.ja4(sheet.ja4.bytes()).map(|found| (found, Evidence::Fingerprint)))
    }

    /// The application that is found by what was written.
    pub(crate) fn of_sheet(&self, sheet: &Sheet) -> Option<(ApplicationId, Evidence)> {
        if sheet.is_empty() {
            return None;
        }
        self.matches(sheet).map(|(found, evidence)| (found.application, evidence))
    }

    /// The rule by which it is found, as it is written, and where.
    pub fn rule_of(&self, sheet: &Sheet) -> Option<String> {
        let (found, _) = self.matches(sheet)?;
        let rule = self.bundle.rule(found.rule)?;
        Some(format!("{} {} ({}:{})", rule.kind.name(), rule.text, rule.file, rule.line))
    }

    /// Whose payload looks so.
    #[inline]
    pub(crate) fn of_payload(&self, carrier: Carrier, payload: &[u8]) -> Option<(ApplicationId, Evidence)> {
        self.bundle.pattern(carrier, payload).map(|found| (found.application, Evidence::Pattern))
    }

    /// Which application is probably reached there with this protocol, if nothing better is known. Operators know their own networks: what their files
    /// say of an address stands even where a name says nothing (`is_stranger`), and for calls.
    fn of_server(
        &self,
        protocol: Option<Protocol>,
        is_stranger: bool,
        carrier: Carrier,
        server: End,
    ) -> Option<(ApplicationId, Evidence)> {
        let by_address = self.bundle.address(server.address).map(|it| (it, Evidence::Address));
        let by_port = || self.bundle.port(carrier, server.port).map(|it| (it, Evidence::Port));
        let (found, evidence) = by_address.or_else(by_port)?;
        let category = self.bundle.application(found.application).category;
        let may_call = matches!(category, Category::Voice | Category::Messaging | Category::Games);
        let proves_nothing = is_stranger || (!may_call && protocol.is_some_and(is_of_calls));
        (!proves_nothing || self.bundle.is_own(found)).then_some((found.application, evidence))
    }

    /// The part of an application that this protocol is of.
    fn part(&self, application: ApplicationId, protocol: Option<Protocol>) -> ApplicationId {
        let call = || self.calls.iter().find(|(of, _)| *of == application).map(|it| it.1);
        protocol.filter(|it| is_of_calls(*it)).and_then(|_| call()).unwrap_or(application)
    }
}

impl Knowledge {
    /// What a subscriber asks a resolver is remembered, if it is about somebody who is known, and whose the addresses are that are answered to it.
    /// `names` gives the subscriber's memory, if there is one, or (told true) if there could be.
    pub(crate) fn follow<'n>(&self, said: &Said<'_>, names: impl FnOnce(bool) -> Option<&'n mut Names>) {
        let is_answer = said.message.is_answer();
        if is_answer == said.from_subscriber {
            return;
        }
        let Some((application, names)) = self.of_host(said.host).zip(names(!is_answer)) else { return };
        if !is_answer {
            names.ask(said);
        } else if names.is_awaited(said) {
            said.message.addresses().for_each(|(address, _)| names.learn(address, application));
        }
    }
}

/// The application that a flow is taken for so far, and why.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Likely {
    found: Option<(ApplicationId, Evidence)>,
    /// A server was named that no rule knows. Then it is no known application's, whoever else is reached at the same address.
    is_stranger: bool,
}

impl Likely {
    /// Stronger evidence stands; of equal evidence the first.
    pub fn weigh(&mut self, application: ApplicationId, evidence: Evidence) {
        if self.found.is_none_or(|(_, former)| evidence < former) {
            self.found = Some((application, evidence));
        }
    }

    /// A packet was looked into: this was found written in it.
    pub fn read(&mut self, knowledge: &Knowledge, carrier: Carrier, payload: &[u8], sheet: &Sheet) {
        if !sheet.is_empty() {
            let found = knowledge.of_sheet(sheet);
            if let Some((application, evidence)) = found {
                self.weigh(application, evidence);
            }
            let is_known = found.is_some_and(|(_, evidence)| evidence <= Evidence::Certificate);
            self.is_stranger |= !is_known && is_name(sheet.host.bytes());
        }
        let is_open = self.found.is_none_or(|(_, evidence)| evidence > Evidence::Pattern);
        if is_open
            && !payload.is_empty()
            && let Some((application, evidence)) = knowledge.of_payload(carrier, payload)
        {
            self.weigh(application, evidence);
        }
    }

    /// What stands, if a name that nobody knows counts more than an address.
    fn standing(self) -> Option<(ApplicationId, Evidence)> {
        self.found.filter(|(_, evidence)| !self.is_stranger || *evidence < Evidence::Memory)
    }

    /// What that rests on.
    pub fn evidence(self) -> Evidence {
        self.standing().map_or(Evidence::Nothing, |it| it.1)
    }

    /// Which one.
    pub fn application(self) -> Option<ApplicationId> {
        self.standing().map(|it| it.0)
    }

    /// A verdict with its application: this one, or else the one that is probably reached at the server.
    pub fn complete(self, verdict: Verdict, knowledge: &Knowledge, carrier: Carrier, server: End) -> Verdict {
        // Who is asked for a name isn't who has it.
        let is_stranger = self.is_stranger && verdict.protocol != Some(Protocol::Dns);
        let speaker = || {
            let speaks = |protocol| knowledge.speakers.iter().find(|(it, _)| *it == protocol);
            let protocol = verdict.protocol.filter(|_| verdict.reason.confidence() <= Confidence::Likely)?;
            speaks(protocol).map(|it| (it.1, Evidence::Pattern))
        };
        let said = self.standing().filter(|(_, evidence)| *evidence <= Evidence::Pattern);
        let found = said
            .or_else(speaker)
            .or_else(|| self.standing())
            .or_else(|| knowledge.of_server(verdict.protocol, is_stranger, carrier, server));
        match found {
            Some((application, evidence)) => {
                let application = knowledge.part(application, verdict.protocol);
                Verdict { application: Some(application), evidence, ..verdict }
            }
            None => verdict,
        }
    }
}

/// Whether a server is named so: no address, and no name of a local network.
fn is_name(host: &[u8]) -> bool {
    host.contains(&b'.') && !host.contains(&b':') && host.last().is_some_and(u8::is_ascii_alphabetic)
}
