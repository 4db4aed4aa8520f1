//! tshark measures the same packets.
#![allow(clippy::unwrap_used)]

use super::rtp::{Header, Rtp};
use super::tcp::{Segment, Tcp};
use crate::classify::Side;
use packet::ipv4::Ipv4Header;
use packet::tcp::{TcpFlags, TcpHeader};
use packet::{IpProtocol, PacketBuilder, TcpView};
use std::net::Ipv4Addr;
use std::process::Command;
use tables::Nanos;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 60, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const ACK: TcpFlags = TcpFlags::ACK;

/// What tshark says of packets, which come with their times in microseconds; `None`: there is no tshark.
fn tshark(packets: &[(u64, Vec<u8>)], arguments: &[&str]) -> Option<String> {
    let directory = testing::Directory::new("kpi");
    let path = directory.0.join("packets.pcap");
    // Version 2.4, LINKTYPE_RAW.
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for (micros, packet) in packets {
        let length = packet.len() as u32;
        for word in [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    std::fs::write(&path, file).unwrap();
    match Command::new("tshark").arg("-r").arg(&path).args(arguments).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) => {
            testing::skipped(format!("tshark can't be run: {error}"));
            None
        }
    }
}

/// Numbers that look like chance and are the same each time.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A connection's packets, as they pass by.
struct Tap {
    packets: Vec<(u64, Side, Vec<u8>)>,
}

impl Tap {
    fn new() -> Self {
        let mut tap = Self { packets: Vec::new() };
        tap.see(1_000_000, Side::Client, TcpFlags::SYN, 0, 0, 0, 1000);
        tap.see(1_030_000, Side::Server, TcpFlags(TcpFlags::SYN.0 | ACK.0), 0, 1, 0, 1000);
        tap.see(1_050_000, Side::Client, ACK, 1, 1, 0, 1000);
        tap
    }

    #[expect(clippy::too_many_arguments, reason = "a line of a scenario")]
    fn see(
        &mut self,
        at: u64,
        side: Side,
        flags: TcpFlags,
        sequence: u32,
        ack: u32,
        length: usize,
        window: u16,
    ) {
        let (from, to) = if side == Side::Client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let (source_port, destination_port) =
            if side == Side::Client { (40_000, 443) } else { (443, 40_000) };
        let header =
            TcpHeader { source_port, destination_port, sequence, acknowledgement: ack, flags, window };
        let packet = PacketBuilder::new().ipv4(from, to).tcp(header).build(&vec![7; length]);
        self.packets.push((at, side, packet));
    }

    fn server(&mut self, at: u64, sequence: u32, length: usize) {
        self.see(at, Side::Server, ACK, sequence, 1, length, 1000);
    }

    fn client(&mut self, at: u64, ack: u32, window: u16) {
        self.see(at, Side::Client, ACK, 1, ack, 0, window);
    }

