//! A worker beside a switch with a flow table, its sessions and their packets.

use crate::rig::{GNB, GNB_IP, HOST, N3, N3_IP, N6, ROUTER, ROUTER_IP, datapath_of, network};
use datapath::Rib;
use datapath::command::{Command, Event, Token, Transition};
use datapath::offload::{Mode, Offload, OffloadReport, Policy, TakenBack};
use datapath::{Burst, Config, Datapath, HandedOff, Outbox, SessionSnapshot, Slice};
use io::mem::{FlowTableConfig, MemConfig, MemFrame, MemNic, MemRx, MemSwitch, MemTx, MemWire};
use io::{BURST, Frame, Port, RxQueue, TxQueue};
use packet::ipv4::Ipv4Header;
use packet::{Dscp, MacAddr, PacketBuilder, PduSession, Qfi, Teid, VlanId, VlanTag, checksum, pdu_session};
use pfcp::{FarId, PdrId, QerId, UrrId};
use session::rules::*;
use session::usage::{Trigger, Usage, Volume};
use session::{SessionRef, TeidRef};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tables::Nanos;

pub(super) const GNB_IP6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 7);

pub(super) const HOST6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 99, 0, 0, 0, 0, 8);

pub(super) const MILLI: u64 = 1_000_000;

pub(super) fn rib() -> Rib {
    rib_with(Some(GNB))
}

/// Of the gNB nothing is configured, or where it is.
pub(super) fn rib_with(gnb: Option<MacAddr>) -> Rib {
    let mut rib = network(Some(100));
    rib.fix(1, ROUTER_IP.into(), ROUTER);
    if let Some(gnb) = gnb {
        rib.fix(0, GNB_IP.into(), gnb);
    }
    rib.add_route("::/0".parse().unwrap(), 1, Some("2001:db8:6::99".parse().unwrap())).unwrap();
    rib.add_ue_pool("2001:db8:45::/48".parse().unwrap());
    rib.fix(0, GNB_IP6.into(), GNB);
    rib.fix(1, "2001:db8:6::99".parse().unwrap(), ROUTER);
    rib
}

/// A policy for small worlds: everything that comes twice is heavy.
pub(super) fn eager() -> Policy {
    Policy {
        sample: 1,
        window: 2 * MILLI,
        packets_per_second: 100,
        lifetime: 0,
        read_interval: 3 * MILLI,
        idle: 200 * MILLI,
        margin: 300_000,
        rest: 10 * MILLI,
        retry: 20 * MILLI,
        ..Policy::new(Mode::Full)
    }
}

/// A worker with its ports, and what is plugged into them.
pub(super) struct Side {
    pub(super) datapath: Datapath<MemFrame>,
    pub(super) offload: Option<Offload>,
    pub(super) switch: MemSwitch,
    pub(super) ports: Vec<MemNic>,
    pub(super) queues: Vec<(MemRx, MemTx)>,
    pub(super) wires: Vec<MemWire>,
    pub(super) out: Outbox<MemFrame>,
    pub(super) pool: io::mem::MemPool,
    /// Frames that the worker itself received.
    pub(super) seen: u64,
    pub(super) events: Vec<Event>,
    pub(super) now: Nanos,
}

impl Side {
    pub(super) fn new(table: Option<&FlowTableConfig>, policy: Policy) -> Self {
        Self::of(
            Config { flow_idle: 1, slices: vec![Slice::default()], ..Config::new(rib().fib()) },
            table,
            policy,
        )
    }

    pub(super) fn of(config: Config, table: Option<&FlowTableConfig>, policy: Policy) -> Self {
        let datapath = datapath_of(config, |_| true);
        let switch = MemSwitch::new(table.cloned().unwrap_or_default());
        let (mut ports, mut wires) = (Vec::new(), Vec::new());
        for mac in [N3, N6] {
            let (nic, wire) = MemNic::new(MemConfig { mac, ..MemConfig::default() }).unwrap();
            if table.is_some() {
                switch.plug(&nic).unwrap();
            }
            ports.push(nic);
            wires.push(wire);
        }
        let queues = ports.iter_mut().map(|port| port.take_queue(0).unwrap()).collect();
        let pool = ports[0].pool(0);
        let devices = ports.iter_mut().map(Port::offload).collect();
        let offload = table.is_some().then(|| Offload::new(policy, devices));
        let (out, events) = (Outbox::new(2), Vec::new());
        Self {
            datapath,
            offload,
            switch,
            ports,
            queues,
            wires,
            out,
            pool,
            seen: 0,
            events,
            now: Nanos(Nanos::SECOND),
        }
    }

