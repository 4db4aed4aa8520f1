//! Applications as SMFs describe them (PFDs), made ready for matching.
//!
//! Flow descriptions are compared with a conversation's ends. Names and URLs become one automaton each, so that a thousand of them cost what one
//! costs. A name or URL that is written plainly is taken as such: a domain name stands for its subdomains, too, a URL for all that begins with it. Anything
//! else is a regular expression to be found anywhere (TS 29.251 §6.3.3).

use datapath::inspect::Direction;
use dpi::classify::Sheet;
use packet::IpPacket;
use regex_automata::meta::{Builder, Config, Regex};
use regex_automata::util::syntax;
use session::pfd::{NameProtocol, PfdRule, Pfds};
use session::rules::Application;
use session::sdf::Flow;

/// What an automaton may take.
const AUTOMATON: usize = 8 << 20;
/// Flow descriptions that are compared one by one.
const FLOWS: usize = 4_096;

/// All that can be matched of PFDs.
#[derive(Debug, Default)]
pub(super) struct Provisioned {
    flows: Vec<(Application, Flow)>,
    names: Texts,
    urls: Texts,
    left_out: Vec<(String, &'static str)>,
}

/// Many expressions in one automaton, with what each stands for.
#[derive(Debug, Default)]
struct Texts {
    automaton: Option<Regex>,
    /// By pattern.
    meant: Vec<(Application, Option<NameProtocol>)>,
}

impl Texts {
    fn find(&self, text: &[u8]) -> Option<(Application, Option<NameProtocol>)> {
        let found = self.automaton.as_ref()?.search(&regex_automata::Input::new(text))?;
        self.meant.get(found.pattern().as_usize()).copied()
    }
}

/// What is being collected.
#[derive(Default)]
struct Draft {
    patterns: Vec<String>,
    meant: Vec<(Application, Option<NameProtocol>)>,
}

impl Draft {
    /// Takes an expression that can be compiled.
    fn add(
        &mut self,
        pattern: String,
        meant: (Application, Option<NameProtocol>),
    ) -> Result<(), &'static str> {
        builder().build(&pattern).map_err(|_| "its expression can't be compiled, or is too large")?;
        self.patterns.push(pattern);
        self.meant.push(meant);
        Ok(())
    }

    fn build(self) -> Result<Texts, &'static str> {
        if self.patterns.is_empty() {
            return Ok(Texts::default());
        }
        let automaton =
            builder().build_many(&self.patterns).map_err(|_| "all expressions together are too large")?;
        Ok(Texts { automaton: Some(automaton), meant: self.meant })
    }
}

/// Names and URLs are octets from a stranger, and case doesn't count in them.
fn builder() -> Builder {
    let limits =
        Config::new().nfa_size_limit(Some(AUTOMATON)).hybrid_cache_capacity(1 << 20).utf8_empty(false);
    let mut builder = Regex::builder();
    builder.configure(limits).syntax(syntax::Config::new().utf8(false).unicode(false).case_insensitive(true));
    builder
}

/// Whether a name is written plainly.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'.' | b'-' | b'_'))
}