    /// What we measure is what tshark measures.
    fn judge(mut self) {
        self.packets.sort_by_key(|packet| packet.0);
        let mut tcp = Tcp::default();
        for (at, side, packet) in &self.packets {
            let view = TcpView::parse(&packet[20..]).unwrap();
            tcp.push(*side, &Segment::of(&view, view.payload().len()), Nanos(at * 1_000));
        }
        const FIELDS: [&str; 7] = [
            "tcp.analysis.retransmission",
            "tcp.analysis.out_of_order",
            "tcp.analysis.duplicate_ack",
            "tcp.analysis.zero_window",
            "tcp.analysis.lost_segment",
            "tcp.analysis.ack_rtt",
            "tcp.analysis.initial_rtt",
        ];
        let mut arguments =
            vec!["-T", "fields", "-E", "separator=|", "-E", "occurrence=f", "-e", "tcp.srcport"];
        FIELDS.iter().for_each(|field| arguments.extend(["-e", field]));
        let packets: Vec<_> = self.packets.iter().map(|(at, _, packet)| (*at, packet.clone())).collect();
        let Some(table) = tshark(&packets, &arguments) else { return };
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('|').collect()).collect();
        assert_eq!(rows.len(), packets.len());
        for (side, port) in [(Side::Client, "40000"), (Side::Server, "443")] {
            let cells = |column: usize, port: &str| -> Vec<&str> {
                rows.iter()
                    .filter(|row| row[0] == port)
                    .map(|row| row[column])
                    .filter(|it| !it.is_empty())
                    .collect()
            };
            let count = |column| cells(column, port).len() as u32;
            let way = tcp.way(side);
            let ours = [
                way.retransmissions,
                way.out_of_order.into(),
                way.duplicate_acks,
                way.zero_windows.into(),
                way.after_holes.into(),
            ];
            assert_eq!(
                ours,
                [count(1), count(2), count(3), count(4), count(5)],
                "{side:?}: {FIELDS:?}\n{table}"
            );
            // Round trips of one side's segments are at the acknowledgements of the other one.
            let other = if side == Side::Client { "443" } else { "40000" };
            let micros = |cell: &str| (cell.parse::<f64>().unwrap() * 1e6).round() as u32;
            let trips: Vec<u32> = cells(6, other).into_iter().map(micros).collect();
            assert_eq!(way.least_round_trip(), trips.iter().min().copied(), "{side:?}\n{table}");
            if let Some(first) = cells(7, port).first() {
                assert_eq!(tcp.handshake(), Some(micros(first)));
            }
        }
    }
}

#[test]
fn tshark_agrees_on_a_connection_without_trouble() {
    let mut tap = Tap::new();
    for at in 0..20u32 {
        tap.server(1_100_000 + u64::from(at) * 100_000, 1 + at * 1000, 1000);
        tap.client(1_120_000 + u64::from(at) * 100_777, 1 + (at + 1) * 1000, 1000 + at as u16);
    }
    tap.judge();
}

#[test]
fn tshark_agrees_on_loss_before_and_behind_us() {
    let mut tap = Tap::new();
    // 1001 is lost before us: three duplicate acknowledgements, then it is sent again.
    tap.server(1_100_000, 1, 1000);
    tap.client(1_120_000, 1001, 1000);
    for at in 0..4u32 {
        tap.server(1_121_000 + u64::from(at), 2001 + at * 1000, 1000);
        tap.client(1_141_000 + u64::from(at), 1001, 1000);
    }
    tap.server(1_250_000, 1001, 1000);
    tap.client(1_271_000, 6001, 1000);
    // 6001 is lost behind us: it is sent again after a while, and once more though it was acknowledged.
    tap.server(1_300_000, 6001, 1000);
    tap.server(1_700_000, 6001, 1000);
    tap.client(1_721_000, 7001, 1000);
    tap.server(1_722_000, 6001, 1000);
    tap.judge();
}

#[test]
fn tshark_agrees_on_packets_that_overtake_each_other() {
    let mut tap = Tap::new();
    for round in 0..10u64 {
        let (at, from) = (1_100_000 + round * 200_000, 1 + round as u32 * 4000);
        tap.server(at, from, 1000);
        tap.server(at + 100, from + 2000, 1000);
        tap.server(at + 200, from + 1000, 1000);
        tap.server(at + 300, from + 3000, 1000);
        tap.client(at + 25_000, from + 4000, 1000 + round as u16);
    }
    tap.judge();
}

#[test]
fn tshark_agrees_on_windows_and_signs_of_life() {
    let mut tap = Tap::new();
    tap.server(1_100_000, 1, 1000);
    tap.client(1_120_000, 1001, 0);
    // A probe of the window, and its answer.
    tap.server(1_500_000, 1001, 1);
    tap.client(1_520_000, 1001, 0);
    tap.client(1_600_000, 1001, 1000);
    tap.server(1_620_000, 1001, 1000);
    tap.client(1_650_000, 2001, 1000);
    // Whether the client is still there.
    tap.server(9_620_000, 2000, 0);
    tap.client(9_640_000, 2001, 1000);
    tap.see(9_700_000, Side::Server, TcpFlags(ACK.0 | TcpFlags::FIN.0), 2001, 1, 0, 1000);
    tap.client(9_725_000, 2002, 1000);
    tap.judge();
}

