//! Packet flow descriptions: how applications are told, as SMFs say (PFD, TS 29.244 §6.2.5, §8.2.39; TS 23.503 §6.1.2.3.2).
//!
//! **Model.** An SMF gives all PFDs of an application at once; they take the place of those that it had. Any of them is enough. They override what whoever
//! inspects knows of an application of the same name by himself, and with the last of them gone, that counts again. [`Pfds`] is all that there are
//! at a time, whoever gave them: it is never changed but replaced, and handed to whoever inspects as a whole.
//!
//! **Whose they are.** An Application ID means the same in all sessions of the UPF, since a packet is looked into once. So what one SMF says of an
//! application, last of all, holds for all SMFs. But a request that names no application, by which an SMF withdraws what it has provisioned,
//! concerns only the applications that it gave PFDs last: a restarted SMF doesn't take the others' rules out of force.
//!
//! **Bounds.** [`Bounds`]; names of applications, which keep their numbers for good, are bounded by [`Applications`].

use crate::applications::{Applications, is_name};
use crate::packed::Pack;
use crate::rules::Application;
use crate::sdf::{Flow, SdfError, SdfLimits};
use pfcp::ie::PfdContents;
use pfcp::message::{ApplicationPfds, PfdManagementRequest};
use pfcp::{Cause, ie_type};
use std::collections::BTreeMap;
use std::sync::Arc;
use tables::Nanos;

/// The longest URL, domain name, regular expression or custom content, in octets.
pub const LONGEST_TEXT: usize = 2_048;

/// One way to tell an application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PfdRule {
    /// Its packets are of such flows. The far end is the server.
    Flow {
        /// As the SMF wrote it.
        text: Box<str>,
        /// What it means.
        flow: Flow,
    },
    /// A URL, or a regular expression that is to be found in one.
    Url(Box<str>),
    /// A domain name, or a regular expression for names.
    Domain {
        /// The name.
        name: Box<str>,
        /// Where it has to be found; `None`: anywhere.
        protocol: Option<NameProtocol>,
    },
    /// What operator and application agreed on. Nobody here knows it.
    Custom(Box<[u8]>),
}

/// Where a domain name is found (Domain Name Protocol, TS 29.122 §5.11.2.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum NameProtocol {
    /// The name that a DNS query asks for.
    DnsQname,
    /// Server Name Indication of TLS.
    TlsSni,
    /// Subject Alternative Name of the server's certificate.
    TlsSan,
    /// Subject Common Name of the server's certificate.
    TlsScn,
}

impl NameProtocol {
    const ALL: [(&'static str, Self); 4] = [
        ("DNS_QNAME", Self::DnsQname),
        ("TLS_SNI", Self::TlsSni),
        ("TLS_SAN", Self::TlsSan),
        ("TLS_SCN", Self::TlsScn),
    ];

    /// As SMFs write it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, protocol)| *protocol)
    }
}

impl PfdRule {
    fn flow(text: &[u8]) -> Result<Self, PfdRefusal> {
        let flow = Flow::parse(text, SdfLimits::default()).map_err(PfdRefusal::Flow)?;
        // A filter without a text takes everything; as a PFD, it is a mistake.
        Ok(Self::Flow { text: self::text(text)?, flow })
    }

    fn url(text: &[u8]) -> Result<Self, PfdRefusal> {
        self::text(text).map(Self::Url)
    }

    fn domain((name, protocol): (&[u8], Option<&[u8]>)) -> Result<Self, PfdRefusal> {
        let protocol = match protocol.map(self::text).transpose()? {
            Some(protocol) => Some(NameProtocol::of(&protocol).ok_or(PfdRefusal::Protocol(protocol))?),
            None => None,
        };
        Ok(Self::Domain { name: self::text(name)?, protocol })
    }

    fn custom(content: &[u8]) -> Result<Self, PfdRefusal> {
        if content.len() > LONGEST_TEXT { Err(PfdRefusal::Text) } else { Ok(Self::Custom(content.into())) }
    }

    /// What it takes of [`Bounds::octets`].
    fn octets(&self) -> usize {
        match self {
            Self::Flow { text, .. } | Self::Url(text) | Self::Domain { name: text, .. } => text.len(),
            Self::Custom(content) => content.len(),
        }
    }
}

/// What is sent as text: not empty, not too long, and without the end that a C string has.
fn text(octets: &[u8]) -> Result<Box<str>, PfdRefusal> {
    let text = str::from_utf8(octets).map_err(|_| PfdRefusal::Text)?.trim_end_matches('\0');
    if text.is_empty() || text.len() > LONGEST_TEXT { Err(PfdRefusal::Text) } else { Ok(text.into()) }
}

