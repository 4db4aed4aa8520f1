//! Writes the seed corpus, `corpus/TARGET/`: real packets, messages and texts, and scripts for the targets that read their
//! bytes as choices. `./x fuzz seeds` runs it; what it writes is committed. Files beginning with `found-` are inputs that once
//! failed; they are kept.

// Built with the targets' flags, whose instrumentation wants its runtime.
use libfuzzer_sys as _;

use dpi::classify::{self, Answer, Assembly, Carrier, End, History, Recogniser, Sheet, Side};
use dpi::protocols::{FAMILIES, Family};
use fuzz::frames::{self, Payload};
use fuzz::requests::{self, FLOWS, GNB, GNB_IPV6, N3, N3_IPV6};
use fuzz::{Input, messages as said};
use io::pcap::{CaptureWriter, Direction};
use packet::gtpu::ExtensionType;
use packet::gtpu_message::{self, ErrorIndication};
use packet::{PacketBuilder, Teid, VlanId, VlanTag, arp, icmpv4, icmpv6};
use pfcp::ie::{NodeId, RecoveryTimeStamp, UpFunctionFeatures};
use pfcp::message::*;
use pfcp::{Header, MessageType, Seid, SequenceNumber};
use std::net::IpAddr;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (target, seeds) in [
        ("packet", packets()),
        ("gtpu", gtpu()),
        ("sdf", texts()),
        ("session_store", after_sessions(&[0, 0], 16, 300)),
        ("pfcp_node", scripts(12, 300)),
        ("datapath_packets", [scripts(12, 300), changes()].concat()),
        ("n4_and_packets", after_sessions(&[0x90, 1, 1], 24, 300)),
        ("config", configurations()),
        ("ctl", lines()),
        ("pcap", captures()?),
        ("pfcp_message", messages()),
        ("inspect", conversations()),
        ("recognise", beginnings()),
        ("signatures", signatures()),
        ("ran", scripts(16, 200)),
    ] {
        let folder = root.join(target);
        std::fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number:02}")), seed)?;
        }
        println!("{target}: {} seeds", seeds.len());
    }
    Ok(())
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Users' packets of both families.
fn user_packets() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (ue, server) in [("10.45.0.2", "198.51.100.7"), ("2001:db8:45:1::2", "2001:db8:9::7")] {
        for payload in
            [Payload::Udp(40000, 53, b"query"), Payload::Tcp(40000, 443, b""), Payload::Echo(b"abcdefgh")]
        {
            all.push(frames::user_packet(ip(ue), ip(server), payload));
            all.push(frames::user_packet(ip(server), ip(ue), payload));
        }
    }
    all
}

fn packets() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for inner in user_packets() {
        all.push(frames::downlink(&inner));
        all.push(frames::uplink(
            GNB.into(),
            N3.into(),
            Teid(0x100),
            Some(frames::uplink_container(9)),
            &inner,
        ));
        all.push(inner);
    }
    all.push(frames::uplink(GNB_IPV6.into(), N3_IPV6.into(), Teid(0x100), None, &all[2]));
    let mut question = [0; arp::LEN];
    arp::emit_request(&mut question, frames::GNB_MAC, GNB, N3);
    all.push([&[0xff; 6][..], &frames::GNB_MAC.0, &[8, 6], &question].concat());
    let tag = VlanTag::customer(VlanId::new(100).expect("below 4095"));
    all.push(
        PacketBuilder::new()
            .ethernet(frames::N3_MAC, frames::GNB_MAC)
            .vlan(tag)
            .ip(GNB.into(), N3.into())
            .udp(2152, 2152)
            .build(&[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0]),
    );
    let mut error = Vec::new();
    icmpv4::emit_error(&mut error, N3, icmpv4::Icmpv4Error::TimeExceeded, &all[2]);
    all.push(error);
    let mut error = Vec::new();
    icmpv6::emit_error(&mut error, N3_IPV6, icmpv6::Icmpv6Error::NoRoute, all.last().expect("one"));
    all.push(error);
    all
}

