//! Capture files: the port conforms, both formats are read, hostile ones are refused, and others can read ours.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use io::conformance::{self, Expect, FarSide, Wiring};
use io::mem::{MemConfig, MemFrame, MemNic, MemWire};
use io::pcap::{
    CaptureError, CaptureReader, CaptureWriter, CapturedPacket, Clock, Direction, Pace, PcapPort, Recorder,
};
use io::{Frame, Port, RxQueue, TxQueue};
use packet::MacAddr;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A file that is written at one end and read at the other.
#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<VecDeque<u8>>>);

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().read(into)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn fixed(nanos: u64) -> Clock {
    Arc::new(move || nanos)
}

struct Files {
    to_port: CaptureWriter<Pipe>,
    from_port: CaptureReader<Pipe>,
}

impl FarSide for Files {
    fn inject(&mut self, packet: &[u8]) {
        self.to_port.write(0, 0, None, packet, None).unwrap();
    }

    fn collect(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        while let Some(packet) = self.from_port.next_packet().unwrap() {
            packets.push(packet.data.to_vec());
        }
        packets
    }
}

#[test]
fn conforms() {
    let (input, output) = (Pipe::default(), Pipe::default());
    let mut to_port = CaptureWriter::new(input.clone()).unwrap();
    to_port.interface("far").unwrap();
    let mut port = PcapPort::new(
        "file",
        MacAddr([2; 6]),
        Box::new(input),
        Pace::Fast,
        Some(Box::new(output.clone())),
        fixed(0),
    )
    .unwrap();
    let mut far = Files { to_port, from_port: CaptureReader::new(output) };
    let expect = Expect { longest: 9014, ..Expect::default() };
    let report = conformance::run(&mut port, Wiring::Far(&mut far), expect).unwrap();
    assert!(report.received > 900 && port.error().is_none() && port.at_end());
}

#[test]
fn a_recorded_port_conforms_and_its_record_is_complete() {
    struct Wire(MemWire);
    impl FarSide for Wire {
        fn inject(&mut self, packet: &[u8]) {
            self.0.offer(&mut vec![MemFrame::copy_of(packet).unwrap()]);
        }
        fn collect(&mut self) -> Vec<Vec<u8>> {
            let mut frames = Vec::new();
            self.0.collect(&mut frames, usize::MAX);
            frames.iter().map(|frame| frame.bytes().to_vec()).collect()
        }
    }
    let file = Pipe::default();
    let recorder = Recorder::new(Box::new(file.clone()), u64::MAX, fixed(7)).unwrap();
    let (nic, wire) = MemNic::new(MemConfig::default()).unwrap();
    let mut port = recorder.record(nic).unwrap();
    let report = conformance::run(&mut port, Wiring::Far(&mut Wire(wire)), Expect::default()).unwrap();
    recorder.flush().unwrap();
    assert_eq!((recorder.left_out(), recorder.error()), (0, None));
    let mut reader = CaptureReader::new(file);
    let mut packets = 0;
    while let Some(packet) = reader.next_packet().unwrap() {
        assert_eq!((packet.nanos, packet.interface), (7, 0));
        packets += 1;
    }
    assert_eq!(packets, report.received + report.sent);
}

#[test]
fn a_recorder_keeps_to_its_limit_and_records_only_what_was_sent() {
    let file = Pipe::default();
    let recorder = Recorder::new(Box::new(file.clone()), 1000, fixed(0)).unwrap();
    let (nic, _wire) = MemNic::new(MemConfig { descriptors: 3, ..MemConfig::default() }).unwrap();
    let mut port = recorder.record(nic).unwrap();
    let (_rx, mut tx) = port.take_queue(0).unwrap();
    let mut frames: Vec<_> = (0..5u8).map(|i| MemFrame::copy_of(&[i; 400]).unwrap()).collect();
    assert_eq!(tx.tx_burst(&mut frames), 3);
    assert_eq!(recorder.left_out(), 1, "two fit into 1,000 bytes");
    let packets = read_all(file);
    assert_eq!(packets, [vec![0; 400], vec![1; 400]]);
}

fn read_all(input: impl Read) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::new(input);
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push(packet.data.to_vec());
    }
    assert_eq!(reader.unfinished(), 0);
    packets
}