/// What of an expression has a meaning, taken as it is.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for character in text.chars() {
        if !character.is_alphanumeric() {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

impl Provisioned {
    /// All PFDs, as far as they can be matched.
    pub fn new(pfds: &Pfds) -> Self {
        let mut all = Self::default();
        let (mut names, mut urls) = (Draft::default(), Draft::default());
        for (name, described) in pfds.iter() {
            let application = described.number;
            for rule in &described.rules {
                let taken = match rule {
                    PfdRule::Flow { flow, .. } if all.flows.len() < FLOWS => {
                        all.flows.push((application, flow.clone()));
                        Ok(())
                    }
                    PfdRule::Flow { .. } => Err("there are too many flow descriptions"),
                    PfdRule::Domain { name, protocol } => {
                        let pattern = if is_plain(name) {
                            format!(r"(?:^|\.){}$", escaped(name.trim_matches('.')))
                        } else {
                            name.to_string()
                        };
                        names.add(pattern, (application, *protocol))
                    }
                    PfdRule::Url(url) => {
                        let is_plain = url.split("://").nth(1).is_some_and(|rest| {
                            rest.bytes()
                                .all(|octet| octet.is_ascii_alphanumeric() || b".-_/~%:@".contains(&octet))
                        });
                        let pattern = if is_plain { format!("^{}", escaped(url)) } else { url.to_string() };
                        urls.add(pattern, (application, None))
                    }
                    PfdRule::Custom(_) => Err("nobody has agreed on what its custom content means"),
                };
                if let Err(why) = taken {
                    all.left_out.push((String::from_utf8_lossy(name).into_owned(), why));
                }
            }
        }
        for (draft, texts) in [(names, &mut all.names), (urls, &mut all.urls)] {
            match draft.build() {
                Ok(built) => *texts = built,
                Err(why) => all.left_out.push(("all".to_owned(), why)),
            }
        }
        all
    }

    /// What finds nothing: the application's name, and why.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.left_out.iter().map(|(name, why)| (name.as_str(), *why))
    }

    /// The application that a conversation between these ends is of.
    pub fn of_flow(&self, ip: &IpPacket, direction: Direction) -> Option<Application> {
        if self.flows.is_empty() {
            return None;
        }
        let key = ip.key;
        let source = (key.source, key.ports.map(|ports| ports.source));
        let destination = (key.destination, key.ports.map(|ports| ports.destination));
        let (remote, local) =
            if direction == Direction::Uplink { (destination, source) } else { (source, destination) };
        let found = self.flows.iter().find(|(_, flow)| flow.takes(key.protocol.0, remote, local));
        found.map(|(application, _)| *application)
    }

    /// The application that what was found written is of.
    pub fn of_sheet(&self, sheet: &Sheet, is_stream: bool) -> Option<Application> {
        let host = sheet.host.bytes();
        if host.is_empty() {
            return None;
        }
        let path = sheet.path.bytes();
        if let Some((application, protocol)) = self.names.find(host) {
            // A name without a path, in a stream or with an ALPN, is one of TLS; a question's is neither.
            let is_question = path.is_empty() && sheet.alpn.is_empty() && !is_stream;
            let fits = match protocol {
                None => true,
                Some(NameProtocol::DnsQname) => is_question,
                Some(NameProtocol::TlsSni) => path.is_empty() && !is_question,
                Some(NameProtocol::TlsSan | NameProtocol::TlsScn) => path.is_empty() && is_stream,
            };
            if fits {
                return Some(application);
            }
        }
        self.urls.automaton.as_ref()?;
        let scheme: &[u8] = if path.is_empty() { b"https://" } else { b"http://" };
        let path: &[u8] = if path.is_empty() { b"/" } else { path };
        let mut url = [scheme, host, path].concat();
        url.truncate(4096);
        self.urls.find(&url).map(|(application, _)| application)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use pfcp::ie::PfdContents;
    use pfcp::message::{ApplicationPfds, PfdManagementRequest};
    use session::applications::Applications;
    use session::pfd::Bounds;
    use tables::Nanos;

    fn pfds(applications: &mut Applications, all: &[(&[u8], PfdContents<'_>)]) -> Provisioned {
        let request = PfdManagementRequest {
            applications: all
                .iter()
                .map(|(name, contents)| ApplicationPfds {
                    application_id: name,
                    pfds: vec![contents.clone()],
                })
                .collect(),
        };
        let by = (&"smf".into(), Nanos(0));
        let all = Pfds::default().after(&request, by, Bounds::default(), applications).unwrap();
        Provisioned::new(&all)
    }

    fn sheet(host: &str, path: &str) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.host.set(host.as_bytes());
        sheet.path.set(path.as_bytes());
        sheet
    }

    #[test]
    fn names_and_urls_are_found_as_they_are_meant() {
        let mut applications = Applications::default();
        applications.inspects([]);
        let contents = |urls: &[&'static [u8]], domains: &[&'static [u8]]| PfdContents {
            urls: urls.to_vec(),
            domain_names: domains.iter().map(|name| (*name, None)).collect(),
            ..PfdContents::default()
        };
        let all = pfds(
            &mut applications,
            &[
                (b"plain", contents(&[], &[b"shop.example"])),
                (b"expression", contents(&[b"^http://news\\.example(/\\S*)?$"], &[])),
                (b"broken", contents(&[b"("], &[])),
            ],
        );
        let number = |name: &[u8]| applications.known(name);
        assert_eq!(all.of_sheet(&sheet("www.shop.example", ""), true), number(b"plain"));
        assert_eq!(all.of_sheet(&sheet("shop.example", "/x"), true), number(b"plain"));
        assert_eq!(all.of_sheet(&sheet("workshop.example", ""), true), None);
        assert_eq!(all.of_sheet(&sheet("news.example", "/today"), true), number(b"expression"));
        assert_eq!(all.of_sheet(&sheet("news.example.org", "/today"), true), None);
        let left_out: Vec<_> = all.left_out().map(|it| it.0.to_owned()).collect();
        assert_eq!(left_out, ["broken"]);
    }
}
