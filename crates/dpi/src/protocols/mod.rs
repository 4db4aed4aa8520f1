//! What does a message of this protocol look like?
//!
//! A file for each family, with a recogniser for each protocol, and parsers of their own for those that say much.

pub mod chat;
pub mod cursor;
pub mod databases;
pub mod directories;
pub mod discovery;
pub mod dns;
pub mod files;
pub mod games;
pub mod http;
pub mod industrial;
pub mod ip;
pub mod mail;
pub mod management;
pub mod peer_to_peer;
pub mod proxies;
pub mod queues;
pub mod quic;
pub mod routing;
pub mod rtp;
pub mod services;
pub mod shape;
pub mod sip;
pub mod stun;
pub mod telephony;
pub mod terminals;
pub mod things;
pub mod tls;
pub mod tunnels;

use crate::classify::Recogniser;

/// Recognisers whose file they share.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The file's name.
    pub name: &'static str,
    /// A recogniser for each protocol and carrier.
    pub recognisers: &'static [Recogniser],
}

macro_rules! families {
    ($($name:ident),* $(,)?) => {
        &[$(Family { name: stringify!($name), recognisers: $name::RECOGNISERS }),*]
    };
}

/// All families.
pub const FAMILIES: &[Family] = families![
    tls,
    quic,
    http,
    dns,
    mail,
    stun,
    sip,
    rtp,
    telephony,
    proxies,
    terminals,
    databases,
    queues,
    management,
    directories,
    files,
    tunnels,
    discovery,
    industrial,
    things,
    routing,
    peer_to_peer,
    chat,
    games,
    services,
];

/// All recognisers.
pub fn recognisers() -> impl Iterator<Item = &'static Recogniser> {
    FAMILIES.iter().flat_map(|family| family.recognisers)
}

/// Shows recognisers what tests make up.
#[cfg(test)]
pub(crate) mod show {
    use super::recognisers;
    use crate::Protocol;
    use crate::classify::{Answer, Assembly, Carrier, End, History, Message, Recogniser, Sheet, Side};

    /// What the recogniser of `protocol` on `carrier` says of a flow's messages, in their order; what it wrote down of the last one.
    pub fn flow(
        protocol: Protocol,
        carrier: Carrier,
        port: u16,
        messages: &[(Side, &[u8])],
    ) -> (Vec<Answer>, Sheet) {
        flow_of(of(protocol, carrier).probe, carrier, port, messages)
    }

    /// What a recogniser says of one message of the client; for protocols that have several.
    pub fn one(probe: fn(&mut Message<'_>) -> Answer, carrier: Carrier, port: u16, bytes: &[u8]) -> Answer {
        flow_of(probe, carrier, port, &[(Side::Client, bytes)]).0.remove(0)
    }

    fn flow_of(
        probe: fn(&mut Message<'_>) -> Answer,
        carrier: Carrier,
        port: u16,
        messages: &[(Side, &[u8])],
    ) -> (Vec<Answer>, Sheet) {
        let (mut history, mut sheet) = (History::default(), Sheet::default());
        let (mut answers, mut assembly) = (Vec::new(), Assembly::default());
        for (side, bytes) in messages {
            sheet.clear();
            let begins = carrier != Carrier::Tcp || history.of(*side).packets == 0;
            let mut message = Message {
                bytes,
                begins,
                carrier,
                side: *side,
                client: End { address: [192, 0, 2, 1].into(), port: 40_000 },
                server: End { address: [198, 51, 100, 1].into(), port },
                history: &history,
                sheet: &mut sheet,
                assembly: &mut assembly,
            };
            answers.push(probe(&mut message));
            history.sides[*side as usize].note(bytes);
        }
        (answers, sheet)
    }

    /// What it says of one message of the client.
    pub fn client(protocol: Protocol, carrier: Carrier, port: u16, bytes: &[u8]) -> Answer {
        flow(protocol, carrier, port, &[(Side::Client, bytes)]).0.remove(0)
    }

    /// What it says of one message of the server.
    pub fn server(protocol: Protocol, carrier: Carrier, port: u16, bytes: &[u8]) -> Answer {
        flow(protocol, carrier, port, &[(Side::Server, bytes)]).0.remove(0)
    }

    fn of(protocol: Protocol, carrier: Carrier) -> &'static Recogniser {
        let found = recognisers().find(|it| it.protocol == protocol && it.carriers.has(carrier));
        found.unwrap_or_else(|| panic!("no recogniser of {} on {carrier:?}", protocol.name()))
    }
}
