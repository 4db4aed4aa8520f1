//! PFD management (§7.4.3): an SMF tells how applications are detected.

use super::group::{Group, put_group};
use super::node::Answer;
use crate::cause::Cause;
use crate::encode::encode_ie;
use crate::error::DecodeError;
use crate::ie::PfdContents;
use crate::ie::wire::{put, put_all, put_option};
use crate::ie_type;
use crate::tlv::Ies;

/// PFD Management Request (§7.4.3.1). Without an application: forget all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PfdManagementRequest<'a> {
    /// Application ID's PFDs.
    pub applications: Vec<ApplicationPfds<'a>>,
}

/// Application ID's PFDs (§7.4.3.1-2): they replace those that the application had; none: it has none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplicationPfds<'a> {
    /// Application ID, as it came.
    pub application_id: &'a [u8],
    /// The PFD contents of the PFD contexts.
    pub pfds: Vec<PfdContents<'a>>,
}

impl<'a> PfdManagementRequest<'a> {
    /// Reads a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut request = Self::default();
        for ie in Ies::new(body) {
            let ie = ie?;
            if ie.kind == ie_type::APPLICATION_IDS_PFDS {
                ie.group_listed(&mut request.applications)?;
            }
        }
        Ok(request)
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for application in &self.applications {
            put_group(out, ie_type::APPLICATION_IDS_PFDS, application);
        }
    }
}

impl<'a> Group<'a> for ApplicationPfds<'a> {
    fn decode(ies: Ies<'a>) -> Result<Self, DecodeError> {
        let start = ies.offset();
        let (mut application_id, mut pfds) = (None, Vec::new());
        for ie in ies {
            let ie = ie?;
            match ie.kind {
                ie_type::APPLICATION_ID => ie.mandatory(&mut application_id)?,
                ie_type::PFD_CONTEXT => {
                    let before = pfds.len();
                    for contents in ie.group() {
                        let contents = contents?;
                        if contents.kind == ie_type::PFD_CONTENTS {
                            contents.listed(&mut pfds)?;
                        }
                    }
                    if pfds.len() == before {
                        return Err(DecodeError::missing(ie_type::PFD_CONTENTS, ie.group().offset()));
                    }
                }
                _ => {}
            }
        }
        let application_id =
            application_id.ok_or_else(|| DecodeError::missing(ie_type::APPLICATION_ID, start))?;
        Ok(Self { application_id, pfds })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::APPLICATION_ID, &self.application_id);
        if !self.pfds.is_empty() {
            encode_ie(out, ie_type::PFD_CONTEXT, |out| put_all(out, ie_type::PFD_CONTENTS, &self.pfds));
        }
    }
}

/// PFD Management Response (§7.4.3.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PfdManagementResponse {
    /// How it ended.
    pub cause: Cause,
    /// The IE at fault.
    pub offending_ie: Option<u16>,
}

impl PfdManagementResponse {
    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let Answer { node_id: _, cause, offending_ie } = Answer::decode(body)?;
        Ok(Self { cause, offending_ie })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, ie_type::CAUSE, &self.cause);
        put_option(out, ie_type::OFFENDING_IE, self.offending_ie.as_ref());
    }
}
