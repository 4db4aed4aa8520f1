//! Calls: who with whom, how far they came, and what they sounded like.
//!
//! What SIP says makes a call (RFC 3261 §12: a dialogue that INVITE begins); what SDP says of its media finds their flows by where they
//! are sent to. Where an address is translated between here and there, they aren't found.

use crate::quality::{MediaQuality, Quality, rounded};
use dpi::decode::Sip;
use dpi::track::Ends;
use serde::Serialize;
use std::collections::HashMap;
use std::net::IpAddr;

/// Calls that are listed at most.
pub const MOST: usize = 100_000;
/// Media streams of a call that are listed at most.
const STREAMS: usize = 8;

/// A call.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CallLine {
    /// Its Call-ID.
    pub call: String,
    /// Who calls.
    pub from: String,
    /// Who is called.
    pub to: String,
    /// How far it came.
    pub state: &'static str,
    /// How it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Seconds after the first packet of the capture.
    pub began: f64,
    /// Seconds until it was answered.
    pub answered_after: Option<f64>,
    /// Seconds from the answer to the end, or as long as it was seen.
    pub lasted: f64,
    /// Its media streams.
    pub media: Vec<MediaQuality>,
}

api::columns!(CallLine, |it| {
    "FROM" Left it.from,
    "TO" Left it.to,
    "STATE" Left it.status.map_or_else(|| it.state.to_owned(), |status| format!("{} ({status})", it.state)),
    "BEGAN" Right format!("{:.1}", it.began),
    "LASTED" Right format!("{:.1}", it.lasted),
    "MEDIA" Left it.media.iter().map(MediaQuality::words).collect::<Vec<_>>().join("; "),
});

#[derive(Clone, Debug)]
struct Call {
    line: CallLine,
    answered: Option<f64>,
    /// When it ended, or was heard of last.
    last: f64,
    is_over: bool,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    calls: HashMap<String, Call>,
    /// Whose media are sent there.
    media: HashMap<(IpAddr, u16), String>,
    /// Calls that were not listed.
    pub beyond: u64,
}

impl Calls {
    /// A message of SIP, so many seconds after the beginning.
    pub fn take(&mut self, sip: &Sip, at: f64) {
        let begins = sip.status.is_none() && sip.method == "INVITE";
        if sip.call_id.is_empty() || (!begins && !self.calls.contains_key(&sip.call_id)) {
            return;
        }
        if self.calls.len() >= MOST && !self.calls.contains_key(&sip.call_id) {
            self.beyond += 1;
            return;
        }
        let call = self.calls.entry(sip.call_id.clone()).or_insert_with(|| Call {
            line: CallLine {
                call: sip.call_id.clone(),
                from: sip.from.clone(),
                to: sip.to.clone(),
                state: "calling",
                status: None,
                began: rounded(at),
                answered_after: None,
                lasted: 0.0,
                media: Vec::new(),
            },
            answered: None,
            last: at,
            is_over: false,
        });
        call.hear(sip, at);
        for media in sip.media.iter().filter(|it| it.port > 0) {
            if let Some(address) = media.address
                && self.media.len() < 4 * MOST
            {
                self.media.insert((address, media.port), sip.call_id.clone());
            }
        }
    }

    /// A flow with media has ended, so many seconds after the beginning.
    pub fn hear(&mut self, ends: &Ends, quality: &Quality, last: f64) {
        if quality.media.is_empty() {
            return;
        }
        let ends = [(ends.subscriber, ends.subscriber_port), (ends.peer, ends.peer_port)];
        let call = ends.iter().find_map(|end| self.media.get(end));
        if let Some(call) = call.and_then(|call| self.calls.get_mut(call)) {
            let room = STREAMS.saturating_sub(call.line.media.len());
            call.line.media.extend(quality.media.iter().take(room).cloned());
            if !call.is_over {
                call.last = call.last.max(last);
            }
        }
    }

    /// In the order in which they began.
    pub fn lines(&self) -> Vec<CallLine> {
        let mut lines: Vec<_> = self.calls.values().map(Call::line).collect();
        lines.sort_by(|a, b| a.began.total_cmp(&b.began).then_with(|| a.call.cmp(&b.call)));
        lines
    }
}

impl Call {
    fn hear(&mut self, sip: &Sip, at: f64) {
        if self.is_over {
            return;
        }
        self.last = at;
        let is_answered = self.answered.is_some();
        match (sip.method.as_str(), sip.status) {
            ("INVITE", Some(180..=189)) if !is_answered => self.line.state = "ringing",
            ("INVITE", Some(200..=299)) if !is_answered => {
                self.line.state = "answered";
                self.answered = Some(at);
                self.line.answered_after = Some(rounded(at - self.line.began));
            }
            // RFC 3261 §22: who calls is asked who he is, and asks again.
            ("INVITE", Some(401 | 407)) => {}
            ("INVITE", Some(487)) if !is_answered => self.end("cancelled"),
            ("INVITE", Some(status @ 300..)) if !is_answered => {
                self.line.status = Some(status);
                self.end("refused");
            }
            ("CANCEL", None) if !is_answered => self.line.state = "cancelled",
            ("BYE", None) => self.end("ended"),
            _ => {}
        }
    }

    const fn end(&mut self, state: &'static str) {
        self.line.state = state;
        self.is_over = true;
    }

    fn line(&self) -> CallLine {
        let lasted = self.answered.map_or(0.0, |answered| (self.last - answered).max(0.0));
        CallLine { lasted: rounded(lasted), ..self.line.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sip(method: &str, status: Option<u16>) -> Sip {
        Sip {
            method: method.to_owned(),
            status,
            from: "sip:a@x".to_owned(),
            to: "sip:b@y".to_owned(),
            call_id: "1".to_owned(),
            agent: String::new(),
            media: Vec::new(),
        }
    }

    fn state(messages: &[(&str, Option<u16>)]) -> Option<(&'static str, f64)> {
        let mut calls = Calls::default();
        for (at, (method, status)) in messages.iter().enumerate() {
            calls.take(&sip(method, *status), at as f64);
        }
        calls.lines().first().map(|it| (it.state, it.lasted))
    }

    #[test]
    fn a_call_comes_as_far_as_its_messages_say() {
        let invite = ("INVITE", None);
        let ok = ("INVITE", Some(200));
        assert_eq!(state(&[("REGISTER", None), ok]), None, "nobody was called");
        assert_eq!(state(&[invite]), Some(("calling", 0.0)));
        assert_eq!(state(&[invite, ("INVITE", Some(180))]), Some(("ringing", 0.0)));
        assert_eq!(
            state(&[invite, ("INVITE", Some(407)), invite, ok, ("INFO", None)]),
            Some(("answered", 1.0))
        );
        assert_eq!(state(&[invite, ok, ("BYE", None), ("BYE", Some(200))]), Some(("ended", 1.0)));
        assert_eq!(state(&[invite, ("INVITE", Some(486))]), Some(("refused", 0.0)));
        assert_eq!(state(&[invite, ("CANCEL", None), ("INVITE", Some(487))]), Some(("cancelled", 0.0)));
        // A later INVITE that fails leaves the call as it was (RFC 3261 §14.1).
        assert_eq!(state(&[invite, ok, invite, ("INVITE", Some(488))]), Some(("answered", 2.0)));
    }
}