#[test]
fn packets_arrive_with_their_original_distances() {
    let mut file = CaptureWriter::new(Vec::new()).unwrap();
    file.interface("x").unwrap();
    for (nanos, byte) in [(5_000_000_000u64, 1u8), (5_000_000_100, 2), (5_000_000_050, 3), (5_000_001_000, 4)]
    {
        file.write(0, nanos, None, &[byte; 60], None).unwrap();
    }
    let now = Arc::new(AtomicU64::new(77));
    let clock = Arc::clone(&now);
    let pace = Pace::Original(Arc::new(move || clock.load(Ordering::Relaxed)));
    let input = Box::new(std::io::Cursor::new(file.into_inner()));
    let mut port = PcapPort::new("f", MacAddr([2; 6]), input, pace, None, fixed(0)).unwrap();
    let (mut rx, _tx) = port.take_queue(0).unwrap();
    let mut arrived = |at: u64| {
        now.store(at, Ordering::Relaxed);
        let mut frames = Vec::new();
        rx.rx_burst(&mut frames, 64);
        frames.iter().map(|frame| frame.bytes()[0]).collect::<Vec<_>>()
    };
    assert_eq!(arrived(77), [1]);
    assert_eq!(arrived(176), []);
    assert_eq!(arrived(177), [2, 3], "an earlier one that comes later isn't held");
    assert_eq!(arrived(1076), []);
    assert_eq!(arrived(1077), [4]);
    assert!(port.at_end());
}