/// Every message between a subscriber and each of the servers, and the next one back; some in tunnels, some cut off; then silence.
fn conversations() -> Vec<Vec<u8>> {
    let mut scripts = Vec::new();
    for (number, how) in (0..).zip([0x00, 0x40, 0x60, 0x80]) {
        let mut script = vec![0, 0, 0, number & 1, number >> 1];
        for (message, flow) in (0..said::ALL.len() as u8).zip(number..) {
            for (from, message) in [(0, message), (0x80, message + 1)] {
                let what = (flow & 0xf) | (number << 6);
                script.extend([0, from | (flow % 5), what, how, 0, message]);
                if how & 0x80 != 0 {
                    script.push(flow);
                }
                // TCP's flags, and the sequence number as it is due.
                if what >> 3 & 3 < 2 {
                    script.extend([3, 0]);
                }
            }
            if flow % 8 == 0 {
                script.extend([12, 3, 1, 0, 1, 1, 0, 2, 1, 0, 3, 13, 0x40, 0]);
            }
        }
        scripts.push(script);
    }
    scripts
}

/// Every message from either side, on a stream and as a datagram.
/// Each message for the families of which somebody doesn't say no to it, whatever carries it.
fn beginnings() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for said in said::ALL {
        for (family, Family { name, recognisers }) in FAMILIES.iter().enumerate() {
            let sides = [Side::Client, Side::Server].into_iter().enumerate();
            let carriers = [Carrier::Tcp, Carrier::Udp, Carrier::Sctp].into_iter().enumerate();
            for ((carrier, over), (side, by)) in carriers.flat_map(|it| sides.clone().map(move |by| (it, by)))
            {
                if recognisers.iter().any(|it| it.carriers.has(over) && answers(it, said, over, by)) {
                    let choices = [family as u8, carrier as u8, side as u8, 1, 0x9c, 0x40, 0, 0, 1, 0];
                    // Nothing before it; for QUIC, one choice more: it isn't to be sealed.
                    let before: &[u8] = if *name == "quic" { &[0, 0] } else { &[0] };
                    seeds.push([&choices, before, said].concat());
                    break;
                }
            }
        }
    }
    seeds
}

fn answers(recogniser: &Recogniser, bytes: &[u8], carrier: Carrier, side: Side) -> bool {
    let end = |port| End { address: [192, 0, 2, 1].into(), port };
    let (mut sheet, mut assembly) = (Sheet::default(), Assembly::default());
    let mut message = classify::Message {
        bytes,
        begins: true,
        carrier,
        side,
        client: end(40_000),
        server: end(recogniser.ports.first().copied().unwrap_or(0)),
        history: &History::default(),
        sheet: &mut sheet,
        assembly: &mut assembly,
    };
    (recogniser.probe)(&mut message) != Answer::No
}

fn signatures() -> Vec<Vec<u8>> {
    let toml = b"\0version = \"1\"\n[video]\nname = \"Video\"\ncategory = \"web\"\nhosts = [\"video.example\", \"=a.example.org\", \"*.b-*.example\"]\n\
        addresses = [\"198.51.100.0/24\", \"2001:db8::/32\"]\nports = [\"udp/4000-4010\"]\nagents = [\"player/*\"]\n";
    let list = b"\x02example.com\nfull:www.example.org @ads\nkeyword:video\nregexp:^ads[0-9]\\.\ninclude:list\n# no more\n";
    let hosts = b"\x030.0.0.0 ads.example tracker.example\n127.0.0.1 localhost\n::1 b.example # c\n";
    let mut builder = dpi::signatures::Builder::new();
    let application = builder.application("video", None, dpi::Category::Web).expect("a name");
    for host in ["video.example", "=a.example.org"] {
        builder.add(application, dpi::signatures::Kind::Host, host).expect("a host");
    }
    let compiled = builder.build().expect("a bundle").bundle.compiled();
    // Whole, and what stands between the length and the checksum.
    let whole = [&[1][..], &compiled].concat();
    let content = [&[1][..], &compiled[14..compiled.len() - 4]].concat();
    vec![toml.to_vec(), list.to_vec(), hosts.to_vec(), whole, content]
}