    pub(super) fn flush(&mut self) {
        for (frames, (_, tx)) in self.out.transmit.iter_mut().zip(&mut self.queues) {
            tx.tx_burst(frames);
            assert!(frames.is_empty());
        }
        self.events.append(&mut self.out.events);
    }

    /// As the engine's worker does it.
    pub(super) fn apply(&mut self, command: Command) {
        if let Some(offload) = &mut self.offload {
            offload.before(self.now, &mut self.datapath, &command, &mut self.out);
        }
        self.datapath.apply(self.now, command, &mut self.out, &mut self.pool);
        if let Some(offload) = &mut self.offload {
            offload.check(self.now, &mut self.datapath, &mut self.out);
        }
        self.flush();
    }

    pub(super) fn poll(&mut self) {
        for port in 0..2 {
            let mut burst = Burst::new();
            while self.queues[port].0.rx_burst(&mut burst.frames, BURST) > 0 {
                self.seen += burst.frames.len() as u64;
                if let Some(offload) = &mut self.offload {
                    offload.sight(self.now, &self.datapath, port as u16, &burst.frames);
                }
                self.datapath.process(self.now, port as u16, &mut burst, &mut self.out, &mut self.pool);
                if let Some(offload) = &mut self.offload {
                    offload.check(self.now, &mut self.datapath, &mut self.out);
                }
                self.flush();
            }
        }
        assert_eq!(self.datapath.counters().balance(), 0);
    }

    pub(super) fn tick(&mut self, nanos: u64) {
        self.now = self.now.plus(nanos);
        self.switch.set_time(self.now);
        if let Some(offload) = &mut self.offload {
            offload.tick(self.now, &mut self.datapath, &mut self.out);
        }
        self.datapath.tick(self.now, &mut self.out, &mut self.pool);
        self.flush();
    }

    pub(super) fn send(&mut self, port: usize, packets: &[Vec<u8>]) {
        let mut frames = packets.iter().map(|packet| MemFrame::copy_of(packet).unwrap()).collect();
        self.wires[port].inject(&mut frames);
        self.poll();
    }

    /// From N3, by way of another worker.
    pub(super) fn take_over(&mut self, packet: &[u8]) {
        let packet = HandedOff::unread(0, MemFrame::copy_of(packet).unwrap());
        let mut burst = Burst::new();
        self.datapath.arrive_handed_off(self.now, [packet], &mut burst);
        if let Some(offload) = &mut self.offload {
            offload.sight_handed_off(self.now, &self.datapath, &burst);
        }
        self.datapath.process_arrived(self.now, &mut burst, &mut self.out, &mut self.pool);
        self.flush();
    }

    /// What has left the wires, without what may differ: in no order, for a flow that changes hands overtakes itself.
    pub(super) fn collect(&mut self) -> Vec<(usize, Vec<u8>)> {
        let mut all = Vec::new();
        for (port, wire) in self.wires.iter_mut().enumerate() {
            let mut frames = Vec::new();
            while wire.collect(&mut frames, 64) > 0 {}
            all.extend(frames.iter().map(|frame| (port, without_identification(frame.bytes()))));
        }
        all.sort();
        all
    }

    pub(super) fn install(&mut self, rules: &Arc<Rules>) {
        let rules = Arc::clone(rules);
        let transition = Transition::default();
        self.apply(Command::Install { token: Token(1), rules, transition, query: Box::default() });
    }

    pub(super) fn snapshot(&mut self, session: SessionRef) -> Option<Box<SessionSnapshot>> {
        self.apply(Command::Inspect { token: Token(2), session });
        match self.events.pop() {
            Some(Event::Snapshot { session, .. }) => session,
            other => panic!("{other:?}"),
        }
    }

    /// Triggers and volumes of all reports so far, by session.
    pub(super) fn reported(&mut self) -> Vec<(u64, UrrId, Trigger, Volume)> {
        let mut all = Vec::new();
        let mut add = |seid: u64, usage: Vec<Usage>| {
            all.extend(usage.into_iter().map(|usage| (seid, usage.urr, usage.trigger, usage.volume)));
        };
        for event in self.events.drain(..) {
            match event {
                Event::Usage { seid, usage } => add(seid.0, usage),
                Event::Applied { usage, .. } => add(0, usage),
                _ => {}
            }
        }
        all
    }

