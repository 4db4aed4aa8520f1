//! PFD management (TS 29.244 §6.2.5, §7.4.3): SMFs say how applications are told.
//!
//! What they say is kept here as a whole ([`Pfds`]) and taken from here by whoever inspects ([`N4::take_pfds`]). It holds for questions that begin
//! later: a conversation whose application is known stays what it is.

use super::N4;
use super::history::{Denial, Subject};
use pfcp::Cause;
use pfcp::ie::UpFunctionFeatures;
use pfcp::message::{PfdManagementRequest, PfdManagementResponse};
use pfcp::message_type::MessageType;
use pfcp::node::RequestHandle;
use session::pfd::{Bounds, Pfds, Portable};
use session::store::Store;
use std::sync::Arc;
use tables::Nanos;

/// PFDM, where somebody inspects who can go by PFDs.
pub(super) const fn feature(store: &Store) -> UpFunctionFeatures {
    UpFunctionFeatures(if store.config().applications.is_inspected() { UpFunctionFeatures::PFDM } else { 0 })
}

impl N4 {
    /// PFDs that SMFs have given.
    pub const fn pfds(&self) -> &Arc<Pfds> {
        &self.pfds
    }

    /// All PFDs, if they are others than when they were taken last: for whoever inspects.
    pub fn take_pfds(&mut self) -> Option<Arc<Pfds>> {
        std::mem::take(&mut self.has_new_pfds).then(|| Arc::clone(&self.pfds))
    }

    pub(super) fn manage_pfds(&mut self, now: Nanos, handle: RequestHandle, body: &[u8]) {
        let (peer, message) = (handle.peer, MessageType::PFD_MANAGEMENT_REQUEST);
        let address = self.node.peer(peer).map(|peer| peer.address);
        let subject = Subject { peer, message, seid: None, cp_seid: None };
        let (cause, offending_ie) = match self.with_pfds(now, handle, body) {
            Ok(pfds) => {
                self.counters.pfds_taken += 1;
                self.history.accepted(subject, address);
                self.publish(pfds);
                (Cause::ACCEPTED, None)
            }
            Err(denial) => {
                self.refused(subject, &denial);
                (denial.cause, denial.offending_ie)
            }
        };
        let response = PfdManagementResponse { cause, offending_ie };
        let kind = MessageType::PFD_MANAGEMENT_RESPONSE;
        self.node.respond(handle, kind, pfcp::Seid(0), |out| response.encode(out), &mut self.output);
    }

    /// What there will be after this request.
    fn with_pfds(&mut self, now: Nanos, handle: RequestHandle, body: &[u8]) -> Result<Pfds, Denial> {
        let request = PfdManagementRequest::decode(body).inspect_err(|_| self.counters.malformed += 1)?;
        let by: Arc<str> =
            self.node.peer(handle.peer).map(|peer| peer.node_id.to_string()).unwrap_or_default().into();
        let applications = self.store.applications();
        self.pfds.after(&request, (&by, now), Bounds::default(), applications).map_err(|why| (&why).into())
    }

    /// What SMFs gave to another process.
    pub(super) fn restore_pfds(&mut self, portable: Portable) {
        match Pfds::restored(portable, self.store.applications()) {
            Ok(pfds) => self.publish(pfds),
            Err(why) => tracing::warn!(%why, "PFDs of the process before can't be taken over"),
        }
    }

    fn publish(&mut self, pfds: Pfds) {
        self.pfds = Arc::new(pfds);
        self.has_new_pfds = true;
    }
}