/// UEs' packets while what is translated on N6 changes.
fn changes() -> Vec<Vec<u8>> {
    // To the server, from port 1000 (TCP, echo, UDP), before a public endpoint was seen and after.
    let packet = |session: u8, payload: u8, seen: bool| -> Vec<u8> {
        let head: &[u8] = if seen { &[0, 0, 0, 0, 0] } else { &[0, 0, 0, 0] };
        [head, &[session, 0, 0, 5, 0, 8, payload, 1, 0, 2, 0, 1, 1]].concat()
    };
    let all = |seen: bool| (0..48).map(move |n| packet(n / 3, [0, 1, 3][usize::from(n % 3)], seen || n > 15));
    let errors = (0..48).flat_map(|n| [0xd0, 0, 8, n / 3, 5, n % 3]);
    let mut scripts = Vec::new();
    for (first, second) in
        [(0x59, 0x5c), (0x59, 0x5b), (0x5c, 0x00), (0x59, 0x99), (0x6a, 0x79), (0x5d, 0xdf)]
    {
        for how in [0, 3, 4, 7] {
            let mut script = vec![0xfc, first, 0];
            for scheme in [second, first, second] {
                script.extend(all(script.len() > 3).flatten());
                script.extend([0xfc, scheme, how]);
                script.extend(errors.clone());
                script.extend(all(true).flatten());
                // Time passes; and at the end of all, nobody checks where tunnels begin.
                script.extend([0xff, 0x01]);
            }
            scripts.push(script);
        }
    }
    scripts
}

fn gtpu() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = frames::containers()
        .iter()
        .map(|container| PacketBuilder::new().gtpu(Teid(0x100)).pdu_session(container).build(b"user"))
        .collect();
    let mut message = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        all.push(out);
    };
    message(&|out| gtpu_message::emit_echo_request(out, 1));
    message(&|out| gtpu_message::emit_echo_response(out, 1));
    for peer in [IpAddr::from(GNB), IpAddr::from(GNB_IPV6)] {
        let error = ErrorIndication { teid: Teid(0x77), peer };
        message(&|out| gtpu_message::emit_error_indication(out, 2, &error, Some(2152)));
    }
    message(&|out| gtpu_message::emit_supported_extensions(out, 3, &[ExtensionType::PDU_SESSION_CONTAINER]));
    message(&|out| out.extend([0x30, 254, 0, 0, 0, 0, 0, 0x77]));
    // Two extension headers, one of them to be understood by the endpoint only.
    message(&|out| {
        out.extend(*b"\x34\xff\x00\x0c\x00\x00\x01\x00\x00\x00\x00\xc0\x01\x00\x09\x40\x01\x08\x68\x00")
    });
    all
}

fn texts() -> Vec<Vec<u8>> {
    let more: [&[u8]; 6] = [
        b"permit out 50 from 10.1.0.0/16 to 10.45.0.2/32 6000-7000,8000",
        b"permit out ip from 2001:db8::/32 to assigned",
        b"192.168.50.0/24 0.0.0.0 1",
        b"2001:db8:50::/56 :: 1",
        b"\x08internet\x06mnc001\x06mcc001\x04gprs",
        b"internet",
    ];
    FLOWS.iter().chain(&more).map(|text| text.to_vec()).collect()
}

/// Scripts that any target which reads choices makes something of.
fn scripts(count: u64, length: usize) -> Vec<Vec<u8>> {
    let mut state = 0x6d69_6c6c_7261_6365_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[3]
    };
    (0..count).map(|_| (0..length).map(|_| next()).collect()).collect()
}

