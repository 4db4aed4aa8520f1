//! Why was this flow taken for that? Packet by packet.

use crate::reading::{Reading, Seen};
use dpi::classify::{Reason, Step};
use dpi::track::{Ends, Summary};
use dpi::{Event, Knowledge, Packet, Protocol, Verdict};
use io::pcap::CaptureError;
use std::fmt::Write;
use std::io::Read;
use std::net::SocketAddr;

/// A flow that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The one with this number, in the order of first packets.
    Number(u64),
    /// Those between these ends, whichever began.
    Between(SocketAddr, SocketAddr),
}

/// How a flow is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a flow is a number, as `--per-flow` shows it, or two ends: 10.0.0.1:40000-198.51.100.7:443, [2001:db8::1]:40000-[2001:db8::2]:443"
)]
pub struct NotAFlow;

impl std::str::FromStr for Wanted {
    type Err = NotAFlow;

    fn from_str(text: &str) -> Result<Self, NotAFlow> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let (one, other) = text.split_once('-').ok_or(NotAFlow)?;
        let end = |text: &str| text.trim().parse().map_err(|_| NotAFlow);
        Ok(Self::Between(end(one)?, end(other)?))
    }
}

impl Wanted {
    /// Whether a flow between these ends is asked for.
    pub fn is_between(&self, ends: &Ends) -> bool {
        let subscriber = SocketAddr::new(ends.subscriber, ends.subscriber_port);
        let peer = SocketAddr::new(ends.peer, ends.peer_port);
        match self {
            Self::Number(_) => false,
            Self::Between(one, other) => {
                (*one, *other) == (subscriber, peer) || (*other, *one) == (subscriber, peer)
            }
        }
    }
}

/// Reads a capture to its end, and those that `next` has, and says of each packet of the flow who was asked about it, and what came of it.
pub fn explain<R: Read>(
    reading: &mut Reading<R>,
    mut next: impl FnMut() -> Option<R>,
    knowledge: &Knowledge,
    wanted: &Wanted,
    mut say: impl FnMut(&str),
) -> Result<bool, CaptureError> {
    reading.inspector().explain();
    let (mut any, mut silent) = (false, 0_u64);
    loop {
        let text = reading.next(|number, frame, seen, inspector| {
            let asked = inspector.asked();
            let events: Vec<_> = std::iter::from_fn(|| inspector.poll()).collect();
            let Seen::Packet(prepared) = seen else { return Some(String::new()) };
            let tunnel = prepared.around.tunnel.map(|it| it.id);
            let packet = Packet { ip: prepared.ip, bytes: prepared.packet, tunnel };
            let ends = inspector.ends(&packet);
            if !wanted.is_between(&ends) {
                return Some(String::new());
            }
            // Known flows go on for long.
            if asked.is_empty() && events.is_empty() {
                return None;
            }
            let mut text = String::new();
            let arrow = if packet.ip.key.source == ends.subscriber { "->" } else { "<-" };
            let _ = writeln!(
                text,
                "frame {number}, {} octets: {}:{} {arrow} {}:{}, {} octets of payload",
                frame.length,
                ends.subscriber,
                ends.subscriber_port,
                ends.peer,
                ends.peer_port,
                prepared.payload.len(),
            );
            steps(&mut text, &asked);
            for event in events {
                tell(&mut text, &event, knowledge, wanted);
            }
            Some(text)
        })?;
        let Some(text) = text else {
            match next() {
                Some(capture) => reading.go_on(capture),
                None => break,
            }
            continue;
        };
        let Some(text) = text else {
            silent += 1;
            continue;
        };
        if !text.is_empty() {
            any = true;
            say(&in_between(&mut silent));
            say(&text);
        }
    }
    say(&in_between(&mut silent));
    let mut text = String::new();
    reading.stages().finish(|event| tell(&mut text, &event, knowledge, wanted));
    say(&text);
    Ok(any)
}

/// Packets that nobody was asked about.
fn in_between(silent: &mut u64) -> String {
    match std::mem::take(silent) {
        0 => String::new(),
        1 => "1 packet that nobody was asked about\n".to_owned(),
        count => format!("{count} packets that nobody was asked about\n"),
    }
}

/// Who was asked: those who said no in one line, the others with what they said.
fn steps(text: &mut String, asked: &[Step]) {
    let refused: Vec<_> = asked
        .iter()
        .filter(|step| step.answer == dpi::classify::Answer::No)
        .map(|step| step.protocol.name())
        .collect();
    if !refused.is_empty() {
        let _ = writeln!(text, "  not {}", refused.join(", "));
    }
    for step in asked {
        if step.answer != dpi::classify::Answer::No {
            let _ = writeln!(
                text,
                "  {}: {}, having seen {} octets",
                step.protocol.name(),
                step.answer.text(),
                step.octets
            );
        }
    }
}

fn tell(text: &mut String, event: &Event, knowledge: &Knowledge, wanted: &Wanted) {
    match event {
        Event::Found { flow, sheet } if wanted.is_between(&flow.ends) => {
            for (what, said) in sheet.entries() {
                let _ = writeln!(text, "  {what}: {}", String::from_utf8_lossy(said));
            }
            if let Some(rule) = knowledge.rule_of(sheet) {
                let _ = writeln!(text, "  by the rule {rule}");
            }
        }
        Event::Decoded { flow, decoded, .. } if wanted.is_between(&flow.ends) => {
            let _ = writeln!(text, "  {decoded}");
        }
        Event::Classified { flow, verdict } if wanted.is_between(&flow.ends) => {
            let _ = writeln!(text, "verdict: {}", sentence(verdict, knowledge));
        }
        Event::Ended { flow, summary, cause, .. } if wanted.is_between(&flow.ends) => {
            let Summary { packets: [up, down], octets: [octets_up, octets_down], .. } = summary;
            let _ = writeln!(
                text,
                "ended ({cause:?}): {up} packets and {octets_up} octets from the subscriber, {down} and {octets_down} to it"
            );
        }
        _ => {}
    }
}

/// A verdict in words.
pub fn sentence(verdict: &Verdict, knowledge: &Knowledge) -> String {
    let behaviour = verdict.protocol.filter(|_| verdict.reason == Reason::Behaviour);
    let mut text = format!(
        "{} ({}: {}{})",
        verdict.protocol.map_or("unknown", Protocol::name),
        verdict.reason.confidence().name(),
        verdict.reason.text(),
        behaviour.map_or_else(String::new, |it| format!(". {}", it.about()))
    );
    if let Some(over) = verdict.over {
        let _ = write!(text, " in {}", over.name());
    }
    if let Some(id) = verdict.application {
        let application = knowledge.bundle.application(id);
        let _ = write!(
            text,
            "; {} ({}: {})",
            application.name,
            verdict.evidence.confidence().name(),
            verdict.evidence.text()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_asked_for_by_number_or_by_its_ends() {
        assert_eq!("7".parse(), Ok(Wanted::Number(7)));
        let ends = "[2001:db8::1]:40000-[2001:db8::2]:443".parse::<Wanted>();
        assert!(
            matches!(ends, Ok(Wanted::Between(one, other)) if one.port() == 40_000 && other.port() == 443)
        );
        for wrong in ["", "10.0.0.1", "10.0.0.1:1", "10.0.0.1:1-x", "-1"] {
            assert_eq!(wrong.parse::<Wanted>(), Err(NotAFlow));
        }
    }
}
