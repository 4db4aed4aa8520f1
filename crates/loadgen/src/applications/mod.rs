//! Flows of applications, as real bytes: what an inspector of packets is measured and tested with.
//!
//! **Problem.** Whoever recognises applications has to be shown what they send: a ClientHello that a browser would send, an Initial that opens with
//! the keys of its connection ID, an answer that names the address which is used next. Captures have that, but they are somebody's, few, and
//! never of the size that is needed.
//!
//! **Model.** Each [`Application`] writes a flow's messages after its standard (its `messages`), of which packets are
//! made; [`Traffic`] interleaves many flows of a [`Mix`] into frames, in the order in which they come, contents drawn from a seed. What is ciphered
//! is random.
//!
//! ```
//! use loadgen::applications::{Length, Mix, Traffic};
//!
//! let traffic = Traffic::new(Mix::ORDINARY, Length::Whole, 2_000, 100, 7);
//! assert!(traffic.frames().count() >= 2_000);
//! assert_eq!(traffic, Traffic::new(Mix::ORDINARY, Length::Whole, 2_000, 100, 7));
//! ```
//!
//! **When not to use it.** For traffic that reacts to loss or delay: these are recordings of what went well.

mod calls;
mod ciphered;
mod clear;
mod ends;
mod mixes;
mod quic;
mod tls;

pub use ends::Ends;
pub use mixes::{Flow, Mix, Traffic, UserPacket};

use crate::rng::SplitMix64;

/// What a flow is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Application {
    /// A page or an interface over TLS 1.3.
    Tls,
    /// The same over QUIC.
    Quic,
    /// A request and its answer in clear.
    Http,
    /// A question and its answer.
    Dns,
    /// A film over TLS: short requests, long answers.
    Video,
    /// A call: STUN, then RTP both ways.
    Call,
    /// A tunnel of WireGuard's.
    WireGuard,
    /// A tunnel of OpenVPN's, over UDP.
    OpenVpn,
    /// A key exchange, version 2.
    Ike,
    /// ESP in UDP.
    Esp,
    /// A terminal.
    Ssh,
    /// A mail that is handed over.
    Smtp,
    /// A file service.
    Smb,
    /// Random octets over TCP.
    CipheredStream,
    /// Random octets over UDP.
    CipheredDatagrams,
}

impl Application {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Tls,
        Self::Quic,
        Self::Http,
        Self::Dns,
        Self::Video,
        Self::Call,
        Self::WireGuard,
        Self::OpenVpn,
        Self::Ike,
        Self::Esp,
        Self::Ssh,
        Self::Smtp,
        Self::Smb,
        Self::CipheredStream,
        Self::CipheredDatagrams,
    ];

    /// Whether TCP carries it.
    pub const fn is_stream(self) -> bool {
        matches!(
            self,
            Self::Tls | Self::Http | Self::Video | Self::Ssh | Self::Smtp | Self::Smb | Self::CipheredStream
        )
    }

    /// Whether its server has a name that was asked for before.
    pub const fn has_name(self) -> bool {
        matches!(self, Self::Tls | Self::Quic | Self::Http | Self::Video)
    }

    /// Its server's port.
    pub const fn port(self) -> u16 {
        match self {
            Self::Tls | Self::Quic | Self::Video => 443,
            Self::Http => 80,
            Self::Dns => 53,
            Self::Call => 19_305,
            Self::WireGuard => 51_820,
            Self::OpenVpn => 1194,
            Self::Ike => 500,
            Self::Esp => 4500,
            Self::Ssh => 22,
            Self::Smtp => 25,
            Self::Smb => 445,
            Self::CipheredStream => 38_417,
            Self::CipheredDatagrams => 40_311,
        }
    }

    /// What is said on one flow.
    fn messages(self, rng: &mut SplitMix64, subject: &Subject<'_>, length: Length) -> Vec<Message> {
        match self {
            Self::Tls => tls::page(rng, subject, length),
            Self::Video => tls::film(rng, subject, length),
            Self::Quic => quic::page(rng, subject, length),
            Self::Http => clear::http(rng, subject, length),
            Self::Dns => clear::dns(rng, subject),
            Self::Ssh => clear::ssh(rng, length),
            Self::Smtp => clear::smtp(rng, length),
            Self::Smb => clear::smb(rng, length),
            Self::Call => calls::call(rng, length),
            Self::WireGuard => ciphered::wireguard(rng, length),
            Self::OpenVpn => ciphered::openvpn(rng, subject, length),
            Self::Ike => ciphered::ike(rng),
            Self::Esp => ciphered::esp(rng, length),
            Self::CipheredStream | Self::CipheredDatagrams => ciphered::noise(rng, length),
        }
    }
}

/// What is said where a flow begins, to a server of this name: what the client says (true) and the server, datagram by datagram.
pub fn opening(application: Application, name: &str, seed: u64) -> Vec<(bool, Vec<u8>)> {
    let subject = Subject { name, address: std::net::Ipv4Addr::UNSPECIFIED.into() };
    let messages = application.messages(&mut SplitMix64::new(seed), &subject, Length::Opening);
    messages.into_iter().map(|message| (message.from_client, message.octets)).collect()
}

/// How much of a flow there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// Only what says which application it is of: what a flow that has just begun costs.
    Opening,
    /// All of it.
    Whole,
}

impl Length {
    /// So many times, of a whole flow; none of one that has just begun.
    const fn times(self, whole: u32) -> u32 {
        match self {
            Self::Opening => 0,
            Self::Whole => whole,
        }
    }
}

/// What a flow is about.
#[derive(Clone, Copy, Debug)]
struct Subject<'n> {
    /// The server's name.
    name: &'n str,
    /// The address that the name has: what a DNS answer says.
    address: std::net::IpAddr,
}

/// What one side says at a time: of a stream as much as it likes, else a datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Message {
    from_client: bool,
    octets: Vec<u8>,
}

impl Message {
    const fn client(octets: Vec<u8>) -> Self {
        Self { from_client: true, octets }
    }

    const fn server(octets: Vec<u8>) -> Self {
        Self { from_client: false, octets }
    }
}

/// Octets that nobody can tell from ciphered ones.
fn random(rng: &mut SplitMix64, length: usize) -> Vec<u8> {
    let mut octets: Vec<u8> =
        std::iter::repeat_with(|| rng.next_u64().to_le_bytes()).take(length.div_ceil(8)).flatten().collect();
    octets.truncate(length);
    octets
}

/// A number from `least` to `most`.
fn between(rng: &mut SplitMix64, least: u32, most: u32) -> u32 {
    least + rng.below(most - least + 1)
}

/// A length of two octets, and what has it.
fn counted(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u16).to_be_bytes(), content].concat()
}
