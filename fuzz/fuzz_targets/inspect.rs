//! Frames of several subscribers' flows through preparation and inspection, whose tables are so small that flows push each other out.
#![no_main]

use dpi::prepare::{self, Link, Outcome, Preparation, Tunnels};
use dpi::track::Flow;
use dpi::{By, Cause, Event, Inspector, Knowledge, Options, Packet, Verdict, signatures::Bundle};
use fuzz::{Input, messages};
use libfuzzer_sys::fuzz_target;
use packet::ipv4::Fragment;
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{IpPacket, IpProtocol, MacAddr, PacketBuilder, Teid};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use tables::Nanos;

static KNOWLEDGE: LazyLock<Arc<Knowledge>> = LazyLock::new(|| Arc::new(Knowledge::new(Bundle::built_in())));

const LINKS: [Link; 13] = [
    Link::Ethernet,
    Link::Ip,
    Link::Family,
    Link::Ppp,
    Link::PppDirection,
    Link::Pppoe,
    Link::Hdlc,
    Link::Cooked,
    Link::Cooked2,
    Link::Llc,
    Link::Wireless,
    Link::Radiotap,
    Link::Capture,
];

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let mut world = World::new(&mut input);
    while !input.is_empty() {
        world.step(&mut input);
    }
    world.end();
});

struct World {
    preparation: Preparation,
    inspector: Inspector,
    most: usize,
    now: Nanos,
    /// Packets that are pushed together.
    burst: Vec<(IpPacket, Vec<u8>, Option<u32>)>,
    pushed: u64,
    /// Flows that have a verdict and have not ended.
    known: HashMap<Flow, Verdict>,
    classified: u64,
    ended: u64,
    evicted: u64,
    /// Packets of flows that have ended.
    packets: u64,
    /// Where streams are.
    sequences: HashMap<[u8; 3], u32>,
}