    pub(super) fn report(&self) -> OffloadReport {
        self.offload.as_ref().unwrap().report(100)
    }

    pub(super) fn taken_back(&self, reason: TakenBack) -> u64 {
        self.report().counters.taken_back.get(reason)
    }
}

/// The identification of an outer IPv4 header counts up in software and stays in hardware. Its checksum must be right; then both are
/// taken out.
pub(super) fn without_identification(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame[12..14] == [8, 0] && frame[23] == 17 && frame[36..38] == [8, 0x68] {
        assert!(checksum::Sum::ZERO.bytes(&frame[14..34]).is_valid());
        frame[18..20].fill(0);
        frame[24..26].fill(0);
    }
    frame
}

pub(super) fn place(number: u8) -> SessionRef {
    SessionRef { shard: Datapath::<MemFrame>::shard_of(ue(number).into()), slot: u32::from(number) }
}

pub(super) fn ue(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 45, 0, number)
}

/// An address of the UE's prefix, which hashes elsewhere: the directory leads to it.
pub(super) fn ue6(number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0x45, u16::from(number), 0, 0, 0, 1)
}

pub(super) fn tunnel(number: u8) -> Tunnel {
    let place = TeidRef { shard: place(number).shard, slot: 3 * u16::from(number) };
    Tunnel { teid: place.teid(1), place }
}

/// What a session may be like.
#[derive(Clone, Debug, Default)]
pub(super) struct Kind {
    pub(super) filters: bool,
    pub(super) qfi: Option<u8>,
    pub(super) marking: Option<u8>,
    pub(super) peer6: bool,
    pub(super) quota: Option<u64>,
    pub(super) threshold: Option<u64>,
    pub(super) teid: u32,
    pub(super) mbr: Option<u64>,
    /// A second URR measures before the rate is limited, as free5GC's do.
    pub(super) before: Option<u64>,
    /// It is in the slice, which has no rate.
    pub(super) slice: bool,
}

pub(super) fn rules(number: u8, kind: &Kind) -> Arc<Rules> {
    let qer = Qer {
        uplink_mbr: kind.mbr,
        downlink_mbr: kind.mbr,
        qfi: kind.qfi.map(|qfi| Qfi::new(qfi).unwrap()),
        reflective: kind.teid % 2 == 1,
        ..Qer::open(QerId(1))
    };
    let limit = |total| VolumeLimit { total, ..VolumeLimit::default() };
    let urr = |id, before_enforcement, threshold, quota| Urr {
        before_enforcement,
        threshold: limit(threshold),
        quota: limit(quota),
        ..Urr::counting(UrrId(id))
    };
    let first = urr(1, false, kind.threshold, kind.quota);
    let urrs: Box<[Urr]> = match kind.before {
        Some(threshold) => [first, urr(2, true, Some(threshold), None)].into(),
        None => [first].into(),
    };
    let pdr = |id, precedence, source, tunnel: Option<Tunnel>, far, filters: Vec<SdfFilter>| Pdr {
        precedence,
        filters: filters.into(),
        qers: [0].into(),
        urrs: (0..urrs.len() as u16).collect(),
        ..Pdr::all(PdrId(id), source, tunnel, far)
    };
    let mut pdrs = Vec::new();
    if kind.filters {
        // UDP to and from the name server, by ToS, has rules of its own.
        let filter = |uplink| SdfFilter {
            protocol: Some(17),
            tos: Some((0x20, 0xe0)),
            source_ports: if uplink { Box::default() } else { [(53, 60)].into() },
            destination_ports: if uplink { [(53, 60)].into() } else { Box::default() },
            ..SdfFilter::default()
        };
        pdrs.push(pdr(3, 10, Source::Access, Some(tunnel(number)), 0, vec![filter(true)]));
        pdrs.push(pdr(4, 10, Source::Core, None, 2, vec![filter(false)]));
    }
    pdrs.push(pdr(1, 255, Source::Access, Some(tunnel(number)), 0, Vec::new()));
    pdrs.push(pdr(2, 255, Source::Core, None, 1, Vec::new()));
    let peer = if kind.peer6 { IpAddr::V6(GNB_IP6) } else { IpAddr::V4(GNB_IP) };
    let far = |id, destination, outer: Option<u32>| {
        let outer_header = outer.map(|teid| OuterHeader { teid: Teid(teid), peer });
        let transport_marking = kind.marking.and_then(Dscp::new);
        let forward = Forward { transport_marking, ..Forward::to(destination, outer_header) };
        Far { id: FarId(id), action: Action::Forward(forward) }
    };
    let fars = [
        far(1, Destination::Core, None),
        far(2, Destination::Access, Some(kind.teid)),
        far(3, Destination::Access, Some(kind.teid + 1000)),
    ];
    Arc::new(Rules {
        ue_ipv6: Some(format!("2001:db8:45:{number:x}::/64").parse().unwrap()),
        slice: kind.slice.then_some(0),
        qers: [qer].into(),
        urrs,
        ..Rules::of(place(number), Some(ue(number)), pdrs, fars)
    })
}

