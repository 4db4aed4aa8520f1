//! Cycles per packet of `Datapath::process` alone and with the replay port, at 1 k, 64 k and 1 M sessions, both directions.
//!
//! `cargo run --release -p datapath --example cycles [-- SESSIONS...]`
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use datapath::net::{Interface, Net, Roles};
use datapath::{Command, Config, Datapath, Outbox, Token, Transition};
use io::mem::{FrameSize, MemFrame, MemPool};
use io::replay::{Patch, ReplayRx, SinkTx, Stream};
use io::{BURST, RxQueue, TxQueue};
use packet::{MacAddr, PacketBuilder, PduSession, Qfi, Teid, pdu_session};
use pfcp::{FarId, PdrId, QerId, UrrId};
use session::rules::*;
use session::{SHARDS, SessionRef, ShardId, TeidRef};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tables::{Nanos, Tsc};

const N3: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const N6: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const GNB: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 254));
const HOST: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);

fn rules(place: SessionRef, tunnel: Tunnel, ue: Ipv4Addr) -> Rules {
    let pdr = |id: u16, source, tunnel: Option<Tunnel>, far, index: u16| Pdr {
        id: PdrId(id),
        precedence: 255,
        source,
        tunnel,
        qfis: Box::default(),
        filters: Box::default(),
        outer_header_removal: tunnel.is_some(),
        far,
        qers: [0].into(),
        urrs: [index].into(),
    };
    let forward = |destination, outer_header| {
        Action::Forward(Forward { destination, outer_header, transport_marking: None })
    };
    let urr = |id| Urr {
        id: UrrId(id),
        before_enforcement: false,
        threshold: VolumeLimit { total: Some(100 << 20), ..VolumeLimit::default() },
        quota: VolumeLimit::default(),
        quota_generation: 0,
        blocked: false,
        start_of_traffic: false,
        inactive: false,
    };
    let outer = OuterHeader { teid: Teid(0x8000_0000 | u32::from(ue)), peer: GNB };
    Rules {
        place,
        seid: place.seid(1),
        ue_ipv4: Some(ue),
        ue_ipv6: None,
        framed_ipv4: Box::default(),
        framed_ipv6: Box::default(),
        pdrs: [pdr(1, Source::Access, Some(tunnel), 0, 0), pdr(2, Source::Core, None, 1, 1)].into(),
        fars: [
            Far { id: FarId(1), action: forward(Destination::Core, None) },
            Far { id: FarId(2), action: forward(Destination::Access, Some(outer)) },
        ]
        .into(),
        qers: [Qer {
            id: QerId(1),
            uplink_open: true,
            downlink_open: true,
            uplink_mbr: Some(10_000_000_000),
            downlink_mbr: Some(10_000_000_000),
            qfi: Some(Qfi::from_wire(9)),
            reflective: false,
            paging_policy: None,
        }]
        .into(),
        urrs: [urr(1), urr(2)].into(),
    }
}

fn word(bytes: &[u8], at: usize) -> [u8; 4] {
    *bytes[at..].first_chunk().unwrap()
}