/// Scripts that begin with some everyday sessions: `step` is what the target wants to hear before an establishment.
fn after_sessions(step: &[u8], count: u64, length: usize) -> Vec<Vec<u8>> {
    // For `requests::everyday`: IPv4, IPv6, both; forwarded or, the last, buffered.
    let sessions = [8, 8 | 2, 8 | 6, 0].map(|octet| [0xc0 | octet, 0, octet, 0x20 | octet, 0]);
    let begin: Vec<u8> = sessions.iter().flat_map(|session| [step, session].concat()).collect();
    scripts(count, length).into_iter().map(|script| [&begin[..], &script].concat()).collect()
}

fn configurations() -> Vec<Vec<u8>> {
    let example = config::EXAMPLE;
    let plain: String = example.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let overrides =
        format!("{plain}\n#####\nn4.listen=127.0.0.1:8805\nport.0.mtu=9000\n#####\nLOG__LEVEL=debug\n");
    vec![example.into(), plain.into(), overrides.into()]
}

fn lines() -> Vec<Vec<u8>> {
    let lines = [
        r#"{"ask":"version"}"#,
        r#"{"ask":"sessions","offset":3,"limit":10,"ue":"10.45.0.2","peer":"smf.example","network_instance":"internet"}"#,
        r#"{"ask":"session","seid":"0x0000000200000001"}"#,
        r#"{"ask":"session","seid":7}"#,
        r#"{"ask":"drops"}"#,
        r#"{"ask":"stop"}"#,
        r#"{"answer":"drops","drops":[{"reason":"malformed","meaning":"as it says","packets":3}]}"#,
        r#"{"answer":"ports","ports":[]}"#,
        r#"{"answer":"error","code":"not-found","message":"no such session"}"#,
    ];
    lines.iter().map(|line| line.as_bytes().to_vec()).collect()
}

fn captures() -> std::io::Result<Vec<Vec<u8>>> {
    let mut writer = CaptureWriter::new(Vec::new())?;
    let interface = writer.interface("n3")?;
    for (at, packet) in packets().iter().take(4).enumerate() {
        writer.write(interface, at as u64 * 1000, Some(Direction::In), packet, None)?;
    }
    let ng = writer.into_inner();
    // The older format, in either byte order.
    let classic = |big: bool| {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut out = [&word(0xa1b2_c3d4)[..], &half(2), &half(4), &[0; 8], &word(65535), &word(1)].concat();
        for packet in packets().iter().take(3) {
            let length = word(packet.len() as u32);
            out.extend([&word(1)[..], &word(2), &length, &length, packet].concat());
        }
        out
    };
    Ok(vec![ng, classic(true), classic(false)])
}

fn messages() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut add = |message: &Message<'_>, seid: Option<u64>| {
        let header = Header {
            seid: seid.map(Seid),
            ..Header::node(MessageType(0), SequenceNumber(all.len() as u32 + 1))
        };
        let mut out = Vec::new();
        message.encode(header, &mut out).expect("it is short");
        all.push(out);
    };
    let node_id = NodeId::Ip([127, 0, 0, 1].into());
    let recovery = RecoveryTimeStamp(0xe000_0000);
    add(&HeartbeatRequest { recovery, source: None }.into(), None);
    let setup = AssociationSetupRequest {
        node_id: node_id.clone(),
        recovery,
        up_features: None,
        cp_features: None,
        session_retention: false,
    };
    add(&setup.into(), None);
    let setup = AssociationSetupResponse {
        node_id: NodeId::Fqdn("upf.example".into()),
        cause: pfcp::Cause::ACCEPTED,
        recovery,
        up_features: Some(UpFunctionFeatures::default()),
        cp_features: None,
    };
    add(&setup.into(), None);
    add(&AssociationReleaseRequest { node_id }.into(), None);
    for script in scripts(12, 300) {
        add(&requests::establishment(&mut Input::new(&script)).into(), Some(0));
        add(&requests::modification(&mut Input::new(&script)).into(), Some(0x0000_0002_0000_0001));
    }
    add(&requests::establishment(&mut Input::new(&[])).into(), Some(0));
    all
}
