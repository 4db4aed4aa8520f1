//! What all workers know: recognisers and signatures.

use crate::classify::{Carrier, Classifier, End, Evidence, Sheet};
use crate::signatures::{ApplicationId, Bundle};
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
    pub(crate) fn of_sheet(&self, sheet: &Sheet) -> Option<(ApplicationId, Evidence)> {
        let known = |text: &[u8], find: &dyn Fn(&[u8]) -> Option<crate::signatures::Match>, evidence| {
            (!text.is_empty()).then(|| find(text)).flatten().map(|found| (found.application, evidence))
        };
        let bundle = &self.bundle;
        known(sheet.host.bytes(), &|host| bundle.host(host), Evidence::Host)
            .or_else(|| known(sheet.agent.bytes(), &|agent| bundle.agent(agent), Evidence::Agent))
            .or_else(|| known(sheet.alpn.bytes(), &|alpn| bundle.alpn(alpn), Evidence::Alpn))
    }

    /// Which application is probably reached there, if nothing better is known.
    pub(crate) fn of_server(&self, carrier: Carrier, server: End) -> Option<(ApplicationId, Evidence)> {
        let by_address = self.bundle.address(server.address).map(|it| (it.application, Evidence::Address));
        by_address
            .or_else(|| self.bundle.port(carrier, server.port).map(|it| (it.application, Evidence::Port)))
    }
}