/// The UE's packet, or one to it: 100 octets behind its transport header, if nothing else is said.
#[derive(Clone, Copy)]
pub(super) struct Packet {
    pub(super) ue: u8,
    pub(super) v6: bool,
    pub(super) tcp: bool,
    pub(super) ports: (u16, u16),
    pub(super) tos: u8,
    pub(super) ttl: u8,
    pub(super) size: usize,
    pub(super) qfi: Option<u8>,
    pub(super) fragment: bool,
    pub(super) df: bool,
}

pub(super) const PLAIN: Packet = Packet {
    ue: 1,
    v6: false,
    tcp: false,
    ports: (1000, 53),
    tos: 0,
    ttl: 64,
    size: 100,
    qfi: None,
    fragment: false,
    df: false,
};

impl Packet {
    pub(super) fn inner(self, builder: PacketBuilder, uplink: bool) -> Vec<u8> {
        let (source, destination, ports) = match (self.v6, uplink) {
            (false, true) => (ue(self.ue).into(), HOST.into(), self.ports),
            (false, false) => (HOST.into(), ue(self.ue).into(), (self.ports.1, self.ports.0)),
            (true, true) => (ue6(self.ue).into(), HOST6.into(), self.ports),
            (true, false) => (IpAddr::from(HOST6), ue6(self.ue).into(), (self.ports.1, self.ports.0)),
        };
        let builder = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => builder.ipv4_header(Ipv4Header {
                source,
                destination,
                tos: self.tos,
                ttl: self.ttl,
                more_fragments: self.fragment,
                dont_fragment: self.df,
                identification: 77,
                ..Ipv4Header::default()
            }),
            _ => builder.ip(source, destination),
        };
        let builder = if self.tcp {
            let header = packet::tcp::TcpHeader {
                source_port: ports.0,
                destination_port: ports.1,
                ..packet::tcp::TcpHeader::default()
            };
            builder.tcp(header)
        } else {
            builder.udp(ports.0, ports.1)
        };
        builder.build(&vec![7; self.size])
    }

    pub(super) fn uplink(self) -> Vec<u8> {
        let builder = PacketBuilder::new()
            .ethernet(N3, GNB)
            .ipv4(GNB_IP, N3_IP)
            .udp_without_checksum(3333, 2152)
            .gtpu(tunnel(self.ue).teid);
        let builder = match self.qfi {
            Some(qfi) => {
                let up =
                    pdu_session::Uplink { qfi: Qfi::new(qfi).unwrap(), ..pdu_session::Uplink::default() };
                builder.pdu_session(&PduSession::Uplink(up))
            }
            None => builder,
        };
        self.inner(builder, true)
    }

    pub(super) fn downlink(self) -> Vec<u8> {
        let tag = VlanTag::customer(VlanId::new(100).unwrap());
        self.inner(PacketBuilder::new().ethernet(N6, ROUTER).vlan(tag), false)
    }
}

/// Sends a packet each millisecond until its flow is in hardware.
pub(super) fn warm(side: &mut Side, packets: &[(usize, Vec<u8>)], rules: usize) {
    for _ in 0..40 {
        for (port, packet) in packets {
            side.send(*port, std::slice::from_ref(packet));
        }
        side.tick(MILLI);
        if side.switch.len() == rules {
            return;
        }
    }
    panic!("{:?}", side.report());
}

pub(super) fn one_session(kind: &Kind, table: &FlowTableConfig) -> Side {
    let mut side = Side::new(Some(table), eager());
    side.install(&rules(1, kind));
    side
}