/// A pcap of one packet, as libpcap writes it.
fn pcap(big_endian: bool, nanos: bool, link: u32) -> Vec<u8> {
    let word = |value: u32| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = Vec::new();
    file.extend_from_slice(&word(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    file.extend_from_slice(&half(2));
    file.extend_from_slice(&half(4));
    for field in [0, 0, 65535, link, 1_700_000_000, 123, 5, 5] {
        file.extend_from_slice(&word(field));
    }
    file.extend_from_slice(b"bytes");
    file
}

#[test]
fn every_kind_of_pcap_is_read() {
    for (big_endian, nanos) in [(false, false), (false, true), (true, false), (true, true)] {
        let file = pcap(big_endian, nanos, 1);
        let mut reader = CaptureReader::new(&file[..]);
        let expected = CapturedPacket {
            nanos: 1_700_000_000_000_000_000 + if nanos { 123 } else { 123_000 },
            link: 1,
            interface: 0,
            length: 5,
            data: b"bytes",
        };
        assert_eq!(reader.next_packet().unwrap(), Some(expected));
        assert_eq!(reader.next_packet().unwrap(), None);
    }
}

/// One pcapng block in big-endian order, which no writer of ours produces.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_be_bytes();
    [&kind.to_be_bytes()[..], &length, body, &length].concat()
}

#[test]
fn big_endian_pcapng_with_microseconds_and_offset_is_read() {
    let section =
        block(0x0a0d_0d0a, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    // if_tsoffset (14) of 100 s; the resolution is the default, microseconds.
    let options = [0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0];
    let interface = block(1, &[&[0, 1, 0, 0, 0, 0, 0, 0][..], &options].concat());
    let packet =
        block(6, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 10, b'a', b'b', b'c', 0]);
    let simple = block(3, &[0, 0, 0, 2, b'd', b'e', 0, 0]);
    let unknown = block(0x0bad, &[1, 2, 3, 4]);
    let file = [section, interface, unknown, packet, simple].concat();
    let mut reader = CaptureReader::new(&file[..]);
    let first = CapturedPacket { nanos: 100_000_009_000, interface: 0, link: 1, length: 10, data: b"abc" };
    assert_eq!(reader.next_packet().unwrap(), Some(first));
    assert_eq!(reader.next_packet().unwrap().unwrap().data, b"de");
    assert_eq!(reader.next_packet().unwrap(), None);
}

#[test]
fn damaged_captures_are_refused_for_good() {
    let error = |file: &[u8]| {
        let mut reader = CaptureReader::new(file);
        loop {
            match reader.next_packet() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("no error"),
                Err(error) => {
                    assert_eq!(reader.next_packet().unwrap_err(), error);
                    return error;
                }
            }
        }
    };
    assert_eq!(error(b"GIF89a.............."), CaptureError::Format(*b"GIF8"));
    assert_eq!(error(&pcap(false, false, 101)), CaptureError::LinkType(101));
    let raw = pcap(false, false, 101);
    let mut any = CaptureReader::new(&raw[..]).of_any_link();
    assert_eq!(any.next_packet().unwrap().map(|it| it.link), Some(101));
    let mut long = pcap(false, false, 1);
    long[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(error(&long), CaptureError::TooLong { offset: 24, length: u64::from(u32::MAX) });
    let writer = CaptureWriter::new(Vec::new()).unwrap();
    let section = writer.into_inner();
    let mut order = section.clone();
    order[8] = 0;
    assert!(matches!(error(&order), CaptureError::Damaged { offset: 0, .. }));
    let offset = section.len() as u64;
    let stray =
        [&section[..], &6u32.to_ne_bytes(), &32u32.to_ne_bytes(), &[0; 20], &32u32.to_ne_bytes()].concat();
    assert!(matches!(error(&stray), CaptureError::Damaged { offset: at, .. } if at == offset));
    let huge = [&section[..], &6u32.to_ne_bytes(), &0x7fff_fffcu32.to_ne_bytes(), &[0; 20]].concat();
    assert_eq!(error(&huge), CaptureError::TooLong { offset, length: 0x7fff_fffc });
}

#[test]
fn what_cannot_be_carried_is_counted() {
    let mut file = CaptureWriter::new(Vec::new()).unwrap();
    file.interface("x").unwrap();
    for length in [60, 0, 9601, 61] {
        file.write(0, 0, None, &vec![1; length], None).unwrap();
    }
    let mut file = file.into_inner();
    file.extend_from_slice(b"garbage and more");
    let input = Box::new(std::io::Cursor::new(file));
    let mut port = PcapPort::new("f", MacAddr([2; 6]), input, Pace::Fast, None, fixed(0)).unwrap();
    let (mut rx, mut tx) = port.take_queue(0).unwrap();
    let mut frames = Vec::new();
    assert_eq!(rx.rx_burst(&mut frames, 64), 2);
    assert_eq!(tx.tx_burst(&mut frames), 2);
    let stats = port.stats();
    assert_eq!((stats.rx_packets, stats.rx_bytes, stats.rx_errors, stats.tx_packets), (2, 121, 2, 2));
    assert!(port.at_end() && port.error().is_some());
}

#[test]
fn tshark_reads_what_we_write() {
    let path = std::env::temp_dir().join(format!("millrace-pcap-{}.pcapng", std::process::id()));
    let mut file = CaptureWriter::new(std::fs::File::create(&path).unwrap()).unwrap();
    let port = file.interface("n3").unwrap();
    let nanos = 1_700_000_000_123_456_789;
    file.write(port, nanos, Some(Direction::Out), &[0x11; 61], Some("dropped: no session")).unwrap();
    file.flush().unwrap();
    let fields = [
        "frame.time_epoch",
        "frame.len",
        "frame.interface_name",
        "frame.packet_flags_direction",
        "frame.comment",
    ];
    let mut command = std::process::Command::new("tshark");
    command.arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output();
    std::fs::remove_file(&path).unwrap();
    match output {
        Ok(output) => {
            let text = String::from_utf8(output.stdout).unwrap();
            assert_eq!(text.trim(), "1700000000.123456789|61|n3|0x00000002|dropped: no session");
        }
        Err(error) => testing::skipped(format!("tshark can't be run: {error}")),
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400), kind in 0u8..4) {
        let head: &[u8] = match kind {
            0 => &[],
            1 => &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0],
            2 => &[0xa1, 0xb2, 0x3c, 0x4d],
            _ => &[0x0a, 0x0d, 0x0d, 0x0a],
        };
        let file = [head, &bytes].concat();
        let mut reader = CaptureReader::new(&file[..]);
        while let Ok(Some(packet)) = reader.next_packet() {
            assert!(packet.data.len() <= file.len());
        }
    }

    #[test]
    fn flipped_bits_never_panic(flips in proptest::collection::vec((0usize..2000, 0u8..8), 1..8)) {
        let mut file = CaptureWriter::new(Vec::new()).unwrap();
        file.interface("x").unwrap();
        for i in 0..10u8 {
            file.write(0, u64::from(i), Some(Direction::In), &vec![i; 60 + usize::from(i)], Some("c")).unwrap();
        }
        let mut file = file.into_inner();
        let length = file.len();
        for (at, bit) in flips {
            file[at % length] ^= 1 << bit;
        }
        let mut reader = CaptureReader::new(&file[..]);
        let mut packets = 0;
        while let Ok(Some(_)) = reader.next_packet() {
            packets += 1;
        }
        assert!(packets <= 100);
    }

    #[test]
    fn what_is_written_is_read(packets in proptest::collection::vec(
        (proptest::collection::vec(proptest::num::u8::ANY, 0..200), proptest::num::u64::ANY), 0..20,
    )) {
        let mut file = CaptureWriter::new(Vec::new()).unwrap();
        file.interface("x").unwrap();
        for (packet, nanos) in &packets {
            file.write(0, *nanos, None, packet, None).unwrap();
        }
        let file = file.into_inner();
        let mut reader = CaptureReader::new(&file[..]);
        for (packet, nanos) in &packets {
            let read = reader.next_packet().unwrap().unwrap();
            assert_eq!((read.data, read.nanos, read.length), (&packet[..], *nanos, packet.len()));
        }
        assert_eq!(reader.next_packet().unwrap(), None);
    }
}
