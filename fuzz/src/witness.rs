//! A session that nothing else in the fuzzed world has to do with, and whose packets therefore pass whatever has happened: its rules
//! forward everything, and its neighbours are configured.

use crate::frames::{self, N3_MAC, Payload, ROUTER_MAC};
use crate::requests::N3;
use crate::user_plane::SERVER;
use datapath::Datapath;
use io::mem::MemFrame;
use packet::{GTP_U_PORT, MacAddr, PacketBuilder, Teid};
use pfcp::{FarId, PdrId};
use session::rules::{Action, Destination, Far, Forward, OuterHeader, Pdr, Rules, Source, Tunnel};
use session::{SessionRef, TeidKey, TeidRef};
use std::net::Ipv4Addr;

/// The UE's address. SMFs are refused it.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 9);
/// Its gNB.
pub const GNB: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 78);
/// A host on N3 that is no gNB of its.
const INTRUDER: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 66);
/// The gNB's.
pub const GNB_MAC: MacAddr = MacAddr([2, 0, 0, 0, 1, 4]);
/// The tunnel to the gNB.
const FAR_TEID: Teid = Teid(0x7769_746e);
/// Slots that stores of so few sessions don't come to.
const SESSION_SLOT: u32 = 400;
/// Likewise.
const TUNNEL_SLOT: u16 = 2_000;
/// What it says.
const WORDS: &[u8; 32] = b"whatever else is held, I get by.";

/// Where the session is.
pub fn place() -> SessionRef {
    SessionRef { shard: Datapath::<MemFrame>::shard_of(ADDRESS.into()), slot: SESSION_SLOT }
}

/// The tunnel from the gNB.
pub fn tunnel() -> Tunnel {
    let place = TeidRef { shard: place().shard, slot: TUNNEL_SLOT };
    Tunnel { teid: TeidKey::default().seal(place.teid(1)), place }
}

/// Everything up to the data network, everything down to the gNB.
pub fn rules() -> Rules {
    let pdr = |id, source, tunnel, far| Pdr::all(PdrId(id), source, tunnel, far);
    let far = |id, destination, outer_header| Far {
        id: FarId(id),
        action: Action::Forward(Forward::to(destination, outer_header)),
    };
    let gnb = OuterHeader { teid: FAR_TEID, peer: GNB.into() };
    Rules::of(
        place(),
        Some(ADDRESS),
        [pdr(1, Source::Access, Some(tunnel()), 0), pdr(2, Source::Core, None, 1)],
        [far(1, Destination::Core, None), far(2, Destination::Access, Some(gnb))],
    )
}

/// What it sends by way of its gNB.
pub fn uplink() -> Vec<u8> {
    sent_by(GNB)
}

/// The same from somebody else who knows the tunnel.
pub fn intrusion() -> Vec<u8> {
    sent_by(INTRUDER)
}

fn sent_by(gnb: Ipv4Addr) -> Vec<u8> {
    let packet = frames::user_packet(ADDRESS.into(), SERVER.into(), Payload::Udp(4_242, 4_243, WORDS));
    let builder = PacketBuilder::new().ethernet(N3_MAC, GNB_MAC).ipv4(gnb, N3).udp(GTP_U_PORT, GTP_U_PORT);
    builder.gtpu(tunnel().teid).build(&packet)
}

/// What it is sent.
pub fn downlink() -> Vec<u8> {
    frames::downlink(&frames::user_packet(SERVER.into(), ADDRESS.into(), Payload::Udp(4_243, 4_242, WORDS)))
}

/// Whether a frame that leaves by a port is one of these, on its right way.
pub fn is_its(port: usize, frame: &[u8]) -> bool {
    // Where the user's addresses are.
    let (to, at) = if port == 0 { (GNB_MAC, 14 + 20 + 8 + 8 + 12) } else { (ROUTER_MAC, 14 + 12) };
    let ends = if port == 0 { [SERVER, ADDRESS] } else { [ADDRESS, SERVER] };
    frame.starts_with(&to.0)
        && frame.ends_with(WORDS)
        && frame.get(at..at + 8) == Some(&ends.map(|address| address.octets()).concat()[..])
}