/// Of all PFDs that there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Applications that have PFDs.
    pub applications: usize,
    /// Ways to tell them, of all applications together.
    pub rules: usize,
    /// Octets of their texts, likewise.
    pub octets: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { applications: 4_096, rules: 65_536, octets: 4 << 20 }
    }
}

/// An application that an SMF has described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Described {
    /// What a verdict says.
    pub number: Application,
    /// Any of them is enough.
    pub rules: Box<[PfdRule]>,
    /// The SMF's Node ID.
    pub by: Arc<str>,
    /// When.
    pub at: Nanos,
}

/// All PFDs at a time, by Application ID.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pfds(BTreeMap<Box<[u8]>, Arc<Described>>);

/// Pfds as another process has them: name, who gave them and when, and what they say.
pub type Portable = Vec<(Box<[u8]>, ((Box<str>, Nanos), Vec<PfdRule>))>;

impl Pfds {
    /// All, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Described)> {
        self.0.iter().map(|(name, described)| (&**name, &**described))
    }

    /// Those of an application.
    pub fn get(&self, name: &[u8]) -> Option<&Described> {
        self.0.get(name).map(|described| &**described)
    }

    /// Applications that have PFDs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What there is after a request of the SMF of this name. If it is refused, nothing has changed.
    pub fn after(
        &self,
        request: &PfdManagementRequest<'_>,
        (by, at): (&Arc<str>, Nanos),
        bounds: Bounds,
        applications: &mut Applications,
    ) -> Result<Self, PfdRefusal> {
        let mut all = self.0.clone();
        if request.applications.is_empty() {
            all.retain(|_, described| described.by != *by);
        }
        for ApplicationPfds { application_id: name, pfds } in &request.applications {
            if !is_name(name) {
                return Err(PfdRefusal::Name);
            }
            let rules = rules(pfds)?;
            if rules.is_empty() {
                all.remove(*name);
            } else {
                // Its number is found when nothing refuses any more.
                let number = Application::NOBODYS;
                all.insert((*name).into(), Arc::new(Described { number, rules, by: by.clone(), at }));
            }
        }
        let rules = || all.values().flat_map(|described| &described.rules);
        let octets: usize = rules().map(PfdRule::octets).sum();
        if all.len() > bounds.applications || rules().count() > bounds.rules || octets > bounds.octets {
            return Err(PfdRefusal::TooMany);
        }
        self.entered(all, applications)
    }

    /// Those that another process had.
    pub fn restored(portable: Portable, applications: &mut Applications) -> Result<Self, PfdRefusal> {
        let described = |(name, ((by, at), rules)): (_, ((Box<str>, _), Vec<_>))| {
            let number = Application::NOBODYS;
            (name, Arc::new(Described { number, rules: rules.into(), by: by.into(), at }))
        };
        Self::default().entered(portable.into_iter().map(described).collect(), applications)
    }

    /// For another process.
    pub fn portable(&self) -> Portable {
        let one =
            |(name, it): (&[u8], &Described)| (name.into(), ((Box::from(&*it.by), it.at), it.rules.to_vec()));
        self.iter().map(one).collect()
    }

    /// Gives names their numbers: from now on rules find those that have PFDs, and no longer those that had.
    fn entered(
        &self,
        mut all: BTreeMap<Box<[u8]>, Arc<Described>>,
        applications: &mut Applications,
    ) -> Result<Self, PfdRefusal> {
        for name in all.keys() {
            if applications.number(name) == Application::NOBODYS {
                return Err(PfdRefusal::TooMany);
            }
        }
        for name in self.0.keys().filter(|name| !all.contains_key(*name)) {
            applications.describe(name, false);
        }
        for (name, described) in &mut all {
            let number = applications.describe(name, true);
            if described.number != number {
                Arc::make_mut(described).number = number;
            }
        }
        Ok(Self(all))
    }
}

/// All ways to tell an application, of all its PFDs. They may be none.
fn rules(pfds: &[PfdContents<'_>]) -> Result<Box<[PfdRule]>, PfdRefusal> {
    let mut rules = Vec::new();
    for pfd in pfds {
        let before = rules.len();
        for text in &pfd.flow_descriptions {
            rules.push(PfdRule::flow(text)?);
        }
        for text in &pfd.urls {
            rules.push(PfdRule::url(text)?);
        }
        for name in &pfd.domain_names {
            rules.push(PfdRule::domain(*name)?);
        }
        if let Some(content) = pfd.custom {
            rules.push(PfdRule::custom(content)?);
        }
        if rules.len() == before {
            return Err(PfdRefusal::Nothing);
        }
    }
    Ok(rules.into())
}

/// Why PFDs are not taken. All are as they were.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PfdRefusal {
    /// An Application ID that is empty or too long.
    #[error("an Application ID is empty, or longer than {longest} octets", longest = crate::applications::LONGEST_NAME)]
    Name,
    /// Text that is none.
    #[error(
        "a URL, a domain name or a custom content is empty, longer than {LONGEST_TEXT} octets or not text"
    )]
    Text,
    /// A flow description that can't be used.
    #[error("a flow description can't be used: {0}")]
    Flow(SdfError),
    /// A Domain Name Protocol that nobody knows.
    #[error("the Domain Name Protocol {0:?} is not known: DNS_QNAME, TLS_SNI, TLS_SAN and TLS_SCN are")]
    Protocol(Box<str>),
    /// PFD Contents without any.
    #[error("PFD Contents describe nothing")]
    Nothing,
    /// More than there is room for.
    #[error("there would be more PFDs, or more names of applications, than there is room for")]
    TooMany,
}