fn main() {
    let mut counts: Vec<usize> = std::env::args().skip(1).filter_map(|n| n.parse().ok()).collect();
    if counts.is_empty() {
        counts = vec![1000, 65_536, 1_000_000];
    }
    let interface = |name: &str, port, mac, address: &str, roles| Interface {
        name: name.into(),
        port,
        vlan: None,
        mac,
        mtu: 1500,
        roles,
        addresses: vec![address.parse().unwrap()],
        network_instances: Vec::new(),
    };
    let mut net = Net::new();
    let n3 = Roles { n3: true, ..Roles::default() };
    let n6 = Roles { n6: true, ..Roles::default() };
    net.add_interface(interface("n3", 0, N3, "192.0.2.1/24", n3)).unwrap();
    net.add_interface(interface("n6", 1, N6, "203.0.113.1/24", n6)).unwrap();
    net.add_route("0.0.0.0/0".parse().unwrap(), 1, Some(ROUTER)).unwrap();
    net.add_ue_pool("10.0.0.0/8".parse().unwrap());
    net.learn(0, GNB, MacAddr([2, 1, 0, 0, 0, 1]));
    net.learn(1, ROUTER, MacAddr([2, 1, 0, 0, 0, 2]));
    let view = net.view();
    let tsc = Tsc::calibrate();
    println!("{:>9} {:>9} {:>12} {:>12}", "sessions", "direction", "process", "with port");
    for sessions in counts {
        let mut datapath: Datapath<MemFrame> = Datapath::new(Config::new(Arc::clone(&view)));
        for id in ShardId::all() {
            let shard = datapath.new_shard(id);
            assert!(datapath.adopt(shard).is_none());
        }
        let mut out = Outbox::new(2);
        let mut pool = MemPool::new(1 << 16, FrameSize::Standard);
        let mut next = [0u32; SHARDS];
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for i in 0..sessions as u32 {
            let ue = Ipv4Addr::from(0x0a00_0001 + i);
            let shard = Datapath::<MemFrame>::shard_of(ue.into());
            let slot = next[shard.index()];
            next[shard.index()] += 1;
            let place = TeidRef { shard, slot: slot as u16 };
            let tunnel = Tunnel { teid: place.teid(1), place };
            let rules = Arc::new(rules(SessionRef { shard, slot }, tunnel, ue));
            let install = Command::Install {
                token: Token(i.into()),
                rules,
                transition: Transition::default(),
                query: Box::default(),
            };
            datapath.apply(Nanos(1), install, &mut out, &mut pool);
            out.events.clear();
            up.push((tunnel.teid, ue));
            down.push(ue);
        }
        // Neighbours in the burst must not be neighbours in memory.
        let mut state = 12345u64;
        for i in (1..up.len()).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let j = (state >> 33) as usize % (i + 1);
            up.swap(i, j);
            down.swap(i, j);
        }
        let uplink = |teid, ue: Ipv4Addr| {
            PacketBuilder::new()
                .ethernet(N3, MacAddr([2, 1, 0, 0, 0, 1]))
                .ipv4([192, 0, 2, 7].into(), [192, 0, 2, 1].into())
                .udp_without_checksum(2152, 2152)
                .gtpu(teid)
                .pdu_session(&PduSession::Uplink(pdu_session::Uplink {
                    qfi: Qfi::from_wire(9),
                    ..Default::default()
                }))
                .ipv4(ue, HOST)
                .udp(40000, 443)
                .build(&[0; 64])
        };
        let downlink = |ue: Ipv4Addr| {
            PacketBuilder::new()
                .ethernet(N6, MacAddr([2, 1, 0, 0, 0, 2]))
                .ipv4(HOST, ue)
                .udp(443, 40000)
                .build(&[0; 64])
        };
        // TEID; inner TTL and checksum; inner source; UDP length and checksum.
        let offsets = [46, 66, 70, 82];
        let patches: Vec<Patch> = up
            .iter()
            .map(|(teid, ue)| {
                let packet = uplink(*teid, *ue);
                Patch { words: offsets.map(|at| word(&packet, at)), hash: 0 }
            })
            .collect();
        let up_stream = Stream::new(&uplink(up[0].0, up[0].1), &offsets, patches).unwrap();
        let offsets = [22, 30, 38];
        let patches: Vec<Patch> = down
            .iter()
            .map(|ue| {
                let packet = downlink(*ue);
                let [a, b, c] = offsets.map(|at| word(&packet, at));
                Patch { words: [a, b, c, [0; 4]], hash: 0 }
            })
            .collect();
        let down_stream = Stream::new(&downlink(down[0]), &offsets, patches).unwrap();
        for (direction, stream, port) in [("uplink", up_stream, 0u16), ("downlink", down_stream, 1)] {
            let mut rx = ReplayRx::new(stream);
            let mut sink = SinkTx::new();
            let mut burst = Vec::with_capacity(BURST);
            // The median burst: a preemption hits few of them.
            let (mut inside, mut whole) = (Vec::new(), Vec::new());
            let rounds = (2 * sessions.max(400_000) / BURST).min(40_000);
            for round in 0..rounds {
                let begin = tsc.ticks();
                rx.rx_burst(&mut burst, BURST);
                let now = tsc.now();
                let start = tsc.ticks();
                datapath.process(now, port, &mut burst, &mut out, &mut pool);
                let end = tsc.ticks();
                for queue in &mut out.transmit {
                    sink.tx_burst(queue);
                }
                out.events.clear();
                if round > rounds / 4 {
                    inside.push((end - start) as f64 / BURST as f64);
                    whole.push((tsc.ticks() - begin) as f64 / BURST as f64);
                }
            }
            inside.sort_by(f64::total_cmp);
            whole.sort_by(f64::total_cmp);
            let at = |list: &[f64], tenths: usize| list[list.len() * tenths / 10];
            println!(
                "{sessions:>9} {direction:>9} {:>6.0} ({:>3.0}) {:>6.0} ({:>3.0})",
                at(&inside, 5),
                at(&inside, 1),
                at(&whole, 5),
                at(&whole, 1)
            );
        }
        let counters = datapath.counters();
        assert_eq!(counters.balance(), 0);
        assert_eq!(counters.dropped_total(), 0, "{:?}", counters.drops().collect::<Vec<_>>());
        println!("          memory: {} MB resident", resident() >> 20);
    }
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