#[test]
fn tshark_agrees_on_a_long_connection_with_all_of_it() {
    let mut dice = Dice(7);
    let mut tap = Tap::new();
    let (mut at, mut next) = (1_100_000u64, 1u32);
    for _ in 0..400 {
        at += 100_000 + dice.throw(50_000);
        let length = 200 + dice.throw(1200) as u32;
        match dice.throw(10) {
            // Lost before us, and sent again when what follows it has come.
            0 => {
                tap.server(at, next + length, 500);
                tap.client(at + 20_000, next, 1000);
                tap.server(at + 300_000, next, length as usize);
                next += length + 500;
                at += 300_000;
            }
            // Lost behind us.
            1 => {
                tap.server(at, next, length as usize);
                at += 250_000;
                tap.server(at, next, length as usize);
                next += length;
            }
            // Overtaken.
            2 => {
                tap.server(at, next + length, 500);
                tap.server(at + dice.throw(2_000), next, length as usize);
                next += length + 500;
            }
            _ => {
                tap.server(at, next, length as usize);
                next += length;
            }
        }
        at += 20_000 + dice.throw(5_000);
        tap.client(at, next, 1000 + dice.throw(3) as u16);
    }
    tap.judge();
}

#[test]
fn tshark_agrees_on_a_call() {
    let mut dice = Dice(3);
    let mut packets = Vec::new();
    let mut order: Vec<u16> = (0..3000).filter(|_| dice.throw(50) > 0).collect();
    // A few overtake each other.
    for at in (100..order.len() - 1).step_by(300) {
        order.swap(at, at + 1);
    }
    let mut late = 0;
    for (place, sequence) in order.iter().enumerate() {
        let content = [
            &[0x80, 0][..],
            &sequence.wrapping_add(64_000).to_be_bytes(),
            &(u32::from(*sequence) * 160).to_be_bytes(),
            &[0, 0, 0, 9],
            &[0xd5; 160],
        ]
        .concat();
        let slot = order[..=place].iter().max().unwrap();
        late = late.max(u64::from(*slot) * 20_000) + 10 + dice.throw(4_000);
        let header = Ipv4Header {
            source: CLIENT,
            destination: SERVER,
            protocol: IpProtocol::UDP,
            ..Ipv4Header::default()
        };
        packets.push((late, PacketBuilder::new().ipv4_header(header).udp(5004, 5004).build(&content)));
    }
    let mut rtp: Option<Rtp> = None;
    for (at, packet) in &packets {
        let (header, now) = (Header::parse(&packet[28..]).unwrap(), Nanos(at * 1_000));
        match &mut rtp {
            Some(rtp) => rtp.push(&header, now),
            None => rtp = Some(Rtp::new(&header, None, now)),
        }
    }
    let rtp = rtp.unwrap();
    let Some(table) = tshark(&packets, &["-q", "-d", "udp.port==5004,rtp", "-z", "rtp,streams"]) else {
        return;
    };
    let line = table.lines().find(|line| line.contains("0x00000009")).unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    let at = cells.iter().position(|cell| *cell == "0x00000009").unwrap();
    // Payload, packets, lost, (percent), deltas, jitter: least, mean, most.
    let [codec, received, lost] = [cells[at + 1], cells[at + 2], cells[at + 3]];
    assert_eq!(
        (rtp.received().to_string(), rtp.lost().to_string()),
        (received.to_owned(), lost.to_owned()),
        "{table}"
    );
    assert!(codec.to_lowercase().contains("g711u") && rtp.codec().unwrap().name == "PCMU");
    let most: f64 = cells[at + 10].parse().unwrap();
    assert!(
        (f64::from(rtp.most_jitter().unwrap()) / 1e3 - most).abs() < 0.1,
        "{:?}, {table}",
        rtp.most_jitter()
    );
}
