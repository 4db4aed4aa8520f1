//! What a session does with an application's packets, as an SMF asks for it.

use crate::habits::{CORE, Context, DROP, FORW};
use crate::wire::Writer;
use pfcp::{FarId, UrrId, ie_type as ie};
use std::str::FromStr;

/// Reporting Triggers (TS 29.244 §8.2.19): start and stop of traffic.
const START_STOPT: u8 = 0x10 | 0x20;
/// Redirect Address Type URL (§8.2.20).
const URL: u8 = 2;
/// Measurement Method: volume (§8.2.40).
const VOLUME: u8 = 2;
/// Rules for applications have numbers from here on.
const FIRST: u16 = 1_000;

/// A rule for an application, before all others of a session. Its URR reports that the traffic begins and ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplicationRule {
    /// Application ID (§8.2.6).
    pub application: String,
    /// What happens to its packets.
    pub treatment: Treatment,
}

/// What happens to packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Treatment {
    /// They are forwarded and counted.
    Count,
    /// They are dropped, both ways.
    Drop,
    /// HTTP requests are answered with this URL (§5.4.7).
    Redirect(String),
}

/// This says of no application what happens to it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no rule for an application: use NAME=count, NAME=drop or NAME=redirect:URL")]
pub struct UnknownRule(pub String);

impl FromStr for ApplicationRule {
    type Err = UnknownRule;

    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        let unknown = || UnknownRule(text.to_owned());
        let (application, treatment) = text.split_once('=').ok_or_else(unknown)?;
        let treatment = match (treatment, treatment.split_once(':')) {
            ("count", _) => Treatment::Count,
            ("drop", _) => Treatment::Drop,
            (_, Some(("redirect", url))) if !url.is_empty() => Treatment::Redirect(url.to_owned()),
            _ => return Err(unknown()),
        };
        if application.is_empty() {
            return Err(unknown());
        }
        Ok(Self { application: application.to_owned(), treatment })
    }
}

/// Numbers of an application's rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    index: u16,
}

impl Numbers {
    pub(crate) const fn of(index: usize) -> Self {
        Self { index: index as u16 }
    }

    /// Of its PDRs: the first of two.
    pub(crate) const fn pair(self) -> u16 {
        FIRST / 2 + self.index
    }

    pub(crate) const fn precedence(self) -> u32 {
        self.index as u32
    }

    fn far(self) -> FarId {
        FarId((FIRST + self.index).into())
    }

    pub(crate) fn urr(self) -> UrrId {
        UrrId((FIRST + self.index).into())
    }
}

impl ApplicationRule {
    /// The FAR of a direction; `None`: the session's own.
    pub(crate) fn far(&self, numbers: Numbers, uplink: bool) -> Option<FarId> {
        match self.treatment {
            Treatment::Count => None,
            Treatment::Drop => Some(numbers.far()),
            Treatment::Redirect(_) => uplink.then(|| numbers.far()),
        }
    }

    /// FAR and URR.
    pub(crate) fn create(&self, context: &Context<'_>, w: &mut Writer<'_>, numbers: Numbers) {
        match &self.treatment {
            Treatment::Count => {}
            Treatment::Drop => context.create_far(w, numbers.far(), DROP, None, false),
            Treatment::Redirect(url) => w.group(ie::CREATE_FAR, |w| {
                w.u32(ie::FAR_ID, numbers.far().0);
                context.apply_action(w, FORW);
                w.group(ie::FORWARDING_PARAMETERS, |w| {
                    w.u8(ie::DESTINATION_INTERFACE, CORE);
                    context.network_instance(w);
                    w.redirect(URL, url);
                });
            }),
        }
        w.group(ie::CREATE_URR, |w| {
            w.u32(ie::URR_ID, numbers.urr().0);
            w.u8(ie::MEASUREMENT_METHOD, VOLUME);
            w.bytes(ie::REPORTING_TRIGGERS, &[START_STOPT, 0, 0]);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let rule = |text: &str| text.parse::<ApplicationRule>();
        let url = "http://dn/portal?a=b".to_owned();
        for (text, treatment) in [
            ("youtube=drop", Treatment::Drop),
            ("youtube=count", Treatment::Count),
            ("youtube=redirect:http://dn/portal?a=b", Treatment::Redirect(url)),
        ] {
            assert_eq!(rule(text), Ok(ApplicationRule { application: "youtube".into(), treatment }));
        }
        for wrong in
            ["", "youtube", "youtube=", "=drop", "youtube=stop", "youtube=redirect", "youtube=redirect:"]
        {
            assert_eq!(rule(wrong), Err(UnknownRule(wrong.to_owned())));
        }
    }
}