impl World {
    fn new(input: &mut Input<'_>) -> Self {
        let options = Options {
            flows: input.pick(&[8, 1, 64]),
            examinations: input.pick(&[4, 1, 32]),
            subscribers: input.pick(&[3, 1, 8]),
            by: input.pick(&[By::Address, By::Tunnel]),
            tells_names: input.flag(),
            decodes: true,
            measures: true,
            watched: 8,
            ..Options::default()
        };
        let most = options.most_memory();
        let limits = prepare::Limits { datagrams: 4, octets: 1 << 15, ..prepare::Limits::default() };
        Self {
            preparation: Preparation::new(Tunnels::ALL, Some(limits)),
            inspector: Inspector::with(options, KNOWLEDGE.clone(), 0x5eed, Nanos(0)),
            most,
            now: Nanos(0),
            burst: Vec::new(),
            pushed: 0,
            known: HashMap::new(),
            classified: 0,
            ended: 0,
            evicted: 0,
            packets: 0,
            sequences: HashMap::new(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(16) {
            0..=9 => {
                let (link, frame) = self.packet(input);
                self.push(link, &frame);
            }
            10 => {
                let mut frame = self.packet(input).1;
                let (at, with) = (usize::from(input.u16()) % frame.len(), input.u8());
                frame[at] = with;
                frame.truncate(frame.len() - input.below(frame.len()));
                self.push(Link::Ethernet, &frame);
            }
            11 => self.push(input.pick(&LINKS), input.counted()),
            // Flows that nobody goes on with.
            12 => {
                for _ in 0..input.below(32) {
                    let (ue, port) = (input.below(8) as u8, input.u16());
                    let header =
                        TcpHeader { source_port: port, flags: TcpFlags::SYN, ..TcpHeader::default() };
                    let packet = PacketBuilder::new()
                        .ipv4([10, 0, 0, ue].into(), [198, 51, 100, 1].into())
                        .tcp(header);
                    self.push(Link::Ip, &packet.build(b""));
                }
            }
            13 => {
                self.serve();
                self.now = self.now.plus(u64::from(input.u16()) * 10_000_000);
                self.inspector.tick(self.now);
                self.preparation.expire(self.now);
            }
            14 => {
                self.serve();
                self.inspector.flush_one(self.now);
            }
            _ => self.serve(),
        }
        if self.burst.len() >= 40 {
            self.serve();
        }
        self.poll();
    }

    /// A packet of a flow, perhaps in a tunnel, perhaps in pieces.
    fn packet(&mut self, input: &mut Input<'_>) -> (Link, Vec<u8>) {
        let [who, what, how] = [input.u8(), input.u8(), input.u8()];
        let (from_ue, is_ipv6) = (who & 0x80 == 0, who & 0x40 != 0);
        let ue: IpAddr = match (is_ipv6, who & 7) {
            (false, last) => [10, 0, 0, last].into(),
            (true, last) => [0xfd00, 0, 0, 0, 0, 0, 0, last.into()].into(),
        };
        let peer: IpAddr =
            if is_ipv6 { [0x2001, 0xdb8, 0, 0, 0, 0, 0, 9].into() } else { [198, 51, 100, 3].into() };
        let ports = [443, 53, 80, 5060, 25, 1080, 9999, 8080];
        let (ue_port, peer_port) = (40_000 + u16::from(what >> 6), ports[usize::from(what & 7)]);
        let ((source, source_port), (destination, destination_port)) =
            if from_ue { ((ue, ue_port), (peer, peer_port)) } else { ((peer, peer_port), (ue, ue_port)) };
        let mut payload = match input.below(3) {
            0 => input.pick(messages::ALL).to_vec(),
            1 => input.counted().to_vec(),
            _ => [input.pick(messages::ALL), input.counted()].concat(),
        };
        payload.truncate(payload.len() - if how & 0x80 != 0 { input.below(payload.len() + 1) } else { 0 });
        let mut builder = PacketBuilder::new();
        if how & 0x40 != 0 {
            builder = builder.ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        }
        if how & 0x20 != 0 {
            let tunnel = builder.ipv4([192, 0, 2, 1].into(), [192, 0, 2, 2].into()).udp(2152, 2152);
            builder = tunnel.gtpu(Teid(u32::from(who & 3) << 1 | u32::from(from_ue)));
        }
        builder = builder.ip(source, destination);
        let link = if how & 0x40 != 0 { Link::Ethernet } else { Link::Ip };
        if how & 0x10 != 0 && is_ipv6 {
            let offset = u32::from(input.u8() & 3) * 8;
            let fragment = Fragment { offset, more: input.flag(), identification: input.below(3) as u32 };
            builder = builder.ipv6_fragment(fragment);
        }
        let frame = match what >> 3 & 3 {
            0 | 1 => {
                let flow = [who & 0xc7, what & 0xc7, 0];
                let next = self.sequences.entry(flow).or_insert(0xffff_ff00);
                let flags = input.pick(&[0x10, 0x02, 0x12, 0x18, 0x11, 0x04]);
                let sequence = match input.below(6) {
                    0..=2 => *next,
                    3 => next.wrapping_add(u32::from(input.u8())),
                    4 => next.wrapping_sub(u32::from(input.u8())),
                    _ => input.u32(),
                };
                *next = sequence.wrapping_add(payload.len() as u32 + u32::from(flags & 2 != 0));
                let flags = TcpFlags(flags);
                let header =
                    TcpHeader { source_port, destination_port, sequence, flags, ..TcpHeader::default() };
                builder.tcp(header).build(&payload)
            }
            2 => builder.udp(source_port, destination_port).build(&payload),
            _ => {
                let ports = [source_port.to_be_bytes(), destination_port.to_be_bytes()].concat();
                let length = (payload.len() as u16 + 16).to_be_bytes();
                let chunk = [&[0, 3], &length[..], &[0; 12], &payload].concat();
                let mut frame = builder.build(&[&ports, &[0; 8][..], &chunk].concat());
                // Behind all the headers, an SCTP packet has 12 octets, and the chunk 16.
                let header = frame.len() - payload.len() - 28;
                let at = if is_ipv6 { header - 34 } else { header - 11 };
                if how & 0x10 == 0 {
                    frame[at] = IpProtocol::SCTP.0;
                }
                frame
            }
        };
        (link, frame)
    }

    fn push(&mut self, link: Link, frame: &[u8]) {
        self.now = self.now.plus(1_000_000);
        if let Outcome::Packet(prepared) = self.preparation.push(link, frame, self.now) {
            let tunnel = prepared.around.tunnel.map(|it| it.id);
            self.burst.push((prepared.ip, prepared.packet.to_vec(), tunnel));
        }
    }

    /// One is pushed alone.
    fn serve(&mut self) {
        let packets: Vec<_> =
            self.burst.iter().map(|(ip, bytes, tunnel)| Packet { ip: *ip, bytes, tunnel: *tunnel }).collect();
        self.pushed += packets.len() as u64;
        match packets.as_slice() {
            [one] => self.inspector.push(self.now, one),
            more => self.inspector.push_burst(self.now, more),
        }
        self.burst.clear();
        self.poll();
    }

    /// Once a verdict, once an end, in this order.
    fn poll(&mut self) {
        while let Some(event) = self.inspector.poll() {
            match event {
                Event::Found { sheet, .. } => assert!(!sheet.is_empty()),
                Event::Decoded { .. } | Event::Measured { .. } => {}
                Event::Classified { flow, verdict } => {
                    assert!(self.known.insert(flow, verdict).is_none(), "classified twice: {flow:?}");
                    self.classified += 1;
                }
                Event::Ended { flow, verdict, summary, cause } => {
                    assert_eq!(self.known.remove(&flow), Some(verdict), "{flow:?}");
                    self.ended += 1;
                    self.evicted += u64::from(cause == Cause::Evicted);
                    self.packets += summary.packets.iter().sum::<u64>();
                }
            }
        }
        let counters = self.inspector.counters();
        let (flows, examined) = self.inspector.flows();
        assert_eq!((counters.packets, counters.lost_results), (self.pushed, 0));
        assert_eq!(counters.flows, self.ended + flows as u64);
        assert_eq!(self.known.len() + examined, flows);
        assert_eq!(counters.evicted, self.evicted);
        assert!(counters.looked_into + counters.untracked <= counters.packets);
        assert!(self.inspector.assemblies() <= 3 * examined, "lent to flows that have a verdict");
        let memory = self.inspector.memory();
        assert!(memory <= self.most, "{memory} of {}", self.most);
    }

    fn end(mut self) {
        self.serve();
        while self.inspector.flush_one(self.now) {
            self.poll();
        }
        assert_eq!((self.inspector.flows(), self.inspector.assemblies()), ((0, 0), 0));
        assert_eq!((self.classified, self.known.len()), (self.ended, 0));
        assert_eq!(self.packets + self.inspector.counters().untracked, self.pushed);
    }
}