impl PfdRefusal {
    /// Cause.
    pub const fn cause(&self) -> Cause {
        match self {
            Self::TooMany => Cause::NO_RESOURCES,
            _ => Cause::MANDATORY_IE_INCORRECT,
        }
    }

    /// Offending IE.
    pub const fn offending_ie(&self) -> u16 {
        match self {
            Self::Name => ie_type::APPLICATION_ID,
            Self::TooMany => ie_type::APPLICATION_IDS_PFDS,
            _ => ie_type::PFD_CONTENTS,
        }
    }
}

/// What it is, its text, and the number of its protocol.
impl Pack for PfdRule {
    fn pack(&self, out: &mut Vec<u8>) {
        let (kind, octets, protocol): (u8, Box<[u8]>, Option<NameProtocol>) = match self {
            Self::Flow { text, .. } => (0, text.as_bytes().into(), None),
            Self::Url(text) => (1, text.as_bytes().into(), None),
            Self::Domain { name, protocol } => (2, name.as_bytes().into(), *protocol),
            Self::Custom(content) => (3, content.clone(), None),
        };
        let protocol: Option<Box<str>> = protocol.map(|protocol| protocol.name().into());
        (kind, (octets, protocol)).pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let (kind, octets): (u8, Box<[u8]>) = (Pack::unpack(from)?, Pack::unpack(from)?);
        let protocol: Option<Box<str>> = Pack::unpack(from)?;
        let rule = match kind {
            0 => Self::flow(&octets),
            1 => Self::url(&octets),
            2 => Self::domain((&octets, protocol.as_deref().map(str::as_bytes))),
            3 => Self::custom(&octets),
            _ => return None,
        };
        rule.ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const VIDEO: &[u8] = b"video";
    const SERVER: &[u8] = b"permit out tcp from 203.0.113.0/24 443 to assigned";

    fn contents() -> PfdContents<'static> {
        PfdContents {
            flow_descriptions: vec![SERVER],
            urls: vec![b"^http://video\\.example/"],
            domain_names: vec![(b"video.example", None), (b".*\\.video\\.example", Some(b"TLS_SNI"))],
            custom: Some(b"\xff"),
        }
    }

    fn request<'a>(applications: &[(&'a [u8], Vec<PfdContents<'a>>)]) -> PfdManagementRequest<'a> {
        let one = |(application_id, pfds): &(&'a [u8], Vec<PfdContents<'a>>)| ApplicationPfds {
            application_id,
            pfds: pfds.clone(),
        };
        PfdManagementRequest { applications: applications.iter().map(one).collect() }
    }

    /// A UPF's PFDs, and what they do to its applications.
    struct Upf(Pfds, Applications);

    impl Upf {
        fn new() -> Self {
            let mut applications = Applications::default();
            applications.inspects([]);
            Self(Pfds::default(), applications)
        }

        fn take(&mut self, smf: &str, request: &PfdManagementRequest<'_>) -> Result<(), PfdRefusal> {
            let bounds = Bounds { applications: 3, rules: 8, octets: 1_000 };
            let before = (self.0.clone(), self.detected());
            match self.0.after(request, (&smf.into(), Nanos(9)), bounds, &mut self.1) {
                Ok(pfds) => self.0 = pfds,
                Err(refusal) => {
                    assert_eq!((self.0.clone(), self.detected()), before);
                    return Err(refusal);
                }
            }
            assert_eq!(self.0.iter().map(|(name, _)| name).collect::<Vec<_>>(), self.detected());
            for (name, described) in self.0.iter() {
                assert_eq!(self.1.detected(name), Some(described.number));
            }
            Ok(())
        }

