//! What all workers know: recognisers and signatures.

use crate::classify::{Carrier, Classifier, End, Evidence, Sheet, Verdict};
use crate::signatures::{ApplicationId, Bundle, Match};
use crate::track::names::{Names, Said};
use std::sync::Arc;

/// Recognisers and signatures. Immutable, so that all workers share one; another one takes its place as a whole.
#[derive(Debug)]
pub struct Knowledge {
    /// Who is asked about messages.
    pub classifier: Classifier,
    /// Whose names and addresses are whose.
    pub bundle: Arc<Bundle>,
}

impl Knowledge {
    /// What is built in, with these signatures.
    pub fn new(bundle: Arc<Bundle>) -> Self {
        Self { classifier: Classifier::new(), bundle }
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
            .or_else(|| bundle.agent(sheet.agent.bytes()).map(|found| (found, Evidence::Agent)))
            .or_else(|| bundle.alpn(sheet.alpn.bytes()).map(|found| (found, Evidence::Alpn)))
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

    /// Which application is probably reached there, if nothing better is known.
    pub(crate) fn of_server(&self, carrier: Carrier, server: End) -> Option<(ApplicationId, Evidence)> {
        let by_address = self.bundle.address(server.address).map(|it| (it.application, Evidence::Address));
        by_address
            .or_else(|| self.bundle.port(carrier, server.port).map(|it| (it.application, Evidence::Port)))
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
pub(crate) struct Likely(Option<(ApplicationId, Evidence)>);

impl Likely {
    /// Stronger evidence stands; of equal evidence the first.
    pub fn weigh(&mut self, application: ApplicationId, evidence: Evidence) {
        if self.0.is_none_or(|(_, former)| evidence < former) {
            self.0 = Some((application, evidence));
        }
    }

    /// What that rests on.
    pub fn evidence(self) -> Evidence {
        self.0.map_or(Evidence::Nothing, |it| it.1)
    }

    /// Which one.
    pub fn application(self) -> Option<ApplicationId> {
        self.0.map(|it| it.0)
    }

    /// A verdict with its application: this one, or else the one that is probably reached at the server.
    pub fn complete(self, verdict: Verdict, knowledge: &Knowledge, carrier: Carrier, server: End) -> Verdict {
        match self.0.or_else(|| knowledge.of_server(carrier, server)) {
            Some((application, evidence)) => Verdict { application: Some(application), evidence, ..verdict },
            None => verdict,
        }
    }
}