        fn detected(&self) -> Vec<&'static [u8]> {
            [&b"audio"[..], b"game", VIDEO]
                .into_iter()
                .filter(|name| self.1.detected(name).is_some())
                .collect()
        }
    }

    #[test]
    fn what_is_given_last_holds() {
        let mut upf = Upf::new();
        upf.take("one", &request(&[(VIDEO, vec![contents()])])).unwrap();
        let described = upf.0.get(VIDEO).unwrap();
        let flow = Flow::parse(SERVER, SdfLimits::default()).unwrap();
        assert_eq!(
            *described.rules,
            [
                PfdRule::Flow { text: str::from_utf8(SERVER).unwrap().into(), flow },
                PfdRule::Url("^http://video\\.example/".into()),
                PfdRule::Domain { name: "video.example".into(), protocol: None },
                PfdRule::Domain { name: ".*\\.video\\.example".into(), protocol: Some(NameProtocol::TlsSni) },
                PfdRule::Custom([0xff].into()),
            ]
        );
        let number = described.number;
        // Others replace them, also another SMF's; the number stays.
        let url = PfdContents { urls: vec![b"x\0"], ..PfdContents::default() };
        let two = request(&[(VIDEO, vec![url.clone()]), (b"audio", vec![url.clone(), url.clone()])]);
        upf.take("two", &two).unwrap();
        let described = upf.0.get(VIDEO).unwrap();
        assert_eq!((&*described.rules, described.number), (&[PfdRule::Url("x".into())][..], number));
        assert_eq!((&*described.by, described.at), ("two", Nanos(9)));
        assert_eq!(upf.0.get(b"audio").unwrap().rules.len(), 2);
        // Without PFDs, it has none.
        upf.take("one", &request(&[(VIDEO, vec![])])).unwrap();
        assert_eq!((upf.0.len(), upf.0.get(VIDEO)), (1, None));
        // Without applications, an SMF withdraws what it has given.
        upf.take("one", &request(&[(b"game", vec![url])])).unwrap();
        upf.take("one", &request(&[])).unwrap();
        assert_eq!(upf.detected(), [b"audio"]);
        upf.take("two", &request(&[])).unwrap();
        assert!(upf.0.is_empty());
    }

    #[test]
    fn what_can_not_be_used_changes_nothing() {
        let mut upf = Upf::new();
        upf.take("one", &request(&[(VIDEO, vec![contents()])])).unwrap();
        let none = PfdContents::default;
        let flow = |text: &'static [u8]| PfdContents { flow_descriptions: vec![text], ..none() };
        let long = [b'x'; LONGEST_TEXT + 1];
        let incorrect = (Cause::MANDATORY_IE_INCORRECT, ie_type::PFD_CONTENTS);
        for contents in [
            none(),
            flow(b""),
            flow(b"deny out ip from any to any"),
            PfdContents { urls: vec![b""], ..none() },
            PfdContents { urls: vec![b"ok", b"\xff"], ..none() },
            PfdContents { urls: vec![&long], ..none() },
            PfdContents { domain_names: vec![(b"\0", None)], ..none() },
            PfdContents { domain_names: vec![(b"x", Some(b"TLS_ALPN"))], ..none() },
            PfdContents { custom: Some(&long), ..none() },
        ] {
            // The good one beside it isn't taken, either.
            let refusal = upf.take("one", &request(&[(VIDEO, vec![flow(SERVER), contents])])).unwrap_err();
            assert_eq!((refusal.cause(), refusal.offending_ie()), incorrect, "{refusal}");
        }
        for name in [&b""[..], &[b'x'; 256]] {
            let refusal = upf.take("one", &request(&[(name, vec![flow(SERVER)])])).unwrap_err();
            assert_eq!(refusal, PfdRefusal::Name);
        }
        // More than there is room for: of applications, of rules, of octets.
        let url = |text: &'static [u8]| vec![PfdContents { urls: vec![text], ..none() }];
        for request in [
            request(&[(b"a", url(b"x")), (b"b", url(b"x")), (b"c", url(b"x"))]),
            request(&[(b"a", vec![flow(SERVER); 4])]),
            request(&[(b"a", url(&[b'x'; 1_000]))]),
        ] {
            let refusal = upf.take("one", &request).unwrap_err();
            assert_eq!((refusal.cause(), refusal.offending_ie()), (Cause::NO_RESOURCES, 58));
        }
        upf.take("one", &request(&[(b"game", vec![flow(SERVER); 3])])).unwrap();
    }

    #[test]
    fn another_process_goes_on_with_them() {
        let mut upf = Upf::new();
        upf.take("one", &request(&[(VIDEO, vec![contents()]), (b"audio", vec![contents()])])).unwrap_err();
        upf.take("one", &request(&[(VIDEO, vec![contents()])])).unwrap();
        let mut octets = Vec::new();
        upf.0.portable().pack(&mut octets);
        let from = &mut &octets[..];
        let portable = Portable::unpack(from).unwrap();
        assert!(from.is_empty());
        let mut applications = Applications::default();
        applications.inspects([VIDEO]);
        assert_eq!(Pfds::restored(portable, &mut applications).unwrap(), upf.0);
        for end in 0..octets.len() {
            assert_eq!(Portable::unpack(&mut &octets[..end]), None);
        }
    }
}
